/* Deletion of nodes through OpenStack, told in virtual time; the servers are a script. What real
 * requests look like is told in tests/e2e/test_kubernikus.py. */
#include "format/json.h"
#include "integration/integration.h"
#include "kinds/keys.h"
#include "tests/check.h"
#include "tests/lib/integration_fixture.h"

#define GOOD                                                                                       \
    "intervals:\n"                                                                                 \
    "  requeue: 30s\n"                                                                             \
    "  podDeletion: {period: 10s, timeout: 5m}\n"                                                  \
    "  podEviction: {period: 10s, timeout: 5m}\n"
#define CONF "[Global]\nauth-url=https://id/v3\nusername=u\npassword=hush\nregion=r\ntenant-id=t\n"
#define CATALOGUE                                                                                  \
    "{\"token\":{\"catalog\":[{\"type\":\"compute\",\"endpoints\":[{\"interface\":\"public\","     \
    "\"region\":\"r\",\"url\":\"https://nova/v2/\"}]}]}}"

struct story {
    struct integration_fixture base;
    bool watched;        /* each deletion is checked against the node */
    usec_t disturbed_at; /* when somebody last did what forbids one */
    int login;           /* what Keystone answers */
    int list;            /* what Nova answers to lists */
    int remove;          /* … to deletions */
    const char *first;   /* the page of servers */
    const char *next;    /* … behind it, if any */
    uint32_t logins;
    uint32_t lists;
    uint32_t removals;
    struct str removed; /* the last one's URL */
};

static void find_pod(void *ctx, const struct jval *pod)
{
    struct str node = jval_str(jval_at(pod, "spec.nodeName"));
    *(bool *)ctx = *(bool *)ctx || str_eq(node, STR("a-1"));
}

/* A server goes only if its node asks for it, is cordoned and has no pod left. What somebody did in
 * the moment before may be on its way. */
static void check_removal(struct story *s)
{
    const struct jval *node =
        apiserver_find(s->base.server, STR(""), STR("nodes"), STR(""), STR("a-1"));
    bool pods = false;
    CHECK(node != NULL);
    if (virtual_loop_now(s->base.time) < s->disturbed_at + SECONDS(1)) {
        return;
    }
    apiserver_each(s->base.server, STR(""), STR("pods"), STR(""), find_pod, &pods);
    CHECK(!pods);
    CHECK(jval_bool(jval_at(node, "spec.unschedulable"), false));
    CHECK_STR(jval_str(jval_get(jval_at(node, "metadata.labels"), KEY_DELETE_NODE)), "true");
}

static void respond(void *ctx, const struct inbox_message *m, struct inbox_answer *answer)
{
    struct story *s = ctx;
    struct str url = m->request.url;
    if (str_eq(url, STR("https://id/v3/auth/tokens"))) {
        s->logins++;
        *answer = (struct inbox_answer){ .status = s->login,
                                         .body = STR(CATALOGUE),
                                         .header = STR("token") };
    } else if (str_eq(m->request.method, STR("DELETE"))) {
        s->removals++;
        if (s->watched) {
            check_removal(s);
        }
        s->removed = arena_str(&s->base.memory, url);
        CHECK_STR(inbox_header(m, "X-Auth-Token"), "token");
        *answer = (struct inbox_answer){ .status = s->remove };
        s->first = s->remove == 204 ? "{\"servers\":[]}" : s->first;
    } else {
        s->lists++;
        CHECK(str_starts(url, STR("https://nova/v2/servers/detail?name=a-1&tenant_id=t")));
        bool behind = str_contains(url, STR("&marker="));
        *answer = (struct inbox_answer){ .status = s->list,
                                         .body = str_from(behind ? s->next : s->first) };
    }
}

static void begin(struct story *s)
{
    *s = (struct story){
        .login = 201,
        .list = 200,
        .remove = 204,
        .first = "{\"servers\":[{\"id\":\"x\",\"name\":\"a-10\"},{\"id\":\"y\",\"name\":\"a-1\"}]}",
    };
    integration_fixture_init(&s->base, "kubernikus");
    s->base.inbox.script = respond;
    s->base.inbox.ctx = s;
    s->base.file = STR(CONF);
    CHECK_EQ(integration_fixture_configure(&s->base, GOOD), 0);
    (void)integration_fixture_ask(&s->base, "POST", "/api/v1/nodes",
                                  "{\"metadata\":{\"name\":\"a-1\"}}");
}

static void end(struct story *s)
{
    integration_fixture_done(&s->base);
}

static void run(struct story *s, usec_t span)
{
    integration_fixture_run(&s->base, span);
}

static void set_label(struct story *s, const char *value)
{
    struct str body = arena_printf(
        &s->base.memory, "{\"metadata\":{\"labels\":{\"cloud.sap/delete-node\":%s}}}", value);
    (void)integration_fixture_ask(&s->base, "PATCH", "/api/v1/nodes/a-1", body.p);
}

static void add_pod(struct story *s)
{
    (void)integration_fixture_ask(&s->base, "POST", "/api/v1/namespaces/default/pods",
                                  "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"a-1\","
                                  "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}");
}

/* Its kubelet has ended it. */
static void end_pod(struct story *s)
{
    (void)integration_fixture_ask(&s->base, "DELETE",
                                  "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0", NULL);
}

static bool is_cordoned(struct story *s)
{
    return jval_bool(integration_fixture_node(&s->base, "a-1", "spec.unschedulable"), false);
}

static void keep_activity(void *ctx, const struct activity *activity)
{
    *(struct activity *)ctx = *activity;
}

static struct activity shown(struct story *s)
{
    struct activity activity = { 0 };
    integrations_each_of_node(&s->base.all, STR("a-1"), keep_activity, &activity);
    return activity;
}

TEST(kubernikus_deletes_the_server_of_that_very_name)
{
    struct story s;
    begin(&s);
    run(&s, SECONDS(10));
    CHECK(!is_cordoned(&s));
    set_label(&s, "\"true\"");
    run(&s, SECONDS(10));
    CHECK(is_cordoned(&s));
    CHECK_EQ(s.removals, 1);
    CHECK_STR(s.removed, "https://nova/v2/servers/y");
    CHECK_STR(shown(&s).did, "server y is deleted");
    CHECK_STR(shown(&s).waits, "its Node object to go");
    /* Once more after a while: a deletion may have come to nothing. */
    run(&s, MINUTES(2));
    CHECK_EQ(s.removals, 1);
    CHECK(s.lists >= 3 && s.lists <= 6);
    CHECK_EQ(s.logins, 1);
    CHECK_STR(shown(&s).did, "server y is deleted");
    end(&s);
}

TEST(kubernikus_deletes_nothing_before_the_node_is_drained)
{
    struct story s;
    begin(&s);
    add_pod(&s);
    set_label(&s, "\"true\"");
    run(&s, MINUTES(1));
    CHECK(is_cordoned(&s));
    CHECK_EQ(s.logins, 0);
    CHECK(str_contains(shown(&s).waits, STR("its pods to go: ")));
    end_pod(&s);
    run(&s, MINUTES(2));
    CHECK_EQ(s.removals, 1);
    end(&s);
}

TEST(kubernikus_stops_when_the_label_goes)
{
    struct story s;
    begin(&s);
    add_pod(&s);
    set_label(&s, "\"true\"");
    run(&s, SECONDS(5));
    set_label(&s, "null");
    run(&s, SECONDS(5));
    end_pod(&s);
    run(&s, MINUTES(2));
    CHECK_EQ(s.lists + s.removals, 0);
    CHECK(is_cordoned(&s)); /* as the original leaves it */
    end(&s);
}

TEST(kubernikus_reads_all_pages)
{
    struct story s;
    begin(&s);
    s.first =
        "{\"servers\":[{\"id\":\"x\",\"name\":\"a-10\"}],\"servers_links\":[{\"rel\":\"next\","
        "\"href\":\"https://evil/steal\"}]}";
    s.next = "{\"servers\":[{\"id\":\"y\",\"name\":\"a-1\"}]}";
    set_label(&s, "\"true\"");
    run(&s, SECONDS(20));
    CHECK_EQ(s.removals, 1);
    CHECK_STR(s.removed, "https://nova/v2/servers/y");
    end(&s);
}

TEST(kubernikus_deletes_none_of_two)
{
    struct story s;
    begin(&s);
    s.first = "{\"servers\":[{\"id\":\"x\",\"name\":\"a-1\"},{\"id\":\"y\",\"name\":\"a-1\"}]}";
    set_label(&s, "\"true\"");
    run(&s, MINUTES(1));
    CHECK_EQ(s.removals, 0);
    CHECK_STR(shown(&s).error, "expected to list 1 or 0 servers, but got 2");
    s.first = "{\"servers\":[{\"id\":\"x\",\"name\":\"a-1\"}]}";
    run(&s, MINUTES(6));
    CHECK_EQ(s.removals, 1);
    CHECK_EQ(shown(&s).error.n, 0);
    end(&s);
}

TEST(kubernikus_takes_another_project_s_server_for_none)
{
    struct story s;
    begin(&s);
    s.first = "{\"servers\":[{\"id\":\"x\",\"name\":\"a-1\",\"tenant_id\":\"other\"}]}";
    set_label(&s, "\"true\"");
    run(&s, MINUTES(1));
    CHECK_EQ(s.removals, 0);
    CHECK_STR(shown(&s).did, "OpenStack has no server of its name");
    end(&s);
}

TEST(kubernikus_logs_in_again_when_its_token_is_refused)
{
    struct story s;
    begin(&s);
    s.list = 401;
    set_label(&s, "\"true\"");
    run(&s, SECONDS(5));
    CHECK(s.logins >= 1);
    s.list = 200;
    run(&s, MINUTES(1));
    CHECK(s.logins >= 2 && s.logins <= 6);
    CHECK_EQ(s.removals, 1);
    end(&s);
}

TEST(kubernikus_tries_again_and_shows_no_secret)
{
    struct story s;
    begin(&s);
    s.login = 401;
    set_label(&s, "\"true\"");
    run(&s, MINUTES(10));
    CHECK(s.logins >= 3 && s.logins <= 12); /* accounts get locked */
    CHECK_STR(shown(&s).error,
              "OpenStack (file 'provider/cloudprovider.conf'): login: the identity "
              "service refused the credentials with 401");
    struct activity whole = { 0 };
    integrations_each(&s.base.all, keep_activity, &whole);
    CHECK_STR(whole.error, shown(&s).error);
    s.login = 201;
    s.list = 503;
    run(&s, MINUTES(10));
    CHECK_STR(shown(&s).error, "the compute service: the server answered 503");
    s.list = 200;
    s.remove = 500;
    run(&s, MINUTES(10));
    CHECK(s.removals >= 1);
    s.remove = 204;
    run(&s, MINUTES(10));
    CHECK_STR(shown(&s).did, "server y is deleted");
    end(&s);
}

TEST(kubernikus_goes_on_after_a_crash)
{
    struct story s;
    begin(&s);
    set_label(&s, "\"true\"");
    for (uint32_t i = 0; i < 40; i++) {
        run(&s, MSECONDS(7) * i);
        uint32_t removals = s.removals;
        CHECK(removals == 0 || is_cordoned(&s));
        integration_fixture_restart(&s.base);
        CHECK_EQ(integration_fixture_configure(&s.base, GOOD), 0);
    }
    run(&s, SECONDS(10));
    CHECK(s.removals >= 1);
    CHECK_STR(s.removed, "https://nova/v2/servers/y");
    end(&s);
}

/* Whatever people, servers and crashes do, no server goes before its node; and in the end it does.
 */
PROPERTY(kubernikus_deletes_only_what_is_drained_and_asked_for)
{
    static const int answers[] = { 200, 200, 401, 404, 429, 500, 503, 0 };
    struct story s;
    begin(&s);
    s.watched = true;
    bool pod = false;
    for (uint32_t step = 0; step < 30; step++) {
        const char *uncordon = "{\"spec\":{\"unschedulable\":null}}";
        uint32_t what = rng_below(rng, 9);
        s.disturbed_at = what < 3 ? virtual_loop_now(s.base.time) : s.disturbed_at;
        if (what == 0) {
            set_label(&s, "\"false\"");
        } else if (what == 1 && !pod) {
            add_pod(&s);
            pod = true;
        } else if (what == 2) {
            (void)integration_fixture_ask(&s.base, "PATCH", "/api/v1/nodes/a-1", uncordon);
        } else if (what == 3 && pod) {
            end_pod(&s);
            pod = false;
        } else if (what == 4) {
            integration_fixture_restart(&s.base);
            CHECK_EQ(integration_fixture_configure(&s.base, GOOD), 0);
        } else if (what == 5) {
            s.list = answers[rng_below(rng, ARRAY_LEN(answers))];
            s.login = s.list == 200 ? 201 : answers[rng_below(rng, ARRAY_LEN(answers))];
            s.remove = s.list == 200 ? 204 : s.list;
        } else if (what > 5) {
            set_label(&s, "\"true\"");
        }
        run(&s,
            rng_below(rng, 2) == 0 ? MSECONDS(rng_below(rng, 100)) : SECONDS(rng_below(rng, 40)));
    }
    s.list = 200;
    s.login = 201;
    s.remove = 204;
    set_label(&s, "\"true\"");
    if (pod) {
        end_pod(&s);
    }
    run(&s, MINUTES(12)); /* twice the longest wait */
    CHECK(s.removals > 0);
    end(&s);
}

TEST(kubernikus_reads_its_credentials_from_a_secret)
{
    struct story s;
    begin(&s);
    s.base.file = STR_NONE;
    CHECK_EQ(integration_fixture_configure(
                 &s.base, GOOD "cloudProviderSecret: {name: os, namespace: kube-system}\n"),
             0);
    set_label(&s, "\"true\"");
    run(&s, SECONDS(10));
    CHECK_STR(shown(&s).error, "Secret 'kube-system/os': there is no such Secret");
    CHECK_EQ(s.base.reads, 0);
    (void)integration_fixture_ask(
        &s.base, "POST", "/api/v1/namespaces/kube-system/secrets",
        "{\"metadata\":{\"name\":\"os\"},\"stringData\":{\"cloudprovider.conf\":"
        "\"[Global]\\nauth-url=https://id/v3\\nusername=u\\npassword=p\\ntenant-id=t\\n\"}}");
    run(&s, MINUTES(3));
    CHECK_EQ(s.removals, 1);
    end(&s);
}

TEST(kubernikus_waits_for_its_place_under_the_limits)
{
    struct story s;
    begin(&s);
    add_pod(&s);
    integration_fixture_limit(&s.base, 0);
    run(&s, SECONDS(10));
    set_label(&s, "\"true\"");
    run(&s, MINUTES(5));
    CHECK(!is_cordoned(&s));
    CHECK_EQ(s.logins, 0);
    CHECK(str_contains(shown(&s).waits, STR("its place under the limits: ")));
    CHECK_EQ(integration_fixture_reservation(&s.base).n, 0);
    integration_fixture_set_limit(&s.base, 1);
    run(&s, SECONDS(20));
    CHECK(is_cordoned(&s));
    CHECK_STR(integration_fixture_reservation(&s.base), "kubernikus/a-1");
    CHECK(str_contains(shown(&s).waits, STR("its pods to go: ")));
    /* What has begun goes on, whatever the limit is now, and also after a crash. */
    integration_fixture_set_limit(&s.base, 0);
    integration_fixture_restart(&s.base);
    CHECK_EQ(integration_fixture_configure(&s.base, GOOD), 0);
    run(&s, SECONDS(20));
    CHECK_STR(integration_fixture_reservation(&s.base), "kubernikus/a-1");
    end_pod(&s);
    run(&s, MINUTES(2));
    CHECK_EQ(s.removals, 1);
    /* It counts until its Node is gone. */
    CHECK_STR(integration_fixture_reservation(&s.base), "kubernikus/a-1");
    (void)integration_fixture_ask(&s.base, "DELETE", "/api/v1/nodes/a-1", NULL);
    arbiter_owner_synced(s.base.core->arbiter, ASK_OF_TARGET, true); /* as profiles say */
    run(&s, MINUTES(2));
    CHECK_EQ(integration_fixture_reservation(&s.base).n, 0);
    end(&s);
}

TEST(kubernikus_gives_its_place_back_when_the_label_goes)
{
    struct story s;
    begin(&s);
    add_pod(&s);
    integration_fixture_limit(&s.base, 1);
    run(&s, SECONDS(10));
    set_label(&s, "\"true\"");
    run(&s, SECONDS(20));
    CHECK_STR(integration_fixture_reservation(&s.base), "kubernikus/a-1");
    set_label(&s, "null");
    run(&s, MINUTES(1));
    CHECK_EQ(integration_fixture_reservation(&s.base).n, 0);
    CHECK(jval_get(integration_fixture_node(&s.base, "a-1", "metadata.annotations"),
                   KEY_DELETING) == NULL);
    CHECK(is_cordoned(&s));
    end(&s);
}
