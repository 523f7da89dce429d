/*
 * sim_api: a cluster's API reached in process, as over a network that is as bad as `faults` says.
 *
 * Requests travel, are executed by the API server, and their replies travel back, all on timers.
 * The way to the server and the server's work are on the loop that is never frozen
 * (loop_root); what reaches the client is on the client's own loop, so a frozen client
 * gets its deliveries at the thaw. Freeing the client is a crash: no callback comes any more, and
 * requests under way may or may not still be executed, even after a successor has started. At most
 * SIM_REQUESTS_MAX are under way at once, those with their own connection not counted; the others
 * wait in order of arrival.
 */
#pragma once

#include "port/api.h"
#include "port/loop.h"
#include "sandbox/apiserver/apiserver.h"
#include "sandbox/sim/faults.h"

#define SIM_REQUESTS_MAX 32u  /* under way at once, as in host/transport.h; the rest waits */
#define SIM_RESOURCES_MAX 64u /* kinds a client talks about; the rest is counted as "other" */

/* `faults` is borrowed and may be NULL: a calm network of the client's own. */
struct api *sim_api_new(struct loop *view, struct apiserver *server, struct faults *faults);
void sim_api_free(struct api *api); /* accepts NULL */
/* The User-Agent of requests from now on; "drydock" at first. */
void sim_api_set_user_agent(struct api *api, struct str agent);

/* Whose requests they are from now on: the owner of this token; "" is the administrator's
 * certificate. */
void sim_api_set_token(struct api *api, struct str token);

/* Every connection breaks: watches end, and calls in flight fail whether executed or not. */
void sim_api_disconnect(struct api *api);

enum sim_api_verb { SIM_GET, SIM_LIST, SIM_WATCH, SIM_POST, SIM_PUT, SIM_PATCH, SIM_DELETE };
#define SIM_VERBS 7

struct sim_api_count {
    struct str resource; /* "nodes", "nodes/status", "pods/eviction", "other" */
    uint64_t sent[SIM_VERBS];
};

/* What has been sent, by resource in order of first use. Borrowed from the client. */
const struct sim_api_count *sim_api_counts(struct api *api, uint32_t *ret_n);
uint64_t sim_api_sent(struct api *api); /* all of them */
uint32_t sim_api_in_flight(struct api *api);
