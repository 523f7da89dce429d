#include "tests/swarm/run.h"

#include "format/json_writer.h"
#include "kinds/keys.h"
#include "profile/node_report.h"
#include "sandbox/apiserver/apiserver.h"
#include "tests/swarm/actions.h"

#define QUIET_WRITES_MAX 24u   /* for each node while nobody does anything to it */
#define EVENT_RATE_MAX 200000u /* events a second: no fleet of a story comes near it */

/* Trace and verdict: every timer and every write goes into the hash. */
static void sim_run_hash(struct sim_run *t, uint64_t value)
{
    t->hash = (t->hash ^ value) * 0x100000001b3ULL;
    t->hash ^= t->hash >> 29;
}

static void sim_run_on_fire(void *ctx, const struct virtual_loop_event *event)
{
    struct sim_run *t = ctx;
    t->events++;
    t->last_view = event->view;
    sim_run_hash(t, (uint64_t)event->now);
    sim_run_hash(t, event->seq << 8 | event->view);
}

static bool sim_run_is_controller(struct str agent)
{
    return str_starts(agent, STR("drydock-"));
}

static void sim_run_print_requests_commit(struct sim_run *t, const struct apiserver_commit *commit)
{
    const struct jval *object = commit->now != NULL ? commit->now : commit->old;
    struct str state = jval_str(jval_at(object, "spec.state"));
    struct str phase = jval_str(jval_at(object, "status.phase"));
    struct str mark =
        jval_str(jval_get(jval_at(object, "metadata.annotations"), CHECK_CORDONED_BY_KEY));
    struct str holder = jval_str(jval_at(object, "spec.holderIdentity"));
    (void)fprintf(stderr,
                  "%12.3f s " STR_FMT " %s " STR_FMT "/" STR_FMT " " STR_FMT " " STR_FMT
                  " " STR_FMT STR_FMT,
                  (double)virtual_loop_now(t->vloop) / 1e6, STR_ARG(commit->user_agent),
                  commit->old == NULL   ? "makes"
                  : commit->now == NULL ? "removes"
                                        : "writes",
                  STR_ARG(commit->plural), STR_ARG(commit->name), STR_ARG(state), STR_ARG(phase),
                  STR_ARG(mark), STR_ARG(holder));
    JVAL_EACH (jval_at(object, "status.reservations"), entry) {
        struct str who = jval_str(jval_get(entry, STR("requestName")));
        struct str entry_state = jval_str(jval_get(entry, STR("state")));
        (void)fprintf(stderr, " " STR_FMT ":" STR_FMT, STR_ARG(who), STR_ARG(entry_state));
    }
    (void)fputs("\n", stderr);
}

static void sim_run_on_requests_commit(struct sim_run *t, const struct apiserver_commit *commit)
{
    bool node = str_eq(commit->plural, STR("nodes"));
    bool request = str_eq(commit->plural, CHECK_REQUESTS_PLURAL);
    if (t->verbose && (node || request || str_eq(commit->plural, CHECK_LIMITS_PLURAL) ||
                       str_starts(commit->name, STR("target-")))) {
        sim_run_print_requests_commit(t, commit);
    }
    check_requests_on_commit(&t->requests, commit, virtual_loop_now(t->vloop));
    if (node && commit->now != NULL &&
        str_eq(check_basic_node_read(commit->now).state, STR("in-maintenance"))) {
        sim_run_start_work(t, commit->name);
    } else if (request) {
        sim_run_wake_actor(t, commit);
    }
}

static void sim_run_print_operation_commit(struct sim_run *t, const struct apiserver_commit *commit)
{
    static const char *const shown[] = {
        "status.visit.phase", "status.visit.runs", "spec.state",
        "status.phase",       "status.reason",     "status.visits"
    };
    const struct jval *object = commit->now != NULL ? commit->now : commit->old;
    bool node = str_eq(commit->plural, STR("nodes"));
    (void)fprintf(stderr, "%12.3f s " STR_FMT " %s " STR_FMT "/" STR_FMT,
                  (double)virtual_loop_now(t->vloop) / 1e6, STR_ARG(commit->user_agent),
                  commit->old == NULL   ? "makes"
                  : commit->now == NULL ? "removes"
                                        : "writes",
                  STR_ARG(commit->plural), STR_ARG(commit->name));
    if (node) {
        struct str boot = jval_str(jval_at(object, "status.nodeInfo.bootID"));
        (void)fprintf(stderr, " boot " STR_FMT "%s", STR_ARG(boot),
                      jval_bool(jval_at(object, "spec.unschedulable"), false) ? " cordoned" : "");
    }
    for (size_t i = 0; i < ARRAY_LEN(shown) && !node; i++) {
        const struct jval *value = jval_at(object, shown[i]);
        CLEANUP(buf_done)
        struct buf text = { 0 };
        struct json_writer w = json_writer_on(&text);
        if (value != NULL) {
            jw_val(&w, value);
            (void)fprintf(stderr, " " STR_FMT, STR_ARG(buf_str(&text)));
        }
    }
    (void)fputs("\n", stderr);
}

static void sim_run_on_operations_commit(struct sim_run *t, const struct apiserver_commit *commit)
{
    static const char *const shown[] = { "nodes", "nodestates",          "nodemaintenances",
                                         "jobs",  "maintenancerequests", "maintenancelimits" };
    for (size_t i = 0; t->verbose && i < ARRAY_LEN(shown); i++) {
        if (str_eq(commit->plural, str_from(shown[i]))) {
            sim_run_print_operation_commit(t, commit);
        }
    }
    check_operations_on_commit(&t->operations, commit, virtual_loop_now(t->vloop));
    if (str_eq(commit->plural, STR("pods")) && str_eq(commit->namespace, CHECK_JOBS_NAMESPACE)) {
        sim_run_on_job_pod(t, commit);
    }
}

static void sim_run_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct sim_run *t = ctx;
    sim_run_hash(t, commit->version);
    bool controller = sim_run_is_controller(commit->user_agent);
    check_drain_rules_on_commit(&t->service.rules, commit, virtual_loop_now(t->vloop));
    if (t->verbose && controller && !t->requests.on && str_eq(commit->plural, STR("nodes"))) {
        struct check_basic_node node = check_basic_node_read(commit->now);
        (void)fprintf(stderr, "%12.3f s " STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT "\n",
                      (double)virtual_loop_now(t->vloop) / 1e6, STR_ARG(commit->user_agent),
                      STR_ARG(commit->name), STR_ARG(node.state), STR_ARG(node.data));
    }
    if (t->requests.on) {
        sim_run_on_requests_commit(t, commit);
    } else if (str_eq(commit->plural, STR("nodes")) && t->esx.on) {
        t->basic.node_writes += controller ? 1 : 0;
        check_esx_on_commit(&t->esx, controller, commit, virtual_loop_now(t->vloop));
    } else if (t->operations.on) {
        sim_run_on_operations_commit(t, commit);
    } else if (str_eq(commit->plural, STR("nodes")) && t->service.on) {
        t->basic.node_writes += controller ? 1 : 0;
        check_service_on_node_commit(&t->service, controller ? commit->user_agent : STR_NONE,
                                     commit->old, commit->now, virtual_loop_now(t->vloop));
        if (controller && commit->now != NULL &&
            str_eq(check_basic_node_read(commit->now).state, STR("in-maintenance"))) {
            sim_run_start_work(t, commit->name);
        }
    } else if (str_eq(commit->plural, STR("nodes")) && controller) {
        check_basic_on_node_write(&t->basic, commit->user_agent, commit->old, commit->now);
    }
    if (str_eq(commit->plural, STR("leases")) && str_eq(commit->name, CORE_LEASE_NAME)) {
        if (controller) { /* people only annotate it */
            check_basic_on_lease_write(&t->basic, commit->user_agent, commit->now,
                                       virtual_loop_now(t->vloop));
        }
        if (t->service.on) {
            check_service_on_lease_commit(&t->service, virtual_loop_now(t->vloop));
        }
    }
}

static void sim_run_init_service(struct sim_run *t)
{
    const struct scenario *scenario = t->scenario;
    t->service = (struct check_service){
        .basic = &t->basic,
        .server = t->server,
        .on = story_has_config(scenario->story),
        .elect = scenario->elect,
        .limited = scenario->config_options.limited,
        .told_in_the_end = scenario->messages_end == USEC_NEVER,
        .recovery_since = USEC_NEVER,
        .prometheus_no_since = USEC_NEVER,
        .paused_since = USEC_NEVER,
        .rules = { .basic = &t->basic, .server = t->server },
    };
    for (uint32_t i = 0; t->service.on && i < CHECK_SERVICE_CONFIGS; i++) {
        random_config_make(&t->service.configs[i], scenario->seed * CHECK_SERVICE_CONFIGS + i,
                           &scenario->config_options);
    }
}

static void sim_run_init(struct sim_run *t, const struct scenario *scenario, mutations_t mutations)
{
    *t = (struct sim_run){ .scenario = scenario,
                           .faults_end = USEC_NEVER,
                           .server_up_at = USEC_NEVER,
                           .notify_fail_end = USEC_NEVER,
                           .pdb_block_end = USEC_NEVER,
                           .prometheus_no_end = USEC_NEVER,
                           .pause_all_end = USEC_NEVER,
                           .rules_at = USEC_NEVER,
                           .vcenter_up_at = USEC_NEVER,
                           .hosts_back_at = USEC_NEVER,
                           .work_end = scenario->fault_time + scenario->calm,
                           .file_version = 1 };
    inbox_init(&t->inbox);
    t->inbox.script = sim_run_on_message;
    t->inbox.ctx = t;
    rng_init(&t->rng, scenario->seed ^ 0x5157a6d5ULL);
    t->vloop = virtual_loop_new(scenario->seed,
                                SECONDS(1800000000) + (usec_t)(scenario->seed % 1000) * DAYS(1));
    virtual_loop_trace(t->vloop, sim_run_on_fire, t);
    t->server = apiserver_new(virtual_loop_root(t->vloop), scenario->seed);
    sim_run_init_service(t);
    struct world_config world = {
        .seed = scenario->seed,
        .nodes = scenario->nodes,
        .zones = 3,
        .heartbeats = t->service.on ? WORLD_HEARTBEATS_STATUS : WORLD_HEARTBEATS_NONE,
    };
    t->world = world_new(virtual_loop_root(t->vloop), t->server, &world);
    world_on_commit(t->world, sim_run_on_commit, t);
    if (scenario->story != STORY_QUIET) {
        sim_run_add_workloads(t);
    }
    if (t->service.on) {
        sim_run_label_nodes(t);
    }
    if (scenario->story == STORY_DRAIN) {
        sim_run_init_drain_rules(t);
    }
    if (story_has_requests(scenario->story)) {
        sim_run_init_requests(t);
    }
    if (scenario->story == STORY_ESX) {
        sim_run_init_esx(t);
    }
    if (story_has_operations(scenario->story)) {
        sim_run_init_operations(t);
    }
    for (uint32_t i = 0; i < scenario->processes; i++) {
        struct controller_process *p = &t->processes[i];
        controller_process_init(p, i, t->vloop, t->server, &t->basic);
        p->elect = scenario->elect;
        p->mutations = mutations;
        p->view = virtual_loop_view_new(t->vloop, scenario->skew[i]);
        p->view_id = i + 1;
        virtual_loop_set_drift(p->view, scenario->drift[i]);
        faults_init(&p->faults, scenario->seed * 31 + i);
        p->faults.latency_min = MSECONDS(1);
        p->faults.latency_max = MSECONDS(scenario->latency);
        if (t->esx.on) {
            /* A call that outlives the lease of who sent it nobody can take back. */
            p->faults.latency_slow = SECONDS(5);
        }
        p->service = &t->service;
        p->requests = &t->requests;
        p->esx = &t->esx;
        p->checked = &t->operations;
        p->inbox = &t->inbox;
        sim_run_start_process(t, p);
    }
}

/* What the leader thinks of each node, when a promise was broken. */
static bool sim_run_print_node(void *ctx, const struct controller_node *node)
{
    const struct controller_process *p = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct node_report report;
    if (controller_explain(p->controller, node->name, &tmp, &report)) {
        node_report_print_text(&report, NODE_REPORT_TEXT, &text);
        (void)fprintf(stderr, STR_FMT "\n", STR_ARG(buf_str(&text)));
    }
    return true;
}

static void sim_run_done(struct sim_run *t)
{
    for (uint32_t i = 0; i < t->scenario->processes; i++) {
        struct controller_process *p = &t->processes[i];
        if (t->verbose && t->service.on && check_violated(&t->basic) &&
            controller_process_runs(p) && core_leads(p->core)) {
            controller_each_node(p->controller, sim_run_print_node, p);
        }
    }
    for (uint32_t i = 0; i < t->scenario->processes; i++) {
        controller_process_done(&t->processes[i]);
    }
    world_free(t->world);
    apiserver_free(t->server);
    virtual_loop_free(t->vloop);
    inbox_done(&t->inbox);
    sim_vcenter_done(&t->vcenter);
    check_service_done(&t->service);
    check_requests_done(&t->requests);
    check_operations_done(&t->operations);
    check_basic_done(&t->basic);
    arena_done(&t->tmp);
}

/* I3: of all clocks in the simulation only the true one may say who leads, and it sees at most one.
 */
static void sim_run_check_leaders(struct sim_run *t)
{
    const struct controller_process *leader = NULL;
    for (uint32_t i = 0; i < t->scenario->processes; i++) {
        const struct controller_process *p = &t->processes[i];
        if (!t->scenario->elect || !controller_process_runs(p) || controller_process_frozen(p) ||
            !core_leads(p->core)) {
            continue;
        }
        if (leader != NULL) {
            check_violation(&t->basic, "I3: %s and %s both lead", leader->identity, p->identity);
        }
        leader = p;
    }
}

static void sim_run_after_event(struct sim_run *t)
{
    arena_reset(&t->tmp);
    bool quiet = t->scenario->story == STORY_QUIET;
    uint32_t check_every =
        quiet ? 2048 : 1; /* to look at thousands of nodes costs more than all else */
    for (uint32_t i = 0; i < t->scenario->processes; i++) {
        struct controller_process *p = &t->processes[i];
        bool late = p->late_at != USEC_NEVER;
        controller_process_reap(p);
        if (!late && p->late_at != USEC_NEVER && t->service.on) {
            sim_run_approve_all(t);
        }
        /* Only the process that ran can have changed inside. */
        if (t->last_view == p->view_id && controller_process_runs(p) &&
            t->events % check_every == 0) {
            controller_process_check(p, /* each_node= */ !quiet);
        }
    }
    sim_run_check_leaders(t);
}

/* Work that asks for itself again and again would keep the clock where it is, and the run with
 * it.
 */
static void sim_run_check_event_rate(struct sim_run *t)
{
    usec_t now = virtual_loop_now(t->vloop);
    if (now >= t->event_rate_since + SECONDS(1)) {
        t->event_rate_since = now;
        t->event_rate = 0;
    }
    if (++t->event_rate > EVENT_RATE_MAX) {
        check_violation(&t->basic, "I9: more than %u events within a second", EVENT_RATE_MAX);
    }
}

/* Runs to `until`, doing what the scenario and what has been begun ask for on the way. */
static void sim_run_run_until(struct sim_run *t, usec_t until)
{
    while (!check_violated(&t->basic)) {
        usec_t due = MIN(sim_run_next_action(t), until);
        if (virtual_loop_step(t->vloop, due)) {
            sim_run_check_event_rate(t);
            sim_run_after_event(t);
            continue;
        }
        if (due == until && sim_run_next_action(t) > until) {
            return;
        }
        sim_run_actions_due(t);
        sim_run_after_event(t);
    }
}

static void sim_run_visit_end(void *ctx, const struct jval *object)
{
    struct sim_run *t = ctx;
    struct check_basic_node node = check_basic_node_read(object);
    check_basic_at_end(&t->basic, &node);
}

/* What a controller knows must be what the server has: no more, no less, no older. */
static bool sim_run_compare_node(void *ctx, const struct controller_node *node)
{
    struct sim_run *t = ctx;
    const struct jval *object =
        apiserver_find(t->server, STR(""), STR("nodes"), STR(""), node->name);
    struct str version = jval_str(jval_at(object, "metadata.resourceVersion"));
    uint64_t number = 0;
    if (object == NULL || !str_to_u64(version, &number) || number != node->version) {
        check_violation(&t->basic,
                        "I9: a controller knows " STR_FMT
                        " at version %llu, the server at '" STR_FMT "'",
                        STR_ARG(node->name), (unsigned long long)node->version, STR_ARG(version));
        return false;
    }
    return true;
}

static void sim_run_check_end(struct sim_run *t)
{
    bool led = false;
    if (t->requests.on) {
        check_requests_at_end(&t->requests);
    } else if (t->esx.on) {
        check_esx_at_end(&t->esx);
    } else if (t->operations.on) {
        check_operations_at_end(&t->operations);
    } else if (!t->service.on) {
        apiserver_each(t->server, STR(""), STR("nodes"), STR(""), sim_run_visit_end, t);
    }
    for (uint32_t i = 0; i < t->scenario->processes; i++) {
        struct controller_process *p = &t->processes[i];
        led = led || core_leads(p->core);
        if (!t->service.on) { /* heartbeats would be under way */
            controller_each_node(p->controller, sim_run_compare_node, t);
        }
        uint32_t nodes = apiserver_count(t->server, STR(""), STR("nodes"));
        if (controller_node_count(p->controller) != nodes) {
            check_violation(&t->basic, "I9: %s knows %u nodes at the end, the server has %u",
                            p->identity, controller_node_count(p->controller), nodes);
        }
    }
    if (!led) {
        check_violation(&t->basic, "I9: nobody leads at the end");
    }
}

/* When nobody works any more: who could go has gone, and nobody runs in circles. */
static void sim_run_check_service_end(struct sim_run *t, uint64_t writes)
{
    for (uint32_t i = 0; i < t->scenario->processes; i++) {
        const struct controller_process *p = &t->processes[i];
        struct check_sender who;
        controller_process_sender(p, &who);
        if (core_leads(p->core)) {
            check_service_at_end(&t->service, &who);
        }
    }
    /* A window that opens, or a wait that ends, moves a node: a few writes for each profile. */
    uint64_t most = (uint64_t)apiserver_count(t->server, STR(""), STR("nodes")) * QUIET_WRITES_MAX;
    if (writes > most) {
        check_violation(&t->basic, "I9: %llu writes to nodes in the end, more than %llu",
                        (unsigned long long)writes, (unsigned long long)most);
    }
}

#define SERVED_LOOK_EVERY MINUTES(10)
#define VISITS_END MINUTES(40) /* the last visits are over after that */

/* Everything comes right until `end`. What NodeMaintenances ask for is served sooner in most runs:
 * then what runs again and again is stopped, and its last visits end. */
static usec_t sim_run_come_right(struct sim_run *t, usec_t end)
{
    usec_t until = t->operations.on ? t->scenario->fault_time : end;
    while (t->operations.on && until < end && !check_violated(&t->basic) &&
           !check_operations_are_served(&t->operations)) {
        until = MIN(until + SERVED_LOOK_EVERY, end);
        sim_run_run_until(t, until);
    }
    if (t->operations.on) {
        sim_run_end_operations(t);
        until += VISITS_END;
    }
    sim_run_run_until(t, until);
    return until;
}

void sim_run_scenario(const struct scenario *scenario, mutations_t mutations, bool verbose,
                      struct sim_run_outcome *ret)
{
    if (story_has_bridge(scenario->story)) {
        bridge_run_scenario(scenario, mutations, verbose, ret);
        return;
    }
    struct sim_run t;
    sim_run_init(&t, scenario, mutations);
    t.verbose = verbose;
    sim_run_run_until(&t, scenario->fault_time);
    usec_t end = scenario->fault_time;
    if (!check_violated(&t.basic)) {
        sim_run_recover(&t);
        end = sim_run_come_right(&t, end + scenario->calm);
    }
    if (!check_violated(&t.basic)) {
        sim_run_check_end(&t);
    }
    if (!check_violated(&t.basic)) {
        uint64_t writes = t.basic.node_writes + t.requests.writes + t.operations.writes;
        end += scenario->quiet_time;
        sim_run_run_until(&t, end);
        writes = t.basic.node_writes + t.requests.writes + t.operations.writes - writes;
        if (t.service.on && !check_violated(&t.basic)) {
            sim_run_check_service_end(&t, writes);
        } else if (writes > 0 && !check_violated(&t.basic)) {
            check_violation(&t.basic, "I9: %llu writes although nothing happens",
                            (unsigned long long)writes);
        }
    }
    *ret = (struct sim_run_outcome){
        .violated = check_violated(&t.basic),
        .at = virtual_loop_now(t.vloop),
        .hash = t.hash,
        .events = t.events,
        .node_time = virtual_loop_now(t.vloop) * (usec_t)scenario->nodes,
    };
    (void)snprintf(ret->violation, sizeof(ret->violation), "%s", t.basic.violation);
    sim_run_done(&t);
}
