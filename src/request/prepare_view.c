/*
 * What a preparation says of itself: to the request's status, to people, and in Events.
 */
#include "request/prepare_internal.h"

void prepare_tell(const struct prepare *q, const char *type, const char *reason, const char *action,
                  struct str note)
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
                         .api_version = STR("repairman.k8s.io/v1"),
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
static void show_tell_blocked(struct prepare *q, const struct drain_status *s)
{
    CLEANUP(buf_done)
    struct buf key = { 0 };
    buf_printf(&key, "%d " STR_FMT "/" STR_FMT " " STR_FMT, (int)s->wait, STR_ARG(s->space),
               STR_ARG(s->pod), STR_ARG(s->pdb));
    if (str_eq(buf_str(&key), buf_str(&q->told))) {
        return;
    }
    buf_reset(&q->told);
    buf_add(&q->told, buf_str(&key));
    prepare_tell(q, "Warning", "DrainBlocked", "Drain",
                 arena_printf(&q->shown, "pod " STR_FMT "/" STR_FMT " %s: " STR_FMT,
                              STR_ARG(s->space), STR_ARG(s->pod),
                              s->wait == DRAIN_WAIT_STUCK ? "does not go" : "cannot be evicted",
                              STR_ARG(s->reason)));
}

static struct str show_drain_reason(const struct drain_status *s)
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
static void show_waiters(struct prepare *q, struct prepare_view *v)
{
    struct drain_waiting_pod waiters[PREPARE_BLOCKED_MAX];
    uint32_t all = drain_waiting_pods(q->drain, &q->shown, waiters, PREPARE_BLOCKED_MAX);
    v->blocked_n = MIN(all, PREPARE_BLOCKED_MAX);
    for (uint32_t i = 0; i < v->blocked_n; i++) {
        const struct drain_waiting_pod *w = &waiters[i];
        q->blocked[i] = arena_printf(&q->shown, "pod " STR_FMT "/" STR_FMT ": " STR_FMT,
                                     STR_ARG(w->space), STR_ARG(w->pod), STR_ARG(w->reason));
        buf_printf(&q->key, " %d " STR_FMT "/" STR_FMT, (int)w->wait, STR_ARG(w->space),
                   STR_ARG(w->pod));
    }
}

static void show_drain(struct prepare *q, struct prepare_view *v)
{
    struct drain_status s;
    v->reason = STR("Draining");
    if (q->pods_err.code != 0) {
        v->message = arena_printf(&q->shown, "draining: podSelector: %s", q->pods_err.msg);
        return;
    }
    bool seen = prepare_sees_request(q);
    buf_printf(&q->key, " %d", seen);
    if (!seen) {
        v->message = arena_printf(&q->shown,
                                  "draining: it waits until the node carries request '" STR_FMT
                                  "' of its Machine, and with it the rules to drain by",
                                  STR_ARG(str_sub(q->spec.routed, 0, 128)));
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
    v->reason = show_drain_reason(&s);
    v->pods_left = s.left;
    v->message = arena_printf(&q->shown, "draining: %u %s left", s.left,
                              s.left == 1 ? "pod is" : "pods are");
    if (s.terminating > 0) {
        v->message = arena_printf(&q->shown, STR_FMT ", %u of them on the way out",
                                  STR_ARG(v->message), s.terminating);
    }
    if (s.pod.n > 0) {
        v->message =
            arena_printf(&q->shown, STR_FMT "; " STR_FMT "/" STR_FMT ": " STR_FMT,
                         STR_ARG(v->message), STR_ARG(s.space), STR_ARG(s.pod), STR_ARG(s.reason));
    }
    show_waiters(q, v);
    if (s.blocked) {
        show_tell_blocked(q, &s);
    }
}

static void show_detach(struct prepare *q, struct prepare_view *v)
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
            &q->shown, "waiting for volumes to be detached: %u %s left, %u not waited for", s.left,
            s.left == 1 ? "is" : "are", s.excused);
        v->blocked_n = detach_names(q->detach, &q->shown, q->blocked, PREPARE_BLOCKED_MAX);
    }
    if (s.trouble.n > 0) {
        v->message =
            arena_printf(&q->shown, STR_FMT "; " STR_FMT, STR_ARG(v->message), STR_ARG(s.trouble));
    }
    for (uint32_t i = 0; i < v->blocked_n; i++) {
        buf_printf(&q->key, " " STR_FMT, STR_ARG(q->blocked[i]));
    }
    buf_printf(&q->key, " %u", s.excused);
}

static void show_cordon(struct prepare *q, struct prepare_view *v)
{
    v->reason = STR("Cordoning");
    struct str trouble = q->deed != NULL ? cordon_trouble(q->deed) : STR_NONE;
    if (q->cordon == CORDON_GONE) {
        v->message = STR("the node does not exist");
    } else if (trouble.n > 0) {
        v->message =
            arena_printf(&q->shown, "the node cannot be cordoned: " STR_FMT, STR_ARG(trouble));
    } else {
        v->message = STR("the node is being cordoned");
    }
    buf_printf(&q->key, " " STR_FMT, STR_ARG(trouble));
}

/* What it waited for stays to be read: that is what somebody has to see to. */
static void show_rejected(struct prepare *q, struct prepare_view *v)
{
    bool detach = q->step == PREPARE_DETACH;
    v->reason = detach ? STR("DetachTimeout") : STR("DrainTimeout");
    v->pods_left = q->view.pods_left;
    v->volumes_left = q->view.volumes_left;
    v->blocked_n = q->view.blocked_n;
    v->deadline = USEC_NEVER;
    v->message = arena_printf(&q->shown, "the time limit has run out with %u %s left; " STR_FMT,
                              detach ? v->volumes_left : v->pods_left, detach ? "volumes" : "pods",
                              STR_ARG(q->view.message));
}

static void show_step(struct prepare *q, struct prepare_view *v)
{
    switch (q->step) {
    case PREPARE_CORDON:
        show_cordon(q, v);
        break;
    case PREPARE_DRAIN:
        show_drain(q, v);
        break;
    case PREPARE_DETACH:
        show_detach(q, v);
        break;
    case PREPARE_DRAIN_GRACE:
        v->reason = STR("Grace");
        v->message = arena_printf(&q->shown, "drained; %u seconds of grace follow",
                                  q->spec.options.drain.post_grace_s);
        break;
    case PREPARE_DETACH_GRACE:
        v->reason = STR("Grace");
        v->message = arena_printf(&q->shown, "volumes are detached; %u seconds of grace follow",
                                  q->spec.options.detach.post_grace_s);
        break;
    case PREPARE_DONE:
        v->reason = STR("Prepared");
        v->message = STR("the node is prepared");
        break;
    }
}

bool prepare_show(struct prepare *q)
{
    CLEANUP(buf_done)
    struct buf before = { 0 };
    struct arena old = q->shown;
    usec_t limit = prepare_limit(q);
    struct prepare_view v = {
        .step = q->step,
        .step_time = q->step_time,
        .rejected = q->rejected,
        .cordoned = q->cordon == CORDON_OURS,
        .blocked_by = q->blocked,
        .deadline = limit > 0 ? q->step_time + limit : USEC_NEVER,
    };
    if (q->rejected && q->view.rejected) {
        return false; /* nothing moves any more */
    }
    q->shown = (struct arena){ .first = 512 };
    buf_add(&before, buf_str(&q->key));
    buf_reset(&q->key);
    if (q->rejected) {
        show_rejected(q, &v);
        for (uint32_t i = 0; i < v.blocked_n; i++) {
            q->blocked[i] = arena_str(&q->shown, q->blocked[i]);
        }
    } else {
        show_step(q, &v);
    }
    buf_printf(&q->key, " %d %d %d %u %u " STR_FMT, (int)v.step, v.rejected, v.cordoned,
               v.pods_left, v.volumes_left, STR_ARG(v.reason));
    q->view = v;
    arena_done(&old);
    return !str_eq(buf_str(&before), buf_str(&q->key));
}
