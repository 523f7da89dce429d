#include "operation/rollout.h"

#include <stdlib.h>

#include "format/digest.h"

#define SOAK_CEILING_TIMES 4 /* a soak that is restarted all the time ends */
#define SOAK_CEILING_MORE HOURS(1)
#define SOAK_RESTARTS_MAX 1u

uint64_t rollout_hash(struct str machine)
{
    return sha256_u64(machine);
}

uint32_t rollout_resolve(struct rollout_count count, uint32_t of)
{
    return count.percent ? (uint32_t)(((uint64_t)of * count.value + 99) / 100) : count.value;
}

/* A machine with its place in the order of the hash, and what was found out about it. */
struct ranked {
    const struct rollout_machine *machine;
    uint32_t index;
    bool member;     /* of the waves up to the one under way */
    bool of_earlier; /* of one before it */
};

struct rollout {
    const struct rollout_spec *spec;
    const struct rollout_facts *facts;
    struct ranked *ranked;
    uint32_t n;
    uint32_t runnable;
};

static bool machine_ended(const struct rollout_machine *m)
{
    return m->progress >= ROLLOUT_SUCCEEDED;
}

/* It counts for the size of a wave: it can run, or has been at it. A canary that died of it is not
 * replaced by the next one. */
static bool machine_counts(const struct rollout_machine *m)
{
    return m->can_run || m->progress == ROLLOUT_ACTIVE || machine_ended(m);
}

static int ranked_cmp(const void *a, const void *b)
{
    const struct rollout_machine *x = ((const struct ranked *)a)->machine;
    const struct rollout_machine *y = ((const struct ranked *)b)->machine;
    if (x->hash != y->hash) {
        return x->hash < y->hash ? -1 : 1;
    }
    return str_cmp(x->name, y->name);
}

static void rollout_rank(struct rollout *r, struct arena *out)
{
    const struct rollout_facts *f = r->facts;
    r->n = f->machine_n;
    r->ranked = ARENA_ARRAY(out, struct ranked, MAX(r->n, 1u));
    for (uint32_t i = 0; i < r->n; i++) {
        r->ranked[i] = (struct ranked){ .machine = &f->machines[i], .index = i };
        r->runnable += machine_counts(&f->machines[i]) ? 1 : 0;
    }
    qsort(r->ranked, r->n, sizeof(r->ranked[0]), ranked_cmp);
}

/* Marks who belongs to the waves up to `wave`. */
static void rollout_find_members(struct rollout *r, uint32_t wave)
{
    for (uint32_t i = 0; i < r->n; i++) {
        r->ranked[i].member = wave >= r->spec->wave_n;
        r->ranked[i].of_earlier = false;
    }
    for (uint32_t w = 0; w < r->spec->wave_n && w <= wave; w++) {
        const struct rollout_wave *spec = &r->spec->waves[w];
        uint32_t size = spec->by_selector ? 0 : rollout_resolve(spec->size, r->runnable);
        uint32_t rank = 0;
        for (uint32_t i = 0; i < r->n; i++) {
            struct ranked *k = &r->ranked[i];
            bool taken = spec->by_selector ? ((k->machine->selectors >> w) & 1) != 0
                                           : machine_counts(k->machine) && rank < size;
            rank += machine_counts(k->machine) ? 1 : 0;
            k->member = k->member || taken;
            k->of_earlier = k->of_earlier || (taken && w < wave);
        }
    }
}

void rollout_find_waves(const struct rollout_spec *spec, const struct rollout_facts *facts,
                        struct arena *tmp, uint32_t *ret)
{
    struct rollout r = { .spec = spec, .facts = facts };
    rollout_rank(&r, tmp);
    for (uint32_t i = 0; i < r.n; i++) {
        ret[i] = spec->wave_n;
    }
    for (uint32_t w = spec->wave_n; w > 0; w--) {
        rollout_find_members(&r, w - 1);
        for (uint32_t i = 0; i < r.n; i++) {
            ret[r.ranked[i].index] = r.ranked[i].member ? w - 1 : ret[r.ranked[i].index];
        }
    }
}

/* ── waves ─────────────────────────────────────────────────────────────────────────────────── */

struct wave_state {
    uint32_t own;       /* machines of this wave alone that count */
    uint32_t open;      /* members that can run and have not ended */
    uint32_t active;    /* of those */
    uint32_t backoff;   /* of those */
    uint32_t succeeded; /* of its own */
    uint32_t skipped;   /* of its own */
    bool unwell;        /* one that has succeeded is not Ready any more */
};

static struct wave_state rollout_look(const struct rollout *r)
{
    struct wave_state s = { 0 };
    for (uint32_t i = 0; i < r->n; i++) {
        const struct ranked *k = &r->ranked[i];
        const struct rollout_machine *m = k->machine;
        if (!k->member) {
            continue;
        }
        bool own = !k->of_earlier;
        bool open = !machine_ended(m) && (m->can_run || m->progress == ROLLOUT_ACTIVE);
        s.own += own && machine_counts(m) ? 1 : 0;
        s.open += open ? 1 : 0;
        s.active += m->progress == ROLLOUT_ACTIVE ? 1 : 0;
        s.backoff += open && m->progress == ROLLOUT_BACKOFF ? 1 : 0;
        s.succeeded += own && m->progress == ROLLOUT_SUCCEEDED ? 1 : 0;
        s.skipped += own && m->progress == ROLLOUT_SKIPPED ? 1 : 0;
        s.unwell =
            s.unwell || (m->progress == ROLLOUT_SUCCEEDED && !m->ready && !m->excused && own);
    }
    return s;
}

/* Keeps the soak's times. True when it is over. */
static bool rollout_soak(const struct rollout *r, const struct wave_state *s,
                         const struct rollout_wave *wave, struct rollout_plan *plan)
{
    struct rollout_record *record = &plan->record;
    usec_t now = r->facts->now;
    bool unknown = record->trouble && wave->gates_unknown; /* whoever leads now has to ask first */
    bool trouble = s->unwell || wave->gates_fail || unknown;
    if (record->complete_at == 0) {
        record->complete_at = now;
        record->soak_until = now + wave->soak;
    }
    if (trouble && !record->trouble) {
        record->restarts++;
    }
    if (trouble || record->trouble) {
        record->soak_until = now + wave->soak;
    }
    record->trouble = trouble;
    usec_t ceiling = record->complete_at + SOAK_CEILING_TIMES * wave->soak + SOAK_CEILING_MORE;
    if (record->restarts > SOAK_RESTARTS_MAX || (now >= ceiling && trouble)) {
        plan->wait = ROLLOUT_WAIT_SOAK_FAILED;
        return false;
    }
    if (trouble || wave->gates_unknown || now < record->soak_until) {
        plan->wait = ROLLOUT_WAIT_SOAK;
        plan->at = trouble || now >= record->soak_until ? ceiling : record->soak_until;
        return false;
    }
    return true;
}

/* True when the wave under way is over and the next one begins. */
static bool rollout_next_wave(const struct rollout *r, struct rollout_plan *plan)
{
    const struct rollout_wave *wave = &r->spec->waves[plan->record.wave];
    struct wave_state s = rollout_look(r);
    if (s.open > 0) {
        plan->record.complete_at = 0; /* somebody has come, or is tried again */
        return false;
    }
    if (s.own == 0 && (wave->by_selector || r->runnable == 0)) {
        plan->wait = ROLLOUT_WAIT_NO_CANDIDATE;
        return false;
    }
    bool nothing_changed = s.own == s.skipped; /* also when it has nobody of its own */
    if (s.succeeded == 0 && !nothing_changed) {
        plan->wait = ROLLOUT_WAIT_NO_SUCCESS;
        return false;
    }
    if (!nothing_changed && !rollout_soak(r, &s, wave, plan)) {
        return false;
    }
    plan->record = (struct rollout_record){ .wave = plan->record.wave + 1 };
    return true;
}

/* ── who is next ───────────────────────────────────────────────────────────────────────────── */

/* qsort has no context: each candidate brings the order it stands in. */
struct candidate {
    const struct rollout_spec *spec;
    const struct rollout_machine *machine;
    uint32_t index;
};

static int control_plane_rank(const struct rollout_spec *spec, const struct rollout_machine *m)
{
    if (spec->control_plane == ROLLOUT_CP_IGNORE) {
        return 0;
    }
    return m->control_plane == (spec->control_plane == ROLLOUT_CP_FIRST) ? 0 : 1;
}

static int order_cmp(const struct rollout_spec *spec, const struct rollout_machine *x,
                     const struct rollout_machine *y)
{
    switch (spec->by) {
    case ROLLOUT_BY_HASH:
        break;
    case ROLLOUT_BY_NAME:
        return str_cmp(x->name, y->name);
    case ROLLOUT_BY_AGE:
        return x->created == y->created ? 0 : x->created < y->created ? -1 : 1;
    case ROLLOUT_BY_ZONE:
        return str_cmp(x->zone, y->zone);
    case ROLLOUT_BY_LABEL:
        return x->label == y->label ? 0 : x->label < y->label ? -1 : 1;
    }
    return 0;
}

static int candidate_cmp(const void *a, const void *b)
{
    const struct candidate *p = a;
    const struct candidate *q = b;
    const struct rollout_machine *x = p->machine;
    const struct rollout_machine *y = q->machine;
    if (x->asked_for != y->asked_for) {
        return x->asked_for ? -1 : 1;
    }
    int by_plane = control_plane_rank(p->spec, x) - control_plane_rank(p->spec, y);
    if (by_plane != 0) {
        return by_plane;
    }
    if (x->served != y->served) {
        return x->served < y->served ? -1 : 1; /* a small window must not serve the same for ever */
    }
    int by_order = order_cmp(p->spec, x, y);
    if (by_order != 0) {
        return by_order;
    }
    if (x->hash != y->hash) {
        return x->hash < y->hash ? -1 : 1;
    }
    return str_cmp(x->name, y->name);
}

static uint32_t rollout_neighbours(const struct rollout *r, struct str spread)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct rollout_machine *m = r->ranked[i].machine;
        bool disturbed = m->progress == ROLLOUT_ACTIVE || m->kept;
        n += disturbed && str_eq(m->spread, spread) ? 1 : 0;
    }
    return n;
}

/* Takes from the sorted candidates as many as the limits allow. */
static void rollout_take(const struct rollout *r, const struct candidate *sorted, uint32_t n,
                         struct arena *out, struct rollout_plan *plan)
{
    plan->next = ARENA_ARRAY(out, uint32_t, MAX(n, 1u));
    for (uint32_t i = 0; i < n && plan->active + plan->next_n < plan->limit; i++) {
        struct str spread = sorted[i].machine->spread;
        uint32_t there = 0;
        if (r->spec->spread_max > 0) {
            there = rollout_neighbours(r, spread);
            for (uint32_t k = 0; k < plan->next_n; k++) {
                there += str_eq(r->facts->machines[plan->next[k]].spread, spread) ? 1 : 0;
            }
        }
        if (r->spec->spread_max == 0 || there < r->spec->spread_max) {
            plan->next[plan->next_n++] = sorted[i].index;
        }
    }
    if (plan->next_n > 0) {
        plan->wait = ROLLOUT_WAIT_NONE;
    } else if (n > 0) {
        plan->wait = plan->active >= plan->limit ? ROLLOUT_WAIT_CONCURRENT : ROLLOUT_WAIT_SPREAD;
    }
}

static void rollout_choose(const struct rollout *r, bool wave_open, struct arena *out,
                           struct rollout_plan *plan)
{
    struct candidate *sorted = ARENA_ARRAY(out, struct candidate, MAX(r->n, 1u));
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct ranked *k = &r->ranked[i];
        const struct rollout_machine *m = k->machine;
        if (m->can_run && m->progress == ROLLOUT_TODO && !m->gated &&
            ((k->member && wave_open) || m->asked_for)) {
            sorted[n++] = (struct candidate){ .spec = r->spec, .machine = m, .index = k->index };
        }
    }
    qsort(sorted, n, sizeof(sorted[0]), candidate_cmp);
    usec_t paced = r->facts->last_end + r->spec->pace;
    if (n > 0 && r->spec->pace > 0 && r->facts->last_end > 0 && r->facts->now < paced) {
        plan->wait = ROLLOUT_WAIT_PACE;
        plan->at = MIN(plan->at, paced);
        return;
    }
    rollout_take(r, sorted, n, out, plan);
}

/* Why nobody is next although somebody has not ended. */
static void rollout_explain(const struct rollout *r, struct rollout_plan *plan)
{
    struct wave_state s = rollout_look(r);
    if (plan->wait != ROLLOUT_WAIT_NONE || plan->next_n > 0 || s.open == 0) {
        return;
    }
    plan->wait = s.backoff == s.open - s.active && s.backoff > 0 ? ROLLOUT_WAIT_BACKOFF
                                                                 : ROLLOUT_WAIT_ACTIVE;
}

void rollout_decide(const struct rollout_spec *spec, const struct rollout_record *record,
                    const struct rollout_facts *facts, struct arena *out, struct rollout_plan *ret)
{
    struct rollout r = { .spec = spec, .facts = facts };
    ASSERT(spec->wave_n <= ROLLOUT_WAVES_MAX);
    *ret = (struct rollout_plan){ .record = *record, .at = USEC_NEVER };
    ret->record.wave = MIN(record->wave, spec->wave_n);
    rollout_rank(&r, out);
    uint32_t allowed = rollout_resolve(spec->max_concurrent, facts->machine_n);
    ret->limit = MIN(allowed, spec->max_active);
    uint32_t open = 0;
    for (uint32_t i = 0; i < r.n; i++) {
        const struct rollout_machine *m = &facts->machines[i];
        ret->active += m->progress == ROLLOUT_ACTIVE ? 1 : 0;
        open += !machine_ended(m) && (m->can_run || m->progress == ROLLOUT_ACTIVE) ? 1 : 0;
    }
    ret->done = open == 0;
    rollout_find_members(&r, ret->record.wave);
    while (ret->record.wave < spec->wave_n && rollout_next_wave(&r, ret)) {
        rollout_find_members(&r, ret->record.wave);
    }
    const struct rollout_wave *wave =
        ret->record.wave < spec->wave_n ? &spec->waves[ret->record.wave] : NULL;
    ret->wave = wave != NULL ? wave->name : spec->wave_n > 0 ? STR("rest") : STR_NONE;
    bool wave_open = wave == NULL || !wave->manual || wave->approved;
    if (!wave_open && ret->wait == ROLLOUT_WAIT_NONE && !ret->done) {
        ret->wait = ROLLOUT_WAIT_APPROVAL;
    }
    rollout_choose(&r, wave_open, out, ret);
    rollout_explain(&r, ret);
    if (ret->done && ret->wait != ROLLOUT_WAIT_SOAK_FAILED) {
        ret->wait = ROLLOUT_WAIT_NONE;
        ret->at = USEC_NEVER;
    }
}
