/*
 * mail_server: a mail server for tests, in the same process and on the same loop, that answers each
 * command as the test says, and keeps every byte it was sent.
 */
#pragma once

#include "base/buf.h"
#include "host/loop.h"

/* What is said to a command. NULL: consent; "": nothing, ever; "!": the connection is closed. */
struct mailpeer_script {
    const char *greeting;
    const char *ehlo; /* with the lines of what is offered */
    const char *helo;
    const char *starttls;
    const char *auth;
    const char *mail;
    const char *rcpt;
    const char *data;
    const char *text;
    const char *quit;
    bool crumbs; /* answers come byte by byte */
};

struct mailpeer;

/* Listens on `address`, such as "127.0.0.2". The script is borrowed. */
struct mailpeer *mailpeer_new(struct loop *loop, const char *address,
                              const struct mailpeer_script *script);
void mailpeer_free(struct mailpeer *p);

uint16_t mailpeer_port(const struct mailpeer *p);
/* All that came, on all connections. */
struct str mailpeer_heard(const struct mailpeer *p);
uint32_t mailpeer_open(const struct mailpeer *p); /* connections now */
