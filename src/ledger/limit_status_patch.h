/*
 * limit_status_patch: what the status of a MaintenanceLimit is to say, and the patch that makes it so.
 *
 * Pure. Only what differs from the status that was read goes into the patch; an idle limit has an
 * empty one. What nobody decides by (how many wait, what state a holder is in) is told apart, so
 * that it can ride along with the next change that counts.
 */
#pragma once

#include "ledger/limit.h"

#define STATEMENT_UNAVAILABLE_MAX 500u /* named in the status; the schema's maximum */

struct statement_hit {
    struct str name;
    struct str policy;
};

struct statement {
    const struct limit *limit;
    const struct reserves *books;
    bool ledger;  /* the books are not those that were read: entries came or went */
    bool granted; /* some of them are new grants: lastGrantTime is now */
    bool released;
    struct str reason; /* Accepted is False because of it; empty = True */
    struct str problem;
    bool computed;      /* the numbers below are known; otherwise those that stand there stay */
    struct str unknown; /* why they are not */
    struct limit_tally tally;
    uint32_t unavailable;             /* |U| as it is shown */
    const struct statement_hit *hits; /* sorted by name, at most STATEMENT_UNAVAILABLE_MAX */
    uint32_t hit_n;
    uint32_t waiting;
    usec_t now; /* wall */
};

struct statement_diff {
    bool any;
    bool ledger;     /* it must be written before anything else goes on */
    bool told;       /* limit or unavailable: worth an Event, as the original sends it */
    bool over_began; /* it is over-committed from now on */
    uint32_t limit;  /* status.limit */
    struct str over; /* how much, in words */
};

/* The merge patch's "status" member goes to `out`, in JSON; nothing when nothing differs. */
void statement_patch(const struct statement *s, struct arena *tmp, struct buf *out,
                     struct statement_diff *ret);

/* A standard condition in `list`, made or changed: its transition time moves only with its status.
 * Shared with the status of selectors. */
struct statement_condition {
    const char *type;
    bool status;
    struct str reason;
    struct str message;
};
void statement_set_condition(struct tree *list, const struct statement_condition *c,
                             int64_t generation, usec_t now, struct arena *out);
