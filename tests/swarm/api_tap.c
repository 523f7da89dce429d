#include "tests/swarm/api_tap.h"

static struct api_tap *api_tap_of(struct api *api)
{
    return CONTAINER_OF(api, struct api_tap, api);
}

/* A handle for requests that never left; nobody will answer or cancel them, since the process is
 * gone. */
static struct api_call *api_tap_unsent_call(struct api_tap *t)
{
    return (struct api_call *)(void *)t;
}

/* Where the process' end is kept. */
static struct api_tap *api_tap_first(struct api_tap *t)
{
    return t->first != NULL ? t->first : t;
}

/* What the crash waits for. */
static bool api_tap_matches_crash(const struct api_tap *t, const struct api_request *request)
{
    if (t->crash == API_TAP_CRASH_MAINTENANCE) {
        return request->verb == API_PATCH &&
               str_contains(request->body, STR("maintenance-state\":\"in-maintenance\""));
    }
    return request->verb == API_PUT && str_contains(request->body, STR("drydock.dev/grants"));
}

static bool api_tap_matches_write(const struct api_tap *t, const struct api_request *request)
{
    switch (t->write) {
    case API_TAP_WRITE_LIMIT:
        return str_contains(request->path, STR("/maintenancelimits/"));
    case API_TAP_WRITE_LEASE:
        return str_contains(request->path, STR("/leases/target-")) ||
               str_contains(request->body, STR("\"name\":\"target-"));
    case API_TAP_WRITE_REQUEST:
        return str_contains(request->path, STR("/maintenancerequests/"));
    case API_TAP_WRITE_MACHINE:
        return str_contains(request->path, STR("/machines/"));
    case API_TAP_WRITE_BAREMETALHOST:
        return str_contains(request->path, STR("/baremetalhosts/"));
    case API_TAP_WRITE_NODE_STATE:
        return str_contains(request->path, STR("/nodestates"));
    case API_TAP_WRITE_JOB:
        return str_ends(request->path, STR("/jobs"));
    case API_TAP_WRITE_MAINTENANCE:
        return str_contains(request->path, STR("/nodemaintenances/"));
    default:
        return str_starts(request->path, STR("/api/v1/nodes/"));
    }
}

/* The process ends here; what it has sent last may arrive later. */
static void api_tap_crash_at(struct api_tap *t, const struct api_request *request, uint32_t cluster)
{
    t->crashed = true;
    t->late_cluster = cluster;
    t->late_verb = request->verb;
    buf_reset(&t->late_path);
    buf_reset(&t->late_body);
    buf_reset(&t->late_type);
    buf_add(&t->late_path, request->path);
    buf_add(&t->late_body, request->body);
    buf_add(&t->late_type, request->content_type);
}

static struct api_call *api_tap_send(struct api *api, const struct api_request *request,
                                     api_on_reply on_reply, void *ctx)
{
    struct api_tap *t = api_tap_of(api);
    struct api_tap *first = api_tap_first(t);
    if (first->crashed) {
        return api_tap_unsent_call(t);
    }
    t->on_send(t->ctx, request);
    if (first->crash == API_TAP_CRASH_MAINTENANCE || first->crash == API_TAP_CRASH_GRANTS) {
        if (api_tap_matches_crash(first, request)) {
            api_tap_crash_at(first, request, t->cluster);
            return api_tap_unsent_call(t);
        }
    } else if (first->crash >= API_TAP_CRASH_WRITE_BEFORE) {
        if (request->verb != API_GET && api_tap_matches_write(first, request)) {
            api_tap_crash_at(first, request, t->cluster);
            if (first->crash != API_TAP_CRASH_WRITE_AFTER) {
                return api_tap_unsent_call(t);
            }
        }
    } else if (request->verb != API_GET && first->crash != API_TAP_CRASH_NONE) {
        first->crashed = true;
        if (first->crash == API_TAP_CRASH_BEFORE) {
            return api_tap_unsent_call(t);
        }
    }
    return api_send(t->upstream, request, on_reply, ctx);
}

static void api_tap_cancel(struct api *api, struct api_call *call)
{
    struct api_tap *t = api_tap_of(api);
    if (call != api_tap_unsent_call(t)) {
        api_cancel(t->upstream, call);
    }
}

static struct api_watch *api_tap_watch(struct api *api, const struct api_watch_spec *spec,
                                       api_on_event on_event, void *ctx)
{
    return api_watch(api_tap_of(api)->upstream, spec, on_event, ctx);
}

static void api_tap_watch_stop(struct api *api, struct api_watch *watch)
{
    api_watch_stop(api_tap_of(api)->upstream, watch);
}

void api_tap_init(struct api_tap *t, struct api *upstream,
                  void (*on_send)(void *ctx, const struct api_request *request), void *ctx)
{
    static const struct api_ops ops = {
        .send = api_tap_send,
        .cancel = api_tap_cancel,
        .watch = api_tap_watch,
        .watch_stop = api_tap_watch_stop,
    };
    struct api_tap old = *t;
    *t = (struct api_tap){ .api.ops = &ops, .upstream = upstream, .on_send = on_send, .ctx = ctx };
    t->late_path = old.late_path; /* what is on its way is the network's */
    t->late_body = old.late_body;
    t->late_type = old.late_type;
    t->late_verb = old.late_verb;
    t->late_cluster = old.late_cluster;
}

void api_tap_done(struct api_tap *t)
{
    buf_done(&t->late_path);
    buf_done(&t->late_body);
    buf_done(&t->late_type);
}

/* One message on its way; it stays in the arena behind its end. */
struct outbound_tap_call {
    struct outbound_tap *tap;
    struct str text;
    outbound_on_reply on_reply;
    void *ctx;
};

static void outbound_tap_reply(void *ctx, const struct outbound_reply *reply)
{
    struct outbound_tap_call *note = ctx;
    note->tap->on_reply(note->tap->ctx, note->text, reply);
    note->on_reply(note->ctx, reply);
}

static struct outbound_tap_call *outbound_tap_note(struct outbound_tap *t, struct str text,
                                                   outbound_on_reply on_reply, void *ctx)
{
    struct outbound_tap_call *note = ARENA_NEW(t->arena, struct outbound_tap_call);
    *note = (struct outbound_tap_call){ t, arena_str(t->arena, text), on_reply, ctx };
    t->on_send(t->ctx, note->text);
    return note;
}

static struct outbound_call *outbound_tap_http(struct outbound *outbound,
                                               const struct outbound_request *request,
                                               outbound_on_reply on_reply, void *ctx)
{
    struct outbound_tap *t = CONTAINER_OF(outbound, struct outbound_tap, outbound);
    return outbound_http(t->upstream, request, outbound_tap_reply,
                         outbound_tap_note(t, request->body, on_reply, ctx));
}

static struct outbound_call *outbound_tap_mail(struct outbound *outbound,
                                               const struct outbound_mail *mail,
                                               outbound_on_reply on_reply, void *ctx)
{
    struct outbound_tap *t = CONTAINER_OF(outbound, struct outbound_tap, outbound);
    return outbound_mail(t->upstream, mail, outbound_tap_reply,
                         outbound_tap_note(t, mail->payload, on_reply, ctx));
}

static void outbound_tap_cancel(struct outbound *outbound, struct outbound_call *call)
{
    outbound_cancel(CONTAINER_OF(outbound, struct outbound_tap, outbound)->upstream, call);
}

void outbound_tap_init(struct outbound_tap *t)
{
    static const struct outbound_ops ops = {
        .http = outbound_tap_http,
        .mail = outbound_tap_mail,
        .cancel = outbound_tap_cancel,
    };
    t->outbound.ops = &ops;
}
