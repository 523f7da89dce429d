/* Gates of a wave: asked for as long as it soaks. One that refuses lets the soak begin again, once;
 * the second time a person has to look. */
#include "operation/operations_internal.h"

static struct str wave_gates_name(const struct campaign *c, uint32_t wave)
{
    return arena_printf(&c->o->tmp, "rollout.waves[%u].gates", wave);
}

struct gates_answer campaign_look_at_wave_gates(struct campaign *c,
                                                const struct rollout_record *record,
                                                const struct rollout_spec *spec,
                                                struct rollout_wave *waves)
{
    struct gates_answer answer = { .verdict = GATE_PASSES, .next = USEC_NEVER };
    for (uint32_t i = 0; i < spec->wave_n; i++) {
        const struct maintenance_gates *gates = &c->m->rollout.waves[i].gates;
        waves[i].gates_unknown = gates->n > 0;
        if (gates->n > 0 && i == record->wave && record->complete_at > 0) {
            const struct gates_asker asker = { .machine = NULL };
            answer = campaign_gates_ask(c, wave_gates_name(c, i).p, gates, &asker);
            waves[i].gates_fail = answer.verdict == GATE_REFUSES;
            waves[i].gates_unknown = answer.verdict == GATE_NOT_KNOWN;
        }
    }
    return answer;
}

void campaign_tell_soak(struct campaign *c, const struct gates_answer *gates)
{
    bool soaks = c->plan.wait == ROLLOUT_WAIT_SOAK;
    if (c->plan.wait == ROLLOUT_WAIT_SOAK_FAILED) {
        c->paused = true;
        c->pause_reason = c->wait.reason;
    }
    if (!soaks || gates->verdict != GATE_REFUSES) {
        return;
    }
    bool waited = str_eq(c->m->record.gate.place, gates->place) && c->m->record.gate.since > 0;
    c->wait.message = arena_printf(
        &c->o->tmp, "the quiet time of the wave begins again when this passes: " STR_FMT,
        STR_ARG(gates->why));
    c->gate = (struct maintenance_gate_record){
        .place = gates->place,
        .revision = c->revision,
        .since = waited ? c->m->record.gate.since : c->o->now,
        .next = gates->next,
        .message = str_sub(gates->why, 0, MIN(gates->why.n, (size_t)GATE_MESSAGE_MAX)),
    };
}
