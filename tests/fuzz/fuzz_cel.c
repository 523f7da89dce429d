/* [rule, self, oldSelf, schema]: a rule is refused, or says the same twice, or fails with words. */
#include "format/cel.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct tree *input;
    const struct cel_program *program;
    if (tree_parse(text, &a, &input, &err) < 0) {
        return;
    }
    if (cel_compile(tree_text(tree_index(input, 0)), &a, &program, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    struct cel_input in = { .self = tree_index(input, 1),
                            .old_self = tree_index(input, 2),
                            .schema = tree_index(input, 3) };
    bool first = false;
    bool second = false;
    int r = cel_evaluate(program, &in, &a, &first, &err);
    ASSERT(r == 0 || err.msg[0] != '\0');
    ASSERT(cel_evaluate(program, &in, &a, &second, &err) == r);
    ASSERT(first == second);
}
