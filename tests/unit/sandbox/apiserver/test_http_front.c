#include "sandbox/apiserver/http_front.h"

#include "base/buf.h"
#include "cmd/sandbox_kubeconfig.h"
#include "host/pki.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/virtual_loop.h"
#include "tests/check.h"

/* An exchange with a few headers, which remembers what was said. */
struct fake_exchange {
    struct inbound_exchange door;
    struct str accept;
    struct str user_agent;
    int status;
    struct buf headers;
    struct buf body;
    bool ended;
    size_t backlog;
};

static struct fake_exchange *fake_exchange_of(const struct inbound_exchange *x)
{
    return CONTAINER_OF((struct inbound_exchange *)(uintptr_t)x, struct fake_exchange, door);
}

static void fake_exchange_header(struct inbound_exchange *x, const char *name, struct str value)
{
    buf_printf(&fake_exchange_of(x)->headers, "%s: " STR_FMT "\n", name, STR_ARG(value));
}

static void fake_exchange_reply(struct inbound_exchange *x, int status, struct str type UNUSED,
                                struct shared_bytes *body)
{
    fake_exchange_of(x)->status = status;
    buf_add(&fake_exchange_of(x)->body, body->bytes);
    fake_exchange_of(x)->ended = true;
}

static void fake_exchange_start(struct inbound_exchange *x, int status, struct str type UNUSED)
{
    fake_exchange_of(x)->status = status;
}

static void fake_exchange_chunk(struct inbound_exchange *x, struct shared_bytes *bytes)
{
    buf_add(&fake_exchange_of(x)->body, bytes->bytes);
}

static void fake_exchange_end(struct inbound_exchange *x)
{
    fake_exchange_of(x)->ended = true;
}

static size_t fake_exchange_backlog(const struct inbound_exchange *x)
{
    return fake_exchange_of(x)->backlog;
}

static struct str fake_exchange_get(const struct inbound_exchange *x, const char *name)
{
    struct str key = str_from(name);
    return str_eq_fold(key, STR("accept"))       ? fake_exchange_of(x)->accept
           : str_eq_fold(key, STR("user-agent")) ? fake_exchange_of(x)->user_agent
                                                 : STR_NONE;
}

static const struct inbound_ops fake_exchange_ops = {
    .set_header = fake_exchange_header,
    .reply = fake_exchange_reply,
    .start = fake_exchange_start,
    .chunk = fake_exchange_chunk,
    .end = fake_exchange_end,
    .backlog = fake_exchange_backlog,
};

static void fake_exchange_done(struct fake_exchange *f)
{
    buf_done(&f->headers);
    buf_done(&f->body);
}

struct http_front_fixture {
    struct virtual_loop *time;
    struct loop *loop;
    struct apiserver *server;
    struct http_front front;
};

static void http_front_fixture_init(struct http_front_fixture *b)
{
    b->time = virtual_loop_new(1, SECONDS(1700000000));
    b->loop = virtual_loop_view_new(b->time, 0);
    b->server = apiserver_new(b->loop, 1);
    http_front_init(&b->front, b->loop, b->server);
}

static void http_front_fixture_done(struct http_front_fixture *b)
{
    http_front_done(&b->front);
    apiserver_free(b->server);
    virtual_loop_view_free(b->loop);
    virtual_loop_free(b->time);
}

static void send_request(struct http_front_fixture *b, struct fake_exchange *f, const char *method,
                         const char *target, struct str body)
{
    f->door = (struct inbound_exchange){ .ops = &fake_exchange_ops };
    struct inbound_request req = { .method = str_from(method),
                                   .header = fake_exchange_get,
                                   .body = body };
    (void)str_cut(str_from(target), STR("?"), &req.path, &req.query);
    http_front_handle(&b->front, &f->door, &req);
}

static void run_for(struct http_front_fixture *b, usec_t time)
{
    (void)virtual_loop_run(b->time, virtual_loop_now(b->time) + time);
}

#define NODE(name) STR("{\"metadata\":{\"name\":\"" name "\"}}")

TEST(http_front_answers_and_streams_a_watch)
{
    CLEANUP(http_front_fixture_done)
    struct http_front_fixture b;
    http_front_fixture_init(&b);
    CLEANUP(fake_exchange_done)
    struct fake_exchange post = { .user_agent = STR("tool/1.0 (x)") };
    send_request(&b, &post, "POST", "/api/v1/nodes", NODE("a"));
    CHECK_EQ(post.status, 201);
    CHECK(str_contains(buf_str(&post.body), STR("\"name\":\"a\"")));
    CHECK(str_contains(buf_str(&post.headers), STR("Cache-Control: no-cache, private\n")));

    CLEANUP(fake_exchange_done)
    struct fake_exchange watch = { 0 };
    send_request(&b, &watch, "GET", "/api/v1/nodes?watch=1&timeoutSeconds=60", STR_NONE);
    CHECK_EQ(watch.status, 200);
    run_for(&b, SECONDS(1));
    CHECK(str_contains(buf_str(&watch.body), STR("\"type\":\"ADDED\"")));
    CHECK(str_ends(buf_str(&watch.body), STR("}\n")));
    buf_reset(&watch.body);
    CLEANUP(fake_exchange_done)
    struct fake_exchange more = { 0 };
    send_request(&b, &more, "POST", "/api/v1/nodes", NODE("b"));
    run_for(&b, SECONDS(1));
    CHECK(str_contains(buf_str(&watch.body), STR("\"name\":\"b\"")));
    CHECK(!watch.ended);
    run_for(&b, SECONDS(120));
    CHECK(watch.ended); /* by its timeout */
    CHECK_EQ(b.front.requests, 3);
}

TEST(http_front_holds_a_watch_back_until_its_reader_has_read)
{
    CLEANUP(http_front_fixture_done)
    struct http_front_fixture b;
    http_front_fixture_init(&b);
    CLEANUP(fake_exchange_done)
    struct fake_exchange watch = { 0 };
    send_request(&b, &watch, "GET", "/api/v1/nodes?watch=1", STR_NONE);
    run_for(&b, SECONDS(1));
    buf_reset(&watch.body);
    watch.backlog = HTTP_FRONT_BACKLOG_MAX;
    CLEANUP(fake_exchange_done)
    struct fake_exchange post = { 0 };
    send_request(&b, &post, "POST", "/api/v1/nodes", NODE("a"));
    run_for(&b, SECONDS(1));
    CHECK_EQ(watch.body.n, 0);
    watch.backlog = 0;
    watch.door.on_drain(watch.door.on_drain_ctx);
    CHECK(str_contains(buf_str(&watch.body), STR("\"name\":\"a\"")));
    watch.door.on_close(
        watch.door.on_close_ctx); /* the peer leaves; http_front_fixture_done sees it gone */
}

TEST(http_front_without_a_certificate_is_anonymous_where_they_are_asked_for)
{
    CLEANUP(http_front_fixture_done)
    struct http_front_fixture b;
    http_front_fixture_init(&b);
    b.front.certificates = true;
    CLEANUP(fake_exchange_done)
    struct fake_exchange x = { 0 };
    send_request(&b, &x, "GET", "/api/v1/nodes", STR_NONE);
    CHECK(x.status == 401 || x.status == 403);
}

TEST(kubeconfig_file_text_names_the_server_and_whom_to_trust)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct err err = { 0 };
    struct pki pki;
    CHECK_EQ(pki_make(SECONDS(1700000000), &a, &pki, &err), 0);
    struct str plain = kubeconfig_file_text(STR("http://127.0.0.1:1"), NULL, &a);
    CHECK(str_contains(plain, STR("    server: http://127.0.0.1:1\n")));
    CHECK(!str_contains(plain, STR("-data:")));
    struct str tls = kubeconfig_file_text(STR("https://127.0.0.1:1"), &pki, &a);
    CHECK(str_contains(tls, STR("    certificate-authority-data: LS0tLS1CRUdJTi")));
    CHECK(str_contains(tls, STR("    client-certificate-data: LS0tLS1CRUdJTi")));
    CHECK(str_contains(tls, STR("    client-key-data: LS0tLS1CRUdJTi")));
}
