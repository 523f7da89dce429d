#include "cmd/completion_names.h"

#include "base/map.h"
#include "client/client_session.h"
#include "format/json.h"
#include "kinds/keys.h"
#include "kinds/maintenance_request.h"
#include "kube/client.h"

struct completion_names {
    struct blocking_api *api;
    usec_t until;
    struct str prefix;
    struct map seen; /* names that are printed already */
    struct arena memory;
    struct buf *out;
};

static void names_add(struct completion_names *c, struct str name)
{
    if (name.n > 0 && str_starts(name, c->prefix) && map_count(&c->seen) < COMPLETION_NAMES_MAX &&
        map_put(&c->seen, name, c) == NULL) {
        buf_printf(c->out, STR_FMT "\n", STR_ARG(name));
    }
}

/* NULL: the server did not answer in time, or has no such thing. */
static const struct jval *names_get(struct completion_names *c, struct str path, struct str accept)
{
    struct blocking_api_reply reply;
    struct err err = { 0 };
    const struct jval *root = NULL;
    usec_t left = c->until - loop_now(c->api->loop);
    if (left <= 0 ||
        blocking_api_send(c->api,
                          &(struct api_request){
                              .verb = API_GET, .path = path, .accept = accept, .timeout = left },
                          &c->memory, &reply, &err) < 0 ||
        reply.status != 200 || json_parse(reply.body, 0, &c->memory, &root, &err) < 0) {
        return NULL;
    }
    return root;
}

/* Of a list of objects: their names, with the namespace where they have one. */
static void names_add_objects(struct completion_names *c, struct str path)
{
    struct str limited =
        arena_printf(&c->memory, STR_FMT "?limit=%u", STR_ARG(path), COMPLETION_NAMES_MAX);
    const struct jval *items = jval_get(names_get(c, limited, API_METADATA_LIST), STR("items"));
    JVAL_EACH (jval_kind(items) == JARR ? items : NULL, item) {
        struct str ns = jval_str(jval_at(item, "metadata.namespace"));
        struct str name = jval_str(jval_at(item, "metadata.name"));
        names_add(c, ns.n == 0 ? name
                               : arena_printf(&c->memory, STR_FMT "/" STR_FMT, STR_ARG(ns),
                                              STR_ARG(name)));
    }
}

/* A request is known by its name and by its target. */
static void names_add_requests(struct completion_names *c)
{
    const struct jval *items =
        jval_get(names_get(c, STR(MAINTENANCE_REQUESTS_PATH), API_JSON), STR("items"));
    JVAL_EACH (jval_kind(items) == JARR ? items : NULL, item) {
        struct maintenance_request r;
        mrequest_read(item, &c->memory, &r);
        if (r.state != MR_STATE_COMPLETED && !mrequest_phase_ended(r.status.phase)) {
            names_add(c, r.name);
            names_add(c, r.target);
        }
    }
}

/* The group says in which version Machines are served. */
static void names_add_machines(struct completion_names *c)
{
    const struct jval *group = names_get(c, STR("/apis/" CAPI_GROUP), API_JSON);
    struct str version = jval_str(jval_at(group, "preferredVersion.groupVersion"));
    if (version.n > 0) {
        names_add_objects(c,
                          arena_printf(&c->memory, "/apis/" STR_FMT "/machines", STR_ARG(version)));
    }
}

void completion_names_list(struct blocking_api *api, usec_t until, unsigned names,
                           struct str prefix, struct buf *out)
{
    struct completion_names c = { .api = api, .until = until, .prefix = prefix, .out = out };
    map_init(&c.seen, 0, 0);
    if ((names & COMMAND_NAMES_NODES) != 0) {
        names_add_objects(&c, STR("/api/v1/nodes"));
    }
    if ((names & COMMAND_NAMES_REQUESTS) != 0) {
        names_add_requests(&c);
    }
    if ((names & COMMAND_NAMES_LIMITS) != 0) {
        names_add_objects(&c, STR(MAINTENANCE_LIMITS_PATH));
    }
    if ((names & COMMAND_NAMES_MAINTENANCES) != 0) {
        names_add_objects(&c, STR(NODE_MAINTENANCES_PATH));
    }
    if ((names & COMMAND_NAMES_MACHINES) != 0) {
        names_add_machines(&c);
    }
    map_done(&c.seen);
    arena_done(&c.memory);
}

/* The value that a flag of text has in the command's own struct; empty without such a flag. */
static struct str flag_text(const struct command_call *call, struct str name)
{
    const struct option *o = options_find(&call->command->options, name);
    return o == NULL ? STR_NONE : *(const struct str *)((const char *)call->config + o->offset);
}

void completion_names_add(const struct command_call *call, unsigned names, struct str prefix,
                          struct buf *out)
{
    struct client_session session;
    struct err ignored = { 0 };
    struct str context = command_kubecontext(flag_text(call, STR("context")));
    if (client_session_init(&session, flag_text(call, STR("kubeconfig")), context, &ignored) == 0) {
        session.blocking_api.retry_time = 1; /* a second try would not be in time */
        completion_names_list(&session.blocking_api, loop_now(session.loop) + COMPLETION_NAMES_TIME,
                              names, prefix, out);
    }
    client_session_done(&session);
}
