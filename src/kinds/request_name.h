/*
 * request_name: how whoever asks names a MaintenanceRequest: "mr-<16 hex>-<number>".
 *
 * The name follows from who asks for what, so that whoever asks twice, because an answer was lost
 * or because it runs twice, gets a conflict instead of a second request. It is a promise: two
 * versions of this code, and the bridge and an actor of its name, must agree on it.
 */
#pragma once

#include "base/arena.h"

/* The object that a request is about. */
struct request_target {
    struct str type;      /* "node", "deployment", …; counts in any case */
    struct str namespace; /* empty for nodes */
    struct str name;      /* counts in any case */
};

/* "node n1", "deployment shop/web": as people read it. */
struct str request_target_text(const struct request_target *target, struct arena *out);

/* "mr-<16 hex>-", to which a number is added. */
struct str request_name_stem(struct str client, const struct request_target *target,
                             struct arena *out);
/* The number behind the stem; 0 when it is another's name. */
uint32_t request_name_number(struct str name, struct str stem);
