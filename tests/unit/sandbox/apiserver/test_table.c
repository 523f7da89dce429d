#include "sandbox/apiserver/table.h"
#include "tests/check.h"

TEST(table_age_is_what_kubectl_prints)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    static const struct {
        usec_t span;
        const char *text;
    } cases[] = {
        { SECONDS(-5), "<invalid>" },
        { SECONDS(-1), "0s" },
        { SECONDS(0), "0s" },
        { SECONDS(119), "119s" },
        { SECONDS(120), "2m" },
        { SECONDS(599), "9m59s" },
        { SECONDS(600), "10m" },
        { SECONDS(3661), "61m" },
        { HOURS(3), "3h" },
        { HOURS(3) + MINUTES(5), "3h5m" },
        { HOURS(8) + MINUTES(5), "8h" },
        { HOURS(47), "47h" },
        { HOURS(48), "2d" },
        { HOURS(49), "2d1h" },
        { DAYS(8) + HOURS(1), "8d" },
        { DAYS(729), "729d" },
        { DAYS(730), "2y" },
        { DAYS(731), "2y1d" },
        { DAYS(2920), "8y" },
        { DAYS(3000), "8y" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_STR(table_age(&a, cases[i].span), cases[i].text);
    }
}

/* Ages count in seconds; the recording took one or two. */
static bool same_cell(const struct tree *got, const struct tree *want, struct str column)
{
    if (str_eq(column, STR("Age"))) {
        return got->kind == JSTR && got->text.n > 0 && want->kind == JSTR &&
               got->text.p[got->text.n - 1] == want->text.p[want->text.n - 1];
    }
    return tree_eq(got, want);
}

static void rows_check(struct arena *a, const struct tree *table, const struct tree *c)
{
    uint32_t i = 0;
    TREE_EACH (tree_get(c, STR("rows")), want) {
        const struct tree *row = tree_index(tree_get(table, STR("rows")), i++);
        const struct tree *cells = tree_get(row, STR("cells"));
        CHECK_EQ(cells->n, want->n);
        for (uint32_t j = 0; j < want->n; j++) {
            const struct tree *column = tree_index(tree_get(c, STR("columns")), j);
            const struct tree *got = tree_index(cells, j);
            if (!same_cell(got, tree_index(want, j), tree_text_at(column, "name"))) {
                check_fail(
                    __FILE__, __LINE__, STR_FMT ": " STR_FMT " is " STR_FMT ", want " STR_FMT,
                    STR_ARG(tree_text_at(c, "plural")), STR_ARG(tree_text_at(column, "name")),
                    STR_ARG(tree_json(a, got)), STR_ARG(tree_json(a, tree_index(want, j))));
            }
        }
        CHECK_STR(tree_text_at(tree_get(row, STR("object")), "kind"), "PartialObjectMetadata");
    }
}

/* Everything is the server's but the descriptions, which are there and are our own. */
static void columns_check(struct arena *a, const struct tree *have, const struct tree *want)
{
    struct tree *rest = tree_clone(a, have);
    TREE_EACH (rest, column) {
        CHECK(tree_text_at(column, "description").n > 0);
        CHECK(tree_del(column, STR("description")));
    }
    CHECK(tree_eq(rest, want));
}

TEST(table_shows_built_ins_as_the_recorded_server_does)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(kinds_done)
    struct kinds kinds;
    kinds_init(&kinds);
    struct err err = { 0 };
    struct tree *cases;
    CHECK_EQ(tree_parse(check_data("sandbox/table.json"), &a, &cases, &err), 0);
    CHECK(cases->n >= 18);
    TREE_EACH (cases, c) {
        int64_t now = 0;
        CHECK(tree_number(tree_get(c, STR("now")), &now));
        struct table_spec spec = {
            .kind =
                kinds_find(&kinds, tree_text_at(c, "group"), STR("v1"), tree_text_at(c, "plural")),
            .wall = SECONDS(now),
        };
        CHECK(spec.kind != NULL);
        struct tree *table = table_new(&a, &spec, NULL);
        columns_check(&a, tree_get(table, STR("columnDefinitions")), tree_get(c, STR("columns")));
        TREE_EACH (tree_get(c, STR("items")), item) {
            table_add(&a, &spec, table, item);
        }
        rows_check(&a, table, c);
    }
}

TEST(table_follows_the_columns_of_a_definition)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct tree *version;
    struct tree *object;
    CHECK_EQ(
        tree_parse(
            STR("{\"additionalPrinterColumns\":["
                "{\"name\":\"S\",\"type\":\"string\",\"jsonPath\":\".spec.a\"},"
                "{\"name\":\"L\",\"type\":\"string\",\"jsonPath\":\".metadata.labels.x\\\\.y/z\"},"
                "{\"name\":\"I\",\"type\":\"integer\",\"jsonPath\":\".spec.n\",\"priority\":1},"
                "{\"name\":\"B\",\"type\":\"boolean\",\"jsonPath\":\".spec.a\"},"
                "{\"name\":\"C\",\"type\":\"string\",\"description\":\"d\","
                "\"jsonPath\":\".status.conditions[?(@.type==\\\"R\\\")].status\"},"
                "{\"name\":\"M\",\"type\":\"string\",\"jsonPath\":\".spec.list\"},"
                "{\"name\":\"T\",\"type\":\"date\",\"jsonPath\":\".spec.t\"}]}"),
            &a, &version, &err),
        0);
    CHECK_EQ(tree_parse(STR("{\"metadata\":{\"name\":\"o\",\"labels\":{\"x.y/z\":\"l\"}},"
                            "\"spec\":{\"a\":\"s\",\"n\":2.5,\"list\":[1,2],"
                            "\"t\":\"1970-01-01T00:00:00Z\"},"
                            "\"status\":{\"conditions\":[{\"type\":\"Q\",\"status\":\"1\"},"
                            "{\"type\":\"R\",\"status\":\"2\"}]}}"),
                        &a, &object, &err),
             0);
    struct kind kind = { .flags = KIND_CUSTOM, .version_spec = version };
    struct table_spec spec = { .kind = &kind, .include = TABLE_INCLUDE_NONE, .wall = SECONDS(90) };
    struct tree *table = table_new(&a, &spec, NULL);
    table_add(&a, &spec, table, object);
    CHECK_STR(tree_json(&a, tree_index(tree_get(table, STR("rows")), 0)),
              "{\"cells\":[\"o\",\"s\",\"l\",2,null,\"2\",\"[1,2]\",\"90s\"],\"object\":null}");
    const struct tree *table_columns = tree_get(table, STR("columnDefinitions"));
    CHECK_STR(tree_text_at(tree_index(table_columns, 1), "description"), "what is at .spec.a");
    CHECK_STR(tree_text_at(tree_index(table_columns, 5), "description"), "d");
    spec.no_columns = true;
    CHECK_EQ(tree_kind(tree_get(table_new(&a, &spec, NULL), STR("columnDefinitions"))), JNULL);
}
