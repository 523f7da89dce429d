#include "format/label_pack.h"
#include "tests/check.h"

static struct str packed(const char *text, struct arena *a)
{
    const struct jval *labels = NULL;
    struct err err = { 0 };
    CHECK_EQ(json_parse(str_from(text), 0, a, &labels, &err), 0);
    return label_pack_keep(labels, a);
}

TEST(label_pack_keeps_what_a_selector_can_ask_for)
{
    static const struct {
        const char *text;
        const char *packed;
    } cases[] = {
        { "{}", "" },
        { "null", "" },
        { "[\"a\"]", "" },
        { "{\"a\":\"1\",\"x.io/b\":\"\"}", "a=1\nx.io/b=\n" },
        { "{\"a\":7,\"b\":null,\"c\":\"1\"}", "c=1\n" },
        { "{\"\":\"1\",\"a=b\":\"1\",\"a\\nb\":\"1\",\"c\":\"1\\nd=2\"}", "" },
        { "{\"a\":\"0123456789012345678901234567890123456789012345678901234567890123\"}", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        CHECK_STR(packed(cases[i].text, &a), cases[i].packed);
    }
    check_case(-1);
}

TEST(label_pack_is_found_by_its_whole_key)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct str text = packed("{\"a\":\"1\",\"ab\":\"\",\"x.io/b\":\"c=d\"}", &a);
    struct str value = STR("untouched");
    CHECK(label_pack_find(&text, STR("a"), &value));
    CHECK_STR(value, "1");
    CHECK(label_pack_find(&text, STR("ab"), &value));
    CHECK_STR(value, "");
    CHECK(label_pack_find(&text, STR("x.io/b"), &value));
    CHECK_STR(value, "c=d");
    CHECK(!label_pack_find(&text, STR("b"), &value));
    CHECK(!label_pack_find(&text, STR(""), &value));
    CHECK(!label_pack_find(&text, STR("1"), &value));
    struct str none = STR_NONE;
    CHECK(!label_pack_find(&none, STR("a"), &value));
    CHECK_STR(value, "c=d");
}
