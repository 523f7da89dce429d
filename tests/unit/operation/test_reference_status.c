#include "tests/unit/operation/operations_fixture.h"

static const struct jval *reference_find(struct operations_fixture *x, const char *plural,
                                         const char *name)
{
    return apiserver_find(x->server, STR(OPERATION_GROUP), str_from(plural), STR(""),
                          str_from(name));
}

static struct str reference_text(struct operations_fixture *x, const char *plural, const char *name,
                                 const char *path)
{
    return jval_str(jval_at(reference_find(x, plural, name), path));
}

static int64_t reference_number(struct operations_fixture *x, const char *plural, const char *name,
                                const char *path)
{
    int64_t n = -1;
    (void)jval_i64(jval_at(reference_find(x, plural, name), path), &n); /* -1: it is not there */
    return n;
}

/* "status/reason: message" of the only condition. */
static struct str reference_condition(struct operations_fixture *x, const char *plural,
                                      const char *name)
{
    const struct jval *c =
        jval_first(jval_at(reference_find(x, plural, name), "status.conditions"));
    return arena_printf(&x->memory, STR_FMT "/" STR_FMT ": " STR_FMT,
                        STR_ARG(jval_str(jval_get(c, STR("status")))),
                        STR_ARG(jval_str(jval_get(c, STR("reason")))),
                        STR_ARG(jval_str(jval_get(c, STR("message")))));
}

#define WINDOWS "maintenancewindows"
#define SERIES "nodeseries"
#define TEMPLATES "nodeoperationtemplates"

static void window_create(struct operations_fixture *x, const char *name, const char *spec)
{
    operations_create(x, "MaintenanceWindow", WINDOWS, name, spec);
}

TEST(reference_status_of_a_window_tells_when_it_is_open)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    window_create(&x, "night", "  {days: [Mon], from: '02:00', to: '04:00'}\n");
    operations_run(&x, MINUTES(1)); /* nobody uses it, and it is told all the same */
    CHECK_STR(reference_condition(&x, WINDOWS, "night"), "True/Valid: ");
    CHECK_STR(reference_text(&x, WINDOWS, "night", "status.nextStart"), "2026-01-05T02:00:00Z");
    CHECK_STR(reference_text(&x, WINDOWS, "night", "status.nextEnd"), "2026-01-05T04:00:00Z");
    CHECK_STR(reference_text(&x, WINDOWS, "night", "status.currentEnd"), "");
    const struct jval *upcoming = jval_at(reference_find(&x, WINDOWS, "night"), "status.upcoming");
    CHECK_EQ(upcoming->n, 10);
    CHECK_STR(jval_str(jval_get(jval_first(upcoming), STR("start"))), "2026-01-05T02:00:00Z");
    operations_run(&x, HOURS(2));
    CHECK(jval_bool(jval_at(reference_find(&x, WINDOWS, "night"), "status.open"), false));
    CHECK_STR(reference_text(&x, WINDOWS, "night", "status.currentEnd"), "2026-01-05T04:00:00Z");
    CHECK_STR(reference_text(&x, WINDOWS, "night", "status.nextStart"), "2026-01-12T02:00:00Z");
    operations_run(&x, HOURS(2));
    CHECK(!jval_bool(jval_at(reference_find(&x, WINDOWS, "night"), "status.open"), true));
    CHECK_STR(reference_text(&x, WINDOWS, "night", "status.currentEnd"), "");
    operations_end(&x);
}

TEST(reference_status_is_written_only_when_it_changes)
{
    struct operations_fixture x;
    operations_begin(&x, 3);
    window_create(&x, "night", "  {days: [Mon], from: '02:00', to: '04:00'}\n");
    operations_create(&x, "NodeSeries", SERIES, "all", "  {globs: ['node-*']}\n");
    operations_run(&x, HOURS(5));
    struct str window = reference_text(&x, WINDOWS, "night", "metadata.resourceVersion");
    struct str series = reference_text(&x, SERIES, "all", "metadata.resourceVersion");
    operations_maintain(&x, "hello", /* turns, and nodes that change */
                        "  disruption: {cordon: Always}\n"
                        "  operations:\n"
                        "  - {name: say, type: one-shot, script: echo hello}\n");
    operations_run(&x, DAYS(3));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    operations_crash(&x); /* nor does the next leader write what stands there */
    operations_start(&x);
    operations_run(&x, HOURS(1));
    CHECK(str_eq(reference_text(&x, WINDOWS, "night", "metadata.resourceVersion"), window));
    CHECK(str_eq(reference_text(&x, SERIES, "all", "metadata.resourceVersion"), series));
    operations_end(&x);
}

TEST(reference_status_of_a_window_names_the_field_that_is_wrong)
{
    static const struct {
        const char *spec;
        const char *condition;
    } cases[] = {
        { "  recurrences: [{rrule: 'FREQ=SECONDLY', start: '02:00', duration: 1h}]\n",
          "False/UnsupportedRule: spec.recurrences[0].rrule" },
        { "  timeZone: Europe/Nowhere\n  days: [Mon]\n  from: '02:00'\n  to: '04:00'\n",
          "spec.timeZone" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct operations_fixture x;
        check_case((int)i);
        operations_begin(&x, 1);
        window_create(&x, "wrong", cases[i].spec);
        operations_run(&x, MINUTES(1));
        struct str condition = reference_condition(&x, WINDOWS, "wrong");
        if (!str_contains(condition, str_from(cases[i].condition))) {
            check_fail(__FILE__, __LINE__, STR_FMT, STR_ARG(condition));
        }
        CHECK(!jval_bool(jval_at(reference_find(&x, WINDOWS, "wrong"), "status.open"), true));
        operations_end(&x);
    }
    check_case(-1);
}

TEST(reference_status_of_a_window_says_when_it_opens_no_more)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    window_create(
        &x, "once",
        "  recurrences: [{at: {from: '2026-01-05T01:00:00Z', to: '2026-01-05T02:00:00Z'}}]\n");
    operations_run(&x, MINUTES(90));
    CHECK_STR(reference_condition(&x, WINDOWS, "once"), "True/Valid: ");
    CHECK(jval_bool(jval_at(reference_find(&x, WINDOWS, "once"), "status.open"), false));
    operations_run(&x, HOURS(1));
    CHECK_STR(reference_condition(&x, WINDOWS, "once"),
              "False/NeverOpens: spec: it does not open in the next 9 years");
    operations_end(&x);
}

TEST(reference_status_of_a_series_counts_its_machines)
{
    struct operations_fixture x;
    operations_begin(&x, 5);
    operations_create(&x, "NodeSeries", SERIES, "some",
                      "  {names: [node-001, node-002, node-003]}\n");
    operations_create(&x, "NodeSeries", SERIES, "none", "  {names: [elsewhere]}\n");
    (void)operations_http(&x, 200, "PATCH", "/api/v1/nodes/node-002",
                          STR("{\"metadata\":{\"labels\":{\"drydock.dev/hold\":\"true\"}}}"));
    operations_run(&x, MINUTES(1));
    CHECK_STR(reference_condition(&x, SERIES, "some"), "True/Resolved: ");
    CHECK_EQ(reference_number(&x, SERIES, "some", "status.matched"), 3);
    CHECK_EQ(reference_number(&x, SERIES, "some", "status.held"), 1);
    CHECK_EQ(reference_number(&x, SERIES, "some", "status.external"), 0);
    CHECK_EQ(reference_number(&x, SERIES, "some", "status.observedGeneration"), 1);
    const struct jval *names = jval_at(reference_find(&x, SERIES, "some"), "status.names");
    CHECK_EQ(names->n, 3);
    CHECK_STR(jval_str(jval_first(names)), "node-001");
    CHECK_STR(reference_condition(&x, SERIES, "none"), "True/NoMachines: no node matches spec");
    struct str hash = arena_str(&x.memory, reference_text(&x, SERIES, "some", "status.hash"));
    (void)operations_http(&x, 200, "DELETE", "/api/v1/nodes/node-003", STR(""));
    operations_run(&x, MINUTES(1));
    CHECK_EQ(reference_number(&x, SERIES, "some", "status.matched"), 2);
    CHECK(!str_eq(reference_text(&x, SERIES, "some", "status.hash"), hash));
    operations_end(&x);
}

TEST(reference_status_of_a_series_follows_the_age_of_machines)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_create(&x, "NodeSeries", SERIES, "old", "  {globs: ['node-*'], minAge: 30m}\n");
    operations_run(&x, MINUTES(10));
    CHECK_EQ(reference_number(&x, SERIES, "old", "status.matched"), 0);
    operations_run(&x, MINUTES(25)); /* nothing but time has changed */
    CHECK_EQ(reference_number(&x, SERIES, "old", "status.matched"), 2);
    operations_end(&x);
}

TEST(reference_status_of_a_template_counts_who_uses_it)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_create(&x, "NodeOperationTemplate", TEMPLATES, "greet",
                      "  parameters:\n"
                      "  - {name: whom, type: string, required: true}\n"
                      "  - {name: often, type: int, default: 1}\n"
                      "  job: {script: 'echo hello'}\n");
    operations_run(&x, MINUTES(1));
    CHECK_STR(reference_condition(&x, TEMPLATES, "greet"), "True/Valid: ");
    CHECK_STR(reference_text(&x, TEMPLATES, "greet", "status.parameters"), "2, 1 required");
    CHECK_EQ(reference_text(&x, TEMPLATES, "greet", "status.revision").n, 64);
    CHECK_EQ(reference_number(&x, TEMPLATES, "greet", "status.usedBy"), 0);
    operations_maintain(&x, "a",
                        "  suspend: true\n"
                        "  operations:\n"
                        "  - {name: g, type: one-shot, template: {name: greet, parameters: {whom: "
                        "you}}}\n");
    operations_run(&x, MINUTES(1));
    CHECK_EQ(reference_number(&x, TEMPLATES, "greet", "status.usedBy"), 1);
    (void)operations_http(&x, 200, "DELETE", NODE_MAINTENANCES_PATH "/a", STR(""));
    operations_run(&x, MINUTES(1));
    CHECK_EQ(reference_number(&x, TEMPLATES, "greet", "status.usedBy"), 0);
    operations_end(&x);
}

TEST(reference_status_survives_objects_that_go_and_servers_that_refuse)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    for (uint32_t i = 0; i < 30; i++) { /* they go while their status is being written */
        window_create(&x, "night", "  {days: [Mon], from: '02:00', to: '04:00'}\n");
        operations_run(&x, MSECONDS(i));
        (void)operations_http(&x, 200, "DELETE", MAINTENANCE_WINDOWS_PATH "/night", STR(""));
        operations_run(&x, MSECONDS(i % 7));
    }
    window_create(&x, "night", "  {days: [Mon], from: '02:00', to: '04:00'}\n");
    operations_run(&x, MINUTES(5));
    CHECK_STR(reference_condition(&x, WINDOWS, "night"), "True/Valid: ");
    operations_end(&x);
}
