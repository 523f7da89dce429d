/* What is judged of NodeMaintenances when nothing has been wrong for long. */
#include "tests/swarm/check_operations_internal.h"

/* One operation of one NodeMaintenance. */
struct served_check {
    struct check_operations *b;
    const struct jval *maintenance;
    const struct random_maintenance *drawn;
    struct str operation;
    struct str revision; /* as its status says */
    char *unserved;      /* what is not, and where; empty: all is */
};

#define UNSERVED_MAX 256u

static const struct jval *state_operation(const struct jval *state, struct str maintenance_uid,
                                          struct str operation)
{
    JVAL_EACH (jval_at(state, "status.operations"), entry) {
        if (str_eq(string_at(entry, "maintenanceUID"), maintenance_uid) &&
            str_eq(string_at(entry, "operation"), operation)) {
            return entry;
        }
    }
    return NULL;
}

/* O8: what the NodeState says, and for one-shots what its Jobs have shown. */
static void served_visit(void *ctx, const struct jval *node)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct served_check *check = ctx;
    struct check_operations *b = check->b;
    struct str name = string_at(node, "metadata.name");
    struct str uid = string_at(check->maintenance, "metadata.uid");
    const struct random_operation *op = operation_drawn(check->drawn, check->operation);
    const struct jval *entry = state_operation(state_find(b, name), uid, check->operation);
    struct str phase = string_at(entry, "phase");
    if (!maintenance_selects(check->drawn, node)) {
        return;
    }
    bool skipped = str_eq(phase, STR("Skipped"));
    bool good = (skipped || str_eq(phase, STR("Succeeded"))) &&
                str_eq(string_at(entry, "revision"), check->revision);
    if (op->every_min > 0) {
        good = good && time_at(entry, "tick") >= b->start_wall + b->recovered;
    } else if (!op->bare && !skipped) {
        struct str key = run_key(string_at(node, "metadata.uid"), uid, check->operation,
                                 check->revision, STR(""), &tmp);
        const struct seen_run *seen = map_find(&b->runs, key);
        good = good && seen != NULL && seen->succeeded;
    }
    if (!good) {
        (void)snprintf(check->unserved, UNSERVED_MAX,
                       STR_FMT "/" STR_FMT " is not served on " STR_FMT ": '" STR_FMT
                               "' of revision '" STR_FMT "', not " STR_FMT ", tick '" STR_FMT "'",
                       STR_ARG(string_at(check->maintenance, "metadata.name")),
                       STR_ARG(check->operation), STR_ARG(name), STR_ARG(phase),
                       STR_ARG(str_sub(string_at(entry, "revision"), 0, 8)),
                       STR_ARG(str_sub(check->revision, 0, 8)), STR_ARG(string_at(entry, "tick")));
    }
}

static void maintenance_visit(void *ctx, const struct jval *maintenance)
{
    struct served_check *check = ctx;
    struct check_operations *b = check->b;
    struct str name = string_at(maintenance, "metadata.name");
    check->maintenance = maintenance;
    check->drawn = maintenance_drawn(b, name);
    JVAL_EACH (jval_at(maintenance, "status.operations"), operation) {
        check->operation = string_at(operation, "name");
        check->revision = string_at(operation, "revision");
        apiserver_each(b->server, STR(""), STR("nodes"), STR(""), served_visit, check);
    }
    if (number_at(maintenance, "status.observedGeneration", 0) !=
        number_at(maintenance, "metadata.generation", 0)) {
        (void)snprintf(check->unserved, UNSERVED_MAX, STR_FMT " has no status", STR_ARG(name));
    }
}

static void find_unserved(struct check_operations *b, char text[UNSERVED_MAX])
{
    struct served_check check = { .b = b, .unserved = text };
    text[0] = '\0';
    apiserver_each(b->server, CHECK_OPERATIONS_GROUP, STR("nodemaintenances"), STR(""),
                   maintenance_visit, &check);
}

bool check_operations_are_served(struct check_operations *b)
{
    char unserved[UNSERVED_MAX];
    find_unserved(b, unserved);
    return unserved[0] == '\0';
}

/* O7 */
static void places_visit(void *ctx, const struct jval *maintenance)
{
    struct check_operations *b = ctx;
    if (jval_first(jval_at(maintenance, "status.visits")) != NULL) {
        check_violation(b->basic, "O7: " STR_FMT " has places for visits at the end",
                        STR_ARG(string_at(maintenance, "metadata.name")));
    }
}

/* O7 */
static void node_visit(void *ctx, const struct jval *node)
{
    struct check_operations *b = ctx;
    static const struct str marks[] = { STR_INIT("drydock.dev/visit-cordon"),
                                        STR_INIT("drydock.dev/kept-cordon"),
                                        STR_INIT("repairman.k8s.io/cordoned-by") };
    const struct jval *annotations = jval_at(node, "metadata.annotations");
    struct str name = string_at(node, "metadata.name");
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        if (jval_get(annotations, marks[i]) != NULL) {
            check_violation(b->basic, "O7: " STR_FMT " carries " STR_FMT " at the end",
                            STR_ARG(name), STR_ARG(marks[i]));
        }
    }
    if (jval_bool(jval_at(node, "spec.unschedulable"), false)) {
        check_violation(b->basic, "O7: " STR_FMT " is cordoned at the end", STR_ARG(name));
    }
}

static void state_visit(void *ctx, const struct jval *state)
{
    struct check_operations *b = ctx;
    if (jval_at(state, "status.visit") != NULL) {
        check_violation(b->basic, "O7: " STR_FMT " has a visit at the end: " STR_FMT,
                        STR_ARG(string_at(state, "metadata.name")),
                        STR_ARG(string_at(state, "status.visit.phase")));
    }
}

static void request_visit(void *ctx, const struct jval *request)
{
    struct check_operations *b = ctx;
    if (!is_finished(request)) {
        check_violation(b->basic, "I8: request " STR_FMT " is not over at the end: " STR_FMT,
                        STR_ARG(string_at(request, "metadata.name")),
                        STR_ARG(string_at(request, "status.phase")));
    }
}

static void limit_visit(void *ctx, const struct jval *limit)
{
    struct check_operations *b = ctx;
    if (ledger_targets(limit) > 0) {
        check_violation(b->basic, "I9: " STR_FMT " has reservations at the end",
                        STR_ARG(string_at(limit, "metadata.name")));
    }
}

void check_operations_at_end(struct check_operations *b)
{
    char unserved[UNSERVED_MAX];
    find_unserved(b, unserved);
    if (unserved[0] != '\0') {
        check_violation(b->basic, "O8: %s at the end", unserved);
        return;
    }
    apiserver_each(b->server, STR(""), STR("nodes"), STR(""), node_visit, b);
    apiserver_each(b->server, CHECK_OPERATIONS_GROUP, STR("nodestates"), STR(""), state_visit, b);
    apiserver_each(b->server, CHECK_OPERATIONS_GROUP, STR("nodemaintenances"), STR(""),
                   places_visit, b);
    apiserver_each(b->server, CHECK_REPAIRMAN_GROUP, CHECK_REQUESTS_PLURAL, STR(""), request_visit,
                   b);
    apiserver_each(b->server, CHECK_REPAIRMAN_GROUP, CHECK_LIMITS_PLURAL, STR(""), limit_visit, b);
}
