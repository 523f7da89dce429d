#include "sandbox/sim/virtual_loop.h"

#include "base/arena.h"
#include "base/alloc.h"
#include "base/rng.h"

/* Four children a node: half the levels of a binary heap, and siblings share cache lines. */
#define VIRTUAL_LOOP_HEAP_FANOUT 4u

struct due_timer {
    usec_t at; /* true time */
    uint64_t seq;
    struct loop_timer *timer;
};

/* A heap, or for a frozen view's due timers a plain array. */
struct due_timers {
    struct due_timer *p;
    uint32_t n;
    uint32_t cap;
};

struct virtual_loop_view {
    struct loop loop;
    struct virtual_loop *v;
    uint32_t id;
    uint32_t armed;
    bool frozen;
    int32_t drift;
    usec_t base_true;  /* since then the drift holds … */
    usec_t base_local; /* … and this was the view's monotonic time */
    usec_t wall_offset;
    struct rng rng;
    struct due_timers held;
    struct arena memory; /* of `held` */
};

struct virtual_loop {
    usec_t now;
    uint64_t seq;
    uint64_t seed;
    uint32_t views;
    uint32_t views_alive;
    uint32_t armed; /* of all views */
    usec_t wall_start;
    struct due_timers heap;
    virtual_loop_on_fire on_fire;
    void *on_fire_ctx;
    struct virtual_loop_view root;
    struct arena memory; /* of `heap` */
};

/* A timer knows its place: the index, and in the lowest bit whether it is among its view's held
 * ones. */
static void due_timer_set_index(struct due_timer *item, uint32_t index, bool held)
{
    item->timer->impl = (void *)(((uintptr_t)index << 1) | (held ? 1u : 0u));
}

static uint32_t virtual_loop_index(const struct loop_timer *t)
{
    return (uint32_t)((uintptr_t)t->impl >> 1);
}

static bool virtual_loop_is_held(const struct loop_timer *t)
{
    return ((uintptr_t)t->impl & 1) != 0;
}

static bool due_timer_before(const struct due_timer *a, const struct due_timer *b)
{
    return a->at < b->at || (a->at == b->at && a->seq < b->seq);
}

static void timers_sift_up(struct virtual_loop *v, uint32_t i, struct due_timer item)
{
    struct due_timer *p = v->heap.p;
    while (i > 0) {
        uint32_t parent = (i - 1) / VIRTUAL_LOOP_HEAP_FANOUT;
        if (!due_timer_before(&item, &p[parent])) {
            break;
        }
        p[i] = p[parent];
        due_timer_set_index(&p[i], i, false);
        i = parent;
    }
    p[i] = item;
    due_timer_set_index(&p[i], i, false);
}

static void timers_sift_down(struct virtual_loop *v, uint32_t i, struct due_timer item)
{
    struct due_timer *p = v->heap.p;
    uint32_t n = v->heap.n;
    for (;;) {
        uint32_t child = i * VIRTUAL_LOOP_HEAP_FANOUT + 1;
        if (child >= n) {
            break;
        }
        uint32_t end = MIN(child + VIRTUAL_LOOP_HEAP_FANOUT, n);
        uint32_t best = child;
        for (uint32_t c = child + 1; c < end; c++) {
            if (due_timer_before(&p[c], &p[best])) {
                best = c;
            }
        }
        if (!due_timer_before(&p[best], &item)) {
            break;
        }
        p[i] = p[best];
        due_timer_set_index(&p[i], i, false);
        i = best;
    }
    p[i] = item;
    due_timer_set_index(&p[i], i, false);
}

/* Puts `item` where index `i` is or belongs, whichever way it has to move. */
static void timers_sift(struct virtual_loop *v, uint32_t i, struct due_timer item)
{
    if (i > 0 && due_timer_before(&item, &v->heap.p[(i - 1) / VIRTUAL_LOOP_HEAP_FANOUT])) {
        timers_sift_up(v, i, item);
    } else {
        timers_sift_down(v, i, item);
    }
}

static void virtual_loop_push(struct virtual_loop *v, struct due_timer item)
{
    ARENA_GROW(&v->memory, v->heap.p, v->heap.n, v->heap.cap);
    timers_sift_up(v, v->heap.n++, item);
}

static void virtual_loop_remove(struct virtual_loop *v, uint32_t i)
{
    struct due_timer last = v->heap.p[--v->heap.n];
    if (i < v->heap.n) {
        timers_sift(v, i, last);
    }
}

static void virtual_loop_hold(struct virtual_loop_view *view, struct due_timer item)
{
    ARENA_GROW(&view->memory, view->held.p, view->held.n, view->held.cap);
    view->held.p[view->held.n] = item;
    due_timer_set_index(&view->held.p[view->held.n], view->held.n, true);
    view->held.n++;
}

static void virtual_loop_unhold(struct virtual_loop_view *view, uint32_t i)
{
    struct due_timer last = view->held.p[--view->held.n];
    if (i < view->held.n) {
        view->held.p[i] = last;
        due_timer_set_index(&view->held.p[i], i, true);
    }
}

/* The view's monotonic time at true time `at`. */
static usec_t virtual_loop_local(const struct virtual_loop_view *view, usec_t at)
{
    usec_t gone = at - view->base_true;
    return view->base_local + gone + gone * view->drift / 1000000;
}

/* The first true time at which the view's monotonic clock shows `local` or more. */
static usec_t virtual_loop_true(const struct virtual_loop_view *view, usec_t local)
{
    usec_t gone = local - view->base_local;
    if (view->drift == 0) {
        return view->base_true + gone;
    }
    /* Whoever waits for ever need not wait a rounding error longer; and nothing overflows. */
    if (gone > INT64_MAX / 1000000) {
        return USEC_NEVER;
    }
    usec_t at = view->base_true + gone * 1000000 / (1000000 + view->drift);
    while (virtual_loop_local(view, at) < local) {
        at++;
    }
    while (virtual_loop_local(view, at - 1) >= local) {
        at--;
    }
    return at;
}

/* In true time; the past is now: a timer set for long ago would otherwise overtake its elders. */
static usec_t virtual_loop_due(const struct virtual_loop_view *view, const struct loop_timer *t)
{
    usec_t at = t->at == USEC_NEVER ? USEC_NEVER : virtual_loop_true(view, t->at);
    return MAX(at, view->v->now);
}

static struct virtual_loop_view *virtual_loop_of(struct loop *loop)
{
    return CONTAINER_OF(loop, struct virtual_loop_view, loop);
}

static usec_t virtual_loop_op_now(struct loop *loop)
{
    struct virtual_loop_view *view = virtual_loop_of(loop);
    return virtual_loop_local(view, view->v->now);
}

static usec_t virtual_loop_op_wall(struct loop *loop)
{
    return virtual_loop_op_now(loop) + virtual_loop_of(loop)->wall_offset;
}

static uint64_t virtual_loop_op_random(struct loop *loop)
{
    return rng_next(&virtual_loop_of(loop)->rng);
}

static void virtual_loop_op_stop(struct loop_timer *t)
{
    struct virtual_loop_view *view = virtual_loop_of(t->loop);
    struct virtual_loop *v = view->v;
    if (!t->armed) {
        return;
    }
    if (virtual_loop_is_held(t)) {
        virtual_loop_unhold(view, virtual_loop_index(t));
    } else {
        virtual_loop_remove(v, virtual_loop_index(t));
    }
    t->armed = false;
    view->armed--;
    v->armed--;
}

static void virtual_loop_op_set(struct loop_timer *t, usec_t at)
{
    struct virtual_loop_view *view = virtual_loop_of(t->loop);
    struct virtual_loop *v = view->v;
    if (t->armed && virtual_loop_is_held(t)) {
        virtual_loop_op_stop(t);
    }
    t->at = at;
    t->seq = ++v->seq;
    struct due_timer item = { .at = virtual_loop_due(view, t), .seq = t->seq, .timer = t };
    if (t->armed) {
        timers_sift(v, virtual_loop_index(t), item);
        return;
    }
    t->armed = true;
    view->armed++;
    v->armed++;
    virtual_loop_push(v, item);
}

static const struct loop_ops virtual_loop_ops = {
    .now = virtual_loop_op_now,
    .wall = virtual_loop_op_wall,
    .random = virtual_loop_op_random,
    .timer_set = virtual_loop_op_set,
    .timer_stop = virtual_loop_op_stop,
    .timer_done = virtual_loop_op_stop,
};

static void virtual_loop_view_init(struct virtual_loop_view *view, struct virtual_loop *v,
                                   usec_t wall_skew)
{
    *view = (struct virtual_loop_view){
        .loop = { .ops = &virtual_loop_ops, .root = &v->root.loop },
        .v = v,
        .id = v->views++,
        .base_true = v->now,
        .base_local = v->now,
        .wall_offset = v->wall_start + wall_skew,
        .memory = { .first = 256 },
    };
    rng_init(&view->rng, v->seed ^ (0x9e3779b97f4a7c15ULL * ((uint64_t)view->id + 1)));
    v->views_alive++;
}

struct virtual_loop *virtual_loop_new(uint64_t seed, usec_t wall_start)
{
    struct virtual_loop *v = ALLOC_NEW(struct virtual_loop);
    v->seed = seed;
    v->wall_start = wall_start;
    virtual_loop_view_init(&v->root, v, 0);
    return v;
}

void virtual_loop_free(struct virtual_loop *v)
{
    if (v == NULL) {
        return;
    }
    ASSERT(v->views_alive == 1);
    ASSERT(v->armed == 0);
    arena_done(&v->root.memory);
    arena_done(&v->memory);
    alloc_free(v);
}

struct loop *virtual_loop_root(struct virtual_loop *v)
{
    return &v->root.loop;
}

struct loop *virtual_loop_view_new(struct virtual_loop *v, usec_t wall_skew)
{
    struct virtual_loop_view *view = ALLOC_NEW(struct virtual_loop_view);
    virtual_loop_view_init(view, v, wall_skew);
    return &view->loop;
}

void virtual_loop_view_free(struct loop *loop)
{
    if (loop == NULL) {
        return;
    }
    struct virtual_loop_view *view = virtual_loop_of(loop);
    ASSERT(view != &view->v->root);
    ASSERT(view->armed == 0);
    view->v->views_alive--;
    arena_done(&view->memory);
    alloc_free(view);
}

void virtual_loop_freeze(struct loop *loop, bool frozen)
{
    struct virtual_loop_view *view = virtual_loop_of(loop);
    ASSERT(view != &view->v->root);
    view->frozen = frozen;
    if (!frozen) {
        /* Their times and numbers are kept, so they fire in the order in which they were due. */
        for (uint32_t i = 0; i < view->held.n; i++) {
            virtual_loop_push(view->v, view->held.p[i]);
        }
        view->held.n = 0;
    }
}

bool virtual_loop_is_frozen(struct loop *loop)
{
    return virtual_loop_of(loop)->frozen;
}

void virtual_loop_step_wall(struct loop *loop, usec_t by)
{
    virtual_loop_of(loop)->wall_offset += by;
}

void virtual_loop_set_drift(struct loop *loop, int32_t ppm)
{
    struct virtual_loop_view *view = virtual_loop_of(loop);
    struct virtual_loop *v = view->v;
    ASSERT(ppm >= -VIRTUAL_LOOP_DRIFT_MAX && ppm <= VIRTUAL_LOOP_DRIFT_MAX);
    view->base_local = virtual_loop_local(view, v->now);
    view->base_true = v->now;
    view->drift = ppm;
    /* Timers keep the view's time, so they move in true time. All are found before one moves:
     * settling changes the array that is walked. */
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct loop_timer **timers = ARENA_ARRAY(&tmp, struct loop_timer *, view->armed + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->heap.n; i++) {
        if (v->heap.p[i].timer->loop == loop) {
            timers[n++] = v->heap.p[i].timer;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        struct loop_timer *t = timers[i];
        struct due_timer item = { .at = virtual_loop_due(view, t), .seq = t->seq, .timer = t };
        timers_sift(v, virtual_loop_index(t), item);
    }
    /* Held ones that were due keep their order; others were only in the way of a look ahead. */
    for (uint32_t i = 0; i < view->held.n; i++) {
        if (view->held.p[i].at > v->now) {
            view->held.p[i].at = virtual_loop_due(view, view->held.p[i].timer);
        }
    }
}

void virtual_loop_trace(struct virtual_loop *v, virtual_loop_on_fire on_fire, void *ctx)
{
    v->on_fire = on_fire;
    v->on_fire_ctx = ctx;
}

usec_t virtual_loop_now(const struct virtual_loop *v)
{
    return v->now;
}

/* Takes what is due in frozen views out of the way; the first item left is the next to fire. */
static const struct due_timer *virtual_loop_peek(struct virtual_loop *v)
{
    while (v->heap.n > 0) {
        struct due_timer first = v->heap.p[0];
        struct virtual_loop_view *view = virtual_loop_of(first.timer->loop);
        if (!view->frozen) {
            return &v->heap.p[0];
        }
        virtual_loop_remove(v, 0);
        virtual_loop_hold(view, first);
    }
    return NULL;
}

usec_t virtual_loop_next(struct virtual_loop *v)
{
    const struct due_timer *first = virtual_loop_peek(v);
    return first != NULL ? MAX(first->at, v->now) : USEC_NEVER;
}

bool virtual_loop_step(struct virtual_loop *v, usec_t until)
{
    ASSERT(until >= v->now);
    const struct due_timer *first = virtual_loop_peek(v);
    if (first == NULL || first->at > until) {
        v->now = until;
        return false;
    }
    struct loop_timer *t = first->timer;
    v->now = MAX(v->now, first->at);
    virtual_loop_remove(v, 0);
    t->armed = false;
    struct virtual_loop_view *view = virtual_loop_of(t->loop);
    view->armed--;
    v->armed--;
    if (v->on_fire != NULL) {
        struct virtual_loop_event event = { .now = v->now, .seq = t->seq, .view = view->id };
        v->on_fire(v->on_fire_ctx, &event);
    }
    t->fire(t->ctx);
    return true;
}

uint64_t virtual_loop_run(struct virtual_loop *v, usec_t until)
{
    uint64_t fired = 0;
    while (virtual_loop_step(v, until)) {
        fired++;
    }
    return fired;
}

uint32_t virtual_loop_armed(const struct virtual_loop *v)
{
    return v->armed;
}

void virtual_loop_check(const struct virtual_loop *v)
{
    for (uint32_t i = 0; i < v->heap.n; i++) {
        const struct due_timer *item = &v->heap.p[i];
        ASSERT(item->timer->armed);
        ASSERT(!virtual_loop_is_held(item->timer));
        ASSERT(virtual_loop_index(item->timer) == i);
        ASSERT(item->seq == item->timer->seq);
        if (i > 0) {
            ASSERT(due_timer_before(&v->heap.p[(i - 1) / VIRTUAL_LOOP_HEAP_FANOUT], item));
        }
    }
}
