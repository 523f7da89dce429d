#include "core/activity.h"

#include "tests/check.h"

#define NOW SECONDS(1767323045)

static struct str text_of(const struct activity_note *n, struct arena *a)
{
    struct activity activity;
    activity_read(n, STR("esx"), &activity);
    return activity_text(&activity, NOW + SECONDS(60), a);
}

TEST(activity_tells_what_was_done_what_failed_and_what_comes_next)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(activity_note_done)
    struct activity_note n = { 0 };
    CHECK_STR(text_of(&n, &a), "nothing to do yet");
    activity_did(&n, NOW, "%u VMs are off", 2u);
    CHECK_STR(text_of(&n, &a), "last did 1m ago: 2 VMs are off");
    activity_waits(&n, NOW + SECONDS(90), "the host");
    CHECK(activity_failed(&n, NOW + SECONDS(30), STR("the server answered 503")));
    CHECK(!activity_failed(&n, NOW + SECONDS(30), STR("the server answered 503")));
    CHECK_EQ(n.failures, 2);
    CHECK_STR(text_of(&n, &a),
              "failed 30s ago: the server answered 503; waits for the host; next try in 30s (Fri "
              "03:05:35 UTC); last did 1m ago: 2 VMs are off");
    activity_did(&n, NOW + SECONDS(60), "all are on");
    activity_waits(&n, USEC_NEVER, "%s", "");
    CHECK_STR(text_of(&n, &a), "last did 0s ago: all are on");
    CHECK_EQ(n.failures, 0);
}

TEST(activity_is_json_without_what_is_unknown)
{
    CLEANUP(activity_note_done)
    struct activity_note n = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct json_writer w = json_writer_on(&out);
    struct activity activity;
    (void)activity_failed(&n, NOW, STR("no"));
    activity_read(&n, STR("esx"), &activity);
    activity_print_json(&activity, &w);
    CHECK_STR(buf_str(&out), "{\"name\":\"esx\",\"lastError\":\"no\",\"lastErrorAt\":"
                             "\"2026-01-02T03:04:05Z\"}");
}

TEST(activity_cuts_what_is_too_long_between_characters)
{
    CLEANUP(activity_note_done)
    struct activity_note n = { 0 };
    char text[ACTIVITY_TEXT_MAX + 10];
    struct activity activity;
    memset(text, 'x', sizeof(text));
    memcpy(text + ACTIVITY_TEXT_MAX - 1, "ü", 2);
    (void)activity_failed(&n, NOW, (struct str){ text, sizeof(text) });
    activity_read(&n, STR("esx"), &activity);
    CHECK_EQ(activity.error.n, ACTIVITY_TEXT_MAX - 1);
}
