/*
 * completion_names: the names of nodes, requests, limits and machines, for a shell that completes
 * them. Whoever has pressed Tab waits for it, so the cluster has little time to answer, and a
 * cluster that does not is passed over in silence.
 */
#pragma once

#include "cmd/completion.h"

#define COMPLETION_NAMES_TIME SECONDS(2) /* for all questions together */
#define COMPLETION_NAMES_MAX 5000u       /* of one kind; nobody reads more */
#define COMPLETION_KINDS "node|request|limit|nodemaintenance|machine"

/* A completion_source. */
void completion_names_add(const struct command_call *call, unsigned names, struct str prefix,
                          struct buf *out);
/* The same from an API that is open already, until `until` (monotonic). */
struct blocking_api;
void completion_names_list(struct blocking_api *api, usec_t until, unsigned names,
                           struct str prefix, struct buf *out);
