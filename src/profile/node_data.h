/*
 * node_data: the annotation in which a node's maintenance is kept, read and written as the original
 * does, byte for byte.
 *
 *     {"Profiles":{"<name>":{"Transition":"<time>","Current":"<state>","Previous":"<state>"}},
 *      "Notifications":{"<instance>":"<time>"}}
 *
 * Reading follows Go's encoding/json with unknown fields disallowed: keys match in any case, of
 * duplicates the last counts, what follows the first value is not looked at. The format of before
 * December 2025 is read too and comes out in the new one.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/timestamp.h"

#define DATA_ANNOTATION STR("cloud.sap/maintenance-data")
#define DATA_ENTRIES_MAX 4096u /* profiles, or notifications; they fit no annotation */

struct data_profile {
    struct str name;
    bool null; /* the entry is there, and is null */
    struct timestamp transition;
    struct str current;
    struct str previous;
};

struct data_notification {
    struct str name;
    struct timestamp at;
};

struct data {
    struct data_profile *profiles; /* sorted by name */
    uint32_t profile_count;
    uint32_t profile_cap;
    struct data_notification *notifications; /* sorted by name */
    uint32_t notification_count;
    uint32_t notification_cap;
};

/* No text, or none at all, is empty data. Texts of the result live in `out` or in `text`. */
NODISCARD
int data_parse(struct str text, struct arena *out, struct data *ret, struct err *err);

/* Fails for a time that Go refuses to write; then the buffer's content is of no use. */
NODISCARD
int data_print(const struct data *d, struct buf *out, struct err *err);

struct data_profile *data_find(const struct data *d, struct str name);
/* The entry of that name, made in its place if it was not there. */
struct data_profile *data_make(struct data *d, struct arena *a, struct str name);
/* The same for a notification; a new one was never sent: timestamp_zero. */
struct data_notification *data_notification(struct data *d, struct arena *a, struct str name);
void data_remove(struct data *d, struct data_profile *p);
