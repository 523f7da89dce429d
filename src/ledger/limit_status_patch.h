/*
 * limit_status_patch: what the status of a MaintenanceLimit is to say, and the patch that makes it
 * so.
 *
 * Pure. Only what differs from the status that was read goes into the patch; an idle limit has an
 * empty one. What nobody decides by (how many wait, what state a holder is in) is told apart, so
 * that it can ride along with the next change that counts.
 */
#pragma once

#include "ledger/limit.h"

#define LIMIT_STATUS_UNAVAILABLE_MAX 500u /* named in the status; the schema's maximum */

struct policy_hit {
    struct str name;
    struct str policy;
};

struct limit_status {
    const struct limit *limit;
    const struct reservations *reservations;
    bool reservations_changed; /* the books are not those that were read: entries came or went */
    bool granted;              /* some of them are new grants: lastGrantTime is now */
    bool released;
    struct str reason; /* Accepted is False because of it; empty = True */
    struct str problem;
    bool computed;      /* the numbers below are known; otherwise those that stand there stay */
    struct str unknown; /* why they are not */
    struct limit_counts counts;
    uint32_t unavailable;                 /* |U| as it is shown */
    const struct policy_hit *policy_hits; /* sorted by name, at most LIMIT_STATUS_UNAVAILABLE_MAX */
    uint32_t policy_hit_n;
    uint32_t waiting;
    usec_t now; /* wall */
};

struct limit_status_diff {
    bool any;
    bool reservations_changed;  /* it must be written before anything else goes on */
    bool limit_changed;         /* limit or unavailable: worth an Event, as the original sends it */
    bool overcommit_began;      /* it is over-committed from now on */
    uint32_t limit;             /* status.limit */
    struct str overcommit_text; /* how much, in words */
};

/* The merge patch's "status" member goes to `out`, in JSON; nothing when nothing differs. */
void limit_status_patch(const struct limit_status *s, struct arena *tmp, struct buf *out,
                        struct limit_status_diff *ret);

/* A standard condition in `list`, made or changed: its transition time moves only with its status.
 * Shared with the status of selectors. */
struct status_condition {
    const char *type;
    bool status;
    struct str reason;
    struct str message;
};
void status_condition_set(struct tree *list, const struct status_condition *c, int64_t generation,
                          usec_t now, struct arena *out);
