/*
 * prometheus: how an instant query is put to Prometheus' HTTP API, and the frame of what it
 * answers.
 *
 * Pure: whoever asks sends the request through its own door.
 */
#pragma once

#include "base/buf.h"
#include "format/json.h"

#define PROMETHEUS_QUERY_PATH "/api/v1/query"

/* "query=…&time=…", for the body of a POST or behind the '?' of a GET. */
void prometheus_add_form(struct buf *out, struct str query, usec_t wall);
/* The path of the API behind the path of `base`, whose own query is kept; `form` may be empty. */
void prometheus_add_url(struct buf *out, struct str base, const char *path, struct str form);

/* The answer as JSON. Fails with what Prometheus says of a query that it refuses. */
NODISCARD
int prometheus_parse(int status, struct str body, struct arena *out, const struct jval **ret,
                     struct err *err);
/* Its "data". */
NODISCARD
int prometheus_data(int status, const struct jval *root, const struct jval **ret, struct err *err);
/* The number of a sample, [ time, "value" ]. False: it is none. */
bool prometheus_sample(const struct jval *sample, double *ret);
