#include "host/credentials.h"

#include <unistd.h>

#include "tests/check.h"
#include "tests/lib/certs.h"
#include "tests/lib/byte_server.h"

/* A loop whose clock the test moves; its timers are never run. */
struct hand {
    struct loop door;
    usec_t now;
};

static usec_t hand_now(struct loop *loop)
{
    return CONTAINER_OF(loop, struct hand, door)->now;
}

static void hand_nothing(struct loop_timer *t UNUSED)
{
}

static const struct loop_ops hand_ops = {
    .now = hand_now,
    .wall = hand_now,
    .timer_stop = hand_nothing,
    .timer_done = hand_nothing,
};

struct story {
    struct loop *loop;
    struct cluster_access access;
    struct credentials *credentials;
    struct err err;
    uint32_t ready;
    char path[64];
};

static void on_ready(void *ctx)
{
    struct story *s = ctx;
    s->ready++;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    (void)fputs(text, f);
    (void)fclose(f);
}

/* The header that a request would carry now, or the error. */
static const char *ask(struct story *s)
{
    static char text[600];
    struct credential *c;
    s->err = (struct err){ 0 };
    int r = credentials_take(s->credentials, &c, &s->err);
    if (r == -ERR_BUSY) {
        return "busy";
    }
    if (r < 0) {
        return s->err.msg;
    }
    (void)snprintf(text, sizeof(text), STR_FMT, STR_ARG(c->authorization));
    credential_unref(c);
    return text;
}

/* The server says 401 to what is in use now. */
static void refuse(struct story *s)
{
    struct credential *c;
    CHECK_EQ(credentials_take(s->credentials, &c, &s->err), 0);
    credentials_refused(s->credentials, c);
    credential_unref(c);
}

TEST(credentials_follow_the_token_file)
{
    struct hand hand = { .door.ops = &hand_ops, .now = SECONDS(100) };
    struct story s = { .path = "/tmp/drydock-token-XXXXXX" };
    int fd = mkstemp(s.path);
    CHECK(fd >= 0);
    (void)close(fd);
    write_file(s.path, " first\n");
    s.access.token_file = str_from(s.path);
    s.credentials = credentials_new(&hand.door, &s.access, on_ready, &s);
    CHECK_STR(ask(&s), "Bearer first");
    write_file(s.path, "the second");
    hand.now += CREDENTIALS_FILE_EVERY - 1;
    CHECK_STR(ask(&s), "Bearer first");
    hand.now += 1;
    /* What would break a header is no token; the one that works stays. */
    CHECK_STR(ask(&s), "Bearer first");
    write_file(s.path, "second");
    hand.now += CREDENTIALS_FILE_EVERY;
    CHECK_STR(ask(&s), "Bearer second");
    /* A file that is gone for a moment does no harm… */
    (void)unlink(s.path);
    hand.now += CREDENTIALS_FILE_EVERY;
    CHECK_STR(ask(&s), "Bearer second");
    /* …until the server refuses the token. */
    refuse(&s);
    CHECK(str_ends(str_from(ask(&s)), STR("': No such file or directory")));
    write_file(s.path, "third");
    CHECK_STR(ask(&s), "Bearer third");
    refuse(&s);
    write_file(s.path, "");
    CHECK(str_ends(str_from(ask(&s)), STR("': holds no token")));
    (void)unlink(s.path);
    credentials_free(s.credentials);
}

TEST(credentials_use_the_token_beside_a_file_that_is_not_there)
{
    struct hand hand = { .door.ops = &hand_ops };
    struct story s = { .access = { .token = STR("t"), .token_file = STR("/nonexistent") } };
    s.credentials = credentials_new(&hand.door, &s.access, on_ready, &s);
    CHECK_STR(ask(&s), "Bearer t");
    credentials_free(s.credentials);
}

/* ---- plugins ---- */

static const struct str env[] = { STR_INIT("PATH=/usr/bin:/bin"), STR_INIT("V=1") };

static void plugin_begin(struct story *s, struct str args[2], const char *script)
{
    args[0] = STR("-c");
    args[1] = str_from(script);
    *s = (struct story){ .loop = host_loop_new() };
    s->access.server = STR("https://a:1");
    s->access.exec = (struct access_exec){
        .command = STR("sh"),
        .args = args,
        .args_n = 2,
        .env = env,
        .env_n = ARRAY_LEN(env),
        .api_version = STR("client.authentication.k8s.io/v1"),
        .time_max = SECONDS(60),
    };
    s->credentials = credentials_new(s->loop, &s->access, on_ready, s);
}

static void plugin_end(struct story *s)
{
    credentials_free(s->credentials);
    host_loop_free(s->loop);
}

static const char *ask_patiently(struct story *s)
{
    uint32_t before = s->ready;
    const char *said = ask(s);
    if (str_eq(str_from(said), STR("busy"))) {
        CHECK_STR(ask(s), "busy"); /* one run, however many ask */
        RUN_UNTIL(s->loop, s->ready > before);
        said = ask(s);
    }
    return said;
}

#define ANSWER(status)                                                                             \
    "echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","       \
    "\"status\":" status "}'"

TEST(credentials_run_the_plugin_once_and_keep_its_answer)
{
    struct story s;
    struct str args[2];
    plugin_begin(&s, args, ANSWER("{\"token\":\"from-plugin\"}"));
    CHECK_STR(ask(&s), "busy");
    CHECK_STR(ask_patiently(&s), "Bearer from-plugin");
    CHECK_STR(ask(&s), "Bearer from-plugin");
    CHECK_EQ(s.ready, 1);
    plugin_end(&s);
}

TEST(credentials_tell_the_plugin_about_the_cluster)
{
    struct story s;
    struct str args[2];
    plugin_begin(&s, args,
                 "printf '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
                 "\"ExecCredential\",\"status\":{\"token\":\"%s\"}}' "
                 "\"$(printf %s \"$KUBERNETES_EXEC_INFO\" | tr -d '\\n \"' )\"");
    s.access.exec.provide_cluster_info = true;
    s.access.exec.cluster_config = STR("{\"a\":1}");
    s.access.ca_pem = STR("pem");
    CHECK_STR(ask_patiently(&s),
              "Bearer {kind:ExecCredential,apiVersion:client.authentication.k8s.io/v1,spec:"
              "{cluster:{server:https://a:1,certificate-authority-data:cGVt,config:{a:1}},"
              "interactive:false}}");
    plugin_end(&s);
}

static const struct {
    const char *script;
    const char *says;
} failing[] = {
    { "echo 'no such account' >&2; echo more >&2; exit 7",
      "credential plugin 'sh': it exited with 7: no such account" },
    { "kill -KILL $$", "credential plugin 'sh': signal 9 ended it" },
    { "sleep 1000", "credential plugin 'sh': it did not end within 0 s" },
    { "while :; do echo 0123456789012345678901234567890123456789; done",
      "credential plugin 'sh': it wrote more than 1048576 bytes" },
    { "echo hello", "credential plugin 'sh': its answer is not JSON: line 1, column 1: " },
    { "echo "
      "'{\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"kind\":\"ExecCredential\"}'",
      "credential plugin 'sh': it answered kind 'ExecCredential' of "
      "'client.authentication.k8s.io/v1beta1', want 'ExecCredential' of "
      "'client.authentication.k8s.io/v1'" },
    { ANSWER("{}"), "credential plugin 'sh': it answered neither token nor client certificate" },
    { ANSWER("{\"clientKeyData\":\"k\"}"), "credential plugin 'sh': it answered only one of "
                                           "clientCertificateData and clientKeyData" },
    { ANSWER("{\"token\":\"a b\"}"),
      "credential plugin 'sh': it answered a token that no header can carry" },
    { ANSWER("{\"token\":\"a\",\"expirationTimestamp\":\"soon\"}"),
      "credential plugin 'sh': status.expirationTimestamp: " },
};

TEST(credentials_say_how_a_plugin_failed_and_do_not_hammer_it)
{
    for (size_t i = 0; i < ARRAY_LEN(failing); i++) {
        struct story s;
        struct str args[2];
        plugin_begin(&s, args, failing[i].script);
        if (str_starts(str_from(failing[i].script), STR("sleep"))) {
            s.access.exec.time_max = MSECONDS(200);
        }
        if (!str_starts(str_from(ask_patiently(&s)), str_from(failing[i].says))) {
            check_fail(__FILE__, __LINE__, "case %zu: %s", i, s.err.msg);
        }
        CHECK_EQ(s.err.code, ERR_DENIED);
        CHECK_STR(ask(&s), s.err.msg); /* at once, without another run */
        CHECK_EQ(s.ready, 1);
        plugin_end(&s);
    }
}

TEST(credentials_show_the_hint_when_the_plugin_is_not_there)
{
    struct story s;
    struct str args[2];
    plugin_begin(&s, args, "");
    s.access.exec.command = STR("no-such-plugin");
    s.access.exec.install_hint = STR("get it from a shop");
    CHECK_STR(ask(&s), "credential plugin 'no-such-plugin' (get it from a shop): executable "
                       "'no-such-plugin' not found in PATH");
    plugin_end(&s);
    plugin_begin(&s, args, "");
    s.access.exec.interactive = EXEC_INTERACTIVE_ALWAYS;
    CHECK_STR(ask(&s), "credential plugin 'sh': wants a terminal (interactiveMode Always)");
    plugin_end(&s);
}

TEST(credentials_do_not_use_what_has_expired)
{
    struct story s;
    struct str args[2];
    plugin_begin(&s, args,
                 ANSWER("{\"token\":\"a\",\"expirationTimestamp\":\"2001-01-01T00:00:00Z\"}"));
    CHECK_STR(ask(&s), "busy");
    RUN_UNTIL(s.loop, s.ready == 1);
    /* It has just run: the server has the word about this one, and it is not run again at once. */
    CHECK_STR(ask(&s), "Bearer a");
    CHECK_EQ(s.ready, 1);
    plugin_end(&s);
    plugin_begin(&s, args,
                 ANSWER("{\"token\":\"b\",\"expirationTimestamp\":\"2999-01-01T00:00:00Z\"}"));
    CHECK_STR(ask_patiently(&s), "Bearer b");
    CHECK_STR(ask(&s), "Bearer b");
    plugin_end(&s);
}

TEST(credentials_hand_over_a_client_certificate)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct cert ca = cert_make(&a, &(struct cert_spec){ .name = "c", .authority = true }, NULL);
    struct story s;
    struct str args[2];
    plugin_begin(&s, args,
                 ANSWER("{\"clientCertificateData\":\"'\"$V\"'\",\"clientKeyData\":\"key\"}"));
    CHECK_STR(ask_patiently(&s), "");
    struct credential *c;
    CHECK_EQ(credentials_take(s.credentials, &c, &s.err), 0);
    CHECK_STR(c->cert_pem, "1");
    CHECK_STR(c->key_pem, "key");
    credential_unref(c);
    plugin_end(&s);
    cert_done(&ca);
}

TEST(credentials_may_end_while_a_plugin_runs)
{
    struct story s;
    struct str args[2];
    plugin_begin(&s, args, "sleep 1000");
    CHECK_STR(ask(&s), "busy");
    plugin_end(&s);
}
