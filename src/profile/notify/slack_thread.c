/*
 * Messages in threads: a Lease remembers the thread that is open, for all nodes and replicas.
 *
 *     LEASE → MESSAGE                            its thread is young enough
 *     LEASE → TITLE → MESSAGE → RECORD           a new one begins
 *
 * Once the title is out the thread is recorded even if the message behind it fails: the next try
 * then goes on in this thread instead of opening another.
 */
#include "base/duration.h"
#include "base/percent.h"
#include "format/json_writer.h"
#include "profile/notify/notify_call.h"

#define RECORD_TRIES_MAX 5u /* some 15 s; the message is out, only its thread would be lost */
#define RECORD_WAIT_MIN MSECONDS(500)
#define RECORD_WAIT_MAX SECONDS(10)

struct slack_thread {
    struct str title;
    struct str message;
    struct str id;      /* thread_ts */
    struct str version; /* the Lease's resourceVersion; empty: there is none yet */
    bool waiting;       /* for another call of the same lease */
    bool fresh;         /* the thread was begun by this call */
    uint32_t tries;
    struct backoff backoff;
    bool failed; /* the message, with `err` and `retry_after` */
    struct err err;
    usec_t retry_after;
};

static struct slack_thread *thread_of(const struct notify_call *call)
{
    return call->sender_data;
}

static struct str thread_lease_path(struct notify_call *call, bool collection)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/apis/coordination.k8s.io/v1/namespaces/"));
    client_add_segment(&path, notify_call_value(call, "leaseNamespace")->text);
    buf_add(&path, STR("/leases"));
    if (!collection) {
        buf_add_char(&path, '/');
        client_add_segment(&path, notify_call_value(call, "leaseName")->text);
    }
    return arena_str(&call->memory, buf_str(&path));
}

static void thread_lease_failed(struct notify_call *call, const struct api_reply *reply)
{
    struct client *client = call->notifier->client;
    struct err err = { 0 };
    usec_t wait = MAX(client_open_at(client) - loop_now(call->notifier->loop), (usec_t)0);
    client_explain(reply->status, reply->body, reply->err, &err);
    (void)err_wrap(&err, "slack thread lease '" STR_FMT "/" STR_FMT "'",
                   STR_ARG(notify_call_value(call, "leaseNamespace")->text),
                   STR_ARG(notify_call_value(call, "leaseName")->text));
    notify_call_end(call, &err, MAX(reply->retry_after, wait));
}

static void thread_end(struct notify_call *call)
{
    const struct slack_thread *t = thread_of(call);
    notify_call_end(call, t->failed ? &t->err : NULL, t->retry_after);
}

static void record_send(struct notify_call *call);

static void on_recorded(void *ctx, const struct api_reply *reply)
{
    struct notify_call *call = ctx;
    struct slack_thread *t = thread_of(call);
    enum retry_verdict verdict = client_note(call->notifier->client, call->verb, reply);
    bool again = verdict == RETRY_LATER || verdict == RETRY_QUIET;
    if (verdict == RETRY_ABSENT && t->version.n > 0) {
        t->version = STR_NONE; /* it was deleted meanwhile: a new one is made */
        again = true;
    }
    /* A conflict: somebody else has begun a thread in the same moment, and theirs goes on. */
    if (verdict == RETRY_DONE || verdict == RETRY_OBSERVE) {
        thread_end(call);
    } else if (again && ++t->tries < RECORD_TRIES_MAX) {
        usec_t wait = backoff_next(&t->backoff, loop_random(call->notifier->loop));
        usec_t at = loop_now(call->notifier->loop) + MAX(wait, reply->retry_after);
        notify_call_wait(call, MAX(at, client_open_at(call->notifier->client)), record_send);
    } else if (t->failed) {
        thread_end(call);
    } else {
        thread_lease_failed(call, reply);
    }
}

static void record_write(struct notify_call *call, struct buf *out)
{
    const struct slack_thread *t = thread_of(call);
    char stamp[TIMESTAMP_TEXT_MAX];
    struct str now = timestamp_print_micro(loop_wall(call->notifier->loop), stamp);
    int64_t seconds = notify_call_value(call, "period")->number / 1000000000;
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    if (t->version.n == 0) {
        jw_pair(&w, "apiVersion", STR("coordination.k8s.io/v1"));
        jw_pair(&w, "kind", STR("Lease"));
    }
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    if (t->version.n == 0) {
        jw_pair(&w, "name", notify_call_value(call, "leaseName")->text);
        jw_pair(&w, "namespace", notify_call_value(call, "leaseNamespace")->text);
    } else {
        jw_pair(&w, "resourceVersion", t->version);
    }
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    if (t->version.n == 0) {
        jw_pair(&w, "acquireTime", now);
    }
    jw_pair(&w, "holderIdentity", t->id);
    jw_pair_i64(&w, "leaseDurationSeconds",
                MIN(MAX(seconds, (int64_t)1), (int64_t)INT32_MAX)); /* as the API wants it */
    jw_pair(&w, "renewTime", now);
    jw_obj_end(&w);
    jw_obj_end(&w);
}

static void record_send(struct notify_call *call)
{
    bool create = thread_of(call)->version.n == 0;
    CLEANUP(buf_done)
    struct buf body = { 0 };
    record_write(call, &body);
    struct api_request request = {
        .verb = create ? API_POST : API_PATCH,
        .path = thread_lease_path(call, create),
        .content_type = create ? API_JSON : API_MERGE_PATCH,
        .body = buf_str(&body),
    };
    notify_call_api(call, &request, on_recorded);
}

static void form_add(struct buf *out, const char *name, struct str value)
{
    if (out->n > 0) {
        buf_add_char(out, '&');
    }
    buf_printf(out, "%s=", name);
    percent_add_form(out, value);
}

/* Escapes what Slack would take for its own markup. */
static void escape_add(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        switch (text.p[i]) {
        case '&':
            buf_add(out, STR("&amp;"));
            break;
        case '<':
            buf_add(out, STR("&lt;"));
            break;
        case '>':
            buf_add(out, STR("&gt;"));
            break;
        default:
            buf_add_char(out, text.p[i]);
            break;
        }
    }
}

static void post(struct notify_call *call, struct str text, outbound_on_reply on_reply)
{
    const struct slack_thread *t = thread_of(call);
    CLEANUP(buf_done)
    struct buf body = { 0 };
    CLEANUP(buf_done)
    struct buf escaped = { 0 };
    escape_add(&escaped, text);
    form_add(&body, "channel", notify_call_value(call, "channel")->text);
    form_add(&body, "text", buf_str(&escaped));
    if (t->id.n > 0) {
        form_add(&body, "thread_ts", t->id);
    }
    form_add(&body, "token", notify_call_value(call, "token")->text);
    const struct outbound_header headers[] = {
        { STR("Content-Type"), STR("application/x-www-form-urlencoded") },
    };
    struct outbound_request request = {
        .method = STR("POST"),
        .url = notify_call_value(call, "url")->text,
        .headers = headers,
        .header_n = ARRAY_LEN(headers),
        .body = buf_str(&body),
    };
    notify_call_http(call, &request, on_reply);
}

/* `*ret_id` is the posted message's own, perhaps empty. */
static int post_read_reply(struct notify_call *call, const struct outbound_reply *reply,
                           struct str *ret_id, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    char wait[DURATION_TEXT_MAX];
    if (reply->err != NULL) {
        *err = *reply->err;
        return err_wrap(err, "slack");
    }
    if (reply->status == 429 && reply->retry_after > 0) {
        return err_set(err, ERR_BUSY, "slack rate limit exceeded, retry after " STR_FMT,
                       STR_ARG(duration_print(reply->retry_after * 1000, wait)));
    }
    if (reply->status != 200) {
        return err_set(err, reply->status >= 500 ? ERR_BUSY : ERR_DENIED, "slack server error: %d",
                       reply->status);
    }
    if (json_parse(reply->body, JSON_GO, &tmp, &root, err) < 0 || jval_kind(root) != JOBJ) {
        return err_set(err, ERR_PROTO, "slack answered with something else than a JSON object");
    }
    struct str why = str_trim(jval_str(jval_get(root, STR("error"))));
    if (!jval_bool(jval_get(root, STR("ok")), false) && why.n > 0) {
        return err_set(err, ERR_DENIED, STR_FMT, STR_ARG(str_sub(why, 0, 200)));
    }
    *ret_id = arena_str(&call->memory, jval_str(jval_get(root, STR("ts"))));
    return 0;
}

static void on_message(void *ctx, const struct outbound_reply *reply)
{
    struct notify_call *call = ctx;
    struct slack_thread *t = thread_of(call);
    struct str ignored;
    if (post_read_reply(call, reply, &ignored, &t->err) < 0) {
        t->failed = true;
        t->retry_after = reply->retry_after;
    }
    if (t->fresh) {
        record_send(call);
    } else {
        thread_end(call);
    }
}

static void on_title(void *ctx, const struct outbound_reply *reply)
{
    struct notify_call *call = ctx;
    struct slack_thread *t = thread_of(call);
    struct err err = { 0 };
    int r = post_read_reply(call, reply, &t->id, &err);
    if (r == 0 && t->id.n == 0) {
        r = err_set(&err, ERR_PROTO, "slack answered without 'ts', the name of the thread");
    }
    if (r < 0) {
        notify_call_end(call, &err, reply->retry_after);
        return;
    }
    t->fresh = true;
    post(call, t->message, on_message);
}

/* Whether the Lease's thread is young enough. A Lease that somebody else made may lack anything. */
static bool thread_lease_is_valid(const struct jval *lease, usec_t now)
{
    struct timestamp renew;
    struct err ignored = { 0 };
    int64_t seconds = 0;
    return jval_i64(jval_at(lease, "spec.leaseDurationSeconds"), &seconds) && seconds >= 0 &&
           seconds <= INT32_MAX &&
           timestamp_parse(jval_str(jval_at(lease, "spec.renewTime")), &renew, &ignored) == 0 &&
           now - timestamp_to_usec(renew) <= SECONDS(seconds);
}

static void on_lease(void *ctx, const struct api_reply *reply)
{
    struct notify_call *call = ctx;
    struct slack_thread *t = thread_of(call);
    struct err err = { 0 };
    const struct jval *lease = NULL;
    enum retry_verdict verdict = client_note(call->notifier->client, API_GET, reply);
    if (verdict == RETRY_ABSENT) {
        post(call, t->title, on_title);
        return;
    }
    if (verdict != RETRY_DONE) {
        thread_lease_failed(call, reply);
        return;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    if (json_parse(reply->body, JSON_GO, &tmp, &lease, &err) < 0) {
        (void)err_wrap(&err, "slack thread lease");
        notify_call_end(call, &err, 0);
        return;
    }
    t->version = arena_str(&call->memory, jval_str(jval_at(lease, "metadata.resourceVersion")));
    if (!thread_lease_is_valid(lease, loop_wall(call->notifier->loop))) {
        post(call, t->title, on_title);
        return;
    }
    t->id = arena_str(&call->memory, jval_str(jval_at(lease, "spec.holderIdentity")));
    if (t->id.n == 0) {
        (void)err_set(&err, ERR_INVALID, "slack thread leases has no holder");
        notify_call_end(call, &err, 0);
        return;
    }
    post(call, t->message, on_message);
}

static void thread_begin(struct notify_call *call)
{
    struct client *client = call->notifier->client;
    if (!client_open(client)) {
        notify_call_wait(call, client_open_at(client), thread_begin);
        return;
    }
    struct api_request request = { .verb = API_GET, .path = thread_lease_path(call, false) };
    thread_of(call)->waiting = false;
    notify_call_api(call, &request, on_lease);
}

/* The first of all calls with this lease goes; the others wait for it. */
static bool is_first(const struct notify_call *call)
{
    LIST_EACH (&call->notifier->calls, item) {
        const struct notify_call *other = CONTAINER_OF(item, struct notify_call, link);
        if (other == call) {
            return true;
        }
        if (other->sender == call->sender &&
            str_eq(notify_call_value(other, "leaseName")->text,
                   notify_call_value(call, "leaseName")->text) &&
            str_eq(notify_call_value(other, "leaseNamespace")->text,
                   notify_call_value(call, "leaseNamespace")->text)) {
            return false;
        }
    }
    return false;
}

static void thread_wake(struct notify_call *call)
{
    struct slack_thread *t = thread_of(call);
    if (t != NULL && t->waiting && !call->timer.armed && is_first(call)) {
        notify_call_wait(call, loop_now(call->notifier->loop), thread_begin);
    }
}

static int thread_send(struct notify_call *call, struct err *err)
{
    struct slack_thread *t = ARENA_NEW(&call->memory, struct slack_thread);
    int r = notify_call_render(call, "title", &t->title, err);
    if (r == 0) {
        r = notify_call_render(call, "message", &t->message, err);
    }
    if (r < 0) {
        return r;
    }
    t->backoff = (struct backoff){ .base = RECORD_WAIT_MIN, .max = RECORD_WAIT_MAX };
    call->sender_data = t;
    if (is_first(call)) {
        thread_begin(call);
    } else {
        t->waiting = true;
    }
    return 0;
}

const struct notify_sender notify_slack_thread = {
    .name = "slackThread",
    .send = thread_send,
    .wake = thread_wake,
};
