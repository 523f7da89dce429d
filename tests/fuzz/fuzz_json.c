/* Agrees with jansson; what is written is read back as the same, by tape and by tree. */
#include "format/json_writer.h"
#include "format/json_tree.h"
#include "tests/fuzz/target.h"
#include "tests/lib/oracle.h"

static void check_round_trip(struct str text, const struct jval *root, struct arena *a)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct json_writer w = json_writer_on(&out);
    struct err err = { 0 };
    const struct jval *again;
    struct tree *tree;
    jw_val(&w, root);
    int r = json_parse(buf_str(&out), 0, a, &again, &err);
    ASSERT(r == 0);
    ASSERT(jval_eq(root, again));
    r = tree_parse(text, a, &tree, &err);
    ASSERT(r == 0);
    ASSERT(tree_eq(tree, tree_from(a, again)));
    ASSERT(tree_eq(tree, tree_clone(a, tree)));
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *root = NULL;
    int r = json_parse(text, 0, &a, &root, &err);
    ASSERT(r == 0 || err.msg[0] != '\0');
    /* Jansson has its own idea of how deep is too deep. */
    ASSERT(r == -ERR_LIMIT || oracle_compare_json(text, root) != ORACLE_DISAGREES);
    if (r == 0) {
        check_round_trip(text, root, &a);
    }
    const struct jval *lax = NULL;
    r = json_parse(text, JSON_GO, &a, &lax, &err);
    ASSERT(root == NULL || (r == 0 && jval_eq(root, lax))); /* Go takes more, never less */
}
