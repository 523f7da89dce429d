/* NodeMaintenances that come before others (dependsOn). */
#include "operation/operations_internal.h"

/* Whether `to` can be reached from `from`, over at most `left` objects. */
static bool depends_reaches(const struct operations *o, const struct campaign *from,
                            const struct campaign *to, uint32_t left)
{
    for (uint32_t i = 0; left > 0 && i < from->m->depend_n; i++) {
        const struct campaign *next = operations_campaign_named(o, from->m->depends[i].name);
        if (next == to || (next != NULL && depends_reaches(o, next, to, left - 1))) {
            return true;
        }
    }
    return false;
}

#define CYCLE_LENGTH_MAX 8u /* a longer one waits, and says for whom */

void campaigns_find_cycles(struct operations *o)
{
    LIST_EACH (&o->campaigns, link) {
        struct campaign *c = CONTAINER_OF(link, struct campaign, link);
        if (c->problem.n == 0 && depends_reaches(o, c, c, CYCLE_LENGTH_MAX)) {
            c->problem_reason = STR("Cycle");
            c->problem = STR("spec.dependsOn: the object waits for itself, over others");
        }
    }
}

static struct str depend_missing(const struct maintenance_dependency *d, struct arena *out)
{
    return arena_printf(out, "spec.dependsOn: there is no NodeMaintenance '" STR_FMT "'",
                        STR_ARG(d->name));
}

/* Machines that both have, and that can run. */
static bool depend_is_done(const struct campaign *c, const struct campaign *first,
                           struct str operation)
{
    for (uint32_t i = 0; i < first->member_n; i++) {
        const struct campaign_member *theirs = &first->members[i];
        const struct turn_machine *machine = &c->o->machines[theirs->machine];
        if (machine->reachable && !theirs->held && !campaign_done_on(first, theirs, operation)) {
            return false;
        }
    }
    return first->member_n > 0 && first->problem.n == 0;
}

struct str campaign_waits_for(const struct campaign *c, const struct turn_machine *machine,
                              struct arena *out)
{
    for (uint32_t i = 0; i < c->m->depend_n; i++) {
        const struct maintenance_dependency *d = &c->m->depends[i];
        const struct campaign *first = operations_campaign_named(c->o, d->name);
        if (first == NULL) {
            return depend_missing(d, out);
        }
        if (d->same_node) {
            const struct campaign_member *theirs =
                machine != NULL ? campaign_member(first, machine) : NULL;
            if (theirs != NULL && !campaign_done_on(first, theirs, d->operation)) {
                return arena_printf(out, "NodeMaintenance '" STR_FMT "' on machine '" STR_FMT "'",
                                    STR_ARG(d->name), STR_ARG(machine->name));
            }
        } else if (!depend_is_done(c, first, d->operation)) {
            return arena_printf(out, "NodeMaintenance '" STR_FMT "' to be done", STR_ARG(d->name));
        }
    }
    return STR_NONE;
}
