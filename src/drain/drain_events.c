/*
 * What a drain tells people: why a pod waits, in a sentence, and the Events on pods and nodes.
 */
#include "base/duration.h"
#include "drain/drain_internal.h"

#define DRAIN_TEXT_PODS_MAX 10u /* named in one sentence */

/* The names of all budgets that cover the pod. */
static void explain_pdbs(const struct drain_pod_state *p, struct buf *out)
{
    const struct drains *ds = p->drain->drains;
    struct str namespace = drain_namespace(p->item);
    const char *gap = "";
    MAP_EACH (&ds->pdbs.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        if (pdb_covers(item->object, namespace, drain_pod_of(p))) {
            buf_printf(out, "%s" STR_FMT, gap, STR_ARG(drain_name(item)));
            gap = ", ";
        }
    }
}

static void explain_pdb(const struct drain_pod_state *p, struct buf *out)
{
    const struct drains *ds = p->drain->drains;
    const struct pdb_state *w = p->pdb;
    if (w == NULL) {
        buf_printf(out, "a budget refuses: " STR_FMT, STR_ARG(buf_str(&p->server_message)));
        if (ds->pdbs_unwatched) {
            buf_printf(out, "; budgets cannot be watched, so evictions are tried: %s",
                       ds->pdbs.trouble.code != 0 ? ds->pdbs.trouble.msg
                                                  : "no list of them has come");
        }
        return;
    }
    const struct pdb *b = pdb_of(w);
    struct str name = drain_name(w->item);
    if (!b->status_current) {
        buf_printf(out, "budget " STR_FMT " has changed and is not counted yet", STR_ARG(name));
    } else if (b->allowed <= 0) {
        buf_printf(out,
                   "budget " STR_FMT " allows no disruption: %lld of %lld wanted pods are healthy",
                   STR_ARG(name), (long long)b->healthy, (long long)b->desired);
        if (b->expected > 0 && b->desired >= b->expected) {
            buf_printf(out,
                       "; it can never allow one, because it wants all %lld: more replicas would "
                       "help, or a budget that spares one",
                       (long long)b->expected);
        }
    } else if (w->refused_version >= w->item->version) {
        buf_printf(out, "budget " STR_FMT " refuses: " STR_FMT, STR_ARG(name),
                   STR_ARG(p->server_message.n > 0 ? buf_str(&p->server_message)
                                                   : STR("its status is about to change")));
    } else {
        buf_printf(out, "budget " STR_FMT " allows %lld, and %u under way before this one",
                   STR_ARG(name), (long long)b->allowed, w->unsettled_n);
    }
}

static void explain_stuck(const struct drain_pod_state *p, struct buf *out)
{
    char text[DURATION_TEXT_MAX];
    const struct drain_pod *pod = drain_pod_of(p);
    usec_t span = loop_now(p->drain->drains->loop) - p->deleting_at;
    span -= span % SECONDS(1);
    buf_printf(out, "still there " STR_FMT " after its deletion began",
               STR_ARG(duration_print(span * 1000, text)));
    if (pod->finalizer.n > 0) {
        buf_printf(out, ", held by finalizer " STR_FMT, STR_ARG(str_sub(pod->finalizer, 0, 128)));
    } else if (p->force_deleted_at >= 0) {
        buf_add(out, STR(", although deleted without grace"));
    }
}

static void explain_completion(const struct drain_pod_state *p, struct buf *out)
{
    const struct drain_rule *rule = drain_pod_verdict(p).rule;
    if (rule != NULL) {
        buf_printf(out, "it is waited for until it is gone (MachineDrainRule '" STR_FMT "')",
                   STR_ARG(rule->name));
    } else if (drain_has_rules(p->drain)) {
        buf_add(out, STR("it wishes to complete, and is waited for until it is gone"));
    } else {
        buf_add(out, STR("it wishes to complete, and is waited for"));
    }
}

static void explain_order(const struct drain_pod_state *p, struct buf *out)
{
    const struct drain_rule *rule = drain_pod_verdict(p).rule;
    buf_printf(out, "its turn comes after the pods of order %d (", p->drain->current_order);
    if (rule != NULL) {
        buf_printf(out, "MachineDrainRule '" STR_FMT "' gives it order %d)", STR_ARG(rule->name),
                   rule->order);
    } else {
        buf_add(out, STR("without a MachineDrainRule its order is 0)"));
    }
}

static void explain_rules(const struct drain_pod_state *p, struct buf *out)
{
    const struct drain_node_rules *b = &p->drain->drain_rules;
    const struct drain_namespaces *s = &p->drain->drains->namespaces;
    if (b->failure.code != 0) {
        buf_printf(out, "the MachineDrainRules of its node cannot be read: %s", b->failure.msg);
    } else if (b->rules.error.n > 0) {
        buf_printf(out, "the MachineDrainRules of its node cannot be used: " STR_FMT,
                   STR_ARG(str_sub(b->rules.error, 0, 512)));
    } else if (!s->informer.synced || s->denied) {
        buf_printf(out,
                   "a MachineDrainRule asks for the labels of its namespace, which are not known: "
                   "%s",
                   s->informer.failing ? s->informer.trouble.msg
                                       : "no list of namespaces has come yet");
    } else {
        buf_add(out, STR("a MachineDrainRule asks for the labels of its namespace, and there is no "
                         "such namespace"));
    }
}

void drain_explain(const struct drain_pod_state *p, struct buf *out)
{
    switch (p->wait) {
    case DRAIN_WAIT_PDB:
        explain_pdb(p, out);
        break;
    case DRAIN_WAIT_MANY_PDBS:
        buf_add(out, STR("several budgets cover it ("));
        explain_pdbs(p, out);
        buf_add(out, STR("), and the eviction API evicts no such pod"));
        break;
    case DRAIN_WAIT_FAILED:
        buf_add(out, buf_str(&p->server_message));
        break;
    case DRAIN_WAIT_STUCK:
        explain_stuck(p, out);
        break;
    case DRAIN_WAIT_COMPLETION:
        explain_completion(p, out);
        break;
    case DRAIN_WAIT_ORDER:
        explain_order(p, out);
        break;
    case DRAIN_WAIT_RULES:
        explain_rules(p, out);
        break;
    case DRAIN_WAIT_UNMANAGED:
        buf_add(out, STR("no controller would make it again, and such pods are not to be evicted"));
        break;
    case DRAIN_WAIT_EMPTYDIR:
        buf_add(out, STR("it has an emptyDir, and the data of such pods is not to be deleted"));
        break;
    case DRAIN_WAIT_DAEMONSET:
        buf_add(out, STR("it is of a DaemonSet, and those are not to be ignored"));
        break;
    case DRAIN_WAIT_NONE:
        break;
    }
}

static struct recorder_ref event_node_ref(const struct drain *d)
{
    return (struct recorder_ref){
        .kind = STR("Node"),
        .api_version = STR("v1"),
        .name = d->spec.node,
        .uid = d->spec.node_uid,
    };
}

void drain_event_accepted(const struct eviction *f)
{
    struct recorder *recorder = f->drain->drains->config.recorder;
    if (recorder == NULL) {
        return;
    }
    recorder_add(recorder,
                 &(struct recorder_event){
                     .type = STR("Normal"),
                     .reason = f->verb == DRAIN_VERB_EVICT ? STR("Evicting") : STR("ForceDeleting"),
                     .action = STR("Drain"),
                     .note = f->note,
                     .regarding = {
                         .kind = STR("Pod"),
                         .api_version = STR("v1"),
                         .name = f->name,
                         .namespace = f->namespace,
                         .uid = f->uid,
                     },
                     .related = event_node_ref(f->drain),
                 });
}

void drains_tell_blocked(const struct drains *ds)
{
    if (ds->config.on_blocked != NULL) {
        ds->config.on_blocked(ds->config.ctx);
    }
}

struct str drain_denial(const struct drain_pod_state *p)
{
    struct str before;
    struct str behind;
    struct str all = buf_str(&p->server_message);
    return str_cut(all, STR(" is forbidden: "), &before, &behind) ? behind : all;
}

struct str drain_also_waiting(const struct drain *d, struct arena *out)
{
    struct drain_waiting_pod waiting[DRAIN_TEXT_PODS_MAX];
    uint32_t n = drain_waiting_pods(d, out, waiting, DRAIN_TEXT_PODS_MAX);
    struct drain_status s;
    struct str words = STR_NONE;
    uint32_t shown = 1;
    drain_status(d, &s);
    for (uint32_t i = 0; i < MIN(n, DRAIN_TEXT_PODS_MAX); i++) {
        const struct drain_waiting_pod *w = &waiting[i];
        if (str_eq(w->pod, s.pod) && str_eq(w->namespace, s.namespace)) {
            continue;
        }
        words = arena_printf(out, STR_FMT "%s" STR_FMT "/" STR_FMT, STR_ARG(words),
                             shown == 1 ? "; also waiting: " : ", ", STR_ARG(w->namespace),
                             STR_ARG(w->pod));
        shown++;
    }
    return n > shown ? arena_printf(out, STR_FMT " and %u more", STR_ARG(words), n - shown) : words;
}

/* One Event on the pod and one on the node, which names all that wait; none again while the same
 * pod waits for the same. */
void drain_event_blocked(struct drain *d)
{
    struct recorder *recorder = d->drains->config.recorder;
    const struct drain_pod_state *p = d->view.pod_state;
    CLEANUP(buf_done)
    struct buf key = { 0 };
    CLEANUP(buf_done)
    struct buf note = { 0 };
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    if (recorder == NULL) {
        return;
    }
    struct str uid = drain_pod_of(p)->uid;
    struct str pdb = p->pdb != NULL ? p->pdb->item->name : STR_NONE;
    if (p->wait == DRAIN_WAIT_FAILED && p->denied) {
        buf_printf(&key, "denied " STR_FMT, STR_ARG(drain_denial(p)));
    } else {
        buf_printf(&key, "%d " STR_FMT " " STR_FMT, (int)p->wait, STR_ARG(uid), STR_ARG(pdb));
    }
    if (str_eq(buf_str(&key), buf_str(&d->event_key))) {
        return;
    }
    buf_reset(&d->event_key);
    buf_add(&d->event_key, buf_str(&key));
    const char *what = p->wait == DRAIN_WAIT_STUCK ? "does not go" : "cannot be evicted";
    buf_printf(&note, "pod " STR_FMT " %s: " STR_FMT, STR_ARG(p->item->name), what,
               STR_ARG(buf_str(&d->reason)));
    struct recorder_event event = {
        .type = STR("Warning"),
        .reason = STR("DrainBlocked"),
        .action = STR("Drain"),
        .note = buf_str(&note),
        .regarding = {
            .kind = STR("Pod"),
            .api_version = STR("v1"),
            .name = drain_name(p->item),
            .namespace = drain_namespace(p->item),
            .uid = uid,
        },
        .related = event_node_ref(d),
    };
    recorder_add(recorder, &event);
    buf_add(&note, drain_also_waiting(d, &tmp));
    event.note = buf_str(&note);
    event.regarding = event_node_ref(d);
    event.related = (struct recorder_ref){ 0 };
    recorder_add(recorder, &event);
}

/* The pod that waits longest, and those that wait as well. */
static struct str drain_name_pods(const struct drain *d, const struct drain_status *s,
                                  struct str words, struct arena *out)
{
    struct drain_waiting_pod waiting[DRAIN_TEXT_PODS_MAX];
    uint32_t n = drain_waiting_pods(d, out, waiting, DRAIN_TEXT_PODS_MAX);
    uint32_t shown = 1;
    words = arena_printf(out, STR_FMT "; " STR_FMT "/" STR_FMT ": " STR_FMT, STR_ARG(words),
                         STR_ARG(s->namespace), STR_ARG(s->pod), STR_ARG(s->reason));
    for (uint32_t i = 0; i < n && i < DRAIN_TEXT_PODS_MAX; i++) {
        const struct drain_waiting_pod *w = &waiting[i];
        if (str_eq(w->pod, s->pod) && str_eq(w->namespace, s->namespace)) {
            continue;
        }
        shown++;
        words = arena_printf(out, STR_FMT "; " STR_FMT "/" STR_FMT ": " STR_FMT, STR_ARG(words),
                             STR_ARG(w->namespace), STR_ARG(w->pod), STR_ARG(w->reason));
    }
    return n > shown ? arena_printf(out, STR_FMT "; and %u more", STR_ARG(words), n - shown)
                     : words;
}

struct str drain_text(const struct drain *d, struct arena *out)
{
    struct drain_status s;
    drain_status(d, &s);
    if (drain_is_done(d)) {
        return STR("the node is drained");
    }
    if (!s.synced) {
        return STR("draining: the node's pods are not known yet");
    }
    struct str words =
        arena_printf(out, "draining: %u %s left", s.left, s.left == 1 ? "pod is" : "pods are");
    if (s.terminating > 0) {
        words =
            arena_printf(out, STR_FMT ", %u of them on the way out", STR_ARG(words), s.terminating);
    }
    return s.blocked ? drain_name_pods(d, &s, words, out) : words;
}
