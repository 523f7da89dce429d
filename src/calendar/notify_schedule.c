#include "calendar/notify_schedule.h"

#include "calendar/day.h"
#include "calendar/elapsed.h"

int notice_parse_kind(struct str text, enum notice_kind *ret, struct err *err)
{
    static const char *const names[] = { "periodic", "scheduled", "oneshot" };
    int kind = day_find_name(text, names, (int)ARRAY_LEN(names));
    if (kind < 0) {
        struct str shown = str_sub(text, 0, 64);
        return err_set(err, ERR_INVALID,
                       "schedule type '" STR_FMT "': want 'periodic', 'scheduled' or 'oneshot'",
                       STR_ARG(shown));
    }
    *ret = (enum notice_kind)kind;
    return 0;
}

/* Due once the span since `from` is over. */
static struct notice_answer notice_after(const struct notice *n, struct timestamp from,
                                         struct timestamp now, const char *reason)
{
    struct lapse span = lapse_from_ns(n->span_ns);
    if (lapse_cmp(lapse_between(from, now), span) >= 0) {
        return (struct notice_answer){ .due = true, .next = USEC_NEVER };
    }
    return (struct notice_answer){ .reason = reason, .next = lapse_wake(lapse_after(from, span)) };
}

static struct notice_answer notice_periodic(const struct notice *n, const struct notice_facts *f)
{
    const char *reason = "NotifyPeriodic: interval not passed or operational";
    if (f->moved) {
        return (struct notice_answer){ .due = true, .next = USEC_NEVER };
    }
    struct notice_answer answer = { .reason = reason, .next = USEC_NEVER };
    if (!f->was_operational) {
        answer = notice_after(n, f->last, f->now, reason);
    }
    answer.note = "NotifyPeriodic: no state change";
    return answer;
}

static int notice_month_day(int64_t sec)
{
    return civil_from_sec(sec).day;
}

/* Why it is not due at that second, or NULL when it is. */
static const char *notice_silence(const struct notice *n, int last_day, int64_t sec)
{
    if ((n->weekdays >> day_weekday(day_of(sec)) & 1) == 0) {
        return "NotifyScheduled: weekday not contained";
    }
    if (day_clock(sec) < n->instant) {
        return "NotifyScheduled: current time is before specified instant";
    }
    if (notice_month_day(sec) == last_day) {
        return "NotifyScheduled: already triggered today";
    }
    return NULL;
}

static struct notice_answer notice_scheduled(const struct notice *n, const struct notice_facts *f)
{
    int last_day = notice_month_day(f->last.sec + f->last.offset);
    const char *reason = notice_silence(n, last_day, f->now.sec);
    struct notice_answer answer = { .due = reason == NULL, .reason = reason, .next = USEC_NEVER };
    int64_t today = day_of(f->now.sec);
    if (answer.due) {
        /* The next day may be due from its first second on. */
        answer.next = SECONDS((today + 1) * DAY_SEC);
        return answer;
    }
    /* A weekday comes every week, and two in a row cannot both have the number of one day. */
    for (int64_t day = today; day <= today + 14; day++) {
        int64_t sec = day * DAY_SEC + n->instant;
        if (sec > f->now.sec && notice_silence(n, last_day, sec) == NULL) {
            answer.next = SECONDS(sec);
            break;
        }
    }
    return answer;
}

static struct notice_answer notice_oneshot(const struct notice *n, const struct notice_facts *f)
{
    if (timestamp_is_zero(f->transition)) {
        return (struct notice_answer){ .reason = "NotifyOneshot: StateChange is zero",
                                       .loud = true,
                                       .next = USEC_NEVER };
    }
    if (lapse_order(f->last, f->transition) > 0) {
        return (struct notice_answer){ .reason = "NotifyOneshot: already notified",
                                       .next = USEC_NEVER };
    }
    return notice_after(n, f->transition, f->now, NULL);
}

struct notice_answer notice_at(const struct notice *n, const struct notice_facts *facts)
{
    switch (n->kind) {
    case NOTICE_PERIODIC:
        return notice_periodic(n, facts);
    case NOTICE_SCHEDULED:
        return notice_scheduled(n, facts);
    case NOTICE_ONESHOT:
    default:
        return notice_oneshot(n, facts);
    }
}
