/* Gates behind a visit: asked when the machine is back at work, until they pass or their time is
 * over. The request stays as it is meanwhile, so nobody else is disturbed. */
#include "operation/operations_internal.h"

#define GATES_AFTER "rollout.gates.afterNode"

static bool after_gate_is_skipped(const struct campaign *c, const struct gates_asker *asker,
                                  const struct gate_place *p)
{
    return p->gate->on_timeout == GATE_SKIP && c->o->now >= asker->waits_since + p->gate->timeout;
}

/* Its time is over. The object pauses before the visit ends: otherwise the next machine might begin
 * in between. */
static enum visit_after after_time_is_over(struct campaign *c, const struct gates_answer *a,
                                           usec_t since)
{
    if (a->gate->on_timeout == GATE_FAIL) {
        return VISIT_AFTER_FAILS;
    }
    if (c->m->record.gate.timed_out >= since) {
        return VISIT_AFTER_PASSES;
    }
    campaign_time_out_at_gate(c, a->place, a->why);
    return VISIT_AFTER_WAITS;
}

static enum visit_after after_look(struct campaign *c, const struct gates_asker *asker,
                                   struct visit_facts *f)
{
    struct gates_answer a = campaign_gates_ask(c, GATES_AFTER, &c->m->rollout.after, asker);
    if (a.verdict == GATE_PASSES) {
        return VISIT_AFTER_PASSES;
    }
    usec_t end = asker->waits_since + a.gate->timeout;
    f->after_why = a.why;
    f->after_next = MIN(f->after_next, end);
    if (a.verdict == GATE_REFUSES && (a.final || c->o->now >= end)) {
        f->after_uid = c->m->meta.uid;
        return after_time_is_over(c, &a, asker->waits_since);
    }
    return VISIT_AFTER_WAITS;
}

void work_after_gates(struct work *w, const struct turn_machine *machine,
                      const struct visit_record *v, struct visit_facts *f)
{
    bool asks = v->phase == VISIT_VERIFYING && f->node_there && v->failure.n == 0 &&
                !str_eq(f->visit_mark, v->id);
    w->verified = !asks ? 0 : w->verified == 0 ? loop_now(w->o->loop) : w->verified;
    f->after = VISIT_AFTER_PASSES;
    f->after_next = USEC_NEVER;
    for (uint32_t i = 0; i < v->run_n; i++) {
        struct campaign *c = operations_campaign(w->o, v->runs[i].maintenance_uid);
        if (c == NULL || c->problem.n > 0 || c->m->rollout.after.n == 0 ||
            !visit_run_is_first(v, i)) {
            continue;
        }
        f->after_gates = true;
        if (asks && f->after != VISIT_AFTER_FAILS) {
            const struct gates_asker asker = { .machine = machine,
                                               .since = w->verified,
                                               .waits_since = v->phase_time,
                                               .skips = after_gate_is_skipped };
            enum visit_after after = after_look(c, &asker, f);
            f->after = after == VISIT_AFTER_PASSES ? f->after : after;
        }
    }
}
