#include "operation/operations_report.h"

#include <stdlib.h>

#include "base/humantime.h"
#include "operation/reference_status.h"

struct str operations_report_state_name(enum operations_report_state state)
{
    static const struct str names[REPORT_MACHINE_STATES] = {
        [REPORT_MACHINE_FAILED] = STR_INIT("failed"),
        [REPORT_MACHINE_VISIT] = STR_INIT("visited"),
        [REPORT_MACHINE_BACKOFF] = STR_INIT("retried"),
        [REPORT_MACHINE_UNREACHABLE] = STR_INIT("unreachable"),
        [REPORT_MACHINE_HELD] = STR_INIT("held"),
        [REPORT_MACHINE_PENDING] = STR_INIT("pending"),
        [REPORT_MACHINE_DONE] = STR_INIT("done"),
        [REPORT_MACHINE_SKIPPED] = STR_INIT("skipped"),
    };
    return names[state];
}

/* ── machines ──────────────────────────────────────────────────────────────────────────────── */

static enum operations_report_state member_state(const struct campaign *c, uint32_t i)
{
    const struct campaign_member *m = &c->members[i];
    bool reachable = c->o->machines[m->machine].reachable;
    switch (c->rollout[i].progress) {
    case ROLLOUT_ACTIVE:
        return REPORT_MACHINE_VISIT;
    case ROLLOUT_SUCCEEDED:
        return REPORT_MACHINE_DONE;
    case ROLLOUT_SKIPPED:
        return REPORT_MACHINE_SKIPPED;
    case ROLLOUT_FAILED:
        return REPORT_MACHINE_FAILED;
    case ROLLOUT_BACKOFF:
    case ROLLOUT_TODO:
        break;
    }
    return m->held                                     ? REPORT_MACHINE_HELD
           : !reachable                                ? REPORT_MACHINE_UNREACHABLE
           : c->rollout[i].progress == ROLLOUT_BACKOFF ? REPORT_MACHINE_BACKOFF
                                                       : REPORT_MACHINE_PENDING;
}

/* The run of the campaign that is under way, or comes next. */
static const struct visit_run *visit_run_of(const struct visit_record *v, const struct campaign *c)
{
    const struct visit_run *found = NULL;
    for (uint32_t i = 0; i < v->run_n; i++) {
        const struct visit_run *run = &v->runs[i];
        if (str_eq(run->maintenance_uid, c->m->meta.uid) &&
            (found == NULL || found->phase >= VISIT_RUN_SUCCEEDED)) {
            found = run;
        }
    }
    return found;
}

static void machine_add_visit(const struct campaign *c, const struct turn_machine *t,
                              struct operations_report_machine *ret, struct arena *out)
{
    const struct visit_record *v = t->state != NULL ? &t->state->visit : NULL;
    if (v == NULL || v->phase == VISIT_NONE) {
        ret->phase = STR("Pending");
        ret->waits = STR("the visit to begin");
        return;
    }
    const struct visit_run *run = visit_run_of(v, c);
    ret->phase = visit_phase_name(v->phase);
    ret->since = v->phase_time;
    ret->operation = run != NULL ? arena_str(out, run->operation) : STR_NONE;
    ret->waits = t->work != NULL ? arena_str(out, buf_str(&t->work->waits)) : STR_NONE;
}

/* What the operation that failed, or ended last, left behind. */
static void machine_add_end(const struct campaign *c, const struct turn_machine *t,
                            const struct campaign_member *m, struct operations_report_machine *ret,
                            struct arena *out)
{
    for (uint32_t k = 0; t->state != NULL && k < c->operation_n; k++) {
        const struct operation_state *s =
            node_state_find(t->state, c->m->meta.name, c->operations[k].spec->name);
        bool bad = m->due[k].state == DUE_EXHAUSTED || m->due[k].state == DUE_BACKOFF;
        if (s == NULL || !str_eq(s->maintenance_uid, c->m->meta.uid)) {
            continue;
        }
        ret->since = MAX(ret->since, s->finished);
        if (bad) {
            ret->operation = arena_str(out, s->operation);
            ret->attempts = s->attempt;
            ret->reason = arena_str(out, s->reason);
            ret->message = arena_str(out, s->message);
            ret->next = m->due[k].next;
            return;
        }
    }
}

static void machine_add_wait(const struct campaign *c, const struct turn_machine *t,
                             const struct campaign_summary *s,
                             struct operations_report_machine *ret, struct arena *out)
{
    struct str first = campaign_waits_for(c, t, &c->o->tmp);
    const struct rollout_plan *plan = &c->plan;
    if (first.n > 0) {
        ret->waits = arena_str(out, first);
    } else if (plan->wave.n > 0 && ret->wave > plan->record.wave) {
        ret->waits = arena_printf(out, "wave '" STR_FMT "' to be done", STR_ARG(plan->wave));
    } else {
        ret->waits = s->message.n > 0 ? arena_str(out, s->message) : STR("its turn");
    }
}

static void machine_fill(const struct campaign *c, const struct campaign_summary *s, uint32_t i,
                         struct operations_report_machine *ret, struct arena *out)
{
    const struct campaign_member *m = &c->members[i];
    const struct turn_machine *t = &c->o->machines[m->machine];
    uint32_t wave = ret->wave;
    *ret = (struct operations_report_machine){
        .name = arena_str(out, t->name),
        .state = member_state(c, i),
        .wave = wave,
        .next = USEC_NEVER,
    };
    switch (ret->state) {
    case REPORT_MACHINE_VISIT:
        machine_add_visit(c, t, ret, out);
        break;
    case REPORT_MACHINE_BACKOFF:
        machine_add_end(c, t, m, ret, out);
        ret->waits = STR("the next attempt");
        break;
    case REPORT_MACHINE_UNREACHABLE:
        ret->waits = t->node->deleting ? STR("nothing: the node is being deleted")
                                       : STR("the node to be Ready");
        break;
    case REPORT_MACHINE_HELD:
        ret->waits = STR("the label that holds it to go");
        break;
    case REPORT_MACHINE_PENDING:
        machine_add_wait(c, t, s, ret, out);
        break;
    case REPORT_MACHINE_FAILED:
    case REPORT_MACHINE_DONE:
    case REPORT_MACHINE_SKIPPED:
    case REPORT_MACHINE_STATES:
        machine_add_end(c, t, m, ret, out);
        break;
    }
}

static void maintenance_add_machines(struct campaign *c, const struct campaign_summary *s,
                                     struct operations_report_maintenance *ret, struct arena *out)
{
    uint32_t *waves = ARENA_ARRAY(&c->o->tmp, uint32_t, c->member_n);
    ret->machines = ARENA_ARRAY(out, struct operations_report_machine, c->member_n);
    campaign_find_waves(c, waves);
    for (uint32_t i = 0; i < c->member_n; i++) {
        struct operations_report_machine *m = &ret->machines[ret->machine_n++];
        m->wave = waves[i];
        machine_fill(c, s, i, m, out);
        ret->counts[m->state]++;
    }
    ret->selected = c->member_n;
}

/* ── waves and operations ──────────────────────────────────────────────────────────────────── */

static enum operations_report_wave_state wave_state(const struct campaign *c, uint32_t i)
{
    const struct rollout_plan *plan = &c->plan;
    if (plan->done || i < plan->record.wave) {
        return WAVE_DONE;
    }
    return i > plan->record.wave                 ? WAVE_COMING
           : plan->wait == ROLLOUT_WAIT_SOAK     ? WAVE_SOAKING
           : plan->wait == ROLLOUT_WAIT_APPROVAL ? WAVE_APPROVAL
                                                 : WAVE_NOW;
}

static void maintenance_add_waves(const struct campaign *c,
                                  struct operations_report_maintenance *ret, struct arena *out)
{
    const struct maintenance_rollout *r = &c->m->rollout;
    if (c->plan.wave.n == 0) {
        return;
    }
    ret->waves = ARENA_ARRAY(out, struct operations_report_wave, r->wave_n);
    ret->wave_n = r->wave_n;
    for (uint32_t i = 0; i < r->wave_n; i++) {
        enum operations_report_wave_state state = wave_state(c, i);
        ret->waves[i] = (struct operations_report_wave){
            .name = arena_str(out, r->waves[i].name),
            .state = state,
            .soak = r->waves[i].soak,
            .soak_until = state == WAVE_SOAKING ? c->plan.record.soak_until : 0,
            .manual = r->waves[i].manual,
        };
    }
    for (uint32_t i = 0; i < ret->machine_n; i++) {
        const struct operations_report_machine *m = &ret->machines[i];
        struct operations_report_wave *w = &ret->waves[MIN(m->wave, ret->wave_n - 1)];
        w->machines++;
        w->done += m->state == REPORT_MACHINE_DONE || m->state == REPORT_MACHINE_SKIPPED ? 1 : 0;
        w->failed += m->state == REPORT_MACHINE_FAILED ? 1 : 0;
        w->active += m->state == REPORT_MACHINE_VISIT ? 1 : 0;
    }
}

static void maintenance_add_operations(const struct campaign *c,
                                       struct operations_report_maintenance *ret, struct arena *out)
{
    static const char *const types[] = { "one-shot", "cron", "realtime" };
    ret->operations = ARENA_ARRAY(out, struct operations_report_operation, c->operation_n);
    ret->operation_n = c->operation_n;
    for (uint32_t i = 0; i < c->operation_n; i++) {
        const struct campaign_operation *op = &c->operations[i];
        ret->operations[i] = (struct operations_report_operation){
            .name = arena_str(out, op->spec->name),
            .type = str_from(types[op->spec->type]),
            .version = arena_str(out, op->spec->version.value),
            .revision = arena_str(out, op->revision),
            .tick = op->tick,
            .next_tick = op->next_tick,
            .succeeded = op->succeeded,
            .failed = op->failed,
        };
        ret->next = MIN(ret->next, op->next_tick);
    }
}

/* ── windows ───────────────────────────────────────────────────────────────────────────────── */

static const struct interval *opening_copy(const struct window_outlook *w, struct arena *out)
{
    struct interval *items = ARENA_ARRAY(out, struct interval, w->next_n);
    for (uint32_t i = 0; i < w->next_n; i++) {
        items[i] = w->next[i];
    }
    return items;
}

static void maintenance_add_window(struct campaign *c, struct operations_report_maintenance *ret,
                                   struct arena *out)
{
    ret->open = c->open;
    ret->open_until = c->open ? c->window.end : USEC_NEVER;
    ret->next = c->open ? USEC_NEVER : c->window.start;
    ret->limited = campaign_look_ahead(c);
    if (ret->limited) {
        ret->opening = opening_copy(&c->outlook, out);
        ret->opening_n = c->outlook.next_n;
    }
}

static int window_cmp(const void *a, const void *b)
{
    return str_cmp(((const struct operations_report_window *)a)->name,
                   ((const struct operations_report_window *)b)->name);
}

static void report_add_windows(const struct operations *o, struct operations_report *ret,
                               struct arena *out)
{
    ret->windows =
        ARENA_ARRAY(out, struct operations_report_window, store_count(&o->windows.store));
    MAP_EACH (&o->windows.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct maintenance_window *w = item->object;
        const struct reference *r = item->extra;
        const struct window_outlook *outlook = r != NULL ? &r->outlook : NULL;
        bool open = outlook != NULL && outlook->open;
        ret->windows[ret->window_n++] = (struct operations_report_window){
            .name = arena_str(out, item->name),
            .zone = arena_str(out, w->window.zone_name),
            .freeze = w->effect == WINDOW_FREEZE,
            .problem = spec_problem_text(&w->problem, out),
            .open = open,
            .open_until = open ? outlook->open_until : USEC_NEVER,
            .opening = outlook != NULL ? opening_copy(outlook, out) : NULL,
            .opening_n = outlook != NULL ? outlook->next_n : 0,
        };
    }
    if (ret->window_n > 0) {
        qsort(ret->windows, ret->window_n, sizeof(ret->windows[0]), window_cmp);
    }
}

/* ── the whole ─────────────────────────────────────────────────────────────────────────────── */

/* What the object itself says: all there is while the controller does not act. */
static void maintenance_read(const struct campaign *c, struct operations_report_maintenance *ret,
                             struct arena *out)
{
    const struct jval *status = NULL;
    struct err err = { 0 };
    if (json_parse(c->m->record.json, JSON_GO, out, &status, &err) == 0) {
        ret->phase = jval_str(jval_get(status, STR("phase")));
        ret->reason = jval_str(jval_get(status, STR("reason")));
        ret->revision = jval_str(jval_get(status, STR("revision")));
    }
    ret->message = STR("what the controller said last; it does not act now");
}

static void maintenance_look(struct campaign *c, struct operations_report_maintenance *ret,
                             struct arena *out)
{
    struct campaign_summary s;
    campaign_summarize(c, &s);
    ret->phase = str_from(s.phase);
    ret->reason = arena_str(out, s.reason);
    ret->message = arena_str(out, s.message);
    ret->revision = arena_str(out, c->revision);
    if (c->problem.n == 0) {
        maintenance_add_window(c, ret, out);
        maintenance_add_operations(c, ret, out);
        maintenance_add_machines(c, &s, ret, out);
        maintenance_add_waves(c, ret, out);
    }
}

static int maintenance_cmp(const void *a, const void *b)
{
    return str_cmp(((const struct operations_report_maintenance *)a)->name,
                   ((const struct operations_report_maintenance *)b)->name);
}

bool operations_report(struct operations *o, struct arena *out, struct operations_report *ret)
{
    *ret = (struct operations_report){ 0 };
    if (!o->watching || o->maintenances.absent) {
        return false;
    }
    ret->known = operations_look(o);
    ret->now = o->now;
    ret->maintenances =
        ARENA_ARRAY(out, struct operations_report_maintenance, store_count(&o->maintenances.store));
    LIST_EACH (&o->campaigns, link) {
        struct campaign *c = CONTAINER_OF(link, struct campaign, link);
        struct operations_report_maintenance *m = &ret->maintenances[ret->maintenance_n++];
        *m = (struct operations_report_maintenance){
            .name = arena_str(out, c->item->name),
            .priority = c->m->priority,
            .open_until = USEC_NEVER,
            .next = USEC_NEVER,
        };
        if (ret->known) {
            maintenance_look(c, m, out);
        } else {
            maintenance_read(c, m, out);
        }
    }
    if (ret->maintenance_n > 0) {
        qsort(ret->maintenances, ret->maintenance_n, sizeof(ret->maintenances[0]), maintenance_cmp);
    }
    report_add_windows(o, ret, out);
    return true;
}

uint64_t operations_report_version(const struct operations *o)
{
    return o->watching && !o->maintenances.absent ? 1 + o->changes : 0;
}

bool operations_report_only(struct operations_report *r, struct str name)
{
    for (uint32_t i = 0; i < r->maintenance_n; i++) {
        if (str_eq(r->maintenances[i].name, name)) {
            r->maintenances = &r->maintenances[i];
            r->maintenance_n = 1;
            r->one = true;
            return true;
        }
    }
    return false;
}

/* ── in words ──────────────────────────────────────────────────────────────────────────────── */

static struct str failure_words(const struct operations_report_machine *x, usec_t now,
                                struct arena *out)
{
    return arena_printf(
        out, "failed " STR_FMT " ago: " STR_FMT ", attempt %u: " STR_FMT "%s" STR_FMT,
        STR_ARG(humantime_since(now, x->since, out)), STR_ARG(x->operation), x->attempts,
        STR_ARG(x->reason), x->message.n > 0 ? ": " : "", STR_ARG(x->message));
}

struct str operations_report_words(const struct operations_report_machine *x, usec_t now,
                                   struct arena *out)
{
    struct str ago = x->since > 0 ? humantime_since(now, x->since, out) : STR_NONE;
    switch (x->state) {
    case REPORT_MACHINE_VISIT:
        return arena_printf(out, STR_FMT "%s" STR_FMT "%s" STR_FMT "%s" STR_FMT, STR_ARG(x->phase),
                            ago.n > 0 ? " for " : "", STR_ARG(ago),
                            x->operation.n > 0 ? ", operation " : "", STR_ARG(x->operation),
                            x->waits.n > 0 ? "; waits: " : "", STR_ARG(x->waits));
    case REPORT_MACHINE_FAILED:
        return failure_words(x, now, out);
    case REPORT_MACHINE_BACKOFF:
        return arena_printf(out, STR_FMT "; the next attempt is " STR_FMT,
                            STR_ARG(failure_words(x, now, out)),
                            STR_ARG(humantime_at(now, x->next, out)));
    case REPORT_MACHINE_UNREACHABLE:
    case REPORT_MACHINE_HELD:
    case REPORT_MACHINE_PENDING:
        return arena_printf(out, "waits: " STR_FMT, STR_ARG(x->waits));
    case REPORT_MACHINE_DONE:
        return ago.n > 0 ? arena_printf(out, "done " STR_FMT " ago", STR_ARG(ago)) : STR("done");
    case REPORT_MACHINE_SKIPPED:
    case REPORT_MACHINE_STATES:
        break;
    }
    return ago.n > 0 ? arena_printf(out, "nothing to do, " STR_FMT " ago", STR_ARG(ago))
                     : STR("nothing to do yet");
}

const struct operations_report_machine *
operations_report_machine(const struct operations_report_maintenance *m, struct str name)
{
    for (uint32_t i = 0; i < m->machine_n; i++) {
        if (str_eq(m->machines[i].name, name)) {
            return &m->machines[i];
        }
    }
    return NULL;
}
