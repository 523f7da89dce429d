/*
 * Reservations of nodes under MaintenanceLimits, which profiles share with requests: a node that
 * goes into maintenance takes a reservation under every limit that selects it, and gives it back
 * when it leaves maintenance.
 *
 * Nodes that a limit refuses wait in a queue of their own, so that they hold no place of another
 * limit meanwhile. The first of them also wait in the arbiter's queue, together with requests:
 * priority and age decide between them, and neither starves the other. A node that is in
 * maintenance already has its reservation whatever the limit says.
 */
#include "profile/controller_internal.h"

#include "kinds/keys.h"

#define NODE_LIMIT_QUEUE_MAX 64u /* nodes in the arbiter's queue: more than ever go at once */
#define NODE_LIMIT_WAIT_MIN                                                                        \
    MSECONDS(50) /* the arbiter reads its clock once a turn, and may be behind */

/* Whether the node is in maintenance, by whichever profile: the profile in a reservation's name is
 * only for people. */
static bool node_limit_is_fact(void *ctx UNUSED, const struct jval *node)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct node_data data;
    struct err ignored = { 0 };
    struct str text = jval_str(jval_get(jval_at(node, "metadata.annotations"), KEY_DATA));
    if (node_data_parse(text, &tmp, &data, &ignored) < 0) {
        return false; /* no profile acts on data that cannot be read */
    }
    for (uint32_t i = 0; i < data.profile_count; i++) {
        enum profile_state state;
        if (profile_state_parse(data.profiles[i].current, &state) &&
            state == PROFILE_STATE_MAINTENANCE) {
            return true;
        }
    }
    return false;
}

static void node_limit_spec(const struct managed_node *m, struct str profile, bool adopt,
                            struct arena *out, struct ask_spec *ret)
{
    const struct node *node = m->item->object;
    *ret = (struct ask_spec){
        .owner = ASK_OF_TARGET,
        .uid = node->uid,
        .name = arena_concat(out, STR("profile/"), profile),
        .type = TARGET_NODE,
        .target = m->item->name,
        .since = m->since > 0 ? m->since : loop_wall(m->c->loop),
        .state = STR("InMaintenance"),
        .already_true = adopt,
        .confirm = node_limit_is_fact,
    };
}

/* Everything is paused; or a controller that has just started does not know yet whether there are
 * limits. */
static bool node_limit_is_closed(const struct controller *c)
{
    return !core_may_grant(c->core) || (c->core->config.use_limits && !c->core->limits_known);
}

bool node_limit_refuses(struct managed_node *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    struct ask_spec spec;
    struct ask_view view;
    if (c->core->arbiter == NULL || !core_may_grant(c->core)) {
        m->since = timestamp_to_usec(effect->profiles[effect->grant_profile].since);
        return node_limit_is_closed(c);
    }
    if (m->reserved != NULL) {
        if (ask_stage(m->reserved) == ASK_WAITING) {
            ask_end(m->reserved); /* refused for an inherited grant: the node queues */
        }
        return ask_stage(m->reserved) == ASK_ENDING; /* the node is marked when it has ended */
    }
    m->since = timestamp_to_usec(effect->profiles[effect->grant_profile].since);
    node_limit_spec(m, effect->profiles[effect->grant_profile].name, /* adopt= */ false, &c->tmp,
                    &spec);
    if (arbiter_would_grant(c->core->arbiter, &spec, &c->tmp, &view)) {
        return false;
    }
    if (view.next != USEC_NEVER) {
        /* The arbiter counts by the server's clock: by ours the moment may have come long ago. */
        usec_t wait = view.next - server_clock_wall(&c->core->client.clock);
        managed_node_wake_at(m, loop_now(c->loop) + MAX(wait, NODE_LIMIT_WAIT_MIN));
    }
    return true;
}

struct str node_limit_explain(const struct managed_node *m, struct arena *out)
{
    struct controller *c = m->c;
    struct ask_spec spec;
    struct ask_view view;
    if (!core_may_grant(c->core)) {
        return arena_str(out, core_grants_stopped(c->core));
    }
    if (node_limit_is_closed(c)) {
        return STR("whether there are limits is not known yet");
    }
    node_limit_spec(m, STR(""), /* adopt= */ false, out, &spec);
    if (c->core->arbiter == NULL || arbiter_would_grant(c->core->arbiter, &spec, out, &view)) {
        return STR("its turn under the limits has come");
    }
    return view.message.n > 0 ? arena_str(out, view.message) : STR("a limit is full");
}

struct paused_search {
    struct str node;
    struct str limit;
};

static bool paused_search_visit(void *ctx, const struct arbiter_limit *limit)
{
    struct paused_search *search = ctx;
    for (uint32_t i = 0; limit->paused && limit->type == TARGET_NODE && i < limit->granted; i++) {
        if (str_eq(limit->holders[i].target, search->node)) {
            search->limit = limit->name;
            return false;
        }
    }
    return true;
}

struct str node_limit_paused(const struct managed_node *m, struct arena *out)
{
    struct paused_search search = { .node = m->item->name };
    if (m->c->core->arbiter != NULL && m->reserved != NULL) {
        arbiter_each_limit(m->c->core->arbiter, out, paused_search_visit, &search);
    }
    return search.limit;
}

static void node_limit_on_change(void *ctx)
{
    struct managed_node *m = ctx;
    struct controller *c = m->c;
    enum ask_stage stage = ask_stage(m->reserved);
    if (stage == ASK_ENDED) {
        ASSERT(m->grant == NULL || m->grant->stage != GRANT_LIMITS);
        ask_free(STEAL(m->reserved));
    } else if (stage == ASK_HELD && m->grant != NULL && m->grant->stage == GRANT_LIMITS) {
        grant_on_reserved(m);
        return;
    } else if (stage == ASK_WAITING && m->grant != NULL && m->grant->stage == GRANT_LIMITS) {
        grant_end(m); /* another took the place: the node queues again, and holds nothing */
        ask_end(m->reserved);
    } else if (m->grant == NULL || m->grant->stage != GRANT_INHERITED) {
        return;
    }
    store_mark(&c->core->nodes.store, m->item);
    controller_schedule_turn(c);
}

static void node_limit_on_queue(void *ctx)
{
    const struct managed_node *m = ctx;
    m->c->capacity_changed = true;
    controller_schedule_turn(m->c);
}

void node_limit_queue_enter(struct managed_node *m)
{
    struct controller *c = m->c;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct ask_spec spec;
    if (c->core->arbiter == NULL || m->limit_queue != NULL || m->reserved != NULL ||
        c->limit_queue_n >= NODE_LIMIT_QUEUE_MAX) {
        return;
    }
    node_limit_spec(m, STR(""), /* adopt= */ false, &tmp, &spec);
    spec.queue_only = true;
    m->limit_queue = ask_new(c->core->arbiter, &spec, node_limit_on_queue, m);
    c->limit_queue_n += m->limit_queue != NULL ? 1 : 0;
}

void node_limit_queue_leave(struct managed_node *m)
{
    if (m->limit_queue != NULL) {
        ask_free(STEAL(m->limit_queue));
        m->c->limit_queue_n--;
    }
}

/* False: somebody else asks under the node's uid. */
static bool node_limit_ask(struct managed_node *m, struct str profile, bool adopt)
{
    struct controller *c = m->c;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct ask_spec spec;
    node_limit_queue_leave(m);
    node_limit_spec(m, profile, adopt, &tmp, &spec);
    ASSERT(m->reserved == NULL);
    m->inherited = false;
    m->reserved = ask_new(c->core->arbiter, &spec, node_limit_on_change, m);
    return m->reserved != NULL;
}

bool node_limit_reserve(struct managed_node *m, struct str profile)
{
    if (m->c->core->arbiter == NULL) {
        return true;
    }
    if (m->reserved == NULL && !node_limit_ask(m, profile, /* adopt= */ false)) {
        return false;
    }
    return ask_stage(m->reserved) == ASK_HELD;
}

void node_limit_adopt(struct managed_node *m, struct str profile)
{
    if (m->c->core->arbiter == NULL) {
        return;
    }
    if (m->reserved != NULL && m->inherited &&
        (ask_stage(m->reserved) == ASK_WAITING || ask_stage(m->reserved) == ASK_TAKING)) {
        ask_free(STEAL(m->reserved)); /* the old leader's patch has arrived: no need to wait */
    }
    if (m->reserved == NULL) {
        (void)node_limit_ask(m, profile, /* adopt= */ true); /* the next sync asks again */
    }
}

void node_limit_inherit(struct managed_node *m, struct str profile)
{
    if (m->c->core->arbiter != NULL && m->reserved == NULL) {
        m->inherited = node_limit_ask(m, profile, /* adopt= */ false);
    }
}

bool node_limit_holds(const struct managed_node *m)
{
    const struct controller *c = m->c;
    return c->core->arbiter == NULL ? !node_limit_is_closed(c)
                                    : m->reserved != NULL && ask_stage(m->reserved) == ASK_HELD;
}

bool node_limit_has_refused(const struct managed_node *m)
{
    struct ask_view view;
    if (m->c->core->arbiter == NULL || m->reserved == NULL) {
        return false;
    }
    ask_view(m->reserved, &view);
    return view.stage == ASK_ENDING || (view.stage == ASK_WAITING && view.why != ASK_WHY_NONE &&
                                        view.why != ASK_WHY_NOT_COMPUTED);
}

void node_limit_sync(struct managed_node *m, const struct engine_effect *effect)
{
    if (m->c->core->arbiter == NULL) {
        return;
    }
    for (uint32_t i = 0; effect->in_maintenance && i < effect->profile_n; i++) {
        if (effect->profiles[i].state == PROFILE_STATE_MAINTENANCE) {
            node_limit_adopt(m, effect->profiles[i].name);
        }
    }
    if (m->grant != NULL && m->grant->stage == GRANT_INHERITED) {
        node_limit_inherit(m, buf_str(&m->grant->owner)); /* limits may have become known since */
    }
    bool done = !effect->in_maintenance && m->grant == NULL && m->writer.call == NULL &&
                !m->outcome_unknown && !core_is_disturbed(m->c->core, &m->c->part, m->item);
    if (done && m->reserved != NULL && ask_stage(m->reserved) != ASK_ENDING) {
        ask_end(m->reserved);
        if (ask_stage(m->reserved) == ASK_ENDED) {
            ask_free(STEAL(m->reserved));
        }
    }
}

void node_limit_drop(struct managed_node *m)
{
    node_limit_queue_leave(m);
    ask_free(STEAL(m->reserved));
}

void node_limit_queue_offer(struct controller *c, struct wait_queue *queue)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct managed_node **stay = ARENA_ARRAY(&tmp, struct managed_node *, queue->waiting.n);
    uint32_t stay_n = 0;
    for (uint32_t n = queue->waiting.n, moved = 0; n > 0 && moved < CONTROLLER_WINDOW; n--) {
        struct managed_node *m =
            CONTAINER_OF(prioqueue_first(&queue->waiting), struct managed_node, queue_item);
        struct ask_spec spec;
        struct ask_view view;
        prioqueue_take(&queue->waiting, &m->queue_item);
        node_limit_spec(m, STR(""), /* adopt= */ false, &c->tmp, &spec);
        if (c->core->arbiter == NULL
                ? !node_limit_is_closed(c)
                : arbiter_would_grant(c->core->arbiter, &spec, &c->tmp, &view)) {
            m->queue = NULL;
            m->offered = queue->id;
            prioqueue_put(&c->wants_grant, &m->queue_item);
            moved++;
        } else {
            stay[stay_n++] = m;
        }
    }
    /* The first nodes of this queue are in the arbiter's queue, too; later ones leave it for them.
     */
    for (uint32_t i = NODE_LIMIT_QUEUE_MAX; i < stay_n; i++) {
        node_limit_queue_leave(stay[i]);
    }
    for (uint32_t i = 0; i < stay_n; i++) {
        node_limit_queue_enter(stay[i]);
        prioqueue_put(&queue->waiting, &stay[i]->queue_item);
    }
}

/* ── for people ────────────────────────────────────────────────────────────────────────────── */

/* The profile that asks is the one whose transition in the data annotation is `since`. */
static struct str wait_profile(const struct managed_node *m, struct arena *out)
{
    struct node_data data;
    struct err ignored = { 0 };
    struct str text = node_annotation(m->item->object, KEY_DATA);
    if (node_data_parse(text, out, &data, &ignored) < 0) {
        return STR_NONE;
    }
    for (uint32_t i = 0; i < data.profile_count; i++) {
        const struct node_data_profile *p = &data.profiles[i];
        if (!p->null && timestamp_to_usec(p->transition) == m->since) {
            return p->name;
        }
    }
    return STR_NONE;
}

void controller_each_limit_wait(const struct controller *c, struct arena *out,
                                void (*fn)(void *ctx, const struct controller_limit_wait *wait),
                                void *ctx)
{
    MAP_EACH (&c->wait_queues, entry) {
        const struct wait_queue *queue = map_item_value(entry);
        for (uint32_t i = 0; queue->id == NODE_LIMIT_QUEUE && i < queue->waiting.n; i++) {
            const struct managed_node *m =
                CONTAINER_OF(queue->waiting.items[i], struct managed_node, queue_item);
            struct ask_spec spec;
            struct ask_view view;
            struct controller_limit_wait wait = {
                .node = m->item->name,
                .uid = ((const struct node *)m->item->object)->uid,
                .profile = wait_profile(m, out),
                .since = m->since,
                .view = &view,
            };
            node_limit_spec(m, wait.profile, /* adopt= */ false, out, &spec);
            if (c->core->arbiter != NULL &&
                !arbiter_would_grant(c->core->arbiter, &spec, out, &view)) {
                fn(ctx, &wait);
            }
        }
    }
}
