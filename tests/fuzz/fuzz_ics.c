/* Events of any file are intervals in order, each behind the instant asked for. */
#include "calendar/ics.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct ics_reader reader = { 0 };
    struct recurrence *events = NULL;
    uint32_t n = 0;
    struct err err = { 0 };
    if (ics_parse(text, &reader, &a, &events, &n, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    for (uint32_t i = 0; i < n && i < 50; i++) {
        usec_t after = SECONDS(1774742340);
        struct interval found;
        for (int k = 0; k < 5 && recurrence_next(&events[i], after, &found); k++) {
            ASSERT(found.end > after);
            ASSERT(found.end > found.start);
            after = found.end;
        }
    }
}
