/*
 * fleet_document: a document about every node, /api/v1/info or /api/v1/status.
 *
 * To explain a node takes some ten microseconds; five thousand of them at once would hold up the
 * loop and with it the lease. So a survey takes a few nodes a turn and answers when it has seen all
 * that were there when it began. Nodes that went away meanwhile are left out.
 */
#pragma once

#include "base/list.h"
#include "web/web.h"

#define SURVEY_SLICE 100u /* nodes a turn: a few milliseconds */

enum survey_kind {
    SURVEY_INFO,
    SURVEY_STATUS,
    SURVEY_NODES, /* the status without limits and requests */
};

/* All surveys under way. */
struct surveys {
    struct loop *loop;               /* borrowed */
    const struct web_source *source; /* borrowed */
    struct list running;
};

void surveys_init(struct surveys *s, struct loop *loop, const struct web_source *source);
/* Cancels what is under way: nobody is answered any more. */
void surveys_done(struct surveys *s);

/* Takes the exchange and answers it, at once where the fleet is small. */
void survey_start(struct surveys *s, enum survey_kind kind, struct inbound_exchange *x);
