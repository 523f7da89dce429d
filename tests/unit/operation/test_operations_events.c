#include "base/metric.h"
#include "tests/unit/operation/operations_fixture.h"

#define FAILING                                                                                    \
    "  failurePolicy: {retries: 0}\n"                                                              \
    "  operations:\n"                                                                              \
    "  - name: fail\n"                                                                             \
    "    type: one-shot\n"                                                                         \
    "    job: {script: 'false', podAnnotations: {sandbox.drydock.dev/exit: '3'}}\n"

struct event_search {
    const char *kind;
    const char *reason;
    uint32_t n;
    struct str note; /* of the last */
    struct str name; /* of whom it is about */
};

static void event_search_look(struct operations_fixture *x, struct event_search *s)
{
    struct err err = { 0 };
    const struct jval *list = NULL;
    struct str body = operations_http(x, 200, "GET", "/apis/events.k8s.io/v1/events", STR(""));
    CHECK_EQ(json_parse(body, 0, &x->memory, &list, &err), 0);
    JVAL_EACH (jval_get(list, STR("items")), e) {
        if (str_eq(jval_str(jval_at(e, "regarding.kind")), str_from(s->kind)) &&
            str_eq(jval_str(jval_get(e, STR("reason"))), str_from(s->reason))) {
            s->n++;
            s->note = jval_str(jval_get(e, STR("note")));
            s->name = jval_str(jval_at(e, "regarding.name"));
        }
    }
}

static struct event_search events_of(struct operations_fixture *x, const char *kind,
                                     const char *reason)
{
    struct event_search s = { .kind = kind, .reason = reason };
    event_search_look(x, &s);
    return s;
}

static double metric_value(struct metrics *m, const char *family, const char *label)
{
    struct str value = label != NULL ? str_from(label) : STR_NONE;
    metrics_collect(m);
    struct metric *f = metrics_find(m, str_from(family));
    CHECK(f != NULL);
    return metric_series(f, label != NULL ? &value : NULL)->value;
}

TEST(operations_events_tell_of_a_failure_on_the_node_and_the_object)
{
    struct operations_fixture x;
    operations_begin(&x, 2);
    operations_maintain(&x, "broken", "  disruption: {cordon: Always}\n" FAILING);
    operations_run(&x, MINUTES(10));
    struct event_search object = events_of(&x, "NodeMaintenance", "RunFailed");
    struct event_search node = events_of(&x, "Node", "RunFailed");
    CHECK_EQ(object.n, 1);
    CHECK_EQ(node.n, 1);
    CHECK(str_eq(object.note, node.note));
    CHECK(str_contains(node.note, STR("operation fail failed on node")));
    CHECK(str_contains(node.note, node.name));
    struct event_search paused = events_of(&x, "NodeMaintenance", "Paused");
    CHECK_EQ(paused.n, 1);
    CHECK(str_contains(paused.note, STR("drydock resume broken")));
    operations_crash(&x); /* who leads next knows that it was told */
    operations_start(&x);
    operations_run(&x, MINUTES(10));
    CHECK_EQ(events_of(&x, "NodeMaintenance", "Paused").n, 1);
    operations_end(&x);
}

TEST(operations_events_gather_successes)
{
    struct operations_fixture x;
    operations_begin(&x, 10);
    operations_maintain(&x, "hello",
                        "  rollout: {maxConcurrent: 10, minReady: 1s}\n"
                        "  operations:\n"
                        "  - {name: say, type: one-shot, script: hello, disruptive: Never}\n");
    operations_run(&x, MINUTES(5));
    struct event_search told = events_of(&x, "NodeMaintenance", "RunsSucceeded");
    CHECK_EQ(told.n, 1);
    CHECK_STR(told.note, "10 runs succeeded, 0 found nothing to do; 10 of 10 machines are done");
    CHECK_EQ(events_of(&x, "Node", "RunsSucceeded").n, 0);
    struct event_search complete = events_of(&x, "NodeMaintenance", "Complete");
    CHECK_EQ(complete.n, 1);
    CHECK_STR(complete.note, "all 10 machines have done it");
    operations_end(&x);
}

TEST(operations_events_tell_of_reboots_overrides_and_refusals)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_create(&x, "MaintenanceWindow", "maintenancewindows", "never",
                      "  {days: [Sun], from: '02:00', to: '04:00'}\n");
    operations_maintain(&x, "now",
                        "  window: {refs: [never], override: {until: '2026-01-05T03:00:00Z', "
                        "reason: CVE-2026-0001}}\n"
                        "  operations:\n"
                        "  - {name: reboot, type: one-shot, reboot: {policy: Always}}\n");
    operations_maintain(&x, "wrong",
                        "  window: {refs: [nowhere]}\n"
                        "  operations: [{name: say, type: one-shot, script: hello}]\n");
    operations_run(&x, MINUTES(20));
    CHECK_EQ(x.reboots, 1);
    CHECK_STR(events_of(&x, "Node", "Rebooted").note, "node node-001 was rebooted and is back");
    CHECK_STR(operations_condition(&x, "now", "WindowOpen"), "True/Override");
    CHECK_STR(events_of(&x, "NodeMaintenance", "WindowOverride").note,
              "spec.window.override passes by windows and freezes until 2026-01-05T03:00:00Z: "
              "CVE-2026-0001");
    CHECK_STR(events_of(&x, "NodeMaintenance", "NotAccepted").note,
              "spec.window.refs[0]: there is no MaintenanceWindow 'nowhere'");
    operations_end(&x);
}

TEST(operations_metrics_count_runs_visits_and_windows)
{
    struct operations_fixture x;
    struct metrics metrics;
    metrics_init(&metrics);
    operations_begin(&x, 2);
    operations_crash(&x);
    x.metrics = &metrics;
    operations_start(&x);
    operations_create(&x, "MaintenanceWindow", "maintenancewindows", "night",
                      "  {days: [Mon], from: '00:00', to: '04:00'}\n");
    operations_maintain(&x, "good",
                        "  disruption: {cordon: Always}\n"
                        "  operations: [{name: say, type: one-shot, script: hello}]\n");
    operations_maintain(&x, "broken", FAILING);
    operations_run(&x, MINUTES(30));
    CHECK_EQ((int64_t)metric_value(&metrics, "drydock_runs_total", "Succeeded"), 2);
    CHECK_EQ((int64_t)metric_value(&metrics, "drydock_runs_total", "Failed"), 1);
    CHECK_EQ((int64_t)metric_value(&metrics, "drydock_window_open", "night"), 1);
    CHECK_EQ((int64_t)metric_value(&metrics, "drydock_node_maintenances", "Complete"), 1);
    CHECK_EQ((int64_t)metric_value(&metrics, "drydock_node_maintenances", "Paused"), 1);
    CHECK_EQ((int64_t)metric_value(&metrics, "drydock_node_maintenances", "Running"), 0);
    struct metric_series *seconds =
        metric_series(metrics_find(&metrics, STR("drydock_visit_seconds")), NULL);
    CHECK(seconds->count >= 2 && seconds->count <= 3); /* two may share a visit */
    CHECK(seconds->sum > 1 && seconds->sum < 600);
    (void)operations_http(&x, 200, "DELETE", MAINTENANCE_WINDOWS_PATH "/night", STR(""));
    operations_run(&x, MINUTES(1));
    CHECK_EQ((int64_t)metric_value(&metrics, "drydock_window_open", "night"), 0);
    operations_end(&x);
    metrics_done(&metrics);
}

TEST(operations_metrics_count_ticks_that_nobody_served)
{
    struct operations_fixture x;
    struct metrics metrics;
    metrics_init(&metrics);
    operations_begin(&x, 3);
    operations_crash(&x);
    x.metrics = &metrics;
    operations_start(&x);
    operations_maintain(&x, "hourly",
                        "  operations:\n"
                        "  - {name: clean, type: cron, schedule: '0 * * * *', disruptive: Never, "
                        "script: clean}\n");
    operations_run(&x, MINUTES(90)); /* 01:00 is served */
    CHECK_EQ((int64_t)metric_value(&metrics, "drydock_cron_missed_total", NULL), 0);
    operations_patch(&x, "hourly", "{\"spec\":{\"suspend\":true}}");
    operations_run(&x, HOURS(2)); /* 02:00 is not, when 03:00 comes */
    CHECK_EQ((int64_t)metric_value(&metrics, "drydock_cron_missed_total", NULL), 3);
    operations_end(&x);
    metrics_done(&metrics);
}
