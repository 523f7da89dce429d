/*
 * http_reply: whole answers of our servers: no cache keeps them, no browser guesses at their type.
 */
#pragma once

#include "base/buf.h"
#include "port/inbound.h"

void http_reply_text(struct inbound_exchange *x, int status, struct str text);
void http_reply_json(struct inbound_exchange *x, int status, struct str body);
/* A document that was printed to `out`; one that did not fit is an error of ours. */
void http_reply_document(struct inbound_exchange *x, const struct buf *out);
/* {"error":"…"} */
void http_reply_error(struct inbound_exchange *x, int status, struct str text);
