#include "host/smtp.h"

int smtp_check(struct str address, struct err *err)
{
    for (size_t i = 0; i < address.n; i++) {
        if (address.p[i] == '\r' || address.p[i] == '\n' || address.p[i] == '\0') {
            return err_set(err, ERR_INVALID, "found a line break in an address, want none");
        }
    }
    return 0;
}

/* RFC 5321 §4.5.2: lines end in CR LF, and one that begins with a dot gets one more. A bare CR
 * becomes a line end too: servers that take it for one would otherwise see the end of the mail
 * where we see a dot within a line. */
static void add_text(struct buf *out, struct str payload)
{
    bool begin = true;
    for (size_t i = 0; i < payload.n; i++) {
        char c = payload.p[i];
        if (c == '\r' || c == '\n') {
            buf_add(out, STR("\r\n"));
            begin = true;
            i += c == '\r' && i + 1 < payload.n && payload.p[i + 1] == '\n' ? 1 : 0;
            continue;
        }
        if (begin && c == '.') {
            buf_add_char(out, '.');
        }
        buf_add_char(out, c);
        begin = false;
    }
    buf_add(out, begin ? STR(".\r\n") : STR("\r\n.\r\n"));
}

static void smtp_enter(struct smtp *s, enum smtp_step step)
{
    s->step = step;
    switch (step) {
    case SMTP_MAIL:
        buf_printf(&s->out, "MAIL FROM:<" STR_FMT ">%s%s\r\n", STR_ARG(s->mail.from),
                   s->mail.eight_bit ? " BODY=8BITMIME" : "", s->mail.utf8 ? " SMTPUTF8" : "");
        break;
    case SMTP_RCPT:
        buf_printf(&s->out, "RCPT TO:<" STR_FMT ">\r\n", STR_ARG(s->mail.to[s->rcpt]));
        break;
    case SMTP_DATA:
        buf_add(&s->out, STR("DATA\r\n"));
        break;
    case SMTP_TEXT:
        add_text(&s->out, s->mail.payload);
        break;
    case SMTP_QUIT:
        buf_add(&s->out, STR("QUIT\r\n"));
        break;
    case SMTP_OVER:
        break;
    }
}

void smtp_init(struct smtp *s, const struct smtp_mail *mail)
{
    ASSERT(mail->to_n > 0);
    /* Every byte of the payload may become two; commands are short. */
    *s = (struct smtp){ .mail = *mail,
                        .in = { .max = SMTP_REPLY_MAX },
                        .out = { .max = 2 * SMTP_PAYLOAD_MAX + 1024 },
                        .text = { .max = SMTP_REPLY_MAX } };
    smtp_enter(s, SMTP_MAIL);
}

void smtp_done(struct smtp *s)
{
    buf_done(&s->in);
    buf_done(&s->out);
    buf_done(&s->text);
}

static void smtp_decide(struct smtp *s, int code)
{
    s->status = code;
    smtp_enter(s, SMTP_QUIT);
}

/* A whole reply has come. */
static void smtp_step(struct smtp *s, int code)
{
    bool fine = code >= 200 && code < 300;
    switch (s->step) {
    case SMTP_MAIL:
        if (!fine) {
            smtp_decide(s, code);
        } else {
            smtp_enter(s, SMTP_RCPT);
        }
        break;
    case SMTP_RCPT:
        if (!fine) {
            smtp_decide(s, code);
        } else {
            s->rcpt++;
            smtp_enter(s, s->rcpt < s->mail.to_n ? SMTP_RCPT : SMTP_DATA);
        }
        break;
    case SMTP_DATA:
        if (code != 354) {
            smtp_decide(s, code);
        } else {
            smtp_enter(s, SMTP_TEXT);
        }
        break;
    case SMTP_TEXT:
        smtp_decide(s, code);
        break;
    case SMTP_QUIT:
        smtp_enter(s, SMTP_OVER);
        break;
    case SMTP_OVER:
        break;
    }
}

/* "250-text" is followed by more of the same reply, "250 text" and "250" end it. */
static int smtp_line(struct smtp *s, struct str line, struct err *err)
{
    uint32_t code;
    char mark = line.n > 3 ? line.p[3] : ' ';
    if (line.n < 3 || !str_to_u32(str_sub(line, 0, 3), &code) || code < 200 || code > 599 ||
        (mark != ' ' && mark != '-')) {
        return err_set(err, ERR_PROTO, "the answer is not SMTP");
    }
    if (s->status == 0) {
        buf_add(&s->text, s->text.n > 0 && line.n > 4 ? STR(" ") : STR(""));
        buf_add(&s->text, str_sub(line, MIN(line.n, (size_t)4), SIZE_MAX));
    }
    if (s->text.full) {
        return err_set(err, ERR_LIMIT, "the answer is longer than %zu bytes", s->text.max);
    }
    if (mark == '-') {
        return 0;
    }
    smtp_step(s, (int)code);
    if (s->status == 0) {
        buf_reset(&s->text);
    }
    return 0;
}

int smtp_take(struct smtp *s, struct str bytes, struct err *err)
{
    buf_add(&s->in, bytes);
    if (s->in.full) {
        return err_set(err, ERR_LIMIT, "the answer is longer than %zu bytes", s->in.max);
    }
    size_t end;
    while (s->step != SMTP_OVER && (end = str_find_char(buf_str(&s->in), '\n')) != SIZE_MAX) {
        struct str line = str_sub(buf_str(&s->in), 0, end);
        (void)str_cut_suffix(line, STR("\r"), &line);
        int r = smtp_line(s, line, err);
        if (r < 0) {
            return r;
        }
        buf_drop(&s->in, end + 1);
    }
    return 0;
}
