/*
 * outbound_internal: what the two halves of the wire, requests and mails, share.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "host/curl_loop.h"
#include "host/smtp.h"
#include "host/outbound.h"

struct event;

struct host_wire {
    struct wire door;  /* first: the door is the wire */
    struct loop *loop; /* borrowed: from whoever made it */
    struct arena memory;
    struct host_wire_config config;
    struct multi *multi; /* of requests; each mail has its own */
    struct list queue;
    struct list flying; /* answered and not yet told included */
    struct list ready;
    uint32_t queued;
    uint32_t in_flight;
    struct loop_timer pump;
    bool pumping;
    bool freed; /* from inside a callback: the pump ends it */
};

enum wire_state {
    WIRE_QUEUED,
    WIRE_FLYING,
    WIRE_OVER, /* its end waits for delivery */
};

/* The part of a mail that comes after libcurl. */
struct wire_letter {
    struct multi *multi;
    bool talking; /* the connection is made, and ours */
    struct event *event;
    short watched; /* for what */
    bool greeted;  /* capabilities are of the newest EHLO */
    bool eight_bit;
    bool utf8;
    bool logged_in;
    int last_code; /* of a reply while libcurl speaks, with its text */
    char last_text[256];
    struct smtp smtp;
};

struct wire_call {
    struct list link;  /* queue or flying */
    struct list ready; /* there is something to deliver */
    struct host_wire *wire;
    struct arena memory;
    enum wire_state state;
    bool is_mail;
    bool in_callback; /* its callback runs: it is freed afterwards */
    bool attached;    /* the handle is in its multi */
    bool head_done;   /* the answer's headers are all there */
    bool over_limit;  /* the answer is too long */
    struct wire_request request;
    struct wire_mail mail;
    struct str peer; /* whom messages name: "https://host:port" */
    wire_on_reply on_reply;
    void *ctx;
    struct loop_timer timer; /* deadline, or the end of a farewell */
    usec_t timeout;
    CURL *easy;
    struct buf reply;
    int status;
    usec_t retry_after;
    struct err err; /* code 0 = none */
    struct wire_letter letter;
    char detail[CURL_ERROR_SIZE];
};

/* Puts the call's end before its reader. */
void wire_call_end(struct wire_call *call);
/* The same with an error; it names the peer. */
void wire_call_fail(struct wire_call *call, struct err *err);
/* Sets what requests and mails share. */
void wire_call_prepare(struct wire_call *call);

/* Checks, before it takes its turn. */
NODISCARD
int wire_mail_check(struct wire_call *call, struct err *err);
void wire_mail_start(struct wire_call *call);
/* The time is up while the mail is under way: true when its fate is decided already. */
bool wire_mail_decided(struct wire_call *call);
/* Leaves libcurl and the loop. Accepts what was never started. */
void wire_mail_stop(struct wire_call *call);
