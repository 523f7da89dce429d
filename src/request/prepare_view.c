/*
 * What a preparation says of itself: to the request's status, to people, and in Events.
 */
#include "request/prepare_internal.h"

#include "kinds/keys.h"

void prepare_send_event(const struct prepare *q, const char *type, const char *reason,
                        const char *action, struct str note)
{
    const struct preparer_config *config = &q->preparer->config;
    if (config->log != NULL) {
        log_info(config->log, "preparation", KV_STR("node", q->spec.node),
                 KV_STR("request", q->spec.request), KV_TEXT("event", reason),
                 KV_STR("note", note));
    }
    if (config->recorder == NULL) {
        return;
    }
    recorder_add(config->recorder,
                 &(struct recorder_event){
                     .type = str_from(type),
                     .reason = str_from(reason),
                     .action = str_from(action),
                     .note = note,
                     .regarding = {
                         .kind = STR("MaintenanceRequest"),
                         .api_version = STR(MAINTENANCE_API_VERSION),
                         .name = q->spec.request,
                         .uid = q->spec.uid,
                     },
                     .related = {
                         .kind = STR("Node"),
                         .api_version = STR("v1"),
                         .name = q->spec.node,
                     },
                 });
}

/* Once for a pod and what it waits for. */
static void view_blocked_event(struct prepare *q, const struct drain_status *s)
{
    CLEANUP(buf_done)
    struct buf key = { 0 };
    buf_printf(&key, "%d " STR_FMT "/" STR_FMT " " STR_FMT, (int)s->wait, STR_ARG(s->namespace),
               STR_ARG(s->pod), STR_ARG(s->pdb));
    if (str_eq(buf_str(&key), buf_str(&q->event_key))) {
        return;
    }
    buf_reset(&q->event_key);
    buf_add(&q->event_key, buf_str(&key));
    prepare_send_event(
        q, "Warning", "DrainBlocked", "Drain",
        arena_printf(&q->texts, "pod " STR_FMT "/" STR_FMT " %s: " STR_FMT STR_FMT,
                     STR_ARG(s->namespace), STR_ARG(s->pod),
                     s->wait == DRAIN_WAIT_STUCK ? "does not go" : "cannot be evicted",
                     STR_ARG(s->reason), STR_ARG(drain_also_waiting(q->drain, &q->texts))));
}

static struct str view_drain_reason(const struct drain_status *s)
{
    switch (s->wait) {
    case DRAIN_WAIT_UNMANAGED:
        return STR("UnmanagedPods");
    case DRAIN_WAIT_PDB:
    case DRAIN_WAIT_MANY_PDBS:
        /* A budget that lets pods go one after the other is the way of things. */
        return s->blocked ? STR("PDBWouldBlock") : STR("Draining");
    case DRAIN_WAIT_NONE:
    case DRAIN_WAIT_FAILED:
    case DRAIN_WAIT_STUCK:
    case DRAIN_WAIT_COMPLETION:
    case DRAIN_WAIT_ORDER:
    case DRAIN_WAIT_EMPTYDIR:
    case DRAIN_WAIT_DAEMONSET:
    case DRAIN_WAIT_RULES:
        break;
    }
    return STR("Draining");
}

/* The pods that wait go into the key without their sentences: those have times and numbers that
 * move without anything happening. */
static void view_waiting_pods(struct prepare *q, struct prepare_view *v)
{
    struct drain_waiting_pod waiters[PREPARE_BLOCKED_MAX];
    uint32_t all = drain_waiting_pods(q->drain, &q->texts, waiters, PREPARE_BLOCKED_MAX);
    v->blocked_n = MIN(all, PREPARE_BLOCKED_MAX);
    for (uint32_t i = 0; i < v->blocked_n; i++) {
        const struct drain_waiting_pod *w = &waiters[i];
        q->blocked[i] = arena_printf(&q->texts, "pod " STR_FMT "/" STR_FMT ": " STR_FMT,
                                     STR_ARG(w->namespace), STR_ARG(w->pod), STR_ARG(w->reason));
        buf_printf(&q->key, " %d " STR_FMT "/" STR_FMT, (int)w->wait, STR_ARG(w->namespace),
                   STR_ARG(w->pod));
    }
}

static void view_drain(struct prepare *q, struct prepare_view *v)
{
    struct drain_status s;
    v->reason = STR("Draining");
    if (q->pods_err.code != 0) {
        v->message = arena_printf(&q->texts, "draining: podSelector: %s", q->pods_err.msg);
        return;
    }
    bool has_request = prepare_has_request(q);
    buf_printf(&q->key, " %d", has_request);
    if (!has_request) {
        v->message = arena_printf(&q->texts,
                                  "draining: it waits until the node carries request '" STR_FMT
                                  "' of its Machine, and with it the rules to drain by",
                                  STR_ARG(str_sub(q->spec.machine_request, 0, 128)));
        return;
    }
    if (q->drain == NULL) {
        v->message = STR("draining: it begins when the cordon is made");
        return;
    }
    drain_status(q->drain, &s);
    if (!s.synced) {
        v->message = STR("draining: the node's pods are not known yet");
        return;
    }
    v->reason = view_drain_reason(&s);
    v->pods_left = s.left;
    v->message = arena_printf(&q->texts, "draining: %u %s left", s.left,
                              s.left == 1 ? "pod is" : "pods are");
    if (s.terminating > 0) {
        v->message = arena_printf(&q->texts, STR_FMT ", %u of them on the way out",
                                  STR_ARG(v->message), s.terminating);
    }
    if (s.pod.n > 0) {
        v->message = arena_printf(&q->texts, STR_FMT "; " STR_FMT "/" STR_FMT ": " STR_FMT,
                                  STR_ARG(v->message), STR_ARG(s.namespace), STR_ARG(s.pod),
                                  STR_ARG(s.reason));
    }
    view_waiting_pods(q, v);
    if (s.blocked) {
        view_blocked_event(q, &s);
    }
}

static void view_detach(struct prepare *q, struct prepare_view *v)
{
    struct detach_status s = { 0 };
    v->reason = STR("WaitingForDetach");
    if (q->detach != NULL) {
        detach_status(q->detach, &s);
    }
    if (!s.synced) {
        v->message = STR("waiting for volumes to be detached: the attachments are not known yet");
    } else {
        v->volumes_left = s.left;
        v->message = arena_printf(
            &q->texts, "waiting for volumes to be detached: %u %s left, %u not waited for", s.left,
            s.left == 1 ? "is" : "are", s.ignored);
        v->blocked_n = detach_waiting_names(q->detach, &q->texts, q->blocked, PREPARE_BLOCKED_MAX);
    }
    if (s.last_error.n > 0) {
        v->message = arena_printf(&q->texts, STR_FMT "; " STR_FMT, STR_ARG(v->message),
                                  STR_ARG(s.last_error));
    }
    for (uint32_t i = 0; i < v->blocked_n; i++) {
        buf_printf(&q->key, " " STR_FMT, STR_ARG(q->blocked[i]));
    }
    buf_printf(&q->key, " %u", s.ignored);
}

static void view_cordon(struct prepare *q, struct prepare_view *v)
{
    v->reason = STR("Cordoning");
    struct str last_error = q->action != NULL ? cordon_error(q->action) : STR_NONE;
    if (q->cordon == CORDON_RESULT_NODE_GONE) {
        v->message = STR("the node does not exist");
    } else if (last_error.n > 0) {
        v->message =
            arena_printf(&q->texts, "the node cannot be cordoned: " STR_FMT, STR_ARG(last_error));
    } else {
        v->message = STR("the node is being cordoned");
    }
    buf_printf(&q->key, " " STR_FMT, STR_ARG(last_error));
}

/* What it waited for stays to be read: that is what somebody has to see to. */
static void view_rejected(struct prepare *q, struct prepare_view *v)
{
    bool detach = q->step == PREPARE_DETACH;
    v->reason = detach ? STR("DetachTimeout") : STR("DrainTimeout");
    v->pods_left = q->view.pods_left;
    v->volumes_left = q->view.volumes_left;
    v->blocked_n = q->view.blocked_n;
    v->deadline = USEC_NEVER;
    v->message = arena_printf(&q->texts, "the time limit has run out with %u %s left; " STR_FMT,
                              detach ? v->volumes_left : v->pods_left, detach ? "volumes" : "pods",
                              STR_ARG(q->view.message));
}

static void view_step(struct prepare *q, struct prepare_view *v)
{
    switch (q->step) {
    case PREPARE_CORDON:
        view_cordon(q, v);
        break;
    case PREPARE_DRAIN:
        view_drain(q, v);
        break;
    case PREPARE_DETACH:
        view_detach(q, v);
        break;
    case PREPARE_DRAIN_GRACE:
        v->reason = STR("Grace");
        v->message = arena_printf(&q->texts, "drained; %u seconds of grace follow",
                                  q->spec.options.drain.post_grace_s);
        break;
    case PREPARE_DETACH_GRACE:
        v->reason = STR("Grace");
        v->message = arena_printf(&q->texts, "volumes are detached; %u seconds of grace follow",
                                  q->spec.options.detach.post_grace_s);
        break;
    case PREPARE_DONE:
        v->reason = STR("Prepared");
        v->message = STR("the node is prepared");
        break;
    }
}

bool prepare_update_view(struct prepare *q)
{
    CLEANUP(buf_done)
    struct buf before = { 0 };
    struct arena old = q->texts;
    usec_t limit = prepare_step_limit(q);
    struct prepare_view v = {
        .step = q->step,
        .step_time = q->step_time,
        .rejected = q->rejected,
        .cordoned = q->cordon == CORDON_RESULT_OURS,
        .blocked_by = q->blocked,
        .deadline = limit > 0 ? q->step_time + limit : USEC_NEVER,
    };
    if (q->rejected && q->view.rejected) {
        return false; /* nothing moves any more */
    }
    q->texts = (struct arena){ .first = 512 };
    buf_add(&before, buf_str(&q->key));
    buf_reset(&q->key);
    if (q->rejected) {
        view_rejected(q, &v);
        for (uint32_t i = 0; i < v.blocked_n; i++) {
            q->blocked[i] = arena_str(&q->texts, q->blocked[i]);
        }
    } else {
        view_step(q, &v);
    }
    buf_printf(&q->key, " %d %d %d %u %u " STR_FMT, (int)v.step, v.rejected, v.cordoned,
               v.pods_left, v.volumes_left, STR_ARG(v.reason));
    q->view = v;
    arena_done(&old);
    return !str_eq(buf_str(&before), buf_str(&q->key));
}
