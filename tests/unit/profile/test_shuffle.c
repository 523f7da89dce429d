#include "profile/shuffle.h"

#include "base/arena.h"
#include "sandbox/vloop.h"
#include "tests/check.h"
#include "tests/lib/fake_api.h"

struct story {
    struct vloop *time;
    struct fake_api api;
    struct client client;
    struct metrics metrics;
    struct shuffles *shuffles;
};

static void story_begin(struct story *s)
{
    *s = (struct story){ .time = vloop_new(1, SECONDS(1767323045)) };
    metrics_init(&s->metrics);
    fake_api_init(&s->api);
    client_init(&s->client, vloop_root(s->time), &s->api.api);
    s->shuffles = shuffles_new(&s->client, &s->metrics);
}

static void story_end(struct story *s)
{
    shuffles_free(s->shuffles);
    CHECK_EQ(s->api.call_count, 0);
    metrics_done(&s->metrics);
    fake_api_done(&s->api);
    vloop_free(s->time);
}

static void answer(struct story *s, const char *path, int status, const char *body)
{
    CHECK_EQ(s->api.call_count, 1);
    CHECK_STR(fake_call_first(&s->api)->path, path);
    fake_reply(&s->api, fake_call_first(&s->api), status, str_from(body));
}

/* What a counter shows; -1: there is no such series. */
static double value(struct story *s, const char *name, const char *owner)
{
    const struct metric_spec spec = { .name = name,
                                      .kind = METRIC_COUNTER,
                                      .labels = { "owner", "profile" } };
    const struct metric *f = metrics_family(&s->metrics, &spec);
    for (const struct metric_series *series = f->first; series != NULL; series = series->next) {
        if (str_eq(series->values[0], str_from(owner)) && str_eq(series->values[1], STR("multi"))) {
            return series->value;
        }
    }
    return -1;
}

#define COUNT "maintenance_controller_pod_shuffle_count"
#define SHARE "maintenance_controller_pod_shuffles_per_replica"
#define POD(space, kind, name)                                                                     \
    "{\"metadata\":{\"namespace\":\"" space "\",\"ownerReferences\":[{\"kind\":\"" kind            \
    "\",\"name\":\"" name "\"}]}}"
#define PODS(items) "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[" items "]}"

TEST(shuffles_are_counted_by_the_owners_of_pods)
{
    struct story s;
    story_begin(&s);
    CHECK(shuffles_count(s.shuffles, STR("n"), STR("multi")));
    answer(&s, "/api/v1/pods?fieldSelector=spec.nodeName%3Dn&limit=100", 200,
           "{\"metadata\":{\"continue\":\"more\"},\"items\":[" POD(
               "a", "DaemonSet", "agent") "," POD("a", "ReplicaSet", "web-1") "]}");
    answer(&s, "/api/v1/pods?fieldSelector=spec.nodeName%3Dn&limit=100&continue=more", 200,
           PODS(POD("a", "ReplicaSet", "web-1") "," POD("a", "StatefulSet", "db") "," POD(
               "a", "ReplicaSet", "alone") "," POD("a", "Job", "once") ",{\"metadata\":{}}"));
    answer(&s, "/apis/apps/v1/namespaces/a/daemonsets/agent", 200,
           "{\"status\":{\"numberReady\":0}}");
    answer(&s, "/apis/apps/v1/namespaces/a/replicasets/web-1", 200,
           "{\"metadata\":{\"ownerReferences\":[{\"kind\":\"Deployment\",\"name\":\"web\"}]}}");
    answer(&s, "/apis/apps/v1/namespaces/a/deployments/web", 200, "{\"spec\":{\"replicas\":4}}");
    answer(&s, "/apis/apps/v1/namespaces/a/statefulsets/db", 200, "{\"spec\":{}}");
    answer(&s, "/apis/apps/v1/namespaces/a/replicasets/alone", 200, "{\"spec\":{\"replicas\":1}}");
    CHECK_EQ(s.api.call_count, 0);
    CHECK_EQ(value(&s, COUNT, "daemon_set_agent"), 1);
    CHECK_EQ(value(&s, SHARE, "daemon_set_agent"), 1); /* none is ready: not infinite */
    CHECK_EQ(value(&s, COUNT, "deployment_web"), 2);
    CHECK_EQ(value(&s, SHARE, "deployment_web") * 4, 2);
    CHECK_EQ(value(&s, COUNT, "stateful_set_db"), 1);
    CHECK_EQ(value(&s, SHARE, "stateful_set_db"), 1);
    CHECK_EQ(value(&s, COUNT, "replica_set_alone"), 1);
    CHECK_EQ(value(&s, COUNT, "replica_set_web-1"), -1);
    story_end(&s);
}

TEST(shuffles_leave_out_what_cannot_be_looked_up)
{
    struct story s;
    story_begin(&s);
    CHECK(shuffles_count(s.shuffles, STR("n"), STR("multi")));
    answer(&s, "/api/v1/pods?fieldSelector=spec.nodeName%3Dn&limit=100", 200,
           PODS(POD("a", "DaemonSet", "secret") "," POD("a", "StatefulSet", "db")));
    answer(&s, "/apis/apps/v1/namespaces/a/daemonsets/secret", 403, "{}");
    answer(&s, "/apis/apps/v1/namespaces/a/statefulsets/db", 200, "{\"spec\":{\"replicas\":2}}");
    CHECK_EQ(value(&s, COUNT, "daemon_set_secret"), -1);
    CHECK_EQ(value(&s, COUNT, "stateful_set_db"), 1);
    story_end(&s);
}

TEST(shuffles_of_many_nodes_wait_for_each_other)
{
    struct story s;
    story_begin(&s);
    for (uint32_t i = 0; i < SHUFFLES_AT_ONCE + SHUFFLES_MAX; i++) {
        CHECK(shuffles_count(s.shuffles, STR("n"), STR("multi")));
    }
    CHECK(!shuffles_count(s.shuffles, STR("n"), STR("multi")));
    CHECK_EQ(s.api.call_count, SHUFFLES_AT_ONCE);
    fake_reply(&s.api, fake_call_first(&s.api), 200, STR("{\"items\":["));
    CHECK_EQ(s.api.call_count, SHUFFLES_AT_ONCE); /* the next has begun */
    fake_fail(&s.api, fake_call_first(&s.api), ERR_BUSY);
    CHECK_EQ(s.api.call_count, SHUFFLES_AT_ONCE);
    story_end(&s); /* in the middle of everything */
}
