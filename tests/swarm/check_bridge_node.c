/*
 * What is judged of the Nodes of workload clusters: whose marks they get, and that approvals stay
 * the engine's.
 */
#include "tests/swarm/check_bridge_internal.h"

#include "kinds/keys.h"

static const struct str node_labels[] = {
    STR_INIT(KEYS_LEGACY "machine-deleted"),
    STR_INIT(KEYS_LEGACY "machine-maintenance"),
    STR_INIT(KEYS_LEGACY "approve-deletion"),
    STR_INIT(KEYS_LEGACY "approve-maintenance"),
};
static const struct str node_annotations[] = {
    STR_INIT(KEYS_OWN "deletion-request"),      STR_INIT(KEYS_OWN "maintenance-request"),
    STR_INIT(KEYS_OWN "deletion-approved-for"), STR_INIT(KEYS_OWN "maintenance-approved-for"),
    STR_INIT(KEYS_OWN "drain-rules"),
};

/* One write of a bridge to a Node. */
struct node_write {
    struct check_bridge *t;
    uint32_t cluster;
    struct str who;
    struct str name;
    const struct jval *old;
    const struct jval *now;
    usec_t lag;
};

/* B4: only what belongs to this cluster, and names this Node, leaves its mark on it. */
static void check_marked_machine(const struct node_write *a, struct str request)
{
    const struct check_bridge_machine *m = check_bridge_requester(a->t, request);
    const struct check_bridge_cluster *c = &a->t->clusters[a->cluster];
    if (m == NULL || m->cluster != a->cluster || m->incarnation != c->incarnation ||
        !str_eq(m->node, a->name)) {
        check_violation(a->t->basic,
                        "B4: " STR_FMT " marks Node " STR_FMT " of " STR_FMT "/" STR_FMT
                        " for a Machine that does not have it: '" STR_FMT "'",
                        STR_ARG(a->who), STR_ARG(a->name), STR_ARG(c->namespace), STR_ARG(c->name),
                        STR_ARG(request));
    } else if (m->gone && a->t->now - m->gone_at >= a->lag) {
        check_violation(
            a->t->basic,
            "B4: " STR_FMT " marks Node " STR_FMT " for a Machine that has been gone for %lld ms",
            STR_ARG(a->who), STR_ARG(a->name), (long long)(a->t->now - m->gone_at) / 1000);
    }
}

static void check_request(const struct node_write *a, enum check_bridge_kind kind)
{
    struct check_bridge_keys keys = request_keys(kind);
    const struct check_bridge_node *n = check_bridge_node(a->t, a->cluster, a->name);
    struct str was = annotation_of(a->old, keys.request);
    struct str is = annotation_of(a->now, keys.request);
    bool requested = label_is_true(a->now, keys.requested);
    bool was_approved = label_is_true(a->old, keys.approval);
    bool approved = label_is_true(a->now, keys.approval);
    bool is_new = requested && (!str_eq(was, is) || !label_is_true(a->old, keys.requested));
    /* An answer that names the request cannot have been given for another one; and what has been
     * let go, or granted, is not asked again. */
    const struct check_bridge_machine *m = check_bridge_requester(a->t, is);
    bool for_this_request = str_eq(annotation_of(a->now, keys.approved_for), is) ||
                            (m != NULL && m->released) ||
                            check_bridge_request(a->t, kind, is)->granted;
    if (requested && is.n == 0) {
        check_violation(a->t->basic,
                        "B14: " STR_FMT " leaves " STR_FMT " on Node " STR_FMT
                        " without saying what it stands for",
                        STR_ARG(a->who), STR_ARG(keys.requested), STR_ARG(a->name));
    } else if (approved && !was_approved) {
        check_violation(a->t->basic, "B7: " STR_FMT " approves Node " STR_FMT " itself",
                        STR_ARG(a->who), STR_ARG(a->name));
    } else if (is_new && approved && !for_this_request && !a->t->options.strict) {
        check_violation(a->t->basic,
                        "B3: " STR_FMT " asks Node " STR_FMT
                        " anew and leaves the approval of before",
                        STR_ARG(a->who), STR_ARG(a->name));
    } else if (was_approved && !approved && !is_new &&
               !timed_flag_set_for(&n->unrequested[kind], a->t->now, CHECK_BRIDGE_APPROVAL_KEPT)) {
        check_violation(a->t->basic,
                        "B16: " STR_FMT " takes the approval of Node " STR_FMT
                        " away, which the engine has not had 60 s for",
                        STR_ARG(a->who), STR_ARG(a->name));
    }
    if (is.n > 0 && !str_eq(was, is)) {
        check_marked_machine(a, is);
    }
}

/* B6: an answer may be on its way when a pause begins, so one that is young is not judged. */
static void check_pause(const struct node_write *a)
{
    const struct check_bridge_machine *m = check_bridge_node_owner(a->t, a->cluster, a->name);
    const struct check_bridge_cluster *c = &a->t->clusters[a->cluster];
    if (timed_flag_set_for(&c->paused, a->t->now, a->lag) ||
        (m != NULL && timed_flag_set_for(&m->paused, a->t->now, a->lag))) {
        check_violation(a->t->basic,
                        "B6: " STR_FMT " writes to Node " STR_FMT " of " STR_FMT "/" STR_FMT
                        ", which is paused",
                        STR_ARG(a->who), STR_ARG(a->name), STR_ARG(c->namespace), STR_ARG(c->name));
    }
}

static void check_node_write(const struct node_write *a)
{
    static const struct check_bridge_allowed span = { node_labels, ARRAY_LEN(node_labels),
                                                      node_annotations,
                                                      ARRAY_LEN(node_annotations) };
    if (!check_bridge_only_changed(a->old, a->now, &span)) {
        check_violation(a->t->basic,
                        "B7: " STR_FMT " changes more of Node " STR_FMT " than is its business",
                        STR_ARG(a->who), STR_ARG(a->name));
        return;
    }
    for (unsigned kind = 0; kind < CHECK_BRIDGE_KINDS; kind++) {
        check_request(a, (enum check_bridge_kind)kind);
    }
    check_pause(a);
}

/* ── what is so from now on ────────────────────────────────────────────────────────────────── */

/* An approval stands beside its request, on the Node that the request's Machine has. */
static void remember_approval(struct check_bridge *t, uint32_t cluster,
                              const struct apiserver_commit *commit, enum check_bridge_kind kind)
{
    struct check_bridge_keys keys = request_keys(kind);
    struct str request = annotation_of(commit->now, keys.request);
    struct str approved_for = annotation_of(commit->now, keys.approved_for);
    const struct check_bridge_machine *m = check_bridge_requester(t, request);
    if (!label_is_true(commit->now, keys.requested) || !label_is_true(commit->now, keys.approval) ||
        m == NULL || m->cluster != cluster || m->incarnation != t->clusters[cluster].incarnation ||
        !str_eq(m->node, commit->name) ||
        (approved_for.p != NULL && !str_eq(approved_for, request))) {
        return;
    }
    check_bridge_request(t, kind, request)->approval =
        check_bridge_node(t, cluster, commit->name)->approvals[kind];
}

static void node_update(struct check_bridge *t, uint32_t cluster,
                        const struct apiserver_commit *commit)
{
    struct check_bridge_node *n = check_bridge_node(t, cluster, commit->name);
    const struct jval *now = commit->now;
    timed_flag_set(&n->absent, now == NULL, t->now);
    timed_flag_set(&n->unmanaged, now != NULL && !is_managed(now), t->now);
    for (unsigned i = 0; i < CHECK_BRIDGE_KINDS; i++) {
        enum check_bridge_kind kind = (enum check_bridge_kind)i;
        struct check_bridge_keys keys = request_keys(kind);
        bool approved = now != NULL && label_is_true(now, keys.approval);
        if (approved && !n->approved[i].is) {
            n->approvals[i] = ARENA_NEW(&t->memory, struct check_bridge_approval);
        }
        timed_flag_set(&n->approved[i], approved, t->now);
        timed_flag_set(&n->unrequested[i], now != NULL && !label_is_true(now, keys.requested),
                       t->now);
        if (now != NULL) {
            remember_approval(t, cluster, commit, kind);
        }
    }
}

void check_bridge_on_node(struct check_bridge *t, uint32_t cluster,
                          const struct apiserver_commit *commit)
{
    (void)check_bridge_node(t, cluster, commit->name);
    if (is_bridge(commit->user_agent)) {
        if (commit->old == NULL || commit->now == NULL) {
            check_violation(t->basic, "B7: " STR_FMT " makes or removes Node " STR_FMT,
                            STR_ARG(commit->user_agent), STR_ARG(commit->name));
            return;
        }
        struct node_write act = {
            .t = t,
            .cluster = cluster,
            .who = commit->user_agent,
            .name = commit->name,
            .old = commit->old,
            .now = commit->now,
            .lag = check_bridge_lag(t, commit->user_agent, cluster),
        };
        check_node_write(&act);
        check_bridge_drain_rules(t, cluster, commit, act.lag);
    }
    node_update(t, cluster, commit);
    if (commit->now != NULL) {
        return;
    }
    MAP_EACH (&t->machines, item) {
        struct check_bridge_machine *m = map_item_value(item);
        if (!m->gone && m->cluster == cluster && str_eq(m->node, commit->name) && m->deleting &&
            m->absent_first == 0) {
            m->absent_first = MAX(t->now, (usec_t)1);
        }
    }
}
