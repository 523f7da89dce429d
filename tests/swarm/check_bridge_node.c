/*
 * What is judged of the Nodes of workload clusters: whose marks they get, and that approvals stay
 * the engine's.
 */
#include "tests/swarm/check_bridge_internal.h"

static const struct str node_labels[] = {
    STR_INIT(KEYS_LEGACY "machine-deleted"),
    STR_INIT(KEYS_LEGACY "machine-maintenance"),
    STR_INIT(KEYS_LEGACY "approve-deletion"),
    STR_INIT(KEYS_LEGACY "approve-maintenance"),
};
static const struct str node_notes[] = {
    STR_INIT(KEYS_OWN "deletion-request"),      STR_INIT(KEYS_OWN "maintenance-request"),
    STR_INIT(KEYS_OWN "deletion-approved-for"), STR_INIT(KEYS_OWN "maintenance-approved-for"),
    STR_INIT(KEYS_OWN "drain-rules"),
};

/* One write of a bridge to a Node. */
struct act {
    struct treaty *t;
    uint32_t cluster;
    struct str who;
    struct str name;
    const struct jval *old;
    const struct jval *now;
    usec_t lag;
};

/* INV-4: only what belongs to this cluster, and names this Node, leaves its mark on it. */
static void check_mark(const struct act *a, struct str request)
{
    const struct treaty_machine *m = treaty_asker(a->t, request);
    const struct treaty_cluster *c = &a->t->clusters[a->cluster];
    if (m == NULL || m->cluster != a->cluster || m->incarnation != c->incarnation ||
        !str_eq(m->node, a->name)) {
        promise_break(a->t->promise,
                      "INV-4: " STR_FMT " marks Node " STR_FMT " of " STR_FMT "/" STR_FMT
                      " for a Machine that does not have it: '" STR_FMT "'",
                      STR_ARG(a->who), STR_ARG(a->name), STR_ARG(c->space), STR_ARG(c->name),
                      STR_ARG(request));
    } else if (m->gone && a->t->now - m->gone_at >= a->lag) {
        promise_break(a->t->promise,
                      "INV-4: " STR_FMT " marks Node " STR_FMT
                      " for a Machine that has been gone for %lld ms",
                      STR_ARG(a->who), STR_ARG(a->name),
                      (long long)(a->t->now - m->gone_at) / 1000);
    }
}

static void check_request(const struct act *a, enum treaty_kind kind)
{
    struct treaty_keys keys = keys_of(kind);
    const struct treaty_node *n = treaty_node(a->t, a->cluster, a->name);
    struct str was = note_of(a->old, keys.request);
    struct str is = note_of(a->now, keys.request);
    bool asks = is_true(a->now, keys.asked);
    bool was_approved = is_true(a->old, keys.approval);
    bool approved = is_true(a->now, keys.approval);
    bool anew = asks && (!str_eq(was, is) || !is_true(a->old, keys.asked));
    /* An answer that names the request cannot have been given for another one; and what has been
     * let go, or granted, is not asked again. */
    const struct treaty_machine *m = treaty_asker(a->t, is);
    bool ours = str_eq(note_of(a->now, keys.answers), is) || (m != NULL && m->released) ||
                treaty_request(a->t, kind, is)->granted;
    if (asks && is.n == 0) {
        promise_break(a->t->promise,
                      "B-7: " STR_FMT " leaves " STR_FMT " on Node " STR_FMT
                      " without saying what it stands for",
                      STR_ARG(a->who), STR_ARG(keys.asked), STR_ARG(a->name));
    } else if (approved && !was_approved) {
        promise_break(a->t->promise, "INV-7: " STR_FMT " approves Node " STR_FMT " itself",
                      STR_ARG(a->who), STR_ARG(a->name));
    } else if (anew && approved && !ours && !a->t->terms.strict) {
        promise_break(a->t->promise,
                      "INV-3: " STR_FMT " asks Node " STR_FMT
                      " anew and leaves the approval of before",
                      STR_ARG(a->who), STR_ARG(a->name));
    } else if (was_approved && !approved && !anew &&
               !trait_lasts(&n->unasked[kind], a->t->now, TREATY_QUIET)) {
        promise_break(a->t->promise,
                      "B-9: " STR_FMT " takes the approval of Node " STR_FMT
                      " away, which the engine has not had 60 s for",
                      STR_ARG(a->who), STR_ARG(a->name));
    }
    if (is.n > 0 && !str_eq(was, is)) {
        check_mark(a, is);
    }
}

/* INV-6: an answer may be on its way when a pause begins, so one that is young is not judged. */
static void check_pause(const struct act *a)
{
    const struct treaty_machine *m = treaty_owner(a->t, a->cluster, a->name);
    const struct treaty_cluster *c = &a->t->clusters[a->cluster];
    if (trait_lasts(&c->paused, a->t->now, a->lag) ||
        (m != NULL && trait_lasts(&m->paused, a->t->now, a->lag))) {
        promise_break(a->t->promise,
                      "INV-6: " STR_FMT " writes to Node " STR_FMT " of " STR_FMT "/" STR_FMT
                      ", which is paused",
                      STR_ARG(a->who), STR_ARG(a->name), STR_ARG(c->space), STR_ARG(c->name));
    }
}

static void check_act(const struct act *a)
{
    static const struct treaty_span span = { node_labels, ARRAY_LEN(node_labels), node_notes,
                                             ARRAY_LEN(node_notes) };
    if (!treaty_same_but(a->old, a->now, &span)) {
        promise_break(a->t->promise,
                      "INV-7: " STR_FMT " changes more of Node " STR_FMT " than is its business",
                      STR_ARG(a->who), STR_ARG(a->name));
        return;
    }
    for (unsigned kind = 0; kind < TREATY_KINDS; kind++) {
        check_request(a, (enum treaty_kind)kind);
    }
    check_pause(a);
}

/* ── what is so from now on ────────────────────────────────────────────────────────────────── */

/* An approval stands beside its request, on the Node that the request's Machine has. */
static void note_answer(struct treaty *t, uint32_t cluster, const struct apiserver_commit *commit,
                        enum treaty_kind kind)
{
    struct treaty_keys keys = keys_of(kind);
    struct str request = note_of(commit->now, keys.request);
    struct str answers = note_of(commit->now, keys.answers);
    const struct treaty_machine *m = treaty_asker(t, request);
    if (!is_true(commit->now, keys.asked) || !is_true(commit->now, keys.approval) || m == NULL ||
        m->cluster != cluster || m->incarnation != t->clusters[cluster].incarnation ||
        !str_eq(m->node, commit->name) || (answers.p != NULL && !str_eq(answers, request))) {
        return;
    }
    treaty_request(t, kind, request)->answer = treaty_node(t, cluster, commit->name)->setting[kind];
}

static void note_node(struct treaty *t, uint32_t cluster, const struct apiserver_commit *commit)
{
    struct treaty_node *n = treaty_node(t, cluster, commit->name);
    const struct jval *now = commit->now;
    trait_note(&n->absent, now == NULL, t->now);
    trait_note(&n->unmanaged, now != NULL && !is_managed(now), t->now);
    for (unsigned i = 0; i < TREATY_KINDS; i++) {
        enum treaty_kind kind = (enum treaty_kind)i;
        struct treaty_keys keys = keys_of(kind);
        bool approved = now != NULL && is_true(now, keys.approval);
        if (approved && !n->approved[i].is) {
            n->setting[i] = ARENA_NEW(&t->memory, struct treaty_setting);
        }
        trait_note(&n->approved[i], approved, t->now);
        trait_note(&n->unasked[i], now != NULL && !is_true(now, keys.asked), t->now);
        if (now != NULL) {
            note_answer(t, cluster, commit, kind);
        }
    }
}

void treaty_on_node(struct treaty *t, uint32_t cluster, const struct apiserver_commit *commit)
{
    (void)treaty_node(t, cluster, commit->name);
    if (is_bridge(commit->user_agent)) {
        if (commit->old == NULL || commit->now == NULL) {
            promise_break(t->promise, "INV-7: " STR_FMT " makes or removes Node " STR_FMT,
                          STR_ARG(commit->user_agent), STR_ARG(commit->name));
            return;
        }
        struct act act = {
            .t = t,
            .cluster = cluster,
            .who = commit->user_agent,
            .name = commit->name,
            .old = commit->old,
            .now = commit->now,
            .lag = treaty_lag(t, commit->user_agent, cluster),
        };
        check_act(&act);
        treaty_check_book(t, cluster, commit, act.lag);
    }
    note_node(t, cluster, commit);
    if (commit->now != NULL) {
        return;
    }
    MAP_EACH (&t->machines, item) {
        struct treaty_machine *m = map_item_value(item);
        if (!m->gone && m->cluster == cluster && str_eq(m->node, commit->name) && m->deleting &&
            m->absent_first == 0) {
            m->absent_first = MAX(t->now, (usec_t)1);
        }
    }
}
