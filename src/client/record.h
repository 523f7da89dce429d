/*
 * record: one MaintenanceRequest as its actor sees it, and its texts. Its name is reqname.h's.
 */
#pragma once

#include "base/buf.h"
#include "format/json.h"
#include "kinds/request_name.h"

#define RECORD_CLIENT_LABEL "maintenancerequests.repairman.k8s.io/clientname"
#define RECORD_RUN_ANNOTATION "drydock.dev/run"        /* which run took the approval */
#define RECORD_EXIT_ANNOTATION "drydock.dev/exit-code" /* of the work, when it is completed */

enum record_state { RECORD_PENDING, RECORD_APPROVED, RECORD_IN_PROGRESS, RECORD_COMPLETED };
#define RECORD_STATES 4

struct str record_state_name(enum record_state state);

struct record_target {
    struct str type;      /* "node", "deployment", … */
    struct str namespace; /* empty for nodes */
    struct str name;
};

/* "node-001", "deployment shop/web": as people read it. */
struct str record_target_text(const struct record_target *target, struct arena *out);

struct record {
    struct str name;
    struct str uid;
    struct str version;
    struct str client;
    struct record_target target;
    enum record_state state; /* one that is absent or unknown is Pending */
    struct str run;          /* RECORD_RUN_ANNOTATION */
    struct str phase;        /* of its status, as the rest */
    struct str reason;
    struct str message;
    int64_t position; /* in the queue, from 1; 0 = unknown */
};

/* All texts are copied. -ERR_PROTO for what has no name or version. */
NODISCARD
int record_read(const struct jval *object, struct arena *out, struct record *ret, struct err *err);

struct record record_copy(const struct record *r, struct arena *out);

/* The same target, as the original compares: any case. */
bool record_is_for(const struct record *r, const struct record_target *target);

struct record_ask {
    struct record_target target;
    struct str reason;
    int64_t priority;
    bool unprepared; /* the actor drains by itself */
};

/* The object to create. */
void record_print_new(struct str name, struct str client, const struct record_ask *ask,
                      struct buf *out);

struct record_change {
    enum record_state state;
    struct str run;       /* empty = untouched */
    struct str exit_code; /* empty = untouched */
};

/* The merge patch that changes `r` and nobody else's version of it. */
void record_print_change(const struct record *r, const struct record_change *change,
                         struct buf *out);
