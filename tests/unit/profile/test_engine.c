#include "tests/engine_fixture.h"

#include "kinds/keys.h"

#define PLAIN "intervals: {requeue: 30s}\n"

#define FRESH                                                                                      \
    "{\"Profiles\":{\"default\":{\"Transition\":\"2026-01-02T03:04:05Z\","                         \
    "\"Current\":\"operational\",\"Previous\":\"operational\"}},\"Notifications\":{}}"
#define ENTRY(name, current, previous)                                                             \
    "\"" name "\":{\"Transition\":\"2025-05-05T05:05:05Z\",\"Current\":\"" current                 \
    "\",\"Previous\":\"" previous "\"}"
#define DATA_OF(entries) "{\"Profiles\":{" entries "},\"Notifications\":{}}"

/* NULL: it has none. */
static void put(struct engine_fixture *d, const char *name, const char *profiles, const char *state,
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
    engine_fixture_node(d, name, arena_printf(&d->a, "," STR_FMT, STR_ARG(text)).p, "");
}

static const struct node_edit_item *find_edit(const struct engine_effect *effect,
                                              enum node_edit_kind kind, struct str key)
{
    for (uint32_t i = 0; i < effect->edit.edit_n; i++) {
        const struct node_edit_item *e = &effect->edit.edits[i];
        if (e->kind == kind && str_eq(e->key, key)) {
            return e;
        }
    }
    return NULL;
}

/* NULL: there is none. */
static void check_edit(const struct engine_effect *effect, enum node_edit_kind kind, struct str key,
                       const char *want)
{
    const struct node_edit_item *e = find_edit(effect, kind, key);
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
        struct engine_fixture d;
        struct engine_effect effect;
        struct err err = { 0 };
        check_case((int64_t)i);
        engine_fixture_begin(&d, PLAIN, NULL);
        put(&d, "n", cases[i].profiles, cases[i].state, cases[i].data);
        struct engine_input in = engine_fixture_input(&d, "n");
        CHECK_EQ(engine_decide(&in, &d.a, &effect, &err), 0);
        check_edit(&effect, NODE_EDIT_LABEL, KEY_STATE, cases[i].want_state);
        check_edit(&effect, NODE_EDIT_ANNOTATION, KEY_DATA, cases[i].want_data);
        CHECK_EQ(effect.again_at, USEC_NEVER);
        engine_fixture_end(&d);
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
        struct engine_fixture d;
        struct engine_effect effect;
        struct err err = { 0 };
        engine_fixture_begin(&d, PLAIN, NULL);
        put(&d, "n", NULL, NULL, cases[i].data);
        struct engine_input in = engine_fixture_input(&d, "n");
        CHECK_EQ(engine_decide(&in, &d.a, &effect, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].message);
        engine_fixture_end(&d);
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

static struct str state_of(const struct engine_fixture *d, const char *name)
{
    return node_label(engine_fixture_find(d, name), KEY_STATE);
}

TEST(engine_makes_a_full_cycle_in_three_patches)
{
    struct engine_fixture d;
    struct engine_effect effect;
    const struct engine_progress granted = { .granted = STR("os") };
    engine_fixture_begin(&d, CYCLE, NULL);
    put(&d, "n", "os", NULL, NULL);
    CHECK_EQ(engine_fixture_settle(&d, "n", idle, &effect), 1); /* what every node gets */
    engine_fixture_set_label(&d, "n", "update", "needed");
    CHECK_EQ(engine_fixture_settle(&d, "n", idle, &effect), 1);
    CHECK_STR(state_of(&d, "n"), "maintenance-required");
    CHECK_EQ(effect.needs, 0);
    engine_fixture_set_label(&d, "n", "approved", "true");
    CHECK_EQ(engine_fixture_settle(&d, "n", idle, &effect), 0);
    CHECK_EQ(effect.needs, ENGINE_NEED_GRANT);
    CHECK_EQ(engine_fixture_settle(&d, "n", granted, &effect), 1);
    CHECK_STR(state_of(&d, "n"), "in-maintenance");
    CHECK(engine_fixture_find(&d, "n")->unschedulable);
    CHECK(node_label(engine_fixture_find(&d, "n"), STR("approved")).p == NULL);
    CHECK_STR(node_label(engine_fixture_find(&d, "n"), STR("go")),
              "yes"); /* entered in the same patch */
    CHECK_STR(node_annotation(engine_fixture_find(&d, "n"), KEY_PROFILE_CORDON), "os");
    engine_fixture_set_label(&d, "n", "update", "done");
    CHECK_EQ(engine_fixture_settle(&d, "n", idle, &effect), 1);
    CHECK_STR(state_of(&d, "n"), "operational");
    CHECK(!engine_fixture_find(&d, "n")->unschedulable);
    CHECK(node_annotation(engine_fixture_find(&d, "n"), KEY_PROFILE_CORDON).p == NULL);
    CHECK(node_label(engine_fixture_find(&d, "n"), STR("go")).p == NULL);
    engine_fixture_end(&d);
}

TEST(engine_lets_one_profile_of_a_node_into_maintenance)
{
    struct engine_fixture d;
    struct engine_effect effect;
    engine_fixture_begin(&d, CYCLE, NULL);
    put(&d, "n", "os--fw", NULL, NULL);
    engine_fixture_set_label(&d, "n", "update", "needed");
    engine_fixture_set_label(&d, "n", "approved", "true");
    (void)engine_fixture_settle(&d, "n", idle, &effect); /* patches are not counted here */
    CHECK_EQ(effect.needs, ENGINE_NEED_GRANT);
    CHECK_EQ(effect.grant_profile, 0);
    CHECK_STR(effect.profiles[1].transitions[0].held,
              "another profile of the node asks for maintenance first");
    (void)engine_fixture_settle(&d, "n", (struct engine_progress){ .granted = STR("os") }, &effect);
    CHECK_EQ(effect.profiles[0].state, PROFILE_STATE_MAINTENANCE);
    /* The approval is used up, so the second profile has none. */
    CHECK_EQ(effect.profiles[1].state, PROFILE_STATE_REQUIRED);
    CHECK(!effect.profiles[1].transitions[0].chain_passed);
    engine_fixture_set_label(&d, "n", "approved", "true");
    (void)engine_fixture_settle(&d, "n", idle, &effect);
    CHECK_EQ(effect.profiles[1].state, PROFILE_STATE_REQUIRED);
    CHECK_STR(effect.profiles[1].transitions[0].held,
              "another profile of the node is in maintenance");
    engine_fixture_end(&d);
}

TEST(engine_waits_for_room_and_says_so)
{
    struct engine_fixture d;
    struct engine_effect effect;
    engine_fixture_begin(&d, CYCLE, NULL);
    put(&d, "a", NULL, "in-maintenance",
        DATA_OF(ENTRY("default", "in-maintenance", "in-maintenance")));
    put(&d, "n", "os", NULL, NULL);
    engine_fixture_set_label(&d, "n", "update", "needed");
    (void)engine_fixture_settle(&d, "n", idle, &effect);
    CHECK_EQ(effect.waits_group, 0); /* it has no approval: room would not help */
    engine_fixture_set_label(&d, "n", "approved", "true");
    (void)engine_fixture_settle(&d, "n", idle, &effect);
    CHECK_EQ(effect.needs, 0);
    CHECK(effect.waits_group != 0);
    CHECK_EQ(effect.waits_since, d.wall);
    engine_fixture_set_label(&d, "a", "cloud.sap/maintenance-state", "operational");
    (void)engine_fixture_settle(&d, "n", idle, &effect);
    CHECK_EQ(effect.needs, ENGINE_NEED_GRANT);
    engine_fixture_end(&d);
}

TEST(engine_cordons_first_and_moves_when_the_node_is_drained)
{
    struct engine_fixture d;
    struct engine_effect effect;
    struct engine_progress progress = { .granted = STR("drained") };
    engine_fixture_begin(&d, CYCLE, NULL);
    put(&d, "n", "drained", NULL, NULL);
    engine_fixture_set_label(&d, "n", "update", "needed");
    engine_fixture_set_label(&d, "n", "approved", "true");
    (void)engine_fixture_settle(&d, "n", idle, &effect);
    CHECK(!engine_fixture_find(&d, "n")->unschedulable); /* not before the grant */
    CHECK_EQ(engine_fixture_settle(&d, "n", progress, &effect), 1);
    CHECK(engine_fixture_find(&d, "n")->unschedulable);
    CHECK_STR(state_of(&d, "n"), "maintenance-required");
    CHECK_EQ(effect.needs, ENGINE_NEED_DRAIN);
    CHECK(effect.keeps_grant && !effect.enters);
    progress.drained = true;
    CHECK_EQ(engine_fixture_settle(&d, "n", progress, &effect), 1);
    CHECK_STR(state_of(&d, "n"), "in-maintenance");
    CHECK_STR(node_label(engine_fixture_find(&d, "n"), STR("go")), "yes");
    engine_fixture_end(&d);
}

TEST(engine_never_lifts_what_another_cordoned)
{
    struct engine_fixture d;
    struct engine_effect effect;
    engine_fixture_begin(&d, CYCLE, NULL);
    engine_fixture_node(&d, "n", ",\"labels\":{\"cloud.sap/maintenance-profile\":\"os\"}",
                        ",\"spec\":{\"unschedulable\":true}");
    engine_fixture_set_label(&d, "n", "update", "needed");
    engine_fixture_set_label(&d, "n", "approved", "true");
    (void)engine_fixture_settle(&d, "n", (struct engine_progress){ .granted = STR("os") }, &effect);
    CHECK_STR(state_of(&d, "n"), "in-maintenance");
    CHECK(node_annotation(engine_fixture_find(&d, "n"), KEY_PROFILE_CORDON).p == NULL);
    engine_fixture_set_label(&d, "n", "update", "done");
    (void)engine_fixture_settle(&d, "n", idle, &effect);
    CHECK_STR(state_of(&d, "n"), "operational");
    CHECK(engine_fixture_find(&d, "n")->unschedulable);
    engine_fixture_end(&d);
}

#define TWO                                                                                        \
    "intervals: {requeue: 30s}\n"                                                                  \
    "instances:\n"                                                                                 \
    "  check: [{type: hasLabel, name: needed, config: {key: update}}]\n"                           \
    "  trigger:\n"                                                                                 \
    "  - {type: alterLabel, name: leave_a, config: {key: by, value: leave-a}}\n"                   \
    "  - {type: alterLabel, name: leave_b, config: {key: by, value: leave-b}}\n"                   \
    "  - {type: alterLabel, name: enter_a, config: {key: by, value: enter-a}}\n"                   \
    "  - {type: alterLabel, name: enter_b, config: {key: last, value: enter-b}}\n"                 \
    "  - {type: alterLabel, name: also_a, config: {key: last, value: enter-a}}\n"                  \
    "profiles:\n"                                                                                  \
    "- name: a\n"                                                                                  \
    "  operational:\n"                                                                             \
    "    transitions: [{check: needed, next: maintenance-required, trigger: leave_a}]\n"           \
    "  maintenance-required: {enter: enter_a && also_a}\n"                                         \
    "- name: b\n"                                                                                  \
    "  operational:\n"                                                                             \
    "    transitions: [{check: needed, next: maintenance-required, trigger: leave_b}]\n"           \
    "  maintenance-required: {enter: enter_b}\n"

/* The original runs the triggers of all profiles in one pass and their enter chains in the next. */
TEST(engine_runs_all_triggers_before_the_first_enter_chain)
{
    struct engine_fixture d;
    struct engine_effect effect;
    engine_fixture_begin(&d, TWO, NULL);
    put(&d, "n", "a--b", NULL, NULL);
    engine_fixture_set_label(&d, "n", "update", "needed");
    CHECK_EQ(engine_fixture_settle(&d, "n", idle, &effect), 1);
    CHECK_STR(node_label(engine_fixture_find(&d, "n"), STR("by")), "enter-a");
    CHECK_STR(node_label(engine_fixture_find(&d, "n"), STR("last")), "enter-b");
    engine_fixture_end(&d);
}

/* A node that was in maintenance lost its data: it is cordoned by us, so it keeps its place. */
TEST(engine_counts_a_cordon_of_ours_whose_data_is_gone)
{
    struct engine_fixture d;
    struct engine_effect effect;
    engine_fixture_begin(&d, CYCLE, NULL);
    engine_fixture_node(&d, "lost",
                        ",\"labels\":{\"cloud.sap/maintenance-profile\":\"os\"},"
                        "\"annotations\":{\"drydock.dev/cordoned-by\":\"os\"}",
                        ",\"spec\":{\"unschedulable\":true}");
    put(&d, "n", "os", NULL, NULL);
    engine_fixture_set_label(&d, "n", "update", "needed");
    engine_fixture_set_label(&d, "n", "approved", "true");
    (void)engine_fixture_settle(&d, "lost", idle, &effect);
    CHECK_STR(state_of(&d, "lost"), "operational");
    (void)engine_fixture_settle(&d, "n", idle, &effect);
    CHECK_EQ(effect.needs, 0);
    CHECK(effect.waits_group != 0);
    /* It does not wait for itself. */
    engine_fixture_set_label(&d, "lost", "update", "needed");
    engine_fixture_set_label(&d, "lost", "approved", "true");
    (void)engine_fixture_settle(&d, "lost", idle, &effect);
    CHECK_EQ(effect.needs, ENGINE_NEED_GRANT);
    engine_fixture_end(&d);
}
