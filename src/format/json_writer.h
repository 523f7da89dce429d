/*
 * json_writer: writing JSON, compact, byte for byte as Go's encoding/json does (HTML-safe escaping,
 * floats as ES6 prints them).
 *
 * Calls follow the document; the writer places commas and colons. Overflow shows in the buffer's
 * `full`.
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "format/json.h"

struct json_writer {
    struct buf *out;
    uint32_t depth;
    uint64_t comma[JSON_DEPTH_MAX / 64 + 1]; /* a value stands before; one bit a depth */
    bool after_key;
};

struct json_writer json_writer_on(struct buf *out);

void jw_obj(struct json_writer *w);
void jw_obj_end(struct json_writer *w);
void jw_arr(struct json_writer *w);
void jw_arr_end(struct json_writer *w);
void jw_key(struct json_writer *w, struct str key);
void jw_str(struct json_writer *w, struct str s);
void jw_i64(struct json_writer *w, int64_t n);
void jw_bool(struct json_writer *w, bool b);
void jw_null(struct json_writer *w);
/* -ERR_INVALID for NaN and infinities, which JSON does not have; nothing is written then. */
NODISCARD
int jw_f64(struct json_writer *w, double f, struct err *err);
void jw_raw(struct json_writer *w, struct str json); /* a whole value that is JSON already */
void jw_val(struct json_writer *w, const struct jval *v);
void jw_strs(struct json_writer *w, const struct str *texts, uint32_t n); /* an array of strings */

/* Key and value in one call; the key is a C string. */
void jw_pair(struct json_writer *w, const char *key, struct str value);
void jw_pair_bool(struct json_writer *w, const char *key, bool b);
void jw_pair_i64(struct json_writer *w, const char *key, int64_t n);
/* Nothing is written for an empty text, and for a time that is 0 or USEC_NEVER. Times are wall
 * clock, printed as metav1.Time. */
void jw_pair_some(struct json_writer *w, const char *key, struct str value);
void jw_pair_time(struct json_writer *w, const char *key, usec_t wall);

/* A JSON string with its quotes. */
void json_quote(struct buf *out, struct str s);
