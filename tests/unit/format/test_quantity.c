#include "format/quantity.h"
#include "tests/vectors.h"

static struct quantity read_quantity(struct str text)
{
    struct err err = { 0 };
    struct quantity q = { 0 };
    if (quantity_parse(text, &q, &err) < 0) {
        check_fail(__FILE__, __LINE__, "'" STR_FMT "': %s", STR_ARG(text), err.msg);
    }
    return q;
}

static struct str print(const struct quantity *q, struct arena *a)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    quantity_print(q, &out);
    return arena_str(a, buf_str(&out));
}

static void check_number(const struct jval *one, const char *key, bool fits, int64_t value)
{
    CHECK_EQ(fits, jval_get(one, str_from(key)) != NULL);
    if (fits) {
        CHECK_EQ(value, vectors_i64(one, key));
    }
}

static void check_parse(const struct jval *one, struct arena *a)
{
    static const char *const formats[] = { "DecimalSI", "BinarySI", "DecimalExponent" };
    struct err err = { 0 };
    struct quantity q;
    int r = quantity_parse(vectors_text(one, "in", a), &q, &err);
    CHECK_EQ(r == 0, vectors_ok(one));
    if (r < 0) {
        CHECK_STR(err.msg, vectors_text(one, "error", a));
        return;
    }
    CHECK_STR(print(&q, a), vectors_text(one, "canonical", a));
    CHECK_STR(formats[q.format], vectors_text(one, "format", a));
    CHECK_EQ(quantity_sign(&q), vectors_i64(one, "sign"));
    int64_t value = 0;
    bool fits = quantity_value(&q, &value);
    check_number(one, "value", fits, value);
    fits = quantity_milli(&q, &value);
    check_number(one, "milli", fits, value);
}

static void check_compare(const struct jval *one, struct arena *a)
{
    struct err err = { 0 };
    struct quantity left = read_quantity(vectors_text(one, "a", a));
    struct quantity right = read_quantity(vectors_text(one, "b", a));
    CHECK_EQ(quantity_cmp(&left, &right), vectors_i64(one, "cmp"));
    CHECK_EQ(quantity_cmp(&right, &left), -vectors_i64(one, "cmp"));
    struct quantity sum = left;
    CHECK_EQ(quantity_add(&sum, &right, &err), 0);
    CHECK_STR(print(&sum, a), vectors_text(one, "sum", a));
    struct quantity difference = left;
    CHECK_EQ(quantity_sub(&difference, &right, &err), 0);
    CHECK_STR(print(&difference, a), vectors_text(one, "diff", a));
}

TEST(quantity_agrees_with_kubernetes_on_every_vector)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *cases = jval_get(vectors_load("vectors/quantity.json", &a), STR("cases"));
    uint32_t seen = 0;
    JVAL_EACH (cases, one) {
        vectors_enter(one);
        if (vectors_kind(one, "parse")) {
            check_parse(one, &a);
        } else {
            CHECK(vectors_kind(one, "compare"));
            check_compare(one, &a);
        }
        seen++;
    }
    CHECK(seen > 80);
}

TEST(quantity_beyond_what_it_can_hold_is_refused_or_said_not_to_fit)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct quantity q;
    int64_t value;
    CHECK_EQ(quantity_parse(STR("1234567890123456789012345678901234567890"), &q, &err), -ERR_LIMIT);
    CHECK_EQ(quantity_parse(STR("12345678901234567890123456789012345678Ei"), &q, &err), -ERR_LIMIT);
    struct quantity huge = read_quantity(STR("1e30"));
    struct quantity tiny = read_quantity(STR("1n"));
    CHECK(!quantity_value(&huge, &value));
    CHECK_EQ(quantity_add(&huge, &tiny, &err), -ERR_LIMIT);
    CHECK_EQ(quantity_sub(&tiny, &huge, &err), -ERR_LIMIT);
    CHECK_EQ(quantity_cmp(&huge, &tiny), 1);
    CHECK_EQ(quantity_cmp(&tiny, &huge), -1);
    q = read_quantity(STR("300000000000000000000000000000000000000"));
    CHECK_EQ(quantity_add(&q, &q, &err), -ERR_LIMIT);
    CHECK_STR(print(&huge, &a), "1e30");
    q = read_quantity(STR("340282366920938463463374607431768211455E"));
    CHECK_STR(print(&q, &a), "340282366920938463463374607431768211455E");
    q = read_quantity(STR("1000E"));
    CHECK_STR(print(&q, &a), "1000E");
    q = read_quantity(STR("10000000000E"));
    CHECK_STR(print(&q, &a), "10000000000E");
    q = read_quantity(STR("1e-2000"));
    CHECK_STR(print(&q, &a), "1e-9");
    CHECK_EQ(quantity_parse(STR("1e99999999999"), &q, &err), -ERR_INVALID);
}

/* Reading what was printed gives the same amount, and small sums agree with plain arithmetic. */
PROPERTY(quantity_print_and_parse_are_inverse)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    static const char *const units[] = {
        "", "m", "u", "n", "k", "M", "Ki", "Mi", "Gi", "e3", "e-2"
    };
    int32_t number = (int32_t)rng_below(rng, 2000000) - 1000000;
    struct quantity q =
        read_quantity(arena_printf(&a, "%d%s", number, units[rng_below(rng, ARRAY_LEN(units))]));
    struct quantity other = read_quantity(arena_printf(
        &a, "%d.%03um", (int32_t)rng_below(rng, 2000000) - 1000000, rng_below(rng, 1000)));
    struct quantity back = read_quantity(print(&q, &a));
    CHECK_EQ(quantity_cmp(&q, &back), 0);
    back = q;
    CHECK_EQ(quantity_add(&back, &other, &err), 0);
    CHECK_EQ(quantity_cmp(&back, &q), quantity_sign(&other));
    CHECK_EQ(quantity_sub(&back, &other, &err), 0);
    CHECK_EQ(quantity_cmp(&back, &q), 0);
    struct quantity reread = read_quantity(print(&back, &a));
    CHECK_EQ(quantity_cmp(&reread, &q), 0);
}
