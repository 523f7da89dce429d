/*
 * smtp: a mail transaction (RFC 5321 §3.3) as bytes in and bytes out, from MAIL to QUIT.
 *
 * Whoever owns the connection has greeted, encrypted and logged in already; it sends what stands in
 * `out` and hands over what arrives. The first answer that is no consent decides against the mail;
 * either way QUIT follows.
 *
 *     MAIL → RCPT … → DATA → TEXT → QUIT → OVER
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define SMTP_REPLY_MAX ((size_t)16 * 1024) /* RFC 5321 §4.5.3.1.5: 512 bytes a line */
#define SMTP_PAYLOAD_MAX ((size_t)2 * 1024 * 1024)

struct smtp_mail {
    struct str from; /* borrowed, all of them */
    const struct str *to;
    uint32_t to_n;
    struct str payload;
    bool eight_bit; /* the server offers 8BITMIME, */
    bool utf8;      /* SMTPUTF8 */
};

enum smtp_step { SMTP_MAIL, SMTP_RCPT, SMTP_DATA, SMTP_TEXT, SMTP_QUIT, SMTP_OVER };

struct smtp {
    struct smtp_mail mail;
    enum smtp_step step;
    uint32_t rcpt;   /* receivers the server has consented to */
    struct buf in;   /* a reply that is not complete */
    struct buf out;  /* to be sent */
    struct buf text; /* of the reply that decided, its lines joined by blanks */
    int status;      /* its code; 0 = not decided */
};

/* Refuses addresses with line breaks: they would be commands of their own. */
NODISCARD
int smtp_check(struct str address, struct err *err);

/* `out` has the first command. */
void smtp_init(struct smtp *s, const struct smtp_mail *mail);
void smtp_done(struct smtp *s); /* accepts a zeroed one */

/* -ERR_PROTO, -ERR_LIMIT: it does not speak SMTP. */
NODISCARD
int smtp_take(struct smtp *s, struct str bytes, struct err *err);
