#include "tests/check.h"
#include "tests/lib/notify_fixture.h"

#define MAIL                                                                                       \
    "{address: 'mail:25', from: From, to: [To1, To2], subject: Sub, "                              \
    "message: '{{ .Node.Name }} is {{ .State }}'}"

TEST(mail_sends_exactly_the_originals_bytes)
{
    CLEANUP(notify_fixture_done)
    struct notify_fixture m;
    notify_fixture_init(&m, "mail", MAIL);
    notify_fixture_deliver(&m);
    CHECK_EQ(m.sent, 1);
    const struct outbound_mail *mail = &notify_fixture_message(&m, 0)->mail;
    CHECK_STR(mail->payload,
              "From: From\r\nTo: To1,To2\r\nSubject: Sub\r\n\r\nnode-1 is in-maintenance");
    CHECK_STR(mail->address, "mail:25");
    CHECK_STR(mail->from, "From");
    CHECK_EQ(mail->to_n, 2);
    CHECK_STR(mail->to[0], "To1");
    CHECK_STR(mail->to[1], "To2");
    CHECK(!mail->auth);
}

TEST(mail_takes_a_scalar_for_its_receiver_and_hands_over_the_login)
{
    CLEANUP(notify_fixture_done)
    struct notify_fixture m;
    notify_fixture_init(&m, "mail",
                        "{auth: true, address: 'mail:587', from: a@b, to: c@d, subject: '{{ . }}', "
                        "message: m, identity: i, user: u, password: p}");
    notify_fixture_deliver(&m);
    const struct outbound_mail *mail = &notify_fixture_message(&m, 0)->mail;
    /* The subject is no template. */
    CHECK_STR(mail->payload, "From: a@b\r\nTo: c@d\r\nSubject: {{ . }}\r\n\r\nm");
    CHECK_EQ(mail->to_n, 1);
    CHECK(mail->auth);
    CHECK_STR(mail->identity, "i");
    CHECK_STR(mail->user, "u");
    CHECK_STR(mail->password, "p");
}

static void refuse(void *ctx UNUSED, const struct inbox_message *message UNUSED,
                   struct inbox_answer *answer)
{
    *answer = (struct inbox_answer){ .status = 550, .body = STR("5.1.1 no such user\nbye") };
}

TEST(mail_tells_what_the_server_says_against_it)
{
    CLEANUP(notify_fixture_done)
    struct notify_fixture m;
    notify_fixture_init(&m, "mail", MAIL);
    m.inbox.script = refuse;
    notify_fixture_deliver(&m);
    CHECK_EQ(m.failed, 1);
    CHECK_STR((const char *)m.err.msg, "the mail server answered 550: 5.1.1 no such user");
}

TEST(mail_fails_in_time_when_nobody_answers)
{
    CLEANUP(notify_fixture_done)
    struct notify_fixture m;
    notify_fixture_init(&m, "mail", MAIL);
    m.outbound_faults.partitioned = true;
    usec_t before = virtual_loop_now(m.time);
    notify_fixture_deliver(&m);
    CHECK_EQ(m.failed, 1);
    CHECK_EQ(m.err.code, ERR_TIMEOUT);
    CHECK(virtual_loop_now(m.time) - before <= OUTBOUND_TIMEOUT + SECONDS(1));
}
