#include "web/leader_proxy.h"

#include "base/buf.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/sim/outbound.h"
#include "tests/check.h"
#include "web/request_auth.h"

/* An exchange that remembers what was said. */
struct fake_exchange {
    struct inbound_exchange door;
    struct str relayed; /* the header's value */
    struct str authorization;
    struct str token; /* of our own client's header */
    enum query_format format;
    bool text; /* what is expected */
    int status;
    struct buf body;
};

static void fake_exchange_header(struct inbound_exchange *x UNUSED, const char *name UNUSED,
                                 struct str value UNUSED)
{
}

static void fake_exchange_reply(struct inbound_exchange *x, int status, struct str type,
                                struct shared_bytes *body)
{
    struct fake_exchange *f = CONTAINER_OF(x, struct fake_exchange, door);
    CHECK_EQ(f->status, 0); /* once */
    CHECK_STR(type, f->text ? "text/plain; charset=utf-8" : "application/json");
    f->status = status;
    buf_add(&f->body, body->bytes);
}

static const struct inbound_ops fake_exchange_ops = { .set_header = fake_exchange_header,
                                                      .reply = fake_exchange_reply };

static struct str fake_exchange_get(const struct inbound_exchange *x, const char *name)
{
    const struct fake_exchange *f =
        CONTAINER_OF((struct inbound_exchange *)(uintptr_t)x, struct fake_exchange, door);
    struct str wanted = str_from(name);
    if (str_eq(wanted, STR("Authorization"))) {
        return f->authorization;
    }
    if (str_eq(wanted, STR(REQUEST_AUTH_TOKEN_HEADER))) {
        return f->token;
    }
    CHECK_STR(name, LEADER_PROXY_HEADER);
    return f->relayed;
}

struct leader_proxy_fixture {
    struct virtual_loop *time;
    struct loop *loop;
    struct apiserver *server;
    struct api *api;
    struct inbox inbox;
    struct outbound *outbound;
    struct leader_proxy *proxy;
    struct inbox_answer answer;
};

static void leader_proxy_fixture_answer(void *ctx, const struct inbox_message *message UNUSED,
                                        struct inbox_answer *answer)
{
    struct leader_proxy_fixture *s = ctx;
    *answer = s->answer;
}

static void leader_proxy_fixture_start(struct leader_proxy_fixture *s, bool auth)
{
    *s = (struct leader_proxy_fixture){ .time = virtual_loop_new(1, SECONDS(1700000000)) };
    s->loop = virtual_loop_view_new(s->time, 0);
    s->server = apiserver_new(s->loop, 1);
    s->api = sim_api_new(s->loop, s->server, NULL);
    inbox_init(&s->inbox);
    s->inbox.script = leader_proxy_fixture_answer;
    s->inbox.ctx = s;
    s->answer = (struct inbox_answer){ .status = 200, .body = STR("[\"the leader's\"]") };
    s->outbound = sim_outbound_new(s->loop, &s->inbox, NULL);
    s->proxy = leader_proxy_new(
        s->loop, &(struct leader_proxy_config){ .api = s->api,
                                                .outbound = s->outbound,
                                                .lease_namespace = STR("kube-system"),
                                                .lease_name = STR("the.lease"),
                                                .port = 9090,
                                                .tls = auth,
                                                .auth = auth });
}

static void leader_proxy_fixture_init(struct leader_proxy_fixture *s)
{
    leader_proxy_fixture_start(s, /* auth= */ false);
}

static void leader_proxy_fixture_done(struct leader_proxy_fixture *s)
{
    leader_proxy_free(s->proxy);
    sim_outbound_free(s->outbound);
    inbox_done(&s->inbox);
    sim_api_free(s->api);
    apiserver_free(s->server);
    virtual_loop_view_free(s->loop);
    virtual_loop_free(s->time);
}

static void api_call(struct leader_proxy_fixture *s, const char *method, const char *path,
                     const char *body)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = { .method = str_from(method),
                                         .path = str_from(path),
                                         .content_type = STR("application/merge-patch+json"),
                                         .body = str_from(body) };
    if (str_eq(request.method, STR("POST"))) {
        request.content_type = STR("application/json");
    }
    apiserver_handle(s->server, &request, &a, &reply);
    CHECK(reply.status == 200 || reply.status == 201);
}

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
#define PODS "/api/v1/namespaces/kube-system/pods"

static void set_leader(struct leader_proxy_fixture *s, const char *holder)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    api_call(s, "POST", LEASES,
             arena_printf(
                 &a, "{\"metadata\":{\"name\":\"the.lease\"},\"spec\":{\"holderIdentity\":\"%s\"}}",
                 holder)
                 .p);
}

static void add_pod(struct leader_proxy_fixture *s, const char *ip)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    api_call(
        s, "POST", PODS,
        "{\"metadata\":{\"name\":\"ctl-0\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
        "\"i\"}]}}");
    api_call(
        s, "PATCH", PODS "/ctl-0/status",
        arena_printf(&a, "{\"status\":{\"podIP\":\"%s\",\"podIPs\":[{\"ip\":\"%s\"}]}}", ip, ip).p);
}

static void send_request(struct leader_proxy_fixture *s, struct fake_exchange *f)
{
    f->door = (struct inbound_exchange){ .ops = &fake_exchange_ops };
    leader_proxy_start(s->proxy, &f->door,
                       &(struct inbound_request){ .method = STR("GET"),
                                                  .path = STR("/api/v1/explain"),
                                                  .query = STR("node=n1"),
                                                  .header = fake_exchange_get },
                       f->format);
}

static void run_for(struct leader_proxy_fixture *s, usec_t time)
{
    usec_t until = loop_now(s->loop) + time;
    while (virtual_loop_step(s->time, until)) {
    }
}

static void expect(struct leader_proxy_fixture *s, int status, const char *body)
{
    struct fake_exchange f = { 0 };
    send_request(s, &f);
    run_for(s, SECONDS(2));
    CHECK_EQ(f.status, status);
    CHECK_STR(buf_str(&f.body), body);
    buf_done(&f.body);
}

TEST(leader_proxy_answers_with_what_the_leader_says)
{
    CLEANUP(leader_proxy_fixture_done)
    struct leader_proxy_fixture s;
    leader_proxy_fixture_init(&s);
    set_leader(&s, "ctl-0_1a2b");
    add_pod(&s, "10.1.2.3");
    expect(&s, 200, "[\"the leader's\"]");
    const struct inbox_message *m = inbox_at(&s.inbox, 0);
    CHECK_STR(m->request.url, "http://10.1.2.3:9090/api/v1/explain?node=n1");
    CHECK_STR(m->request.method, "GET");
    CHECK_STR(inbox_header(m, LEADER_PROXY_HEADER), "1");
    s.answer = (struct inbox_answer){ .status = 404, .body = STR("{\"error\":\"no such\"}") };
    expect(&s, 404, "{\"error\":\"no such\"}");
    CHECK_EQ(s.inbox.arrived, 2);
}

/* A report is text where text was asked for, what is wrong is JSON in any case. */
TEST(leader_proxy_answers_text_as_text)
{
    CLEANUP(leader_proxy_fixture_done)
    struct leader_proxy_fixture s;
    leader_proxy_fixture_init(&s);
    set_leader(&s, "ctl-0_1a2b");
    add_pod(&s, "10.1.2.3");
    for (int status = 200; status <= 404; status += 204) {
        struct fake_exchange f = { .format = QUERY_FORMAT_TEXT, .text = status == 200 };
        s.answer = (struct inbox_answer){ .status = status, .body = STR("node n1") };
        send_request(&s, &f);
        run_for(&s, SECONDS(2));
        CHECK_EQ(f.status, status);
        CHECK_STR(buf_str(&f.body), "node n1");
        buf_done(&f.body);
    }
}

TEST(leader_proxy_knows_addresses_of_six_words_and_of_the_host)
{
    CLEANUP(leader_proxy_fixture_done)
    struct leader_proxy_fixture s;
    leader_proxy_fixture_init(&s);
    set_leader(&s, "ctl-0_1a2b");
    api_call(&s, "POST", "/api/v1/nodes", "{\"metadata\":{\"name\":\"ctl-0\"}}");
    expect(&s, 502, "{\"error\":\"the leader's node 'ctl-0' has no address\"}");
    api_call(&s, "PATCH", "/api/v1/nodes/ctl-0/status",
             "{\"status\":{\"addresses\":[{\"type\":\"Hostname\",\"address\":\"x\"},"
             "{\"type\":\"InternalIP\",\"address\":\"fd00::7\"}]}}");
    expect(&s, 200, "[\"the leader's\"]");
    CHECK_STR(inbox_at(&s.inbox, 0)->request.url, "http://[fd00::7]:9090/api/v1/explain?node=n1");
}

TEST(leader_proxy_says_when_nobody_leads)
{
    CLEANUP(leader_proxy_fixture_done)
    struct leader_proxy_fixture s;
    leader_proxy_fixture_init(&s);
    expect(&s, 503, "{\"error\":\"no maintenance-controller is leading\"}");
    set_leader(&s, "");
    expect(&s, 503, "{\"error\":\"no maintenance-controller is leading\"}");
    api_call(&s, "PATCH", LEASES "/the.lease", "{\"spec\":{\"holderIdentity\":\"away_1\"}}");
    expect(&s, 502,
           "{\"error\":\"the leader is 'away', and neither a pod nor a node has that name\"}");
    CHECK_EQ(s.inbox.arrived, 0);
}

TEST(leader_proxy_never_relays_twice)
{
    CLEANUP(leader_proxy_fixture_done)
    struct leader_proxy_fixture s;
    leader_proxy_fixture_init(&s);
    set_leader(&s, "ctl-0_1a2b");
    add_pod(&s, "10.1.2.3");
    struct fake_exchange f = { .relayed = STR("1") };
    send_request(&s, &f);
    CHECK_EQ(f.status, 503);
    CHECK_STR(buf_str(&f.body), "{\"error\":\"no maintenance-controller is leading\"}");
    buf_done(&f.body);
}

TEST(leader_proxy_gives_up_after_a_second_and_forgets_the_address)
{
    CLEANUP(leader_proxy_fixture_done)
    struct leader_proxy_fixture s;
    leader_proxy_fixture_init(&s);
    set_leader(&s, "ctl-0_1a2b");
    add_pod(&s, "10.1.2.3");
    expect(&s, 200, "[\"the leader's\"]");
    s.answer.status = 0; /* silence */
    struct fake_exchange f = { 0 };
    send_request(&s, &f);
    run_for(&s, LEADER_PROXY_TIMEOUT);
    CHECK_EQ(f.status, 502);
    CHECK(str_contains(buf_str(&f.body), STR("{\"error\":\"the leader 'ctl-0' ")));
    buf_done(&f.body);
    s.answer = (struct inbox_answer){ .failure = ERR_IO };
    struct fake_exchange broken = { 0 };
    send_request(&s, &broken);
    run_for(&s, LEADER_PROXY_TIMEOUT);
    CHECK_EQ(broken.status, 502);
    CHECK(str_contains(buf_str(&broken.body), STR("cannot be reached")));
    buf_done(&broken.body);
    /* It has moved, as pods of a StatefulSet do. */
    api_call(&s, "PATCH", PODS "/ctl-0/status",
             "{\"status\":{\"podIP\":\"10.1.2.9\",\"podIPs\":[{\"ip\":\"10.1.2.9\"}]}}");
    s.answer = (struct inbox_answer){ .status = 200, .body = STR("{}") };
    expect(&s, 200, "{}");
    CHECK_STR(inbox_at(&s.inbox, s.inbox.n - 1)->request.url,
              "http://10.1.2.9:9090/api/v1/explain?node=n1");
}

TEST(leader_proxy_forgets_who_goes_away)
{
    CLEANUP(leader_proxy_fixture_done)
    struct leader_proxy_fixture s;
    leader_proxy_fixture_init(&s);
    set_leader(&s, "ctl-0_1a2b");
    add_pod(&s, "10.1.2.3");
    struct fake_exchange gone = { 0 };
    struct fake_exchange kept = { 0 };
    send_request(&s, &gone);
    gone.door.on_close(gone.door.on_close_ctx);
    send_request(&s, &kept);
    leader_proxy_free(STEAL(s.proxy));
    run_for(&s, SECONDS(3));
    CHECK_EQ(gone.status, 0);
    CHECK_EQ(kept.status, 0);
}

TEST(leader_proxy_takes_a_limited_number_at_a_time)
{
    CLEANUP(leader_proxy_fixture_done)
    struct leader_proxy_fixture s;
    leader_proxy_fixture_init(&s);
    static struct fake_exchange many[LEADER_PROXY_CALLS_MAX + 1];
    for (uint32_t i = 0; i <= LEADER_PROXY_CALLS_MAX; i++) {
        send_request(&s, &many[i]);
    }
    CHECK_EQ(many[LEADER_PROXY_CALLS_MAX].status, 503);
    CHECK_STR(buf_str(&many[LEADER_PROXY_CALLS_MAX].body),
              "{\"error\":\"too many requests wait for the leader\"}");
    run_for(&s, SECONDS(2));
    for (uint32_t i = 0; i <= LEADER_PROXY_CALLS_MAX; i++) {
        CHECK_EQ(many[i].status, 503);
        buf_done(&many[i].body);
    }
}

/* The leader sees the token of who asks, and nobody's rights are borrowed. */
TEST(leader_proxy_passes_the_token_on_by_tls_and_nothing_without_one)
{
    CLEANUP(leader_proxy_fixture_done)
    struct leader_proxy_fixture s;
    leader_proxy_fixture_start(&s, /* auth= */ true);
    set_leader(&s, "ctl-0_1a2b");
    add_pod(&s, "10.1.2.3");
    struct fake_exchange cases[] = {
        { .authorization = STR("Bearer abc") },
        { .token = STR("abc") },
        { .status = 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        send_request(&s, &cases[i]);
        run_for(&s, SECONDS(2));
        CHECK_EQ(cases[i].status, i < 2 ? 200 : 503);
        buf_done(&cases[i].body);
    }
    check_case(-1);
    CHECK_EQ(s.inbox.arrived, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct inbox_message *m = inbox_at(&s.inbox, i);
        CHECK_STR(inbox_header(m, "Authorization"), "Bearer abc");
        CHECK_STR(m->request.url, "https://10.1.2.3:9090/api/v1/explain?node=n1");
    }
}
