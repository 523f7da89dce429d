/* Links that work with an account of their own and its tokens. */
#include "tests/lib/link_fixture.h"

#include "kinds/keys.h"
#include "bridge/workload_token.h"
#include "format/json_tree.h"
#include "tests/check.h"

#define RBAC STR("rbac.authorization.k8s.io")
#define RBAC_PATH "/apis/rbac.authorization.k8s.io/v1/"
#define BINDING RBAC_PATH "clusterrolebindings/drydock-bridge"
#define ACCOUNT "/api/v1/namespaces/kube-system/serviceaccounts/drydock-bridge"
#define APPROVE KEYS_LEGACY "approve-deletion"
#define RENEWAL SECONDS(WORKLOAD_TOKEN_SECONDS *WORKLOAD_TOKEN_RENEW_PERCENT / 100)

static struct link_cluster *begin(struct link_world *w)
{
    link_world_begin(w, 1);
    w->manage = true;
    struct link_cluster *east = link_cluster_new(w, "east");
    link_cluster_node(east, "a");
    link_cluster_node(east, "b");
    return east;
}

static struct link_cluster *begin_fresh(struct link_world *w)
{
    struct link_cluster *east = begin(w);
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(w, east, LINK_WATCHING, SECONDS(3)));
    link_world_run(w, MSECONDS(100));
    return east;
}

/* A request of the administrator. */
static struct str admin(struct link_cluster *cluster, const char *method, const char *path,
                        const char *body)
{
    struct apiserver_reply reply = { 0 };
    apiserver_handle(cluster->server,
                     &(struct apiserver_request){
                         .method = str_from(method),
                         .path = str_from(path),
                         .content_type = API_JSON,
                         .body = str_from(body),
                     },
                     &cluster->world->memory, &reply);
    CHECK(reply.status == 200 || reply.status == 201);
    return reply.body;
}

/* Somebody's password in the workload cluster, who may do nothing unless told. */
static const char *somebody(struct link_cluster *cluster)
{
    struct arena *a = &cluster->world->memory;
    (void)admin(cluster, "POST", "/api/v1/namespaces/default/serviceaccounts",
                "{\"metadata\":{\"name\":\"somebody\"}}");
    struct str body =
        admin(cluster, "POST", "/api/v1/namespaces/default/serviceaccounts/somebody/token",
              "{\"spec\":{\"expirationSeconds\":864000}}");
    struct err err = { 0 };
    struct tree *t = NULL;
    CHECK_EQ(tree_parse(body, a, &t, &err), 0);
    struct str token = tree_text_at(t, "status.token");
    CHECK(token.n > 0);
    return arena_printf(a, STR_FMT, STR_ARG(token)).p;
}

static void allow(struct link_cluster *cluster, const char *rules)
{
    struct arena *a = &cluster->world->memory;
    (void)admin(cluster, "POST", RBAC_PATH "clusterroles",
                arena_printf(a, "{\"metadata\":{\"name\":\"somebody\"},\"rules\":[%s]}", rules).p);
    (void)admin(cluster, "POST", RBAC_PATH "clusterrolebindings",
                "{\"metadata\":{\"name\":\"somebody\"},\"roleRef\":{\"apiGroup\":"
                "\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"somebody\"},"
                "\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":\"somebody\",\"namespace\":"
                "\"default\"}]}");
}

static uint64_t secret_reads(struct link_world *w)
{
    uint32_t n;
    const struct sim_api_count *series = sim_api_counts(w->api, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(series[i].resource, STR("secrets"))) {
            return series[i].sent[SIM_GET];
        }
    }
    return 0;
}

/* Exactly what workload_token makes is there, whatever went on. */
static void check_objects(struct link_cluster *cluster)
{
    struct apiserver *s = cluster->server;
    CHECK(apiserver_find(s, STR(""), STR("serviceaccounts"), STR("kube-system"),
                         STR(WORKLOAD_TOKEN_NAME)) != NULL);
    CHECK_EQ(apiserver_count(s, STR(""), STR("serviceaccounts")), 1);
    CHECK_EQ(apiserver_count(s, RBAC, STR("clusterroles")), 1);
    CHECK_EQ(apiserver_count(s, RBAC, STR("clusterrolebindings")), 1);
}

struct answer {
    int status;
    uint32_t n;
};

static void on_answer(void *ctx, const struct api_reply *reply)
{
    struct answer *a = ctx;
    a->status = reply->status;
    a->n++;
}

static struct link_call *ask(struct link_cluster *cluster, enum api_verb verb, const char *path,
                             struct answer *ret)
{
    return link_send(
        cluster->link,
        &(struct api_request){
            .verb = verb,
            .path = str_from(path),
            .content_type = verb == API_PATCH ? API_MERGE_PATCH : STR_NONE,
            .body = verb == API_PATCH ? STR("{\"metadata\":{\"labels\":{\"x\":\"y\"}}}") : STR_NONE,
        },
        on_answer, ret);
}

/* ── the first token ───────────────────────────────────────────────────────────────────────── */

TEST(link_makes_an_account_and_works_with_its_token_alone)
{
    struct link_world w;
    struct link_cluster *east = begin(&w);
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_GRANTING, SECONDS(1)));
    CHECK_STR(link_state_name(LINK_GRANTING), "granting");
    CHECK_EQ(link_cluster_view(east).state, LINK_GRANTING); /* without a client of its own yet */
    CHECK_EQ(link_cluster_view(east).pause_end, 0);
    CHECK_EQ(east->entry->open, 1);
    CHECK(link_unreachable_since(east->link) > 0);
    CHECK(link_world_until(&w, east, LINK_LISTING, SECONDS(3)));
    CHECK_EQ(east->entry->dial_count, 2);
    CHECK_EQ(east->entry->open, 1); /* the administrator has gone */
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(1)));
    check_objects(east);
    CHECK(link_cluster_store_matches(east));
    CHECK_EQ(east->states, 1);
    CHECK_EQ(link_cluster_view(east).connects, 1);
    CHECK_EQ(secret_reads(&w), 1);

    static const struct {
        enum api_verb verb;
        const char *path;
        int status;
    } cases[] = {
        { API_PATCH, "/api/v1/nodes/a", 200 },
        { API_GET, "/api/v1/nodes/b", 200 },
        { API_DELETE, "/api/v1/nodes/b", 403 },
        { API_GET, "/api/v1/pods", 403 },
        { API_GET, "/api/v1/namespaces/kube-system/secrets", 403 },
        { API_GET, BINDING, 403 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct answer answer = { 0 };
        (void)ask(east, cases[i].verb, cases[i].path, &answer);
        link_world_run(&w, SECONDS(1));
        CHECK_EQ(answer.n, 1);
        CHECK_EQ(answer.status, cases[i].status);
    }
    check_case(-1);
    CHECK(str_contains(buf_str(&w.log), STR("ClusterRoleBinding 'drydock-bridge'")));
    CHECK(!str_contains(buf_str(&w.log), STR("eyJ"))); /* no token, nor a part of one */
    link_world_end(&w);
}

TEST(link_does_not_need_the_administrators_password_while_its_token_lives)
{
    struct link_world w;
    struct link_cluster *east = begin_fresh(&w);
    apiserver_set_token(east->server, STR("t2")); /* nobody has put it into the Secret */
    apiserver_restart(east->server);
    link_cluster_label(east, "a", APPROVE, true);
    link_world_run(&w, MINUTES(35));
    CHECK_EQ(east->states, 1);
    CHECK_EQ(secret_reads(&w), 4); /* by the ten minutes rule */
    CHECK(link_cluster_store_matches(east));
    link_world_end(&w);
}

TEST(link_without_manage_makes_no_account)
{
    struct link_world w;
    link_world_begin(&w, 1);
    struct link_cluster *east = link_cluster_new(&w, "east");
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(1)));
    link_world_run(&w, HOURS(2));
    CHECK_EQ(apiserver_count(east->server, STR(""), STR("serviceaccounts")), 0);
    CHECK_EQ(east->entry->dial_count, 1);
    link_world_end(&w);
}

TEST(link_needs_no_more_than_the_documented_rights)
{
    struct link_world w;
    struct link_cluster *east = begin(&w);
    link_cluster_secret(east, somebody(east));
    allow(east, "{\"apiGroups\":[\"\"],\"resources\":[\"serviceaccounts\"],\"verbs\":[\"get\","
                "\"create\"]},{\"apiGroups\":[\"\"],\"resources\":[\"serviceaccounts/token\"],"
                "\"resourceNames\":[\"drydock-bridge\"],\"verbs\":[\"create\"]},{\"apiGroups\":["
                "\"rbac.authorization.k8s.io\"],\"resources\":[\"clusterroles\","
                "\"clusterrolebindings\"],\"verbs\":[\"get\",\"create\",\"patch\",\"delete\"]}");
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(3)));
    CHECK(link_cluster_store_matches(east));
    link_world_run(&w, HOURS(3));
    CHECK_EQ(east->states, 1);
    link_world_end(&w);
}

/* ── refusals ──────────────────────────────────────────────────────────────────────────────── */

TEST(link_waits_long_when_the_kubeconfig_may_not_make_an_account)
{
    struct link_world w;
    struct link_cluster *east = begin(&w);
    link_cluster_secret(east, somebody(east));
    allow(east, "{\"apiGroups\":[\"\"],\"resources\":[\"nodes\",\"serviceaccounts\"],"
                "\"verbs\":[\"*\"]}");
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(3)));
    CHECK(
        str_starts(link_cluster_view(east).trouble,
                   STR("the kubeconfig's user may not make an account for the bridge: "
                       "ClusterRole 'drydock-bridge' cannot be read: the server answered 403: ")));
    CHECK(link_cluster_view(east).retry_at - link_cluster_view(east).since >= LINK_BACKOFF_MAX / 2);
    CHECK_EQ(east->entry->open, 0);
    /* Another Secret mends it at once. */
    link_cluster_secret(east, "t1");
    link_cluster_watch_secret(east);
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(4)));
    CHECK_STR(link_cluster_view(east).trouble, "");
    link_world_end(&w);
}

TEST(link_reads_the_secret_again_when_the_administrator_is_refused)
{
    struct link_world w;
    struct link_cluster *east = begin(&w);
    apiserver_set_token(east->server, STR("t2"));
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_GRANTING, SECONDS(1)));
    CHECK(link_world_until(&w, east, LINK_RESOLVING, SECONDS(1)));
    CHECK_EQ(east->entry->open, 0);
    CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(3))); /* not for ever */
    CHECK_EQ(secret_reads(&w), 2);
    CHECK(str_contains(link_cluster_view(east).trouble, STR("401")));
    CHECK(link_cluster_view(east).retry_at - link_cluster_view(east).since <= LINK_BACKOFF_BASE);
    link_cluster_secret(east, "t2");
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(5)));
    link_world_end(&w);
}

TEST(link_soon_tries_again_when_its_new_right_is_not_known_yet)
{
    struct link_world w;
    struct link_cluster *east = begin(&w);
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_LISTING, SECONDS(3)));
    (void)admin(east, "DELETE", BINDING, "");
    CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(1)));
    CHECK(str_contains(link_cluster_view(east).trouble, STR("403")));
    CHECK(link_cluster_view(east).retry_at - link_cluster_view(east).since <= LINK_BACKOFF_BASE);
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(5)));
    check_objects(east);
    link_world_end(&w);
}

TEST(link_whose_account_is_deleted_makes_another)
{
    struct link_world w;
    struct link_cluster *east = begin_fresh(&w);
    link_world_run(&w, MINUTES(1));
    (void)admin(east, "DELETE", ACCOUNT, "");
    apiserver_restart(east->server); /* a stream that is open would go on */
    CHECK(link_world_until(&w, east, LINK_RESOLVING, SECONDS(5)));
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(5)));
    check_objects(east);
    link_world_end(&w);
}

/* ── hostile clusters ──────────────────────────────────────────────────────────────────────── */

TEST(link_does_not_wait_long_as_the_administrator)
{
    static const struct {
        usec_t latency; /* of each way */
        bool partitioned;
        const char *trouble;
    } cases[] = {
        { 0, true, "ServiceAccount 'drydock-bridge' cannot be read: " },
        { MSECONDS(4600), false, "no token of our own after 60 s" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct link_world w;
        struct link_cluster *east = begin(&w);
        east->faults.partitioned = cases[i].partitioned;
        if (cases[i].latency > 0) {
            east->faults.latency_min = cases[i].latency;
            east->faults.latency_max = cases[i].latency;
        }
        link_open(east->link, /* hurry= */ false);
        CHECK(link_world_until(&w, east, LINK_GRANTING, SECONDS(1)));
        CHECK(link_world_until(&w, east, LINK_BACKOFF, LINK_GRANTING_MAX));
        CHECK(str_starts(link_cluster_view(east).trouble, str_from(cases[i].trouble)));
        CHECK_EQ(east->entry->open, 0);
        east->faults.partitioned = false;
        faults_done(&east->faults);
        faults_init(&east->faults, 5);
        CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(10)));
        link_world_end(&w);
    }
    check_case(-1);
}

TEST(link_says_why_a_kubeconfig_was_refused_to_the_administrator_too)
{
    struct link_world w;
    struct link_cluster *east = begin(&w);
    east->entry->refusal = "'exec' is not taken from a Secret";
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_BACKOFF, SECONDS(1)));
    CHECK_STR(link_cluster_view(east).trouble,
              "Secret 'default/east-kubeconfig': 'exec' is not taken from a Secret");
    link_world_end(&w);
}

/* ── renewal ───────────────────────────────────────────────────────────────────────────────── */

TEST(link_gets_another_token_before_the_first_ends_and_stays_fresh)
{
    struct link_world w;
    struct link_cluster *east = begin_fresh(&w);
    link_cluster_watch_secret(east);
    CHECK_EQ(east->entry->dial_count, 2);
    link_world_run(&w, RENEWAL - SECONDS(10));
    CHECK_EQ(east->entry->dial_count, 2);
    link_world_run(&w, SECONDS(20));
    CHECK_EQ(east->entry->dial_count, 4);
    CHECK_EQ(east->entry->open, 1);
    CHECK_EQ(secret_reads(&w), 2);
    for (int i = 0; i < 10; i++) {
        link_world_run(&w, HOURS(1));
        link_cluster_label(east, "a", APPROVE, i % 2 == 0);
        link_world_run(&w, SECONDS(1));
        CHECK(link_cluster_store_matches(east));
    }
    link_cluster_node_delete(east, "b");
    link_world_run(&w, SECONDS(1));
    CHECK_STR(buf_str(&east->gone), "b "); /* and not with every list */
    CHECK(east->entry->dial_count >= 24);
    CHECK_EQ(east->entry->open, 1);
    CHECK_EQ(east->states, 1);
    CHECK_EQ(link_cluster_view(east).connects, 1);
    CHECK_EQ(link_cluster_view(east).failures, 0);
    check_objects(east);
    link_world_end(&w);
}

TEST(link_goes_on_with_the_old_token_while_no_other_comes)
{
    struct link_world w;
    struct link_cluster *east = begin_fresh(&w);
    apiserver_set_token(east->server, STR("t2"));
    link_world_run(&w, SECONDS(WORKLOAD_TOKEN_SECONDS) - MINUTES(1));
    CHECK(link_fresh(east->link));
    CHECK_EQ(east->states, 1);
    CHECK(str_contains(buf_str(&w.log), STR("not renewed")));
    CHECK(str_contains(link_cluster_view(east).overdue, STR("401")));
    CHECK(link_cluster_view(east).renewals_failed > 0);
    link_world_run(&w, MINUTES(20)); /* the server ends streams, and does not open others */
    CHECK(!link_fresh(east->link));
    CHECK(str_contains(link_cluster_view(east).trouble, STR("401")));
    link_cluster_secret(east, "t2");
    link_cluster_watch_secret(east);
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(5)));
    CHECK_STR(link_cluster_view(east).overdue, "");
    size_t first = str_find(buf_str(&w.log), STR("not renewed"));
    CHECK(!str_contains(str_sub(buf_str(&w.log), first + 1, SIZE_MAX), STR("not renewed")));
    link_world_end(&w);
}

TEST(link_mends_its_renewal_by_itself)
{
    struct link_world w;
    struct link_cluster *east = begin_fresh(&w);
    link_world_run(&w, RENEWAL - SECONDS(30));
    w.faults.down = true; /* the Secret cannot be read */
    link_world_run(&w, MINUTES(2));
    w.faults.down = false;
    CHECK_EQ(east->entry->dial_count, 2);
    link_world_run(&w, MINUTES(6));
    CHECK_EQ(east->entry->dial_count, 4);
    CHECK_EQ(east->states, 1);
    link_world_run(&w, HOURS(3));
    CHECK_EQ(east->states, 1);
    link_world_end(&w);
}

TEST(link_does_not_wait_long_for_another_token)
{
    struct link_world w;
    struct link_cluster *east = begin_fresh(&w);
    link_cluster_watch_secret(east);
    link_world_run(&w, RENEWAL - SECONDS(5));
    /* All is to be made anew, and every request takes almost as long as it may. */
    (void)admin(east, "DELETE", ACCOUNT, "");
    (void)admin(east, "DELETE", BINDING, "");
    (void)admin(east, "DELETE", RBAC_PATH "clusterroles/drydock-bridge", "");
    east->faults.latency_min = MSECONDS(4600);
    east->faults.latency_max = MSECONDS(4600);
    link_world_run(&w, SECONDS(20));
    CHECK_EQ(east->entry->open, 2);
    link_world_run(&w, SECONDS(46));
    CHECK(str_contains(buf_str(&w.log), STR("no other token after 60 s")));
    CHECK(link_fresh(east->link));
    faults_done(&east->faults);
    faults_init(&east->faults, 5);
    link_world_run(&w, MINUTES(1));
    CHECK(link_fresh(east->link));
    CHECK_EQ(east->entry->open, 1);
    check_objects(east);
    link_world_end(&w);
}

TEST(link_that_finds_another_secret_when_it_renews_begins_anew)
{
    struct link_world w;
    struct link_cluster *east = begin_fresh(&w);
    link_cluster_watch_secret(east);
    link_world_run(&w, RENEWAL - SECONDS(10));
    apiserver_set_token(east->server, STR("t2"));
    link_cluster_secret(east, "t2"); /* and the watch of the Secrets is behind */
    link_world_run(&w, SECONDS(20));
    CHECK(link_fresh(east->link));
    CHECK_EQ(east->states, 3);
    CHECK_EQ(link_cluster_view(east).connects, 2);
    CHECK_EQ(east->entry->open, 1);
    link_world_end(&w);
}

TEST(link_whose_secret_is_gone_when_it_renews_gives_the_connection_up)
{
    struct link_world w;
    struct link_cluster *east = begin_fresh(&w);
    link_cluster_watch_secret(east);
    link_world_run(&w, RENEWAL - SECONDS(10));
    link_cluster_secret_delete(east);
    link_world_run(&w, SECONDS(20));
    CHECK_EQ(link_state(east->link), LINK_BACKOFF);
    CHECK(str_contains(link_cluster_view(east).trouble, STR("there is none")));
    CHECK_EQ(east->entry->open, 0);
    link_world_end(&w);
}

/* Requests are under way all the time: none is lost, and none is sent twice. */
TEST(link_moves_to_another_token_between_requests)
{
    struct link_world w;
    struct link_cluster *east = begin_fresh(&w);
    link_world_run(&w, RENEWAL - SECONDS(10));
    east->faults.latency_min = MSECONDS(100);
    east->faults.latency_max = MSECONDS(400);
    struct answer answers[400] = { 0 };
    uint32_t waits = 0;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        (void)ask(east, API_PATCH, i % 2 == 0 ? "/api/v1/nodes/a" : "/api/v1/nodes/b", &answers[i]);
        link_world_run(&w, MSECONDS(60));
        /* Both doors are open until nothing is in flight; those that wait do not hold it up. */
        waits += east->entry->dial_count == 4 && east->entry->open == 2 ? 1 : 0;
    }
    CHECK(waits < 30);
    CHECK_EQ(answers[ARRAY_LEN(answers) - 1].n, 0); /* there were some all the time */
    link_world_run(&w, SECONDS(60));
    CHECK_EQ(east->entry->dial_count, 4);
    CHECK_EQ(east->entry->open, 1);
    CHECK_EQ(east->states, 1);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        CHECK_EQ(answers[i].n, 1);
        CHECK_EQ(answers[i].status, 200);
    }
    link_world_end(&w);
}

TEST(links_that_renew_keep_to_the_rate_of_connecting)
{
    struct link_world w;
    link_world_begin(&w, 1);
    w.manage = true;
    struct link_cluster *clusters[60];
    for (size_t i = 0; i < ARRAY_LEN(clusters); i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "c%zu", i);
        clusters[i] = link_cluster_new(&w, name);
        link_open(clusters[i]->link, /* hurry= */ false);
    }
    link_world_run(&w, SECONDS(20));
    w.connects = (struct ratelimit){ .rate = 2, .burst = 1 };
    for (size_t i = 0; i < ARRAY_LEN(clusters); i++) {
        link_cluster_watch_secret(clusters[i]);
    }
    link_world_run(&w, RENEWAL - SECONDS(30));
    uint64_t before = secret_reads(&w);
    for (int i = 0; i < 30; i++) {
        link_world_run(&w, SECONDS(2));
        CHECK(secret_reads(&w) - before <= 5);
        before = secret_reads(&w);
    }
    link_world_run(&w, MINUTES(5));
    for (size_t i = 0; i < ARRAY_LEN(clusters); i++) {
        CHECK_EQ(clusters[i]->entry->dial_count, 4);
        CHECK_EQ(clusters[i]->states, 1);
    }
    link_world_end(&w);
}

/* ── the end ───────────────────────────────────────────────────────────────────────────────── */

TEST(link_closes_while_it_asks_for_a_token)
{
    struct link_world w;
    struct link_cluster *east = begin(&w);
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_GRANTING, SECONDS(1)));
    link_world_run(&w, MSECONDS(5));
    link_close(east->link);
    CHECK(link_world_until(&w, east, LINK_IDLE, 0));
    CHECK_EQ(east->entry->open, 0);
    link_world_run(&w, HOURS(1));
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(3)));
    link_world_run(&w, RENEWAL);
    link_close(east->link); /* and in the midst of a renewal */
    link_world_run(&w, SECONDS(1));
    CHECK_EQ(east->entry->open, 0);
    CHECK_EQ(link_state(east->link), LINK_IDLE);
    link_world_end(&w);
}

TEST(link_takes_another_secret_while_it_asks_for_a_token)
{
    struct link_world w;
    struct link_cluster *east = begin(&w);
    link_cluster_watch_secret(east);
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(&w, east, LINK_GRANTING, SECONDS(1)));
    apiserver_set_token(east->server, STR("t2"));
    link_cluster_secret(east, "t2");
    link_cluster_watch_secret(east);
    CHECK(link_world_until(&w, east, LINK_RESOLVING, 0));
    CHECK_EQ(east->entry->open, 0);
    CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(4)));
    link_world_end(&w);
}

/* A crash leaves at most an account that may do little, and the next one goes on from there. */
TEST(link_may_crash_at_any_moment_of_its_token)
{
    for (usec_t at = 0; at < MSECONDS(1200); at += at < MSECONDS(60) ? 500 : 20000) {
        struct link_world w;
        struct link_cluster *east = begin(&w);
        link_open(east->link, /* hurry= */ false);
        link_world_run(&w, at);
        link_free(STEAL(east->link));
        CHECK_EQ(east->entry->open, 0);
        link_cluster_relink(east);
        link_open(east->link, /* hurry= */ false);
        CHECK(link_world_until(&w, east, LINK_WATCHING, SECONDS(5)));
        check_objects(east);
        CHECK(link_cluster_store_matches(east));
        link_world_end(&w);
    }
}

TEST(link_may_crash_at_any_moment_of_a_renewal)
{
    for (usec_t at = 0; at < MSECONDS(60); at += 500) {
        struct link_world w;
        struct link_cluster *east = begin_fresh(&w);
        link_cluster_watch_secret(east);
        while (east->entry->dial_count ==
               2) { /* its Secret was read, and the administrator called */
            CHECK(virtual_loop_step(w.time, HOURS(1)));
        }
        link_world_run(&w, at);
        link_free(STEAL(east->link));
        CHECK_EQ(east->entry->open, 0);
        link_world_end(&w);
    }
}

/* Whatever the network does to it, hours of it: in calm weather the link is fresh, and there is
 * one door. */
TEST(link_with_tokens_comes_through_any_weather)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        check_case((int64_t)seed);
        struct link_world w;
        link_world_begin(&w, seed);
        w.manage = true;
        struct link_cluster *east = link_cluster_new(&w, "east");
        link_cluster_node(east, "a");
        struct rng rng;
        rng_init(&rng, seed);
        faults_randomize(&east->faults);
        faults_randomize(&w.faults);
        link_open(east->link, /* hurry= */ false);
        struct answer answers[150] = { 0 };
        for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
            (void)ask(east, API_PATCH, "/api/v1/nodes/a", &answers[i]);
            link_world_run(&w, SECONDS(rng_below(&rng, 180)));
            east->faults.down = rng_below(&rng, 20) == 0;
        }
        east->faults.down = false;
        east->faults.calm = true;
        w.faults.calm = true;
        link_world_run(&w, MINUTES(15));
        CHECK(link_fresh(east->link));
        CHECK(link_cluster_store_matches(east));
        CHECK_EQ(east->entry->open, 1);
        for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
            CHECK_EQ(answers[i].n, 1);
        }
        check_objects(east);
        link_world_end(&w);
    }
    check_case(-1);
}
