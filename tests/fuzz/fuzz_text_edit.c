/* A line, and a file: what is put in is there once more at most, putting it in again changes
 * nothing, and taking out a block gives the file back. */
#include "agent/text_edit.h"
#include "tests/fuzz/target.h"

static void fuzz_block(struct str name, struct str text, struct arena *memory)
{
    struct err err = { 0 };
    struct str with;
    struct str twice;
    struct str found;
    bool there;
    struct text_block spec = { .begin = arena_printf(memory, "# B " STR_FMT, STR_ARG(name)),
                               .end = arena_printf(memory, "# E " STR_FMT, STR_ARG(name)),
                               .content = STR("in\n") };
    if (text_block_find(&spec, text, &found, &there, &err) < 0 ||
        text_block_edit(&spec, text, memory, &with, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    ASSERT(text_block_edit(&spec, with, memory, &twice, &err) == 0 && str_eq(with, twice));
    ASSERT(text_block_find(&spec, with, &found, &there, &err) == 0 && there);
    ASSERT(str_eq(found, STR("in\n")));
    bool was_there;
    ASSERT(text_block_find(&spec, text, &found, &was_there, &err) == 0);
    spec.absent = true;
    ASSERT(text_block_edit(&spec, with, memory, &twice, &err) == 0);
    /* A last line without its end got one. */
    ASSERT(was_there || str_eq(text, twice) || str_eq(text_chomp(twice), text));
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct str name;
    struct str once;
    struct str twice;
    if (!str_cut(text, STR("\n"), &name, &text)) {
        return;
    }
    struct text_line line = { .line = name };
    ASSERT(text_line_edit(&line, text, &memory, &once, &err) == 0);
    ASSERT(text_line_edit(&line, once, &memory, &twice, &err) == 0 && str_eq(once, twice));
    ASSERT(once.n >= text.n && once.n <= text.n + name.n + 2);
    line.absent = true;
    ASSERT(text_line_edit(&line, once, &memory, &twice, &err) == 0);
    ASSERT(text_line_edit(&line, twice, &memory, &once, &err) == 0 && str_eq(once, twice));
    fuzz_block(name, text, &memory);
}
