/*
 * limits_api: the limits report of a web_source over HTTP: /api/v1/limits, parts of other
 * documents, and events.
 *
 * A report costs time in the number of requests. So one is made only for a request, or for open
 * event streams after its version has changed, at most every LIMITS_API_EVERY.
 */
#pragma once

#include "web/query.h"
#include "web/web.h"

#define LIMITS_API_EVERY SECONDS(1) /* between two events */
#define LIMITS_API_SHOWN 60u /* claims of a kind, and holders, in an event; nobody reads more */

/* What was sent to open streams last. */
struct limits_api_sent {
    uint64_t version; /* of the report; 0 = the cluster knows no limits */
    uint64_t hash;
    usec_t sent_at; /* monotonic */
};

/* All limits and claims, for /api/v1/status; nothing where the cluster has no limits. Text begins
 * with an empty line and is left out when there is neither a limit nor a claim. */
void limits_api_print(const struct web_source *source, struct loop *loop, struct query_form form,
                      struct buf *out);
/* For a snapshot of the event stream: the first claims of each kind; `null` without limits. */
void limits_api_print_brief(const struct web_source *source, struct json_writer *w);
/* The report for an event; false: it has not changed, or the last event was just sent. */
bool limits_api_print_changes(struct limits_api_sent *p, const struct web_source *source,
                              struct loop *loop, struct buf *out);

/* Adds to the report of a node the claims that hold the node or wait for it. */
void limits_api_claims(const struct web_source *source, struct arena *out,
                       struct node_report *report);

struct limits_api_query {
    enum limits_report_about about;
    struct str name;
    struct query_form form;
};
/* Answers /api/v1/limits, or one request or limit of it. */
void limits_api_reply(const struct web_source *source, struct loop *loop,
                      struct limits_api_query query, struct inbound_exchange *x);
