/*
 * What is judged of limits and their ledgers.
 */
#include "tests/swarm/check_requests_internal.h"

#define GAP_TOLERANCE                                                                              \
    SECONDS(3) /* two controllers' ideas of the server's clock, in whole seconds */

/* ── populations ───────────────────────────────────────────────────────────────────────────── */

struct population_count {
    const struct all_limits *all;
    const struct jval *limit;
    uint32_t n;
};

static void population_visit(void *ctx, const struct jval *node)
{
    struct population_count *p = ctx;
    const struct jval *exclusive = exclusive_limit(p->all, node);
    p->n +=
        limit_selects_text(p->limit, node) && (exclusive == NULL || exclusive == p->limit) ? 1 : 0;
}

void check_requests_count_nodes(struct check_requests *b)
{
    struct all_limits all = limits_list(b);
    for (uint32_t i = 0; i < all.n; i++) {
        struct population_count p = { .all = &all, .limit = all.items[i].object };
        struct seen_limit *limit = find_or_add(b, &b->limits, all.items[i].name, sizeof(*limit));
        apiserver_each(b->server, STR(""), STR("nodes"), STR(""), population_visit, &p);
        limit->population_max = MAX(limit->population_max, p.n);
    }
}

static uint32_t limit_nominal(const struct jval *limit, uint32_t population)
{
    int64_t nominal = number_at(limit, "spec.limit", 0) * (int64_t)population / 100;
    nominal = MAX(nominal, number_at(limit, "spec.minimum", 1));
    nominal = MIN(nominal, number_at(limit, "spec.maxCount", INT32_MAX));
    return population == 0 ? 0 : (uint32_t)nominal;
}

/* Who is certainly known to be unavailable, besides those in the ledger. */
struct unavailable_count {
    struct check_requests *b;
    const struct all_limits *all;
    const struct jval *limit;
    struct str target;
    uint32_t n;
    bool is_repair; /* the target was unavailable not long ago, or is */
};

static bool has_policy(const struct jval *limit, const char *policy)
{
    JVAL_EACH (jval_at(limit, "spec.policies"), entry) {
        if (str_eq(jval_str(entry), str_from(policy))) {
            return true;
        }
    }
    return false;
}

static bool ledger_has_target(const struct jval *limit, struct str target)
{
    JVAL_EACH (jval_at(limit, "status.reservations"), entry) {
        if (str_eq(jval_str(jval_get(entry, STR("target"))), target)) {
            return true;
        }
    }
    return false;
}

static void unavailable_visit(void *ctx, const struct jval *node)
{
    struct unavailable_count *u = ctx;
    struct str name = string_at(node, "metadata.name");
    const struct seen_node *n = map_find(&u->b->nodes, name);
    const struct seen_flag *flags[2] = { NULL, NULL };
    bool certain = false;
    if (n == NULL) {
        return;
    }
    flags[0] = has_policy(u->limit, "NotReady") ? &n->not_ready : NULL;
    flags[1] = has_policy(u->limit, "Unschedulable") ? &n->cordoned : NULL;
    for (uint32_t i = 0; i < ARRAY_LEN(flags); i++) {
        const struct seen_flag *t = flags[i];
        bool own = str_eq(name, u->target);
        certain = certain || (t != NULL && t->is && u->b->now - t->since > CHECK_WATCH_LAG_MAX);
        u->is_repair = u->is_repair || (t != NULL && own && t->last > 0 &&
                                        (t->is || u->b->now - t->last < CHECK_WATCH_LAG_MAX));
    }
    bool counted = limit_applies(u->all, u->limit, node) && watches_synced(u->b, name);
    u->n += certain && counted && !ledger_has_target(u->limit, name) ? 1 : 0;
}

/* R1, with those who are unavailable. What a watch may not have brought yet is left out. */
static void check_unavailable(struct check_requests *b, struct str writer, const struct jval *limit,
                              const struct jval *entry, uint32_t nominal)
{
    struct all_limits all = limits_list(b);
    struct str name = string_at(limit, "metadata.name");
    struct str who = jval_str(jval_get(entry, STR("requestName")));
    struct unavailable_count u = {
        .b = b,
        .all = &all,
        .limit = limit,
        .target = jval_str(jval_get(entry, STR("target"))),
    };
    /* Of `all`, the one that was written just now. */
    for (uint32_t i = 0; i < all.n; i++) {
        u.limit = str_eq(all.items[i].name, name) ? all.items[i].object : u.limit;
    }
    apiserver_each(b->server, STR(""), STR("nodes"), STR(""), unavailable_visit, &u);
    bool repair = u.is_repair && jval_bool(jval_at(limit, "spec.repairUnavailable"), true);
    if (u.n > 0 && !repair && ledger_targets(limit) + u.n > nominal) {
        check_violation(b->basic,
                        "R1: " STR_FMT " reserves a place for " STR_FMT " under " STR_FMT
                        ", which has %u of %u then, and %u unavailable",
                        STR_ARG(writer), STR_ARG(who), STR_ARG(name), ledger_targets(limit),
                        nominal, u.n);
    }
}

/* ── ledgers ───────────────────────────────────────────────────────────────────────────────── */

/* It is reserved because it is a fact already, whatever the limit says (R17). */
static bool is_adopted(struct check_requests *b, const struct jval *entry)
{
    struct str state = jval_str(jval_get(entry, STR("state")));
    struct str name = jval_str(jval_get(entry, STR("requestName")));
    if (str_starts(name, STR("profile/"))) {
        const struct jval *node = node_find(b, jval_str(jval_get(entry, STR("target"))));
        return str_eq(jval_str(jval_get(jval_at(node, "metadata.labels"), STATE_LABEL)),
                      STR("in-maintenance"));
    }
    return str_eq(state, STR("Approved")) || str_eq(state, STR("InProgress"));
}

static void check_adoption(struct check_requests *b, struct str writer, const struct jval *limit,
                           const struct jval *entry)
{
    const struct seen_request *r =
        map_find(&b->requests, jval_str(jval_get(entry, STR("requestUID"))));
    if (r == NULL) {
        return;
    }
    struct str name = string_at(limit, "metadata.name");
    const struct jval *request = request_find(b, r);
    if (request != NULL && !r->ever_granted && !is_older_than_ledger(b, request)) {
        check_violation(b->basic,
                        "R17: " STR_FMT " reserves for " STR_FMT " under " STR_FMT
                        ", which was never granted, as for a fact",
                        STR_ARG(writer), STR_ARG(r->name), STR_ARG(name));
    }
    if (b->now - r->finished_at > CHECK_WATCH_LAG_MAX) {
        check_violation(b->basic,
                        "R1: " STR_FMT " adopts " STR_FMT " under " STR_FMT
                        ", which has been over for long",
                        STR_ARG(writer), STR_ARG(r->name), STR_ARG(name));
    }
}

/* It is no new grant: it has that one already, and this limit applies to it from now on; or had it,
 * and the writer has not heard that it is over. A profile's have no number. But its lock lasts as
 * long as its grant: one that was in maintenance under this lock has had it. Ledger and node are
 * two objects, and whoever writes into the one may just be taking the other out. Where nobody was
 * elected, one that moves no time is such a one, too. */
static bool has_grant_already(struct check_requests *b, const struct jval *old,
                              const struct jval *limit, const struct jval *entry)
{
    struct str uid = jval_str(jval_get(entry, STR("requestUID")));
    const struct seen_request *r = map_find(&b->requests, uid);
    if (r == NULL) {
        struct str target = jval_str(jval_get(entry, STR("target")));
        const struct seen_node *n = map_find(&b->nodes, target);
        if (n != NULL && n->was_in_maintenance && str_eq(lock_find(b, target).holder, uid)) {
            return true;
        }
        return !b->elect && time_at(old, "status.lastGrantTime") > 0 &&
               time_at(old, "status.lastGrantTime") == time_at(limit, "status.lastGrantTime");
    }
    const struct jval *request = request_find(b, r);
    return request == NULL || number_at(entry, "grant", 0) <= request_grant(request);
}

/* I2: a gap is one between decisions, as R23 says: a write may arrive when its sender is
 * long dead, and then carries the time of its decision, which whoever decides next has read. */
static void check_gap(struct check_requests *b, struct str writer, const struct jval *old,
                      const struct jval *limit, const struct jval *entry)
{
    struct str name = string_at(limit, "metadata.name");
    struct str who = jval_str(jval_get(entry, STR("requestName")));
    usec_t gap = number_at(limit, "spec.timeouts.betweenOperationsSeconds", 0) * SECONDS(1);
    usec_t last = time_at(old, "status.lastGrantTime");
    usec_t decided = time_at(limit, "status.lastGrantTime");
    if (last > 0 && decided - last < gap - GAP_TOLERANCE) {
        check_violation(b->basic,
                        "I2: " STR_FMT " reserves a place for " STR_FMT " under " STR_FMT
                        " %lld ms after the last, not %lld",
                        STR_ARG(writer), STR_ARG(who), STR_ARG(name),
                        (long long)((decided - last) / 1000), (long long)(gap / 1000));
    } else if (decided == 0 || decided > b->start_wall + b->now + GAP_TOLERANCE) {
        check_violation(b->basic,
                        "I2: " STR_FMT " does not say when it grants " STR_FMT " under " STR_FMT,
                        STR_ARG(writer), STR_ARG(who), STR_ARG(name));
    }
}

/* I1, R1: what the limit and its ledger say is what the writer knew. */
static void check_grant(struct check_requests *b, struct str writer, const struct jval *old,
                        const struct jval *limit, const struct jval *entry)
{
    struct str name = string_at(limit, "metadata.name");
    struct str who = jval_str(jval_get(entry, STR("requestName")));
    struct seen_limit *l = find_or_add(b, &b->limits, name, sizeof(*l));
    uint32_t targets = ledger_targets(limit);
    uint32_t nominal = limit_nominal(limit, l->population_max);
    usec_t gap = number_at(limit, "spec.timeouts.betweenOperationsSeconds", 0) * SECONDS(1);
    if (targets > nominal) {
        check_violation(b->basic,
                        "I1: " STR_FMT " reserves a place for " STR_FMT " under " STR_FMT
                        ", which has %u of %u then (%lld %% of %u)",
                        STR_ARG(writer), STR_ARG(who), STR_ARG(name), targets, nominal,
                        (long long)number_at(limit, "spec.limit", 0), l->population_max);
    } else if (jval_bool(jval_at(limit, "spec.paused"), false)) {
        check_violation(b->basic,
                        "I1: " STR_FMT " reserves a place for " STR_FMT " under " STR_FMT
                        ", which is paused",
                        STR_ARG(writer), STR_ARG(who), STR_ARG(name));
    } else if (gap > 0 && !has_grant_already(b, old, limit, entry)) {
        check_gap(b, writer, old, limit, entry);
    }
    check_unavailable(b, writer, limit, entry, nominal);
}

static void check_added_reservations(struct check_requests *b, struct str writer,
                                     const struct jval *old, const struct jval *limit)
{
    JVAL_EACH (jval_at(limit, "status.reservations"), entry) {
        struct str uid = jval_str(jval_get(entry, STR("requestUID")));
        if (ledger_has(old, uid)) {
            continue;
        }
        if (is_adopted(b, entry)) {
            check_adoption(b, writer, limit, entry);
        } else {
            check_grant(b, writer, old, limit, entry);
        }
    }
}

/* Approved, and what is taken away is of that very grant. */
bool check_requests_grant_in_use(struct check_requests *b, const struct seen_request *r,
                                 int64_t grant)
{
    const struct jval *request = request_find(b, r);
    return r->granted && is_granted(request) && grant == request_grant(request);
}

/* R3: the reservation outlives everything that is done under it. */
static void check_removed_reservations(struct check_requests *b, struct str writer,
                                       const struct jval *old, const struct jval *limit)
{
    struct all_limits all = limits_list(b);
    struct str name = string_at(limit, "metadata.name");
    JVAL_EACH (jval_at(old, "status.reservations"), entry) {
        struct str uid = jval_str(jval_get(entry, STR("requestUID")));
        struct str target = jval_str(jval_get(entry, STR("target")));
        const struct seen_request *r = map_find(&b->requests, uid);
        const struct jval *node = node_find(b, target);
        const struct seen_node *n = map_find(&b->nodes, target);
        if (ledger_has(limit, uid) || r == NULL || node == NULL) {
            continue;
        }
        const struct jval *request = request_find(b, r);
        bool applies = limit_applies(&all, limit, node);
        if (check_requests_grant_in_use(b, r, number_at(entry, "grant", 0)) && applies &&
            watches_synced(b, target)) {
            check_violation(b->basic,
                            "R3: " STR_FMT " strikes " STR_FMT " under " STR_FMT
                            ", which is approved",
                            STR_ARG(writer), STR_ARG(r->name), STR_ARG(name));
        } else if (applies && str_eq(cordon_mark(node), uid) && n != NULL &&
                   str_eq(n->marked_by, writer) && !string_is(request, "status.phase", "Expired") &&
                   watches_synced(b, target)) {
            check_violation(b->basic,
                            "R3: " STR_FMT " strikes " STR_FMT " under " STR_FMT
                            " before it lifts the cordon of " STR_FMT,
                            STR_ARG(writer), STR_ARG(r->name), STR_ARG(name), STR_ARG(target));
        }
    }
}

void check_requests_on_limit(struct check_requests *b, const struct apiserver_commit *commit)
{
    check_requests_count_nodes(b);
    if (!is_controller(commit->user_agent)) {
        bool other = commit->old == NULL || commit->now == NULL;
        b->synced_at = other ? watches_synced_at(b) : b->synced_at;
        return;
    }
    if (commit->old == NULL || commit->now == NULL) {
        check_violation(b->basic, "I3: " STR_FMT " made or removed limit " STR_FMT,
                        STR_ARG(commit->user_agent), STR_ARG(commit->name));
        return;
    }
    check_added_reservations(b, commit->user_agent, commit->old, commit->now);
    check_removed_reservations(b, commit->user_agent, commit->old, commit->now);
}
