#include "format/semver.h"
#include "tests/vectors.h"

static struct semver read_semver(struct str text)
{
    struct err err = { 0 };
    struct semver v = { 0 };
    if (semver_parse(text, &v, &err) < 0) {
        check_fail(__FILE__, __LINE__, "'" STR_FMT "': %s", STR_ARG(text), err.msg);
    }
    return v;
}

static struct str print(const struct semver *v, struct arena *a)
{
    return arena_printf(a, "%llu.%llu.%llu%s" STR_FMT "%s" STR_FMT, (unsigned long long)v->major,
                        (unsigned long long)v->minor, (unsigned long long)v->patch,
                        v->prerelease.n > 0 ? "-" : "", STR_ARG(v->prerelease),
                        v->build.n > 0 ? "+" : "", STR_ARG(v->build));
}

static void check_parse(const struct jval *one, struct arena *a)
{
    struct err err = { 0 };
    struct semver v = { .major = 77 };
    const struct jval *strict = jval_get(one, STR("parse"));
    int r = semver_parse(vectors_text(one, "in", a), &v, &err);
    CHECK_EQ(r == 0, vectors_ok(strict));
    if (r == 0) {
        CHECK_STR(print(&v, a), vectors_text(strict, "string", a));
        return;
    }
    struct str error = vectors_text(strict, "error", a);
    /* What the number parser says is its own business. */
    if (!str_starts(error, STR("strconv."))) {
        CHECK_STR(err.msg, error);
    }
    CHECK_EQ(v.major, 77); /* untouched */
}

static void check_compare(const struct jval *one, struct arena *a)
{
    struct err err = { 0 };
    struct semver left;
    struct semver right;
    bool ok = semver_parse(vectors_text(one, "a", a), &left, &err) == 0 &&
              semver_parse(vectors_text(one, "b", a), &right, &err) == 0;
    CHECK_EQ(ok, vectors_ok(one));
    if (ok) {
        CHECK_EQ(semver_cmp(&left, &right), vectors_i64(one, "cmp"));
        CHECK_EQ(semver_cmp(&right, &left), -vectors_i64(one, "cmp"));
    }
}

/* The check itself is a plugin's; here is whether each side can be read, and the order it takes. */
static void check_cluster(const struct jval *one, struct arena *a)
{
    struct err err = { 0 };
    struct semver own;
    CHECK_EQ(semver_parse(vectors_text(one, "own", a), &own, &err) == 0, vectors_ok(one));
    if (vectors_ok(one)) {
        struct semver max = read_semver(vectors_text(jval_get(one, STR("info")), "max", a));
        CHECK_EQ(semver_cmp(&own, &max) < 0, jval_bool(jval_get(one, STR("passed")), false));
    }
}

TEST(semver_agrees_with_blang_on_every_vector)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *cases = jval_get(vectors_load("vectors/semver.json", &a), STR("cases"));
    uint32_t seen = 0;
    JVAL_EACH (cases, one) {
        vectors_enter(one);
        if (vectors_kind(one, "parse")) {
            check_parse(one, &a);
        } else if (vectors_kind(one, "compare")) {
            check_compare(one, &a);
        } else {
            CHECK(vectors_kind(one, "clusterSemver"));
            check_cluster(one, &a);
        }
        seen++;
    }
    check_case(-1);
    CHECK(seen > 90);
}

TEST(semver_says_why_a_number_cannot_be_read)
{
    struct err err = { 0 };
    struct semver v;
    CHECK_EQ(semver_parse(STR("1..3"), &v, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "A number is missing");
    CHECK_EQ(semver_parse(STR("1.2.18446744073709551616"), &v, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "Number \"18446744073709551616\" does not fit 64 bits");
}

/* A random version in the neighbourhood of the others, so that they often meet. */
static struct str invent(struct rng *rng, struct arena *a)
{
    static const char *const words[] = { "0", "1", "10", "2", "a", "a1", "-", "rc", "B" };
    struct str text =
        arena_printf(a, "%u.%u.%u", rng_below(rng, 2), rng_below(rng, 2), rng_below(rng, 12));
    uint32_t n = rng_below(rng, 4);
    for (uint32_t i = 0; i < n; i++) {
        text = arena_printf(a, STR_FMT "%c%s", STR_ARG(text), i == 0 ? '-' : '.',
                            words[rng_below(rng, ARRAY_LEN(words))]);
    }
    return rng_chance(rng, 200) ? arena_concat(a, text, STR("+b.01")) : text;
}

PROPERTY(semver_order_is_total_and_print_reads_back)
{
    CLEANUP(arena_done)
    struct arena arena = { 0 };
    struct str text = invent(rng, &arena);
    struct semver a = read_semver(text);
    struct semver b = read_semver(invent(rng, &arena));
    struct semver c = read_semver(invent(rng, &arena));
    CHECK_STR(print(&a, &arena), text);
    CHECK_EQ(semver_cmp(&a, &a), 0);
    CHECK_EQ(semver_cmp(&a, &b), -semver_cmp(&b, &a));
    if (semver_cmp(&a, &b) <= 0 && semver_cmp(&b, &c) <= 0) {
        CHECK(semver_cmp(&a, &c) <= 0);
    }
    struct semver release = a;
    release.prerelease = STR_NONE;
    CHECK_EQ(semver_cmp(&a, &release), a.prerelease.n > 0 ? -1 : 0);
}
