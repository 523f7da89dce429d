/*
 * What is judged of limits and their ledgers.
 */
#include "tests/swarm/check_requests_internal.h"

#define GAP_SLACK SECONDS(3) /* two controllers' ideas of the server's clock, in whole seconds */

/* ── populations ───────────────────────────────────────────────────────────────────────────── */

struct population {
    const struct all_limits *all;
    const struct jval *limit;
    uint32_t n;
};

static void population_visit(void *ctx, const struct jval *node)
{
    struct population *p = ctx;
    const struct jval *exclusive = exclusive_of(p->all, node);
    p->n +=
        limit_selects_text(p->limit, node) && (exclusive == NULL || exclusive == p->limit) ? 1 : 0;
}

void budget_count_nodes(struct budget *b)
{
    struct all_limits all = limits_of(b);
    for (uint32_t i = 0; i < all.n; i++) {
        struct population p = { .all = &all, .limit = all.items[i].object };
        struct budget_limit *limit = find_or_make(b, &b->limits, all.items[i].name, sizeof(*limit));
        apiserver_each(b->server, STR(""), STR("nodes"), STR(""), population_visit, &p);
        limit->population_most = MAX(limit->population_most, p.n);
    }
}

static uint32_t nominal_of(const struct jval *limit, uint32_t population)
{
    int64_t nominal = number_at(limit, "spec.limit", 0) * (int64_t)population / 100;
    nominal = MAX(nominal, number_at(limit, "spec.minimum", 1));
    nominal = MIN(nominal, number_at(limit, "spec.maxCount", INT32_MAX));
    return population == 0 ? 0 : (uint32_t)nominal;
}

/* Who is certainly known to be unavailable, besides those in the ledger. */
struct unavailable {
    struct budget *b;
    const struct all_limits *all;
    const struct jval *limit;
    struct str target;
    uint32_t n;
    bool repairs; /* the target was unavailable not long ago, or is */
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
    struct unavailable *u = ctx;
    struct str name = text_at(node, "metadata.name");
    const struct budget_node *n = map_find(&u->b->nodes, name);
    const struct budget_trait *traits[2] = { NULL, NULL };
    bool certain = false;
    if (n == NULL) {
        return;
    }
    traits[0] = has_policy(u->limit, "NotReady") ? &n->not_ready : NULL;
    traits[1] = has_policy(u->limit, "Unschedulable") ? &n->cordoned : NULL;
    for (uint32_t i = 0; i < ARRAY_LEN(traits); i++) {
        const struct budget_trait *t = traits[i];
        bool mine = str_eq(name, u->target);
        certain = certain || (t != NULL && t->is && u->b->now - t->since > BUDGET_SETTLED);
        u->repairs = u->repairs || (t != NULL && mine && t->last > 0 &&
                                    (t->is || u->b->now - t->last < BUDGET_SETTLED));
    }
    bool counted = limit_applies(u->all, u->limit, node) && is_settled(u->b, name);
    u->n += certain && counted && !ledger_has_target(u->limit, name) ? 1 : 0;
}

/* INV-1, with those who are unavailable. What a watch may not have brought yet is left out. */
static void check_unavailable(struct budget *b, struct str writer, const struct jval *limit,
                              const struct jval *entry, uint32_t nominal)
{
    struct all_limits all = limits_of(b);
    struct str name = text_at(limit, "metadata.name");
    struct str who = jval_str(jval_get(entry, STR("requestName")));
    struct unavailable u = {
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
    bool repair = u.repairs && jval_bool(jval_at(limit, "spec.repairUnavailable"), true);
    if (u.n > 0 && !repair && ledger_targets(limit) + u.n > nominal) {
        promise_break(b->promise,
                      "INV-1: " STR_FMT " reserves a place for " STR_FMT " under " STR_FMT
                      ", which has %u of %u then, and %u unavailable",
                      STR_ARG(writer), STR_ARG(who), STR_ARG(name), ledger_targets(limit), nominal,
                      u.n);
    }
}

/* ── ledgers ───────────────────────────────────────────────────────────────────────────────── */

/* It is reserved because it is a fact already, whatever the limit says (B9). */
static bool is_adopted(struct budget *b, const struct jval *entry)
{
    struct str state = jval_str(jval_get(entry, STR("state")));
    struct str name = jval_str(jval_get(entry, STR("requestName")));
    if (str_starts(name, STR("profile/"))) {
        const struct jval *node = node_of(b, jval_str(jval_get(entry, STR("target"))));
        return str_eq(jval_str(jval_get(jval_at(node, "metadata.labels"), STATE_LABEL)),
                      STR("in-maintenance"));
    }
    return str_eq(state, STR("Approved")) || str_eq(state, STR("InProgress"));
}

static void check_adoption(struct budget *b, struct str writer, const struct jval *limit,
                           const struct jval *entry)
{
    const struct budget_request *r =
        map_find(&b->requests, jval_str(jval_get(entry, STR("requestUID"))));
    if (r == NULL) {
        return;
    }
    if (b->now - r->over_at > BUDGET_SETTLED) {
        struct str name = text_at(limit, "metadata.name");
        promise_break(b->promise,
                      "INV-1: " STR_FMT " adopts " STR_FMT " under " STR_FMT
                      ", which has been over for long",
                      STR_ARG(writer), STR_ARG(r->name), STR_ARG(name));
    }
}

/* It is no new grant: it has that one already, and this limit applies to it from now on; or had it,
 * and the writer has not heard that it is over. A profile's have no number. But its lock lasts as
 * long as its grant: one that was in maintenance under this lock has had it. Ledger and node are
 * two objects, and whoever writes into the one may just be taking the other out. Where nobody was
 * elected, one that moves no time is such a one, too. */
static bool is_joining(struct budget *b, const struct jval *old, const struct jval *limit,
                       const struct jval *entry)
{
    struct str uid = jval_str(jval_get(entry, STR("requestUID")));
    const struct budget_request *r = map_find(&b->requests, uid);
    if (r == NULL) {
        struct str target = jval_str(jval_get(entry, STR("target")));
        const struct budget_node *n = map_find(&b->nodes, target);
        if (n != NULL && n->served && str_eq(lock_holder(b, target).holder, uid)) {
            return true;
        }
        return !b->elect && time_at(old, "status.lastGrantTime") > 0 &&
               time_at(old, "status.lastGrantTime") == time_at(limit, "status.lastGrantTime");
    }
    const struct jval *request = request_of(b, r);
    return request == NULL || number_at(entry, "grant", 0) <= grant_of(request);
}

/* I2: a gap is one between decisions, as the contract says: a write may arrive when its sender is
 * long dead, and then carries the time of its decision, which whoever decides next has read. */
static void check_gap(struct budget *b, struct str writer, const struct jval *old,
                      const struct jval *limit, const struct jval *entry)
{
    struct str name = text_at(limit, "metadata.name");
    struct str who = jval_str(jval_get(entry, STR("requestName")));
    usec_t gap = number_at(limit, "spec.timeouts.betweenOperationsSeconds", 0) * SECONDS(1);
    usec_t last = time_at(old, "status.lastGrantTime");
    usec_t decided = time_at(limit, "status.lastGrantTime");
    if (last > 0 && decided - last < gap - GAP_SLACK) {
        promise_break(b->promise,
                      "I2: " STR_FMT " reserves a place for " STR_FMT " under " STR_FMT
                      " %lld ms after the last, not %lld",
                      STR_ARG(writer), STR_ARG(who), STR_ARG(name),
                      (long long)((decided - last) / 1000), (long long)(gap / 1000));
    } else if (decided == 0 || decided > b->began + b->now + GAP_SLACK) {
        promise_break(b->promise,
                      "I2: " STR_FMT " does not say when it grants " STR_FMT " under " STR_FMT,
                      STR_ARG(writer), STR_ARG(who), STR_ARG(name));
    }
}

/* I1, INV-1: what the limit and its ledger say is what the writer knew. */
static void check_grant(struct budget *b, struct str writer, const struct jval *old,
                        const struct jval *limit, const struct jval *entry)
{
    struct str name = text_at(limit, "metadata.name");
    struct str who = jval_str(jval_get(entry, STR("requestName")));
    struct budget_limit *l = find_or_make(b, &b->limits, name, sizeof(*l));
    uint32_t targets = ledger_targets(limit);
    uint32_t nominal = nominal_of(limit, l->population_most);
    usec_t gap = number_at(limit, "spec.timeouts.betweenOperationsSeconds", 0) * SECONDS(1);
    if (targets > nominal) {
        promise_break(b->promise,
                      "I1: " STR_FMT " reserves a place for " STR_FMT " under " STR_FMT
                      ", which has %u of %u then (%lld %% of %u)",
                      STR_ARG(writer), STR_ARG(who), STR_ARG(name), targets, nominal,
                      (long long)number_at(limit, "spec.limit", 0), l->population_most);
    } else if (jval_bool(jval_at(limit, "spec.paused"), false)) {
        promise_break(b->promise,
                      "I1: " STR_FMT " reserves a place for " STR_FMT " under " STR_FMT
                      ", which is paused",
                      STR_ARG(writer), STR_ARG(who), STR_ARG(name));
    } else if (gap > 0 && !is_joining(b, old, limit, entry)) {
        check_gap(b, writer, old, limit, entry);
    }
    check_unavailable(b, writer, limit, entry, nominal);
}

static void check_added(struct budget *b, struct str writer, const struct jval *old,
                        const struct jval *limit)
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
bool budget_is_held(struct budget *b, const struct budget_request *r, int64_t grant)
{
    const struct jval *request = request_of(b, r);
    return r->granted && is_given(request) && grant == grant_of(request);
}

/* INV-3: the reservation outlives everything that is done under it. */
static void check_struck(struct budget *b, struct str writer, const struct jval *old,
                         const struct jval *limit)
{
    struct all_limits all = limits_of(b);
    struct str name = text_at(limit, "metadata.name");
    JVAL_EACH (jval_at(old, "status.reservations"), entry) {
        struct str uid = jval_str(jval_get(entry, STR("requestUID")));
        struct str target = jval_str(jval_get(entry, STR("target")));
        const struct budget_request *r = map_find(&b->requests, uid);
        const struct jval *node = node_of(b, target);
        const struct budget_node *n = map_find(&b->nodes, target);
        if (ledger_has(limit, uid) || r == NULL || node == NULL) {
            continue;
        }
        const struct jval *request = request_of(b, r);
        bool applies = limit_applies(&all, limit, node);
        if (budget_is_held(b, r, number_at(entry, "grant", 0)) && applies &&
            is_settled(b, target)) {
            promise_break(b->promise,
                          "INV-3: " STR_FMT " strikes " STR_FMT " under " STR_FMT
                          ", which is approved",
                          STR_ARG(writer), STR_ARG(r->name), STR_ARG(name));
        } else if (applies && str_eq(mark_of(node), uid) && n != NULL &&
                   str_eq(n->marked_by, writer) && !is_text(request, "status.phase", "Expired") &&
                   is_settled(b, target)) {
            promise_break(b->promise,
                          "INV-3: " STR_FMT " strikes " STR_FMT " under " STR_FMT
                          " before it lifts the cordon of " STR_FMT,
                          STR_ARG(writer), STR_ARG(r->name), STR_ARG(name), STR_ARG(target));
        }
    }
}

void budget_on_limit(struct budget *b, const struct apiserver_commit *commit)
{
    budget_count_nodes(b);
    if (!is_controller(commit->user_agent)) {
        bool other = commit->old == NULL || commit->now == NULL;
        b->settles_at = other ? settled_after(b) : b->settles_at;
        return;
    }
    if (commit->old == NULL || commit->now == NULL) {
        promise_break(b->promise, "I3: " STR_FMT " made or removed limit " STR_FMT,
                      STR_ARG(commit->user_agent), STR_ARG(commit->name));
        return;
    }
    check_added(b, commit->user_agent, commit->old, commit->now);
    check_struck(b, commit->user_agent, commit->old, commit->now);
}
