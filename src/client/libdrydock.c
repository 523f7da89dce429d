/* libdrydock: the functions of <drydock.h>, with C strings and result codes, by means of actor.h.
 */
#include <drydock.h>

#include "base/alloc.h"
#include "client/actor.h"
#include "client/client_session.h"

#include <stdio.h>

struct drydock {
    struct client_session session;
    struct actor actor;
};

static const struct {
    enum err_code code;
    int result;
} results[] = {
    { ERR_INVALID, DRYDOCK_INVALID },      { ERR_NOTFOUND, DRYDOCK_NOT_FOUND },
    { ERR_CONFLICT, DRYDOCK_UNREACHABLE }, { ERR_BUSY, DRYDOCK_UNREACHABLE },
    { ERR_TIMEOUT, DRYDOCK_TIMED_OUT },    { ERR_CANCELLED, DRYDOCK_CANCELLED },
    { ERR_DENIED, DRYDOCK_FORBIDDEN },     { ACTOR_REFUSED, DRYDOCK_REFUSED },
};

/* An answer as callers see it. */
static int libdrydock_result(int code, const struct err *err, struct drydock_error *error)
{
    int result = code == 0 ? DRYDOCK_OK : DRYDOCK_UNREACHABLE;
    for (size_t i = 0; code != 0 && i < ARRAY_LEN(results); i++) {
        result = results[i].code == err->code ? results[i].result : result;
    }
    if (error != NULL) {
        error->result = result;
        (void)snprintf(error->message, sizeof(error->message), "%s",
                       code == 0 ? "" : err->msg); /* both have 512 bytes */
    }
    return result;
}

static struct request_target libdrydock_target(const struct drydock_target *target)
{
    return (struct request_target){
        .type = str_from(target->type),
        .namespace = str_from(target->space),
        .name = str_from(target->name),
    };
}

static usec_t libdrydock_until(const struct drydock *d, long seconds_max)
{
    usec_t now = loop_now(d->session.loop);
    bool forever = seconds_max < 0 || seconds_max > (USEC_NEVER - now) / SECONDS(1);
    return forever ? USEC_NEVER : now + SECONDS(seconds_max);
}

static int libdrydock_request(struct drydock *d, const struct drydock_target *target,
                              const struct drydock_options *options, struct arena *out,
                              struct maintenance_request *ret, struct err *err)
{
    struct mrequest_new new = { .target = libdrydock_target(target) };
    bool created;
    if (options != NULL) {
        new.reason = str_from(options->reason);
        new.priority = options->priority;
        new.unprepared = options->unprepared;
    }
    return actor_request(&d->actor, &new, out, ret, &created, err);
}

struct drydock *drydock_new(const struct drydock_config *config, struct drydock_error *error)
{
    struct err err = { 0 };
    struct drydock *d = ALLOC_NEW(struct drydock);
    int r = actor_init(&d->actor, &d->session.blocking_api, str_from(config->client), &err);
    r = r < 0 ? r
              : client_session_init(&d->session, str_from(config->kubeconfig),
                                    str_from(config->context), &err);
    (void)libdrydock_result(r, &err, error); /* the handle says it, too */
    if (r < 0) {
        drydock_free(d);
        return NULL;
    }
    d->actor.client = arena_str(&d->session.memory, d->actor.client);
    d->session.leaving = config->leaving;
    d->session.ctx = config->ctx;
    return d;
}

void drydock_free(struct drydock *d)
{
    if (d != NULL) {
        client_session_done(&d->session);
        alloc_free(d);
    }
}

int drydock_enabled(struct drydock *d, const char *type, bool *ret, struct drydock_error *error)
{
    struct err err = { 0 };
    *ret = false;
    return libdrydock_result(actor_enabled(&d->actor, str_from(type), ret, &err), &err, error);
}

int drydock_is_approved(struct drydock *d, const struct drydock_target *target,
                        const struct drydock_options *options, bool *ret,
                        struct drydock_error *error)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    struct maintenance_request request;
    int r = libdrydock_request(d, target, options, &tmp, &request, &err);
    *ret = r == 0 && request.state == MR_STATE_APPROVED;
    return libdrydock_result(r, &err, error);
}

int drydock_update_state(struct drydock *d, const struct drydock_target *target,
                         enum drydock_state state, struct drydock_error *error)
{
    static const enum mrequest_state states[] = {
        [DRYDOCK_PENDING] = MR_STATE_PENDING,
        [DRYDOCK_APPROVED] = MR_STATE_APPROVED,
        [DRYDOCK_IN_PROGRESS] = MR_STATE_IN_PROGRESS,
        [DRYDOCK_COMPLETED] = MR_STATE_COMPLETED,
    };
    struct err err = { 0 };
    if ((size_t)state >= ARRAY_LEN(states)) {
        return libdrydock_result(err_set(&err, ERR_INVALID, "there is no state %d", (int)state),
                                 &err, error);
    }
    const struct request_target what = libdrydock_target(target);
    return libdrydock_result(actor_update(&d->actor, &what, states[state], &err), &err, error);
}

typedef int (*libdrydock_wait_step)(struct actor *a, usec_t until, struct arena *out,
                                    struct maintenance_request *r, struct err *err);

static int libdrydock_wait_for(struct drydock *d, const struct drydock_target *target,
                               const struct drydock_options *options, long seconds_max,
                               libdrydock_wait_step wait_step, struct drydock_error *error)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    struct maintenance_request request = { 0 };
    usec_t until = libdrydock_until(d, seconds_max);
    int r = libdrydock_request(d, target, options, &tmp, &request, &err);
    r = r < 0 ? r : wait_step(&d->actor, until, &tmp, &request, &err);
    int result = libdrydock_result(r, &err, error);
    if (r == -ACTOR_REFUSED && request.state == MR_STATE_IN_PROGRESS) {
        result = DRYDOCK_IN_PROGRESS_ALREADY;
        if (error != NULL) {
            error->result = result;
        }
    }
    return result;
}

int drydock_wait(struct drydock *d, const struct drydock_target *target,
                 const struct drydock_options *options, long seconds_max,
                 struct drydock_error *error)
{
    return libdrydock_wait_for(d, target, options, seconds_max, actor_wait, error);
}

int drydock_begin(struct drydock *d, const struct drydock_target *target,
                  const struct drydock_options *options, long seconds_max,
                  struct drydock_error *error)
{
    return libdrydock_wait_for(d, target, options, seconds_max, actor_begin, error);
}

int drydock_withdraw(struct drydock *d, const struct drydock_target *target,
                     struct drydock_error *error)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    struct maintenance_request request;
    const struct request_target what = libdrydock_target(target);
    int r = actor_find(&d->actor, &what, &tmp, &request, &err);
    r = r < 0 ? r : actor_withdraw(&d->actor, request.name, &err);
    return libdrydock_result(r, &err, error);
}

static void libdrydock_text(char *out, size_t size, struct str text)
{
    (void)snprintf(out, size, STR_FMT, STR_ARG(text)); /* cut, as promised */
}

int drydock_find(struct drydock *d, const struct drydock_target *target,
                 struct drydock_request *ret, struct drydock_error *error)
{
    static const enum drydock_state states[] = {
        [MR_STATE_PENDING] = DRYDOCK_PENDING,
        [MR_STATE_APPROVED] = DRYDOCK_APPROVED,
        [MR_STATE_IN_PROGRESS] = DRYDOCK_IN_PROGRESS,
        [MR_STATE_COMPLETED] = DRYDOCK_COMPLETED,
    };
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    struct maintenance_request request;
    const struct request_target what = libdrydock_target(target);
    int r = actor_find(&d->actor, &what, &tmp, &request, &err);
    if (r == 0) {
        *ret = (struct drydock_request){ .state = states[request.state],
                                         .position = (long)request.status.position };
        libdrydock_text(ret->name, sizeof(ret->name), request.name);
        libdrydock_text(ret->phase, sizeof(ret->phase), mrequest_phase_name(request.status.phase));
        libdrydock_text(ret->reason, sizeof(ret->reason), request.status.reason);
        libdrydock_text(ret->message, sizeof(ret->message), request.status.message);
    }
    return libdrydock_result(r, &err, error);
}

const char *drydock_version(void)
{
    return DRYDOCK_VERSION;
}
