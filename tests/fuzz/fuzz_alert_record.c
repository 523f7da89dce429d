/* What a Lease says of alerts: whatever is read can be written, and is the same when read again. */
#include "profile/alert_record.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf first = { 0 };
    CLEANUP(buf_done)
    struct buf second = { 0 };
    struct err err = { 0 };
    struct alert_record r;
    if (alert_record_parse(text, &a, &r, &err) < 0) {
        return;
    }
    ASSERT(r.told_n <= ALERT_RECORD_TOLD_MAX && r.unsent_n <= ALERT_RECORD_UNSENT_MAX);
    alert_record_print(&r, &first);
    int again = alert_record_parse(buf_str(&first), &a, &r, &err);
    ASSERT(again == 0);
    alert_record_print(&r, &second);
    ASSERT(str_eq(buf_str(&first), buf_str(&second)));
}
