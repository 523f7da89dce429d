/*
 * request_auth: passes a request on only if the cluster says that its sender may make it.
 *
 * Who the sender is says a TokenReview of the bearer token, or the certificate of the client, which
 * the server has verified. Whether they may, says a SubjectAccessReview about the verb and the path
 * (nonResourceURLs of a ClusterRole): /metrics is asked for by this name, everything else with
 * /drydock in front, because every cluster lets all its users get /api/…. HEAD is asked for as get.
 * What cannot be answered is refused: an API server that is away closes the door.
 *
 * Answers are kept for a while, by the SHA-256 of the token; the token itself is not. Senders that
 * the cluster has accepted are kept apart from all others, so tokens that a stranger makes up push
 * nobody out; and they are reviewed anew before their time is over and ahead of strangers, who
 * share a rate. A request waits for its reviews, up to a limit in number and in time.
 */
#pragma once

#include "base/log.h"
#include "base/metric.h"
#include "port/api.h"
#include "port/inbound.h"
#include "port/loop.h"

#define REQUEST_AUTH_TOKEN_BYTES_MAX                                                               \
    ((size_t)16 * 1024)                    /* OpenID tokens with hundreds of groups have 8 KiB */
#define REQUEST_AUTH_REVIEWS_MAX 8u        /* in flight for senders that nobody has accepted yet */
#define REQUEST_AUTH_KNOWN_MAX 8u          /* and for those whom the cluster has accepted */
#define REQUEST_AUTH_SENDER_REVIEWS_MAX 2u /* of one sender: nobody takes them all */
#define REQUEST_AUTH_WAITING_MAX 64u    /* requests of strangers, and as many of those accepted */
#define REQUEST_AUTH_TIMEOUT SECONDS(5) /* of one that waits; Prometheus gives up after 10 s */
#define REQUEST_AUTH_GOOD_TIME                                                                     \
    MINUTES(1)                            /* a right that was taken away ends then at the latest   \
                                           */
#define REQUEST_AUTH_BAD_TIME SECONDS(10) /* one that was given begins then at the latest */
#define REQUEST_AUTH_ACCEPTED_MAX 256u    /* senders that are kept */
#define REQUEST_AUTH_OTHERS_MAX 512u
#define REQUEST_AUTH_PATHS_MAX 32u     /* answers that are kept of one sender; we serve 20 */
#define REQUEST_AUTH_STRANGER_RATE 20u /* reviews a second of tokens not accepted before */
#define REQUEST_AUTH_STRANGER_BURST 40u

/* A token where nothing passes the header Authorization on: the API server's proxy does not. Pages
 * of browsers cannot set a header with this prefix. */
#define REQUEST_AUTH_TOKEN_HEADER "Sec-Drydock-Token"

struct request_auth_config {
    struct loop *loop; /* borrowed, as all of these */
    struct api *api;   /* of the cluster that knows the senders */
    struct log *log;
    struct metrics *metrics;     /* may be NULL */
    const struct str *audiences; /* that a token must be for; none = the API server's */
    uint32_t audience_n;
    inbound_handler handler; /* gets what may pass, now or from the loop */
    void *ctx;
};

struct request_auth;

struct request_auth *request_auth_new(const struct request_auth_config *config);
/* Requests that wait get no answer. Accepts NULL. */
void request_auth_free(struct request_auth *auth);

/* An inbound_handler; its context is the struct request_auth. */
void request_auth_handle(void *ctx, struct inbound_exchange *x, const struct inbound_request *req);

struct request_auth_stats {
    uint32_t waiting;   /* requests */
    uint32_t in_flight; /* reviews */
    uint32_t accepted;  /* senders that are kept */
    uint32_t others;
};
struct request_auth_stats request_auth_stats(const struct request_auth *auth);
