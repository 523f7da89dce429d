#include "kube/podlist.h"
#include "profile/inquiry_room.h"

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

/* One is enough. */
static bool pods_visit(void *ctx, const struct jval *pod)
{
    bool *found = ctx;
    *found = pod_prefers_operational(pod);
    return !*found;
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
    if (verdict == RETRY_DONE &&
        podlist_read(reply->body, pods_visit, &found, &a->page, &err) == 0) {
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
    podlist_add_path(&path,
                     &(struct podlist_request){ .node = a->node, .page = buf_str(&a->page) });
    struct api_request request = { .verb = API_GET, .path = buf_str(&path) };
    a->call = api_send(a->q->config.client->api, &request, affinity_on_reply, a);
}

void affinity_ask(struct ask *a)
{
    buf_reset(&a->page);
    affinity_send(a);
}
