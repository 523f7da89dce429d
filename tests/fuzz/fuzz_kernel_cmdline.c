/* The kernel's command line: a parameter that is put in is found, putting it in again changes
 * nothing, taking it out removes it and leaves all other words. */
#include "agent/kernel_cmdline.h"
#include "tests/fuzz/target.h"

static uint32_t count(struct str text)
{
    struct str word;
    uint32_t n = 0;
    while (kernel_cmdline_next(&text, &word)) {
        n++;
    }
    return n;
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct str word;
    struct str line;
    if (kernel_cmdline_of_grub(text, &line)) {
        ASSERT(line.n == 0 || (line.p >= text.p && line.p + line.n <= text.p + text.n));
    }
    struct str with = kernel_cmdline_edit(text, STR("a"), STR("a=1"), &memory);
    if (str_find_char(with, '"') == SIZE_MAX) { /* an open quote swallows what comes behind it */
        ASSERT(kernel_cmdline_find(with, STR("a"), &word) && str_eq(word, STR("a=1")));
    }
    ASSERT(str_eq(kernel_cmdline_edit(with, STR("a"), STR("a=1"), &memory), with) ||
           str_find_char(with, '"') != SIZE_MAX);
    struct str without = kernel_cmdline_edit(text, STR("a"), STR(""), &memory);
    ASSERT(!kernel_cmdline_find(without, STR("a"), &word));
    ASSERT(count(without) <= count(text));
}
