#include "web/health.h"

#include "web/http_reply.h"

/* `key` alone or with a value counts, as in Go's url.Values. */
static bool health_asks(struct str query, struct str key)
{
    struct str pair;
    while (query.n > 0 && str_split_next(&query, '&', &pair)) {
        struct str name;
        struct str value;
        (void)str_cut(pair, STR("="), &name, &value);
        if (str_eq(name, key)) {
            return true;
        }
    }
    return false;
}

void health_handle(void *ctx, struct inbound_exchange *x, const struct inbound_request *req)
{
    const struct health *h = ctx;
    struct str rest;
    struct str name;
    (void)str_cut_prefix(req->path, STR("/"), &rest);
    bool single = str_cut(rest, STR("/"), &name, &rest);
    bool readiness = str_eq(name, STR("readyz"));
    if ((!readiness && !str_eq(name, STR("healthz"))) ||
        (single && rest.n > 0 && !str_eq(rest, name))) {
        http_reply_text(x, 404, STR("404 page not found\n"));
        return;
    }
    struct str why = STR_NONE;
    bool good = !readiness || h->ready == NULL || h->ready(h->ctx, &why);
    if (good && !health_asks(req->query, STR("verbose"))) {
        http_reply_text(x, 200, STR("ok"));
        return;
    }
    CLEANUP(buf_done)
    struct buf out = { 0 };
    if (good) {
        buf_printf(&out, "[+]" STR_FMT " ok%s" STR_FMT "\n" STR_FMT " check passed\n",
                   STR_ARG(name), why.n > 0 ? ": " : "", STR_ARG(why), STR_ARG(name));
    } else {
        buf_printf(&out, "[-]" STR_FMT " failed: " STR_FMT "\n" STR_FMT " check failed\n",
                   STR_ARG(name), STR_ARG(why), STR_ARG(name));
    }
    http_reply_text(x, good ? 200 : 500, buf_str(&out));
}
