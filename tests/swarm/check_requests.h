/*
 * check_requests: the promises about requests and limits, as they can be seen at the server's commits and
 * at the wire: the invariants of the grant protocol, and that nothing is left in the end.
 *
 * Written from the contract: it reads limits, ledgers, requests, locks and nodes with its own eyes.
 * A ledger is written by compare-and-swap, so what its limit says at the commit is what its writer
 * knew, and is judged without slack. What a writer knows from watches (other limits, labels, how
 * many nodes there are) may be old, and is only judged when it has not changed for long.
 */
#pragma once

#include "port/api.h"
#include "sandbox/apiserver/apiserver.h"
#include "tests/swarm/check_basic.h"
#include "tests/swarm/random_limits.h"

#define BUDGET_GROUP STR("repairman.k8s.io")
#define BUDGET_LIMITS STR("maintenancelimits")
#define BUDGET_REQUESTS STR("maintenancerequests")
#define BUDGET_MARK STR("repairman.k8s.io/cordoned-by")
#define BUDGET_SETTLED MINUTES(6) /* no watch is behind for so long */

struct budget {
    struct promise *promise;  /* borrowed */
    struct apiserver *server; /* borrowed */
    bool on;
    bool elect;
    struct terms terms;
    usec_t now;        /* of the commit, true time */
    usec_t began;      /* wall, when that was 0 */
    usec_t settles_at; /* when all watches know which limits there are and what they select */
    uint64_t writes;   /* by controllers, Leases of the election and Events not counted */
    struct arena memory;
    struct map requests; /* uid → struct budget_request */
    struct map nodes;    /* name → struct budget_node */
    struct map limits;   /* name → struct budget_limit */
    struct map reads;    /* controller and path → struct budget_read */
};

void budget_done(struct budget *b);

void budget_on_commit(struct budget *b, const struct apiserver_commit *commit, usec_t now);
/* A request leaves controller `who`. */
void budget_on_send(struct budget *b, struct str who, const struct api_request *request,
                    usec_t now);
/* Whether only a leader may send it. */
bool budget_is_leaders(const struct api_request *request);

/* Everybody has finished: nothing is left of anything. */
void budget_at_rest(struct budget *b);
