#include "ledger/lease_grants.h"

#include "tests/check.h"

TEST(ledger_reads_back_what_it_wrote)
{
    struct ledger l;
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    ledger_init(&l, 1);
    CHECK(ledger_put(&l, STR("n1"), STR("os"), 7));
    CHECK(ledger_put(&l, STR("n2"), STR("a\"b"), UINT64_C(9007199254740993)));
    CHECK(ledger_put(&l, STR("n1"), STR("fw"), 8));
    CHECK(l.dirty);
    ledger_print(&l, &text);
    CHECK_STR(buf_str(&text), "{\"n1\":{\"profile\":\"fw\",\"version\":8},"
                              "\"n2\":{\"profile\":\"a\\\"b\",\"version\":9007199254740993}}");
    ledger_clear(&l);
    CHECK_EQ(ledger_count(&l), 0);
    CHECK_EQ(ledger_parse(&l, buf_str(&text), &err), 0);
    CHECK_EQ(ledger_count(&l), 2);
    CHECK(!l.dirty);
    CHECK_EQ(ledger_find(&l, STR("n2"))->version, UINT64_C(9007199254740993));
    CHECK_STR(ledger_find(&l, STR("n1"))->owner, "fw");
    ledger_strike(&l, STR("n1"));
    ledger_strike(&l, STR("n1"));
    CHECK(l.dirty && ledger_find(&l, STR("n1")) == NULL);
    CHECK_EQ(ledger_parse(&l, STR(""), &err), 0);
    CHECK_EQ(ledger_count(&l), 0);
    ledger_done(&l);
}

TEST(ledger_says_what_it_cannot_read)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        { "[]", "grants: found no object" },
        { "{\"n\":{}}", "grants: 'n' has no version, want a number" },
        { "{\"n\":{\"version\":\"7\"}}", "grants: 'n' has no version, want a number" },
    };
    struct ledger l;
    ledger_init(&l, 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        CHECK_EQ(ledger_parse(&l, str_from(cases[i].text), &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].message);
    }
    ledger_done(&l);
}
