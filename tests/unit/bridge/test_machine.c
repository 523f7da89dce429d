#include "bridge/machine.h"

#include "base/timestamp.h"
#include "tests/check.h"

#define LEGACY "runtime-extension-maintenance-controller.cloud.sap/"
#define HOOK "pre-drain.delete.hook.machine.cluster.x-k8s.io/maintenance-controller"

static const struct machine *read_machine(struct arena *out, const char *text)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    void *ret = NULL;
    CHECK_EQ(json_parse(str_from(text), 0, out, &object, &err), 0);
    CHECK_EQ(machine_kind.project(NULL, object, out, &ret, &err), 0);
    return ret;
}

static usec_t at(const char *text)
{
    struct timestamp stamp;
    struct err err = { 0 };
    CHECK_EQ(timestamp_parse(str_from(text), &stamp, &err), 0);
    return timestamp_to_usec(stamp);
}

TEST(machine_reads_what_both_versions_have)
{
    static const char *const texts[] = {
        /* v1beta2 */
        "{\"metadata\":{\"namespace\":\"t\",\"name\":\"m\",\"uid\":\"u\"},\"spec\":{"
        "\"clusterName\":"
        "\"c\",\"providerID\":\"metal3://a/b/"
        "c\",\"infrastructureRef\":{\"apiGroup\":\"x\",\"kind\":"
        "\"Metal3Machine\",\"name\":\"i\"}},\"status\":{\"nodeRef\":{\"name\":\"n\"}}}",
        /* v1beta1 */
        "{\"metadata\":{\"namespace\":\"t\",\"name\":\"m\",\"uid\":\"u\"},\"spec\":{"
        "\"clusterName\":"
        "\"c\",\"providerID\":\"metal3://a/b/c\",\"infrastructureRef\":{\"apiVersion\":\"x/"
        "v1\",\"kind\":"
        "\"Metal3Machine\",\"name\":\"i\",\"namespace\":\"t\"}},\"status\":{\"nodeRef\":{"
        "\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n\"}}}",
    };
    const struct machine wanted = {
        .namespace = STR("t"),
        .name = STR("m"),
        .uid = STR("u"),
        .cluster = STR("c"),
        .node = STR("n"),
        .provider_id = STR("metal3://a/b/c"),
        .infra_kind = STR("Metal3Machine"),
        .infra_name = STR("i"),
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        CHECK(machine_kind.same(read_machine(&a, texts[i]), &wanted));
    }
    CHECK(machine_kind.namespaced);
}

TEST(machine_reads_labels_and_annotations)
{
    static const struct {
        const char *metadata;
        struct machine wanted;
    } cases[] = {
        { "{}", { .enabled = false } },
        { "7", { .enabled = false } },
        { "{\"labels\":{\"" LEGACY "enabled\":\"true\"}}", { .enabled = true } },
        { "{\"labels\":{\"" LEGACY "enabled\":\"True\"}}", { .enabled = false } },
        { "{\"labels\":{\"" LEGACY "enabled\":true}}", { .enabled = false } },
        { "{\"labels\":{\"" LEGACY "maintenance\":\"requested\"}}",
          { .request = MACHINE_REQUEST_REQUESTED } },
        { "{\"labels\":{\"" LEGACY "maintenance\":\"approved\"}}",
          { .request = MACHINE_REQUEST_APPROVED } },
        { "{\"labels\":{\"" LEGACY "maintenance\":\"done\"}}", { .enabled = false } },
        { "{\"labels\":{\"" LEGACY "maintenance\":\"\"}}", { .enabled = false } },
        { "{\"labels\":{\"cluster.x-k8s.io/control-plane\":\"\"}}", { .control_plane = true } },
        { "{\"annotations\":{\"cluster.x-k8s.io/paused\":\"false\"}}", { .paused = true } },
        { "{\"annotations\":{\"" HOOK "\":\"x\"}}", { .hook = true, .hook_value = STR_INIT("x") } },
        { "{\"annotations\":{\"" HOOK "\":\"\"}}", { .hook = true, .hook_value = STR_INIT("") } },
        { "{\"annotations\":{\"drydock.dev/hook-released\":\"Approved\"}}",
          { .released = STR_INIT("Approved") } },
        { "{\"annotations\":{\"drydock.dev/hook-released\":\"\"}}", { .released = STR_INIT("") } },
        { "{\"annotations\":{\"drydock.dev/maintenance-granted\":\"u/1\"}}",
          { .granted = STR_INIT("u/1") } },
        { "{\"annotations\":{\"drydock.dev/maintenance-approved\":\"true\"}}",
          { .approved_by_annotation = true } },
        { "{\"annotations\":{\"drydock.dev/maintenance-approved\":\"yes\"}}",
          { .enabled = false } },
        { "{\"annotations\":{\"cluster.x-k8s.io/skip-remediation\":\"\"}}",
          { .skip = true, .skip_empty = true } },
        { "{\"annotations\":{\"cluster.x-k8s.io/skip-remediation\":\"x\"}}", { .skip = true } },
        { "{\"annotations\":{\"drydock.dev/skip-remediation\":\"true\"}}", { .skip_ours = true } },
        { "{\"annotations\":{\"drydock.dev/bridge-status\":\"{}\"}}",
          { .status = STR_INIT("{}") } },
        { "{\"annotations\":{\"drydock.dev/power\":\"on\"}}", { .power = STR_INIT("on") } },
        { "{\"annotations\":{\"drydock.dev/power-mode\":\"hard\"}}",
          { .power_mode = STR_INIT("hard") } },
        { "{\"annotations\":{\"in-place-updates.internal.cluster.x-k8s.io/update-in-progress\":"
          "\"\"}}",
          { .updating = true } },
        { "{\"annotations\":{\"runtime.cluster.x-k8s.io/pending-hooks\":\"A,UpdateMachine\"}}",
          { .updating = true } },
        { "{\"annotations\":{\"runtime.cluster.x-k8s.io/pending-hooks\":\"UpdateMachine, B\"}}",
          { .updating = true } },
        { "{\"annotations\":{\"runtime.cluster.x-k8s.io/pending-hooks\":\"CanUpdateMachine\"}}",
          { .enabled = false } },
        { "{\"annotations\":{\"runtime.cluster.x-k8s.io/pending-hooks\":\"\"}}",
          { .enabled = false } },
        { "{\"labels\":[\"x\"],\"annotations\":\"y\",\"managedFields\":{}}", { .enabled = false } },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        const struct machine *m =
            read_machine(&a, arena_printf(&a, "{\"metadata\":%s}", cases[i].metadata).p);
        CHECK(machine_kind.same(m, &cases[i].wanted));
    }
    check_case(-1);
}

TEST(machine_reads_its_own_time_limit)
{
    static const struct {
        const char *value;
        usec_t wanted;
    } cases[] = {
        { "\"3600\"", HOURS(1) },
        { "\"1\"", SECONDS(1) },
        { "\"0\"", USEC_NEVER }, /* says that there is none, whatever the flag says */
        { "\"18446744073709551615\"", USEC_NEVER },
        { "\"99999999999999999999\"", 0 },
        { "\"-1\"", 0 },
        { "\"1h\"", 0 },
        { "\"1.5\"", 0 },
        { "\"\"", 0 },
        { "3600", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        const struct machine *m = read_machine(
            &a,
            arena_printf(&a,
                         "{\"metadata\":{\"annotations\":{\"drydock.dev/deletion-hold-seconds\":"
                         "%s}}}",
                         cases[i].value)
                .p);
        CHECK_EQ(m->hold_max, cases[i].wanted);
    }
    check_case(-1);
}

TEST(machine_knows_since_when_its_hook_is_waited_for)
{
    static const char *const waiting =
        "[{\"type\":\"Ready\",\"reason\":\"WaitingForPreDrainHook\",\"lastTransitionTime\":\"2026-"
        "01-01T00:00:00Z\"},7,{\"type\":\"Deleting\",\"reason\":\"WaitingForPreDrainHook\","
        "\"lastTransitionTime\":\"2026-03-01T10:00:00Z\"}]";
    static const struct {
        const char *status;
        const char *wanted; /* NULL = it does not */
    } cases[] = {
        { "{\"deletion\":{\"waitForPreDrainHookStartTime\":\"2026-03-01T09:00:00Z\"},"
          "\"conditions\":"
          "%s}",
          "2026-03-01T09:00:00Z" },
        { "{\"conditions\":%s}", "2026-03-01T10:00:00Z" },
        { "{\"conditions\":[],\"v1beta2\":{\"conditions\":%s}}", "2026-03-01T10:00:00Z" },
        { "{\"deletion\":{\"waitForPreDrainHookStartTime\":\"soon\"},\"conditions\":%s}",
          "2026-03-01T10:00:00Z" },
        { "{\"conditions\":{\"a\":%s}}", NULL },
        { "{\"deletion\":[%s],\"v1beta2\":7}", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct str left;
        struct str right;
        CHECK(str_cut(str_from(cases[i].status), STR("%s"), &left, &right));
        const struct machine *m =
            read_machine(&a, arena_printf(&a, "{\"status\":" STR_FMT "%s" STR_FMT "}",
                                          STR_ARG(left), waiting, STR_ARG(right))
                                 .p);
        CHECK_EQ(m->hooks_wait_since, cases[i].wanted != NULL ? at(cases[i].wanted) : 0);
    }
    check_case(-1);
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CHECK_EQ(read_machine(&a,
                          "{\"status\":{\"conditions\":[{\"type\":\"Deleting\",\"reason\":"
                          "\"DrainingNode\",\"lastTransitionTime\":\"2026-03-01T10:00:00Z\"}]}}")
                 ->hooks_wait_since,
             0);
}

TEST(machine_is_unhealthy_when_cluster_api_does_not_find_its_node_healthy)
{
    static const struct {
        const char *conditions;
        bool unhealthy;
    } cases[] = {
        { "[{\"type\":\"NodeHealthy\",\"status\":\"True\"}]", false },
        { "[{\"type\":\"NodeHealthy\",\"status\":\"False\"}]", true },
        { "[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"NodeHealthy\",\"status\":"
          "\"Unknown\"}]",
          true },
        { "[{\"type\":\"NodeHealthy\"}]", true },
        { "[{\"type\":\"Ready\",\"status\":\"False\"}]", false },
        { "[7]", false },
        { "{\"type\":\"NodeHealthy\",\"status\":\"False\"}", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        const struct machine *m = read_machine(
            &a, arena_printf(&a, "{\"status\":{\"conditions\":%s}}", cases[i].conditions).p);
        CHECK_EQ(m->unhealthy, cases[i].unhealthy);
    }
    check_case(-1);
}

TEST(machine_is_deleting_even_when_it_does_not_say_since_when)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct machine *m =
        read_machine(&a, "{\"metadata\":{\"deletionTimestamp\":\"2026-03-01T10:00:00Z\"}}");
    CHECK(m->deleting);
    CHECK_EQ(m->deleted_at, at("2026-03-01T10:00:00Z"));
    m = read_machine(&a, "{\"metadata\":{\"deletionTimestamp\":\"yesterday\"}}");
    CHECK(m->deleting);
    CHECK_EQ(m->deleted_at, 0);
    m = read_machine(&a, "{\"metadata\":{\"deletionTimestamp\":null}}");
    CHECK(!m->deleting);
}

TEST(machine_knows_a_request_that_a_template_applies)
{
    static const char *const owned =
        "{\"f:metadata\":{\"f:labels\":{\".\":{},\"f:" LEGACY "maintenance\":{}}}}";
    static const char *const other =
        "{\"f:metadata\":{\"f:labels\":{\"f:" LEGACY "enabled\":{}},\"f:annotations\":{\"f:" LEGACY
        "maintenance\":{}}}}";
    static const struct {
        const char *manager;
        bool owns;
        bool wanted;
    } cases[] = {
        { "capi-machineset", true, true },           { "capi-kubeadmcontrolplane", true, true },
        { "capi-machineset", false, false },         { "kubectl-label", true, false },
        { "capi-machineset-metadata", true, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        const struct machine *m = read_machine(
            &a, arena_printf(&a,
                             "{\"metadata\":{\"managedFields\":[7,{\"manager\":\"manager\"},{"
                             "\"manager\":\"%s\",\"operation\":\"Apply\",\"fieldsV1\":%s}]}}",
                             cases[i].manager, cases[i].owns ? owned : other)
                    .p);
        CHECK_EQ(m->request_templated, cases[i].wanted);
    }
    check_case(-1);
}

/* Nobody needs the labels of a hundred thousand others. */
TEST(machine_keeps_its_labels_only_while_it_asks_for_something)
{
    static const struct {
        const char *more; /* members of the metadata, and labels */
        const char *labels;
        bool kept;
    } cases[] = {
        { "", "\"" LEGACY "enabled\":\"true\"", false },
        { "\"deletionTimestamp\":\"2026-03-01T10:00:00Z\",", "\"a\":\"b\"", false },
        { "\"deletionTimestamp\":\"2026-03-01T10:00:00Z\",",
          "\"" LEGACY "enabled\":\"true\",\"a\":\"b\"", true },
        { "", "\"" LEGACY "enabled\":\"true\",\"" LEGACY "maintenance\":\"requested\"", true },
        { "", "\"" LEGACY "enabled\":\"true\",\"" LEGACY "maintenance\":\"approved\"", true },
        { "", "\"" LEGACY "enabled\":\"true\",\"" LEGACY "maintenance\":\"done\"", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        const struct machine *m =
            read_machine(&a, arena_printf(&a, "{\"metadata\":{%s\"labels\":{%s}}}", cases[i].more,
                                          cases[i].labels)
                                 .p);
        CHECK_EQ(machine_has_request(m), cases[i].kept);
        CHECK_EQ(str_starts(m->labels, STR(LEGACY "enabled=true\n")), cases[i].kept);
        CHECK_EQ(m->labels.n > 0, cases[i].kept);
    }
    check_case(-1);
}

TEST(machine_does_not_take_texts_too_long_to_be_ours)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct machine *m = read_machine(
        &a, arena_printf(
                &a,
                "{\"metadata\":{\"annotations\":{\"drydock.dev/maintenance-granted\":\"%02048d\","
                "\"drydock.dev/hook-released\":\"%02049d\",\"" HOOK "\":\"%05000d\"}}}",
                0, 0, 0)
                .p);
    CHECK_EQ(m->granted.n, MACHINE_TEXT_MAX);
    CHECK(m->released.p == NULL);
    CHECK(m->hook && m->hook_value.p == NULL);
}

TEST(machine_tells_every_fact_from_its_absence)
{
    const struct machine plain = { 0 };
    const struct machine others[] = {
        { .namespace = STR("x") },
        { .name = STR("x") },
        { .uid = STR("x") },
        { .cluster = STR("x") },
        { .node = STR("x") },
        { .provider_id = STR("x") },
        { .infra_kind = STR("x") },
        { .infra_name = STR("x") },
        { .enabled = true },
        { .deleting = true },
        { .paused = true },
        { .control_plane = true },
        { .updating = true },
        { .request = MACHINE_REQUEST_REQUESTED },
        { .request_templated = true },
        { .hook = true },
        { .hook_value = STR("") },
        { .released = STR("") },
        { .granted = STR("") },
        { .status = STR("") },
        { .power = STR("") },
        { .power_mode = STR("") },
        { .approved_by_annotation = true },
        { .skip = true },
        { .skip_empty = true },
        { .skip_ours = true },
        { .deleted_at = 1 },
        { .hooks_wait_since = 1 },
        { .hold_max = 1 },
        { .labels = STR("x=\n") },
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        check_case((int64_t)i);
        CHECK(!machine_kind.same(&plain, &others[i]));
        CHECK(machine_kind.same(&others[i], &others[i]));
    }
    check_case(-1);
}
