/* Which of the turn's machines belong to a series. */
#include "operation/operations_internal.h"

uint32_t series_members(struct operations *o, const struct series_spec *series, bool *chosen)
{
    struct series_rank *ranks = ARENA_ARRAY(&o->tmp, struct series_rank, o->machine_n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->machine_n; i++) {
        const struct turn_machine *machine = &o->machines[i];
        usec_t old_enough = machine->node->created + series->min_age;
        chosen[i] = false;
        if (series_has(series, &machine->machine, o->now)) {
            ranks[n++] = series_rank(series->seed, machine->node->uid, i);
        } else if (series->min_age > 0 && old_enough > o->now) {
            operations_wake_at(o, old_enough);
        }
    }
    uint32_t kept = series->sample.given ? series_sample(series, ranks, n) : n;
    for (uint32_t i = 0; i < kept; i++) {
        chosen[ranks[i].index] = true;
    }
    return kept;
}
