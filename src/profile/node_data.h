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

#define NODE_DATA_ENTRIES_MAX 4096u /* profiles, or notifications; they fit no annotation */

struct node_data_profile {
    struct str name;
    bool null; /* the entry is there, and is null */
    struct timestamp transition;
    struct str current;
    struct str previous;
};

struct node_data_notification {
    struct str name;
    struct timestamp at;
};

struct node_data {
    struct node_data_profile *profiles; /* sorted by name */
    uint32_t profile_count;
    uint32_t profile_cap;
    struct node_data_notification *notifications; /* sorted by name */
    uint32_t notification_count;
    uint32_t notification_cap;
};

/* No text, or none at all, is empty data. Texts of the result live in `out` or in `text`. */
NODISCARD
int node_data_parse(struct str text, struct arena *out, struct node_data *ret, struct err *err);

/* Fails for a time that Go refuses to write; then the buffer's content is of no use. */
NODISCARD
int node_data_print(const struct node_data *d, struct buf *out, struct err *err);

struct node_data_profile *node_data_find_profile(const struct node_data *d, struct str name);
/* The entry of that name, made in its place if it was not there. */
struct node_data_profile *node_data_make_profile(struct node_data *d, struct arena *a,
                                                 struct str name);
/* The same for a notification; a new one was never sent: timestamp_zero. */
struct node_data_notification *node_data_notification(struct node_data *d, struct arena *a,
                                                      struct str name);
void node_data_remove_profile(struct node_data *d, struct node_data_profile *p);
