/*
 * actor: whoever wants to disturb something and asks first.
 *
 * The four steps of every actor: ask, wait until the state is Approved, have InProgress
 * acknowledged before the target is touched, report Completed. The calls are those of the original
 * client library, with its error texts; they differ where its way loses requests: a
 * target need exist only when it is asked for, lookups are live, names follow from who asks for
 * what, a request without a state is Pending, and a write that lost a race is decided again.
 *
 * Calls block; see blocking_api.h.
 */
#pragma once

#include "client/blocking_api.h"
#include "kinds/maintenance_request.h"

/* The code of all failures that are the request's own doing: its state does not allow it, or it was
 * closed or deleted. The API server gives no answer of that code to what is asked here. */
#define ACTOR_REFUSED ERR_GONE

struct actor {
    struct blocking_api *blocking_api; /* borrowed */
    struct str client; /* borrowed: the actor's name, by which it finds its own requests */
    /* A request was asked for or has changed while it is waited for; may be NULL. */
    void (*on_progress)(void *ctx, const struct maintenance_request *r);
    void *ctx;
};

/* -ERR_INVALID for a name that no label can hold. */
NODISCARD
int actor_init(struct actor *a, struct blocking_api *blocking_api, struct str client,
               struct err *err);

/* Whether requests of this type are served at all; other types and no CRD are a plain no. */
NODISCARD
int actor_enabled(struct actor *a, struct str type, bool *ret, struct err *err);

/* Its own request for the target that is not Completed; -ERR_NOTFOUND: none. */
NODISCARD
int actor_find(struct actor *a, const struct request_target *target, struct arena *out,
               struct maintenance_request *ret, struct err *err);

/* The same, created if there is none: as `new` says, whose name and client are not looked at. */
NODISCARD
int actor_request(struct actor *a, const struct mrequest_new *new, struct arena *out,
                  struct maintenance_request *ret, bool *ret_created, struct err *err);

/* Waits until a request is Approved; `*r` is what it is then. -ERR_TIMEOUT at `until` (monotonic).
 * -ACTOR_REFUSED: it ended otherwise, closed or deleted; or it is InProgress, which `*r` shows, so
 * somebody is at work under this name. */
NODISCARD
int actor_wait(struct actor *a, usec_t until, struct arena *out, struct maintenance_request *r,
               struct err *err);

/* Waits for the approval and takes it: when it answers 0 the state is InProgress, written by this
 * very call and acknowledged. An approval that is withdrawn in between is waited for again. */
NODISCARD
int actor_begin(struct actor *a, usec_t until, struct arena *out, struct maintenance_request *r,
                struct err *err);

/* Writes a state into the actor's own live request, as the original's UpdateMaintenanceState. */
NODISCARD
int actor_update(struct actor *a, const struct request_target *target, enum mrequest_state state,
                 struct err *err);

/* Ends a request of whomever, by name: completes what is Approved or InProgress, or withdraws what
 * is Pending or Approved. `exit_code` is that of the work; empty = none. */
NODISCARD
int actor_complete(struct actor *a, struct str name, struct str exit_code, struct err *err);
NODISCARD
int actor_withdraw(struct actor *a, struct str name, struct err *err);

/* All requests, of whomever; for people. */
NODISCARD
int actor_list(struct actor *a, struct arena *out, struct maintenance_request **ret,
               uint32_t *ret_n, struct err *err);
