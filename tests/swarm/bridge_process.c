#include "tests/swarm/bridge_process.h"

#include "base/alloc.h"

/* A connection that was dialled. */
struct bridge_process_conn {
    struct list link; /* in the bridge process's lines */
    struct api_tap tap;
    uint32_t cluster;
};

void bridge_process_init(struct bridge_process *p)
{
    p->start_at = USEC_NEVER;
    p->unfreeze_at = USEC_NEVER;
    p->reconnect_at = USEC_NEVER;
    p->late_at = USEC_NEVER;
    for (uint32_t i = 0; i < CHECK_BRIDGE_CLUSTERS_MAX; i++) {
        p->workload_reconnect_at[i] = USEC_NEVER;
    }
    list_init(&p->conns);
    sim_clusters_init(&p->addresses);
}

static void bridge_process_on_send(void *ctx, const struct api_request *request)
{
    struct bridge_process *p = ctx;
    check_bridge_on_send(p->check, str_from(p->identity), request, virtual_loop_now(p->vloop));
}

/* ── the dialer ────────────────────────────────────────────────────────────────────────────── */

void bridge_process_add_workload(struct bridge_process *p, uint32_t cluster,
                                 struct apiserver *server)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    (void)sim_clusters_add(&p->addresses, arena_printf(&tmp, BRIDGE_PROCESS_SERVER_URL, cluster),
                           server, &p->workload_faults[cluster]); /* it is found by its address */
}

/* Which cluster a door leads to; CHECK_BRIDGE_CLUSTERS_MAX: none. */
static uint32_t bridge_process_cluster(struct str kubeconfig)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    for (uint32_t i = 0; i < CHECK_BRIDGE_CLUSTERS_MAX; i++) {
        if (str_contains(kubeconfig, arena_printf(&tmp, BRIDGE_PROCESS_SERVER_URL "\"", i))) {
            return i;
        }
    }
    return CHECK_BRIDGE_CLUSTERS_MAX;
}

static struct api *bridge_process_dial(struct dialer *d, const struct dialer_spec *spec,
                                       struct err *err)
{
    struct bridge_process *p = CONTAINER_OF(d, struct bridge_process, dialer);
    uint32_t cluster = bridge_process_cluster(spec->kubeconfig);
    struct api *upstream = dialer_open(p->inner_dialer, spec, err);
    if (upstream == NULL) {
        return NULL;
    }
    sim_api_set_user_agent(upstream, str_from(p->identity));
    struct bridge_process_conn *conn = ALLOC_NEW(struct bridge_process_conn);
    api_tap_init(&conn->tap, upstream, bridge_process_on_send, p);
    conn->tap.first = &p->tap;
    conn->tap.cluster = cluster;
    conn->cluster = cluster;
    list_add(&p->conns, &conn->link);
    return &conn->tap.api;
}

static void bridge_process_hang_up(struct dialer *d, struct api *api)
{
    struct bridge_process *p = CONTAINER_OF(d, struct bridge_process, dialer);
    struct bridge_process_conn *conn = CONTAINER_OF(api, struct bridge_process_conn, tap.api);
    list_del(&conn->link);
    dialer_hang_up(p->inner_dialer, conn->tap.upstream);
    api_tap_done(&conn->tap);
    alloc_free(conn);
}

uint32_t bridge_process_conn_count(const struct bridge_process *p, uint32_t cluster)
{
    uint32_t n = 0;
    LIST_EACH (&p->conns, link) {
        n += CONTAINER_OF(link, struct bridge_process_conn, link)->cluster == cluster ? 1 : 0;
    }
    return n;
}

void bridge_process_disconnect(struct bridge_process *p, uint32_t cluster)
{
    LIST_EACH (&p->conns, link) {
        struct bridge_process_conn *conn = CONTAINER_OF(link, struct bridge_process_conn, link);
        if (conn->cluster == cluster) {
            sim_api_disconnect(conn->tap.upstream);
        }
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void bridge_process_on_stopped(void *ctx)
{
    struct bridge_process *p = ctx;
    p->stopped = true;
}

void bridge_process_start(struct bridge_process *p)
{
    static const struct dialer_ops ops = { .dial = bridge_process_dial,
                                           .hang_up = bridge_process_hang_up };
    ASSERT(!bridge_process_runs(p));
    p->incarnation++;
    p->stopped = false;
    p->start_at = USEC_NEVER;
    p->dialer.ops = &ops;
    p->inner_dialer = sim_dialer_new(p->view, &p->addresses);
    (void)snprintf(p->identity, sizeof(p->identity), "drydock-%u_%u", p->index, p->incarnation);
    check_bridge_on_start(p->check, p->index, p->incarnation, virtual_loop_now(p->vloop));
    p->upstream = sim_api_new(p->view, p->management, &p->management_faults);
    sim_api_set_user_agent(p->upstream, str_from(p->identity));
    api_tap_init(&p->tap, p->upstream, bridge_process_on_send, p);
    p->tap.cluster = MANAGEMENT_CLUSTER;
    struct bridge_config config = *p->base;
    config.identity = str_from(p->identity);
    config.elect = p->elect;
    config.dialer = &p->dialer;
    config.mutations = p->mutations;
    config.on_stopped = bridge_process_on_stopped;
    config.ctx = p;
    p->bridge = bridge_new(p->view, &p->tap.api, NULL, NULL, &config);
}

void bridge_process_crash(struct bridge_process *p)
{
    bridge_free(STEAL(p->bridge));
    ASSERT(list_empty(&p->conns)); /* it has given all of them back */
    sim_dialer_free(STEAL(p->inner_dialer));
    sim_api_free(STEAL(p->upstream));
}

void bridge_process_done(struct bridge_process *p)
{
    if (bridge_process_runs(p)) {
        bridge_process_crash(p);
    }
    api_tap_done(&p->tap);
    sim_clusters_done(&p->addresses);
    virtual_loop_view_free(p->view);
    faults_done(&p->management_faults);
    for (uint32_t i = 0; i < CHECK_BRIDGE_CLUSTERS_MAX; i++) {
        faults_done(&p->workload_faults[i]);
    }
}

bool bridge_process_runs(const struct bridge_process *p)
{
    return p->bridge != NULL;
}

bool bridge_process_frozen(const struct bridge_process *p)
{
    return p->unfreeze_at != USEC_NEVER;
}

void bridge_process_reap(struct bridge_process *p)
{
    if (!bridge_process_runs(p)) {
        return;
    }
    if (p->tap.crashed) {
        if (p->tap.crash == API_TAP_CRASH_WRITE_LATE) {
            p->late_at = virtual_loop_now(p->vloop) + p->late_duration;
            memcpy(p->late_agent, p->identity, sizeof(p->late_agent));
        }
        bridge_process_crash(p);
        p->start_at = virtual_loop_now(p->vloop) + SECONDS(5);
    } else if (p->stopped) {
        bridge_process_crash(p); /* nothing is left to crash */
        p->start_at = virtual_loop_now(p->vloop) + SECONDS(20);
    }
}
