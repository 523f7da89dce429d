#include "profile/alert_record.h"

#include "tests/check.h"

TEST(alert_record_reads_back_what_was_written)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct err err = { 0 };
    static const struct str told[] = { STR_INIT("n1"), STR_INIT("n2") };
    static const struct alert_record_message unsent[] = {
        { .instance = STR_INIT("hook"),
          .node = STR_INIT("n3"),
          .state = STR_INIT("requestRejected"),
          .request = STR_INIT("mr-1"),
          .reason = STR_INIT("a \"reason\""),
          .since = SECONDS(1767323045),
          .first = SECONDS(1767323046) },
    };
    const struct alert_record written = {
        .told = told, .told_n = 2, .unsent = unsent, .unsent_n = 1
    };
    struct alert_record read;
    alert_record_print(&written, &text);
    CHECK_STR(buf_str(&text),
              "{\"told\":[\"n1\",\"n2\"],\"unsent\":[{\"instance\":\"hook\",\"node\":\"n3\","
              "\"state\":\"requestRejected\",\"request\":\"mr-1\",\"reason\":\"a "
              "\\\"reason\\\"\",\"since\":\"2026-01-02T03:04:05Z\","
              "\"first\":\"2026-01-02T03:04:06Z\"}]}");
    CHECK_EQ(alert_record_parse(buf_str(&text), &memory, &read, &err), 0);
    CHECK_EQ(read.told_n, 2);
    CHECK_STR(read.told[1], "n2");
    CHECK_EQ(read.unsent_n, 1);
    CHECK_STR(read.unsent[0].reason, "a \"reason\"");
    CHECK_EQ(read.unsent[0].since, SECONDS(1767323045));
    CHECK_EQ(read.unsent[0].first, SECONDS(1767323046));
}

TEST(alert_record_of_nothing_is_no_text)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct err err = { 0 };
    struct alert_record read;
    alert_record_print(&(struct alert_record){ 0 }, &text);
    CHECK_EQ(text.n, 0);
    CHECK_EQ(alert_record_parse(STR(""), &memory, &read, &err), 0);
    CHECK_EQ(read.told_n + read.unsent_n, 0);
}

TEST(alert_record_keeps_the_newest_and_shortens_reasons)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    CLEANUP(buf_done)
    struct buf reason = { 0 };
    struct err err = { 0 };
    struct alert_record_message unsent[ALERT_RECORD_UNSENT_MAX + 6];
    while (reason.n < (size_t)2 * ALERT_RECORD_REASON_MAX) {
        buf_add(&reason, STR("a\xc3\xa4"));
    }
    for (uint32_t i = 0; i < ARRAY_LEN(unsent); i++) {
        unsent[i] = (struct alert_record_message){ .instance = STR("hook"),
                                                   .state = STR("s"),
                                                   .request = arena_printf(&memory, "mr-%u", i),
                                                   .reason = buf_str(&reason),
                                                   .since = 0,
                                                   .first = 0 };
    }
    struct alert_record read;
    alert_record_print(&(struct alert_record){ .unsent = unsent, .unsent_n = ARRAY_LEN(unsent) },
                       &text);
    CHECK_EQ(alert_record_parse(buf_str(&text), &memory, &read, &err), 0);
    CHECK_EQ(read.unsent_n, ALERT_RECORD_UNSENT_MAX);
    CHECK_STR(read.unsent[0].request, "mr-6");
    CHECK(read.unsent[0].reason.n <= ALERT_RECORD_REASON_MAX);
    CHECK(read.unsent[0].reason.n > ALERT_RECORD_REASON_MAX - 3);
}

TEST(alert_record_leaves_out_what_it_cannot_use)
{
    static const char *const refused[] = { "[]", "{", "\"x\"", "7" };
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct alert_record read;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        check_case((int64_t)i);
        CHECK(alert_record_parse(str_from(refused[i]), &memory, &read, &err) < 0);
        CHECK_EQ(read.told_n + read.unsent_n, 0);
    }
    check_case(-1);
    CHECK_EQ(alert_record_parse(STR("{\"told\":[1,\"\",null],\"unsent\":[{},7,{\"instance\":\"a\","
                                    "\"state\":\"s\",\"since\":\"yesterday\"}]}"),
                                &memory, &read, &err),
             0);
    CHECK_EQ(read.told_n + read.unsent_n, 0);
}
