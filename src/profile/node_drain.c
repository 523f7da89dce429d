/*
 * Drains that profiles ask for: a node's drain is started, follows the node's drain rules and is
 * stopped when no profile asks for it any more.
 */
#include "kinds/keys.h"
#include "profile/controller_internal.h"

static void node_drain_on_change(void *ctx)
{
    struct managed_node *m = ctx;
    struct controller *c = m->c;
    if (drain_is_done(m->drain)) {
        log_info(c->log, "the node is drained", KV_STR("node", m->item->name));
    }
    store_mark(&c->core->nodes.store, m->item);
    controller_schedule_turn(c);
}

void node_drain_run(struct managed_node *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    const struct node *node = m->item->object;
    if (m->drain != NULL) {
        drain_set_rules(m->drain, node_annotation(node, KEY_DRAIN_RULES));
        return;
    }
    const struct config_instance *instance = effect->drain;
    const struct drain_spec spec = {
        .node = m->item->name,
        .node_uid = node->uid,
        .eviction_timeout =
            plugin_get(instance->plugin, instance->values, "evictionTimeout")->number / 1000,
        .deletion_timeout =
            plugin_get(instance->plugin, instance->values, "deletionTimeout")->number / 1000,
        .force = plugin_get(instance->plugin, instance->values, "forceEviction")->truth,
        .grace = -1,
        .drain_rules = node_annotation(node, KEY_DRAIN_RULES),
    };
    log_info(c->log, "Going to evict pods from node.", KV_STR("node", m->item->name),
             KV_STR("profile", effect->profiles[effect->drain_profile].name));
    m->drain = drain_start(c->core->drains, &spec, node_drain_on_change, m);
}

void node_drain_set_rules(struct managed_node *m)
{
    struct str rules = node_annotation(m->item->object, KEY_DRAIN_RULES);
    if (m->drain != NULL && rules.p != NULL) {
        drain_set_rules(m->drain, rules);
    }
}

void node_drain_stop(struct managed_node *m)
{
    if (m->drain != NULL) {
        drain_stop(STEAL(m->drain));
    }
}

struct str node_drain_text(const struct managed_node *m, struct arena *out)
{
    struct str words = drain_text(m->drain, out);
    struct str all = core_grants_stopped(m->c->core);
    if (all.n > 0) {
        return arena_printf(out, STR_FMT "; pods stay, " STR_FMT, STR_ARG(words), STR_ARG(all));
    }
    struct str paused = node_limit_paused(m, out);
    if (paused.n == 0 || drain_is_done(m->drain)) {
        return words;
    }
    return arena_printf(out, STR_FMT "; pods stay while limit " STR_FMT " is paused",
                        STR_ARG(words), STR_ARG(paused));
}
