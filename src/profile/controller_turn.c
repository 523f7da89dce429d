/*
 * A turn: nodes that changed are decided (propose), those that ask for maintenance are served in
 * the order in which they came (arbitrate), grants are recorded (commit), patches go out (act).
 */
#include "base/alloc.h"
#include "kinds/keys.h"
#include "profile/controller_internal.h"

/* ── wait queues ───────────────────────────────────────────────────────────────────────────── */

static struct str wait_queue_key(const uint64_t *id)
{
    return (struct str){ .p = (const char *)id, .n = sizeof(*id) };
}

static struct wait_queue *wait_queue_get(struct controller *c, uint64_t id, uint32_t index)
{
    struct wait_queue *queue = map_find(&c->wait_queues, wait_queue_key(&id));
    if (queue == NULL) {
        queue = ALLOC_NEW(struct wait_queue);
        queue->id = id;
        queue->index = index;
        prioqueue_init(&queue->waiting, prio_by_since);
        (void)map_put(&c->wait_queues, wait_queue_key(&id), queue); /* there was none */
    }
    return queue;
}

static void wait_queue_free_if_empty(struct controller *c, struct wait_queue *queue)
{
    if (queue->waiting.n > 0) {
        return;
    }
    (void)map_del(&c->wait_queues, wait_queue_key(&queue->id)); /* it is `queue` */
    prioqueue_done(&queue->waiting);
    alloc_free(queue);
}

void turn_leave_queue(struct managed_node *m)
{
    node_limit_queue_leave(m);
    if (!prioqueue_inside(&m->queue_item)) {
        return;
    }
    struct wait_queue *queue = m->queue;
    prioqueue_take(queue != NULL ? &queue->waiting : &m->c->wants_grant, &m->queue_item);
    m->queue = NULL;
    if (queue != NULL) {
        wait_queue_free_if_empty(m->c, queue);
    }
}

/* A MaintenanceLimit refuses the node: it waits in the queue of the limits and in no other. */
static void turn_enter_limit_queue(struct managed_node *m)
{
    turn_leave_queue(m);
    m->queue = wait_queue_get(m->c, NODE_LIMIT_QUEUE, 0);
    prioqueue_put(&m->queue->waiting, &m->queue_item);
    node_limit_queue_enter(m);
}

static void turn_enter_queue(struct managed_node *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    bool wants_grant = (effect->needs & ENGINE_NEED_GRANT) != 0;
    turn_leave_queue(m);
    if (!wants_grant && effect->waits_group == 0) {
        return;
    }
    m->since = wants_grant ? timestamp_to_usec(effect->profiles[effect->grant_profile].since)
                           : effect->waits_since;
    if (wants_grant) {
        prioqueue_put(&c->wants_grant, &m->queue_item);
        return;
    }
    m->queue = wait_queue_get(c, effect->waits_group, effect->waits_check);
    prioqueue_put(&m->queue->waiting, &m->queue_item);
}

/* ── Events and logs ───────────────────────────────────────────────────────────────────────── */

void turn_record_event(struct controller *c, const struct store_item *item, const char *type,
                       const char *reason, const char *action, struct str note)
{
    const struct node *node = item->object;
    char version[24];
    (void)snprintf(version, sizeof(version), "%llu", (unsigned long long)item->version);
    recorder_add(&c->core->recorder, &(struct recorder_event){
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

/* The data annotation cannot be read: the node is left as it is, with an Event and an error. */
static void turn_reject_node(struct managed_node *m, const struct err *err)
{
    struct controller *c = m->c;
    controller_metrics_reconcile(&c->metrics, /* ok= */ false);
    if (!str_eq(buf_str(&m->error), str_from(err->msg))) {
        log_error(c->log, "Failed to reconcile. Skipping node patching.",
                  KV_STR("node", m->item->name), KV_ERR(err));
        turn_record_event(c, m->item, "Warning", "MaintenanceDataUnreadable", "ReadMaintenanceData",
                          str_from(err->msg));
        buf_reset(&m->error);
        buf_add(&m->error, str_from(err->msg));
    }
}

/* Failures of the node's profiles are counted each time, but logged only when they are new. */
static void turn_report_failures(struct managed_node *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    static const uint64_t key[2] = { 0x6472, 0x79 };
    uint64_t hash = 0;
    for (uint32_t i = 0; i < effect->profile_n; i++) {
        const struct engine_profile *e = &effect->profiles[i];
        if (e->error.n > 0) {
            controller_metrics_failure(&c->metrics, e->name);
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
                      KV_STR("profile", e->name), KV_STR("state", profile_state_name(e->state)),
                      KV_STR("error", e->error));
            turn_record_event(
                c, m->item, "Normal", "ChangeMaintenanceStateFailed", "ChangeMaintenanceState",
                arena_printf(
                    &c->tmp, STR_FMT " for profile " STR_FMT ": Will stay in " STR_FMT " state",
                    STR_ARG(e->failed), STR_ARG(e->name), STR_ARG(profile_state_name(e->state))));
        }
    }
    m->failing = hash;
}

/* Kinds of pending events. */
#define PENDING_TRIGGER_RAN STR("ran")     /* a trigger instance */
#define PENDING_STATE_CHANGED STR("moved") /* into a state */
#define PENDING_ENTERED STR("entered")     /* in maintenance, with its enter chain done */
#define PENDING_ABORTED STR("aborted")     /* somebody asked for it */
#define PENDING_DATA_LOST STR("lost")      /* the annotation, while our cordon is there */
#define PENDING_LIFTED STR("lifted")       /* a profile's cordon, because of that or as an orphan */

static void turn_add_pending_event(struct managed_node *m, struct str kind, struct str profile,
                                   struct str what)
{
    /* A profile's name may be what somebody has written into an annotation. */
    const struct str parts[] = { kind, profile, what };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        for (size_t k = 0; k < parts[i].n; k++) {
            buf_add_char(&m->events, parts[i].p[k] == '\n' ? ' ' : parts[i].p[k]);
        }
        buf_add_char(&m->events, '\n');
    }
}

/* Events about a patch are sent once the server has it, not before. */
static void turn_keep_pending_events(struct managed_node *m, const struct engine_effect *effect)
{
    const struct config_instances *triggers = &m->c->active->config.instances[PLUGIN_TRIGGER];
    buf_reset(&m->events);
    for (uint32_t i = 0; i < effect->profile_n; i++) {
        const struct engine_profile *e = &effect->profiles[i];
        for (uint32_t r = 0; r < e->ran_n; r++) {
            for (uint32_t k = 0; k < e->ran[r]->n; k++) {
                turn_add_pending_event(m, PENDING_TRIGGER_RAN, e->name,
                                       triggers->items[e->ran[r]->links[k].index].name);
            }
        }
        if (e->next != e->state) {
            turn_add_pending_event(m, PENDING_STATE_CHANGED, e->name, profile_state_name(e->next));
        }
    }
    const struct node *node = m->item->object;
    struct str mark = node_annotation(node, KEY_PROFILE_CORDON);
    if (node->unschedulable && mark.n > 0 && node_annotation(node, KEY_DATA).n == 0) {
        turn_add_pending_event(m, PENDING_DATA_LOST, mark, STR(""));
    }
    if (effect->aborted) {
        turn_add_pending_event(m, PENDING_ABORTED, STR(""), STR(""));
    }
    if (effect->lifted.n > 0) {
        turn_add_pending_event(m, PENDING_LIFTED, effect->lifted,
                               effect->aborted ? KEY_ABORT : STR(""));
    }
    if (effect->entered) {
        turn_add_pending_event(m, PENDING_ENTERED, effect->profiles[effect->entered_profile].name,
                               STR(""));
    }
}

static void turn_report_transition(struct managed_node *m, struct str profile, struct str state)
{
    struct controller *c = m->c;
    log_info(c->log, "Moved node to next state", KV_STR("node", m->item->name),
             KV_STR("profile", profile), KV_STR("state", state));
    controller_metrics_transition(&c->metrics, profile, state);
    turn_record_event(
        c, m->item, "Normal", "ChangedMaintenanceState", "ChangeMaintenanceState",
        arena_printf(&c->tmp, "The node is now in the " STR_FMT " state caused by profile " STR_FMT,
                     STR_ARG(state), STR_ARG(profile)));
    if (str_eq(state, profile_state_name(PROFILE_STATE_REQUIRED))) {
        shuffle_make_zeros(c->shuffle, m->item->name, profile);
    }
}

static void turn_report_aborted(struct managed_node *m)
{
    log_info(m->c->log, "Gave up what the profiles of the node had under way",
             KV_STR("node", m->item->name));
    turn_record_event(m->c, m->item, "Normal", "MaintenanceAborted", "AbortMaintenance",
                      STR("What the node's profiles had under way was given up, as its annotation "
                          "asked"));
}

static void turn_report_lifted(struct managed_node *m, struct str profile, struct str aborted)
{
    struct controller *c = m->c;
    log_info(c->log, "Lifted the cordon of a profile", KV_STR("node", m->item->name),
             KV_STR("profile", profile));
    turn_record_event(c, m->item, "Normal", "CordonLifted", "Uncordon",
                      arena_printf(&c->tmp, "The cordon of profile " STR_FMT " was lifted: %s",
                                   STR_ARG(profile),
                                   aborted.n > 0 ? "its maintenance was aborted"
                                                 : "the profile does not serve the node any more"));
}

static void turn_report_data_lost(struct managed_node *m, struct str profile)
{
    struct controller *c = m->c;
    log_warn(c->log, "The data annotation of a node that a profile cordoned was gone",
             KV_STR("node", m->item->name), KV_STR("profile", profile));
    turn_record_event(
        c, m->item, "Warning", "MaintenanceDataLost", "ReadMaintenanceData",
        arena_printf(
            &c->tmp,
            "The data annotation was gone although the node is cordoned by profile " STR_FMT
            ": its profiles begin anew, and it counts against limits until the cordon is "
            "lifted",
            STR_ARG(profile)));
}

void turn_send_pending_events(struct managed_node *m)
{
    struct controller *c = m->c;
    struct str rest = buf_str(&m->events);
    struct str kind;
    struct str profile;
    struct str what;
    while (str_cut(rest, STR("\n"), &kind, &rest) && str_cut(rest, STR("\n"), &profile, &rest) &&
           str_cut(rest, STR("\n"), &what, &rest)) {
        if (str_eq(kind, PENDING_TRIGGER_RAN)) {
            log_info(c->log, "Executed trigger instance", KV_STR("node", m->item->name),
                     KV_STR("profile", profile), KV_STR("instance", what));
        } else if (str_eq(kind, PENDING_STATE_CHANGED)) {
            turn_report_transition(m, profile, what);
        } else if (str_eq(kind, PENDING_ABORTED)) {
            turn_report_aborted(m);
        } else if (str_eq(kind, PENDING_DATA_LOST)) {
            turn_report_data_lost(m, profile);
        } else if (str_eq(kind, PENDING_LIFTED)) {
            turn_report_lifted(m, profile, what);
        } else {
            ASSERT(str_eq(kind, PENDING_ENTERED));
            shuffle_count(c->shuffle, m->item->name, profile);
        }
    }
    buf_reset(&m->events);
}

/* ── details ───────────────────────────────────────────────────────────────────────────────── */

static void turn_log_checks(struct managed_node *m, const struct engine_profile *e)
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
                 KV_STR("profile", e->name), KV_STR("next", profile_state_name(t->target)),
                 KV_STR("checks", buf_str(&text)));
    }
}

/* Logs why notifications were not sent. */
static void turn_log_notify_skips(struct managed_node *m, const struct engine_profile *e,
                                  bool details)
{
    struct log *log = m->c->log;
    for (uint32_t i = 0; i < e->notify_skip_n; i++) {
        const struct engine_notify_skip *s = &e->notify_skips[i];
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

/* Logs how the decision came about, for nodes whose label asks for it. */
static void turn_log_details(struct managed_node *m, const struct engine_effect *effect)
{
    bool details = str_eq(node_label(m->item->object, KEY_LOG_DETAILS), STR("true"));
    for (uint32_t i = 0; i < effect->profile_n; i++) {
        turn_log_notify_skips(m, &effect->profiles[i], details);
        if (details) {
            turn_log_checks(m, &effect->profiles[i]);
        }
    }
}

/* ── propose ───────────────────────────────────────────────────────────────────────────────── */

void turn_engine_input(const struct managed_node *m, bool explain, struct arena *out,
                       struct engine_input *ret)
{
    const struct controller *c = m->c;
    *ret = (struct engine_input){
        .config = &c->active->config,
        .name = m->item->name,
        .node = m->item->object,
        .fleet = c->fleet,
        .facts = external_facts_facts(c->external),
        .wall = loop_wall(c->loop),
        .progress = {
            .granted = grant_owner(m),
            .confirming = grant_is_confirming(m),
            .drained = m->drain != NULL && drain_is_done(m->drain),
            .altered = hypervisor_alter_done,
            .altered_ctx = m,
            .alter_error = hypervisor_alter_error(m),
        },
        .explain = explain,
    };
    mutations_copy(ret, &c->core->config);
    node_notify_progress(m, out, &ret->progress);
    if (explain && m->drain != NULL) {
        ret->progress.drain = node_drain_text(m, out);
    }
}

/* For a test of the swarm: writes a space that Go does not write. */
static void turn_corrupt_data(struct buf *body)
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

static void turn_patch(struct managed_node *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    bool guarded = !mutated(c->core->config.mutations, MUTATION_SKIP_RV);
    buf_reset(&c->body);
    node_edit_print_patch(&effect->edit, guarded ? m->item->version : 0, &c->body);
    if (mutated(c->core->config.mutations, MUTATION_DATA_BYTES_WRONG)) {
        turn_corrupt_data(&c->body);
    }
    m->entering = effect->enters;
    turn_keep_pending_events(m, effect);
    c->stats.patches++;
    metric_add(c->metrics.patches, 1);
    managed_node_send(m, API_PATCH);
}

/* No profile asks for the held grant any more. If the outcome of its patch is unknown, that patch
 * may still arrive, and the grant goes on counting as inherited. */
static void turn_drop_grant(struct managed_node *m)
{
    if (m->grant->stage != GRANT_HELD) {
        return;
    }
    if (m->outcome_unknown && m->item->version <= m->grant->version) {
        m->grant->stage = GRANT_INHERITED;
    } else {
        grant_end(m);
    }
}

/* The node does not ask for what its inherited grant allows. Any write to the node makes the old
 * patch, which may still arrive, conflict, and so ends the grant. When there is nothing else to
 * write, the fence annotation is written. */
static void turn_fence_stale_patch(struct managed_node *m, struct engine_effect *effect)
{
    if (m->grant == NULL || m->grant->stage != GRANT_INHERITED || effect->edit.edit_n > 0) {
        return;
    }
    node_edit_set_annotation(
        &effect->edit, KEY_FENCE,
        arena_printf(&m->c->tmp, "%llu", (unsigned long long)m->item->version));
}

static void turn_act(struct managed_node *m, const struct engine_effect *effect)
{
    struct controller *c = m->c;
    bool patch = effect->edit.edit_n > 0;
    if (effect->keeps_grant && !core_may_grant(c->core)) {
        /* Everything is paused: the node stands still on its way into maintenance, cordoned or not,
         * drained or not; on_capacity marks it. */
        node_notify_send_retries(m);
        return;
    }
    if (effect->enters && !grant_allows_patch(m, effect)) {
        return; /* the ledger is written first, and then marks the node again */
    }
    node_notify_mark_in_patch(m, effect);
    if (patch) {
        turn_patch(m, effect);
    }
    if (m->drain != NULL) {
        /* The patch after a drain may uncordon the node: pods that are scheduled to the node
         * before the reply is here must not be evicted. */
        bool done = drain_is_done(m->drain);
        drain_pause(m->drain, done ? patch : node_limit_paused(m, &c->tmp).n > 0);
    }
    if ((effect->needs & ENGINE_NEED_DRAIN) == 0) {
        if (!grant_is_confirming(m)) { /* then it is not known yet whether the drain goes on */
            node_drain_stop(m);
        }
    } else if (!patch || m->drain != NULL ||
               mutated(c->core->config.mutations, MUTATION_DRAIN_AT_ONCE)) {
        node_drain_run(m, effect);
    }
    if ((effect->needs & ENGINE_NEED_NOTIFY) != 0 && !patch) {
        node_notify_send(m, effect);
    }
    if ((effect->needs & ENGINE_NEED_ALTER) != 0) {
        hypervisor_alter_run(m, effect);
    }
    if (!patch) {
        node_notify_send_retries(m);
        node_notify_on_patched(m);
    }
    for (uint32_t i = 0; i < effect->want_n; i++) {
        external_facts_want(c->external, &effect->wants[i]);
    }
}

/* Stops watching the node's pods when the node does not wait, or no check reads them any more. */
static void turn_drop_pods(struct managed_node *m, bool reads_pods)
{
    struct controller *c = m->c;
    struct str name = m->item->name;
    if (external_facts_wants_pods(c->external, name) &&
        ((m->reads_pods && !reads_pods) || !fleet_is_waiting(c->fleet, m->item))) {
        external_facts_drop_pods(c->external, name);
    }
    m->reads_pods = reads_pods;
}

/* Decides one node and acts on it. `serve`: the node asked for a grant and is next in the queue. */
static void turn_decide(struct managed_node *m, bool serve)
{
    struct controller *c = m->c;
    usec_t now = loop_now(c->loop);
    if (m->writer.call != NULL) {
        return; /* the reply marks the node again */
    }
    usec_t retry_at = writer_retry_at(&m->writer, m->item->version);
    if (now < retry_at) {
        managed_node_wake_at(m, retry_at);
        return;
    }
    grant_drop_if_stale(m);
    if (writer_must_read(&m->writer, m->item->version)) {
        managed_node_send(m, API_GET);
        return;
    }
    struct engine_input input;
    struct engine_effect effect;
    struct err err = { 0 };
    turn_engine_input(m, /* explain= */ false, &c->tmp, &input);
    m->item->decided = input.wall;
    if (engine_decide(&input, &c->tmp, &effect, &err) < 0) {
        turn_leave_queue(m);
        turn_drop_pods(m, /* reads_pods= */ false);
        turn_reject_node(m, &err);
        return;
    }
    controller_metrics_reconcile(&c->metrics, /* ok= */ true);
    buf_reset(&m->error);
    m->depends = effect.depends;
    c->any_groups += effect.any_group ? 1 : 0;
    c->any_groups -= m->any_group ? 1 : 0;
    m->any_group = effect.any_group;
    turn_log_details(m, &effect);
    turn_report_failures(m, &effect);
    managed_node_wake_at(m, controller_monotonic(c, effect.again_at));
    if (m->grant != NULL && !effect.keeps_grant) {
        turn_drop_grant(m);
    }
    bool wants_grant = (effect.needs & ENGINE_NEED_GRANT) != 0;
    bool may_resume = false;
    turn_drop_pods(m, effect.reads_pods);
    grant_recheck(m, wants_grant ? effect.profiles[effect.grant_profile].name : STR_NONE);
    if (wants_grant && m->grant != NULL) {
        may_resume = grant_resume(m, &effect);
    } else if (wants_grant && serve && node_limit_refuses(m, &effect)) {
        turn_enter_limit_queue(m);
    } else if (wants_grant && serve) {
        turn_leave_queue(m);
        grant_begin(m, &effect);
    } else if (m->grant == NULL) {
        turn_enter_queue(m, &effect);
    }
    if (!may_resume) {
        turn_fence_stale_patch(m, &effect);
    }
    turn_act(m, &effect);
    /* The wake for the next try was replaced if an earlier one was set. */
    managed_node_wake_at(m, node_notify_retry_at(m));
    node_limit_sync(m, &effect);
}

/* ── arbitrate ─────────────────────────────────────────────────────────────────────────────── */

/* Moves the first nodes of each wait queue to `wants_grant`, as many as its group has places. */
static void turn_offer_capacity(struct controller *c)
{
    c->capacity_next = USEC_NEVER;
    MAP_EACH (&c->wait_queues, entry) {
        struct wait_queue *queue = map_item_value(entry);
        if (queue->id == NODE_LIMIT_QUEUE) {
            node_limit_queue_offer(c, queue);
            wait_queue_free_if_empty(c, queue);
            continue;
        }
        struct managed_node *m =
            CONTAINER_OF(prioqueue_first(&queue->waiting), struct managed_node, queue_item);
        const struct node_edit edit = { .name = m->item->name, .node = m->item->object };
        const struct check_input input = {
            .config = &c->active->config,
            .edit = &edit,
            .fleet = c->fleet,
            .facts = external_facts_facts(c->external),
            .now = timestamp_from_usec(loop_wall(c->loop)),
            .out = &c->tmp,
        };
        usec_t next = USEC_NEVER;
        int64_t left = check_group_left(&input, queue->index, &next);
        c->capacity_next = MIN(c->capacity_next, next);
        for (uint32_t n = queue->waiting.n; left > 0 && n > 0; left--, n--) {
            m = CONTAINER_OF(prioqueue_first(&queue->waiting), struct managed_node, queue_item);
            prioqueue_take(&queue->waiting, &m->queue_item);
            m->queue = NULL;
            m->offered = queue->id;
            prioqueue_put(&c->wants_grant, &m->queue_item);
        }
        wait_queue_free_if_empty(c, queue);
    }
    if (c->capacity_next != USEC_NEVER) {
        loop_timer_pull(&c->wake, controller_monotonic(c, c->capacity_next));
    }
}

static uint32_t turn_window(const struct controller *c)
{
    return c->config.window > 0 ? c->config.window : CONTROLLER_WINDOW;
}

/* Asked before every send: the leader lease may end within a turn. */
static bool turn_may_continue(struct controller *c)
{
    if (c->stats.in_flight + c->granting >= turn_window(c) || !controller_may_act(c)) {
        return false;
    }
    if (!client_open(&c->core->client)) {
        loop_timer_pull(&c->turn, client_open_at(&c->core->client));
        return false;
    }
    return true;
}

/* ── the whole ─────────────────────────────────────────────────────────────────────────────── */

void turn_mark_all(struct controller *c)
{
    MAP_EACH (&c->core->nodes.store.items, entry) {
        store_mark(&c->core->nodes.store, map_item_value(entry));
    }
}

/* Marks the nodes whose checks read something that has changed. */
static void turn_mark_dependents(struct controller *c, bool wait_queues)
{
    uint64_t bits = fleet_changed(c->fleet) | c->changed;
    c->changed = 0;
    if (bits == 0 && !wait_queues) {
        return;
    }
    MAP_EACH (&c->core->nodes.store.items, entry) {
        struct store_item *item = map_item_value(entry);
        const struct managed_node *m = item->extra;
        if (m != NULL && ((m->depends & bits) != 0 || (wait_queues && m->any_group))) {
            store_mark(&c->core->nodes.store, item);
            c->queue_dirty = true;
        }
    }
}

static void turn_queue_node(struct controller *c, struct store_item *item)
{
    struct managed_node *m = managed_node_get(c, item);
    struct engine_input input;
    struct engine_effect effect;
    struct err ignored = { 0 };
    turn_engine_input(m, /* explain= */ false, &c->tmp, &input);
    if (m->grant == NULL && engine_decide(&input, &c->tmp, &effect, &ignored) == 0) {
        turn_enter_queue(m, &effect);
    }
    arena_reset(&c->tmp);
}

/* After a list, a new leader or a new configuration no node is in a queue; and when a window opens,
 * many nodes ask at once. All of them are put into their queues before any is served, so that no
 * node overtakes an older one just because it was decided earlier. */
static void turn_queue_all(struct controller *c)
{
    if (!c->all_queued) {
        MAP_EACH (&c->core->nodes.store.items, entry) {
            turn_queue_node(c, map_item_value(entry));
        }
    } else if (c->queue_dirty && c->core->nodes.store.dirty_count > 1) {
        LIST_EACH (&c->core->nodes.store.dirty, link) {
            turn_queue_node(c, CONTAINER_OF(link, struct store_item, dirty));
        }
    }
    c->all_queued = true;
    c->queue_dirty = false;
}

/* Whether the node is operational: it holds no place in maintenance and waits for none. */
static bool turn_may_postpone(const struct store_item *item)
{
    enum profile_state state;
    return !profile_state_parse(node_label(item->object, KEY_STATE), &state) ||
           state == PROFILE_STATE_OPERATIONAL;
}

/* Decides the next dirty node. Nodes that are not operational go first: when many nodes are dirty
 * and the window of patches is full, nodes in maintenance would otherwise wait behind all
 * operational ones and keep their places. */
static void turn_next_node(struct controller *c)
{
    struct store_item *item = store_take(&c->core->nodes.store);
    if (!item->later && turn_may_postpone(item)) {
        store_postpone(&c->core->nodes.store, item);
        return;
    }
    item->later = false;
    turn_decide(managed_node_get(c, item), /* serve= */ false);
}

/* Nodes that ask for a grant are served before the next dirty node is decided; limits bound how
 * many they can be. */
static bool turn_step(struct controller *c)
{
    if (fleet_usage_changed(c->fleet) || c->capacity_changed) {
        c->capacity_changed = false;
        turn_offer_capacity(c);
    }
    struct prioqueue_item *first = prioqueue_first(&c->wants_grant);
    if (first != NULL) {
        struct managed_node *m = CONTAINER_OF(first, struct managed_node, queue_item);
        prioqueue_take(&c->wants_grant, &m->queue_item);
        uint64_t offered = m->offered;
        m->offered = 0;
        turn_decide(m, /* serve= */ true);
        /* The node waits in another queue now: the place it was offered goes to the next node. */
        c->capacity_changed =
            c->capacity_changed ||
            (offered != 0 && m->grant == NULL && (m->queue == NULL || m->queue->id != offered));
    } else if (c->core->nodes.store.dirty_count > 0) {
        turn_next_node(c);
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
    if (!c->grants_read) {
        grant_inherit_all(c);
    }
    bool wait_queues = fleet_usage_changed(c->fleet);
    c->capacity_changed = c->capacity_changed || wait_queues;
    turn_mark_dependents(c, wait_queues && c->any_groups > 0);
    turn_queue_all(c);
    while (turn_may_continue(c) && turn_step(c)) {
    }
    if (c->core->arbiter != NULL && !c->all_reserved && c->core->nodes.store.dirty_count == 0) {
        c->all_reserved = true;
        arbiter_owner_synced(c->core->arbiter, ASK_OF_TARGET, true);
    }
    grant_commit(c);
}
