/* Secrets and ConfigMaps that payloads and windows refer to. */
#include "tests/unit/operation/operations_fixture.h"

#define JOBS_SPACE "/api/v1/namespaces/drydock-jobs"

static void put(struct operations_fixture *x, bool secret, const char *name, const char *data)
{
    const char *path =
        arena_printf(&x->memory, JOBS_SPACE "/%s", secret ? "secrets" : "configmaps").p;
    struct str body = arena_printf(
        &x->memory, "{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"},%s}",
        secret ? "Secret" : "ConfigMap", name, data);
    struct str answer = operations_http(x, 0, "POST", path, body);
    if (str_contains(answer, STR("AlreadyExists"))) {
        (void)operations_http(x, 200, "PATCH", arena_printf(&x->memory, "%s/%s", path, name).p,
                              arena_printf(&x->memory, "{%s}", data));
    }
}

static void check_refused(struct operations_fixture *x, const char *reason, const char *part)
{
    CHECK_STR(operations_condition(x, "uses", "Accepted"),
              arena_printf(&x->memory, "False/%s", reason));
    struct str message = operations_message(x, "uses", "Accepted");
    if (!str_contains(message, str_from(part))) {
        check_fail(__FILE__, __LINE__, "'" STR_FMT "' does not say '%s'", STR_ARG(message), part);
    }
    CHECK_EQ(x->jobs_made, 0);
}

#define OPERATION(payload)                                                                         \
    "  operations:\n"                                                                              \
    "  - {name: say, type: one-shot, job: {" payload "}}\n"

TEST(references_that_are_missing_are_named_and_waited_for)
{
    static const struct {
        const char *spec;
        const char *part;
        bool secret;
        const char *data; /* of 'keys', which mends it */
    } cases[] = {
        { OPERATION("script: a, secrets: [{name: keys, mountPath: /k}]"),
          "job.secrets[0].name: there is no Secret 'keys' in namespace 'drydock-jobs'", true,
          "\"data\":{}" },
        { OPERATION("script: a, configMaps: [{name: keys, mountPath: /k}]"),
          "job.configMaps[0].name: there is no ConfigMap 'keys'", false, "\"data\":{}" },
        { OPERATION("scriptFrom: {configMap: keys, key: run.sh}"),
          "job.scriptFrom: there is no ConfigMap 'keys'", false, "\"data\":{\"run.sh\":\"echo\"}" },
        { OPERATION("script: a, env: [{name: A, valueFrom: {secretKeyRef: {name: keys, key: a}}}]"),
          "job.env[0].valueFrom.secretKeyRef: there is no Secret 'keys'", true,
          "\"data\":{\"a\":\"YQ==\"}" },
        { OPERATION("script: a, envFrom: [{configMapRef: {name: keys}}]"),
          "job.envFrom[0].configMapRef: there is no ConfigMap 'keys'", false, "\"data\":{}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct operations_fixture x;
        check_case((int64_t)i);
        operations_begin(&x, 1);
        operations_maintain(&x, "uses", cases[i].spec);
        operations_run(&x, MINUTES(1));
        check_refused(&x, "RefNotFound", cases[i].part);
        put(&x, cases[i].secret, "keys", cases[i].data);
        operations_run(&x, MINUTES(5));
        CHECK_STR(operations_text(&x, "uses", "status.phase"), "Complete");
        CHECK_EQ(x.jobs_made, 1);
        operations_end(&x);
    }
    check_case(-1);
}

TEST(references_name_a_key_that_is_missing)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    put(&x, false, "scripts", "\"data\":{\"other.sh\":\"echo\"}");
    operations_maintain(&x, "uses", OPERATION("scriptFrom: {configMap: scripts, key: run.sh}"));
    operations_run(&x, MINUTES(1));
    check_refused(&x, "RefNotFound", "ConfigMap 'scripts' has no key 'run.sh'");
    operations_end(&x);
}

TEST(references_that_change_run_it_again)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    put(&x, true, "keys", "\"data\":{\"a\":\"YQ==\"}");
    operations_maintain(&x, "uses", OPERATION("script: a, secrets: [{name: keys, mountPath: /k}]"));
    operations_run(&x, MINUTES(5));
    CHECK_EQ(x.jobs_made, 1);
    put(&x, true, "keys", "\"metadata\":{\"labels\":{\"a\":\"b\"}}"); /* its data is the same */
    operations_run(&x, MINUTES(5));
    CHECK_EQ(x.jobs_made, 1);
    operations_crash(&x);
    operations_start(&x);
    operations_run(&x, MINUTES(5)); /* a restart does not change what is asked for */
    CHECK_EQ(x.jobs_made, 1);
    put(&x, true, "keys", "\"data\":{\"a\":\"Yg==\"}");
    operations_run(&x, MINUTES(5));
    CHECK_EQ(x.jobs_made, 2);
    CHECK_STR(operations_text(&x, "uses", "status.phase"), "Complete");
    operations_end(&x);
}

TEST(references_that_are_not_to_count_do_not)
{
    static const char *const specs[] = {
        OPERATION("script: a, configMaps: [{name: keys, mountPath: /k, ignoreUpdates: true}]"),
        "  operations:\n"
        "  - name: say\n"
        "    type: one-shot\n"
        "    trackReferences: false\n"
        "    job: {script: a, configMaps: [{name: keys, mountPath: /k}]}\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        struct operations_fixture x;
        check_case((int64_t)i);
        operations_begin(&x, 1);
        put(&x, false, "keys", "\"data\":{\"a\":\"1\"}");
        operations_maintain(&x, "uses", specs[i]);
        operations_run(&x, MINUTES(5));
        CHECK_EQ(x.jobs_made, 1);
        put(&x, false, "keys", "\"data\":{\"a\":\"2\"}");
        operations_run(&x, MINUTES(5));
        CHECK_EQ(x.jobs_made, 1);
        operations_end(&x);
    }
    check_case(-1);
}

TEST(references_that_may_be_absent_count_when_they_come)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(
        &x, "uses", OPERATION("script: a, secrets: [{name: keys, mountPath: /k, optional: true}]"));
    operations_run(&x, MINUTES(5));
    CHECK_EQ(x.jobs_made, 1);
    put(&x, true, "keys", "\"data\":{}");
    operations_run(&x, MINUTES(5));
    CHECK_EQ(x.jobs_made, 2);
    operations_end(&x);
}

TEST(references_that_may_not_be_read_stop_only_those_who_refer)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_crash(&x);
    x.door.path = JOBS_SPACE "/secrets";
    operations_start(&x);
    operations_maintain(&x, "uses", OPERATION("script: a, secrets: [{name: keys, mountPath: /k}]"));
    operations_run(&x, MINUTES(2));
    check_refused(&x, "Forbidden", "Secrets cannot be read");
    operations_maintain(&x, "other", OPERATION("script: b"));
    operations_run(&x, MINUTES(5));
    CHECK_STR(operations_text(&x, "other", "status.phase"), "Complete");
    put(&x, true, "keys", "\"data\":{}");
    x.door.path = NULL;
    operations_run(&x, MINUTES(20));
    CHECK_STR(operations_text(&x, "uses", "status.phase"), "Complete");
    operations_end(&x);
}

/* ── calendars ─────────────────────────────────────────────────────────────────────────────── */

#define FREEZE_ON(day)                                                                             \
    "\"data\":{\"freeze.ics\":\"BEGIN:VCALENDAR\\nBEGIN:VEVENT\\nUID:1\\nDTSTART;VALUE=DATE:" day  \
    "\\nEND:VEVENT\\nEND:VCALENDAR\\n\"}"

#define EVERY_DAY                                                                                  \
    "  timeZone: UTC\n"                                                                            \
    "  recurrences: [{weekly: {days: [Mon, Tue, Wed], from: '01:00', to: '02:00'}}]\n"             \
    "  exclude: [{ics: {configMap: company, key: freeze.ics}}]\n"

TEST(calendars_of_config_maps_keep_windows_closed)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    put(&x, false, "company", FREEZE_ON("20260105")); /* today */
    operations_create(&x, "MaintenanceWindow", "maintenancewindows", "nights", EVERY_DAY);
    operations_maintain(&x, "uses", "  window: {refs: [nights]}\n" OPERATION("script: a"));
    operations_run(&x, HOURS(3));
    CHECK_STR(operations_condition(&x, "uses", "Accepted"), "True/Valid");
    CHECK_EQ(x.jobs_made, 0);
    CHECK_STR(operations_text(&x, "uses", "status.next"), "01-06 01:00Z");
    put(&x, false, "company", FREEZE_ON("20260106")); /* now it is tomorrow */
    operations_run(&x, MINUTES(5));
    CHECK_STR(operations_text(&x, "uses", "status.next"), "01-07 01:00Z");
    operations_crash(&x);
    operations_start(&x);
    operations_run(&x, HOURS(30)); /* Tuesday, 09:00 */
    CHECK_EQ(x.jobs_made, 0);
    operations_run(&x, HOURS(24));
    CHECK_EQ(x.jobs_made, 1);
    operations_end(&x);
}

TEST(calendars_that_are_missing_are_named_and_waited_for)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_create(&x, "MaintenanceWindow", "maintenancewindows", "nights", EVERY_DAY);
    operations_maintain(&x, "uses", "  window: {refs: [nights]}\n" OPERATION("script: a"));
    operations_run(&x,
                   HOURS(2)); /* it would have been open: what is not known is not passed over */
    check_refused(&x, "Invalid", "there is no ConfigMap 'company' in namespace 'drydock-jobs'");
    put(&x, false, "company", "\"data\":{\"freeze.ics\":\"no calendar\"}");
    operations_run(&x, MINUTES(1));
    check_refused(&x, "Invalid", "has no calendar (BEGIN:VCALENDAR) under the key 'freeze.ics'");
    put(&x, false, "company", FREEZE_ON("20260105"));
    operations_run(&x, DAYS(1));
    CHECK_STR(operations_text(&x, "uses", "status.phase"), "Complete");
    (void)operations_http(&x, 200, "DELETE", JOBS_SPACE "/configmaps/company", STR(""));
    operations_run(&x, MINUTES(1));
    CHECK_STR(operations_condition(&x, "uses", "Accepted"), "False/Invalid");
    operations_end(&x);
}

TEST(calendars_of_an_objects_own_window_are_read)
{
    struct operations_fixture x;
    operations_begin(&x, 1);
    operations_maintain(&x, "uses",
                        "  window:\n"
                        "    recurrences: [{weekly: {days: [Mon, Tue], from: '01:00', to: "
                        "'02:00'}}]\n"
                        "    exclude: [{ics: {configMap: company, key: "
                        "freeze.ics}}]\n" OPERATION("script: a"));
    operations_run(&x, MINUTES(1));
    CHECK_STR(operations_condition(&x, "uses", "Accepted"), "False/CalendarNotFound");
    put(&x, false, "company", FREEZE_ON("20260105"));
    operations_run(&x, HOURS(3));
    CHECK_STR(operations_condition(&x, "uses", "Accepted"), "True/Valid");
    CHECK_EQ(x.jobs_made, 0);
    operations_run(&x, DAYS(1));
    CHECK_EQ(x.jobs_made, 1);
    operations_end(&x);
}
