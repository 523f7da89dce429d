/*
 * limits_api: limits and requests for whoever asks over HTTP, from a web_source's board.
 *
 * A board costs time in the number of requests, so one is made only when it is asked for, or for
 * open event streams after its version has changed, and no more often than people read.
 */
#pragma once

#include "web/query.h"
#include "web/web.h"

#define LIMITS_API_EVERY SECONDS(1) /* between two events */
#define LIMITS_API_SHOWN 60u /* claims of a kind, and holders, in an event; nobody reads more */

/* What open streams were told last. */
struct limits_api_sent {
    uint64_t version; /* of the board; 0 = that there is none */
    uint64_t hash;
    usec_t sent_at; /* monotonic */
};

/* All limits and claims, for /api/v1/status; nothing where the cluster has no limits. Text begins
 * with an empty line and is left out when there is neither a limit nor a claim. */
void limits_api_print(const struct web_source *source, struct loop *loop, enum query_format format,
                      struct buf *out);
/* For a snapshot: `null` where there is none. */
void limits_api_print_brief(const struct web_source *source, struct json_writer *w);
/* What has changed since, as JSON; false: nothing, or it is too early to tell. */
bool limits_api_print_changes(struct limits_api_sent *p, const struct web_source *source,
                              struct loop *loop, struct buf *out);

/* Who holds the node or asks for it, as far as limits and requests know. */
void limits_api_claims(const struct web_source *source, struct arena *out,
                       struct node_report *report);

struct limits_api_query {
    enum limits_report_about about;
    struct str name;
    enum query_format format;
};
/* Answers /api/v1/limits, or one request or limit of it. */
void limits_api_reply(const struct web_source *source, struct loop *loop,
                      struct limits_api_query query, struct inbound_exchange *x);
