/* What goes on: for people in words, and for the annotation KEY_STATUS. */
#include "base/timestamp.h"
#include "kinds/keys.h"
#include "bridge/rules_internal.h"
#include "format/json_writer.h"

#define STATUS_BYTES_MAX 256u /* three short words */

static const struct str why_names[WHY_MAX] = {
    [WHY_RELEASED] = STR_INIT("Released"),
    [WHY_NOT_ENABLED] = STR_INIT("NotEnabled"),
    [WHY_MACHINE_PAUSED] = STR_INIT("MachinePaused"),
    [WHY_CLUSTER_PAUSED] = STR_INIT("ClusterPaused"),
    [WHY_MISMATCH] = STR_INIT("PairingMismatch"),
    [WHY_CLUSTER_MISSING] = STR_INIT("ClusterMissing"),
    [WHY_NO_NODE] = STR_INIT("NoNode"),
    [WHY_UNREACHABLE] = STR_INIT("ClusterUnreachable"),
    [WHY_NODE_MISSING] = STR_INIT("NodeMissing"),
    [WHY_ENGINE_ABSENT] = STR_INIT("EngineAbsent"),
    [WHY_RULES_UNKNOWN] = STR_INIT("DrainRulesUnknown"),
    [WHY_WAITING] = STR_INIT("WaitingForApproval"),
    [WHY_ANOTHER] = STR_INIT("ApprovalForAnother"),
    [WHY_UPDATE] = STR_INIT("InPlaceUpdate"),
    [WHY_BEING_DELETED] = STR_INIT("BeingDeleted"),
    [WHY_BUSY] = STR_INIT("ControlPlaneBusy"),
    [WHY_QUORUM] = STR_INIT("ControlPlaneQuorum"),
    [WHY_APPROVED] = STR_INIT("Approved"),
    [WHY_CLUSTER_DELETED] = STR_INIT("ClusterDeleted"),
    [WHY_HOLD_OVER] = STR_INIT("HoldTimeOver"),
    [WHY_IDLE] = STR_INIT("NothingAsked"),
};

struct str rules_why_name(enum rules_why why)
{
    return why_names[why];
}

enum rules_why rules_why_find(struct str name)
{
    for (uint32_t i = 0; i < WHY_MAX; i++) {
        if (str_eq(why_names[i], name)) {
            return (enum rules_why)i;
        }
    }
    return WHY_RELEASED;
}

/* ── which ─────────────────────────────────────────────────────────────────────────────────── */

/* What stands between the Machine and an answer of its Node. */
static enum rules_why phase_obstacle(const struct rules_case *c)
{
    if (c->cluster == NULL) {
        return WHY_CLUSTER_MISSING;
    }
    if (c->machine->node.n == 0) {
        return WHY_NO_NODE;
    }
    switch (c->sight) {
    case RULES_UNKNOWN:
        return WHY_UNREACHABLE;
    case RULES_MISSED:
    case RULES_ABSENT:
        return WHY_NODE_MISSING;
    case RULES_SEEN:
        break;
    }
    return c->node == NULL || c->managed ? WHY_WAITING : WHY_ENGINE_ABSENT;
}

static enum rules_why phase_holding(const struct rules_case *c)
{
    enum rules_why why = phase_obstacle(c);
    const struct peer *p = c->node;
    if (why == WHY_WAITING && c->deletion_unasked) {
        return WHY_RULES_UNKNOWN;
    }
    bool another = why == WHY_WAITING && p != NULL && p->approve_deletion && p->machine_deleted &&
                   str_eq(p->deletion_request, c->machine->uid);
    return another ? WHY_ANOTHER : why; /* it would be let go otherwise */
}

static enum rules_why phase_requested(const struct rules_case *c)
{
    if (c->withheld) {
        return c->withheld_why;
    }
    enum rules_why why = phase_obstacle(c);
    return why == WHY_WAITING && c->maintenance_unasked ? WHY_RULES_UNKNOWN : why;
}

static enum rules_phase phase_of(const struct rules_case *c, enum rules_why *ret)
{
    const struct machine *m = c->machine;
    if (!m->enabled) {
        *ret = WHY_NOT_ENABLED;
        return RULES_OFF;
    }
    if (m->deleting && c->hook && m->node.n > 0) {
        *ret = phase_holding(c);
        return RULES_HOLDING;
    }
    if (m->deleting) {
        /* Cluster API does not ask the hook of a Machine without a Node. */
        *ret = c->loose ? c->loose_why : phase_obstacle(c);
        return RULES_LETTING_GO;
    }
    if (c->approved) {
        *ret = WHY_APPROVED;
        return RULES_IN_MAINTENANCE;
    }
    if (c->request == MACHINE_REQUEST_REQUESTED) {
        *ret = phase_requested(c);
        return RULES_REQUESTED;
    }
    if (c->hook) {
        *ret = c->cluster == NULL ? WHY_CLUSTER_MISSING : WHY_IDLE;
        return RULES_PROTECTED;
    }
    *ret = phase_obstacle(c);
    if (*ret == WHY_WAITING) {
        *ret = WHY_APPROVED; /* the strict mode, and nobody has asked */
    }
    return RULES_OPEN;
}

/* ── in words ──────────────────────────────────────────────────────────────────────────────── */

/* What a held deletion waits for. */
static struct str phase_hold_words(const struct rules_case *c, enum rules_why why)
{
    struct str node = c->machine->node;
    struct str cluster = c->machine->cluster;
    switch (why) {
    case WHY_UNREACHABLE:
        return arena_printf(c->out,
                            "The deletion is held while cluster '" STR_FMT
                            "' cannot be asked about Node '" STR_FMT "'.",
                            STR_ARG(cluster), STR_ARG(node));
    case WHY_NODE_MISSING:
        return arena_printf(c->out,
                            c->sight == RULES_MISSED
                                ? "Node '" STR_FMT "' is not in cluster '" STR_FMT
                                  "'; the deletion is held until live reads confirm it."
                                : "Node '" STR_FMT "' is not in cluster '" STR_FMT
                                  "', and --on-missing-node=hold keeps the deletion held.",
                            STR_ARG(node), STR_ARG(cluster));
    case WHY_ENGINE_ABSENT:
        return arena_printf(c->out,
                            "The deletion is held, but Node '" STR_FMT "' of cluster '" STR_FMT
                            "' has no label cloud.sap/maintenance-state: no maintenance engine is "
                            "there to approve it.",
                            STR_ARG(node), STR_ARG(cluster));
    case WHY_RULES_UNKNOWN:
        return arena_printf(c->out,
                            "The deletion is held, and Node '" STR_FMT "' of cluster '" STR_FMT
                            "' is not asked yet: " STR_FMT ".",
                            STR_ARG(node), STR_ARG(cluster), STR_ARG(c->facts->book_trouble));
    case WHY_ANOTHER:
        return arena_printf(c->out,
                            "The approval at Node '" STR_FMT "' of cluster '" STR_FMT
                            "' names another request than this deletion.",
                            STR_ARG(node), STR_ARG(cluster));
    default:
        if (c->facts->routed) {
            return arena_printf(c->out,
                                "The deletion waits until the limits of cluster '" STR_FMT
                                "' grant the MaintenanceRequest for Node '" STR_FMT "'.",
                                STR_ARG(cluster), STR_ARG(node));
        }
        return arena_printf(c->out,
                            "The deletion waits until the maintenance engine sets the label "
                            "approve-deletion at Node '" STR_FMT "' of cluster '" STR_FMT "'.",
                            STR_ARG(node), STR_ARG(cluster));
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

static struct str phase_loose_message(const struct rules_case *c, enum rules_why why)
{
    if (c->loose) {
        struct str because = rules_because(c, why);
        return arena_printf(c->out, "The deletion is not held: " STR_FMT ".", STR_ARG(because));
    }
    return why == WHY_NO_NODE ? STR("The deletion is not held: the Machine has no Node.")
                              : STR("The deletion is not held: no hook was attached before.");
}

static struct str phase_request_message(const struct rules_case *c, enum rules_why why)
{
    struct str node = c->machine->node;
    struct str cluster = c->machine->cluster;
    switch (why) {
    case WHY_CLUSTER_MISSING:
        return arena_printf(c->out, "The maintenance waits for Cluster '" STR_FMT "' to exist.",
                            STR_ARG(cluster));
    case WHY_NO_NODE:
        return STR("The maintenance waits until the Machine has a Node.");
    case WHY_UNREACHABLE:
        return arena_printf(c->out,
                            "The maintenance waits while cluster '" STR_FMT
                            "' cannot be asked about Node '" STR_FMT "'.",
                            STR_ARG(cluster), STR_ARG(node));
    case WHY_NODE_MISSING:
        return arena_printf(c->out,
                            "The maintenance waits for Node '" STR_FMT
                            "', which is not in cluster '" STR_FMT "'.",
                            STR_ARG(node), STR_ARG(cluster));
    case WHY_ENGINE_ABSENT:
        return arena_printf(c->out,
                            "Node '" STR_FMT "' of cluster '" STR_FMT
                            "' has no label cloud.sap/maintenance-state: no maintenance engine is "
                            "there to approve the maintenance.",
                            STR_ARG(node), STR_ARG(cluster));
    case WHY_RULES_UNKNOWN:
        return arena_printf(c->out,
                            "The maintenance waits, and Node '" STR_FMT "' of cluster '" STR_FMT
                            "' is not asked yet: " STR_FMT ".",
                            STR_ARG(node), STR_ARG(cluster), STR_ARG(c->facts->book_trouble));
    case WHY_ANOTHER:
        return arena_printf(c->out,
                            "The approval at Node '" STR_FMT "' of cluster '" STR_FMT
                            "' names another request than this maintenance.",
                            STR_ARG(node), STR_ARG(cluster));
    case WHY_UPDATE:
        return STR("The maintenance is approved at the Node, and waits for the end of an in-place "
                   "update of the Machine.");
    case WHY_BUSY:
        return arena_printf(c->out,
                            "The maintenance is approved at the Node, and waits until no other "
                            "Machine of the control plane of '" STR_FMT "' is in maintenance.",
                            STR_ARG(cluster));
    case WHY_QUORUM:
        return arena_printf(c->out,
                            "The maintenance is approved at the Node, and waits until %u other "
                            "Machines of the control plane of '" STR_FMT
                            "' are available; %u of %u are.",
                            (c->facts->members + 1) / 2 + 1, STR_ARG(cluster), c->facts->available,
                            c->facts->members);
    default:
        if (c->facts->routed) {
            return arena_printf(c->out,
                                "The maintenance waits until the limits of cluster '" STR_FMT
                                "' grant the MaintenanceRequest for Node '" STR_FMT "'.",
                                STR_ARG(cluster), STR_ARG(node));
        }
        return arena_printf(c->out,
                            "The maintenance waits until the maintenance engine sets the label "
                            "approve-maintenance at Node '" STR_FMT "' of cluster '" STR_FMT "'.",
                            STR_ARG(node), STR_ARG(cluster));
    }
}

static struct str phase_open_message(const struct rules_case *c, enum rules_why why)
{
    struct str node = c->machine->node;
    struct str cluster = c->machine->cluster;
    switch (why) {
    case WHY_CLUSTER_MISSING:
        return arena_printf(c->out, "Nothing is done: there is no Cluster '" STR_FMT "'.",
                            STR_ARG(cluster));
    case WHY_NO_NODE:
        return STR("The Machine has no Node yet; a deletion would not be held.");
    case WHY_UNREACHABLE:
        return arena_printf(c->out,
                            "Cluster '" STR_FMT "' cannot be asked about Node '" STR_FMT
                            "'; a deletion would not be held.",
                            STR_ARG(cluster), STR_ARG(node));
    case WHY_NODE_MISSING:
        return arena_printf(c->out,
                            "Node '" STR_FMT "' is not in cluster '" STR_FMT
                            "'; a deletion would not be held.",
                            STR_ARG(node), STR_ARG(cluster));
    case WHY_APPROVED:
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
    case RULES_OFF:
        return c->verdict->keeps_link
                   ? arena_printf(c->out,
                                  "The Machine is not enabled; what was asked of Node '" STR_FMT
                                  "' is being taken away.",
                                  STR_ARG(c->machine->node))
                   : STR("The Machine is not enabled.");
    case RULES_PAUSED:
        return why == WHY_MACHINE_PAUSED
                   ? STR("The Machine is paused: nothing is written.")
                   : arena_printf(c->out, "Cluster '" STR_FMT "' is paused: nothing is written.",
                                  STR_ARG(c->machine->cluster));
    case RULES_OPEN:
        return phase_open_message(c, why);
    case RULES_PROTECTED:
        return STR("A deletion would be held until the maintenance engine approves it.");
    case RULES_HOLDING:
        return phase_hold_message(c, why);
    case RULES_LETTING_GO:
        return phase_loose_message(c, why);
    case RULES_REQUESTED:
        return phase_request_message(c, why);
    case RULES_IN_MAINTENANCE:
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
    const struct peer *p = c->facts->node;
    return arena_printf(c->out,
                        "Node '" STR_FMT "' of cluster '" STR_FMT "' says that it belongs to "
                        "Machine '" STR_FMT "/" STR_FMT "': nothing is done.",
                        STR_ARG(c->machine->node), STR_ARG(c->machine->cluster), STR_ARG(p->space),
                        STR_ARG(p->machine));
}

void rules_phase(struct rules_case *c)
{
    struct rules_verdict *v = c->verdict;
    enum rules_why why = WHY_IDLE;
    v->phase = phase_of(c, &why);
    if (c->machine->paused) {
        v->phase = RULES_PAUSED;
        why = WHY_MACHINE_PAUSED;
    } else if (c->cluster != NULL && c->cluster->paused) {
        v->phase = RULES_PAUSED;
        why = WHY_CLUSTER_PAUSED;
    } else if (c->mismatch) {
        why = WHY_MISMATCH;
    }
    v->message = why == WHY_MISMATCH ? phase_mismatch_message(c) : phase_message(c, v->phase, why);
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

/* The same phase for another reason, which is not sure yet: not worth a write. */
static bool status_unsure(struct rules_case *c, enum rules_why why)
{
    enum rules_phase phase = c->verdict->phase;
    if (phase == RULES_LETTING_GO) {
        return true; /* nothing that follows depends on it */
    }
    if (phase == RULES_HOLDING && c->sight == RULES_MISSED) {
        return true; /* live reads will tell */
    }
    if (why == WHY_UNREACHABLE && c->facts->away < RULES_AWAY_TOLD) {
        rules_wake_in(c, RULES_AWAY_TOLD - c->facts->away);
        return true;
    }
    return false;
}

/* A deletion is held for a reason that somebody may have to look at: told once, with the status. */
static void status_warn(struct rules_case *c, enum rules_why why)
{
    if (c->verdict->phase != RULES_HOLDING) {
        return;
    }
    if (why == WHY_UNREACHABLE) {
        rules_tell(c, RULES_UNREACHABLE, c->verdict->message, RULES_WITH_MACHINE);
    } else if (why == WHY_NODE_MISSING && c->sight == RULES_ABSENT) {
        rules_tell(c, RULES_NODE_MISSING, c->verdict->message, RULES_WITH_MACHINE);
    }
}

/* Whether nothing of ours can be left on the Node, or be held for it; while the Machine is enabled,
 * whether that is known at all: what is left there goes together with it. */
static bool status_clean(const struct rules_case *c)
{
    if (c->cluster == NULL || c->machine->node.n == 0) {
        return true;
    }
    if (c->machine->enabled) {
        return c->sight != RULES_UNKNOWN;
    }
    if (c->facts->owed) {
        return false;
    }
    return c->sight == RULES_ABSENT || (c->node != NULL && !peer_marked(c->node));
}

void rules_status(struct rules_case *c)
{
    const struct machine *m = c->machine;
    enum rules_phase phase = c->verdict->phase;
    struct str old_phase;
    struct str old_reason;
    if (phase != RULES_HOLDING && phase != RULES_LETTING_GO && phase != RULES_REQUESTED &&
        phase != RULES_IN_MAINTENANCE) {
        /* Without it nobody would know that the Node is still to be cleaned. */
        if (m->status.p != NULL && status_clean(c)) {
            edit_remove(&c->verdict->machine, false, KEY_STATUS);
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
    edit_set(&c->verdict->machine, false, KEY_STATUS, status_print(c));
    status_warn(c, why);
}
