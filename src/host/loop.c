#include "host/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <sys/random.h>

#include "base/alloc.h"

#define SIGNALS_MAX 8u /* SIGTERM, SIGINT, SIGHUP and a few to spare */

struct host_signal {
    struct event *event; /* NULL = free */
    int signo;
    void (*fn)(void *ctx, int signo);
    void *ctx;
};

struct host_loop {
    struct loop door; /* first: the door is the loop */
    struct event_base *base;
    struct event *tick;       /* fires when heap[0] is due */
    struct loop_timer **heap; /* borrowed timers, earliest first */
    uint32_t n;
    uint32_t cap;
    uint64_t seq;
    usec_t tick_at; /* what `tick` is armed for; USEC_NEVER = not armed */
    usec_t now;
    usec_t now_before; /* of the turn before */
    bool now_known;    /* `now` has been read in this turn */
    bool in_turn;
    bool stopped;
    struct host_signal signals[SIGNALS_MAX];
    struct host_loop_stats stats;
};

static struct host_loop *host_loop_of(struct loop *loop)
{
    return CONTAINER_OF(loop, struct host_loop, door);
}

static usec_t clock_usec(clockid_t clock)
{
    struct timespec t;
    int r = clock_gettime(clock, &t);
    ASSERT(r == 0);
    return (usec_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Outside of a turn nothing says when the clock was read last, so it is read again. */
static usec_t host_loop_now(struct loop *loop)
{
    struct host_loop *h = host_loop_of(loop);
    if (!h->in_turn) {
        return clock_usec(CLOCK_MONOTONIC);
    }
    if (!h->now_known) {
        h->now = clock_usec(CLOCK_MONOTONIC);
        h->now_known = true;
    }
    return h->now;
}

static usec_t host_loop_wall(struct loop *loop UNUSED)
{
    return clock_usec(CLOCK_REALTIME);
}

static uint64_t host_loop_random(struct loop *loop UNUSED)
{
    uint64_t value;
    ssize_t n;
    do {
        n = getrandom(&value, sizeof(value), 0);
    } while (n < 0 && errno == EINTR);
    ASSERT(n == (ssize_t)sizeof(value));
    return value;
}

static bool timer_before(const struct loop_timer *a, const struct loop_timer *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void heap_place(struct host_loop *h, uint32_t i, struct loop_timer *t)
{
    h->heap[i] = t;
    t->impl = (void *)(uintptr_t)i;
}

static void heap_up(struct host_loop *h, uint32_t i, struct loop_timer *t)
{
    while (i > 0 && timer_before(t, h->heap[(i - 1) / 2])) {
        heap_place(h, i, h->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    heap_place(h, i, t);
}

static void heap_down(struct host_loop *h, uint32_t i, struct loop_timer *t)
{
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= h->n) {
            break;
        }
        if (child + 1 < h->n && timer_before(h->heap[child + 1], h->heap[child])) {
            child++;
        }
        if (!timer_before(h->heap[child], t)) {
            break;
        }
        heap_place(h, i, h->heap[child]);
        i = child;
    }
    heap_place(h, i, t);
}

static void heap_reserve(struct host_loop *h)
{
    if (h->n < h->cap) {
        return;
    }
    uint32_t cap = h->cap == 0 ? 64 : h->cap * 2;
    struct loop_timer **grown = alloc_bytes((size_t)cap * sizeof(struct loop_timer *));
    if (h->n > 0) {
        memcpy(grown, h->heap, (size_t)h->n * sizeof(struct loop_timer *));
    }
    alloc_free(h->heap);
    h->heap = grown;
    h->cap = cap;
}

static void host_timer_stop(struct loop_timer *t)
{
    struct host_loop *h = host_loop_of(t->loop);
    uint32_t i = (uint32_t)(uintptr_t)t->impl;
    ASSERT(t->armed && i < h->n && h->heap[i] == t);
    struct loop_timer *last = h->heap[--h->n];
    t->armed = false;
    if (last == t) {
        return;
    }
    if (i > 0 && timer_before(last, h->heap[(i - 1) / 2])) {
        heap_up(h, i, last);
    } else {
        heap_down(h, i, last);
    }
}

static void host_timer_set(struct loop_timer *t, usec_t at)
{
    struct host_loop *h = host_loop_of(t->loop);
    if (t->armed) {
        host_timer_stop(t);
    }
    heap_reserve(h);
    t->at = at;
    t->seq = h->seq++;
    t->armed = true;
    heap_up(h, h->n++, t);
}

static void host_timer_done(struct loop_timer *t)
{
    if (t->armed) {
        host_timer_stop(t);
    }
}

static const struct loop_ops host_loop_ops = {
    .now = host_loop_now,
    .wall = host_loop_wall,
    .random = host_loop_random,
    .timer_set = host_timer_set,
    .timer_stop = host_timer_stop,
    .timer_done = host_timer_done,
};

/* Fires the timers that were due and set before this call; others wait for the next turn. */
static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *ctx)
{
    struct host_loop *h = ctx;
    usec_t now = host_loop_now(&h->door);
    uint64_t seq_end = h->seq;
    h->tick_at = USEC_NEVER;
    while (h->n > 0 && h->heap[0]->at <= now && h->heap[0]->seq < seq_end) {
        struct loop_timer *t = h->heap[0];
        /* A timer that was set for a past time counts as late only since the turn that set it. */
        usec_t since = MAX(t->at, h->now_before);
        h->stats.late_last = MAX(now - since, (usec_t)0);
        h->stats.late_max = MAX(h->stats.late_max, h->stats.late_last);
        host_timer_stop(t);
        t->fire(t->ctx);
    }
}

struct loop *host_loop_new(void)
{
    struct host_loop *h = ALLOC_NEW(struct host_loop);
    h->door.ops = &host_loop_ops;
    h->tick_at = USEC_NEVER;
    h->now_before = clock_usec(CLOCK_MONOTONIC);
    (void)signal(SIGPIPE, SIG_IGN); /* cannot fail for a signal that exists */

    /* The precise timer counts in microseconds by CLOCK_MONOTONIC, as we do; the coarse one would
     * wake up to 4 ms early and spin. */
    struct event_config *config = event_config_new();
    if (config == NULL) {
        out_of_memory(sizeof(*h));
    }
    (void)event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER); /* a known flag */
    h->base = event_base_new_with_config(config);
    event_config_free(config);
    ASSERT(h->base != NULL);
    h->tick = event_new(h->base, -1, 0, on_tick, h);
    ASSERT(h->tick != NULL);
    return &h->door;
}

void host_loop_free(struct loop *loop)
{
    if (loop == NULL) {
        return;
    }
    struct host_loop *h = host_loop_of(loop);
    ASSERT(h->n == 0);
    for (uint32_t i = 0; i < SIGNALS_MAX; i++) {
        if (h->signals[i].event != NULL) {
            event_free(h->signals[i].event);
        }
    }
    event_free(h->tick);
    event_base_free(h->base);
    alloc_free(h->heap);
    alloc_free(h);
}

/* Arms libevent's timer once a turn, however often timers were set in it. */
static void host_loop_arm(struct host_loop *h, usec_t wait_end)
{
    usec_t at = h->n > 0 ? MIN(h->heap[0]->at, wait_end) : wait_end;
    if (at == h->tick_at) {
        return;
    }
    h->tick_at = at;
    if (at == USEC_NEVER) {
        (void)event_del(h->tick); /* fails only for an event that was never made */
        return;
    }
    usec_t wait = MAX(at - clock_usec(CLOCK_MONOTONIC), (usec_t)0);
    struct timeval tv = { .tv_sec = wait / 1000000, .tv_usec = wait % 1000000 };
    int r = event_add(h->tick, &tv);
    ASSERT(r == 0);
}

void host_loop_turn(struct loop *loop, usec_t wait_max)
{
    struct host_loop *h = host_loop_of(loop);
    ASSERT(!h->in_turn);
    usec_t wait_end = wait_max == USEC_NEVER
                          ? USEC_NEVER
                          : clock_usec(CLOCK_MONOTONIC) + MAX(wait_max, (usec_t)0);
    host_loop_arm(h, wait_end);
    h->now_known = false;
    h->in_turn = true;
    int r = event_base_loop(h->base, EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY);
    ASSERT(r >= 0);
    h->in_turn = false;
    h->stats.turns++;
    usec_t end = clock_usec(CLOCK_MONOTONIC);
    h->now_before = h->now_known ? h->now : end;
    h->stats.turn_last = end - h->now_before;
    h->stats.turn_max = MAX(h->stats.turn_max, h->stats.turn_last);
}

void host_loop_run(struct loop *loop)
{
    struct host_loop *h = host_loop_of(loop);
    while (!h->stopped) {
        host_loop_turn(loop, USEC_NEVER);
    }
    h->stopped = false;
}

void host_loop_stop(struct loop *loop)
{
    host_loop_of(loop)->stopped = true;
}

struct event_base *host_loop_base(struct loop *loop)
{
    return host_loop_of(loop)->base;
}

static void on_signal(evutil_socket_t signo, short what UNUSED, void *ctx)
{
    struct host_signal *s = ctx;
    s->fn(s->ctx, (int)signo);
}

void host_loop_on_signal(struct loop *loop, int signo, void (*fn)(void *ctx, int signo), void *ctx)
{
    struct host_loop *h = host_loop_of(loop);
    struct host_signal *slot = NULL;
    for (uint32_t i = 0; i < SIGNALS_MAX; i++) {
        struct host_signal *s = &h->signals[i];
        if (s->event != NULL && s->signo == signo) {
            slot = s;
            break;
        }
        if (s->event == NULL && slot == NULL) {
            slot = s;
        }
    }
    ASSERT(slot != NULL);
    if (fn == NULL) {
        if (slot->event != NULL) {
            event_free(slot->event);
        }
        *slot = (struct host_signal){ 0 };
        return;
    }
    slot->signo = signo;
    slot->fn = fn;
    slot->ctx = ctx;
    if (slot->event == NULL) {
        slot->event = event_new(h->base, signo, EV_SIGNAL | EV_PERSIST, on_signal, slot);
        ASSERT(slot->event != NULL);
        int r = event_add(slot->event, NULL);
        ASSERT(r == 0);
    }
}

struct host_loop_stats host_loop_stats(const struct loop *loop)
{
    return ((const struct host_loop *)(const void *)loop)->stats; /* the door is its first member */
}

void host_loop_stats_reset(struct loop *loop)
{
    struct host_loop *h = host_loop_of(loop);
    h->stats.turn_max = 0;
    h->stats.late_max = 0;
}
