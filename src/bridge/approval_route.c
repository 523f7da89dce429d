#include "bridge/approval_route.h"

#include "kinds/keys.h"
#include "bridge/rules.h"

#define NO_MATCH UINT32_MAX

/* One of the two requests that a Node can carry, and what answers it. */
struct approval_slot {
    struct str request; /* empty = none that is to be asked for */
    struct str answered;
    bool approved; /* the label is there */
    struct str label;
    struct str note;
    const char *reason;
    uint32_t match; /* the MaintenanceRequest for `request`; NO_MATCH */
};

static struct str slot_deletion_request(const struct approval_facts *f)
{
    const struct workload_node *p = f->node;
    bool there =
        p->machine_deleted && f->machine->uid.n > 0 && str_eq(p->deletion_request, f->machine->uid);
    return there ? p->deletion_request : STR_NONE;
}

static struct str slot_maintenance_request(const struct approval_facts *f)
{
    const struct workload_node *p = f->node;
    struct str uid;
    struct str number;
    bool there = p->machine_maintenance && f->machine->uid.n > 0 &&
                 str_cut(p->maintenance_request, STR("/"), &uid, &number) &&
                 str_eq(uid, f->machine->uid);
    return there ? p->maintenance_request : STR_NONE;
}

/* The MaintenanceRequest is for this Node, by the bridge, and not over. */
static bool approval_counts(const struct approval_facts *f, uint32_t i)
{
    return workload_request_is_open(f->requests[i]) && str_eq(f->requests[i]->target, f->name);
}

/* The MaintenanceRequest that has come furthest; others for that request are completed. */
static uint32_t slot_find_request(const struct approval_facts *f, struct str request)
{
    uint32_t best = NO_MATCH;
    for (uint32_t i = 0; request.n > 0 && i < f->n; i++) {
        if (approval_counts(f, i) && str_eq(f->requests[i]->machine_request, request) &&
            (best == NO_MATCH || mrequest_state_for_actor(f->requests[i]->state) >
                                     mrequest_state_for_actor(f->requests[best]->state))) {
            best = i;
        }
    }
    return best;
}

static void slots_read(const struct approval_facts *f, struct approval_slot slots[2])
{
    const struct workload_node *p = f->node;
    slots[0] = (struct approval_slot){
        .answered = p->deletion_approved_for,
        .approved = p->approve_deletion,
        .label = KEY_APPROVE_DELETION,
        .note = KEY_DELETION_APPROVED_FOR,
        .reason = "Cluster API deletes the Machine of this node",
    };
    slots[1] = (struct approval_slot){
        .answered = p->maintenance_approved_for,
        .approved = p->approve_maintenance,
        .label = KEY_APPROVE_MAINTENANCE,
        .note = KEY_MAINTENANCE_APPROVED_FOR,
        .reason = "the Machine of this node is to be maintained",
    };
    if (f->machine != NULL) {
        slots[0].request = slot_deletion_request(f);
        slots[1].request = slot_maintenance_request(f);
    }
    /* A maintenance that is not approved yet is not asked for: the Machine is being deleted. One
     * that has begun has to end first: a node has one grant at a time. */
    if (slots[0].request.n > 0 && !rules_approved(f->machine)) {
        slots[1].request = STR_NONE;
    }
    for (size_t i = 0; i < 2; i++) {
        slots[i].match = slot_find_request(f, slots[i].request);
    }
}

/* The approval is there if and only if its grant is held. One that names no request is not ours. */
static void slot_patch(const struct approval_facts *f, const struct approval_slot *slot,
                       struct meta_patch *e)
{
    bool held = slot->match != NO_MATCH && f->requests[slot->match]->state == MR_STATE_IN_PROGRESS;
    if (held && !(slot->approved && str_eq(slot->answered, slot->request))) {
        meta_patch_set(e, /* label= */ true, slot->label, KEYS_TRUE);
        meta_patch_set(e, /* label= */ false, slot->note, slot->request);
    } else if (!held && slot->answered.p != NULL) {
        if (slot->approved) {
            meta_patch_remove(e, /* label= */ true, slot->label);
        }
        meta_patch_remove(e, /* label= */ false, slot->note);
    }
}

/* A MaintenanceRequest that is not needed any more is completed before a new one is created, but
 * not while its approval is still on the Node. */
static bool must_complete(const struct approval_facts *f, const struct approval_slot slots[2],
                          uint32_t i)
{
    const struct maintenance_request *p = f->requests[i];
    if (!approval_counts(f, i)) {
        return false;
    }
    if (f->node != NULL && f->machine == NULL) {
        return !str_eq(f->node->deletion_request, p->machine_request) &&
               !str_eq(f->node->maintenance_request, p->machine_request);
    }
    for (size_t k = 0; f->node != NULL && k < 2; k++) {
        bool answers = slots[k].answered.p != NULL && str_eq(slots[k].answered, p->machine_request);
        bool other = slots[k].match != NO_MATCH &&
                     str_eq(f->requests[slots[k].match]->machine_request, p->machine_request);
        if (slots[k].match == i || (answers && !other)) {
            return false;
        }
    }
    return true;
}

void approval_orphan_node(const struct workload_node *node, struct meta_patch *ret)
{
    const struct approval_facts facts = { .node = node };
    struct approval_slot slots[2];
    slots_read(&facts, slots);
    for (size_t i = 0; i < 2; i++) {
        slot_patch(&facts, &slots[i], ret);
    }
}

void approval_decide(const struct approval_facts *facts, struct approval_verdict *ret)
{
    struct approval_slot slots[2] = { { .match = NO_MATCH }, { .match = NO_MATCH } };
    *ret = (struct approval_verdict){ 0 };
    for (uint32_t i = 0; i < facts->n; i++) {
        ret->needs_watch = ret->needs_watch || approval_counts(facts, i);
    }
    if (facts->node != NULL) {
        slots_read(facts, slots);
        for (size_t i = 0; i < 2; i++) {
            slot_patch(facts, &slots[i], &ret->node);
            ret->needs_watch = ret->needs_watch || slots[i].request.n > 0;
        }
    }
    for (uint32_t i = 0; i < facts->n; i++) {
        if (must_complete(facts, slots, i)) {
            ret->act = APPROVAL_COMPLETE;
            ret->which = i;
            return;
        }
    }
    for (size_t i = 0; i < 2; i++) {
        const struct approval_slot *slot = &slots[i];
        if (slot->request.n > 0 && slot->match == NO_MATCH) {
            ret->act = APPROVAL_CREATE;
            ret->request = slot->request;
            ret->reason = slot->reason;
            return;
        }
        if (slot->match != NO_MATCH && facts->requests[slot->match]->state == MR_STATE_APPROVED) {
            ret->act = APPROVAL_START;
            ret->which = slot->match;
            return;
        }
    }
}
