/* What is printed is read back as the same selector; an empty set of labels has an answer. */
#include "format/selector.h"
#include "tests/fuzz/target.h"

static void check_language(struct str text, int (*parse)(struct str, struct arena *,
                                                         struct selector *, struct err *))
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct selector s;
    if (parse(text, &a, &s, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    CLEANUP(buf_done)
    struct buf first = { 0 };
    CLEANUP(buf_done)
    struct buf second = { 0 };
    bool matches = selector_match_tree(&s, NULL);
    selector_print(&s, &first);
    /* Fields are sorted by what was written: "a==2,a=1" comes to rest in the second round. */
    int r = parse(buf_str(&first), &a, &s, &err);
    ASSERT(r == 0);
    selector_print(&s, &second);
    buf_reset(&first);
    r = parse(buf_str(&second), &a, &s, &err);
    ASSERT(r == 0);
    selector_print(&s, &first);
    ASSERT(str_eq(buf_str(&first), buf_str(&second)));
    ASSERT(matches == selector_match_tree(&s, NULL));
}

FUZZ_TARGET(text)
{
    check_language(text, selector_parse);
    check_language(text, selector_parse_fields);
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct tree *object;
    struct selector s;
    if (tree_parse(text, &a, &object, &err) == 0 && selector_from_tree(object, &a, &s, &err) == 0) {
        CLEANUP(buf_done)
        struct buf printed = { 0 };
        selector_print(&s, &printed);
        int r = selector_parse(buf_str(&printed), &a, &s, &err);
        ASSERT(r == 0); /* the text form has every object form */
    }
}
