/*
 * random_operations: the NodeMaintenances of one run from a seed.
 *
 * A NodeMaintenance is data here and an object on the server; the judge (check_operations.h) takes
 * from the data what it holds the controllers to: windows, and how many machines at once.
 */
#pragma once

#include "base/buf.h"
#include "tests/swarm/random_limits.h"

#define RANDOM_MAINTENANCES_MAX 4u
#define RANDOM_OPERATIONS_MAX 2u

enum random_reboot { RANDOM_REBOOT_NEVER, RANDOM_REBOOT_IF_REQUIRED, RANDOM_REBOOT_ALWAYS };

struct random_operation {
    uint32_t every_min; /* cron: a tick every so often; 0: it is a one-shot */
    bool quiet;
    bool preflight;
    bool bare; /* only reboots */
    enum random_reboot reboot;
};

struct random_maintenance {
    struct random_operation operations[RANDOM_OPERATIONS_MAX];
    uint32_t operation_n;
    /* Open for `open_min` from minute `opens_at` on, every `period_min`; 0: always. */
    uint32_t period_min;
    uint32_t opens_at;
    uint32_t open_min;
    int32_t class; /* of nodes; -1: all */
    uint32_t max_concurrent;
    bool spread;     /* one in each zone */
    uint32_t canary; /* size of a first wave; 0: no waves */
    uint32_t soak_s;
    uint32_t cordon; /* Auto, Always, Never */
    bool drain;
    uint32_t drain_s;
    uint32_t retries;
    bool pause;           /* after half of the machines have failed */
    uint32_t on_failure;  /* Auto, KeepCordoned, Uncordon */
    uint32_t kept_s;      /* failedNodeTTL; 0: none */
    uint32_t min_ready_s; /* rollout.minReady */
    int32_t priority;
};

struct random_operations {
    struct random_maintenance maintenances[RANDOM_MAINTENANCES_MAX];
    uint32_t n;
    bool has_limit;
    struct random_limit limit;
    uint32_t unlimited_visits; /* the controllers' flag */
    uint32_t failing;          /* of runs, per mille */
};

void random_operations_make(struct random_operations *r, uint64_t seed);
/* The object named "m<index>", as JSON; `version` makes its scripts what they are. */
void random_maintenance_print(const struct random_maintenance *m, uint32_t index, uint32_t version,
                              struct buf *out);
bool random_maintenance_is_open(const struct random_maintenance *m, usec_t wall);
bool random_maintenance_has_cron(const struct random_maintenance *m);
