#include "tests/lib/controller_fixture.h"

#include "tests/check.h"

struct controller *controller_open(const struct core_config *core_config,
                                   const struct controller_config *config)
{
    struct core *core = core_new(core_config);
    struct controller *c = controller_new(core, config);
    core_start(core);
    return c;
}

void controller_close(struct controller *c)
{
    if (c != NULL) {
        struct core *core = controller_core(c);
        controller_free(c);
        core_free(core);
    }
}

uint32_t controller_events(struct apiserver *server, const char *reason, struct arena *out,
                           struct str *ret_note)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct apiserver_reply reply = { 0 };
    const struct jval *root = NULL;
    struct err err = { 0 };
    uint32_t n = 0;
    struct apiserver_request request = {
        .method = STR("GET"),
        .path = STR("/apis/events.k8s.io/v1/namespaces/default/events"),
    };
    apiserver_handle(server, &request, &tmp, &reply);
    CHECK_EQ(reply.status, 200);
    CHECK_EQ(json_parse(reply.body, 0, &tmp, &root, &err), 0);
    JVAL_EACH (jval_get(root, STR("items")), event) {
        if (!str_eq(jval_str(jval_get(event, STR("reason"))), str_from(reason))) {
            continue;
        }
        n++;
        if (out != NULL) {
            *ret_note = arena_str(out, jval_str(jval_get(event, STR("note"))));
        }
    }
    return n;
}
