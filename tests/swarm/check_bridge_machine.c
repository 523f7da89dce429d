/*
 * What is judged of Machines: hooks, approvals, pauses, and that nothing else is touched.
 */
#include "tests/swarm/check_bridge_internal.h"

static const struct str machine_labels[] = { STR_INIT(KEYS_LEGACY "maintenance") };
static const struct str machine_notes[] = {
    STR_INIT("pre-drain.delete.hook.machine.cluster.x-k8s.io/maintenance-controller"),
    STR_INIT("cluster.x-k8s.io/skip-remediation"),
    STR_INIT(KEYS_OWN "hook-released"),
    STR_INIT(KEYS_OWN "maintenance-granted"),
    STR_INIT(KEYS_OWN "maintenance-approved"),
    STR_INIT(KEYS_OWN "skip-remediation"),
    STR_INIT(KEYS_OWN "bridge-status"),
    STR_INIT(KEYS_OWN "power"),
};

/* One write of a bridge to a Machine. */
struct act {
    struct treaty *t;
    struct treaty_machine *m;
    struct str who;
    const struct jval *old;
    const struct jval *now;
    usec_t lag;
};

/* ── hooks ─────────────────────────────────────────────────────────────────────────────────── */

/* INV-9: by the server's own clock, and never early. */
static bool hold_is_over(const struct act *a)
{
    const struct treaty_machine *m = a->m;
    uint32_t seconds = 0;
    usec_t most = a->t->terms.hold_max;
    if (str_to_u32(note_of(a->old, KEY_HOLD_SECONDS), &seconds)) {
        most = SECONDS(seconds);
    }
    bool waits = text_at(a->old, "status.deletion.waitForPreDrainHookStartTime").n > 0;
    return most > 0 && a->t->now - (waits ? m->waits_at : m->deleted_at) >= most;
}

/* Its cluster can have been out of reach for that long: something was wrong, and the bridge has
 * been there to see it. */
static bool away_is_over(const struct act *a)
{
    const struct treaty *t = a->t;
    uint32_t pilot = treaty_pilot(t, a->who);
    if (t->terms.unreachable_max == 0) {
        return false;
    }
    if (pilot == TREATY_PILOTS_MAX) {
        return true; /* it is not there any more to be asked */
    }
    usec_t ended = MAX(t->trouble[pilot][a->m->cluster], t->trouble[pilot][TREATY_HOME]);
    usec_t spent = t->now - t->started[pilot];
    return spent >= t->terms.unreachable_max - t->terms.unreachable_max / 256 && ended > 0 &&
           t->now < ended + t->terms.unreachable_max + TREATY_SETTLES;
}

/* Two reads have found no Node. */
static bool node_was_absent(const struct act *a)
{
    const struct treaty_machine *m = a->m;
    const struct treaty_cluster *c = &a->t->clusters[m->cluster];
    const struct treaty_node *n = treaty_node(a->t, m->cluster, m->node);
    usec_t last = n->absent.is ? a->t->now : n->absent.last;
    if (a->t->terms.missing_holds) {
        return false;
    }
    /* A Secret that leads to another cluster cannot be told from a right one. */
    return trait_was(&c->astray, m->deleted_at - a->lag) ||
           (m->absent_first > 0 && last - m->absent_first >= TREATY_ABSENT);
}

/* The setting of the label that approved this deletion; each approves one request (INV-3). */
static bool deletion_was_approved(const struct act *a)
{
    struct treaty_machine *m = a->m;
    const struct treaty_node *n = treaty_node(a->t, m->cluster, m->node);
    struct treaty_request *r = treaty_request(a->t, TREATY_DELETION, m->uid);
    if (a->t->terms.strict) {
        return trait_was(&n->approved[TREATY_DELETION], m->deleted_at - a->lag);
    }
    if (r->answer == NULL) {
        return false;
    }
    if (r->answer->used_for.n > 0 && !str_eq(r->answer->used_for, m->uid)) {
        promise_break(a->t->promise,
                      "INV-3: " STR_FMT " lets " STR_FMT " go by an approval that served " STR_FMT,
                      STR_ARG(a->who), STR_ARG(m->name), STR_ARG(r->answer->used_for));
    }
    r->answer->used_for = m->uid;
    return true;
}

/* INV-1: whatever let the Machine go was true on a server. */
static void check_release(const struct act *a)
{
    struct treaty_machine *m = a->m;
    const struct treaty_cluster *c = &a->t->clusters[m->cluster];
    usec_t from = m->deleted_at - a->lag;
    m->released = true;
    if (!is_true(a->old, KEY_ENABLED) || trait_was(&c->going, from) ||
        m->incarnation != c->incarnation || hold_is_over(a)) {
        return;
    }
    const struct treaty_node *n = treaty_node(a->t, m->cluster, m->node);
    bool unmanaged = trait_was(&n->unmanaged, from) && !a->t->terms.eager;
    if (unmanaged || node_was_absent(a) || deletion_was_approved(a) || away_is_over(a)) {
        return;
    }
    struct str why = note_of(a->now, KEY_RELEASED);
    promise_break(a->t->promise,
                  "INV-1: " STR_FMT " lets " STR_FMT "/" STR_FMT
                  " go, of which nothing is true ('" STR_FMT "')",
                  STR_ARG(a->who), STR_ARG(m->space), STR_ARG(m->name), STR_ARG(why));
}

/* INV-1: nor is the protection of a Machine that stays given up because nothing is known. */
static void check_removal(const struct act *a)
{
    struct treaty_machine *m = a->m;
    const struct treaty_node *n = treaty_node(a->t, m->cluster, m->node);
    usec_t from = a->t->now - a->lag;
    if (!is_true(a->old, KEY_ENABLED) ||
        (!a->t->terms.eager && m->node.n > 0 && trait_was(&n->unmanaged, from)) ||
        (a->t->terms.strict && trait_was(&n->approved[TREATY_DELETION], from))) {
        return;
    }
    promise_break(a->t->promise,
                  "INV-1: " STR_FMT " takes the hook of " STR_FMT "/" STR_FMT
                  ", of which nothing is true",
                  STR_ARG(a->who), STR_ARG(m->space), STR_ARG(m->name));
}

static void check_hook(const struct act *a)
{
    const struct treaty_machine *m = a->m;
    bool was = has_note(a->old, KEY_HOOK);
    bool is = has_note(a->now, KEY_HOOK);
    if (!was && is && m->released) {
        promise_break(a->t->promise,
                      "INV-2: " STR_FMT " holds " STR_FMT "/" STR_FMT " again, which was let go",
                      STR_ARG(a->who), STR_ARG(m->space), STR_ARG(m->name));
    } else if (!was && is && !is_true(a->old, KEY_ENABLED)) {
        promise_break(a->t->promise,
                      "INV-7: " STR_FMT " hooks " STR_FMT "/" STR_FMT ", which is not enabled",
                      STR_ARG(a->who), STR_ARG(m->space), STR_ARG(m->name));
    } else if (was && !is && is_deleting(a->old)) {
        check_release(a);
    } else if (was && !is) {
        check_removal(a);
    }
}

/* ── maintenance ───────────────────────────────────────────────────────────────────────────── */

/* B-14: members of a control plane one after the other. */
static void check_members(const struct act *a)
{
    const struct treaty_machine *m = a->m;
    MAP_EACH (&a->t->machines, item) {
        const struct treaty_machine *other = map_item_value(item);
        if (other == m || other->gone || other->cluster != m->cluster || !other->approved.is) {
            continue;
        }
        const struct jval *object =
            apiserver_find(a->t->home, TREATY_GROUP, STR("machines"), other->space, other->name);
        bool known =
            str_eq(other->approved_by, a->who) || trait_lasts(&other->approved, a->t->now, a->lag);
        if (known && jval_get(jval_at(object, "metadata.labels"), KEY_CONTROL_PLANE) != NULL) {
            promise_break(a->t->promise,
                          "B-14: " STR_FMT " approves " STR_FMT " while " STR_FMT
                          " of the same control plane is approved",
                          STR_ARG(a->who), STR_ARG(m->name), STR_ARG(other->name));
        }
    }
}

/* INV-3, INV-4: an approval by the Machine's own Node, for this request, and only this. */
static void check_answer(const struct act *a)
{
    struct treaty_machine *m = a->m;
    struct str name = note_of(a->now, KEY_GRANTED);
    const struct treaty_node *n = treaty_node(a->t, m->cluster, m->node);
    if (a->t->terms.strict) {
        if (!trait_was(&n->approved[TREATY_MAINTENANCE], a->t->now - a->lag)) {
            promise_break(a->t->promise,
                          "INV-3: " STR_FMT " approves " STR_FMT ", which no Node has approved",
                          STR_ARG(a->who), STR_ARG(m->name));
        }
        return;
    }
    struct treaty_request *r = treaty_request(a->t, TREATY_MAINTENANCE, name);
    if (treaty_asker(a->t, name) != m || r->answer == NULL) {
        promise_break(a->t->promise,
                      "INV-3: " STR_FMT " approves " STR_FMT " by '" STR_FMT
                      "', which its Node has not approved",
                      STR_ARG(a->who), STR_ARG(m->name), STR_ARG(name));
        return;
    }
    if (r->granted) {
        promise_break(a->t->promise,
                      "INV-3: " STR_FMT " approves " STR_FMT " by '" STR_FMT "' twice",
                      STR_ARG(a->who), STR_ARG(m->name), STR_ARG(name));
    } else if (r->answer->used_for.n > 0) {
        promise_break(a->t->promise,
                      "INV-3: " STR_FMT " approves '" STR_FMT "' by what approved '" STR_FMT "'",
                      STR_ARG(a->who), STR_ARG(name), STR_ARG(r->answer->used_for));
    }
    r->granted = true;
    r->answer->used_for = arena_str(&a->t->memory, name);
}

static void check_maintenance(const struct act *a)
{
    struct treaty_machine *m = a->m;
    struct str was = label_of(a->old, KEY_MAINTENANCE);
    struct str is = label_of(a->now, KEY_MAINTENANCE);
    if (is_approved(a->now) && !is_approved(a->old)) {
        if (!str_eq(was, KEY_REQUESTED) || !is_true(a->old, KEY_ENABLED) ||
            (is_deleting(a->old) && !a->t->terms.strict)) {
            promise_break(a->t->promise,
                          "B-14: " STR_FMT " approves " STR_FMT "/" STR_FMT
                          ", which asks for nothing, is disabled, or is being deleted",
                          STR_ARG(a->who), STR_ARG(m->space), STR_ARG(m->name));
            return;
        }
        check_answer(a);
        if (jval_get(jval_at(a->old, "metadata.labels"), KEY_CONTROL_PLANE) != NULL) {
            check_members(a);
        }
        return;
    }
    bool refused = str_eq(was, KEY_APPROVED) && str_eq(is, KEY_REQUESTED);
    if (!str_eq(was, is) && !(refused && a->t->terms.refuse_forged)) {
        promise_break(a->t->promise,
                      "INV-7: " STR_FMT " makes maintenance of " STR_FMT "/" STR_FMT " '" STR_FMT
                      "', it was '" STR_FMT "'",
                      STR_ARG(a->who), STR_ARG(m->space), STR_ARG(m->name), STR_ARG(is),
                      STR_ARG(was));
    }
}

/* ── everything else ───────────────────────────────────────────────────────────────────────── */

static void check_business(const struct act *a)
{
    static const struct treaty_span span = { machine_labels, ARRAY_LEN(machine_labels),
                                             machine_notes, ARRAY_LEN(machine_notes) };
    const struct treaty_machine *m = a->m;
    const struct treaty_cluster *c = &a->t->clusters[m->cluster];
    if (!treaty_same_but(a->old, a->now, &span)) {
        promise_break(a->t->promise,
                      "INV-7: " STR_FMT " changes more of " STR_FMT "/" STR_FMT
                      " than is its business",
                      STR_ARG(a->who), STR_ARG(m->space), STR_ARG(m->name));
    } else if (has_note(a->old, KEY_SKIP_REMEDIATION) && !has_note(a->now, KEY_SKIP_REMEDIATION) &&
               !str_eq(note_of(a->old, KEY_SKIP_OURS), KEYS_TRUE)) {
        promise_break(a->t->promise,
                      "B-13: " STR_FMT " lets " STR_FMT "/" STR_FMT
                      " be remediated, which somebody else forbade",
                      STR_ARG(a->who), STR_ARG(m->space), STR_ARG(m->name));
    } else if (has_note(a->old, KEY_PAUSED)) {
        promise_break(a->t->promise,
                      "INV-6: " STR_FMT " writes to " STR_FMT "/" STR_FMT ", which is paused",
                      STR_ARG(a->who), STR_ARG(m->space), STR_ARG(m->name));
    } else if (trait_lasts(&c->paused, a->t->now, a->lag)) {
        promise_break(a->t->promise,
                      "INV-6: " STR_FMT " writes to " STR_FMT "/" STR_FMT
                      ", whose Cluster has been paused for %lld ms",
                      STR_ARG(a->who), STR_ARG(m->space), STR_ARG(m->name),
                      (long long)(a->t->now - c->paused.since) / 1000);
    }
}

static struct treaty_machine *machine_get(struct treaty *t, const struct apiserver_commit *commit)
{
    const struct jval *object = commit->now != NULL ? commit->now : commit->old;
    struct str uid = text_at(object, "metadata.uid");
    struct treaty_machine *m = map_find(&t->machines, uid);
    if (m != NULL) {
        return m;
    }
    m = ARENA_NEW(&t->memory, struct treaty_machine);
    m->uid = arena_str(&t->memory, uid);
    m->space = arena_str(&t->memory, commit->namespace);
    m->name = arena_str(&t->memory, commit->name);
    for (uint32_t i = 0; i < t->cluster_n; i++) {
        if (str_eq(t->clusters[i].space, commit->namespace) &&
            str_eq(t->clusters[i].name, text_at(object, "spec.clusterName"))) {
            m->cluster = i;
            m->incarnation = t->clusters[i].incarnation;
        }
    }
    (void)map_put(&t->machines, m->uid, m); /* it was not there */
    return m;
}

/* What is so from now on, whoever wrote it. */
static void machine_note(struct treaty *t, struct treaty_machine *m,
                         const struct apiserver_commit *commit)
{
    const struct jval *now = commit->now;
    struct str node = text_at(now, "status.nodeRef.name");
    if (m->node.n == 0 && node.n > 0) {
        m->node = arena_str(&t->memory, node);
    }
    trait_note(&m->paused, has_note(now, KEY_PAUSED), t->now);
    bool approves = is_approved(now) && !m->approved.is;
    if (approves) {
        m->approved_by =
            is_bridge(commit->user_agent) ? arena_str(&t->memory, commit->user_agent) : STR_NONE;
    }
    trait_note(&m->approved, is_approved(now), t->now);
    if (is_deleting(now) && !m->deleting) {
        m->deleting = true;
        m->deleted_at = t->now;
        if (m->node.n > 0 && treaty_node(t, m->cluster, m->node)->absent.is) {
            m->absent_first = MAX(t->now, (usec_t)1);
        }
    }
    if (m->waits_at == 0 && text_at(now, "status.deletion.waitForPreDrainHookStartTime").n > 0) {
        m->waits_at = t->now;
    }
}

void treaty_on_machine(struct treaty *t, const struct apiserver_commit *commit)
{
    struct treaty_machine *m = machine_get(t, commit);
    struct act act = {
        .t = t,
        .m = m,
        .who = commit->user_agent,
        .old = commit->old,
        .now = commit->now,
        .lag = treaty_lag(t, commit->user_agent, m->cluster),
    };
    if (is_bridge(commit->user_agent)) {
        if (commit->old == NULL || commit->now == NULL) {
            promise_break(t->promise, "INV-7: " STR_FMT " makes or removes Machine " STR_FMT,
                          STR_ARG(act.who), STR_ARG(m->name));
            return;
        }
        check_business(&act);
        check_hook(&act);
        check_maintenance(&act);
    }
    if (commit->now == NULL) {
        m->gone = true;
        m->gone_at = t->now;
        treaty_note_due(t, m, NULL);
        return;
    }
    machine_note(t, m, commit);
    treaty_note_due(t, m, commit->now);
}
