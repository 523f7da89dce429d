#include "format/jsplit.h"
#include "profile/inquiry_room.h"

#define PODS_PAGE 100 /* a page of full pods is some 1 MB, and mostly the first one is enough */

/* A matchExpression with exactly "maintenance-state In [operational]". */
static bool pod_term_prefers_operational(const struct jval *expression)
{
    const struct jval *values = jval_get(expression, STR("values"));
    return str_eq(jval_str(jval_get(expression, STR("key"))), LABEL_STATE) &&
           str_eq(jval_str(jval_get(expression, STR("operator"))), STR("In")) &&
           jval_kind(values) == JARR && values->n == 1 &&
           str_eq(jval_str(jval_first(values)), STR("operational"));
}

static bool pod_prefers_operational(const struct jval *pod)
{
    const struct jval *terms =
        jval_at(pod, "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution");
    JVAL_EACH (terms, term) {
        const struct jval *expressions = jval_at(term, "preference.matchExpressions");
        JVAL_EACH (expressions, expression) {
            if (pod_term_prefers_operational(expression)) {
                return true;
            }
        }
    }
    return false;
}

/* Answers whether one was found; `page` becomes where the list goes on. */
static int pods_read(struct str list, struct buf *page, bool *ret_found, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct jsplit split;
    struct str item;
    int r = 0;
    *ret_found = false;
    buf_reset(page);
    jsplit_init(&split, list);
    while ((r = jsplit_next(&split, &item, err)) > 0) {
        const struct jval *pod = NULL;
        arena_reset(&tmp);
        if (json_parse(item, JSON_GO, &tmp, &pod, err) < 0) {
            return err_wrap(err, "a pod");
        }
        if (pod_prefers_operational(pod)) {
            *ret_found = true;
            return 0;
        }
    }
    if (r < 0) {
        return r;
    }
    const struct jval *metadata = NULL;
    arena_reset(&tmp);
    if (split.metadata.n > 0 && json_parse(split.metadata, JSON_GO, &tmp, &metadata, err) < 0) {
        return err_wrap(err, "a list's metadata");
    }
    buf_add(page, jval_str(jval_get(metadata, STR("continue"))));
    return 0;
}

void affinity_tell(struct ask *a, const struct err *err)
{
    struct facts_affinity answer = {
        .known = true,
        .error = str_from(err->msg),
        .asked = a->asked,
    };
    a->changed |= facts_put_affinity(a->q->facts, a->node, &answer);
}

static void affinity_send(struct ask *a);

static void affinity_on_reply(void *ctx, const struct api_reply *reply)
{
    struct ask *a = ctx;
    struct err err = { 0 };
    bool found = false;
    a->call = NULL;
    enum retry_verdict verdict = client_note(a->q->config.client, API_GET, reply);
    if (verdict == RETRY_DONE && pods_read(reply->body, &a->page, &found, &err) == 0) {
        if (!found && a->page.n > 0) {
            affinity_send(a);
            return;
        }
        struct facts_affinity answer = { .known = true, .has = found, .asked = a->asked };
        a->changed |= facts_put_affinity(a->q->facts, a->node, &answer);
        ask_finish(a);
        return;
    }
    if (verdict != RETRY_DONE) {
        client_explain(reply->status, reply->body, reply->err, &err);
    }
    (void)err_wrap(&err, "list the pods of node '" STR_FMT "'", STR_ARG(a->node));
    /* A list that expired half-way says nothing bad about the server. */
    ask_fail(a, verdict == RETRY_QUIET || verdict == RETRY_RELIST, reply->retry_after, &err);
}

static void affinity_send(struct ask *a)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/api/v1/pods?fieldSelector=spec.nodeName%3D"));
    client_add_segment(&path, a->node);
    buf_printf(&path, "&limit=%d", PODS_PAGE);
    if (a->page.n > 0) {
        buf_add(&path, STR("&continue="));
        client_add_segment(&path, buf_str(&a->page));
    }
    struct api_request request = { .verb = API_GET, .path = buf_str(&path) };
    a->call = api_send(a->q->config.client->api, &request, affinity_on_reply, a);
}

void affinity_ask(struct ask *a)
{
    buf_reset(&a->page);
    affinity_send(a);
}
