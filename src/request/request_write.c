/* The writes to one MaintenanceRequest (status, state, deletion), one at a time, and what their
 * answers mean. */
#include "base/alloc.h"
#include "format/json_writer.h"
#include "base/metric.h"
#include "request/requests_internal.h"

#define DELETE_WATCH_WAIT SECONDS(5) /* within that time the watch shows the deletion */
#define REFUSED_FAILURES 4u          /* a refusal starts with a wait of some seconds */

static const enum api_verb request_write_verbs[] = {
    [REQUEST_WRITE_STATUS] = API_PATCH,
    [REQUEST_WRITE_STATE] = API_PATCH,
    [REQUEST_WRITE_DELETE] = API_DELETE,
    [REQUEST_WRITE_REREAD] = API_GET,
};

static void request_write_on_reply(void *ctx, const struct api_reply *reply);

void request_write_cancel(struct tracked_request *c)
{
    if (c->call != NULL) {
        api_cancel(c->r->config.client->api, STEAL(c->call));
        c->r->in_flight--;
        c->r->config.client->urgent--;
    }
    buf_reset(&c->events);
}

static void request_write_post(struct tracked_request *c, enum request_write kind)
{
    struct requests *r = c->r;
    ASSERT(c->call == NULL);
    buf_reset(&r->path);
    buf_add(&r->path, STR(MAINTENANCE_REQUESTS_PATH));
    buf_add_char(&r->path, '/');
    client_add_segment(&r->path, c->name);
    if (kind == REQUEST_WRITE_STATUS) {
        buf_add(&r->path, STR("/status"));
    }
    const struct api_request request = {
        .verb = request_write_verbs[kind],
        .path = buf_str(&r->path),
        .content_type = request_write_verbs[kind] == API_PATCH ? API_MERGE_PATCH : STR_NONE,
        .body = kind == REQUEST_WRITE_REREAD ? STR_NONE : buf_str(&r->body),
    };
    c->kind = kind;
    c->version = c->item->version;
    c->status_sent_at = kind == REQUEST_WRITE_STATUS ? loop_now(r->loop) : c->status_sent_at;
    list_del(&c->write_link);
    r->in_flight++;
    r->config.client->urgent++;
    c->call = api_send(r->config.client->api, &request, request_write_on_reply, c);
}

/* ── what is written ───────────────────────────────────────────────────────────────────────── */

/* The request's resourceVersion; empty only under a mutation of the tests. */
static struct str request_write_version(const struct tracked_request *c, struct arena *out)
{
    if (mutated(c->r->config.client->mutations, MUTATION_SKIP_RV)) {
        return STR_NONE;
    }
    return arena_printf(out, "%llu", (unsigned long long)c->item->version);
}

static void request_write_status(struct tracked_request *c, const struct mrequest_status *status)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    buf_reset(&c->r->body);
    mrequest_print_status(status, request_write_version(c, &tmp), &c->r->body);
    c->grant = status->grant;
    request_write_post(c, REQUEST_WRITE_STATUS);
}

static void request_write_state(struct tracked_request *c, enum mrequest_state state)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct mrequest_change change = {
        .version = request_write_version(c, &tmp),
        .state = state,
    };
    buf_reset(&c->r->body);
    mrequest_print_change(&change, &c->r->body);
    c->state = state;
    request_write_post(c, REQUEST_WRITE_STATE);
}

static void request_write_delete(struct tracked_request *c)
{
    struct buf *body = &c->r->body;
    buf_reset(body);
    struct json_writer w = json_writer_on(body);
    CLEANUP(buf_done)
    struct buf version = { 0 };
    buf_printf(&version, "%llu", (unsigned long long)c->item->version);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("v1"));
    jw_pair(&w, "kind", STR("DeleteOptions"));
    jw_key(&w, STR("preconditions"));
    jw_obj(&w);
    jw_pair(&w, "resourceVersion", buf_str(&version));
    jw_pair(&w, "uid", c->uid);
    jw_obj_end(&w);
    jw_obj_end(&w);
    request_write_post(c, REQUEST_WRITE_DELETE);
}

static void request_write_keep_events(struct tracked_request *c, const struct phase_plan *plan)
{
    buf_reset(&c->events);
    for (uint32_t i = 0; i < plan->event_n; i++) {
        const struct phase_event *event = &plan->events[i];
        buf_add_char(&c->events, event->warning ? 'W' : 'N');
        buf_add(&c->events, event->reason);
        buf_add_char(&c->events, '\n');
        buf_add(&c->events, str_sub(event->note, 0, RECORDER_NOTE_BYTES_MAX));
        buf_add_char(&c->events, '\0');
    }
}

/* How long a write that only informs people may wait. */
static usec_t request_write_info_interval(const struct mrequest_status *status)
{
    if (status->phase == MR_PHASE_PREPARING) {
        return STATUS_STEPS_EVERY;
    }
    return status->position > STATUS_NEAR ? STATUS_FAR_EVERY : STATUS_EVERY;
}

enum write_urgency { WRITE_NOTHING, WRITE_SOON, WRITE_INFO };

/* Whether there is something to write, and how much it matters. */
static enum write_urgency write_urgency(struct tracked_request *c, const struct phase_plan *plan)
{
    const struct maintenance_request *m = c->item->object;
    if (plan->state != MR_STATE_ABSENT || plan->delete_object) {
        return WRITE_SOON;
    }
    if (plan->undo || plan->status.phase == MR_PHASE_ABSENT ||
        mrequest_status_same(&plan->status, &m->status)) {
        return WRITE_NOTHING;
    }
    if (m->status.phase == MR_PHASE_ABSENT && plan->status.phase == MR_PHASE_PENDING) {
        return WRITE_INFO; /* the first status, which only says that the request waits */
    }
    if (!mrequest_status_same_but_info(&plan->status, &m->status)) {
        return WRITE_SOON;
    }
    usec_t due = c->status_sent_at + request_write_info_interval(&plan->status);
    if (loop_now(c->r->loop) < due) {
        tracked_wake_at(c, due);
        return WRITE_NOTHING;
    }
    return WRITE_INFO;
}

void request_write_send(struct tracked_request *c, const struct phase_plan *plan)
{
    struct requests *r = c->r;
    struct client *client = r->config.client;
    usec_t now = loop_now(r->loop);
    enum write_urgency urgency = c->call != NULL ? WRITE_NOTHING : write_urgency(c, plan);
    list_del(&c->write_link);
    if (urgency == WRITE_NOTHING) {
        return;
    }
    usec_t not_before = MAX(c->retry_at, client_open(client) ? 0 : client_open_at(client));
    if (now < not_before) {
        tracked_wake_at(c, not_before);
        return;
    }
    bool info = urgency == WRITE_INFO;
    if (r->in_flight >= (info ? REQUESTS_INFO_WRITES_MAX : REQUESTS_WRITES_MAX)) {
        list_add(info ? &r->info_write_queue : &r->write_queue, &c->write_link);
        return;
    }
    if (c->reread && c->item->version <= c->version) {
        if (now < c->reread_at) {
            tracked_wake_at(c, c->reread_at);
        } else {
            request_write_post(c, REQUEST_WRITE_REREAD);
        }
        return;
    }
    c->reread = false;
    request_write_keep_events(c, plan);
    if (plan->state != MR_STATE_ABSENT) {
        request_write_state(c, plan->state);
    } else if (plan->delete_object) {
        request_write_delete(c);
    } else {
        request_write_status(c, &plan->status);
    }
}

/* ── what is answered ──────────────────────────────────────────────────────────────────────── */

static void request_write_send_events(struct tracked_request *c)
{
    struct requests *r = c->r;
    struct str rest = buf_str(&c->events);
    struct str line;
    while (rest.n > 0 && str_split_next(&rest, '\0', &line)) {
        struct str reason;
        struct str note;
        if (line.n < 2) {
            continue;
        }
        (void)str_cut(str_sub(line, 1, SIZE_MAX), STR("\n"), &reason, &note); /* always there */
        log_info(r->config.log, "maintenance request", KV_STR("request", c->name),
                 KV_STR("target", c->target), KV_STR("event", reason), KV_STR("note", note));
        if (str_eq(reason, STR("ForgedApproval"))) {
            metric_add(r->metrics.forged, 1);
        } else if (str_eq(reason, STR("RequestAdopted"))) {
            metric_add(r->metrics.adopted, 1);
        }
        if (r->config.recorder != NULL) {
            recorder_add(r->config.recorder, &(struct recorder_event){
                                                 .type = line.p[0] == 'W' ? STR("Warning")
                                                                          : STR("Normal"),
                                                 .reason = reason,
                                                 .action = reason,
                                                 .note = note,
                                                 .regarding = {
                                                     .kind = STR("MaintenanceRequest"),
                                                     .api_version = STR(MAINTENANCE_API_VERSION),
                                                     .name = c->name,
                                                     .uid = c->uid,
                                                 },
                                             });
        }
    }
    buf_reset(&c->events);
}

static void request_write_fail(struct tracked_request *c, enum retry_verdict verdict,
                               const struct err *err)
{
    struct requests *r = c->r;
    if (verdict != RETRY_ABSENT) { /* deleted: the watch shows it soon */
        metric_add(r->metrics.errors, 1);
        log_warn(r->config.log, "Failed to write a MaintenanceRequest", KV_STR("request", c->name),
                 KV_ERR(err));
    }
    if (verdict == RETRY_REFUSED) {
        c->backoff.failures = MAX(c->backoff.failures, REFUSED_FAILURES);
    }
    c->reread = true; /* the write may have been done all the same */
    c->reread_at = 0;
    c->retry_at = loop_now(r->loop) + backoff_next(&c->backoff, loop_random(r->loop));
    tracked_wake_at(c, c->retry_at);
}

/* The server silently drops a field that its schema does not know. */
static void request_write_check_grant_kept(const struct tracked_request *c,
                                           const struct jval *object)
{
    struct requests *r = c->r;
    if (c->grant > 0 && !r->prunes_grant &&
        jval_get(jval_get(object, STR("status")), STR("grant")) == NULL) {
        r->prunes_grant = true;
        log_warn(r->config.log, "The CRD of MaintenanceRequests is older than this program: two "
                                "controllers that both believe to lead cannot tell the grants of "
                                "one request apart; apply what drydock crds prints");
    }
}

static void request_write_on_object(struct tracked_request *c, struct str body)
{
    struct requests *r = c->r;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *object = NULL;
    struct err err = { 0 };
    int result = json_parse(body, 0, &tmp, &object, &err);
    /* The answer to a deletion is the object as it was, or a Status: nothing to learn. */
    if (result == 0 && c->kind != REQUEST_WRITE_DELETE) {
        result = store_learn(&r->objects.store, object, &err);
    }
    if (result < 0) {
        (void)err_wrap(&err, "the answer cannot be read");
        request_write_fail(c, RETRY_LATER, &err);
        return;
    }
    c->reread = false;
    c->retry_at = c->kind == REQUEST_WRITE_DELETE ? loop_now(r->loop) + DELETE_WATCH_WAIT : 0;
    backoff_reset(&c->backoff);
    if (c->kind == REQUEST_WRITE_STATUS) {
        request_write_check_grant_kept(c, object);
    }
    if (c->kind == REQUEST_WRITE_STATE && c->state == MR_STATE_APPROVED) {
        c->approved_by_us = true;
    }
    if (c->kind == REQUEST_WRITE_STATUS || c->kind == REQUEST_WRITE_STATE) {
        request_write_send_events(c);
    }
}

static void request_write_on_conflict(struct tracked_request *c)
{
    struct requests *r = c->r;
    metric_add(r->metrics.conflicts, 1);
    /* The watch brings the newer version. If it does not, the object is read. */
    c->reread = true;
    if (c->item->version <= c->version) {
        store_await(c->item);
        c->reread_at = loop_now(r->loop) + backoff_next(&c->backoff, loop_random(r->loop));
        tracked_wake_at(c, c->reread_at);
    }
}

static void request_write_on_reply(void *ctx, const struct api_reply *reply)
{
    struct tracked_request *c = ctx;
    struct requests *r = c->r;
    c->call = NULL;
    r->in_flight--;
    r->config.client->urgent--;
    enum retry_verdict verdict = client_note(r->config.client, request_write_verbs[c->kind], reply);
    if (verdict == RETRY_DONE) {
        request_write_on_object(c, reply->body);
    } else if (verdict == RETRY_OBSERVE) {
        request_write_on_conflict(c);
    } else {
        struct err err = { 0 };
        client_explain(reply->status, reply->body, reply->err, &err);
        request_write_fail(c, verdict, &err);
    }
    tracked_mark_dirty(c);
}
