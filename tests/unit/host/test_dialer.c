#include "host/dialer.h"

#include "base/base64.h"
#include "base/buf.h"
#include "host/transport.h"
#include "tests/check.h"
#include "tests/lib/certs.h"
#include "tests/lib/byte_server.h"

static const char *const no_env[] = { NULL };

/* Two clusters with an authority each, and a dialer that reaches both. */
struct story {
    struct loop *loop;
    struct arena memory;
    struct dialer *dialer;
    struct cert ca[2];
    struct cert server[2];
    struct cert client;
    SSL_CTX *tls[2];
    struct byte_server *byte_server[2];
    struct err err;
    struct api *api;
    struct buf asked;
    struct buf seen;
    char last[512];
    uint32_t replies;
    bool over;
    bool hang_up_at_reply;
    struct byte_server_conn *held[8];
    uint32_t held_n;
};

static void answer(void *ctx, struct byte_server_conn *conn,
                   const struct byte_server_request *request)
{
    struct story *s = ctx;
    buf_printf(&s->asked, STR_FMT " " STR_FMT " [" STR_FMT "];", STR_ARG(request->method),
               STR_ARG(request->path),
               STR_ARG(byte_server_request_header(request, STR("Authorization"))));
    if (str_starts(request->path, STR("/hold"))) {
        s->held[s->held_n++ % ARRAY_LEN(s->held)] = conn;
    } else if (str_starts(request->path, STR("/watch"))) {
        s->held[s->held_n++ % ARRAY_LEN(s->held)] = conn;
        byte_server_stream(conn);
    } else if (str_eq(request->method, STR("CONNECT"))) {
        byte_server_reply(conn, 403, STR_NONE, STR("no"));
    } else {
        byte_server_reply(conn, 200, STR_NONE, STR("x"));
    }
}

static void story_begin(struct story *s, const struct host_dialer_config *config, bool clients)
{
    *s = (struct story){ .loop = host_loop_new() };
    struct host_dialer_config own = *config;
    own.env = own.env != NULL ? own.env : no_env;
    own.allow_local = true; /* all servers of the tests are at loopback */
    s->dialer = host_dialer_new(s->loop, &own);
    const struct cert_spec authority = { .name = "ca", .authority = true };
    const struct cert_spec names[] = { { .name = "a", .san = "IP:127.0.0.1" },
                                       { .name = "b", .san = "DNS:api.example" } };
    for (size_t i = 0; i < 2; i++) {
        s->ca[i] = cert_make(&s->memory, &authority, NULL);
        s->server[i] = cert_make(&s->memory, &names[i], &s->ca[i]);
        s->tls[i] = cert_server_context(&s->server[i], clients ? &s->ca[0] : NULL);
        s->byte_server[i] = byte_server_new(s->loop, s->tls[i], answer, s);
    }
    s->client = cert_make(&s->memory, &(struct cert_spec){ .name = "client" }, &s->ca[0]);
}

static void story_end(struct story *s)
{
    dialer_hang_up(s->dialer, s->api);
    host_dialer_free(s->dialer);
    for (size_t i = 0; i < 2; i++) {
        byte_server_free(s->byte_server[i]);
        SSL_CTX_free(s->tls[i]);
        cert_done(&s->ca[i]);
        cert_done(&s->server[i]);
    }
    cert_done(&s->client);
    host_loop_free(s->loop);
    arena_done(&s->memory);
    buf_done(&s->asked);
    buf_done(&s->seen);
}

/* A kubeconfig with these members of the cluster and of the user, as JSON without braces. */
static struct str config(struct story *s, struct str cluster, struct str user)
{
    return arena_printf(&s->memory,
                        "{\"current-context\":\"x\",\"contexts\":[{\"name\":\"x\",\"context\":"
                        "{\"cluster\":\"k\",\"user\":\"u\"}}],\"clusters\":[{\"name\":\"k\","
                        "\"cluster\":{" STR_FMT "}}],\"users\":[{\"name\":\"u\",\"user\":{" STR_FMT
                        "}}]}",
                        STR_ARG(cluster), STR_ARG(user));
}

static struct str server_of(struct story *s, size_t i)
{
    return arena_printf(&s->memory, "\"server\":\"https://127.0.0.1:%u\"",
                        byte_server_port(s->byte_server[i]));
}

/* The server of one cluster with the authority of one. */
static struct str cluster_of(struct story *s, size_t server, size_t authority)
{
    return arena_printf(&s->memory, STR_FMT ",\"certificate-authority-data\":\"" STR_FMT "\"%s",
                        STR_ARG(server_of(s, server)),
                        STR_ARG(base64_encode(&s->memory, s->ca[authority].cert_pem)),
                        server == 1 ? ",\"tls-server-name\":\"api.example\"" : "");
}

static struct str pair_of(struct story *s)
{
    return arena_printf(&s->memory,
                        "\"client-certificate-data\":\"" STR_FMT "\",\"client-key-data\":\"" STR_FMT
                        "\"",
                        STR_ARG(base64_encode(&s->memory, s->client.cert_pem)),
                        STR_ARG(base64_encode(&s->memory, s->client.key_pem)));
}

static struct api *dial_with(struct story *s, struct str text, struct str token)
{
    char *copy = arena_alloc(&s->memory, text.n + 1);
    memcpy(copy, text.p, text.n);
    s->err = (struct err){ 0 };
    struct api *api = dialer_open(s->dialer,
                                  &(struct dialer_spec){ .name = STR("ns/c1"),
                                                         .kubeconfig = { .p = copy, .n = text.n },
                                                         .token = token },
                                  &s->err);
    memset(copy, 'x', text.n); /* the text is the caller's again */
    return api;
}

static void open_with(struct story *s, struct str cluster, struct str user)
{
    dialer_hang_up(s->dialer, s->api);
    s->api = dial_with(s, config(s, cluster, user), STR_NONE);
    CHECK_STR(s->err.msg, "");
    CHECK(s->api != NULL);
}

static void on_reply(void *ctx, const struct api_reply *reply)
{
    struct story *s = ctx;
    s->replies++;
    s->last[0] = '\0';
    if (reply->err != NULL) {
        buf_printf(&s->seen, "!%s;", err_code_name(reply->err->code));
        memcpy(s->last, reply->err->msg, sizeof(s->last));
    } else {
        buf_printf(&s->seen, "%d;", reply->status);
    }
    if (s->hang_up_at_reply) {
        dialer_hang_up(s->dialer, STEAL(s->api));
    }
}

static void on_event(void *ctx, const struct api_watch_event *event)
{
    struct story *s = ctx;
    if (event->kind == API_WATCH_OPEN) {
        buf_add(&s->seen, STR("open;"));
    } else if (event->kind == API_WATCH_LINE) {
        buf_printf(&s->seen, STR_FMT ";", STR_ARG(str_sub(event->line, 0, 40)));
    } else {
        s->over = true;
        buf_printf(&s->seen, "end %s;", event->err != NULL ? err_code_name(event->err->code) : "");
    }
}

static void get(struct story *s, const char *path)
{
    (void)api_send(s->api, &(struct api_request){ .path = str_from(path) }, on_reply, s);
}

static void ask(struct story *s, const char *path)
{
    uint32_t before = s->replies;
    get(s, path);
    RUN_UNTIL(s->loop, s->replies == before + 1);
}

/* What is refused, and what is said: a stranger's text says nothing about this machine. */
static const struct {
    const char *cluster;
    const char *user;
    const char *says;
} refused[] = {
    { "'server':'https://a','certificate-authority':'/etc/passwd'", "",
      "cluster 'k': certificate-authority: names a file of the machine that reads it, want "
      "certificate-authority-data" },
    { "'server':'https://a','certificate-authority':'f','certificate-authority-data':'YQ=='", "",
      "cluster 'k': certificate-authority: names a file of the machine that reads it, want "
      "certificate-authority-data" },
    { "'server':'https://a'", "'client-certificate':'f'",
      "user 'u': client-certificate: names a file of the machine that reads it, want "
      "client-certificate-data" },
    { "'server':'https://a'", "'client-key':'f'",
      "user 'u': client-key: names a file of the machine that reads it, want client-key-data" },
    { "'server':'https://a'", "'token':'t','tokenFile':'/var/run/token'",
      "user 'u': tokenFile: names a file of the machine that reads it, want token" },
    { "'server':'https://a'", "'token':'t','exec':{'command':'sh','apiVersion':'v1'}",
      "user 'u': exec: names a program of the machine that reads it, want token or "
      "client-certificate-data" },
    { "'server':'https://a'", "'auth-provider':{'name':'gcp'}",
      "user 'u': auth-provider: names a plugin of the machine that reads it, want token or "
      "client-certificate-data" },
    { "'server':'https://a','insecure-skip-tls-verify':true", "'token':'t'",
      "cluster 'k': insecure-skip-tls-verify: is not allowed here, want "
      "certificate-authority-data" },
    { "'server':'http://a'", "'token':'t'",
      "cluster 'k': server 'http://a': want https://HOST[:PORT][/PATH]" },
    { "'server':'a:6443'", "'token':'t'",
      "cluster 'k': server 'a:6443': want https://HOST[:PORT][/PATH]" },
    { "'server':'file:///etc/passwd'", "'token':'t'",
      "cluster 'k': server 'file:///etc/passwd': want https://HOST[:PORT][/PATH]" },
    { "'server':'https://'", "", "server 'https://': want https://HOST[:PORT][/PATH]" },
    { "'server':'https://a','proxy-url':'http://p:3128'", "",
      "cluster 'k': proxy-url: is not allowed here" },
    { "'server':'https://127.0.0.1:6443'", "",
      "cluster 'k': server: host '127.0.0.1' is a loopback or link-local address, which is not "
      "allowed here" },
    { "'server':'https://u@[::ffff:127.0.0.1]:6443/x'", "",
      "cluster 'k': server: host '::ffff:127.0.0.1' is a loopback or link-local address, which is "
      "not allowed here" },
    { "'server':'https://169.254.169.254'", "",
      "cluster 'k': server: host '169.254.169.254' is a loopback or link-local address, which is "
      "not allowed here" },
    { "'server':'https://localhost'", "",
      "cluster 'k': server: host 'localhost' is a loopback or link-local address, which is not "
      "allowed here" },
    { "'server': &a 'https://a'", "",
      "found anchor 'a', want a text without anchors, aliases and merges" },
    { "'server':'https://a'", "'token':'a\\r\\nX-Evil: b'",
      "user 'u': token: want one line of text" },
    { "'server':'https://a','certificate-authority-data':'YQ=='", "",
      "certificate-authority: holds no certificate in PEM form" },
    { "'server':'https://a'", "'client-certificate-data':'YQ=='",
      "a client certificate needs its key, and a key its certificate: only one is given" },
    { "'server':'https://a'", "'client-certificate-data':'YQ==','client-key-data':'YQ=='",
      "credentials: the client certificate is not PEM" },
};

static struct str quoted(struct story *s, const char *text)
{
    char *copy = (char *)(uintptr_t)arena_str(&s->memory, str_from(text)).p;
    for (size_t i = 0; copy[i] != '\0'; i++) {
        copy[i] = copy[i] == '\'' ? '"' : copy[i];
    }
    return str_from(copy);
}

static void redial(struct story *s, const struct host_dialer_config *config)
{
    host_dialer_free(s->dialer);
    s->dialer = host_dialer_new(s->loop, config);
}

TEST(dial_refuses_what_a_stranger_may_not_say)
{
    struct story s;
    story_begin(&s, &(struct host_dialer_config){ 0 }, false);
    redial(&s, &(struct host_dialer_config){ .env = no_env });
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        check_case((int64_t)i);
        struct str text = config(&s, quoted(&s, refused[i].cluster), quoted(&s, refused[i].user));
        CHECK(dial_with(&s, text, STR_NONE) == NULL);
        CHECK(str_starts(str_from(s.err.msg), STR("kubeconfig 'ns/c1': ")));
        CHECK(str_ends(str_from(s.err.msg), str_from(refused[i].says)));
    }
    check_case(-1);
    static char big[DIALER_KUBECONFIG_BYTES_MAX + 1];
    memset(big, ' ', sizeof(big));
    CHECK(dial_with(&s, (struct str){ .p = big, .n = sizeof(big) }, STR_NONE) == NULL);
    CHECK_STR(s.err.msg, "kubeconfig 'ns/c1': has 131073 bytes, at most 131072");
    CHECK(dial_with(&s, STR("{"), STR_NONE) == NULL);
    redial(&s, &(struct host_dialer_config){ .env = no_env, .allow_local = true });
    CHECK(dial_with(&s, config(&s, cluster_of(&s, 0, 0), STR_NONE), STR("a\nb")) == NULL);
    CHECK_STR(s.err.msg, "token: want one line of text");
    story_end(&s);
}

TEST(dial_refuses_some_proxies_also_where_they_are_allowed)
{
    static const struct {
        const char *url;
        const char *says;
    } rows[] = {
        { "https://p:3128", "the proxy speaks TLS, want http:// or socks5://" },
        { "socks5://localhost/run/docker.sock",
          "cluster 'k': proxy-url: found 'socks5://localhost/run/docker.sock', want "
          "http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT, without a path" },
        { "http://127.0.0.1:3128", "cluster 'k': proxy-url: host '127.0.0.1' is a loopback or "
                                   "link-local address, which is not allowed here" },
    };
    struct story s;
    story_begin(&s, &(struct host_dialer_config){ 0 }, false);
    redial(&s, &(struct host_dialer_config){ .env = no_env, .allow_proxy = true });
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_case((int64_t)i);
        struct str cluster =
            arena_printf(&s.memory, "\"server\":\"https://a\",\"proxy-url\":\"%s\"", rows[i].url);
        CHECK(dial_with(&s, config(&s, cluster, STR_NONE), STR_NONE) == NULL);
        CHECK(str_ends(str_from(s.err.msg), str_from(rows[i].says)));
    }
    check_case(-1);
    story_end(&s);
}

/* A proxy of the environment is the operator's own, and often a sidecar. */
TEST(dial_goes_through_a_proxy_of_the_environment_at_loopback)
{
    struct story s;
    story_begin(&s, &(struct host_dialer_config){ 0 }, false);
    struct byte_server *proxy = byte_server_new(s.loop, NULL, answer, &s);
    const char *env[] = {
        arena_printf(&s.memory, "HTTPS_PROXY=http://127.0.0.1:%u", byte_server_port(proxy)).p, NULL
    };
    redial(&s, &(struct host_dialer_config){ .env = env });
    open_with(&s, STR("\"server\":\"https://server.invalid:6443\""), STR("\"token\":\"t\""));
    ask(&s, "/");
    CHECK_STR(buf_str(&s.asked), "CONNECT server.invalid:6443 [];");
    byte_server_free(proxy);
    story_end(&s);
}

TEST(dial_allows_what_does_not_prove_itself_only_when_told)
{
    struct story s;
    story_begin(&s, &(struct host_dialer_config){ .allow_insecure = true }, false);
    open_with(&s,
              arena_concat(&s.memory, server_of(&s, 1), STR(",\"insecure-skip-tls-verify\":true")),
              STR("\"token\":\"t\""));
    ask(&s, "/");
    CHECK_STR(buf_str(&s.seen), "200;");
    open_with(&s, STR("\"server\":\"http://127.0.0.1:1\""), STR_NONE);
    story_end(&s);
}

TEST(dial_trusts_each_cluster_by_its_own_authority)
{
    struct story s;
    story_begin(&s, &(struct host_dialer_config){ 0 }, false);
    static const struct {
        size_t server;
        size_t authority;
        const char *seen;
    } rows[] = {
        { 0, 0, "200;" },     { 0, 1, "!denied;" }, { 1, 1, "200;" },
        { 1, 0, "!denied;" }, { 0, 0, "200;" },     { 1, 0, "!denied;" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_case((int64_t)i);
        buf_reset(&s.seen);
        open_with(&s, cluster_of(&s, rows[i].server, rows[i].authority), STR("\"token\":\"t\""));
        ask(&s, "/");
        CHECK_STR(buf_str(&s.seen), rows[i].seen);
        CHECK(rows[i].seen[0] == '2' || str_contains(str_from(s.last), STR("unknown authority")));
    }
    check_case(-1);
    open_with(&s, server_of(&s, 0), STR("\"token\":\"t\"")); /* the system's do not know it */
    buf_reset(&s.seen);
    ask(&s, "/");
    CHECK_STR(buf_str(&s.seen), "!denied;");
    story_end(&s);
}

/* As Go has it: who is trusted need not be a root, and among several one is enough. */
TEST(dial_trusts_an_authority_that_is_no_root)
{
    struct story s;
    story_begin(&s, &(struct host_dialer_config){ 0 }, false);
    const struct cert_spec between = { .name = "between", .authority = true };
    const struct cert_spec leaf = { .name = "c", .san = "IP:127.0.0.1" };
    struct cert authority = cert_make(&s.memory, &between, &s.ca[0]);
    struct cert server = cert_make(&s.memory, &leaf, &authority);
    SSL_CTX *tls = cert_server_context(&server, NULL);
    struct byte_server *byte_server = byte_server_new(s.loop, tls, answer, &s);
    struct str bundle = arena_concat(&s.memory, s.ca[1].cert_pem, authority.cert_pem);
    open_with(&s,
              arena_printf(&s.memory,
                           "\"server\":\"https://127.0.0.1:%u\",\"certificate-authority-data\":"
                           "\"" STR_FMT "\"",
                           byte_server_port(byte_server),
                           STR_ARG(base64_encode(&s.memory, bundle))),
              STR("\"token\":\"t\""));
    ask(&s, "/");
    CHECK_STR(buf_str(&s.seen), "200;");
    byte_server_free(byte_server);
    SSL_CTX_free(tls);
    cert_done(&server);
    cert_done(&authority);
    story_end(&s);
}

TEST(dial_sends_who_it_is)
{
    struct story s;
    story_begin(&s, &(struct host_dialer_config){ 0 }, false);
    static const struct {
        const char *user;
        const char *header;
    } rows[] = {
        { "\"token\":\"t1\"", "Bearer t1" },
        { "\"username\":\"Aladdin\",\"password\":\"open sesame\"",
          "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==" },
        { "", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf_reset(&s.asked);
        open_with(&s, cluster_of(&s, 0, 0), str_from(rows[i].user));
        ask(&s, "/a");
        ask(&s, "/b");
        CHECK_STR(buf_str(&s.asked), arena_printf(&s.memory, "GET /a [%s];GET /b [%s];",
                                                  rows[i].header, rows[i].header));
    }
    story_end(&s);
}

TEST(dial_shows_its_certificate_and_drops_it_for_a_token)
{
    struct story s;
    story_begin(&s, &(struct host_dialer_config){ 0 }, true);
    open_with(&s, cluster_of(&s, 0, 0), pair_of(&s));
    ask(&s, "/");
    ask(&s, "/");
    CHECK_STR(buf_str(&s.seen), "200;200;");
    open_with(&s, cluster_of(&s, 0, 0), STR("\"token\":\"t\"")); /* and nobody else shows it */
    ask(&s, "/");
    CHECK(str_contains(str_from(s.last), STR("certificate required")));
    dialer_hang_up(s.dialer, s.api);
    struct str user = arena_concat(&s.memory, pair_of(&s), STR(",\"as\":\"jane\""));
    s.api = dial_with(&s, config(&s, cluster_of(&s, 0, 0), user), STR("t2"));
    CHECK(s.api != NULL);
    ask(&s, "/");
    CHECK(str_contains(str_from(s.last), STR("certificate required")));
    story_end(&s);
}

TEST(dial_takes_a_token_instead_of_any_user)
{
    struct story s;
    story_begin(&s, &(struct host_dialer_config){ 0 }, false);
    static const struct str users[] = {
        STR_INIT("\"token\":\"t1\",\"as\":\"jane\""),
        STR_INIT("\"exec\":{\"command\":\"sh\"}"), /* it is not run: nobody asks the user */
    };
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        buf_reset(&s.asked);
        dialer_hang_up(s.dialer, s.api);
        char token[] = "t2";
        s.api = dial_with(&s, config(&s, cluster_of(&s, 0, 0), users[i]), str_from(token));
        token[1] = 'x';
        CHECK_STR(s.err.msg, "");
        ask(&s, "/");
        CHECK_STR(buf_str(&s.asked), "GET / [Bearer t2];");
    }
    story_end(&s);
}

TEST(dial_goes_through_the_proxy_of_the_text_or_of_the_environment)
{
    for (int i = 0; i < 2; i++) {
        struct story s;
        struct arena a = { 0 };
        story_begin(&s, &(struct host_dialer_config){ 0 }, false);
        struct byte_server *proxy = byte_server_new(s.loop, NULL, answer, &s);
        struct str url = arena_printf(&a, "http://127.0.0.1:%u", byte_server_port(proxy));
        const char *env[] = { arena_concat(&a, STR("HTTPS_PROXY="), url).p, NULL };
        host_dialer_free(s.dialer);
        s.dialer = host_dialer_new(s.loop, &(struct host_dialer_config){
                                               .env = i == 0 ? no_env : env,
                                               .allow_proxy = true,
                                               .allow_local = true,
                                           });
        struct str cluster = STR("\"server\":\"https://server.invalid:6443\"");
        open_with(&s,
                  i == 0 ? arena_printf(&a, STR_FMT ",\"proxy-url\":\"" STR_FMT "\"",
                                        STR_ARG(cluster), STR_ARG(url))
                         : cluster,
                  STR("\"token\":\"t\""));
        ask(&s, "/");
        CHECK_STR(buf_str(&s.asked), "CONNECT server.invalid:6443 [];"); /* and no token */
        CHECK(str_contains(str_from(s.last), STR("403")));
        byte_server_free(proxy);
        story_end(&s);
        arena_done(&a);
    }
}

TEST(dial_keeps_no_connection_but_the_watchs)
{
    struct story s;
    story_begin(&s, &(struct host_dialer_config){ 0 }, false);
    open_with(&s, cluster_of(&s, 0, 0), STR("\"token\":\"t\""));
    struct api_watch_spec spec = { .path = STR("/watch"), .silence_max = SECONDS(60) };
    struct api_watch *watch = api_watch(s.api, &spec, on_event, &s);
    RUN_UNTIL(s.loop, str_eq(buf_str(&s.seen), STR("open;")));
    for (uint32_t i = 0; i < 3; i++) {
        ask(&s, "/");
        RUN_UNTIL(s.loop, byte_server_conns_open(s.byte_server[0]) == 1);
        CHECK_EQ(byte_server_conns_accepted(s.byte_server[0]), i + 2);
    }
    byte_server_chunk(s.held[0], STR("{1}\n{2"));
    RUN_UNTIL(s.loop, str_ends(buf_str(&s.seen), STR("{1};")));
    byte_server_chunk(s.held[0], STR("}\n"));
    RUN_UNTIL(s.loop, str_ends(buf_str(&s.seen), STR("{1};{2};")));
    api_watch_stop(s.api, watch);
    RUN_UNTIL(s.loop, byte_server_conns_open(s.byte_server[0]) == 0);
    story_end(&s);
}

TEST(dial_bounds_what_one_cluster_may_cost)
{
    struct story s;
    story_begin(&s, &(struct host_dialer_config){ 0 }, false);
    open_with(&s, cluster_of(&s, 0, 0), STR("\"token\":\"t\""));
    for (int i = 0; i < 6; i++) {
        get(&s, "/hold");
    }
    RUN_UNTIL(s.loop, s.held_n == DIALER_REQUESTS_MAX);
    CHECK_EQ(transport_stats(s.api).queued, 2);
    struct api_watch_spec spec = { .path = STR("/watch"), .silence_max = SECONDS(60) };
    (void)api_watch(s.api, &spec, on_event, &s);
    RUN_UNTIL(s.loop, s.held_n == DIALER_REQUESTS_MAX + 1);
    struct byte_server_conn *stream = s.held[DIALER_REQUESTS_MAX];
    static char line[64 * 1024];
    memset(line, 'x', sizeof(line));
    for (size_t i = 0; i <= DIALER_LINE_BYTES_MAX / sizeof(line); i++) {
        byte_server_chunk(stream, (struct str){ .p = line, .n = sizeof(line) });
    }
    RUN_UNTIL(s.loop, s.over);
    CHECK_STR(buf_str(&s.seen), "open;end limit;");
    story_end(&s);
}

TEST(dial_hangs_up_with_all_that_is_in_flight)
{
    struct story s;
    story_begin(&s, &(struct host_dialer_config){ 0 }, false);
    struct api *other = dial_with(&s, config(&s, cluster_of(&s, 1, 1), STR_NONE), STR("t"));
    open_with(&s, cluster_of(&s, 0, 0), STR("\"token\":\"t\""));
    struct api_watch_spec spec = { .path = STR("/watch"), .silence_max = SECONDS(60) };
    (void)api_watch(s.api, &spec, on_event, &s);
    (void)api_watch(other, &spec, on_event, &s);
    get(&s, "/hold");
    RUN_UNTIL(s.loop, s.held_n == 3);
    s.hang_up_at_reply = true;
    get(&s, "/");
    get(&s, "/");
    RUN_UNTIL(s.loop, s.api == NULL);
    CHECK_EQ(s.replies, 1);
    RUN_UNTIL(s.loop, byte_server_conns_open(s.byte_server[0]) == 0);
    CHECK_EQ(byte_server_conns_open(s.byte_server[1]), 1); /* the other one does not notice */
    dialer_hang_up(s.dialer, other);
    RUN_UNTIL(s.loop, byte_server_conns_open(s.byte_server[1]) == 0);
    story_end(&s);
}
