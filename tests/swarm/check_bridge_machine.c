/*
 * What is judged of Machines: hooks, approvals, pauses, and that nothing else is touched.
 */
#include "tests/swarm/check_bridge_internal.h"

#include "kinds/keys.h"

static const struct str machine_labels[] = { STR_INIT(KEYS_LEGACY "maintenance") };
static const struct str machine_annotations[] = {
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
struct machine_write {
    struct check_bridge *t;
    struct check_bridge_machine *m;
    struct str who;
    const struct jval *old;
    const struct jval *now;
    usec_t lag;
};

/* ── hooks ─────────────────────────────────────────────────────────────────────────────────── */

/* B9: by the server's own clock, and never early. */
static bool hold_expired(const struct machine_write *a)
{
    const struct check_bridge_machine *m = a->m;
    uint32_t seconds = 0;
    usec_t limit = a->t->options.hold_max;
    if (str_to_u32(annotation_of(a->old, KEY_HOLD_SECONDS), &seconds)) {
        limit = SECONDS(seconds);
    }
    bool has_wait_time = text_at(a->old, "status.deletion.waitForPreDrainHookStartTime").n > 0;
    return limit > 0 && a->t->now - (has_wait_time ? m->waits_at : m->deleted_at) >= limit;
}

/* Its cluster can have been out of reach for that long: something was wrong, and the bridge has
 * been there to see it. */
static bool unreachable_expired(const struct machine_write *a)
{
    const struct check_bridge *t = a->t;
    uint32_t process = check_bridge_writer(t, a->who);
    if (t->options.unreachable_max == 0) {
        return false;
    }
    if (process == CHECK_BRIDGE_PROCESSES_MAX) {
        return true; /* it is not there any more to be asked */
    }
    usec_t outage_end =
        MAX(t->outage_end[process][a->m->cluster], t->outage_end[process][MANAGEMENT_CLUSTER]);
    usec_t uptime = t->now - t->started[process];
    return uptime >= t->options.unreachable_max - t->options.unreachable_max / 256 &&
           outage_end > 0 &&
           t->now < outage_end + t->options.unreachable_max + CHECK_BRIDGE_RECONNECT_MAX;
}

/* Two reads have found no Node. */
static bool node_was_absent(const struct machine_write *a)
{
    const struct check_bridge_machine *m = a->m;
    const struct check_bridge_cluster *c = &a->t->clusters[m->cluster];
    const struct check_bridge_node *n = check_bridge_node(a->t, m->cluster, m->node);
    usec_t last = n->absent.is ? a->t->now : n->absent.last;
    if (a->t->options.missing_holds) {
        return false;
    }
    /* A Secret that leads to another cluster cannot be told from a right one. */
    return timed_flag_was_set(&c->wrong_secret, m->deleted_at - a->lag) ||
           (m->absent_first > 0 && last - m->absent_first >= CHECK_BRIDGE_ABSENT_MIN);
}

/* The setting of the label that approved this deletion; each approves one request (B3). */
static bool deletion_was_approved(const struct machine_write *a)
{
    struct check_bridge_machine *m = a->m;
    const struct check_bridge_node *n = check_bridge_node(a->t, m->cluster, m->node);
    struct check_bridge_request *r = check_bridge_request(a->t, CHECK_BRIDGE_DELETION, m->uid);
    if (a->t->options.strict) {
        return timed_flag_was_set(&n->approved[CHECK_BRIDGE_DELETION], m->deleted_at - a->lag);
    }
    if (r->approval == NULL) {
        return false;
    }
    if (r->approval->used_for.n > 0 && !str_eq(r->approval->used_for, m->uid)) {
        check_violation(a->t->basic,
                        "B3: " STR_FMT " lets " STR_FMT " go by an approval that served " STR_FMT,
                        STR_ARG(a->who), STR_ARG(m->name), STR_ARG(r->approval->used_for));
    }
    r->approval->used_for = m->uid;
    return true;
}

/* B1: whatever let the Machine go was true on a server. */
static void check_hook_release(const struct machine_write *a)
{
    struct check_bridge_machine *m = a->m;
    const struct check_bridge_cluster *c = &a->t->clusters[m->cluster];
    usec_t from = m->deleted_at - a->lag;
    m->released = true;
    if (!label_is_true(a->old, KEY_ENABLED) || timed_flag_was_set(&c->deleting, from) ||
        m->incarnation != c->incarnation || hold_expired(a)) {
        return;
    }
    const struct check_bridge_node *n = check_bridge_node(a->t, m->cluster, m->node);
    bool unmanaged = timed_flag_was_set(&n->unmanaged, from) && !a->t->options.eager;
    if (unmanaged || node_was_absent(a) || deletion_was_approved(a) || unreachable_expired(a)) {
        return;
    }
    struct str why = annotation_of(a->now, KEY_RELEASED);
    check_violation(a->t->basic,
                    "B1: " STR_FMT " lets " STR_FMT "/" STR_FMT
                    " go, of which nothing is true ('" STR_FMT "')",
                    STR_ARG(a->who), STR_ARG(m->namespace), STR_ARG(m->name), STR_ARG(why));
}

/* B1: nor is the protection of a Machine that stays given up because nothing is known. */
static void check_hook_removal(const struct machine_write *a)
{
    struct check_bridge_machine *m = a->m;
    const struct check_bridge_node *n = check_bridge_node(a->t, m->cluster, m->node);
    usec_t from = a->t->now - a->lag;
    if (!label_is_true(a->old, KEY_ENABLED) ||
        (!a->t->options.eager && m->node.n > 0 && timed_flag_was_set(&n->unmanaged, from)) ||
        (a->t->options.strict && timed_flag_was_set(&n->approved[CHECK_BRIDGE_DELETION], from))) {
        return;
    }
    check_violation(a->t->basic,
                    "B1: " STR_FMT " takes the hook of " STR_FMT "/" STR_FMT
                    ", of which nothing is true",
                    STR_ARG(a->who), STR_ARG(m->namespace), STR_ARG(m->name));
}

static void check_hook(const struct machine_write *a)
{
    const struct check_bridge_machine *m = a->m;
    bool was = has_annotation(a->old, KEY_HOOK);
    bool is = has_annotation(a->now, KEY_HOOK);
    if (!was && is && m->released) {
        check_violation(a->t->basic,
                        "B2: " STR_FMT " holds " STR_FMT "/" STR_FMT " again, which was let go",
                        STR_ARG(a->who), STR_ARG(m->namespace), STR_ARG(m->name));
    } else if (!was && is && !label_is_true(a->old, KEY_ENABLED)) {
        check_violation(a->t->basic,
                        "B7: " STR_FMT " hooks " STR_FMT "/" STR_FMT ", which is not enabled",
                        STR_ARG(a->who), STR_ARG(m->namespace), STR_ARG(m->name));
    } else if (was && !is && is_deleting(a->old)) {
        check_hook_release(a);
    } else if (was && !is) {
        check_hook_removal(a);
    }
}

/* ── maintenance ───────────────────────────────────────────────────────────────────────────── */

/* B21: members of a control plane one after the other. */
static void check_control_plane(const struct machine_write *a)
{
    const struct check_bridge_machine *m = a->m;
    MAP_EACH (&a->t->machines, item) {
        const struct check_bridge_machine *other = map_item_value(item);
        if (other == m || other->gone || other->cluster != m->cluster || !other->approved.is) {
            continue;
        }
        const struct jval *object = apiserver_find(a->t->management, CHECK_CAPI_GROUP,
                                                   STR("machines"), other->namespace, other->name);
        bool known = str_eq(other->approved_by, a->who) ||
                     timed_flag_set_for(&other->approved, a->t->now, a->lag);
        if (known && jval_get(jval_at(object, "metadata.labels"), KEY_CONTROL_PLANE) != NULL) {
            check_violation(a->t->basic,
                            "B21: " STR_FMT " approves " STR_FMT " while " STR_FMT
                            " of the same control plane is approved",
                            STR_ARG(a->who), STR_ARG(m->name), STR_ARG(other->name));
        }
    }
}

/* B3, B4: an approval by the Machine's own Node, for this request, and only this. */
static void check_approval(const struct machine_write *a)
{
    struct check_bridge_machine *m = a->m;
    struct str name = annotation_of(a->now, KEY_GRANTED);
    const struct check_bridge_node *n = check_bridge_node(a->t, m->cluster, m->node);
    if (a->t->options.strict) {
        if (!timed_flag_was_set(&n->approved[CHECK_BRIDGE_MAINTENANCE], a->t->now - a->lag)) {
            check_violation(a->t->basic,
                            "B3: " STR_FMT " approves " STR_FMT ", which no Node has approved",
                            STR_ARG(a->who), STR_ARG(m->name));
        }
        return;
    }
    struct check_bridge_request *r = check_bridge_request(a->t, CHECK_BRIDGE_MAINTENANCE, name);
    if (check_bridge_requester(a->t, name) != m || r->approval == NULL) {
        check_violation(a->t->basic,
                        "B3: " STR_FMT " approves " STR_FMT " by '" STR_FMT
                        "', which its Node has not approved",
                        STR_ARG(a->who), STR_ARG(m->name), STR_ARG(name));
        return;
    }
    if (r->granted) {
        check_violation(a->t->basic, "B3: " STR_FMT " approves " STR_FMT " by '" STR_FMT "' twice",
                        STR_ARG(a->who), STR_ARG(m->name), STR_ARG(name));
    } else if (r->approval->used_for.n > 0) {
        check_violation(a->t->basic,
                        "B3: " STR_FMT " approves '" STR_FMT "' by what approved '" STR_FMT "'",
                        STR_ARG(a->who), STR_ARG(name), STR_ARG(r->approval->used_for));
    }
    r->granted = true;
    r->approval->used_for = arena_str(&a->t->memory, name);
}

static void check_maintenance(const struct machine_write *a)
{
    struct check_bridge_machine *m = a->m;
    struct str was = label_of(a->old, KEY_MAINTENANCE);
    struct str is = label_of(a->now, KEY_MAINTENANCE);
    if (is_approved(a->now) && !is_approved(a->old)) {
        if (!str_eq(was, KEY_REQUESTED) || !label_is_true(a->old, KEY_ENABLED) ||
            (is_deleting(a->old) && !a->t->options.strict)) {
            check_violation(a->t->basic,
                            "B21: " STR_FMT " approves " STR_FMT "/" STR_FMT
                            ", which asks for nothing, is disabled, or is being deleted",
                            STR_ARG(a->who), STR_ARG(m->namespace), STR_ARG(m->name));
            return;
        }
        check_approval(a);
        if (jval_get(jval_at(a->old, "metadata.labels"), KEY_CONTROL_PLANE) != NULL) {
            check_control_plane(a);
        }
        return;
    }
    bool refused = str_eq(was, KEY_APPROVED) && str_eq(is, KEY_REQUESTED);
    if (!str_eq(was, is) && !(refused && a->t->options.refuse_forged)) {
        check_violation(a->t->basic,
                        "B7: " STR_FMT " makes maintenance of " STR_FMT "/" STR_FMT " '" STR_FMT
                        "', it was '" STR_FMT "'",
                        STR_ARG(a->who), STR_ARG(m->namespace), STR_ARG(m->name), STR_ARG(is),
                        STR_ARG(was));
    }
}

/* ── everything else ───────────────────────────────────────────────────────────────────────── */

static void check_changed_keys(const struct machine_write *a)
{
    static const struct check_bridge_allowed span = { machine_labels, ARRAY_LEN(machine_labels),
                                                      machine_annotations,
                                                      ARRAY_LEN(machine_annotations) };
    const struct check_bridge_machine *m = a->m;
    const struct check_bridge_cluster *c = &a->t->clusters[m->cluster];
    if (!check_bridge_only_changed(a->old, a->now, &span)) {
        check_violation(a->t->basic,
                        "B7: " STR_FMT " changes more of " STR_FMT "/" STR_FMT
                        " than is its business",
                        STR_ARG(a->who), STR_ARG(m->namespace), STR_ARG(m->name));
    } else if (has_annotation(a->old, KEY_SKIP_REMEDIATION) &&
               !has_annotation(a->now, KEY_SKIP_REMEDIATION) &&
               !str_eq(annotation_of(a->old, KEY_SKIP_OURS), KEYS_TRUE)) {
        check_violation(a->t->basic,
                        "B20: " STR_FMT " lets " STR_FMT "/" STR_FMT
                        " be remediated, which somebody else forbade",
                        STR_ARG(a->who), STR_ARG(m->namespace), STR_ARG(m->name));
    } else if (has_annotation(a->old, KEY_PAUSED)) {
        check_violation(a->t->basic,
                        "B6: " STR_FMT " writes to " STR_FMT "/" STR_FMT ", which is paused",
                        STR_ARG(a->who), STR_ARG(m->namespace), STR_ARG(m->name));
    } else if (timed_flag_set_for(&c->paused, a->t->now, a->lag)) {
        check_violation(a->t->basic,
                        "B6: " STR_FMT " writes to " STR_FMT "/" STR_FMT
                        ", whose Cluster has been paused for %lld ms",
                        STR_ARG(a->who), STR_ARG(m->namespace), STR_ARG(m->name),
                        (long long)(a->t->now - c->paused.since) / 1000);
    }
}

static struct check_bridge_machine *machine_find_or_add(struct check_bridge *t,
                                                        const struct apiserver_commit *commit)
{
    const struct jval *object = commit->now != NULL ? commit->now : commit->old;
    struct str uid = text_at(object, "metadata.uid");
    struct check_bridge_machine *m = map_find(&t->machines, uid);
    if (m != NULL) {
        return m;
    }
    m = ARENA_NEW(&t->memory, struct check_bridge_machine);
    m->uid = arena_str(&t->memory, uid);
    m->namespace = arena_str(&t->memory, commit->namespace);
    m->name = arena_str(&t->memory, commit->name);
    for (uint32_t i = 0; i < t->cluster_n; i++) {
        if (str_eq(t->clusters[i].namespace, commit->namespace) &&
            str_eq(t->clusters[i].name, text_at(object, "spec.clusterName"))) {
            m->cluster = i;
            m->incarnation = t->clusters[i].incarnation;
        }
    }
    (void)map_put(&t->machines, m->uid, m); /* it was not there */
    return m;
}

/* What is so from now on, whoever wrote it. */
static void machine_update(struct check_bridge *t, struct check_bridge_machine *m,
                           const struct apiserver_commit *commit)
{
    const struct jval *now = commit->now;
    struct str node = text_at(now, "status.nodeRef.name");
    if (m->node.n == 0 && node.n > 0) {
        m->node = arena_str(&t->memory, node);
    }
    timed_flag_set(&m->paused, has_annotation(now, KEY_PAUSED), t->now);
    bool newly_approved = is_approved(now) && !m->approved.is;
    if (newly_approved) {
        m->approved_by =
            is_bridge(commit->user_agent) ? arena_str(&t->memory, commit->user_agent) : STR_NONE;
    }
    timed_flag_set(&m->approved, is_approved(now), t->now);
    if (is_deleting(now) && !m->deleting) {
        m->deleting = true;
        m->deleted_at = t->now;
        if (m->node.n > 0 && check_bridge_node(t, m->cluster, m->node)->absent.is) {
            m->absent_first = MAX(t->now, (usec_t)1);
        }
    }
    if (m->waits_at == 0 && text_at(now, "status.deletion.waitForPreDrainHookStartTime").n > 0) {
        m->waits_at = t->now;
    }
}

void check_bridge_on_machine(struct check_bridge *t, const struct apiserver_commit *commit)
{
    struct check_bridge_machine *m = machine_find_or_add(t, commit);
    struct machine_write act = {
        .t = t,
        .m = m,
        .who = commit->user_agent,
        .old = commit->old,
        .now = commit->now,
        .lag = check_bridge_lag(t, commit->user_agent, m->cluster),
    };
    if (is_bridge(commit->user_agent)) {
        if (commit->old == NULL || commit->now == NULL) {
            check_violation(t->basic, "B7: " STR_FMT " makes or removes Machine " STR_FMT,
                            STR_ARG(act.who), STR_ARG(m->name));
            return;
        }
        check_changed_keys(&act);
        check_hook(&act);
        check_maintenance(&act);
    }
    if (commit->now == NULL) {
        m->gone = true;
        m->gone_at = t->now;
        check_bridge_update_power(t, m, NULL);
        return;
    }
    machine_update(t, m, commit);
    check_bridge_update_power(t, m, commit->now);
}
