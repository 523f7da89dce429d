#include "ledger/lease_grants.h"

#include "tests/check.h"

TEST(lease_grants_read_back_what_was_written)
{
    struct lease_grants l;
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    lease_grants_init(&l, 1);
    CHECK(lease_grants_put(&l, STR("n1"), STR("os"), 7));
    CHECK(lease_grants_put(&l, STR("n2"), STR("a\"b"), UINT64_C(9007199254740993)));
    CHECK(lease_grants_put(&l, STR("n1"), STR("fw"), 8));
    CHECK(l.dirty);
    lease_grants_print(&l, &text);
    CHECK_STR(buf_str(&text), "{\"n1\":{\"profile\":\"fw\",\"version\":8},"
                              "\"n2\":{\"profile\":\"a\\\"b\",\"version\":9007199254740993}}");
    lease_grants_clear(&l);
    CHECK_EQ(lease_grants_count(&l), 0);
    CHECK_EQ(lease_grants_parse(&l, buf_str(&text), &err), 0);
    CHECK_EQ(lease_grants_count(&l), 2);
    CHECK(!l.dirty);
    CHECK_EQ(lease_grants_find(&l, STR("n2"))->version, UINT64_C(9007199254740993));
    CHECK_STR(lease_grants_find(&l, STR("n1"))->owner, "fw");
    lease_grants_remove(&l, STR("n1"));
    lease_grants_remove(&l, STR("n1"));
    CHECK(l.dirty && lease_grants_find(&l, STR("n1")) == NULL);
    CHECK_EQ(lease_grants_parse(&l, STR(""), &err), 0);
    CHECK_EQ(lease_grants_count(&l), 0);
    lease_grants_done(&l);
}

TEST(lease_grants_say_what_cannot_be_read)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        { "[]", "grants: found no object" },
        { "{\"n\":{}}", "grants: 'n' has no version, want a number" },
        { "{\"n\":{\"version\":\"7\"}}", "grants: 'n' has no version, want a number" },
    };
    struct lease_grants l;
    lease_grants_init(&l, 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        CHECK_EQ(lease_grants_parse(&l, str_from(cases[i].text), &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].message);
    }
    lease_grants_done(&l);
}
