/* Gates that ask a server outside the API server: Prometheus or Alertmanager. Only addresses that
 * the controller's flag --allow-url names are asked, no redirect is followed, and a token comes
 * only from a Secret that was made for this: whoever writes a NodeMaintenance must not be able to
 * send the controller, or a Secret, anywhere they like. */
#include "base/base64.h"
#include "core/prometheus.h"
#include "operation/operations_internal.h"

#define REMOTE_REPLY_MAX ((size_t)1024 * 1024)
#define TOKEN_KEY STR("token")
#define FORM_TYPE STR("application/x-www-form-urlencoded")

/* A prefix ends where a name ends: "http://prom" does not allow "http://prom.example". */
static bool url_has_prefix(struct str url, struct str prefix)
{
    struct str rest;
    if (prefix.n == 0 || !str_cut_prefix(url, prefix, &rest)) {
        return false;
    }
    return rest.n == 0 || prefix.p[prefix.n - 1] == '/' || rest.p[0] == '/' || rest.p[0] == '?';
}

bool gate_url_is_allowed(struct str allowed, struct str url)
{
    struct str prefix;
    bool climbs = str_contains(url, STR("..")) || str_contains(url, STR("%"));
    bool found = false;
    while (allowed.n > 0 && str_split_next(&allowed, ',', &prefix)) {
        found = found || url_has_prefix(url, str_trim(prefix));
    }
    return found && !climbs;
}

static struct str remote_field(const struct gate_question *q, const char *key)
{
    return jval_str(jval_get(q->fields, str_from(key)));
}

static void remote_on_reply(void *ctx, const struct outbound_reply *reply);

static void remote_send(struct gate_question *q)
{
    struct operations *o = q->o;
    CLEANUP(buf_done)
    struct buf url = { 0 };
    CLEANUP(buf_done)
    struct buf form = { 0 };
    struct outbound_header headers[2];
    uint32_t n = 0;
    bool post = q->kind == GATE_QUERY && !q->second;
    const char *path = q->kind == GATE_QUERY ? PROMETHEUS_QUERY_PATH
                       : q->second           ? "/api/v2/alerts"
                                             : "/api/v1/alerts";
    if (q->kind == GATE_QUERY) {
        usec_t wall = server_clock_wall(&o->core->client.clock);
        prometheus_add_form(&form, remote_field(q, "query"), wall);
    }
    prometheus_add_url(&url, remote_field(q, "url"), path, post ? STR_NONE : buf_str(&form));
    if (q->token.n > 0) {
        headers[n] = (struct outbound_header){ STR("Authorization"), q->token };
        n++;
    }
    if (post) {
        headers[n] = (struct outbound_header){ STR("Content-Type"), FORM_TYPE };
        n++;
    }
    o->gate_calls++;
    q->outbound_call = outbound_http(o->config.outbound,
                                     &(struct outbound_request){
                                         .method = post ? STR("POST") : STR("GET"),
                                         .url = buf_str(&url),
                                         .headers = headers,
                                         .header_n = n,
                                         .body = post ? buf_str(&form) : STR_NONE,
                                         .timeout = GATE_CALL_TIMEOUT,
                                         .reply_max = REMOTE_REPLY_MAX,
                                     },
                                     remote_on_reply, q);
}

/* A server that does not take the first form is asked in the second one. */
static bool remote_has_another_form(const struct gate_question *q, int status)
{
    bool other = q->kind == GATE_QUERY ? status == 405 || status == 501
                                       : status == 404 || status == 405 || status == 410;
    return other && !q->second;
}

static void remote_on_reply(void *ctx, const struct outbound_reply *reply)
{
    struct gate_question *q = ctx;
    q->outbound_call = NULL;
    q->o->gate_calls--;
    if (reply->status == 0) {
        gate_question_answer(q, GATE_REFUSES, "it cannot be asked: %s", reply->err->msg);
    } else if (remote_has_another_form(q, reply->status)) {
        q->second = true;
        remote_send(q);
    } else if (q->kind == GATE_QUERY) {
        gate_query_hear(q, reply->status, reply->body);
    } else {
        gate_alerts_hear(q, reply->status, reply->body);
    }
}

void gate_remote_ask(struct gate_question *q)
{
    struct operations *o = q->o;
    struct str secret = jval_str(jval_at(q->fields, "secretRef.name"));
    q->second = false;
    if (o->config.outbound == NULL) {
        gate_question_answer(q, GATE_REFUSES, "%s", "it cannot be asked from here");
    } else if (secret.n == 0) {
        remote_send(q);
    } else {
        buf_reset(&q->path);
        buf_add(&q->path, STR("/api/v1/namespaces/"));
        client_add_segment(&q->path, o->config.jobs_namespace);
        buf_add(&q->path, STR("/secrets/"));
        client_add_segment(&q->path, secret);
        gate_question_get(q);
    }
}

void gate_remote_read(struct gate_question *q, const struct jval *secret)
{
    struct str key = jval_str(jval_at(q->fields, "secretRef.key"));
    struct str name = jval_str(jval_at(q->fields, "secretRef.name"));
    struct str token = STR_NONE;
    const struct jval *labels = jval_at(secret, "metadata.labels");
    key = key.n > 0 ? key : TOKEN_KEY;
    if (!str_eq(jval_str(jval_get(labels, KEY_SECRET_USE)), SECRET_USE_OUTBOUND)) {
        gate_question_answer(q, GATE_REFUSES,
                             "Secret '" STR_FMT "' has no label " KEY_SECRET_USE_TEXT "=outbound",
                             STR_ARG(name));
    } else if (!base64_decode(jval_str(jval_get(jval_get(secret, STR("data")), key)),
                              &q->token_memory, &token) ||
               str_trim(token).n == 0) {
        gate_question_answer(q, GATE_REFUSES, "Secret '" STR_FMT "' has no key '" STR_FMT "'",
                             STR_ARG(name), STR_ARG(key));
    } else {
        token = str_trim(token);
        q->token = arena_printf(&q->token_memory, "Bearer " STR_FMT, STR_ARG(token));
        remote_send(q);
    }
}
