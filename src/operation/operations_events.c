/*
 * Events of operations: on the NodeMaintenance what its author waits for, and on the Node what was
 * done to it.
 *
 * 5,000 nodes must not drown the Events of drains, so successes are gathered and told once a
 * minute with their numbers, Nodes hear of failures and reboots only, and all of them together come
 * at a limited rate; what is above it is left out, since the status tells the same.
 */
#include "operation/operations_internal.h"

#define EVENTS_RATE 5u    /* a second, */
#define EVENTS_BURST 200u /* after as many at once */
#define GATHER_EVERY MINUTES(1)

void operations_events_init(struct operations *o)
{
    o->events = (struct ratelimit){ .rate = EVENTS_RATE, .burst = EVENTS_BURST };
}

static void events_send(struct operations *o, const struct recorder_event *event)
{
    usec_t now = loop_now(o->loop);
    if (ratelimit_ready_at(&o->events, now) > now) {
        log_debug(o->log, "an Event is left out: there are too many",
                  KV_STR("reason", event->reason), KV_STR("note", event->note));
        return;
    }
    ratelimit_take(&o->events, now);
    recorder_add(&o->core->recorder, event);
}

void operations_tell(struct operations *o, const struct campaign *c, struct str node, bool warning,
                     const char *reason, struct str note)
{
    const struct turn_machine *machine = node.n > 0 ? operations_machine(o, node) : NULL;
    const struct recorder_ref object = { .kind = STR("NodeMaintenance"),
                                         .api_version = STR(OPERATION_API_VERSION),
                                         .name = c->m->meta.name,
                                         .uid = c->m->meta.uid };
    const struct recorder_ref where = { .kind = STR("Node"),
                                        .api_version = STR("v1"),
                                        .name = node,
                                        .uid = machine != NULL ? machine->node->uid : STR_NONE };
    struct recorder_event event = {
        .type = warning ? STR("Warning") : STR("Normal"),
        .reason = str_from(reason),
        .action = STR("Operate"),
        .note = note,
        .regarding = object,
        .related = where,
    };
    events_send(o, &event);
    if (machine != NULL) {
        event.regarding = where;
        event.related = object;
        events_send(o, &event);
    }
}

/* ── a visit has ended ─────────────────────────────────────────────────────────────────────── */

static void tell_run(struct operations *o, struct campaign *c, struct str node,
                     const struct visit_run *run)
{
    if (run->phase == VISIT_RUN_FAILED) {
        operations_tell(o, c, node, /* warning= */ true, "RunFailed",
                        arena_printf(&o->tmp,
                                     "operation " STR_FMT " failed on node " STR_FMT
                                     ", attempt %u: " STR_FMT ": " STR_FMT,
                                     STR_ARG(run->operation), STR_ARG(node), run->attempt,
                                     STR_ARG(run->reason), STR_ARG(run->message)));
    } else if (run->phase == VISIT_RUN_SUCCEEDED || run->phase == VISIT_RUN_SKIPPED) {
        struct campaign_gathered *g = &c->gathered;
        g->since = g->succeeded + g->skipped == 0 ? o->now : g->since;
        g->succeeded += run->phase == VISIT_RUN_SUCCEEDED ? 1 : 0;
        g->skipped += run->phase == VISIT_RUN_SKIPPED ? 1 : 0;
    }
}

void operations_tell_end(struct operations *o, struct str node, const struct visit_record *v)
{
    for (uint32_t i = 0; i < v->run_n; i++) {
        struct campaign *c = operations_campaign(o, v->runs[i].maintenance_uid);
        if (c != NULL) {
            tell_run(o, c, node, &v->runs[i]);
        }
    }
    struct campaign *first =
        v->run_n > 0 ? operations_campaign(o, v->runs[0].maintenance_uid) : NULL;
    if (first != NULL && v->failure.n > 0) {
        operations_tell(o, first, node, /* warning= */ true, "VisitFailed",
                        arena_printf(&o->tmp, "node " STR_FMT ": " STR_FMT ": " STR_FMT,
                                     STR_ARG(node), STR_ARG(v->failure), STR_ARG(v->message)));
    } else if (first != NULL && v->reboot_id.n > 0) {
        operations_tell(
            o, first, node, /* warning= */ false, "Rebooted",
            arena_printf(&o->tmp, "node " STR_FMT " was rebooted and is back", STR_ARG(node)));
    }
}

void campaign_tell_gathered(struct campaign *c)
{
    struct campaign_gathered *g = &c->gathered;
    if (g->succeeded + g->skipped == 0) {
        return;
    }
    if (c->o->now < g->since + GATHER_EVERY) {
        operations_wake_at(c->o, g->since + GATHER_EVERY);
        return;
    }
    operations_tell(c->o, c, STR_NONE, /* warning= */ false, "RunsSucceeded",
                    arena_printf(&c->o->tmp,
                                 "%u runs succeeded, %u found nothing to do; %u of %u machines are "
                                 "done",
                                 g->succeeded, g->skipped, c->counts.succeeded + c->counts.skipped,
                                 c->counts.selected));
    *g = (struct campaign_gathered){ 0 };
}

/* ── the status says something new ─────────────────────────────────────────────────────────── */

enum {
    TURNED_REFUSED = 1 << 0,
    TURNED_PAUSED = 1 << 1,
    TURNED_COMPLETE = 1 << 2,
    TURNED_OVERRIDE = 1 << 3,
    TURNED_APPROVAL = 1 << 4,
};

static bool status_has(const struct jval *status, const char *type, const char *truth,
                       const char *reason)
{
    JVAL_EACH (jval_get(status, STR("conditions")), c) {
        if (str_eq(jval_str(jval_get(c, STR("type"))), str_from(type))) {
            return str_eq(jval_str(jval_get(c, STR("status"))), str_from(truth)) &&
                   (reason == NULL ||
                    str_eq(jval_str(jval_get(c, STR("reason"))), str_from(reason)));
        }
    }
    return false;
}

static unsigned status_points(const struct jval *status)
{
    static const struct {
        unsigned point;
        const char *type;
        const char *truth;
        const char *reason; /* NULL: any */
    } points[] = {
        { TURNED_REFUSED, "Accepted", "False", NULL },
        { TURNED_PAUSED, "Paused", "True", "FailureLimit" },
        { TURNED_PAUSED, "Paused", "True", "GateTimeout" },
        { TURNED_COMPLETE, "Complete", "True", NULL },
        { TURNED_OVERRIDE, "WindowOpen", "True", "Override" },
    };
    unsigned is = 0;
    for (uint32_t i = 0; i < ARRAY_LEN(points); i++) {
        bool has = status_has(status, points[i].type, points[i].truth, points[i].reason);
        is |= has ? points[i].point : 0;
    }
    if (str_eq(jval_str(jval_get(status, STR("reason"))), STR("WaitingApproval"))) {
        is |= TURNED_APPROVAL;
    }
    return is;
}

void campaign_note_turning(struct campaign *c, const struct jval *old, struct str text)
{
    const struct jval *status = NULL;
    struct err err = { 0 };
    c->turned = 0;
    if (json_parse(text, JSON_GO, &c->o->tmp, &status, &err) == 0) {
        c->turned = status_points(status) & ~status_points(old);
    }
}

void campaign_tell_turning(struct campaign *c)
{
    struct operations *o = c->o;
    char until[TIMESTAMP_TEXT_MAX];
    const struct maintenance_when *when = &c->m->window;
    unsigned turned = c->turned;
    c->turned = 0;
    if ((turned & TURNED_REFUSED) != 0) {
        operations_tell(o, c, STR_NONE, /* warning= */ true, "NotAccepted", c->problem);
    }
    if ((turned & TURNED_PAUSED) != 0) {
        operations_tell(o, c, STR_NONE, /* warning= */ true, "Paused", c->wait.message);
    }
    if ((turned & TURNED_COMPLETE) != 0) {
        operations_tell(o, c, STR_NONE, /* warning= */ false, "Complete",
                        arena_printf(&o->tmp, "all %u machines have done it", c->counts.selected));
    }
    if ((turned & TURNED_OVERRIDE) != 0) {
        operations_tell(
            o, c, STR_NONE, /* warning= */ true, "WindowOverride",
            arena_printf(&o->tmp,
                         "spec.window.override passes by windows and freezes until " STR_FMT
                         ": " STR_FMT,
                         STR_ARG(timestamp_print_seconds(when->override_until, until)),
                         STR_ARG(when->override_reason)));
    }
    if ((turned & TURNED_APPROVAL) != 0) {
        operations_tell(o, c, STR_NONE, /* warning= */ false, "WaitingApproval",
                        arena_printf(&o->tmp,
                                     "the next wave begins after 'drydock approve " STR_FMT "'",
                                     STR_ARG(c->m->meta.name)));
    }
}
