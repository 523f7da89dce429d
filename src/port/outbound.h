/*
 * outbound: the door to third parties: an HTTP request to somebody's server, or a mail.
 *
 * A reply is an observation: on_reply comes from the loop, never from inside the call that sends,
 * once, unless the call is cancelled before; what it is given lives until it returns. The door
 * retries nothing and follows no redirect: a hook that moved is for its owner to correct, and a
 * request with a secret in it goes where it was sent and nowhere else.
 *
 * Messages name the host and never the rest of a URL, which may be a secret.
 */
#pragma once

#include "base/err.h"

#define OUTBOUND_TIMEOUT SECONDS(30) /* the whole exchange, queueing included */
#define OUTBOUND_REPLY_MAX                                                                         \
    ((size_t)256 * 1024) /* chat servers answer with a word or the message they were given */

struct outbound_header {
    struct str name;
    struct str value;
};

struct outbound_request {
    struct str method; /* "POST" */
    struct str url;    /* absolute, http or https */
    const struct outbound_header *headers;
    uint32_t header_n;
    struct str body;
    struct str reply_header; /* whose value is wanted, too: "X-Subject-Token"; empty = none */
    bool insecure;           /* the server's certificate is not checked */
    usec_t timeout;          /* 0 = OUTBOUND_TIMEOUT */
    size_t reply_max;        /* 0 = OUTBOUND_REPLY_MAX; a longer answer is ERR_LIMIT */
};

/* The payload is header and text, its lines may end in \n or \r\n. STARTTLS is used when the server
 * offers it, and its certificate must verify. With `auth` the server must offer AUTH, and the
 * link must be encrypted unless it ends on this machine. */
struct outbound_mail {
    struct str address; /* host:port */
    struct str from;
    const struct str *to;
    uint32_t to_n;
    struct str payload;
    bool auth;
    struct str identity; /* as whom to act; mostly empty */
    struct str user;
    struct str password;
    usec_t timeout; /* 0 = OUTBOUND_TIMEOUT */
};

struct outbound_reply {
    int status;        /* HTTP status, or the SMTP code that decided: 250 = the server has taken it;
                          0 = no answer, then `err` says why */
    struct str body;   /* of SMTP: the text behind the code */
    struct str header; /* the value of `reply_header`, of several the first; empty = none */
    usec_t retry_after;    /* from the header; 0 = none */
    const struct err *err; /* NULL when there is a status */
};

typedef void (*outbound_on_reply)(void *ctx, const struct outbound_reply *reply);

struct outbound;
struct outbound_call; /* a request or a mail in flight */

struct outbound_ops {
    struct outbound_call *(*http)(struct outbound *outbound, const struct outbound_request *request,
                                  outbound_on_reply on_reply, void *ctx);
    struct outbound_call *(*mail)(struct outbound *outbound, const struct outbound_mail *mail,
                                  outbound_on_reply on_reply, void *ctx);
    void (*cancel)(struct outbound *outbound, struct outbound_call *call);
};

struct outbound {
    const struct outbound_ops *ops;
};

/* The texts are copied. The handle is good until on_reply is called or the call is cancelled. What
 * cannot be sent at all (no URL, a line break in an address) is told by on_reply like the rest. */
static inline struct outbound_call *outbound_http(struct outbound *outbound,
                                                  const struct outbound_request *request,
                                                  outbound_on_reply on_reply, void *ctx)
{
    return outbound->ops->http(outbound, request, on_reply, ctx);
}

static inline struct outbound_call *outbound_mail(struct outbound *outbound,
                                                  const struct outbound_mail *mail,
                                                  outbound_on_reply on_reply, void *ctx)
{
    return outbound->ops->mail(outbound, mail, on_reply, ctx);
}

/* No reply will come; whether the other side has acted is unknown. */
static inline void outbound_cancel(struct outbound *outbound, struct outbound_call *call)
{
    outbound->ops->cancel(outbound, call);
}
