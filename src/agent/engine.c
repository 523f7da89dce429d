#include "agent/engine.h"

const char *const vertex_state_names[VERTEX_STATES] = {
    [VERTEX_UNKNOWN] = "Unknown",   [VERTEX_OK] = "Ok",
    [VERTEX_NOOP] = "Noop",         [VERTEX_DRIFTED] = "Drifted",
    [VERTEX_FAILED] = "Failed",     [VERTEX_BLOCKED] = "Blocked",
    [VERTEX_DEFERRED] = "Deferred", [VERTEX_CONTESTED] = "Contested",
    [VERTEX_VETOED] = "Vetoed",
};

static const struct resource *resource_of(const struct engine *e, uint32_t v)
{
    return &e->graph->resources->items[v];
}

const char *vertex_message(const struct vertex *x)
{
    return x->message != NULL ? x->message : "";
}

/* Of most resources there is never anything to say: room for it is made when there is. */
static char *message_room(struct engine *e, struct vertex *x)
{
    if (x->message == NULL) {
        x->message = arena_alloc(e->out, VERTEX_MESSAGE_SIZE);
    }
    return x->message;
}

static void set_message(struct engine *e, struct vertex *x, const char *text)
{
    /* Cut where it is too long: a message is for people. */
    (void)snprintf(message_room(e, x), VERTEX_MESSAGE_SIZE, "%s", text);
}

void engine_init(struct engine *e, const struct graph *graph, const struct engine_rules *rules,
                 struct arena *out)
{
    uint32_t n = graph->resources->n;
    *e = (struct engine){ .graph = graph, .rules = *rules, .retry_min = USEC_NEVER, .out = out };
    e->vertices = ARENA_ARRAY(out, struct vertex, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct resource *r = resource_of(e, i);
        e->vertices[i] = (struct vertex){
            .dirty = true,
            .retry_at = USEC_NEVER,
            .backoff = { .base = MAX(r->meta.backoff, (usec_t)1), .max = ENGINE_BACKOFF_MAX },
        };
    }
}

void engine_dirty(struct engine *e, uint32_t v)
{
    struct vertex *x = &e->vertices[v];
    if (x->state == VERTEX_VETOED || (x->state == VERTEX_CONTESTED && x->retry_at != USEC_NEVER)) {
        return;
    }
    x->dirty = true;
    e->cursor = 0;
}

void engine_mark(struct engine *e, uint32_t v)
{
    e->vertices[v].refresh = true;
    engine_dirty(e, v);
}

bool engine_is_noop(const struct engine *e, uint32_t v)
{
    return e->rules.noop || resource_of(e, v)->meta.noop;
}

static bool is_right(const struct vertex *x)
{
    return x->state == VERTEX_OK || x->state == VERTEX_NOOP;
}

/* Whoever waits for `v` looks again. */
static void stir_dependents(struct engine *e, uint32_t v)
{
    for (uint32_t i = 0; i < e->graph->resources->n; i++) {
        struct vertex *x = &e->vertices[i];
        if (x->state == VERTEX_BLOCKED && x->by == v) {
            engine_dirty(e, i);
        }
    }
}

static void enter(struct engine *e, uint32_t v, enum vertex_state state)
{
    struct vertex *x = &e->vertices[v];
    e->blocked += (uint32_t)(state == VERTEX_BLOCKED) - (uint32_t)(x->state == VERTEX_BLOCKED);
    x->state = state;
    if (state != VERTEX_FAILED && state != VERTEX_BLOCKED && state != VERTEX_CONTESTED &&
        state != VERTEX_VETOED) {
        x->reason = NULL;
    }
    if (is_right(x)) {
        x->was_right = true;
        x->tries = 0;
        backoff_reset(&x->backoff);
        x->retry_at = USEC_NEVER;
    }
    if (is_right(x) && e->blocked > 0) {
        stir_dependents(e, v);
    }
}

/* The first of those it must wait for that is not right; false when all are. */
static bool find_obstacle(const struct engine *e, uint32_t v, uint32_t *ret)
{
    struct graph_edges requires = e->graph->vertices[v].requires;
    for (uint32_t i = 0; i < requires.n; i++) {
        const struct vertex *x = &e->vertices[requires.items[i]];
        if (!is_right(x) || x->dirty || x->busy) {
            *ret = requires.items[i];
            return true;
        }
    }
    return false;
}

static void block(struct engine *e, uint32_t v, uint32_t by)
{
    struct vertex *x = &e->vertices[v];
    x->by = by;
    x->reason = "Blocked";
    (void)snprintf(message_room(e, x), VERTEX_MESSAGE_SIZE, "waits for '" STR_FMT "', which is %s",
                   STR_ARG(resource_of(e, by)->name), vertex_state_names[e->vertices[by].state]);
    enter(e, v, VERTEX_BLOCKED);
}

/* Makes due retries dirty and says when the next one is. */
static usec_t note_retries(struct engine *e, usec_t now)
{
    usec_t when = USEC_NEVER;
    if (now < e->retry_min) {
        return e->retry_min; /* or later: then a look at all of them was for nothing, once */
    }
    for (uint32_t i = 0; i < e->graph->resources->n; i++) {
        struct vertex *x = &e->vertices[i];
        if (x->retry_at <= now) {
            x->retry_at = USEC_NEVER;
            engine_dirty(e, i);
        }
        when = MIN(when, x->retry_at);
    }
    e->retry_min = when;
    return when;
}

static void set_retry(struct engine *e, struct vertex *x, usec_t at)
{
    x->retry_at = at;
    e->retry_min = MIN(e->retry_min, at);
}

bool engine_next(struct engine *e, usec_t now, uint32_t *ret, usec_t *ret_when)
{
    e->now = now;
    *ret_when = note_retries(e, now);
    while (e->cursor < e->graph->resources->n) {
        uint32_t v = e->graph->order[e->cursor++];
        struct vertex *x = &e->vertices[v];
        const struct resource *r = resource_of(e, v);
        uint32_t by;
        if (!x->dirty || x->busy) {
            continue;
        }
        x->dirty = false;
        x->retry_at = USEC_NEVER;
        if (r->problem.n > 0) {
            x->reason = "Invalid";
            (void)snprintf(message_room(e, x), VERTEX_MESSAGE_SIZE, STR_FMT, STR_ARG(r->problem));
            enter(e, v, VERTEX_FAILED);
        } else if (find_obstacle(e, v, &by)) {
            block(e, v, by);
        } else {
            x->busy = true;
            *ret = v;
            return true;
        }
    }
    return false;
}

/* Whether one of those that may refresh it is not right: the refresh comes after all of them. */
static bool source_is_wrong(const struct engine *e, uint32_t v, uint32_t *ret)
{
    struct graph_edges notified = e->graph->vertices[v].notified;
    for (uint32_t i = 0; i < notified.n; i++) {
        if (!is_right(&e->vertices[notified.items[i]])) {
            *ret = notified.items[i];
            return true;
        }
    }
    return false;
}

static enum engine_step done(struct engine *e, uint32_t v, enum vertex_state state)
{
    e->vertices[v].busy = false;
    enter(e, v, state);
    return ENGINE_DONE;
}

/* It is as it should be; what is left is a refresh, if it has a mark. */
static enum engine_step settle(struct engine *e, uint32_t v, enum disruption disruption)
{
    struct vertex *x = &e->vertices[v];
    uint32_t by;
    if (!x->refresh) {
        return done(e, v, VERTEX_OK);
    }
    bool means_something = resource_of(e, v)->type->refresh != NULL;
    if (engine_is_noop(e, v)) {
        return done(e, v, means_something ? VERTEX_NOOP : VERTEX_OK);
    }
    if (!means_something) {
        return ENGINE_REFRESH; /* which is nothing but striking out the mark */
    }
    if (source_is_wrong(e, v, &by)) {
        x->busy = false;
        block(e, v, by);
        return ENGINE_DONE;
    }
    return disruption > e->rules.allowed ? done(e, v, VERTEX_DEFERRED) : ENGINE_REFRESH;
}

static enum disruption disruption_of(const struct engine *e, uint32_t v, enum disruption found)
{
    enum disruptive own = resource_of(e, v)->meta.disruptive;
    return own == DISRUPTIVE_ALWAYS  ? DISRUPTION_VISIT
           : own == DISRUPTIVE_NEVER ? DISRUPTION_NONE
                                     : found;
}

/* In a run that only tells, the marks are told, too. */
static void notify(struct engine *e, uint32_t v)
{
    struct graph_edges notifies = e->graph->vertices[v].notifies;
    for (uint32_t i = 0; i < notifies.n; i++) {
        engine_mark(e, notifies.items[i]);
    }
}

/* ── contest ───────────────────────────────────────────────────────────────────────────────── */

static usec_t last_repair(const struct vertex_contest *c)
{
    return c->repairs[(c->repair_n - 1) % ENGINE_CONTEST_REPAIRS];
}

/* Whether a repair now would be one too many. */
static bool must_wait(struct engine *e, uint32_t v)
{
    struct vertex *x = &e->vertices[v];
    struct vertex_contest *c = x->contest;
    if (c == NULL || x->state == VERTEX_CONTESTED) {
        return false; /* the wait is over */
    }
    if (e->now - last_repair(c) > ENGINE_CONTEST_TIME) {
        *c = (struct vertex_contest){ .repair_n = 1, .backoff = c->backoff };
        backoff_reset(&c->backoff);
        c->repairs[0] = e->now - ENGINE_CONTEST_TIME; /* one that does not count any more */
        return false;
    }
    usec_t oldest = c->repairs[c->repair_n % ENGINE_CONTEST_REPAIRS];
    c->contested = c->contested || (c->repair_n >= ENGINE_CONTEST_REPAIRS &&
                                    e->now - oldest <= ENGINE_CONTEST_TIME);
    return c->contested;
}

static enum engine_step contest(struct engine *e, uint32_t v)
{
    struct vertex *x = &e->vertices[v];
    usec_t wait = backoff_next(&x->contest->backoff, e->random++ * 0x9e3779b97f4a7c15u);
    x->reason = "Contested";
    (void)snprintf(message_room(e, x), VERTEX_MESSAGE_SIZE,
                   "somebody else keeps changing it: repaired %u times, the next time in %lld s",
                   x->contest->repair_n, (long long)(wait / SECONDS(1)));
    x->busy = false;
    x->dirty = false; /* what came meanwhile is seen then */
    set_retry(e, x, e->now + wait);
    enter(e, v, VERTEX_CONTESTED);
    return ENGINE_DONE;
}

static void note_repair(struct engine *e, struct vertex *x)
{
    if (x->contest == NULL) {
        x->contest = ARENA_NEW(e->out, struct vertex_contest);
        x->contest->backoff =
            (struct backoff){ .base = ENGINE_CONTEST_WAIT, .max = ENGINE_CONTEST_WAIT_MAX };
    }
    x->contest->repairs[x->contest->repair_n++ % ENGINE_CONTEST_REPAIRS] = e->now;
}

bool engine_is_contested(const struct engine *e, uint32_t v, usec_t now)
{
    const struct vertex *x = &e->vertices[v];
    return x->state == VERTEX_CONTESTED || (x->contest != NULL && x->contest->contested &&
                                            now - last_repair(x->contest) <= ENGINE_CONTEST_TIME);
}

enum engine_step engine_checked(struct engine *e, uint32_t v, bool differs,
                                enum disruption disruption)
{
    struct vertex *x = &e->vertices[v];
    ASSERT(x->busy);
    disruption = disruption_of(e, v, disruption);
    if (!differs) {
        return settle(e, v, disruption);
    }
    if (engine_is_noop(e, v)) {
        bool first = x->state != VERTEX_NOOP;
        (void)done(e, v, VERTEX_NOOP);
        if (first && e->rules.noop) {
            notify(e, v);
        }
        return ENGINE_DONE;
    }
    if (disruption > e->rules.allowed) {
        return done(e, v, VERTEX_DEFERRED);
    }
    if (must_wait(e, v)) {
        return contest(e, v);
    }
    enter(e, v, VERTEX_DRIFTED);
    return ENGINE_APPLY;
}

enum engine_step engine_applied(struct engine *e, uint32_t v, bool refreshed)
{
    struct vertex *x = &e->vertices[v];
    ASSERT(x->busy && x->state == VERTEX_DRIFTED);
    x->changed = true;
    if (x->was_right) {
        note_repair(e, x);
    }
    notify(e, v);
    if (refreshed && x->refresh) {
        return ENGINE_REFRESH; /* only the mark is left */
    }
    return settle(e, v, DISRUPTION_NONE);
}

void engine_refreshed(struct engine *e, uint32_t v)
{
    struct vertex *x = &e->vertices[v];
    ASSERT(x->busy);
    x->refresh = false;
    x->refreshed = resource_of(e, v)->type->refresh != NULL;
    (void)done(e, v, VERTEX_OK);
}

void engine_failed(struct engine *e, uint32_t v, usec_t now, uint64_t random, const char *reason,
                   const char *message)
{
    struct vertex *x = &e->vertices[v];
    const struct resource_meta *meta = &resource_of(e, v)->meta;
    int64_t retries = meta->retries_given ? meta->retries : e->rules.retries;
    ASSERT(x->busy);
    x->busy = false;
    x->tries++;
    x->reason = reason;
    set_message(e, x, message);
    set_retry(e, x,
              retries < 0 || x->tries <= retries ? now + backoff_next(&x->backoff, random)
                                                 : USEC_NEVER);
    enter(e, v, VERTEX_FAILED);
}

void engine_veto(struct engine *e, uint32_t v, const char *message)
{
    struct vertex *x = &e->vertices[v];
    ASSERT(!x->busy);
    x->dirty = false;
    x->retry_at = USEC_NEVER;
    x->reason = "Vetoed";
    set_message(e, x, message);
    enter(e, v, VERTEX_VETOED);
}

void engine_carry(struct engine *e, uint32_t v, const struct vertex *old)
{
    struct vertex *x = &e->vertices[v];
    bool settled = old->state == VERTEX_OK && !old->dirty && !old->refresh && !old->busy;
    if (x->state == VERTEX_VETOED) {
        return;
    }
    x->was_right = old->was_right;
    x->changed = old->changed;
    if (old->contest != NULL) {
        x->contest = ARENA_NEW(e->out, struct vertex_contest);
        *x->contest = *old->contest;
    }
    if (settled && !x->refresh) {
        x->dirty = false;
        enter(e, v, VERTEX_OK);
    }
}

struct engine_counts engine_count(const struct engine *e)
{
    struct engine_counts counts = { .total = e->graph->resources->n };
    for (uint32_t i = 0; i < counts.total; i++) {
        counts.states[e->vertices[i].state]++;
        counts.changed += e->vertices[i].changed;
    }
    return counts;
}

void engine_check(const struct engine *e)
{
    uint32_t busy = 0;
    uint32_t blocked = 0;
    for (uint32_t i = 0; i < e->graph->resources->n; i++) {
        const struct vertex *x = &e->vertices[i];
        busy += x->busy;
        blocked += x->state == VERTEX_BLOCKED;
        ASSERT(x->state != VERTEX_DRIFTED || x->busy);
        ASSERT(x->state != VERTEX_BLOCKED || x->by != i);
        ASSERT(x->state == VERTEX_FAILED || x->state == VERTEX_CONTESTED ||
               x->retry_at == USEC_NEVER || x->dirty);
        ASSERT(x->retry_at >= e->retry_min);
        ASSERT(x->state != VERTEX_FAILED || x->reason != NULL);
    }
    ASSERT(busy <= 1);
    ASSERT(blocked == e->blocked);
}
