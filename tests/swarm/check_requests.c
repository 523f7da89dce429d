#include "tests/swarm/check_requests_internal.h"

void budget_done(struct budget *b)
{
    map_done(&b->requests);
    map_done(&b->nodes);
    map_done(&b->limits);
    map_done(&b->reads);
    arena_done(&b->memory);
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
    struct lock_search lock = lock_holder(b, r->target);
    int64_t grant = grant_of(request_of(b, r));
    apiserver_each(b->server, BUDGET_GROUP, BUDGET_REQUESTS, STR(""), rival_visit, &rivals);
    if (rivals.other.n > 0) {
        promise_break(b->promise, "INV-4: " STR_FMT " approves " STR_FMT " and " STR_FMT " for one",
                      STR_ARG(writer), STR_ARG(r->name), STR_ARG(rivals.other));
    } else if (!str_eq(lock.holder, r->uid) || lock.grant != grant) {
        promise_break(b->promise,
                      "INV-4: " STR_FMT " approves " STR_FMT
                      ", grant %lld, without the lock of its target, which '" STR_FMT
                      "' has, grant %lld",
                      STR_ARG(writer), STR_ARG(r->name), (long long)grant, STR_ARG(lock.holder),
                      (long long)lock.grant);
    }
    bool judged = node != NULL && is_settled(b, r->target);
    for (uint32_t i = 0; i < all.n && judged; i++) {
        const struct jval *limit = all.items[i].object;
        if (limit_applies(&all, limit, node) &&
            number_at(lease_grants_find(limit, r->uid), "grant", -1) != grant) {
            promise_break(b->promise,
                          "INV-2: " STR_FMT " approves " STR_FMT
                          ", grant %lld, without a reservation under " STR_FMT,
                          STR_ARG(writer), STR_ARG(r->name), (long long)grant,
                          STR_ARG(all.items[i].name));
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
    struct str node;
    if (str_cut_prefix(lock_target(commit->now != NULL ? commit->now : commit->old), STR("node//"),
                       &node)) {
        struct budget_node *n = find_or_make(b, &b->nodes, node, sizeof(*n));
        n->served = false;
    }
    if (commit->now != NULL && commit->old != NULL) {
        promise_break(b->promise, "INV-4: " STR_FMT " changes a lock", STR_ARG(commit->user_agent));
    }
    if (commit->now != NULL || r == NULL) {
        return;
    }
    if (budget_is_held(b, r, lock_grant(commit->old))) {
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
    struct str holder = lock_holder(b, commit->name).holder;
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

static bool is_not_ready(const struct jval *node)
{
    JVAL_EACH (jval_at(node, "status.conditions"), c) {
        if (str_eq(jval_str(jval_get(c, STR("type"))), STR("Ready"))) {
            return !str_eq(jval_str(jval_get(c, STR("status"))), STR("True"));
        }
    }
    return false;
}

static void trait_note(struct budget *b, struct budget_trait *t, bool is)
{
    /* What is so when controllers begin is known to them. */
    t->since = is && !t->is ? (b->now > 0 ? b->now : -BUDGET_SETTLED - 1) : t->since;
    t->last = is || t->is ? MAX(b->now, 1) : t->last;
    t->is = is;
}

static void on_node(struct budget *b, const struct apiserver_commit *commit)
{
    struct budget_node *n = find_or_make(b, &b->nodes, commit->name, sizeof(*n));
    trait_note(b, &n->not_ready, is_not_ready(commit->now));
    trait_note(b, &n->cordoned, is_cordoned(commit->now));
    bool ours = is_controller(commit->user_agent);
    if (commit->old == NULL || commit->now == NULL ||
        !str_eq(class_of(commit->old), class_of(commit->now))) {
        n->settles_at = settled_after(b);
        budget_count_nodes(b);
    }
    if (commit->old == NULL || commit->now == NULL) {
        n->foreign = is_cordoned(commit->now);
        n->served = false;
        return;
    }
    n->served = n->served || in_maintenance(commit->old) || in_maintenance(commit->now);
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
        budget_on_limit(b, commit);
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
