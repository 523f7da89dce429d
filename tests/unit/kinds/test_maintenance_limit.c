#include "kinds/maintenance_limit.h"

#include "tests/check.h"

static const struct limit *read(struct arena *a, const char *name, const char *spec)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    struct str text =
        arena_printf(a, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"generation\":3}%s%s}", name,
                     spec[0] == '\0' ? "" : ",\"spec\":", spec);
    CHECK_EQ(json_parse(text, 0, a, &object, &err), 0);
    struct limit *l = ARENA_NEW(a, struct limit);
    limit_parse(object, a, l);
    return l;
}

TEST(limit_says_why_it_is_not_accepted)
{
    static const struct {
        const char *name;
        const char *spec;
        const char *reason;
        const char *problem;
    } cases[] = {
        { "foo", "", "UnsupportedType", "unsupported maintenance type" },
        { "", "{\"limit\":5}", "UnsupportedType", "unsupported maintenance type" },
        { "x", "{\"type\":\"pod\"}", "UnsupportedType", "unsupported maintenance type" },
        { "node", "{\"limit\":101}", "InvalidSpec", "limit: want a whole number up to 100" },
        { "node", "{\"limit\":-1}", "InvalidSpec", "limit: want a whole number up to 100" },
        { "node", "{\"limit\":\"5\"}", "InvalidSpec", "limit: want a whole number up to 100" },
        { "node", "{\"scope\":\"Exclusive\"}", "InvalidSpec",
          "an Exclusive limit needs a selector" },
        { "node", "{\"selector\":{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Like\"}]}}",
          "InvalidSelector", "\"Like\" is not a valid label selector operator" },
        { "node", "", "", "" },
        { "NODE", "", "", "" },
        { "x", "{\"type\":\"deployment\"}", "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = { 0 };
        check_case((int64_t)i);
        const struct limit *l = read(&a, cases[i].name, cases[i].spec);
        CHECK_STR(l->reason, cases[i].reason);
        CHECK_STR(l->problem, cases[i].problem);
        CHECK(l->type_known == !str_eq(l->reason, STR("UnsupportedType")));
        arena_done(&a);
    }
    check_case(-1);
}

TEST(limit_reads_its_reservations_from_the_status)
{
    struct arena a = { 0 };
    const struct jval *object = NULL;
    struct err err = { 0 };
    struct limit l;
    CHECK_EQ(json_parse(STR("{\"metadata\":{\"name\":\"node\"},\"status\":{\"limit\":3,"
                            "\"ledgerInitTime\":\"2026-01-02T03:04:05Z\","
                            "\"lastGrantTime\":\"2026-01-02T03:04:06Z\",\"lastReleaseTime\":7,"
                            "\"reservations\":[{\"requestUID\":\"u1\",\"target\":\"n\"}]}}"),
                        0, &a, &object, &err),
             0);
    limit_parse(object, &a, &l);
    CHECK_EQ(l.ledger_init_time, SECONDS(1767323045));
    CHECK_EQ(l.options.ledger_init_time, SECONDS(1767323045));
    CHECK_EQ(l.last_grant, SECONDS(1767323046));
    CHECK_EQ(l.last_release, USEC_NEVER);
    CHECK_EQ(l.reservations.n, 1);
    CHECK(str_starts(l.status, STR("{\"limit\":3,")));
    arena_done(&a);
}
