/*
 * drydock: ask before you disturb a node. For programs (actors) that reboot, replace or repair what
 * a Kubernetes cluster runs on.
 *
 * An actor asks with a MaintenanceRequest, waits until it is approved, has "in progress"
 * acknowledged before it touches anything, and reports when it is done:
 *
 *     struct drydock_error error;
 *     struct drydock *d = drydock_new(&(struct drydock_config){ .client = "rebooter" }, &error);
 *     struct drydock_target node = { .type = "node", .name = "worker-7" };
 *     if (drydock_begin(d, &node, NULL, DRYDOCK_FOREVER, &error) == DRYDOCK_OK) {
 *         reboot("worker-7");
 *         drydock_update_state(d, &node, DRYDOCK_COMPLETED, &error);
 *     }
 *     drydock_free(d);
 *
 * Calls block. Between calls nothing runs; there are no threads of the library's own and no state
 * outside of a handle, so each thread may have a handle of its own. A handle is not for two threads
 * at once. Texts are NUL-terminated UTF-8 and are copied. A NULL text means "not given". Every call
 * answers DRYDOCK_OK or one of the negative results, and then fills `error`, which may be NULL.
 *
 * SIGPIPE is set to be ignored: a peer that goes away must not end the process.
 */
#ifndef DRYDOCK_H
#define DRYDOCK_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DRYDOCK_API __attribute__((visibility("default")))

#define DRYDOCK_FOREVER (-1L) /* as a time limit in seconds */

enum drydock_result {
    DRYDOCK_OK = 0,
    DRYDOCK_INVALID = -1,             /* what was asked for is wrong; asking again will not help */
    DRYDOCK_NOT_FOUND = -2,           /* there is no such request */
    DRYDOCK_REFUSED = -3,             /* the request's state does not allow it, or it was closed */
    DRYDOCK_IN_PROGRESS_ALREADY = -4, /* somebody is at work under this client name */
    DRYDOCK_TIMED_OUT = -5,
    DRYDOCK_FORBIDDEN = -6,   /* the API server does not let this user do it */
    DRYDOCK_UNREACHABLE = -7, /* no answer, or none that could be used */
    DRYDOCK_CANCELLED = -8,   /* drydock_config.leaving said so */
};

struct drydock_error {
    int result;
    char message[512]; /* one sentence for people */
};

enum drydock_state {
    DRYDOCK_PENDING,     /* asked */
    DRYDOCK_APPROVED,    /* by the controller; never written by an actor */
    DRYDOCK_IN_PROGRESS, /* the actor works */
    DRYDOCK_COMPLETED,   /* the actor is done, or gave up */
};

struct drydock_config {
    const char *client;     /* the actor's name, 1 to 63 characters that a label may have */
    const char *kubeconfig; /* a file; otherwise KUBECONFIG, the service account, ~/.kube/config */
    const char *context;    /* of the kubeconfig; otherwise its own choice */
    /* Asked at least once a second while a call waits; true ends the call with DRYDOCK_CANCELLED.
     * May be NULL. */
    bool (*leaving)(void *ctx);
    void *ctx;
    void *reserved[4]; /* NULL */
};

struct drydock_target {
    const char *type;  /* "node", "deployment", "daemonset" or "statefulset" */
    const char *space; /* the namespace; NULL for nodes */
    const char *name;
};

/* What may be said with a new request. A request that exists is left as it is. */
struct drydock_options {
    const char *reason; /* for people, up to 1024 characters */
    int priority;       /* -1000 to 1000; higher ones go first */
    bool unprepared;    /* the actor drains the node by itself */
    void *reserved[4];  /* NULL */
};

/* A request as it is now. Texts are cut to fit. */
struct drydock_request {
    char name[254];
    enum drydock_state state;
    char phase[32];     /* finer than the state: Preparing, Expired, Rejected */
    char reason[129];   /* one word: LimitReached, TargetBusy, … */
    char message[1025]; /* what it waits for, in words */
    long position;      /* in the queue, from 1; 0 = unknown */
};

struct drydock;

/* NULL on failure. An empty client name is "client name required". */
DRYDOCK_API struct drydock *drydock_new(const struct drydock_config *config,
                                        struct drydock_error *error);
DRYDOCK_API void drydock_free(struct drydock *d); /* accepts NULL */

/* Whether requests of this type are served. Unknown types and a cluster without the CRD are a plain
 * false. */
DRYDOCK_API int drydock_enabled(struct drydock *d, const char *type, bool *ret,
                                struct drydock_error *error);

/* Asks for the target unless that has been done, and tells whether the request is Approved. It is
 * false while it is in progress, and after Completed a new request begins. A node must exist when
 * it is asked for: "invalid node name in <n> node list". */
DRYDOCK_API int drydock_is_approved(struct drydock *d, const struct drydock_target *target,
                                    const struct drydock_options *options, bool *ret,
                                    struct drydock_error *error);

/* Writes a state: IN_PROGRESS before the target is touched, COMPLETED afterwards, PENDING to give
 * the approval back and queue again. Errors: "cannot set state as approved", "request must exist
 * before state can be updated", "request is not yet approved". The target need not exist any more.
 */
DRYDOCK_API int drydock_update_state(struct drydock *d, const struct drydock_target *target,
                                     enum drydock_state state, struct drydock_error *error);

/* Asks unless that has been done, and waits, by a watch, until the request is Approved. */
DRYDOCK_API int drydock_wait(struct drydock *d, const struct drydock_target *target,
                             const struct drydock_options *options, long seconds_max,
                             struct drydock_error *error);

/* Asks, waits, and takes the approval: on DRYDOCK_OK the state is InProgress, written by this very
 * call and acknowledged. An approval that is withdrawn in between is waited for again. */
DRYDOCK_API int drydock_begin(struct drydock *d, const struct drydock_target *target,
                              const struct drydock_options *options, long seconds_max,
                              struct drydock_error *error);

/* Gives up a request that is Pending or Approved. */
DRYDOCK_API int drydock_withdraw(struct drydock *d, const struct drydock_target *target,
                                 struct drydock_error *error);

/* The actor's live request for the target; DRYDOCK_NOT_FOUND when there is none. */
DRYDOCK_API int drydock_find(struct drydock *d, const struct drydock_target *target,
                             struct drydock_request *ret, struct drydock_error *error);

/* "0.2.0" */
DRYDOCK_API const char *drydock_version(void);

#ifdef __cplusplus
}
#endif

#endif
