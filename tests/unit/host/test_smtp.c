#include "host/smtp.h"
#include "tests/check.h"

static struct smtp_mail mail_of(const struct str *to, uint32_t n, const char *payload)
{
    return (
        struct smtp_mail){ .from = STR("a@b"), .to = to, .to_n = n, .payload = str_from(payload) };
}

/* What is sent while the server answers with these replies. */
static struct str sent(const char *const *replies, const struct smtp_mail *mail, struct smtp *s,
                       struct buf *all)
{
    struct err err = { 0 };
    smtp_init(s, mail);
    for (size_t i = 0; replies[i] != NULL; i++) {
        buf_add(all, buf_str(&s->out));
        buf_reset(&s->out);
        CHECK_EQ(smtp_take(s, str_from(replies[i]), &err), 0);
    }
    buf_add(all, buf_str(&s->out));
    return buf_str(all);
}

static const struct str two[] = { STR_INIT("c@d"), STR_INIT("e@f") };

TEST(smtp_goes_from_mail_to_quit)
{
    static const char *const replies[] = {
        "250 ok\r\n",  "250 ok\r\n", "251 elsewhere\r\n", "354 go\r\n", "250 2.0.0 queued\r\n",
        "221 bye\r\n", NULL
    };
    CLEANUP(smtp_done)
    struct smtp s = { 0 };
    CLEANUP(buf_done)
    struct buf all = { 0 };
    struct smtp_mail mail = mail_of(two, 2, "S: x\r\n\r\nhello");
    CHECK_STR(sent(replies, &mail, &s, &all), "MAIL FROM:<a@b>\r\n"
                                              "RCPT TO:<c@d>\r\n"
                                              "RCPT TO:<e@f>\r\n"
                                              "DATA\r\n"
                                              "S: x\r\n\r\nhello\r\n.\r\n"
                                              "QUIT\r\n");
    CHECK_EQ(s.step, SMTP_OVER);
    CHECK_EQ(s.status, 250);
    CHECK_STR(buf_str(&s.text), "2.0.0 queued");
}

TEST(smtp_says_what_the_server_can)
{
    static const char *const replies[] = { NULL };
    CLEANUP(smtp_done)
    struct smtp s = { 0 };
    CLEANUP(buf_done)
    struct buf all = { 0 };
    struct smtp_mail mail = mail_of(two, 1, "");
    mail.eight_bit = true;
    mail.utf8 = true;
    CHECK_STR(sent(replies, &mail, &s, &all), "MAIL FROM:<a@b> BODY=8BITMIME SMTPUTF8\r\n");
}

/* Each refusal ends the mail, in the words of the server. */
TEST(smtp_stops_at_the_first_refusal)
{
    static const struct {
        const char *replies[6];
        int status;
        const char *text;
        const char *last; /* the command that was refused */
    } cases[] = {
        { { "451 later\r\n" }, 451, "later", "MAIL FROM:<a@b>\r\n" },
        { { "250 ok\r\n", "250 ok\r\n", "550-5.1.1 nobody\r\n550 here\r\n" },
          550,
          "5.1.1 nobody here",
          "RCPT TO:<e@f>\r\n" },
        { { "250 ok\r\n", "250 ok\r\n", "250 ok\r\n", "554\r\n" }, 554, "", "DATA\r\n" },
        { { "250 ok\r\n", "250 ok\r\n", "250 ok\r\n", "250 odd\r\n" }, 250, "odd", "DATA\r\n" },
        { { "250 ok\r\n", "250 ok\r\n", "250 ok\r\n", "354 go\r\n", "552 too much\r\n" },
          552,
          "too much",
          "x\r\n.\r\n" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(smtp_done)
        struct smtp s = { 0 };
        CLEANUP(buf_done)
        struct buf all = { 0 };
        struct smtp_mail mail = mail_of(two, 2, "x");
        struct str said = sent(cases[i].replies, &mail, &s, &all);
        struct str rest;
        CHECK(str_cut_suffix(said, STR("QUIT\r\n"), &rest));
        CHECK(str_ends(rest, str_from(cases[i].last)));
        CHECK_EQ(s.status, cases[i].status);
        CHECK_STR(buf_str(&s.text), cases[i].text);
    }
    check_case(-1);
}

TEST(smtp_stuffs_dots_and_ends_every_line_in_crlf)
{
    static const struct {
        const char *payload;
        const char *text;
    } cases[] = {
        { "", ".\r\n" },
        { "a", "a\r\n.\r\n" },
        { "a\n", "a\r\n.\r\n" },
        { "a\r\nb\r\n", "a\r\nb\r\n.\r\n" },
        { ".", "..\r\n.\r\n" },
        { "a\n.\nb", "a\r\n..\r\nb\r\n.\r\n" },
        { "a\r\n..b", "a\r\n...b\r\n.\r\n" },
        { "a.b", "a.b\r\n.\r\n" },
        { "\n\n", "\r\n\r\n.\r\n" },
        { "a\r.\rb", "a\r\n..\r\nb\r\n.\r\n" },
    };
    static const char *const replies[] = { "250 a\r\n", "250 a\r\n", "354 a\r\n", NULL };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(smtp_done)
        struct smtp s = { 0 };
        CLEANUP(buf_done)
        struct buf all = { 0 };
        struct smtp_mail mail = mail_of(two, 1, cases[i].payload);
        struct str said = sent(replies, &mail, &s, &all);
        struct str before = STR("MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n");
        CHECK(str_starts(said, before));
        CHECK_STR(str_sub(said, before.n, SIZE_MAX), cases[i].text);
    }
    check_case(-1);
}

/* No line of any payload but the last is a lone dot, and taking the dots away gives it back. */
PROPERTY(smtp_text_ends_where_we_say)
{
    static const char *const replies[] = { "250 a\r\n", "250 a\r\n", "354 a\r\n", NULL };
    char payload[40];
    size_t n = rng_below(rng, sizeof(payload) - 1);
    for (size_t i = 0; i < n; i++) {
        payload[i] = "\r\n..ab"[rng_below(rng, 6)];
    }
    payload[n] = '\0';
    CLEANUP(smtp_done)
    struct smtp s = { 0 };
    CLEANUP(buf_done)
    struct buf all = { 0 };
    struct smtp_mail mail = mail_of(two, 1, payload);
    struct str said = sent(replies, &mail, &s, &all);
    struct str text;
    struct str head;
    CHECK(str_cut(said, STR("DATA\r\n"), &head, &text));
    CHECK(str_eq(text, STR(".\r\n")) || str_ends(text, STR("\r\n.\r\n")));
    CHECK(str_find(text, STR("\r\n.\r\n")) + 5 == text.n || str_eq(text, STR(".\r\n")));
    for (size_t i = 0; i < text.n; i++) {
        CHECK(text.p[i] != '\n' || (i > 0 && text.p[i - 1] == '\r'));
        CHECK(text.p[i] != '\r' || (i + 1 < text.n && text.p[i + 1] == '\n'));
    }
}

TEST(smtp_reads_replies_however_they_are_cut)
{
    struct str reply = STR("250-first\r\n250-second\n250 third\r\n250 ok\r\n354 go\r\n550 no\r\n");
    for (size_t at = 0; at <= reply.n; at++) {
        CLEANUP(smtp_done)
        struct smtp s = { 0 };
        struct err err = { 0 };
        struct smtp_mail mail = mail_of(two, 1, "x");
        smtp_init(&s, &mail);
        CHECK_EQ(smtp_take(&s, str_sub(reply, 0, at), &err), 0);
        CHECK_EQ(smtp_take(&s, str_sub(reply, at, SIZE_MAX), &err), 0);
        CHECK_EQ(s.status, 550);
        CHECK_STR(buf_str(&s.text), "no");
        CHECK_EQ(s.step, SMTP_QUIT);
    }
}

TEST(smtp_refuses_what_is_no_reply)
{
    static const char *const wrong[] = {
        "\r\n",      "25\r\n",    "abc def\r\n",          "250_x\r\n",
        "150 x\r\n", "600 x\r\n", "HTTP/1.1 400 Bad\r\n", "+50 x\r\n"
    };
    struct smtp_mail mail = mail_of(two, 1, "x");
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        check_case((int64_t)i);
        CLEANUP(smtp_done)
        struct smtp s = { 0 };
        struct err err = { 0 };
        smtp_init(&s, &mail);
        CHECK_EQ(smtp_take(&s, str_from(wrong[i]), &err), -ERR_PROTO);
    }
    check_case(-1);
    CLEANUP(smtp_done)
    struct smtp s = { 0 };
    struct err err = { 0 };
    smtp_init(&s, &mail);
    int r = 0;
    for (int i = 0; i < 10000 && r == 0; i++) {
        r = smtp_take(&s, STR("250-and one more line of the same\r\n"), &err);
    }
    CHECK_EQ(r, -ERR_LIMIT);
}

TEST(smtp_check_refuses_line_breaks)
{
    struct err err = { 0 };
    CHECK_EQ(smtp_check(STR("ä@b.example"), &err), 0);
    CHECK_EQ(smtp_check(STR("a@b>\r\nDATA"), &err), -ERR_INVALID);
    CHECK_EQ(smtp_check(STR("a\n@b"), &err), -ERR_INVALID);
    CHECK_EQ(smtp_check(STR("a\0@b"), &err), -ERR_INVALID);
}
