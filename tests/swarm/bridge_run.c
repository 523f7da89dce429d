#include "tests/swarm/bridge_run.h"

#include "base/alloc.h"
#include "kinds/keys.h"

#define PACE_MAX 200000u /* events a second: nothing comes near it */

static void fleet_mix(struct fleet *f, uint64_t value)
{
    f->hash = (f->hash ^ value) * 0x100000001b3ULL;
    f->hash ^= f->hash >> 29;
}

static void fleet_on_fire(void *ctx, const struct virtual_loop_event *event)
{
    struct fleet *f = ctx;
    f->events++;
    f->ran = event->view;
    fleet_mix(f, (uint64_t)event->now);
    fleet_mix(f, event->seq << 8 | event->view);
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

static void fleet_print(struct fleet *f, uint32_t where, const struct apiserver_commit *commit)
{
    const struct jval *object = commit->now != NULL ? commit->now : commit->old;
    struct str space = where == TREATY_HOME ? commit->namespace : f->clusters[where].space;
    struct str cluster = where == TREATY_HOME ? STR("home") : f->clusters[where].name;
    struct str node = jval_str(jval_at(object, "status.nodeRef.name"));
    (void)fprintf(stderr, "%12.3f s " STR_FMT " %s " STR_FMT "/" STR_FMT " " STR_FMT "/" STR_FMT,
                  (double)virtual_loop_now(f->vloop) / 1e6, STR_ARG(commit->user_agent),
                  commit->old == NULL   ? "makes"
                  : commit->now == NULL ? "removes"
                                        : "writes",
                  STR_ARG(space), STR_ARG(cluster), STR_ARG(commit->plural), STR_ARG(commit->name));
    if (jval_str(jval_at(object, "metadata.deletionTimestamp")).n > 0) {
        (void)fputs(" DELETING", stderr);
    }
    (void)fprintf(stderr, " " STR_FMT, STR_ARG(node));
    print_map(jval_at(object, "metadata.labels"));
    print_map(jval_at(object, "metadata.annotations"));
    (void)fputs("\n", stderr);
}

/* One listener a server. */
struct ear {
    struct fleet *fleet;
    uint32_t where;
};

static void fleet_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    const struct ear *ear = ctx;
    struct fleet *f = ear->fleet;
    fleet_mix(f, commit->version << 3 | ear->where);
    if (f->verbose && !str_eq(commit->plural, STR("leases")) &&
        !str_eq(commit->plural, STR("events"))) {
        fleet_print(f, ear->where, commit);
    }
    treaty_on_commit(&f->treaty, ear->where, commit, virtual_loop_now(f->vloop));
    fleet_note(f, ear->where, commit);
}

/* ── the beginning ─────────────────────────────────────────────────────────────────────────── */

void fleet_install(struct fleet *f, const struct fleet_kind *kind)
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
    int status = fleet_ask(f, "admin", TREATY_HOME, "POST",
                           STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"), body);
    ASSERT(status == 201);
}

static void install_all(struct fleet *f)
{
    const struct fleet_kind kinds[] = {
        { TREATY_GROUP, f->version, "Cluster", "clusters" },
        { TREATY_GROUP, f->version, "Machine", "machines" },
        { TREATY_GROUP, f->version, "MachineDrainRule", "machinedrainrules" },
    };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        fleet_install(f, &kinds[i]);
    }
}

/* How the bridges are set up: one in some of each is not as it comes. */
static void fleet_draw(struct fleet *f)
{
    struct rng rng;
    rng_init(&rng, f->plan->seed ^ 0x91c3f04dULL);
    struct treaty_terms terms = {
        .eager = rng_chance(&rng, 250),
        .strict = rng_chance(&rng, 60),
        .missing_holds = rng_chance(&rng, 100),
        .refuse_forged = rng_chance(&rng, 300),
        .unreachable_max = rng_chance(&rng, 200) ? rng_usec(&rng, 30, 120) * SECONDS(1) : 0,
        .hold_max = rng_chance(&rng, 200) ? rng_usec(&rng, 30, 180) * SECONDS(1) : 0,
    };
    f->version = rng_chance(&rng, 250) ? STR("v1beta1") : STR("v1beta2");
    f->tells = rng_chance(&rng, 500);
    f->astray = rng_chance(&rng, 500);
    f->stays = rng_chance(&rng, 500);
    f->treaty = (struct treaty){
        .promise = &f->promise,
        .home = f->home,
        .terms = terms,
        .elect = f->plan->elect,
        .cluster_n = f->plan->clusters,
    };
    f->base = (struct bridge_config){
        .rules = {
            .eager = terms.eager,
            .strict_approval = terms.strict,
            .missing_holds = terms.missing_holds,
            .refuse_forged = terms.refuse_forged,
            .unreachable_max = terms.unreachable_max,
            .hold_max = terms.hold_max,
            .skew = SECONDS(5),
        },
    };
    for (uint32_t i = 0; i < f->plan->clusters; i++) {
        f->clusters[i].answers = rng_chance(&rng, 300);
    }
}

/* Some servers have seen much more than others: the versions of one mean nothing to another. */
static void fleet_age(struct fleet *f, uint32_t cluster)
{
    if (!f->astray || rng_chance(&f->rng, 500)) {
        return; /* nobody compares them */
    }
    struct str body = STR("{\"metadata\":{\"name\":\"age\"}}");
    struct str path = STR("/api/v1/namespaces/default/configmaps");
    int status = fleet_ask(f, "admin", cluster, "POST", path, body);
    ASSERT(status == 201);
    for (uint32_t n = 400; n > 0; n--) {
        status = fleet_ask(f, "admin", cluster, "PATCH",
                           STR("/api/v1/namespaces/default/configmaps/age"),
                           arena_printf(&f->tmp, "{\"data\":{\"n\":\"%u\"}}", n));
        ASSERT(status == 200);
    }
}

static void fleet_init_pilot(struct fleet *f, uint32_t i, mutations_t mutations)
{
    const struct plan *plan = f->plan;
    struct pilot *p = &f->pilots[i];
    *p = (struct pilot){
        .index = i,
        .elect = plan->elect,
        .mutations = mutations,
        .vloop = f->vloop,
        .home = f->home,
        .treaty = &f->treaty,
        .base = &f->base,
        .view = virtual_loop_view_new(f->vloop, plan->skew[i]),
        .view_id = i + 1,
    };
    pilot_init(p);
    virtual_loop_set_drift(p->view, plan->drift[i]);
    faults_init(&p->home_faults, plan->seed * 31 + i);
    p->home_faults.latency_min = MSECONDS(1);
    p->home_faults.latency_max = MSECONDS(plan->latency);
    for (uint32_t c = 0; c < plan->clusters; c++) {
        faults_init(&p->far_faults[c], plan->seed * 31 + i + 100ULL * (c + 1));
        p->far_faults[c].latency_min = MSECONDS(1);
        p->far_faults[c].latency_max = MSECONDS(plan->latency);
        pilot_add_far(p, c, f->clusters[c].server);
    }
    pilot_start(p);
}

static void fleet_init(struct fleet *f, const struct plan *plan, mutations_t mutations,
                       struct ear ears[TREATY_CLUSTERS_MAX + 1])
{
    static const struct {
        struct str space;
        struct str name;
    } names[TREATY_CLUSTERS_MAX] = {
        { STR_INIT("team-a"), STR_INIT("blue") },
        { STR_INIT("team-b"), STR_INIT("blue") },
        { STR_INIT("team-a"), STR_INIT("red") },
        { STR_INIT("team-b"), STR_INIT("green") },
    };
    list_init(&f->errands);
    rng_init(&f->rng, plan->seed ^ 0x27d4eb2fULL);
    f->up_at = USEC_NEVER;
    f->vloop =
        virtual_loop_new(plan->seed, SECONDS(1800000000) + (usec_t)(plan->seed % 1000) * DAYS(1));
    virtual_loop_trace(f->vloop, fleet_on_fire, f);
    f->home = apiserver_new(virtual_loop_root(f->vloop), plan->seed);
    fleet_draw(f);
    fleet_host_draw(f);
    install_all(f);
    for (uint32_t i = 0; i <= TREATY_HOME; i++) {
        f->weather_end[i] = USEC_NEVER;
        ears[i] = (struct ear){ f, i };
    }
    apiserver_on_commit(f->home, fleet_on_commit, &ears[TREATY_HOME]);
    const char *spaces[] = { "team-a", "team-b" };
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        int status =
            fleet_ask(f, "admin", TREATY_HOME, "POST", STR("/api/v1/namespaces"),
                      arena_printf(&f->tmp, "{\"metadata\":{\"name\":\"%s\"}}", spaces[i]));
        ASSERT(status == 201);
    }
    fleet_host_begin(f);
    for (uint32_t i = 0; i < plan->clusters; i++) {
        struct fleet_cluster *c = &f->clusters[i];
        c->space = names[i].space;
        c->name = names[i].name;
        c->server = apiserver_new(virtual_loop_root(f->vloop), plan->seed * 7 + i);
        struct treaty_cluster *judged = &f->treaty.clusters[i];
        judged->space = c->space;
        judged->name = c->name;
        judged->server = c->server;
        fleet_age(f, i);
        apiserver_on_commit(c->server, fleet_on_commit, &ears[i]);
        fleet_found(f, i);
    }
    for (uint32_t i = 0; i < plan->processes; i++) {
        fleet_init_pilot(f, i, mutations);
    }
}

static void fleet_done(struct fleet *f)
{
    for (uint32_t i = 0; i < f->plan->processes; i++) {
        pilot_done(&f->pilots[i]);
    }
    LIST_EACH (&f->errands, link) {
        list_del(link);
        alloc_free(CONTAINER_OF(link, struct errand, link));
    }
    apiserver_free(f->home);
    for (uint32_t i = 0; i < f->plan->clusters; i++) {
        apiserver_free(f->clusters[i].server);
    }
    virtual_loop_free(f->vloop);
    treaty_done(&f->treaty);
    promise_done(&f->promise);
    arena_done(&f->tmp);
}

/* ── the run ───────────────────────────────────────────────────────────────────────────────── */

/* I3: of all clocks in the simulation only the true one may say who leads, and it sees at most one.
 */
static void check_leaders(struct fleet *f)
{
    const struct pilot *leader = NULL;
    for (uint32_t i = 0; i < f->plan->processes; i++) {
        const struct pilot *p = &f->pilots[i];
        if (!f->plan->elect || !pilot_runs(p) || pilot_frozen(p) || !bridge_leading(p->bridge)) {
            continue;
        }
        if (leader != NULL) {
            promise_break(&f->promise, "I3: %s and %s both lead", leader->identity, p->identity);
        }
        leader = p;
    }
}

static void fleet_after_event(struct fleet *f)
{
    arena_reset(&f->tmp);
    for (uint32_t i = 0; i < f->plan->processes; i++) {
        struct pilot *p = &f->pilots[i];
        pilot_bury(p);
        /* Only the one that ran can have changed inside. */
        if (f->ran == p->view_id && pilot_runs(p)) {
            bridge_check(p->bridge);
        }
    }
    check_leaders(f);
}

static void check_pace(struct fleet *f)
{
    usec_t now = virtual_loop_now(f->vloop);
    if (now >= f->pace_since + SECONDS(1)) {
        f->pace_since = now;
        f->pace = 0;
    }
    if (++f->pace > PACE_MAX) {
        promise_break(&f->promise, "I9: more than %u events within a second", PACE_MAX);
    }
}

static void fleet_run_until(struct fleet *f, usec_t until)
{
    while (!promise_broken(&f->promise)) {
        usec_t due = MIN(fleet_next_deed(f), until);
        if (virtual_loop_step(f->vloop, due)) {
            check_pace(f);
            fleet_after_event(f);
            continue;
        }
        if (due == until && fleet_next_deed(f) > until) {
            return;
        }
        fleet_do_deeds(f);
        fleet_after_event(f);
    }
}

/* ── the end ───────────────────────────────────────────────────────────────────────────────── */

/* Who leads has one connection to each cluster that somebody needs; all others have none. */
static void check_lines(struct fleet *f)
{
    bool led = false;
    for (uint32_t i = 0; i < f->plan->processes; i++) {
        const struct pilot *p = &f->pilots[i];
        bool leads = bridge_leading(p->bridge);
        led = led || leads;
        for (uint32_t c = 0; c < f->plan->clusters; c++) {
            uint32_t wanted = leads && treaty_needs(&f->treaty, c) ? 1 : 0;
            if (pilot_lines(p, c) != wanted) {
                promise_break(&f->promise,
                              "I9: %s has %u connections to " STR_FMT "/" STR_FMT
                              " in the end, not %u",
                              p->identity, pilot_lines(p, c), STR_ARG(f->clusters[c].space),
                              STR_ARG(f->clusters[c].name), wanted);
            }
        }
    }
    if (!led) {
        promise_break(&f->promise, "I9: nobody leads at the end");
    }
}

static void explain_visit(void *ctx, const struct jval *machine)
{
    const struct pilot *p = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct bridge_machine_view report;
    struct str space = jval_str(jval_at(machine, "metadata.namespace"));
    struct str name = jval_str(jval_at(machine, "metadata.name"));
    if (bridge_explain(p->bridge, space, name, &tmp, &report)) {
        (void)fprintf(stderr,
                      "%s: " STR_FMT "/" STR_FMT " %s: " STR_FMT " (link %s " STR_FMT "; " STR_FMT
                      ")\n",
                      p->identity, STR_ARG(space), STR_ARG(name), report.verdict.reason,
                      STR_ARG(report.verdict.message),
                      report.linked ? link_state_name(report.link.state) : "none",
                      STR_ARG(report.link.trouble), STR_ARG(report.error));
    }
}

/* What the leader thinks of each Machine, when a promise was broken. */
static void fleet_explain(struct fleet *f)
{
    for (uint32_t i = 0; i < f->plan->processes; i++) {
        struct pilot *p = &f->pilots[i];
        if (pilot_runs(p) && bridge_leading(p->bridge)) {
            apiserver_each(f->home, TREATY_GROUP, STR("machines"), STR(""), explain_visit, p);
        }
    }
}

void fleet_run(const struct plan *plan, mutations_t mutations, bool verbose,
               struct trial_outcome *ret)
{
    struct fleet f = { .plan = plan, .verbose = verbose };
    struct ear ears[TREATY_CLUSTERS_MAX + 1];
    fleet_init(&f, plan, mutations, ears);
    fleet_run_until(&f, plan->wild);
    usec_t end = plan->wild;
    if (!promise_broken(&f.promise)) {
        fleet_calm_down(&f);
        end += plan->calm;
        fleet_run_until(&f, end);
    }
    if (!promise_broken(&f.promise)) {
        treaty_at_rest(&f.treaty, virtual_loop_now(f.vloop));
        check_lines(&f);
    }
    if (!promise_broken(&f.promise)) {
        uint64_t writes = f.treaty.writes;
        end += plan->still;
        fleet_run_until(&f, end);
        if (f.treaty.writes > writes) {
            promise_break(&f.promise, "I9: %llu writes although nothing happens",
                          (unsigned long long)(f.treaty.writes - writes));
        }
    }
    if (verbose && promise_broken(&f.promise)) {
        fleet_explain(&f);
    }
    *ret = (struct trial_outcome){
        .broken = promise_broken(&f.promise),
        .at = virtual_loop_now(f.vloop),
        .hash = f.hash,
        .events = f.events,
        .node_time = virtual_loop_now(f.vloop) * (usec_t)plan->nodes,
    };
    (void)snprintf(ret->why, sizeof(ret->why), "%s", f.promise.why);
    fleet_done(&f);
}
