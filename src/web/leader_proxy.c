#include "web/leader_proxy.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/alloc.h"
#include "base/list.h"
#include "format/json.h"
#include "kube/client.h"
#include "web/http_reply.h"
#include "web/request_auth.h"

#define LEADER_PROXY_NO_LEADER "no maintenance-controller is leading"

struct leader_proxy {
    struct loop *loop;
    struct leader_proxy_config config;
    struct arena memory;
    struct list calls;
    uint32_t call_n;
    /* Where the leader was found last, so that the pod is not asked for every time. */
    struct arena found;
    struct str holder;
    struct str address;
};

struct leader_proxy_call {
    struct list link;
    struct leader_proxy *proxy;
    struct inbound_exchange *x; /* borrowed: until it is answered or closed */
    struct arena memory;
    struct str target;        /* path and query */
    struct str authorization; /* empty = nobody asks for it */
    enum query_format format;
    struct str holder;
    struct str name; /* the leader's pod, or host */
    struct api_call *api_call;
    struct outbound_call *outbound_call;
    struct loop_timer timer;
    usec_t until;
};

static void call_free(void *ctx)
{
    struct leader_proxy_call *call = ctx;
    list_del(&call->link);
    call->proxy->call_n--;
    if (call->api_call != NULL) {
        api_cancel(call->proxy->config.api, call->api_call);
    }
    if (call->outbound_call != NULL) {
        outbound_cancel(call->proxy->config.outbound, call->outbound_call);
    }
    loop_timer_done(&call->timer);
    arena_wipe(&call->memory);
    alloc_free(call);
}

PRINTF_LIKE(3, 4)
static void call_fail(struct leader_proxy_call *call, int status, const char *fmt, ...)
{
    char text[sizeof(((struct err *)NULL)->msg)];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* a message that is cut off is still of use */
    va_end(args);
    call->proxy->holder = STR_NONE; /* the remembered address may be the cause */
    http_reply_error(call->x, status, str_from(text));
    call_free(call);
}

static void call_on_timer(void *ctx)
{
    struct leader_proxy_call *call = ctx;
    if (call->name.n == 0) {
        call_fail(call, 503, "the API server did not say within a second who leads");
    } else {
        call_fail(call, 502, "the leader '" STR_FMT "' did not answer within a second",
                  STR_ARG(call->name));
    }
}

/* ---- the leader itself ---- */

static void call_on_answer(void *ctx, const struct outbound_reply *reply)
{
    struct leader_proxy_call *call = ctx;
    call->outbound_call = NULL;
    if (reply->status == 0) {
        call_fail(call, 502, "the leader '" STR_FMT "' cannot be reached: %s", STR_ARG(call->name),
                  reply->err->msg);
        return;
    }
    if (reply->status == 200 && call->format != QUERY_FORMAT_JSON) {
        http_reply_text(call->x, reply->status, reply->body);
    } else {
        http_reply_json(call->x, reply->status, reply->body);
    }
    call_free(call);
}

static void call_send(struct leader_proxy_call *call, struct str address)
{
    struct leader_proxy *r = call->proxy;
    bool six = str_find_char(address, ':') != SIZE_MAX;
    struct str url = arena_printf(
        &call->memory, "%s://%s" STR_FMT "%s:%u" STR_FMT, r->config.tls ? "https" : "http",
        six ? "[" : "", STR_ARG(address), six ? "]" : "", r->config.port, STR_ARG(call->target));
    const struct outbound_header headers[] = {
        { STR_INIT(LEADER_PROXY_HEADER), STR_INIT("1") },
        { STR_INIT("Authorization"), call->authorization },
    };
    call->outbound_call =
        outbound_http(r->config.outbound,
                      &(struct outbound_request){
                          .method = STR("GET"),
                          .url = url,
                          .headers = headers,
                          .header_n = call->authorization.n > 0 ? 2 : 1,
                          .timeout = MAX(call->until - loop_now(r->loop), MSECONDS(1)),
                          .reply_max = LEADER_PROXY_REPLY_MAX,
                      },
                      call_on_answer, call);
}

static void call_set_address(struct leader_proxy_call *call, struct str address)
{
    struct leader_proxy *r = call->proxy;
    arena_reset(&r->found);
    r->holder = arena_str(&r->found, call->holder);
    r->address = arena_str(&r->found, address);
    call_send(call, r->address);
}

/* ---- where it is ---- */

static void call_get(struct leader_proxy_call *call, struct str path, api_on_reply on_reply)
{
    struct leader_proxy *r = call->proxy;
    call->api_call = api_send(
        r->config.api,
        &(struct api_request){ .verb = API_GET,
                               .path = path,
                               .timeout = MAX(call->until - loop_now(r->loop), MSECONDS(1)) },
        on_reply, call);
}

/* The document of a reply, or NULL after the call has failed with what is wrong. */
static const struct jval *call_read(struct leader_proxy_call *call, const struct api_reply *reply,
                                    const char *what)
{
    const struct jval *root = NULL;
    struct err err = { 0 };
    if (reply->status != 200) {
        client_explain(reply->status, reply->body, reply->err, &err);
    } else if (json_parse(reply->body, 0, &call->memory, &root, &err) < 0) {
        root = NULL;
    } /* The body ends with the reply: what is read from it is copied by whoever keeps it. */
    if (root == NULL) {
        call_fail(call, reply->status == 0 ? 503 : 502, "%s '" STR_FMT "': %s", what,
                  STR_ARG(call->name.n > 0 ? call->name : call->proxy->config.lease_name), err.msg);
    }
    return root;
}

static void call_on_node(void *ctx, const struct api_reply *reply)
{
    struct leader_proxy_call *call = ctx;
    call->api_call = NULL;
    if (reply->status == 404) {
        call_fail(call, 502,
                  "the leader is '" STR_FMT "', and neither a pod nor a node has that "
                  "name",
                  STR_ARG(call->name));
        return;
    }
    const struct jval *node = call_read(call, reply, "the leader's node");
    if (node == NULL) {
        return;
    }
    JVAL_EACH (jval_at(node, "status.addresses"), address) {
        if (str_eq(jval_str(jval_get(address, STR("type"))), STR("InternalIP"))) {
            call_set_address(call, jval_str(jval_get(address, STR("address"))));
            return;
        }
    }
    call_fail(call, 502, "the leader's node '" STR_FMT "' has no address", STR_ARG(call->name));
}

static void call_on_pod(void *ctx, const struct api_reply *reply)
{
    struct leader_proxy_call *call = ctx;
    call->api_call = NULL;
    if (reply->status == 404) {
        CLEANUP(buf_done)
        struct buf path = { 0 };
        buf_add(&path, STR("/api/v1/nodes/"));
        client_add_segment(&path, call->name);
        call_get(call, buf_str(&path), call_on_node);
        return;
    }
    const struct jval *pod = call_read(call, reply, "the leader's pod");
    if (pod == NULL) {
        return;
    }
    struct str address = jval_str(jval_at(pod, "status.podIP"));
    if (address.n == 0) {
        call_fail(call, 502, "the leader's pod '" STR_FMT "' has no address yet",
                  STR_ARG(call->name));
        return;
    }
    call_set_address(call, address);
}

static void call_on_lease(void *ctx, const struct api_reply *reply)
{
    struct leader_proxy_call *call = ctx;
    struct leader_proxy *r = call->proxy;
    call->api_call = NULL;
    if (reply->status == 404) {
        call_fail(call, 503, LEADER_PROXY_NO_LEADER);
        return;
    }
    const struct jval *lease = call_read(call, reply, "the lease");
    if (lease == NULL) {
        return;
    }
    struct str holder = jval_str(jval_at(lease, "spec.holderIdentity"));
    struct str rest;
    if (holder.n == 0) {
        call_fail(call, 503, LEADER_PROXY_NO_LEADER);
        return;
    }
    call->holder = arena_str(&call->memory, holder);
    (void)str_cut(call->holder, STR("_"), &call->name, &rest);
    if (r->holder.n > 0 && str_eq(r->holder, call->holder)) {
        call_send(call, r->address);
        return;
    }
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/api/v1/namespaces/"));
    client_add_segment(&path, r->config.lease_namespace);
    buf_add(&path, STR("/pods/"));
    client_add_segment(&path, call->name);
    call_get(call, buf_str(&path), call_on_pod);
}

/* What says who asks, as the leader is told; empty = nothing does. */
static struct str leader_proxy_token(const struct inbound_exchange *x,
                                     const struct inbound_request *req, struct arena *out)
{
    struct str authorization = req->header(x, "Authorization");
    struct str token = req->header(x, REQUEST_AUTH_TOKEN_HEADER);
    if (authorization.n == 0 && token.n > 0) {
        return arena_concat(out, STR("Bearer "), token);
    }
    return authorization;
}

void leader_proxy_start(struct leader_proxy *r, struct inbound_exchange *x,
                        const struct inbound_request *req, enum query_format format)
{
    if (req->header(x, LEADER_PROXY_HEADER).n > 0) {
        /* The replica that passed it on believes that this one leads, which is no longer so. */
        http_reply_error(x, 503, STR(LEADER_PROXY_NO_LEADER));
        return;
    }
    if (r->call_n >= LEADER_PROXY_CALLS_MAX) {
        http_reply_error(x, 503, STR("too many requests wait for the leader"));
        return;
    }
    CLEANUP(arena_wipe)
    struct arena tmp = { 0 };
    struct str authorization = r->config.auth ? leader_proxy_token(x, req, &tmp) : STR_NONE;
    if (r->config.auth && authorization.n == 0) {
        http_reply_error(x, 503,
                         STR("this replica does not lead, and only a token can be passed on to the "
                             "leader, not a certificate"));
        return;
    }
    struct leader_proxy_call *call = ALLOC_NEW(struct leader_proxy_call);
    call->proxy = r;
    call->authorization = arena_str(&call->memory, authorization);
    call->x = x;
    call->format = format;
    call->until = loop_now(r->loop) + LEADER_PROXY_TIMEOUT;
    call->target = arena_printf(&call->memory, STR_FMT "%s" STR_FMT, STR_ARG(req->path),
                                req->query.n > 0 ? "?" : "", STR_ARG(req->query));
    list_add(&r->calls, &call->link);
    r->call_n++;
    x->on_close = call_free;
    x->on_close_ctx = call;
    loop_timer_init(&call->timer, r->loop, call_on_timer, call);
    loop_timer_set(&call->timer, call->until);
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/apis/coordination.k8s.io/v1/namespaces/"));
    client_add_segment(&path, r->config.lease_namespace);
    buf_add(&path, STR("/leases/"));
    client_add_segment(&path, r->config.lease_name);
    call_get(call, buf_str(&path), call_on_lease);
}

struct leader_proxy *leader_proxy_new(struct loop *loop, const struct leader_proxy_config *config)
{
    struct leader_proxy *r = ALLOC_NEW(struct leader_proxy);
    r->loop = loop;
    r->config = *config;
    r->config.lease_namespace = arena_str(&r->memory, config->lease_namespace);
    r->config.lease_name = arena_str(&r->memory, config->lease_name);
    list_init(&r->calls);
    return r;
}

void leader_proxy_free(struct leader_proxy *r)
{
    if (r == NULL) {
        return;
    }
    LIST_EACH (&r->calls, item) {
        struct leader_proxy_call *call = CONTAINER_OF(item, struct leader_proxy_call, link);
        call->x->on_close = NULL;
        call_free(call);
    }
    arena_done(&r->found);
    arena_done(&r->memory);
    alloc_free(r);
}
