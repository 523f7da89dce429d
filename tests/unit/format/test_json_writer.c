#include "format/json_writer.h"
#include "tests/vectors.h"

static void check_string(const struct jval *one, struct arena *a)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    json_quote(&out, vectors_text(one, "in", a));
    CHECK_STR(buf_str(&out), vectors_text(one, "out", a));
}

struct pair {
    struct str key;
    const struct jval *value;
};

static int compare_pairs(const void *a, const void *b)
{
    return str_cmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

/* Go sorts a map's keys; the writer writes what it is given, in the order given. */
static void check_map(const struct jval *one, struct arena *a)
{
    const struct jval *given = jval_get(one, STR("in"));
    struct pair *pairs = ARENA_ARRAY(a, struct pair, given->n);
    uint32_t n = 0;
    JVAL_EACH (given, pair) {
        pairs[n++] =
            (struct pair){ .key = vectors_text(pair, "k", a), .value = jval_get(pair, STR("v")) };
    }
    if (n > 0) {
        qsort(pairs, n, sizeof(*pairs), compare_pairs);
    }
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct json_writer w = json_writer_on(&out);
    jw_obj(&w);
    for (uint32_t i = 0; i < n; i++) {
        jw_key(&w, pairs[i].key);
        jw_val(&w, pairs[i].value);
    }
    jw_obj_end(&w);
    CHECK_STR(buf_str(&out), vectors_text(one, "out", a));
}

static void check_float(const struct jval *one, struct arena *a)
{
    struct str hex = vectors_text(one, "bits", a);
    uint64_t bits = 0;
    for (size_t i = 0; i < hex.n; i++) {
        static const char digits[] = "0123456789abcdef";
        bits = bits << 4 | (uint64_t)(strchr(digits, hex.p[i]) - digits);
    }
    double value;
    memcpy(&value, &bits, sizeof(value));
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct json_writer w = json_writer_on(&out);
    struct err err = { 0 };
    int r = jw_f64(&w, value, &err);
    CHECK_EQ(r == 0, vectors_ok(one));
    if (r == 0) {
        CHECK_STR(buf_str(&out), vectors_text(one, "out", a));
    } else {
        CHECK_EQ(out.n, 0);
    }
}

TEST(jwriter_agrees_with_go_on_every_vector)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *cases = jval_get(vectors_load("vectors/gojson.json", &a), STR("cases"));
    uint32_t seen = 0;
    JVAL_EACH (cases, one) {
        vectors_enter(one);
        if (vectors_kind(one, "string")) {
            check_string(one, &a);
        } else if (vectors_kind(one, "map")) {
            check_map(one, &a);
        } else if (vectors_kind(one, "float")) {
            check_float(one, &a);
        } else {
            continue; /* the data annotation has its own module */
        }
        seen++;
    }
    CHECK(seen > 80);
}

TEST(jwriter_places_commas_and_colons)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct json_writer w = json_writer_on(&out);
    jw_obj(&w);
    jw_pair(&w, "a", STR("x"));
    jw_key(&w, STR("b"));
    jw_arr(&w);
    jw_i64(&w, INT64_MIN);
    jw_bool(&w, true);
    jw_bool(&w, false);
    jw_null(&w);
    jw_obj(&w);
    jw_obj_end(&w);
    jw_raw(&w, STR("[1]"));
    jw_arr_end(&w);
    jw_key(&w, STR("c"));
    jw_arr(&w);
    jw_arr_end(&w);
    jw_obj_end(&w);
    CHECK_STR(buf_str(&out), "{\"a\":\"x\",\"b\":[-9223372036854775808,true,false,null,{},[1]],"
                             "\"c\":[]}");
}

/* The shortest digits that give the same double back. */
PROPERTY(jwriter_floats_are_read_back_exactly)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    for (int round = 0; round < 20; round++) {
        uint64_t bits = rng_next(rng);
        double value;
        double back;
        memcpy(&value, &bits, sizeof(value));
        struct json_writer w = json_writer_on(&out);
        struct err err = { 0 };
        buf_reset(&out);
        if (jw_f64(&w, value, &err) == 0) {
            CHECK(str_to_f64(buf_str(&out), &back));
            CHECK(back == value);
        }
    }
}

TEST(jwriter_pairs_leave_out_what_there_is_not)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct json_writer w = json_writer_on(&out);
    jw_obj(&w);
    jw_pair_bool(&w, "yes", true);
    jw_pair_i64(&w, "n", -7);
    jw_pair(&w, "empty", STR_NONE);
    jw_pair_some(&w, "none", STR_NONE);
    jw_pair_some(&w, "some", STR("x"));
    jw_pair_time(&w, "unset", 0);
    jw_pair_time(&w, "never", USEC_NEVER);
    jw_pair_time(&w, "at", SECONDS(1700000000) + 999999);
    jw_obj_end(&w);
    CHECK_STR(buf_str(&out), "{\"yes\":true,\"n\":-7,\"empty\":\"\",\"some\":\"x\","
                             "\"at\":\"2023-11-14T22:13:20Z\"}");
}
