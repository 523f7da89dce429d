/* A journal: whatever is in the file, reading it ends, and what was read is read again the same. */
#include "agent/journal.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    struct journal a = { 0 };
    struct journal b = { 0 };
    journal_parse(&a, text);
    journal_parse(&b, text);
    ASSERT(a.damaged == b.damaged && a.bytes == text.n);
    ASSERT(map_count(&a.marks) == map_count(&b.marks));
    MAP_EACH (&a.marks, mark) {
        ASSERT(journal_is_marked(&b, map_item_name(mark)));
    }
    MAP_EACH (&a.runs, run) {
        const struct journal_run *x = map_item_value(run);
        const struct journal_run *y = journal_run_find(&b, map_item_name(run));
        ASSERT(y != NULL && x->started == y->started && x->ended == y->ended);
    }
    journal_done(&a);
    journal_done(&b);
}
