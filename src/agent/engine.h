/*
 * engine: decides which resource is looked at next and what follows from what was found. Pure: it
 * touches nothing of the machine, keeps no clock and waits for nobody.
 *
 * An event makes a vertex dirty. Dirty vertices are taken in the order of the graph, and only when
 * all that they require are right. The caller does what engine_next says and tells how it ended.
 *
 *     check ─ no difference ─────────────────────────────→ Ok, or refresh first
 *       └──── differences ─ noop ────────────────────────→ Noop
 *                         ├ more disruptive than allowed ─→ Deferred
 *                         ├ somebody else makes it so again and again ─→ Contested, for a wait
 *                         └ apply ─ check again ─ none ──→ Ok; those it notifies get a mark
 *                                              └ left ───→ Failed, tried again after a wait
 */
#pragma once

#include "agent/graph.h"
#include "kube/retry.h"

#define ENGINE_BACKOFF_MAX MINUTES(5)
/* A resource that had to be repaired so often in so short a time is contested: somebody else wants
 * it otherwise. It is repaired more and more seldom until it is left alone for that long. */
#define ENGINE_CONTEST_REPAIRS 5u
#define ENGINE_CONTEST_TIME MINUTES(10)
#define ENGINE_CONTEST_WAIT SECONDS(10)
#define ENGINE_CONTEST_WAIT_MAX MINUTES(15)

enum vertex_state {
    VERTEX_UNKNOWN,
    VERTEX_OK,
    VERTEX_NOOP,      /* it differs, and is to be left alone */
    VERTEX_DRIFTED,   /* between check and apply */
    VERTEX_FAILED,    /* tried again at retry_at, if ever */
    VERTEX_BLOCKED,   /* by another that is not right */
    VERTEX_DEFERRED,  /* until more disruption is allowed */
    VERTEX_CONTESTED, /* it differs again, and is repaired at retry_at */
    VERTEX_VETOED,    /* the machine's owner forbids it */
    VERTEX_STATES,
};
extern const char *const vertex_state_names[VERTEX_STATES];

enum engine_step {
    ENGINE_CHECK,
    ENGINE_APPLY,   /* and check again: engine_applied */
    ENGINE_REFRESH, /* engine_refreshed */
    ENGINE_DONE,    /* with this vertex: ask for the next */
};

/* What is known of a resource that has been repaired. */
struct vertex_contest {
    usec_t repairs[ENGINE_CONTEST_REPAIRS]; /* when; the oldest is overwritten */
    uint32_t repair_n;                      /* since it was last left alone */
    bool contested;
    struct backoff backoff;
};

struct vertex {
    enum vertex_state state;
    bool dirty;
    bool refresh;   /* a mark of somebody that has changed */
    bool changed;   /* by us, since engine_init */
    bool refreshed; /* likewise */
    bool busy;      /* its work is under way */
    bool was_right; /* once, since engine_init: what differs now is drift */
    uint32_t by;    /* Blocked: by whom */
    uint32_t tries; /* that failed in a row */
    struct backoff backoff;
    usec_t retry_at;                /* monotonic; USEC_NEVER = not by itself */
    const char *reason;             /* Failed: one word */
    char *message;                  /* of MESSAGE_SIZE bytes; NULL as long as there was none */
    struct vertex_contest *contest; /* NULL as long as it was not repaired */
};
#define VERTEX_MESSAGE_SIZE 256u

struct engine_rules {
    bool noop; /* of the whole machine */
    enum disruption allowed;
    int64_t retries; /* of resources that say nothing themselves; -1 = for ever */
};

struct engine {
    const struct graph *graph; /* borrowed: lives longer */
    struct vertex *vertices;
    struct engine_rules rules;
    uint32_t blocked;  /* how many are */
    uint32_t cursor;   /* in graph->order: nothing before it is ready */
    usec_t now;        /* of the last engine_next */
    usec_t retry_min;  /* no retry is due before */
    uint64_t random;   /* state of the waits of contested resources */
    struct arena *out; /* borrowed */
};

/* All vertices are dirty. */
void engine_init(struct engine *e, const struct graph *graph, const struct engine_rules *rules,
                 struct arena *out);

/* Something may have happened to it. A contested one is looked at when its wait is over. */
void engine_dirty(struct engine *e, uint32_t v);
/* A refresh is pending: of the journal, after a start. */
void engine_mark(struct engine *e, uint32_t v);

/* The next vertex to check. False when there is none now; `*ret_when` is the time to ask again, or
 * USEC_NEVER. */
bool engine_next(struct engine *e, usec_t now, uint32_t *ret, usec_t *ret_when);

/* How a check ended: what is to be done now. `differs` and `disruption` are its findings. */
enum engine_step engine_checked(struct engine *e, uint32_t v, bool differs,
                                enum disruption disruption);
/* The check after an apply has found no difference. `refreshed`: the change has made a refresh
 * superfluous; ENGINE_REFRESH then only strikes out the mark. */
enum engine_step engine_applied(struct engine *e, uint32_t v, bool refreshed);
void engine_refreshed(struct engine *e, uint32_t v);
/* Check, apply, the check behind it or refresh has failed. */
void engine_failed(struct engine *e, uint32_t v, usec_t now, uint64_t random, const char *reason,
                   const char *message);

/* The machine's owner forbids it: it is not even looked at. */
void engine_veto(struct engine *e, uint32_t v, const char *message);
/* Takes over what is known of a resource that was the same in a graph before. */
void engine_carry(struct engine *e, uint32_t v, const struct vertex *old);
/* Whether somebody else keeps changing it, as of the last look. */
bool engine_is_contested(const struct engine *e, uint32_t v, usec_t now);

/* Why it is not right; empty when there is nothing to say. */
const char *vertex_message(const struct vertex *x);
/* Whether the changes of this vertex are only told. */
bool engine_is_noop(const struct engine *e, uint32_t v);

struct engine_counts {
    uint32_t total;
    uint32_t states[VERTEX_STATES];
    uint32_t changed;
};
struct engine_counts engine_count(const struct engine *e);

/* What must hold between two calls. */
void engine_check(const struct engine *e);
