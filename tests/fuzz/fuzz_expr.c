/* What is printed is read back as the same expression, with the same answers; the same for a chain.
 */
#include "format/chain.h"
#include "format/check_expr.h"
#include "tests/fuzz/target.h"

/* Names that begin with 'z' are not known, so that both answers occur. */
static bool find(void *ctx, struct str name, uint32_t *ret_index)
{
    (void)ctx; /* there is no list */
    *ret_index = (uint32_t)name.n;
    return name.n == 0 || name.p[0] != 'z';
}

static const struct instance_names names = { .find = find, .kind = "check" };

static void check_answers(const struct check_expr *a, const struct check_expr *b)
{
    enum check_expr_verdict verdicts[CHECK_EXPR_NODES_MAX] = { CHECK_EXPR_FALSE };
    struct err err = { 0 };
    ASSERT(a->n == b->n);
    ASSERT(a->var_n == b->var_n);
    ASSERT(a->run_n == b->run_n);
    for (uint32_t round = 0; round < 4; round++) {
        bool left = false;
        bool right = true;
        for (uint32_t i = 0; i < a->var_n; i++) {
            verdicts[i] = (i >> (round & 1) ^ round >> 1) & 1 ? CHECK_EXPR_TRUE : CHECK_EXPR_FALSE;
        }
        int r = check_expr_eval(a, verdicts, &left, &err);
        ASSERT(r == 0);
        r = check_expr_eval(b, verdicts, &right, &err);
        ASSERT(r == 0);
        ASSERT(left == right);
    }
}

static void check_expr(struct str text, struct arena *a)
{
    struct err err = { 0 };
    struct check_expr first;
    struct check_expr second;
    if (check_expr_parse(text, &names, a, &first, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    CLEANUP(buf_done)
    struct buf printed = { 0 };
    CLEANUP(buf_done)
    struct buf again = { 0 };
    check_expr_print(&first, &printed);
    if (printed.n > CHECK_EXPR_BYTES_MAX) {
        return; /* spaces around the signs can take the text past its limit */
    }
    int r = check_expr_parse(buf_str(&printed), &names, a, &second, &err);
    ASSERT(r == 0);
    check_expr_print(&second, &again);
    ASSERT(str_eq(buf_str(&printed), buf_str(&again)));
    check_answers(&first, &second);
}

static void check_chain(struct str text, struct arena *a)
{
    struct err err = { 0 };
    struct chain first;
    struct chain second;
    if (chain_parse(text, &names, a, &first, &err) < 0) {
        ASSERT(err.msg[0] != '\0');
        return;
    }
    CLEANUP(buf_done)
    struct buf printed = { 0 };
    chain_print(&first, &printed);
    int r = chain_parse(buf_str(&printed), &names, a, &second, &err);
    ASSERT(r == 0);
    /* A chain of one empty name is printed as the empty chain. */
    ASSERT(first.n == second.n || (first.n == 1 && second.n == 0));
    for (uint32_t i = 0; i < second.n; i++) {
        ASSERT(str_eq(first.links[i].name, second.links[i].name));
    }
}

FUZZ_TARGET(text)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    check_expr(text, &a);
    check_chain(text, &a);
}
