#include "core/core_internal.h"

#include "base/alloc.h"
#include "kinds/keys.h"
#include "ledger/lease_grants.h"

#define CORE_NAME STR("maintenance") /* as Events name it */
#define NODES_PATH STR("/api/v1/nodes")
#define STOP_WAIT_MAX SECONDS(2) /* for answers that are under way when it stops */

/* ── leading ───────────────────────────────────────────────────────────────────────────────── */

/* By the clock of this moment: what became of the Lease may not have been noticed yet. */
bool core_holds_lease(const struct core *c)
{
    return !c->config.elect || lease_is_held(&c->lease) ||
           mutated(c->config.mutations, MUTATION_ACT_WITHOUT_LEASE);
}

static bool core_may_drain(void *ctx)
{
    return core_holds_lease(ctx);
}

/* Somebody has to give the right: the drain tries again, and does not end without it. */
static void core_on_denied(void *ctx, struct str node, struct str pod, struct str reason)
{
    struct core *c = ctx;
    log_error(c->log, "The server does not let pods be evicted", KV_STR("node", node),
              KV_STR("pod", pod), KV_STR("error", reason));
}

/* As soon as it would have been needed, and once: nothing waits for these. */
static void core_tell_missing_right(struct core *c, const char *right, const char *effect)
{
    log_warn(c->log, "A right is missing", KV_STR("right", str_from(right)),
             KV_STR("effect", str_from(effect)));
}

static void core_on_budgets_denied(void *ctx)
{
    core_tell_missing_right(ctx, "list and watch poddisruptionbudgets of the group policy",
                            "evictions are tried, and the server says which budget forbids one");
}

static void core_on_events_denied(void *ctx, enum recorder_api api)
{
    if (api == RECORDER_API_EVENTS) {
        core_tell_missing_right(ctx, "create and patch events of the group events.k8s.io",
                                "Events are written to the core API");
    } else {
        core_tell_missing_right(ctx, "create and patch events", "there are no Events");
    }
}

static void core_on_blocked(void *ctx)
{
    struct core *c = ctx;
    CORE_EACH_PART(c, p, on_drain_blocked);
}

bool core_is_disturbed(const struct core *c, const struct core_part *except,
                       const struct store_item *item)
{
    LIST_EACH (&c->parts, link) {
        const struct core_part *p = CONTAINER_OF(link, struct core_part, link);
        if (p != except && p->ops->disturbs != NULL && p->ops->disturbs(p, item)) {
            return true;
        }
    }
    return false;
}

void core_tell_request(struct core *c, const struct core_request_news *news)
{
    CORE_EACH_PART(c, p, on_request, news);
}

static bool core_parts_ready(const struct core *c, struct str *ret_why)
{
    LIST_EACH (&c->parts, link) {
        const struct core_part *p = CONTAINER_OF(link, struct core_part, link);
        if (p->ops->is_ready != NULL && !p->ops->is_ready(p, ret_why)) {
            return false;
        }
    }
    return true;
}

bool core_may_decide(const struct core *c)
{
    return c->nodes.synced && !c->stopping && c->nodes_fresh && core_holds_lease(c);
}

bool core_may_act(const struct core *c)
{
    return core_may_decide(c) && !c->nodes.failing;
}

bool core_leads(const struct core *c)
{
    return !c->stopping && (c->config.elect ? lease_is_held(&c->lease) : c->leading);
}

struct str core_leader(const struct core *c)
{
    return c->config.elect ? lease_holder(&c->lease) : c->config.identity;
}

bool core_ready(const struct core *c, struct str *ret_why)
{
    if (!core_parts_ready(c, ret_why)) {
        return false;
    }
    if (c->nodes_known && !c->nodes.failing) {
        *ret_why = c->denied;
        return true;
    }
    *ret_why =
        c->nodes.failing ? str_from(c->nodes.trouble.msg) : STR("the nodes are not known yet");
    return false;
}

struct str core_pause_text(const struct core *c, struct arena *out)
{
    return client_pause_text(&c->client, c->config.server, out);
}

void core_relist(struct core *c)
{
    c->nodes_fresh = false;
    informer_relist(&c->nodes);
}

/* What the leader before did last may not have come by the watch yet. Where limits are to be exact,
 * a list that begins after its end is the only proof. */
static void core_catch_up(struct core *c)
{
    bool exact = c->arbiter != NULL;
    LIST_EACH (&c->parts, link) {
        const struct core_part *p = CONTAINER_OF(link, struct core_part, link);
        exact = exact || (p->ops->counts_nodes != NULL && p->ops->counts_nodes(p));
    }
    c->nodes_fresh = true;
    if (c->config.elect && exact && !mutated(c->config.mutations, MUTATION_FORGET_GRANTS)) {
        core_relist(c);
    }
}

static void core_lead(void *ctx, bool leading)
{
    struct core *c = ctx;
    if (leading == c->leading) {
        return;
    }
    c->leading = leading;
    metric_set(c->metrics.leading, leading ? 1 : 0);
    if (leading) {
        log_info(c->log, "Starting workers", KV_TEXT("controller", "node"),
                 KV_I64("nodes", store_count(&c->nodes.store)),
                 KV_STR("identity", c->config.identity));
        core_catch_up(c);
    } else if (!c->stopping) {
        log_error(c->log, "leader election lost", KV_STR("identity", c->config.identity),
                  KV_STR("holder", lease_holder(&c->lease)));
    }
    CORE_EACH_PART(c, p, on_leading, leading);
    core_tell_may_act(c);
    if (c->config.on_leading != NULL) {
        c->config.on_leading(c->config.ctx, leading);
    }
}

static void core_on_lease_error(void *ctx, const struct err *err)
{
    struct core *c = ctx;
    log_warn(c->log, "leader election: request failed", KV_ERR(err));
}

static void core_on_lease_noted(void *ctx, uint64_t serial)
{
    struct core *c = ctx;
    CORE_EACH_PART(c, p, on_lease_noted, serial);
}

/* ── the Nodes ─────────────────────────────────────────────────────────────────────────────── */

void core_tell_may_act(struct core *c)
{
    if (c->arbiter != NULL) {
        arbiter_wake(c->arbiter);
    }
    CORE_EACH_PART(c, p, on_may_act);
}

static void core_on_node_change(void *ctx, struct store_item *item, const void *before)
{
    struct core *c = ctx;
    if (c->arbiter != NULL) {
        arbiter_on_node(c->arbiter, item, before, /* gone= */ false);
    }
    CORE_EACH_PART(c, p, on_node, item, before, /* gone= */ false);
}

static void core_on_node_gone(void *ctx, struct store_item *item)
{
    struct core *c = ctx;
    if (c->arbiter != NULL) {
        arbiter_on_node(c->arbiter, item, NULL, /* gone= */ true);
    }
    CORE_EACH_PART(c, p, on_node, item, NULL, /* gone= */ true);
    log_debug(c->log, "node is gone", KV_STR("node", item->name));
}

static void core_on_nodes(void *ctx)
{
    struct core *c = ctx;
    CORE_EACH_PART(c, p, on_nodes);
}

static void core_on_nodes_reset(void *ctx, uint64_t version)
{
    struct core *c = ctx;
    log_warn(c->log, "the API server's versions went backwards; reading everything again",
             KV_I64("version", version));
}

static void core_on_nodes_synced(void *ctx)
{
    struct core *c = ctx;
    log_info(c->log, "nodes are known", KV_I64("nodes", store_count(&c->nodes.store)),
             KV_I64("version", c->nodes.reflector.version));
    c->nodes_known = true;
    c->nodes_fresh = true;
    CORE_EACH_PART(c, p, on_synced);
    core_tell_may_act(c);
}

/* No object came: whoever would not act on an old picture looks again. */
static void core_on_nodes_recovered(void *ctx)
{
    core_tell_may_act(ctx);
}

static void core_on_nodes_error(void *ctx, const struct err *err)
{
    struct core *c = ctx;
    if (c->nodes.unreadable) {
        c->bad_input++;
        metric_add(c->metrics.bad_input, 1);
        log_error(c->log, "the API server's answer cannot be read", KV_ERR(err));
    } else if (err->code == ERR_GONE) {
        log_info(c->log, "the watch has expired; listing again", KV_ERR(err));
    } else {
        log_warn(c->log, "watch failed; trying again", KV_ERR(err));
    }
}

static void core_collect_annotations(struct core *c)
{
    arena_reset(&c->keep_memory);
    struct str *kept = ARENA_ARRAY(&c->keep_memory, struct str, NODE_ANNOTATIONS_MAX);
    uint32_t count = 0;
    LIST_EACH (&c->parts, link) {
        const struct core_part *p = CONTAINER_OF(link, struct core_part, link);
        for (uint32_t i = 0; i < p->annotation_n && count < NODE_ANNOTATIONS_MAX; i++) {
            uint32_t k = 0;
            while (k < count && !str_eq(kept[k], p->annotations[i])) {
                k++;
            }
            if (k == count) {
                kept[count++] = arena_str(&c->keep_memory, p->annotations[i]);
            }
        }
    }
    c->keep.annotations = kept;
    c->keep.annotation_count = count;
}

void core_keep_annotations(struct core *c, struct core_part *part, const struct str *keys,
                           uint32_t n, bool relist)
{
    part->annotations = keys;
    part->annotation_n = n;
    core_collect_annotations(c);
    if (relist && (c->nodes_known || store_count(&c->nodes.store) > 0)) {
        store_reshape(&c->nodes.store);
        core_relist(c);
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void core_on_reply(void *ctx, enum api_verb verb, int status)
{
    struct core *c = ctx;
    core_metrics_request(&c->metrics, verb, status);
}

static void core_collect(void *ctx)
{
    struct core *c = ctx;
    client_metrics_collect(&c->metrics.client, &c->client);
    metric_set(c->metrics.lists, (double)c->nodes.reflector.lists);
    core_metrics_drains(&c->metrics, c->drains);
}

static void core_on_stop_timer(void *ctx)
{
    struct core *c = ctx;
    if (!c->stopping) {
        core_lead(c, true); /* without election: leads from its first moment in the loop */
        return;
    }
    if (c->config.elect && c->lease.state != LEASE_OVER) {
        lease_release(&c->lease); /* answers that have not come yet are not waited for */
        return;
    }
    if (!c->stopped) {
        c->stopped = true;
        core_lead(c, false);
        if (c->config.on_stopped != NULL) {
            c->config.on_stopped(c->config.ctx);
        }
    }
}

static void core_on_lease_released(void *ctx)
{
    struct core *c = ctx;
    loop_timer_set(&c->stop, loop_now(c->loop));
}

static void core_copy_config(struct core *c, const struct core_config *config)
{
    struct arena *m = &c->memory;
    c->config = *config;
    c->config.identity = arena_str(m, config->identity);
    c->config.server = arena_str(m, config->server);
    c->config.limits.namespace = arena_str(m, config->limits.namespace);
    c->config.lease_namespace =
        arena_str(m, config->lease_namespace.n > 0 ? config->lease_namespace : STR("default"));
    c->config.lease_name =
        arena_str(m, config->lease_name.n > 0 ? config->lease_name : CORE_LEASE_NAME);
}

static void core_init_lease(struct core *c)
{
    lease_init(&c->lease, &c->client,
               &(struct lease_config){
                   .namespace = c->config.lease_namespace,
                   .name = c->config.lease_name,
                   .identity = c->config.identity,
                   .on_change = core_lead,
                   .on_released = core_on_lease_released,
                   .on_error = core_on_lease_error,
                   .note_keys = { [CORE_NOTE_GRANTS] = KEY_LEASE_GRANTS,
                                  [CORE_NOTE_ALERTS] = KEY_LEASE_ALERTS },
                   .on_noted = core_on_lease_noted,
                   .on_read = core_pause_read,
                   .ctx = c,
               });
}

static void core_init_kube(struct core *c)
{
    struct str hostname;
    struct str rest;
    client_init(&c->client, c->loop, c->config.api);
    mutations_copy(&c->client, &c->config);
    c->client.on_reply = core_on_reply;
    c->client.ctx = c;
    (void)str_cut(c->config.identity, STR("_"), &hostname, &rest); /* without one it is all */
    recorder_init(
        &c->recorder, &c->client, CORE_NAME,
        arena_printf(&c->memory, STR_FMT "-" STR_FMT, STR_ARG(CORE_NAME), STR_ARG(hostname)));
    recorder_on_denied(&c->recorder, core_on_events_denied, c);
    intern_init(&c->labels, loop_random(c->loop), loop_random(c->loop));
    c->keep.labels = &c->labels;
    informer_init(&c->nodes, &(struct informer_config){
                                 .client = &c->client,
                                 .kind = &node_kind,
                                 .on_change = core_on_node_change,
                                 .on_gone = core_on_node_gone,
                                 .on_update = core_on_nodes,
                                 .on_synced = core_on_nodes_synced,
                                 .on_recovered = core_on_nodes_recovered,
                                 .on_reset = core_on_nodes_reset,
                                 .on_error = core_on_nodes_error,
                                 .ctx = c,
                             });
    c->drains = drains_new(c->loop, &(struct drains_config){
                                        .client = &c->client,
                                        .recorder = &c->recorder,
                                        .may_act = core_may_drain,
                                        .on_denied = core_on_denied,
                                        .on_budgets_denied = core_on_budgets_denied,
                                        .on_blocked = core_on_blocked,
                                        .ctx = c,
                                    });
    if (c->config.elect) {
        core_init_lease(c);
    }
}

struct core *core_new(const struct core_config *config)
{
    struct core *c = ALLOC_NEW(struct core);
    c->loop = config->loop;
    c->log = config->log;
    c->nodes_fresh = true;
    list_init(&c->parts);
    core_copy_config(c, config);
    loop_timer_init(&c->stop, c->loop, core_on_stop_timer, c);
    core_metrics_init(&c->metrics, config->metrics, c->config.server, c->config.lease_name);
    if (config->metrics != NULL) {
        metrics_on_collect(config->metrics, core_collect, c);
    }
    core_init_kube(c);
    core_pause_init(c);
    core_arbiter_init(c);
    return c;
}

void core_join(struct core *c, struct core_part *part, const struct core_part_ops *ops)
{
    part->ops = ops;
    list_add(&c->parts, &part->link);
    core_collect_annotations(c);
}

void core_leave(struct core_part *part)
{
    list_del(&part->link);
}

void core_start(struct core *c)
{
    informer_start(&c->nodes, NODES_PATH);
    if (c->config.elect) {
        lease_start(&c->lease);
    } else {
        loop_timer_set(&c->stop, loop_now(c->loop));
    }
    core_pause_start(c);
    core_arbiter_look(c);
}

void core_stop(struct core *c)
{
    if (c->stopping) {
        return;
    }
    c->stopping = true;
    usec_t now = loop_now(c->loop);
    loop_timer_set(&c->stop, core_is_busy(c) ? now + STOP_WAIT_MAX : now);
}

bool core_is_busy(const struct core *c)
{
    LIST_EACH (&c->parts, link) {
        const struct core_part *p = CONTAINER_OF(link, struct core_part, link);
        if (p->ops->is_busy != NULL && p->ops->is_busy(p)) {
            return true;
        }
    }
    return false;
}

void core_written(struct core *c)
{
    if (c->stopping && !core_is_busy(c)) {
        loop_timer_set(&c->stop, loop_now(c->loop));
    }
}

void core_free(struct core *c)
{
    if (c == NULL) {
        return;
    }
    ASSERT(list_empty(&c->parts));
    c->log = NULL; /* what ends now is not news */
    if (c->config.metrics != NULL) {
        metrics_off_collect(c->config.metrics, core_collect, c);
    }
    core_arbiter_done(c);
    core_pause_done(c);
    if (c->config.elect) {
        lease_done(&c->lease);
    }
    informer_done(&c->nodes);
    drains_free(c->drains);
    recorder_done(&c->recorder);
    intern_done(&c->labels);
    loop_timer_done(&c->stop);
    arena_done(&c->keep_memory);
    arena_done(&c->memory);
    alloc_free(c);
}

void core_check(const struct core *c)
{
    store_check(&c->nodes.store);
    intern_check(&c->labels);
    recorder_check(&c->recorder);
    drains_check(c->drains);
    if (c->config.elect) {
        lease_check(&c->lease);
    }
    if (c->arbiter != NULL) {
        arbiter_check(c->arbiter);
    }
}
