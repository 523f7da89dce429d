/*
 * maintenance_request: what decisions use of one MaintenanceRequest, and how its status is written.
 *
 * Everything the original's API server took is read without a complaint: no spec, no state, a type
 * nobody knows, a status of another hand. What cannot be understood is kept as "other" or as
 * absent, so one strange object never stops the rest. The texts of a projection live in the arena
 * it was made in.
 *
 * The status is written as a whole, by a merge patch that names every field and empties those that
 * are not said; it belongs to this controller alone. Times are whole seconds; 0 is "never".
 */
#pragma once

#include "base/buf.h"
#include "kinds/request_name.h"
#include "kinds/store_kind.h"
#include "kinds/target_type.h"

#define MREQUEST_CLIENT STR("maintenancerequests.repairman.k8s.io/clientname")
/* How the work ended, where the actor says so: "0" when it succeeded. */
#define MREQUEST_EXIT STR("drydock.dev/exit-code")
/* Which request of a Machine it was made for. */
#define MREQUEST_MACHINE_REQUEST STR("drydock.dev/bridge-request")

#define MREQUEST_LIMITS_MAX 64u   /* the schema's */
#define MREQUEST_BLOCKED_MAX 16u  /* the schema's */
#define MREQUEST_REASON_MAX 128u  /* the schema's, bytes here */
#define MREQUEST_TEXT_MAX 1024u   /* the schema's for a message */
#define MREQUEST_BLOCKER_MAX 512u /* the schema's */

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
    struct str uid;
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
    struct str machine_request; /* MREQUEST_MACHINE_REQUEST; empty: it was not made for a Machine */
    bool has_ttl;
    uint32_t ttl_s;
    struct mrequest_status status;
};

/* Projects a MaintenanceRequest; needs no context. */
extern const struct store_kind mrequest_kind;

struct str mrequest_state_name(enum mrequest_state state); /* empty for absent and other */
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

/* The status as the value of a merge patch: what is absent is emptied. */
void mrequest_status_print(const struct mrequest_status *s, struct buf *out);
