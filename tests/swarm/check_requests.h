/*
 * check_requests: the promises about requests and limits, as they can be seen at the server's
 * commits and at the wire: the invariants of the grant protocol, and that nothing is left in the
 * end.
 *
 * Written from docs/contract/requests.md, with its own readers of the objects.
 * A ledger is written by compare-and-swap, so what its limit says at the commit is what its writer
 * knew, and is judged without slack. What a writer knows from watches (other limits, labels, how
 * many nodes there are) may be old, and is only judged when it has not changed for long.
 */
#pragma once

#include "port/api.h"
#include "sandbox/apiserver/apiserver.h"
#include "tests/swarm/check_basic.h"
#include "tests/swarm/random_limits.h"

#define CHECK_REPAIRMAN_GROUP STR("repairman.k8s.io")
#define CHECK_LIMITS_PLURAL STR("maintenancelimits")
#define CHECK_REQUESTS_PLURAL STR("maintenancerequests")
#define CHECK_CORDONED_BY_KEY STR("repairman.k8s.io/cordoned-by")
/* No watch is behind for so long: a stall of four minutes, the silence after it until a watch that
 * was opened meanwhile is given up, back-off and a new list. */
#define CHECK_WATCH_LAG_MAX MINUTES(10)

struct check_requests {
    struct check_basic *basic; /* borrowed */
    struct apiserver *server;  /* borrowed */
    bool on;
    bool elect;
    struct random_limits random;
    usec_t now;        /* of the commit, true time */
    usec_t start_wall; /* wall, when that was 0 */
    usec_t synced_at;  /* when all watches know which limits there are and what they select */
    uint64_t writes;   /* by controllers, Leases of the election and Events not counted */
    struct arena memory;
    struct map requests; /* uid → struct seen_request */
    struct map nodes;    /* name → struct seen_node */
    struct map limits;   /* name → struct seen_limit */
    struct map reads;    /* controller and path → struct seen_read */
};

void check_requests_done(struct check_requests *b);

void check_requests_on_commit(struct check_requests *b, const struct apiserver_commit *commit,
                              usec_t now);
/* A request leaves controller `who`. */
void check_requests_on_send(struct check_requests *b, struct str who,
                            const struct api_request *request, usec_t now);
/* Whether only a leader may send it. */
bool check_requests_is_leader_only(const struct api_request *request);

/* Everybody has finished: nothing is left of anything. */
void check_requests_at_end(struct check_requests *b);
