#include "tests/swarm/bridge_process.h"

#include "base/alloc.h"

/* A connection that was dialled. */
struct pilot_line {
    struct list link; /* in the pilot's lines */
    struct api_tap tap;
    uint32_t cluster;
};

void pilot_init(struct pilot *p)
{
    p->start_at = USEC_NEVER;
    p->thaw_at = USEC_NEVER;
    p->join_at = USEC_NEVER;
    p->late_at = USEC_NEVER;
    for (uint32_t i = 0; i < TREATY_CLUSTERS_MAX; i++) {
        p->far_join_at[i] = USEC_NEVER;
    }
    list_init(&p->lines);
    sim_clusters_init(&p->book);
}

static void pilot_on_send(void *ctx, const struct api_request *request)
{
    struct pilot *p = ctx;
    treaty_on_send(p->treaty, str_from(p->identity), request, virtual_loop_now(p->vloop));
}

/* ── the dialer ────────────────────────────────────────────────────────────────────────────── */

void pilot_add_far(struct pilot *p, uint32_t cluster, struct apiserver *server)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    (void)sim_clusters_add(&p->book, arena_printf(&tmp, PILOT_ADDRESS, cluster), server,
                           &p->far_faults[cluster]); /* it is found by its address */
}

/* Which cluster a door leads to; TREATY_CLUSTERS_MAX: none. */
static uint32_t pilot_cluster(struct str kubeconfig)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    for (uint32_t i = 0; i < TREATY_CLUSTERS_MAX; i++) {
        if (str_contains(kubeconfig, arena_printf(&tmp, PILOT_ADDRESS "\"", i))) {
            return i;
        }
    }
    return TREATY_CLUSTERS_MAX;
}

static struct api *pilot_dial(struct dialer *d, const struct dialer_spec *spec, struct err *err)
{
    struct pilot *p = CONTAINER_OF(d, struct pilot, dialer);
    uint32_t cluster = pilot_cluster(spec->kubeconfig);
    struct api *upstream = dialer_open(p->phone, spec, err);
    if (upstream == NULL) {
        return NULL;
    }
    sim_api_set_user_agent(upstream, str_from(p->identity));
    struct pilot_line *line = ALLOC_NEW(struct pilot_line);
    api_tap_init(&line->tap, upstream, pilot_on_send, p);
    line->tap.first = &p->tap;
    line->tap.cluster = cluster;
    line->cluster = cluster;
    list_add(&p->lines, &line->link);
    return &line->tap.api;
}

static void pilot_hang_up(struct dialer *d, struct api *api)
{
    struct pilot *p = CONTAINER_OF(d, struct pilot, dialer);
    struct pilot_line *line = CONTAINER_OF(api, struct pilot_line, tap.api);
    list_del(&line->link);
    dialer_hang_up(p->phone, line->tap.upstream);
    api_tap_done(&line->tap);
    alloc_free(line);
}

uint32_t pilot_lines(const struct pilot *p, uint32_t cluster)
{
    uint32_t n = 0;
    LIST_EACH (&p->lines, link) {
        n += CONTAINER_OF(link, struct pilot_line, link)->cluster == cluster ? 1 : 0;
    }
    return n;
}

void pilot_cut_far(struct pilot *p, uint32_t cluster)
{
    LIST_EACH (&p->lines, link) {
        struct pilot_line *line = CONTAINER_OF(link, struct pilot_line, link);
        if (line->cluster == cluster) {
            sim_api_disconnect(line->tap.upstream);
        }
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void pilot_on_stopped(void *ctx)
{
    struct pilot *p = ctx;
    p->stopped = true;
}

void pilot_start(struct pilot *p)
{
    static const struct dialer_ops ops = { .dial = pilot_dial, .hang_up = pilot_hang_up };
    ASSERT(!pilot_runs(p));
    p->incarnation++;
    p->stopped = false;
    p->start_at = USEC_NEVER;
    p->dialer.ops = &ops;
    p->phone = sim_dialer_new(p->view, &p->book);
    (void)snprintf(p->identity, sizeof(p->identity), "drydock-%u_%u", p->index, p->incarnation);
    treaty_on_start(p->treaty, p->index, p->incarnation, virtual_loop_now(p->vloop));
    p->upstream = sim_api_new(p->view, p->home, &p->home_faults);
    sim_api_set_user_agent(p->upstream, str_from(p->identity));
    api_tap_init(&p->tap, p->upstream, pilot_on_send, p);
    p->tap.cluster = TREATY_HOME;
    struct bridge_config config = *p->base;
    config.identity = str_from(p->identity);
    config.elect = p->elect;
    config.dialer = &p->dialer;
    config.mutations = p->mutations;
    config.on_stopped = pilot_on_stopped;
    config.ctx = p;
    p->bridge = bridge_new(p->view, &p->tap.api, NULL, NULL, &config);
}

void pilot_crash(struct pilot *p)
{
    bridge_free(STEAL(p->bridge));
    ASSERT(list_empty(&p->lines)); /* it has given all of them back */
    sim_dialer_free(STEAL(p->phone));
    sim_api_free(STEAL(p->upstream));
}

void pilot_done(struct pilot *p)
{
    if (pilot_runs(p)) {
        pilot_crash(p);
    }
    api_tap_done(&p->tap);
    sim_clusters_done(&p->book);
    virtual_loop_view_free(p->view);
    faults_done(&p->home_faults);
    for (uint32_t i = 0; i < TREATY_CLUSTERS_MAX; i++) {
        faults_done(&p->far_faults[i]);
    }
}

bool pilot_runs(const struct pilot *p)
{
    return p->bridge != NULL;
}

bool pilot_frozen(const struct pilot *p)
{
    return p->thaw_at != USEC_NEVER;
}

void pilot_bury(struct pilot *p)
{
    if (!pilot_runs(p)) {
        return;
    }
    if (p->tap.crashed) {
        if (p->tap.crash == API_TAP_CRASH_WRITE_LATE) {
            p->late_at = virtual_loop_now(p->vloop) + p->late_span;
            memcpy(p->late_agent, p->identity, sizeof(p->late_agent));
        }
        pilot_crash(p);
        p->start_at = virtual_loop_now(p->vloop) + SECONDS(5);
    } else if (p->stopped) {
        pilot_crash(p); /* nothing is left to crash */
        p->start_at = virtual_loop_now(p->vloop) + SECONDS(20);
    }
}
