#include "tests/swarm/run.h"

#include "profile/node_report.h"
#include "sandbox/apiserver/apiserver.h"
#include "tests/swarm/actions.h"

#define STILL_WRITES_MAX 24u /* for each node while nobody does anything to it */
#define PACE_MAX 200000u     /* events a second: no fleet of a story comes near it */

/* Trace and verdict: every timer and every write goes into the hash. */
static void trial_mix(struct trial *t, uint64_t value)
{
    t->hash = (t->hash ^ value) * 0x100000001b3ULL;
    t->hash ^= t->hash >> 29;
}

static void trial_on_fire(void *ctx, const struct virtual_loop_event *event)
{
    struct trial *t = ctx;
    t->events++;
    t->ran = event->view;
    trial_mix(t, (uint64_t)event->now);
    trial_mix(t, event->seq << 8 | event->view);
}

static bool trial_is_controller(struct str agent)
{
    return str_starts(agent, STR("drydock-"));
}

static void trial_print_asking(struct trial *t, const struct apiserver_commit *commit)
{
    const struct jval *object = commit->now != NULL ? commit->now : commit->old;
    struct str state = jval_str(jval_at(object, "spec.state"));
    struct str phase = jval_str(jval_at(object, "status.phase"));
    struct str mark = jval_str(jval_get(jval_at(object, "metadata.annotations"), BUDGET_MARK));
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
        struct str what = jval_str(jval_get(entry, STR("state")));
        (void)fprintf(stderr, " " STR_FMT ":" STR_FMT, STR_ARG(who), STR_ARG(what));
    }
    (void)fputs("\n", stderr);
}

static void trial_on_asking(struct trial *t, const struct apiserver_commit *commit)
{
    bool node = str_eq(commit->plural, STR("nodes"));
    bool request = str_eq(commit->plural, BUDGET_REQUESTS);
    if (t->verbose && (node || request || str_eq(commit->plural, BUDGET_LIMITS) ||
                       str_starts(commit->name, STR("target-")))) {
        trial_print_asking(t, commit);
    }
    budget_on_commit(&t->budget, commit, virtual_loop_now(t->vloop));
    if (node && commit->now != NULL &&
        str_eq(promise_node_of(commit->now).state, STR("in-maintenance"))) {
        trial_note_chore(t, commit->name);
    } else if (request) {
        trial_note_request(t, commit);
    }
}

static void trial_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct trial *t = ctx;
    trial_mix(t, commit->version);
    bool controller = trial_is_controller(commit->user_agent);
    rules_on_commit(&t->service.rules, commit, virtual_loop_now(t->vloop));
    if (t->verbose && controller && !t->budget.on && str_eq(commit->plural, STR("nodes"))) {
        struct promise_node node = promise_node_of(commit->now);
        (void)fprintf(stderr, "%12.3f s " STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT "\n",
                      (double)virtual_loop_now(t->vloop) / 1e6, STR_ARG(commit->user_agent),
                      STR_ARG(commit->name), STR_ARG(node.state), STR_ARG(node.data));
    }
    if (t->budget.on) {
        trial_on_asking(t, commit);
    } else if (str_eq(commit->plural, STR("nodes")) && t->service.on) {
        t->promise.node_writes += controller ? 1 : 0;
        service_on_node_commit(&t->service, controller ? commit->user_agent : STR_NONE, commit->old,
                               commit->now, virtual_loop_now(t->vloop));
        if (controller && commit->now != NULL &&
            str_eq(promise_node_of(commit->now).state, STR("in-maintenance"))) {
            trial_note_chore(t, commit->name);
        }
    } else if (str_eq(commit->plural, STR("nodes")) && controller) {
        promise_on_node_write(&t->promise, commit->user_agent, commit->old, commit->now);
    }
    if (str_eq(commit->plural, STR("leases")) && str_eq(commit->name, CONTROLLER_LEASE_NAME)) {
        promise_on_lease_write(&t->promise, commit->user_agent, commit->now,
                               virtual_loop_now(t->vloop));
    }
}

static void trial_init_service(struct trial *t)
{
    const struct plan *plan = t->plan;
    t->service = (struct service){
        .promise = &t->promise,
        .server = t->server,
        .on = story_serves(plan->story),
        .elect = plan->elect,
        .limited = plan->wish.limited,
        .calm_since = USEC_NEVER,
        .rules = { .promise = &t->promise, .server = t->server },
    };
    for (uint32_t i = 0; t->service.on && i < SERVICE_BLUEPRINTS; i++) {
        blueprint_make(&t->service.blueprints[i], plan->seed * SERVICE_BLUEPRINTS + i, &plan->wish);
    }
}

static void trial_init(struct trial *t, const struct plan *plan, mutations_t mutations)
{
    *t = (struct trial){ .plan = plan,
                         .weather_end = USEC_NEVER,
                         .server_up_at = USEC_NEVER,
                         .deaf_end = USEC_NEVER,
                         .hold_end = USEC_NEVER,
                         .rules_at = USEC_NEVER,
                         .chores_end = plan->wild + plan->calm,
                         .file_count = 1 };
    inbox_init(&t->inbox);
    t->inbox.script = trial_on_message;
    t->inbox.ctx = t;
    rng_init(&t->rng, plan->seed ^ 0x5157a6d5ULL);
    t->vloop =
        virtual_loop_new(plan->seed, SECONDS(1800000000) + (usec_t)(plan->seed % 1000) * DAYS(1));
    virtual_loop_trace(t->vloop, trial_on_fire, t);
    t->server = apiserver_new(virtual_loop_root(t->vloop), plan->seed);
    trial_init_service(t);
    struct world_config world = {
        .seed = plan->seed,
        .nodes = plan->nodes,
        .zones = 3,
        .heartbeats = t->service.on ? WORLD_HEARTBEATS_STATUS : WORLD_HEARTBEATS_NONE,
    };
    t->world = world_new(virtual_loop_root(t->vloop), t->server, &world);
    world_on_commit(t->world, trial_on_commit, t);
    if (plan->story != STORY_QUIET) {
        trial_populate(t);
    }
    if (t->service.on) {
        trial_label_nodes(t);
    }
    if (plan->story == STORY_DRAIN) {
        trial_begin_rules(t);
    }
    if (story_asks(plan->story)) {
        trial_init_asking(t);
    }
    for (uint32_t i = 0; i < plan->processes; i++) {
        struct process *p = &t->processes[i];
        process_init(p, i, t->vloop, t->server, &t->promise);
        p->elect = plan->elect;
        p->mutations = mutations;
        p->view = virtual_loop_view_new(t->vloop, plan->skew[i]);
        p->view_id = i + 1;
        virtual_loop_set_drift(p->view, plan->drift[i]);
        faults_init(&p->faults, plan->seed * 31 + i);
        p->faults.latency_min = MSECONDS(1);
        p->faults.latency_max = MSECONDS(plan->latency);
        p->service = &t->service;
        p->budget = &t->budget;
        p->inbox = &t->inbox;
        trial_start(t, p);
    }
}

/* What the leader thinks of each node, when a promise was broken. */
static bool trial_print_node(void *ctx, const struct controller_node *node)
{
    const struct process *p = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct report report;
    if (controller_explain(p->controller, node->name, &tmp, &report)) {
        report_print_text(&report, REPORT_TEXT, &text);
        (void)fprintf(stderr, STR_FMT "\n", STR_ARG(buf_str(&text)));
    }
    return true;
}

static void trial_done(struct trial *t)
{
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        struct process *p = &t->processes[i];
        if (t->verbose && t->service.on && promise_broken(&t->promise) && process_runs(p) &&
            controller_leading(p->controller)) {
            controller_each_node(p->controller, trial_print_node, p);
        }
    }
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        process_done(&t->processes[i]);
    }
    world_free(t->world);
    apiserver_free(t->server);
    virtual_loop_free(t->vloop);
    inbox_done(&t->inbox);
    service_done(&t->service);
    budget_done(&t->budget);
    promise_done(&t->promise);
    arena_done(&t->tmp);
}

/* I3: of all clocks in the simulation only the true one may say who leads, and it sees at most one.
 */
static void trial_check_leaders(struct trial *t)
{
    const struct process *leader = NULL;
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        const struct process *p = &t->processes[i];
        if (!t->plan->elect || !process_runs(p) || process_frozen(p) ||
            !controller_leading(p->controller)) {
            continue;
        }
        if (leader != NULL) {
            promise_break(&t->promise, "I3: %s and %s both lead", leader->identity, p->identity);
        }
        leader = p;
    }
}

static void trial_after_event(struct trial *t)
{
    arena_reset(&t->tmp);
    bool quiet = t->plan->story == STORY_QUIET;
    uint32_t often = quiet ? 2048 : 1; /* to look at thousands of nodes costs more than all else */
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        struct process *p = &t->processes[i];
        bool late = p->late_at != USEC_NEVER;
        process_bury(p);
        if (!late && p->late_at != USEC_NEVER && t->service.on) {
            trial_approve(t);
        }
        /* Only the process that ran can have changed inside. */
        if (t->ran == p->view_id && process_runs(p) && t->events % often == 0) {
            process_check(p, /* deep= */ !quiet);
        }
    }
    trial_check_leaders(t);
}

/* Work that asks for itself again and again would keep the clock where it is, and the trial with
 * it.
 */
static void trial_check_pace(struct trial *t)
{
    usec_t now = virtual_loop_now(t->vloop);
    if (now >= t->pace_since + SECONDS(1)) {
        t->pace_since = now;
        t->pace = 0;
    }
    if (++t->pace > PACE_MAX) {
        promise_break(&t->promise, "I9: more than %u events within a second", PACE_MAX);
    }
}

/* Runs to `until`, doing what the plan and what has been begun ask for on the way. */
static void trial_run_until(struct trial *t, usec_t until)
{
    while (!promise_broken(&t->promise)) {
        usec_t due = MIN(trial_next_deed(t), until);
        if (virtual_loop_step(t->vloop, due)) {
            trial_check_pace(t);
            trial_after_event(t);
            continue;
        }
        if (due == until && trial_next_deed(t) > until) {
            return;
        }
        trial_do_deeds(t);
        trial_after_event(t);
    }
}

static void trial_visit_rest(void *ctx, const struct jval *object)
{
    struct trial *t = ctx;
    struct promise_node node = promise_node_of(object);
    promise_at_rest(&t->promise, &node);
}

/* What a controller knows must be what the server has: no more, no less, no older. */
static bool trial_compare_node(void *ctx, const struct controller_node *node)
{
    struct trial *t = ctx;
    const struct jval *object =
        apiserver_find(t->server, STR(""), STR("nodes"), STR(""), node->name);
    struct str version = jval_str(jval_at(object, "metadata.resourceVersion"));
    uint64_t number = 0;
    if (object == NULL || !str_to_u64(version, &number) || number != node->version) {
        promise_break(&t->promise,
                      "I9: a controller knows " STR_FMT " at version %llu, the server at '" STR_FMT
                      "'",
                      STR_ARG(node->name), (unsigned long long)node->version, STR_ARG(version));
        return false;
    }
    return true;
}

static void trial_check_rest(struct trial *t)
{
    bool led = false;
    if (t->budget.on) {
        budget_at_rest(&t->budget);
    } else if (!t->service.on) {
        apiserver_each(t->server, STR(""), STR("nodes"), STR(""), trial_visit_rest, t);
    }
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        struct process *p = &t->processes[i];
        led = led || controller_leading(p->controller);
        if (!t->service.on) { /* heartbeats would be under way */
            controller_each_node(p->controller, trial_compare_node, t);
        }
        uint32_t nodes = apiserver_count(t->server, STR(""), STR("nodes"));
        if (controller_node_count(p->controller) != nodes) {
            promise_break(&t->promise, "I9: %s knows %u nodes at the end, the server has %u",
                          p->identity, controller_node_count(p->controller), nodes);
        }
    }
    if (!led) {
        promise_break(&t->promise, "I9: nobody leads at the end");
    }
}

/* When nobody works any more: who could go has gone, and nobody runs in circles. */
static void trial_check_served(struct trial *t, uint64_t writes)
{
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        const struct process *p = &t->processes[i];
        struct service_sender who;
        process_sender(p, &who);
        if (controller_leading(p->controller)) {
            service_at_rest(&t->service, &who);
        }
    }
    /* A window that opens, or a wait that ends, moves a node: a few writes for each profile. */
    uint64_t most = (uint64_t)apiserver_count(t->server, STR(""), STR("nodes")) * STILL_WRITES_MAX;
    if (writes > most) {
        promise_break(&t->promise, "I9: %llu writes to nodes in the end, more than %llu",
                      (unsigned long long)writes, (unsigned long long)most);
    }
}

void trial_run(const struct plan *plan, mutations_t mutations, bool verbose,
               struct trial_outcome *ret)
{
    if (story_bridges(plan->story)) {
        fleet_run(plan, mutations, verbose, ret);
        return;
    }
    struct trial t;
    trial_init(&t, plan, mutations);
    t.verbose = verbose;
    trial_run_until(&t, plan->wild);
    usec_t end = plan->wild;
    if (!promise_broken(&t.promise)) {
        trial_calm_down(&t);
        end += plan->calm;
        trial_run_until(&t, end);
    }
    if (!promise_broken(&t.promise)) {
        trial_check_rest(&t);
    }
    if (!promise_broken(&t.promise)) {
        uint64_t writes = t.promise.node_writes + t.budget.writes;
        end += plan->still;
        trial_run_until(&t, end);
        writes = t.promise.node_writes + t.budget.writes - writes;
        if (t.service.on && !promise_broken(&t.promise)) {
            trial_check_served(&t, writes);
        } else if (writes > 0 && !promise_broken(&t.promise)) {
            promise_break(&t.promise, "I9: %llu writes although nothing happens",
                          (unsigned long long)writes);
        }
    }
    *ret = (struct trial_outcome){
        .broken = promise_broken(&t.promise),
        .at = virtual_loop_now(t.vloop),
        .hash = t.hash,
        .events = t.events,
        .node_time = virtual_loop_now(t.vloop) * (usec_t)plan->nodes,
    };
    (void)snprintf(ret->why, sizeof(ret->why), "%s", t.promise.why);
    trial_done(&t);
}
