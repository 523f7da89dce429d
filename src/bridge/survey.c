#include "bridge/bridge_room.h"
#include "drain/pod.h"
#include "format/jsplit.h"

#define SURVEY_PODS_MAX 500u /* a node has some hundred; one with more is not empty */

static void survey_end(struct crossing *x)
{
    struct berth *at = x->berth;
    crossing_free(x);
    if (at != NULL) {
        berth_mark(at);
    }
}

/* Whether a drain would take nothing away; also false when that cannot be told. */
static bool survey_is_drained(struct str body)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    struct jsplit split;
    struct str item;
    int more;
    jsplit_init(&split, body);
    while ((more = jsplit_next(&split, &item, &ignored)) > 0) {
        const struct jval *object = NULL;
        void *projection = NULL;
        if (json_parse(item, 0, &tmp, &object, &ignored) < 0 ||
            drain_pod_kind.project(NULL, object, &tmp, &projection, &ignored) < 0) {
            return false;
        }
        const struct drain_pod *pod = projection;
        if (!pod->daemon && !pod->mirror && !pod->finished && !drain_pod_is_skipped(pod)) {
            return false;
        }
    }
    const struct jval *metadata = NULL;
    return more == 0 && json_parse(split.metadata, 0, &tmp, &metadata, &ignored) == 0 &&
           jval_str(jval_get(metadata, STR("continue"))).n == 0;
}

static void survey_on_pods(void *ctx, const struct api_reply *reply)
{
    struct crossing *x = ctx;
    x->link_call = NULL;
    if (x->berth != NULL) {
        x->berth->drained = reply->status == 200 && survey_is_drained(reply->body);
    }
    survey_end(x);
}

static bool survey_is_cordoned(const struct api_reply *reply)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *node = NULL;
    return reply->status == 200 && json_parse(reply->body, 0, &tmp, &node, &ignored) == 0 &&
           jval_bool(jval_at(node, "spec.unschedulable"), false);
}

static void survey_on_node(void *ctx, const struct api_reply *reply)
{
    struct crossing *x = ctx;
    struct bridge *b = x->bridge;
    struct link *link = x->yard->link;
    x->link_call = NULL;
    if (x->berth != NULL) {
        x->berth->cordoned = survey_is_cordoned(reply);
    }
    if (x->berth == NULL || !x->berth->cordoned || link == NULL || !link_fresh(link)) {
        survey_end(x);
        return;
    }
    buf_reset(&b->path);
    buf_printf(&b->path, "/api/v1/pods?limit=%u&fieldSelector=spec.nodeName%%3D", SURVEY_PODS_MAX);
    client_add_segment(&b->path, x->name);
    const struct api_request request = { .verb = API_GET, .path = buf_str(&b->path) };
    x->link_call = link_send(link, &request, survey_on_pods, x);
}

void crossing_survey(struct berth *at)
{
    struct bridge *b = at->bridge;
    struct crossing *x = crossing_new(b, CROSSING_SURVEY, at, berth_machine(at)->node);
    x->yard = at->yard;
    crossing_path_node(b, x->name);
    const struct api_request request = { .verb = API_GET, .path = buf_str(&b->path) };
    x->link_call = link_send(at->yard->link, &request, survey_on_node, x);
}
