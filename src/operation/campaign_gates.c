/* Gates before a visit: conditions of the cluster that are looked at when a machine is next, and
 * again when its request is approved. What cannot be read has not passed. */
#include "operation/operations_internal.h"

struct gate_count {
    uint32_t whole;
    uint32_t not_ready;
    uint32_t cordoned;
};

/* The machine of the visit itself does not count: a limit may have cordoned it already. */
static struct gate_count gate_count_nodes(const struct operations *o,
                                          const struct maintenance_gate *g,
                                          const struct turn_machine *except)
{
    struct gate_count n = { 0 };
    for (uint32_t i = 0; i < o->machine_n; i++) {
        const struct turn_machine *t = &o->machines[i];
        if (g->has_selector &&
            !selector_match(&g->selector, t->machine.label, t->machine.label_ctx)) {
            continue;
        }
        n.whole++;
        n.not_ready += t != except && !t->node->ready ? 1 : 0;
        n.cordoned += t != except && t->node->unschedulable ? 1 : 0;
    }
    return n;
}

static struct str gate_refuses(uint32_t found, struct spec_share share, uint32_t whole,
                               const char *what, const char *field, struct arena *out)
{
    uint32_t allowed = spec_share_of(share, whole);
    return found <= allowed ? STR_NONE
                            : arena_printf(out, "%u nodes are %s, and gate nodes.%s allows %u",
                                           found, what, field, allowed);
}

struct str campaign_gates_refuse(const struct campaign *c, const struct turn_machine *machine)
{
    const struct maintenance_gates *gates = &c->m->rollout.before;
    struct arena *out = &c->o->tmp;
    for (uint32_t i = 0; i < gates->n; i++) {
        const struct maintenance_gate *g = &gates->items[i];
        struct gate_count n = gate_count_nodes(c->o, g, machine);
        struct str why = STR_NONE;
        if (g->max_not_ready.given) {
            why = gate_refuses(n.not_ready, g->max_not_ready, n.whole, "not Ready", "maxNotReady",
                               out);
        }
        if (why.n == 0 && g->max_cordoned.given) {
            why =
                gate_refuses(n.cordoned, g->max_cordoned, n.whole, "cordoned", "maxCordoned", out);
        }
        if (why.n > 0) {
            return why;
        }
    }
    return STR_NONE;
}

void campaign_look_at_gates(struct campaign *c)
{
    uint32_t kept = 0;
    struct str why = STR_NONE;
    for (uint32_t i = 0; i < c->plan.next_n; i++) {
        const struct turn_machine *t = &c->o->machines[c->members[c->plan.next[i]].machine];
        struct str refused = campaign_gates_refuse(c, t);
        if (refused.n == 0) {
            c->plan.next[kept++] = c->plan.next[i];
        } else {
            why = refused;
        }
    }
    if (c->plan.next_n > 0 && kept == 0) {
        c->wait = (struct campaign_wait){ .reason = STR("WaitingGate"), .message = why };
    }
    c->plan.next_n = kept;
}
