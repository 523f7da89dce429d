/*
 * reservation: reads, finds and writes the reservations in the status of a MaintenanceLimit.
 *
 * A reservation says which request or profile disturbs which target under this limit. They keep the
 * server's order; new ones go to the end. Two reservations for one target count once.
 */
#pragma once

#include "base/arena.h"
#include "format/json.h"
#include "format/json_tree.h"

/* An object of the API server has at most 1.5 MiB, because etcd takes no more. A MaintenanceLimit
 * also has its spec and up to 500 unavailable objects with their managed fields, about 350 KiB. So
 * the reservations get 1 MiB, counted with all that the server keeps for each. */
#define RESERVATIONS_BYTES_MAX 1048576u
#define RESERVATIONS_MAX 5000u /* the schema's */
/* Of one entry without its texts: the JSON around them, the time, the number, and the key by which
 * managedFields names the entry. */
#define RESERVATION_BYTES_FIXED 256u
/* With texts of the lengths that the schema allows. */
#define RESERVATION_BYTES_LONGEST (RESERVATION_BYTES_FIXED + 36u + 253u + 317u + 32u)

struct reservation {
    struct str uid; /* requestUID: of the request, or of the target */
    struct str name;
    struct str target; /* "name", or "namespace/name" */
    struct str state;
    uint32_t grant; /* the number of the request's grant; 0: the reservation does not say */
    usec_t granted; /* wall; USEC_NEVER: the reservation does not say */
};

struct reservations {
    struct reservation *items;
    uint32_t n;
    uint32_t *by_uid;    /* indexes of the items, sorted by uid */
    uint32_t *by_target; /* sorted by target */
    uint32_t targets;    /* how many different ones */
    uint64_t bytes;      /* that they take on the server; RESERVATIONS_BYTES_MAX */
};

/* The array of status.reservations, or NULL. Entries without a uid are left out: they could never
 * be released, and the schema forbids them. Texts are copied. */
void reservations_parse(const struct jval *list, struct arena *out, struct reservations *ret);

/* NULL when there is none. */
const struct reservation *reservations_find(const struct reservations *r, struct str uid);
bool reservations_has_target(const struct reservations *r, struct str target);

/* What one takes on the server. */
uint64_t reservation_bytes(const struct reservation *r);
/* Whether a list of `n` that takes `bytes` may get one more of `more` bytes. */
bool reservations_fit(uint64_t n, uint64_t bytes, uint64_t more);
/* Whether there may be reservations that do not fit any more. */
bool reservations_full(const struct reservations *r);

/* Makes the indexes of `n` reservations, which are borrowed. */
void reservations_index(struct reservations *r, struct reservation *items, uint32_t n,
                        struct arena *out);

/* As status.reservations holds it. */
struct tree *reservations_tree(const struct reservations *r, struct arena *out);
