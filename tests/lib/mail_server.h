/*
 * mail_server: a mail server for tests, in the same process and on the same loop, that answers each
 * command as the test says, and keeps every byte it was sent.
 */
#pragma once

#include "base/buf.h"
#include "host/loop.h"

/* What is said to a command. NULL: consent; "": nothing, ever; "!": the connection is closed. */
struct mail_server_script {
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
    bool byte_by_byte; /* answers come byte by byte */
};

struct mail_server;

/* Listens on `address`, such as "127.0.0.2". The script is borrowed. */
struct mail_server *mail_server_new(struct loop *loop, const char *address,
                                    const struct mail_server_script *script);
void mail_server_free(struct mail_server *p);

uint16_t mail_server_port(const struct mail_server *p);
/* All that came, on all connections. */
struct str mail_server_received(const struct mail_server *p);
uint32_t mail_server_conns_open(const struct mail_server *p); /* connections now */
