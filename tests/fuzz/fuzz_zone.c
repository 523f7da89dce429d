/* Spans of a zone follow each other without a hole, each instant is found again by its civil time,
 * and what is built on a zone always comes to an answer that lies ahead. */
#include "calendar/cron.h"
#include "calendar/window.h"
#include "tests/fuzz/target.h"

static void fuzz_instant(const struct zone *z, int64_t sec)
{
    struct zone_span span = zone_at(z, sec);
    ASSERT(span.from <= sec && sec < span.until);
    if (span.until < ZONE_SEC_MAX) {
        ASSERT(zone_at(z, span.until).from == span.until);
        ASSERT(zone_at(z, span.until).before == span.offset);
    }
    struct zone_instants at = zone_instants(z, sec + span.offset);
    ASSERT(at.fit != ZONE_GAP);
    ASSERT(at.first <= sec && sec <= at.last);
    struct zone_pace pace = zone_pace(z, sec);
    ASSERT(pace.until > sec);
    ASSERT(pace.local >= sec + span.offset || pace.stands);
}

static void fuzz_windows(const struct zone *z, int64_t sec)
{
    struct window w = {
        .weekdays = 0x15, .overnight = true, .open = 79200, .close = 9000, .zone = z
    };
    ASSERT(window_at(&w, (struct timestamp){ .sec = sec }).next > SECONDS(sec));
    struct cron c;
    struct err err = { 0 };
    ASSERT(cron_parse(STR("30 2 * * sun"), &c, &err) == 0);
    ASSERT(cron_next(&c, z, SECONDS(sec)) > SECONDS(sec));
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct zone *z = NULL;
    if (zone_parse(text, &a, &z, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    int64_t sec = -3000000000;
    for (int i = 0; i < 40; i++) {
        fuzz_instant(z, sec);
        fuzz_windows(z, sec);
        int64_t until = zone_at(z, sec).until;
        sec = i % 3 > 0 && until < 10000000000 ? until : sec + 200000000 + i;
    }
}
