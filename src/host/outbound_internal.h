/*
 * outbound_internal: what outbound.c (HTTP requests) and outbound_mail.c (mails) share.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "host/curl_loop.h"
#include "host/smtp.h"
#include "host/outbound.h"

struct event;

struct host_outbound {
    struct outbound door; /* first, so that a door can be cast to its host_outbound */
    struct loop *loop;    /* borrowed: from whoever made it */
    struct arena memory;
    struct host_outbound_config config;
    struct curl_loop *multi; /* of requests; each mail has its own */
    struct list queue;
    struct list flying; /* sent; also answered, but not delivered yet */
    struct list ready;
    uint32_t queued;
    uint32_t in_flight;
    struct loop_timer pump;
    char pins[128]; /* public keys as libcurl takes them; empty = certificates are verified */
    bool pumping;
    bool freed; /* freed from inside a callback: on_pump frees the memory */
};

enum outbound_state {
    OUTBOUND_QUEUED,
    OUTBOUND_FLYING,
    OUTBOUND_OVER, /* its end waits for delivery */
};

/* The state of a mail once libcurl has made its connection. */
struct outbound_mail_state {
    struct curl_loop *multi;
    bool talking; /* the connection is made, and smtp.h speaks on it */
    struct event *event;
    short watched; /* the events that `event` waits for */
    bool greeted;  /* the capabilities below are from the newest EHLO */
    bool eight_bit;
    bool utf8;
    bool logged_in;
    int last_code; /* of a reply while libcurl speaks, with its text */
    char last_text[256];
    struct smtp smtp;
};

struct outbound_call {
    struct list link;  /* queue or flying */
    struct list ready; /* there is something to deliver */
    struct host_outbound *outbound;
    struct arena memory;
    enum outbound_state state;
    bool is_mail;
    bool in_callback; /* its callback runs: it is freed afterwards */
    bool attached;    /* the handle is in its multi */
    bool head_done;   /* the answer's headers are all there */
    bool over_limit;  /* the answer is too long */
    struct outbound_request request;
    struct outbound_mail mail;
    struct str peer; /* whom messages name: "https://host:port" */
    outbound_on_reply on_reply;
    void *ctx;
    struct loop_timer timer; /* deadline, or how long the answer to QUIT may take */
    usec_t timeout;
    CURL *easy;
    struct buf reply;
    int status;
    struct str header; /* the one that the request wants */
    usec_t retry_after;
    struct err err; /* code 0 = none */
    struct outbound_mail_state mail_state;
    char detail[CURL_ERROR_SIZE];
};

/* Ends the call: its reply is delivered in the next turn. */
void outbound_call_end(struct outbound_call *call);
/* The same with an error; it names the peer. */
void outbound_call_fail(struct outbound_call *call, struct err *err);
/* Sets what requests and mails share. */
void outbound_call_prepare(struct outbound_call *call);

/* Checks the mail before it is queued. */
NODISCARD
int outbound_mail_check(struct outbound_call *call, struct err *err);
void outbound_mail_start(struct outbound_call *call);
/* The deadline has passed. True when the server has accepted or refused the mail already. */
bool outbound_mail_decided(struct outbound_call *call);
/* Leaves libcurl and the loop. Accepts what was never started. */
void outbound_mail_stop(struct outbound_call *call);
