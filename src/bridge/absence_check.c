/*
 * absence_check: whether a Node that the watch does not show is really gone. Only two live reads,
 * BRIDGE_ABSENT_AFTER apart, that are both answered with 404 say so.
 */
#include "bridge/bridge_internal.h"

static void absence_check_on_reply(void *ctx, const struct api_reply *reply)
{
    struct in_flight *f = ctx;
    struct machine_state *ms = f->machine;
    struct bridge *b = f->bridge;
    usec_t now = loop_now(b->loop);
    f->link_call = NULL;
    bool same_node = ms != NULL && str_eq(f->name, machine_object(ms)->node);
    in_flight_free(f);
    if (ms == NULL) {
        return;
    }
    if (same_node && reply->status != 404) {
        ms->missed_at = 0;
        ms->absent = false;
        machine_wake_at(ms, now + BRIDGE_FAILED_MAX); /* unless the watch shows the Node before */
        return;
    }
    if (same_node) {
        ms->absent = ms->absent || mutated(b->config.mutations, MUTATION_MISSED_ONCE) ||
                     (ms->missed_at != 0 && now >= ms->missed_at + BRIDGE_ABSENT_AFTER);
        ms->missed_at = ms->missed_at == 0 ? now : ms->missed_at;
    }
    machine_mark(ms);
}

void absence_check_start(struct machine_state *ms)
{
    usec_t due = ms->missed_at == 0 ? 0 : ms->missed_at + BRIDGE_ABSENT_AFTER;
    if (ms->in_flight[IN_FLIGHT_ABSENCE_CHECK] != NULL) {
        return;
    }
    if (loop_now(ms->bridge->loop) < due) {
        machine_wake_at(ms, due);
    } else {
        (void)in_flight_get_node(ms, IN_FLIGHT_ABSENCE_CHECK, API_METADATA, absence_check_on_reply);
    }
}
