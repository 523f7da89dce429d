/*
 * status: the Status objects that say why a request failed, in the words of the real server.
 *
 * A function that may refuse a request returns a status, or NULL when it does not. Everything
 * lives in the request's arena.
 */
#pragma once

#include "sandbox/apiserver/kind.h"

struct status_cause {
    struct str reason;
    struct str message;
    struct str field;
    struct status_cause *next;
};

struct status {
    struct arena *arena;
    int code;
    struct str reason; /* "" = none */
    struct str message;
    bool has_details; /* also when they are empty */
    struct str name;
    struct str group;
    struct str kind;
    struct str uid;
    struct status_cause *first_cause;
    struct status_cause *last_cause;
    uint32_t retry_after_seconds;
    struct str continue_token;
};

struct status *status_new(struct arena *a, int code, const char *reason, struct str message);
struct status *status_bad_request(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct status *status_internal(struct arena *a, struct str message);
struct status *status_not_found(struct arena *a, const struct kind *kind, struct str name);
struct status *status_already_exists(struct arena *a, const struct kind *kind, struct str name);
/* "Operation cannot be fulfilled on nodes "n1": " and the reason. */
struct status *status_conflict(struct arena *a, const struct kind *kind, struct str name,
                               struct str why);
struct status *status_modified(struct arena *a, const struct kind *kind, struct str name);
/* The same for preconditions, which name the kind instead of the resource. */
struct status *status_precondition(struct arena *a, const struct kind *kind, struct str name,
                                   struct str why);
struct status *status_forbidden(struct arena *a, const struct kind *kind, struct str name,
                                struct str why);
/* Answers without a resource: 404, 405, 406, 415 of the generic server. */
struct status *status_generic(struct arena *a, int code, const char *reason, struct str message);
struct status *status_expired(struct arena *a, struct str message);

/* 422: starts without causes; NULL as `list` starts one with the first cause. */
void cause_add(struct status **list, struct arena *a, const char *reason, struct str field,
               struct str message);
#define CAUSE_INVALID "FieldValueInvalid"
#define CAUSE_REQUIRED "FieldValueRequired"
#define CAUSE_FORBIDDEN "FieldValueForbidden"
#define CAUSE_NOT_SUPPORTED "FieldValueNotSupported"
#define CAUSE_TOO_LONG "FieldValueTooLong"
/* Gives a collected list its name and message; NULL stays NULL. */
struct status *status_invalid(struct status *list, const struct kind *kind, struct str name);

struct tree *status_tree(const struct status *status, struct arena *a);
/* {"kind":"Status", …, "status":"Success"}, with details when `name` is not empty. */
struct tree *status_success(struct arena *a, const struct kind *kind, struct str name,
                            struct str uid);
