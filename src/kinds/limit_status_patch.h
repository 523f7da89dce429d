/*
 * limit_status_patch: writes the status of a MaintenanceLimit: its reservations, numbers and
 * conditions, as a merge patch.
 *
 * Only what differs from the status that was read goes into the patch; that of an idle limit is
 * empty. The answer says whether the reservations have changed, because the rest (how many wait,
 * what state a holder is in) decides nothing and can wait for the next change that counts.
 */
#pragma once

#include "kinds/maintenance_limit.h"

#define LIMIT_STATUS_UNAVAILABLE_MAX 500u /* named in the status; the schema's maximum */

struct policy_hit {
    struct str name;
    struct str policy;
};

struct limit_status {
    const struct limit *limit;
    const struct reservations *reservations;
    bool reservations_changed; /* they are not those that were read: entries came or went */
    bool granted;              /* some of them are new grants: lastGrantTime is now */
    bool ledger_full;          /* there may be some that do not fit into the object any more */
    bool released;             /* some were released: lastReleaseTime is now */
    struct str reason;         /* why Accepted is False; empty = it is True */
    struct str problem;
    bool computed;      /* the numbers below are known; otherwise those in the status stay */
    struct str unknown; /* why they are not */
    uint32_t population;
    uint32_t targets;     /* with a reservation */
    uint32_t unavailable; /* by a policy */
    uint32_t nominal;     /* how many the limit allows of its population */
    uint32_t allowed;     /* status.limit: nominal without what is unavailable */
    bool overcommitted;
    const struct policy_hit *policy_hits; /* sorted by name, at most LIMIT_STATUS_UNAVAILABLE_MAX */
    uint32_t policy_hit_n;
    uint32_t waiting;
    usec_t now; /* wall */
};

struct limit_status_diff {
    bool any;
    bool reservations_changed;  /* the patch must be written before anything else goes on */
    bool limit_changed;         /* limit or unavailable: an Event is sent, as by the original */
    bool overcommit_began;      /* the limit is over-committed from now on */
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
