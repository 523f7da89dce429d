#include "tests/lib/rights_judge.h"

#include "tests/check.h"

#define NOWHERE "/apis/forbidden.example/v1/nothing"
#define FORBIDDEN                                                                                  \
    "{\"kind\":\"Status\",\"message\":\"not in its role\",\"reason\":\"Forbidden\",\"code\":403}"

void rights_judge_give(struct rights_judge *j, const char *role)
{
    for (uint32_t i = 0; i < rights_count; i++) {
        if (!str_eq(str_from(rights[i].role), str_from(role))) {
            continue;
        }
        struct str resources = str_from(rights[i].resources);
        struct str resource;
        while (str_split_next(&resources, ',', &resource)) {
            struct str verbs = str_from(rights[i].verbs);
            struct str verb;
            while (str_split_next(&verbs, ',', &verb)) {
                CHECK(j->n < RIGHTS_JUDGE_ROWS_MAX);
                j->rows[j->n++] = (struct rights_judge_row){ .right = &rights[i],
                                                             .resource = resource,
                                                             .verb = verb };
            }
        }
    }
}

/* ── what is asked for ─────────────────────────────────────────────────────────────────────── */

struct wanted {
    struct str group;
    struct str namespace;
    struct str resource; /* with its subresource: "nodes/status" */
    struct str verb;
};

/* False: everybody may, as to read the version. */
static bool wanted_read(struct str path, struct str verb, struct arena *tmp, struct wanted *ret)
{
    struct str parts[10]; /* "", apis, group, version, namespaces, …, resource, name, subresource */
    uint32_t n = 0;
    struct str rest = str_sub(path, 0, MIN(str_find_char(path, '?'), path.n));
    struct str part;
    while (n < ARRAY_LEN(parts) && str_split_next(&rest, '/', &part)) {
        parts[n++] = part; /* the first is empty */
    }
    bool core = n > 2 && str_eq(parts[1], STR("api"));
    bool named = n > 3 && str_eq(parts[1], STR("apis"));
    uint32_t at = core ? 3 : 4;
    *ret =
        (struct wanted){ .group = core ? STR("") : parts[2], .namespace = STR(""), .verb = verb };
    if ((!core && !named) || n <= at || str_eq(ret->group, STR("authorization.k8s.io"))) {
        return false;
    }
    if (n > at + 2 && str_eq(parts[at], STR("namespaces"))) {
        ret->namespace = parts[at + 1];
        at += 2;
    }
    ret->resource = parts[at];
    if (n > at + 2) {
        ret->resource =
            arena_printf(tmp, STR_FMT "/" STR_FMT, STR_ARG(parts[at]), STR_ARG(parts[at + 2]));
    }
    if (str_eq(verb, STR("get")) && n == at + 1) {
        ret->verb = STR("list");
    }
    return true;
}

static bool scope_covers(const struct rights_judge *j, enum right_scope scope, struct str namespace)
{
    switch (scope) {
    case RIGHT_CLUSTER:
        return true;
    case RIGHT_HOME:
        return str_eq(namespace, str_from(j->home[0])) || str_eq(namespace, str_from(j->home[1]));
    case RIGHT_JOBS:
        return str_eq(namespace, str_from(j->jobs));
    default:
        return false;
    }
}

static bool row_is(const struct rights_judge_row *row, const struct wanted *w)
{
    return str_eq(str_from(row->right->group), w->group) && str_eq(row->resource, w->resource) &&
           str_eq(row->verb, w->verb);
}

/* Whether it may pass. */
static bool judge(struct rights_judge *j, struct str path, struct str verb)
{
    struct wanted w;
    bool allowed = false;
    if (!wanted_read(path, verb, &j->memory, &w)) {
        return true;
    }
    for (uint32_t i = 0; i < j->n; i++) {
        if (row_is(&j->rows[i], &w) && scope_covers(j, j->rows[i].right->scope, w.namespace)) {
            j->rows[i].used = true;
            allowed = true;
        }
    }
    if (!allowed && j->foreign[0] == '\0') {
        (void)snprintf(j->foreign, sizeof(j->foreign), STR_FMT " " STR_FMT, STR_ARG(w.verb),
                       STR_ARG(path));
    }
    return allowed;
}

/* ── the door ──────────────────────────────────────────────────────────────────────────────── */

struct judged_call {
    api_on_reply on_reply;
    api_on_event on_event;
    void *ctx;
    int status;
};

static void judged_on_reply(void *ctx, const struct api_reply *reply)
{
    const struct judged_call *call = ctx;
    struct api_reply other = *reply;
    other.status = other.status == 0 ? 0 : call->status;
    other.body = STR(FORBIDDEN);
    call->on_reply(call->ctx, &other);
}

static void judged_on_event(void *ctx, const struct api_watch_event *event)
{
    const struct judged_call *call = ctx;
    struct api_watch_event other = *event;
    other.status = other.status == 0 ? 0 : call->status;
    other.line = STR(FORBIDDEN);
    call->on_event(call->ctx, &other);
}

static struct api_call *judge_send(struct api *api, const struct api_request *request,
                                   api_on_reply on_reply, void *ctx)
{
    static const struct str verbs[] = {
        [API_GET] = STR_INIT("get"),       [API_POST] = STR_INIT("create"),
        [API_PUT] = STR_INIT("update"),    [API_PATCH] = STR_INIT("patch"),
        [API_DELETE] = STR_INIT("delete"),
    };
    struct rights_judge *j = (struct rights_judge *)api;
    if (judge(j, request->path, verbs[request->verb])) {
        return api_send(j->upstream, request, on_reply, ctx);
    }
    struct judged_call *call = ARENA_NEW(&j->memory, struct judged_call);
    *call = (struct judged_call){ .on_reply = on_reply, .ctx = ctx, .status = 403 };
    return api_send(j->upstream, &(struct api_request){ .verb = API_GET, .path = STR(NOWHERE) },
                    judged_on_reply, call);
}

static void judge_cancel(struct api *api, struct api_call *call)
{
    api_cancel(((struct rights_judge *)api)->upstream, call);
}

static struct api_watch *judge_watch(struct api *api, const struct api_watch_spec *spec,
                                     api_on_event on_event, void *ctx)
{
    struct rights_judge *j = (struct rights_judge *)api;
    bool streams = str_contains(spec->path, STR("sendInitialEvents"));
    if (!streams && judge(j, spec->path, STR("watch"))) {
        return api_watch(j->upstream, spec, on_event, ctx);
    }
    struct judged_call *call = ARENA_NEW(&j->memory, struct judged_call);
    *call = (struct judged_call){ .on_event = on_event, .ctx = ctx, .status = streams ? 400 : 403 };
    struct api_watch_spec other = *spec;
    other.path = STR(NOWHERE "?watch=1");
    return api_watch(j->upstream, &other, judged_on_event, call);
}

static void judge_watch_stop(struct api *api, struct api_watch *watch)
{
    api_watch_stop(((struct rights_judge *)api)->upstream, watch);
}

struct api *rights_judge_open(struct rights_judge *j, struct api *upstream)
{
    static const struct api_ops ops = { judge_send, judge_cancel, judge_watch, judge_watch_stop };
    j->api.ops = &ops;
    j->upstream = upstream;
    return &j->api;
}

void rights_judge_done(struct rights_judge *j)
{
    arena_done(&j->memory);
}
