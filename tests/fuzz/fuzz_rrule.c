/* A rule's days go up, each is one that the rule names again when asked from that day on, and none
 * lies before its start. */
#include "calendar/rrule.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    struct err err = { 0 };
    struct rrule r;
    if (rrule_parse(text, &r, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    int64_t day = 20000 + (int64_t)text.n * 7;
    for (int i = 0; i < 20; i++) {
        int64_t next = rrule_next(&r, day);
        if (next == RRULE_DAYS_NONE) {
            return;
        }
        ASSERT(next >= day);
        ASSERT(next >= day_of(r.start.sec));
        ASSERT(next <= r.last);
        ASSERT(rrule_next(&r, next) == next);
        day = next + 1;
    }
}
