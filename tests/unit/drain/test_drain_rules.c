#include "drain/drain_rules.h"

#include "tests/check.h"

static void check_round(const char *text, const char *wanted)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct drain_rules drain_rules;
    struct err err = { 0 };
    CHECK_EQ(drain_rules_parse(str_from(text), &a, &drain_rules, &err), 0);
    drain_rules_print(&drain_rules, &out);
    CHECK_STR(buf_str(&out), wanted);
}

TEST(drain_rules_prints_what_it_reads)
{
    check_round("[]", "[]");
    check_round(" [ { \"behavior\" : \"Skip\", \"name\":\"a\" } ] ",
                "[{\"name\":\"a\",\"behavior\":\"Skip\"}]");
    check_round("[{\"name\":\"a\",\"behavior\":\"Drain\",\"order\":0}]",
                "[{\"name\":\"a\",\"behavior\":\"Drain\"}]");
    check_round("[{\"name\":\"a\",\"behavior\":\"Drain\",\"order\":-2147483648,\"pods\":[{"
                "\"selector\":\"x in (c,b)\",\"namespaceSelector\":\"!y\"},{}]}]",
                "[{\"name\":\"a\",\"behavior\":\"Drain\",\"order\":-2147483648,\"pods\":[{"
                "\"selector\":\"x in (b,c)\",\"namespaceSelector\":\"!y\"},{}]}]");
    check_round("{\"error\":\"rule 'b': no\"}", "{\"error\":\"rule 'b': no\"}");
}

TEST(drain_rules_gives_an_order_to_what_is_sent_away_alone)
{
    check_round("[{\"name\":\"a\",\"behavior\":\"WaitCompleted\",\"order\":7}]",
                "[{\"name\":\"a\",\"behavior\":\"WaitCompleted\"}]");
}

static const struct {
    const char *text;
    const char *wanted;
} bad[] = {
    { "", "line 1, column 1: found the end, want a value" },
    { "{}", "a list of at most 4096 rules is wanted" },
    { "{\"error\":\"\"}", "a list of at most 4096 rules is wanted" },
    { "[1]", "rule 1: behavior: '' is none of Drain, Skip and WaitCompleted" },
    { "[{\"behavior\":\"Skip\"},{\"behavior\":\"skip\"}]",
      "rule 2: behavior: 'skip' is none of Drain, Skip and WaitCompleted" },
    { "[{\"behavior\":\"Drain\",\"order\":2147483648}]",
      "rule 1: order: a whole number of 32 bits is wanted" },
    { "[{\"behavior\":\"Drain\",\"order\":\"1\"}]",
      "rule 1: order: a whole number of 32 bits is wanted" },
    { "[{\"behavior\":\"Drain\",\"pods\":{}}]",
      "rule 1: pods: a list of at most 32 selectors is wanted" },
    { "[{\"behavior\":\"Drain\",\"pods\":[\"a=b\"]}]", "rule 1: pods[0]: an object is wanted" },
    { "[{\"behavior\":\"Drain\",\"pods\":[{},{\"selector\":{}}]}]",
      "rule 1: pods[1].selector: a selector as text is wanted, not an object" },
    { "[{\"behavior\":\"Drain\",\"pods\":[{\"namespaceSelector\":\"a b\"}]}]",
      "rule 1: pods[0].namespaceSelector: unable to parse requirement: found 'b', expected: in, "
      "notin, =, ==, !=, gt, lt" },
};

TEST(drain_rules_says_what_it_cannot_read)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct drain_rules drain_rules;
        struct err err = { 0 };
        CHECK(drain_rules_parse(str_from(bad[i].text), &a, &drain_rules, &err) < 0);
        CHECK_STR(str_from(err.msg), bad[i].wanted);
    }
}

TEST(drain_rules_is_bounded_both_ways)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct err err = { 0 };
    struct drain_rules drain_rules = { 0 };
    struct drain_rule rules[1000] = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        rules[i].name = STR("a-name-that-is-somewhat-longer-than-most-names-of-rules-are");
    }
    drain_rules.rules = rules;
    drain_rules.n = ARRAY_LEN(rules);
    drain_rules_print(&drain_rules, &out);
    CHECK_STR(buf_str(&out), "{\"error\":\"the rules for this node are too many: they do not fit "
                             "into 65536 bytes\"}");
    CHECK_EQ(drain_rules_parse(buf_str(&out), &a, &drain_rules, &err), 0);
    CHECK(drain_rules.error.n > 0);
    buf_reset(&out);
    for (size_t i = 0; i <= DRAIN_RULES_BYTES_MAX; i++) {
        buf_add_char(&out, ' ');
    }
    CHECK_EQ(drain_rules_parse(buf_str(&out), &a, &drain_rules, &err), -ERR_LIMIT);
}

/* ── MachineDrainRules ─────────────────────────────────────────────────────────────────────── */

static int read_spec(struct arena *a, const char *spec, struct drain_rule *ret, struct err *err)
{
    const struct jval *v = NULL;
    CHECK_EQ(json_parse(str_from(spec), 0, a, &v, err), 0);
    return drain_rule_read(STR("r"), v, a, ret, err);
}

TEST(drain_rules_takes_over_what_a_rule_says)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct err err = { 0 };
    struct drain_rule rule;
    CHECK_EQ(read_spec(&a,
                       "{\"drain\":{\"behavior\":\"Drain\",\"order\":12},\"machines\":[{}],"
                       "\"pods\":[{\"selector\":{\"matchLabels\":{\"app\":\"db\"},"
                       "\"matchExpressions\":[{\"key\":\"tier\",\"operator\":\"NotIn\","
                       "\"values\":[\"z\",\"y\"]}]},\"namespaceSelector\":{}},"
                       "{\"selector\":null,\"namespaceSelector\":{\"matchExpressions\":[{"
                       "\"key\":\"t\",\"operator\":\"Exists\"}]}}]}",
                       &rule, &err),
             0);
    drain_rules_print(&(struct drain_rules){ .rules = &rule, .n = 1 }, &out);
    CHECK_STR(buf_str(&out),
              "[{\"name\":\"r\",\"behavior\":\"Drain\",\"order\":12,\"pods\":[{\"selector\":"
              "\"app=db,tier notin (y,z)\"},{\"namespaceSelector\":\"t\"}]}]");
}

TEST(drain_rules_refuses_a_rule_that_no_drain_could_follow)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct drain_rule rule;
    CHECK(read_spec(&a, "{}", &rule, &err) < 0);
    CHECK_STR(str_from(err.msg),
              "spec.drain: behavior: '' is none of Drain, Skip and WaitCompleted");
    err = (struct err){ 0 };
    CHECK(read_spec(&a,
                    "{\"drain\":{\"behavior\":\"Skip\"},\"pods\":[{\"selector\":{"
                    "\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Near\"}]}}]}",
                    &rule, &err) < 0);
    CHECK_STR(str_from(err.msg), "spec: pods[0].selector: \"Near\" is not a valid label selector "
                                 "operator");
}

/* ── who decides ───────────────────────────────────────────────────────────────────────────── */

TEST(drain_rules_lets_the_first_rule_that_matches_decide_alone)
{
    static const char text[] =
        "[{\"name\":\"10\",\"behavior\":\"Skip\",\"pods\":[{\"selector\":\"app=a\"},"
        "{\"selector\":\"app=b\",\"namespaceSelector\":\"team=x\"}]},"
        "{\"name\":\"20\",\"behavior\":\"Drain\",\"order\":3,\"pods\":[{\"selector\":\"app in "
        "(a,b)\"}]},"
        "{\"name\":\"30\",\"behavior\":\"WaitCompleted\",\"pods\":[{\"namespaceSelector\":"
        "\"team=y\"}]}]";
    static const struct {
        const char *app;
        const char *team;
        const char *wanted; /* NULL: nobody */
    } cases[] = {
        { "app=a\n", "team=x\n", "10" }, { "app=a\n", "team=y\n", "10" },
        { "app=b\n", "team=x\n", "10" }, { "app=b\n", "team=y\n", "20" },
        { "app=c\n", "team=y\n", "30" }, { "app=c\n", "team=x\n", NULL },
    };
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct drain_rules drain_rules;
    CHECK_EQ(drain_rules_parse(STR(text), &a, &drain_rules, &err), 0);
    CHECK(drain_rules.by_namespace);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct str pod = str_from(cases[i].app);
        const struct str namespace = str_from(cases[i].team);
        const struct drain_rule *rule = NULL;
        CHECK_EQ(drain_rules_find(&drain_rules, &pod, &namespace, &rule), 0);
        CHECK((rule == NULL) == (cases[i].wanted == NULL));
        if (rule != NULL) {
            CHECK_STR(rule->name, cases[i].wanted);
        }
        /* Without its namespace's labels a pod is known only to the rules in front. */
        int found = drain_rules_find(&drain_rules, &pod, /* namespace= */ NULL, &rule);
        CHECK_EQ(found, str_eq(pod, STR("app=a\n")) ? 0 : -ERR_NOTFOUND);
    }
}
