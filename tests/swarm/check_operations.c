#include "tests/swarm/check_operations_internal.h"

/* Between a decision and its write: the slowest way, or one that is late. */
#define DECISION_AGE_MAX SECONDS(60)

void check_operations_done(struct check_operations *b)
{
    map_done(&b->runs);
    map_done(&b->jobs);
    map_done(&b->machines);
    arena_done(&b->memory);
}

static void *remember(struct check_operations *b, struct map *map, struct str key, size_t size)
{
    void *value = map_find(map, key);
    if (value == NULL) {
        value = arena_alloc(&b->memory, size);
        (void)map_put(map, arena_str(&b->memory, key), value); /* it was not there */
    }
    return value;
}

static struct seen_machine *machine_seen(struct check_operations *b, const struct jval *node)
{
    return remember(b, &b->machines, string_at(node, "metadata.uid"), sizeof(struct seen_machine));
}

/* ── visits ────────────────────────────────────────────────────────────────────────────────── */

static const struct jval *visit_of(const struct jval *state)
{
    return jval_at(state, "status.visit");
}

/* Something may be done to the machine. */
static bool visit_has_begun(const struct jval *visit)
{
    static const char *const phases[] = { "Cordoning", "Draining", "Running", "Rebooting",
                                          "Settling" };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        if (string_is(visit, "phase", phases[i])) {
            return true;
        }
    }
    return false;
}

static bool run_is_open(const struct jval *run)
{
    return string_is(run, "phase", "Pending") || string_is(run, "phase", "Checking") ||
           string_is(run, "phase", "Running");
}

/* The run of an operation; NULL: the visit has none. */
static const struct jval *visit_find_run(const struct jval *visit, struct str maintenance_uid,
                                         struct str operation)
{
    JVAL_EACH (jval_get(visit, STR("runs")), run) {
        if (str_eq(string_at(run, "maintenanceUID"), maintenance_uid) &&
            (operation.n == 0 || str_eq(string_at(run, "operation"), operation))) {
            return run;
        }
    }
    return NULL;
}

/* O1 */
static void check_window(struct check_operations *b, struct str writer, struct str machine,
                         const struct jval *run)
{
    struct str name = string_at(run, "maintenance");
    const struct random_maintenance *m = maintenance_drawn(b, name);
    usec_t wall = b->start_wall + b->now;
    bool open = random_maintenance_is_open(m, wall + SECONDS(1)); /* clocks of whole seconds */
    for (usec_t back = 0; back <= DECISION_AGE_MAX; back += SECONDS(5)) {
        open = open || random_maintenance_is_open(m, wall - back);
    }
    if (!open) {
        check_violation(b->basic,
                        "O1: " STR_FMT " visits " STR_FMT " for " STR_FMT " outside of its window",
                        STR_ARG(writer), STR_ARG(machine), STR_ARG(name));
    }
}

struct visit_count {
    struct check_operations *b;
    struct str maintenance_uid;
    struct str zone; /* empty: all */
    uint32_t n;
};

static struct str node_zone(const struct jval *node)
{
    return jval_str(jval_get(jval_at(node, "metadata.labels"), STR("topology.kubernetes.io/zone")));
}

/* A machine that is gone disturbs nobody any more. */
static void visit_count_visit(void *ctx, const struct jval *state)
{
    struct visit_count *count = ctx;
    const struct jval *visit = visit_of(state);
    const struct jval *node = machine_find(count->b, string_at(state, "metadata.name"));
    bool there = visit != NULL && node != NULL &&
                 str_eq(string_at(node, "metadata.uid"), string_at(visit, "nodeUID"));
    if (there && visit_find_run(visit, count->maintenance_uid, STR_NONE) != NULL &&
        (count->zone.n == 0 || str_eq(node_zone(node), count->zone))) {
        count->n++;
    }
}

static uint32_t visits_at_once(struct check_operations *b, struct str maintenance_uid,
                               struct str zone)
{
    struct visit_count count = { .b = b, .maintenance_uid = maintenance_uid, .zone = zone };
    apiserver_each(b->server, CHECK_OPERATIONS_GROUP, STR("nodestates"), CHECK_STATES_NAMESPACE,
                   visit_count_visit, &count);
    return count.n;
}

/* O2 */
static void check_visits_at_once(struct check_operations *b, struct str writer, struct str machine,
                                 const struct jval *run)
{
    struct str name = string_at(run, "maintenance");
    struct str uid = string_at(run, "maintenanceUID");
    struct str zone = node_zone(machine_find(b, machine));
    const struct random_maintenance *m = maintenance_drawn(b, name);
    uint32_t all = visits_at_once(b, uid, STR_NONE);
    uint32_t near = m->spread && zone.n > 0 ? visits_at_once(b, uid, zone) : 0;
    if (all > m->max_concurrent) {
        check_violation(b->basic,
                        "O2: " STR_FMT " visits " STR_FMT " for " STR_FMT
                        ", which has %u visits then and allows %u",
                        STR_ARG(writer), STR_ARG(machine), STR_ARG(name), all, m->max_concurrent);
    } else if (near > 1) {
        check_violation(b->basic,
                        "O2: " STR_FMT " visits " STR_FMT " for " STR_FMT
                        ", which has %u visits in zone " STR_FMT " then and allows one",
                        STR_ARG(writer), STR_ARG(machine), STR_ARG(name), near, STR_ARG(zone));
    }
}

struct limit_check {
    struct check_operations *b;
    const struct jval *node;
    struct str request_uid;
    struct str missing; /* name of a limit */
};

static void limit_check_visit(void *ctx, const struct jval *limit)
{
    struct limit_check *check = ctx;
    if (limit_selects_text(limit, check->node) && !ledger_has(limit, check->request_uid)) {
        check->missing = string_at(limit, "metadata.name");
    }
}

/* O3 */
static void check_grant(struct check_operations *b, struct str writer, struct str machine,
                        const struct jval *visit)
{
    struct str name = string_at(visit, "request.name");
    struct str uid = string_at(visit, "request.uid");
    const struct jval *request =
        apiserver_find(b->server, CHECK_REPAIRMAN_GROUP, CHECK_REQUESTS_PLURAL, STR(""), name);
    struct limit_check check = { .b = b, .node = machine_find(b, machine), .request_uid = uid };
    if (check.node == NULL) {
        return; /* it has just gone */
    }
    apiserver_each(b->server, CHECK_REPAIRMAN_GROUP, CHECK_LIMITS_PLURAL, STR(""),
                   limit_check_visit, &check);
    if (request == NULL || !str_eq(string_at(request, "metadata.uid"), uid) ||
        !string_is(request, "spec.state", "InProgress")) {
        check_violation(b->basic,
                        "O3: " STR_FMT " begins a visit of " STR_FMT
                        " without a request that is in progress ('" STR_FMT "')",
                        STR_ARG(writer), STR_ARG(machine), STR_ARG(name));
    } else if (check.missing.n > 0) {
        check_violation(b->basic,
                        "O3: " STR_FMT " begins a visit of " STR_FMT
                        " that has no reservation under " STR_FMT,
                        STR_ARG(writer), STR_ARG(machine), STR_ARG(check.missing));
    }
}

static void check_state(struct check_operations *b, const struct apiserver_commit *commit)
{
    const struct jval *old = visit_of(commit->old);
    const struct jval *now = visit_of(commit->now);
    if (now == NULL) {
        return;
    }
    bool other = old == NULL || !str_eq(string_at(old, "id"), string_at(now, "id"));
    bool begins = visit_has_begun(now) && (other || !visit_has_begun(old));
    JVAL_EACH (jval_get(now, STR("runs")), run) {
        bool added = other || visit_find_run(old, string_at(run, "maintenanceUID"),
                                             string_at(run, "operation")) == NULL;
        if (added || (begins && run_is_open(run))) {
            check_window(b, commit->user_agent, commit->name, run);
        }
        if (added) {
            check_visits_at_once(b, commit->user_agent, commit->name, run);
        }
    }
    if (begins && !jval_bool(jval_get(now, STR("quiet")), false)) {
        check_grant(b, commit->user_agent, commit->name, now);
    }
}

/* O3: no more reservations than the limit allows. */
static void check_limit(struct check_operations *b, const struct apiserver_commit *commit)
{
    uint32_t old = ledger_targets(commit->old);
    uint32_t now = ledger_targets(commit->now);
    int64_t most = number_at(commit->now, "spec.minimum", 0);
    if (now > old && now > most) {
        check_violation(b->basic, "O3: " STR_FMT " reserves %u places under " STR_FMT ", not %lld",
                        STR_ARG(commit->user_agent), now, STR_ARG(commit->name), (long long)most);
    }
}

/* ── Jobs ──────────────────────────────────────────────────────────────────────────────────── */

static struct str job_label(const struct jval *job, const char *key)
{
    return jval_str(jval_get(jval_at(job, "metadata.labels"), str_from(key)));
}

static struct str job_owner(const struct jval *job)
{
    return string_at(jval_first(jval_at(job, "metadata.ownerReferences")), "uid");
}

/* Preflights and probes look, and change nothing. */
static bool job_looks(const struct jval *job)
{
    const struct jval *container = jval_first(jval_at(job, "spec.template.spec.containers"));
    JVAL_EACH (jval_get(container, STR("env")), variable) {
        if (string_is(variable, "name", "DD_SCRIPT")) {
            return !str_starts(string_at(variable, "value"), STR("work "));
        }
    }
    return true;
}

static bool job_has_condition(const struct jval *job, const char *type)
{
    JVAL_EACH (jval_at(job, "status.conditions"), condition) {
        if (string_is(condition, "type", type) && string_is(condition, "status", "True")) {
            return true;
        }
    }
    return false;
}

static bool job_is_reboot(struct str name)
{
    return str_starts(name, STR("dd-reboot-"));
}

/* O4, O5: what is made on the strength of which record, and that it is not made twice. */
static void check_new_job(struct check_operations *b, const struct apiserver_commit *commit)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *job = commit->now;
    struct str machine =
        jval_str(jval_get(jval_at(job, "metadata.annotations"), STR("drydock.dev/machine-name")));
    struct str operation = job_label(job, "drydock.dev/operation");
    const struct jval *visit = visit_of(state_find(b, machine));
    const struct jval *run = visit_find_run(visit, job_owner(job), operation);
    bool looks = job_looks(job);
    bool recorded = run != NULL && (looks || string_is(run, "phase", "Running"));
    if (!recorded && b->late) {
        return; /* its sender is dead, and nobody could hold it back */
    }
    if (!recorded) {
        check_violation(b->basic,
                        "O5: " STR_FMT " makes Job " STR_FMT " of " STR_FMT " on " STR_FMT
                        ", and no record of a visit has it",
                        STR_ARG(commit->user_agent), STR_ARG(commit->name), STR_ARG(operation),
                        STR_ARG(machine));
        return;
    }
    if (looks) {
        return;
    }
    struct str key = run_key(string_at(visit, "nodeUID"), job_owner(job), operation,
                             job_label(job, "drydock.dev/revision"), string_at(run, "tick"), &tmp);
    struct seen_run *seen = remember(b, &b->runs, key, sizeof(*seen));
    if (seen->succeeded || seen->active.n > 0) {
        check_violation(b->basic,
                        "O4: " STR_FMT " makes Job " STR_FMT " of " STR_FMT " on " STR_FMT
                        ", and one of the same revision %s",
                        STR_ARG(commit->user_agent), STR_ARG(commit->name), STR_ARG(operation),
                        STR_ARG(machine), seen->succeeded ? "has succeeded" : "has not ended");
    }
    seen->active = arena_str(&b->memory, commit->name);
    (void)map_put(&b->jobs, arena_str(&b->memory, string_at(job, "metadata.uid")), seen);
}

static void check_job(struct check_operations *b, const struct apiserver_commit *commit)
{
    const struct jval *job = commit->now != NULL ? commit->now : commit->old;
    if (job_is_reboot(commit->name)) {
        return; /* what it does is seen at the machine */
    }
    if (commit->old == NULL && is_controller(commit->user_agent)) {
        check_new_job(b, commit);
    }
    struct seen_run *seen = map_find(&b->jobs, string_at(job, "metadata.uid"));
    if (seen == NULL) {
        return;
    }
    seen->succeeded = seen->succeeded || job_has_condition(job, "Complete");
    if ((commit->now == NULL || job_has_condition(job, "Complete") ||
         job_has_condition(job, "Failed")) &&
        str_eq(seen->active, commit->name)) {
        seen->active = STR_NONE;
    }
}

/* ── machines ──────────────────────────────────────────────────────────────────────────────── */

void check_operations_on_reboot_by_hand(struct check_operations *b, struct str node)
{
    machine_seen(b, machine_find(b, node))->rebooted_by_hand = true;
}

/* O6 */
static void check_reboot(struct check_operations *b, const struct apiserver_commit *commit)
{
    struct str was = string_at(commit->old, "status.nodeInfo.bootID");
    struct str is = string_at(commit->now, "status.nodeInfo.bootID");
    struct seen_machine *machine = machine_seen(b, commit->now);
    if (was.n == 0 || str_eq(was, is)) {
        return;
    }
    if (machine->rebooted_by_hand) {
        machine->rebooted_by_hand = false;
        return;
    }
    const struct jval *visit = visit_of(state_find(b, commit->name));
    struct str id = string_at(visit, "id");
    if (!string_is(visit, "phase", "Rebooting")) {
        check_violation(b->basic, "O6: " STR_FMT " reboots, and no visit is at that",
                        STR_ARG(commit->name));
    } else if (str_eq(machine->visit, id)) {
        check_violation(b->basic, "O6: " STR_FMT " reboots again in one visit",
                        STR_ARG(commit->name));
    }
    machine->visit = arena_str(&b->memory, id);
}

/* I4, O7 */
static void check_cordon(struct check_operations *b, const struct apiserver_commit *commit)
{
    bool was = jval_bool(jval_at(commit->old, "spec.unschedulable"), false);
    bool is = jval_bool(jval_at(commit->now, "spec.unschedulable"), false);
    struct seen_machine *machine = machine_seen(b, commit->now);
    if (was == is) {
        return;
    }
    if (!is_controller(commit->user_agent)) {
        machine->cordoned_by_hand = is;
    } else if (!is && machine->cordoned_by_hand) {
        check_violation(b->basic, "I4: " STR_FMT " lifts a cordon of " STR_FMT " made by hand",
                        STR_ARG(commit->user_agent), STR_ARG(commit->name));
    }
}

/* ── all writes ────────────────────────────────────────────────────────────────────────────── */

/* The status of NodeMaintenances tells of windows that open and close, and of ticks; requests that
 * have ended go after an hour. */
static bool is_counted(const struct apiserver_commit *commit)
{
    return is_controller(commit->user_agent) && commit->now != NULL &&
           !str_eq(commit->plural, STR("leases")) && !str_eq(commit->plural, STR("events")) &&
           !str_eq(commit->plural, STR("nodemaintenances"));
}

void check_operations_on_commit(struct check_operations *b, const struct apiserver_commit *commit,
                                usec_t now)
{
    b->now = now;
    b->writes += is_counted(commit) ? 1 : 0;
    bool changed = commit->old != NULL && commit->now != NULL;
    if (str_eq(commit->plural, STR("nodestates"))) {
        check_state(b, commit);
    } else if (str_eq(commit->plural, STR("jobs"))) {
        check_job(b, commit);
    } else if (str_eq(commit->plural, CHECK_LIMITS_PLURAL) && changed) {
        check_limit(b, commit);
    } else if (str_eq(commit->plural, STR("nodes")) && changed) {
        check_reboot(b, commit);
        check_cordon(b, commit);
    }
}

bool check_operations_is_leader_only(const struct api_request *request)
{
    static const char *const paths[] = { "/nodestates", "/nodemaintenances/", "/jobs",
                                         "/maintenancerequests" };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        if (request->verb != API_GET && str_contains(request->path, str_from(paths[i]))) {
            return true;
        }
    }
    return false;
}
