#include "integration/integration_node.h"

#include "kinds/keys.h"

/* ── all of a provider ─────────────────────────────────────────────────────────────────────── */

void integration_nodes_init(struct integration_nodes *all, struct integration *in)
{
    struct loop *loop = in->core->loop;
    *all = (struct integration_nodes){ .in = in };
    map_init(&all->by_name, loop_random(loop), loop_random(loop));
    list_init(&all->dirty);
}

void integration_nodes_done(struct integration_nodes *all)
{
    ASSERT(map_count(&all->by_name) == 0);
    map_done(&all->by_name);
}

struct integration_node *integration_nodes_find(const struct integration_nodes *all,
                                                struct str name)
{
    return map_find(&all->by_name, name);
}

void integration_nodes_turn(struct integration_nodes *all,
                            void (*step)(struct integration_node *n, const struct store_item *item))
{
    struct list todo;
    list_move(&todo, &all->dirty);
    while (!list_empty(&todo)) {
        struct integration_node *n = CONTAINER_OF(todo.next, struct integration_node, dirty);
        const struct store_item *item = store_find(&all->in->core->nodes.store, n->name);
        list_del(&n->dirty);
        if (item != NULL) {
            step(n, item);
        }
    }
}

void integration_nodes_on_limits(struct integration_nodes *all)
{
    MAP_EACH (&all->by_name, entry) {
        struct integration_node *n = map_item_value(entry);
        if (n->waits) {
            integration_node_mark(n);
        }
    }
}

bool integration_nodes_activity(const struct integration_nodes *all, struct str name,
                                struct activity *ret)
{
    const struct integration_node *n = integration_nodes_find(all, name);
    if (n != NULL) {
        activity_read(&n->note, str_from(all->in->provider->name), ret);
    }
    return n != NULL;
}

bool integration_nodes_are_busy(const struct integration_nodes *all)
{
    MAP_EACH (&all->by_name, entry) {
        const struct integration_node *n = map_item_value(entry);
        if (node_write_is_busy(&n->write)) {
            return true;
        }
    }
    return false;
}

/* ── one ───────────────────────────────────────────────────────────────────────────────────── */

void integration_node_again_at(struct integration_node *n, usec_t at)
{
    if (!list_linked(&n->dirty)) {
        list_add(&n->all->dirty, &n->dirty);
    }
    integration_wake_at(n->all->in, at);
}

void integration_node_mark(struct integration_node *n)
{
    integration_node_again_at(n, loop_now(n->all->in->core->loop));
}

void integration_node_on_change(void *ctx)
{
    integration_node_mark(ctx);
}

void integration_node_init(struct integration_node *n, struct integration_nodes *all,
                           struct str name)
{
    struct core *core = all->in->core;
    *n = (struct integration_node){ .all = all };
    buf_add(&n->name_bytes, name);
    n->name = buf_str(&n->name_bytes);
    node_write_init(&n->write, core, n->name, integration_node_on_change, n);
    node_reservation_init(&n->reservation, core, integration_node_on_change, n);
    (void)map_put(&all->by_name, n->name, n); /* it was not there */
}

void integration_node_done(struct integration_node *n)
{
    (void)map_del(&n->all->by_name, n->name); /* whoever calls has it */
    list_del(&n->dirty);
    integration_node_stop_drain(n);
    node_reservation_done(&n->reservation);
    node_write_done(&n->write);
    activity_note_done(&n->note);
    buf_done(&n->name_bytes);
}

bool integration_node_reserve(struct integration_node *n, const struct store_item *item,
                              const struct node_reservation_spec *spec, struct str *ret_why)
{
    n->reserved = node_reservation_take(&n->reservation, item, spec, ret_why);
    n->waits = !n->reserved;
    return n->reserved;
}

void integration_node_unreserve(struct integration_node *n, const struct store_item *item)
{
    n->reserved = false;
    n->waits = false;
    node_reservation_give(&n->reservation, &n->all->in->all->part, item);
}

void integration_node_stop_drain(struct integration_node *n)
{
    drain_stop(STEAL(n->drain));
}

void integration_node_drain(struct integration_node *n, const struct store_item *item,
                            const struct integration_drain *spec)
{
    const struct node *node = item->object;
    struct core *core = n->all->in->core;
    if (n->drain != NULL && n->drain_grace != spec->grace) {
        integration_node_stop_drain(n);
    }
    if (n->drain != NULL) {
        drain_set_rules(n->drain, node_annotation(node, KEY_DRAIN_RULES));
        return;
    }
    n->drain_grace = spec->grace;
    log_info(core->log, "Going to evict pods from node.", KV_STR("node", n->name),
             KV_TEXT("integration", n->all->in->provider->name));
    n->drain = drain_start(core->drains,
                           &(struct drain_spec){
                               .node = n->name,
                               .node_uid = node->uid,
                               .eviction_timeout = spec->eviction_timeout,
                               .deletion_timeout = spec->deletion_timeout,
                               .force = spec->force,
                               .grace = spec->grace,
                               .flags = spec->flags,
                               .drain_rules = node_annotation(node, KEY_DRAIN_RULES),
                           },
                           integration_node_on_change, n);
}
