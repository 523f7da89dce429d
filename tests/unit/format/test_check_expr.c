#include "format/check_expr.h"
#include "tests/vectors.h"

/* Any name, or those of a list of the vectors. */
static bool find_any(void *ctx, struct str name, uint32_t *ret_index)
{
    (void)ctx; /* there is no list */
    *ret_index = (uint32_t)name.n;
    return true;
}

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

static const struct instance_names any = { .find = find_any, .kind = "check" };

static struct instance_names listed(const struct jval *list)
{
    /* The list is only read; the context of names is for whoever wants to write. */
    return (struct instance_names){ .find = find_listed,
                                    .ctx = (void *)(uintptr_t)list,
                                    .kind = "check" };
}

static struct str print(const struct check_expr *e, struct arena *a)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    check_expr_print(e, &out);
    return arena_str(a, buf_str(&out));
}

static struct check_expr read_expr(struct str text, struct arena *a)
{
    struct err err = { 0 };
    struct check_expr e = { 0 };
    if (check_expr_parse(text, &any, a, &e, &err) < 0) {
        check_fail(__FILE__, __LINE__, "'" STR_FMT "': %s", STR_ARG(text), err.msg);
    }
    return e;
}

/* One character for each assignment: vars[i] is true where bit i of its number is set. */
static struct str truth_table(const struct check_expr *e, struct arena *a)
{
    CLEANUP(buf_done)
    struct buf table = { 0 };
    struct err err = { 0 };
    enum check_expr_verdict verdicts[16];
    CHECK(e->var_n <= ARRAY_LEN(verdicts));
    for (uint32_t k = 0; k < 1u << e->var_n; k++) {
        for (uint32_t i = 0; i < e->var_n; i++) {
            verdicts[i] = k >> i & 1 ? CHECK_EXPR_TRUE : CHECK_EXPR_FALSE;
        }
        bool passed = false;
        CHECK_EQ(check_expr_eval(e, verdicts, &passed, &err), 0);
        buf_add_char(&table, passed ? '1' : '0');
    }
    return arena_str(a, buf_str(&table));
}

/* The names of a list, each on a line. */
static struct str lines_of(const struct jval *list, struct arena *a)
{
    struct str lines = STR("");
    JVAL_EACH (list, one) {
        lines = arena_printf(a, STR_FMT STR_FMT "\n", STR_ARG(lines), STR_ARG(jval_str(one)));
    }
    return lines;
}

/* Where the answer is another than the original's; `table` is ours, NULL where it is an error. */
struct exception {
    int64_t n;
    const char *table;
};

/* Names that touch a sign are read as they are written; the original glues them together, to "ab".
 */
static const struct exception glued[] = {
    { 19, "0001" }, { 20, "0111" },  { 21, "0111" },  { 24, "0001" },
    { 27, "0111" }, { 279, "1000" }, { 280, "1000" },
};

/* Names with '-' and '.', and "date", work; the original takes them and fails whenever they run. */
static const struct exception working[] = {
    { 110, "01" }, { 111, "0001" }, { 114, "01" },   { 117, "01" },
    { 119, "10" }, { 121, "01" },   { 147, "0001" },
};

/* Refused when they are read; the original takes them and fails whenever they run: calls, and
 * instances whose names are operators or literals of its library. */
static const struct exception refused[] = {
    { 90, NULL },  { 93, NULL },  { 116, NULL }, { 151, NULL }, { 173, NULL },
    { 177, NULL }, { 179, NULL }, { 194, NULL }, { 196, NULL }, { 200, NULL },
    { 250, NULL }, { 254, NULL }, { 289, NULL }, { 290, NULL },
};

/* Refused: the instances are called "==", "<", "a?b:c" and "??", and the original takes their names
 * for operators, which nobody can have meant. */
static const struct exception operators[] = {
    { 159, NULL },
    { 166, NULL },
    { 184, NULL },
    { 186, NULL },
};

static const struct exception *find_exception(int64_t n)
{
    static const struct {
        const struct exception *list;
        size_t n;
    } all[] = {
        { glued, ARRAY_LEN(glued) },
        { working, ARRAY_LEN(working) },
        { refused, ARRAY_LEN(refused) },
        { operators, ARRAY_LEN(operators) },
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        for (size_t j = 0; j < all[i].n; j++) {
            if (all[i].list[j].n == n) {
                return &all[i].list[j];
            }
        }
    }
    return NULL;
}

/* The chain's result when instances fail: their names, in the order of their runs. */
static void check_failing(const struct jval *one, const struct check_expr *e, struct arena *a)
{
    enum check_expr_verdict verdicts[16] = { 0 };
    const struct jval *failing = jval_get(one, STR("failing"));
    struct err err = { 0 };
    bool passed = true;
    for (uint32_t i = 0; i < e->var_n; i++) {
        JVAL_EACH (failing, name) {
            if (str_eq(jval_str(name), e->vars[i].name)) {
                verdicts[i] = CHECK_EXPR_FAILED;
            }
        }
    }
    CHECK_EQ(check_expr_eval(e, verdicts, &passed, &err), -ERR_INVALID);
    CHECK(passed); /* untouched */
    CHECK_STR(err.msg, vectors_text(one, "eval_error", a));
}

static void check_accepted(const struct jval *one, const struct check_expr *e, struct arena *a)
{
    struct str runs = STR("");
    struct str vars = STR("");
    for (uint32_t i = 0; i < e->run_n; i++) {
        struct str name = e->vars[e->runs[i]].name;
        runs = arena_printf(a, STR_FMT STR_FMT "\n", STR_ARG(runs), STR_ARG(name));
    }
    for (uint32_t i = 0; i < e->var_n; i++) {
        vars = arena_printf(a, STR_FMT STR_FMT "\n", STR_ARG(vars), STR_ARG(e->vars[i].name));
    }
    CHECK_STR(runs, lines_of(jval_get(one, STR("runs")), a));
    CHECK_STR(vars, lines_of(jval_get(one, STR("vars")), a));
    CHECK_STR(truth_table(e, a), vectors_text(one, "table", a));
}

static void check_case_of(const struct jval *one, const struct jval *registries, struct arena *a)
{
    struct err err = { 0 };
    struct check_expr e = { 0 };
    struct instance_names names = listed(jval_get(registries, vectors_text(one, "registry", a)));
    int r = check_expr_parse(vectors_text(one, "expr", a), &names, a, &e, &err);
    const struct exception *exception = find_exception(vectors_i64(one, "n"));
    if (exception != NULL) {
        CHECK_EQ(r == 0, exception->table != NULL);
        if (r == 0) {
            CHECK_STR(truth_table(&e, a), exception->table);
        }
        return;
    }
    CHECK_EQ(r == 0, vectors_ok(one));
    if (r < 0) {
        CHECK(err.pos.line > 0);
        CHECK(err.pos.column > 0);
        if (r == -ERR_NOTFOUND) {
            CHECK_STR(err.msg, vectors_text(one, "error", a));
        }
    } else if (jval_get(one, STR("failing")) != NULL) {
        check_failing(one, &e, a);
    } else {
        check_accepted(one, &e, a);
    }
}

TEST(check_expr_agrees_with_the_original_on_every_vector)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *root = vectors_load("vectors/expr.json", &a);
    uint32_t seen = 0;
    JVAL_EACH (jval_get(root, STR("cases")), one) {
        if (jval_get(one, STR("chain")) == NULL) {
            vectors_enter(one);
            check_case_of(one, jval_get(root, STR("registries")), &a);
            seen++;
        }
    }
    check_case(-1);
    CHECK(seen > 200);
}

TEST(check_expr_prints_single_spaces_and_only_parentheses_that_matter)
{
    static const struct {
        const char *in;
        const char *out;
    } cases[] = {
        { "", "" },
        { "a", "a" },
        { "(((a)))", "a" },
        { "a&&b||c", "a && b || c" },
        { "(a && b) || (c && d)", "a && b || c && d" },
        { "(a||b)&&c", "(a || b) && c" },
        { "a && (b && c)", "a && (b && c)" },
        { "(a && b) && c", "a && b && c" },
        { "! ! (a || b)", "!!(a || b)" },
        { "!(a) && !(reboot-needed)", "!a && !reboot-needed" },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct check_expr e = read_expr(str_from(cases[i].in), &a);
        CHECK_STR(print(&e, &a), cases[i].out);
        CHECK_STR(e.text, cases[i].in);
    }
    check_case(-1);
}

TEST(check_expr_errors_say_what_was_found_where_and_what_is_wanted)
{
    static const struct {
        const char *in;
        uint32_t column;
        const char *msg;
    } cases[] = {
        { " ", 2, "found the end: want a name, '!' or '('" },
        { "a &&", 5, "found the end: want a name, '!' or '('" },
        { "a && || b", 6, "found '||': want a name, '!' or '('" },
        { "a b", 3, "found 'b': want '&&', '||' or the end" },
        { "a (b)", 3, "found '(': want '&&', '||' or the end" },
        { "(a", 3, "found the end: want '&&', '||' or ')'" },
        { "(a b)", 4, "found 'b': want '&&', '||' or ')'" },
        { "a)", 2, "found ')': want '&&', '||' or the end" },
        { "()", 2, "found ')': want a name, '!' or '('" },
        { "a &&\tb", 5, "found a tab: only spaces may stand between names" },
        { "a\n", 2, "found a line break: only spaces may stand between names" },
        { "a\r", 2, "found a line break: only spaces may stand between names" },
        { "a &&\xc2\xa0"
          "b",
          5, "found a no-break space: only spaces may stand between names" },
        { "a\xe3\x80\x80", 2, "found an unusual space: only spaces may stand between names" },
        { "a\xe2\x80\x83", 2, "found an unusual space: only spaces may stand between names" },
        { "a\xff", 2, "found bytes that are no UTF-8" },
        { "a && b & c", 8,
          "found '&': want a name that begins with a letter or '_' and goes on with letters, "
          "digits, '_', '-' or '.'" },
        { "1a", 1,
          "found '1a': want a name that begins with a letter or '_' and goes on with letters, "
          "digits, '_', '-' or '.'" },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        struct check_expr e = { .n = 77 };
        check_case((int64_t)i);
        CHECK_EQ(check_expr_parse(str_from(cases[i].in), &any, &a, &e, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].msg);
        CHECK_EQ(err.pos.line, 1);
        CHECK_EQ(err.pos.column, cases[i].column);
        CHECK_EQ(e.n, 77); /* untouched */
    }
    check_case(-1);
}

static struct str repeat(const char *part, uint32_t times, const char *end, struct arena *a)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    for (uint32_t i = 0; i < times; i++) {
        buf_add(&text, str_from(part));
    }
    buf_add(&text, str_from(end));
    return arena_str(a, buf_str(&text));
}

TEST(check_expr_has_limits_and_names_them)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct check_expr e;
    CHECK_EQ(check_expr_parse(repeat("!", CHECK_EXPR_DEPTH_MAX, "a", &a), &any, &a, &e, &err), 0);
    CHECK_EQ(check_expr_parse(repeat("!", CHECK_EXPR_DEPTH_MAX + 1, "a", &a), &any, &a, &e, &err),
             -ERR_LIMIT);
    CHECK_STR(err.msg, "an expression nests at most 64 deep");
    CHECK_EQ(err.pos.column, CHECK_EXPR_DEPTH_MAX + 1);
    CHECK_EQ(check_expr_parse(repeat("(", CHECK_EXPR_DEPTH_MAX + 1, "a", &a), &any, &a, &e, &err),
             -ERR_LIMIT);
    /* n names have n - 1 operators. */
    uint32_t names = CHECK_EXPR_NODES_MAX / 2;
    CHECK_EQ(check_expr_parse(repeat("a||", names - 1, "a", &a), &any, &a, &e, &err), 0);
    CHECK_EQ(e.n, CHECK_EXPR_NODES_MAX - 1);
    CHECK_EQ(e.run_n, names);
    CHECK_EQ(e.var_n, 1);
    CHECK_STR(truth_table(&e, &a), "01");
    CHECK_EQ(check_expr_parse(repeat("a||", names, "a", &a), &any, &a, &e, &err), -ERR_LIMIT);
    CHECK_STR(err.msg, "an expression has at most 512 names and operators");
    CHECK_EQ(check_expr_parse(repeat(" ", CHECK_EXPR_BYTES_MAX, "a", &a), &any, &a, &e, &err),
             -ERR_LIMIT);
    CHECK_STR(err.msg, "an expression has at most 4096 bytes");
}

TEST(check_expr_keeps_the_number_of_each_instance)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct check_expr e = read_expr(STR("abc || d || abc"), &a);
    CHECK_EQ(e.var_n, 2);
    CHECK_EQ(e.vars[0].index, 3);
    CHECK_EQ(e.vars[1].index, 1);
    CHECK_EQ(e.run_n, 3);
    CHECK_EQ(e.runs[2], 0);
}

/* A random expression and, beside it, its value under `truth`, by direct recursion. */
static bool invent(struct rng *rng, uint32_t depth, unsigned truth, struct buf *out)
{
    static const char *const names[] = { "a", "b-c", "x.y", "d" };
    uint32_t pick = depth == 0 ? 0 : rng_below(rng, 5);
    buf_add(out, rng_chance(rng, 300) ? STR(" ") : STR(""));
    if (pick <= 1) {
        uint32_t which = rng_below(rng, ARRAY_LEN(names));
        buf_add(out, str_from(names[which]));
        return truth >> which & 1;
    }
    if (pick == 2) {
        buf_add(out, STR("!("));
        bool value = !invent(rng, depth - 1, truth, out);
        buf_add_char(out, ')');
        return value;
    }
    buf_add_char(out, '(');
    bool left = invent(rng, depth - 1, truth, out);
    buf_add(out, pick == 3 ? STR(")&&(") : STR(")||("));
    bool right = invent(rng, depth - 1, truth, out);
    buf_add_char(out, ')');
    return pick == 3 ? left && right : left || right;
}

PROPERTY(check_expr_print_and_parse_are_inverse_and_keep_the_value)
{
    static const char *const names[] = { "a", "b-c", "x.y", "d" };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    unsigned truth = rng_below(rng, 16);
    bool want = invent(rng, 1 + rng_below(rng, 5), truth, &text);
    struct check_expr e = read_expr(buf_str(&text), &a);
    struct check_expr again = read_expr(print(&e, &a), &a);
    CHECK_EQ(e.n, again.n);
    for (uint32_t i = 0; i < e.n; i++) {
        CHECK_EQ(e.nodes[i].kind, again.nodes[i].kind);
        CHECK_EQ(e.nodes[i].var, again.nodes[i].var);
        CHECK_EQ(e.nodes[i].left, again.nodes[i].left);
        CHECK_EQ(e.nodes[i].right, again.nodes[i].right);
    }
    CHECK_STR(print(&again, &a), print(&e, &a));
    enum check_expr_verdict verdicts[ARRAY_LEN(names)];
    for (uint32_t i = 0; i < e.var_n; i++) {
        for (uint32_t j = 0; j < ARRAY_LEN(names); j++) {
            if (str_eq(e.vars[i].name, str_from(names[j]))) {
                verdicts[i] = truth >> j & 1 ? CHECK_EXPR_TRUE : CHECK_EXPR_FALSE;
            }
        }
    }
    struct err err = { 0 };
    bool got = !want;
    CHECK_EQ(check_expr_eval(&e, verdicts, &got, &err), 0);
    CHECK_EQ(got, want);
}
