/*
 * operations_api: the report of NodeMaintenances of a web_source over HTTP: /api/v1/operations,
 * parts of other documents, and events.
 *
 * A report costs time in the number of machines, so one is made only for a request, or for open
 * event streams after its version has changed, at most every OPERATIONS_API_EVERY. Events have the
 * brief form; the dashboard asks for the machines of the NodeMaintenance that somebody looks at.
 */
#pragma once

#include "web/query.h"
#include "web/web.h"

#define OPERATIONS_API_EVERY SECONDS(1) /* between two events */

/* What was sent to open streams last. */
struct operations_api_sent {
    uint64_t version; /* of the report; 0 = the cluster has no NodeMaintenances installed */
    uint64_t hash;
    usec_t sent_at; /* monotonic */
};

/* For /api/v1/status; nothing where NodeMaintenances are not installed. Text begins with an empty
 * line and is left out when there are none. */
void operations_api_print(const struct web_source *source, struct query_form form, struct buf *out);
/* For a snapshot of the event stream; `null` where they are not installed. */
void operations_api_print_brief(const struct web_source *source, struct json_writer *w);
/* The report for an event; false: it has not changed, or the last event was just sent. */
bool operations_api_print_changes(struct operations_api_sent *p, const struct web_source *source,
                                  struct loop *loop, struct buf *out);

/* Adds to the report of a node what NodeMaintenances do there, or wait for. */
void operations_api_of_node(const struct web_source *source, struct arena *out,
                            struct node_report *report);

/* Answers /api/v1/operations, or one NodeMaintenance of it if a name is given. */
void operations_api_reply(const struct web_source *source, struct str name, struct query_form form,
                          struct inbound_exchange *x);
