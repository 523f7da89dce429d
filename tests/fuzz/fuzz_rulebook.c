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
    struct rulebook book;
    struct rulebook again;
    struct err err = { 0 };
    if (rulebook_parse(text, &a, &book, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    rulebook_print(&book, &once);
    int r = rulebook_parse(buf_str(&once), &a, &again, &err);
    ASSERT(r == 0 && (again.error.n > 0 || again.n == book.n));
    rulebook_print(&again, &twice);
    ASSERT(str_eq(buf_str(&once), buf_str(&twice)));
}
