#include "profile/node_data.h"

#include "format/json_writer.h"
#include "tests/vectors.h"

/* Recorded from the original as an error; here it is read and migrated. */
#define CASE_LEGACY 221

static struct timestamp stamp_of(struct str text)
{
    struct err err = { 0 };
    struct timestamp s = timestamp_zero;
    CHECK_EQ(timestamp_parse(text, &s, &err), 0);
    return s;
}

TEST(node_data_print_writes_the_recorded_bytes)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    uint32_t seen = 0;
    const struct jval *cases = jval_get(vectors_load("vectors/gojson.json", &a), STR("cases"));
    JVAL_EACH (cases, one) {
        if (!vectors_kind(one, "data")) {
            continue;
        }
        vectors_enter(one);
        seen++;
        struct node_data d = { 0 };
        const struct jval *profiles = jval_get(one, STR("profiles"));
        JVAL_EACH (profiles, p) {
            struct node_data_profile *made =
                node_data_make_profile(&d, &a, jval_str(jval_get(p, STR("name"))));
            made->null = jval_bool(jval_get(p, STR("null")), false);
            if (!made->null) {
                made->transition = stamp_of(jval_str(jval_get(p, STR("transition"))));
                made->current = jval_str(jval_get(p, STR("current")));
                made->previous = jval_str(jval_get(p, STR("previous")));
            }
        }
        /* Notifications come in by reading: nothing else makes them yet. */
        struct buf in = { 0 };
        struct json_writer w = json_writer_on(&in);
        jw_obj(&w);
        jw_key(&w, STR("Notifications"));
        jw_obj(&w);
        const struct jval *notifications = jval_get(one, STR("notifications"));
        JVAL_EACH (notifications, n) {
            jw_key(&w, jval_str(jval_get(n, STR("name"))));
            jw_str(&w, jval_str(jval_get(n, STR("time"))));
        }
        jw_obj_end(&w);
        jw_obj_end(&w);
        struct node_data notes;
        struct err err = { 0 };
        CHECK_EQ(node_data_parse(buf_str(&in), &a, &notes, &err), 0);
        d.notifications = notes.notifications;
        d.notification_count = notes.notification_count;
        struct buf out = { 0 };
        CHECK_EQ(node_data_print(&d, &out, &err), 0);
        CHECK_STR(buf_str(&out), jval_str(jval_get(one, STR("out"))));
        buf_done(&in);
        buf_done(&out);
    }
    CHECK_EQ(seen, 27);
}

/* `"Profiles":null` in the recording is a nil map; it never reaches an annotation. */
static struct str without_nil_map(struct str out, struct arena *a)
{
    struct str rest;
    if (str_cut_prefix(out, STR("{\"Profiles\":null,"), &rest)) {
        return arena_concat(a, STR("{\"Profiles\":{},"), rest);
    }
    return out;
}

TEST(node_data_parse_reads_what_the_original_reads)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    uint32_t seen = 0;
    const struct jval *cases = jval_get(vectors_load("vectors/gojson.json", &a), STR("cases"));
    JVAL_EACH (cases, one) {
        int64_t number = 0;
        CHECK(jval_i64(jval_get(one, STR("n")), &number));
        if (!vectors_kind(one, "decode") || number == CASE_LEGACY) {
            continue;
        }
        vectors_enter(one);
        seen++;
        struct node_data d;
        struct err err = { 0 };
        int r = node_data_parse(vectors_text(one, "in", &a), &a, &d, &err);
        CHECK_EQ(r == 0, vectors_ok(one));
        if (r < 0) {
            CHECK(str_starts(str_from(err.msg),
                             STR("failed to parse json value in data annotation: ")));
            continue;
        }
        struct buf out = { 0 };
        CHECK_EQ(node_data_print(&d, &out, &err), 0);
        CHECK_STR(buf_str(&out), without_nil_map(jval_str(jval_get(one, STR("out"))), &a));
        buf_done(&out);
    }
    CHECK_EQ(seen, 84);
}

TEST(node_data_parse_names_the_unknown_field)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct node_data d;
    struct err err = { 0 };
    CHECK_EQ(node_data_parse(STR("{\"Extra\":1}"), &a, &d, &err), -ERR_INVALID);
    CHECK_STR(err.msg,
              "failed to parse json value in data annotation: json: unknown field \"Extra\"");
}

TEST(node_data_parse_migrates_the_old_format)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct node_data d;
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    CHECK_EQ(
        node_data_parse(STR("{\"LastTransition\":\"2025-01-02T03:04:05Z\","
                            "\"LastNotificationTimes\":{\"mail\":\"2025-01-01T00:00:00Z\"},"
                            "\"ProfileStates\":{\"b\":\"in-maintenance\",\"a\":\"operational\"},"
                            "\"PreviousStates\":{\"b\":\"maintenance-required\"}}"),
                        &a, &d, &err),
        0);
    CHECK_EQ(node_data_print(&d, &out, &err), 0);
    CHECK_STR(buf_str(&out),
              "{\"Profiles\":{\"a\":{\"Transition\":\"2025-01-02T03:04:05Z\","
              "\"Current\":\"operational\",\"Previous\":\"operational\"},"
              "\"b\":{\"Transition\":\"2025-01-02T03:04:05Z\",\"Current\":\"in-maintenance\","
              "\"Previous\":\"maintenance-required\"}},"
              "\"Notifications\":{\"mail\":\"2025-01-01T00:00:00Z\"}}");
}

TEST(node_data_print_refuses_a_time_go_would_refuse)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct node_data d;
    struct err err = { 0 };
    CHECK_EQ(node_data_parse(STR("{\"Notifications\":{\"x\":\"2026-01-01T00:00:00+24:00\"}}"), &a,
                             &d, &err),
             0);
    CHECK_EQ(node_data_print(&d, &out, &err), -ERR_INVALID);
}

/* Whatever is made and removed, the entries stay sorted and what is printed reads back. */
PROPERTY(node_data_prints_what_it_reads)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    CLEANUP(buf_done)
    struct buf again = { 0 };
    struct err err = { 0 };
    struct node_data d = { 0 };
    for (int i = 0; i < 30; i++) {
        struct str name = arena_printf(&a, "p<%u>", rng_below(rng, 12));
        struct node_data_profile *p = node_data_find_profile(&d, name);
        if (p != NULL && rng_chance(rng, 400)) {
            node_data_remove_profile(&d, p);
            CHECK(node_data_find_profile(&d, name) == NULL);
            continue;
        }
        p = node_data_make_profile(&d, &a, name);
        p->transition = timestamp_from_usec(rng_usec(rng, 0, DAYS(36500)));
        p->current = arena_printf(&a, "s\"%u", rng_below(rng, 3));
    }
    for (uint32_t i = 1; i < d.profile_count; i++) {
        CHECK(str_cmp(d.profiles[i - 1].name, d.profiles[i].name) < 0);
    }
    struct node_data read;
    CHECK_EQ(node_data_print(&d, &out, &err), 0);
    CHECK_EQ(node_data_parse(buf_str(&out), &a, &read, &err), 0);
    CHECK_EQ(node_data_print(&read, &again, &err), 0);
    CHECK_STR(buf_str(&out), buf_str(&again));
}
