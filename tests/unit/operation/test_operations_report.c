#include "operation/operations_report.h"

#include "tests/unit/operation/operations_fixture.h"

static struct str report_text(struct operations_fixture *x, const char *name, bool wide)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct operations_report r;
    CHECK(operations_report(x->operations, &x->memory, &r));
    if (name != NULL) {
        CHECK(operations_report_only(&r, str_from(name)));
    }
    operations_report_print_text(&r, wide, &out);
    return arena_str(&x->memory, buf_str(&out));
}

static const struct jval *report_json(struct operations_fixture *x,
                                      enum operations_report_form form)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct operations_report r;
    struct err err = { 0 };
    const struct jval *root = NULL;
    struct json_writer w = json_writer_on(&out);
    CHECK(operations_report(x->operations, &x->memory, &r));
    operations_report_print_json(&r, form, &w);
    CHECK_EQ(json_parse(arena_str(&x->memory, buf_str(&out)), 0, &x->memory, &root, &err), 0);
    return root;
}

static void check_has(struct str text, const char *wanted)
{
    if (!str_contains(text, str_from(wanted))) {
        check_fail(__FILE__, __LINE__, "'%s' is not in:\n" STR_FMT, wanted, STR_ARG(text));
    }
}

/* No line is wider than a terminal. */
static void check_columns(struct str text)
{
    struct str line;
    while (text.n > 0 && str_split_next(&text, '\n', &line)) {
        if (line.n > 80) {
            check_fail(__FILE__, __LINE__, "too wide: " STR_FMT, STR_ARG(line));
        }
    }
}

#define SAY "  operations: [{name: say, type: one-shot, script: hello}]\n"

TEST(operations_report_shows_windows_and_who_waits_for_them)
{
    struct operations_fixture x;
    operations_begin(&x, 5);
    operations_create(&x, "MaintenanceWindow", "maintenancewindows", "night",
                      "  {days: [Mon], from: '02:00', to: '04:00'}\n");
    operations_maintain(&x, "hello", "  window: {refs: [night]}\n" SAY);
    (void)operations_http(&x, 200, "PATCH", "/api/v1/nodes/node-002",
                          STR("{\"metadata\":{\"labels\":{\"drydock.dev/hold\":\"true\"}}}"));
    operations_run(&x, HOURS(1));
    struct str text = report_text(&x, "hello", false);
    check_columns(text);
    check_has(text, "node maintenance hello: Waiting, WaitingWindow\n");
    check_has(text, "  machines  0 of 5 done, 1 held, 4 pending\n");
    check_has(text, "  window    shut; opens in 59m55s (Mon 02:00:00 UTC)\n");
    check_has(text, "held (1)\n  node-002  waits: the label that holds it to go\n");
    check_has(text,
              "pending (4)\n  node-001, node-003, node-004 and 1 more: wait: the window opens "
              "next:\n    2026-01-05T02:00:00Z\n");
    check_has(report_text(&x, "hello", true), "  node-004  waits: the window opens next: ");
    const struct jval *json = report_json(&x, OPERATIONS_REPORT_WHOLE);
    const struct jval *m = jval_first(jval_get(json, STR("maintenances")));
    CHECK_EQ(jval_get(m, STR("machines"))->n, 5);
    CHECK_EQ(jval_at(m, "window.upcoming")->n, 10);
    CHECK_STR(jval_str(jval_get(m, STR("next"))), "2026-01-05T02:00:00Z");
    const struct jval *window = jval_first(jval_get(json, STR("windows")));
    CHECK_STR(jval_str(jval_get(window, STR("name"))), "night");
    CHECK(!jval_bool(jval_get(window, STR("open")), true));
    CHECK_EQ(jval_get(window, STR("upcoming"))->n, 10);
    operations_end(&x);
}

TEST(operations_report_shows_waves_visits_and_failures)
{
    struct operations_fixture x;
    operations_begin(&x, 6);
    operations_maintain(&x, "waves",
                        "  rollout: {waves: [{name: canary, size: 1, soak: 10m}]}\n"
                        "  disruption: {cordon: Always}\n" SAY);
    operations_run(&x, SECONDS(12));
    struct str text = report_text(&x, "waves", false);
    check_has(text, "waves (2)\n  canary  now: 0 of 1 done; then soaks 10m\n");
    check_has(text, "  rest    coming: 0 of 5 done\n");
    check_has(text, "visits (1)\n  node-00");
    check_has(text, ", operation say");
    check_has(text, ": wait: wave 'canary' to be done\n");
    operations_run(&x, MINUTES(3));
    check_has(report_text(&x, "waves", false), "  canary  soaking, ends in ");
    operations_maintain(
        &x, "broken",
        "  nodeSeries: {names: [node-001]}\n"
        "  failurePolicy: {retries: 0}\n"
        "  operations:\n"
        "  - name: fail\n"
        "    type: one-shot\n"
        "    job: {script: 'false', podAnnotations: {sandbox.drydock.dev/exit: '3'}}\n");
    operations_run(&x, MINUTES(5));
    struct str all = report_text(&x, NULL, false);
    check_columns(all);
    check_has(all, "operations  phase      done       failed  why\n");
    check_has(all, "broken      Paused     0/1        1       ");
    check_has(all, "failed (1)\n  node-001  broken: failed ");
    check_has(all, "ago: fail, attempt 1: ExitCode");
    operations_end(&x);
}

TEST(operations_report_in_brief_leaves_out_who_only_waits)
{
    struct operations_fixture x;
    operations_begin(&x, 8);
    operations_maintain(&x, "hello", "  disruption: {cordon: Always}\n" SAY);
    operations_run(&x, SECONDS(12));
    const struct jval *m =
        jval_first(jval_get(report_json(&x, OPERATIONS_REPORT_BRIEF), STR("maintenances")));
    const struct jval *machines = jval_get(m, STR("machines"));
    CHECK_EQ(machines->n, 1);
    CHECK_STR(jval_str(jval_get(jval_first(machines), STR("state"))), "visited");
    int64_t pending = 0;
    CHECK(jval_i64(jval_at(m, "counts.pending"), &pending) && pending == 7);
    operations_end(&x);
}

TEST(operations_report_of_what_is_refused_names_the_field)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "wrong", "  window: {refs: [nowhere]}\n" SAY);
    operations_run(&x, MINUTES(1));
    struct str text = report_text(&x, "wrong", false);
    check_has(text, "node maintenance wrong: Invalid, RefNotFound\n"
                    "  why       spec.window.refs[0]: there is no MaintenanceWindow 'nowhere'\n");
    struct operations_report r;
    CHECK(operations_report(x.operations, &x.memory, &r));
    CHECK(!operations_report_only(&r, STR("elsewhere")));
    operations_end(&x);
}

TEST(operations_report_survives_nodes_and_objects_that_change)
{
    struct operations_fixture x;
    operations_begin(&x, 6);
    operations_maintain(&x, "hello",
                        "  rollout: {maxConcurrent: 3}\n"
                        "  disruption: {cordon: Always}\n" SAY);
    operations_run(&x, MSECONDS(200));
    for (uint32_t i = 0; i < 60; i++) { /* a look at any time is a turn like others */
        operations_run(&x, MSECONDS(i * 17));
        uint64_t version = operations_report_version(x.operations);
        (void)report_text(&x, "hello", false);
        CHECK_EQ(operations_report_version(x.operations), version);
        if (i == 20) {
            (void)operations_http(&x, 200, "DELETE", "/api/v1/nodes/node-004", STR(""));
            (void)report_text(&x, "hello", false);
        }
    }
    operations_run(&x, MINUTES(10));
    CHECK_STR(operations_text(&x, "hello", "status.phase"), "Complete");
    check_has(report_text(&x, "hello", false), "  machines  5 of 5 done\n");
    (void)operations_http(&x, 200, "DELETE", NODE_MAINTENANCES_PATH "/hello", STR(""));
    operations_run(&x, MINUTES(1));
    CHECK_STR(report_text(&x, NULL, false), "operations  phase      done       failed  why\n");
    operations_end(&x);
}
