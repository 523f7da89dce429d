/* One node: its patches and their replies, back-off, and when the node is decided again. */
#include "base/alloc.h"
#include "profile/controller_internal.h"

#define WAKE_GRID MSECONDS(50) /* waits end together, so that many make one turn */
#define WARN_EVERY SECONDS(1)  /* one log line stands for many nodes that fail alike */

static const struct writer_rules managed_node_rules = {
    .conflict = { MSECONDS(500), MINUTES(5) },
    .absent = { MSECONDS(500), MINUTES(5) },
    .refused = { SECONDS(8), MINUTES(5) },
    .failed = { MSECONDS(500), MINUTES(5) },
    .urgent = true,
};

bool prio_by_wake(struct prioqueue_item *a, struct prioqueue_item *b)
{
    return CONTAINER_OF(a, struct managed_node, wake)->wake_at <
           CONTAINER_OF(b, struct managed_node, wake)->wake_at;
}

/* First come, first served; among nodes that came together the name decides. */
bool prio_by_since(struct prioqueue_item *a, struct prioqueue_item *b)
{
    const struct managed_node *left = CONTAINER_OF(a, struct managed_node, queue_item);
    const struct managed_node *right = CONTAINER_OF(b, struct managed_node, queue_item);
    if (left->since != right->since) {
        return left->since < right->since;
    }
    return str_cmp(left->item->name, right->item->name) < 0;
}

struct managed_node *managed_node_get(struct controller *c, struct store_item *item)
{
    if (item->extra == NULL) {
        struct managed_node *m = ALLOC_NEW(struct managed_node);
        m->c = c;
        m->item = item;
        writer_init(&m->writer, &c->core->client, &managed_node_rules);
        item->extra = m;
    }
    return item->extra;
}

static void managed_node_cancel_wake(struct managed_node *m)
{
    if (prioqueue_inside(&m->wake)) {
        prioqueue_take(&m->c->waking, &m->wake);
    }
}

void managed_node_free(struct managed_node *m)
{
    struct controller *c = m->c;
    managed_node_cancel_wake(m);
    turn_leave_queue(m);
    c->any_groups -= m->any_group ? 1 : 0;
    c->stats.in_flight -= m->writer.call != NULL ? 1 : 0;
    writer_cancel(&m->writer);
    hypervisor_alter_free(m);
    grant_end(m);
    node_limit_drop(m); /* the arbiter sweeps reservations that nobody asks for */
    node_drain_stop(m);
    node_notify_free(m);
    m->item->extra = NULL;
    buf_done(&m->error);
    buf_done(&m->events);
    alloc_free(m);
}

usec_t controller_monotonic(const struct controller *c, usec_t wall)
{
    usec_t now = loop_now(c->loop);
    usec_t wall_now = loop_wall(c->loop);
    if (wall == USEC_NEVER) {
        return USEC_NEVER;
    }
    return wall <= wall_now ? now : now + (wall - wall_now);
}

void managed_node_wake_at(struct managed_node *m, usec_t at)
{
    struct controller *c = m->c;
    if (at == USEC_NEVER) {
        return;
    }
    at = (at + WAKE_GRID - 1) / WAKE_GRID * WAKE_GRID;
    if (prioqueue_inside(&m->wake)) {
        if (m->wake_at <= at) {
            return;
        }
        prioqueue_take(&c->waking, &m->wake);
    }
    m->wake_at = at;
    prioqueue_put(&c->waking, &m->wake);
    loop_timer_pull(&c->wake, at);
}

usec_t managed_node_next_wake(const struct controller *c)
{
    struct prioqueue_item *first = prioqueue_first(&c->waking);
    return first == NULL ? USEC_NEVER : CONTAINER_OF(first, struct managed_node, wake)->wake_at;
}

void managed_node_wake_due(struct controller *c)
{
    usec_t now = loop_now(c->loop);
    while (managed_node_next_wake(c) <= now) {
        struct managed_node *m =
            CONTAINER_OF(prioqueue_first(&c->waking), struct managed_node, wake);
        prioqueue_take(&c->waking, &m->wake);
        store_mark(&c->core->nodes.store, m->item);
        c->queue_dirty = true;
    }
}

static void managed_node_warn(struct managed_node *m, const struct err *err)
{
    struct controller *c = m->c;
    usec_t now = loop_now(c->loop);
    if (now < c->warn_at) {
        c->warn_hidden++;
        return;
    }
    log_warn(c->log, "Failed to patch node on the API server", KV_STR("node", m->item->name),
             KV_ERR(err), KV_I64("suppressed", c->warn_hidden));
    c->warn_at = now + WARN_EVERY;
    c->warn_hidden = 0;
}

/* This node alone waits for its next try. It is not read before: if the failed patch was applied
 * after all, the next patch carries an old version and conflicts. */
static void managed_node_fail(struct managed_node *m, enum retry_verdict verdict,
                              const struct err *err)
{
    struct controller *c = m->c;
    c->stats.errors++;
    metric_add(c->metrics.errors, 1);
    managed_node_warn(m, err);
    if (mutated(c->core->config.mutations, MUTATION_DROP_FAILED_NODE)) {
        return;
    }
    m->writer.must_read = m->writer.verb == API_GET;
    m->outcome_unknown = m->outcome_unknown ||
                         (m->entering && m->writer.verb == API_PATCH && verdict != RETRY_REFUSED);
    managed_node_wake_at(m, m->writer.retry_at);
}

/* The node as it is now is in the store. */
static void managed_node_on_done(struct managed_node *m)
{
    if (m->writer.verb == API_PATCH) {
        m->outcome_unknown = false;
        node_notify_on_patched(m);
        turn_send_pending_events(m);
        if (m->entering) {
            grant_end(m); /* the node's own label counts from now on */
        }
    }
    /* The node is decided again on its newest version; mostly there is nothing left to do. */
    store_mark(&m->c->core->nodes.store, m->item);
}

static void managed_node_on_reply(void *ctx, const struct api_reply *reply)
{
    struct managed_node *m = ctx;
    struct controller *c = m->c;
    struct core *core = c->core;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    enum retry_verdict verdict =
        writer_on_reply(&m->writer, reply, &core->nodes.store, m->item->name, &r);
    c->stats.in_flight--;
    if (m->writer.verb == API_PATCH) {
        metric_observe(c->metrics.patch_seconds, (double)(loop_now(c->loop) - m->sent_at) / 1e6);
    }
    if (verdict == RETRY_DONE) {
        managed_node_on_done(m);
    } else if (verdict == RETRY_OBSERVE) {
        c->stats.conflicts++;
        metric_add(c->metrics.conflicts, 1);
        managed_node_wake_at(m, m->writer.retry_at);
    } else {
        core->bad_input += r.unreadable ? 1 : 0;
        metric_add(core->metrics.bad_input, r.unreadable ? 1 : 0);
        managed_node_fail(m, verdict, &r.err);
    }
    core_written(core);
    controller_schedule_turn(c);
}

void managed_node_send(struct managed_node *m, enum api_verb verb)
{
    struct controller *c = m->c;
    buf_reset(&c->path);
    buf_add(&c->path, NODES_PATH);
    buf_add_char(&c->path, '/');
    client_add_segment(&c->path, m->item->name);
    const struct api_request request = {
        .verb = verb,
        .path = buf_str(&c->path),
        .body = verb == API_PATCH ? buf_str(&c->body) : STR_NONE,
    };
    m->sent_at = loop_now(c->loop);
    c->stats.in_flight++;
    writer_send(&m->writer, &request, m->item->version, managed_node_on_reply, m);
}
