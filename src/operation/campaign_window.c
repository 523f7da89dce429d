/* When a NodeMaintenance may start something: its window, freezes, and the ticks of its operations.
 */
#include "operation/operations_internal.h"

#define FREEZES_MAX 64u      /* windows that freeze everything, as many as count */
#define PROBE_EVERY HOURS(1) /* whether a reboot is required, where no agent tells */

/* ── windows ───────────────────────────────────────────────────────────────────────────────── */

struct window_parts {
    const struct opening_hours *hours[WINDOW_REFS_MAX + 1];
    const struct opening_hours *freezes[FREEZES_MAX];
    struct opening_plan plan;
    usec_t min_remaining;
    bool stop; /* what runs when they close is to stop: all of them say so */
};

static void parts_add_freezes(const struct operations *o, struct window_parts *p)
{
    MAP_EACH (&o->windows.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct maintenance_window *w = item->object;
        if (w->effect == WINDOW_FREEZE && w->problem.reason.n == 0 &&
            p->plan.freeze_n < FREEZES_MAX) {
            p->freezes[p->plan.freeze_n++] = &w->window.hours;
        }
    }
}

static void parts_add(struct window_parts *p, const struct window_hours *w)
{
    if (p->plan.hours_n == 0 || w->min_remaining < p->min_remaining) {
        p->min_remaining = w->min_remaining;
    }
    p->stop = (p->plan.hours_n == 0 || p->stop) && w->at_close == WINDOW_STOP;
    p->hours[p->plan.hours_n++] = &w->hours;
}

static void parts_collect(const struct campaign *c, struct window_parts *p)
{
    const struct maintenance_when *when = &c->m->window;
    *p = (struct window_parts){ 0 };
    p->plan.hours = p->hours;
    p->plan.freezes = p->freezes;
    parts_add_freezes(c->o, p);
    for (uint32_t i = 0; i < when->refs.n; i++) {
        const struct store_item *item = store_find(&c->o->windows.store, when->refs.items[i]);
        if (item != NULL) {
            parts_add(p, &((const struct maintenance_window *)item->object)->window);
        }
    }
    if (when->own.given) {
        parts_add(p, &when->own);
    }
}

/* Without a window only freezes count. */
static void campaign_look_at_freezes(struct campaign *c, struct window_parts *p)
{
    const struct opening_plan freezes = { .hours = p->freezes, .hours_n = p->plan.freeze_n };
    struct opening_state s = { .open = false, .until = USEC_NEVER };
    if (p->plan.freeze_n > 0) {
        s = opening_at(&freezes, c->o->now);
    }
    c->open = !s.open;
    c->window = (struct interval){ s.open ? s.until : 0, s.open ? USEC_NEVER : s.until };
    operations_wake_at(c->o, s.until);
}

static void campaign_find_interval(struct campaign *c, const struct window_parts *p)
{
    struct opening_search search = opening_search_from(c->o->now);
    struct interval found = { 0 };
    enum opening_result r = opening_next(&p->plan, &search, &found);
    c->open = false;
    if (r == OPENING_AGAIN) {
        operations_schedule(c->o); /* a rule of many steps goes on in the next turn */
    } else if (r == OPENING_FOUND) {
        c->window = found;
        c->open = found.start <= c->o->now;
        operations_wake_at(c->o, c->open ? found.end : found.start);
    }
}

/* The interval that is open began before the search did: how long it is altogether counts for how
 * much of it must be left, and ticks are counted from its start. */
static usec_t campaign_interval_start(const struct campaign *c, const struct window_parts *p)
{
    static const usec_t spans[] = { HOURS(1), HOURS(6), DAYS(1), DAYS(3), DAYS(8), DAYS(400) };
    usec_t now = c->o->now;
    usec_t start = now;
    for (uint32_t i = 0; i < ARRAY_LEN(spans); i++) {
        usec_t from = now - spans[i];
        struct interval found = { 0 };
        enum opening_result r = OPENING_FOUND;
        for (usec_t at = from; r == OPENING_FOUND && found.end <= now; at = found.end) {
            struct opening_search search = opening_search_from(at);
            r = opening_next(&p->plan, &search, &found);
        }
        if (r != OPENING_FOUND || found.start > now) {
            break;
        }
        start = found.start;
        if (found.start > from) {
            break; /* it did not begin before the search */
        }
    }
    return start;
}

static void campaign_wait_for_window(struct campaign *c, struct str message)
{
    c->wait = (struct campaign_wait){ .reason = STR("WaitingWindow"), .message = message };
}

static struct str window_time(usec_t at, char text[TIMESTAMP_TEXT_MAX])
{
    return at == USEC_NEVER ? STR("never") : timestamp_print_seconds(at, text);
}

static void campaign_look_at_rest(struct campaign *c, const struct window_parts *p)
{
    char text[TIMESTAMP_TEXT_MAX];
    struct interval whole = { campaign_interval_start(c, p), c->window.end };
    struct window_rest_answer rest =
        window_rest_decide(whole, c->o->now, p->min_remaining, window_rest_estimate(&c->durations));
    c->window = whole;
    c->may_start = rest.verdict == WINDOW_REST_ENOUGH;
    if (c->may_start) {
        operations_wake_at(c->o, rest.until);
    } else if (rest.verdict == WINDOW_REST_NEVER) {
        campaign_wait_for_window(c, STR("the window is open for a shorter time than minRemaining: "
                                        "no visit fits"));
    } else {
        campaign_wait_for_window(
            c, arena_printf(&c->o->tmp, "the window closes at " STR_FMT ", and visits need %lld s",
                            STR_ARG(window_time(whole.end, text)),
                            (long long)(rest.wanted / SECONDS(1))));
    }
}

static void campaign_look_at_close(struct campaign *c, const struct window_parts *p)
{
    if (!c->open && p->stop) {
        c->stops = true;
        c->stops_why = STR("the window has closed, and atClose is Stop");
    }
}

bool campaign_is_overridden(const struct campaign *c)
{
    return c->m->window.has_override && c->o->now < c->m->window.override_until;
}

void campaign_look_at_window(struct campaign *c)
{
    const struct maintenance_when *when = &c->m->window;
    struct window_parts parts;
    char text[TIMESTAMP_TEXT_MAX];
    c->wait = (struct campaign_wait){ 0 };
    c->window = (struct interval){ USEC_NEVER, USEC_NEVER };
    campaign_read_durations(c);
    c->stops = c->m->meta.deleting && c->m->abort_on_delete;
    c->stops_why = STR("the object is being deleted, and deletionPolicy is Abort");
    if (campaign_is_overridden(c)) {
        c->open = true;
        c->may_start = true;
        c->window = (struct interval){ 0, when->override_until };
        operations_wake_at(c->o, when->override_until);
        return;
    }
    parts_collect(c, &parts);
    if (parts.plan.hours_n == 0 && !(when->given && when->has_override)) {
        campaign_look_at_freezes(c, &parts);
        c->may_start = c->open;
    } else {
        campaign_find_interval(c, &parts);
        c->may_start = c->open;
        if (c->open) {
            campaign_look_at_rest(c, &parts);
        }
    }
    campaign_look_at_close(c, &parts);
    if (mutated(c->o->core->client.mutations, MUTATION_VISIT_ANY_TIME)) {
        c->open = true;
        c->may_start = true;
    }
    if (!c->open) {
        campaign_wait_for_window(c, arena_printf(&c->o->tmp, "the window opens next: " STR_FMT,
                                                 STR_ARG(window_time(c->window.start, text))));
    }
}

bool campaign_look_ahead(struct campaign *c)
{
    struct window_parts parts;
    uint64_t windows = c->o->windows.store.revision;
    parts_collect(c, &parts);
    if (parts.plan.hours_n == 0) {
        return false;
    }
    bool same = c->outlook_of == c->item->object && c->outlook_windows == windows;
    if (!same || !c->outlook.begun || c->o->now >= window_outlook_until(&c->outlook)) {
        window_outlook_begin(&c->outlook, c->o->now);
        c->outlook_of = c->item->object;
        c->outlook_windows = windows;
    }
    (void)window_outlook_search(&c->outlook, &parts.plan); /* the next look goes on with it */
    return true;
}

/* ── ticks ─────────────────────────────────────────────────────────────────────────────────── */

static const struct maintenance_operation_record *campaign_record_of(const struct campaign *c,
                                                                     struct str operation)
{
    for (uint32_t i = 0; i < c->m->record.operation_n; i++) {
        if (str_eq(c->m->record.operations[i].name, operation)) {
            return &c->m->record.operations[i];
        }
    }
    return NULL;
}

/* The zone of a schedule: its own, or its object's window's. */
static const struct zone *operation_zone(const struct campaign *c,
                                         const struct operation_cron *cron)
{
    return cron->has_zone ? cron->zone : c->m->window.own.zone;
}

static void operation_tick_by_schedule(struct campaign *c, struct campaign_operation *op,
                                       usec_t last)
{
    const struct operation_cron *cron = &op->spec->cron;
    const struct zone *zone = operation_zone(c, cron);
    usec_t since = last > 0 ? last : c->m->meta.created;
    usec_t latest = due_latest_tick(&cron->pattern, zone, since, c->o->now);
    op->tick = latest > 0 ? latest : last;
    op->next_tick = cron_next(&cron->pattern, zone, c->o->now);
    if (op->tick == 0 && cron->run_on_create) {
        op->tick = c->m->meta.created;
    }
    op->tick_deadline = cron->duration > 0            ? op->tick + cron->duration
                        : cron->starting_deadline > 0 ? op->tick + cron->starting_deadline
                                                      : op->next_tick;
}

/* Once in each interval of the window, or every so often while it is open. */
static void operation_tick_by_window(struct campaign *c, struct campaign_operation *op, usec_t last,
                                     usec_t every)
{
    op->tick = last;
    op->tick_deadline = c->open ? c->window.end : last;
    if (!c->open) {
        return;
    }
    usec_t start = c->window.start > 0 ? c->window.start : c->m->meta.created;
    op->tick = start;
    if (every > 0 && c->o->now >= start) {
        op->tick = start + (c->o->now - start) / every * every;
        op->next_tick = op->tick + every;
        op->tick_deadline = MIN(op->next_tick, c->window.end);
    }
}

void campaign_look_at_ticks(struct campaign *c)
{
    c->tick = 0;
    for (uint32_t i = 0; i < c->operation_n; i++) {
        struct campaign_operation *op = &c->operations[i];
        const struct maintenance_operation_record *record = campaign_record_of(c, op->spec->name);
        usec_t last = record != NULL ? record->last_tick : 0;
        op->tick = 0;
        op->next_tick = USEC_NEVER;
        op->tick_deadline = USEC_NEVER;
        if (!op->cron) {
            continue;
        }
        if (op->spec->type == OPERATION_REALTIME) {
            operation_tick_by_window(c, op, last, PROBE_EVERY);
        } else if (op->spec->cron.by == CRON_BY_SCHEDULE) {
            operation_tick_by_schedule(c, op, last);
        } else {
            operation_tick_by_window(c, op, last, op->spec->cron.every);
        }
        c->tick = MAX(c->tick, op->tick);
        operations_wake_at(c->o, op->next_tick);
    }
}
