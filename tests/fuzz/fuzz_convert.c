/* Whatever a file of another tool holds, it is refused with its place, or becomes objects that read
 * back as they were made. */
#include "format/yaml.h"
#include "operation/convert.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(text)
{
    for (int i = 0; i < 2; i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct convert_list list = { 0 };
        struct err err = { 0 };
        int r = i == 0 ? convert_kured(text, &a, &list, &err) : convert_suc(text, &a, &list, &err);
        for (uint32_t k = 0; r == 0 && k < list.n; k++) {
            CLEANUP(buf_done)
            struct buf out = { 0 };
            struct ydoc *docs = NULL;
            uint32_t n = 0;
            const struct convert *c = &list.items[k];
            convert_print(c, &out);
            r = ydoc_parse_all(buf_str(&out), &a, &docs, &n, &err);
            ASSERT(r == 0);
            ASSERT(n == (c->limit != NULL ? 2 : 1));
            ASSERT(tree_eq(tree_from(&a, docs[0].root), c->object));
            ASSERT(n == 1 || tree_eq(tree_from(&a, docs[1].root), c->limit));
        }
    }
}
