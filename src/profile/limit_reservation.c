/*
 * The budget that profiles share with requests: a node that goes into maintenance takes a
 * reservation under every MaintenanceLimit that selects it, and gives it back when it is out.
 *
 * Nodes that a limit refuses stand in a line of their own, so that they hold no place of another
 * limit meanwhile. The first of them also stand in the arbiter's, where requests wait: priority and
 * age decide between them, and neither starves the other. A node that is in maintenance holds its
 * reservation whatever the limit says: it is a fact.
 */
#include "profile/controller_internal.h"

#define BUDGET_LINE_MAX 64u /* nodes in the arbiter's line: more than ever go at once */
#define BUDGET_WAIT_MIN                                                                            \
    MSECONDS(50) /* the arbiter looks at its clock once a turn, and may be behind */

/* Any profile that is in maintenance takes the node out of service: which one, the reservation only
 * tells people. */
static bool budget_is_fact(void *ctx UNUSED, const struct jval *node)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct data data;
    struct err ignored = { 0 };
    struct str text = jval_str(jval_get(jval_at(node, "metadata.annotations"), DATA_ANNOTATION));
    if (data_parse(text, &tmp, &data, &ignored) < 0) {
        return false; /* nobody decides anything by it */
    }
    for (uint32_t i = 0; i < data.profile_count; i++) {
        enum label_state state;
        if (label_state_parse(data.profiles[i].current, &state) &&
            state == LABEL_STATE_MAINTENANCE) {
            return true;
        }
    }
    return false;
}

static void budget_spec(const struct member *m, struct str profile, bool adopt, struct arena *out,
                        struct ask_spec *ret)
{
    const struct node *node = m->item->object;
    *ret = (struct ask_spec){
        .owner = ASK_PROFILE,
        .uid = node->uid,
        .name = arena_concat(out, STR("profile/"), profile),
        .type = TARGET_NODE,
        .target = m->item->name,
        .since = m->since > 0 ? m->since : loop_wall(m->c->loop),
        .state = STR("InMaintenance"),
        .already_true = adopt,
        .confirm = budget_is_fact,
    };
}

/* A controller that has just begun does not know yet whether there are limits. */
static bool budget_is_unknown(const struct controller *c)
{
    return c->config.wait_for_limits && !c->limits_known;
}

bool budget_refuses(struct member *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    struct ask_spec spec;
    struct ask_view view;
    if (c->arbiter == NULL) {
        m->since = timestamp_to_usec(effect->profiles[effect->asker].since);
        return budget_is_unknown(c);
    }
    if (m->reserved != NULL) {
        if (ask_stage(m->reserved) == ASK_WAITING) {
            ask_end(m->reserved); /* a ghost's that was refused stands in line like all others */
        }
        return ask_stage(m->reserved) == ASK_ENDING; /* its end looks at the node again */
    }
    m->since = timestamp_to_usec(effect->profiles[effect->asker].since);
    budget_spec(m, effect->profiles[effect->asker].name, /* adopt= */ false, &c->tmp, &spec);
    if (arbiter_would_grant(c->arbiter, &spec, &c->tmp, &view)) {
        return false;
    }
    if (view.next != USEC_NEVER) {
        /* The arbiter counts by the server's clock: by ours the moment may have come long ago. */
        usec_t wait = view.next - server_clock_wall(&c->client.clock);
        member_wake_at(m, loop_now(c->loop) + MAX(wait, BUDGET_WAIT_MIN));
    }
    return true;
}

struct str budget_words(const struct member *m, struct arena *out)
{
    struct controller *c = m->c;
    struct ask_spec spec;
    struct ask_view view;
    if (budget_is_unknown(c)) {
        return STR("whether there are limits is not known yet");
    }
    budget_spec(m, STR(""), /* adopt= */ false, out, &spec);
    if (c->arbiter == NULL || arbiter_would_grant(c->arbiter, &spec, out, &view)) {
        return STR("its turn under the limits has come");
    }
    return view.message.n > 0 ? arena_str(out, view.message) : STR("a limit has no room");
}

static void budget_on_change(void *ctx)
{
    struct member *m = ctx;
    struct controller *c = m->c;
    enum ask_stage stage = ask_stage(m->reserved);
    if (stage == ASK_ENDED) {
        ASSERT(m->grant == NULL || m->grant->stage != GRANT_LIMITS);
        ask_free(STEAL(m->reserved));
    } else if (stage == ASK_HELD && m->grant != NULL && m->grant->stage == GRANT_LIMITS) {
        grant_reserved(m);
        return;
    } else if (stage == ASK_WAITING && m->grant != NULL && m->grant->stage == GRANT_LIMITS) {
        grant_end(m); /* somebody was faster; it stands in line again, and holds nothing */
        ask_end(m->reserved);
    } else if (m->grant == NULL || m->grant->stage != GRANT_GHOST) {
        return;
    }
    store_mark(&c->store, m->item);
    controller_soon(c);
}

static void budget_on_line(void *ctx)
{
    const struct member *m = ctx;
    controller_on_room(m->c);
}

void budget_stand(struct member *m)
{
    struct controller *c = m->c;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct ask_spec spec;
    if (c->arbiter == NULL || m->line != NULL || m->reserved != NULL ||
        c->lined >= BUDGET_LINE_MAX) {
        return;
    }
    budget_spec(m, STR(""), /* adopt= */ false, &tmp, &spec);
    spec.queue_only = true;
    m->line = ask_new(c->arbiter, &spec, budget_on_line, m);
    c->lined++;
}

void budget_unstand(struct member *m)
{
    if (m->line != NULL) {
        ask_free(STEAL(m->line));
        m->c->lined--;
    }
}

static void budget_ask(struct member *m, struct str profile, bool adopt)
{
    struct controller *c = m->c;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct ask_spec spec;
    budget_unstand(m);
    budget_spec(m, profile, adopt, &tmp, &spec);
    ASSERT(m->reserved == NULL);
    m->expects = false;
    m->reserved = ask_new(c->arbiter, &spec, budget_on_change, m);
}

bool budget_reserve(struct member *m, struct str profile)
{
    if (m->c->arbiter == NULL) {
        return true;
    }
    if (m->reserved == NULL) {
        budget_ask(m, profile, /* adopt= */ false);
    }
    return ask_stage(m->reserved) == ASK_HELD;
}

void budget_claim(struct member *m, struct str profile)
{
    if (m->c->arbiter == NULL) {
        return;
    }
    if (m->reserved != NULL && m->expects &&
        (ask_stage(m->reserved) == ASK_WAITING || ask_stage(m->reserved) == ASK_TAKING)) {
        ask_free(STEAL(m->reserved)); /* the patch has arrived: it waits for nothing any more */
    }
    if (m->reserved == NULL) {
        budget_ask(m, profile, /* adopt= */ true);
    }
}

void budget_expect(struct member *m, struct str profile)
{
    if (m->c->arbiter != NULL && m->reserved == NULL) {
        budget_ask(m, profile, /* adopt= */ false);
        m->expects = true;
    }
}

bool budget_holds(const struct member *m)
{
    const struct controller *c = m->c;
    return c->arbiter == NULL ? !budget_is_unknown(c)
                              : m->reserved != NULL && ask_stage(m->reserved) == ASK_HELD;
}

bool budget_has_refused(const struct member *m)
{
    struct ask_view view;
    if (m->c->arbiter == NULL || m->reserved == NULL) {
        return false;
    }
    ask_view(m->reserved, &view);
    return view.stage == ASK_ENDING || (view.stage == ASK_WAITING && view.why != ASK_WHY_NONE &&
                                        view.why != ASK_WHY_NOT_COMPUTED);
}

void budget_follow(struct member *m, const struct engine_effect *effect)
{
    if (m->c->arbiter == NULL) {
        return;
    }
    for (uint32_t i = 0; effect->in_maintenance && i < effect->profile_n; i++) {
        if (effect->profiles[i].state == LABEL_STATE_MAINTENANCE) {
            budget_claim(m, effect->profiles[i].name);
        }
    }
    if (m->grant != NULL && m->grant->stage == GRANT_GHOST) {
        budget_expect(m, buf_str(&m->grant->owner)); /* the limits are known only since then */
    }
    bool done = !effect->in_maintenance && m->grant == NULL && m->call == NULL && !m->unsure;
    if (done && m->reserved != NULL && ask_stage(m->reserved) != ASK_ENDING) {
        ask_end(m->reserved);
        if (ask_stage(m->reserved) == ASK_ENDED) {
            ask_free(STEAL(m->reserved));
        }
    }
}

void budget_drop(struct member *m)
{
    budget_unstand(m);
    ask_free(STEAL(m->reserved));
}

void budget_open(struct controller *c, struct room *room)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct member **stay = ARENA_ARRAY(&tmp, struct member *, room->waiting.n);
    uint32_t stay_n = 0;
    for (uint32_t n = room->waiting.n, moved = 0; n > 0 && moved < CONTROLLER_WINDOW; n--) {
        struct member *m = CONTAINER_OF(prioqueue_first(&room->waiting), struct member, ask);
        struct ask_spec spec;
        struct ask_view view;
        prioqueue_take(&room->waiting, &m->ask);
        budget_spec(m, STR(""), /* adopt= */ false, &c->tmp, &spec);
        if (c->arbiter == NULL ? !budget_is_unknown(c)
                               : arbiter_would_grant(c->arbiter, &spec, &c->tmp, &view)) {
            m->room = NULL;
            m->offered = room->id;
            prioqueue_put(&c->asks, &m->ask);
            moved++;
        } else {
            stay[stay_n++] = m;
        }
    }
    /* Those who came first stand in the arbiter's line: who came later makes room for them. */
    for (uint32_t i = BUDGET_LINE_MAX; i < stay_n; i++) {
        budget_unstand(stay[i]);
    }
    for (uint32_t i = 0; i < stay_n; i++) {
        budget_stand(stay[i]);
        prioqueue_put(&room->waiting, &stay[i]->ask);
    }
}

/* ── for people ────────────────────────────────────────────────────────────────────────────── */

/* The profile that asks: the node's annotation has it with the time since when it does. */
static struct str wait_profile(const struct member *m, struct arena *out)
{
    struct data data;
    struct err ignored = { 0 };
    struct str text = node_annotation(m->item->object, DATA_ANNOTATION);
    if (data_parse(text, out, &data, &ignored) < 0) {
        return STR_NONE;
    }
    for (uint32_t i = 0; i < data.profile_count; i++) {
        const struct data_profile *p = &data.profiles[i];
        if (!p->null && timestamp_to_usec(p->transition) == m->since) {
            return p->name;
        }
    }
    return STR_NONE;
}

void controller_each_wait(const struct controller *c, struct arena *out,
                          void (*fn)(void *ctx, const struct controller_wait *wait), void *ctx)
{
    LIST_EACH (&c->rooms, link) {
        const struct room *room = CONTAINER_OF(link, struct room, link);
        for (uint32_t i = 0; room->id == BUDGET_ROOM && i < room->waiting.n; i++) {
            const struct member *m = CONTAINER_OF(room->waiting.items[i], struct member, ask);
            struct ask_spec spec;
            struct ask_view view;
            struct controller_wait wait = {
                .node = m->item->name,
                .uid = ((const struct node *)m->item->object)->uid,
                .profile = wait_profile(m, out),
                .since = m->since,
                .view = &view,
            };
            budget_spec(m, wait.profile, /* adopt= */ false, out, &spec);
            if (c->arbiter != NULL && !arbiter_would_grant(c->arbiter, &spec, out, &view)) {
                fn(ctx, &wait);
            }
        }
    }
}

/* ── what the parts share ──────────────────────────────────────────────────────────────────── */

void controller_set_arbiter(struct controller *c, struct arbiter *arbiter)
{
    if (arbiter == NULL) {
        MAP_EACH (&c->store.items, entry) {
            const struct store_item *item = map_item_value(entry);
            if (item->extra != NULL) {
                budget_drop(item->extra);
            }
        }
    }
    c->arbiter = arbiter;
    c->limits_known = true;
    c->look_at_rooms = true;
    c->claimed = false;
    turn_mark_all(c);
    controller_soon(c);
}

void controller_on_room(struct controller *c)
{
    c->look_at_rooms = true;
    controller_soon(c);
}

const struct store *controller_nodes(const struct controller *c)
{
    return &c->store;
}

struct client *controller_client(struct controller *c)
{
    return &c->client;
}

struct recorder *controller_recorder(struct controller *c)
{
    return &c->recorder;
}

struct drains *controller_drains(struct controller *c)
{
    return c->drains;
}

bool controller_acts(const struct controller *c)
{
    return controller_may_act(c) && !c->reflector.failing;
}
