/* The status of a NodeSeries: the machines that belong to it. */
#include "base/hex.h"
#include "operation/reference_status.h"

#define SERIES_STATUS_NAMES_MAX 256u /* the schema's */

static const struct node_series *series_of(const void *object)
{
    return object;
}

static struct str series_status(const void *object)
{
    return series_of(object)->status;
}

static const struct spec_meta *series_meta(const void *object)
{
    return &series_of(object)->meta;
}

/* Nodes, and what is known about their machines. */
static uint64_t series_sources(const struct operations *o)
{
    return o->core->nodes.store.revision + o->states.store.revision;
}

struct series_look {
    struct tree *names;
    struct buf set; /* the UIDs */
    uint32_t matched;
    uint32_t held;
};

static void series_look_at(const struct reference *r, struct series_look *look, struct arena *tmp)
{
    const struct node_series *series = r->item->object;
    struct operations *o = r->o;
    bool *chosen = ARENA_ARRAY(tmp, bool, o->machine_n);
    look->matched = series_members(o, &series->spec, chosen);
    for (uint32_t i = 0; i < o->machine_n; i++) {
        const struct turn_machine *machine = &o->machines[i];
        if (!chosen[i]) {
            continue;
        }
        look->held += machine_is_held(&machine->machine, STR_NONE) ? 1 : 0;
        buf_add(&look->set, machine->node->uid);
        buf_add_char(&look->set, '\n');
        if (look->names->n < SERIES_STATUS_NAMES_MAX) {
            tree_add(look->names, tree_str(tmp, machine->name));
        }
    }
}

static struct tree *series_hash(struct str set, struct arena *tmp)
{
    CLEANUP(buf_done)
    struct buf hex = { 0 };
    unsigned char hash[SHA256_BYTES];
    sha256(set, hash);
    hex_add(&hex, hash, sizeof(hash), /* upper= */ false);
    return tree_str(tmp, buf_str(&hex));
}

/* When the next machine is old enough. */
static usec_t series_until(const struct reference *r)
{
    const struct node_series *series = r->item->object;
    usec_t until = USEC_NEVER;
    for (uint32_t i = 0; series->spec.min_age > 0 && i < r->o->machine_n; i++) {
        usec_t at = r->o->machines[i].node->created + series->spec.min_age;
        until = at > r->o->now ? MIN(until, at) : until;
    }
    return until;
}

static bool series_compose(struct reference *r, struct tree *status, usec_t *until,
                           struct arena *tmp)
{
    const struct node_series *series = r->item->object;
    bool good = series->problem.reason.n == 0;
    struct series_look look = { .names = tree_arr(tmp) };
    if (good) {
        series_look_at(r, &look, tmp);
        *until = series_until(r);
    }
    bool none = good && look.matched == 0;
    const struct status_condition resolved = { "Resolved", good,
                                               good ? none ? STR("NoMachines") : STR("Resolved")
                                                    : series->problem.reason,
                                               good ? none ? STR("no node matches spec") : STR("")
                                                    : spec_problem_text(&series->problem, tmp) };
    tree_set(tmp, status, STR("matched"), tree_i64(tmp, look.matched));
    tree_set(tmp, status, STR("external"), tree_i64(tmp, 0)); /* there are none yet */
    tree_set(tmp, status, STR("held"), tree_i64(tmp, look.held));
    tree_set(tmp, status, STR("hash"), series_hash(buf_str(&look.set), tmp));
    tree_set(tmp, status, STR("names"), look.names);
    reference_set_condition(r, status, &resolved, tmp);
    buf_done(&look.set);
    return true;
}

const struct reference_kind series_reference = {
    .path = NODE_SERIES_PATH,
    .status = series_status,
    .meta = series_meta,
    .sources = series_sources,
    .compose = series_compose,
};
