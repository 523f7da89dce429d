/*
 * What the original's suites assert of its state objects and of its plugin framework (tests/
 * ASSERTIONS.md), asked of the engine: one table a line, for all three states.
 */
#include "tests/engine_fixture.h"

#define INSTANCES                                                                                  \
    "intervals: {requeue: 30s}\n"                                                                  \
    "instances:\n"                                                                                 \
    "  check:\n"                                                                                   \
    "  - {type: hasLabel, name: yes1, config: {key: go}}\n"                                        \
    "  - {type: hasLabel, name: yes2, config: {key: go}}\n"                                        \
    "  - {type: hasLabel, name: yes3, config: {key: go}}\n"                                        \
    "  - {type: hasLabel, name: no1, config: {key: stop}}\n"                                       \
    "  - {type: hasLabel, name: no2, config: {key: stop}}\n"                                       \
    "  - {type: condition, name: told, config: {type: Ready, status: 'True'}}\n"                   \
    "  - {type: clusterSemver, name: broken, config: {key: version}}\n"                            \
    "  trigger:\n"                                                                                 \
    "  - {type: alterLabel, name: one, config: {key: by, value: one}}\n"                           \
    "  - {type: alterLabel, name: two, config: {key: by, value: two}}\n"                           \
    "  - {type: alterLabel, name: enter, config: {key: entered, value: 'yes'}}\n"                  \
    "  - {type: eviction, name: drain, config: {action: drain}}\n"                                 \
    "  notify:\n"                                                                                  \
    "  - {type: webhook, name: n1, config: {url: http://n}, schedule: {type: periodic, config: "   \
    "{interval: 1h}}}\n"                                                                           \
    "  - {type: webhook, name: n2, config: {url: http://n}, schedule: {type: periodic, config: "   \
    "{interval: 1h}}}\n"                                                                           \
    "  - {type: webhook, name: n3, config: {url: http://n}, schedule: {type: periodic, config: "   \
    "{interval: 1h}}}\n"                                                                           \
    "  - {type: webhook, name: must, required: yes, config: {url: http://n}, schedule: {type: "    \
    "periodic, config: {interval: 1h}}}\n"                                                         \
    "profiles:\n"                                                                                  \
    "- name: p\n"

#define WALL "2026-01-02T03:04:05Z"

static const char *const names[] = { "operational", "maintenance-required", "in-maintenance" };
static const enum profile_state states[] = { PROFILE_STATE_OPERATIONAL, PROFILE_STATE_REQUIRED,
                                             PROFILE_STATE_MAINTENANCE };

/* A node whose profile p has these in its entry; `notifications` as in JSON, without braces. */
static void begin(struct engine_fixture *d, const char *state, const char *more,
                  const char *current, const char *previous, const char *notifications)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct str yaml = arena_printf(&a, INSTANCES "  %s: %s\n", state, more);
    engine_fixture_begin(d, yaml.p, NULL);
    engine_fixture_node(
        d, "n",
        arena_printf(&d->a,
                     ",\"labels\":{\"cloud.sap/maintenance-profile\":\"p\",\"go\":\"1\"},"
                     "\"annotations\":{\"cloud.sap/maintenance-data\":"
                     "\"{\\\"Profiles\\\":{\\\"p\\\":{\\\"Transition\\\":\\\"" WALL "\\\","
                     "\\\"Current\\\":\\\"%s\\\",\\\"Previous\\\":\\\"%s\\\"}},"
                     "\\\"Notifications\\\":{%s}}\"}",
                     current, previous, notifications)
            .p,
        "");
}

static void decide(struct engine_fixture *d, struct engine_progress progress,
                   struct engine_effect *ret)
{
    struct err err = { 0 };
    struct engine_input in = engine_fixture_input(d, "n");
    in.progress = progress;
    in.explain = true; /* with all words */
    CHECK_EQ(engine_decide(&in, &d->a, ret, &err), 0);
    CHECK_EQ(ret->profile_n, 1);
}

static struct str edited(const struct engine_effect *effect, const char *key)
{
    struct str found = STR_NONE;
    uint32_t times = 0;
    for (uint32_t i = 0; i < effect->edit.edit_n; i++) {
        const struct node_edit_item *e = &effect->edit.edits[i];
        if (e->kind == NODE_EDIT_LABEL && str_eq(e->key, str_from(key))) {
            found = e->value;
            times++;
        }
    }
    CHECK(times <= 1);
    return found;
}

static const struct engine_progress idle = { 0 };
static const struct engine_progress granted = { .granted = STR_INIT("p") };

/* reports its own label; without transitions `next` is itself */
TEST(states_without_transitions_stay)
{
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        struct engine_fixture d;
        struct engine_effect effect;
        check_case((int64_t)i);
        begin(&d, names[i], "{}", names[i], names[i], "");
        decide(&d, idle, &effect);
        CHECK_EQ(effect.profiles[0].state, states[i]);
        CHECK_EQ(effect.profiles[0].next, states[i]);
        CHECK_EQ(effect.profiles[0].transition_n, 0);
        CHECK_STR(edited(&effect, "cloud.sap/maintenance-state"), names[i]);
        engine_fixture_end(&d);
    }
    check_case(-1);
}

/* executes the trigger chain for the configured target once; not that of another target */
TEST(states_pull_the_triggers_of_the_transition_that_passed)
{
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        struct engine_fixture d;
        struct engine_effect effect;
        size_t to = (i + 1) % 3;
        size_t other = (i + 2) % 3;
        check_case((int64_t)i);
        char more[256];
        (void)snprintf(more, sizeof(more),
                       "{transitions: [{check: no1, next: %s, trigger: one}, "
                       "{check: yes1, next: %s, trigger: two}]}",
                       names[other], names[to]);
        begin(&d, names[i], more, names[i], names[i], "");
        decide(&d, granted, &effect);
        CHECK_EQ(effect.profiles[0].next, states[to]);
        CHECK_STR(edited(&effect, "by"), "two");
        engine_fixture_end(&d);
    }
    check_case(-1);
}

/* check true → target; check false → itself; check error → error, itself; one info each */
TEST(states_follow_their_checks)
{
    static const struct {
        const char *check;
        bool moves;
        const char *error;
    } cases[] = {
        { "yes1", true, "" },
        { "no1", false, "" },
        { "broken", false, "failed check instances: broken" },
    };
    for (size_t n = 0; n < ARRAY_LEN(states) * ARRAY_LEN(cases); n++) {
        struct engine_fixture d;
        struct engine_effect effect;
        size_t i = n / ARRAY_LEN(cases);
        size_t k = n % ARRAY_LEN(cases);
        size_t to = (i + 1) % 3;
        check_case((int64_t)n);
        char more[256];
        (void)snprintf(more, sizeof(more), "{transitions: [{check: %s, next: %s, trigger: one}]}",
                       cases[k].check, names[to]);
        begin(&d, names[i], more, names[i], names[i], "");
        decide(&d, granted, &effect);
        const struct engine_profile *e = &effect.profiles[0];
        CHECK_EQ(e->next, cases[k].moves ? states[to] : states[i]);
        CHECK_EQ(e->transition_n, 1);
        CHECK_EQ(e->transitions[0].check_n, 1);
        CHECK_EQ(e->transitions[0].passed, cases[k].moves);
        CHECK_STR(e->transitions[0].error, cases[k].error);
        CHECK_EQ(e->error.n > 0, cases[k].error[0] != '\0');
        CHECK_EQ(edited(&effect, "by").p != NULL, cases[k].moves);
        engine_fixture_end(&d);
    }
    check_case(-1);
}

/* executes the enter chain once */
TEST(states_are_entered_once)
{
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        struct engine_fixture d;
        struct engine_effect effect;
        check_case((int64_t)i);
        begin(&d, names[i], "{enter: enter}", names[i], names[(i + 1) % 3], "");
        decide(&d, idle, &effect);
        CHECK_STR(edited(&effect, "entered"), "yes");
        engine_fixture_patch(&d, "n", &effect);
        engine_fixture_set_label(&d, "n", "entered", NULL);
        CHECK_EQ(engine_fixture_settle(&d, "n", idle, &effect), 0);
        engine_fixture_end(&d);
        begin(&d, names[i], "{enter: enter}", names[i], names[i], "");
        decide(&d, idle, &effect);
        CHECK(edited(&effect, "entered").p == NULL);
        engine_fixture_end(&d);
    }
    check_case(-1);
}

/* Sends what is due, one after the other, and tells the engine so; answers how many there were. */
static uint32_t send_all(struct engine_fixture *d, struct engine_effect *effect)
{
    uint32_t sent = 0;
    (void)engine_fixture_settle(d, "n", idle, effect); /* its patches are not counted here */
    while ((effect->needs & ENGINE_NEED_NOTIFY) != 0 && sent < 10) {
        const struct engine_sent told = {
            .instance = effect->notify->name,
            .profile = STR("p"),
            .transition = effect->profiles[0].since,
            .at = timestamp_from_usec(d->wall + 1),
        };
        const struct engine_progress progress = { .sent = &told, .sent_n = 1 };
        sent++;
        (void)engine_fixture_settle(d, "n", progress, effect);
        (void)engine_fixture_settle(d, "n", idle, effect);
    }
    return sent;
}

#define OLD                                                                                        \
    "\\\"n1\\\":\\\"2000-01-01T00:00:00Z\\\",\\\"n2\\\":\\\"2000-01-01T00:00:00Z\\\","             \
    "\\\"n3\\\":\\\"2000-01-01T00:00:00Z\\\""

TEST(states_tell_what_is_due_once)
{
    static const struct {
        const char *chain;
        const char *current;
        const char *previous;
        const char *last; /* notification times */
        uint32_t sent;
    } cases[] = {
        /* executes due notifications once, in each state */
        { "n1", "operational", "in-maintenance", "", 1 },
        { "n1", "maintenance-required", "operational", "", 1 },
        { "n1", "in-maintenance", "maintenance-required", "", 1 },
        /* operational does not notify when it was operational before */
        { "n1", "operational", "operational", "", 0 },
        /* interval not passed → 0; state changed → 1; passed but operational → 0 */
        { "n1", "in-maintenance", "in-maintenance", "\\\"n1\\\":\\\"2026-01-02T03:00:00Z\\\"", 0 },
        { "n1", "in-maintenance", "operational", "\\\"n1\\\":\\\"2026-01-02T03:00:00Z\\\"", 1 },
        { "n1", "operational", "operational", OLD, 0 },
        /* three instances last fired in 2000 while in-maintenance → 3 */
        { "n1 && n2 && n3", "in-maintenance", "in-maintenance", OLD, 3 },
        { "''", "in-maintenance", "operational", "", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct engine_fixture d;
        struct engine_effect effect;
        char more[64];
        check_case((int64_t)i);
        (void)snprintf(more, sizeof(more), "{notify: %s}", cases[i].chain);
        begin(&d, cases[i].current, more, cases[i].current, cases[i].previous, cases[i].last);
        CHECK_EQ(send_all(&d, &effect), cases[i].sent);
        CHECK_EQ(send_all(&d, &effect), 0);
        CHECK_STR(effect.profiles[0].error, "");
        engine_fixture_end(&d);
    }
    check_case(-1);
}

/* What could not be sent of the profile in its present state. */
static struct engine_progress with_failed(const struct engine_effect *effect,
                                          struct engine_send_failed *failed, const char *instance)
{
    *failed = (struct engine_send_failed){
        .instance = str_from(instance),
        .profile = STR("p"),
        .transition = effect->profiles[0].since,
        .error = STR("slack webhook response is not ok"),
    };
    return (
        struct engine_progress){ .granted = STR("p"), .send_failed = failed, .send_failed_n = 1 };
}

/* Apply: a failing notification is an error, next = current, no transitions, error text set; the
 * ones behind it are not tried. So it is for a notification that is required. */
TEST(states_stop_at_a_required_notification_that_fails)
{
    struct engine_fixture d;
    struct engine_effect effect;
    struct engine_send_failed failed;
    begin(&d, "maintenance-required",
          "{notify: must && n2, transitions: [{check: yes1, next: in-maintenance}]}",
          "maintenance-required", "operational", "");
    decide(&d, idle, &effect);
    CHECK_EQ(effect.needs, ENGINE_NEED_NOTIFY);
    CHECK_STR(effect.notify->name, "must");
    CHECK(!effect.profiles[0].transitions[0].passed); /* not before it is sent */
    CHECK_STR(effect.profiles[0].transitions[0].held, "a notification is sent first");
    decide(&d, with_failed(&effect, &failed, "must"), &effect);
    const struct engine_profile *e = &effect.profiles[0];
    CHECK_EQ(effect.needs, 0);
    CHECK_STR(e->error, "slack webhook response is not ok");
    CHECK_STR(e->failed, "At least one notification plugin failed");
    CHECK_EQ(e->next, PROFILE_STATE_REQUIRED);
    CHECK(!e->transitions[0].passed);
    engine_fixture_end(&d);
}

/* Any other that fails holds up nobody: the next one is tried, and then the node goes. */
TEST(states_go_on_past_a_notification_that_fails)
{
    struct engine_fixture d;
    struct engine_effect effect;
    struct engine_send_failed failed;
    begin(&d, "maintenance-required",
          "{notify: n1 && n2, transitions: [{check: yes1, next: in-maintenance}]}",
          "maintenance-required", "operational", "");
    decide(&d, idle, &effect);
    CHECK_STR(effect.notify->name, "n1");
    struct engine_progress progress = with_failed(&effect, &failed, "n1");
    decide(&d, progress, &effect);
    CHECK_EQ(effect.needs, ENGINE_NEED_NOTIFY);
    CHECK_STR(effect.notify->name, "n2");
    CHECK_EQ(effect.profiles[0].next, PROFILE_STATE_REQUIRED);
    const struct engine_sent sent = { .instance = STR("n2"),
                                      .profile = STR("p"),
                                      .transition = effect.profiles[0].since,
                                      .at = timestamp_from_usec(d.wall) };
    progress.sent = &sent;
    progress.sent_n = 1;
    decide(&d, progress, &effect);
    CHECK_EQ(effect.profiles[0].next, PROFILE_STATE_MAINTENANCE);
    CHECK_STR(effect.profiles[0].error, "");
    engine_fixture_end(&d);
}

/* Apply: a trigger that is not done holds the state; a drain is no failure (P8), and the triggers
 * behind it wait. */
TEST(states_wait_for_a_trigger_that_takes_time)
{
    struct engine_fixture d;
    struct engine_effect effect;
    struct engine_progress progress = granted;
    begin(&d, "maintenance-required",
          "{transitions: [{check: yes1, next: in-maintenance, trigger: one && drain && two}]}",
          "maintenance-required", "maintenance-required", "");
    decide(&d, progress, &effect);
    CHECK_EQ(effect.profiles[0].next, PROFILE_STATE_REQUIRED);
    CHECK_EQ(effect.profiles[0].transition_n, 1);
    CHECK_STR(effect.profiles[0].error, "");
    CHECK_EQ(effect.needs, ENGINE_NEED_DRAIN);
    CHECK_STR(edited(&effect, "by"), "one");
    progress.drained = true;
    decide(&d, progress, &effect);
    CHECK_EQ(effect.profiles[0].next, PROFILE_STATE_MAINTENANCE);
    CHECK_STR(edited(&effect, "by"), "two"); /* in order: the last one counts */
    engine_fixture_end(&d);
}

/* check chain: results, and what has been run */
TEST(chains_give_the_results_of_the_original)
{
    static const struct {
        const char *expression;
        bool passed;
        uint32_t instances;
        const char *error;
    } cases[] = {
        { "yes1 && yes2 && yes3", true, 3, "" },
        { "yes1 && yes1 && yes1", true, 1, "" }, /* an instance is asked once a decision */
        { "yes1 && no1 && yes2 && no2", false, 4, "" },
        { "yes1 || yes2 || yes3", true, 3, "" },
        { "yes1 || no1 || yes2", true, 3, "" },
        { "'!yes1'", false, 1, "" },
        { "yes1 && !(no1 || no2)", true, 3, "" },
        { "yes1 && yes2 && yes3 && broken", false, 4, "failed check instances: broken" },
        { "yes1 || broken", false, 2, "failed check instances: broken" },
        { "broken && no1 && broken", false, 2, "failed check instances: broken, broken" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct engine_fixture d;
        struct engine_effect effect;
        char more[160];
        check_case((int64_t)i);
        (void)snprintf(more, sizeof(more),
                       "{transitions: [{check: %s, next: maintenance-required}]}",
                       cases[i].expression);
        begin(&d, "operational", more, "operational", "operational", "");
        decide(&d, idle, &effect);
        const struct engine_transition *t = &effect.profiles[0].transitions[0];
        CHECK_EQ(t->passed, cases[i].passed);
        CHECK_EQ(t->check_n, cases[i].instances);
        CHECK_STR(t->error, cases[i].error);
        for (uint32_t k = 0; k < t->check_n; k++) {
            CHECK(t->checks[k].verdict.answer != CHECK_PENDING); /* nothing is short-circuited */
        }
        engine_fixture_end(&d);
    }
    check_case(-1);
}

/* check chain errors: the info of passing plugins is kept, and that of failing ones with the error
 */
TEST(chains_keep_what_each_check_said)
{
    struct engine_fixture d;
    struct engine_effect effect;
    begin(&d, "operational", "{transitions: [{check: told && broken, next: maintenance-required}]}",
          "operational", "operational", "");
    decide(&d, idle, &effect);
    const struct engine_transition *t = &effect.profiles[0].transitions[0];
    CHECK_STR(t->checks[0].name, "told");
    CHECK_STR(t->checks[0].verdict.info, "{\"reason\":\"condition Ready not present\"}");
    CHECK_STR(t->checks[0].verdict.error, "");
    CHECK_EQ(t->checks[1].verdict.answer, CHECK_ERROR);
    CHECK(t->checks[1].verdict.error.n > 0);
    CHECK_STR(effect.profiles[0].error,
              "had failed transition checks: failed check instances: broken");
    CHECK_STR(effect.profiles[0].failed, "At least one check plugin failed");
    engine_fixture_end(&d);
}

/* One transition fails, another passes: nothing moves. */
TEST(chains_that_fail_hold_the_profile)
{
    struct engine_fixture d;
    struct engine_effect effect;
    begin(&d, "operational",
          "{transitions: [{check: yes1, next: maintenance-required}, {check: broken, next: "
          "in-maintenance}]}",
          "operational", "operational", "");
    decide(&d, granted, &effect);
    CHECK_EQ(effect.profiles[0].next, PROFILE_STATE_OPERATIONAL);
    CHECK(effect.profiles[0].transitions[0].passed);
    engine_fixture_end(&d);
}

#define SCHEDULE "schedule: {type: never, config: {}}"

/* for check, notify and trigger each: extra nesting key, no configuration, no name, name without
 * config, unregistered type; unknown scheduler */
TEST(instances_that_are_not_whole_are_refused)
{
    static const char *const cases[] = {
        "check: [{hasLabel: {name: x, config: {key: a}}}]",
        "check: [{type: hasLabel}]",
        "check: [{type: hasLabel, config: {}}]",
        "check: [{type: hasLabel, name: x}]",
        "check: [{type: noSuchType, name: x, config: {key: a}}]",
        "trigger: [{alterLabel: {name: x, config: {key: a}}}]",
        "trigger: [{type: alterLabel}]",
        "trigger: [{type: alterFinalizer, name: x, config: scalar}]",
        "trigger: [{type: alterFinalizer, name: x, config: {remove: true}}]",
        "trigger: [{type: alterLabel, config: {}}]",
        "trigger: [{type: alterLabel, name: x}]",
        "trigger: [{type: noSuchType, name: x, config: {key: a}}]",
        "notify: [{slack: {name: x, config: {hook: h, channel: c, message: m}}}]",
        "notify: [{type: slack}]",
        "notify: [{type: slack, config: {}}]",
        "notify: [{type: slack, name: x}]",
        "notify: [{type: noSuchType, name: x, config: {key: a}}]",
        "notify: [{type: slack, name: x, config: {hook: h, channel: c, message: m}, " SCHEDULE "}]",
        "notify: [{type: slack, name: x, config: {hook: h, channel: c, message: m}}]",
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct problems problems = { .out = &a };
        struct config config;
        check_case((int64_t)i);
        struct str yaml =
            arena_printf(&a, "intervals: {requeue: 1s}\ninstances:\n  %s\n", cases[i]);
        CHECK_EQ(config_load(yaml, (struct ucfg_env){ 0 }, &a, &config, &problems), -ERR_INVALID);
        CHECK(problems.n > 0);
    }
    check_case(-1);
}

/* a new registry is empty; periodic and scheduled (`instant: 11:00` unquoted) load by name */
TEST(instances_load_under_their_names)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct problems problems = { .out = &a };
    struct config c;
    CHECK_EQ(
        config_load(STR("intervals: {requeue: 1s}"), (struct ucfg_env){ 0 }, &a, &c, &problems), 0);
    for (int kind = 0; kind < PLUGIN_KINDS; kind++) {
        CHECK_EQ(c.instances[kind].n, 0);
    }
    CHECK_EQ(config_load(STR(INSTANCES), (struct ucfg_env){ 0 }, &a, &c, &problems), 0);
    CHECK_EQ(c.instances[PLUGIN_CHECK].n, 7);
    CHECK_EQ(c.instances[PLUGIN_TRIGGER].n, 4);
    CHECK_EQ(c.instances[PLUGIN_NOTIFY].n, 4);
    CHECK(config_find_instance(&c, PLUGIN_CHECK, STR("yes1")) != NULL);
    CHECK(config_find_instance(&c, PLUGIN_TRIGGER, STR("yes1")) == NULL);
    CHECK_EQ(config_load(STR("intervals: {requeue: 1s}\n"
                             "instances:\n"
                             "  notify:\n"
                             "  - {type: slack, name: at, config: {hook: h, channel: c, message: "
                             "m}, schedule: {type: scheduled, config: {instant: 11:00, weekdays: "
                             "[monday]}}}\n"),
                         (struct ucfg_env){ 0 }, &a, &c, &problems),
             0);
    const struct config_instance *at = config_find_instance(&c, PLUGIN_NOTIFY, STR("at"));
    CHECK_EQ(plugin_get(at->schedule, at->schedule_values, "instant")->number, 11 * 3600);
}

#define SECOND INT64_C(1000000000)

static int64_t number_of(const struct config *c, enum plugin_kind kind, const char *name,
                         const char *key)
{
    const struct config_instance *i = config_find_instance(c, kind, str_from(name));
    CHECK(i != NULL);
    const struct plugin_value *v = plugin_get(i->plugin, i->values, key);
    return v->number;
}

static int64_t schedule_of(const struct config *c, const char *name, const char *key)
{
    const struct config_instance *i = config_find_instance(c, PLUGIN_NOTIFY, str_from(name));
    CHECK(i != NULL);
    return plugin_get(i->schedule, i->schedule_values, key)->number;
}

/* eviction: defaults 10m/10m/false; 11m, 532ms, forceEviction; affinity: 5, null and nothing give
 * 0; periodic 5m; scheduled 15:23 on fri and sat; oneshot 3h */
TEST(instances_hold_the_values_that_were_written)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct problems problems = { .out = &a };
    struct config c;
    struct str yaml = STR(
        "intervals: {requeue: 1s}\n"
        "instances:\n"
        "  check:\n"
        "  - {type: affinity, name: five, config: {minOperational: 5}}\n"
        "  - {type: affinity, name: none, config: null}\n"
        "  - {type: affinity, name: nothing}\n"
        "  trigger:\n"
        "  - {type: eviction, name: usual, config: {action: drain}}\n"
        "  - {type: eviction, name: other, config: {action: drain, deletionTimeout: 11m, "
        "evictionTimeout: 532ms, forceEviction: true}}\n"
        "  notify:\n"
        "  - {type: slack, name: p, config: {hook: h, channel: c, message: m}, schedule: {type: "
        "periodic, config: {interval: 5m}}}\n"
        "  - {type: slack, name: s, config: {hook: h, channel: c, message: m}, schedule: {type: "
        "scheduled, config: {instant: '15:23', weekdays: [fri, sat]}}}\n"
        "  - {type: slack, name: o, config: {hook: h, channel: c, message: m}, schedule: {type: "
        "oneshot, config: {delay: 3h}}}\n");
    CHECK_EQ(config_load(yaml, (struct ucfg_env){ 0 }, &a, &c, &problems), 0);
    CHECK_EQ(number_of(&c, PLUGIN_CHECK, "five", "minOperational"), 5);
    CHECK_EQ(number_of(&c, PLUGIN_CHECK, "none", "minOperational"), 0);
    CHECK_EQ(number_of(&c, PLUGIN_CHECK, "nothing", "minOperational"), 0);
    CHECK_EQ(number_of(&c, PLUGIN_TRIGGER, "usual", "deletionTimeout"), 600 * SECOND);
    CHECK_EQ(number_of(&c, PLUGIN_TRIGGER, "usual", "evictionTimeout"), 600 * SECOND);
    CHECK_EQ(number_of(&c, PLUGIN_TRIGGER, "other", "deletionTimeout"), 660 * SECOND);
    CHECK_EQ(number_of(&c, PLUGIN_TRIGGER, "other", "evictionTimeout"), 532 * SECOND / 1000);
    const struct config_instance *usual = config_find_instance(&c, PLUGIN_TRIGGER, STR("usual"));
    const struct config_instance *other = config_find_instance(&c, PLUGIN_TRIGGER, STR("other"));
    CHECK(!plugin_get(usual->plugin, usual->values, "forceEviction")->truth);
    CHECK(plugin_get(other->plugin, other->values, "forceEviction")->truth);
    CHECK_EQ(schedule_of(&c, "p", "interval"), 300 * SECOND);
    CHECK_EQ(schedule_of(&c, "s", "instant"), 15 * 3600 + 23 * 60);
    CHECK_EQ(schedule_of(&c, "s", "weekdays"), (1 << 5) | (1 << 6));
    CHECK_EQ(schedule_of(&c, "o", "delay"), 3 * 3600 * SECOND);
}

/* profile `count`: check plugins 1/2/3 for t, t && t, t && t && t; trigger 1/0/0; enter 0/0/1;
 * notify empty */
TEST(profiles_have_the_chains_they_name)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct problems problems = { .out = &a };
    struct config c;
    CHECK_EQ(config_load(STR(INSTANCES
                             "  operational:\n"
                             "    transitions: [{check: yes1, next: maintenance-required, trigger: "
                             "one}]\n"
                             "  maintenance-required:\n"
                             "    transitions: [{check: yes1 && yes2, next: in-maintenance}]\n"
                             "  in-maintenance:\n"
                             "    enter: enter\n"
                             "    transitions: [{check: yes1 && yes2 && yes3, next: "
                             "operational}]\n"),
                         (struct ucfg_env){ 0 }, &a, &c, &problems),
             0);
    const struct config_profile *p = config_find_profile(&c, STR("p"));
    static const uint32_t triggers[] = { 1, 0, 0 };
    static const uint32_t enters[] = { 0, 0, 1 };
    for (uint32_t i = 0; i < ARRAY_LEN(states); i++) {
        const struct config_state *s = &p->states[states[i]];
        CHECK_EQ(s->transition_n, 1);
        CHECK_EQ(s->transitions[0].check.var_n, i + 1);
        CHECK_EQ(s->transitions[0].trigger.n, triggers[i]);
        CHECK_EQ(s->enter.n, enters[i]);
        CHECK_EQ(s->notify.n, 0);
    }
    CHECK_STR(p->states[PROFILE_STATE_REQUIRED].transitions[0].check.text, "yes1 && yes2");
}

/* alterLabel, alterAnnotation, alterFinalizer: remove deletes; a new key is added beside the old;
 * an existing one is updated */
TEST(triggers_change_one_key)
{
    static const struct {
        const char *type;
        const char *config;
        const char *patch; /* of metadata, as it is sent; NULL: nothing is */
    } cases[] = {
        { "alterLabel", "{key: old, remove: true}", "\"labels\":{\"old\":null}" },
        { "alterLabel", "{key: new, value: x}", "\"labels\":{\"new\":\"x\"}" },
        { "alterLabel", "{key: old, value: x}", "\"labels\":{\"old\":\"x\"}" },
        { "alterLabel", "{key: absent, remove: true}", NULL },
        { "alterLabel", "{key: old, value: '1'}", NULL },
        { "alterAnnotation", "{key: old, remove: true}", "\"annotations\":{\"old\":null" },
        { "alterAnnotation", "{key: new, value: x}", "\"new\":\"x\"" },
        { "alterAnnotation", "{key: old, value: x}", "\"old\":\"x\"" },
        { "alterAnnotation", "{key: absent, remove: true}", NULL },
        { "alterFinalizer", "{key: e/new}", "\"finalizers\":[\"e/old\",\"e/new\"]" },
        { "alterFinalizer", "{key: e/old, remove: true}", "\"finalizers\":[]" },
        { "alterFinalizer", "{key: e/old}", NULL },
    };
    static const char *const kept[] = { "old", "new", "absent", NULL };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        CLEANUP(buf_done)
        struct buf patch = { 0 };
        struct engine_fixture d;
        struct engine_effect effect;
        check_case((int64_t)i);
        struct str yaml = arena_printf(
            &a,
            "intervals: {requeue: 1s}\ninstances:\n  trigger: [{type: %s, name: t, config: %s}]\n"
            "profiles: [{name: p, operational: {enter: t}}]\n",
            cases[i].type, cases[i].config);
        engine_fixture_begin(&d, yaml.p, kept);
        engine_fixture_node(
            &d, "n",
            ",\"labels\":{\"cloud.sap/maintenance-profile\":\"p\",\"old\":\"1\","
            "\"cloud.sap/maintenance-state\":\"operational\"},"
            "\"finalizers\":[\"e/old\"],\"annotations\":{\"old\":\"1\","
            "\"cloud.sap/maintenance-data\":\"{\\\"Profiles\\\":{\\\"p\\\":{"
            "\\\"Transition\\\":\\\"" WALL "\\\",\\\"Current\\\":\\\"operational\\\","
            "\\\"Previous\\\":\\\"in-maintenance\\\"}},\\\"Notifications\\\":{}}\"}",
            "");
        decide(&d, idle, &effect);
        node_edit_print_patch(&effect.edit, 5, &patch);
        if (cases[i].patch != NULL) {
            CHECK(str_contains(buf_str(&patch), str_from(cases[i].patch)));
            CHECK_EQ(effect.edit.edit_n, 2); /* and the data annotation */
        } else {
            CHECK_EQ(effect.edit.edit_n, 1);
        }
        engine_fixture_end(&d);
    }
    check_case(-1);
}
