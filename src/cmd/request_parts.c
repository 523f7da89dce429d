#include "cmd/request_parts.h"

#define API_GROUP_PATH STR("/apis/repairman.k8s.io/v1")
#define CRDS_PATH STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
#define CRD_QUERY STR("&fieldSelector=metadata.name%3Dmaintenancerequests.repairman.k8s.io")
#define DISCOVERY_RETRY SECONDS(5)
#define DENIED_RETRY MINUTES(5) /* where CRDs may not be watched, they are asked for */

const struct str request_parts_annotations[REQUEST_PARTS_ANNOTATIONS] = {
    STR_INIT("repairman.k8s.io/cordoned-by"),
    STR_INIT("drydock.dev/drain-rules"),
    STR_INIT("drydock.dev/deletion-request"),
    STR_INIT("drydock.dev/maintenance-request"),
};

static void request_parts_discover(void *ctx);

static bool request_parts_may_act(void *ctx)
{
    const struct request_parts *p = ctx;
    return controller_may_act_now(p->config.controller);
}

static usec_t request_parts_wall(void *ctx)
{
    const struct request_parts *p = ctx;
    return server_clock_wall(&controller_client(p->config.controller)->clock);
}

static bool request_parts_node_has_mark(void *ctx, struct str uid)
{
    const struct request_parts *p = ctx;
    return p->requests == NULL || requests_node_has_mark(p->requests, uid);
}

static void request_parts_on_capacity(void *ctx)
{
    const struct request_parts *p = ctx;
    controller_on_capacity(p->config.controller);
}

static void request_parts_on_turn(void *ctx)
{
    const struct request_parts *p = ctx;
    if (p->requests != NULL) {
        requests_on_arbiter_turn(p->requests);
    }
}

static void request_parts_start(struct request_parts *p)
{
    struct controller *c = p->config.controller;
    struct arbiter_config limits = p->config.limits;
    ASSERT(p->arbiter == NULL);
    limits.client = controller_client(c);
    limits.recorder = controller_recorder(c);
    limits.log = p->config.log;
    limits.metrics = p->config.metrics;
    limits.nodes = controller_nodes(c);
    limits.namespace = p->config.namespace;
    limits.may_act = request_parts_may_act;
    limits.wall = request_parts_wall;
    limits.has_mark = request_parts_node_has_mark;
    limits.on_capacity = request_parts_on_capacity;
    limits.on_turn = request_parts_on_turn;
    limits.ctx = p;
    limits.mutations = p->config.mutations;
    p->arbiter = arbiter_new(&limits);
    p->requests = requests_new(&(struct requests_config){
        .client = limits.client,
        .recorder = limits.recorder,
        .log = limits.log,
        .metrics = limits.metrics,
        .arbiter = p->arbiter,
        .drains = controller_drains(c),
        .nodes = limits.nodes,
        .may_act = request_parts_may_act,
        .wall = request_parts_wall,
        .ctx = p,
        .finished_ttl = p->config.finished_ttl,
        .skew_tolerance = p->config.skew_tolerance,
        .trust_approval = p->config.trust_approval,
        .mutations = p->config.mutations,
    });
    controller_set_arbiter(c, p->arbiter);
    log_info(p->config.log, "MaintenanceRequests and MaintenanceLimits are served");
    arbiter_wake(p->arbiter);
    requests_wake(p->requests);
}

/* ── waiting for the CRDs ──────────────────────────────────────────────────────────────────── */

static void request_parts_stop_watching(struct request_parts *p)
{
    if (p->watching) {
        p->watching = false;
        reflector_done(&p->crd);
    }
}

static void request_parts_on_list(void *ctx UNUSED)
{
}

static int request_parts_on_crd(void *ctx, const struct jval *object, bool deleted,
                                struct err *err UNUSED)
{
    struct request_parts *p = ctx;
    const struct jval *conditions = jval_at(object, "status.conditions");
    JVAL_EACH (conditions, condition) {
        if (!deleted && str_eq(jval_str(jval_get(condition, STR("type"))), STR("Established")) &&
            str_eq(jval_str(jval_get(condition, STR("status"))), STR("True"))) {
            /* Not from inside the watch's own callback. */
            loop_timer_set(&p->retry, loop_now(p->config.loop));
        }
    }
    return 0;
}

static bool request_parts_on_synced(void *ctx UNUSED, uint64_t version UNUSED)
{
    return true;
}

static void request_parts_on_watch_error(void *ctx, const struct err *err, bool bad UNUSED)
{
    struct request_parts *p = ctx;
    if (err->code == ERR_DENIED) {
        loop_timer_set(&p->retry, loop_now(p->config.loop) + DENIED_RETRY);
    }
}

static void request_parts_watch(struct request_parts *p)
{
    p->watching = true;
    reflector_init(&p->crd, controller_client(p->config.controller),
                   &(struct reflector_config){
                       .path = CRDS_PATH,
                       .query = CRD_QUERY,
                       .on_list = request_parts_on_list,
                       .on_object = request_parts_on_crd,
                       .on_synced = request_parts_on_synced,
                       .on_error = request_parts_on_watch_error,
                       .ctx = p,
                   });
    reflector_start(&p->crd);
}

static void request_parts_on_discovery(void *ctx, const struct api_reply *reply)
{
    struct request_parts *p = ctx;
    p->call = NULL;
    switch (client_note(controller_client(p->config.controller), API_GET, reply)) {
    case RETRY_DONE:
        request_parts_start(p);
        return;
    case RETRY_ABSENT:
        controller_set_arbiter(p->config.controller, NULL);
        request_parts_watch(p);
        return;
    case RETRY_REFUSED:
        controller_set_arbiter(p->config.controller, NULL);
        loop_timer_set(&p->retry, loop_now(p->config.loop) + DENIED_RETRY);
        return;
    default:
        loop_timer_set(&p->retry, loop_now(p->config.loop) + DISCOVERY_RETRY);
    }
}

static void request_parts_discover(void *ctx)
{
    struct request_parts *p = ctx;
    const struct api_request request = { .verb = API_GET, .path = API_GROUP_PATH };
    request_parts_stop_watching(p);
    if (p->arbiter == NULL && p->call == NULL) {
        p->call = api_send(controller_client(p->config.controller)->api, &request,
                           request_parts_on_discovery, p);
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

void request_parts_init(struct request_parts *p, const struct request_parts_config *config)
{
    *p = (struct request_parts){ .config = *config };
    loop_timer_init(&p->retry, config->loop, request_parts_discover, p);
    loop_timer_set(&p->retry, loop_now(config->loop));
}

void request_parts_done(struct request_parts *p)
{
    if (p->config.controller == NULL) {
        return;
    }
    request_parts_stop_watching(p);
    if (p->call != NULL) {
        api_cancel(controller_client(p->config.controller)->api, STEAL(p->call));
    }
    loop_timer_done(&p->retry);
    requests_free(STEAL(p->requests));
    controller_set_arbiter(p->config.controller, NULL);
    arbiter_free(STEAL(p->arbiter));
}

void request_parts_on_node(struct request_parts *p, const struct store_item *item,
                           const void *before, bool gone)
{
    if (p->arbiter != NULL) {
        arbiter_on_node(p->arbiter, item, before, gone);
        requests_on_node(p->requests, item, before, gone);
    }
}

void request_parts_on_acting(struct request_parts *p)
{
    if (p->arbiter != NULL) {
        arbiter_wake(p->arbiter);
        requests_wake(p->requests);
    }
}
