/* Mail over the wire, against a server that answers as the test says. */
#include "base/arena.h"
#include "host/outbound.h"
#include "tests/check.h"
#include "tests/lib/mail_server.h"
#include "tests/lib/byte_server.h"

struct story {
    struct loop *loop;
    struct mail_server *mail_server;
    struct outbound *outbound;
    struct arena memory;
    const char *host;
    struct buf seen;
    char last[512];
    uint32_t replies;
};

static void story_begin(struct story *s, const char *host, const struct mail_server_script *script)
{
    *s = (struct story){ .loop = host_loop_new(), .host = host };
    s->mail_server = mail_server_new(s->loop, host, script);
    s->outbound = host_outbound_new(s->loop, &(struct host_outbound_config){ 0 });
}

static void story_end(struct story *s)
{
    host_outbound_free(s->outbound);
    mail_server_free(s->mail_server);
    host_loop_free(s->loop);
    arena_done(&s->memory);
    buf_done(&s->seen);
}

static void on_reply(void *ctx, const struct outbound_reply *reply)
{
    struct story *s = ctx;
    if (reply->err != NULL) {
        buf_printf(&s->seen, "!%s;", err_code_name(reply->err->code));
        memcpy(s->last, reply->err->msg, sizeof(s->last));
    } else {
        buf_printf(&s->seen, "%d " STR_FMT ";", reply->status, STR_ARG(reply->body));
    }
    s->replies++;
}

static const struct str receivers[] = { STR_INIT("c@d"), STR_INIT("e@f") };

static struct outbound_mail mail_to(struct story *s)
{
    return (struct outbound_mail){
        .address = arena_printf(&s->memory, "%s:%u", s->host, mail_server_port(s->mail_server)),
        .from = STR("a@b"),
        .to = receivers,
        .to_n = 2,
        .payload = STR("From: a@b\r\nSubject: s\r\n\r\n.hello\nworld"),
    };
}

static void send_it(struct story *s, const struct outbound_mail *mail)
{
    uint32_t before = s->replies;
    (void)outbound_mail(s->outbound, mail, on_reply, s);
    CHECK_EQ(s->replies, before);
    RUN_UNTIL(s->loop, s->replies == before + 1);
}

#define TRANSACTION(options)                                                                       \
    "MAIL FROM:<a@b>" options "\r\nRCPT TO:<c@d>\r\nRCPT TO:<e@f>\r\nDATA\r\n"                     \
    "From: a@b\r\nSubject: s\r\n\r\n..hello\r\nworld\r\n.\r\nQUIT\r\n"

TEST(outbound_mail_speaks_the_minimal_dialogue)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "127.0.0.1", &(struct mail_server_script){ 0 });
    struct outbound_mail mail = mail_to(&s);
    send_it(&s, &mail);
    CHECK_STR(buf_str(&s.seen), "250 taken;");
    CHECK_STR(mail_server_received(s.mail_server), "EHLO localhost\r\n" TRANSACTION(""));
    RUN_UNTIL(s.loop, mail_server_conns_open(s.mail_server) == 0);
    CHECK_EQ(host_outbound_in_flight(s.outbound), 0);
}

TEST(outbound_mail_falls_back_to_helo_and_uses_what_is_offered)
{
    static const struct {
        struct mail_server_script script;
        const char *heard;
    } cases[] = {
        { { .ehlo = "500 what\r\n" }, "EHLO localhost\r\nHELO localhost\r\n" TRANSACTION("") },
        { { .ehlo = "250-peer\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n" },
          "EHLO localhost\r\n" TRANSACTION(" BODY=8BITMIME SMTPUTF8") },
        { { .ehlo = "250-peer\r\n250-SIZE 1000\r\n250 8bitmime\r\n", .byte_by_byte = true },
          "EHLO localhost\r\n" TRANSACTION(" BODY=8BITMIME") },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(story_end)
        struct story s;
        story_begin(&s, "127.0.0.1", &cases[i].script);
        struct outbound_mail mail = mail_to(&s);
        send_it(&s, &mail);
        CHECK_STR(buf_str(&s.seen), "250 taken;");
        CHECK_STR(mail_server_received(s.mail_server), cases[i].heard);
    }
    check_case(-1);
}

/* AUTH PLAIN is base64 of "id\0me\0secret"; to this machine it may go in clear. */
TEST(outbound_mail_logs_in_with_identity_user_and_password)
{
    static const struct mail_server_script script = { .ehlo =
                                                          "250-peer\r\n250 AUTH PLAIN LOGIN\r\n" };
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "127.0.0.1", &script);
    struct outbound_mail mail = mail_to(&s);
    mail.auth = true;
    mail.identity = STR("id");
    mail.user = STR("me");
    mail.password = STR("secret");
    send_it(&s, &mail);
    CHECK_STR(buf_str(&s.seen), "250 taken;");
    CHECK_STR(mail_server_received(s.mail_server),
              "EHLO localhost\r\nAUTH PLAIN aWQAbWUAc2VjcmV0\r\n" TRANSACTION(""));
}

TEST(outbound_mail_does_not_log_in_unasked)
{
    static const struct mail_server_script script = { .ehlo = "250-peer\r\n250 AUTH PLAIN\r\n" };
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "127.0.0.1", &script);
    struct outbound_mail mail = mail_to(&s);
    mail.user = STR("me");
    mail.password = STR("secret");
    send_it(&s, &mail);
    CHECK_STR(mail_server_received(s.mail_server), "EHLO localhost\r\n" TRANSACTION(""));
}

/* 127.0.0.2 is this machine too, but not one of the names that Go trusts. */
TEST(outbound_mail_sends_no_password_in_clear)
{
    static const struct mail_server_script script = { .ehlo = "250-peer\r\n250 AUTH PLAIN\r\n" };
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "127.0.0.2", &script);
    struct outbound_mail mail = mail_to(&s);
    mail.auth = true;
    mail.user = STR("me");
    mail.password = STR("secret");
    send_it(&s, &mail);
    CHECK_STR(buf_str(&s.seen), "!denied;");
    CHECK(str_contains(str_from(s.last), STR("offers no STARTTLS")));
    CHECK(!str_contains(mail_server_received(s.mail_server), STR("AUTH")));
    CHECK(!str_contains(mail_server_received(s.mail_server), STR("MAIL")));
    mail.auth = false; /* without a password there is nothing to protect */
    send_it(&s, &mail);
    CHECK_STR(buf_str(&s.seen), "!denied;250 taken;");
}

TEST(outbound_mail_fails_where_login_is_wanted_and_not_offered)
{
    static const struct mail_server_script scripts[] = {
        { .ehlo = "250 peer\r\n" },
        { .ehlo = "250-peer\r\n250 AUTH LOGIN CRAM-MD5\r\n" },
    };
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        check_case((int64_t)i);
        CLEANUP(story_end)
        struct story s;
        story_begin(&s, "127.0.0.1", &scripts[i]);
        struct outbound_mail mail = mail_to(&s);
        mail.auth = true;
        mail.user = STR("me");
        mail.password = STR("secret");
        send_it(&s, &mail);
        CHECK_STR(buf_str(&s.seen), "!denied;");
        CHECK(str_contains(str_from(s.last), STR("offers no AUTH PLAIN")));
        CHECK(!str_contains(mail_server_received(s.mail_server), STR("MAIL")));
    }
    check_case(-1);
}

TEST(outbound_mail_hands_out_refusals_in_the_words_of_the_server)
{
    static const struct {
        struct mail_server_script script;
        bool auth;
        const char *seen;
    } cases[] = {
        { { .greeting = "554 go away\r\n" }, false, "554 go away;" },
        { { .ehlo = "550 no\r\n", .helo = "550 not you\r\n" }, false, "550 not you;" },
        { { .ehlo = "250-peer\r\n250 AUTH PLAIN\r\n", .auth = "535 5.7.8 wrong\r\n" },
          true,
          "535 5.7.8 wrong;" },
        { { .mail = "451 later\r\n" }, false, "451 later;" },
        { { .rcpt = "550-5.1.1 nobody\r\n550 here\r\n" }, false, "550 5.1.1 nobody here;" },
        { { .data = "554 no\r\n" }, false, "554 no;" },
        { { .text = "552 too much\r\n" }, false, "552 too much;" },
        { { .text = "552 too much\r\n", .byte_by_byte = true }, false, "552 too much;" },
        /* However it ends, what the server has said counts. */
        { { .text = "552 too much\r\n", .quit = "!" }, false, "552 too much;" },
        { { .quit = "!" }, false, "250 taken;" },
        { { .quit = "500 what\r\n" }, false, "250 taken;" },
        { { .greeting = "!" }, false, "!I/O;" },
        { { .mail = "!" }, false, "!I/O;" },
        { { .text = "!" }, false, "!I/O;" },
        { { .mail = "HTTP/1.1 400 Bad Request\r\n" }, false, "!protocol;" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(story_end)
        struct story s;
        story_begin(&s, "127.0.0.1", &cases[i].script);
        struct outbound_mail mail = mail_to(&s);
        mail.auth = cases[i].auth;
        mail.user = STR("me");
        mail.password = STR("p");
        send_it(&s, &mail);
        CHECK_STR(buf_str(&s.seen), cases[i].seen);
        RUN_UNTIL(s.loop, mail_server_conns_open(s.mail_server) == 0);
    }
    check_case(-1);
}

/* Silence at any point ends by the deadline; behind the verdict it costs a second at most, and
 * never holds up the loop. */
TEST(outbound_mail_waits_for_nobody_for_ever)
{
    static const struct mail_server_script scripts[] = {
        { .greeting = "" }, { .ehlo = "" }, { .mail = "" },
        { .data = "" },     { .text = "" }, { .quit = "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        check_case((int64_t)i);
        CLEANUP(story_end)
        struct story s;
        story_begin(&s, "127.0.0.1", &scripts[i]);
        struct outbound_mail mail = mail_to(&s);
        /* The last one is taken before the silence, and has all the time for that. */
        mail.timeout = scripts[i].quit != NULL ? SECONDS(60) : MSECONDS(150);
        host_loop_stats_reset(s.loop);
        send_it(&s, &mail);
        CHECK_STR(buf_str(&s.seen), scripts[i].quit != NULL ? "250 taken;" : "!timeout;");
        CHECK(host_loop_stats(s.loop).turn_max < SECONDS(1));
        RUN_UNTIL(s.loop, mail_server_conns_open(s.mail_server) == 0);
    }
    check_case(-1);
}

TEST(outbound_mail_leaves_without_a_word_when_it_is_cancelled)
{
    static const struct mail_server_script scripts[] = { { .ehlo = "" },
                                                         { .text = "" },
                                                         { .quit = "" } };
    static const char *const until[] = { "EHLO localhost\r\n", "world\r\n.\r\n", "QUIT\r\n" };
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        check_case((int64_t)i);
        CLEANUP(story_end)
        struct story s;
        story_begin(&s, "127.0.0.1", &scripts[i]);
        struct outbound_mail mail = mail_to(&s);
        struct outbound_call *call = outbound_mail(s.outbound, &mail, on_reply, &s);
        RUN_UNTIL(s.loop, str_ends(mail_server_received(s.mail_server), str_from(until[i])));
        outbound_cancel(s.outbound, call);
        RUN_UNTIL(s.loop, mail_server_conns_open(s.mail_server) == 0);
        CHECK_EQ(s.replies, 0);
    }
    check_case(-1);
}

TEST(outbound_mail_refuses_what_cannot_be_sent)
{
    static const struct str none[] = { STR_INIT("a@b\r\nDATA") };
    static const struct {
        struct str address;
        struct str from;
        const struct str *to;
        uint32_t to_n;
        const char *error;
    } cases[] = {
        { STR_INIT("host"), STR_INIT("a"), receivers, 1,
          "mail server 'host': the address is not host:port" },
        { STR_INIT("host:0"), STR_INIT("a"), receivers, 1,
          "mail server 'host:0': the address is not host:port" },
        { STR_INIT(":25"), STR_INIT("a"), receivers, 1,
          "mail server ':25': the address is not host:port" },
        { STR_INIT("user:secret@host:25"), STR_INIT("a"), receivers, 1,
          "mail server '…': the address is not host:port" },
        { STR_INIT("host:25"), STR_INIT("a\nb"), receivers, 1,
          "mail server 'host:25': found a line break in an address, want none" },
        { STR_INIT("host:25"), STR_INIT("a"), none, 1,
          "mail server 'host:25': found a line break in an address, want none" },
        { STR_INIT("host:25"), STR_INIT("a"), NULL, 0,
          "mail server 'host:25': found no receiver, want one at least" },
    };
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "127.0.0.1", &(struct mail_server_script){ 0 });
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct outbound_mail mail = { .address = cases[i].address,
                                      .from = cases[i].from,
                                      .to = cases[i].to,
                                      .to_n = cases[i].to_n };
        send_it(&s, &mail);
        CHECK_STR((const char *)s.last, cases[i].error);
    }
    check_case(-1);
}

/* A mail larger than any socket's buffer goes out in pieces. */
TEST(outbound_mail_sends_large_ones)
{
    CLEANUP(story_end)
    struct story s;
    story_begin(&s, "127.0.0.1", &(struct mail_server_script){ 0 });
    CLEANUP(buf_done)
    struct buf payload = { 0 };
    while (payload.n < (size_t)1900 * 1024) {
        buf_add(&payload, STR(".a line of a very long mail, of which there are many more\n"));
    }
    struct outbound_mail mail = mail_to(&s);
    mail.payload = buf_str(&payload);
    send_it(&s, &mail);
    CHECK_STR(buf_str(&s.seen), "250 taken;");
    CHECK(mail_server_received(s.mail_server).n > payload.n);
    CHECK(str_ends(mail_server_received(s.mail_server), STR("many more\r\n.\r\nQUIT\r\n")));
    while (payload.n < (size_t)2100 * 1024) {
        buf_add(&payload, STR("and then some\n"));
    }
    mail.payload = buf_str(&payload);
    send_it(&s, &mail);
    CHECK_STR(buf_str(&s.seen), "250 taken;!limit;");
}
