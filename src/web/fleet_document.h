/*
 * fleet_document: answers about every node, /api/v1/info and /api/v1/status.
 *
 * To explain a node takes some ten microseconds; five thousand of them at once would hold up the
 * loop and with it the renewal of the Lease. So a document takes a few nodes a turn and is answered
 * after all nodes that were there when it began. Nodes that have been deleted since are left out.
 *
 * One document is made at a time. Whoever asks meanwhile waits for the next one, and all who wait
 * for the same document get the same bytes: what a crowd that asks for it costs is two documents.
 */
#pragma once

#include "base/list.h"
#include "web/query.h"
#include "web/web.h"

#define FLEET_DOCUMENT_SLICE 100u /* nodes a turn: a few milliseconds */

enum fleet_document_kind {
    FLEET_DOCUMENT_INFO,
    FLEET_DOCUMENT_STATUS,
    FLEET_DOCUMENT_NODES, /* the status without limits and requests */
};

struct fleet_document;

/* The document that is being made, and who waits for the next ones. */
struct fleet_documents {
    struct loop *loop;               /* borrowed */
    const struct web_source *source; /* borrowed */
    struct fleet_document *running;  /* NULL = none */
    struct list waiting;             /* of struct fleet_reader, in the order of their requests */
    struct loop_timer next;
};

void fleet_documents_init(struct fleet_documents *s, struct loop *loop,
                          const struct web_source *source);
/* Cancels what is under way: open requests get no answer. */
void fleet_documents_done(struct fleet_documents *s);

/* Takes the exchange and answers it in that form, at once where the fleet is small, with what is
 * known at this moment or later. FLEET_DOCUMENT_INFO is always JSON. */
void fleet_document_start(struct fleet_documents *s, enum fleet_document_kind kind,
                          struct query_form form, struct inbound_exchange *x);
