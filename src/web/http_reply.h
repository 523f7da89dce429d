/*
 * http_reply: whole HTTP answers of our servers, with the headers that forbid caching and guessing
 * the type.
 */
#pragma once

#include "base/buf.h"
#include "port/inbound.h"
#include "web/query.h"

void http_reply_text(struct inbound_exchange *x, int status, struct str text);
void http_reply_json(struct inbound_exchange *x, int status, struct str body);
/* A report that was printed to `out` in that format; one that did not fit is an error of ours.
 * Takes the bytes. */
void http_reply_report(struct inbound_exchange *x, enum query_format format, struct buf *out);
/* The same for a report that goes to many; NULL = it did not fit. */
void http_reply_report_shared(struct inbound_exchange *x, enum query_format format,
                              struct shared_bytes *report);
/* {"error":"…"}, whatever the format that was asked for. */
void http_reply_error(struct inbound_exchange *x, int status, struct str text);
