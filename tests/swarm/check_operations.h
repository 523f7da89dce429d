/*
 * check_operations: the promises about NodeMaintenances, as they can be seen at the server's
 * commits: when visits begin and how many there are at once, what runs on machines and how often,
 * whose cordons are lifted, and that in the end everything is served and nothing is left behind.
 *
 * Written from docs/contract/operations.md, with its own readers of NodeStates and Jobs. What a
 * write was decided on may be as old as its way is long: windows are judged with that much slack.
 */
#pragma once

#include "port/api.h"
#include "sandbox/apiserver/apiserver.h"
#include "tests/swarm/check_basic.h"
#include "tests/swarm/random_operations.h"

#define CHECK_OPERATIONS_GROUP STR("drydock.dev")
#define CHECK_STATES_NAMESPACE STR("drydock-system")
#define CHECK_JOBS_NAMESPACE STR("drydock-jobs")
#define CHECK_VISIT_CORDON_KEY STR("drydock.dev/visit-cordon")
#define CHECK_KEPT_CORDON_KEY STR("drydock.dev/kept-cordon")

struct check_operations {
    struct check_basic *basic; /* borrowed */
    struct apiserver *server;  /* borrowed */
    bool on;
    struct random_operations random;
    usec_t now;        /* of the commit, true time */
    usec_t start_wall; /* wall, when that was 0 */
    usec_t recovered;  /* when everything that was wrong ended, true time */
    bool late;         /* what is written now was on its way for long */
    uint64_t writes;   /* by controllers, to what is not written when nothing happens */
    struct arena memory;
    struct map runs;     /* what runs where → struct seen_run */
    struct map jobs;     /* uid → struct seen_run that it carries out */
    struct map machines; /* uid of the Node → struct seen_machine */
};

void check_operations_done(struct check_operations *b);

void check_operations_on_commit(struct check_operations *b, const struct apiserver_commit *commit,
                                usec_t now);
/* Whether only a leader may send it. */
bool check_operations_is_leader_only(const struct api_request *request);
/* Somebody reboots a node. */
void check_operations_on_reboot_by_hand(struct check_operations *b, struct str node);

/* Whether everything that is due has been done since everything that was wrong ended. */
bool check_operations_are_served(struct check_operations *b);
/* Nothing is wrong for long: what was due is done, and nothing is left of visits. */
void check_operations_at_end(struct check_operations *b);
