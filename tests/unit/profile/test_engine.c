#include "tests/engine_fixture.h"

#define PLAIN "intervals: {requeue: 30s}\n"

#define FRESH                                                                                      \
    "{\"Profiles\":{\"default\":{\"Transition\":\"2026-01-02T03:04:05Z\","                         \
    "\"Current\":\"operational\",\"Previous\":\"operational\"}},\"Notifications\":{}}"
#define ENTRY(name, current, previous)                                                             \
    "\"" name "\":{\"Transition\":\"2025-05-05T05:05:05Z\",\"Current\":\"" current                 \
    "\",\"Previous\":\"" previous "\"}"
#define DATA_OF(entries) "{\"Profiles\":{" entries "},\"Notifications\":{}}"

/* NULL: it has none. */
static void put(struct deck *d, const char *name, const char *profiles, const char *state,
                const char *data)
{
    CLEANUP(buf_done)
    struct buf more = { 0 };
    struct json_writer w = json_writer_on(&more);
    jw_obj(&w);
    jw_key(&w, STR("labels"));
    jw_obj(&w);
    if (profiles != NULL) {
        jw_pair(&w, "cloud.sap/maintenance-profile", str_from(profiles));
    }
    if (state != NULL) {
        jw_pair(&w, "cloud.sap/maintenance-state", str_from(state));
    }
    jw_obj_end(&w);
    jw_key(&w, STR("annotations"));
    jw_obj(&w);
    if (data != NULL) {
        jw_pair(&w, "cloud.sap/maintenance-data", str_from(data));
    }
    jw_obj_end(&w);
    jw_obj_end(&w);
    struct str text = buf_str(&more);
    text = str_sub(text, 1, text.n - 2); /* without its braces */
    deck_node(d, name, arena_printf(&d->a, "," STR_FMT, STR_ARG(text)).p, "");
}

static const struct edit *find_edit(const struct engine_effect *effect, enum edit_kind kind,
                                    struct str key)
{
    for (uint32_t i = 0; i < effect->subject.edit_n; i++) {
        const struct edit *e = &effect->subject.edits[i];
        if (e->kind == kind && str_eq(e->key, key)) {
            return e;
        }
    }
    return NULL;
}

/* NULL: there is none. */
static void check_edit(const struct engine_effect *effect, enum edit_kind kind, struct str key,
                       const char *want)
{
    const struct edit *e = find_edit(effect, kind, key);
    CHECK_EQ(e != NULL, want != NULL);
    if (e != NULL && want != NULL) {
        CHECK_STR(e->value, want);
    }
}

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
        struct deck d;
        struct engine_effect effect;
        struct err err = { 0 };
        check_case((int64_t)i);
        deck_begin(&d, PLAIN, NULL);
        put(&d, "n", cases[i].profiles, cases[i].state, cases[i].data);
        struct engine_input in = deck_input(&d, "n");
        CHECK_EQ(engine_decide(&in, &d.a, &effect, &err), 0);
        check_edit(&effect, EDIT_LABEL, LABEL_STATE, cases[i].want_state);
        check_edit(&effect, EDIT_ANNOTATION, DATA_ANNOTATION, cases[i].want_data);
        CHECK_EQ(effect.again, USEC_NEVER);
        deck_end(&d);
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
        { DATA_OF(ENTRY("default", "x", "y")),
          "failed to create internal state from unknown label value: node state \"x\" is not "
          "known" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct deck d;
        struct engine_effect effect;
        struct err err = { 0 };
        deck_begin(&d, PLAIN, NULL);
        put(&d, "n", NULL, NULL, cases[i].data);
        struct engine_input in = deck_input(&d, "n");
        CHECK_EQ(engine_decide(&in, &d.a, &effect, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].message);
        deck_end(&d);
    }
}

#define CYCLE                                                                                      \
    "intervals: {requeue: 30s}\n"                                                                  \
    "instances:\n"                                                                                 \
    "  check:\n"                                                                                   \
    "  - {type: hasLabel, name: needed, config: {key: update, value: needed}}\n"                   \
    "  - {type: hasLabel, name: approved, config: {key: approved}}\n"                              \
    "  - {type: hasLabel, name: done, config: {key: update, value: done}}\n"                       \
    "  - {type: maxMaintenance, name: room, config: {max: 1}}\n"                                   \
    "  trigger:\n"                                                                                 \
    "  - {type: alterLabel, name: take_approval, config: {key: approved, remove: true}}\n"         \
    "  - {type: alterLabel, name: go, config: {key: go, value: 'yes'}}\n"                          \
    "  - {type: alterLabel, name: stop, config: {key: go, remove: true}}\n"                        \
    "  - {type: eviction, name: cordon, config: {action: cordon}}\n"                               \
    "  - {type: eviction, name: drain, config: {action: drain}}\n"                                 \
    "  - {type: eviction, name: uncordon, config: {action: uncordon}}\n"                           \
    "profiles:\n"                                                                                  \
    "- name: os\n"                                                                                 \
    "  operational:\n"                                                                             \
    "    transitions: [{check: needed, next: maintenance-required}]\n"                             \
    "  maintenance-required:\n"                                                                    \
    "    transitions:\n"                                                                           \
    "    - {check: approved && room, next: in-maintenance, trigger: take_approval && cordon}\n"    \
    "  in-maintenance:\n"                                                                          \
    "    enter: go\n"                                                                              \
    "    transitions: [{check: done, next: operational, trigger: stop && uncordon}]\n"             \
    "- name: fw\n"                                                                                 \
    "  operational:\n"                                                                             \
    "    transitions: [{check: needed, next: maintenance-required}]\n"                             \
    "  maintenance-required:\n"                                                                    \
    "    transitions: [{check: approved, next: in-maintenance, trigger: take_approval}]\n"         \
    "- name: drained\n"                                                                            \
    "  operational:\n"                                                                             \
    "    transitions: [{check: needed, next: maintenance-required}]\n"                             \
    "  maintenance-required:\n"                                                                    \
    "    transitions: [{check: approved && room, next: in-maintenance, trigger: drain && go}]\n"

static const struct engine_progress idle = { 0 };

static struct str state_of(const struct deck *d, const char *name)
{
    return node_label(deck_find(d, name), LABEL_STATE);
}

TEST(engine_makes_a_full_cycle_in_three_patches)
{
    struct deck d;
    struct engine_effect effect;
    const struct engine_progress granted = { .granted = STR("os") };
    deck_begin(&d, CYCLE, NULL);
    put(&d, "n", "os", NULL, NULL);
    CHECK_EQ(deck_settle(&d, "n", idle, &effect), 1); /* what every node gets */
    deck_label(&d, "n", "update", "needed");
    CHECK_EQ(deck_settle(&d, "n", idle, &effect), 1);
    CHECK_STR(state_of(&d, "n"), "maintenance-required");
    CHECK_EQ(effect.needs, 0);
    deck_label(&d, "n", "approved", "true");
    CHECK_EQ(deck_settle(&d, "n", idle, &effect), 0);
    CHECK_EQ(effect.needs, ENGINE_GRANT);
    CHECK_EQ(deck_settle(&d, "n", granted, &effect), 1);
    CHECK_STR(state_of(&d, "n"), "in-maintenance");
    CHECK(deck_find(&d, "n")->unschedulable);
    CHECK(node_label(deck_find(&d, "n"), STR("approved")).p == NULL);
    CHECK_STR(node_label(deck_find(&d, "n"), STR("go")), "yes"); /* entered in the same patch */
    CHECK_STR(node_annotation(deck_find(&d, "n"), SUBJECT_CORDON_MARK), "os");
    deck_label(&d, "n", "update", "done");
    CHECK_EQ(deck_settle(&d, "n", idle, &effect), 1);
    CHECK_STR(state_of(&d, "n"), "operational");
    CHECK(!deck_find(&d, "n")->unschedulable);
    CHECK(node_annotation(deck_find(&d, "n"), SUBJECT_CORDON_MARK).p == NULL);
    CHECK(node_label(deck_find(&d, "n"), STR("go")).p == NULL);
    deck_end(&d);
}

TEST(engine_lets_one_profile_of_a_node_into_maintenance)
{
    struct deck d;
    struct engine_effect effect;
    deck_begin(&d, CYCLE, NULL);
    put(&d, "n", "os--fw", NULL, NULL);
    deck_label(&d, "n", "update", "needed");
    deck_label(&d, "n", "approved", "true");
    (void)deck_settle(&d, "n", idle, &effect); /* patches are not counted here */
    CHECK_EQ(effect.needs, ENGINE_GRANT);
    CHECK_EQ(effect.asker, 0);
    CHECK_STR(effect.profiles[1].transitions[0].held,
              "another profile of the node asks for maintenance first");
    (void)deck_settle(&d, "n", (struct engine_progress){ .granted = STR("os") }, &effect);
    CHECK_EQ(effect.profiles[0].state, LABEL_STATE_MAINTENANCE);
    /* The approval is used up, so the second profile has none. */
    CHECK_EQ(effect.profiles[1].state, LABEL_STATE_REQUIRED);
    CHECK(!effect.profiles[1].transitions[0].chain_passed);
    deck_label(&d, "n", "approved", "true");
    (void)deck_settle(&d, "n", idle, &effect);
    CHECK_EQ(effect.profiles[1].state, LABEL_STATE_REQUIRED);
    CHECK_STR(effect.profiles[1].transitions[0].held,
              "another profile of the node is in maintenance");
    deck_end(&d);
}

TEST(engine_waits_for_room_and_says_so)
{
    struct deck d;
    struct engine_effect effect;
    deck_begin(&d, CYCLE, NULL);
    put(&d, "a", NULL, "in-maintenance",
        DATA_OF(ENTRY("default", "in-maintenance", "in-maintenance")));
    put(&d, "n", "os", NULL, NULL);
    deck_label(&d, "n", "update", "needed");
    (void)deck_settle(&d, "n", idle, &effect);
    CHECK_EQ(effect.waits, 0); /* it has no approval: room would not help */
    deck_label(&d, "n", "approved", "true");
    (void)deck_settle(&d, "n", idle, &effect);
    CHECK_EQ(effect.needs, 0);
    CHECK(effect.waits != 0);
    CHECK_EQ(effect.waits_since, d.wall);
    deck_label(&d, "a", "cloud.sap/maintenance-state", "operational");
    (void)deck_settle(&d, "n", idle, &effect);
    CHECK_EQ(effect.needs, ENGINE_GRANT);
    deck_end(&d);
}

TEST(engine_cordons_first_and_moves_when_the_node_is_drained)
{
    struct deck d;
    struct engine_effect effect;
    struct engine_progress progress = { .granted = STR("drained") };
    deck_begin(&d, CYCLE, NULL);
    put(&d, "n", "drained", NULL, NULL);
    deck_label(&d, "n", "update", "needed");
    deck_label(&d, "n", "approved", "true");
    (void)deck_settle(&d, "n", idle, &effect);
    CHECK(!deck_find(&d, "n")->unschedulable); /* not before the grant */
    CHECK_EQ(deck_settle(&d, "n", progress, &effect), 1);
    CHECK(deck_find(&d, "n")->unschedulable);
    CHECK_STR(state_of(&d, "n"), "maintenance-required");
    CHECK_EQ(effect.needs, ENGINE_DRAIN);
    CHECK(effect.keeps_grant && !effect.arrives);
    progress.drained = true;
    CHECK_EQ(deck_settle(&d, "n", progress, &effect), 1);
    CHECK_STR(state_of(&d, "n"), "in-maintenance");
    CHECK_STR(node_label(deck_find(&d, "n"), STR("go")), "yes");
    deck_end(&d);
}

TEST(engine_never_lifts_what_another_cordoned)
{
    struct deck d;
    struct engine_effect effect;
    deck_begin(&d, CYCLE, NULL);
    deck_node(&d, "n", ",\"labels\":{\"cloud.sap/maintenance-profile\":\"os\"}",
              ",\"spec\":{\"unschedulable\":true}");
    deck_label(&d, "n", "update", "needed");
    deck_label(&d, "n", "approved", "true");
    (void)deck_settle(&d, "n", (struct engine_progress){ .granted = STR("os") }, &effect);
    CHECK_STR(state_of(&d, "n"), "in-maintenance");
    CHECK(node_annotation(deck_find(&d, "n"), SUBJECT_CORDON_MARK).p == NULL);
    deck_label(&d, "n", "update", "done");
    (void)deck_settle(&d, "n", idle, &effect);
    CHECK_STR(state_of(&d, "n"), "operational");
    CHECK(deck_find(&d, "n")->unschedulable);
    deck_end(&d);
}
