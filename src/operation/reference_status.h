/*
 * reference_status: the status of what NodeMaintenances refer to: MaintenanceWindows, NodeSeries
 * and NodeOperationTemplates.
 *
 * It is for people only: nothing is decided by it. A status is composed again when the object, or
 * what it is composed from, has changed or when time changes it, at most once in STATUS_EVERY, and
 * only what differs from the object's is written.
 *
 *   window_status.c     open or not, until when, the next openings
 *   series_status.c     the machines of a series
 *   template_status.c   how many parameters, and how many NodeMaintenances use it
 */
#pragma once

#include "format/json_tree.h"
#include "kinds/limit_status_patch.h"
#include "operation/operations_internal.h"

struct reference;

struct reference_kind {
    const char *path;
    struct str (*status)(const void *object); /* as JSON, as it was read */
    const struct spec_meta *(*meta)(const void *object);
    /* A number that changes with what the status is composed from besides the object. */
    uint64_t (*sources)(const struct operations *o);
    /* False: it is not known yet, and a turn has been asked for. `until`, wall, is USEC_NEVER
     * before: when the status changes by itself. */
    bool (*compose)(struct reference *r, struct tree *status, usec_t *until, struct arena *tmp);
};

/* Our side of such an object; its item's `extra`. */
struct reference {
    struct operations *o;
    struct store *store;
    struct store_item *item; /* borrowed */
    const struct reference_kind *kind;
    struct writer writer;
    usec_t composed_at;            /* monotonic */
    const void *composed;          /* the object as it was then; NULL: compose it again */
    uint64_t sources;              /* of then */
    usec_t until;                  /* wall */
    struct window_outlook outlook; /* of a window, */
    const void *outlook_of;        /* as it was then */
};

extern const struct reference_kind window_reference;
extern const struct reference_kind series_reference;
extern const struct reference_kind template_reference;

void references_write(struct operations *o);
void reference_on_gone(void *ctx, struct store_item *item);
void references_free(struct operations *o);

/* For the kinds. A member that is not so any more goes. */
void reference_set_time(struct tree *status, const char *key, usec_t at, struct arena *tmp);
/* One condition: it holds unless there is a problem, which names the field. */
void reference_set_condition(struct reference *r, struct tree *status,
                             const struct status_condition *condition, struct arena *tmp);
