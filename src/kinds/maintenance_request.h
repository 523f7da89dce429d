/*
 * maintenance_request: reads and writes MaintenanceRequests, for whoever decides about them
 * (request/), asks by them (client/) or asks by them for a Machine (bridge/).
 *
 * Everything the original's API server took is read without a complaint: no spec, no state, a type
 * nobody knows, a status of another hand. What cannot be understood is kept as "other" or as
 * absent, so one strange object never stops the rest. The texts of a projection live in the arena
 * it was made in.
 *
 * The status is written as a whole, by a merge patch that names every field and empties those that
 * are not said; it belongs to the controller alone. Times are whole seconds; 0 is "never".
 */
#pragma once

#include "base/buf.h"
#include "kinds/keys.h"
#include "kinds/request_name.h"
#include "kinds/store_kind.h"
#include "kinds/target_type.h"

#define MREQUEST_LIMITS_MAX 64u   /* the schema's */
#define MREQUEST_BLOCKED_MAX 16u  /* the schema's */
#define MREQUEST_REASON_MAX 128u  /* the schema's, bytes here */
#define MREQUEST_TEXT_MAX 1024u   /* the schema's for a message */
#define MREQUEST_BLOCKER_MAX 512u /* the schema's */
#define MREQUEST_BRIDGE_MAX 512u  /* of KEY_BRIDGE_REQUEST; the bridge writes no longer one */

/* No request is granted so often; so the number of the next grant can always be counted. */
#define MREQUEST_GRANT_MAX (UINT32_MAX / 2)

/* spec.state, the mailbox shared with the actor. */
enum mrequest_state {
    MR_STATE_ABSENT, /* counts as Pending */
    MR_STATE_PENDING,
    MR_STATE_APPROVED,
    MR_STATE_IN_PROGRESS,
    MR_STATE_COMPLETED,
    MR_STATE_OTHER, /* no server with our schema lets it through; nothing is done */
};

/* status.phase. */
enum mrequest_phase {
    MR_PHASE_ABSENT, /* never seen by us */
    MR_PHASE_PENDING,
    MR_PHASE_PREPARING,
    MR_PHASE_APPROVED,
    MR_PHASE_IN_PROGRESS,
    MR_PHASE_EXPIRED,
    MR_PHASE_COMPLETED,
    MR_PHASE_REJECTED,
};
#define MR_PHASES 8

/* status.step, while Preparing. */
enum mrequest_step {
    MR_STEP_ABSENT,
    MR_STEP_CORDON,
    MR_STEP_DRAIN,
    MR_STEP_DRAIN_GRACE,
    MR_STEP_DETACH,
    MR_STEP_DETACH_GRACE,
    MR_STEP_FINAL_CHECK,
};

enum mrequest_result {
    MR_RESULT_ABSENT,
    MR_RESULT_SUCCEEDED,
    MR_RESULT_WITHDRAWN,
    MR_RESULT_REJECTED,
    MR_RESULT_FAILED,
};

enum mrequest_cond_type {
    COND_ACCEPTED,
    COND_LIMIT_AVAILABLE,
    COND_PREPARED,
    COND_SAFE,
    COND_TIMED_OUT,
};
#define MR_CONDITIONS 5

enum mrequest_cond_status { COND_ABSENT, COND_TRUE, COND_FALSE, COND_UNKNOWN };

struct mrequest_condition {
    enum mrequest_cond_status status; /* COND_ABSENT: it is not there */
    int64_t generation;
    usec_t since; /* lastTransitionTime */
    struct str reason;
    struct str message;
};

struct mrequest_status {
    enum mrequest_phase phase;
    enum mrequest_step step;
    enum mrequest_result result;
    struct str reason;
    struct str message;
    int64_t generation; /* observedGeneration */
    usec_t queued;
    usec_t reserved;
    usec_t step_time;
    usec_t approved;
    usec_t in_progress;
    usec_t finished;
    usec_t deadline;
    uint32_t grant; /* the number of the grant that it has, or had last; 0: it never had one, or it
                       is of a version that did not count */
    const struct str *limits;
    uint32_t limit_n;
    uint32_t position;
    uint32_t rejections;
    struct str rejection_reason;
    usec_t rejection_time;
    bool prepared; /* `preparation` is there */
    bool cordoned;
    uint32_t pods_left;
    uint32_t volumes_left;
    const struct str *blocked;
    uint32_t blocked_n;
    struct mrequest_condition conditions[MR_CONDITIONS];
};

struct maintenance_request {
    struct str name;
    struct str uid;
    struct str
        version; /* resourceVersion; a store may know a newer one that changed nothing here */
    struct str client;
    usec_t created;
    int64_t generation;
    bool deleting;
    bool has_spec;
    struct str target;
    struct str namespace;
    struct str type_text;
    bool type_known;
    enum target_type type; /* when it is known */
    enum mrequest_state state;
    int32_t priority;
    bool unprepared;            /* spec.preparation is None: the actor prepares the target itself */
    bool failed;                /* the actor says that its work has */
    bool withdrawn;             /* KEY_WITHDRAWN: the actor gave it up, approved or not */
    struct str machine_request; /* KEY_BRIDGE_REQUEST; empty: it was not made for a Machine */
    struct str run;             /* KEY_RUN: which run of its actor took the approval */
    struct str visit;           /* KEY_VISIT */
    bool has_ttl;
    uint32_t ttl_s;
    struct mrequest_status status;
};

void mrequest_read(const struct jval *object, struct arena *out, struct maintenance_request *ret);
/* The same for an actor: the state is that of mrequest_state_for_actor, and -ERR_PROTO is the
 * answer to an object without name or resourceVersion, which nobody could write to. */
NODISCARD
int mrequest_read_for_actor(const struct jval *object, struct arena *out,
                            struct maintenance_request *ret, struct err *err);
/* For the stores: `project` makes a struct maintenance_request and needs no context. `same` looks
 * at everything that the controller decides by. */
int mrequest_project(void *ctx, const struct jval *object, struct arena *out, void **ret,
                     struct err *err);
extern const struct store_kind mrequest_kind;

struct str mrequest_state_name(enum mrequest_state state); /* empty for absent and other */
/* The state as every actor reads it: one that is absent or unknown is Pending. */
enum mrequest_state mrequest_state_for_actor(enum mrequest_state state);
struct str mrequest_phase_name(enum mrequest_phase phase); /* empty for absent */
struct str mrequest_step_name(enum mrequest_step step);
struct str mrequest_result_name(enum mrequest_result result);
struct str mrequest_condition_name(enum mrequest_cond_type type);

bool mrequest_phase_ended(enum mrequest_phase phase); /* Completed or Rejected */
/* Approved, InProgress: what the actor was told, and what is therefore a fact. */
bool mrequest_phase_with_actor(enum mrequest_phase phase);
/* Preparing, Approved, InProgress: it has the grant of its number. In all others that is over, and
 * the next one has a higher number. */
bool mrequest_phase_granted(enum mrequest_phase phase);

/* The request is about this target, as the original compares: names and types in any case. The
 * namespace of a node does not count. */
bool mrequest_is_for(const struct maintenance_request *m, const struct request_target *target);

/* What it asks for cannot be granted to anybody: the condition's reason, in words; empty: valid. */
struct str mrequest_invalid(const struct maintenance_request *m, struct str *ret_reason);

/* Sets a condition; its time changes only with its truth. Texts are borrowed. */
void mrequest_condition_set(struct mrequest_status *s, enum mrequest_cond_type type,
                            const struct mrequest_condition *value);

/* Since when it is in its phase; 0 = it does not say. */
usec_t mrequest_status_since(const struct mrequest_status *s);

bool mrequest_status_same(const struct mrequest_status *a, const struct mrequest_status *b);
/* What differs is only told to people: it may wait for a while. */
bool mrequest_status_same_but_info(const struct mrequest_status *a,
                                   const struct mrequest_status *b);

/* The merge patch of the status, on that resourceVersion (empty = any): what the status does not
 * say is emptied. */
void mrequest_print_status(const struct mrequest_status *s, struct str version, struct buf *out);

/* A request that is to be created. */
struct mrequest_new {
    struct str name;
    struct str client;
    struct request_target target;
    struct str reason; /* for people */
    int64_t priority;
    bool unprepared;           /* the actor prepares the target itself */
    struct str bridge_request; /* KEY_BRIDGE_REQUEST; empty = none */
    struct str created_by;     /* KEY_CREATED_BY; empty = none */
    struct str visit;          /* KEY_VISIT; empty = none */
    uint32_t ttl_s;            /* it is deleted so long after its end; 0 = as the controller says */
};
/* The object to POST: Pending. */
void mrequest_print_new(const struct mrequest_new *new, struct buf *out);

/* What an actor, or the controller, changes in a request. */
struct mrequest_change {
    struct str version; /* resourceVersion that it is based on; empty = any */
    struct str uid;     /* empty = whoever has the name */
    enum mrequest_state state;
    struct str run;       /* KEY_RUN; empty = untouched */
    struct str exit_code; /* KEY_EXIT_CODE; empty = untouched */
    bool withdrawn;       /* KEY_WITHDRAWN is set */
};
/* The merge patch. */
void mrequest_print_change(const struct mrequest_change *change, struct buf *out);
