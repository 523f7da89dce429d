#include "base/timestamp.h"
#include "tests/vectors.h"

/* Go reads a time.Time from the raw text between the quotes, Kubernetes from the decoded string;
 * a text with an escape is a time for the second alone. */
static bool raw_text(struct str json, struct str *ret)
{
    return json.n >= 2 && json.p[0] == '"' && str_cut_prefix(json, STR("\""), ret) &&
           str_cut_suffix(*ret, STR("\""), ret);
}

static void check_decode(const struct jval *one, struct str text)
{
    struct err err = { 0 };
    struct timestamp s = { 0 };
    int r = timestamp_parse(text, &s, &err);
    CHECK_EQ(r == 0, vectors_ok(one));
    if (r < 0) {
        return;
    }
    CHECK_EQ(s.sec, vectors_i64(one, "unix"));
    CHECK_EQ(s.nsec, vectors_i64(one, "nanos"));
    CHECK_EQ(s.offset, vectors_i64(one, "offset"));
    CHECK_EQ(timestamp_is_zero(s), jval_bool(jval_get(one, STR("zero")), true));
    char out[TIMESTAMP_TEXT_MAX];
    struct str printed = STR_NONE;
    struct str want;
    r = timestamp_print(s, out, &printed, &err);
    CHECK_EQ(r == 0, jval_get(one, STR("reencode_error")) == NULL);
    if (r == 0) {
        CHECK(raw_text(jval_str(jval_get(one, STR("out"))), &want));
        CHECK_STR(printed, want);
    }
}

static struct str decoded_text(struct str json, struct arena *a)
{
    struct err err = { 0 };
    const struct jval *v;
    CHECK_EQ(json_parse(json, JSON_GO, a, &v, &err), 0);
    return jval_str(v);
}

static void check_kubernetes(const struct jval *one, const char *key, struct str text)
{
    const struct jval *form = jval_get(one, str_from(key));
    bool micro = strcmp(key, "microtime") == 0;
    struct err err = { 0 };
    struct timestamp s = { 0 };
    int r = micro ? timestamp_parse_micro(text, &s, &err) : timestamp_parse(text, &s, &err);
    CHECK_EQ(r == 0, vectors_ok(form));
    struct str want;
    /* The zero time is written as null, which is its owner's decision. */
    if (r == 0 && raw_text(jval_str(jval_get(form, STR("out"))), &want)) {
        char out[TIMESTAMP_TEXT_MAX];
        usec_t wall = timestamp_to_usec(s);
        CHECK_STR(micro ? timestamp_print_micro(wall, out) : timestamp_print_seconds(wall, out),
                  want);
    }
}

static void check_encode(const struct jval *one)
{
    static const char *const days[] = { "Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday" };
    struct timestamp s = {
        .sec = vectors_i64(one, "unix"),
        .nsec = (int32_t)vectors_i64(one, "nanos"),
        .offset = (int32_t)vectors_i64(one, "offset"),
    };
    struct err err = { 0 };
    char out[TIMESTAMP_TEXT_MAX];
    struct str printed = STR_NONE;
    int r = timestamp_print(s, out, &printed, &err);
    CHECK_EQ(r == 0, vectors_ok(one));
    if (r < 0) {
        CHECK(str_ends(jval_str(jval_get(one, STR("error"))), str_from(err.msg)));
        return;
    }
    struct str want;
    CHECK(raw_text(jval_str(jval_get(one, STR("out"))), &want));
    CHECK_STR(printed, want);
    CHECK_STR(timestamp_print_go(s, out), jval_str(jval_get(one, STR("string"))));
    CHECK_STR(days[civil_from_sec(s.sec + s.offset).weekday],
              jval_str(jval_get(one, STR("weekday"))));
}

TEST(timestamp_agrees_with_go_on_every_vector)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct jval *cases = jval_get(vectors_load("vectors/time.json", &a), STR("cases"));
    uint32_t seen = 0;
    JVAL_EACH (cases, one) {
        vectors_enter(one);
        struct str text;
        if (vectors_kind(one, "encode")) {
            check_encode(one);
        } else if (!raw_text(vectors_text(one, "in", &a), &text)) {
            continue; /* null, numbers, objects: the JSON reader's business */
        } else if (vectors_kind(one, "decode")) {
            check_decode(one, text);
        } else {
            text = decoded_text(vectors_text(one, "in", &a), &a);
            check_kubernetes(one, "time", text);
            check_kubernetes(one, "microtime", text);
        }
        seen++;
    }
    CHECK(seen > 150);
}

TEST(timestamp_parse_says_what_is_wrong)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        { "26-01-02", "time '26-01-02': want a year of four digits" },
        { "2026-01-02T03:04Z",
          "time '2026-01-02T03:04Z': want ':' and a second of two digits behind the minute" },
        { "2026-01-02T03:04:05+2", "time '2026-01-02T03:04:05+2': want 'Z' or an offset such as "
                                   "+02:00 behind the second" },
        { "2026-01-02T03:04:05ZZ", "time '2026-01-02T03:04:05ZZ': extra text behind the time" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        struct timestamp s = { .sec = 7 };
        CHECK_EQ(timestamp_parse(str_from(cases[i].text), &s, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].message);
        CHECK_EQ(s.sec, 7);
    }
}

TEST(timestamp_parse_micro_wants_exactly_six_digits)
{
    struct err err = { 0 };
    struct timestamp s;
    CHECK_EQ(timestamp_parse_micro(STR("2026-01-02T03:04:05.000123Z"), &s, &err), 0);
    CHECK_EQ(s.nsec, 123000);
    CHECK_EQ(timestamp_parse_micro(STR("2026-01-02T03:04:05.00012Z"), &s, &err), -ERR_INVALID);
    CHECK_EQ(timestamp_parse_micro(STR("2026-01-02T03:04:05.0001234Z"), &s, &err), -ERR_INVALID);
    CHECK_EQ(timestamp_parse_micro(STR("2026-01-02T03:04:05Z"), &s, &err), -ERR_INVALID);
}

TEST(timestamp_to_usec_stops_at_the_ends_of_the_range)
{
    CHECK_EQ(timestamp_to_usec((struct timestamp){ .sec = INT64_MAX }), INT64_MAX);
    CHECK_EQ(timestamp_to_usec((struct timestamp){ .sec = INT64_MIN }), INT64_MIN);
    CHECK_EQ(timestamp_to_usec((struct timestamp){ .sec = -1, .nsec = 999999999 }), -1);
}

TEST(timestamp_prints_years_beyond_four_digits)
{
    char out[TIMESTAMP_TEXT_MAX];
    CHECK_STR(timestamp_print_seconds(INT64_MAX, out), "294247-01-10T04:00:54Z");
    CHECK_STR(timestamp_print_micro(INT64_MIN, out), "-290308-12-21T19:59:05.224192Z");
}

/* The calendar agrees with libc's, which counts in another way. */
PROPERTY(civil_agrees_with_libc)
{
    int64_t sec = (int64_t)(rng_next(rng) >> (24 + rng_below(rng, 40)));
    if (rng_chance(rng, 300)) {
        sec = -sec;
    }
    struct civil c = civil_from_sec(sec);
    CHECK_EQ(civil_to_sec(&c), sec);
    struct tm tm = {
        .tm_year = (int)(c.year - 1900),
        .tm_mon = c.month - 1,
        .tm_mday = c.day,
        .tm_hour = c.hour,
        .tm_min = c.minute,
        .tm_sec = c.second,
    };
    CHECK_EQ(timegm(&tm), sec);
    CHECK_EQ(tm.tm_wday, c.weekday);
}

/* Whatever is printed is read back as the same instant. */
PROPERTY(timestamp_print_and_parse_are_inverse)
{
    struct err err = { 0 };
    struct timestamp s = {
        .sec = rng_usec(rng, -62135596800, 253402214400),
        .nsec = (int32_t)(rng_below(rng, 1000000000) / (rng_chance(rng, 500) ? 1 : 1000)),
        .offset = (int32_t)rng_usec(rng, -1439, 1439) * 60,
    };
    char out[TIMESTAMP_TEXT_MAX];
    struct str text;
    struct timestamp back;
    if (timestamp_print(s, out, &text, &err) < 0) {
        return; /* year 10000 in a zone east */
    }
    CHECK_EQ(timestamp_parse(text, &back, &err), 0);
    CHECK_EQ(back.sec, s.sec);
    CHECK_EQ(back.nsec, s.nsec);
    CHECK_EQ(back.offset, s.offset);
}
