/*
 * transport_request: one request or watch inside the transport, and the reusable slot by which
 * libcurl carries it.
 *
 * A transport_request is small, because thousands may wait. What is large (libcurl's handle,
 * buffers) is in a slot; there are only as many slots as requests in flight, and they are reused.
 */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "host/credentials.h"
#include "host/curl_endpoint.h"
#include "host/tls_identity.h"
#include "host/curl_loop.h"
#include "host/transport.h"

#define WATCH_BACKLOG_MAX                                                                          \
    ((size_t)256 * 1024) /* whole lines not yet delivered; beyond it the stream is paused */
#define ERROR_BODY_MAX ((size_t)1024 * 1024) /* of a refused watch: a Status has a few hundred */
#define SLOT_KEEP_MAX ((size_t)64 * 1024)    /* a larger buffer goes back to the system at once */
#define RETRY_AFTER_MAX HOURS(1)             /* a server that asks for more is not obeyed blindly */

struct slot {
    struct list link; /* in the transport's free ones */
    CURL *easy;
    struct arena memory; /* URL and headers of the request it carries */
    struct buf reply;
    struct transport_request *request; /* borrowed: the request that the slot carries */
    struct credential *credential;
    char detail[CURL_ERROR_SIZE];
};

enum transport_request_state {
    TRANSPORT_REQUEST_QUEUED,
    TRANSPORT_REQUEST_FLYING,
    TRANSPORT_REQUEST_OVER, /* its end waits for delivery */
};

struct transport_request {
    struct list link;  /* queue or flying */
    struct list ready; /* there is something to deliver */
    struct transport *transport;
    struct slot *slot; /* from its start to its end */
    enum transport_request_state state;
    bool watch;
    bool own;         /* goes by the connection that is kept for such requests */
    bool in_callback; /* its callback runs: it is freed afterwards */
    bool dropped;     /* cancelled meanwhile */
    enum api_verb verb;
    struct str path;
    struct str content_type;
    struct str accept;
    struct str body;
    api_on_reply on_reply;
    api_on_event on_event;
    void *ctx;
    struct loop_timer timer; /* deadline, or look at a watch's silence */
    usec_t timeout;          /* request: whole; watch: silence_max */
    usec_t sent;             /* monotonic: when it was asked for */
    usec_t last_byte;        /* monotonic */
    int status;
    usec_t retry_after;
    usec_t date;     /* by the server's clock; 0 = unknown */
    struct err *err; /* NULL = none */
    bool head_done;  /* the answer's headers are all there */
    size_t head_bytes;
    bool over_limit; /* the answer is too long */
    /* of a watch */
    bool opened;
    bool open_told;
    bool paused;
    size_t lines_end; /* behind the last \n in the slot's buffer */
    char text[];      /* path, content type, accept and body */
};

struct transport {
    struct api door;   /* first, so that an api can be cast to its transport */
    struct loop *loop; /* borrowed: from whoever made it */
    const struct cluster_access *access;
    struct curl_endpoint endpoint;
    struct credentials *credentials;
    struct curl_loop *multi;
    /* Of requests with own_connection: no other request can take a connection from here. In a
     * group, which keeps no connection, the same as `multi`. */
    struct curl_loop *own_multi;
    CURLSH *share; /* TLS sessions, so that a new connection needs no full handshake; NULL in a
                    * group */
    struct transport_group *group; /* NULL = it stands alone; else: */
    struct cluster_access own;     /* without keys and passwords */
    struct arena memory;           /* of `own` */
    struct tls_identity identity;
    struct transport_limits limits;
    struct transport_stats stats;
    struct list queue;
    struct list own_queue;
    struct list watch_queue;
    struct list flying;
    struct list ready;
    struct list slots; /* free */
    struct loop_timer pump;
    bool pumping;
    bool freed; /* freed from inside a callback: on_pump frees the memory */
};

struct transport_group {
    struct loop *loop; /* borrowed: from whoever made it */
    struct curl_loop *multi;
    uint32_t members;
};

/* A slot with libcurl's handle set up for the server. */
struct slot *slot_take(struct transport *t);
/* Back to the free ones; the handle is in no multi. */
void slot_give(struct transport *t, struct slot *s);
void slot_free(struct slot *s);
/* Gives back what an open watch needs only while bytes come. */
void slot_rest(struct slot *s);
/* Sets URL, verb, headers and body for its request. */
void slot_load(struct slot *s, const struct transport_request *x);
