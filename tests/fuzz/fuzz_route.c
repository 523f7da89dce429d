/* Whatever the URL, it is taken apart or refused with a reason; what comes out is bounded by what
 * went in, and a server answers it. */
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/apiserver/continue_token.h"
#include "sandbox/apiserver/url_route.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/fuzz/target.h"

static void check_parts(const struct url_route *r, struct str url)
{
    const struct str parts[] = { r->group,  r->version, r->namespace,
                                 r->plural, r->name,    r->subresource };
    size_t total = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        total += parts[i].n;
    }
    ASSERT(total <= url.n); /* decoding never makes longer */
    ASSERT(r->target != URL_OBJECT || r->name.n > 0);
    ASSERT(r->target != URL_COLLECTION || (r->plural.n > 0 && r->name.n == 0));
}

static void check_answer(struct str url, struct arena *a)
{
    struct virtual_loop *vloop = virtual_loop_new(1, 0);
    struct apiserver *server = apiserver_new(virtual_loop_root(vloop), 1);
    struct apiserver_request request = { .method = STR("GET"), .path = url };
    struct apiserver_reply reply;
    apiserver_handle(server, &request, a, &reply);
    ASSERT(reply.status >= 200 && reply.status < 600);
    apiserver_watch_close(reply.watch);
    apiserver_free(server);
    virtual_loop_free(vloop);
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct url_route route;
    struct err err = { 0 };
    if (url_route_parse(text, &a, &route, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
    } else {
        check_parts(&route, text);
    }
    struct continue_token page;
    if (continue_token_parse(text, &a, &page, &err) == 0) {
        struct continue_token again;
        int r = continue_token_parse(continue_token_print(&page, &a), &a, &again, &err);
        ASSERT(r == 0 && again.rv == page.rv && str_eq(again.start, page.start));
    }
    check_answer(text, &a);
}
