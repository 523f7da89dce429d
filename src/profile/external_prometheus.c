/* The query of a prometheusInstant check: its URL, and what Prometheus answered. */
#include "base/percent.h"
#include "format/gofloat.h"
#include "profile/external_internal.h"

#define PROMETHEUS_TIMEOUT SECONDS(30)
/* One element is wanted; the limit lets a query with many elements get its own error. */
#define PROMETHEUS_REPLY_MAX ((size_t)4 * 1024 * 1024)
#define PROMETHEUS_TEXT_MAX 200u /* of Prometheus' error messages, which repeat the query */

/* ── request ───────────────────────────────────────────────────────────────────────────────── */

static void prometheus_form(const struct fact_query *q, struct buf *out)
{
    buf_add(out, STR("query="));
    percent_add_form(out, q->query);
    buf_printf(out, "&time=%lld", (long long)(q->asked / SECONDS(1)));
    unsigned micro = (unsigned)(q->asked % SECONDS(1));
    unsigned digits = 6;
    for (; micro > 0 && micro % 10 == 0; micro /= 10) {
        digits--;
    }
    if (micro > 0) {
        buf_printf(out, ".%0*u", (int)digits, micro);
    }
}

/* The API's path is added to the path of the configured URL, whose own query is kept. */
static void prometheus_url(const struct fact_query *q, struct str form, struct buf *out)
{
    struct str base;
    struct str own_query;
    (void)str_cut(q->url, STR("#"), &base, &(struct str){ 0 });
    (void)str_cut(base, STR("?"), &base, &own_query);
    while (str_cut_suffix(base, STR("/"), &base)) {
    }
    buf_add(out, base);
    buf_add(out, STR("/api/v1/query"));
    if (own_query.n > 0 || form.n > 0) {
        buf_add_char(out, '?');
        buf_add(out, own_query);
        buf_add(out, own_query.n > 0 && form.n > 0 ? STR("&") : STR(""));
        buf_add(out, form);
    }
}

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
    /* [ time, "value" ] */
    const struct jval *sample = jval_get(jval_first(result), STR("value"));
    bool pair = jval_kind(sample) == JARR && sample->n == 2;
    if (!pair || !gofloat_parse(jval_str(jval_next(sample, jval_first(sample))), ret)) {
        return err_set(err, ERR_PROTO, "result from prometheus has no value that is a number");
    }
    return 0;
}

static int prometheus_refusal(int status, const struct jval *root, struct err *err)
{
    struct str type = jval_str(jval_get(root, STR("errorType")));
    struct str text = jval_str(jval_get(root, STR("error")));
    enum err_code code = status / 100 == 5 ? ERR_BUSY : ERR_INVALID;
    if (type.n == 0 && text.n == 0) {
        return err_set(err, code, "prometheus answered %d", status);
    }
    type = str_sub(type, 0, PROMETHEUS_TEXT_MAX);
    text = str_sub(text, 0, PROMETHEUS_TEXT_MAX);
    return err_set(err, code, "prometheus answered %d: " STR_FMT ": " STR_FMT, status,
                   STR_ARG(type), STR_ARG(text));
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
    struct err broken = { 0 };
    int r = json_parse(body, JSON_GO, out, &root, &broken);
    bool good = status / 100 == 2;
    if (!good) {
        return prometheus_refusal(status, root, err);
    }
    if (r < 0 || jval_kind(root) != JOBJ) {
        return err_set(err, ERR_PROTO, "the answer of prometheus is no JSON object");
    }
    prometheus_warnings(jval_get(root, STR("warnings")), out, ret);
    if (!str_eq(jval_str(jval_get(root, STR("status"))), STR("success"))) {
        return prometheus_refusal(status, root, err);
    }
    return prometheus_value(jval_get(root, STR("data")), &ret->value, err);
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
    prometheus_form(q, &form);
    prometheus_url(q, q->use_get ? buf_str(&form) : STR_NONE, &url);
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
