#include "profile/engine.h"

#include "tests/check.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)

#define FRESH                                                                                      \
    "{\"Profiles\":{\"default\":{\"Transition\":\"2026-01-02T03:04:05Z\","                         \
    "\"Current\":\"operational\",\"Previous\":\"operational\"}},\"Notifications\":{}}"
#define ENTRY(name, current, previous)                                                             \
    "\"" name "\":{\"Transition\":\"2025-05-05T05:05:05Z\",\"Current\":\"" current                 \
    "\",\"Previous\":\"" previous "\"}"
#define DATA_OF(entries) "{\"Profiles\":{" entries "},\"Notifications\":{}}"

TEST(engine_decides_what_a_node_is_to_carry)
{
    static const struct {
        const char *profiles; /* NULL = no such label */
        const char *state;
        const char *data;
        const char *want_state; /* NULL = leave it */
        const char *want_data;
    } cases[] = {
        { NULL, NULL, NULL, "operational", FRESH },
        { "", NULL, "", "operational", FRESH },
        { "default", "operational", FRESH, NULL, NULL },
        { NULL, "in-maintenance", FRESH, "operational", NULL },
        /* What nobody configured is neither made nor counted; its entry stays frozen. */
        { "flatcar", NULL, NULL, "operational", DATA_OF("") },
        { "flatcar", "operational", DATA_OF(ENTRY("flatcar", "in-maintenance", "x")), NULL, NULL },
        { "flatcar--default", NULL, DATA_OF(ENTRY("flatcar", "in-maintenance", "x")), "operational",
          "{\"Profiles\":{\"default\":{\"Transition\":\"2026-01-02T03:04:05Z\","
          "\"Current\":\"operational\",\"Previous\":\"operational\"}," ENTRY(
              "flatcar", "in-maintenance", "x") "},\"Notifications\":{}}" },
        /* A name that left the label is forgotten. */
        { NULL, "operational",
          DATA_OF(
              ENTRY("a", "in-maintenance", "x") "," ENTRY("default", "operational", "operational")),
          NULL, DATA_OF(ENTRY("default", "operational", "operational")) },
        { NULL, NULL, DATA_OF(ENTRY("default", "in-maintenance", "in-maintenance")),
          "in-maintenance", NULL },
        { NULL, NULL, DATA_OF(ENTRY("default", "maintenance-required", "operational")),
          "maintenance-required",
          DATA_OF(ENTRY("default", "maintenance-required", "maintenance-required")) },
        /* Spaces that Go would not write are written away. */
        { NULL, "operational", " " FRESH " ", NULL, FRESH },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        struct engine_effect effect;
        const struct engine_node node = {
            .profile_label = str_from(cases[i].profiles),
            .state_label = str_from(cases[i].state),
            .data = str_from(cases[i].data),
        };
        check_case((int64_t)i);
        CHECK_EQ(engine_decide(&engine_default, &node, WALL, &a, &effect, &err), 0);
        CHECK_EQ(effect.set_state, cases[i].want_state != NULL);
        CHECK_EQ(effect.set_data, cases[i].want_data != NULL);
        if (effect.set_state) {
            CHECK_STR(effect.state, cases[i].want_state);
        }
        if (effect.set_data) {
            CHECK_STR(effect.data, cases[i].want_data);
        }
        CHECK_EQ(effect.again, USEC_NEVER);
    }
}

TEST(engine_leaves_a_node_alone_that_it_does_not_understand)
{
    static const struct {
        const char *data;
        const char *message;
    } cases[] = {
        { "{\"Extra\":1}",
          "failed to parse json value in data annotation: json: unknown field \"Extra\"" },
        { "{\"Profiles\":{\"default\":null}}", "could not find profile 'default' in state data" },
        { DATA_OF(ENTRY("default", "x", "y")),
          "failed to create internal state from unknown label value: node state \"x\" is not "
          "known" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct err err = { 0 };
        struct engine_effect effect;
        const struct engine_node node = { .data = str_from(cases[i].data) };
        CHECK_EQ(engine_decide(&engine_default, &node, WALL, &a, &effect, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].message);
    }
}
