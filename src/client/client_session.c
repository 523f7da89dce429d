#include "client/client_session.h"

#include "host/kubeconfig.h"
#include "host/loop.h"
#include "host/transport.h"

static void reach_turn(void *ctx, usec_t until)
{
    struct reach *r = ctx;
    host_loop_turn(r->loop, MAX(until - loop_now(r->loop), (usec_t)0));
}

static bool reach_leaving(void *ctx)
{
    struct reach *r = ctx;
    return r->leaving != NULL && r->leaving(r->ctx);
}

int reach_init(struct reach *r, struct str kubeconfig, struct str context, struct err *err)
{
    *r = (struct reach){ .loop = host_loop_new() };
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
    r->talk = (struct talk){
        .loop = r->loop,
        .api = r->api,
        .turn = reach_turn,
        .leaving = reach_leaving,
        .ctx = r,
    };
    return 0;
}

void reach_done(struct reach *r)
{
    transport_free(r->api);
    host_loop_free(r->loop);
    arena_done(&r->memory);
    *r = (struct reach){ 0 };
}
