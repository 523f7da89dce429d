#include "base/alloc.h"
#include "profile/controller_internal.h"

#define STOP_DRAIN_MAX SECONDS(2) /* for answers that are under way when it stops */

/* ── leading ───────────────────────────────────────────────────────────────────────────────── */

/* By the clock of this moment: what became of the lease may not have been noticed yet. */
static bool controller_holds_lease(const struct controller *c)
{
    return !c->config.elect || lease_is_held(&c->lease) ||
           mutated(c->config.mutations, MUTATION_ACT_WITHOUT_LEASE);
}

static bool controller_may_drain(void *ctx)
{
    return controller_holds_lease(ctx);
}

bool controller_may_act(const struct controller *c)
{
    return c->reflector.synced && !c->stopping && c->active != NULL && c->nodes_fresh &&
           controller_holds_lease(c);
}

void controller_schedule_turn(struct controller *c)
{
    if (controller_may_act(c)) {
        loop_timer_pull(&c->turn, loop_now(c->loop));
    }
}

/* Whatever is known is brought up to date by a list that begins now. */
void controller_relist(struct controller *c)
{
    const struct reflector_config config = c->reflector.config;
    uint64_t lists = c->reflector.lists;
    reflector_done(&c->reflector);
    reflector_init(&c->reflector, &c->client, &config);
    c->reflector.lists = lists;
    reflector_start(&c->reflector);
}

static void controller_notify_acting(struct controller *c)
{
    if (c->config.on_acting != NULL) {
        c->config.on_acting(c->config.ctx);
    }
}

/* What the leader before did last may not have come by the watch yet. Where limits are to be exact,
 * a list that begins after its end is the only proof. */
static void controller_catch_up(struct controller *c)
{
    c->nodes_fresh = !c->config.elect || c->active == NULL ||
                     (!c->active->has_max_maintenance && c->arbiter == NULL) ||
                     mutated(c->config.mutations, MUTATION_FORGET_GRANTS);
    if (!c->nodes_fresh) {
        controller_relist(c);
    }
}

static void controller_set_leading(void *ctx, bool leading)
{
    struct controller *c = ctx;
    if (leading == c->leading) {
        return;
    }
    c->leading = leading;
    series_set(c->metrics.leading, leading ? 1 : 0);
    if (leading) {
        log_info(c->log, "Starting workers", KV_TEXT("controller", "node"),
                 KV_I64("nodes", store_count(&c->store)), KV_STR("identity", c->config.identity));
        controller_catch_up(c);
        /* Drains and messages ended with the time before, and nothing else may happen to a node. */
        turn_mark_all(c);
    } else if (!c->stopping) {
        log_error(c->log, "leader election lost", KV_STR("identity", c->config.identity),
                  KV_STR("holder", lease_holder(&c->lease)));
    }
    if (!leading) {
        grant_drop_all(c);
        external_facts_drop_all_pods(c->external); /* who leads watches */
        shuffle_drop_all(c->shuffle);
    }
    controller_schedule_turn(c);
    controller_notify_acting(c);
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
    if (r == 0 && (c->store.dirty_count > 0 || deleted)) {
        controller_schedule_turn(c); /* one that is gone may have made room for others */
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
    c->watch_error[0] = '\0';
    c->nodes_known = true;
    c->nodes_fresh = true;
    loop_timer_pull(&c->turn, loop_now(c->loop));
    controller_notify_acting(c);
    return true;
}

/* Nobody was told of anything: whoever would not act on an old picture looks again. */
static void controller_on_watch_ok(void *ctx)
{
    controller_notify_acting(ctx);
}

static void controller_on_error(void *ctx, const struct err *err, bool bad)
{
    struct controller *c = ctx;
    (void)snprintf(c->watch_error, sizeof(c->watch_error), "%s", err->msg);
    if (bad) {
        c->stats.bad_input++;
        series_inc(c->metrics.bad_input);
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
    controller_metrics_request(&c->metrics, verb, status);
}

static void controller_on_change(void *ctx, struct store_item *item, const void *before)
{
    struct controller *c = ctx;
    fleet_on_change(c->fleet, item, before);
    if (item->extra != NULL) {
        node_drain_set_rules(item->extra);
    }
    if (c->config.on_node != NULL) {
        c->config.on_node(c->config.ctx, item, before, /* gone= */ false);
    }
}

static void controller_on_gone(void *ctx, struct store_item *item)
{
    struct controller *c = ctx;
    if (item->extra != NULL) {
        managed_node_free(item->extra);
    }
    external_facts_drop_pods(c->external, item->name);
    fleet_on_gone(c->fleet, item);
    if (c->config.on_node != NULL) {
        c->config.on_node(c->config.ctx, item, NULL, /* gone= */ true);
    }
    log_debug(c->log, "node is gone", KV_STR("node", item->name));
}

static void controller_on_facts(void *ctx, uint64_t instances)
{
    struct controller *c = ctx;
    c->changed |= instances;
    controller_schedule_turn(c);
}

/* The others that wait find it in the fleet's sum. */
static void controller_on_pods(void *ctx, struct str node)
{
    struct controller *c = ctx;
    struct store_item *item = store_find(&c->store, node);
    if (item != NULL) {
        store_mark(&c->store, item);
    }
    controller_schedule_turn(c);
}

/* Some wait has ended: of nodes, or of a room that grows by itself. */
static void controller_on_wake(void *ctx)
{
    struct controller *c = ctx;
    managed_node_wake_due(c);
    if (c->capacity_next != USEC_NEVER && c->capacity_next <= loop_wall(c->loop)) {
        c->capacity_changed = true;
    }
    usec_t next = MIN(managed_node_next_wake(c),
                      c->capacity_changed ? USEC_NEVER : controller_monotonic(c, c->capacity_next));
    if (next != USEC_NEVER) {
        loop_timer_pull(&c->wake, next);
    }
    controller_schedule_turn(c);
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void controller_on_stop_timer(void *ctx)
{
    struct controller *c = ctx;
    if (!c->stopping) {
        controller_set_leading(
            c, true); /* without election: leads from its first moment in the loop */
        return;
    }
    if (c->config.elect && c->lease.state != LEASE_OVER) {
        lease_release(&c->lease); /* answers that have not come yet are not waited for */
        return;
    }
    if (!c->stopped) {
        c->stopped = true;
        controller_set_leading(c, false);
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

static void controller_copy_config(struct controller *c, const struct controller_config *config)
{
    c->config = *config;
    c->config.identity = arena_str(&c->memory, config->identity);
    struct str *keep = ARENA_ARRAY(&c->memory, struct str, config->keep_n);
    for (uint32_t i = 0; i < config->keep_n; i++) {
        keep[i] = arena_str(&c->memory, config->keep[i]);
    }
    c->config.keep = keep;
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
    c->keep.labels = &c->labels;
    store_init(&c->store, &node_kind, &c->keep, loop_random(c->loop));
    c->store.mutations = c->config.mutations;
    c->store.on_gone = controller_on_gone;
    c->store.on_change = controller_on_change;
    c->fleet = fleet_new(&c->store);
    c->external = external_facts_new(c->loop, &(struct external_facts_config){
                                                  .client = &c->client,
                                                  .outbound = c->config.outbound,
                                                  .on_change = controller_on_facts,
                                                  .on_pods = controller_on_pods,
                                                  .ctx = c,
                                              });
    fleet_set_facts(c->fleet, external_facts_facts(c->external));
    c->drains = drains_new(c->loop, &(struct drains_config){
                                        .client = &c->client,
                                        .recorder = &c->recorder,
                                        .may_act = controller_may_drain,
                                        .ctx = c,
                                        .mutations = c->config.mutations,
                                    });
    c->shuffle = shuffle_new(&c->client, &c->metrics, c->log);
    notifier_init(&c->notify, c->loop, &c->client, c->config.outbound);
    reflector_init(&c->reflector, &c->client,
                   &(struct reflector_config){
                       .path = NODES_PATH,
                       .on_list = controller_on_list,
                       .on_object = controller_on_object,
                       .on_synced = controller_on_synced,
                       .on_error = controller_on_error,
                       .on_well = controller_on_watch_ok,
                       .ctx = c,
                   });
    if (c->config.elect) {
        lease_init(&c->lease, &c->client,
                   &(struct lease_config){
                       .namespace = c->config.lease_namespace,
                       .name = c->config.lease_name,
                       .identity = c->config.identity,
                       .on_change = controller_set_leading,
                       .on_released = controller_on_released,
                       .on_error = controller_on_lease_error,
                       .note_key = LEASE_GRANTS_ANNOTATION,
                       .on_noted = grant_on_noted,
                       .ctx = c,
                   });
    }
}

struct controller *controller_new(struct loop *loop, struct api *api, struct log *log,
                                  struct metrics *metrics, const struct controller_config *config)
{
    struct controller *c = ALLOC_NEW(struct controller);
    c->loop = loop;
    c->log = log;
    c->capacity_next = USEC_NEVER;
    c->nodes_fresh = true;
    list_init(&c->wait_queues);
    list_init(&c->recording);
    prioqueue_init(&c->waking, prio_by_wake);
    prioqueue_init(&c->wants_grant, prio_by_since);
    map_init(&c->wait_queue_ids, loop_random(loop), loop_random(loop));
    lease_grants_init(&c->ledger, loop_random(loop));
    loop_timer_init(&c->turn, loop, controller_turn, c);
    loop_timer_init(&c->wake, loop, controller_on_wake, c);
    loop_timer_init(&c->stop, loop, controller_on_stop_timer, c);
    controller_copy_config(c, config);
    controller_metrics_init(&c->metrics, metrics, c->config.server, c->config.lease_name);
    if (metrics != NULL) {
        metrics_on_collect(metrics, controller_view_collect, c);
    }
    controller_init_kube(c, api);
    if (!config->wait_for_config) {
        reload_activate(c, reload_default(c));
    }
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
    if (c->metrics.registry != NULL) {
        metrics_off_collect(c->metrics.registry, controller_view_collect, c);
    }
    if (c->config.elect) {
        lease_done(&c->lease);
    }
    reflector_done(&c->reflector);
    store_done(&c->store); /* ends the members too */
    ASSERT(c->stats.in_flight == 0 && c->granting == 0 && c->waking.n == 0 &&
           c->wants_grant.n == 0);
    ASSERT(list_empty(&c->wait_queues) && list_empty(&c->recording));
    shuffle_free(c->shuffle);
    drains_free(c->drains);
    external_facts_free(c->external);
    fleet_free(c->fleet);
    recorder_done(&c->recorder);
    lease_grants_done(&c->ledger);
    prioqueue_done(&c->waking);
    prioqueue_done(&c->wants_grant);
    map_done(&c->wait_queue_ids);
    reload_free(c->active);
    buf_done(&c->config_file);
    buf_done(&c->config_error);
    intern_done(&c->labels);
    loop_timer_done(&c->stop);
    loop_timer_done(&c->wake);
    loop_timer_done(&c->turn);
    buf_done(&c->path);
    buf_done(&c->body);
    arena_done(&c->tmp);
    arena_done(&c->memory);
    alloc_free(c);
}
