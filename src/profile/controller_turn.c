/*
 * A turn: nodes that changed are looked at (propose), those that ask for maintenance are served in
 * the order in which they came (arbitrate), grants are recorded (commit), patches go out (act).
 */
#include "base/alloc.h"
#include "profile/controller_internal.h"

/* ── the lines before maintenance ──────────────────────────────────────────────────────────── */

static struct str room_key(const uint64_t *id)
{
    return (struct str){ .p = (const char *)id, .n = sizeof(*id) };
}

static struct room *room_of(struct controller *c, uint64_t id, uint32_t index)
{
    struct room *room = map_find(&c->room_ids, room_key(&id));
    if (room == NULL) {
        room = ALLOC_NEW(struct room);
        room->id = id;
        room->index = index;
        prioqueue_init(&room->waiting, prio_by_since);
        list_add(&c->rooms, &room->link);
        (void)map_put(&c->room_ids, room_key(&id), room); /* there was none */
    }
    return room;
}

static void room_leave(struct controller *c, struct room *room)
{
    if (room->waiting.n > 0) {
        return;
    }
    (void)map_del(&c->room_ids, room_key(&room->id)); /* it is `room` */
    list_del(&room->link);
    prioqueue_done(&room->waiting);
    alloc_free(room);
}

void turn_leave_line(struct member *m)
{
    budget_unstand(m);
    if (!prioqueue_inside(&m->ask)) {
        return;
    }
    struct room *room = m->room;
    prioqueue_take(room != NULL ? &room->waiting : &m->c->asks, &m->ask);
    m->room = NULL;
    if (room != NULL) {
        room_leave(m->c, room);
    }
}

/* A limit refuses it: it waits there, and for nothing else. */
static void turn_stand_before_limits(struct member *m)
{
    turn_leave_line(m);
    m->room = room_of(m->c, BUDGET_ROOM, 0);
    prioqueue_put(&m->room->waiting, &m->ask);
    budget_stand(m);
}

static void turn_stand_in_line(struct member *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    bool asks = (effect->needs & ENGINE_GRANT) != 0;
    turn_leave_line(m);
    if (!asks && effect->waits == 0) {
        return;
    }
    m->since =
        asks ? timestamp_to_usec(effect->profiles[effect->asker].since) : effect->waits_since;
    if (asks) {
        prioqueue_put(&c->asks, &m->ask);
        return;
    }
    m->room = room_of(c, effect->waits, effect->waits_on);
    prioqueue_put(&m->room->waiting, &m->ask);
}

/* ── telling ───────────────────────────────────────────────────────────────────────────────── */

static void turn_record(struct controller *c, const struct store_item *item, const char *type,
                        const char *reason, const char *action, struct str note)
{
    const struct node *node = item->object;
    char version[24];
    (void)snprintf(version, sizeof(version), "%llu", (unsigned long long)item->version);
    recorder_add(&c->recorder, &(struct recorder_event){
                                   .type = str_from(type),
                                   .reason = str_from(reason),
                                   .action = str_from(action),
                                   .note = note,
                                   .regarding = {
                                       .kind = STR("Node"),
                                       .api_version = STR("v1"),
                                       .name = item->name,
                                       .uid = node->uid,
                                       .version = str_from(version),
                                   },
                               });
}

/* The annotation cannot be read: the node is left as it is, and that is visible. */
static void turn_reject(struct member *m, const struct err *err)
{
    struct controller *c = m->c;
    gauges_reconcile(&c->gauges, /* ok= */ false);
    if (!str_eq(buf_str(&m->error), str_from(err->msg))) {
        log_error(c->log, "Failed to reconcile. Skipping node patching.",
                  KV_STR("node", m->item->name), KV_ERR(err));
        turn_record(c, m->item, "Warning", "MaintenanceDataUnreadable", "ReadMaintenanceData",
                    str_from(err->msg));
        buf_reset(&m->error);
        buf_add(&m->error, str_from(err->msg));
    }
}

/* What its profiles fail at is counted each time and told when it is new. */
static void turn_tell_failures(struct member *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    static const uint64_t key[2] = { 0x6472, 0x79 };
    uint64_t hash = 0;
    for (uint32_t i = 0; i < effect->profile_n; i++) {
        const struct engine_profile *e = &effect->profiles[i];
        if (e->error.n > 0) {
            gauges_failure(&c->gauges, e->name);
            hash = hash * 31 + (map_hash(key, e->error) | 1);
        }
    }
    if (hash != 0 && hash != m->failing) {
        for (uint32_t i = 0; i < effect->profile_n; i++) {
            const struct engine_profile *e = &effect->profiles[i];
            if (e->error.n == 0) {
                continue;
            }
            log_error(c->log, e->failed.p, KV_STR("node", m->item->name),
                      KV_STR("profile", e->name), KV_STR("state", label_state_name(e->state)),
                      KV_STR("error", e->error));
            turn_record(
                c, m->item, "Normal", "ChangeMaintenanceStateFailed", "ChangeMaintenanceState",
                arena_printf(
                    &c->tmp, STR_FMT " for profile " STR_FMT ": Will stay in " STR_FMT " state",
                    STR_ARG(e->failed), STR_ARG(e->name), STR_ARG(label_state_name(e->state))));
        }
    }
    bool trying = m->errand != NULL && m->errand->trials != NULL; /* the same once more */
    m->failing = hash == 0 && trying ? m->failing : hash;
}

/* Kinds of news. */
#define NEWS_RAN STR("ran")         /* a trigger instance */
#define NEWS_MOVED STR("moved")     /* into a state */
#define NEWS_ENTERED STR("entered") /* maintenance, and its enter chain is done */

static void turn_add_news(struct member *m, struct str kind, struct str profile, struct str what)
{
    const struct str parts[] = { kind, profile, what };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        buf_add(&m->news, parts[i]);
        buf_add_char(&m->news, '\n');
    }
}

/* What a patch carries is told when it is on the server, not before. */
static void turn_keep_news(struct member *m, const struct engine_effect *effect)
{
    const struct config_instances *triggers = &m->c->setup->config.instances[PLUGIN_TRIGGER];
    buf_reset(&m->news);
    for (uint32_t i = 0; i < effect->profile_n; i++) {
        const struct engine_profile *e = &effect->profiles[i];
        for (uint32_t r = 0; r < e->ran_n; r++) {
            for (uint32_t k = 0; k < e->ran[r]->n; k++) {
                turn_add_news(m, NEWS_RAN, e->name,
                              triggers->items[e->ran[r]->links[k].index].name);
            }
        }
        if (e->next != e->state) {
            turn_add_news(m, NEWS_MOVED, e->name, label_state_name(e->next));
        }
    }
    if (effect->entered) {
        turn_add_news(m, NEWS_ENTERED, effect->profiles[effect->entered_profile].name, STR(""));
    }
}

static void turn_tell_move(struct member *m, struct str profile, struct str state)
{
    struct controller *c = m->c;
    log_info(c->log, "Moved node to next state", KV_STR("node", m->item->name),
             KV_STR("profile", profile), KV_STR("state", state));
    gauges_transition(&c->gauges, profile, state);
    turn_record(c, m->item, "Normal", "ChangedMaintenanceState", "ChangeMaintenanceState",
                arena_printf(&c->tmp,
                             "The node is now in the " STR_FMT " state caused by profile " STR_FMT,
                             STR_ARG(state), STR_ARG(profile)));
    if (str_eq(state, label_state_name(LABEL_STATE_REQUIRED))) {
        shuffle_touch(c->shuffle, m->item->name, profile);
    }
}

void turn_tell_news(struct member *m)
{
    struct controller *c = m->c;
    struct str rest = buf_str(&m->news);
    struct str kind;
    struct str profile;
    struct str what;
    while (str_cut(rest, STR("\n"), &kind, &rest) && str_cut(rest, STR("\n"), &profile, &rest) &&
           str_cut(rest, STR("\n"), &what, &rest)) {
        if (str_eq(kind, NEWS_RAN)) {
            log_info(c->log, "Executed trigger instance", KV_STR("node", m->item->name),
                     KV_STR("profile", profile), KV_STR("instance", what));
        } else if (str_eq(kind, NEWS_MOVED)) {
            turn_tell_move(m, profile, what);
        } else {
            ASSERT(str_eq(kind, NEWS_ENTERED));
            shuffle_count(c->shuffle, m->item->name, profile);
        }
    }
    buf_reset(&m->news);
}

/* ── details ───────────────────────────────────────────────────────────────────────────────── */

static void turn_tell_checks(struct member *m, const struct engine_profile *e)
{
    static const char *const answers[] = {
        [CHECK_PASS] = "true",
        [CHECK_FAIL] = "false",
        [CHECK_PENDING] = "pending",
        [CHECK_ERROR] = "error",
    };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    for (uint32_t i = 0; i < e->transition_n; i++) {
        const struct engine_transition *t = &e->transitions[i];
        buf_reset(&text);
        for (uint32_t k = 0; k < t->check_n; k++) {
            buf_printf(&text, "%s" STR_FMT "=%s", k > 0 ? " " : "", STR_ARG(t->checks[k].name),
                       answers[t->checks[k].verdict.answer]);
        }
        log_info(m->c->log, "results of check plugins", KV_STR("node", m->item->name),
                 KV_STR("profile", e->name), KV_STR("next", label_state_name(t->target)),
                 KV_STR("checks", buf_str(&text)));
    }
}

/* Why notifications are silent. */
static void turn_tell_silences(struct member *m, const struct engine_profile *e, bool details)
{
    struct log *log = m->c->log;
    for (uint32_t i = 0; i < e->silence_n; i++) {
        const struct engine_silence *s = &e->silences[i];
        const struct kv who[] = { KV_STR("node", m->item->name), KV_STR("profile", e->name),
                                  KV_STR("instance", s->instance) };
        if (details && s->note != NULL) {
            log_write(log, LOG_INFO, s->note, ARRAY_LEN(who), who);
        }
        if ((details || s->loud) && s->reason != NULL) {
            log_write(log, LOG_INFO, s->reason, ARRAY_LEN(who), who);
        }
        if (details && !s->due) {
            log_write(log, LOG_INFO, "Notification instance is not scheduled to run",
                      ARRAY_LEN(who), who);
        }
    }
}

/* For nodes whose label asks for it, how the decision came about. */
static void turn_tell_details(struct member *m, const struct engine_effect *effect)
{
    bool details = str_eq(node_label(m->item->object, LABEL_LOG_DETAILS), STR("true"));
    for (uint32_t i = 0; i < effect->profile_n; i++) {
        turn_tell_silences(m, &effect->profiles[i], details);
        if (details) {
            turn_tell_checks(m, &effect->profiles[i]);
        }
    }
}

/* ── propose ───────────────────────────────────────────────────────────────────────────────── */

void turn_input(const struct member *m, bool explain, struct arena *out, struct engine_input *ret)
{
    const struct controller *c = m->c;
    *ret = (struct engine_input){
        .config = &c->setup->config,
        .name = m->item->name,
        .node = m->item->object,
        .fleet = c->fleet,
        .facts = inquiry_facts(c->inquiry),
        .wall = loop_wall(c->loop),
        .progress = {
            .granted = grant_owner(m),
            .drained = m->drain != NULL && drain_is_done(m->drain),
        },
        .explain = explain,
        .mutations = c->config.mutations,
    };
    errand_progress(m, out, &ret->progress);
    if (explain && m->drain != NULL) {
        ret->progress.drain = errand_drain_words(m, out);
    }
}

/* As the bug would: a space that Go does not write. */
static void turn_spoil(struct buf *body)
{
    struct str head;
    struct str rest;
    CLEANUP(buf_done)
    struct buf copy = { 0 };
    buf_add(&copy, buf_str(body));
    if (str_cut(buf_str(&copy), STR("Profiles\\\":"), &head, &rest)) {
        buf_reset(body);
        buf_printf(body, STR_FMT "Profiles\\\": " STR_FMT, STR_ARG(head), STR_ARG(rest));
    }
}

static void turn_patch(struct member *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    bool guarded = !mutated(c->config.mutations, MUTATION_SKIP_RV);
    buf_reset(&c->body);
    subject_print_patch(&effect->subject, guarded ? m->item->version : 0, &c->body);
    if (mutated(c->config.mutations, MUTATION_DATA_BYTES_WRONG)) {
        turn_spoil(&c->body);
    }
    m->refresh = false;
    m->version = m->item->version;
    m->arriving = effect->arrives;
    turn_keep_news(m, effect);
    c->stats.patches++;
    gauges_count(c->gauges.patches);
    member_send(m, API_PATCH);
}

/* The grant has no purpose any more; but a patch of which nobody knows what became may still
 * arrive. */
static void turn_drop_grant(struct member *m)
{
    if (m->grant->stage != GRANT_HELD) {
        return;
    }
    if (m->unsure && m->item->version <= m->grant->version) {
        m->grant->stage = GRANT_GHOST;
    } else {
        grant_end(m);
    }
}

/* What a ghost was granted is not asked for any more, or not now. Any write to the node makes the
 * patch that may still arrive conflict, and frees the place: when there is nothing else to write,
 * a mark. */
static void turn_fence(struct member *m, struct engine_effect *effect)
{
    if (m->grant == NULL || m->grant->stage != GRANT_GHOST || effect->subject.edit_n > 0) {
        return;
    }
    subject_set_annotation(&effect->subject, SUBJECT_FENCE,
                           arena_printf(&m->c->tmp, "%llu", (unsigned long long)m->item->version));
}

static bool turn_fails(const struct engine_effect *effect)
{
    bool fails = false;
    for (uint32_t i = 0; i < effect->profile_n; i++) {
        fails = fails || effect->profiles[i].error.n > 0;
    }
    return fails;
}

static void turn_act(struct member *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    bool patch = effect->subject.edit_n > 0;
    if (effect->arrives && !grant_is_good(m)) {
        return; /* the ledger comes first; it marks the node again */
    }
    errand_mark_settling(m, effect);
    if (patch) {
        turn_patch(m, effect);
    }
    if (m->drain != NULL) {
        /* A patch that comes at a drain's end may uncordon: what is scheduled to the node before
         * its answer is here is to stay. */
        drain_pause(m->drain, patch && drain_is_done(m->drain));
    }
    if ((effect->needs & ENGINE_DRAIN) == 0) {
        errand_stop_drain(m);
    } else if (!patch || m->drain != NULL || mutated(c->config.mutations, MUTATION_DRAIN_AT_ONCE)) {
        errand_drain(m, effect);
    }
    if ((effect->needs & ENGINE_NOTIFY) != 0 && !patch) {
        errand_notify(m, effect);
    } else if (!patch && !turn_fails(effect)) {
        errand_forget(m);
    }
    if (!patch) {
        errand_settle(m);
    }
    for (uint32_t i = 0; i < effect->want_n; i++) {
        inquiry_want(c->inquiry, &effect->wants[i]);
    }
}

/* Nobody looks at its pods any more: it does not wait, or no check asks. */
static void turn_forget_pods(struct member *m, bool looks)
{
    struct controller *c = m->c;
    struct str name = m->item->name;
    if (inquiry_asks(c->inquiry, name) &&
        ((m->pods && !looks) || !fleet_waits(c->fleet, m->item))) {
        inquiry_forget(c->inquiry, name);
    }
    m->pods = looks;
}

/* One node: what is it to carry, and is there something to send? `serve`: its turn has come. */
static void turn_decide(struct member *m, bool serve)
{
    struct controller *c = m->c;
    usec_t now = loop_now(c->loop);
    if (m->call != NULL) {
        return; /* the answer marks it again */
    }
    if (now < m->retry_at) {
        member_wake_at(m, m->retry_at);
        return;
    }
    grant_look(m);
    if (m->refresh && m->item->version <= m->version) {
        member_send(m, API_GET);
        return;
    }
    struct engine_input input;
    struct engine_effect effect;
    struct err err = { 0 };
    turn_input(m, /* explain= */ false, &c->tmp, &input);
    m->item->decided = input.wall;
    if (engine_decide(&input, &c->tmp, &effect, &err) < 0) {
        turn_leave_line(m);
        turn_forget_pods(m, /* looks= */ false);
        turn_reject(m, &err);
        return;
    }
    gauges_reconcile(&c->gauges, /* ok= */ true);
    buf_reset(&m->error);
    m->depends = effect.depends;
    c->any_rooms += effect.any_room ? 1 : 0;
    c->any_rooms -= m->any_room ? 1 : 0;
    m->any_room = effect.any_room;
    turn_tell_details(m, &effect);
    turn_tell_failures(m, &effect);
    member_wake_at(m, controller_when(c, effect.again));
    /* An earlier wake has taken the place of the one for the next try. */
    member_wake_at(m, errand_retry_at(m));
    if (m->grant != NULL && !effect.keeps_grant) {
        turn_drop_grant(m);
    }
    bool asks = (effect.needs & ENGINE_GRANT) != 0;
    bool hopes = false;
    turn_forget_pods(m, effect.pods);
    grant_look_at_pods(m, asks ? effect.profiles[effect.asker].name : STR_NONE);
    if (asks && m->grant != NULL) {
        hopes = grant_revive(m, effect.profiles[effect.asker].name);
    } else if (asks && serve && budget_refuses(m, &effect)) {
        turn_stand_before_limits(m);
    } else if (asks && serve) {
        turn_leave_line(m);
        grant_begin(m, &effect);
    } else if (m->grant == NULL) {
        turn_stand_in_line(m, &effect);
    }
    if (!hopes) {
        turn_fence(m, &effect);
    }
    turn_act(m, &effect);
    budget_follow(m, &effect);
}

/* ── arbitrate ─────────────────────────────────────────────────────────────────────────────── */

/* Where a room has places again, the first in its line ask. */
static void turn_open_rooms(struct controller *c)
{
    c->rooms_next = USEC_NEVER;
    LIST_EACH (&c->rooms, link) {
        struct room *room = CONTAINER_OF(link, struct room, link);
        if (room->id == BUDGET_ROOM) {
            budget_open(c, room);
            room_leave(c, room);
            continue;
        }
        struct member *m = CONTAINER_OF(prioqueue_first(&room->waiting), struct member, ask);
        const struct subject subject = { .name = m->item->name, .node = m->item->object };
        const struct check_input input = {
            .config = &c->setup->config,
            .subject = &subject,
            .fleet = c->fleet,
            .facts = inquiry_facts(c->inquiry),
            .now = timestamp_from_usec(loop_wall(c->loop)),
            .out = &c->tmp,
        };
        usec_t next = USEC_NEVER;
        int64_t left = check_room_left(&input, room->index, &next);
        c->rooms_next = MIN(c->rooms_next, next);
        for (uint32_t n = room->waiting.n; left > 0 && n > 0; left--, n--) {
            m = CONTAINER_OF(prioqueue_first(&room->waiting), struct member, ask);
            prioqueue_take(&room->waiting, &m->ask);
            m->room = NULL;
            m->offered = room->id;
            prioqueue_put(&c->asks, &m->ask);
        }
        room_leave(c, room);
    }
    if (c->rooms_next != USEC_NEVER) {
        loop_timer_pull(&c->wake, controller_when(c, c->rooms_next));
    }
}

static uint32_t turn_window(const struct controller *c)
{
    return c->config.window > 0 ? c->config.window : CONTROLLER_WINDOW;
}

/* Asked before every send: the lease may end within a turn. */
static bool turn_goes_on(struct controller *c)
{
    if (c->stats.in_flight + c->granting >= turn_window(c) || !controller_may_act(c)) {
        return false;
    }
    if (!client_open(&c->client)) {
        loop_timer_pull(&c->turn, client_open_at(&c->client));
        return false;
    }
    return true;
}

/* ── the whole ─────────────────────────────────────────────────────────────────────────────── */

void turn_mark_all(struct controller *c)
{
    MAP_EACH (&c->store.items, entry) {
        store_mark(&c->store, map_item_value(entry));
    }
}

/* Marks the nodes whose checks looked at something that is different now. */
static void turn_spread(struct controller *c, bool rooms)
{
    uint64_t bits = fleet_changed(c->fleet) | c->changed;
    c->changed = 0;
    if (bits == 0 && !rooms) {
        return;
    }
    MAP_EACH (&c->store.items, entry) {
        struct store_item *item = map_item_value(entry);
        const struct member *m = item->extra;
        if (m != NULL && ((m->depends & bits) != 0 || (rooms && m->any_room))) {
            store_mark(&c->store, item);
            c->line_up = true;
        }
    }
}

static void turn_line_up(struct controller *c, struct store_item *item)
{
    struct member *m = member_of(c, item);
    struct engine_input input;
    struct engine_effect effect;
    struct err ignored = { 0 };
    turn_input(m, /* explain= */ false, &c->tmp, &input);
    if (m->grant == NULL && engine_decide(&input, &c->tmp, &effect, &ignored) == 0) {
        turn_stand_in_line(m, &effect);
    }
    arena_reset(&c->tmp);
}

/* After a list, a change of leader or of configuration nobody is in line; when a window opens, or
 * something else that many wait for, they are due at once. Those who are due are found first, so
 * that none is overtaken by one that merely was looked at earlier. */
static void turn_survey(struct controller *c)
{
    if (!c->surveyed) {
        MAP_EACH (&c->store.items, entry) {
            turn_line_up(c, map_item_value(entry));
        }
    } else if (c->line_up && c->store.dirty_count > 1) {
        LIST_EACH (&c->store.dirty, link) {
            turn_line_up(c, CONTAINER_OF(link, struct store_item, dirty));
        }
    }
    c->surveyed = true;
    c->line_up = false;
}

/* Whether nothing of a node's cycle has begun: such a node holds no place and waits for none. */
static bool turn_may_wait(const struct store_item *item)
{
    enum label_state state;
    return !label_state_parse(node_label(item->object, LABEL_STATE), &state) ||
           state == LABEL_STATE_OPERATIONAL;
}

/* The next node to look at. What has begun goes on before something new begins: when many nodes
 * are due at once and all places of the window are taken, those in maintenance would otherwise
 * stand behind all that have not even asked, and their places stay taken. */
static void turn_look(struct controller *c)
{
    struct store_item *item = store_take(&c->store);
    if (!item->later && turn_may_wait(item)) {
        store_postpone(&c->store, item);
        return;
    }
    item->later = false;
    turn_decide(member_of(c, item), /* serve= */ false);
}

/* Who asks is served before the next node is looked at: rooms bound how many that can be. */
static bool turn_step(struct controller *c)
{
    if (fleet_room_changed(c->fleet) || c->look_at_rooms) {
        c->look_at_rooms = false;
        turn_open_rooms(c);
    }
    struct prioqueue_item *first = prioqueue_first(&c->asks);
    if (first != NULL) {
        struct member *m = CONTAINER_OF(first, struct member, ask);
        prioqueue_take(&c->asks, &m->ask);
        uint64_t offered = m->offered;
        m->offered = 0;
        turn_decide(m, /* serve= */ true);
        /* It goes on waiting, for another room: the place is the next one's. */
        c->look_at_rooms = c->look_at_rooms || (offered != 0 && m->grant == NULL &&
                                                (m->room == NULL || m->room->id != offered));
    } else if (c->store.dirty_count > 0) {
        turn_look(c);
    } else {
        return false;
    }
    arena_reset(&c->tmp);
    return true;
}

void controller_turn(void *ctx)
{
    struct controller *c = ctx;
    if (!controller_may_act(c)) {
        return;
    }
    c->stats.turns++;
    if (!c->adopted) {
        grant_adopt(c);
    }
    bool rooms = fleet_room_changed(c->fleet);
    c->look_at_rooms = c->look_at_rooms || rooms;
    turn_spread(c, rooms && c->any_rooms > 0);
    turn_survey(c);
    while (turn_goes_on(c) && turn_step(c)) {
    }
    if (c->arbiter != NULL && !c->claimed && c->store.dirty_count == 0) {
        c->claimed = true;
        arbiter_owner_synced(c->arbiter, ASK_PROFILE, true);
    }
    grant_commit(c);
}
