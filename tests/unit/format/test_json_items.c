#include "format/json_items.h"
#include "tests/check.h"

TEST(json_items_yields_each_item_and_the_metadata)
{
    struct json_items s;
    struct err err = { 0 };
    struct str item;
    json_items_init(
        &s,
        STR("{\"kind\":\"L\",\"items\":[{\"a\":\"}]\"}, {\"b\":[]}],\"metadata\":{\"x\":1}}\n"));
    CHECK_EQ(json_items_next(&s, &item, &err), 1);
    CHECK_STR(item, "{\"a\":\"}]\"}");
    CHECK_EQ(json_items_next(&s, &item, &err), 1);
    CHECK_STR(item, "{\"b\":[]}");
    CHECK_EQ(json_items_next(&s, &item, &err), 0);
    CHECK_STR(s.metadata, "{\"x\":1}");
    CHECK_EQ(json_items_next(&s, &item, &err), 0);
}

TEST(json_items_takes_a_list_without_items)
{
    static const char *const lists[] = { "{}", "{\"items\":[]}", "{\"items\":null}",
                                         " {\"metadata\":{}} " };
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct json_items s;
        struct err err = { 0 };
        struct str item;
        json_items_init(&s, str_from(lists[i]));
        CHECK_EQ(json_items_next(&s, &item, &err), 0);
    }
}

TEST(json_items_says_where_a_text_is_no_list)
{
    static const char *const cases[][2] = {
        { "[]", "line 1, column 1 of the list: want '{'" },
        { "", "line 1, column 1 of the list: want '{'" },
        { "{\"items\" 1}", "line 1, column 10 of the list: want a member" },
        { "{items:1}", "line 1, column 2 of the list: want a member" },
        { "{\"items\":[{\"a\":\"x", "line 1, column 18 of the list: want a whole item" },
        { "{\"items\":[}]}", "line 1, column 12 of the list: want a whole item" },
        { "{\"a\":{", "line 1, column 7 of the list: want a value" },
        { "{\"a\":", "line 1, column 6 of the list: want a value" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct json_items s;
        struct err err = { 0 };
        struct str item;
        check_case((int64_t)i);
        json_items_init(&s, str_from(cases[i][0]));
        CHECK_EQ(json_items_next(&s, &item, &err), -ERR_PROTO);
        CHECK_STR(err.msg, cases[i][1]);
    }
    check_case(-1);
}

/* A cut list ends in an error, after the items that are whole. */
TEST(json_items_survives_every_cut)
{
    static const char text[] = "{\"kind\":\"L\\\"\",\"items\":[{\"a\":\"}]\\\\\"},[1,[2]],\"x\",5],"
                               "\"metadata\":{\"x\":1}}";
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        struct json_items s;
        struct str item;
        json_items_init(&s, arena_str(&a, (struct str){ .p = text, .n = n }));
        int items = 0;
        int r = json_items_next(&s, &item, &err);
        for (; r == 1; r = json_items_next(&s, &item, &err)) {
            items++;
        }
        CHECK_EQ(r, -ERR_PROTO);
        CHECK(items <= 4);
    }
}
