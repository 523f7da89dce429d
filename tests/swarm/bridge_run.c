#include "tests/swarm/bridge_run.h"

#include "base/alloc.h"
#include "kinds/keys.h"

#define EVENT_RATE_MAX 200000u /* events a second: nothing comes near it */

static void bridge_run_hash(struct bridge_run *f, uint64_t value)
{
    f->hash = (f->hash ^ value) * 0x100000001b3ULL;
    f->hash ^= f->hash >> 29;
}

static void bridge_run_on_fire(void *ctx, const struct virtual_loop_event *event)
{
    struct bridge_run *f = ctx;
    f->events++;
    f->last_view = event->view;
    bridge_run_hash(f, (uint64_t)event->now);
    bridge_run_hash(f, event->seq << 8 | event->view);
}

/* ── what is written ───────────────────────────────────────────────────────────────────────── */

static void print_map(const struct jval *map)
{
    JVAL_EACH (map, entry) {
        struct str key = jval_key(entry);
        struct str value = jval_str(entry);
        size_t at = str_rfind_char(key, '/');
        if (at != SIZE_MAX) {
            key = str_sub(key, at + 1, key.n - at - 1);
        }
        (void)fprintf(stderr, " " STR_FMT "=" STR_FMT, STR_ARG(key), STR_ARG(value));
    }
}

static void bridge_run_print(struct bridge_run *f, uint32_t where,
                             const struct apiserver_commit *commit)
{
    const struct jval *object = commit->now != NULL ? commit->now : commit->old;
    struct str namespace =
        where == MANAGEMENT_CLUSTER ? commit->namespace : f->clusters[where].namespace;
    struct str cluster = where == MANAGEMENT_CLUSTER ? STR("home") : f->clusters[where].name;
    struct str node = jval_str(jval_at(object, "status.nodeRef.name"));
    (void)fprintf(stderr, "%12.3f s " STR_FMT " %s " STR_FMT "/" STR_FMT " " STR_FMT "/" STR_FMT,
                  (double)virtual_loop_now(f->vloop) / 1e6, STR_ARG(commit->user_agent),
                  commit->old == NULL   ? "makes"
                  : commit->now == NULL ? "removes"
                                        : "writes",
                  STR_ARG(namespace), STR_ARG(cluster), STR_ARG(commit->plural),
                  STR_ARG(commit->name));
    if (jval_str(jval_at(object, "metadata.deletionTimestamp")).n > 0) {
        (void)fputs(" DELETING", stderr);
    }
    (void)fprintf(stderr, " " STR_FMT, STR_ARG(node));
    print_map(jval_at(object, "metadata.labels"));
    print_map(jval_at(object, "metadata.annotations"));
    (void)fputs("\n", stderr);
}

/* One listener a server. */
struct commit_listener {
    struct bridge_run *run;
    uint32_t where;
};

static void bridge_run_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    const struct commit_listener *listener = ctx;
    struct bridge_run *f = listener->run;
    bridge_run_hash(f, commit->version << 3 | listener->where);
    if (f->verbose && !str_eq(commit->plural, STR("leases")) &&
        !str_eq(commit->plural, STR("events"))) {
        bridge_run_print(f, listener->where, commit);
    }
    check_bridge_on_commit(&f->check, listener->where, commit, virtual_loop_now(f->vloop));
    bridge_run_schedule_followups(f, listener->where, commit);
}

/* ── the beginning ─────────────────────────────────────────────────────────────────────────── */

void bridge_run_install_crd(struct bridge_run *f, const struct bridge_run_crd *kind)
{
    struct str body = arena_printf(
        &f->tmp,
        "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
        "\"metadata\":{\"name\":\"%s." STR_FMT "\"},\"spec\":{\"group\":\"" STR_FMT "\","
        "\"scope\":\"Namespaced\",\"names\":{\"kind\":\"%s\",\"plural\":\"%s\"},\"versions\":[{"
        "\"name\":\"" STR_FMT
        "\",\"served\":true,\"storage\":true,\"subresources\":{\"status\":{}},"
        "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\","
        "\"x-kubernetes-preserve-unknown-fields\":true}}}]}}",
        kind->plural, STR_ARG(kind->group), STR_ARG(kind->group), kind->kind, kind->plural,
        STR_ARG(kind->version));
    int status =
        bridge_run_request(f, "admin", MANAGEMENT_CLUSTER, "POST",
                           STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"), body);
    ASSERT(status == 201);
}

static void install_crds(struct bridge_run *f)
{
    const struct bridge_run_crd kinds[] = {
        { CHECK_CAPI_GROUP, f->version, "Cluster", "clusters" },
        { CHECK_CAPI_GROUP, f->version, "Machine", "machines" },
        { CHECK_CAPI_GROUP, f->version, "MachineDrainRule", "machinedrainrules" },
    };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        bridge_run_install_crd(f, &kinds[i]);
    }
}

/* How the bridges are set up: one in some of each is not as it comes. */
static void bridge_run_draw(struct bridge_run *f)
{
    struct rng rng;
    rng_init(&rng, f->scenario->seed ^ 0x91c3f04dULL);
    struct check_bridge_options options = {
        .eager = rng_chance(&rng, 250),
        .strict = rng_chance(&rng, 60),
        .missing_holds = rng_chance(&rng, 100),
        .refuse_forged = rng_chance(&rng, 300),
        .unreachable_max = rng_chance(&rng, 200) ? rng_usec(&rng, 30, 120) * SECONDS(1) : 0,
        .hold_max = rng_chance(&rng, 200) ? rng_usec(&rng, 30, 180) * SECONDS(1) : 0,
    };
    f->version = rng_chance(&rng, 250) ? STR("v1beta1") : STR("v1beta2");
    f->sets_wait_time = rng_chance(&rng, 500);
    f->wrong_secret = rng_chance(&rng, 500);
    f->keeps_maintenance = rng_chance(&rng, 500);
    f->check = (struct check_bridge){
        .basic = &f->basic,
        .management = f->management,
        .options = options,
        .elect = f->scenario->elect,
        .cluster_n = f->scenario->clusters,
    };
    f->base = (struct bridge_config){
        .rules = {
            .eager = options.eager,
            .strict_approval = options.strict,
            .missing_holds = options.missing_holds,
            .refuse_forged = options.refuse_forged,
            .unreachable_max = options.unreachable_max,
            .hold_max = options.hold_max,
            .skew = SECONDS(5),
        },
    };
    for (uint32_t i = 0; i < f->scenario->clusters; i++) {
        f->clusters[i].approved_for = rng_chance(&rng, 300);
    }
}

/* Some servers have seen much more than others: the versions of one mean nothing to another. */
static void bridge_run_age_server(struct bridge_run *f, uint32_t cluster)
{
    if (!f->wrong_secret || rng_chance(&f->rng, 500)) {
        return; /* nobody compares them */
    }
    struct str body = STR("{\"metadata\":{\"name\":\"age\"}}");
    struct str path = STR("/api/v1/namespaces/default/configmaps");
    int status = bridge_run_request(f, "admin", cluster, "POST", path, body);
    ASSERT(status == 201);
    for (uint32_t n = 400; n > 0; n--) {
        status = bridge_run_request(f, "admin", cluster, "PATCH",
                                    STR("/api/v1/namespaces/default/configmaps/age"),
                                    arena_printf(&f->tmp, "{\"data\":{\"n\":\"%u\"}}", n));
        ASSERT(status == 200);
    }
}

static void bridge_run_init_process(struct bridge_run *f, uint32_t i, mutations_t mutations)
{
    const struct scenario *scenario = f->scenario;
    struct bridge_process *p = &f->processes[i];
    *p = (struct bridge_process){
        .index = i,
        .elect = scenario->elect,
        .mutations = mutations,
        .vloop = f->vloop,
        .management = f->management,
        .check = &f->check,
        .base = &f->base,
        .view = virtual_loop_view_new(f->vloop, scenario->skew[i]),
        .view_id = i + 1,
    };
    bridge_process_init(p);
    virtual_loop_set_drift(p->view, scenario->drift[i]);
    faults_init(&p->management_faults, scenario->seed * 31 + i);
    p->management_faults.latency_min = MSECONDS(1);
    p->management_faults.latency_max = MSECONDS(scenario->latency);
    for (uint32_t c = 0; c < scenario->clusters; c++) {
        faults_init(&p->workload_faults[c], scenario->seed * 31 + i + 100ULL * (c + 1));
        p->workload_faults[c].latency_min = MSECONDS(1);
        p->workload_faults[c].latency_max = MSECONDS(scenario->latency);
        bridge_process_add_workload(p, c, f->clusters[c].server);
    }
    bridge_process_start(p);
}

static void bridge_run_init(struct bridge_run *f, const struct scenario *scenario,
                            mutations_t mutations,
                            struct commit_listener listeners[CHECK_BRIDGE_CLUSTERS_MAX + 1])
{
    static const struct {
        struct str namespace;
        struct str name;
    } names[CHECK_BRIDGE_CLUSTERS_MAX] = {
        { STR_INIT("team-a"), STR_INIT("blue") },
        { STR_INIT("team-b"), STR_INIT("blue") },
        { STR_INIT("team-a"), STR_INIT("red") },
        { STR_INIT("team-b"), STR_INIT("green") },
    };
    list_init(&f->followups);
    rng_init(&f->rng, scenario->seed ^ 0x27d4eb2fULL);
    f->server_up_at = USEC_NEVER;
    f->vloop = virtual_loop_new(scenario->seed,
                                SECONDS(1800000000) + (usec_t)(scenario->seed % 1000) * DAYS(1));
    virtual_loop_trace(f->vloop, bridge_run_on_fire, f);
    f->management = apiserver_new(virtual_loop_root(f->vloop), scenario->seed);
    bridge_run_draw(f);
    bridge_metal3_draw(f);
    install_crds(f);
    for (uint32_t i = 0; i <= MANAGEMENT_CLUSTER; i++) {
        f->faults_end[i] = USEC_NEVER;
        listeners[i] = (struct commit_listener){ f, i };
    }
    apiserver_on_commit(f->management, bridge_run_on_commit, &listeners[MANAGEMENT_CLUSTER]);
    const char *namespaces[] = { "team-a", "team-b" };
    for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
        int status = bridge_run_request(
            f, "admin", MANAGEMENT_CLUSTER, "POST", STR("/api/v1/namespaces"),
            arena_printf(&f->tmp, "{\"metadata\":{\"name\":\"%s\"}}", namespaces[i]));
        ASSERT(status == 201);
    }
    bridge_metal3_install(f);
    for (uint32_t i = 0; i < scenario->clusters; i++) {
        struct bridge_run_cluster *c = &f->clusters[i];
        c->namespace = names[i].namespace;
        c->name = names[i].name;
        c->server = apiserver_new(virtual_loop_root(f->vloop), scenario->seed * 7 + i);
        struct check_bridge_cluster *judged = &f->check.clusters[i];
        judged->namespace = c->namespace;
        judged->name = c->name;
        judged->server = c->server;
        bridge_run_age_server(f, i);
        apiserver_on_commit(c->server, bridge_run_on_commit, &listeners[i]);
        bridge_run_create_cluster(f, i);
    }
    for (uint32_t i = 0; i < scenario->processes; i++) {
        bridge_run_init_process(f, i, mutations);
    }
}

static void bridge_run_done(struct bridge_run *f)
{
    for (uint32_t i = 0; i < f->scenario->processes; i++) {
        bridge_process_done(&f->processes[i]);
    }
    LIST_EACH (&f->followups, link) {
        list_del(link);
        alloc_free(CONTAINER_OF(link, struct followup, link));
    }
    apiserver_free(f->management);
    for (uint32_t i = 0; i < f->scenario->clusters; i++) {
        apiserver_free(f->clusters[i].server);
    }
    virtual_loop_free(f->vloop);
    check_bridge_done(&f->check);
    check_basic_done(&f->basic);
    arena_done(&f->tmp);
}

/* ── the run ───────────────────────────────────────────────────────────────────────────────── */

/* I3: of all clocks in the simulation only the true one may say who leads, and it sees at most one.
 */
static void check_leaders(struct bridge_run *f)
{
    const struct bridge_process *leader = NULL;
    for (uint32_t i = 0; i < f->scenario->processes; i++) {
        const struct bridge_process *p = &f->processes[i];
        if (!f->scenario->elect || !bridge_process_runs(p) || bridge_process_frozen(p) ||
            !bridge_leading(p->bridge)) {
            continue;
        }
        if (leader != NULL) {
            check_violation(&f->basic, "I3: %s and %s both lead", leader->identity, p->identity);
        }
        leader = p;
    }
}

static void bridge_run_after_event(struct bridge_run *f)
{
    arena_reset(&f->tmp);
    for (uint32_t i = 0; i < f->scenario->processes; i++) {
        struct bridge_process *p = &f->processes[i];
        bridge_process_reap(p);
        /* Only the one that ran can have changed inside. */
        if (f->last_view == p->view_id && bridge_process_runs(p)) {
            bridge_check(p->bridge);
        }
    }
    check_leaders(f);
}

static void check_pace(struct bridge_run *f)
{
    usec_t now = virtual_loop_now(f->vloop);
    if (now >= f->event_rate_since + SECONDS(1)) {
        f->event_rate_since = now;
        f->event_rate = 0;
    }
    if (++f->event_rate > EVENT_RATE_MAX) {
        check_violation(&f->basic, "I9: more than %u events within a second", EVENT_RATE_MAX);
    }
}

static void bridge_run_run_until(struct bridge_run *f, usec_t until)
{
    while (!check_violated(&f->basic)) {
        usec_t due = MIN(bridge_run_next_action(f), until);
        if (virtual_loop_step(f->vloop, due)) {
            check_pace(f);
            bridge_run_after_event(f);
            continue;
        }
        if (due == until && bridge_run_next_action(f) > until) {
            return;
        }
        bridge_run_actions_due(f);
        bridge_run_after_event(f);
    }
}

/* ── the end ───────────────────────────────────────────────────────────────────────────────── */

/* Who leads has one connection to each cluster that somebody needs; all others have none. */
static void check_conns(struct bridge_run *f)
{
    bool led = false;
    for (uint32_t i = 0; i < f->scenario->processes; i++) {
        const struct bridge_process *p = &f->processes[i];
        bool leads = bridge_leading(p->bridge);
        led = led || leads;
        for (uint32_t c = 0; c < f->scenario->clusters; c++) {
            uint32_t wanted = leads && check_bridge_cluster_needed(&f->check, c) ? 1 : 0;
            if (bridge_process_conn_count(p, c) != wanted) {
                check_violation(
                    &f->basic,
                    "I9: %s has %u connections to " STR_FMT "/" STR_FMT " in the end, not %u",
                    p->identity, bridge_process_conn_count(p, c), STR_ARG(f->clusters[c].namespace),
                    STR_ARG(f->clusters[c].name), wanted);
            }
        }
    }
    if (!led) {
        check_violation(&f->basic, "I9: nobody leads at the end");
    }
}

static void explain_visit(void *ctx, const struct jval *machine)
{
    const struct bridge_process *p = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct bridge_machine_view report;
    struct str namespace = jval_str(jval_at(machine, "metadata.namespace"));
    struct str name = jval_str(jval_at(machine, "metadata.name"));
    if (bridge_explain(p->bridge, namespace, name, &tmp, &report)) {
        (void)fprintf(stderr,
                      "%s: " STR_FMT "/" STR_FMT " %s: " STR_FMT " (link %s " STR_FMT "; " STR_FMT
                      ")\n",
                      p->identity, STR_ARG(namespace), STR_ARG(name), report.verdict.reason,
                      STR_ARG(report.verdict.message),
                      report.linked ? link_state_name(report.link.state) : "none",
                      STR_ARG(report.link.trouble), STR_ARG(report.error));
    }
}

/* What the leader thinks of each Machine, when a promise was broken. */
static void bridge_run_explain(struct bridge_run *f)
{
    for (uint32_t i = 0; i < f->scenario->processes; i++) {
        struct bridge_process *p = &f->processes[i];
        if (bridge_process_runs(p) && bridge_leading(p->bridge)) {
            apiserver_each(f->management, CHECK_CAPI_GROUP, STR("machines"), STR(""), explain_visit,
                           p);
        }
    }
}

void bridge_run_scenario(const struct scenario *scenario, mutations_t mutations, bool verbose,
                         struct sim_run_outcome *ret)
{
    struct bridge_run f = { .scenario = scenario, .verbose = verbose };
    struct commit_listener listeners[CHECK_BRIDGE_CLUSTERS_MAX + 1];
    bridge_run_init(&f, scenario, mutations, listeners);
    bridge_run_run_until(&f, scenario->fault_time);
    usec_t end = scenario->fault_time;
    if (!check_violated(&f.basic)) {
        bridge_run_recover(&f);
        end += scenario->calm;
        bridge_run_run_until(&f, end);
    }
    if (!check_violated(&f.basic)) {
        check_bridge_at_end(&f.check, virtual_loop_now(f.vloop));
        check_conns(&f);
    }
    if (!check_violated(&f.basic)) {
        uint64_t writes = f.check.writes;
        end += scenario->quiet_time;
        bridge_run_run_until(&f, end);
        if (f.check.writes > writes) {
            check_violation(&f.basic, "I9: %llu writes although nothing happens",
                            (unsigned long long)(f.check.writes - writes));
        }
    }
    if (verbose && check_violated(&f.basic)) {
        bridge_run_explain(&f);
    }
    *ret = (struct sim_run_outcome){
        .violated = check_violated(&f.basic),
        .at = virtual_loop_now(f.vloop),
        .hash = f.hash,
        .events = f.events,
        .node_time = virtual_loop_now(f.vloop) * (usec_t)scenario->nodes,
    };
    (void)snprintf(ret->violation, sizeof(ret->violation), "%s", f.basic.violation);
    bridge_run_done(&f);
}
