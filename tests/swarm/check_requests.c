#include "tests/swarm/check_requests_internal.h"

void check_requests_done(struct check_requests *b)
{
    map_done(&b->requests);
    map_done(&b->nodes);
    map_done(&b->limits);
    map_done(&b->reads);
    arena_done(&b->memory);
}
/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

struct other_grant {
    struct check_requests *b;
    const struct seen_request *own;
    struct str other;
};

static void other_grant_visit(void *ctx, const struct jval *request)
{
    struct other_grant *others = ctx;
    const struct seen_request *r =
        map_find(&others->b->requests, string_at(request, "metadata.uid"));
    if (r != NULL && r != others->own && r->granted && is_granted(request) &&
        str_eq(r->target, others->own->target)) {
        others->other = r->name;
    }
}

/* R2, R4: an approval rests on the lock of its target and on a reservation under each limit.
 */
static void check_approval(struct check_requests *b, struct str writer,
                           const struct seen_request *r)
{
    struct all_limits all = limits_list(b);
    const struct jval *node = node_find(b, r->target);
    struct other_grant others = { .b = b, .own = r };
    struct lock_search lock = lock_find(b, r->target);
    int64_t grant = request_grant(request_find(b, r));
    apiserver_each(b->server, CHECK_REPAIRMAN_GROUP, CHECK_REQUESTS_PLURAL, STR(""),
                   other_grant_visit, &others);
    if (others.other.n > 0) {
        check_violation(b->basic, "R4: " STR_FMT " approves " STR_FMT " and " STR_FMT " for one",
                        STR_ARG(writer), STR_ARG(r->name), STR_ARG(others.other));
    } else if (!str_eq(lock.holder, r->uid) || lock.grant != grant) {
        check_violation(b->basic,
                        "R4: " STR_FMT " approves " STR_FMT
                        ", grant %lld, without the lock of its target, which '" STR_FMT
                        "' has, grant %lld",
                        STR_ARG(writer), STR_ARG(r->name), (long long)grant, STR_ARG(lock.holder),
                        (long long)lock.grant);
    }
    bool judged = node != NULL && watches_synced(b, r->target);
    for (uint32_t i = 0; i < all.n && judged; i++) {
        const struct jval *limit = all.items[i].object;
        if (limit_applies(&all, limit, node) &&
            number_at(lease_grants_find(limit, r->uid), "grant", -1) != grant) {
            check_violation(b->basic,
                            "R2: " STR_FMT " approves " STR_FMT
                            ", grant %lld, without a reservation under " STR_FMT,
                            STR_ARG(writer), STR_ARG(r->name), (long long)grant,
                            STR_ARG(all.items[i].name));
        }
    }
}

/* R5, R7: nothing is taken back before its time. */
static void check_revocation(struct check_requests *b, struct str writer,
                             const struct seen_request *r, const struct jval *old)
{
    usec_t work = SECONDS(RANDOM_LIMITS_IN_PROGRESS_S);
    usec_t wait = SECONDS(RANDOM_LIMITS_APPROVED_S);
    if (string_is(old, "spec.state", "InProgress") && r->granted && b->now - r->started_at < work) {
        check_violation(b->basic, "R7: " STR_FMT " ends the work of " STR_FMT " after %lld ms",
                        STR_ARG(writer), STR_ARG(r->name),
                        (long long)(b->now - r->started_at) / 1000);
    } else if (string_is(old, "spec.state", "Approved") &&
               string_is(old, "status.phase", "Approved") && r->granted &&
               b->now - r->granted_at < wait) {
        check_violation(
            b->basic, "R7: " STR_FMT " takes the approval of " STR_FMT " back after %lld ms",
            STR_ARG(writer), STR_ARG(r->name), (long long)(b->now - r->granted_at) / 1000);
    }
}

static void on_state(struct check_requests *b, const struct apiserver_commit *commit,
                     struct seen_request *r)
{
    struct str writer = commit->user_agent;
    struct str was = string_at(commit->old, "spec.state");
    struct str is = string_at(commit->now, "spec.state");
    bool by_controller = is_controller(writer);
    if (str_eq(was, is)) {
        return;
    }
    if (by_controller && str_eq(is, STR("InProgress"))) {
        check_violation(b->basic, "R5: " STR_FMT " begins the work of " STR_FMT, STR_ARG(writer),
                        STR_ARG(r->name));
    } else if (by_controller && str_eq(is, STR("Approved"))) {
        check_approval(b, writer, r);
        r->granted = true;
        r->ever_granted = true;
        r->granted_at = b->now;
    } else if (by_controller) {
        check_revocation(b, writer, r, commit->old);
    }
    if (str_eq(is, STR("InProgress"))) {
        r->started_at = b->now;
    } else if (!str_eq(is, STR("Approved"))) {
        r->granted = false;
    }
}

static bool is_with_actor(const struct jval *request)
{
    return string_is(request, "status.phase", "Approved") ||
           string_is(request, "status.phase", "InProgress");
}

/* R17: what says Approved or InProgress of its own counts as granted only if it is older than the
 * ledger, and no controller has seen it before. */
static void on_phase(struct check_requests *b, const struct apiserver_commit *commit,
                     struct seen_request *r)
{
    if (!is_controller(commit->user_agent) || !is_with_actor(commit->now) ||
        is_with_actor(commit->old)) {
        return;
    }
    struct str was = string_at(commit->old, "status.phase");
    if (str_eq(was, STR("Preparing"))) {
        r->granted = true; /* it was reserved and checked */
        r->ever_granted = true;
    } else if (!r->ever_granted && (was.n > 0 || !is_older_than_ledger(b, commit->now))) {
        check_violation(b->basic,
                        "R17: " STR_FMT " counts " STR_FMT " as granted, which says so of its own",
                        STR_ARG(commit->user_agent), STR_ARG(r->name));
    }
}

static void on_request(struct check_requests *b, const struct apiserver_commit *commit)
{
    const struct jval *object = commit->now != NULL ? commit->now : commit->old;
    struct str uid = string_at(object, "metadata.uid");
    struct seen_request *r = find_or_add(b, &b->requests, uid, sizeof(*r));
    if (r->uid.n == 0) {
        r->uid = arena_str(&b->memory, uid);
        r->name = arena_str(&b->memory, commit->name);
        r->target = arena_str(&b->memory, string_at(object, "spec.name"));
        r->finished_at = USEC_NEVER;
    }
    bool finished = commit->now == NULL || is_finished(commit->now);
    r->finished_at = !finished ? USEC_NEVER : MIN(r->finished_at, b->now);
    if (commit->now == NULL) {
        r->granted = false;
        return;
    }
    on_state(b, commit, r);
    on_phase(b, commit, r);
    if (string_is(commit->now, "status.phase", "Preparing") &&
        !string_is(commit->old, "status.phase", "Preparing")) {
        r->reserved_at = b->now;
    }
    if (string_is(commit->now, "status.phase", "Expired") &&
        !string_is(commit->old, "status.phase", "Expired") &&
        b->now - r->started_at < SECONDS(RANDOM_LIMITS_IN_PROGRESS_S)) {
        check_violation(b->basic, "R7: " STR_FMT " expires after %lld ms of work", STR_ARG(r->name),
                        (long long)(b->now - r->started_at) / 1000);
    }
}

/* ── locks ─────────────────────────────────────────────────────────────────────────────────── */

static void on_lock(struct check_requests *b, const struct apiserver_commit *commit)
{
    struct str holder = string_at(commit->old, "spec.holderIdentity");
    const struct seen_request *r = map_find(&b->requests, holder);
    struct str node;
    if (str_cut_prefix(lock_target(commit->now != NULL ? commit->now : commit->old), STR("node//"),
                       &node)) {
        struct seen_node *n = find_or_add(b, &b->nodes, node, sizeof(*n));
        n->was_in_maintenance = false;
    }
    if (commit->now != NULL && commit->old != NULL) {
        check_violation(b->basic, "R4: " STR_FMT " changes a lock", STR_ARG(commit->user_agent));
    }
    if (commit->now != NULL || r == NULL) {
        return;
    }
    if (check_requests_grant_in_use(b, r, lock_grant(commit->old))) {
        check_violation(b->basic, "R3: " STR_FMT " drops the lock of " STR_FMT " under an approval",
                        STR_ARG(commit->user_agent), STR_ARG(r->name));
    }
}

/* ── nodes ─────────────────────────────────────────────────────────────────────────────────── */

static bool is_cordoned(const struct jval *node)
{
    return jval_bool(jval_at(node, "spec.unschedulable"), false);
}

/* I4, R8: only a cordon with our mark is lifted, and never one that was made by hand. */
static void check_cordon(struct check_requests *b, const struct apiserver_commit *commit,
                         struct seen_node *n)
{
    struct str writer = commit->user_agent;
    bool was = is_cordoned(commit->old);
    bool is = is_cordoned(commit->now);
    if (was && !is && (cordon_mark(commit->old).n == 0 || n->by_hand)) {
        check_violation(b->basic, "I4: " STR_FMT " uncordons " STR_FMT " that another cordoned",
                        STR_ARG(writer), STR_ARG(commit->name));
    } else if (!was && is && cordon_mark(commit->now).n == 0) {
        check_violation(b->basic, "I4: " STR_FMT " cordons " STR_FMT " without its mark",
                        STR_ARG(writer), STR_ARG(commit->name));
    } else if (was && !is && cordon_mark(commit->now).n > 0) {
        check_violation(b->basic, "I4: " STR_FMT " leaves its mark on " STR_FMT, STR_ARG(writer),
                        STR_ARG(commit->name));
    }
}

/* A profile's step into maintenance needs what an approval needs. */
static void check_profile_grant(struct check_requests *b, const struct apiserver_commit *commit)
{
    struct all_limits all = limits_list(b);
    struct str uid = string_at(commit->now, "metadata.uid");
    struct str holder = lock_find(b, commit->name).holder;
    if (!str_eq(holder, uid)) {
        check_violation(b->basic,
                        "R4: " STR_FMT " takes " STR_FMT
                        " into maintenance without its lock, which '" STR_FMT "' has",
                        STR_ARG(commit->user_agent), STR_ARG(commit->name), STR_ARG(holder));
    }
    for (uint32_t i = 0; i < all.n && watches_synced(b, commit->name); i++) {
        const struct jval *limit = all.items[i].object;
        if (limit_applies(&all, limit, commit->now) && !ledger_has(limit, uid)) {
            check_violation(b->basic,
                            "R2: " STR_FMT " takes " STR_FMT
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

static void flag_set(struct check_requests *b, struct seen_flag *t, bool is)
{
    /* What is so when controllers begin is known to them. */
    t->since = is && !t->is ? (b->now > 0 ? b->now : -CHECK_WATCH_LAG_MAX - 1) : t->since;
    t->last = is || t->is ? MAX(b->now, 1) : t->last;
    t->is = is;
}

static void on_node(struct check_requests *b, const struct apiserver_commit *commit)
{
    struct seen_node *n = find_or_add(b, &b->nodes, commit->name, sizeof(*n));
    flag_set(b, &n->not_ready, is_not_ready(commit->now));
    flag_set(b, &n->cordoned, is_cordoned(commit->now));
    bool by_controller = is_controller(commit->user_agent);
    if (commit->old == NULL || commit->now == NULL ||
        !str_eq(node_class(commit->old), node_class(commit->now))) {
        n->synced_at = watches_synced_at(b);
        check_requests_count_nodes(b);
    }
    if (commit->old == NULL || commit->now == NULL) {
        n->by_hand = is_cordoned(commit->now);
        n->was_in_maintenance = false;
        return;
    }
    n->was_in_maintenance =
        n->was_in_maintenance || in_maintenance(commit->old) || in_maintenance(commit->now);
    if (by_controller) {
        check_cordon(b, commit, n);
        /* Two that both believe to lead ask for a node under the same uid: neither can tell its own
         * reservation from the other's. */
        if (b->elect && in_maintenance(commit->now) && !in_maintenance(commit->old)) {
            check_profile_grant(b, commit);
        }
        if (!str_eq(cordon_mark(commit->old), cordon_mark(commit->now))) {
            n->marked_by = arena_str(&b->memory, commit->user_agent);
        }
    }
    if (is_cordoned(commit->old) != is_cordoned(commit->now)) {
        n->by_hand = !by_controller && is_cordoned(commit->now) && cordon_mark(commit->now).n == 0;
    }
}

void check_requests_on_commit(struct check_requests *b, const struct apiserver_commit *commit,
                              usec_t now)
{
    bool lock = str_eq(commit->plural, STR("leases")) && str_starts(commit->name, STR("target-"));
    bool node = str_eq(commit->plural, STR("nodes"));
    bool limit = str_eq(commit->plural, CHECK_LIMITS_PLURAL);
    bool request = str_eq(commit->plural, CHECK_REQUESTS_PLURAL);
    b->now = now;
    if (is_controller(commit->user_agent) && (lock || node || limit || request)) {
        b->writes++;
    }
    if (lock) {
        on_lock(b, commit);
    } else if (node) {
        on_node(b, commit);
    } else if (limit) {
        check_requests_on_limit(b, commit);
    } else if (request) {
        on_request(b, commit);
    }
}

/* ── the wire ──────────────────────────────────────────────────────────────────────────────── */

bool check_requests_is_leader_only(const struct api_request *request)
{
    return request->verb != API_GET && (str_starts(request->path, STR("/api/v1/nodes/")) ||
                                        str_contains(request->path, STR("/pods/")) ||
                                        str_starts(request->path, STR("/apis/repairman.k8s.io/")) ||
                                        str_contains(request->path, STR("/leases/target-")) ||
                                        str_contains(request->body, STR("\"name\":\"target-")));
}

static usec_t last_read_at(struct check_requests *b, struct str who, struct str path)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct seen_read *read = map_find(&b->reads, arena_concat(&tmp, who, path));
    return read != NULL ? read->at : -1;
}

/* R13: what an approval rests on is read from the server after it was reserved. */
static void check_recheck(struct check_requests *b, struct str who, struct str name)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *request =
        apiserver_find(b->server, CHECK_REPAIRMAN_GROUP, CHECK_REQUESTS_PLURAL, STR(""), name);
    const struct seen_request *r = map_find(&b->requests, string_at(request, "metadata.uid"));
    if (r == NULL) {
        return;
    }
    struct str node = arena_concat(&tmp, STR("/api/v1/nodes/"), r->target);
    if (last_read_at(b, who, node) < r->reserved_at ||
        last_read_at(b, who, STR("/apis/repairman.k8s.io/v1/maintenancelimits")) < r->reserved_at) {
        check_violation(b->basic,
                        "R13: " STR_FMT " approves " STR_FMT " without a look at the server",
                        STR_ARG(who), STR_ARG(name));
    }
}

void check_requests_on_send(struct check_requests *b, struct str who,
                            const struct api_request *request, usec_t now)
{
    static const struct str requests = STR_INIT("/apis/repairman.k8s.io/v1/maintenancerequests/");
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    b->now = now;
    if (request->verb == API_GET) {
        struct seen_read *read =
            find_or_add(b, &b->reads, arena_concat(&tmp, who, request->path), sizeof(*read));
        read->at = now;
    } else if (request->verb == API_PATCH && str_starts(request->path, requests) &&
               str_contains(request->body, STR("\"state\":\"Approved\"")) &&
               !str_ends(request->path, STR("/status"))) {
        check_recheck(b, who, str_sub(request->path, requests.n, request->path.n));
    }
}

/* ── at rest ───────────────────────────────────────────────────────────────────────────────── */

static void end_request(void *ctx, const struct jval *request)
{
    struct check_requests *b = ctx;
    struct str name = string_at(request, "metadata.name");
    struct str phase = string_at(request, "status.phase");
    struct str message = string_at(request, "status.message");
    bool ended = str_eq(phase, STR("Completed")) || str_eq(phase, STR("Rejected"));
    if (!ended && node_find(b, string_at(request, "spec.name")) != NULL) {
        check_violation(b->basic, "I8: " STR_FMT " is '" STR_FMT "' in the end: " STR_FMT,
                        STR_ARG(name), STR_ARG(phase), STR_ARG(message));
    }
}

static void end_node(void *ctx, const struct jval *node)
{
    struct check_requests *b = ctx;
    struct str name = string_at(node, "metadata.name");
    bool kept = false;
    for (uint32_t i = 0; i < RANDOM_LIMITS_MAX; i++) {
        kept = kept || b->random.limits[i].keeps_cordon;
    }
    if (cordon_mark(node).n > 0 || (is_cordoned(node) && !kept)) {
        check_violation(b->basic, "I9: the cordon of " STR_FMT " is left in the end",
                        STR_ARG(name));
    }
}

static void end_lock(void *ctx, const struct jval *lease)
{
    struct check_requests *b = ctx;
    struct str name = string_at(lease, "metadata.name");
    if (str_starts(name, STR("target-"))) {
        check_violation(b->basic, "I9: lock " STR_FMT " is left in the end", STR_ARG(name));
    }
}

static void end_limit(void *ctx, const struct jval *limit)
{
    struct check_requests *b = ctx;
    struct str name = string_at(limit, "metadata.name");
    JVAL_EACH (jval_at(limit, "status.reservations"), entry) {
        struct str who = jval_str(jval_get(entry, STR("requestName")));
        check_violation(b->basic, "I9: the reservation of " STR_FMT " under " STR_FMT " is left",
                        STR_ARG(who), STR_ARG(name));
    }
}

void check_requests_at_end(struct check_requests *b)
{
    apiserver_each(b->server, CHECK_REPAIRMAN_GROUP, CHECK_REQUESTS_PLURAL, STR(""), end_request,
                   b);
    apiserver_each(b->server, STR(""), STR("nodes"), STR(""), end_node, b);
    apiserver_each(b->server, STR("coordination.k8s.io"), STR("leases"), STR("default"), end_lock,
                   b);
    apiserver_each(b->server, CHECK_REPAIRMAN_GROUP, CHECK_LIMITS_PLURAL, STR(""), end_limit, b);
}
