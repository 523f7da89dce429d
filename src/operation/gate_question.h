/*
 * gate_question: a gate whose answer has to be asked for, and the last answer.
 *
 * Level-triggered: whoever waits at a gate looks at it in each turn, and the question is asked when
 * there is no answer, when the last one is as old as the gate's interval, or when one is wanted
 * that is younger. A question that nobody looked at in a turn is forgotten, so a gate is asked only
 * while somebody waits at it. What cannot be read has not passed: the reason says so.
 *
 *   gate_question.c   the questions, their calls and their answers
 *   gate_pods.c       pods and blockingPods
 *   gate_resource.c   resource
 *   gate_job.c        job
 *   gate_remote.c     the request of alerts and query; gate_alerts.c, gate_query.c their answers
 */
#pragma once

#include "base/list.h"
#include "kinds/maintenance_gate.h"
#include "port/api.h"
#include "port/outbound.h"

#define GATE_CALLS_MAX 8u /* in flight, of all gates */
#define GATE_CALL_TIMEOUT SECONDS(10)
#define GATE_PAGE "500" /* objects of one answer */

struct operations;
struct campaign;
struct turn_machine;

enum gate_verdict { GATE_NOT_KNOWN, GATE_PASSES, GATE_REFUSES };

/* Which gate of a NodeMaintenance, and for which machine. */
struct gate_place {
    const char *list; /* "rollout.gates.beforeNode" */
    uint32_t index;
    const struct maintenance_gate *gate;
    const struct turn_machine *machine; /* of the visit */
};

struct gate_look {
    enum gate_verdict verdict; /* the last answer */
    bool fresh;     /* it is younger than the gate's interval; otherwise it is being asked again */
    bool recent;    /* the question was put at `since` or later */
    bool final;     /* GATE_REFUSES: waiting is of no use */
    struct str why; /* of GATE_REFUSES, in words; until the next answer */
    usec_t next;    /* wall: when it is asked again; USEC_NEVER: when something changes */
};

/* What an ask has counted so far. */
struct gate_tally {
    uint32_t seen;
    uint32_t good;
    struct buf bad; /* the first that was not good, in words */
};

struct gate_question {
    struct operations *o;
    struct list link;
    struct arena memory; /* of the texts below */
    struct str key;
    enum gate_kind kind;
    struct str json; /* the gate's fields */
    const struct jval *fields;
    struct str selector; /* as text */
    struct str machine;  /* empty: the answer is the same for all */
    struct str machine_uid;
    struct str maintenance;
    struct str maintenance_uid;
    struct str revision;
    usec_t interval;
    usec_t timeout;
    bool wanted; /* in this turn */

    /* The ask under way. */
    struct api_call *call;
    enum api_verb verb; /* of the call */
    struct outbound_call *outbound_call;
    bool second;               /* the second form of a request that a server may take in two */
    struct arena token_memory; /* wiped with the answer */
    struct str token;          /* "Bearer …"; empty: none */
    usec_t began;              /* monotonic */
    struct buf path;
    struct buf page;    /* where a list goes on; empty: at its beginning */
    uint32_t namespace; /* which of the list */
    struct buf plural;  /* of a resource; empty: it is not found out yet */
    struct gate_tally tally;
    struct buf job; /* the name of the Job that was made; empty: none */
    uint32_t asks;  /* how many were */

    /* The last answer. */
    enum gate_verdict verdict;
    usec_t asked; /* monotonic: when the question was put */
    usec_t next;  /* wall */
    bool final;
    struct buf why;
};

/* Another machine may have another answer. */
bool gate_is_of_machine(const struct gate_place *place);
/* `since` is monotonic: an answer to a question that was put before counts for nothing; 0: any
 * counts. */
struct gate_look gate_question_look(struct campaign *c, const struct gate_place *place,
                                    usec_t since);
/* At the beginning and at the end of a turn. */
void gate_questions_mark(struct operations *o);
void gate_questions_sweep(struct operations *o);
/* Forgets all: somebody else may lead, or the part ends. */
void gate_questions_drop(struct operations *o);

/* ── for the kinds ─────────────────────────────────────────────────────────────────────────── */

/* Reads `path` of the question; its answer goes to the kind's `read`. */
void gate_question_get(struct gate_question *q);
/* Sends `body` to it. */
void gate_question_post(struct gate_question *q, struct str body);
/* The ask has ended. */
void gate_question_answer(struct gate_question *q, enum gate_verdict verdict, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* "&key=value", encoded. */
void gate_question_add(struct gate_question *q, const char *key, struct str value);

/* Whether one of the prefixes, separated by commas, allows the address. */
bool gate_url_is_allowed(struct str allowed, struct str url);
void gate_remote_ask(struct gate_question *q);
void gate_remote_read(struct gate_question *q, const struct jval *secret);
void gate_alerts_hear(struct gate_question *q, int status, struct str body);
void gate_query_hear(struct gate_question *q, int status, struct str body);
void gate_job_ask(struct gate_question *q);
void gate_job_step(struct gate_question *q); /* while its Job runs */
void gate_job_read(struct gate_question *q, const struct jval *body);
/* Somebody still wants to know how the Job ended. */
bool gate_job_is_needed(const struct operations *o, struct str job);
void gate_resource_ask(struct gate_question *q);
void gate_resource_read(struct gate_question *q, const struct jval *body);
void gate_pods_ask(struct gate_question *q);
void gate_pods_read(struct gate_question *q, const struct jval *list);
