/* The steps of a preparation and its undo. */
#include "request/prepare.h"

#include "base/alloc.h"
#include "drain/drain_rules.h"
#include "kinds/keys.h"
#include "request/prepare_internal.h"

/* A pod that takes that long to end, or its grace if that is longer, is shown as one that does not.
 * Nothing else follows from it: the drain has a time limit as a whole. */
#define PREPARE_POD_END_TIMEOUT MINUTES(5)

struct prepare_undo {
    struct preparer *preparer;
    struct list link;
    struct cordon *action;
    void (*on_done)(void *ctx);
    void *ctx;
};

static void prepare_turn(void *ctx);

static struct loop *prepare_loop(const struct prepare *q)
{
    return q->preparer->config.client->loop;
}

static void prepare_schedule(struct prepare *q)
{
    loop_timer_pull(&q->turn, loop_now(prepare_loop(q)));
}

static const struct node *prepare_node(const struct prepare *q)
{
    const struct store_item *item = store_find(q->preparer->config.nodes, q->spec.node);
    return item != NULL ? item->object : NULL;
}

/* ── steps ─────────────────────────────────────────────────────────────────────────────────── */

static bool prepare_wants_cordon(const struct prepare *q)
{
    return q->spec.options.drain.enabled && q->spec.options.drain.cordon;
}

static bool prepare_has_step(const struct prepare *q, enum prepare_step step)
{
    const struct limit_options *o = &q->spec.options;
    switch (step) {
    case PREPARE_CORDON:
        return prepare_wants_cordon(q);
    case PREPARE_DRAIN:
        return o->drain.enabled;
    case PREPARE_DRAIN_GRACE:
        return o->drain.enabled && o->drain.post_grace_s > 0;
    case PREPARE_DETACH:
        return o->detach.enabled;
    case PREPARE_DETACH_GRACE:
        return o->detach.enabled && o->detach.post_grace_s > 0;
    case PREPARE_DONE:
        break;
    }
    return true;
}

usec_t prepare_step_limit(const struct prepare *q)
{
    const struct limit_options *o = &q->spec.options;
    usec_t slack = q->preparer->config.skew_tolerance;
    switch (q->step) {
    case PREPARE_CORDON: /* or a node that cannot be written to would keep its slot for ever */
    case PREPARE_DRAIN:
        return o->drain.timeout_s > 0 ? SECONDS(o->drain.timeout_s) + slack : 0;
    case PREPARE_DETACH:
        return o->detach.timeout_s > 0 ? SECONDS(o->detach.timeout_s) + slack : 0;
    case PREPARE_DRAIN_GRACE:
        return SECONDS(o->drain.post_grace_s);
    case PREPARE_DETACH_GRACE:
        return SECONDS(o->detach.post_grace_s);
    case PREPARE_DONE:
        break;
    }
    return 0;
}

/* The step began at `wall`. If that is ahead of our clock, another leader's was: nothing has passed
 * then, and what it wrote is not written anew (R16). */
static void prepare_enter_step(struct prepare *q, enum prepare_step step, usec_t wall)
{
    const struct preparer_config *config = &q->preparer->config;
    usec_t passed = config->wall(config->ctx) - wall;
    q->step = step;
    q->step_time = wall;
    q->step_at = loop_now(prepare_loop(q)) - MAX(passed, (usec_t)0);
}

/* In whole seconds, rounded up, and with what the clock may be behind: the time that is kept in the
 * request must not be earlier than the step, or a new leader would end a grace too soon. */
static usec_t prepare_step_now(const struct prepare *q)
{
    const struct preparer_config *config = &q->preparer->config;
    usec_t wall =
        config->wall(config->ctx) + server_clock_doubt(&config->client->clock) + SECONDS(1) - 1;
    return wall - wall % SECONDS(1);
}

static void prepare_next_step(struct prepare *q)
{
    enum prepare_step step = q->step + 1;
    while (!prepare_has_step(q, step)) {
        step++;
    }
    prepare_enter_step(q, step, prepare_step_now(q));
    if (q->preparer->config.log != NULL && step == PREPARE_DONE) {
        log_info(q->preparer->config.log, "node prepared", KV_STR("node", q->spec.node),
                 KV_STR("request", q->spec.request));
    }
}

/* ── cordon ────────────────────────────────────────────────────────────────────────────────── */

static void prepare_on_cordon(void *ctx, enum cordon_result end)
{
    struct prepare *q = ctx;
    if (end != CORDON_RESULT_NONE) {
        q->action = NULL;
        q->cordon = end;
    }
    prepare_schedule(q);
}

/* The cordon is kept through all steps: a node that somebody uncordons during the drain would fill
 * again. */
static void prepare_cordon(struct prepare *q)
{
    if (prepare_wants_cordon(q) && q->action == NULL &&
        (q->cordon == CORDON_RESULT_NONE || q->cordon_differs)) {
        q->cordon_differs = false;
        q->action = cordon_start(q->preparer->cordons,
                                 &(struct cordon_spec){
                                     .action = CORDON_ACTION_CORDON,
                                     .mark = KEY_REQUEST_CORDON,
                                     .uid = q->spec.uid,
                                     .request = q->spec.request,
                                     .node = q->spec.node,
                                 },
                                 prepare_on_cordon, q);
    }
}

/* The node shows another cordon than the one we know of. The live read that begins every change of
 * a cordon shows which of the two is older. */
static bool prepare_cordon_changed(const struct prepare *q, const struct node *node)
{
    bool ours = cordon_is_ours(node_annotation(node, KEY_REQUEST_CORDON), q->spec.uid);
    return q->cordon == CORDON_RESULT_NODE_GONE ||
           (q->cordon != CORDON_RESULT_NONE && !node->unschedulable) ||
           (q->cordon == CORDON_RESULT_OURS && !ours);
}

static bool prepare_is_cordoned(const struct prepare *q)
{
    return !prepare_wants_cordon(q) || q->cordon == CORDON_RESULT_OURS ||
           q->cordon == CORDON_RESULT_OTHERS;
}

/* ── drain ─────────────────────────────────────────────────────────────────────────────────── */

bool prepare_has_request(const struct prepare *q)
{
    const struct node *node = prepare_node(q);
    return q->spec.machine_request.n == 0 ||
           (node != NULL &&
            (str_eq(node_annotation(node, KEY_DELETION_REQUEST), q->spec.machine_request) ||
             str_eq(node_annotation(node, KEY_MAINTENANCE_REQUEST), q->spec.machine_request)));
}

static struct str prepare_drain_rules(const struct prepare *q)
{
    const struct node *node = prepare_node(q);
    return node != NULL && prepare_has_request(q) ? node_annotation(node, KEY_DRAIN_RULES)
                                                  : STR_NONE;
}

/* Rules go when the request does. The drain has nothing to do any more then, and what ends it is on
 * its way. */
static void prepare_update_drain(struct prepare *q)
{
    if (q->drain == NULL || prepare_node(q) == NULL) {
        return;
    }
    drain_pause(q->drain, !prepare_has_request(q));
    if (prepare_has_request(q)) {
        drain_set_rules(q->drain, prepare_drain_rules(q));
    }
}

static void prepare_on_change(void *ctx)
{
    prepare_schedule(ctx);
}

/* `observe`: nothing is sent away. What comes after the drain's end is not its business, and a
 * drain that was given up stays so after a restart. options.drain.retry_s is for what no event can
 * end; everything else moves by events. */
static void prepare_watch_pods(struct prepare *q, bool observe)
{
    const struct limit_drain *o = &q->spec.options.drain;
    const struct node *node = prepare_node(q);
    if (q->drain != NULL) {
        if (observe) {
            drain_observe_only(q->drain);
        }
        return;
    }
    const struct drain_spec spec = {
        .node = q->spec.node,
        .node_uid = node != NULL ? node->uid : STR_NONE,
        .eviction_timeout = USEC_NEVER,
        .deletion_timeout = PREPARE_POD_END_TIMEOUT,
        .grace = o->grace_s < 0 ? -1 : SECONDS(o->grace_s),
        .flags = DRAIN_EVICT_FINISHED | DRAIN_USE_POD_LABEL | DRAIN_NOTIFY_ALL |
                 (o->evict_unmanaged || observe ? 0 : DRAIN_FORBID_UNMANAGED) |
                 (o->delete_empty_dir || observe ? 0 : DRAIN_FORBID_EMPTYDIR) |
                 (o->ignore_daemon_sets || observe ? 0 : DRAIN_FORBID_DAEMONSET) |
                 (observe ? DRAIN_OBSERVE_ONLY : 0),
        .retry = SECONDS(o->retry_s),
        .pods = o->pod_selector.n > 0 ? &q->pods : NULL,
        .drain_rules = prepare_drain_rules(q),
    };
    q->drain = drain_start(q->preparer->config.drains, &spec, prepare_on_change, q);
}

static void prepare_reject(struct prepare *q)
{
    q->rejected = true;
    cordon_stop(STEAL(q->action));
    drain_stop(STEAL(q->drain));
    detach_stop(STEAL(q->detach));
}

/* True when the step's time is over. */
static bool prepare_step_is_over(const struct prepare *q, usec_t now)
{
    usec_t limit = prepare_step_limit(q);
    return limit > 0 && now - q->step_at >= limit;
}

/* True when there is a next step to take. */
static bool prepare_step_cordon(struct prepare *q, usec_t now)
{
    if (!prepare_is_cordoned(q) && prepare_step_is_over(q, now)) {
        prepare_reject(q); /* without a cordon no later step makes sense */
    } else if (prepare_is_cordoned(q)) {
        prepare_next_step(q);
        return true;
    }
    return false;
}

static bool prepare_step_drain(struct prepare *q, usec_t now)
{
    const struct limit_drain *o = &q->spec.options.drain;
    if (q->drain == NULL && prepare_is_cordoned(q) && q->pods_err.code == 0 &&
        prepare_has_request(q)) {
        prepare_watch_pods(q, /* observe= */ false);
    }
    if (q->drain != NULL && drain_is_done(q->drain)) {
        prepare_send_event(q, "Normal", "Drained", "Drain", STR("no pod is left that has to go"));
        prepare_next_step(q);
        return true;
    }
    if (!prepare_step_is_over(q, now)) {
        return false;
    }
    if (o->on_timeout == ON_TIMEOUT_REJECT) {
        prepare_reject(q);
    } else if (o->on_timeout == ON_TIMEOUT_PROCEED) {
        prepare_next_step(q);
        return true;
    } else if (q->drain != NULL) {
        drain_force(q->drain);
    } else {
        prepare_reject(q); /* the drain could not even begin */
    }
    return false;
}

/* ── detach ────────────────────────────────────────────────────────────────────────────────── */

static void prepare_add_pvc(void *ctx, struct str namespace, struct str pvc)
{
    struct prepare *q = ctx;
    detach_add_pvc(q->detach, namespace, pvc);
}

static bool prepare_step_detach(struct prepare *q, usec_t now)
{
    const struct limit_detach *o = &q->spec.options.detach;
    const struct node *node = prepare_node(q);
    prepare_watch_pods(q, /* observe= */ true);
    if (q->detach == NULL) {
        q->detach = detach_start(q->preparer->detaches, q->spec.node, o->ignore_drivers,
                                 o->ignore_n, prepare_on_change, q);
    }
    detach_set_volumes(q->detach, node != NULL ? node->volumes : 0);
    detach_pvcs_begin(q->detach);
    drain_each_volume_claim(q->drain, prepare_add_pvc, q);
    detach_pvcs_end(q->detach);
    if (detach_is_done(q->detach)) {
        prepare_send_event(q, "Normal", "VolumesDetached", "Detach",
                           STR("no volume is attached that has to go"));
        prepare_next_step(q);
        return true;
    }
    if (!prepare_step_is_over(q, now)) {
        return false;
    }
    if (o->on_timeout == ON_TIMEOUT_PROCEED) {
        prepare_next_step(q);
        return true;
    }
    prepare_reject(q);
    return false;
}

/* ── turn ──────────────────────────────────────────────────────────────────────────────────── */

static bool prepare_advance(struct prepare *q, usec_t now)
{
    if (q->rejected) {
        return false;
    }
    if (!prepare_has_step(q, q->step)) {
        prepare_next_step(q);
        return true;
    }
    switch (q->step) {
    case PREPARE_CORDON:
        return prepare_step_cordon(q, now);
    case PREPARE_DRAIN:
        return prepare_step_drain(q, now);
    case PREPARE_DETACH:
        return prepare_step_detach(q, now);
    case PREPARE_DRAIN_GRACE:
    case PREPARE_DETACH_GRACE:
        if (prepare_step_is_over(q, now)) {
            prepare_next_step(q);
            return true;
        }
        return false;
    case PREPARE_DONE:
        break;
    }
    return false;
}

/* Watches are kept as long as a step needs them. */
static void prepare_stop_unneeded(struct prepare *q)
{
    if (q->step != PREPARE_DRAIN && q->step != PREPARE_DETACH) {
        drain_stop(STEAL(q->drain));
    }
    if (q->step != PREPARE_DETACH) {
        detach_stop(STEAL(q->detach));
    }
}

static void prepare_turn(void *ctx)
{
    struct prepare *q = ctx;
    usec_t now = loop_now(prepare_loop(q));
    const struct node *node = prepare_node(q);
    if (!q->rejected) {
        prepare_cordon(q);
    }
    while (prepare_advance(q, now)) {
    }
    prepare_stop_unneeded(q);
    prepare_update_drain(q);
    if (q->drain != NULL) {
        drain_set_unreachable(
            q->drain, node != NULL && str_eq(node_condition(node, STR("Ready")), STR("Unknown")));
    }
    usec_t limit = prepare_step_limit(q);
    if (!q->rejected && limit > 0 && now - q->step_at < limit) {
        loop_timer_set(&q->turn, q->step_at + limit);
    }
    if (prepare_update_view(q)) {
        q->on_change(q->ctx);
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct preparer *preparer_new(const struct preparer_config *config)
{
    struct preparer *p = ALLOC_NEW(struct preparer);
    p->config = *config;
    p->cordons = cordons_new(&(struct cordons_config){
        .client = config->client,
        .recorder = config->recorder,
        .log = config->log,
        .may_act = config->may_act,
        .ctx = config->ctx,
    });
    p->detaches = detaches_new(config->client);
    list_init(&p->prepares);
    list_init(&p->undos);
    return p;
}

void preparer_free(struct preparer *p)
{
    if (p == NULL) {
        return;
    }
    LIST_EACH (&p->prepares, link) {
        prepare_free(CONTAINER_OF(link, struct prepare, link));
    }
    LIST_EACH (&p->undos, link) {
        prepare_undo_free(CONTAINER_OF(link, struct prepare_undo, link));
    }
    detaches_free(p->detaches);
    cordons_free(p->cordons);
    alloc_free(p);
}

void preparer_on_node(struct preparer *p, const struct store_item *item, bool gone)
{
    LIST_EACH (&p->prepares, link) {
        struct prepare *q = CONTAINER_OF(link, struct prepare, link);
        if (!str_eq(q->spec.node, item->name)) {
            continue;
        }
        q->cordon_differs = q->cordon_differs || (!gone && prepare_cordon_changed(q, item->object));
        prepare_update_drain(q); /* before it can send anything by rules that have changed */
        prepare_schedule(q);
    }
}

static void prepare_copy_spec(struct prepare *q, const struct prepare_spec *spec)
{
    struct limit_options *o = &q->spec.options;
    q->spec = *spec;
    q->spec.uid = arena_str(&q->memory, spec->uid);
    q->spec.request = arena_str(&q->memory, spec->request);
    q->spec.node = arena_str(&q->memory, spec->node);
    q->spec.machine_request = arena_str(&q->memory, spec->machine_request);
    o->drain.pod_selector = arena_str(&q->memory, o->drain.pod_selector);
    struct str *ignore = ARENA_ARRAY(&q->memory, struct str, o->detach.ignore_n);
    for (uint32_t i = 0; i < o->detach.ignore_n; i++) {
        ignore[i] = arena_str(&q->memory, o->detach.ignore_drivers[i]);
    }
    o->detach.ignore_drivers = ignore;
    /* A selector that cannot be read sends nobody away: `pods_err` says so until the time limit
     * ends it. */
    int r = selector_parse(o->drain.pod_selector, &q->memory, &q->pods, &q->pods_err);
    ASSERT((r < 0) == (q->pods_err.code != 0));
}

struct prepare *prepare_new(struct preparer *p, const struct prepare_spec *spec,
                            void (*on_change)(void *ctx), void *ctx)
{
    ASSERT(spec->uid.n > 0 && spec->node.n > 0);
    struct prepare *q = ALLOC_NEW(struct prepare);
    q->preparer = p;
    q->memory.first = 512;
    q->texts.first = 512;
    q->on_change = on_change;
    q->ctx = ctx;
    prepare_copy_spec(q, spec);
    list_add(&p->prepares, &q->link);
    loop_timer_init(&q->turn, p->config.client->loop, prepare_turn, q);
    prepare_enter_step(q, spec->step, spec->step_time > 0 ? spec->step_time : prepare_step_now(q));
    (void)prepare_update_view(q); /* the first turn reports what has changed since */
    prepare_schedule(q);
    return q;
}

void prepare_free(struct prepare *q)
{
    if (q == NULL) {
        return;
    }
    cordon_stop(STEAL(q->action));
    drain_stop(STEAL(q->drain));
    detach_stop(STEAL(q->detach));
    loop_timer_done(&q->turn);
    list_del(&q->link);
    buf_done(&q->key);
    buf_done(&q->event_key);
    arena_done(&q->texts);
    arena_done(&q->memory);
    alloc_free(q);
}

void prepare_view(const struct prepare *q, struct prepare_view *ret)
{
    *ret = q->view;
}

static void prepare_undo_on_result(void *ctx, enum cordon_result end)
{
    struct prepare_undo *u = ctx;
    if (end != CORDON_RESULT_NONE) {
        u->action = NULL;
        u->on_done(u->ctx);
    }
}

struct prepare_undo *prepare_undo(struct preparer *p, struct str uid, struct str node,
                                  bool uncordon, void (*on_done)(void *ctx), void *ctx)
{
    struct prepare_undo *u = ALLOC_NEW(struct prepare_undo);
    *u = (struct prepare_undo){ .preparer = p, .on_done = on_done, .ctx = ctx };
    list_add(&p->undos, &u->link);
    u->action = cordon_start(p->cordons,
                             &(struct cordon_spec){
                                 .action = uncordon ? CORDON_ACTION_UNCORDON : CORDON_ACTION_UNMARK,
                                 .mark = KEY_REQUEST_CORDON,
                                 .uid = uid,
                                 .node = node,
                             },
                             prepare_undo_on_result, u);
    return u;
}

bool prepare_undo_is_done(const struct prepare_undo *u)
{
    return u != NULL && u->action == NULL;
}

void prepare_undo_free(struct prepare_undo *u)
{
    if (u != NULL) {
        cordon_stop(STEAL(u->action));
        list_del(&u->link);
        alloc_free(u);
    }
}
