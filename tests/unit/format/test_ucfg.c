#include "format/ucfg.h"
#include "base/buf.h"
#include "tests/vectors.h"

/* Where the recorded answer is an accident that no configuration can mean. */
static const struct {
    int64_t n;
    const char *as;
    const char *why;
} exceptions[] = {
    { 64, "duration", "292 years of seconds are not -1s" },
    { 66, "duration", "nor are they 0s" },
    { 67, "duration", "nor are they -1s" },
    { 80, "duration", "the infinite is no duration" },
    { 81, "duration", "the infinite is no duration" },
    { 84, "duration", "1e+23 s are not minus 292 years" },
    { 87, "duration", "1e+21 s are not minus 292 years" },
    { 320, "list", "two references in a row are no cycle" },
    { 496, "int", "NaN is no integer" },
};

static bool excepted(int64_t n, struct str as)
{
    for (size_t i = 0; i < ARRAY_LEN(exceptions); i++) {
        if (exceptions[i].n == n && str_eq(str_from(exceptions[i].as), as)) {
            return true;
        }
    }
    return false;
}

static bool find_env(void *ctx, struct str name, struct str *ret)
{
    const struct jval *v = jval_get(ctx, name);
    *ret = jval_str(v);
    return v != NULL;
}

static struct ucfg_env env_of(const struct jval *one)
{
    /* The cases are only read; a context is for whoever wants to write. */
    return (struct ucfg_env){ .find = find_env,
                              .ctx = (void *)(uintptr_t)jval_get(one, STR("env")) };
}

static void check_strs(const struct jval *want, const struct ucfg_strs *got)
{
    CHECK_EQ(got->n, jval_kind(want) == JARR ? want->n : 0);
    uint32_t i = 0;
    JVAL_EACH (want, item) {
        CHECK_STR(got->items[i++], jval_str(item));
    }
}

/* {a string, b int} */
static int read_pair(const struct ucfg *u, const struct ucfg_value *v, const struct jval *want,
                     struct err *err)
{
    const struct ucfg_value *obj;
    struct str a = STR("");
    int64_t b = 0;
    int r = ucfg_obj(u, v, &obj, err);
    r = r == 0 ? ucfg_str(u, ucfg_get(obj, STR("a")), &a, err) : r;
    r = r == 0 ? ucfg_int(u, ucfg_get(obj, STR("b")), &b, err) : r;
    if (r == 0 && want != NULL) {
        CHECK_STR(a, jval_str(jval_get(want, STR("a"))));
        CHECK_EQ(b, vectors_i64(want, "b"));
    }
    return r;
}

/* Of a name that comes twice the last one counts. */
static uint32_t names_of(const struct ucfg_value *obj)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < obj->member_n; i++) {
        n += ucfg_get(obj, obj->members[i].name) == obj->members[i].value;
    }
    return n;
}

/* A value with Go's types: {"type": "uint64", "value": 2}, lists and objects of them. */
static void check_any(const struct ucfg *u, const struct jval *want, const struct ucfg_value *got)
{
    struct str type = jval_str(jval_get(want, STR("type")));
    const struct jval *value = jval_get(want, STR("value"));
    if (jval_kind(want) == JARR) {
        CHECK_EQ(got->item_n, want->n);
        uint32_t i = 0;
        JVAL_EACH (want, item) {
            check_any(u, item, got->items[i++]);
        }
    } else if (value == NULL) {
        CHECK_EQ(jval_kind(want), JOBJ);
        CHECK_EQ(names_of(got), want->n);
        JVAL_EACH (want, member) {
            const struct ucfg_value *v = ucfg_get(got, jval_key(member));
            CHECK(v != NULL);
            check_any(u, member, v);
        }
    } else if (str_eq(type, STR("string"))) {
        CHECK_EQ(got->kind, UCFG_VALUE_STR);
        CHECK_STR(got->text, jval_str(value));
    } else if (str_eq(type, STR("bool"))) {
        CHECK_EQ(got->kind, UCFG_VALUE_BOOL);
        CHECK_EQ(got->truth, jval_bool(value, false));
    } else if (str_eq(type, STR("uint64"))) {
        CHECK_EQ(got->kind, UCFG_VALUE_UINT);
        CHECK_EQ(got->natural, vectors_i64(want, "value"));
    } else {
        double real = 0;
        CHECK_STR(type, "float64");
        CHECK_EQ(got->kind, UCFG_VALUE_FLOAT);
        CHECK(jval_f64(value, &real));
        CHECK(real == got->real);
    }
}

static int read_pairs(const struct ucfg *u, const struct ucfg_value *v, const struct jval *want,
                      struct err *err)
{
    struct ucfg_list list;
    int r = ucfg_list(u, v, &list, err);
    if (r == 0 && want != NULL) {
        CHECK_EQ(list.n, want->n);
    }
    const struct jval *item = jval_first(want);
    for (uint32_t i = 0; r == 0 && i < list.n; i++) {
        r = read_pair(u, &list.items[i], item, err);
        item = item != NULL ? jval_next(want, item) : NULL;
    }
    return r;
}

/* `want` is NULL where the original refuses. */
static int read_scalar(const struct ucfg *u, const struct ucfg_value *v, struct str as,
                       const struct jval *want, struct err *err)
{
    struct str text = str_ends(as, STR("_default")) ? STR("DEF") : STR("");
    int64_t number = str_eq(as, STR("duration_default")) ? INT64_C(3600000000000) : 0;
    int64_t expected = 0;
    bool truth = false;
    int r;
    if (str_starts(as, STR("string"))) {
        r = ucfg_str(u, v, &text, err);
        if (r == 0 && want != NULL) {
            CHECK_STR(text, jval_str(want));
        }
        return r;
    }
    if (str_starts(as, STR("bool"))) {
        r = ucfg_bool(u, v, &truth, err);
        if (r == 0 && want != NULL) {
            CHECK_EQ(truth, jval_bool(want, !truth));
        }
        return r;
    }
    r = str_starts(as, STR("int")) ? ucfg_int(u, v, &number, err)
                                   : ucfg_duration(u, v, &number, err);
    if (r == 0 && want != NULL) {
        CHECK(jval_i64(want, &expected));
        CHECK_EQ(number, expected);
    }
    return r;
}

static int read_as(const struct ucfg *u, const struct ucfg_value *v, struct str as,
                   const struct jval *want, struct err *err)
{
    struct ucfg_strs strs = { 0 };
    const struct ucfg_value *obj = NULL;
    int r;
    if (str_starts(as, STR("list"))) {
        r = ucfg_strs(u, v, &strs, err);
        if (r == 0 && want != NULL) {
            check_strs(want, &strs);
        }
        return r;
    }
    if (str_eq(as, STR("struct"))) {
        return read_pair(u, v, want, err);
    }
    if (str_eq(as, STR("struct_list"))) {
        return read_pairs(u, v, want, err);
    }
    if (str_eq(as, STR("config")) || str_eq(as, STR("map"))) {
        r = ucfg_obj(u, v, &obj, err);
        if (r == 0 && want != NULL && str_eq(as, STR("config"))) {
            CHECK_EQ(obj != NULL, jval_bool(want, false));
        } else if (r == 0 && want != NULL && obj != NULL) {
            check_any(u, want, obj);
        }
        return r;
    }
    if (str_eq(as, STR("any_root"))) {
        check_any(u, want, u->root);
        return 0;
    }
    return read_scalar(u, v, as, want, err);
}

TEST(ucfg_reads_values_as_the_original_does)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    uint32_t seen = 0;
    const struct jval *cases = jval_get(vectors_load("vectors/ucfg.json", &a), STR("cases"));
    JVAL_EACH (cases, one) {
        if (!vectors_kind(one, "value")) {
            continue;
        }
        vectors_enter(one);
        seen++;
        struct problems problems = { .out = &a };
        struct ucfg u;
        int r = ucfg_load(vectors_text(one, "yaml", &a), env_of(one), &a, &u, &problems);
        CHECK_EQ(r == 0, vectors_ok(jval_get(one, STR("load"))));
        CHECK_EQ(r == 0, problems.n == 0);
        if (r < 0) {
            continue;
        }
        const struct ucfg_value *v = ucfg_get(u.root, STR("v"));
        const struct jval *answers = jval_get(one, STR("as"));
        JVAL_EACH (answers, answer) {
            struct str as = jval_key(answer);
            struct err err = { 0 };
            if (str_ends(as, STR("_required")) || excepted(vectors_i64(one, "n"), as)) {
                continue; /* what is required is the table's business */
            }
            const struct jval *want = vectors_ok(answer) ? jval_get(answer, STR("value")) : NULL;
            r = read_as(&u, v, as, want, &err);
            if ((r == 0) != vectors_ok(answer)) {
                check_fail(__FILE__, __LINE__, STR_FMT ": %d %s", STR_ARG(as), r, err.msg);
            }
        }
    }
    check_case(-1);
    CHECK_EQ(seen, 375);
}

static struct ucfg load(const char *yaml, struct arena *a)
{
    struct problems problems = { .out = a };
    struct ucfg u = { 0 };
    CHECK_EQ(ucfg_load(str_from(yaml), (struct ucfg_env){ 0 }, a, &u, &problems), 0);
    return u;
}

TEST(ucfg_follows_a_chain_of_references)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct ucfg u = load("v: ${w}\nw: ${u}\nu: [a, b]\n", &a);
    struct ucfg_strs strs = { 0 };
    struct err err = { 0 };
    CHECK_EQ(ucfg_strs(&u, ucfg_get(u.root, STR("v")), &strs, &err), 0);
    CHECK_EQ(strs.n, 2);
    CHECK_STR(strs.items[1], "b");
}

TEST(ucfg_ends_where_variables_double)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf yaml = { 0 };
    for (char c = 'a'; c < 'y'; c++) {
        buf_printf(&yaml, "k%c: '${k%c}${k%c}'\n", c, c + 1, c + 1);
    }
    buf_add(&yaml, STR("ky: ${kx}\n"));
    buf_add_char(&yaml, '\0');
    yaml.n--;
    struct ucfg u = load(yaml.p, &a);
    struct str text;
    struct err err = { 0 };
    CHECK_EQ(ucfg_str(&u, ucfg_get(u.root, STR("ka")), &text, &err), -ERR_LIMIT);
}

TEST(ucfg_names_what_it_found_and_what_it_wants)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct ucfg u = load("t: abc\nl: [a]\nm: {a: b}\nv: '${NOT_SET}'\n", &a);
    struct err err = { 0 };
    int64_t number = 0;
    bool truth = false;
    struct str text = STR("");
    CHECK_EQ(ucfg_int(&u, ucfg_get(u.root, STR("t")), &number, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "found 'abc', want an integer");
    CHECK_EQ(ucfg_bool(&u, ucfg_get(u.root, STR("l")), &truth, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "found a list, want true or false");
    CHECK_EQ(ucfg_duration(&u, ucfg_get(u.root, STR("m")), &number, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "found a mapping, want a duration such as 1h30m or 45s");
    CHECK_EQ(ucfg_str(&u, ucfg_get(u.root, STR("v")), &text, &err), -ERR_NOTFOUND);
    CHECK_STR(err.msg, "variable 'NOT_SET': found nothing, want a value in the environment");
}

TEST(ucfg_load_lists_every_bad_key_and_variable)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct problems problems = { .out = &a };
    struct ucfg u;
    struct str yaml = STR("yes: 1\na: '${B'\nb:\n  5: x\n  c: '${}'\n");
    CHECK_EQ(ucfg_load(yaml, (struct ucfg_env){ 0 }, &a, &u, &problems), -ERR_INVALID);
    CHECK_EQ(problems.n, 4);
    CHECK_STR(problems.items[0].text, "key 'true': found a boolean, want a string: quote it");
    CHECK_EQ(problems.items[1].pos.line, 2);
    CHECK_EQ(problems.items[2].pos.line, 4);
    CHECK_EQ(problems.items[2].pos.column, 3);
    CHECK_STR(problems.items[3].text, "found '${}', want a name in it");
}
