#include "tests/swarm/budget.h"

#define LIMITS_MAX 8u
#define GAP_SLACK SECONDS(3) /* two controllers' ideas of the server's clock, in whole seconds */

struct budget_request {
    struct str uid;
    struct str name;
    struct str target;
    usec_t reserved_at; /* since when it says that it is being prepared */
    uint32_t grants;    /* how often it has said so */
    bool granted;       /* approved by a controller, and not taken or given back since */
    usec_t granted_at;
    usec_t begun_at;
    usec_t over_at; /* its phase says that it is over, or it is gone; USEC_NEVER: not yet */
};

struct budget_node {
    bool foreign; /* cordoned by hand */
    struct str marked_by;
    usec_t settles_at; /* when all watches know its labels */
};

struct budget_limit {
    uint32_t population_most; /* ever */
    usec_t grant_at;
};

struct budget_read {
    usec_t at;
};

struct one_limit {
    struct str name;
    const struct jval *object;
};

/* Limits as they are on the server, by name. */
struct all_limits {
    struct one_limit items[LIMITS_MAX];
    uint32_t n;
};

void budget_done(struct budget *b)
{
    map_done(&b->requests);
    map_done(&b->nodes);
    map_done(&b->limits);
    map_done(&b->reads);
    arena_done(&b->memory);
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static void *find_or_make(struct budget *b, struct map *map, struct str key, size_t size)
{
    void *value = map_find(map, key);
    if (value == NULL) {
        value = arena_alloc(&b->memory, size);
        (void)map_put(map, arena_str(&b->memory, key), value); /* it was not there */
    }
    return value;
}

static struct str text_at(const struct jval *object, const char *path)
{
    return jval_str(jval_at(object, path));
}

static bool is_text(const struct jval *object, const char *path, const char *text)
{
    return str_eq(text_at(object, path), str_from(text));
}

static bool is_controller(struct str agent)
{
    return str_starts(agent, STR("drydock-"));
}

static struct str mark_of(const struct jval *node)
{
    return jval_str(jval_get(jval_at(node, "metadata.annotations"), BUDGET_MARK));
}

static struct str class_of(const struct jval *node)
{
    return jval_str(jval_get(jval_at(node, "metadata.labels"), TERMS_CLASS));
}

static bool is_given(const struct jval *request)
{
    return (is_text(request, "spec.state", "Approved") ||
            is_text(request, "spec.state", "InProgress")) &&
           !is_text(request, "status.phase", "Expired");
}

static bool is_over(const struct jval *request)
{
    return is_text(request, "status.phase", "Completed") ||
           is_text(request, "status.phase", "Rejected") ||
           is_text(request, "status.phase", "Expired");
}

static void limits_visit(void *ctx, const struct jval *object)
{
    struct all_limits *all = ctx;
    ASSERT(all->n < LIMITS_MAX);
    all->items[all->n++] = (struct one_limit){ text_at(object, "metadata.name"), object };
}

static struct all_limits limits_of(struct budget *b)
{
    struct all_limits all = { 0 };
    apiserver_each(b->server, BUDGET_GROUP, BUDGET_LIMITS, STR(""), limits_visit, &all);
    return all;
}

static const struct jval *node_of(struct budget *b, struct str name)
{
    return name.n == 0 ? NULL : apiserver_find(b->server, STR(""), STR("nodes"), STR(""), name);
}

static bool limit_selects(const struct jval *limit, const struct jval *node)
{
    const struct jval *selector = jval_at(limit, "spec.selector.matchLabels");
    const struct jval *class = jval_get(selector, TERMS_CLASS);
    return class == NULL || str_eq(jval_str(class), class_of(node));
}

static int64_t number_at(const struct jval *object, const char *path, int64_t otherwise)
{
    int64_t value = otherwise;
    return jval_i64(jval_at(object, path), &value) ? value : otherwise;
}

/* The one Exclusive limit that takes the node, or NULL. */
static const struct jval *exclusive_of(const struct all_limits *all, const struct jval *node)
{
    const struct jval *best = NULL;
    for (uint32_t i = 0; i < all->n; i++) {
        const struct jval *limit = all->items[i].object;
        if (is_text(limit, "spec.scope", "Exclusive") && limit_selects(limit, node) &&
            (best == NULL ||
             number_at(limit, "spec.priority", 0) > number_at(best, "spec.priority", 0))) {
            best = limit;
        }
    }
    return best;
}

static bool limit_applies(const struct all_limits *all, const struct jval *limit,
                          const struct jval *node)
{
    const struct jval *exclusive = exclusive_of(all, node);
    return exclusive != NULL ? exclusive == limit : limit_selects(limit, node);
}

static bool ledger_has(const struct jval *limit, struct str uid)
{
    JVAL_EACH (jval_at(limit, "status.reservations"), entry) {
        if (str_eq(jval_str(jval_get(entry, STR("requestUID"))), uid)) {
            return true;
        }
    }
    return false;
}

/* Targets in the ledger, each once. */
static uint32_t ledger_targets(const struct jval *limit)
{
    uint32_t n = 0;
    const struct jval *list = jval_at(limit, "status.reservations");
    JVAL_EACH (list, entry) {
        struct str target = jval_str(jval_get(entry, STR("target")));
        bool first = true;
        JVAL_EACH (list, other) {
            if (other == entry) {
                break;
            }
            first = first && !str_eq(jval_str(jval_get(other, STR("target"))), target);
        }
        n += first ? 1 : 0;
    }
    return n;
}

/* What is there when controllers begin is known to them. */
static usec_t settled_after(const struct budget *b)
{
    return b->now > 0 ? b->now + BUDGET_SETTLED : 0;
}

/* Nobody's watch can have missed what people did to limits and to that node. */
static bool is_settled(struct budget *b, struct str node)
{
    const struct budget_node *n = map_find(&b->nodes, node);
    return b->now >= b->settles_at && (n == NULL || b->now >= n->settles_at);
}

struct lock_search {
    struct str target;
    struct str holder;
    bool found;
};

static void lock_visit(void *ctx, const struct jval *lease)
{
    struct lock_search *search = ctx;
    struct str target =
        jval_str(jval_get(jval_at(lease, "metadata.annotations"), STR("repairman.k8s.io/target")));
    if (str_starts(text_at(lease, "metadata.name"), STR("target-")) &&
        str_ends(target, search->target)) {
        search->found = true;
        search->holder = text_at(lease, "spec.holderIdentity");
    }
}

/* Who has the lock of a node; empty: nobody. */
static struct str lock_holder(struct budget *b, struct str node)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct lock_search search = { .target = arena_concat(&tmp, STR("/"), node) };
    apiserver_each(b->server, STR("coordination.k8s.io"), STR("leases"), STR("default"), lock_visit,
                   &search);
    return search.holder;
}

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
    p->n += limit_selects(p->limit, node) && (exclusive == NULL || exclusive == p->limit) ? 1 : 0;
}

static void populations_note(struct budget *b)
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

/* I1, INV-1: what the limit and its ledger say is what the writer knew. */
static void check_grant(struct budget *b, struct str writer, const struct jval *limit,
                        const struct jval *entry)
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
    } else if (gap > 0 && l->grant_at > 0 && b->now - l->grant_at < gap - GAP_SLACK) {
        promise_break(b->promise,
                      "I2: " STR_FMT " reserves a place for " STR_FMT " under " STR_FMT
                      " %lld ms after the last, not %lld",
                      STR_ARG(writer), STR_ARG(who), STR_ARG(name),
                      (long long)((b->now - l->grant_at) / 1000), (long long)(gap / 1000));
    }
    l->grant_at = b->now;
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
            check_grant(b, writer, limit, entry);
        }
    }
}

/* For the first time, and by the one that was elected: what is still on its way to take away a
 * grant before this one, or what another that believes to lead takes away, is not told from this
 * one's. */
static bool is_alone(const struct budget *b, const struct budget_request *r)
{
    return b->elect && r->grants == 1;
}

static bool is_held(struct budget *b, const struct budget_request *r)
{
    return r->granted && is_alone(b, r) &&
           is_given(apiserver_find(b->server, BUDGET_GROUP, BUDGET_REQUESTS, STR(""), r->name));
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
        const struct jval *request =
            apiserver_find(b->server, BUDGET_GROUP, BUDGET_REQUESTS, STR(""), r->name);
        bool applies = limit_applies(&all, limit, node);
        if (is_held(b, r) && applies && is_settled(b, target)) {
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

static void on_limit(struct budget *b, const struct apiserver_commit *commit)
{
    populations_note(b);
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

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

struct rivals {
    struct budget *b;
    const struct budget_request *mine;
    struct str other;
};

static void rival_visit(void *ctx, const struct jval *request)
{
    struct rivals *rivals = ctx;
    const struct budget_request *r =
        map_find(&rivals->b->requests, text_at(request, "metadata.uid"));
    if (r != NULL && r != rivals->mine && r->granted && is_given(request) &&
        str_eq(r->target, rivals->mine->target)) {
        rivals->other = r->name;
    }
}

/* INV-2, INV-4: an approval rests on the lock of its target and on a reservation under each limit.
 */
static void check_approval(struct budget *b, struct str writer, const struct budget_request *r)
{
    struct all_limits all = limits_of(b);
    const struct jval *node = node_of(b, r->target);
    struct rivals rivals = { .b = b, .mine = r };
    struct str holder = lock_holder(b, r->target);
    apiserver_each(b->server, BUDGET_GROUP, BUDGET_REQUESTS, STR(""), rival_visit, &rivals);
    if (rivals.other.n > 0) {
        promise_break(b->promise, "INV-4: " STR_FMT " approves " STR_FMT " and " STR_FMT " for one",
                      STR_ARG(writer), STR_ARG(r->name), STR_ARG(rivals.other));
    } else if (!str_eq(holder, r->uid) && is_alone(b, r)) {
        promise_break(b->promise,
                      "INV-4: " STR_FMT " approves " STR_FMT
                      " without the lock of its target, which '" STR_FMT "' has",
                      STR_ARG(writer), STR_ARG(r->name), STR_ARG(holder));
    }
    bool judged = node != NULL && is_alone(b, r) && is_settled(b, r->target);
    for (uint32_t i = 0; i < all.n && judged; i++) {
        const struct jval *limit = all.items[i].object;
        if (limit_applies(&all, limit, node) && !ledger_has(limit, r->uid)) {
            promise_break(b->promise,
                          "INV-2: " STR_FMT " approves " STR_FMT
                          " without a reservation under " STR_FMT,
                          STR_ARG(writer), STR_ARG(r->name), STR_ARG(all.items[i].name));
        }
    }
}

/* INV-5, INV-7: nothing is taken back before its time. */
static void check_revocation(struct budget *b, struct str writer, const struct budget_request *r,
                             const struct jval *old)
{
    usec_t work = SECONDS(TERMS_IN_PROGRESS_S);
    usec_t wait = SECONDS(TERMS_APPROVED_S);
    if (is_text(old, "spec.state", "InProgress") && b->now - r->begun_at < work) {
        promise_break(b->promise, "INV-7: " STR_FMT " ends the work of " STR_FMT " after %lld ms",
                      STR_ARG(writer), STR_ARG(r->name), (long long)(b->now - r->begun_at) / 1000);
    } else if (is_text(old, "spec.state", "Approved") && is_text(old, "status.phase", "Approved") &&
               r->granted && b->now - r->granted_at < wait) {
        promise_break(
            b->promise, "INV-7: " STR_FMT " takes the approval of " STR_FMT " back after %lld ms",
            STR_ARG(writer), STR_ARG(r->name), (long long)(b->now - r->granted_at) / 1000);
    }
}

static void on_state(struct budget *b, const struct apiserver_commit *commit,
                     struct budget_request *r)
{
    struct str writer = commit->user_agent;
    struct str was = text_at(commit->old, "spec.state");
    struct str is = text_at(commit->now, "spec.state");
    bool ours = is_controller(writer);
    if (str_eq(was, is)) {
        return;
    }
    if (ours && str_eq(is, STR("InProgress"))) {
        promise_break(b->promise, "INV-5: " STR_FMT " begins the work of " STR_FMT, STR_ARG(writer),
                      STR_ARG(r->name));
    } else if (ours && str_eq(is, STR("Approved"))) {
        check_approval(b, writer, r);
        r->granted = true;
        r->granted_at = b->now;
    } else if (ours) {
        check_revocation(b, writer, r, commit->old);
    }
    if (str_eq(is, STR("InProgress"))) {
        r->begun_at = b->now;
    } else if (!str_eq(is, STR("Approved"))) {
        r->granted = false;
    }
}

static void on_request(struct budget *b, const struct apiserver_commit *commit)
{
    const struct jval *object = commit->now != NULL ? commit->now : commit->old;
    struct str uid = text_at(object, "metadata.uid");
    struct budget_request *r = find_or_make(b, &b->requests, uid, sizeof(*r));
    if (r->uid.n == 0) {
        r->uid = arena_str(&b->memory, uid);
        r->name = arena_str(&b->memory, commit->name);
        r->target = arena_str(&b->memory, text_at(object, "spec.name"));
        r->over_at = USEC_NEVER;
    }
    bool over = commit->now == NULL || is_over(commit->now);
    r->over_at = !over ? USEC_NEVER : MIN(r->over_at, b->now);
    if (commit->now == NULL) {
        r->granted = false;
        return;
    }
    on_state(b, commit, r);
    if (is_text(commit->now, "status.phase", "Preparing") &&
        !is_text(commit->old, "status.phase", "Preparing")) {
        r->reserved_at = b->now;
        r->grants++;
    }
    if (is_text(commit->now, "status.phase", "Expired") &&
        !is_text(commit->old, "status.phase", "Expired") &&
        b->now - r->begun_at < SECONDS(TERMS_IN_PROGRESS_S)) {
        promise_break(b->promise, "INV-7: " STR_FMT " expires after %lld ms of work",
                      STR_ARG(r->name), (long long)(b->now - r->begun_at) / 1000);
    }
}

/* ── locks ─────────────────────────────────────────────────────────────────────────────────── */

static void on_lock(struct budget *b, const struct apiserver_commit *commit)
{
    struct str holder = text_at(commit->old, "spec.holderIdentity");
    const struct budget_request *r = map_find(&b->requests, holder);
    if (commit->now != NULL && commit->old != NULL) {
        promise_break(b->promise, "INV-4: " STR_FMT " changes a lock", STR_ARG(commit->user_agent));
    }
    if (commit->now != NULL || r == NULL) {
        return;
    }
    if (is_held(b, r)) {
        promise_break(b->promise,
                      "INV-3: " STR_FMT " drops the lock of " STR_FMT " under an approval",
                      STR_ARG(commit->user_agent), STR_ARG(r->name));
    }
}

/* ── nodes ─────────────────────────────────────────────────────────────────────────────────── */

static bool is_cordoned(const struct jval *node)
{
    return jval_bool(jval_at(node, "spec.unschedulable"), false);
}

/* I4, INV-8: only a cordon with our mark is lifted, and never one that was made by hand. */
static void check_cordon(struct budget *b, const struct apiserver_commit *commit,
                         struct budget_node *n)
{
    struct str writer = commit->user_agent;
    bool was = is_cordoned(commit->old);
    bool is = is_cordoned(commit->now);
    if (was && !is && (mark_of(commit->old).n == 0 || n->foreign)) {
        promise_break(b->promise, "I4: " STR_FMT " uncordons " STR_FMT " that another cordoned",
                      STR_ARG(writer), STR_ARG(commit->name));
    } else if (!was && is && mark_of(commit->now).n == 0) {
        promise_break(b->promise, "I4: " STR_FMT " cordons " STR_FMT " without its mark",
                      STR_ARG(writer), STR_ARG(commit->name));
    } else if (was && !is && mark_of(commit->now).n > 0) {
        promise_break(b->promise, "I4: " STR_FMT " leaves its mark on " STR_FMT, STR_ARG(writer),
                      STR_ARG(commit->name));
    }
}

/* A profile's step into maintenance needs what an approval needs. */
static void check_profile(struct budget *b, const struct apiserver_commit *commit)
{
    struct all_limits all = limits_of(b);
    struct str uid = text_at(commit->now, "metadata.uid");
    struct str holder = lock_holder(b, commit->name);
    if (!str_eq(holder, uid)) {
        promise_break(b->promise,
                      "INV-4: " STR_FMT " takes " STR_FMT
                      " into maintenance without its lock, which '" STR_FMT "' has",
                      STR_ARG(commit->user_agent), STR_ARG(commit->name), STR_ARG(holder));
    }
    for (uint32_t i = 0; i < all.n && is_settled(b, commit->name); i++) {
        const struct jval *limit = all.items[i].object;
        if (limit_applies(&all, limit, commit->now) && !ledger_has(limit, uid)) {
            promise_break(b->promise,
                          "INV-2: " STR_FMT " takes " STR_FMT
                          " into maintenance without a reservation under " STR_FMT,
                          STR_ARG(commit->user_agent), STR_ARG(commit->name),
                          STR_ARG(all.items[i].name));
        }
    }
}

static bool in_maintenance(const struct jval *node)
{
    return str_eq(jval_str(jval_get(jval_at(node, "metadata.labels"), STATE_LABEL)),
                  STR("in-maintenance"));
}

static void on_node(struct budget *b, const struct apiserver_commit *commit)
{
    struct budget_node *n = find_or_make(b, &b->nodes, commit->name, sizeof(*n));
    bool ours = is_controller(commit->user_agent);
    if (commit->old == NULL || commit->now == NULL ||
        !str_eq(class_of(commit->old), class_of(commit->now))) {
        n->settles_at = settled_after(b);
        populations_note(b);
    }
    if (commit->old == NULL || commit->now == NULL) {
        n->foreign = is_cordoned(commit->now);
        return;
    }
    if (ours) {
        check_cordon(b, commit, n);
        /* Two that both believe to lead ask for a node under the same uid: neither can tell its own
         * reservation from the other's. */
        if (b->elect && in_maintenance(commit->now) && !in_maintenance(commit->old)) {
            check_profile(b, commit);
        }
        if (!str_eq(mark_of(commit->old), mark_of(commit->now))) {
            n->marked_by = arena_str(&b->memory, commit->user_agent);
        }
    }
    if (is_cordoned(commit->old) != is_cordoned(commit->now)) {
        n->foreign = !ours && is_cordoned(commit->now) && mark_of(commit->now).n == 0;
    }
}

void budget_on_commit(struct budget *b, const struct apiserver_commit *commit, usec_t now)
{
    bool lock = str_eq(commit->plural, STR("leases")) && str_starts(commit->name, STR("target-"));
    bool node = str_eq(commit->plural, STR("nodes"));
    bool limit = str_eq(commit->plural, BUDGET_LIMITS);
    bool request = str_eq(commit->plural, BUDGET_REQUESTS);
    b->now = now;
    if (is_controller(commit->user_agent) && (lock || node || limit || request)) {
        b->writes++;
    }
    if (lock) {
        on_lock(b, commit);
    } else if (node) {
        on_node(b, commit);
    } else if (limit) {
        on_limit(b, commit);
    } else if (request) {
        on_request(b, commit);
    }
}

/* ── the wire ──────────────────────────────────────────────────────────────────────────────── */

bool budget_is_leaders(const struct api_request *request)
{
    return request->verb != API_GET && (str_starts(request->path, STR("/api/v1/nodes/")) ||
                                        str_contains(request->path, STR("/pods/")) ||
                                        str_starts(request->path, STR("/apis/repairman.k8s.io/")) ||
                                        str_contains(request->path, STR("/leases/target-")) ||
                                        str_contains(request->body, STR("\"name\":\"target-")));
}

static usec_t read_at(struct budget *b, struct str who, struct str path)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct budget_read *read = map_find(&b->reads, arena_concat(&tmp, who, path));
    return read != NULL ? read->at : -1;
}

/* INV-13, G6: what an approval rests on is read from the server after it was reserved. */
static void check_double(struct budget *b, struct str who, struct str name)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *request =
        apiserver_find(b->server, BUDGET_GROUP, BUDGET_REQUESTS, STR(""), name);
    const struct budget_request *r = map_find(&b->requests, text_at(request, "metadata.uid"));
    if (r == NULL) {
        return;
    }
    struct str node = arena_concat(&tmp, STR("/api/v1/nodes/"), r->target);
    if (read_at(b, who, node) < r->reserved_at ||
        read_at(b, who, STR("/apis/repairman.k8s.io/v1/maintenancelimits")) < r->reserved_at) {
        promise_break(b->promise,
                      "INV-13: " STR_FMT " approves " STR_FMT " without a look at the server",
                      STR_ARG(who), STR_ARG(name));
    }
}

void budget_on_send(struct budget *b, struct str who, const struct api_request *request, usec_t now)
{
    static const struct str requests = STR_INIT("/apis/repairman.k8s.io/v1/maintenancerequests/");
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    b->now = now;
    if (request->verb == API_GET) {
        struct budget_read *read =
            find_or_make(b, &b->reads, arena_concat(&tmp, who, request->path), sizeof(*read));
        read->at = now;
    } else if (request->verb == API_PATCH && str_starts(request->path, requests) &&
               str_contains(request->body, STR("\"state\":\"Approved\"")) &&
               !str_ends(request->path, STR("/status"))) {
        check_double(b, who, str_sub(request->path, requests.n, request->path.n));
    }
}

/* ── at rest ───────────────────────────────────────────────────────────────────────────────── */

static void rest_request(void *ctx, const struct jval *request)
{
    struct budget *b = ctx;
    struct str name = text_at(request, "metadata.name");
    struct str phase = text_at(request, "status.phase");
    struct str message = text_at(request, "status.message");
    bool ended = str_eq(phase, STR("Completed")) || str_eq(phase, STR("Rejected"));
    if (!ended && node_of(b, text_at(request, "spec.name")) != NULL) {
        promise_break(b->promise, "I8: " STR_FMT " is '" STR_FMT "' in the end: " STR_FMT,
                      STR_ARG(name), STR_ARG(phase), STR_ARG(message));
    }
}

static void rest_node(void *ctx, const struct jval *node)
{
    struct budget *b = ctx;
    struct str name = text_at(node, "metadata.name");
    bool kept = false;
    for (uint32_t i = 0; i < TERMS_LIMITS_MAX; i++) {
        kept = kept || b->terms.limits[i].keeps_cordon;
    }
    if (mark_of(node).n > 0 || (is_cordoned(node) && !kept)) {
        promise_break(b->promise, "I9: the cordon of " STR_FMT " is left in the end",
                      STR_ARG(name));
    }
}

static void rest_lock(void *ctx, const struct jval *lease)
{
    struct budget *b = ctx;
    struct str name = text_at(lease, "metadata.name");
    if (str_starts(name, STR("target-"))) {
        promise_break(b->promise, "I9: lock " STR_FMT " is left in the end", STR_ARG(name));
    }
}

static void rest_limit(void *ctx, const struct jval *limit)
{
    struct budget *b = ctx;
    struct str name = text_at(limit, "metadata.name");
    JVAL_EACH (jval_at(limit, "status.reservations"), entry) {
        struct str who = jval_str(jval_get(entry, STR("requestName")));
        promise_break(b->promise, "I9: the reservation of " STR_FMT " under " STR_FMT " is left",
                      STR_ARG(who), STR_ARG(name));
    }
}

void budget_at_rest(struct budget *b)
{
    apiserver_each(b->server, BUDGET_GROUP, BUDGET_REQUESTS, STR(""), rest_request, b);
    apiserver_each(b->server, STR(""), STR("nodes"), STR(""), rest_node, b);
    apiserver_each(b->server, STR("coordination.k8s.io"), STR("leases"), STR("default"), rest_lock,
                   b);
    apiserver_each(b->server, BUDGET_GROUP, BUDGET_LIMITS, STR(""), rest_limit, b);
}
