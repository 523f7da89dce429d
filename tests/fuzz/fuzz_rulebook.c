/* Whatever a Node's annotation holds, it is read or refused with a reason, and what was read prints
 * as something that reads and prints the same. */
#include "drain/drain_rules.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf once = { 0 };
    CLEANUP(buf_done)
    struct buf twice = { 0 };
    struct drain_rules book;
    struct drain_rules again;
    struct err err = { 0 };
    if (drain_rules_parse(text, &a, &book, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    drain_rules_print(&book, &once);
    int r = drain_rules_parse(buf_str(&once), &a, &again, &err);
    ASSERT(r == 0 && (again.error.n > 0 || again.n == book.n));
    drain_rules_print(&again, &twice);
    ASSERT(str_eq(buf_str(&once), buf_str(&twice)));
}
