/* Answers that no simulated server gives when it is wanted, played by hand. */
#include "drain/drain.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"
#include "tests/lib/fake_api.h"

#define REFUSAL                                                                                    \
    "{\"kind\":\"Status\",\"code\":429,\"message\":\"Cannot evict pod as it would violate the "    \
    "pod's disruption budget.\",\"details\":{\"causes\":[{\"reason\":\"DisruptionBudget\","        \
    "\"message\":\"The disruption budget web needs 2 healthy pods and has 2 currently\"}]}}"

struct evict_fixture {
    struct virtual_loop *v;
    struct fake_api api;
    struct client client;
    struct drains *drains;
    struct drain *d;
    struct arena a;
    int version;
    int changes;
    int denied;
    int budgets_denied;
    struct str denied_why; /* in `a` */
};

static void evict_fixture_on_change(void *ctx)
{
    struct evict_fixture *h = ctx;
    h->changes++;
}

static void evict_fixture_on_denied(void *ctx, struct str node, struct str pod UNUSED,
                                    struct str reason)
{
    struct evict_fixture *h = ctx;
    CHECK_STR(node, "n/1");
    h->denied++;
    h->denied_why = arena_str(&h->a, reason);
}

static void evict_fixture_on_budgets_denied(void *ctx)
{
    struct evict_fixture *h = ctx;
    h->budgets_denied++;
}

static void evict_fixture_run(struct evict_fixture *h, usec_t span)
{
    usec_t until = virtual_loop_now(h->v) + span;
    while (virtual_loop_step(h->v, until)) {
        drains_check(h->drains);
    }
}

static struct fake_watch *evict_fixture_watch(struct evict_fixture *h, const char *plural)
{
    LIST_EACH (&h->api.watches, link) {
        struct fake_watch *w = CONTAINER_OF(link, struct fake_watch, link);
        if (str_contains(w->path, str_from(plural))) {
            return w;
        }
    }
    check_fail(__FILE__, __LINE__, "no watch of %s", plural);
}

static void evict_fixture_pod_of(struct evict_fixture *h, const char *type, const char *name,
                                 const char *uid, bool deleting)
{
    fake_watch_line(
        evict_fixture_watch(h, "/pods"),
        arena_printf(&h->a,
                     "{\"type\":\"%s\",\"object\":{\"metadata\":{\"name\":\"%s\","
                     "\"namespace\":\"shop\",\"uid\":\"%s\",\"resourceVersion\":\"%d\","
                     "\"labels\":{\"app\":\"web\"}%s},\"status\":{\"phase\":\"Running\","
                     "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}}",
                     type, name, uid, ++h->version,
                     deleting ? ",\"deletionTimestamp\":\"2026-01-02T03:04:35Z\","
                                "\"deletionGracePeriodSeconds\":30"
                              : ""));
}

static void evict_fixture_pod(struct evict_fixture *h, const char *type, const char *name,
                              bool deleting)
{
    evict_fixture_pod_of(h, type, name, arena_printf(&h->a, "u-%s", name).p, deleting);
}

static void evict_fixture_pdb(struct evict_fixture *h, const char *type, const char *name,
                              int allowed, const char *disrupted)
{
    fake_watch_line(
        evict_fixture_watch(h, "/poddisruptionbudgets"),
        arena_printf(&h->a,
                     "{\"type\":\"%s\",\"object\":{\"metadata\":{\"name\":\"%s\","
                     "\"namespace\":\"shop\",\"generation\":1,\"resourceVersion\":\"%d\"},"
                     "\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"web\"}}},"
                     "\"status\":{\"disruptionsAllowed\":%d,\"currentHealthy\":%d,"
                     "\"desiredHealthy\":2,\"observedGeneration\":1,"
                     "\"disruptedPods\":{%s}}}}",
                     type, name, ++h->version, allowed, allowed + 2, disrupted));
}

static void evict_fixture_sync(struct evict_fixture *h, const char *plural)
{
    fake_watch_line(
        evict_fixture_watch(h, plural),
        arena_printf(&h->a,
                     "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":"
                     "\"%d\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}",
                     ++h->version));
}

static void evict_fixture_begin_with(struct evict_fixture *h, const struct drain_spec *spec)
{
    *h = (struct evict_fixture){ .v = virtual_loop_new(3, SECONDS(1767323045)) };
    fake_api_init(&h->api);
    client_init(&h->client, virtual_loop_root(h->v), &h->api.api);
    h->drains = drains_new(virtual_loop_root(h->v),
                           &(struct drains_config){
                               .client = &h->client,
                               .on_denied = evict_fixture_on_denied,
                               .on_budgets_denied = evict_fixture_on_budgets_denied,
                               .ctx = h,
                           });
    h->d = drain_start(h->drains, spec, evict_fixture_on_change, h);
}

static const struct drain_spec evict_fixture_spec = {
    .node = STR_INIT("n/1"),
    .eviction_timeout = MINUTES(10),
    .deletion_timeout = MINUTES(10),
    .grace = -1,
};

static void evict_fixture_begin(struct evict_fixture *h)
{
    evict_fixture_begin_with(h, &evict_fixture_spec);
}

static void evict_fixture_end(struct evict_fixture *h)
{
    drains_check(h->drains);
    drains_free(h->drains);
    fake_api_done(&h->api);
    arena_done(&h->a);
    CHECK_EQ(virtual_loop_armed(h->v), 0);
    virtual_loop_free(h->v);
}

static struct drain_status evict_fixture_status(const struct evict_fixture *h)
{
    struct drain_status status;
    drain_status(h->d, &status);
    return status;
}

TEST(drain_asks_for_the_pods_of_its_node_and_evicts_with_the_uid)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    CHECK(str_ends(evict_fixture_watch(&h, "/pods")->path,
                   STR("&fieldSelector=spec.nodeName%3Dn%2F1")));
    evict_fixture_pod(&h, "ADDED", "a", false);
    evict_fixture_sync(&h, "/pods");
    evict_fixture_run(&h, SECONDS(1));
    CHECK_EQ(h.api.sent, 0); /* not before the budgets are known */
    evict_fixture_sync(&h, "/poddisruptionbudgets");
    evict_fixture_run(&h, 0);
    CHECK_EQ(h.api.call_count, 1);
    struct fake_call *call = fake_call_first(&h.api);
    CHECK_EQ(call->verb, API_POST);
    CHECK_STR(call->path, "/api/v1/namespaces/shop/pods/a/eviction");
    CHECK_STR(call->body, "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                          "\"name\":\"a\",\"namespace\":\"shop\"},\"deleteOptions\":{"
                          "\"preconditions\":{\"uid\":\"u-a\"}}}");
    evict_fixture_end(&h);
}

static void evict_fixture_two_pods(struct evict_fixture *h, int allowed)
{
    evict_fixture_pod(h, "ADDED", "b", false);
    evict_fixture_pod(h, "ADDED", "a", false);
    evict_fixture_pdb(h, "ADDED", "web", allowed, "");
    evict_fixture_sync(h, "/pods");
    evict_fixture_sync(h, "/poddisruptionbudgets");
    evict_fixture_run(h, 0);
}

TEST(drain_charges_a_budget_until_its_status_shows_the_eviction)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    evict_fixture_two_pods(&h, 1);
    CHECK_EQ(h.api.call_count, 1);
    CHECK(str_contains(fake_call_first(&h.api)->path, STR("/pods/a/")));
    /* The answer is faster than both watches. */
    fake_call_reply(&h.api, fake_call_first(&h.api), 201, STR("{}"));
    evict_fixture_run(&h, SECONDS(1));
    CHECK_EQ(h.api.sent, 1);
    CHECK_STR(evict_fixture_status(&h).pod, "b");
    CHECK_STR(evict_fixture_status(&h).reason,
              "budget web allows 1, and 1 under way before this one");
    evict_fixture_pdb(&h, "MODIFIED", "web", 0, "\"a\":\"2026-01-02T03:04:05Z\"");
    evict_fixture_run(&h, 0);
    evict_fixture_pod(&h, "MODIFIED", "a", true);
    evict_fixture_pod(&h, "DELETED", "a", true);
    evict_fixture_run(&h, SECONDS(30));
    CHECK_EQ(h.api.sent, 1);
    evict_fixture_pdb(&h, "MODIFIED", "web", 1, "");
    evict_fixture_run(&h, 0);
    CHECK_EQ(h.api.sent, 2);
    /* The status is faster than the answer: the next one need not wait for it. */
    evict_fixture_pod(&h, "ADDED", "c", false);
    evict_fixture_pdb(&h, "MODIFIED", "web", 1, "\"b\":\"2026-01-02T03:04:05Z\"");
    evict_fixture_run(&h, 0);
    CHECK_EQ(h.api.call_count, 2);
    evict_fixture_end(&h);
}

TEST(drain_charges_no_budget_for_ever)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    evict_fixture_two_pods(&h, 1);
    fake_call_reply(&h.api, fake_call_first(&h.api), 201, STR("{}"));
    /* Its status never says a word: somebody else's doing undid it. */
    evict_fixture_run(&h, SECONDS(6));
    CHECK_EQ(h.api.sent, 2);
    evict_fixture_end(&h);
}

TEST(drain_waits_for_the_budgets_next_word_after_a_refusal)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    evict_fixture_two_pods(&h, 1);
    fake_call_reply(&h.api, fake_call_first(&h.api), 429, STR(REFUSAL));
    evict_fixture_run(&h, SECONDS(4));
    CHECK_EQ(h.api.sent, 1); /* nor is the other pod tried */
    CHECK_EQ(evict_fixture_status(&h).refused, 1);
    CHECK_STR(evict_fixture_status(&h).reason,
              "budget web refuses: The disruption budget web needs 2 "
              "healthy pods and has 2 currently");
    CHECK(client_open(&h.client)); /* nobody else is quiet because of it */
    evict_fixture_pdb(&h, "MODIFIED", "web", 0, "");
    evict_fixture_run(&h, SECONDS(1));
    CHECK_EQ(h.api.sent, 1);
    evict_fixture_pdb(&h, "MODIFIED", "web", 1, "");
    evict_fixture_run(&h, 0);
    CHECK_EQ(h.api.sent, 2);
    /* No word comes this time: a slow try. */
    fake_call_reply(&h.api, fake_call_first(&h.api), 429, STR(REFUSAL));
    evict_fixture_run(&h, SECONDS(4));
    CHECK_EQ(h.api.sent, 2);
    evict_fixture_run(&h, SECONDS(20));
    CHECK_EQ(h.api.sent, 3);
    CHECK_EQ(evict_fixture_status(&h).refused, 2);
    evict_fixture_end(&h);
}

TEST(drain_is_quiet_when_the_server_is_overloaded)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    evict_fixture_two_pods(&h, 2);
    CHECK_EQ(h.api.call_count, 2);
    fake_call_reply_after(&h.api, fake_call_first(&h.api), 429, SECONDS(7));
    fake_call_fail(&h.api, fake_call_first(&h.api), ERR_IO);
    evict_fixture_run(&h, SECONDS(7) - 1);
    CHECK_EQ(h.api.call_count, 0);
    CHECK_EQ(evict_fixture_status(&h).refused, 0);
    evict_fixture_run(&h, SECONDS(3));
    CHECK_EQ(h.api.call_count, 2);
    evict_fixture_end(&h);
}

TEST(drain_is_done_with_a_pod_that_the_server_does_not_know)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    evict_fixture_two_pods(&h, 2);
    fake_call_reply(&h.api, fake_call_first(&h.api), 404, STR("{}"));
    fake_call_reply(&h.api, fake_call_first(&h.api), 404, STR("{}"));
    evict_fixture_run(&h, HOURS(1));
    CHECK_EQ(h.api.sent, 2);
    CHECK(drain_is_done(h.d));
    evict_fixture_end(&h);
}

TEST(drain_sees_another_pod_behind_the_same_name)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    evict_fixture_pod(&h, "ADDED", "a", false);
    evict_fixture_sync(&h, "/pods");
    evict_fixture_sync(&h, "/poddisruptionbudgets");
    evict_fixture_run(&h, 0);
    /* It was replaced before the eviction came: the uid saved the new one. */
    fake_call_reply(&h.api, fake_call_first(&h.api), 409, STR("{\"message\":\"the UID differs\"}"));
    evict_fixture_run(&h, 0);
    CHECK_STR(evict_fixture_status(&h).reason, "the server answered 409: the UID differs");
    evict_fixture_pod(&h, "DELETED", "a", true);
    evict_fixture_pod_of(&h, "ADDED", "a", "other", false);
    evict_fixture_run(&h, 0);
    CHECK_EQ(h.api.sent, 2);
    CHECK(str_contains(fake_call_first(&h.api)->body, STR("{\"uid\":\"other\"}")));
    /* A list that was missed: the same item becomes another pod under our hands. */
    evict_fixture_pod_of(&h, "MODIFIED", "a", "third", false);
    evict_fixture_run(&h, 0);
    CHECK_EQ(h.api.call_count, 2);
    fake_call_reply(&h.api, fake_call_first(&h.api), 404, STR("{}"));
    evict_fixture_run(&h, 0);
    CHECK_EQ(evict_fixture_status(&h).left, 1); /* that was an answer about its predecessor */
    evict_fixture_end(&h);
}

TEST(drain_backs_off_from_a_failing_pod_and_serves_the_others)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    evict_fixture_two_pods(&h, 1);
    fake_call_reply(&h.api, fake_call_first(&h.api), 500, STR("{\"message\":\"webhook\"}"));
    evict_fixture_run(&h, 0);
    CHECK_EQ(h.api.sent, 2);
    CHECK(str_contains(fake_call_first(&h.api)->path, STR("/pods/b/")));
    fake_call_reply(&h.api, fake_call_first(&h.api), 201, STR("{}"));
    evict_fixture_pdb(&h, "MODIFIED", "web", 1, "\"b\":\"2026-01-02T03:04:05Z\"");
    evict_fixture_run(&h, SECONDS(2));
    CHECK_EQ(h.api.sent, 3);
    CHECK(str_contains(fake_call_first(&h.api)->path, STR("/pods/a/")));
    evict_fixture_end(&h);
}

TEST(drain_waits_long_where_it_is_denied_and_says_so)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    evict_fixture_pod(&h, "ADDED", "a", false);
    evict_fixture_sync(&h, "/pods");
    evict_fixture_sync(&h, "/poddisruptionbudgets");
    evict_fixture_run(&h, 0);
    fake_call_reply(&h.api, fake_call_first(&h.api), 403,
                    STR("{\"message\":\"no eviction for you\"}"));
    evict_fixture_run(&h, SECONDS(4));
    CHECK_EQ(h.api.sent, 1);
    CHECK_STR(evict_fixture_status(&h).reason, "the server answered 403: no eviction for you");
    evict_fixture_run(&h, SECONDS(10));
    CHECK_EQ(h.api.sent, 2);
    CHECK(evict_fixture_status(&h).blocked);
    CHECK(!evict_fixture_status(&h).timed_out);
    evict_fixture_end(&h);
}

static void evict_fixture_deny(struct evict_fixture *h)
{
    struct fake_call *call = fake_call_first(&h->api);
    struct str before;
    struct str pod;
    struct str rest;
    CHECK(str_cut(call->path, STR("/pods/"), &before, &rest));
    CHECK(str_cut(rest, STR("/"), &pod, &rest));
    fake_call_reply(&h->api, call, 403,
                    arena_printf(&h->a,
                                 "{\"kind\":\"Status\",\"code\":403,\"message\":\"pods \\\"" STR_FMT
                                 "\\\" is forbidden: User \\\"u\\\" cannot create resource "
                                 "\\\"pods/eviction\\\" in API group \\\"\\\" in the namespace "
                                 "\\\"shop\\\"\"}",
                                 STR_ARG(pod)));
}

/* Two pods, each tried again and again: one reason, told once. A budget that lets them go does not
 * hide it. */
TEST(drain_tells_once_which_right_is_missing)
{
    for (int budget = 0; budget < 2; budget++) {
        struct evict_fixture h;
        evict_fixture_begin(&h);
        evict_fixture_pod(&h, "ADDED", "a", false);
        evict_fixture_pod(&h, "ADDED", "b", false);
        if (budget == 1) {
            evict_fixture_pdb(&h, "ADDED", "web", 2, "");
        }
        evict_fixture_sync(&h, "/pods");
        evict_fixture_sync(&h, "/poddisruptionbudgets");
        evict_fixture_run(&h, 0);
        for (int i = 0; i < 8; i++) {
            CHECK(h.api.call_count > 0);
            while (h.api.call_count > 0) {
                evict_fixture_deny(&h);
            }
            evict_fixture_run(&h, 0);
            CHECK(evict_fixture_status(&h).blocked);
            CHECK_STR(evict_fixture_status(&h).reason,
                      "the right to create pods/eviction in namespace shop is missing: the server "
                      "answered 403: pods \"a\" is forbidden: User \"u\" cannot create resource "
                      "\"pods/eviction\" in API group \"\" in the namespace \"shop\"");
            evict_fixture_run(&h, MINUTES(6));
        }
        CHECK_EQ(h.denied, 1);
        CHECK(str_starts(h.denied_why, STR("the right to create pods/eviction in namespace shop is "
                                           "missing: the server answered 403: pods \"")));
        /* A webhook's refusal is another reason, and no right. */
        fake_call_reply(&h.api, fake_call_first(&h.api), 403,
                        STR("{\"message\":\"admission webhook \\\"x\\\" denied the request\"}"));
        evict_fixture_run(&h, 0);
        CHECK_EQ(h.denied, 2);
        CHECK_STR(h.denied_why,
                  "the server answered 403: admission webhook \"x\" denied the request");
        evict_fixture_end(&h);
    }
}

TEST(drain_evicts_no_pod_under_two_budgets_and_names_them)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    evict_fixture_pod(&h, "ADDED", "a", false);
    evict_fixture_pdb(&h, "ADDED", "web", 1, "");
    evict_fixture_pdb(&h, "ADDED", "all", 1, "");
    evict_fixture_sync(&h, "/pods");
    evict_fixture_sync(&h, "/poddisruptionbudgets");
    evict_fixture_run(&h, SECONDS(1));
    CHECK_EQ(h.api.sent, 0);
    CHECK(evict_fixture_status(&h).blocked);
    CHECK_STR(evict_fixture_status(&h).reason,
              "several budgets cover it (web, all), and the eviction API "
              "evicts no such pod");
    /* One of them goes: so does the pod. */
    evict_fixture_pdb(&h, "DELETED", "web", 1, "");
    evict_fixture_run(&h, 0);
    CHECK_EQ(h.api.sent, 1);
    CHECK(!evict_fixture_status(&h).blocked);
    evict_fixture_end(&h);
}

TEST(drain_without_the_right_to_see_budgets_tries)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    evict_fixture_pod(&h, "ADDED", "a", false);
    evict_fixture_sync(&h, "/pods");
    fake_watch_end(&h.api, evict_fixture_watch(&h, "/poddisruptionbudgets"), 403,
                   STR("{\"message\":\"budgets are forbidden\"}"));
    evict_fixture_run(&h, 0);
    CHECK_EQ(h.api.call_count, 1);
    fake_call_reply(&h.api, fake_call_first(&h.api), 429, STR(REFUSAL));
    evict_fixture_run(&h, MSECONDS(900));
    CHECK_EQ(h.api.call_count, 0);
    CHECK_STR(evict_fixture_status(&h).reason,
              "a budget refuses: The disruption budget web needs 2 healthy pods and has 2 "
              "currently; budgets cannot be watched, so evictions are tried: watch of "
              "/apis/policy/v1/poddisruptionbudgets: the server answered 403: budgets are "
              "forbidden");
    struct drains_stats stats;
    drains_stats(h.drains, &stats);
    CHECK(stats.pdbs_unwatched);
    evict_fixture_run(&h, SECONDS(2));
    CHECK_EQ(h.api.call_count, 1);
    fake_call_reply(&h.api, fake_call_first(&h.api), 201, STR("{}"));
    evict_fixture_pod(&h, "DELETED", "a", true);
    evict_fixture_run(&h, 0);
    CHECK(drain_is_done(h.d));
    CHECK_EQ(h.budgets_denied, 1);
    drain_stop(h.d);
    h.d = drain_start(h.drains, &evict_fixture_spec, evict_fixture_on_change, &h);
    evict_fixture_sync(&h, "/pods");
    fake_watch_end(&h.api, evict_fixture_watch(&h, "/poddisruptionbudgets"), 403,
                   STR("{\"message\":\"budgets are forbidden\"}"));
    evict_fixture_run(&h, 0);
    CHECK_EQ(h.budgets_denied, 1); /* the next drain finds the same: nobody is told again */
    evict_fixture_end(&h);
}

/* No event ends such a refusal, so here alone the caller says how long to wait. */
TEST(drain_tries_again_as_it_is_told_where_budgets_cannot_be_seen)
{
    struct evict_fixture h;
    struct drain_spec spec = evict_fixture_spec;
    spec.retry = MINUTES(1);
    evict_fixture_begin_with(&h, &spec);
    evict_fixture_pod(&h, "ADDED", "a", false);
    evict_fixture_sync(&h, "/pods");
    fake_watch_end(&h.api, evict_fixture_watch(&h, "/poddisruptionbudgets"), 403,
                   STR("{\"message\":\"budgets is forbidden\"}"));
    evict_fixture_run(&h, 0);
    fake_call_reply(&h.api, fake_call_first(&h.api), 429, STR(REFUSAL));
    struct drains_stats stats;
    evict_fixture_run(&h, SECONDS(29));
    drains_stats(h.drains, &stats);
    CHECK_EQ(stats.sent, 1);
    evict_fixture_run(&h, SECONDS(32));
    drains_stats(h.drains, &stats);
    CHECK_EQ(stats.sent, 2);
    evict_fixture_end(&h);
}

/* A rule that asks for labels which nobody lets us see. */
TEST(drain_without_the_right_to_see_namespaces_waits_where_rules_ask_for_them)
{
    struct evict_fixture h;
    struct drain_spec spec = evict_fixture_spec;
    spec.drain_rules =
        STR("[{\"name\":\"a\",\"behavior\":\"Skip\",\"pods\":[{\"namespaceSelector\":"
            "\"team=a\"}]}]");
    evict_fixture_begin_with(&h, &spec);
    CHECK(str_starts(evict_fixture_watch(&h, "/api/v1/namespaces?")->path,
                     STR("/api/v1/namespaces?")));
    evict_fixture_pod(&h, "ADDED", "a", false);
    evict_fixture_sync(&h, "/pods");
    evict_fixture_sync(&h, "/poddisruptionbudgets");
    evict_fixture_run(&h, SECONDS(1));
    CHECK_EQ(evict_fixture_status(&h).wait, DRAIN_WAIT_RULES);
    CHECK(!evict_fixture_status(&h).blocked); /* they may be on their way */
    CHECK_STR(evict_fixture_status(&h).reason,
              "a MachineDrainRule asks for the labels of its namespace, which are not known: no "
              "list of namespaces has come yet");
    fake_watch_end(&h.api, evict_fixture_watch(&h, "/api/v1/namespaces?"), 403,
                   STR("{\"message\":\"namespaces are forbidden\"}"));
    evict_fixture_run(&h, 0);
    CHECK(evict_fixture_status(&h).blocked);
    CHECK_STR(evict_fixture_status(&h).reason,
              "a MachineDrainRule asks for the labels of its namespace, which are not known: watch "
              "of /api/v1/namespaces: the server answered 403: namespaces are forbidden");
    evict_fixture_run(&h, SECONDS(15));
    CHECK_EQ(h.api.sent, 0);
    /* Somebody grants it, but the namespace is not there. */
    evict_fixture_sync(&h, "/api/v1/namespaces?");
    evict_fixture_run(&h, SECONDS(1));
    CHECK_STR(evict_fixture_status(&h).reason,
              "a MachineDrainRule asks for the labels of its namespace, "
              "and there is no such namespace");
    CHECK_EQ(h.api.sent, 0);
    fake_watch_line(evict_fixture_watch(&h, "/api/v1/namespaces?"),
                    arena_printf(&h.a,
                                 "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"shop\","
                                 "\"resourceVersion\":\"%d\",\"labels\":{\"team\":\"b\"}}}}",
                                 ++h.version));
    evict_fixture_run(&h, SECONDS(1));
    CHECK_EQ(h.api.sent, 1);
    evict_fixture_end(&h);
}

/* Force does not wait for what is refused, but for what is on its way: it may be a rule that skips
 * the pod. */
TEST(drain_by_force_waits_a_moment_for_namespaces)
{
    struct evict_fixture h;
    struct drain_spec spec = evict_fixture_spec;
    spec.drain_rules =
        STR("[{\"name\":\"a\",\"behavior\":\"Skip\",\"pods\":[{\"namespaceSelector\":"
            "\"team=a\"}]}]");
    evict_fixture_begin_with(&h, &spec);
    drain_force(h.d);
    evict_fixture_pod(&h, "ADDED", "a", false);
    evict_fixture_sync(&h, "/pods");
    evict_fixture_sync(&h, "/poddisruptionbudgets");
    evict_fixture_run(&h, SECONDS(9));
    CHECK_EQ(h.api.sent, 0);
    evict_fixture_run(&h, SECONDS(2));
    CHECK_EQ(h.api.sent, 1);
    CHECK_EQ(fake_call_first(&h.api)->verb, API_DELETE);
    evict_fixture_end(&h);
}

TEST(drain_does_not_wait_for_ever_for_a_list_of_budgets)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    evict_fixture_pod(&h, "ADDED", "a", false);
    evict_fixture_sync(&h, "/pods");
    evict_fixture_run(&h, SECONDS(9));
    CHECK_EQ(h.api.sent, 0);
    evict_fixture_run(&h, SECONDS(2));
    CHECK_EQ(h.api.sent, 1);
    evict_fixture_end(&h);
}

TEST(drain_deletes_by_force_what_an_unseen_budget_holds)
{
    struct evict_fixture h;
    struct drain_spec spec = evict_fixture_spec;
    spec.force = true;
    spec.eviction_timeout = SECONDS(1);
    spec.grace = SECONDS(9);
    evict_fixture_begin_with(&h, &spec);
    evict_fixture_pod(&h, "ADDED", "a", false);
    evict_fixture_sync(&h, "/pods");
    fake_watch_end(&h.api, evict_fixture_watch(&h, "/poddisruptionbudgets"), 403, STR("{}"));
    evict_fixture_run(&h, 0);
    fake_call_reply(&h.api, fake_call_first(&h.api), 429, STR(REFUSAL));
    evict_fixture_run(&h, SECONDS(3));
    struct fake_call *call = fake_call_first(&h.api);
    CHECK_EQ(call->verb, API_DELETE);
    CHECK_STR(call->path, "/api/v1/namespaces/shop/pods/a");
    CHECK_STR(call->body, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
                          "\"gracePeriodSeconds\":9,\"preconditions\":{\"uid\":\"u-a\"}}");
    evict_fixture_end(&h);
}

TEST(drain_outlives_the_budget_that_it_asked)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    evict_fixture_two_pods(&h, 1);
    CHECK_EQ(h.api.call_count, 1);
    /* It goes while an eviction is in flight; the other pod is free now. */
    evict_fixture_pdb(&h, "DELETED", "web", 1, "");
    evict_fixture_run(&h, 0);
    CHECK_EQ(h.api.call_count, 2);
    fake_call_reply(&h.api, fake_call_first(&h.api), 201, STR("{}"));
    evict_fixture_run(&h, 0);
    CHECK_EQ(evict_fixture_status(&h).evicted, 1);
    evict_fixture_end(&h);
}

TEST(drain_remembers_an_eviction_whose_pod_is_gone_before_the_answer)
{
    struct evict_fixture h;
    evict_fixture_begin(&h);
    evict_fixture_two_pods(&h, 1);
    evict_fixture_pod(&h, "MODIFIED", "a", true);
    evict_fixture_pod(&h, "DELETED", "a", true);
    evict_fixture_run(&h, 0);
    fake_call_reply(&h.api, fake_call_first(&h.api), 201, STR("{}"));
    evict_fixture_run(&h, 0);
    CHECK_EQ(evict_fixture_status(&h).evicted, 1);
    /* A status from after the deletion ends the charge, whomever it names. */
    CHECK_EQ(h.api.sent, 1);
    evict_fixture_pdb(&h, "MODIFIED", "web", 2, "");
    evict_fixture_run(&h, 0);
    CHECK_EQ(h.api.sent, 2);
    evict_fixture_end(&h);
}
