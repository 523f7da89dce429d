/* Whatever list the JSON reader takes is split into the same items. */
#include "format/json_items.h"
#include "tests/fuzz/target.h"

static const struct jval *only_items(const struct jval *root, uint32_t *ret_count)
{
    const struct jval *items = NULL;
    *ret_count = 0;
    JVAL_EACH (root, member) {
        if (str_eq(jval_key(member), STR("items"))) {
            items = member;
            (*ret_count)++;
        }
    }
    return items;
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *root = NULL;
    int parsed = json_parse(text, 0, &a, &root, &err);
    uint32_t count = 0;
    const struct jval *items = jval_kind(root) == JOBJ ? only_items(root, &count) : NULL;
    /* An escaped name is another spelling of "items", which no server uses. */
    bool plain = str_find_char(text, '\\') == SIZE_MAX;
    bool comparable = parsed == 0 && jval_kind(root) == JOBJ && plain && count <= 1;
    const struct jval *want = jval_kind(items) == JARR ? jval_first(items) : NULL;
    struct json_items s;
    struct str item;
    json_items_init(&s, text);
    int r = json_items_next(&s, &item, &err);
    for (; r == 1; r = json_items_next(&s, &item, &err)) {
        ASSERT(item.p >= text.p && item.p + item.n <= text.p + text.n);
        if (!comparable) {
            continue;
        }
        const struct jval *got;
        ASSERT(want != NULL);
        int item_parsed = json_parse(item, 0, &a, &got, &err);
        ASSERT(item_parsed == 0 && jval_eq(got, want));
        want = jval_next(items, want);
    }
    ASSERT(!comparable || (r == 0 && want == NULL));
}
