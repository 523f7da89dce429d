/* Whatever a MaintenanceLimit or a MaintenanceSelector holds, it is read; what a limit shows is
 * written in one step: read back, there is nothing left to write. */
#include "format/mergepatch.h"
#include "kinds/limit_status_patch.h"
#include "kinds/maintenance_selector.h"
#include "ledger/limit.h"
#include "tests/fuzz/target.h"

static void state(const struct limit *l, struct arena *a, struct buf *out,
                  struct limit_status_diff *ret)
{
    const struct limit_counts counts = {
        .population = 10,
        .granted = l->reservations.targets,
        .unavailable = 1,
    };
    struct limit_status s = {
        .limit = l,
        .reservations = &l->reservations,
        .reason = l->reason,
        .problem = l->problem,
        .computed = l->reason.n == 0,
        .unknown = l->problem,
        .population = counts.population,
        .targets = counts.granted,
        .unavailable = counts.unavailable,
        .nominal = limit_nominal(l, counts.population),
        .allowed = limit_effective(l, &counts),
        .overcommitted = limit_is_overcommitted(l, &counts),
        .policy_hits = &(struct policy_hit){ STR("n1"), STR("NotReady") },
        .policy_hit_n = 1,
        .now = SECONDS(1767323045),
    };
    limit_status_patch(&s, a, out, ret);
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf patch = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    struct limit l;
    struct maintenance_selector p;
    struct limit_status_diff diff;
    if (json_parse(text, JSON_GO, &a, &object, &err) < 0) {
        return;
    }
    maintenance_selector_parse(object, &a, &p);
    ASSERT(p.reason.n > 0 || p.has_selector || p.name_n > 0);
    limit_parse(object, &a, &l);
    ASSERT(l.type_known || l.reason.n > 0);
    ASSERT(limit_nominal(&l, 0) == 0 && l.reservations.targets <= l.reservations.n);
    state(&l, &a, &patch, &diff);
    if (!diff.any) {
        return;
    }
    struct tree *old = NULL;
    struct tree *change = NULL;
    struct tree *now = NULL;
    int r = tree_parse(l.status, &a, &old, &err);
    ASSERT(r == 0);
    r = tree_parse(buf_str(&patch), &a, &change, &err);
    ASSERT(r == 0);
    r = mergepatch_apply(old, change, &a, &now, &err);
    ASSERT(r == 0);
    struct tree *whole = tree_from(&a, object);
    if (tree_kind(whole) != JOBJ) {
        return;
    }
    tree_set(&a, whole, STR("status"), now);
    r = json_parse(tree_json(&a, whole), 0, &a, &object, &err);
    ASSERT(r == 0);
    limit_parse(object, &a, &l);
    buf_reset(&patch);
    state(&l, &a, &patch, &diff);
    ASSERT(!diff.any);
}
