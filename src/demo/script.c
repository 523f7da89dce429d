#include "demo/script.h"

#include "base/timestamp.h"
#include "demo/examples.h"
#include "format/json.h"
#include "profile/controller.h"
#include "profile/node_report.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/world/world.h"

#define SCRIPT_TICK MSECONDS(100)
#define SCRIPT_STUCK_TIME SECONDS(20) /* how long a drain stays blocked before help comes */
#define SCRIPT_KILL_AFTER 5u          /* nodes serviced */
#define PROFILE_LABEL "cloud.sap/maintenance-profile"

struct script_step {
    void (*begin)(struct script *s);
    bool (*reached)(struct script *s);
    void (*report)(struct script *s, struct buf *out);
    usec_t limit; /* not reached by then: the script has failed */
    usec_t pause; /* after it, so that a reader can follow */
};

/* ── reading the world ─────────────────────────────────────────────────────────────────────── */

usec_t script_start_time(usec_t wall)
{
    struct civil day = civil_from_sec(wall / SECONDS(1));
    day.hour = SCRIPT_WINDOW_HOUR;
    day.minute = 0;
    day.second = 0;
    return SECONDS(civil_to_sec(&day)) - SCRIPT_LEAD_TIME;
}

usec_t script_elapsed(const struct script *s)
{
    return (s->over ? s->ended : loop_now(s->time)) - s->began;
}

uint64_t script_refused(const struct script *s)
{
    uint64_t sum = s->refused_by_killed;
    for (uint32_t i = 0; i < SCRIPT_REPLICAS; i++) {
        if (s->replicas[i].controller != NULL) {
            struct controller_stats stats;
            controller_stats(s->replicas[i].controller, &stats);
            sum += stats.refused;
        }
    }
    return sum;
}

static struct str script_example_file(const char *name)
{
    for (size_t i = 0; i < examples_count; i++) {
        if (strcmp(examples[i].name, name) == 0) {
            return (struct str){ .p = (const char *)examples[i].bytes, .n = examples[i].n };
        }
    }
    return STR_NONE;
}

static void script_report(struct script *s, struct str text)
{
    s->on_milestone(s->ctx, loop_wall(s->time), text);
}

static void script_end(struct script *s, bool failed)
{
    if (!s->over) {
        s->failed = failed;
        s->ended = loop_now(s->time);
        s->over = true;
    }
}

static void script_fail(struct script *s, const char *what, const struct err *err)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_printf(&text, "%s: %s", what, err->msg);
    script_report(s, buf_str(&text));
    script_end(s, /* failed= */ true);
}

static struct script_replica *script_leader(struct script *s)
{
    for (uint32_t i = 0; i < SCRIPT_REPLICAS; i++) {
        struct script_replica *r = &s->replicas[i];
        if (r->controller != NULL && core_leads(r->core)) {
            return r;
        }
    }
    return NULL;
}

/* The dashboard shows the leader; without one, a replica that runs. */
static void script_follow_leader(struct script *s)
{
    struct script_replica *r = script_leader(s);
    for (uint32_t i = 0; r == NULL && i < SCRIPT_REPLICAS; i++) {
        if (s->replicas[i].controller != NULL) {
            r = &s->replicas[i];
        }
    }
    s->source.controller = r != NULL ? r->controller : NULL;
    s->source.identity = r != NULL ? r->name : STR_NONE;
}

/* Sees every write, so that a peak between two ticks counts as well. */
static void script_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct script *s = ctx;
    if (commit->group.n > 0) {
        return;
    }
    if (str_eq(commit->plural, STR("nodes"))) {
        struct demo_state fleet;
        demo_state_read(s->server, &fleet);
        s->peak = MAX(s->peak, fleet.out);
        s->peak_zone = MAX(s->peak_zone, fleet.out_zone);
        if (s->first_out == 0 && fleet.out > 0) {
            s->first_out = loop_wall(s->time);
        }
    } else if (str_eq(commit->plural, STR("pods")) && commit->old != NULL &&
               str_starts(commit->user_agent, STR("drydock"))) {
        const struct jval *was = jval_at(commit->old, "metadata.deletionTimestamp");
        bool goes =
            commit->now == NULL || jval_at(commit->now, "metadata.deletionTimestamp") != NULL;
        bool went = was == NULL && goes; /* an eviction also writes a condition first */
        s->moved += went ? 1 : 0;
    }
}

/* Finds the drain that waits, and why, as the leader explains it. */
static void script_find_blocked(struct script *s, const struct demo_state *fleet)
{
    struct script_replica *leader = script_leader(s);
    struct script_blocked found = { .since = 0 };
    for (uint32_t i = 0; leader != NULL && i < fleet->n; i++) {
        struct node_report report;
        struct str progress;
        struct str why;
        if (fleet->nodes[i].state != DEMO_NODE_DRAINING ||
            !controller_explain(leader->controller, str_from(fleet->nodes[i].name), &s->tmp,
                                &report) ||
            !str_cut(report.drain, STR("; "), &progress, &why)) {
            continue;
        }
        if (found.node[0] != '\0') {
            found.more++;
            continue;
        }
        (void)snprintf(found.node, sizeof(found.node), "%s", fleet->nodes[i].name); /* it fits */
        (void)snprintf(found.why, sizeof(found.why), STR_FMT,
                       STR_ARG(why)); /* a longer reason says enough with its beginning */
        found.since = loop_wall(s->time);
    }
    if (strcmp(found.node, s->blocked.node) == 0) {
        found.since = s->blocked.since;
    }
    s->blocked = found;
}

/* ── actions ───────────────────────────────────────────────────────────────────────────────── */

static void script_set_label(struct script *s, const char *node, const char *key, const char *value)
{
    struct apiserver_reply reply = { 0 };
    struct err err = { 0 };
    struct apiserver_request request = {
        .method = STR("PATCH"),
        .path = arena_printf(&s->tmp, "/api/v1/nodes/%s", node),
        .content_type = STR("application/merge-patch+json"),
        .user_agent = STR("update-agent"),
        .body = arena_printf(&s->tmp, "{\"metadata\":{\"labels\":{\"%s\":%s}}}", key, value),
    };
    apiserver_handle(s->server, &request, &s->tmp, &reply);
    if (reply.status != 200) {
        (void)err_set(&err, ERR_INVALID, STR_FMT, STR_ARG(reply.body));
        script_fail(s, "the sandbox refused a label", &err);
    }
}

/* The update agents of all nodes: a released node reboots, and one that is back withdraws its
 * request. */
static void script_run_update_agents(struct script *s, const struct demo_state *fleet)
{
    for (uint32_t i = 0; i < fleet->n; i++) {
        const struct demo_node *node = &fleet->nodes[i];
        struct err err = { 0 };
        if (node->needed && node->granted && !s->reboots[i]) {
            s->reboots[i] = true;
            if (world_reboot_node(s->world, str_from(node->name), &err) < 0) {
                script_fail(s, "the sandbox refused a reboot", &err);
            }
        } else if (s->reboots[i] && !node->rebooting && node->ready) {
            s->reboots[i] = false;
            script_set_label(s, node->name, DEMO_UPDATE_IMAGE, "\"2\"");
            script_set_label(s, node->name, DEMO_UPDATE_NEEDED, "null");
        }
    }
}

static void replica_on_leading(void *ctx, bool leading)
{
    struct script_replica *r = ctx;
    struct script *s = r->script;
    if (leading && s->last_leader != r) {
        s->failovers += s->last_leader != NULL ? 1 : 0;
        s->last_leader = r;
    }
}

static void replica_start(struct script *s, struct script_replica *r)
{
    r->api = sim_api_new(s->time, s->server, &s->network);
    r->outbound = sim_outbound_new(s->time, &s->inbox, NULL);
    r->core = core_new(&(struct core_config){
        .loop = s->time,
        .api = r->api,
        .metrics = &s->metrics,
        .identity = r->name,
        .lease_namespace = STR("kube-system"),
        .elect = true,
        .on_leading = replica_on_leading,
        .ctx = r,
    });
    const struct controller_config config = { .outbound = r->outbound, .wait_for_config = true };
    r->controller = controller_new(r->core, &config);
    core_start(r->core);
    if (controller_configure(r->controller, STR("docs/examples/os-update.yaml"),
                             script_example_file("os-update.yaml"), (struct ucfg_env){ 0 }) < 0) {
        struct controller_config_state setup;
        struct err err = { 0 };
        controller_config_state(r->controller, &setup);
        (void)err_set(&err, ERR_INVALID, STR_FMT, STR_ARG(setup.error));
        script_fail(s, "the controller refused its configuration", &err);
    }
}

/* As kill -9: nothing more is sent, the lease is not given back. */
static void replica_kill(struct script *s, struct script_replica *r)
{
    if (r->controller == NULL) {
        return;
    }
    struct controller_stats stats;
    controller_stats(r->controller, &stats);
    s->refused_by_killed += stats.refused;
    if (s->source.controller == r->controller) {
        s->source.controller = NULL;
    }
    controller_free(STEAL(r->controller));
    core_free(STEAL(r->core));
    sim_outbound_free(STEAL(r->outbound));
    sim_api_free(STEAL(r->api));
}

/* ── steps ─────────────────────────────────────────────────────────────────────────────────── */

static void gather_begin(struct script *s)
{
    struct demo_state fleet;
    demo_state_read(s->server, &fleet);
    for (uint32_t i = 0; i < fleet.n; i++) {
        script_set_label(s, fleet.nodes[i].name, PROFILE_LABEL, "\"os-update\"");
    }
}

static bool gather_reached(struct script *s)
{
    struct demo_state fleet;
    demo_state_read(s->server, &fleet);
    struct demo_state_pods pods = demo_state_pods(s->server, STR(""));
    return fleet.n > 0 && fleet.labelled == fleet.n && fleet.ready == fleet.n && pods.all > 0 &&
           pods.ready == pods.all;
}

static void gather_report(struct script *s, struct buf *out)
{
    struct demo_state_pods pods = demo_state_pods(s->server, STR(""));
    buf_printf(out,
               "a shop runs on %u nodes in three zones: %u pods, five budgets; " STR_FMT " leads",
               world_node_count(s->world), pods.all, STR_ARG(s->last_leader->name));
}

static void release_begin(struct script *s)
{
    struct demo_state fleet;
    demo_state_read(s->server, &fleet);
    for (uint32_t i = 0; i < fleet.n; i++) {
        script_set_label(s, fleet.nodes[i].name, DEMO_UPDATE_NEEDED, "\"true\"");
    }
}

static bool release_reached(struct script *s)
{
    struct demo_state fleet;
    demo_state_read(s->server, &fleet);
    return fleet.states[DEMO_NODE_REQUIRED] == fleet.n && s->inbox.arrived >= fleet.n;
}

static void release_report(struct script *s, struct buf *out)
{
    buf_printf(out,
               "an OS update is out: all %u nodes ask for maintenance, and %llu mails ask for "
               "approval",
               world_node_count(s->world), (unsigned long long)s->inbox.arrived);
}

/* Approves nodes that wait in zones whose letter is in `zones`, except the lost node. */
static void script_approve(struct script *s, struct str zones)
{
    struct demo_state fleet;
    demo_state_read(s->server, &fleet);
    s->counted = 0;
    for (uint32_t i = 0; i < fleet.n; i++) {
        const struct demo_node *node = &fleet.nodes[i];
        struct str zone = str_from(node->zone);
        bool meant = zone.n > 0 && str_find_char(zones, zone.p[zone.n - 1]) != SIZE_MAX;
        if (meant && node->needed && !node->approved && strcmp(node->name, s->lost) != 0) {
            script_set_label(s, node->name, DEMO_UPDATE_APPROVED, "\"true\"");
            s->counted++;
        }
    }
}

static void approve_begin(struct script *s)
{
    script_approve(s, STR("ab"));
}

static bool approve_reached(struct script *s)
{
    return s->counted > 0;
}

static void approve_report(struct script *s, struct buf *out)
{
    buf_printf(out,
               "zones a and b are approved: %u nodes wait for the window, which opens at 22:00",
               s->counted);
}

static void window_begin(struct script *s)
{
    (void)s; /* the window opens by the clock */
}

static bool window_reached(struct script *s)
{
    struct demo_state fleet;
    demo_state_read(s->server, &fleet);
    s->counted = fleet.out;
    return fleet.out >= 2 * SCRIPT_ZONE_LIMIT;
}

static void window_report(struct script *s, struct buf *out)
{
    struct civil at = civil_from_sec(s->first_out / SECONDS(1));
    buf_printf(
        out, "the window opens, and the first node goes at %02d:%02d:%02d; %u drain now, %u a zone",
        at.hour, at.minute, at.second, s->counted, SCRIPT_ZONE_LIMIT);
}

struct script_pod_search {
    struct script *script;
    const struct demo_state *fleet;
};

/* Picks a node that runs payments and waits for its update; preferably one not approved yet. */
static void lose_visit_pod(void *ctx, const struct jval *pod)
{
    struct script_pod_search *search = ctx;
    struct script *s = search->script;
    struct str app = jval_str(jval_get(jval_at(pod, "metadata.labels"), STR("app")));
    struct str name = jval_str(jval_at(pod, "spec.nodeName"));
    const struct demo_node *node = demo_state_find(search->fleet, name);
    if (!str_eq(app, STR("payments")) || node == NULL || node->state != DEMO_NODE_REQUIRED) {
        return;
    }
    if (s->lost[0] == '\0' || !node->approved) {
        (void)snprintf(s->lost, sizeof(s->lost), "%s", node->name); /* it fits */
    }
}

static void lose_begin(struct script *s)
{
    struct demo_state fleet;
    struct err err = { 0 };
    demo_state_read(s->server, &fleet);
    struct script_pod_search search = { .script = s, .fleet = &fleet };
    apiserver_each(s->server, STR(""), STR("pods"), STR("shop"), lose_visit_pod, &search);
    const struct demo_node *node = demo_state_find(&fleet, str_from(s->lost));
    if (node == NULL) {
        (void)err_set(&err, ERR_NOTFOUND, "all have been serviced already");
        script_fail(s, "no node of payments is left to lose", &err);
        return;
    }
    if (node->approved) {
        script_set_label(s, s->lost, DEMO_UPDATE_APPROVED, "null");
    }
    if (world_fail_node(s->world, str_from(s->lost), &err) < 0) {
        script_fail(s, "the sandbox refused", &err);
    }
}

/* A drain exhausts that budget too, for moments, so the node must also be known as not ready. */
static bool lose_reached(struct script *s)
{
    struct demo_state fleet;
    demo_state_read(s->server, &fleet);
    const struct demo_node *node = demo_state_find(&fleet, str_from(s->lost));
    const struct jval *budget = apiserver_find(
        s->server, STR("policy"), STR("poddisruptionbudgets"), STR("shop"), STR("payments"));
    int64_t allowed = 1;
    return node != NULL && !node->ready &&
           jval_i64(jval_at(budget, "status.disruptionsAllowed"), &allowed) && allowed == 0;
}

static void lose_report(struct script *s, struct buf *out)
{
    buf_printf(out,
               "%s has lost its network: payments is down to two replicas, and its budget lets "
               "none of them go",
               s->lost);
}

static void approve_rest_begin(struct script *s)
{
    script_approve(s, STR("c"));
}

static void approve_rest_report(struct script *s, struct buf *out)
{
    buf_printf(out, "zone c is approved too: %u more nodes", s->counted);
}

static bool kill_is_due(struct script *s)
{
    struct demo_state fleet;
    demo_state_read(s->server, &fleet);
    return fleet.serviced >= SCRIPT_KILL_AFTER && fleet.states[DEMO_NODE_DRAINING] > 0;
}

static void kill_begin(struct script *s)
{
    s->killed = NULL;
}

static void kill_announce(struct script *s)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_printf(&text, STR_FMT ", the leader, is killed while %u nodes are out",
               STR_ARG(s->killed->name), s->counted);
    script_report(s, buf_str(&text));
}

/* Kills the leader while nodes are being drained; its successor has to finish the drains. */
static bool kill_reached(struct script *s)
{
    struct script_replica *leader = script_leader(s);
    usec_t now = loop_now(s->time);
    if (s->killed == NULL && leader != NULL && kill_is_due(s)) {
        struct demo_state fleet;
        demo_state_read(s->server, &fleet);
        s->killed = leader;
        s->counted = fleet.out;
        s->step_began = now;
        replica_kill(s, leader);
        kill_announce(s);
        return false;
    }
    if (s->killed != NULL && s->took == 0 && leader != NULL && leader != s->killed) {
        s->took = now - s->step_began;
    }
    return s->took > 0;
}

static void kill_report(struct script *s, struct buf *out)
{
    buf_printf(out, STR_FMT " leads after %.1f s, counts who is out, and goes on",
               STR_ARG(s->last_leader->name), (double)s->took / 1e6);
    replica_start(s, s->killed);
}

static void stuck_begin(struct script *s)
{
    (void)s; /* nothing to do: the drain gets blocked by the lost node */
}

static bool stuck_reached(struct script *s)
{
    return s->blocked.node[0] != '\0' && loop_wall(s->time) - s->blocked.since >= SCRIPT_STUCK_TIME;
}

static void stuck_report(struct script *s, struct buf *out)
{
    (void)snprintf(s->stuck, sizeof(s->stuck), "%s", s->blocked.node); /* it fits */
    buf_printf(out, "%s cannot be drained: %s", s->blocked.node, s->blocked.why);
}

static void recover_begin(struct script *s)
{
    struct err err = { 0 };
    if (world_recover_node(s->world, str_from(s->lost), &err) < 0) {
        script_fail(s, "the sandbox refused", &err);
    }
}

static bool recover_reached(struct script *s)
{
    struct demo_state fleet;
    demo_state_read(s->server, &fleet);
    const struct demo_node *node = demo_state_find(&fleet, str_from(s->stuck));
    s->took = loop_now(s->time) - s->step_began;
    return node != NULL && node->state != DEMO_NODE_DRAINING;
}

static void recover_report(struct script *s, struct buf *out)
{
    buf_printf(out,
               "%s is back and payments has three replicas again; %s was drained within %.1f s",
               s->lost, s->stuck, (double)s->took / 1e6);
    s->lost[0] = '\0';
}

static void finish_begin(struct script *s)
{
    script_approve(s, STR("abc"));
}

static bool finish_reached(struct script *s)
{
    struct demo_state fleet;
    demo_state_read(s->server, &fleet);
    struct demo_state_pods pods = demo_state_pods(s->server, STR(""));
    return fleet.serviced == fleet.n && pods.ready == pods.all;
}

static void finish_report(struct script *s, struct buf *out)
{
    buf_printf(out, "all %u nodes run the new image, and every pod of the shop is ready",
               world_node_count(s->world));
}

static const struct script_step script_steps[] = {
    { gather_begin, gather_reached, gather_report, MINUTES(1), SECONDS(4) },
    { release_begin, release_reached, release_report, MINUTES(1), SECONDS(6) },
    { approve_begin, approve_reached, approve_report, MINUTES(1), SECONDS(1) },
    { window_begin, window_reached, window_report, MINUTES(2), SECONDS(2) },
    { lose_begin, lose_reached, lose_report, MINUTES(2), SECONDS(6) },
    { approve_rest_begin, approve_reached, approve_rest_report, MINUTES(1), SECONDS(1) },
    { kill_begin, kill_reached, kill_report, MINUTES(3), SECONDS(2) },
    { stuck_begin, stuck_reached, stuck_report, MINUTES(5), SECONDS(2) },
    { recover_begin, recover_reached, recover_report, MINUTES(3), SECONDS(1) },
    { finish_begin, finish_reached, finish_report, MINUTES(8), 0 },
};

static void step_begin(struct script *s)
{
    s->waiting = false;
    s->step_began = loop_now(s->time);
    s->took = 0;
    script_steps[s->step].begin(s);
}

static void step_end(struct script *s)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    script_steps[s->step].report(s, &text);
    script_report(s, buf_str(&text));
    s->until = loop_now(s->time) + script_steps[s->step].pause;
    s->waiting = true;
    s->step++;
    if (s->step == ARRAY_LEN(script_steps)) {
        script_end(s, /* failed= */ false);
    }
}

static void step_fail_late(struct script *s)
{
    struct demo_state fleet;
    struct err err = { 0 };
    demo_state_read(s->server, &fleet);
    const struct script_replica *leader = script_leader(s);
    (void)err_set(&err, ERR_TIMEOUT,
                  "%u of %u nodes serviced, %u drain, %u in maintenance, leader " STR_FMT,
                  fleet.serviced, fleet.n, fleet.states[DEMO_NODE_DRAINING],
                  fleet.states[DEMO_NODE_MAINTENANCE],
                  STR_ARG(leader != NULL ? leader->name : STR("nobody")));
    script_fail(s, "the story does not go on", &err);
}

static void script_tick(void *ctx)
{
    struct script *s = ctx;
    struct demo_state fleet;
    usec_t now = loop_now(s->time);
    arena_reset(&s->tmp);
    script_follow_leader(s);
    demo_state_read(s->server, &fleet);
    script_run_update_agents(s, &fleet);
    script_find_blocked(s, &fleet);
    if (s->over) {
        /* The world goes on for somebody who watches. */
    } else if (s->waiting && now >= s->until) {
        step_begin(s);
    } else if (!s->waiting && script_steps[s->step].reached(s)) {
        step_end(s);
    } else if (!s->waiting && now - s->step_began > script_steps[s->step].limit) {
        step_fail_late(s);
    }
    loop_timer_set(&s->tick, now + SCRIPT_TICK);
}

/* ── life of the script ────────────────────────────────────────────────────────────────────── */

void script_init(struct script *s, struct loop *time, uint64_t seed)
{
    *s = (struct script){ .time = time, .seed = seed };
    metrics_init(&s->metrics);
    faults_init(&s->network, seed);
    inbox_init(&s->inbox);
    s->server = apiserver_new(time, seed);
    controller_source_init(&s->source, NULL);
    s->source.title = STR("demo");
    s->source.web.clock = time; /* its windows and waits are told in the world's time */
    static const struct str names[SCRIPT_REPLICAS] = { STR_INIT("demo-0"), STR_INIT("demo-1") };
    for (uint32_t i = 0; i < SCRIPT_REPLICAS; i++) {
        s->replicas[i] = (struct script_replica){ .script = s, .name = names[i] };
    }
    loop_timer_init(&s->tick, time, script_tick, s);
    s->began = loop_now(time);
}

void script_begin(struct script *s)
{
    struct world_config config = { .seed = s->seed };
    struct err err = { 0 };
    struct str *objects = NULL;
    uint32_t objects_n = 0;
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    s->began = loop_now(s->time);
    loop_timer_set(&s->tick, s->began);
    int r = world_file_read(script_example_file("shop.yaml"), &memory, &config, &objects,
                            &objects_n, &err);
    ASSERT(r == 0); /* it is our own file, and a test reads it */
    s->world = world_new(s->time, s->server, &config);
    apiserver_on_commit_check(s->server, script_on_commit, s);
    if (world_create_objects(s->world, objects, objects_n, &err) < 0) {
        script_fail(s, "the sandbox refused the shop", &err);
        return;
    }
    for (uint32_t i = 0; i < SCRIPT_REPLICAS; i++) {
        replica_start(s, &s->replicas[i]);
    }
    step_begin(s);
}

void script_summary(const struct script *s, struct buf *out)
{
    struct demo_state fleet;
    demo_state_read(s->server, &fleet);
    uint64_t refused = script_refused(s);
    long long seconds = (long long)(script_elapsed(s) / SECONDS(1));
    buf_printf(
        out,
        "%u of %u nodes serviced; peak %u in maintenance, %u a zone (limit %u)\n"
        "%llu pods moved, %llu eviction%s refused, %llu messages, %u failover%s, %lldm%02llds",
        fleet.serviced, fleet.n, s->peak, s->peak_zone, SCRIPT_ZONE_LIMIT,
        (unsigned long long)s->moved, (unsigned long long)refused, refused == 1 ? "" : "s",
        (unsigned long long)s->inbox.arrived, s->failovers, s->failovers == 1 ? "" : "s",
        seconds / 60, seconds % 60);
}

void script_done(struct script *s)
{
    loop_timer_done(&s->tick);
    for (uint32_t i = 0; i < SCRIPT_REPLICAS; i++) {
        replica_kill(s, &s->replicas[i]);
    }
    controller_source_done(&s->source);
    apiserver_on_commit_check(s->server, NULL, NULL);
    world_free(s->world);
    faults_done(&s->network);
    apiserver_free(s->server);
    inbox_done(&s->inbox);
    metrics_done(&s->metrics);
    arena_done(&s->tmp);
}
