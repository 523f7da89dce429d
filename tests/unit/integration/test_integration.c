#include "integration/integration.h"

#include "format/json.h"
#include "kinds/keys.h"
#include "tests/check.h"
#include "tests/lib/integration_fixture.h"
#include "web/metrics_text.h"

#define GOOD                                                                                       \
    "intervals:\n"                                                                                 \
    "  requeue: 30s\n"                                                                             \
    "  podDeletion: {period: 10s, timeout: 5m}\n"                                                  \
    "  podEviction: {period: 10s, timeout: 5m, force: true}\n"

/* What a file of Kubernikus gives: its problems, one a line. */
static struct str problems_of(const char *yaml, struct arena *a)
{
    struct problems problems = { .out = a };
    void *ignored = NULL;
    struct str text = STR("");
    int r = integration_load(integration_find_provider(STR("kubernikus")), str_from(yaml),
                             (struct ucfg_env){ 0 }, a, &ignored, &problems);
    CHECK_EQ(r, problems.errors > 0 ? -ERR_INVALID : 0);
    for (uint32_t i = 0; i < problems.n; i++) {
        const struct problem *p = &problems.items[i];
        text = arena_printf(a, STR_FMT "%u:%u: %s" STR_FMT "\n", STR_ARG(text), p->pos.line,
                            p->pos.column, p->warning ? "warning: " : "", STR_ARG(p->text));
    }
    return text;
}

TEST(integration_lists_what_is_wrong_with_a_file)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CHECK_STR(problems_of(GOOD, &a), "");
    CHECK_STR(
        problems_of("intervals:\n"
                    "  requeue: soon\n"
                    "  podDeletion: [1]\n"
                    "  podEviction: {period: 0s, timeout: 5m, force: perhaps}\n"
                    "cloudProviderSecret: {name: x}\n",
                    &a),
        "1:1: key 'intervals.podDeletion.period': found nothing, want a duration such as 30s\n"
        "1:1: key 'intervals.podDeletion.timeout': found nothing, want a duration such as "
        "30s\n"
        "2:12: key 'intervals.requeue': found 'soon', want a duration such as 1h30m or 45s\n"
        "3:16: key 'intervals.podDeletion': found a list, want a mapping\n"
        "4:25: key 'intervals.podEviction.period': found nothing above 0, want a duration "
        "such as 30s\n"
        "4:49: key 'intervals.podEviction.force': found 'perhaps', want true or false\n"
        "5:22: warning: key 'cloudProviderSecret': found one of 'name' and 'namespace', want "
        "both; the file is used\n");
}

TEST(integration_takes_the_file_by_its_name)
{
    CHECK(integration_provider_of_file(STR("/etc/x/kubernikus.yaml")) ==
          integration_find_provider(STR("kubernikus")));
    CHECK(integration_provider_of_file(STR("maintenance.yaml")) == NULL);
    CHECK(integration_find_provider(STR("none")) == NULL);
}

static void add_node(struct integration_fixture *f, const char *name, const char *kubelet)
{
    struct str body = arena_printf(&f->memory,
                                   "{\"metadata\":{\"name\":\"%s\"},\"status\":{\"nodeInfo\":"
                                   "{\"kubeletVersion\":\"%s\"}}}",
                                   name, kubelet);
    (void)integration_fixture_ask(f, "POST", "/api/v1/nodes", body.p);
    struct str path = arena_printf(&f->memory, "/api/v1/nodes/%s/status", name);
    (void)integration_fixture_ask(f, "PATCH", path.p, body.p);
}

static struct str server_version(struct integration_fixture *f)
{
    return jval_str(
        jval_get(integration_fixture_ask(f, "GET", "/version", NULL), STR("gitVersion")));
}

TEST(kubernikus_says_which_kubelets_have_another_version)
{
    struct integration_fixture f;
    integration_fixture_init(&f, "kubernikus");
    CHECK_EQ(integration_fixture_configure(&f, GOOD), 0);
    add_node(&f, "old", "v1.1.0");
    add_node(&f, "same", arena_str(&f.memory, server_version(&f)).p);
    add_node(&f, "new", "v1.156.2");
    add_node(&f, "silent", "");
    integration_fixture_run(&f, SECONDS(10));
    CHECK_STR(integration_fixture_label(&f, "old", KEY_KUBELET_NEEDS_UPDATE), "true");
    CHECK_STR(integration_fixture_label(&f, "same", KEY_KUBELET_NEEDS_UPDATE), "false");
    CHECK_STR(integration_fixture_label(&f, "new", KEY_KUBELET_NEEDS_UPDATE), "true");
    CHECK(integration_fixture_label(&f, "silent", KEY_KUBELET_NEEDS_UPDATE).p == NULL);

    /* A kubelet that is replaced is seen at once, and nobody else writes. */
    add_node(&f, "silent2", "v1.1.0");
    integration_fixture_run(&f, SECONDS(1));
    CHECK_STR(integration_fixture_label(&f, "silent2", KEY_KUBELET_NEEDS_UPDATE), "true");
    integration_fixture_done(&f);
}

static void keep_activity(void *ctx, const struct activity *activity)
{
    *(struct activity *)ctx = *activity;
}

TEST(integration_keeps_the_last_good_configuration)
{
    struct integration_fixture f;
    struct str why = STR_NONE;
    integration_fixture_init(&f, "kubernikus");
    add_node(&f, "a", "v1.1.0");
    integration_fixture_run(&f, SECONDS(5));
    CHECK(!core_ready(f.core, &why));
    CHECK_STR(why, "Kubernikus has no configuration: it has not been read yet");
    CHECK_EQ(integration_fixture_configure(&f, "intervals: {requeue: 1s}\n"), -ERR_INVALID);
    CHECK(!core_ready(f.core, &why));
    CHECK(str_contains(why, STR("f.yaml:1:1: key 'intervals.podDeletion.period'")));
    CHECK(integration_fixture_label(&f, "a", KEY_KUBELET_NEEDS_UPDATE).p == NULL);

    CHECK_EQ(integration_fixture_configure(&f, GOOD), 0);
    integration_fixture_run(&f, SECONDS(5));
    CHECK(core_ready(f.core, &why));
    CHECK_STR(integration_fixture_label(&f, "a", KEY_KUBELET_NEEDS_UPDATE), "true");

    CHECK_EQ(integration_fixture_configure(&f, "intervals: {requeue: 1s}\n"), -ERR_INVALID);
    add_node(&f, "b", "v1.1.0");
    integration_fixture_run(&f, SECONDS(5));
    CHECK(core_ready(f.core, &why));
    CHECK_STR(integration_fixture_label(&f, "b", KEY_KUBELET_NEEDS_UPDATE), "true");

    struct activity shown = { 0 };
    integrations_each(&f.all, keep_activity, &shown);
    CHECK_STR(shown.who, "kubernikus");
    CHECK(str_contains(shown.error, STR("f.yaml:1:1:")));
    CLEANUP(buf_done)
    struct buf text = { 0 };
    metrics_text_print(&f.metrics, &text);
    CHECK(str_contains(buf_str(&text),
                       STR("drydock_integration_config_valid{integration=\"kubernikus\"} 0\n")));
    integration_fixture_done(&f);
}

TEST(kubernikus_tells_what_it_did_to_a_node)
{
    struct integration_fixture f;
    integration_fixture_init(&f, "kubernikus");
    CHECK_EQ(integration_fixture_configure(&f, GOOD), 0);
    add_node(&f, "a", "v1.1.0");
    integration_fixture_run(&f, SECONDS(5));
    struct activity shown = { 0 };
    integrations_each_of_node(&f.all, STR("a"), keep_activity, &shown);
    CHECK_STR(shown.did, "the label of the kubelet's version is written");
    shown = (struct activity){ 0 };
    integrations_each_of_node(&f.all, STR("nobody"), keep_activity, &shown);
    CHECK_EQ(shown.who.n, 0);
    integration_fixture_done(&f);
}
