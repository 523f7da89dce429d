#include "client/record.h"

#include "tests/check.h"

TEST(record_refuses_what_has_no_name)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    const struct jval *object = NULL;
    struct record r;
    CHECK_EQ(json_parse(STR("{\"metadata\":{\"name\":\"a\"}}"), 0, &a, &object, &err), 0);
    CHECK_EQ(record_read(object, &a, &r, &err), -ERR_PROTO);
    CHECK_EQ(json_parse(STR("[]"), 0, &a, &object, &err), 0);
    CHECK_EQ(record_read(object, &a, &r, &err), -ERR_PROTO);
}

TEST(record_changes_carry_version_and_uid)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    const struct record r = { .name = STR("a"), .uid = STR("u"), .version = STR("7") };
    record_print_change(&r, &(struct record_change){ .state = RECORD_COMPLETED }, &out);
    CHECK_STR(buf_str(&out), "{\"metadata\":{\"resourceVersion\":\"7\",\"uid\":\"u\"},"
                             "\"spec\":{\"state\":\"Completed\"}}");
    buf_reset(&out);
    record_print_change(
        &r, &(struct record_change){ .state = RECORD_COMPLETED, .exit_code = STR("3") }, &out);
    CHECK_STR(buf_str(&out), "{\"metadata\":{\"resourceVersion\":\"7\",\"uid\":\"u\","
                             "\"annotations\":{\"drydock.dev/exit-code\":\"3\"}},"
                             "\"spec\":{\"state\":\"Completed\"}}");
}

TEST(record_targets_have_words)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct record_target node = { .type = STR("node"), .name = STR("n1") };
    const struct record_target web = { .type = STR("deployment"),
                                       .namespace = STR("shop"),
                                       .name = STR("web") };
    CHECK_STR(record_target_text(&node, &a), "node n1");
    CHECK_STR(record_target_text(&web, &a), "deployment shop/web");
}
