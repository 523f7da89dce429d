#include "calendar/window.h"

#define WINDOW_STEPS_MAX 1200 /* three a day: a year and some weeks */

void window_exclude(struct window *w, struct day_date date)
{
    ASSERT(date.month >= 1 && date.month <= 12);
    ASSERT(date.day >= 1 && date.day <= 31);
    w->exclude[date.month] |= UINT32_C(1) << date.day;
}

int window_check(const struct window *w, struct err *err)
{
    if (w->weekdays == 0) {
        return err_set(err, ERR_INVALID, "a timewindow needs to have weekdays specified");
    }
    uint32_t open = w->open / 60;
    uint32_t close = w->close / 60;
    if (w->close < w->open && !w->overnight) {
        return err_set(
            err, ERR_INVALID,
            "found a window from %02u:%02u to %02u:%02u, want the end after the start, or "
            "'overnight: true'",
            open / 60, open % 60, close / 60, close % 60);
    }
    if (w->close == w->open && w->overnight) {
        return err_set(err, ERR_INVALID,
                       "found a window from %02u:%02u to the same time, want two different ones",
                       open / 60, open % 60);
    }
    return 0;
}

/* A civil time. `past` says that part of its second is over: a window's start is not part of it. */
struct window_moment {
    int64_t local;
    bool past;
};

static bool window_passes(const struct window *w, struct window_moment at, const char **ret_reason)
{
    int64_t day = day_of(at.local);
    uint32_t clock = day_clock(at.local);
    bool opened = clock > w->open || (clock == w->open && at.past);
    bool closed = clock >= w->close;
    if (w->overnight && w->close < w->open) {
        if (!closed) {
            day--; /* a window over midnight belongs to the evening on which it opened */
            opened = true;
        }
        closed = false;
    }
    *ret_reason = NULL;
    if ((w->weekdays >> day_weekday(day) & 1) == 0) {
        *ret_reason = "current day of week forbidden";
        return false;
    }
    struct civil date = civil_from_sec(day * DAY_SEC);
    if ((w->exclude[date.month] >> date.day & 1) != 0) {
        *ret_reason = "day/month forbidden";
        return false;
    }
    return opened && !closed;
}

static bool moment_before(struct window_moment a, struct window_moment b)
{
    return a.local != b.local ? a.local < b.local : !a.past && b.past;
}

/* The next civil time at which the answer may be another one. */
static struct window_moment window_border(const struct window *w, struct window_moment at)
{
    int64_t midnight = day_of(at.local) * DAY_SEC;
    const struct window_moment ends[] = {
        { .local = midnight + w->open, .past = true },
        { .local = midnight + w->close },
    };
    struct window_moment border = { .local = midnight + DAY_SEC };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        if (moment_before(at, ends[i]) && moment_before(ends[i], border)) {
            border = ends[i];
        }
    }
    return border;
}

static usec_t window_next(const struct window *w, struct zone_pace pace, int64_t sec, bool past,
                          bool passed)
{
    const char *reason;
    if (w->open == w->close) {
        return USEC_NEVER;
    }
    for (int step = 0; step < WINDOW_STEPS_MAX && sec < USEC_NEVER / 2000000; step++) {
        struct window_moment at = { .local = pace.local, .past = past };
        struct window_moment border = window_border(w, at);
        int64_t ahead = border.local - at.local;
        if (pace.stands || sec + ahead >= pace.until) {
            sec = pace.until;
            past = false;
            pace = zone_pace(w->zone, sec);
        } else {
            sec += ahead;
            past = border.past;
            pace.local += ahead;
        }
        at = (struct window_moment){ .local = pace.local, .past = past || pace.stands };
        if (window_passes(w, at, &reason) != passed) {
            break;
        }
    }
    return SECONDS(sec) + (past ? 1 : 0);
}

struct window_answer window_at(const struct window *w, struct timestamp now)
{
    struct window_answer answer = { 0 };
    struct zone_pace pace = zone_pace(w->zone, now.sec);
    bool past = now.nsec > 0;
    struct window_moment at = { .local = pace.local, .past = past || pace.stands };
    answer.passed = window_passes(w, at, &answer.reason);
    answer.next = window_next(w, pace, now.sec, past, answer.passed);
    return answer;
}
