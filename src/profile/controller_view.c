/*
 * What others read of the controller: metrics, nodes, explanations; and its self-check.
 */
#include "profile/alerts.h"
#include "profile/controller_internal.h"
#include "kinds/keys.h"
#include "profile/node_report.h"

static uint32_t controller_view_waiting(const struct controller *c)
{
    uint32_t n = c->wants_grant.n;
    MAP_EACH (&c->wait_queues, entry) {
        n += ((const struct wait_queue *)map_item_value(entry))->waiting.n;
    }
    return n;
}

/* ── metrics ───────────────────────────────────────────────────────────────────────────────── */

static void controller_view_collect_profiles(struct controller *c)
{
    for (uint32_t i = 0; c->active != NULL && i < c->active->config.profile_n; i++) {
        for (int state = 0; state < PROFILE_STATE_COUNT; state++) {
            controller_metrics_profile(&c->metrics, c->active->config.profiles[i].name,
                                       profile_state_name((enum profile_state)state),
                                       fleet_profile_count(c->fleet, i, (enum profile_state)state));
        }
    }
}

void controller_view_collect(void *ctx)
{
    struct controller *c = ctx;
    uint32_t counts[PROFILE_STATE_COUNT] = { 0 };
    uint32_t none = 0;
    uint32_t unreadable = 0;
    uint32_t unsent = 0;
    MAP_EACH (&c->core->nodes.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct managed_node *m = item->extra;
        enum profile_state state;
        if (profile_state_parse(node_label(item->object, KEY_STATE), &state)) {
            counts[state]++;
        } else {
            none++;
        }
        unreadable += m != NULL && m->error.n > 0 ? 1 : 0;
        unsent += m != NULL ? node_notify_unsent(m) : 0;
    }
    for (int i = 0; i < PROFILE_STATE_COUNT; i++) {
        controller_metrics_nodes(&c->metrics, profile_state_name((enum profile_state)i), counts[i]);
    }
    controller_metrics_nodes(&c->metrics, STR(""), none);
    metric_set(c->metrics.unreadable, unreadable);
    metric_set(c->metrics.unsent, unsent + alerts_unsent(c->alerts));
    metric_set(c->metrics.queue[0], c->core->nodes.store.dirty_count);
    metric_set(c->metrics.queue[1], c->stats.in_flight);
    metric_set(c->metrics.queue[2], c->waking.n);
    metric_set(c->metrics.waiting, controller_view_waiting(c));
    metric_set(c->metrics.grants, c->granting);
    controller_view_collect_profiles(c);
}

/* ── nodes ─────────────────────────────────────────────────────────────────────────────────── */

static struct controller_node controller_node_view(const struct store_item *item)
{
    const struct node *node = item->object;
    const struct managed_node *m = item->extra;
    return (struct controller_node){
        .name = item->name,
        .uid = node->uid,
        .state = node_label(node, KEY_STATE),
        .data = node_annotation(node, KEY_DATA),
        .error = m != NULL ? buf_str(&m->error) : STR_NONE,
        .version = item->version,
        .decided = item->decided,
        .unschedulable = node->unschedulable,
        .ready = node->ready,
        .busy = m != NULL && m->writer.call != NULL,
        .labels = node->labels,
        .label_count = node->label_count,
    };
}

uint32_t controller_node_count(const struct controller *c)
{
    return store_count(&c->core->nodes.store);
}

void controller_each_node(const struct controller *c,
                          bool (*fn)(void *ctx, const struct controller_node *node), void *ctx)
{
    MAP_EACH (&c->core->nodes.store.items, entry) {
        const struct controller_node node = controller_node_view(map_item_value(entry));
        if (!fn(ctx, &node)) {
            return;
        }
    }
}

bool controller_find_node(const struct controller *c, struct str name, struct controller_node *ret)
{
    const struct store_item *item = store_find(&c->core->nodes.store, name);
    if (item == NULL) {
        return false;
    }
    *ret = controller_node_view(item);
    return true;
}

void controller_stats(const struct controller *c, struct controller_stats *ret)
{
    struct drains_stats drains;
    drains_stats(c->core->drains, &drains);
    *ret = c->stats;
    ret->relists = c->core->nodes.reflector.lists > 0 ? c->core->nodes.reflector.lists - 1 : 0;
    ret->bad_input = c->core->bad_input;
    ret->evicted = drains.evicted;
    ret->refused = drains.refused;
    ret->dirty = c->core->nodes.store.dirty_count;
    ret->later = c->waking.n;
    ret->waiting = controller_view_waiting(c);
    ret->granting = c->granting;
}

/* ── explaining ────────────────────────────────────────────────────────────────────────────── */

static void explain_checks(const struct engine_transition *t, struct arena *out,
                           struct node_report_transition *ret)
{
    ret->check_n = t->check_n;
    ret->checks = ARENA_ARRAY(out, struct node_report_check, t->check_n);
    for (uint32_t i = 0; i < t->check_n; i++) {
        const struct check_verdict *v = &t->checks[i].verdict;
        ret->checks[i] = (struct node_report_check){
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
                             struct node_report *ret)
{
    ret->profile_n = effect->profile_n;
    ret->profiles = ARENA_ARRAY(out, struct node_report_profile, effect->profile_n);
    for (uint32_t i = 0; i < effect->profile_n; i++) {
        const struct engine_profile *e = &effect->profiles[i];
        struct node_report_profile *p = &ret->profiles[i];
        *p = (struct node_report_profile){
            .name = e->name,
            .state = e->state,
            .next = e->next,
            .since = timestamp_to_usec(e->since),
            .error = e->error,
            .doing = e->doing,
            .transition_n = e->transition_n,
            .transitions = ARENA_ARRAY(out, struct node_report_transition, e->transition_n),
        };
        for (uint32_t k = 0; k < e->transition_n; k++) {
            const struct engine_transition *t = &e->transitions[k];
            p->transitions[k] = (struct node_report_transition){
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
                           struct node_report *ret)
{
    const struct ucfg_strs *filter = &c->active->config.label_filter;
    ret->labels = ARENA_ARRAY(out, struct node_report_label, node->label_count);
    for (uint32_t i = 0; i < node->label_count; i++) {
        struct str key = intern_str(node->labels[i].key);
        bool shown = false;
        for (uint32_t k = 0; k < filter->n; k++) {
            shown = shown || str_eq(filter->items[k], key);
        }
        if (shown) {
            ret->labels[ret->label_n++] =
                (struct node_report_label){ .key = key,
                                            .value = intern_str(node->labels[i].value) };
        }
    }
}

/* "turn 3 of 12 to go into maintenance, among the nodes with zone=a that check one counts". */
static struct str explain_turn(struct managed_node *m, const struct prioqueue *queue,
                               struct arena *out)
{
    struct controller *c = m->c;
    uint32_t before = 0;
    for (uint32_t i = 0; i < queue->n; i++) {
        before += prio_by_since(queue->items[i], &m->queue_item) ? 1 : 0;
    }
    struct str turn =
        arena_printf(out, "turn %u of %u to go into maintenance", before + 1, queue->n);
    if (m->queue == NULL || c->active == NULL) {
        return turn;
    }
    const struct node_edit edit = { .name = m->item->name, .node = m->item->object };
    const struct check_input input = { .config = &c->active->config, .edit = &edit, .out = out };
    struct str group = check_group_text(&input, m->queue->index);
    struct str check = c->active->config.instances[PLUGIN_CHECK].items[m->queue->index].name;
    return arena_printf(out, STR_FMT ", among the nodes%s" STR_FMT " that check " STR_FMT " counts",
                        STR_ARG(turn), group.n > 0 ? " with " : "", STR_ARG(group), STR_ARG(check));
}

static struct str explain_wait(struct managed_node *m, struct arena *out)
{
    if (m->grant != NULL && m->grant->stage != GRANT_HELD) {
        return m->grant->stage == GRANT_INHERITED
                   ? STR("the last leader may be taking it into maintenance")
               : m->grant->stage == GRANT_PODS ? STR("its pods are looked at before it goes")
               : m->grant->stage == GRANT_CONFIRM
                   ? STR("other systems are asked again before it goes")
                   : STR("its grant is being recorded");
    }
    if (m->grant != NULL && !core_may_grant(m->c->core)) {
        return arena_str(out, core_grants_stopped(m->c->core));
    }
    if (!prioqueue_inside(&m->queue_item)) {
        return STR_NONE;
    }
    if (m->queue != NULL && m->queue->id == NODE_LIMIT_QUEUE) {
        return node_limit_explain(m, out);
    }
    return explain_turn(m, m->queue != NULL ? &m->queue->waiting : &m->c->wants_grant, out);
}

static struct node_report_drain drain_report(const struct drain *d, struct arena *out)
{
    struct drain_status s;
    drain_status(d, &s);
    return (struct node_report_drain){
        .running = true,
        .blocked = s.blocked,
        .left = s.left,
        .namespace = arena_str(out, s.namespace),
        .pod = arena_str(out, s.pod),
        .pdb = arena_str(out, s.pdb),
        .reason = arena_str(out, s.reason),
        .since = s.pod.n > 0 ? s.since : 0,
    };
}

struct drain_walk {
    struct arena *out;
    void (*fn)(void *ctx, struct str node, const struct node_report_drain *drain);
    void *ctx;
};

static void drain_walk_one(void *ctx, struct str node, const struct drain *d)
{
    const struct drain_walk *walk = ctx;
    const struct node_report_drain report = drain_report(d, walk->out);
    walk->fn(walk->ctx, node, &report);
}

void controller_each_drain(const struct controller *c, struct arena *out,
                           void (*fn)(void *ctx, struct str node,
                                      const struct node_report_drain *drain),
                           void *ctx)
{
    drains_each(c->core->drains, drain_walk_one,
                &(struct drain_walk){ .out = out, .fn = fn, .ctx = ctx });
}

struct explain_drain {
    struct str node;
    struct arena *out;
    struct node_report *report;
};

/* Of several drains of a node, one that is blocked is shown. */
static void explain_one_drain(void *ctx, struct str node, const struct drain *d)
{
    const struct explain_drain *x = ctx;
    if (!str_eq(node, x->node) || x->report->draining.blocked) {
        return;
    }
    x->report->draining = drain_report(d, x->out);
    if (x->report->drain.n == 0) {
        x->report->drain = drain_text(d, x->out); /* a request's */
    }
}

bool controller_explain(struct controller *c, struct str name, struct arena *out,
                        struct node_report *ret)
{
    struct store_item *item = store_find(&c->core->nodes.store, name);
    if (item == NULL || c->active == NULL) {
        return false;
    }
    const struct node *node = item->object;
    struct managed_node none = { .c = c, .item = item };
    struct managed_node *m = item->extra != NULL ? item->extra : &none;
    struct engine_input input;
    struct engine_effect effect;
    struct err err = { 0 };
    turn_engine_input(m, /* explain= */ true, out, &input);
    *ret = (struct node_report){
        .node = item->name,
        .state = node_label(node, KEY_STATE),
        .ready = node->ready,
        .cordoned = node->unschedulable,
        .deleting = node->deleting,
        .updated = item->decided,
        .now = input.wall,
        .drain = input.progress.drain,
        .waits = explain_wait(m, out),
    };
    explain_labels(c, node, out, ret);
    node_notify_explain(m, out, ret);
    alerts_explain(c->alerts, item->name, out, ret);
    drains_each(c->core->drains, explain_one_drain,
                &(struct explain_drain){ .node = item->name, .out = out, .report = ret });
    ret->orphan = node->unschedulable ? node_annotation(node, KEY_PROFILE_CORDON) : STR_NONE;
    if (engine_decide(&input, out, &effect, &err) < 0) {
        ret->error = arena_str(out, str_from(err.msg));
        return true;
    }
    for (uint32_t i = 0; i < effect.profile_n; i++) {
        ret->orphan = str_eq(effect.profiles[i].name, ret->orphan) ? STR_NONE : ret->orphan;
    }
    explain_profiles(&effect, out, ret);
    node_report_mark_blocking(ret);
    return true;
}

/* ── checking ──────────────────────────────────────────────────────────────────────────────── */

void controller_check(const struct controller *c)
{
    uint32_t in_flight = 0;
    uint32_t granting = 0;
    core_check(c->core);
    fleet_check(c->fleet);
    prioqueue_check(&c->waking);
    prioqueue_check(&c->wants_grant);
    MAP_EACH (&c->core->nodes.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct managed_node *m = item->extra;
        if (m != NULL) {
            ASSERT(m->item == item);
            in_flight += m->writer.call != NULL ? 1 : 0;
            granting += grant_is_pending(m->grant) ? 1 : 0;
        }
    }
    ASSERT(in_flight == c->stats.in_flight);
    ASSERT(in_flight <= c->core->client.urgent);
    ASSERT(granting == c->granting);
}
