#include "tests/swarm/trial.h"

#include "sandbox/apiserver.h"
#include "tests/swarm/deeds.h"

/* Trace and verdict: every timer and every write goes into the hash. */
static void trial_mix(struct trial *t, uint64_t value)
{
    t->hash = (t->hash ^ value) * 0x100000001b3ULL;
    t->hash ^= t->hash >> 29;
}

static void trial_on_fire(void *ctx, const struct vloop_event *event)
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

static void trial_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct trial *t = ctx;
    trial_mix(t, commit->version);
    if (str_eq(commit->plural, STR("nodes")) && trial_is_controller(commit->user_agent)) {
        promise_on_node_write(&t->promise, commit->user_agent, commit->old, commit->now);
    }
    if (str_eq(commit->plural, STR("leases")) && str_eq(commit->name, CONTROLLER_LEASE_NAME)) {
        promise_on_lease_write(&t->promise, commit->user_agent, commit->now, vloop_now(t->vloop));
    }
}

static void trial_init(struct trial *t, const struct plan *plan, mutations_t mutations)
{
    *t = (struct trial){ .plan = plan, .weather_end = USEC_NEVER, .server_up_at = USEC_NEVER };
    rng_init(&t->rng, plan->seed ^ 0x5157a6d5ULL);
    t->vloop = vloop_new(plan->seed, SECONDS(1800000000) + (usec_t)(plan->seed % 1000) * DAYS(1));
    vloop_trace(t->vloop, trial_on_fire, t);
    t->server = apiserver_new(vloop_root(t->vloop), plan->seed);
    struct world_config world = {
        .seed = plan->seed,
        .nodes = plan->nodes,
        .zones = 3,
        .heartbeats = WORLD_HEARTBEATS_NONE,
    };
    t->world = world_new(vloop_root(t->vloop), t->server, &world);
    world_on_commit(t->world, trial_on_commit, t);
    if (plan->story != STORY_QUIET) {
        trial_populate(t);
    }
    for (uint32_t i = 0; i < plan->processes; i++) {
        struct process *p = &t->processes[i];
        process_init(p, i, t->vloop, t->server, &t->promise);
        p->elect = plan->elect;
        p->mutations = mutations;
        p->view = vloop_view(t->vloop, plan->skew[i]);
        p->view_id = i + 1;
        vloop_drift(p->view, plan->drift[i]);
        faults_init(&p->faults, plan->seed * 31 + i);
        p->faults.latency_min = MSECONDS(1);
        p->faults.latency_max = MSECONDS(plan->latency);
        process_start(p);
    }
}

static void trial_done(struct trial *t)
{
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        process_done(&t->processes[i]);
    }
    world_free(t->world);
    apiserver_free(t->server);
    vloop_free(t->vloop);
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
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        struct process *p = &t->processes[i];
        process_bury(p);
        /* Only the process that ran can have changed inside; with hundreds of nodes, now and then.
         */
        if (t->ran == p->view_id && process_runs(p) && (!quiet || t->events % 64 == 0)) {
            process_check(p, /* deep= */ !quiet);
        }
    }
    trial_check_leaders(t);
}

/* Runs to `until`, doing what the plan and what has been begun ask for on the way. */
static void trial_run_until(struct trial *t, usec_t until)
{
    while (!promise_broken(&t->promise)) {
        usec_t due = MIN(trial_next_deed(t), until);
        if (vloop_step(t->vloop, due)) {
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
    apiserver_each(t->server, STR(""), STR("nodes"), STR(""), trial_visit_rest, t);
    bool led = false;
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        struct process *p = &t->processes[i];
        led = led || controller_leading(p->controller);
        controller_each_node(p->controller, trial_compare_node, t);
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

void trial_run(const struct plan *plan, mutations_t mutations, bool verbose,
               struct trial_outcome *ret)
{
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
        uint64_t writes = t.promise.node_writes;
        end += plan->still;
        trial_run_until(&t, end);
        if (t.promise.node_writes != writes && !promise_broken(&t.promise)) {
            promise_break(&t.promise, "I9: %llu writes to nodes although nothing happens",
                          (unsigned long long)(t.promise.node_writes - writes));
        }
    }
    *ret = (struct trial_outcome){
        .broken = promise_broken(&t.promise),
        .at = vloop_now(t.vloop),
        .hash = t.hash,
        .events = t.events,
        .node_time = vloop_now(t.vloop) * (usec_t)plan->nodes,
    };
    (void)snprintf(ret->why, sizeof(ret->why), "%s", t.promise.why);
    trial_done(&t);
}
