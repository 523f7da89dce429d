/* The writes to one MaintenanceRequest (status, state, deletion), one at a time, and what their
 * answers mean. */
#include "base/alloc.h"
#include "base/metric.h"
#include "core/core.h"
#include "format/json_writer.h"
#include "request/requests_internal.h"

#define DELETE_WATCH_WAIT SECONDS(5) /* within that time the watch shows the deletion */

const struct writer_rules request_write_rules = {
    .conflict = { MSECONDS(500), MINUTES(5) },
    .absent = { MSECONDS(500), MINUTES(5) },
    .refused = { SECONDS(8), MINUTES(5) },
    .failed = { MSECONDS(500), MINUTES(5) },
    .urgent = true,
};

static const enum api_verb request_write_verbs[] = {
    [REQUEST_WRITE_STATUS] = API_PATCH,
    [REQUEST_WRITE_STATE] = API_PATCH,
    [REQUEST_WRITE_DELETE] = API_DELETE,
    [REQUEST_WRITE_REREAD] = API_GET,
};

static void request_write_on_reply(void *ctx, const struct api_reply *reply);

void request_write_cancel(struct tracked_request *c)
{
    c->r->in_flight -= c->writer.call != NULL ? 1 : 0;
    writer_cancel(&c->writer);
    buf_reset(&c->events);
}

static void request_write_post(struct tracked_request *c, enum request_write kind)
{
    struct requests *r = c->r;
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
        .body = kind == REQUEST_WRITE_REREAD ? STR_NONE : buf_str(&r->body),
    };
    c->kind = kind;
    c->status_sent_at = kind == REQUEST_WRITE_STATUS ? loop_now(r->loop) : c->status_sent_at;
    list_del(&c->write_link);
    r->in_flight++;
    writer_send(&c->writer, &request, c->item->version, request_write_on_reply, c);
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

static void request_write_keep_events(struct tracked_request *c, const struct phase_plan *plan)
{
    buf_reset(&c->events);
    for (uint32_t i = 0; i < plan->event_n; i++) {
        const struct phase_event *event = &plan->events[i];
        buf_add_char(&c->events, event->warning ? 'W' : 'N');
        buf_add(&c->events, event->reason);
        buf_add_char(&c->events, '\n');
        struct str note = str_sub(event->note, 0, RECORDER_NOTE_BYTES_MAX);
        for (size_t k = 0; k < note.n; k++) { /* it may name what others have written */
            buf_add_char(&c->events, note.p[k] == '\0' ? ' ' : note.p[k]);
        }
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
    enum write_urgency urgency = c->writer.call != NULL ? WRITE_NOTHING : write_urgency(c, plan);
    list_del(&c->write_link);
    if (urgency == WRITE_NOTHING) {
        return;
    }
    usec_t ready_at = writer_ready_at(&c->writer, c->item->version);
    if (loop_now(r->loop) < ready_at) {
        tracked_wake_at(c, ready_at);
        return;
    }
    bool info = urgency == WRITE_INFO;
    if (r->in_flight >= (info ? REQUESTS_INFO_WRITES_MAX : REQUESTS_WRITES_MAX)) {
        list_add(info ? &r->info_write_queue : &r->write_queue, &c->write_link);
        return;
    }
    if (writer_must_read(&c->writer, c->item->version)) {
        request_write_post(c, REQUEST_WRITE_REREAD);
        return;
    }
    request_write_keep_events(c, plan);
    if (plan->state != MR_STATE_ABSENT) {
        request_write_state(c, plan->state);
    } else if (plan->delete_object) {
        writer_print_delete(c->uid, c->item->version, &r->body);
        request_write_post(c, REQUEST_WRITE_DELETE);
    } else {
        request_write_status(c, &plan->status);
    }
}

/* ── what is answered ──────────────────────────────────────────────────────────────────────── */

static void request_write_tell_trouble(const struct tracked_request *c, struct str reason,
                                       struct str note)
{
    const struct requests_config *config = &c->r->config;
    bool expired = str_eq(reason, STR("MaintenanceExpired"));
    if (config->on_trouble != NULL && (expired || str_eq(reason, STR("MaintenanceRejected")))) {
        config->on_trouble(config->ctx, &(struct core_request_news){
                                            .expired = expired,
                                            .request = c->name,
                                            .node = c->type == TARGET_NODE ? c->target : STR_NONE,
                                            .reason = note,
                                        });
    }
}

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
        request_write_tell_trouble(c, reason, note);
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

static void request_write_on_done(struct tracked_request *c, const struct jval *object)
{
    if (c->kind == REQUEST_WRITE_DELETE) {
        c->writer.retry_at = loop_now(c->r->loop) + DELETE_WATCH_WAIT;
    }
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

static void request_write_on_reply(void *ctx, const struct api_reply *reply)
{
    struct tracked_request *c = ctx;
    struct requests *r = c->r;
    CLEANUP(writer_reply_done)
    struct writer_reply got;
    enum retry_verdict verdict =
        writer_on_reply(&c->writer, reply, &r->objects.store, c->name, &got);
    r->in_flight--;
    if (verdict == RETRY_DONE) {
        request_write_on_done(c, got.object);
    } else if (verdict == RETRY_OBSERVE) {
        metric_add(r->metrics.conflicts, 1);
    } else if (verdict != RETRY_ABSENT) { /* deleted: the watch shows it soon */
        metric_add(r->metrics.errors, 1);
        log_warn(r->config.log, "Failed to write a MaintenanceRequest", KV_STR("request", c->name),
                 KV_ERR(&got.err));
    }
    tracked_mark_dirty(c); /* the next step waits, if it has to */
}
