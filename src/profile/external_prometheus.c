/* The query of a prometheusInstant check: its URL, and what Prometheus answered. */
#include "core/prometheus.h"
#include "profile/external_internal.h"

#define PROMETHEUS_TIMEOUT SECONDS(30)
/* One element is wanted; the limit lets a query with many elements get its own error. */
#define PROMETHEUS_REPLY_MAX ((size_t)4 * 1024 * 1024)

/* ── reply ─────────────────────────────────────────────────────────────────────────────────── */

static int prometheus_value(const struct jval *data, double *ret, struct err *err)
{
    const struct jval *result = jval_get(data, STR("result"));
    if (!str_eq(jval_str(jval_get(data, STR("resultType"))), STR("vector")) ||
        jval_kind(result) != JARR) {
        return err_set(err, ERR_INVALID, "result from prometheus is not a vector");
    }
    if (result->n != 1) {
        return err_set(err, ERR_INVALID, "result does not contain exactly one element");
    }
    if (!prometheus_sample(jval_get(jval_first(result), STR("value")), ret)) {
        return err_set(err, ERR_PROTO, "result from prometheus has no value that is a number");
    }
    return 0;
}

static void prometheus_warnings(const struct jval *list, struct arena *out,
                                struct facts_prometheus *ret)
{
    if (jval_kind(list) != JARR || list->n == 0) {
        return;
    }
    struct str *warnings = ARENA_ARRAY(out, struct str, list->n);
    JVAL_EACH (list, v) {
        warnings[ret->warning_n++] = jval_str(v);
    }
    ret->warnings = warnings;
}

static int prometheus_read(int status, struct str body, struct arena *out,
                           struct facts_prometheus *ret, struct err *err)
{
    const struct jval *root = NULL;
    const struct jval *data = NULL;
    int r = prometheus_parse(status, body, out, &root, err);
    if (r < 0) {
        return r;
    }
    prometheus_warnings(jval_get(root, STR("warnings")), out, ret);
    r = prometheus_data(status, root, &data, err);
    return r < 0 ? r : prometheus_value(data, &ret->value, err);
}

/* Whoever waits for an answer that is not too old wants to know of it, the same or another. */
static void prometheus_put(struct fact_query *q, const struct facts_prometheus *answer)
{
    (void)facts_put_prometheus(q->e->facts, q->index, answer);
    q->changed = true;
}

void prometheus_put_error(struct fact_query *q, const struct err *err)
{
    struct facts_prometheus answer = {
        .known = true,
        .error = str_from(err->msg),
        .asked = q->asked,
        .answered = loop_wall(q->e->loop),
    };
    prometheus_put(q, &answer);
}

/* A proxy, a server that starts or the network failed: that may pass soon. */
static bool prometheus_is_transient(const struct outbound_reply *reply)
{
    if (reply->status == 0) {
        return reply->err->code != ERR_INVALID && reply->err->code != ERR_LIMIT;
    }
    return reply->status == 429 || reply->status == 502 || reply->status == 503 ||
           reply->status == 504;
}

/* Prometheus refused the query itself, and would do so again.
 */
static bool prometheus_has_answered(int status)
{
    return status / 100 == 2 || status == 400 || status == 422;
}

static void prometheus_send(struct fact_query *q);

static void prometheus_on_reply(void *ctx, const struct outbound_reply *reply)
{
    struct fact_query *q = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct facts_prometheus answer = {
        .known = true,
        .asked = q->asked,
        .answered = loop_wall(q->e->loop),
    };
    struct err err = { 0 };
    q->outbound_call = NULL;
    if ((reply->status == 405 || reply->status == 501) && !q->use_get) {
        q->use_get = true;
        prometheus_send(q);
        return;
    }
    int r = 0;
    if (reply->status == 0) {
        err = *reply->err;
        r = err_wrap(&err, "prometheus cannot be asked");
    } else {
        r = prometheus_read(reply->status, reply->body, &tmp, &answer, &err);
    }
    if (r < 0 && prometheus_has_answered(reply->status)) {
        prometheus_put_error(q, &err);
        fact_query_finish(q);
        return;
    }
    if (r < 0) {
        fact_query_fail(q, prometheus_is_transient(reply), reply->retry_after, &err);
        return;
    }
    prometheus_put(q, &answer);
    fact_query_finish(q);
}

static void prometheus_send(struct fact_query *q)
{
    static const struct outbound_header form_type = {
        .name = STR_INIT("Content-Type"),
        .value = STR_INIT("application/x-www-form-urlencoded"),
    };
    CLEANUP(buf_done)
    struct buf form = { 0 };
    CLEANUP(buf_done)
    struct buf url = { 0 };
    prometheus_add_form(&form, q->query, q->asked);
    prometheus_add_url(&url, q->url, PROMETHEUS_QUERY_PATH, q->use_get ? buf_str(&form) : STR_NONE);
    struct outbound_request request = {
        .method = q->use_get ? STR("GET") : STR("POST"),
        .url = buf_str(&url),
        .headers = &form_type,
        .header_n = q->use_get ? 0 : 1,
        .body = q->use_get ? STR_NONE : buf_str(&form),
        .timeout = PROMETHEUS_TIMEOUT,
        .reply_max = PROMETHEUS_REPLY_MAX,
    };
    q->outbound_call = outbound_http(q->e->config.outbound, &request, prometheus_on_reply, q);
}

void prometheus_start(struct fact_query *q)
{
    if (q->e->config.outbound == NULL) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_INVALID, "prometheus cannot be asked from here");
        prometheus_put_error(q, &err);
        fact_query_finish(q);
        return;
    }
    q->use_get = false;
    prometheus_send(q);
}
