#include "sandbox/sim/virtual_loop.h"

#include "base/arena.h"
#include "base/alloc.h"
#include "base/rng.h"

/* Four children a node: half the levels of a binary heap, and siblings share cache lines. */
#define VLOOP_FAN 4u

struct vloop_item {
    usec_t at; /* true time */
    uint64_t seq;
    struct loop_timer *timer;
};

/* A heap, or for a frozen view's due timers a plain array. */
struct vloop_items {
    struct vloop_item *p;
    uint32_t n;
    uint32_t cap;
};

struct vloop_view {
    struct loop loop;
    struct vloop *v;
    uint32_t id;
    uint32_t armed;
    bool frozen;
    int32_t drift;
    usec_t base_true;  /* since then the drift holds … */
    usec_t base_local; /* … and this was the view's monotonic time */
    usec_t wall_offset;
    struct rng rng;
    struct vloop_items held;
    struct arena memory; /* of `held` */
};

struct vloop {
    usec_t now;
    uint64_t seq;
    uint64_t seed;
    uint32_t views;
    uint32_t views_alive;
    uint32_t armed; /* of all views */
    usec_t wall_start;
    struct vloop_items heap;
    vloop_on_fire on_fire;
    void *on_fire_ctx;
    struct vloop_view root;
    struct arena memory; /* of `heap` */
};

/* A timer knows its place: the index, and in the lowest bit whether it is among its view's held
 * ones. */
static void vloop_place(struct vloop_item *item, uint32_t index, bool held)
{
    item->timer->impl = (void *)(((uintptr_t)index << 1) | (held ? 1u : 0u));
}

static uint32_t vloop_index(const struct loop_timer *t)
{
    return (uint32_t)((uintptr_t)t->impl >> 1);
}

static bool vloop_is_held(const struct loop_timer *t)
{
    return ((uintptr_t)t->impl & 1) != 0;
}

static bool vloop_before(const struct vloop_item *a, const struct vloop_item *b)
{
    return a->at < b->at || (a->at == b->at && a->seq < b->seq);
}

static void vloop_up(struct vloop *v, uint32_t i, struct vloop_item item)
{
    struct vloop_item *p = v->heap.p;
    while (i > 0) {
        uint32_t parent = (i - 1) / VLOOP_FAN;
        if (!vloop_before(&item, &p[parent])) {
            break;
        }
        p[i] = p[parent];
        vloop_place(&p[i], i, false);
        i = parent;
    }
    p[i] = item;
    vloop_place(&p[i], i, false);
}

static void vloop_down(struct vloop *v, uint32_t i, struct vloop_item item)
{
    struct vloop_item *p = v->heap.p;
    uint32_t n = v->heap.n;
    for (;;) {
        uint32_t child = i * VLOOP_FAN + 1;
        if (child >= n) {
            break;
        }
        uint32_t end = MIN(child + VLOOP_FAN, n);
        uint32_t best = child;
        for (uint32_t c = child + 1; c < end; c++) {
            if (vloop_before(&p[c], &p[best])) {
                best = c;
            }
        }
        if (!vloop_before(&p[best], &item)) {
            break;
        }
        p[i] = p[best];
        vloop_place(&p[i], i, false);
        i = best;
    }
    p[i] = item;
    vloop_place(&p[i], i, false);
}

/* Puts `item` where index `i` is or belongs, whichever way it has to move. */
static void vloop_settle(struct vloop *v, uint32_t i, struct vloop_item item)
{
    if (i > 0 && vloop_before(&item, &v->heap.p[(i - 1) / VLOOP_FAN])) {
        vloop_up(v, i, item);
    } else {
        vloop_down(v, i, item);
    }
}

static void vloop_push(struct vloop *v, struct vloop_item item)
{
    ARENA_GROW(&v->memory, v->heap.p, v->heap.n, v->heap.cap);
    vloop_up(v, v->heap.n++, item);
}

static void vloop_remove(struct vloop *v, uint32_t i)
{
    struct vloop_item last = v->heap.p[--v->heap.n];
    if (i < v->heap.n) {
        vloop_settle(v, i, last);
    }
}

static void vloop_hold(struct vloop_view *view, struct vloop_item item)
{
    ARENA_GROW(&view->memory, view->held.p, view->held.n, view->held.cap);
    view->held.p[view->held.n] = item;
    vloop_place(&view->held.p[view->held.n], view->held.n, true);
    view->held.n++;
}

static void vloop_unhold(struct vloop_view *view, uint32_t i)
{
    struct vloop_item last = view->held.p[--view->held.n];
    if (i < view->held.n) {
        view->held.p[i] = last;
        vloop_place(&view->held.p[i], i, true);
    }
}

/* The view's monotonic time at true time `at`. */
static usec_t vloop_local(const struct vloop_view *view, usec_t at)
{
    usec_t gone = at - view->base_true;
    return view->base_local + gone + gone * view->drift / 1000000;
}

/* The first true time at which the view's monotonic clock shows `local` or more. */
static usec_t vloop_true(const struct vloop_view *view, usec_t local)
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
    while (vloop_local(view, at) < local) {
        at++;
    }
    while (vloop_local(view, at - 1) >= local) {
        at--;
    }
    return at;
}

/* In true time; the past is now: a timer set for long ago would otherwise overtake its elders. */
static usec_t vloop_due(const struct vloop_view *view, const struct loop_timer *t)
{
    usec_t at = t->at == USEC_NEVER ? USEC_NEVER : vloop_true(view, t->at);
    return MAX(at, view->v->now);
}

static struct vloop_view *vloop_of(struct loop *loop)
{
    return CONTAINER_OF(loop, struct vloop_view, loop);
}

static usec_t vloop_op_now(struct loop *loop)
{
    struct vloop_view *view = vloop_of(loop);
    return vloop_local(view, view->v->now);
}

static usec_t vloop_op_wall(struct loop *loop)
{
    return vloop_op_now(loop) + vloop_of(loop)->wall_offset;
}

static uint64_t vloop_op_random(struct loop *loop)
{
    return rng_next(&vloop_of(loop)->rng);
}

static void vloop_op_stop(struct loop_timer *t)
{
    struct vloop_view *view = vloop_of(t->loop);
    struct vloop *v = view->v;
    if (!t->armed) {
        return;
    }
    if (vloop_is_held(t)) {
        vloop_unhold(view, vloop_index(t));
    } else {
        vloop_remove(v, vloop_index(t));
    }
    t->armed = false;
    view->armed--;
    v->armed--;
}

static void vloop_op_set(struct loop_timer *t, usec_t at)
{
    struct vloop_view *view = vloop_of(t->loop);
    struct vloop *v = view->v;
    if (t->armed && vloop_is_held(t)) {
        vloop_op_stop(t);
    }
    t->at = at;
    t->seq = ++v->seq;
    struct vloop_item item = { .at = vloop_due(view, t), .seq = t->seq, .timer = t };
    if (t->armed) {
        vloop_settle(v, vloop_index(t), item);
        return;
    }
    t->armed = true;
    view->armed++;
    v->armed++;
    vloop_push(v, item);
}

static const struct loop_ops vloop_ops = {
    .now = vloop_op_now,
    .wall = vloop_op_wall,
    .random = vloop_op_random,
    .timer_set = vloop_op_set,
    .timer_stop = vloop_op_stop,
    .timer_done = vloop_op_stop,
};

static void vloop_view_init(struct vloop_view *view, struct vloop *v, usec_t wall_skew)
{
    *view = (struct vloop_view){
        .loop = { .ops = &vloop_ops },
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

struct vloop *vloop_new(uint64_t seed, usec_t wall_start)
{
    struct vloop *v = ALLOC_NEW(struct vloop);
    v->seed = seed;
    v->wall_start = wall_start;
    vloop_view_init(&v->root, v, 0);
    return v;
}

void vloop_free(struct vloop *v)
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

struct loop *vloop_root(struct vloop *v)
{
    return &v->root.loop;
}

struct loop *vloop_view(struct vloop *v, usec_t wall_skew)
{
    struct vloop_view *view = ALLOC_NEW(struct vloop_view);
    vloop_view_init(view, v, wall_skew);
    return &view->loop;
}

void vloop_view_free(struct loop *loop)
{
    if (loop == NULL) {
        return;
    }
    struct vloop_view *view = vloop_of(loop);
    ASSERT(view != &view->v->root);
    ASSERT(view->armed == 0);
    view->v->views_alive--;
    arena_done(&view->memory);
    alloc_free(view);
}

struct loop *vloop_beside(struct loop *loop)
{
    return loop->ops == &vloop_ops ? &vloop_of(loop)->v->root.loop : loop;
}

void vloop_freeze(struct loop *loop, bool frozen)
{
    struct vloop_view *view = vloop_of(loop);
    ASSERT(view != &view->v->root);
    view->frozen = frozen;
    if (!frozen) {
        /* Their times and numbers are kept, so they fire in the order in which they were due. */
        for (uint32_t i = 0; i < view->held.n; i++) {
            vloop_push(view->v, view->held.p[i]);
        }
        view->held.n = 0;
    }
}

bool vloop_frozen(struct loop *loop)
{
    return vloop_of(loop)->frozen;
}

void vloop_step_wall(struct loop *loop, usec_t by)
{
    vloop_of(loop)->wall_offset += by;
}

void vloop_drift(struct loop *loop, int32_t ppm)
{
    struct vloop_view *view = vloop_of(loop);
    struct vloop *v = view->v;
    ASSERT(ppm >= -VLOOP_DRIFT_MAX && ppm <= VLOOP_DRIFT_MAX);
    view->base_local = vloop_local(view, v->now);
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
        struct vloop_item item = { .at = vloop_due(view, t), .seq = t->seq, .timer = t };
        vloop_settle(v, vloop_index(t), item);
    }
    /* Held ones that were due keep their order; others were only in the way of a look ahead. */
    for (uint32_t i = 0; i < view->held.n; i++) {
        if (view->held.p[i].at > v->now) {
            view->held.p[i].at = vloop_due(view, view->held.p[i].timer);
        }
    }
}

void vloop_trace(struct vloop *v, vloop_on_fire on_fire, void *ctx)
{
    v->on_fire = on_fire;
    v->on_fire_ctx = ctx;
}

usec_t vloop_now(const struct vloop *v)
{
    return v->now;
}

/* Takes what is due in frozen views out of the way; the first item left is the next to fire. */
static const struct vloop_item *vloop_peek(struct vloop *v)
{
    while (v->heap.n > 0) {
        struct vloop_item first = v->heap.p[0];
        struct vloop_view *view = vloop_of(first.timer->loop);
        if (!view->frozen) {
            return &v->heap.p[0];
        }
        vloop_remove(v, 0);
        vloop_hold(view, first);
    }
    return NULL;
}

usec_t vloop_next(struct vloop *v)
{
    const struct vloop_item *first = vloop_peek(v);
    return first != NULL ? MAX(first->at, v->now) : USEC_NEVER;
}

bool vloop_step(struct vloop *v, usec_t until)
{
    ASSERT(until >= v->now);
    const struct vloop_item *first = vloop_peek(v);
    if (first == NULL || first->at > until) {
        v->now = until;
        return false;
    }
    struct loop_timer *t = first->timer;
    v->now = MAX(v->now, first->at);
    vloop_remove(v, 0);
    t->armed = false;
    struct vloop_view *view = vloop_of(t->loop);
    view->armed--;
    v->armed--;
    if (v->on_fire != NULL) {
        struct vloop_event event = { .now = v->now, .seq = t->seq, .view = view->id };
        v->on_fire(v->on_fire_ctx, &event);
    }
    t->fire(t->ctx);
    return true;
}

uint64_t vloop_run(struct vloop *v, usec_t until)
{
    uint64_t fired = 0;
    while (vloop_step(v, until)) {
        fired++;
    }
    return fired;
}

uint32_t vloop_armed(const struct vloop *v)
{
    return v->armed;
}

void vloop_check(const struct vloop *v)
{
    for (uint32_t i = 0; i < v->heap.n; i++) {
        const struct vloop_item *item = &v->heap.p[i];
        ASSERT(item->timer->armed);
        ASSERT(!vloop_is_held(item->timer));
        ASSERT(vloop_index(item->timer) == i);
        ASSERT(item->seq == item->timer->seq);
        if (i > 0) {
            ASSERT(vloop_before(&v->heap.p[(i - 1) / VLOOP_FAN], item));
        }
    }
}
