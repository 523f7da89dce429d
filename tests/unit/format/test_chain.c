#include "format/chain.h"
#include "tests/vectors.h"

static bool find_listed(void *ctx, struct str name, uint32_t *ret_index)
{
    uint32_t index = 0;
    const struct jval *list = ctx;
    JVAL_EACH (list, one) {
        if (str_eq(jval_str(one), name)) {
            *ret_index = index;
            return true;
        }
        index++;
    }
    return false;
}

static void check_chain(const struct jval *one, const struct jval *list, struct arena *a)
{
    bool trigger = str_eq(vectors_text(one, "chain", a), STR("trigger"));
    struct instance_names names = {
        .find = find_listed,
        .ctx = (void *)(uintptr_t)list, /* only read */
        .kind = trigger ? "trigger" : "notification",
    };
    struct err err = { 0 };
    struct chain chain;
    int r = chain_parse(vectors_text(one, "expr", a), &names, a, &chain, &err);
    CHECK_EQ(r == 0, vectors_ok(one));
    if (r < 0) {
        CHECK_STR(err.msg, vectors_text(one, "error", a));
        CHECK(err.pos.line > 0);
        return;
    }
    uint32_t i = 0;
    const struct jval *runs = jval_get(one, STR("runs"));
    JVAL_EACH (runs, name) {
        uint32_t index = 0;
        CHECK(i < chain.n);
        CHECK_STR(chain.links[i].name, jval_str(name));
        CHECK(find_listed(names.ctx, jval_str(name), &index));
        CHECK_EQ(chain.links[i].index, index);
        i++;
    }
    CHECK_EQ(i, chain.n);
    CLEANUP(buf_done)
    struct buf printed = { 0 };
    struct chain again;
    chain_print(&chain, &printed);
    CHECK_EQ(chain_parse(buf_str(&printed), &names, a, &again, &err), 0);
    CHECK_EQ(again.n, chain.n);
    for (i = 0; i < chain.n; i++) {
        CHECK_EQ(again.links[i].index, chain.links[i].index);
    }
}

TEST(chain_agrees_with_the_original_on_every_vector)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *root = vectors_load("vectors/expr.json", &a);
    const struct jval *list = jval_get(jval_get(root, STR("registries")), STR("chains"));
    uint32_t seen = 0;
    JVAL_EACH (jval_get(root, STR("cases")), one) {
        if (jval_get(one, STR("chain")) != NULL) {
            vectors_enter(one);
            check_chain(one, list, &a);
            seen++;
        }
    }
    check_case(-1);
    CHECK(seen > 50);
}

static bool find_single(void *ctx, struct str name, uint32_t *ret_index)
{
    *ret_index = 0;
    return str_eq(name, *(struct str *)ctx);
}

TEST(chain_points_at_the_name_it_does_not_know)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct chain chain = { .n = 77 };
    struct str known = STR("a");
    struct instance_names names = { .find = find_single, .ctx = &known, .kind = "trigger" };
    CHECK_EQ(chain_parse(STR("a &&  zz"), &names, &a, &chain, &err), -ERR_NOTFOUND);
    CHECK_EQ(err.pos.column, 7);
    CHECK_EQ(chain_parse(STR("a && "), &names, &a, &chain, &err), -ERR_NOTFOUND);
    CHECK_EQ(err.pos.column, 5);
    CHECK_EQ(chain.n, 77); /* untouched */
}

TEST(chain_has_a_limit)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct err err = { 0 };
    struct chain chain;
    struct str known = STR("a");
    struct instance_names names = { .find = find_single, .ctx = &known, .kind = "trigger" };
    for (uint32_t i = 1; i < CHAIN_MAX; i++) {
        buf_add(&text, STR("a&&"));
    }
    buf_add_char(&text, 'a');
    CHECK_EQ(chain_parse(buf_str(&text), &names, &a, &chain, &err), 0);
    CHECK_EQ(chain.n, CHAIN_MAX);
    buf_add(&text, STR("&&a"));
    CHECK_EQ(chain_parse(buf_str(&text), &names, &a, &chain, &err), -ERR_LIMIT);
    CHECK_STR(err.msg, "a chain has at most 256 instances");
}
