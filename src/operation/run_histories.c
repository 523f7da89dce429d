/*
 * What was done on machines, written to their ConfigMaps (kinds/run_history.h) when a visit has
 * ended. One machine at a time: nobody waits for it. It is read, then written under the version
 * that was read, so nothing is lost between two leaders; what cannot be written after some tries is
 * left out, since nothing is decided by it.
 */
#include "base/alloc.h"
#include "kinds/run_history.h"
#include "operation/operations_internal.h"

#define PENDING_MAX 1000u /* machines that wait; more are left out */
#define TRIES_MAX 5u
#define RETRY_AFTER SECONDS(5)

/* What one visit adds. */
struct run_history {
    struct list link;
    struct arena memory;
    struct str machine;
    struct str name; /* of the ConfigMap */
    struct buf lines;
    struct buf old;   /* what is there */
    uint64_t version; /* of it; 0 = it is not there */
    bool known;       /* whether it is has been found out */
    uint32_t tries;
};

static void history_free(struct operations *o, struct run_history *h)
{
    list_del(&h->link);
    o->history_n--;
    buf_done(&h->lines);
    buf_done(&h->old);
    arena_done(&h->memory);
    alloc_free(h);
}

void histories_free(struct operations *o)
{
    if (o->history_call != NULL) {
        api_cancel(o->core->client.api, STEAL(o->history_call));
    }
    LIST_EACH (&o->histories, link) {
        history_free(o, CONTAINER_OF(link, struct run_history, link));
    }
}

void histories_add(struct operations *o, struct str machine, const struct visit_record *v)
{
    if (o->history_n >= PENDING_MAX) {
        log_warn(o->log, "the history of a machine is not written: too many wait",
                 KV_STR("node", machine));
        return;
    }
    struct run_history *h = ALLOC_NEW(struct run_history);
    h->machine = arena_str(&h->memory, machine);
    h->name = run_history_name(machine, &h->memory);
    list_add(&o->histories, &h->link);
    o->history_n++;
    for (uint32_t i = 0; i < v->run_n; i++) {
        const struct visit_run *run = &v->runs[i];
        if (run->phase == VISIT_RUN_SUCCEEDED || run->phase == VISIT_RUN_SKIPPED ||
            run->phase == VISIT_RUN_FAILED) {
            run_history_print(
                &(struct run_history_entry){
                    .time = o->now,
                    .node = machine,
                    .maintenance = run->maintenance,
                    .operation = run->operation,
                    .result = visit_run_phase_name(run->phase),
                    .reason = run->reason,
                    .message = run->message,
                    .attempt = run->attempt,
                    .took = run->started > 0 && run->since > run->started
                                ? run->since - run->started
                                : 0,
                    .rebooted = v->reboot_id.n > 0,
                },
                &h->lines);
        }
    }
    if (h->lines.n == 0) {
        history_free(o, h);
    }
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static struct run_history *history_first(const struct operations *o)
{
    return CONTAINER_OF(o->histories.next, struct run_history, link);
}

static void history_fail(struct operations *o, struct run_history *h, const struct api_reply *reply)
{
    struct err err = { 0 };
    h->known = false;
    o->history_retry_at = loop_now(o->loop) + (reply->status == 409 ? 0 : RETRY_AFTER);
    if (++h->tries < TRIES_MAX) {
        return;
    }
    client_explain(reply->status, reply->body, reply->err, &err);
    log_warn(o->log, "the history of a machine could not be written", KV_STR("node", h->machine),
             KV_ERR(&err));
    history_free(o, h);
}

static void history_learn(struct run_history *h, const struct api_reply *reply)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *v = NULL;
    struct err err = { 0 };
    h->known = true;
    h->version = 0;
    buf_reset(&h->old);
    if (reply->status == 200 && json_parse(reply->body, JSON_GO, &tmp, &v, &err) == 0) {
        h->version = store_version(v);
        buf_add(&h->old, jval_str(jval_at(v, "data." RUN_HISTORY_KEY)));
    }
}

static void history_on_reply(void *ctx, const struct api_reply *reply)
{
    struct operations *o = ctx;
    struct run_history *h = history_first(o);
    enum api_verb verb = !h->known ? API_GET : h->version > 0 ? API_PATCH : API_POST;
    o->history_call = NULL;
    o->in_flight--;
    (void)client_note(&o->core->client, verb, reply); /* the status is looked at here */
    if (verb == API_GET && (reply->status == 200 || reply->status == 404)) {
        history_learn(h, reply);
    } else if (verb != API_GET && reply->status >= 200 && reply->status < 300) {
        history_free(o, h);
    } else {
        history_fail(o, h, reply);
    }
    operations_schedule(o);
    core_written(o->core);
}

static void history_print_body(const struct operations *o, const struct run_history *h,
                               struct buf *body)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct json_writer w = json_writer_on(body);
    run_history_append(buf_str(&h->old), buf_str(&h->lines), &text);
    jw_obj(&w);
    if (h->version > 0) {
        writer_add_version(&w, h->version);
    } else {
        jw_pair(&w, "apiVersion", STR("v1"));
        jw_pair(&w, "kind", STR("ConfigMap"));
        jw_key(&w, STR("metadata"));
        jw_obj(&w);
        jw_pair(&w, "name", h->name);
        jw_pair(&w, "namespace", o->config.namespace);
        jw_key(&w, STR("labels"));
        jw_obj(&w);
        jw_pair(&w, KEY_HISTORY_TEXT, KEYS_TRUE);
        jw_obj_end(&w);
        jw_obj_end(&w);
    }
    jw_key(&w, STR("data"));
    jw_obj(&w);
    jw_pair(&w, "node", h->machine);
    jw_pair(&w, RUN_HISTORY_KEY, buf_str(&text));
    jw_obj_end(&w);
    jw_obj_end(&w);
}

static void history_send(struct operations *o, struct run_history *h)
{
    struct api_request request = { .verb = API_GET };
    buf_reset(&o->path);
    buf_add(&o->path, STR("/api/v1/namespaces/"));
    client_add_segment(&o->path, o->config.namespace);
    buf_add(&o->path, STR("/configmaps"));
    buf_reset(&o->body);
    if (h->known) {
        request.verb = h->version > 0 ? API_PATCH : API_POST;
        request.content_type = h->version > 0 ? API_MERGE_PATCH : STR_NONE;
        history_print_body(o, h, &o->body);
        request.body = buf_str(&o->body);
    }
    if (request.verb != API_POST) {
        buf_add_char(&o->path, '/');
        client_add_segment(&o->path, h->name);
    }
    request.path = buf_str(&o->path);
    o->in_flight++;
    o->history_call = api_send(o->core->client.api, &request, history_on_reply, o);
}

void histories_write(struct operations *o)
{
    if (o->history_call != NULL || list_empty(&o->histories) || !operations_may_send(o) ||
        !client_open(&o->core->client)) {
        return;
    }
    if (loop_now(o->loop) < o->history_retry_at) {
        loop_timer_pull(&o->turn, o->history_retry_at);
        return;
    }
    history_send(o, history_first(o));
}
