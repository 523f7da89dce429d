#include "profile/pod_shuffle_metrics.h"

#include "kube/podlist.h"
#include "profile/controller.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/controller_fixture.h"
#include "tests/lib/fake_api.h"
#include "web/metrics_text.h"

/* 2026-01-02T03:04:05Z */
#define WALL SECONDS(1767323045)
#define COUNT "maintenance_controller_pod_shuffle_count"
#define SHARE "maintenance_controller_pod_shuffles_per_replica"
#define UID "00000000-0000-0000-0000-000000000001"

struct story {
    struct arena memory;
    struct virtual_loop *time;
    struct apiserver *server;
    struct api *door;
    struct client client;
    struct metrics metrics;
    struct controller_metrics series;
    struct log log;
    struct buf lines;
    uint32_t requests;
    uint32_t pods;
    struct pod_shuffle *s;
};

static void on_line(void *ctx, struct str line)
{
    struct story *s = ctx;
    buf_add(&s->lines, line);
}

static void on_reply(void *ctx, enum api_verb verb UNUSED, int status UNUSED)
{
    struct story *s = ctx;
    s->requests++;
}

static void story_begin(struct story *s)
{
    *s = (struct story){ .time = virtual_loop_new(1, WALL) };
    s->log = (struct log){ .write = on_line, .ctx = s };
    s->server = apiserver_new(virtual_loop_root(s->time), 1);
    s->door = sim_api_new(virtual_loop_root(s->time), s->server, NULL);
    client_init(&s->client, virtual_loop_root(s->time), s->door);
    s->client.on_reply = on_reply;
    s->client.ctx = s;
    metrics_init(&s->metrics);
    controller_metrics_init(&s->series, &s->metrics);
    s->s = shuffle_new(&s->client, &s->series, &s->log);
}

static void story_end(struct story *s)
{
    shuffle_free(s->s);
    CHECK_EQ(virtual_loop_armed(s->time), 0);
    metrics_done(&s->metrics);
    sim_api_free(s->door);
    apiserver_free(s->server);
    buf_done(&s->lines);
    arena_done(&s->memory);
    virtual_loop_free(s->time);
}

static void story_run(struct story *s, usec_t span)
{
    (void)virtual_loop_run(s->time, virtual_loop_now(s->time) + span);
}

static void write_as_user(struct story *s, const char *method, struct str path, struct str body,
                          int want)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = str_from(method),
        .path = path,
        .content_type = str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH : API_JSON,
        .body = body,
    };
    apiserver_handle(s->server, &request, &s->memory, &reply);
    if (reply.status != want) {
        check_fail(__FILE__, __LINE__, "%s " STR_FMT ": %d " STR_FMT, method, STR_ARG(path),
                   reply.status, STR_ARG(reply.body));
    }
}

/* "apps/v1 DaemonSet a", NULL for none. */
static struct str references(struct story *s, const char *owner)
{
    struct str api;
    struct str kind;
    struct str name;
    struct str rest;
    if (owner == NULL) {
        return STR("[]");
    }
    CHECK(str_cut(str_from(owner), STR(" "), &api, &rest));
    CHECK(str_cut(rest, STR(" "), &kind, &name));
    return arena_printf(&s->memory,
                        "[{\"apiVersion\":\"" STR_FMT "\",\"kind\":\"" STR_FMT
                        "\",\"name\":\"" STR_FMT "\",\"uid\":\"" UID "\"}]",
                        STR_ARG(api), STR_ARG(kind), STR_ARG(name));
}

static void add_pods(struct story *s, const char *node, const char *owner, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        write_as_user(s, "POST", STR("/api/v1/namespaces/default/pods"),
                      arena_printf(&s->memory,
                                   "{\"metadata\":{\"name\":\"pod-%u\",\"ownerReferences\":" STR_FMT
                                   "},\"spec\":{\"nodeName\":\"%s\",\"containers\":"
                                   "[{\"name\":\"c\",\"image\":\"i\"}]}}",
                                   s->pods++, STR_ARG(references(s, owner)), node),
                      201);
    }
}

/* `replicas` < 0: none given. */
static void add_owner(struct story *s, const char *plural, const char *name, const char *owner,
                      int replicas)
{
    struct str count =
        replicas < 0 ? STR("") : arena_printf(&s->memory, "\"replicas\":%d,", replicas);
    struct str service =
        str_eq(str_from(plural), STR("statefulsets")) ? STR("\"serviceName\":\"s\",") : STR("");
    write_as_user(
        s, "POST", arena_printf(&s->memory, "/apis/apps/v1/namespaces/default/%s", plural),
        arena_printf(&s->memory,
                     "{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":" STR_FMT
                     "},\"spec\":{" STR_FMT STR_FMT "\"selector\":{\"matchLabels\":"
                     "{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},"
                     "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}",
                     name, STR_ARG(references(s, owner)), STR_ARG(count), STR_ARG(service)),
        201);
}

static void set_ready(struct story *s, const char *name, int ready)
{
    write_as_user(
        s, "PATCH",
        arena_printf(&s->memory, "/apis/apps/v1/namespaces/default/daemonsets/%s/status", name),
        arena_printf(&s->memory, "{\"status\":{\"numberReady\":%d}}", ready), 200);
}

/* The value of the series as it is exposed; empty when there is none. */
static struct str exposed(struct story *s, struct metrics *metrics, const char *metric,
                          const char *owner, const char *profile)
{
    struct buf text = { 0 };
    metrics_text_print(metrics, &text);
    struct str rest = arena_str(&s->memory, buf_str(&text));
    buf_done(&text);
    struct str head =
        arena_printf(&s->memory, "%s{owner=\"%s\",profile=\"%s\"} ", metric, owner, profile);
    struct str line;
    while (str_split_next(&rest, '\n', &line)) {
        struct str value;
        if (str_cut_prefix(line, head, &value)) {
            return value;
        }
    }
    return STR_NONE;
}

#define CHECK_SHUFFLES(s, owner, count, share)                                                     \
    do {                                                                                           \
        CHECK_STR(exposed((s), &(s)->metrics, COUNT, (owner), "multi"), count);                    \
        CHECK_STR(exposed((s), &(s)->metrics, SHARE, (owner), "multi"), share);                    \
    } while (0)

/* Every kind of owner on one node. */
static void add_owners(struct story *s)
{
    add_owner(s, "daemonsets", "unready", NULL, -1);
    add_owner(s, "daemonsets", "ready", NULL, -1);
    set_ready(s, "ready", 4);
    add_owner(s, "statefulsets", "db", NULL, 2);
    add_owner(s, "replicasets", "bare", NULL, -1);
    add_owner(s, "deployments", "web", NULL, 8);
    add_owner(s, "replicasets", "web-old", "apps/v1 Deployment web", 1);
    add_owner(s, "replicasets", "web-new", "apps/v1 Deployment web", 7);
    add_owner(s, "replicasets", "rollout", "argoproj.io/v1alpha1 Rollout r", 3);
    add_owner(s, "deployments", "none", NULL, 0);
    add_owner(s, "replicasets", "none-1", "apps/v1 Deployment none", 0);
    add_pods(s, "n1", "apps/v1 DaemonSet unready", 1);
    add_pods(s, "n1", "apps/v1 DaemonSet ready", 1);
    add_pods(s, "n1", "apps/v1 StatefulSet db", 1);
    add_pods(s, "n1", "apps/v1 ReplicaSet bare", 1);
    add_pods(s, "n1", "apps/v1 ReplicaSet web-old", 1);
    add_pods(s, "n1", "apps/v1 ReplicaSet web-new", 3);
    add_pods(s, "n1", "apps/v1 ReplicaSet rollout", 1);
    add_pods(s, "n1", "apps/v1 ReplicaSet none-1", 1);
    add_pods(s, "n1", "apps/v1 ReplicaSet gone", 1);
    add_pods(s, "n1", "apps.kruise.io/v1 StatefulSet db", 1);
    add_pods(s, "n1", "batch/v1 Job once", 1);
    add_pods(s, "n1", NULL, 1);
    add_pods(s, "n2", "apps/v1 StatefulSet db", 1);
}

TEST(shuffle_counts_the_pods_of_a_node_by_their_owners)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    add_owners(&s);
    shuffle_count(s.s, STR("n1"), STR("multi"));
    story_run(&s, SECONDS(5));
    CHECK_SHUFFLES(&s, "daemon_set_unready", "1", "+Inf");
    CHECK_SHUFFLES(&s, "daemon_set_ready", "1", "0.25");
    CHECK_SHUFFLES(&s, "stateful_set_db", "1", "0.5");
    CHECK_SHUFFLES(&s, "replica_set_bare", "1", "1");
    CHECK_SHUFFLES(&s, "deployment_web", "4", "0.5");
    CHECK_SHUFFLES(&s, "deployment_none", "1", "1");
    CHECK_SHUFFLES(&s, "replica_set_web-new", "", "");
    CHECK_SHUFFLES(&s, "replica_set_rollout", "", "");
    CHECK_SHUFFLES(&s, "replica_set_gone", "", "");
    CHECK_EQ(s.lines.n, 0);
    /* Pods, two DaemonSets, a StatefulSet, six ReplicaSets, two Deployments. */
    CHECK_EQ(s.requests, 1 + 2 + 1 + 6 + 2);
    shuffle_count(s.s, STR("n2"), STR("multi"));
    story_run(&s, SECONDS(5));
    CHECK_SHUFFLES(&s, "stateful_set_db", "2", "1");
}

TEST(shuffle_makes_series_before_anything_is_counted)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    add_owners(&s);
    shuffle_make_zeros(s.s, STR("n1"), STR("multi"));
    story_run(&s, SECONDS(5));
    CHECK_SHUFFLES(&s, "daemon_set_unready", "0", "0");
    CHECK_SHUFFLES(&s, "stateful_set_db", "0", "0");
    CHECK_SHUFFLES(&s, "deployment_web", "0", "0");
    CHECK_SHUFFLES(&s, "replica_set_bare", "0", "0");
    CHECK_SHUFFLES(&s, "replica_set_rollout", "", "");
    CHECK_EQ(s.requests, 1 + 6); /* nobody's replicas matter */
}

TEST(shuffle_reads_lists_to_their_last_page)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    add_owner(&s, "statefulsets", "db", NULL, 500);
    add_pods(&s, "n1", "apps/v1 StatefulSet db", 2 * PODLIST_PAGE + 50);
    shuffle_count(s.s, STR("n1"), STR("multi"));
    story_run(&s, SECONDS(5));
    CHECK_SHUFFLES(&s, "stateful_set_db", "250", "0.5");
}

TEST(shuffle_reads_an_owner_of_many_nodes_once)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    add_owner(&s, "statefulsets", "db", NULL, 16);
    for (int i = 0; i < 16; i++) {
        struct str node = arena_printf(&s.memory, "n%d", i);
        add_pods(&s, node.p, "apps/v1 StatefulSet db", 1);
        shuffle_count(s.s, node, STR("multi"));
    }
    story_run(&s, SECONDS(5));
    CHECK_SHUFFLES(&s, "stateful_set_db", "16", "1");
    CHECK(s.requests <= 16 + SHUFFLE_IN_FLIGHT_MAX);
    /* Later it is read again: it may have other replicas by then. */
    write_as_user(&s, "PATCH", STR("/apis/apps/v1/namespaces/default/statefulsets/db"),
                  STR("{\"spec\":{\"replicas\":2}}"), 200);
    shuffle_count(s.s, STR("n0"), STR("multi"));
    story_run(&s, SECONDS(5));
    CHECK_SHUFFLES(&s, "stateful_set_db", "17", "1.5");
}

/* ── what goes wrong ───────────────────────────────────────────────────────────────────────── */

static struct str pods_of(struct story *s, const char *kind, const char *name)
{
    return arena_printf(&s->memory,
                        "{\"metadata\":{},\"items\":[{\"metadata\":{\"namespace\":\"x\","
                        "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\","
                        "\"name\":\"%s\"}]}}]}",
                        kind, name);
}

struct fake_story {
    struct story s;
    struct fake_api api;
};

static void fake_begin(struct fake_story *f)
{
    story_begin(&f->s);
    fake_api_init(&f->api);
    f->s.client.api = &f->api.api;
}

static void fake_end_story(struct fake_story *f)
{
    shuffle_free(STEAL(f->s.s));
    fake_api_done(&f->api);
    story_end(&f->s);
}

TEST(shuffle_asks_for_what_the_server_has_at_hand)
{
    CLEANUP(fake_end_story)
    struct fake_story f;
    fake_begin(&f);
    shuffle_count(f.s.s, STR("n1"), STR("multi"));
    CHECK_EQ(f.api.sent, 0); /* from the loop, not at once */
    story_run(&f.s, 0);
    CHECK_STR(fake_call_first(&f.api)->path,
              "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=100&resourceVersion=0");
    fake_call_reply(&f.api, fake_call_first(&f.api), 200, pods_of(&f.s, "ReplicaSet", "r"));
    CHECK_STR(fake_call_first(&f.api)->path, "/apis/apps/v1/namespaces/x/replicasets/r");
}

TEST(shuffle_counts_a_node_whole_or_not_at_all)
{
    CLEANUP(fake_end_story)
    struct fake_story f;
    fake_begin(&f);
    shuffle_count(f.s.s, STR("n1"), STR("multi"));
    story_run(&f.s, 0);
    fake_call_reply(&f.api, fake_call_first(&f.api), 200, pods_of(&f.s, "StatefulSet", "db"));
    fake_call_reply(&f.api, fake_call_first(&f.api), 403, STR("{\"message\":\"no rights\"}"));
    story_run(&f.s, HOURS(1));
    CHECK_EQ(f.api.sent, 2); /* the same would fail again */
    CHECK_SHUFFLES(&f.s, "stateful_set_db", "", "");
    CHECK(str_contains(buf_str(&f.s.lines), STR("failed to record shuffle metrics")));
    CHECK(str_contains(buf_str(&f.s.lines), STR("get StatefulSet 'x/db'")));
    CHECK(str_contains(buf_str(&f.s.lines), STR("no rights")));
    CHECK_EQ(virtual_loop_armed(f.s.time), 0);
}

TEST(shuffle_tries_again_what_may_pass)
{
    CLEANUP(fake_end_story)
    struct fake_story f;
    fake_begin(&f);
    shuffle_count(f.s.s, STR("n1"), STR("multi"));
    story_run(&f.s, 0);
    fake_call_reply_after(&f.api, fake_call_first(&f.api), 429, SECONDS(7));
    story_run(&f.s, SECONDS(6));
    CHECK_EQ(f.api.call_count, 0);
    story_run(&f.s, SECONDS(3));
    CHECK_EQ(f.api.call_count, 1);
    fake_call_reply(&f.api, fake_call_first(&f.api), 200, pods_of(&f.s, "StatefulSet", "db"));
    fake_call_reply(&f.api, fake_call_first(&f.api), 200, STR("{\"spec\":{\"replicas\":4}}"));
    CHECK_SHUFFLES(&f.s, "stateful_set_db", "1", "0.25");
    CHECK_EQ(f.s.lines.n, 0);
}

TEST(shuffle_gives_up_after_some_tries)
{
    CLEANUP(fake_end_story)
    struct fake_story f;
    fake_begin(&f);
    shuffle_make_zeros(f.s.s, STR("n1"), STR("multi"));
    for (uint32_t i = 0; i < SHUFFLE_TRIES_MAX; i++) {
        story_run(&f.s, MINUTES(10));
        CHECK_EQ(f.api.call_count, 1);
        fake_call_fail(&f.api, fake_call_first(&f.api), ERR_TIMEOUT);
    }
    story_run(&f.s, HOURS(1));
    CHECK_EQ(f.api.sent, SHUFFLE_TRIES_MAX);
    CHECK(str_contains(buf_str(&f.s.lines), STR("failed to touch shuffle metrics")));
}

TEST(shuffle_tells_of_many_failures_in_one_line)
{
    CLEANUP(fake_end_story)
    struct fake_story f;
    fake_begin(&f);
    for (int i = 0; i < 5; i++) {
        shuffle_count(f.s.s, arena_printf(&f.s.memory, "n%d", i), STR("multi"));
    }
    for (int i = 0; i < 5; i++) {
        story_run(&f.s, 0);
        CHECK(f.api.call_count <= SHUFFLE_IN_FLIGHT_MAX);
        fake_call_reply(&f.api, fake_call_first(&f.api), 200, STR("no list"));
    }
    story_run(&f.s, 0);
    CHECK_EQ(f.api.sent, 5);
    struct str first;
    struct str rest;
    CHECK(str_cut(buf_str(&f.s.lines), STR("\n"), &first, &rest));
    CHECK_STR(rest, "");
    story_run(&f.s, MINUTES(2));
    shuffle_count(f.s.s, STR("n9"), STR("multi"));
    story_run(&f.s, 0);
    fake_call_reply(&f.api, fake_call_first(&f.api), 200, STR("no list"));
    CHECK(str_contains(buf_str(&f.s.lines), STR("suppressed=4")));
}

TEST(shuffle_prefers_counting_and_can_be_told_to_forget)
{
    CLEANUP(fake_end_story)
    struct fake_story f;
    fake_begin(&f);
    shuffle_make_zeros(f.s.s, STR("t1"), STR("multi"));
    shuffle_make_zeros(f.s.s, STR("t2"), STR("multi"));
    shuffle_count(f.s.s, STR("c1"), STR("multi"));
    story_run(&f.s, 0);
    CHECK_EQ(f.api.call_count, 2);
    CHECK(str_contains(fake_call_first(&f.api)->path, STR("%3Dc1&")));
    shuffle_drop_all(f.s.s);
    CHECK_EQ(f.api.call_count, 0);
    story_run(&f.s, HOURS(1));
    CHECK_EQ(f.api.sent, 2);
}

TEST(shuffle_makes_zeros_at_a_pace_and_none_for_the_counted)
{
    CLEANUP(fake_end_story)
    struct fake_story f;
    fake_begin(&f);
    for (int i = 0; i < 4; i++) {
        shuffle_make_zeros(f.s.s, arena_printf(&f.s.memory, "t%d", i), STR("multi"));
    }
    shuffle_make_zeros(f.s.s, STR("t1"), STR("multi")); /* waits already */
    story_run(&f.s, 0);
    CHECK_EQ(f.api.sent, 1); /* t0; there would be room for another */
    shuffle_count(f.s.s, STR("t1"), STR("multi"));
    shuffle_count(f.s.s, STR("t2"), STR("other")); /* says nothing of the profile multi */
    story_run(&f.s, 0);
    for (int i = 0; i < 3; i++) {
        fake_call_reply(&f.api, fake_call_first(&f.api), 200, STR("{\"items\":[]}"));
        story_run(&f.s, 0);
    }
    CHECK_EQ(f.api.sent, 3); /* t0 and the two that count */
    story_run(&f.s, SHUFFLE_ZERO_EVERY);
    CHECK_EQ(f.api.sent, 4);
    story_run(&f.s, HOURS(1));
    CHECK_EQ(f.api.sent, 5); /* t2 and t3 for multi, and never t1 */
}

TEST(shuffle_asks_for_nothing_without_metrics)
{
    CLEANUP(fake_end_story)
    struct fake_story f;
    fake_begin(&f);
    struct controller_metrics none;
    controller_metrics_init(&none, NULL);
    struct pod_shuffle *s = shuffle_new(&f.s.client, &none, NULL);
    shuffle_count(s, STR("n1"), STR("multi"));
    story_run(&f.s, HOURS(1));
    CHECK_EQ(f.api.sent, 0);
    shuffle_free(s);
}

/* ── a whole controller ────────────────────────────────────────────────────────────────────── */

static const char profiles[] =
    "intervals: {requeue: 24h}\n"
    "instances:\n"
    "  check:\n"
    "  - {type: hasLabel, name: asked, config: {key: asked}}\n"
    "  - {type: hasLabel, name: approved, config: {key: approved}}\n"
    "profiles:\n"
    "- name: multi\n"
    "  operational: {transitions: [{check: asked, next: maintenance-required}]}\n"
    "  maintenance-required: {transitions: [{check: approved, next: in-maintenance}]}\n";

static void relabel(struct story *s, const char *labels)
{
    write_as_user(s, "PATCH", STR("/api/v1/nodes/n1"),
                  arena_printf(&s->memory, "{\"metadata\":{\"labels\":{%s}}}", labels), 200);
    story_run(s, SECONDS(5));
}

TEST(shuffle_counts_when_a_node_has_come_into_maintenance)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s);
    add_owner(&s, "statefulsets", "db", NULL, 2);
    add_pods(&s, "n1", "apps/v1 StatefulSet db", 1);
    write_as_user(&s, "POST", STR("/api/v1/nodes"),
                  STR("{\"metadata\":{\"name\":\"n1\",\"labels\":"
                      "{\"cloud.sap/maintenance-profile\":\"multi\"}}}"),
                  201);
    struct controller *c = controller_open(&(struct core_config){ .loop = virtual_loop_root(s.time),
                                                                  .api = s.door,
                                                                  .log = &s.log,
                                                                  .metrics = &s.metrics,
                                                                  .identity = STR("a_1") },
                                           &(struct controller_config){ 0 });
    CHECK_EQ(controller_configure(c, STR("f"), str_from(profiles), (struct ucfg_env){ 0 }), 0);
    story_run(&s, SECONDS(5));
    CHECK_SHUFFLES(&s, "stateful_set_db", "", "");
    relabel(&s, "\"asked\":\"x\"");
    CHECK_SHUFFLES(&s, "stateful_set_db", "0", "0");
    relabel(&s, "\"approved\":\"x\"");
    CHECK_SHUFFLES(&s, "stateful_set_db", "1", "0.5");
    relabel(&s, "\"poke\":\"x\"");
    CHECK_SHUFFLES(&s, "stateful_set_db", "1", "0.5");
    controller_check(c);
    controller_close(c);
}
