/*
 * alert_record: what the leader keeps of its alerts in an annotation of its Lease, so that the next
 * one neither forgets a message nor tells twice: JSON, read and written here alone.
 *
 *     {"told":["node-1"],"unsent":[{"instance":"hook","node":"node-2","state":"requestRejected",
 *      "request":"mr-1","reason":"…","since":"…","first":"…"}]}
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* The Lease is written every few seconds: a few KiB, not a queue. Older ones are left out. */
#define ALERT_RECORD_UNSENT_MAX 64u
#define ALERT_RECORD_TOLD_MAX 256u
#define ALERT_RECORD_REASON_MAX 512u /* bytes */

struct alert_record_message {
    struct str instance;
    struct str node; /* empty: it is about none */
    struct str state;
    struct str request; /* may be empty */
    struct str reason;
    usec_t since; /* wall: of what it tells */
    usec_t first; /* wall: the first try */
};

struct alert_record {
    const struct str *told; /* nodes whose blocked drain was told of */
    uint32_t told_n;
    const struct alert_record_message *unsent; /* the oldest first */
    uint32_t unsent_n;
};

/* Texts live in `out`. What a message lacks to be sent, or is beyond the bounds, is left out; an
 * error means that it is no such record. An empty text is an empty record. */
NODISCARD
int alert_record_parse(struct str text, struct arena *out, struct alert_record *ret,
                       struct err *err);
/* Nothing for an empty record. The newest messages are kept where there are too many. */
void alert_record_print(const struct alert_record *r, struct buf *out);
