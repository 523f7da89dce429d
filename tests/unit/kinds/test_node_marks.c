#include "kinds/node_marks.h"

#include "kinds/keys.h"
#include "tests/check.h"

static struct str patch_of(const char *node, struct arena *memory, struct node_marks *ret)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf out = { 0 };
    CHECK_EQ(json_parse(str_from(node), 0, memory, &object, &err), 0);
    node_marks_find(object, ret);
    if (ret->n > 0) {
        node_marks_patch(ret, STR("7"), &out);
    }
    return arena_str(memory, buf_str(&out));
}

TEST(node_marks_takes_away_what_is_ours_and_nothing_else)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct node_marks marks;
    struct str patch = patch_of(
        "{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-state\":\"operational\","
        "\"cloud.sap/maintenance-profile\":\"p\",\"cloud.sap/esx-reboot-ok\":\"true\"},"
        "\"annotations\":{\"cloud.sap/maintenance-data\":\"{}\",\"example.com/a\":\"b\"}}}",
        &memory, &marks);
    CHECK_STR(patch, "{\"metadata\":{\"resourceVersion\":\"7\","
                     "\"labels\":{\"cloud.sap/maintenance-state\":null},"
                     "\"annotations\":{\"cloud.sap/maintenance-data\":null}}}");
    CHECK(patch_of("{\"metadata\":{\"labels\":{\"cloud.sap/delete-node\":\"true\"}},"
                   "\"spec\":{\"unschedulable\":true}}",
                   &memory, &marks)
              .n == 0);
    CHECK(!marks.lift && marks.stays == NULL);
}

TEST(node_marks_lifts_a_cordon_that_a_mark_names)
{
    static const struct {
        const char *annotation;
        bool lift;
        bool stays;
    } cases[] = {
        { "\"drydock.dev/cordoned-by\":\"profile\"", true, false },
        { "\"repairman.k8s.io/cordoned-by\":\"uid\"", true, false },
        { "\"drydock.dev/visit-cordon\":\"id\"", true, false },
        { "\"drydock.dev/kept-cordon\":\"uid\"", false, true },
        { "\"drydock.dev/deleting\":\"true\"", false, true },
        { "\"cloud.sap/esx-reboot-initiated\":\"true\"", true, false },
        { "\"cloud.sap/esx-reboot-initiated\":\"true\",\"drydock.dev/esx-cordon\":\"others\"",
          false, false },
        { "\"cloud.sap/maintenance-data\":\"{}\"", false, false },
    };
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node_marks marks;
        check_case((int64_t)i);
        struct str node = arena_printf(
            &memory, "{\"metadata\":{\"annotations\":{%s}},\"spec\":{\"unschedulable\":true}}",
            cases[i].annotation);
        struct str patch = patch_of(node.p, &memory, &marks);
        CHECK_EQ(marks.lift, cases[i].lift);
        CHECK_EQ(marks.stays != NULL, cases[i].stays);
        CHECK_EQ(str_ends(patch, STR(",\"spec\":{\"unschedulable\":null}}")), cases[i].lift);
        /* A mark of a cordon that somebody has lifted is only taken away. */
        node = arena_printf(&memory, "{\"metadata\":{\"annotations\":{%s}}}", cases[i].annotation);
        patch = patch_of(node.p, &memory, &marks);
        CHECK(patch.n > 0 && !marks.lift && marks.stays == NULL);
    }
    check_case(-1);
}
