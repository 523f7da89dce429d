#include "calendar/notify_schedule.h"

#include "calendar/day.h"
#include "calendar/elapsed.h"

int notify_schedule_parse_kind(struct str text, enum notify_schedule_kind *ret, struct err *err)
{
    static const char *const names[] = { "periodic", "scheduled", "oneshot" };
    int kind = day_find_name(text, names, (int)ARRAY_LEN(names));
    if (kind < 0) {
        struct str shown = str_sub(text, 0, 64);
        return err_set(err, ERR_INVALID,
                       "schedule type '" STR_FMT "': want 'periodic', 'scheduled' or 'oneshot'",
                       STR_ARG(shown));
    }
    *ret = (enum notify_schedule_kind)kind;
    return 0;
}

/* Due once the span since `from` is over. */
static struct notify_schedule_answer notify_schedule_after(const struct notify_schedule *n,
                                                           struct timestamp from,
                                                           struct timestamp now, const char *reason)
{
    struct elapsed span = elapsed_from_ns(n->span_ns);
    if (elapsed_cmp(elapsed_between(from, now), span) >= 0) {
        return (struct notify_schedule_answer){ .due = true, .next = USEC_NEVER };
    }
    return (struct notify_schedule_answer){ .reason = reason,
                                            .next = elapsed_wake(elapsed_after(from, span)) };
}

static struct notify_schedule_answer notify_schedule_periodic(const struct notify_schedule *n,
                                                              const struct notify_schedule_facts *f)
{
    const char *reason = "NotifyPeriodic: interval not passed or operational";
    if (f->moved) {
        return (struct notify_schedule_answer){ .due = true, .next = USEC_NEVER };
    }
    struct notify_schedule_answer answer = { .reason = reason, .next = USEC_NEVER };
    if (!f->was_operational) {
        answer = notify_schedule_after(n, f->last, f->now, reason);
    }
    answer.note = "NotifyPeriodic: no state change";
    return answer;
}

static int notify_schedule_month_day(int64_t sec)
{
    return civil_from_sec(sec).day;
}

/* Why it is not due at that second, or NULL when it is. */
static const char *notify_schedule_silence(const struct notify_schedule *n, int last_day,
                                           int64_t sec)
{
    if ((n->weekdays >> day_weekday(day_of(sec)) & 1) == 0) {
        return "NotifyScheduled: weekday not contained";
    }
    if (day_clock(sec) < n->instant) {
        return "NotifyScheduled: current time is before specified instant";
    }
    if (notify_schedule_month_day(sec) == last_day) {
        return "NotifyScheduled: already triggered today";
    }
    return NULL;
}

static struct notify_schedule_answer
notify_schedule_scheduled(const struct notify_schedule *n, const struct notify_schedule_facts *f)
{
    int last_day = notify_schedule_month_day(f->last.sec + f->last.offset);
    const char *reason = notify_schedule_silence(n, last_day, f->now.sec);
    struct notify_schedule_answer answer = { .due = reason == NULL,
                                             .reason = reason,
                                             .next = USEC_NEVER };
    int64_t today = day_of(f->now.sec);
    if (answer.due) {
        /* The next day may be due from its first second on. */
        answer.next = SECONDS((today + 1) * DAY_SEC);
        return answer;
    }
    /* Two days a week apart never have the same day of the month, so one of them is due. */
    for (int64_t day = today; day <= today + 14; day++) {
        int64_t sec = day * DAY_SEC + n->instant;
        if (sec > f->now.sec && notify_schedule_silence(n, last_day, sec) == NULL) {
            answer.next = SECONDS(sec);
            break;
        }
    }
    return answer;
}

static struct notify_schedule_answer notify_schedule_oneshot(const struct notify_schedule *n,
                                                             const struct notify_schedule_facts *f)
{
    if (timestamp_is_zero(f->transition)) {
        return (struct notify_schedule_answer){ .reason = "NotifyOneshot: StateChange is zero",
                                                .loud = true,
                                                .next = USEC_NEVER };
    }
    if (elapsed_order(f->last, f->transition) > 0) {
        return (struct notify_schedule_answer){ .reason = "NotifyOneshot: already notified",
                                                .next = USEC_NEVER };
    }
    return notify_schedule_after(n, f->transition, f->now, NULL);
}

struct notify_schedule_answer notify_schedule_at(const struct notify_schedule *n,
                                                 const struct notify_schedule_facts *facts)
{
    switch (n->kind) {
    case NOTIFY_SCHEDULE_PERIODIC:
        return notify_schedule_periodic(n, facts);
    case NOTIFY_SCHEDULE_SCHEDULED:
        return notify_schedule_scheduled(n, facts);
    case NOTIFY_SCHEDULE_ONESHOT:
    default:
        return notify_schedule_oneshot(n, facts);
    }
}
