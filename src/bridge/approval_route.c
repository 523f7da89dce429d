#include "bridge/approval_route.h"

#include "kinds/keys.h"
#include "bridge/rules.h"

#define NOBODY UINT32_MAX

/* One of the two requests that a Node can carry, and what answers it. */
struct route_lane {
    struct str request; /* empty = none that is to be asked for */
    struct str answered;
    bool approved; /* the label is there */
    struct str label;
    struct str note;
    const char *reason;
    uint32_t plea; /* the one for `request`; NOBODY */
};

static struct str lane_deletion(const struct route_facts *f)
{
    const struct peer *p = f->node;
    bool there =
        p->machine_deleted && f->machine->uid.n > 0 && str_eq(p->deletion_request, f->machine->uid);
    return there ? p->deletion_request : STR_NONE;
}

static struct str lane_maintenance(const struct route_facts *f)
{
    const struct peer *p = f->node;
    struct str uid;
    struct str number;
    bool there = p->machine_maintenance && f->machine->uid.n > 0 &&
                 str_cut(p->maintenance_request, STR("/"), &uid, &number) &&
                 str_eq(uid, f->machine->uid);
    return there ? p->maintenance_request : STR_NONE;
}

/* Of this Node, by the bridge, and not over: a grant for another one is nobody's here. */
static bool route_counts(const struct route_facts *f, uint32_t i)
{
    return plea_open(f->pleas[i]) && str_eq(f->pleas[i]->node, f->name);
}

/* The plea that has come furthest; the others of that request are too many. */
static uint32_t lane_find(const struct route_facts *f, struct str request)
{
    uint32_t best = NOBODY;
    for (uint32_t i = 0; request.n > 0 && i < f->n; i++) {
        if (route_counts(f, i) && str_eq(f->pleas[i]->request, request) &&
            (best == NOBODY || f->pleas[i]->state > f->pleas[best]->state)) {
            best = i;
        }
    }
    return best;
}

static void lanes_read(const struct route_facts *f, struct route_lane lanes[2])
{
    const struct peer *p = f->node;
    lanes[0] = (struct route_lane){
        .answered = p->deletion_approved_for,
        .approved = p->approve_deletion,
        .label = KEY_APPROVE_DELETION,
        .note = KEY_DELETION_APPROVED_FOR,
        .reason = "Cluster API deletes the Machine of this node",
    };
    lanes[1] = (struct route_lane){
        .answered = p->maintenance_approved_for,
        .approved = p->approve_maintenance,
        .label = KEY_APPROVE_MAINTENANCE,
        .note = KEY_MAINTENANCE_APPROVED_FOR,
        .reason = "the Machine of this node is to be maintained",
    };
    if (f->machine != NULL) {
        lanes[0].request = lane_deletion(f);
        lanes[1].request = lane_maintenance(f);
    }
    /* A maintenance that nobody has begun would never be: the Machine is going. One that goes on is
     * waited for: a node has one grant at a time. */
    if (lanes[0].request.n > 0 && !rules_approved(f->machine)) {
        lanes[1].request = STR_NONE;
    }
    for (size_t i = 0; i < 2; i++) {
        lanes[i].plea = lane_find(f, lanes[i].request);
    }
}

/* The approval is there if and only if its grant is held. One that names nobody is not ours. */
static void lane_edit(const struct route_facts *f, const struct route_lane *lane, struct edit *e)
{
    bool held = lane->plea != NOBODY && f->pleas[lane->plea]->state == PLEA_IN_PROGRESS;
    if (held && !(lane->approved && str_eq(lane->answered, lane->request))) {
        edit_set(e, /* label= */ true, lane->label, KEYS_TRUE);
        edit_set(e, /* label= */ false, lane->note, lane->request);
    } else if (!held && lane->answered.p != NULL) {
        if (lane->approved) {
            edit_remove(e, /* label= */ true, lane->label);
        }
        edit_remove(e, /* label= */ false, lane->note);
    }
}

/* What is not needed any more is given back before anything new is asked for, but not while its
 * approval is still on the Node. */
static bool route_ends(const struct route_facts *f, const struct route_lane lanes[2], uint32_t i)
{
    const struct plea *p = f->pleas[i];
    if (!route_counts(f, i)) {
        return false;
    }
    if (f->node != NULL && f->machine == NULL) {
        return !str_eq(f->node->deletion_request, p->request) &&
               !str_eq(f->node->maintenance_request, p->request);
    }
    for (size_t k = 0; f->node != NULL && k < 2; k++) {
        bool answers = lanes[k].answered.p != NULL && str_eq(lanes[k].answered, p->request);
        bool other =
            lanes[k].plea != NOBODY && str_eq(f->pleas[lanes[k].plea]->request, p->request);
        if (lanes[k].plea == i || (answers && !other)) {
            return false;
        }
    }
    return true;
}

void route_stray(const struct peer *node, struct edit *ret)
{
    const struct route_facts facts = { .node = node };
    struct route_lane lanes[2];
    lanes_read(&facts, lanes);
    for (size_t i = 0; i < 2; i++) {
        lane_edit(&facts, &lanes[i], ret);
    }
}

void route_decide(const struct route_facts *facts, struct route_verdict *ret)
{
    struct route_lane lanes[2] = { { .plea = NOBODY }, { .plea = NOBODY } };
    *ret = (struct route_verdict){ 0 };
    for (uint32_t i = 0; i < facts->n; i++) {
        ret->busy = ret->busy || route_counts(facts, i);
    }
    if (facts->node != NULL) {
        lanes_read(facts, lanes);
        for (size_t i = 0; i < 2; i++) {
            lane_edit(facts, &lanes[i], &ret->node);
            ret->busy = ret->busy || lanes[i].request.n > 0;
        }
    }
    for (uint32_t i = 0; i < facts->n; i++) {
        if (route_ends(facts, lanes, i)) {
            ret->act = ROUTE_END;
            ret->which = i;
            return;
        }
    }
    for (size_t i = 0; i < 2; i++) {
        const struct route_lane *lane = &lanes[i];
        if (lane->request.n > 0 && lane->plea == NOBODY) {
            ret->act = ROUTE_ASK;
            ret->request = lane->request;
            ret->reason = lane->reason;
            return;
        }
        if (lane->plea != NOBODY && facts->pleas[lane->plea]->state == PLEA_APPROVED) {
            ret->act = ROUTE_BEGIN;
            ret->which = lane->plea;
            return;
        }
    }
}
