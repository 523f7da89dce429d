#include "calendar/wait.h"

#include "calendar/day.h"
#include "calendar/elapsed.h"

/* Longer waits are looked at again after this: it keeps the answer cheap. */
#define WAIT_DAYS_MAX 400
/* After this long, each week repeats the week before it, with more time counted. */
#define WAIT_DAYS_SETTLED 16

static bool wait_excludes(const struct wait *w, int64_t day)
{
    return (w->exclude >> day_weekday(day) & 1) != 0;
}

/* Today is an excluded weekday: the seconds since midnight are subtracted. */
static bool wait_stands(const struct wait *w, struct timestamp last, struct timestamp now)
{
    int64_t today = day_of(now.sec);
    return day_of(last.sec + last.offset) != today && wait_excludes(w, today);
}

/* The time that counts. */
static struct elapsed wait_since(const struct wait *w, struct timestamp last, struct timestamp now)
{
    struct elapsed since = elapsed_between(last, now);
    if (w->exclude == 0) {
        return since;
    }
    if (since.sec >= 0) {
        int64_t first = day_of(last.sec + last.offset);
        int64_t days = since.sec / DAY_SEC;
        int64_t excluded = days / 7 * __builtin_popcount(w->exclude);
        for (int64_t i = 1; i <= days % 7; i++) {
            excluded += wait_excludes(w, first + i) ? 1 : 0;
        }
        since.sec -= excluded * DAY_SEC;
        if (wait_excludes(w, first)) {
            since.sec -= DAY_SEC - (int64_t)day_clock(last.sec + last.offset);
        }
    }
    if (wait_stands(w, last, now)) {
        since.sec -= day_clock(now.sec);
    }
    return since;
}

/* Where the count may jump next: a midnight, or a whole number of days after the transition. */
static struct timestamp wait_border(struct timestamp last, struct timestamp at)
{
    struct timestamp midnight = { .sec = (day_of(at.sec) + 1) * DAY_SEC };
    struct elapsed since = elapsed_between(last, at);
    int64_t days = since.sec < 0 ? 0 : since.sec / DAY_SEC + 1;
    struct timestamp anniversary = { .sec = last.sec + days * DAY_SEC, .nsec = last.nsec };
    return elapsed_order(midnight, anniversary) < 0 ? midnight : anniversary;
}

/* The instant before `border` at which the count that runs from `at` has passed. */
static bool wait_ends(const struct wait *w, struct timestamp last, struct timestamp at,
                      struct timestamp border, struct timestamp *ret)
{
    struct elapsed need = elapsed_sub(elapsed_from_ns(w->duration_ns), wait_since(w, last, at));
    struct timestamp end = elapsed_after(elapsed_after(at, need), (struct elapsed){ .nsec = 1 });
    if (elapsed_order(end, border) >= 0) {
        return false;
    }
    *ret = end;
    return true;
}

static bool wait_passed(const struct wait *w, struct timestamp last, struct timestamp now)
{
    return elapsed_cmp(wait_since(w, last, now), elapsed_from_ns(w->duration_ns)) > 0;
}

/* Looks for the first instant from `at` to `border` that answers `goal`; `at` itself does not. */
static bool wait_turns(const struct wait *w, struct timestamp last, struct timestamp at,
                       struct timestamp border, bool goal, struct timestamp *ret)
{
    if (!wait_stands(w, last, at)) {
        return goal && wait_ends(w, last, at, border, ret);
    }
    /* The time subtracted grows by whole seconds and the clock by nanoseconds, so within every
     * second the count may reach the wait and fall below it again. */
    struct timestamp second = { .sec = at.sec + 1 };
    struct timestamp limit = elapsed_order(second, border) < 0 ? second : border;
    if (goal && wait_ends(w, last, at, limit, ret)) {
        return true;
    }
    if (elapsed_order(second, border) >= 0) {
        return false;
    }
    if (wait_passed(w, last, second) == goal) {
        *ret = second;
        return true;
    }
    struct timestamp third = { .sec = second.sec + 1 };
    return goal &&
           wait_ends(w, last, second, elapsed_order(third, border) < 0 ? third : border, ret);
}

static usec_t wait_next(const struct wait *w, struct timestamp last, struct timestamp now,
                        bool passed)
{
    struct timestamp at = { .sec = now.sec, .nsec = now.nsec };
    struct timestamp settled = elapsed_order(last, now) > 0 ? last : now;
    if (!passed) {
        /* Excluded days only make a wait longer: it cannot end before a plain wait does. */
        struct timestamp soonest = elapsed_after(last, elapsed_from_ns(w->duration_ns));
        at = elapsed_order(soonest, at) > 0 ? soonest : at;
    }
    bool stays = passed || w->exclude == DAY_WEEK;
    int64_t limit = at.sec + WAIT_DAYS_MAX * DAY_SEC;
    while (at.sec < limit) {
        if (wait_passed(w, last, at) != passed) {
            return elapsed_wake(at);
        }
        if (stays && at.sec > settled.sec + WAIT_DAYS_SETTLED * DAY_SEC) {
            return USEC_NEVER;
        }
        struct timestamp border = wait_border(last, at);
        struct timestamp turn;
        if (wait_turns(w, last, at, border, !passed, &turn)) {
            return elapsed_wake(turn);
        }
        at = border;
    }
    return elapsed_wake(at);
}

struct wait_answer wait_at(const struct wait *w, struct timestamp last_transition,
                           struct timestamp now)
{
    struct elapsed duration = elapsed_from_ns(w->duration_ns);
    struct elapsed since = wait_since(w, last_transition, now);
    struct wait_answer answer = { .passed = elapsed_cmp(since, duration) > 0 };
    if (!answer.passed) {
        answer.remaining_ns = elapsed_to_ns(elapsed_sub(duration, since));
    }
    if (w->exclude != 0) {
        answer.next = wait_next(w, last_transition, now, answer.passed);
    } else if (answer.passed) {
        answer.next = USEC_NEVER;
    } else {
        struct timestamp end = elapsed_after(last_transition, duration);
        answer.next = elapsed_wake(elapsed_after(end, (struct elapsed){ .nsec = 1 }));
    }
    return answer;
}
