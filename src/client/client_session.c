/* Opens the loop and the cluster of a kubeconfig for a blocking client. */
#include "client/client_session.h"

#include "host/kubeconfig.h"
#include "host/loop.h"
#include "host/transport.h"

static void client_session_run_loop(void *ctx, usec_t until)
{
    struct client_session *r = ctx;
    host_loop_turn(r->loop, MAX(until - loop_now(r->loop), (usec_t)0));
}

static bool client_session_leaving(void *ctx)
{
    struct client_session *r = ctx;
    return r->leaving != NULL && r->leaving(r->ctx);
}

int client_session_init(struct client_session *r, struct str kubeconfig, struct str context,
                        struct err *err)
{
    *r = (struct client_session){ .loop = host_loop_new() };
    const struct kubeconfig_source source = {
        .path = arena_str(&r->memory, kubeconfig),
        .context = arena_str(&r->memory, context),
    };
    int k = kubeconfig_load(&source, &r->memory, &r->access, err);
    if (k < 0) {
        return k;
    }
    r->api = transport_new(r->loop, &r->access, err);
    if (r->api == NULL) {
        return err_wrap(err, "the cluster");
    }
    r->blocking_api = (struct blocking_api){
        .loop = r->loop,
        .api = r->api,
        .turn = client_session_run_loop,
        .leaving = client_session_leaving,
        .ctx = r,
    };
    return 0;
}

void client_session_done(struct client_session *r)
{
    transport_free(r->api);
    host_loop_free(r->loop);
    arena_done(&r->memory);
    *r = (struct client_session){ 0 };
}
