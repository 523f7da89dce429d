/* rules_request: requests on the Node: when they are delivered, approved and removed. */
#include "kinds/keys.h"
#include "bridge/rules_internal.h"
#include "drain/drain_rules.h"

#define NUMBER_MAX 1000000000000ull /* of a request; a larger one was not written by us */

/* No request is delivered before the drain rules are known: its answer may be a drain. */
static bool rules_known(const struct rules_case *c)
{
    return c->facts->drain_rules.p != NULL;
}

/* An approval that was on the Node before its request, and the annotation that says what it
 * answers, go in the patch that delivers the request. */
static void stale_remove(struct rules_case *c, bool deletion)
{
    const struct workload_node *p = c->node;
    struct meta_patch *e = &c->verdict->node;
    struct str answered = deletion ? p->deletion_approved_for : p->maintenance_approved_for;
    if (c->options->strict_approval) {
        return;
    }
    if (answered.p != NULL) {
        meta_patch_remove(e, false,
                          deletion ? KEY_DELETION_APPROVED_FOR : KEY_MAINTENANCE_APPROVED_FOR);
    }
    if (deletion ? p->approve_deletion : p->approve_maintenance) {
        meta_patch_remove(e, true, deletion ? KEY_APPROVE_DELETION : KEY_APPROVE_MAINTENANCE);
        rules_event(c, RULES_EVENT_STALE_APPROVAL,
                    arena_printf(c->out,
                                 "the approval of a %s at Node '" STR_FMT
                                 "' was there before the request and is taken away",
                                 deletion ? "deletion" : "maintenance", STR_ARG(c->machine->node)),
                    RULES_WITH_NODE);
    }
}

/* ── deletion ──────────────────────────────────────────────────────────────────────────────── */

static bool deletion_wanted(const struct machine *m)
{
    return m->enabled && m->deleting;
}

static bool deletion_delivered(const struct rules_case *c)
{
    const struct workload_node *p = c->node;
    return p->machine_deleted && p->deletion_request.p != NULL &&
           str_eq(p->deletion_request, c->machine->uid);
}

bool rules_deletion_approved(const struct rules_case *c)
{
    const struct machine *m = c->machine;
    const struct workload_node *p = c->node;
    if (p == NULL || !m->deleting || !p->approve_deletion) {
        return false;
    }
    if (c->options->strict_approval) {
        return true;
    }
    return m->uid.n > 0 && deletion_delivered(c) &&
           (p->deletion_approved_for.p == NULL || str_eq(p->deletion_approved_for, m->uid));
}

bool rules_deletion_leftover(const struct machine *m, const struct workload_node *p)
{
    return m->enabled && !deletion_wanted(m) && p->operational && !p->machine_deleted &&
           p->approve_deletion && p->deletion_request.p != NULL;
}

static void deletion_deliver(struct rules_case *c)
{
    const struct machine *m = c->machine;
    const struct workload_node *p = c->node;
    struct meta_patch *e = &c->verdict->node;
    if (!p->machine_deleted) {
        meta_patch_set(e, true, KEY_MACHINE_DELETED, KEYS_TRUE);
    }
    if (p->deletion_request.p == NULL || !str_eq(p->deletion_request, m->uid)) {
        meta_patch_set(e, false, KEY_DELETION_REQUEST, m->uid);
    }
    rules_event(c, RULES_EVENT_REQUEST_DELIVERED,
                arena_printf(c->out, "Node '" STR_FMT "' is asked to let the Machine be deleted",
                             STR_ARG(m->node)),
                RULES_WITH_NODE);
    /* An approval for this very UID cannot be stale. After the release no approval is needed. */
    bool ours = p->deletion_approved_for.p != NULL && str_eq(p->deletion_approved_for, m->uid);
    if (!ours && m->released.p == NULL) {
        stale_remove(c, /* deletion= */ true);
    }
}

/* The engine removes a used approval; if it has not after a while, the bridge does (B16). */
static bool leftover_due(struct rules_case *c, bool leftover, usec_t since)
{
    if (!leftover || c->options->strict_approval) {
        return false;
    }
    if (since < RULES_LEFTOVER_GRACE) {
        rules_wake_in(c, RULES_LEFTOVER_GRACE - since);
        return false;
    }
    return true;
}

static void deletion_withdraw(struct rules_case *c)
{
    const struct workload_node *p = c->node;
    struct meta_patch *e = &c->verdict->node;
    bool spent =
        leftover_due(c, rules_deletion_leftover(c->machine, p), c->facts->deletion_leftover);
    if (p->machine_deleted) {
        meta_patch_remove(e, true, KEY_MACHINE_DELETED);
    }
    if (spent) {
        meta_patch_remove(e, true, KEY_APPROVE_DELETION);
    }
    /* The annotation says that the approval beside it answered a request of ours. */
    if (p->deletion_request.p != NULL && (spent || !p->approve_deletion || !c->machine->enabled)) {
        meta_patch_remove(e, false, KEY_DELETION_REQUEST);
    }
}

void rules_deletion(struct rules_case *c)
{
    if (c->node == NULL) {
        return;
    }
    if (!deletion_wanted(c->machine) || !c->managed) {
        deletion_withdraw(c);
    } else if (!deletion_delivered(c)) {
        c->deletion_unsent = !rules_known(c);
        if (rules_known(c)) {
            deletion_deliver(c);
        }
    }
}

/* ── maintenance ───────────────────────────────────────────────────────────────────────────── */

bool rules_approved(const struct machine *m)
{
    return m->request == MACHINE_REQUEST_APPROVED ||
           (m->request == MACHINE_REQUEST_REQUESTED && m->approved_by_annotation);
}

bool rules_maintenance_leftover(const struct machine *m, const struct workload_node *p)
{
    return m->enabled && m->request == MACHINE_REQUEST_NONE && p->operational &&
           !p->machine_maintenance && p->approve_maintenance && p->maintenance_request.p != NULL;
}

/* The number behind "<UID>/"; 0 = it is not one of this Machine's. */
static uint64_t request_number(const struct machine *m, struct str request)
{
    struct str uid;
    struct str digits;
    uint64_t number = 0;
    if (!str_cut(request, STR("/"), &uid, &digits) || !str_eq(uid, m->uid) ||
        !str_to_u64(digits, &number) || number > NUMBER_MAX) {
        return 0;
    }
    return number;
}

static struct str request_next(const struct rules_case *c)
{
    const struct machine *m = c->machine;
    uint64_t last =
        MAX(request_number(m, c->node->maintenance_request), request_number(m, m->granted));
    uint64_t next = last < NUMBER_MAX ? last + 1 : 1; /* only a Node that lies gets there */
    return arena_printf(c->out, STR_FMT "/%llu", STR_ARG(m->uid), (unsigned long long)next);
}

/* The Node does not carry this Machine's request, or carries one that was granted already: then the
 * operator has asked again. */
static bool maintenance_begins(const struct rules_case *c)
{
    const struct workload_node *p = c->node;
    return !p->machine_maintenance || request_number(c->machine, p->maintenance_request) == 0 ||
           str_eq(p->maintenance_request, c->machine->granted);
}

static struct str maintenance_begin(struct rules_case *c)
{
    const struct workload_node *p = c->node;
    struct meta_patch *e = &c->verdict->node;
    struct str request = request_next(c);
    if (!p->machine_maintenance) {
        meta_patch_set(e, true, KEY_MACHINE_MAINTENANCE, KEYS_TRUE);
    }
    meta_patch_set(e, false, KEY_MAINTENANCE_REQUEST, request);
    rules_event(c, RULES_EVENT_REQUEST_DELIVERED,
                arena_printf(c->out, "Node '" STR_FMT "' is asked for a maintenance",
                             STR_ARG(c->machine->node)),
                RULES_WITH_NODE);
    stale_remove(c, /* deletion= */ false);
    return request;
}

/* While the maintenance is approved, the request and its name stay on the Node. If the bridge did
 * not grant this request, somebody else has written `approved`: an approval that is already on the
 * Node must not answer it, and is removed. If the label is there without a name, the original
 * controller has asked, and the approval may be the answer; then it stays. */
static void maintenance_keep(struct rules_case *c)
{
    const struct machine *m = c->machine;
    const struct workload_node *p = c->node;
    struct meta_patch *e = &c->verdict->node;
    struct str request = p->maintenance_request;
    c->maintenance_unsent = (request.n == 0 || !p->machine_maintenance) && !rules_known(c);
    if (c->maintenance_unsent) {
        return;
    }
    if (request.n == 0) {
        request = m->granted.n > 0 ? m->granted : request_next(c);
        meta_patch_set(e, false, KEY_MAINTENANCE_REQUEST, request);
    }
    if (p->machine_maintenance) {
        return;
    }
    meta_patch_set(e, true, KEY_MACHINE_MAINTENANCE, KEYS_TRUE);
    if (!str_eq(request, m->granted)) {
        stale_remove(c, /* deletion= */ false);
    }
}

static void maintenance_withdraw(struct rules_case *c)
{
    const struct workload_node *p = c->node;
    struct meta_patch *e = &c->verdict->node;
    if (p->machine_maintenance) {
        meta_patch_remove(e, true, KEY_MACHINE_MAINTENANCE);
    }
    if (leftover_due(c, rules_maintenance_leftover(c->machine, p),
                     c->facts->maintenance_leftover)) {
        meta_patch_remove(e, true, KEY_APPROVE_MAINTENANCE);
    }
    /* While the Machine is enabled it carries the number of the last request. */
    if (!c->machine->enabled && p->maintenance_request.p != NULL) {
        meta_patch_remove(e, false, KEY_MAINTENANCE_REQUEST);
    }
}

/* Why an approval that is there is not passed on (B21). The strict mode passes on what the
 * original would; it does not know of control planes and updates, and they are guarded all the
 * same. */
static bool maintenance_withheld(const struct rules_case *c, enum rules_why *ret)
{
    const struct machine *m = c->machine;
    const struct rules_facts *f = c->facts;
    if (m->updating) {
        *ret = RULES_WHY_UPDATE;
    } else if (m->deleting && !c->options->strict_approval) {
        *ret = RULES_WHY_BEING_DELETED;
    } else if (m->control_plane && f->taken > 0) {
        *ret = RULES_WHY_BUSY;
    } else if (m->control_plane && f->members > 0 && f->available < (f->members + 1) / 2 + 1) {
        *ret = RULES_WHY_QUORUM; /* the others alone must be one */
    } else {
        return false;
    }
    return true;
}

static void maintenance_approve(struct rules_case *c, struct str request)
{
    const struct machine *m = c->machine;
    struct meta_patch *e = &c->verdict->machine;
    c->approved = true;
    c->verdict->approves = true;
    if (m->request_templated) {
        meta_patch_set(e, false, KEY_APPROVED_ASIDE,
                       KEYS_TRUE); /* the label would be written back */
    } else {
        c->request = MACHINE_REQUEST_APPROVED;
        meta_patch_set(e, true, KEY_MAINTENANCE, KEY_APPROVED);
    }
    if (!str_eq(m->granted, request)) {
        meta_patch_set(e, false, KEY_GRANTED, request);
    }
    rules_event(c, RULES_EVENT_APPROVAL_RECEIVED,
                arena_printf(c->out, "the maintenance of Node '" STR_FMT "' is approved%s",
                             STR_ARG(m->node),
                             m->request_templated
                                 ? "; a template owns the label 'maintenance', so the annotation "
                                   "drydock.dev/maintenance-approved says it"
                                 : ""),
                RULES_WITH_MACHINE);
}

static void maintenance_ask(struct rules_case *c)
{
    const struct workload_node *p = c->node;
    bool strict = c->options->strict_approval;
    bool begins = maintenance_begins(c);
    c->maintenance_unsent = begins && !rules_known(c);
    /* The strict mode may approve before the request is delivered; the request has a name then. */
    struct str request = !begins                 ? p->maintenance_request
                         : c->maintenance_unsent ? request_next(c)
                                                 : maintenance_begin(c);
    if (!p->approve_maintenance || (begins && !strict)) {
        return;
    }
    if (!strict && p->maintenance_approved_for.p != NULL &&
        !str_eq(p->maintenance_approved_for, request)) {
        c->withheld = true;
        c->withheld_why = RULES_WHY_ANOTHER;
        return;
    }
    c->withheld = maintenance_withheld(c, &c->withheld_why);
    if (!c->withheld) {
        maintenance_approve(c, request);
    }
}

/* Somebody has written `approved`, and neither we nor an approval at the Node know of it (B18). */
static bool maintenance_forged(const struct rules_case *c)
{
    const struct machine *m = c->machine;
    const struct workload_node *p = c->node;
    if (!m->enabled || m->request != MACHINE_REQUEST_APPROVED || p->approve_maintenance) {
        return false;
    }
    return m->granted.n == 0 ||
           (p->maintenance_request.n > 0 && !str_eq(p->maintenance_request, m->granted));
}

static void maintenance_suspect(struct rules_case *c)
{
    bool refuse = c->options->refuse_forged;
    c->forged = true;
    rules_event(c, RULES_EVENT_FORGED,
                arena_printf(c->out,
                             "the label 'maintenance' says approved, but nobody has approved it at "
                             "Node '" STR_FMT "'%s",
                             STR_ARG(c->machine->node), refuse ? "; it is set back" : ""),
                RULES_NOW);
    if (refuse) {
        c->approved = false;
        c->request = MACHINE_REQUEST_REQUESTED;
        meta_patch_set(&c->verdict->machine, true, KEY_MAINTENANCE, KEY_REQUESTED);
    }
}

void rules_maintenance(struct rules_case *c)
{
    const struct machine *m = c->machine;
    if (c->node == NULL) {
        return;
    }
    if (maintenance_forged(c)) {
        maintenance_suspect(c);
    }
    if (!m->enabled || m->request == MACHINE_REQUEST_NONE || !c->managed) {
        maintenance_withdraw(c);
    } else if (rules_approved(m)) {
        maintenance_keep(c);
    } else {
        maintenance_ask(c);
    }
}

/* ── drain rules ───────────────────────────────────────────────────────────────────────────── */

/* Whether the Node will have the label when the patch has succeeded. */
static bool has_label(const struct rules_case *c, struct str key, bool now)
{
    const struct meta_patch_key *patch = meta_patch_find(&c->verdict->node, /* label= */ true, key);
    return patch == NULL ? now : !patch->remove;
}

void rules_drain_rules(struct rules_case *c)
{
    const struct workload_node *p = c->node;
    struct meta_patch *e = &c->verdict->node;
    if (p == NULL) {
        return;
    }
    if (has_label(c, KEY_MACHINE_DELETED, p->machine_deleted) ||
        has_label(c, KEY_MACHINE_MAINTENANCE, p->machine_maintenance)) {
        if (rules_known(c) && p->drain_rules != workload_node_hash(c->facts->drain_rules)) {
            meta_patch_set(e, false, KEY_DRAIN_RULES, c->facts->drain_rules);
        }
        return;
    }
    /* Without a sign of the bridge beside it, the annotation may be somebody else's. */
    if (p->drain_rules != 0 &&
        (e->n > 0 || workload_node_marked(p) || c->machine->status.p != NULL)) {
        meta_patch_remove(e, false, KEY_DRAIN_RULES);
    }
}

void rules_orphan_node(const struct workload_node *node, struct meta_patch *ret)
{
    *ret = (struct meta_patch){ 0 };
    if (node->machine_deleted) {
        meta_patch_remove(ret, true, KEY_MACHINE_DELETED);
    }
    if (node->machine_maintenance) {
        meta_patch_remove(ret, true, KEY_MACHINE_MAINTENANCE);
    }
    if (node->deletion_request.p != NULL) {
        meta_patch_remove(ret, false, KEY_DELETION_REQUEST);
    }
    if (node->maintenance_request.p != NULL) {
        meta_patch_remove(ret, false, KEY_MAINTENANCE_REQUEST);
    }
    if (node->drain_rules != 0 && ret->n > 0) {
        meta_patch_remove(ret, false, KEY_DRAIN_RULES);
    }
}
