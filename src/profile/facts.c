/* Keeps what other systems answered, and says whether a new answer differs. */
#include "profile/facts.h"

#include <math.h>

#include "base/arena.h"
#include "base/alloc.h"
#include "base/map.h"
#include "kinds/keys.h"

#define FACTS_TEXT_FIRST 256u /* most answers have no text at all, the others a sentence */

struct facts_lease_slot {
    struct facts_lease answer;
    struct arena text;
};

struct facts_instance {
    struct facts_prometheus answer;
    struct arena text;
    struct facts_lease_slot **leases;
    uint32_t lease_n;
    uint32_t lease_cap;
    struct arena table; /* of `leases` */
};

struct facts_node {
    struct facts_affinity answer;
    struct arena text;
};

struct facts {
    struct facts_instance **instances; /* by index; NULL = nothing is known */
    uint32_t instance_n;
    struct arena table; /* of `instances` */
    struct map nodes;   /* name → struct facts_node */
    uint64_t node_changes;
    const struct informer *hypervisors; /* borrowed; NULL: they are not watched */
};

struct facts *facts_new(void)
{
    return ALLOC_NEW(struct facts);
}

static void facts_free_instance(struct facts_instance *x)
{
    if (x == NULL) {
        return;
    }
    for (uint32_t i = 0; i < x->lease_n; i++) {
        arena_done(&x->leases[i]->text);
        alloc_free(x->leases[i]);
    }
    arena_done(&x->table);
    arena_done(&x->text);
    alloc_free(x);
}

static void facts_free_node(struct facts_node *x)
{
    if (x != NULL) {
        arena_done(&x->text);
        alloc_free(x);
    }
}

void facts_free(struct facts *f)
{
    if (f == NULL) {
        return;
    }
    for (uint32_t i = 0; i < f->instance_n; i++) {
        facts_free_instance(f->instances[i]);
    }
    MAP_EACH (&f->nodes, item) {
        facts_free_node(map_item_value(item));
    }
    map_done(&f->nodes);
    arena_done(&f->table);
    alloc_free(f);
}

static const struct facts_instance *facts_find(const struct facts *f, uint32_t index)
{
    return index < f->instance_n ? f->instances[index] : NULL;
}

struct facts_prometheus facts_prometheus(const struct facts *f, uint32_t index)
{
    const struct facts_instance *x = facts_find(f, index);
    return x != NULL ? x->answer : (struct facts_prometheus){ 0 };
}

usec_t facts_asked(const struct facts *f, uint32_t index)
{
    const struct facts_instance *x = facts_find(f, index);
    return x != NULL && x->answer.known ? x->answer.asked : INT64_MIN;
}

struct facts_lease facts_stagger(const struct facts *f, uint32_t index, uint32_t i)
{
    const struct facts_instance *x = facts_find(f, index);
    return x != NULL && i < x->lease_n ? x->leases[i]->answer : (struct facts_lease){ 0 };
}

void facts_set_hypervisors(struct facts *f, const struct informer *hypervisors)
{
    f->hypervisors = hypervisors;
}

struct facts_hypervisor facts_hypervisor(const struct facts *f, struct str node, struct arena *out)
{
    const struct informer *s = f->hypervisors;
    struct facts_hypervisor ret = { 0 };
    if (s == NULL || (!s->synced && !s->failing)) {
        return ret;
    }
    const struct store_item *item = s->synced ? store_find(&s->store, node) : NULL;
    if (item != NULL && !s->failing) {
        ret.object = item->object;
    } else if (s->failing) {
        ret.error = arena_printf(out, HYPERVISORS_NAME " cannot be watched: %s", s->trouble.msg);
    } else if (s->absent) {
        ret.error = STR("the cluster has no kind " HYPERVISORS_NAME ": its CRD is not installed");
    } else {
        ret.error = arena_printf(out, HYPERVISORS_NAME " \"" STR_FMT "\" not found", STR_ARG(node));
    }
    return ret;
}

struct facts_affinity facts_affinity(const struct facts *f, struct str node)
{
    const struct facts_node *x = map_find(&f->nodes, node);
    return x != NULL ? x->answer : (struct facts_affinity){ 0 };
}

uint64_t facts_affinity_changes(const struct facts *f)
{
    return f->node_changes;
}

/* ── leases ────────────────────────────────────────────────────────────────────────────────── */

#define FACTS_LEASE_SPAN_MAX DAYS(36500) /* leaseDurationSeconds has 32 bits: 68 years */

/* The first instant at which the Lease has expired. As with the original, more than its duration
 * must have passed. */
static usec_t facts_lease_end(const struct facts_lease *lease)
{
    int64_t seconds = MAX(lease->duration_s, (int64_t)0);
    seconds = MIN(seconds, FACTS_LEASE_SPAN_MAX / SECONDS(1));
    return timestamp_to_usec(lease->renewed) + SECONDS(seconds) + 1;
}

bool facts_lease_is_free(const struct facts_lease *lease, usec_t wall)
{
    if (!lease->known || lease->error.n > 0) {
        return false;
    }
    return lease->absent || (lease->complete && wall >= facts_lease_end(lease));
}

usec_t facts_lease_free_at(const struct facts_lease *lease, usec_t wall)
{
    bool held = lease->known && lease->error.n == 0 && !lease->absent && lease->complete;
    return held && !facts_lease_is_free(lease, wall) ? facts_lease_end(lease) : USEC_NEVER;
}

/* ── putting ───────────────────────────────────────────────────────────────────────────────── */

static struct facts_instance *facts_make(struct facts *f, uint32_t index)
{
    if (index >= f->instance_n) {
        /* Only tests come here: facts_reindex sets the number of instances. */
        struct facts_instance **old = f->instances;
        f->instances = ARENA_ARRAY(&f->table, struct facts_instance *, (size_t)index + 1);
        for (uint32_t i = 0; i < f->instance_n; i++) {
            f->instances[i] = old[i];
        }
        f->instance_n = index + 1;
    }
    if (f->instances[index] == NULL) {
        struct facts_instance *x = ALLOC_NEW(struct facts_instance);
        x->text.first = FACTS_TEXT_FIRST;
        x->table.first = FACTS_TEXT_FIRST;
        f->instances[index] = x;
    }
    return f->instances[index];
}

static bool facts_same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool facts_same_prometheus(const struct facts_prometheus *a,
                                  const struct facts_prometheus *b)
{
    if (a->known != b->known || !str_eq(a->error, b->error) || a->warning_n != b->warning_n ||
        !facts_same_number(a->value, b->value)) {
        return false;
    }
    for (uint32_t i = 0; i < a->warning_n; i++) {
        if (!str_eq(a->warnings[i], b->warnings[i])) {
            return false;
        }
    }
    return true;
}

bool facts_put_prometheus(struct facts *f, uint32_t index, const struct facts_prometheus *answer)
{
    struct facts_instance *x = facts_make(f, index);
    if (facts_same_prometheus(&x->answer, answer)) {
        x->answer.asked = answer->asked;
        x->answer.answered = answer->answered;
        return false;
    }
    arena_reset(&x->text);
    x->answer = *answer;
    x->answer.error = answer->error.n > 0 ? arena_str(&x->text, answer->error) : STR_NONE;
    struct str *warnings = NULL;
    if (answer->warning_n > 0) {
        warnings = ARENA_ARRAY(&x->text, struct str, answer->warning_n);
    }
    for (uint32_t i = 0; i < answer->warning_n; i++) {
        warnings[i] = arena_str(&x->text, answer->warnings[i]);
    }
    x->answer.warnings = warnings;
    return true;
}

static bool facts_same_stamp(struct timestamp a, struct timestamp b)
{
    return a.sec == b.sec && a.nsec == b.nsec && a.offset == b.offset;
}

static bool facts_same_lease(const struct facts_lease *a, const struct facts_lease *b)
{
    return a->known == b->known && a->absent == b->absent && a->complete == b->complete &&
           str_eq(a->error, b->error) && str_eq(a->holder, b->holder) &&
           facts_same_stamp(a->renewed, b->renewed) && a->duration_s == b->duration_s;
}

bool facts_put_lease(struct facts *f, uint32_t index, uint32_t i, const struct facts_lease *answer)
{
    ASSERT(i < FACTS_LEASES_MAX);
    struct facts_instance *x = facts_make(f, index);
    while (x->lease_n <= i) {
        ARENA_GROW(&x->table, x->leases, x->lease_n, x->lease_cap);
        struct facts_lease_slot *slot = ALLOC_NEW(struct facts_lease_slot);
        slot->text.first = FACTS_TEXT_FIRST;
        x->leases[x->lease_n++] = slot;
    }
    struct facts_lease_slot *slot = x->leases[i];
    if (facts_same_lease(&slot->answer, answer)) {
        slot->answer.asked = answer->asked;
        return false;
    }
    arena_reset(&slot->text);
    slot->answer = *answer;
    slot->answer.error = answer->error.n > 0 ? arena_str(&slot->text, answer->error) : STR_NONE;
    slot->answer.holder = answer->holder.n > 0 ? arena_str(&slot->text, answer->holder) : STR_NONE;
    return true;
}

bool facts_put_affinity(struct facts *f, struct str node, const struct facts_affinity *answer)
{
    struct facts_node *x = map_find(&f->nodes, node);
    if (x == NULL) {
        x = ALLOC_NEW(struct facts_node);
        x->text.first = FACTS_TEXT_FIRST;
        (void)map_put(&f->nodes, node, x); /* it was not there */
    }
    if (x->answer.known == answer->known && x->answer.has == answer->has &&
        x->answer.live == answer->live && str_eq(x->answer.error, answer->error)) {
        x->answer.asked = answer->asked;
        return false;
    }
    /* Of a node that has such pods, no other node reads whether it is watched. */
    bool alone = x->answer.known && answer->known && x->answer.has && answer->has &&
                 str_eq(x->answer.error, answer->error);
    arena_reset(&x->text);
    x->answer = *answer;
    x->answer.error = answer->error.n > 0 ? arena_str(&x->text, answer->error) : STR_NONE;
    f->node_changes += alone ? 0 : 1;
    return true;
}

void facts_reindex(struct facts *f, const uint32_t *from, uint32_t n)
{
    struct arena table = { 0 };
    struct facts_instance **instances = NULL;
    if (n > 0) {
        instances = ARENA_ARRAY(&table, struct facts_instance *, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (from[i] < f->instance_n) {
            instances[i] = STEAL(f->instances[from[i]]);
        }
    }
    for (uint32_t i = 0; i < f->instance_n; i++) {
        facts_free_instance(f->instances[i]);
    }
    arena_done(&f->table);
    f->table = table;
    f->instances = instances;
    f->instance_n = n;
}

void facts_forget_node(struct facts *f, struct str node)
{
    facts_free_node(map_del(&f->nodes, node));
    f->node_changes++;
}
