/* Requests of visits whose record is gone. A NodeState goes with its Node, and the record of a
 * visit with it: nobody would complete the visit's request then, and what it holds of limits would
 * be held for ever. Before one is completed, the NodeState is read once more: what a watch has not
 * brought yet is no reason. */
#include "operation/operations_internal.h"

#define READ_RETRY SECONDS(5)
#define EXIT_LOST STR("75") /* EX_TEMPFAIL of sysexits.h, as in visit_steps.c */

static const struct writer_rules lost_rules = {
    .conflict = { MSECONDS(20), SECONDS(2) },
    .absent = { SECONDS(1), MINUTES(1) },
    .refused = { SECONDS(10), MINUTES(5) },
    .failed = { MSECONDS(500), SECONDS(30) },
};

void lost_request_init(struct operations *o)
{
    writer_init(&o->lost.writer, &o->core->client, &lost_rules);
}

void lost_request_done(struct operations *o)
{
    struct lost_request *l = &o->lost;
    o->in_flight -= l->call != NULL ? 1 : 0;
    o->in_flight -= l->writer.call != NULL ? 1 : 0;
    if (l->call != NULL) {
        api_cancel(o->core->client.api, STEAL(l->call));
    }
    writer_cancel(&l->writer);
    buf_done(&l->name);
    buf_done(&l->visit);
    *l = (struct lost_request){ 0 };
}

static bool visit_is_recorded(const struct operations *o, struct str visit)
{
    MAP_EACH (&o->states.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct node_state *s = item->object;
        if (s->visit.phase != VISIT_NONE && str_eq(s->visit.id, visit)) {
            return true;
        }
    }
    return false;
}

static const struct store_item *lost_request_find(const struct operations *o)
{
    MAP_EACH (&o->requests.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct maintenance_request *m = item->object;
        bool over = m->state == MR_STATE_COMPLETED || mrequest_phase_ended(m->status.phase);
        if (m->visit.n > 0 && !over && !m->deleting && !visit_is_recorded(o, m->visit)) {
            return item;
        }
    }
    return NULL;
}

/* ── reading once more ─────────────────────────────────────────────────────────────────────── */

static void lost_request_on_state(void *ctx, const struct api_reply *reply)
{
    struct operations *o = ctx;
    struct lost_request *l = &o->lost;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *state = NULL;
    struct err err = { 0 };
    l->call = NULL;
    o->in_flight--;
    enum retry_verdict verdict = client_note(&o->core->client, API_GET, reply);
    bool read = verdict == RETRY_DONE && json_parse(reply->body, JSON_GO, &tmp, &state, &err) == 0;
    struct str visit = jval_str(jval_at(state, "status.visit.id"));
    l->confirmed = reply->status == 404 || (read && !str_eq(visit, buf_str(&l->visit)));
    if (!l->confirmed) {
        l->retry_at = loop_now(o->loop) + READ_RETRY;
    }
    operations_schedule(o);
}

static void lost_request_read(struct operations *o, const struct maintenance_request *m)
{
    struct lost_request *l = &o->lost;
    buf_reset(&l->visit);
    buf_add(&l->visit, m->visit);
    l->confirmed = false;
    if (loop_now(o->loop) < l->retry_at) {
        loop_timer_pull(&o->turn, l->retry_at);
        return;
    }
    buf_reset(&o->path);
    buf_add(&o->path, STR(OPERATION_PATH "/namespaces/"));
    client_add_segment(&o->path, o->config.namespace);
    buf_add(&o->path, STR("/nodestates/"));
    client_add_segment(&o->path, m->target);
    o->in_flight++;
    l->call = api_send(o->core->client.api,
                       &(struct api_request){ .verb = API_GET, .path = buf_str(&o->path) },
                       lost_request_on_state, o);
}

/* ── completing it ─────────────────────────────────────────────────────────────────────────── */

static void lost_request_on_written(void *ctx, const struct api_reply *reply)
{
    struct operations *o = ctx;
    struct lost_request *l = &o->lost;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    o->in_flight--;
    l->confirmed = false;
    enum retry_verdict verdict =
        writer_on_reply(&l->writer, reply, &o->requests.store, buf_str(&l->name), &r);
    if (verdict != RETRY_DONE && verdict != RETRY_OBSERVE) {
        log_warn(o->log,
                 "the MaintenanceRequest of a visit whose Node is gone could not be written",
                 KV_STR("request", buf_str(&l->name)), KV_ERR(&r.err));
    }
    operations_schedule(o);
    core_written(o->core);
}

static void lost_request_complete(struct operations *o, const struct store_item *item)
{
    struct lost_request *l = &o->lost;
    const struct maintenance_request *m = item->object;
    bool began = m->state == MR_STATE_IN_PROGRESS;
    usec_t at = writer_ready_at(&l->writer, item->version);
    if (at > loop_now(o->loop)) {
        loop_timer_pull(&o->turn, at);
        return;
    }
    buf_reset(&l->name);
    buf_add(&l->name, m->name);
    buf_reset(&o->path);
    buf_add(&o->path, STR(MAINTENANCE_REQUESTS_PATH "/"));
    client_add_segment(&o->path, m->name);
    buf_reset(&o->body);
    mrequest_print_change(
        &(struct mrequest_change){
            .version = arena_printf(&o->tmp, "%llu", (unsigned long long)item->version),
            .uid = m->uid,
            .state = MR_STATE_COMPLETED,
            .exit_code = began ? EXIT_LOST : STR_NONE,
            .withdrawn = !began,
        },
        &o->body);
    o->in_flight++;
    writer_send(&l->writer,
                &(struct api_request){
                    .verb = API_PATCH, .path = buf_str(&o->path), .body = buf_str(&o->body) },
                item->version, lost_request_on_written, o);
}

void lost_request_look(struct operations *o)
{
    struct lost_request *l = &o->lost;
    if (l->call != NULL || l->writer.call != NULL || !operations_may_send(o) ||
        !client_open(&o->core->client)) {
        return;
    }
    const struct store_item *item = lost_request_find(o);
    if (mutated(o->core->client.mutations, MUTATION_REQUEST_LEFT)) {
        return;
    }
    const struct maintenance_request *m = item != NULL ? item->object : NULL;
    if (m == NULL) {
        return;
    }
    if (l->confirmed && str_eq(buf_str(&l->visit), m->visit)) {
        lost_request_complete(o, item);
    } else {
        lost_request_read(o, m);
    }
}
