/*
 * Requests as people see them, in the order of the queue: for the dashboard, `drydock status` and
 * `drydock limits`.
 */
#include <stdlib.h>

#include "request/limits_report.h"
#include "request/requests_internal.h"

uint64_t requests_turns(const struct requests *r)
{
    return r->turns;
}

uint32_t requests_count(const struct requests *r)
{
    return store_count(&r->objects.store);
}

static bool tracked_is_queued(const struct tracked_request *c)
{
    const struct maintenance_request *m = c->item->object;
    return m->status.phase <= MR_PHASE_PENDING && c->ask != NULL;
}

/* Those in the queue as the arbiter serves them, then the others by name. */
static int tracked_order(const void *left, const void *right)
{
    const struct tracked_request *a = *(const struct tracked_request *const *)left;
    const struct tracked_request *b = *(const struct tracked_request *const *)right;
    bool queued = tracked_is_queued(a);
    if (queued != tracked_is_queued(b)) {
        return queued ? -1 : 1;
    }
    if (queued && a->asked.last != b->asked.last) {
        return a->asked.last ? 1 : -1;
    }
    if (queued && a->asked.priority != b->asked.priority) {
        return a->asked.priority > b->asked.priority ? -1 : 1;
    }
    if (queued && a->asked.since != b->asked.since) {
        return a->asked.since < b->asked.since ? -1 : 1;
    }
    return queued ? str_cmp(a->uid, b->uid) : str_cmp(a->name, b->name);
}

/* What the deadline of a request that holds something means. */
static struct str tracked_at_deadline(const struct tracked_request *c)
{
    const struct mrequest_status *s =
        &((const struct maintenance_request *)c->item->object)->status;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct limit_options options;
    if (c->ask == NULL || s->deadline <= 0 || s->limit_n == 0) {
        return STR_NONE;
    }
    ask_options(c->ask, &tmp, &options);
    return limits_report_at_deadline(s->phase, s->step, &options);
}

static void tracked_view(const struct tracked_request *c, struct requests_view *ret)
{
    const struct maintenance_request *m = c->item->object;
    const struct mrequest_status *s = &m->status;
    *ret = (struct requests_view){
        .name = c->name,
        .uid = c->uid,
        .client = m->client,
        .type = m->type,
        .namespace = m->namespace,
        .target = m->target,
        .state = m->state == MR_STATE_ABSENT ? mrequest_state_name(MR_STATE_PENDING)
                                             : mrequest_state_name(m->state),
        .phase = mrequest_phase_name(s->phase == MR_PHASE_ABSENT ? MR_PHASE_PENDING : s->phase),
        .step = mrequest_step_name(s->step),
        .reason = s->reason,
        .message = s->message,
        .position = s->position,
        .priority = m->priority,
        .waits = s->phase <= MR_PHASE_PENDING && m->state <= MR_STATE_PENDING,
        .last = !tracked_is_queued(c) || c->asked.last,
        .ended = mrequest_phase_ended(s->phase),
        .since = mrequest_status_since(s) > 0 ? mrequest_status_since(s) : m->created,
        .deadline = s->deadline > 0 ? s->deadline : USEC_NEVER,
        .at_deadline = tracked_at_deadline(c),
        .next = USEC_NEVER,
        .limits = s->limits,
        .limit_n = s->limit_n,
    };
    if (!tracked_is_queued(c)) {
        return;
    }
    /* Of those that wait, what the arbiter says now is newer than what was written. */
    struct ask_view view;
    ask_view(c->ask, &view);
    if (view.stage == ASK_WAITING && view.message.n > 0) {
        ret->reason = view.reason;
        ret->message = view.message;
        ret->position = view.position;
        ret->next = view.next;
        ret->limits = view.limits;
        ret->limit_n = view.limit_n;
        ret->limit = view.limit;
        ret->blocker = view.blocker;
    }
}

void requests_each(const struct requests *r, struct arena *out,
                   bool (*fn)(void *ctx, const struct requests_view *view), void *ctx)
{
    uint32_t n = 0;
    const struct tracked_request **tracked =
        ARENA_ARRAY(out, const struct tracked_request *, store_count(&r->objects.store));
    LIST_EACH (&r->tracked, link) {
        tracked[n++] = CONTAINER_OF(link, struct tracked_request, link);
    }
    if (n > 0) {
        qsort(tracked, n, sizeof(tracked[0]), tracked_order);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct requests_view view;
        tracked_view(tracked[i], &view);
        if (!fn(ctx, &view)) {
            return;
        }
    }
}
