#include "calendar/zone.h"
#include "tests/unit/calendar/zone_fixture.h"

#define SYSTEM_ZONES "/usr/share/zoneinfo"
#define YEAR_2100 INT64_C(4102444800)

/* A file of the system. */
static struct str check_file(const char *path, struct arena *a)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        check_fail(__FILE__, __LINE__, "cannot open %s: is tzdata installed?", path);
    }
    char *bytes = arena_alloc(a, ZONE_BYTES_MAX);
    size_t n = fread(bytes, 1, ZONE_BYTES_MAX, file);
    CHECK_EQ(fclose(file), 0);
    return (struct str){ .p = bytes, .n = n };
}

TEST(zone_none_is_utc)
{
    struct zone_span span = zone_at(NULL, 1234567890);
    CHECK_EQ(span.offset, 0);
    CHECK_EQ(span.until, INT64_MAX);
    CHECK_STR(span.name, "UTC");
    struct zone_instants at = zone_instants(NULL, 77);
    CHECK(at.fit == ZONE_ONCE && at.first == 77 && at.last == 77);
}

TEST(zone_tells_gaps_and_folds)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    static const struct {
        const char *zone;
        int civil[5];
        enum zone_fit fit;
        int64_t first_offset; /* hours east, in quarters, of each instant */
        int64_t last_offset;
    } cases[] = {
        { "Berlin", { 2026, 3, 29, 1, 59 }, ZONE_ONCE, 4, 4 },
        { "Berlin", { 2026, 3, 29, 2, 30 }, ZONE_GAP, 6, 6 }, /* 01:00 UTC */
        { "Berlin", { 2026, 3, 29, 3, 0 }, ZONE_ONCE, 8, 8 },
        { "Berlin", { 2026, 10, 25, 2, 30 }, ZONE_FOLD, 8, 4 },
        { "Berlin", { 2026, 10, 25, 3, 0 }, ZONE_ONCE, 4, 4 },
        { "Berlin", { 2099, 7, 1, 12, 0 }, ZONE_ONCE, 8, 8 },
        { "Lord_Howe", { 2026, 4, 5, 1, 45 }, ZONE_FOLD, 44, 42 },
        { "Lord_Howe", { 2026, 10, 4, 2, 15 }, ZONE_GAP, 43, 43 }, /* 15:30 UTC */
        { "Apia", { 2011, 12, 30, 12, 0 }, ZONE_GAP, 8, 8 },       /* 10:00 UTC */
        { "Apia", { 2011, 12, 31, 12, 0 }, ZONE_ONCE, 56, 56 },
        { "Nuuk", { 2050, 3, 26, 23, 30 }, ZONE_GAP, -6, -6 }, /* on the day before the rule's */
        { "Kolkata", { 2026, 1, 1, 0, 0 }, ZONE_ONCE, 22, 22 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        const int *c = cases[i].civil;
        int64_t local = zones_civil_seconds(c[0], c[1], c[2], c[3], c[4]);
        struct zone_instants at = zone_instants(zones_load(cases[i].zone, &a), local);
        CHECK_EQ(at.fit, cases[i].fit);
        CHECK_EQ(local - at.first, cases[i].first_offset * 900);
        CHECK_EQ(local - at.last, cases[i].last_offset * 900);
    }
    check_case(-1);
}

TEST(zone_names_its_times_and_the_next_transition)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct zone *berlin = zones_load("Berlin", &a);
    struct zone_span span = zone_at(berlin, zones_civil_seconds(2026, 1, 15, 0, 0));
    CHECK_STR(span.name, "CET");
    CHECK(!span.dst);
    CHECK_EQ(span.until, zones_civil_seconds(2026, 3, 29, 1, 0));
    span = zone_at(berlin, span.until);
    CHECK_STR(span.name, "CEST");
    CHECK(span.dst);
    CHECK_EQ(span.before, 3600);
    CHECK_EQ(span.until, zones_civil_seconds(2026, 10, 25, 1, 0));
    span = zone_at(berlin, zones_civil_seconds(2500, 12, 1, 0, 0)); /* the rule goes on */
    CHECK_EQ(span.from, zones_civil_seconds(2500, 10, 31, 1, 0));
    CHECK_EQ(zone_at(zones_load("Kolkata", &a), YEAR_2100).until, INT64_MAX);
}

TEST(zone_pace_stands_while_clocks_repeat)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct zone *berlin = zones_load("Berlin", &a);
    int64_t back = zones_civil_seconds(2026, 10, 25, 1, 0);
    struct zone_pace pace = zone_pace(berlin, back - 1);
    CHECK(!pace.stands);
    CHECK_EQ(pace.local, zones_civil_seconds(2026, 10, 25, 3, 0) - 1);
    CHECK_EQ(pace.until, back);
    pace = zone_pace(berlin, back + 3599);
    CHECK(pace.stands);
    CHECK_EQ(pace.local, zones_civil_seconds(2026, 10, 25, 3, 0) - 1);
    CHECK_EQ(pace.until, back + 3600);
    pace = zone_pace(berlin, back + 3600);
    CHECK(!pace.stands);
    CHECK_EQ(pace.local, zones_civil_seconds(2026, 10, 25, 3, 0));
}

/* A file of one kind of time, with `footer`; the block for version 1 is empty. */
static struct str zone_make(struct arena *a, const char *footer, char version, uint8_t leap)
{
    char header[44] = "TZif";
    header[4] = version;
    char head2[44] = { 0 };
    memcpy(head2, header, sizeof(header));
    head2[31] = (char)leap;
    head2[39] = 1; /* kinds */
    head2[43] = 4; /* characters */
    const char kind[] = "\0\0\0\0\0\0LMT";
    struct str file = { .p = header, .n = sizeof(header) };
    file = arena_concat(a, file, (struct str){ .p = head2, .n = sizeof(head2) });
    file = arena_concat(a, file, (struct str){ .p = kind, .n = sizeof(kind) });
    if (leap > 0) {
        file = arena_concat(a, file, STR("0123456789ab"));
    }
    return arena_concat(a, file, str_from(footer));
}

TEST(zone_reads_every_form_of_rule)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    static const struct {
        const char *footer;
        int month; /* of 2028, a leap year; 0: no transition */
        int day;
        int second; /* of that day, UTC: when daylight saving time begins */
        int32_t saving;
    } cases[] = {
        { "\nAAA0BBB,M3.5.0,M10.5.0\n", 3, 26, 7200, 3600 },
        { "\nAAA0BBB,M2.5.2/1:30:15,M10.1.0\n", 2, 29, 5415, 3600 },
        { "\nAAA0BBB,J60/0,J300\n", 3, 1, 0, 3600 },
        { "\nAAA0BBB,59/0,299\n", 2, 29, 0, 3600 },
        { "\nAAA+1:30BBB-2:00:30,J59/-1,J300/+5\n", 2, 28, 1800, 7230 },
        { "\n<+03>-3<-04>4,M3.1.6/167,M9.1.0\n", 3, 11 - 1, 20 * 3600 + 0, -14400 },
        { "\nAAA5\n", 0, 0, 0, -18000 },
        { "\nXXX3EDT4,0/0,J365/23\n", 0, 0, 0, 0 }, /* see below */
    };
    for (size_t i = 0; i + 1 < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        const struct zone *z = NULL;
        CHECK_EQ(zone_parse(zone_make(&a, cases[i].footer, '2', 0), &a, &z, &err), 0);
        struct zone_span span = zone_at(z, zones_civil_seconds(2028, 1, 20, 0, 0));
        if (cases[i].month == 0) {
            CHECK_EQ(span.until, INT64_MAX);
            CHECK_EQ(span.offset, cases[i].saving);
            continue;
        }
        CHECK_EQ(span.until,
                 zones_civil_seconds(2028, cases[i].month, cases[i].day, 0, 0) + cases[i].second);
        CHECK_EQ(zone_at(z, span.until).offset, cases[i].saving);
    }
    check_case(-1);
    /* RFC 8536's example of daylight saving time all year. */
    const struct zone *z = NULL;
    CHECK_EQ(zone_parse(zone_make(&a, "\nXXX3EDT4,0/0,J365/23\n", '3', 0), &a, &z, &err), 0);
    for (int64_t sec = zones_civil_seconds(2026, 12, 30, 0, 0);
         sec < zones_civil_seconds(2027, 1, 3, 0, 0); sec += 1800) {
        struct zone_span span = zone_at(z, sec);
        CHECK_EQ(span.offset, -14400);
        CHECK_EQ(span.before, -14400);
        CHECK_EQ(zone_instants(z, sec).fit, ZONE_ONCE);
    }
}

TEST(zone_without_rule_keeps_its_last_time)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct zone *z = NULL;
    CHECK_EQ(zone_parse(zone_make(&a, "\n\n", '2', 0), &a, &z, &err), 0);
    struct zone_span span = zone_at(z, YEAR_2100);
    CHECK_STR(span.name, "LMT");
    CHECK_EQ(span.until, INT64_MAX);
}

TEST(zone_says_what_is_wrong_with_a_file)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct str good = zone_make(&a, "\nAAA5\n", '2', 0);
    char *no_kind = arena_alloc(&a, good.n);
    char *offset = arena_alloc(&a, good.n);
    char *large = arena_alloc(&a, ZONE_BYTES_MAX + 1);
    memcpy(no_kind, good.p, good.n);
    memcpy(offset, good.p, good.n);
    no_kind[44 + 43] = 0;
    offset[44 + 44] = 0x7f;
    struct str berlin = check_data("zone/Berlin");
    char *twice = arena_alloc(&a, berlin.n);
    memcpy(twice, berlin.p, berlin.n);
    size_t second = str_find(str_sub(berlin, 4, berlin.n - 4), STR("TZif")) + 4;
    memcpy(twice + second + 44 + 8, twice + second + 44, 8);
    const struct {
        struct str bytes;
        const char *msg;
    } cases[] = {
        { STR("TZif2"), "time zone: found no 'TZif' header, want a TZif file" },
        { str_sub(good, 1, good.n - 1), "time zone: found no 'TZif' header, want a TZif file" },
        { zone_make(&a, "\nAAA5\n", '\0', 0), "time zone: found version 1, want 2 or later" },
        { str_sub(good, 0, 90), "time zone: found 2 bytes, want 10: cut off" },
        { zone_make(&a, "\nAAA5\n", '2', 1), "time zone: found leap seconds, want a zone without" },
        { { .p = no_kind, .n = good.n },
          "time zone: found 1 kinds of time with 0 bytes of names, "
          "want 1 to 256 kinds" },
        { { .p = offset, .n = good.n },
          "time zone: kind 0: want an offset of about a day at most, and a name" },
        { { .p = twice, .n = berlin.n },
          "time zone: transition 1: want ascending times of known kinds" },
        { { .p = large, .n = ZONE_BYTES_MAX + 1 },
          "time zone: found 262145 bytes, want 262144 at most" },
        { str_sub(good, 0, 44), "time zone: found no 'TZif' header, want a TZif file" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        const struct zone *z = NULL;
        struct err err = { 0 };
        CHECK(zone_parse(cases[i].bytes, &a, &z, &err) < 0);
        CHECK(z == NULL);
        CHECK_STR(err.msg, cases[i].msg);
    }
    check_case(-1);
}

TEST(zone_refuses_what_is_no_rule)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    static const char *const footers[] = {
        "",
        "\n",
        "AAA5\n",
        "\nAAA5",
        "\nAA5\n",
        "\nAAA\n",
        "\n<AAA5\n",
        "\nAAA25\n",
        "\nAAA5:60\n",
        "\nAAA5:30:60\n",
        "\nAAA5B\n",
        "\nAAA5BBB\n",
        "\nAAA5BBBx\n",
        "\nAAA5BBB,M3.5.0\n",
        "\nAAA5BBB,M13.5.0,M10.5.0\n",
        "\nAAA5BBB,M3.6.0,M10.5.0\n",
        "\nAAA5BBB,M3.5.7,M10.5.0\n",
        "\nAAA5BBB,M3-5.0,M10.5.0\n",
        "\nAAA5BBB,J0,J300\n",
        "\nAAA5BBB,366,300\n",
        "\nAAA5BBB,J60/168,J300\n",
        "\nAAA5BBB,J60,J300x\n",
        "\nAAA5BBB/J60,J300\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(footers); i++) {
        check_case((int64_t)i);
        const struct zone *z = NULL;
        struct err err = { 0 };
        CHECK_EQ(zone_parse(zone_make(&a, footers[i], '2', 0), &a, &z, &err), -ERR_INVALID);
        CHECK(str_starts(str_from(err.msg), STR("time zone: rule '")));
    }
    check_case(-1);
}

TEST(zone_refuses_a_file_that_is_cut_anywhere)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct str whole = check_data("zone/Nuuk");
    for (size_t n = 0; n < whole.n; n++) {
        const struct zone *z = NULL;
        struct err err = { 0 };
        CHECK_EQ(zone_parse(str_sub(whole, 0, n), &a, &z, &err), -ERR_INVALID);
    }
}

/* libc, which has the zone of the environment, must come from our civil time to the same instant.
 * Where one offset gives way to another of the same kind, it may take the other of the two. */
static void zone_compare(const struct zone *z, int64_t sec, int *exceptions)
{
    struct zone_span span = zone_at(z, sec);
    struct civil c = civil_from_sec(sec + span.offset);
    struct zone_instants at = zone_instants(z, sec + span.offset);
    CHECK(at.fit == ZONE_ONCE ? at.first == sec : at.first == sec || at.last == sec);
    struct tm tm = {
        .tm_year = (int)c.year - 1900,
        .tm_mon = c.month - 1,
        .tm_mday = c.day,
        .tm_hour = c.hour,
        .tm_min = c.minute,
        .tm_sec = c.second,
        .tm_isdst = span.dst ? 1 : 0,
    };
    int64_t libc = (int64_t)mktime(&tm);
    if (libc == sec) {
        CHECK_EQ(tm.tm_gmtoff, span.offset);
        CHECK_EQ(tm.tm_isdst, span.dst);
        CHECK_STR(tm.tm_zone, span.name);
        return;
    }
    (*exceptions)++;
    if (at.fit != ZONE_FOLD || (libc != at.first && libc != at.last)) {
        check_fail(__FILE__, __LINE__, "%s: %lld: libc says %lld", getenv("TZ"), (long long)sec,
                   (long long)libc);
    }
}

static void zone_sweep(struct str name, int *exceptions)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct zone *z = NULL;
    struct str path = arena_printf(&a, "%s/" STR_FMT, SYSTEM_ZONES, STR_ARG(name));
    CHECK_EQ(setenv("TZ", arena_printf(&a, ":" STR_FMT, STR_ARG(name)).p, 1), 0);
    tzset();
    CHECK_EQ(zone_parse(check_file(path.p, &a), &a, &z, &err), 0);
    for (int64_t sec = 0; sec < YEAR_2100; sec += 1234567) {
        zone_compare(z, sec, exceptions);
    }
    int turns = 0;
    for (int64_t sec = zone_at(z, 0).until; sec < YEAR_2100; sec = zone_at(z, sec).until) {
        CHECK_EQ(zone_at(z, sec).from, sec);
        zone_compare(z, sec - 1, exceptions);
        zone_compare(z, sec, exceptions);
        turns++;
    }
    CHECK(turns < 600);
}

/* Every zone of the system whose civil time has been its own since 1970, to the year 2100. */
TEST(zone_agrees_with_libc)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    int zones = 0;
    int exceptions = 0;
    struct str rest = check_file(SYSTEM_ZONES "/zone1970.tab", &a);
    for (struct str line; str_split_next(&rest, '\n', &line);) {
        struct str name = STR_NONE;
        if (line.n == 0 || line.p[0] == '#') {
            continue;
        }
        for (int column = 0; column < 3; column++) {
            CHECK(str_split_next(&line, '\t', &name));
        }
        zone_sweep(name, &exceptions);
        zones++;
    }
    CHECK_EQ(unsetenv("TZ"), 0);
    tzset();
    CHECK(zones > 250);
    CHECK(exceptions < 400);
}

/* Spans follow each other without a hole, and each instant is found again by its civil time. */
PROPERTY(zone_spans_are_whole)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct zone *z = zones_load(zones_names[rng_below(rng, ARRAY_LEN(zones_names))], &a);
    int64_t sec = (int64_t)(rng_next(rng) % 20000000000u) - 8000000000;
    struct zone_span span = zone_at(z, sec);
    CHECK(span.from <= sec && sec < span.until);
    if (span.until != INT64_MAX) {
        CHECK_EQ(zone_at(z, span.until).from, span.until);
        CHECK_EQ(zone_at(z, span.until).before, span.offset);
        CHECK_EQ(zone_at(z, span.until - 1).offset, span.offset);
    }
    struct zone_instants at = zone_instants(z, sec + span.offset);
    CHECK(at.fit != ZONE_GAP && (at.first == sec || at.last == sec));
}
