/*
 * due: whether an operation is to run on a machine, from what has been asked for and what the
 * machine has done.
 *
 * A one-shot is due until it has succeeded at the present revision: the last success counts, not
 * the set of them, so going back to an earlier revision runs that again. A cron operation is due
 * from a tick on, until the machine has served the tick or the tick's deadline is over; a newer
 * tick takes the place of an older one, so there is never more than one to catch up with. Attempts
 * that failed are repeated after a wait that grows, as often as `retries` says.
 */
#pragma once

#include "calendar/cron.h"

struct due_backoff {
    usec_t initial;
    uint32_t factor;
    usec_t max;
};

/* What is asked for. */
struct due_rule {
    bool cron;
    struct str revision;
    usec_t rerun_at;      /* wall: what ended before is to run again; 0 = no */
    usec_t tick;          /* cron: the latest one; 0 = none has come */
    usec_t tick_deadline; /* cron: it is not begun after this; USEC_NEVER = no deadline */
    uint32_t retries;     /* attempts after the first */
    struct due_backoff backoff;
};

enum due_result { DUE_RESULT_NONE, DUE_RESULT_SUCCEEDED, DUE_RESULT_SKIPPED, DUE_RESULT_FAILED };

/* What the machine has done; kept in its NodeState. Times are wall. */
struct due_history {
    enum due_result result; /* of the last run */
    struct str revision;    /* of the last run */
    usec_t tick;            /* that the last run served */
    uint32_t attempts;      /* failed in a row, at that revision and tick */
    usec_t ended;           /* 0 = it has never run */
    struct str success;     /* the revision of the last success */
};

enum due_state {
    DUE_NOT, /* cron: no tick has come, or it was missed */
    DUE_NOW,
    DUE_BACKOFF, /* until `next` */
    DUE_SUCCEEDED,
    DUE_SKIPPED,   /* there was nothing to do */
    DUE_EXHAUSTED, /* every attempt has failed */
};

struct due_answer {
    enum due_state state;
    uint32_t attempt; /* the number of the next one, from 1 */
    bool missed;      /* cron: the tick's deadline is over, and it was not served */
    usec_t next;      /* wall: when the answer could change by itself; USEC_NEVER */
};

struct due_answer due_decide(const struct due_rule *rule, const struct due_history *history,
                             usec_t now);

/* The latest tick that is not after `now` and after `since`; 0 = there is none. Looks back a year
 * and a day, at most. */
usec_t due_latest_tick(const struct cron *cron, const struct zone *zone, usec_t since, usec_t now);
