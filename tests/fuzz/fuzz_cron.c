/* A pattern's next time is one that the pattern shows, and no minute between shows it. */
#include "base/timestamp.h"
#include "calendar/cron.h"
#include "tests/fuzz/target.h"

static bool fuzz_shows(const struct cron *c, int64_t sec)
{
    struct civil t = civil_from_sec(sec);
    bool day = (c->days >> t.day & 1) != 0;
    bool weekday = (c->weekdays >> t.weekday & 1) != 0;
    bool either = !c->any_day && !c->any_weekday;
    return (c->minutes >> t.minute & 1) != 0 && (c->hours >> t.hour & 1) != 0 &&
           (c->months >> t.month & 1) != 0 && (either ? day || weekday : day && weekday);
}

FUZZ_TARGET(text)
{
    struct err err = { 0 };
    struct cron c;
    if (cron_parse(text, &c, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    int64_t start = 1774742340 + (int64_t)text.n * 86400; /* around 2026-03-29 */
    int64_t next = cron_next(&c, NULL, SECONDS(start)) / SECONDS(1);
    ASSERT(next > start);
    ASSERT(next % 60 == 0);
    ASSERT(fuzz_shows(&c, next));
    for (int64_t sec = start + 60; sec < next && sec < start + 172800; sec += 60) {
        ASSERT(!fuzz_shows(&c, sec));
    }
    struct cron_window w = { .cron = c, .duration = HOURS(1) };
    struct cron_answer answer = cron_window_at(&w, SECONDS(start));
    ASSERT(answer.next > SECONDS(start));
    ASSERT(cron_window_at(&w, SECONDS(next)).open);
}
