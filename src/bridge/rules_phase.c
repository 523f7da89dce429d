/* rules_phase: phase, reason and message of a Machine, and the annotation KEY_STATUS. */
#include "base/timestamp.h"
#include "kinds/keys.h"
#include "bridge/rules_internal.h"
#include "format/json_writer.h"

#define STATUS_BYTES_MAX 256u /* three short words */

static const struct str why_names[RULES_WHY_MAX] = {
    [RULES_WHY_RELEASED] = STR_INIT("Released"),
    [RULES_WHY_NOT_ENABLED] = STR_INIT("NotEnabled"),
    [RULES_WHY_MACHINE_PAUSED] = STR_INIT("MachinePaused"),
    [RULES_WHY_CLUSTER_PAUSED] = STR_INIT("ClusterPaused"),
    [RULES_WHY_MISMATCH] = STR_INIT("PairingMismatch"),
    [RULES_WHY_CLUSTER_MISSING] = STR_INIT("ClusterMissing"),
    [RULES_WHY_NO_NODE] = STR_INIT("NoNode"),
    [RULES_WHY_UNREACHABLE] = STR_INIT("ClusterUnreachable"),
    [RULES_WHY_NODE_MISSING] = STR_INIT("NodeMissing"),
    [RULES_WHY_ENGINE_ABSENT] = STR_INIT("EngineAbsent"),
    [RULES_WHY_RULES_UNKNOWN] = STR_INIT("DrainRulesUnknown"),
    [RULES_WHY_WAITING] = STR_INIT("WaitingForApproval"),
    [RULES_WHY_ANOTHER] = STR_INIT("ApprovalForAnother"),
    [RULES_WHY_UPDATE] = STR_INIT("InPlaceUpdate"),
    [RULES_WHY_BEING_DELETED] = STR_INIT("BeingDeleted"),
    [RULES_WHY_BUSY] = STR_INIT("ControlPlaneBusy"),
    [RULES_WHY_QUORUM] = STR_INIT("ControlPlaneQuorum"),
    [RULES_WHY_APPROVED] = STR_INIT("Approved"),
    [RULES_WHY_CLUSTER_DELETED] = STR_INIT("ClusterDeleted"),
    [RULES_WHY_HOLD_OVER] = STR_INIT("HoldTimeOver"),
    [RULES_WHY_IDLE] = STR_INIT("NothingAsked"),
};

struct str rules_why_name(enum rules_why why)
{
    return why_names[why];
}

enum rules_why rules_why_find(struct str name)
{
    for (uint32_t i = 0; i < RULES_WHY_MAX; i++) {
        if (str_eq(why_names[i], name)) {
            return (enum rules_why)i;
        }
    }
    return RULES_WHY_RELEASED;
}

/* ── phase and reason ──────────────────────────────────────────────────────────────────────── */

/* What stands between the Machine and an answer of its Node. */
static enum rules_why phase_obstacle(const struct rules_case *c)
{
    if (c->cluster == NULL) {
        return RULES_WHY_CLUSTER_MISSING;
    }
    if (c->machine->node.n == 0) {
        return RULES_WHY_NO_NODE;
    }
    switch (c->sight) {
    case RULES_NODE_UNKNOWN:
        return RULES_WHY_UNREACHABLE;
    case RULES_NODE_MISSED:
    case RULES_NODE_ABSENT:
        return RULES_WHY_NODE_MISSING;
    case RULES_NODE_SEEN:
        break;
    }
    return c->node == NULL || c->managed ? RULES_WHY_WAITING : RULES_WHY_ENGINE_ABSENT;
}

static enum rules_why phase_holding(const struct rules_case *c)
{
    enum rules_why why = phase_obstacle(c);
    const struct workload_node *p = c->node;
    if (why == RULES_WHY_WAITING && c->deletion_unsent) {
        return RULES_WHY_RULES_UNKNOWN;
    }
    bool another = why == RULES_WHY_WAITING && p != NULL && p->approve_deletion &&
                   p->machine_deleted && str_eq(p->deletion_request, c->machine->uid);
    return another ? RULES_WHY_ANOTHER : why; /* it would be let go otherwise */
}

static enum rules_why phase_requested(const struct rules_case *c)
{
    if (c->withheld) {
        return c->withheld_why;
    }
    enum rules_why why = phase_obstacle(c);
    return why == RULES_WHY_WAITING && c->maintenance_unsent ? RULES_WHY_RULES_UNKNOWN : why;
}

static enum rules_phase phase_of(const struct rules_case *c, enum rules_why *ret)
{
    const struct machine *m = c->machine;
    if (!m->enabled) {
        *ret = RULES_WHY_NOT_ENABLED;
        return RULES_PHASE_NOT_ENABLED;
    }
    if (m->deleting && c->hook && m->node.n > 0) {
        *ret = phase_holding(c);
        return RULES_PHASE_HOLDING;
    }
    if (m->deleting) {
        /* Cluster API does not ask the hook of a Machine without a Node. */
        *ret = c->not_held ? c->not_held_why : phase_obstacle(c);
        return RULES_PHASE_LETTING_GO;
    }
    if (c->approved) {
        *ret = RULES_WHY_APPROVED;
        return RULES_PHASE_IN_MAINTENANCE;
    }
    if (c->request == MACHINE_REQUEST_REQUESTED) {
        *ret = phase_requested(c);
        return RULES_PHASE_REQUESTED;
    }
    if (c->hook) {
        *ret = c->cluster == NULL ? RULES_WHY_CLUSTER_MISSING : RULES_WHY_IDLE;
        return RULES_PHASE_PROTECTED;
    }
    *ret = phase_obstacle(c);
    if (*ret == RULES_WHY_WAITING) {
        *ret = RULES_WHY_APPROVED; /* in strict mode, before a request */
    }
    return RULES_PHASE_OPEN;
}

/* ── messages ──────────────────────────────────────────────────────────────────────────────── */

/* What a deletion that is held and a maintenance that is requested wait for alike. */
static struct str phase_wait_message(const struct rules_case *c, enum rules_why why, bool deletion)
{
    struct str node = c->machine->node;
    struct str cluster = c->machine->cluster;
    const char *what = deletion ? "deletion" : "maintenance";
    const char *waits = deletion ? "The deletion is held" : "The maintenance waits";
    switch (why) {
    case RULES_WHY_UNREACHABLE:
        return arena_printf(
            c->out, "%s while cluster '" STR_FMT "' cannot be asked about Node '" STR_FMT "'.",
            waits, STR_ARG(cluster), STR_ARG(node));
    case RULES_WHY_RULES_UNKNOWN:
        return arena_printf(
            c->out,
            "%s, and Node '" STR_FMT "' of cluster '" STR_FMT "' is not asked yet: " STR_FMT ".",
            waits, STR_ARG(node), STR_ARG(cluster), STR_ARG(c->facts->rules_trouble));
    case RULES_WHY_ANOTHER:
        return arena_printf(c->out,
                            "The approval at Node '" STR_FMT "' of cluster '" STR_FMT
                            "' names another request than this %s.",
                            STR_ARG(node), STR_ARG(cluster), what);
    default:
        if (c->facts->routed) {
            return arena_printf(c->out,
                                "The %s waits until the limits of cluster '" STR_FMT
                                "' grant the MaintenanceRequest for Node '" STR_FMT "'.",
                                what, STR_ARG(cluster), STR_ARG(node));
        }
        return arena_printf(c->out,
                            "The %s waits until the maintenance engine sets the label "
                            "approve-%s at Node '" STR_FMT "' of cluster '" STR_FMT "'.",
                            what, what, STR_ARG(node), STR_ARG(cluster));
    }
}

/* What a held deletion waits for. */
static struct str phase_hold_words(const struct rules_case *c, enum rules_why why)
{
    struct str node = c->machine->node;
    struct str cluster = c->machine->cluster;
    switch (why) {
    case RULES_WHY_NODE_MISSING:
        return arena_printf(c->out,
                            c->sight == RULES_NODE_MISSED
                                ? "Node '" STR_FMT "' is not in cluster '" STR_FMT
                                  "'; the deletion is held until live reads confirm it."
                                : "Node '" STR_FMT "' is not in cluster '" STR_FMT
                                  "', and --on-missing-node=hold keeps the deletion held.",
                            STR_ARG(node), STR_ARG(cluster));
    case RULES_WHY_ENGINE_ABSENT:
        return arena_printf(c->out,
                            "The deletion is held, but Node '" STR_FMT "' of cluster '" STR_FMT
                            "' has no label cloud.sap/maintenance-state: no maintenance engine is "
                            "there to approve it.",
                            STR_ARG(node), STR_ARG(cluster));
    default:
        return phase_wait_message(c, why, /* deletion= */ true);
    }
}

static struct str phase_hold_message(const struct rules_case *c, enum rules_why why)
{
    struct str words = phase_hold_words(c, why);
    usec_t end = rules_hold_end(c);
    if (end == USEC_NEVER) {
        return arena_printf(c->out,
                            STR_FMT " There is no time limit; removing the label 'enabled' from "
                                    "the Machine lets it go.",
                            STR_ARG(words));
    }
    char text[TIMESTAMP_TEXT_MAX];
    struct str when = timestamp_print_seconds(end, text);
    return arena_printf(c->out, STR_FMT " It goes on at " STR_FMT " in any case.", STR_ARG(words),
                        STR_ARG(when));
}

static struct str phase_not_held_message(const struct rules_case *c, enum rules_why why)
{
    if (c->not_held) {
        struct str because = rules_why_text(c, why);
        return arena_printf(c->out, "The deletion is not held: " STR_FMT ".", STR_ARG(because));
    }
    return why == RULES_WHY_NO_NODE ? STR("The deletion is not held: the Machine has no Node.")
                                    : STR("The deletion is not held: no hook was attached before.");
}

static struct str phase_request_message(const struct rules_case *c, enum rules_why why)
{
    struct str node = c->machine->node;
    struct str cluster = c->machine->cluster;
    switch (why) {
    case RULES_WHY_CLUSTER_MISSING:
        return arena_printf(c->out, "The maintenance waits for Cluster '" STR_FMT "' to exist.",
                            STR_ARG(cluster));
    case RULES_WHY_NO_NODE:
        return STR("The maintenance waits until the Machine has a Node.");
    case RULES_WHY_NODE_MISSING:
        return arena_printf(c->out,
                            "The maintenance waits for Node '" STR_FMT
                            "', which is not in cluster '" STR_FMT "'.",
                            STR_ARG(node), STR_ARG(cluster));
    case RULES_WHY_ENGINE_ABSENT:
        return arena_printf(c->out,
                            "Node '" STR_FMT "' of cluster '" STR_FMT
                            "' has no label cloud.sap/maintenance-state: no maintenance engine is "
                            "there to approve the maintenance.",
                            STR_ARG(node), STR_ARG(cluster));
    case RULES_WHY_UPDATE:
        return STR("The maintenance is approved at the Node, and waits for the end of an in-place "
                   "update of the Machine.");
    case RULES_WHY_BUSY:
        return arena_printf(c->out,
                            "The maintenance is approved at the Node, and waits until no other "
                            "Machine of the control plane of '" STR_FMT "' is in maintenance.",
                            STR_ARG(cluster));
    case RULES_WHY_QUORUM:
        return arena_printf(c->out,
                            "The maintenance is approved at the Node, and waits until %u other "
                            "Machines of the control plane of '" STR_FMT
                            "' are available; %u of %u are.",
                            (c->facts->members + 1) / 2 + 1, STR_ARG(cluster), c->facts->available,
                            c->facts->members);
    default:
        return phase_wait_message(c, why, /* deletion= */ false);
    }
}

static struct str phase_open_message(const struct rules_case *c, enum rules_why why)
{
    struct str node = c->machine->node;
    struct str cluster = c->machine->cluster;
    switch (why) {
    case RULES_WHY_CLUSTER_MISSING:
        return arena_printf(c->out, "Nothing is done: there is no Cluster '" STR_FMT "'.",
                            STR_ARG(cluster));
    case RULES_WHY_NO_NODE:
        return STR("The Machine has no Node yet; a deletion would not be held.");
    case RULES_WHY_UNREACHABLE:
        return arena_printf(c->out,
                            "Cluster '" STR_FMT "' cannot be asked about Node '" STR_FMT
                            "'; a deletion would not be held.",
                            STR_ARG(cluster), STR_ARG(node));
    case RULES_WHY_NODE_MISSING:
        return arena_printf(c->out,
                            "Node '" STR_FMT "' is not in cluster '" STR_FMT
                            "'; a deletion would not be held.",
                            STR_ARG(node), STR_ARG(cluster));
    case RULES_WHY_APPROVED:
        return arena_printf(c->out,
                            "A deletion is approved at Node '" STR_FMT
                            "' before anybody asked, and would not be held.",
                            STR_ARG(node));
    default:
        return arena_printf(c->out,
                            "Node '" STR_FMT "' of cluster '" STR_FMT
                            "' has no label cloud.sap/maintenance-state; a deletion would not be "
                            "held.",
                            STR_ARG(node), STR_ARG(cluster));
    }
}

static struct str phase_message(const struct rules_case *c, enum rules_phase phase,
                                enum rules_why why)
{
    switch (phase) {
    case RULES_PHASE_NOT_ENABLED:
        return c->verdict->keeps_link
                   ? arena_printf(c->out,
                                  "The Machine is not enabled; what was asked of Node '" STR_FMT
                                  "' is being taken away.",
                                  STR_ARG(c->machine->node))
                   : STR("The Machine is not enabled.");
    case RULES_PHASE_PAUSED:
        return why == RULES_WHY_MACHINE_PAUSED
                   ? STR("The Machine is paused: nothing is written.")
                   : arena_printf(c->out, "Cluster '" STR_FMT "' is paused: nothing is written.",
                                  STR_ARG(c->machine->cluster));
    case RULES_PHASE_OPEN:
        return phase_open_message(c, why);
    case RULES_PHASE_PROTECTED:
        return STR("A deletion would be held until the maintenance engine approves it.");
    case RULES_PHASE_HOLDING:
        return phase_hold_message(c, why);
    case RULES_PHASE_LETTING_GO:
        return phase_not_held_message(c, why);
    case RULES_PHASE_REQUESTED:
        return phase_request_message(c, why);
    case RULES_PHASE_IN_MAINTENANCE:
        break;
    }
    return c->forged
               ? STR("The Machine is in maintenance, although nobody has approved it; it ends "
                     "when the label 'maintenance' is removed.")
               : STR("The Machine is in maintenance; it ends when the label 'maintenance' is "
                     "removed.");
}

static struct str phase_mismatch_message(const struct rules_case *c)
{
    const struct workload_node *p = c->facts->node;
    return arena_printf(c->out,
                        "Node '" STR_FMT "' of cluster '" STR_FMT "' says that it belongs to "
                        "Machine '" STR_FMT "/" STR_FMT "': nothing is done.",
                        STR_ARG(c->machine->node), STR_ARG(c->machine->cluster),
                        STR_ARG(p->namespace), STR_ARG(p->machine));
}

void rules_phase(struct rules_case *c)
{
    struct rules_verdict *v = c->verdict;
    enum rules_why why = RULES_WHY_IDLE;
    v->phase = phase_of(c, &why);
    if (c->machine->paused) {
        v->phase = RULES_PHASE_PAUSED;
        why = RULES_WHY_MACHINE_PAUSED;
    } else if (c->cluster != NULL && c->cluster->paused) {
        v->phase = RULES_PHASE_PAUSED;
        why = RULES_WHY_CLUSTER_PAUSED;
    } else if (c->mismatch) {
        why = RULES_WHY_MISMATCH;
    }
    v->message =
        why == RULES_WHY_MISMATCH ? phase_mismatch_message(c) : phase_message(c, v->phase, why);
    v->reason = why_names[why].p;
}

/* ── KEY_STATUS ────────────────────────────────────────────────────────────────────────────── */

static void status_read(const struct rules_case *c, struct str *ret_phase, struct str *ret_reason)
{
    const struct jval *v = NULL;
    struct err ignored = { 0 };
    *ret_phase = STR_NONE;
    *ret_reason = STR_NONE;
    if (c->machine->status.n > 0 &&
        json_parse(c->machine->status, JSON_GO, c->out, &v, &ignored) == 0) {
        *ret_phase = jval_str(jval_get(v, STR("phase")));
        *ret_reason = jval_str(jval_get(v, STR("reason")));
    }
}

static struct str status_print(const struct rules_case *c)
{
    CLEANUP(buf_done)
    struct buf text = { .max = STATUS_BYTES_MAX };
    char since[TIMESTAMP_TEXT_MAX];
    struct json_writer w = json_writer_on(&text);
    jw_obj(&w);
    jw_pair(&w, "phase", rules_phase_name(c->verdict->phase));
    jw_pair(&w, "reason", str_from(c->verdict->reason));
    jw_pair(&w, "since", timestamp_print_seconds(c->facts->wall, since));
    jw_obj_end(&w);
    ASSERT(!text.full);
    return arena_str(c->out, buf_str(&text));
}

/* The reason may change again soon, so it is not written while the phase is the same. */
static bool status_unsure(struct rules_case *c, enum rules_why why)
{
    enum rules_phase phase = c->verdict->phase;
    if (phase == RULES_PHASE_LETTING_GO) {
        return true; /* nothing that follows depends on it */
    }
    if (phase == RULES_PHASE_HOLDING && c->sight == RULES_NODE_MISSED) {
        return true; /* live reads will tell */
    }
    if (why == RULES_WHY_UNREACHABLE && c->facts->unreachable_for < RULES_UNREACHABLE_GRACE) {
        rules_wake_in(c, RULES_UNREACHABLE_GRACE - c->facts->unreachable_for);
        return true;
    }
    return false;
}

/* A deletion is held for a reason that may need a person: one Warning, with the status. */
static void status_warn(struct rules_case *c, enum rules_why why)
{
    if (c->verdict->phase != RULES_PHASE_HOLDING) {
        return;
    }
    if (why == RULES_WHY_UNREACHABLE) {
        rules_event(c, RULES_EVENT_UNREACHABLE, c->verdict->message, RULES_WITH_MACHINE);
    } else if (why == RULES_WHY_NODE_MISSING && c->sight == RULES_NODE_ABSENT) {
        rules_event(c, RULES_EVENT_NODE_MISSING, c->verdict->message, RULES_WITH_MACHINE);
    }
}

/* No label of ours is on the Node, and no MaintenanceRequest is open for it. While the Machine is
 * enabled it is enough that the Node is known: the same turn removes what is left there. */
static bool status_clean(const struct rules_case *c)
{
    if (c->cluster == NULL || c->machine->node.n == 0) {
        return true;
    }
    if (c->machine->enabled) {
        return c->sight != RULES_NODE_UNKNOWN;
    }
    if (c->facts->maybe_open) {
        return false;
    }
    return c->sight == RULES_NODE_ABSENT || (c->node != NULL && !workload_node_marked(c->node));
}

void rules_status(struct rules_case *c)
{
    const struct machine *m = c->machine;
    enum rules_phase phase = c->verdict->phase;
    struct str old_phase;
    struct str old_reason;
    if (phase != RULES_PHASE_HOLDING && phase != RULES_PHASE_LETTING_GO &&
        phase != RULES_PHASE_REQUESTED && phase != RULES_PHASE_IN_MAINTENANCE) {
        /* While the status is there, the next bridge knows that the Node is to be cleaned. */
        if (m->status.p != NULL && status_clean(c)) {
            meta_patch_remove(&c->verdict->machine, false, KEY_STATUS);
        }
        if (m->status.p == NULL || status_clean(c) || !m->enabled) {
            return;
        }
    }
    status_read(c, &old_phase, &old_reason);
    struct str reason = str_from(c->verdict->reason);
    enum rules_why why = rules_why_find(reason);
    if (str_eq(old_phase, rules_phase_name(phase)) &&
        (str_eq(old_reason, reason) || status_unsure(c, why))) {
        return;
    }
    meta_patch_set(&c->verdict->machine, false, KEY_STATUS, status_print(c));
    status_warn(c, why);
}
