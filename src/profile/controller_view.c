/*
 * What others may see of the controller: metrics, nodes, explanations.
 */
#include "profile/controller_internal.h"
#include "profile/node_report.h"

static uint32_t look_waiting(const struct controller *c)
{
    uint32_t n = c->asks.n;
    LIST_EACH (&c->rooms, link) {
        n += CONTAINER_OF(link, struct room, link)->waiting.n;
    }
    return n;
}

/* ── metrics ───────────────────────────────────────────────────────────────────────────────── */

static void look_collect_profiles(struct controller *c)
{
    struct drains_stats drains;
    drains_stats(c->drains, &drains);
    gauges_put(c->gauges.drains[0], drains.active);
    gauges_put(c->gauges.drains[1], drains.blocked);
    gauges_put(c->gauges.evictions[0], (double)drains.evicted);
    gauges_put(c->gauges.evictions[1], (double)drains.refused);
    gauges_put(c->gauges.evictions[2], (double)drains.forced);
    for (uint32_t i = 0; c->setup != NULL && i < c->setup->config.profile_n; i++) {
        for (int state = 0; state < LABEL_STATE_COUNT; state++) {
            gauges_profile(&c->gauges, c->setup->config.profiles[i].name,
                           label_state_name((enum label_state)state),
                           fleet_profile_count(c->fleet, i, (enum label_state)state));
        }
    }
}

void look_collect(void *ctx)
{
    struct controller *c = ctx;
    uint32_t counts[LABEL_STATE_COUNT] = { 0 };
    uint32_t none = 0;
    uint32_t unreadable = 0;
    MAP_EACH (&c->store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct member *m = item->extra;
        enum label_state state;
        if (label_state_parse(node_label(item->object, LABEL_STATE), &state)) {
            counts[state]++;
        } else {
            none++;
        }
        unreadable += m != NULL && m->error.n > 0 ? 1 : 0;
    }
    for (int i = 0; i < LABEL_STATE_COUNT; i++) {
        gauges_nodes(&c->gauges, label_state_name((enum label_state)i), counts[i]);
    }
    gauges_nodes(&c->gauges, STR(""), none);
    gauges_put(c->gauges.unreadable, unreadable);
    gauges_put(c->gauges.queue[0], c->store.dirty_count);
    gauges_put(c->gauges.queue[1], c->stats.in_flight);
    gauges_put(c->gauges.queue[2], c->waking.n);
    gauges_put(c->gauges.relists, (double)c->reflector.lists);
    gauges_put(c->gauges.waiting, look_waiting(c));
    gauges_put(c->gauges.grants, c->granting);
    look_collect_profiles(c);
}

/* ── looking ───────────────────────────────────────────────────────────────────────────────── */

bool controller_synced(const struct controller *c)
{
    return c->known;
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
    if (c->setup == NULL) {
        *ret_why =
            c->setup_error.n > 0 ? buf_str(&c->setup_error) : STR("there is no configuration yet");
        return false;
    }
    if (c->known && !c->reflector.failing) {
        return true;
    }
    *ret_why = c->why[0] != '\0' ? str_from(c->why) : STR("the nodes are not known yet");
    return false;
}

static struct controller_node controller_view(const struct store_item *item)
{
    const struct node *node = item->object;
    const struct member *m = item->extra;
    return (struct controller_node){
        .name = item->name,
        .uid = node->uid,
        .state = node_label(node, LABEL_STATE),
        .data = node_annotation(node, DATA_ANNOTATION),
        .error = m != NULL ? buf_str(&m->error) : STR_NONE,
        .version = item->version,
        .decided = item->decided,
        .unschedulable = node->unschedulable,
        .ready = node->ready,
        .busy = m != NULL && m->call != NULL,
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
    struct drains_stats drains;
    drains_stats(c->drains, &drains);
    *ret = c->stats;
    ret->evicted = drains.evicted;
    ret->refused = drains.refused;
    ret->dirty = c->store.dirty_count;
    ret->later = c->waking.n;
    ret->waiting = look_waiting(c);
    ret->granting = c->granting;
}

/* ── explaining ────────────────────────────────────────────────────────────────────────────── */

static void explain_checks(const struct engine_transition *t, struct arena *out,
                           struct report_transition *ret)
{
    ret->check_n = t->check_n;
    ret->checks = ARENA_ARRAY(out, struct report_check, t->check_n);
    for (uint32_t i = 0; i < t->check_n; i++) {
        const struct check_verdict *v = &t->checks[i].verdict;
        ret->checks[i] = (struct report_check){
            .name = t->checks[i].name,
            .type = str_from(t->checks[i].plugin->name),
            .answer = v->answer,
            .info = v->info,
            .reason = v->reason,
            .error = v->error,
            .next = v->next,
        };
    }
}

static void explain_profiles(const struct engine_effect *effect, struct arena *out,
                             struct report *ret)
{
    ret->profile_n = effect->profile_n;
    ret->profiles = ARENA_ARRAY(out, struct report_profile, effect->profile_n);
    for (uint32_t i = 0; i < effect->profile_n; i++) {
        const struct engine_profile *e = &effect->profiles[i];
        struct report_profile *p = &ret->profiles[i];
        *p = (struct report_profile){
            .name = e->name,
            .state = e->state,
            .next = e->next,
            .since = timestamp_to_usec(e->since),
            .error = e->error,
            .doing = e->doing,
            .transition_n = e->transition_n,
            .transitions = ARENA_ARRAY(out, struct report_transition, e->transition_n),
        };
        for (uint32_t k = 0; k < e->transition_n; k++) {
            const struct engine_transition *t = &e->transitions[k];
            p->transitions[k] = (struct report_transition){
                .target = t->target,
                .expression = t->expression,
                .passed = t->passed,
                .chain_passed = t->chain_passed,
                .error = t->error,
                .held = t->held,
                .next = t->next,
            };
            explain_checks(t, out, &p->transitions[k]);
        }
    }
}

static void explain_labels(const struct controller *c, const struct node *node, struct arena *out,
                           struct report *ret)
{
    const struct ucfg_strs *filter = &c->setup->config.label_filter;
    ret->labels = ARENA_ARRAY(out, struct report_label, node->label_count);
    for (uint32_t i = 0; i < node->label_count; i++) {
        struct str key = intern_str(node->labels[i].key);
        bool shown = false;
        for (uint32_t k = 0; k < filter->n; k++) {
            shown = shown || str_eq(filter->items[k], key);
        }
        if (shown) {
            ret->labels[ret->label_n++] =
                (struct report_label){ .key = key, .value = intern_str(node->labels[i].value) };
        }
    }
}

/* "turn 3 of 12 for room in maintenance". */
static struct str explain_wait(struct member *m, struct arena *out)
{
    if (m->grant != NULL && m->grant->stage != GRANT_HELD) {
        return m->grant->stage == GRANT_GHOST
                   ? STR("the last leader may be taking it into maintenance")
               : m->grant->stage == GRANT_PODS ? STR("its pods are looked at before it goes")
                                               : STR("its grant is being recorded");
    }
    if (!prioqueue_inside(&m->ask)) {
        return STR_NONE;
    }
    if (m->room != NULL && m->room->id == BUDGET_ROOM) {
        return budget_words(m, out);
    }
    const struct prioqueue *line = m->room != NULL ? &m->room->waiting : &m->c->asks;
    uint32_t before = 0;
    for (uint32_t i = 0; i < line->n; i++) {
        before += prio_by_since(line->items[i], &m->ask) ? 1 : 0;
    }
    return arena_printf(out, "turn %u of %u for room in maintenance", before + 1, line->n);
}

bool controller_explain(struct controller *c, struct str name, struct arena *out,
                        struct report *ret)
{
    struct store_item *item = store_find(&c->store, name);
    if (item == NULL || c->setup == NULL) {
        return false;
    }
    const struct node *node = item->object;
    struct member none = { .c = c, .item = item };
    struct member *m = item->extra != NULL ? item->extra : &none;
    struct engine_input input;
    struct engine_effect effect;
    struct err err = { 0 };
    turn_input(m, /* explain= */ true, out, &input);
    *ret = (struct report){
        .node = item->name,
        .state = node_label(node, LABEL_STATE),
        .ready = node->ready,
        .cordoned = node->unschedulable,
        .deleting = node->deleting,
        .updated = item->decided,
        .now = input.wall,
        .drain = input.progress.drain,
        .waits = explain_wait(m, out),
    };
    explain_labels(c, node, out, ret);
    if (engine_decide(&input, out, &effect, &err) < 0) {
        ret->error = arena_str(out, str_from(err.msg));
        return true;
    }
    explain_profiles(&effect, out, ret);
    report_mark(ret);
    return true;
}

/* ── checking ──────────────────────────────────────────────────────────────────────────────── */

void controller_check(const struct controller *c)
{
    uint32_t in_flight = 0;
    uint32_t granting = 0;
    store_check(&c->store);
    intern_check(&c->labels);
    recorder_check(&c->recorder);
    fleet_check(c->fleet);
    drains_check(c->drains);
    prioqueue_check(&c->waking);
    prioqueue_check(&c->asks);
    if (c->config.elect) {
        lease_check(&c->lease);
    }
    MAP_EACH (&c->store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct member *m = item->extra;
        if (m != NULL) {
            ASSERT(m->item == item);
            in_flight += m->call != NULL ? 1 : 0;
            granting += grant_is_pending(m->grant) ? 1 : 0;
        }
    }
    ASSERT(in_flight == c->stats.in_flight);
    ASSERT(in_flight <= c->client.urgent);
    ASSERT(granting == c->granting);
}
