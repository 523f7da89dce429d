#include "core/crd_install.h"

#include "base/alloc.h"
#include "format/mergepatch.h"
#include "kinds/crd.h"

#define CRD_PATH "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

struct crd_install {
    struct crd_install_config config;
    size_t crd_index; /* the CRD at hand */
    bool written;     /* by us, since we began with it: what differs now is the server's own way */
    bool finished;    /* on_done was called */
    enum api_verb verb; /* of the call in flight */
    struct api_call *call;
    struct loop_timer timer;
    struct backoff backoff;
    struct arena memory; /* of the CRD at hand */
    struct str name;
    struct tree *wanted;
};

static void crd_install_finish(struct crd_install *i, const struct err *err)
{
    i->finished = true;
    i->config.on_done(i->config.ctx, err);
}

static void crd_install_retry(struct crd_install *i)
{
    struct client *client = i->config.client;
    usec_t wait = backoff_next(&i->backoff, loop_random(client->loop));
    loop_timer_set(&i->timer, MAX(loop_now(client->loop) + wait, client_open_at(client)));
}

/* Takes up the next one; the timer reads it. */
static void crd_install_next_crd(struct crd_install *i)
{
    arena_reset(&i->memory);
    i->wanted = tree_from(&i->memory, crd_object(crd_at(i->crd_index), &i->memory));
    i->name = tree_text_at(i->wanted, "metadata.name");
    i->written = false;
    backoff_reset(&i->backoff);
    loop_timer_set(&i->timer, loop_now(i->config.client->loop));
}

static void crd_install_on_reply(void *ctx, const struct api_reply *reply);

static void crd_install_send(struct crd_install *i, enum api_verb verb, struct str body)
{
    struct str path =
        verb == API_POST ? STR(CRD_PATH) : arena_concat(&i->memory, STR(CRD_PATH "/"), i->name);
    i->verb = verb;
    i->call = api_send(i->config.client->api,
                       &(struct api_request){
                           .verb = verb,
                           .path = path,
                           .content_type = verb == API_PATCH ? API_MERGE_PATCH : API_JSON,
                           .body = body,
                       },
                       crd_install_on_reply, i);
}

static void crd_install_read(void *ctx)
{
    struct crd_install *i = ctx;
    crd_install_send(i, API_GET, STR_NONE);
}

static bool crd_install_is_served(const struct tree *crd)
{
    TREE_EACH (tree_at(crd, "status.conditions"), condition) {
        if (str_eq(tree_text_at(condition, "type"), STR("Established"))) {
            return str_eq(tree_text_at(condition, "status"), STR("True"));
        }
    }
    return false;
}

/* What makes `found` as we want it, and nothing else of it: labels and conversion may be others'.
 */
static int crd_install_patch(struct crd_install *i, const struct tree *found, struct str *ret,
                             bool *ret_same, struct err *err)
{
    struct arena *a = &i->memory;
    struct tree *patch = tree_obj(a);
    struct tree *after;
    const struct tree *annotations = tree_at(i->wanted, "metadata.annotations");
    if (annotations != NULL) {
        tree_set_at(a, patch, "metadata.annotations", tree_clone(a, annotations));
    }
    tree_set_at(a, patch, "spec", tree_clone(a, tree_get(i->wanted, STR("spec"))));
    if (tree_truth(tree_at(found, "spec.preserveUnknownFields"), false)) {
        /* It was born as v1beta1, where schemas were advice. */
        tree_set_at(a, patch, "spec.preserveUnknownFields", tree_bool(a, false));
    }
    int r = mergepatch_apply(found, patch, a, &after, err);
    if (r < 0) {
        return r;
    }
    *ret_same = tree_eq(found, after);
    tree_set_at(a, patch, "metadata.resourceVersion",
                tree_str(a, tree_text_at(found, "metadata.resourceVersion")));
    *ret = tree_json(a, patch);
    return 0;
}

static void crd_install_on_found(struct crd_install *i, struct str body)
{
    struct err err = { 0 };
    struct tree *found;
    struct str patch;
    bool same;
    if (tree_parse(body, &i->memory, &found, &err) < 0 ||
        crd_install_patch(i, found, &patch, &same, &err) < 0) {
        crd_install_retry(i); /* half an answer: the next one is whole */
    } else if (!same && !i->written) {
        crd_install_send(i, API_PATCH, patch);
    } else if (!crd_install_is_served(found)) {
        crd_install_retry(i);
    } else if (++i->crd_index < crd_count()) {
        crd_install_next_crd(i);
    } else {
        crd_install_finish(i, NULL);
    }
}

static void crd_install_on_written(struct crd_install *i)
{
    i->written = true;
    if (i->config.on_written != NULL) {
        i->config.on_written(i->config.ctx, i->name, i->verb == API_POST);
    }
    loop_timer_set(&i->timer, loop_now(i->config.client->loop));
}

static void crd_install_on_reply(void *ctx, const struct api_reply *reply)
{
    struct crd_install *i = ctx;
    enum api_verb verb = i->verb;
    i->call = NULL;
    enum retry_verdict verdict = client_note(i->config.client, verb, reply);
    bool absent = verdict == RETRY_ABSENT;
    if (verdict == RETRY_DONE && verb == API_GET) {
        crd_install_on_found(i, reply->body);
    } else if (verdict == RETRY_DONE) {
        crd_install_on_written(i);
    } else if (absent && verb == API_GET) {
        crd_install_send(i, API_POST, tree_json(&i->memory, i->wanted));
    } else if (verdict == RETRY_REFUSED || (absent && verb == API_POST)) {
        struct err err = { 0 };
        client_explain(reply->status, reply->body, reply->err, &err);
        (void)err_wrap(&err, "CRD '" STR_FMT "' cannot be %s", STR_ARG(i->name),
                       verb == API_GET    ? "read"
                       : verb == API_POST ? "created"
                                          : "updated");
        crd_install_finish(i, &err);
    } else {
        crd_install_retry(i); /* somebody else wrote it, or the server is not well: look again */
    }
}

struct crd_install *crd_install_new(const struct crd_install_config *config)
{
    struct crd_install *i = ALLOC_NEW(struct crd_install);
    i->config = *config;
    i->backoff = (struct backoff){ .base = CRD_INSTALL_POLL_BASE, .max = CRD_INSTALL_POLL_MAX };
    loop_timer_init(&i->timer, config->client->loop, crd_install_read, i);
    crd_install_next_crd(i);
    return i;
}

void crd_install_free(struct crd_install *i)
{
    if (i == NULL) {
        return;
    }
    if (i->call != NULL) {
        api_cancel(i->config.client->api, i->call);
    }
    loop_timer_done(&i->timer);
    arena_done(&i->memory);
    alloc_free(i);
}
