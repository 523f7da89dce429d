#include "profile/controller.h"

#include "base/heap.h"
#include "format/jwriter.h"
#include "kube/lease.h"
#include "kube/node.h"
#include "kube/recorder.h"
#include "kube/reflector.h"
#include "profile/engine.h"
#include "profile/gauges.h"

#define NODES_PATH STR("/api/v1/nodes")
#define CONTROLLER_NAME STR("maintenance") /* as events name it */
#define TASK_BACKOFF_BASE MSECONDS(500)
#define TASK_BACKOFF_MAX MINUTES(5)
#define REFUSED_FAILURES 4u       /* a refusal starts with a wait of some seconds */
#define WAKE_GRID MSECONDS(50)    /* waits end together, so that many make one turn */
#define STOP_DRAIN_MAX SECONDS(2) /* for answers that are under way when it stops */
#define WARN_EVERY SECONDS(1)     /* one line stands for many nodes that fail alike */

/* What is kept of a node only while something is unfinished with it. */
struct task {
    struct controller *c;
    struct store_item *item; /* borrowed: the task ends with it */
    struct list link;        /* in `later` */
    struct api_call *call;
    enum api_verb verb; /* of `call` */
    uint64_t version;   /* that the last patch was based on */
    usec_t sent_at;
    usec_t retry_at; /* nothing is sent before */
    usec_t wake_at;  /* in `later`: when to look again */
    bool refresh;    /* read the node before the next patch, unless something newer came */
    struct backoff backoff;
    struct buf error; /* why the node is not touched */
};

struct controller {
    /* First: the store hands it to node_kind as its context. */
    struct node_keep keep;
    struct str annotations[1];
    struct loop *loop;
    struct log *log;
    struct controller_config config;
    struct arena memory; /* of the configuration's texts */
    struct client client;
    struct intern labels;
    struct store store;
    struct reflector reflector;
    struct lease lease;
    struct recorder recorder;
    struct gauges gauges;
    struct loop_timer turn;
    struct loop_timer wake; /* for `later` */
    struct loop_timer stop;
    struct list later;
    struct arena tmp; /* of the turn */
    struct buf path;
    struct buf body;
    struct controller_stats stats;
    usec_t warn_at;
    uint64_t warn_hidden;
    bool leading; /* as last reported */
    bool stopping;
    bool stopped;
    char why[512]; /* the last failure of the watch */
};

static void controller_turn(void *ctx);

/* ── leading ───────────────────────────────────────────────────────────────────────────────── */

static bool controller_may_act(const struct controller *c)
{
    if (!c->reflector.synced || c->stopping) {
        return false;
    }
    if (mutated(c->config.mutations, MUTATION_ACT_WITHOUT_LEASE)) {
        return true;
    }
    return !c->config.elect || lease_is_held(&c->lease);
}

static void controller_soon(struct controller *c)
{
    if (controller_may_act(c)) {
        loop_timer_pull(&c->turn, loop_now(c->loop));
    }
}

static void controller_lead(void *ctx, bool leading)
{
    struct controller *c = ctx;
    if (leading == c->leading) {
        return;
    }
    c->leading = leading;
    gauges_put(c->gauges.leading, leading ? 1 : 0);
    if (leading) {
        log_info(c->log, "Starting workers", KV_TEXT("controller", "node"),
                 KV_I64("nodes", store_count(&c->store)), KV_STR("identity", c->config.identity));
    } else if (!c->stopping) {
        log_error(c->log, "leader election lost", KV_STR("identity", c->config.identity),
                  KV_STR("holder", lease_holder(&c->lease)));
    }
    controller_soon(c);
    if (c->config.on_leading != NULL) {
        c->config.on_leading(c->config.ctx, leading);
    }
}

static void controller_on_lease_error(void *ctx, const struct err *err)
{
    struct controller *c = ctx;
    log_warn(c->log, "leader election: request failed", KV_ERR(err));
}

/* ── observing ─────────────────────────────────────────────────────────────────────────────── */

static void controller_on_list(void *ctx)
{
    struct controller *c = ctx;
    c->stats.relists += c->reflector.lists > 1 ? 1 : 0;
    store_list_begin(&c->store);
}

static int controller_on_object(void *ctx, const struct jval *object, bool deleted, struct err *err)
{
    struct controller *c = ctx;
    int r = store_observe(&c->store, object, deleted, err);
    if (r == 0 && c->store.dirty_count > 0) {
        controller_soon(c);
    }
    return r;
}

static bool controller_on_synced(void *ctx, uint64_t version)
{
    struct controller *c = ctx;
    if (!store_list_end(&c->store, version)) {
        log_warn(c->log, "the API server's versions went backwards; reading everything again",
                 KV_I64("version", version));
        return false;
    }
    log_info(c->log, "nodes are known", KV_I64("nodes", store_count(&c->store)),
             KV_I64("version", version));
    c->why[0] = '\0';
    loop_timer_pull(&c->turn, loop_now(c->loop));
    return true;
}

static void controller_on_error(void *ctx, const struct err *err, bool bad)
{
    struct controller *c = ctx;
    (void)snprintf(c->why, sizeof(c->why), "%s", err->msg);
    if (bad) {
        c->stats.bad_input++;
        gauges_count(c->gauges.bad_input);
        log_error(c->log, "the API server's answer cannot be read", KV_ERR(err));
    } else if (err->code == ERR_GONE) {
        log_info(c->log, "the watch has expired; listing again", KV_ERR(err));
    } else {
        log_warn(c->log, "watch failed; trying again", KV_ERR(err));
    }
}

static void controller_on_reply(void *ctx, enum api_verb verb, int status)
{
    struct controller *c = ctx;
    gauges_request(&c->gauges, verb, status);
}

/* ── tasks ─────────────────────────────────────────────────────────────────────────────────── */

static struct task *task_of(struct controller *c, struct store_item *item)
{
    if (item->extra == NULL) {
        struct task *task = HEAP_NEW(struct task);
        task->c = c;
        task->item = item;
        task->backoff = (struct backoff){ .base = TASK_BACKOFF_BASE, .max = TASK_BACKOFF_MAX };
        item->extra = task;
    }
    return item->extra;
}

static void task_leave_later(struct task *task)
{
    if (list_linked(&task->link)) {
        list_del(&task->link);
        task->c->stats.later--;
    }
}

static void task_end(struct task *task)
{
    struct controller *c = task->c;
    task_leave_later(task);
    if (task->call != NULL) {
        api_cancel(c->client.api, STEAL(task->call));
        c->stats.in_flight--;
    }
    task->item->extra = NULL;
    buf_done(&task->error);
    heap_free(task);
}

static void controller_on_gone(void *ctx, struct store_item *item)
{
    struct controller *c = ctx;
    if (item->extra != NULL) {
        task_end(item->extra);
    }
    log_debug(c->log, "node is gone", KV_STR("node", item->name));
}

static void task_wake_at(struct task *task, usec_t at)
{
    struct controller *c = task->c;
    task->wake_at = (at + WAKE_GRID - 1) / WAKE_GRID * WAKE_GRID;
    if (!list_linked(&task->link)) {
        list_add(&c->later, &task->link);
        c->stats.later++;
    }
    loop_timer_pull(&c->wake, task->wake_at);
}

/* Marks the nodes whose wait has ended. */
static void controller_wake(void *ctx)
{
    struct controller *c = ctx;
    usec_t now = loop_now(c->loop);
    usec_t next = USEC_NEVER;
    LIST_EACH (&c->later, link) {
        struct task *task = CONTAINER_OF(link, struct task, link);
        if (task->wake_at <= now) {
            task_leave_later(task);
            store_mark(&c->store, task->item);
        } else {
            next = MIN(next, task->wake_at);
        }
    }
    if (next != USEC_NEVER) {
        loop_timer_pull(&c->wake, next);
    }
    controller_soon(c);
}

static void task_warn(struct task *task, const struct err *err)
{
    struct controller *c = task->c;
    usec_t now = loop_now(c->loop);
    if (now < c->warn_at) {
        c->warn_hidden++;
        return;
    }
    log_warn(c->log, "Failed to patch node on the API server", KV_STR("node", task->item->name),
             KV_ERR(err), KV_I64("suppressed", c->warn_hidden));
    c->warn_at = now + WARN_EVERY;
    c->warn_hidden = 0;
}

/* The node waits alone. What failed may have gone through all the same: then the next patch, which
 * carries the old version, conflicts and the node is observed. */
static void task_fail(struct task *task, enum retry_verdict verdict, const struct err *err)
{
    struct controller *c = task->c;
    c->stats.errors++;
    gauges_count(c->gauges.errors);
    task_warn(task, err);
    if (mutated(c->config.mutations, MUTATION_DROP_FAILED_NODE)) {
        return;
    }
    if (verdict == RETRY_REFUSED) {
        task->backoff.failures = MAX(task->backoff.failures, REFUSED_FAILURES);
    }
    task->retry_at = loop_now(c->loop) + backoff_next(&task->backoff, loop_random(c->loop));
    task_wake_at(task, task->retry_at);
}

/* ── acting ────────────────────────────────────────────────────────────────────────────────── */

/* The answer to a patch or a read: the node as it is now. */
static void task_on_object(struct task *task, struct str body)
{
    struct controller *c = task->c;
    struct err err = { 0 };
    const struct jval *object = NULL;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    int r = json_parse(body, 0, &tmp, &object, &err);
    if (r == 0) {
        r = store_learn(&c->store, object, &err);
    }
    if (r < 0) {
        (void)err_wrap(&err, "the answer cannot be read");
        c->stats.bad_input++;
        gauges_count(c->gauges.bad_input);
        task_fail(task, RETRY_LATER, &err);
        return;
    }
    task->refresh = false;
    if (task->verb == API_PATCH) {
        backoff_reset(&task->backoff);
        task->retry_at = 0;
    }
    /* Decide again on whatever is the newest now; mostly there is nothing left to do. */
    store_mark(&c->store, task->item);
}

static void task_on_reply(void *ctx, const struct api_reply *reply)
{
    struct task *task = ctx;
    struct controller *c = task->c;
    task->call = NULL;
    c->stats.in_flight--;
    enum retry_verdict verdict = client_note(&c->client, task->verb, reply);
    if (task->verb == API_PATCH) {
        gauges_time(c->gauges.patch_seconds, loop_now(c->loop) - task->sent_at);
    }
    if (verdict == RETRY_DONE) {
        task_on_object(task, reply->body);
    } else if (verdict == RETRY_OBSERVE) {
        c->stats.conflicts++;
        gauges_count(c->gauges.conflicts);
        /* The watch brings what we have not seen. Should it not, the node is read. */
        task->refresh = true;
        if (task->item->version > task->version) {
            store_mark(&c->store, task->item);
        } else {
            store_await(task->item);
        }
        task_wake_at(task, loop_now(c->loop) + backoff_next(&task->backoff, loop_random(c->loop)));
    } else {
        struct err err = { 0 };
        client_explain(reply->status, reply->body, reply->err, &err);
        task_fail(task, verdict, &err);
    }
    if (c->stopping && c->stats.in_flight == 0) {
        loop_timer_set(&c->stop, loop_now(c->loop));
    }
    controller_soon(c);
}

static void task_send(struct task *task, enum api_verb verb)
{
    struct controller *c = task->c;
    ASSERT(task->call == NULL);
    buf_reset(&c->path);
    buf_add(&c->path, NODES_PATH);
    buf_add_char(&c->path, '/');
    client_add_segment(&c->path, task->item->name);
    const struct api_request request = {
        .verb = verb,
        .path = buf_str(&c->path),
        .content_type = verb == API_PATCH ? API_MERGE_PATCH : STR_NONE,
        .body = verb == API_PATCH ? buf_str(&c->body) : STR_NONE,
    };
    task->verb = verb;
    task->sent_at = loop_now(c->loop);
    c->stats.in_flight++;
    task->call = api_send(c->client.api, &request, task_on_reply, task);
}

/* Our own two fields, and the version they were decided on. Never a whole map: that would delete
 * what others put there meanwhile. */
static void controller_compose(struct controller *c, const struct engine_effect *effect,
                               uint64_t version)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)version);
    ASSERT(n > 0);
    buf_reset(&c->body);
    struct jwriter w = jwriter_on(&c->body);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    if (effect->set_data) {
        struct str data = effect->data;
        if (mutated(c->config.mutations, MUTATION_DATA_BYTES_WRONG)) {
            data = arena_concat(&c->tmp, STR(" "), data);
        }
        jw_key(&w, STR("annotations"));
        jw_obj(&w);
        jw_key(&w, DATA_ANNOTATION);
        jw_str(&w, data);
        jw_obj_end(&w);
    }
    if (effect->set_state) {
        jw_key(&w, STR("labels"));
        jw_obj(&w);
        jw_key(&w, LABEL_STATE);
        jw_str(&w, effect->state);
        jw_obj_end(&w);
    }
    if (!mutated(c->config.mutations, MUTATION_SKIP_RV)) {
        jw_pair(&w, "resourceVersion", (struct str){ .p = text, .n = (size_t)n });
    }
    jw_obj_end(&w);
    jw_obj_end(&w);
}

/* Tells whoever looks at the node why nothing happens to it. */
static void controller_record_reject(struct controller *c, const struct store_item *item,
                                     const struct err *err)
{
    const struct node *node = item->object;
    recorder_add(&c->recorder, &(struct recorder_event){
                                   .type = STR("Warning"),
                                   .reason = STR("MaintenanceDataUnreadable"),
                                   .action = STR("ReadMaintenanceData"),
                                   .note = str_from(err->msg),
                                   .regarding = {
                                       .kind = STR("Node"),
                                       .api_version = STR("v1"),
                                       .name = item->name,
                                       .uid = node->uid,
                                   },
                               });
}

/* The annotation cannot be read: the node is left as it is, and that is visible. */
static void controller_reject(struct controller *c, struct store_item *item, const struct err *err)
{
    struct task *task = task_of(c, item);
    gauges_reconcile(&c->gauges, /* ok= */ false);
    if (!str_eq(buf_str(&task->error), str_from(err->msg))) {
        log_error(c->log, "Failed to reconcile. Skipping node patching.",
                  KV_STR("node", item->name), KV_ERR(err));
        controller_record_reject(c, item, err);
        buf_reset(&task->error);
        buf_add(&task->error, str_from(err->msg));
    }
}

/* One node: what is it to carry, and is there something to send? */
static void controller_decide(struct controller *c, struct store_item *item)
{
    struct task *task = item->extra;
    usec_t now = loop_now(c->loop);
    if (task != NULL && (task->call != NULL || now < task->retry_at)) {
        return; /* the answer, or the end of the wait, marks it again */
    }
    if (task != NULL && task->refresh && item->version <= task->version) {
        task_send(task, API_GET);
        return;
    }
    const struct node *node = item->object;
    const struct engine_node view = {
        .profile_label = node_label(node, LABEL_PROFILE),
        .state_label = node_label(node, LABEL_STATE),
        .data = node_annotation(node, DATA_ANNOTATION),
    };
    struct engine_effect effect;
    struct err err = { 0 };
    item->decided = loop_wall(c->loop);
    if (engine_decide(&engine_default, &view, item->decided, &c->tmp, &effect, &err) < 0) {
        controller_reject(c, item, &err);
        return;
    }
    gauges_reconcile(&c->gauges, /* ok= */ true);
    if (!effect.set_state && !effect.set_data) {
        if (task != NULL) {
            task_end(task);
        }
        return;
    }
    task = task_of(c, item);
    buf_reset(&task->error);
    task->refresh = false;
    task->version = item->version;
    task_leave_later(task);
    controller_compose(c, &effect, item->version);
    c->stats.patches++;
    gauges_count(c->gauges.patches);
    task_send(task, API_PATCH);
}

static void controller_turn(void *ctx)
{
    struct controller *c = ctx;
    uint32_t window = c->config.window > 0 ? c->config.window : CONTROLLER_WINDOW;
    c->stats.turns++;
    /* Asked before every send: the lease may end within a turn. */
    while (c->stats.in_flight < window && c->store.dirty_count > 0 && controller_may_act(c)) {
        if (!client_open(&c->client)) {
            loop_timer_pull(&c->turn, client_open_at(&c->client));
            break;
        }
        controller_decide(c, store_take(&c->store));
        arena_reset(&c->tmp);
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void controller_on_stop_timer(void *ctx)
{
    struct controller *c = ctx;
    if (!c->stopping) {
        controller_lead(c, true); /* without election: leads from its first moment in the loop */
        return;
    }
    if (c->config.elect && c->lease.state != LEASE_OVER) {
        lease_release(&c->lease); /* answers that have not come yet are not waited for */
        return;
    }
    if (!c->stopped) {
        c->stopped = true;
        controller_lead(c, false);
        if (c->config.on_stopped != NULL) {
            c->config.on_stopped(c->config.ctx);
        }
    }
}

static void controller_on_released(void *ctx)
{
    struct controller *c = ctx;
    loop_timer_set(&c->stop, loop_now(c->loop));
}

static void controller_collect(void *ctx)
{
    struct controller *c = ctx;
    uint32_t counts[LABEL_STATE_COUNT] = { 0 };
    uint32_t none = 0;
    uint32_t unreadable = 0;
    MAP_EACH (&c->store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct task *task = item->extra;
        enum label_state state;
        if (label_state_parse(node_label(item->object, LABEL_STATE), &state)) {
            counts[state]++;
        } else {
            none++;
        }
        unreadable += task != NULL && task->error.n > 0 ? 1 : 0;
    }
    for (int i = 0; i < LABEL_STATE_COUNT; i++) {
        gauges_nodes(&c->gauges, label_state_name((enum label_state)i), counts[i]);
    }
    gauges_nodes(&c->gauges, STR(""), none);
    gauges_put(c->gauges.unreadable, unreadable);
    gauges_put(c->gauges.queue[0], c->store.dirty_count);
    gauges_put(c->gauges.queue[1], c->stats.in_flight);
    gauges_put(c->gauges.queue[2], c->stats.later);
    gauges_put(c->gauges.relists, (double)c->reflector.lists);
}

static void controller_copy_config(struct controller *c, const struct controller_config *config)
{
    c->config = *config;
    c->config.identity = arena_str(&c->memory, config->identity);
    c->config.server = arena_str(&c->memory, config->server);
    c->config.lease_namespace = arena_str(
        &c->memory, config->lease_namespace.n > 0 ? config->lease_namespace : STR("default"));
    c->config.lease_name = arena_str(&c->memory, config->lease_name.n > 0 ? config->lease_name
                                                                          : CONTROLLER_LEASE_NAME);
}

static void controller_init_kube(struct controller *c, struct api *api)
{
    client_init(&c->client, c->loop, api);
    c->client.mutations = c->config.mutations;
    c->client.on_reply = controller_on_reply;
    c->client.ctx = c;
    struct str hostname;
    struct str rest;
    (void)str_cut(c->config.identity, STR("_"), &hostname, &rest); /* without one it is all */
    recorder_init(
        &c->recorder, &c->client, CONTROLLER_NAME,
        arena_printf(&c->memory, STR_FMT "-" STR_FMT, STR_ARG(CONTROLLER_NAME), STR_ARG(hostname)));
    intern_init(&c->labels, loop_random(c->loop), loop_random(c->loop));
    c->annotations[0] = DATA_ANNOTATION;
    c->keep = (struct node_keep){
        .labels = &c->labels,
        .annotations = c->annotations,
        .annotation_count = 1,
    };
    store_init(&c->store, &node_kind, &c->keep, loop_random(c->loop));
    c->store.mutations = c->config.mutations;
    c->store.on_gone = controller_on_gone;
    reflector_init(&c->reflector, &c->client,
                   &(struct reflector_config){
                       .path = NODES_PATH,
                       .on_list = controller_on_list,
                       .on_object = controller_on_object,
                       .on_synced = controller_on_synced,
                       .on_error = controller_on_error,
                       .ctx = c,
                   });
    if (c->config.elect) {
        lease_init(&c->lease, &c->client,
                   &(struct lease_config){
                       .space = c->config.lease_namespace,
                       .name = c->config.lease_name,
                       .identity = c->config.identity,
                       .on_change = controller_lead,
                       .on_released = controller_on_released,
                       .on_error = controller_on_lease_error,
                       .ctx = c,
                   });
    }
}

struct controller *controller_new(struct loop *loop, struct api *api, struct log *log,
                                  struct metrics *metrics, const struct controller_config *config)
{
    struct controller *c = HEAP_NEW(struct controller);
    c->loop = loop;
    c->log = log;
    list_init(&c->later);
    loop_timer_init(&c->turn, loop, controller_turn, c);
    loop_timer_init(&c->wake, loop, controller_wake, c);
    loop_timer_init(&c->stop, loop, controller_on_stop_timer, c);
    controller_copy_config(c, config);
    gauges_init(&c->gauges, metrics, c->config.server, c->config.lease_name);
    if (metrics != NULL) {
        metrics_on_collect(metrics, controller_collect, c);
    }
    controller_init_kube(c, api);
    reflector_start(&c->reflector);
    if (c->config.elect) {
        lease_start(&c->lease);
    } else {
        loop_timer_set(&c->stop, loop_now(loop));
    }
    return c;
}

void controller_stop(struct controller *c)
{
    if (c->stopping) {
        return;
    }
    c->stopping = true;
    loop_timer_stop(&c->turn);
    usec_t now = loop_now(c->loop);
    loop_timer_set(&c->stop, c->stats.in_flight > 0 ? now + STOP_DRAIN_MAX : now);
}

void controller_free(struct controller *c)
{
    if (c == NULL) {
        return;
    }
    c->log = NULL; /* what ends now is not news */
    if (c->gauges.metrics != NULL) {
        metrics_off_collect(c->gauges.metrics, controller_collect, c);
    }
    if (c->config.elect) {
        lease_done(&c->lease);
    }
    recorder_done(&c->recorder);
    reflector_done(&c->reflector);
    store_done(&c->store); /* ends the tasks too */
    ASSERT(c->stats.in_flight == 0 && c->stats.later == 0);
    intern_done(&c->labels);
    loop_timer_done(&c->stop);
    loop_timer_done(&c->wake);
    loop_timer_done(&c->turn);
    buf_done(&c->path);
    buf_done(&c->body);
    arena_done(&c->tmp);
    arena_done(&c->memory);
    heap_free(c);
}

/* ── looking ───────────────────────────────────────────────────────────────────────────────── */

bool controller_synced(const struct controller *c)
{
    return c->reflector.synced;
}

bool controller_leading(const struct controller *c)
{
    return !c->stopping && (c->config.elect ? lease_is_held(&c->lease) : c->leading);
}

struct str controller_leader(const struct controller *c)
{
    return c->config.elect ? lease_holder(&c->lease) : c->config.identity;
}

bool controller_ready(const struct controller *c, struct str *ret_why)
{
    if (c->reflector.synced && !c->reflector.failing) {
        return true;
    }
    *ret_why = c->why[0] != '\0' ? str_from(c->why) : STR("the nodes are not known yet");
    return false;
}

static struct controller_node controller_view(const struct store_item *item)
{
    const struct node *node = item->object;
    const struct task *task = item->extra;
    return (struct controller_node){
        .name = item->name,
        .uid = node->uid,
        .state = node_label(node, LABEL_STATE),
        .data = node_annotation(node, DATA_ANNOTATION),
        .error = task != NULL ? buf_str(&task->error) : STR_NONE,
        .version = item->version,
        .decided = item->decided,
        .unschedulable = node->unschedulable,
        .ready = node->ready,
        .busy = task != NULL && task->call != NULL,
        .labels = node->labels,
        .label_count = node->label_count,
    };
}

uint32_t controller_node_count(const struct controller *c)
{
    return store_count(&c->store);
}

void controller_each_node(const struct controller *c,
                          bool (*fn)(void *ctx, const struct controller_node *node), void *ctx)
{
    MAP_EACH (&c->store.items, entry) {
        const struct controller_node node = controller_view(map_item_value(entry));
        if (!fn(ctx, &node)) {
            return;
        }
    }
}

bool controller_find_node(const struct controller *c, struct str name, struct controller_node *ret)
{
    const struct store_item *item = store_find(&c->store, name);
    if (item == NULL) {
        return false;
    }
    *ret = controller_view(item);
    return true;
}

void controller_stats(const struct controller *c, struct controller_stats *ret)
{
    *ret = c->stats;
    ret->dirty = c->store.dirty_count;
}

void controller_check(const struct controller *c)
{
    uint32_t in_flight = 0;
    uint32_t later = 0;
    store_check(&c->store);
    intern_check(&c->labels);
    recorder_check(&c->recorder);
    if (c->config.elect) {
        lease_check(&c->lease);
    }
    MAP_EACH (&c->store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct task *task = item->extra;
        if (task != NULL) {
            ASSERT(task->item == item);
            in_flight += task->call != NULL ? 1 : 0;
            later += list_linked(&task->link) ? 1 : 0;
        }
    }
    ASSERT(in_flight == c->stats.in_flight);
    ASSERT(later == c->stats.later);
}
