/*
 * rollout: which machines of a series come next, and if none does, why not.
 *
 * A rollout goes through waves. A wave of a size takes the first machines in the order of a stable
 * hash, of those that can run; sizes count from the beginning, so the second of "1, 20 %" has 20 %
 * together with the first. A wave with a selector takes what the selector matches and no earlier
 * wave has. Behind the last one comes `rest`, with everybody. A wave is complete when every machine
 * of it that can run has ended and one of them has really succeeded; then it soaks, and the next
 * begins. Machines that cannot run (not Ready, held, being deleted) are nobody's candidates: they
 * neither complete a wave nor keep it open, and run when they are back.
 *
 * Pure: the caller says what each machine has done, and keeps `struct rollout_record`.
 */
#pragma once

#include "base/arena.h"

#define ROLLOUT_WAVES_MAX 10u /* the schema's */

/* What a machine has done at the present revision (or tick). */
enum rollout_progress {
    ROLLOUT_TODO,
    ROLLOUT_BACKOFF, /* has failed, and is tried again later */
    ROLLOUT_ACTIVE,
    ROLLOUT_SUCCEEDED,
    ROLLOUT_SKIPPED, /* there was nothing to do */
    ROLLOUT_FAILED,  /* all attempts have */
};

struct rollout_machine {
    struct str name;
    uint64_t hash;      /* of the name; see rollout_hash */
    struct str zone;    /* ROLLOUT_BY_ZONE */
    struct str spread;  /* its value of the spread key */
    int64_t label;      /* ROLLOUT_BY_LABEL */
    usec_t created;     /* ROLLOUT_BY_AGE */
    usec_t served;      /* when it was last served at all; 0 = never */
    uint32_t selectors; /* bit i: the selector of wave i matches */
    bool control_plane;
    bool can_run;
    bool ready;     /* as of now; looked at while a wave soaks */
    bool excused;   /* somebody else's disturbance: not being ready does not count */
    bool asked_for; /* by name: it comes first, whatever its wave */
    bool kept;      /* a failure left it cordoned: it has its place, active or not */
    bool gated;     /* a gate keeps it from beginning; others may */
    enum rollout_progress progress;
};

enum rollout_by {
    ROLLOUT_BY_HASH,
    ROLLOUT_BY_NAME,
    ROLLOUT_BY_AGE,
    ROLLOUT_BY_ZONE,
    ROLLOUT_BY_LABEL
};
enum rollout_control_plane { ROLLOUT_CP_FIRST, ROLLOUT_CP_LAST, ROLLOUT_CP_IGNORE };

/* A number, or a share of the machines in percent. */
struct rollout_count {
    uint32_t value;
    bool percent;
};

struct rollout_wave {
    struct str name;
    bool by_selector;
    struct rollout_count size; /* unless by_selector */
    usec_t soak;
    bool manual;        /* begins only when approved */
    bool approved;      /* at this revision (and tick) */
    bool gates_fail;    /* one of its gates refuses; looked at while it soaks */
    bool gates_unknown; /* one has not answered yet: the soak does not end before */
};

struct rollout_spec {
    struct rollout_count max_concurrent;
    uint32_t max_active; /* the ledger's bound: never more, whatever max_concurrent says */
    uint32_t spread_max; /* machines of one spread value at once; 0 = any number */
    enum rollout_by by;
    enum rollout_control_plane control_plane;
    const struct rollout_wave *waves;
    uint32_t wave_n;
    usec_t pace; /* between the end of one machine and the beginning of the next */
};

/* What outlives a restart; zeroed with each new revision. Times are wall. */
struct rollout_record {
    uint32_t wave;      /* the one under way; wave_n is `rest` */
    usec_t complete_at; /* 0 = the wave is not complete */
    usec_t soak_until;
    uint32_t restarts; /* of the soak */
    bool trouble;      /* what restarted it lasts */
};

enum rollout_wait {
    ROLLOUT_WAIT_NONE,       /* `next` has somebody, or nothing is left to be done */
    ROLLOUT_WAIT_CONCURRENT, /* as many as allowed are at it */
    ROLLOUT_WAIT_SPREAD,     /* those that are left have too many neighbours at it */
    ROLLOUT_WAIT_BACKOFF,    /* those that are left have failed, and wait */
    ROLLOUT_WAIT_ACTIVE,     /* the wave's last ones are at it */
    ROLLOUT_WAIT_SOAK,
    ROLLOUT_WAIT_APPROVAL,
    ROLLOUT_WAIT_NO_CANDIDATE, /* nobody of the wave can run */
    ROLLOUT_WAIT_NO_SUCCESS,   /* everybody of the wave has failed */
    ROLLOUT_WAIT_PACE,
    ROLLOUT_WAIT_SOAK_FAILED, /* a person has to look: a machine of the wave did not stay well */
};

struct rollout_facts {
    usec_t now;      /* wall */
    usec_t last_end; /* when a machine last ended, wall; 0 = none has */
    const struct rollout_machine *machines;
    uint32_t machine_n;
};

struct rollout_plan {
    struct rollout_record record; /* to be kept */
    struct str wave;              /* its name; empty: there are no waves */
    enum rollout_wait wait;
    uint32_t *next; /* indexes of machines that may begin, best first; in `out` */
    uint32_t next_n;
    uint32_t active;
    uint32_t limit; /* how many may be active */
    bool done;      /* everybody who can run has ended */
    usec_t at;      /* wall: when the answer could change by itself; USEC_NEVER */
};

/* Stable over restarts and versions. */
uint64_t rollout_hash(struct str machine);
/* Percentages round up; nothing but 0 gives 0. */
uint32_t rollout_resolve(struct rollout_count count, uint32_t of);

/* The wave that each machine belongs to; wave_n for the rest. */
void rollout_find_waves(const struct rollout_spec *spec, const struct rollout_facts *facts,
                        struct arena *tmp, uint32_t *ret);

void rollout_decide(const struct rollout_spec *spec, const struct rollout_record *record,
                    const struct rollout_facts *facts, struct arena *out, struct rollout_plan *ret);
