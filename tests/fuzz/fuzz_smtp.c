/* Whatever a mail server answers, at once or in crumbs, the outcome is the same; and nothing but
 * the text is sent between DATA and QUIT. */
#include "host/smtp.h"
#include "tests/fuzz/target.h"

static const struct str receivers[] = { STR_INIT("c@d"), STR_INIT("e@f") };

static int talk(struct smtp *s, struct str text, size_t step, struct buf *sent)
{
    struct err err = { 0 };
    struct smtp_mail mail = {
        .from = STR("a@b"), .to = receivers, .to_n = 2, .payload = STR("x\n.\ny")
    };
    smtp_init(s, &mail);
    int r = 0;
    while (r == 0 && text.n > 0) {
        size_t n = MIN(step, text.n);
        r = smtp_take(s, str_sub(text, 0, n), &err);
        text = str_sub(text, n, SIZE_MAX);
        ASSERT(r == 0 || err.msg[0] != '\0');
    }
    buf_add(sent, buf_str(&s->out));
    return r;
}

FUZZ_TARGET(text)
{
    CLEANUP(smtp_done)
    struct smtp whole = { 0 };
    CLEANUP(smtp_done)
    struct smtp crumbs = { 0 };
    CLEANUP(buf_done)
    struct buf one = { 0 };
    CLEANUP(buf_done)
    struct buf other = { 0 };
    int first = talk(&whole, text, SIZE_MAX, &one);
    int second = talk(&crumbs, text, 1, &other);
    if (text.n < SMTP_REPLY_MAX) {
        ASSERT(first == second);
        ASSERT(whole.status == crumbs.status && whole.step == crumbs.step);
        ASSERT(str_eq(buf_str(&whole.text), buf_str(&crumbs.text)));
        ASSERT(str_eq(buf_str(&one), buf_str(&other)));
    }
    ASSERT(whole.status == 0 || (whole.status >= 200 && whole.status <= 599));
    ASSERT((whole.status != 0) == (whole.step >= SMTP_QUIT));
    ASSERT(str_starts(buf_str(&one), STR("MAIL FROM:<a@b>\r\n")));
}
