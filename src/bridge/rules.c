#include "bridge/rules.h"

#include "kinds/keys.h"
#include "bridge/rules_internal.h"

static const struct {
    struct str reason;
    bool warns;
} events[] = {
    [RULES_EVENT_HOOK_ATTACHED] = { STR_INIT("HookAttached"), false },
    [RULES_EVENT_HOOK_RELEASED] = { STR_INIT("HookReleased"), false },
    [RULES_EVENT_REQUEST_DELIVERED] = { STR_INIT("NodeRequestDelivered"), false },
    [RULES_EVENT_APPROVAL_RECEIVED] = { STR_INIT("ApprovalReceived"), false },
    [RULES_EVENT_STALE_APPROVAL] = { STR_INIT("StaleApprovalRemoved"), false },
    [RULES_EVENT_NODE_MISSING] = { STR_INIT("NodeMissing"), true },
    [RULES_EVENT_UNREACHABLE] = { STR_INIT("ClusterUnreachable"), true },
    [RULES_EVENT_MISMATCH] = { STR_INIT("PairingMismatch"), true },
    [RULES_EVENT_FORGED] = { STR_INIT("ForgedApproval"), true },
    [RULES_EVENT_HOLD_OVER] = { STR_INIT("HoldTimeOver"), true },
};

static const struct str phase_names[] = {
    [RULES_PHASE_NOT_ENABLED] = STR_INIT("NotEnabled"),
    [RULES_PHASE_PAUSED] = STR_INIT("Paused"),
    [RULES_PHASE_OPEN] = STR_INIT("Open"),
    [RULES_PHASE_PROTECTED] = STR_INIT("Protected"),
    [RULES_PHASE_HOLDING] = STR_INIT("HoldingDeletion"),
    [RULES_PHASE_LETTING_GO] = STR_INIT("LettingGo"),
    [RULES_PHASE_REQUESTED] = STR_INIT("MaintenanceRequested"),
    [RULES_PHASE_IN_MAINTENANCE] = STR_INIT("InMaintenance"),
};

struct str rules_event_reason(enum rules_event event)
{
    return events[event].reason;
}

bool rules_event_warns(enum rules_event event)
{
    return events[event].warns;
}

struct str rules_phase_name(enum rules_phase phase)
{
    return phase_names[phase];
}

void rules_event(struct rules_case *c, enum rules_event event, struct str note, uint32_t when)
{
    struct rules_verdict *v = c->verdict;
    ASSERT(v->event_n < RULES_EVENTS_MAX);
    v->events[v->event_n++] =
        (struct rules_event_record){ .event = event, .note = note, .when = when };
}

void rules_wake(struct rules_case *c, usec_t wall)
{
    c->verdict->next = MIN(c->verdict->next, wall);
}

void rules_wake_in(struct rules_case *c, usec_t rest)
{
    usec_t wall;
    if (!__builtin_add_overflow(c->facts->wall, rest, &wall)) {
        rules_wake(c, wall);
    }
}

/* What the Node says of its Machine is only compared; where it says nothing there is nothing to
 * compare (B13). */
static bool rules_mismatch(const struct rules_case *c)
{
    const struct machine *m = c->machine;
    const struct workload_node *p = c->node;
    if (p == NULL) {
        return false;
    }
    return (p->machine.p != NULL && !str_eq(p->machine, m->name)) ||
           (p->namespace.p != NULL && !str_eq(p->namespace, m->namespace));
}

static void rules_case_init(struct rules_case *c)
{
    const struct rules_facts *f = c->facts;
    ASSERT(f->sight != RULES_NODE_SEEN || f->node != NULL);
    c->machine = f->machine;
    c->cluster = f->cluster;
    c->sight = RULES_NODE_UNKNOWN;
    /* Without a UID there would be nothing to name a request by; the server gives one to all. */
    if (c->cluster != NULL && c->machine->node.n > 0 && c->machine->uid.n > 0) {
        c->sight = f->sight;
        c->node = f->sight == RULES_NODE_SEEN ? f->node : NULL;
    }
    c->managed = c->node != NULL && (c->node->managed || f->routed);
    c->hook = c->machine->hook;
    c->request = c->machine->request;
    c->approved = rules_approved(c->machine);
    c->mismatch = rules_mismatch(c);
    if (c->mismatch) {
        /* It is not seen: nothing of it counts, and it is not written. What rests on the Machine
         * alone goes on, so that whoever disables it is not held up by a Node that lies. */
        c->node = NULL;
        c->managed = false;
        c->sight = RULES_NODE_UNKNOWN;
    }
}

/* While a Machine is in maintenance nobody is to replace it (B20). What somebody else has written
 * there is left as it is. */
static void rules_skip_remediation(struct rules_case *c)
{
    const struct machine *m = c->machine;
    struct meta_patch *e = &c->verdict->machine;
    if (m->enabled && c->approved) {
        if (!m->skip && !m->deleting) {
            meta_patch_set(e, false, KEY_SKIP_REMEDIATION, STR(""));
            if (!m->skip_ours) {
                meta_patch_set(e, false, KEY_SKIP_OURS, KEYS_TRUE);
            }
        }
    } else if (m->skip_ours) {
        meta_patch_remove(e, false, KEY_SKIP_OURS);
        if (m->skip_empty) {
            meta_patch_remove(e, false, KEY_SKIP_REMEDIATION);
        }
    }
}

static void rules_patch(struct rules_case *c)
{
    const struct machine *m = c->machine;
    rules_deletion(c);
    rules_maintenance(c);
    rules_drain_rules(c);
    rules_hook(c);
    rules_skip_remediation(c);
    if (m->approved_by_annotation && m->request == MACHINE_REQUEST_NONE) {
        meta_patch_remove(&c->verdict->machine, false, KEY_APPROVED_ASIDE);
    }
}

/* A Machine that is not enabled needs its link until its Node is clean; KEY_STATUS tells that it
 * may not be (B17). */
static bool rules_keeps_link(const struct rules_case *c)
{
    const struct machine *m = c->machine;
    if (m->enabled || c->cluster == NULL || m->node.n == 0) {
        return false;
    }
    return m->status.p != NULL || (c->node != NULL && workload_node_marked(c->node));
}

static bool rules_confirm_absent(const struct rules_case *c)
{
    const struct machine *m = c->machine;
    bool holds = m->enabled && m->deleting && c->hook;
    return c->sight == RULES_NODE_MISSED && (holds || (!m->enabled && m->status.p != NULL));
}

void rules_decide(const struct rules_options *options, const struct rules_facts *facts,
                  struct arena *out, struct rules_verdict *ret)
{
    struct rules_case c = { .options = options, .facts = facts, .out = out, .verdict = ret };
    *ret = (struct rules_verdict){ .next = USEC_NEVER };
    rules_case_init(&c);
    ret->keeps_link = rules_keeps_link(&c);
    bool paused = c.machine->paused || (c.cluster != NULL && c.cluster->paused);
    ret->read_only = paused || c.mismatch || c.cluster == NULL;
    if (paused) {
        rules_phase(&c);
        return; /* paused objects are never written (B6) */
    }
    if (c.cluster == NULL && c.machine->enabled && !c.machine->deleting) {
        rules_phase(&c);
        return; /* it may be on its way; what is there stays */
    }
    rules_patch(&c);
    rules_phase(&c);
    if (c.mismatch) {
        rules_event(&c, RULES_EVENT_MISMATCH, ret->message, RULES_NOW);
        return;
    }
    rules_status(&c);
    ret->confirm_absent = rules_confirm_absent(&c);
}
