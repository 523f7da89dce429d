#include "format/jsonpath.h"

#include "tests/check.h"

#define OBJECT                                                                                     \
    "{\"spec\":{\"replicas\":3},\"list\":[\"a\",\"b\"],\"metadata\":{\"labels\":{\"x.y/"           \
    "z\":\"v\"}},"                                                                                 \
    "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"

TEST(jsonpath_leads_to_one_value)
{
    static const struct {
        const char *path;
        const char *value; /* NULL: nowhere */
        bool valid;
    } cases[] = {
        { ".spec.replicas", "3", true },
        { ".list[1]", "b", true },
        { ".list[7]", NULL, true },
        { ".metadata.labels.x\\.y/z", "v", true },
        { ".metadata.labels['x.y/z']", "v", true },
        { ".status.conditions[?(@.type==\"Ready\")].status", "True", true },
        { ".status.conditions[?(@.type==\"Other\")].status", NULL, true },
        { ".nothing.here", NULL, true },
        { "spec", NULL, false },
        { "", NULL, false },
        { ".list[1", NULL, false },
        { ".status.conditions[?(type=Ready)]", NULL, false },
    };
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct tree *object = NULL;
    struct err err = { 0 };
    CHECK_EQ(tree_parse(STR(OBJECT), &memory, &object, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        const struct tree *found = jsonpath_find(object, str_from(cases[i].path));
        CHECK_EQ(found != NULL, cases[i].value != NULL);
        if (found != NULL) {
            CHECK_STR(found->text, cases[i].value);
        }
        CHECK_EQ(jsonpath_valid(str_from(cases[i].path)), cases[i].valid);
    }
    check_case(-1);
}

TEST(jsonpath_inner_takes_the_braces_of_kubectl_away)
{
    CHECK_STR(jsonpath_inner(STR("{.a.b}")), ".a.b");
    CHECK_STR(jsonpath_inner(STR(" { .a } ")), ".a");
    CHECK_STR(jsonpath_inner(STR(".a")), ".a");
    CHECK_STR(jsonpath_inner(STR("{")), "{");
}
