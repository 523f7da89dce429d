/*
 * request_name: how whoever asks names a MaintenanceRequest: "mr-<16 hex>-<number>".
 *
 * The name follows from who asks for what, so that whoever asks twice, because an answer was lost
 * or because it runs twice, gets a conflict instead of a second request. It is a promise: two
 * versions of this code, and the bridge and an actor of its name, must agree on it.
 */
#pragma once

#include "base/arena.h"

#define MAINTENANCE_REQUESTS_PATH "/apis/repairman.k8s.io/v1/maintenancerequests"

struct request_name {
    struct str client;
    struct str type;      /* of the target: "node", "deployment", …; counts in any case */
    struct str namespace; /* empty for nodes */
    struct str name;      /* counts in any case */
};

/* "mr-<16 hex>-", to which a number is added. */
struct str request_name_stem(const struct request_name *of, struct arena *out);
/* The number behind the stem; 0 when it is another's name. */
uint32_t request_name_number(struct str name, struct str stem);
