#include "bridge/drain_rule.h"

#include "base/utf8.h"
#include "tests/check.h"

static const struct drainrule *read_rule(struct arena *a, const char *name, const char *spec)
{
    struct err err = { 0 };
    const struct jval *object = NULL;
    void *ret = NULL;
    struct str text = arena_printf(a, "{\"metadata\":{\"name\":\"%s\"},\"spec\":%s}", name, spec);
    CHECK_EQ(json_parse(text, 0, a, &object, &err), 0);
    CHECK_EQ(drainrule_kind.project(NULL, object, a, &ret, &err), 0);
    return ret;
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

TEST(drainrule_keeps_what_is_wrong_with_a_rule)
{
    static const struct {
        const char *spec;
        const char *error; /* "" = nothing is */
    } cases[] = {
        { "{\"drain\":{\"behavior\":\"Skip\"}}", "" },
        { "{\"drain\":{\"behavior\":\"Drain\",\"order\":-3},\"machines\":null,\"pods\":null}", "" },
        { "{\"drain\":{\"behavior\":\"Drain\"},\"machines\":[]}", "" },
        { "{\"drain\":{\"behavior\":\"Drain\"},\"machines\":[{}]}", "" },
        { "{\"drain\":{\"behavior\":\"Drain\"},\"machines\":[{\"selector\":{},"
          "\"clusterSelector\":null}]}",
          "" },
        { "{\"drain\":{\"behavior\":\"Drain\"},\"machines\":{}}",
          "spec.machines: a list of at most 32 selectors is wanted" },
        { "{\"drain\":{\"behavior\":\"Drain\"},\"machines\":[{},7]}",
          "spec.machines[1]: an object is wanted" },
        { "{\"drain\":{\"behavior\":\"Evict\"}}",
          "spec.drain: behavior: 'Evict' is none of Drain, Skip and WaitCompleted" },
        { "{}", "spec.drain: behavior: '' is none of Drain, Skip and WaitCompleted" },
        { "null", "spec.drain: behavior: '' is none of Drain, Skip and WaitCompleted" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        CHECK_STR(read_rule(&a, "r", cases[i].spec)->error, cases[i].error);
    }
    check_case(-1);
}

/* What Kubernetes says of a selector is passed on, with the place. */
TEST(drainrule_names_the_selector_that_cannot_be_read)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    static const char *const specs[] = {
        "{\"drain\":{\"behavior\":\"Drain\"},\"machines\":[{},{\"selector\":{\"matchExpressions\":["
        "{\"key\":\"a\",\"operator\":\"In\"}]}}]}",
        "{\"drain\":{\"behavior\":\"Drain\"},\"machines\":[{\"clusterSelector\":{\"matchLabels\":"
        "{\"a b\":\"c\"}}}]}",
        "{\"drain\":{\"behavior\":\"Drain\"},\"pods\":[{\"selector\":{\"matchExpressions\":["
        "{\"key\":\"a\",\"operator\":\"Near\"}]}}]}",
    };
    static const char *const places[] = { "spec.machines[1].selector: ",
                                          "spec.machines[0].clusterSelector: ",
                                          "spec: pods[0].selector: " };
    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        const struct drainrule *rule = read_rule(&a, "r", specs[i]);
        CHECK(str_starts(rule->error, str_from(places[i])));
    }
}

/* Otherwise the server would keep another text than the one that was sent. */
TEST(drainrule_error_ends_with_a_whole_character)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf word = { 0 };
    for (int i = 0; i < 600; i++) {
        buf_add(&word, STR("\xc3\xa9"));
    }
    for (int shift = 0; shift < 2; shift++) {
        const struct drainrule *rule =
            read_rule(&a, "r",
                      arena_printf(&a, "{\"drain\":{\"behavior\":\"%s" STR_FMT "\"}}",
                                   shift == 0 ? "" : "x", STR_ARG(buf_str(&word)))
                          .p);
        CHECK(rule->error.n > 400);
        CHECK_EQ(utf8_find_invalid(rule->error), SIZE_MAX);
    }
}

TEST(drainrule_tells_what_decisions_use_from_the_rest)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    static const char plain[] = "{\"drain\":{\"behavior\":\"Drain\",\"order\":1}}";
    const struct drainrule *rule = read_rule(&a, "r", plain);
    static const char *const others[] = {
        "{\"drain\":{\"behavior\":\"Drain\",\"order\":2}}",
        "{\"drain\":{\"behavior\":\"Skip\"}}",
        "{\"drain\":{\"behavior\":\"Drain\",\"order\":1},\"machines\":[{}]}",
        "{\"drain\":{\"behavior\":\"Drain\",\"order\":1},\"machines\":[{\"selector\":"
        "{\"matchLabels\":{\"a\":\"b\"}}}]}",
        "{\"drain\":{\"behavior\":\"Drain\",\"order\":1},\"machines\":[{\"clusterSelector\":"
        "{\"matchLabels\":{\"a\":\"b\"}}}]}",
        "{\"drain\":{\"behavior\":\"Drain\",\"order\":1},\"pods\":[{\"selector\":{\"matchLabels\":"
        "{\"a\":\"b\"}}}]}",
        "{\"drain\":{\"behavior\":\"Evict\"}}",
    };
    CHECK(drainrule_kind.same(rule, read_rule(&a, "r", plain)));
    CHECK(!drainrule_kind.same(rule, read_rule(&a, "s", plain)));
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        check_case((int64_t)i);
        CHECK(!drainrule_kind.same(rule, read_rule(&a, "r", others[i])));
    }
    check_case(-1);
    CHECK(drainrule_kind.namespaced);
}

/* ── whom it means ─────────────────────────────────────────────────────────────────────────── */

#define RULE(machines) "{\"drain\":{\"behavior\":\"Skip\"},\"machines\":" machines "}"
#define LABELS(key, value) "{\"matchLabels\":{\"" key "\":\"" value "\"}}"

/* As Cluster API matches: an entry needs both selectors, entries are alternatives, what is absent
 * or empty matches everything, and an object without labels fails all but those. */
TEST(drainrule_means_machines_by_their_labels_and_their_clusters)
{
    static const struct {
        const char *spec;
        const char *machine;
        const char *cluster;
        bool means;
    } cases[] = {
        { "{\"drain\":{\"behavior\":\"Skip\"}}", "", "", true },
        { RULE("[]"), "", "", true },
        { RULE("null"), "", "", true },
        { RULE("[{}]"), "", "", true },
        { RULE("[{\"selector\":{}}]"), "", "", true },
        { RULE("[{\"selector\":{},\"clusterSelector\":{}}]"), "a=1\n", "", true },
        { RULE("[{\"selector\":" LABELS("os", "linux") "}]"), "os=linux\n", "", true },
        { RULE("[{\"selector\":" LABELS("os", "linux") "}]"), "a=1\nos=linux\nz=\n", "", true },
        { RULE("[{\"selector\":" LABELS("os", "linux") "}]"), "os=win\n", "os=linux\n", false },
        { RULE("[{\"selector\":" LABELS("os", "linux") "}]"), "", "os=linux\n", false },
        { RULE("[{\"clusterSelector\":" LABELS("env", "prod") "}]"), "", "env=prod\n", true },
        { RULE("[{\"clusterSelector\":" LABELS("env", "prod") "}]"), "env=prod\n", "", false },
        { RULE("[{\"selector\":" LABELS("os", "linux") ",\"clusterSelector\":" LABELS("env",
                                                                                      "prod") "}]"),
          "os=linux\n", "env=prod\n", true },
        { RULE("[{\"selector\":" LABELS("os", "linux") ",\"clusterSelector\":" LABELS("env",
                                                                                      "prod") "}]"),
          "os=linux\n", "env=test\n", false },
        { RULE("[{\"selector\":" LABELS("os", "linux") ",\"clusterSelector\":" LABELS("env",
                                                                                      "prod") "}]"),
          "os=win\n", "env=prod\n", false },
        { RULE("[{\"selector\":" LABELS("os", "linux") "},{\"clusterSelector\":" LABELS(
              "env", "prod") "}]"),
          "os=win\n", "env=prod\n", true },
        { RULE("[{\"selector\":" LABELS("os", "linux") "},{\"clusterSelector\":" LABELS(
              "env", "prod") "}]"),
          "os=win\n", "env=test\n", false },
        { RULE("[{\"selector\":{\"matchExpressions\":[{\"key\":\"os\",\"operator\":\"NotIn\","
               "\"values\":[\"win\"]}]}}]"),
          "", "", true },
        { RULE(
              "[{\"selector\":{\"matchExpressions\":[{\"key\":\"os\",\"operator\":\"Exists\"}]}}]"),
          "os=\n", "", true },
        { RULE("[{\"selector\":{\"matchExpressions\":[{\"key\":\"os\",\"operator\":\"DoesNotExist\""
               "}]}}]"),
          "os=\n", "", false },
        { RULE("[{\"selector\":{\"matchExpressions\":[{\"key\":\"o\",\"operator\":\"Exists\"}]}}]"),
          "os=\n", "", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        const struct drainrule *rule = read_rule(&a, "r", cases[i].spec);
        const struct drainrule_case whose = { .machine = str_from(cases[i].machine),
                                              .cluster = str_from(cases[i].cluster) };
        CHECK_EQ(rule->error.n, 0);
        CHECK_EQ(drainrule_matches(rule, &whose), cases[i].means);
    }
    check_case(-1);
}

/* ── books ─────────────────────────────────────────────────────────────────────────────────── */

static struct str print_drain_rules(const struct drain_rules *book, struct arena *a)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    drain_rules_print(book, &text);
    return arena_str(a, buf_str(&text));
}

TEST(drainrule_collect_has_the_rules_that_mean_the_machine)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct drainrule *rules[] = {
        read_rule(&a, "10-db",
                  "{\"drain\":{\"behavior\":\"Drain\",\"order\":5},\"pods\":[{\"selector\":" LABELS(
                      "app", "db") "}]}"),
        read_rule(&a, "20-windows", RULE("[{\"selector\":" LABELS("os", "win") "}]")),
        read_rule(
            &a, "30-team",
            "{\"drain\":{\"behavior\":\"WaitCompleted\"},\"machines\":[{"
            "\"clusterSelector\":" LABELS(
                "env", "prod") "}],\"pods\":[{\"namespaceSelector\":" LABELS("team", "a") "}]}"),
    };
    struct drainrule_case whose = { .machine = STR("os=linux\n"), .cluster = STR("env=prod\n") };
    struct drain_rules book;
    drainrule_collect(rules, 3, &whose, &a, &book);
    CHECK(book.by_namespace);
    CHECK_STR(print_drain_rules(&book, &a),
              "[{\"name\":\"10-db\",\"behavior\":\"Drain\",\"order\":5,\"pods\":[{\"selector\":"
              "\"app=db\"}]},{\"name\":\"30-team\",\"behavior\":\"WaitCompleted\",\"pods\":["
              "{\"namespaceSelector\":\"team=a\"}]}]");
    whose.cluster = STR("");
    drainrule_collect(rules, 3, &whose, &a, &book);
    CHECK_EQ(book.n, 1);
    CHECK(!book.by_namespace);
    drainrule_collect(rules, 0, &whose, &a, &book);
    CHECK_STR(print_drain_rules(&book, &a), "[]");
}

TEST(drainrule_collect_of_a_namespace_with_a_wrong_rule_is_its_error)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct drainrule *rules[] = {
        read_rule(&a, "a", "{\"drain\":{\"behavior\":\"Skip\"}}"),
        /* It means no Machine that there is, and ends all drains the same. */
        read_rule(&a, "b",
                  "{\"drain\":{\"behavior\":\"Evict\"},\"machines\":[{\"selector\":" LABELS(
                      "os", "none") "}]}"),
        read_rule(&a, "c", "{}"),
    };
    const struct drainrule_case whose = { 0 };
    struct drain_rules book;
    drainrule_collect(rules, 3, &whose, &a, &book);
    CHECK_STR(print_drain_rules(&book, &a),
              "{\"error\":\"MachineDrainRule 'b': spec.drain: behavior: 'Evict' is none of Drain, "
              "Skip and WaitCompleted\"}");
}
