/*
 * check_operations_internal: what the files of the judge of NodeMaintenances share.
 */
#pragma once

#include "tests/swarm/check_operations.h"
#include "tests/swarm/check_requests_internal.h"

#define REVISION_LABEL_DIGITS 16u

/* An operation of one revision, and tick if it has ticks, on one machine. */
struct seen_run {
    bool succeeded;    /* a Job of it has */
    struct str active; /* name of the Job that has not ended */
};

struct seen_machine {
    bool cordoned_by_hand;
    bool rebooted_by_hand; /* and does not show it yet */
    struct str visit;      /* that last rebooted it */
};

static inline const struct jval *state_find(struct check_operations *b, struct str machine)
{
    return apiserver_find(b->server, CHECK_OPERATIONS_GROUP, STR("nodestates"),
                          CHECK_STATES_NAMESPACE, machine);
}

static inline const struct jval *machine_find(struct check_operations *b, struct str name)
{
    return apiserver_find(b->server, STR(""), STR("nodes"), STR(""), name);
}

static inline const struct random_maintenance *maintenance_drawn(const struct check_operations *b,
                                                                 struct str name)
{
    uint32_t i = name.n == 2 ? (uint32_t)(name.p[1] - '0') : RANDOM_MAINTENANCES_MAX;
    ASSERT(i < b->random.n);
    return &b->random.maintenances[i];
}

static inline const struct random_operation *operation_drawn(const struct random_maintenance *m,
                                                             struct str name)
{
    uint32_t i = name.n == 3 ? (uint32_t)(name.p[2] - '0') : RANDOM_OPERATIONS_MAX;
    ASSERT(i < m->operation_n);
    return &m->operations[i];
}

static inline bool maintenance_selects(const struct random_maintenance *m, const struct jval *node)
{
    struct str class = node_class(node);
    return m->class < 0 || (class.n == 1 && class.p[0] == 'a' + (char)m->class);
}

static inline struct str run_key(struct str node_uid, struct str maintenance_uid,
                                 struct str operation, struct str revision, struct str tick,
                                 struct arena *out)
{
    return arena_printf(out, STR_FMT "/" STR_FMT "/" STR_FMT "/" STR_FMT "/" STR_FMT,
                        STR_ARG(node_uid), STR_ARG(maintenance_uid), STR_ARG(operation),
                        STR_ARG(str_sub(revision, 0, REVISION_LABEL_DIGITS)), STR_ARG(tick));
}
