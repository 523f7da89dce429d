/* Decides for one node, profile by profile: enter chain, notifications, one transition at most. */
#include "profile/engine.h"

#include "calendar/elapsed.h"
#include "calendar/notify_schedule.h"
#include "kinds/keys.h"
#include "profile/trigger/trigger.h"

/* One decision while it is made. */
struct decision {
    const struct engine_input *in;
    struct arena *out;
    struct engine_effect *effect;
    struct node_data data;
    struct timestamp now;
    bool in_maintenance; /* a profile of the node is in maintenance, or has just gone there */
};

/* ── profiles and their entries ────────────────────────────────────────────────────────────── */

/* Drops the entries of profiles that the label does not name any more, and makes entries for new
 * ones. A profile that is only missing in the configuration keeps its entry and goes on when it
 * returns. */
static void engine_sync_profiles(struct decision *d, struct str label)
{
    struct node_data *data = &d->data;
    for (uint32_t i = data->profile_count; i > 0; i--) {
        if (!profile_label_has(label, data->profiles[i - 1].name)) {
            node_data_remove_profile(data, &data->profiles[i - 1]);
        }
    }
    size_t at = 0;
    struct str name;
    while (profile_label_next(label, &at, &name)) {
        struct node_data_profile *p = node_data_find_profile(data, name);
        if (config_find_profile(d->in->config, name) != NULL && (p == NULL || p->null)) {
            p = p != NULL ? p : node_data_make_profile(data, d->out, name);
            p->null = false;
            p->transition = d->now;
            p->current = profile_state_name(PROFILE_STATE_OPERATIONAL);
            p->previous = p->current;
        }
    }
}

static uint32_t engine_count_profiles(const struct decision *d, struct str label)
{
    size_t at = 0;
    struct str name;
    uint32_t n = 0;
    while (profile_label_next(label, &at, &name)) {
        n += config_find_profile(d->in->config, name) != NULL ? 1 : 0;
    }
    return n;
}

/* The profiles to decide, each once: a name that the label has twice is one profile. */
static int engine_collect_profiles(struct decision *d, struct str label, struct err *err)
{
    struct engine_effect *effect = d->effect;
    effect->profiles = ARENA_ARRAY(d->out, struct engine_profile, engine_count_profiles(d, label));
    size_t at = 0;
    struct str name;
    while (profile_label_next(label, &at, &name)) {
        const struct config_profile *profile = config_find_profile(d->in->config, name);
        bool twice = false;
        for (uint32_t i = 0; i < effect->profile_n; i++) {
            twice = twice || effect->profiles[i].profile == profile;
        }
        if (profile == NULL || twice) {
            continue;
        }
        const struct node_data_profile *p = node_data_find_profile(&d->data, name);
        ASSERT(p != NULL);
        struct engine_profile *e = &effect->profiles[effect->profile_n++];
        *e = (struct engine_profile){ .name = p->name, .profile = profile, .since = p->transition };
        if (!profile_state_parse(p->current, &e->state)) {
            return err_set(err, ERR_INVALID,
                           "failed to create internal state from unknown label value: node state "
                           "\"" STR_FMT "\" is not known",
                           STR_ARG(str_sub(p->current, 0, 64)));
        }
        e->next = e->state;
        effect->in_maintenance = effect->in_maintenance || e->state == PROFILE_STATE_MAINTENANCE;
    }
    return 0;
}

static bool engine_is_granted(const struct decision *d, const struct engine_profile *e)
{
    struct str granted = d->in->progress.granted;
    return granted.n > 0 && str_eq(granted, e->name);
}

/* ── triggers ──────────────────────────────────────────────────────────────────────────────── */

/* One step of one profile: its state's time tells it from the same step later on. */
static struct str engine_alter_key(struct decision *d, uint32_t index,
                                   const struct config_instance *instance)
{
    struct str profile = d->effect->profiles[index].name;
    const struct node_data_profile *entry = node_data_find_profile(&d->data, profile);
    return arena_printf(d->out, STR_FMT " " STR_FMT " " STR_FMT " %lld.%09d", STR_ARG(profile),
                        STR_ARG(instance->name), STR_ARG(entry->current),
                        (long long)entry->transition.sec, (int)entry->transition.nsec);
}

/* Says why a chain does not go on. */
static void engine_note_stop(struct decision *d, struct engine_profile *e,
                             const struct config_instance *instance, enum trigger_result r,
                             struct str why)
{
    if (r == TRIGGER_FAILED) {
        e->error = arena_printf(d->out, "Trigger instance " STR_FMT " failed: " STR_FMT,
                                STR_ARG(instance->name), STR_ARG(why));
        e->failed = STR("At least one trigger plugin failed");
    } else if (d->in->explain) {
        struct str drain = d->in->progress.drain;
        e->doing = why.n > 0 ? why : drain.n > 0 ? drain : STR("the drain is about to begin");
    }
}

/* Runs a chain as far as it goes without waiting. */
static enum trigger_result engine_run_chain(struct decision *d, uint32_t index,
                                            const struct chain *chain)
{
    struct engine_effect *effect = d->effect;
    const struct engine_progress *progress = &d->in->progress;
    for (uint32_t i = 0; i < chain->n; i++) {
        const struct config_instance *instance =
            &d->in->config->instances[PLUGIN_TRIGGER].items[chain->links[i].index];
        trigger_fn run = trigger_find(instance->plugin);
        ASSERT(run != NULL);
        if (trigger_is_drain(instance) && (effect->needs & ENGINE_NEED_DRAIN) == 0) {
            effect->needs |= ENGINE_NEED_DRAIN;
            effect->drain = instance;
            effect->drain_profile = index;
        }
        bool alters = trigger_is_alter_hypervisor(instance);
        struct str key = alters ? engine_alter_key(d, index, instance) : STR_NONE;
        struct str why = STR_NONE;
        bool alter = false;
        const struct trigger_input in = {
            .instance = instance,
            .edit = &effect->edit,
            .profile = effect->profiles[index].name,
            .drained = progress->drained,
            .any_owner = mutated(d->in->mutations, MUTATION_UNCORDON_OTHERS),
            .facts = d->in->facts,
            .altered = alters && progress->altered != NULL &&
                       progress->altered(progress->altered_ctx, key),
            .alter_error = progress->alter_error,
            .out = d->out,
            .ret_why = &why,
            .ret_alter = &alter,
        };
        enum trigger_result r = run(&in);
        if (alter && (effect->needs & ENGINE_NEED_ALTER) == 0) {
            effect->needs |= ENGINE_NEED_ALTER;
            effect->alter = instance;
            effect->alter_key = key;
        }
        if (r != TRIGGER_DONE) {
            engine_note_stop(d, &effect->profiles[index], instance, r, why);
            return r;
        }
    }
    return TRIGGER_DONE;
}

/* A chain that would fail is not begun: no grant is asked for what comes to nothing. */
static bool engine_chain_fails(struct decision *d, uint32_t index, const struct chain *chain)
{
    for (uint32_t i = 0; i < chain->n; i++) {
        const struct config_instance *instance =
            &d->in->config->instances[PLUGIN_TRIGGER].items[chain->links[i].index];
        struct str error = trigger_is_alter_hypervisor(instance)
                               ? facts_hypervisor(d->in->facts, d->in->name, d->out).error
                               : STR_NONE;
        if (error.n > 0) {
            engine_note_stop(d, &d->effect->profiles[index], instance, TRIGGER_FAILED, error);
            return true;
        }
    }
    return false;
}

static void engine_add_ran(struct engine_profile *e, const struct chain *chain)
{
    ASSERT(e->ran_n < ENGINE_RAN_MAX);
    e->ran[e->ran_n++] = chain;
}

/* Whether it may have to wait for something. */
static bool engine_chain_waits(const struct decision *d, const struct chain *chain)
{
    for (uint32_t i = 0; i < chain->n; i++) {
        const struct config_instance *instance =
            &d->in->config->instances[PLUGIN_TRIGGER].items[chain->links[i].index];
        if (trigger_is_drain(instance) || trigger_is_alter_hypervisor(instance)) {
            return true;
        }
    }
    return false;
}

/* ── notifications ─────────────────────────────────────────────────────────────────────────── */

static struct notify_schedule engine_notify_schedule(const struct config_instance *instance)
{
    const struct plugin *schedule = instance->schedule;
    const struct plugin_value *values = instance->schedule_values;
    struct notify_schedule parsed = { 0 };
    struct err ignored = { 0 };
    int r = notify_schedule_parse_kind(str_from(schedule->name), &parsed.kind, &ignored);
    ASSERT(r == 0); /* the plugin table has no other schedules */
    switch (parsed.kind) {
    case NOTIFY_SCHEDULE_PERIODIC:
        parsed.span_ns = plugin_get(schedule, values, "interval")->number;
        break;
    case NOTIFY_SCHEDULE_ONESHOT:
        parsed.span_ns = plugin_get(schedule, values, "delay")->number;
        break;
    case NOTIFY_SCHEDULE_SCHEDULED:
        parsed.instant = (uint32_t)plugin_get(schedule, values, "instant")->number;
        parsed.weekdays = (uint8_t)plugin_get(schedule, values, "weekdays")->number;
        break;
    }
    return parsed;
}

/* The instance's message about this state of the profile, if it was sent since. Its time in the
 * annotation alone would not do: the first of two messages that are due on entry would be due
 * again. */
static const struct engine_sent *engine_find_sent(const struct decision *d,
                                                  const struct node_data_profile *entry,
                                                  struct str instance)
{
    const struct engine_progress *progress = &d->in->progress;
    for (uint32_t i = 0; i < progress->sent_n; i++) {
        const struct engine_sent *sent = &progress->sent[i];
        if (str_eq(sent->instance, instance) && str_eq(sent->profile, entry->name) &&
            elapsed_order(sent->transition, entry->transition) == 0) {
            return sent;
        }
    }
    return NULL;
}

/* The same for one that was tried in vain. */
static const struct engine_send_failed *
engine_find_send_failed(const struct decision *d, const struct node_data_profile *entry,
                        struct str instance)
{
    const struct engine_progress *progress = &d->in->progress;
    for (uint32_t i = 0; i < progress->send_failed_n; i++) {
        const struct engine_send_failed *failed = &progress->send_failed[i];
        if (str_eq(failed->instance, instance) && str_eq(failed->profile, entry->name) &&
            elapsed_order(failed->transition, entry->transition) == 0) {
            return failed;
        }
    }
    return NULL;
}

static void engine_add_notify_skip(struct engine_profile *e, struct str instance,
                                   const struct notify_schedule_answer *answer)
{
    if (!answer->due || answer->note != NULL) {
        e->notify_skips[e->notify_skip_n++] = (struct engine_notify_skip){
            .instance = instance,
            .reason = answer->reason,
            .note = answer->note,
            .due = answer->due,
            .loud = answer->loud,
        };
    }
}

/* True when all that is due has been tried: transitions wait for that, not for its success, unless
 * the notification is one that is required. */
static bool engine_notify(struct decision *d, uint32_t index, const struct node_data_profile *entry)
{
    struct engine_effect *effect = d->effect;
    struct engine_profile *e = &effect->profiles[index];
    const struct chain *chain = &e->profile->states[e->state].notify;
    e->notify_skips = ARENA_ARRAY(d->out, struct engine_notify_skip, chain->n);
    for (uint32_t i = 0; i < chain->n; i++) {
        const struct config_instance *instance =
            &d->in->config->instances[PLUGIN_NOTIFY].items[chain->links[i].index];
        struct node_data_notification *last =
            node_data_notification(&d->data, d->out, instance->name);
        const struct engine_sent *sent = engine_find_sent(d, entry, instance->name);
        if (sent != NULL && elapsed_order(last->at, sent->at) < 0) {
            last->at = sent->at;
        }
        struct notify_schedule parsed = engine_notify_schedule(instance);
        const struct notify_schedule_facts facts = {
            .moved = !str_eq(entry->current, entry->previous),
            .was_operational =
                str_eq(entry->previous, profile_state_name(PROFILE_STATE_OPERATIONAL)),
            .transition = entry->transition,
            .last = last->at,
            .now = d->now,
        };
        struct notify_schedule_answer answer = notify_schedule_at(&parsed, &facts);
        engine_add_notify_skip(e, instance->name, &answer);
        if (!answer.due || sent != NULL) {
            effect->again_at = MIN(effect->again_at, answer.next);
            continue;
        }
        const struct engine_send_failed *send_failed =
            engine_find_send_failed(d, entry, instance->name);
        bool required = instance->required || mutated(d->in->mutations, MUTATION_MESSAGES_REQUIRED);
        if (send_failed != NULL && !required) {
            continue;
        }
        if (send_failed != NULL) {
            e->error = send_failed->error;
            e->failed = STR("At least one notification plugin failed");
            return false;
        }
        if ((effect->needs & ENGINE_NEED_NOTIFY) == 0) {
            effect->needs |= ENGINE_NEED_NOTIFY;
            effect->notify = instance;
            effect->notify_profile = index;
            effect->notify_last = last->at;
        }
        if (d->in->explain) {
            e->doing = arena_concat(d->out, STR("sends "), instance->name);
        }
        return false;
    }
    return true;
}

/* ── transitions ───────────────────────────────────────────────────────────────────────────── */

static void engine_add_wants(struct decision *d, const struct check_verdict *v)
{
    struct engine_effect *effect = d->effect;
    if (v->want_n == 0) {
        return;
    }
    struct facts_want *all = ARENA_ARRAY(d->out, struct facts_want, effect->want_n + v->want_n);
    if (effect->want_n > 0) {
        memcpy(all, effect->wants, effect->want_n * sizeof(*all));
    }
    memcpy(all + effect->want_n, v->wants, v->want_n * sizeof(*all));
    effect->wants = all;
    effect->want_n += v->want_n;
}

/* Whether the chain would pass if every maxMaintenance check answered `passes`, or, with `invert`,
 * the opposite of what it did. */
static bool engine_passes_with(const struct config_transition *t,
                               const struct engine_transition *ret, bool passes, bool invert)
{
    enum check_expr_verdict verdicts[CHECK_EXPR_NODES_MAX];
    struct err ignored = { 0 };
    bool passed = false;
    for (uint32_t i = 0; i < ret->check_n; i++) {
        const struct check_verdict *v = &ret->checks[i].verdict;
        bool is = v->answer == CHECK_PASS;
        if (v->limit_group != 0) {
            is = invert ? !is : passes;
        }
        verdicts[i] = is ? CHECK_EXPR_TRUE : CHECK_EXPR_FALSE;
    }
    return check_expr_eval(&t->check, verdicts, &passed, &ignored) == 0 && passed;
}

/* The node waits for a group of maxMaintenance if no other check holds it back. */
static void engine_note_full_group(struct decision *d, const struct engine_profile *e,
                                   const struct config_transition *t,
                                   const struct engine_transition *ret)
{
    struct engine_effect *effect = d->effect;
    bool limited = false;
    for (uint32_t i = 0; i < ret->check_n; i++) {
        limited = limited || ret->checks[i].verdict.limit_group != 0;
    }
    if (!limited) {
        return;
    }
    bool helps = !ret->chain_passed && engine_passes_with(t, ret, true, false);
    if (helps) {
        const struct check_verdict *full = NULL;
        for (uint32_t i = 0; i < ret->check_n && full == NULL; i++) {
            const struct check_verdict *v = &ret->checks[i].verdict;
            full = v->limit_group != 0 && v->answer == CHECK_FAIL ? v : NULL;
            if (full != NULL && effect->waits_group == 0) {
                effect->waits_group = v->limit_group;
                effect->waits_check = t->check.vars[i].index;
                effect->waits_since = timestamp_to_usec(e->since);
            }
        }
        /* The node waits in one queue only; if another transition waits for another group, the node
         * is decided at every change of any group. */
        effect->any_group =
            effect->any_group || (full != NULL && full->limit_group != effect->waits_group);
    } else if (!ret->chain_passed && engine_passes_with(t, ret, true, true)) {
        effect->any_group = true; /* "!max": it waits for the group to be full */
    }
}

static void engine_run_checks(struct decision *d, const struct engine_profile *e,
                              const struct config_transition *t, struct engine_transition *ret)
{
    struct engine_effect *effect = d->effect;
    struct check_input input = {
        .config = d->in->config,
        .edit = &effect->edit,
        .fleet = d->in->fleet,
        .facts = d->in->facts,
        .profile = e->name,
        .state = e->state,
        .transition = e->since,
        .now = d->now,
        .granted = engine_is_granted(d, e),
        .explain = d->in->explain,
        .out = d->out,
    };
    mutations_copy(&input, d->in);
    ret->check_n = t->check.var_n;
    ret->checks = ARENA_ARRAY(d->out, struct engine_check, ret->check_n);
    for (uint32_t i = 0; i < ret->check_n; i++) {
        uint32_t index = t->check.vars[i].index;
        struct engine_check *check = &ret->checks[i];
        check->name = t->check.vars[i].name;
        check->plugin = d->in->config->instances[PLUGIN_CHECK].items[index].plugin;
        check->verdict.next = USEC_NEVER;
        check_run(&input, index, &check->verdict);
        if (mutated(d->in->mutations, MUTATION_WINDOW_IGNORED) &&
            str_eq(str_from(check->plugin->name), STR("timeWindow"))) {
            check->verdict.answer = CHECK_PASS;
        }
        effect->depends |= UINT64_C(1) << (index % 64);
        effect->reads_pods = effect->reads_pods || check->verdict.reads_pods;
        ret->next = MIN(ret->next, check->verdict.next);
        engine_add_wants(d, &check->verdict);
    }
    effect->again_at = MIN(effect->again_at, ret->next);
}

static void engine_evaluate(struct decision *d, const struct engine_profile *e,
                            const struct config_transition *t, struct engine_transition *ret)
{
    *ret = (struct engine_transition){
        .target = t->next,
        .expression = t->check.text,
        .next = USEC_NEVER,
    };
    engine_run_checks(d, e, t, ret);
    enum check_expr_verdict verdicts[CHECK_EXPR_NODES_MAX];
    bool pending = false;
    for (uint32_t i = 0; i < ret->check_n; i++) {
        enum check_answer answer = ret->checks[i].verdict.answer;
        pending = pending || answer == CHECK_PENDING;
        verdicts[i] = answer == CHECK_PASS    ? CHECK_EXPR_TRUE
                      : answer == CHECK_ERROR ? CHECK_EXPR_FAILED
                                              : CHECK_EXPR_FALSE;
    }
    struct err err = { 0 };
    bool passed = false;
    if (check_expr_eval(&t->check, verdicts, &passed, &err) < 0) {
        ret->error = arena_str(d->out, str_from(err.msg));
        return;
    }
    ret->chain_passed = passed && !pending;
    if (!pending) {
        engine_note_full_group(d, e, t, ret);
    }
}

/* Why a passing chain still does not lead into maintenance; empty = it does. */
static struct str engine_held_reason(struct decision *d, const struct engine_profile *e)
{
    struct str granted = d->in->progress.granted;
    if (d->in_maintenance && !mutated(d->in->mutations, MUTATION_TWO_PROFILES)) {
        return STR("another profile of the node is in maintenance");
    }
    if (granted.n > 0 && !str_eq(granted, e->name)) {
        return STR("another profile of the node is on its way into maintenance");
    }
    if ((d->effect->needs & ENGINE_NEED_GRANT) != 0) {
        return STR("another profile of the node asks for maintenance first");
    }
    return STR_NONE;
}

static bool engine_takes_lease(const struct engine_transition *t)
{
    for (uint32_t i = 0; i < t->check_n; i++) {
        if (t->checks[i].plugin->takes_lease && t->checks[i].verdict.answer == CHECK_PASS) {
            return true;
        }
    }
    return false;
}

/* Evaluates all transitions and chooses the first that passes; none if one of them failed. */
static int64_t engine_choose(struct decision *d, struct engine_profile *e)
{
    const struct config_state *state = &e->profile->states[e->state];
    int64_t chosen = -1;
    CLEANUP(buf_done)
    struct buf errors = { 0 };
    e->transition_n = state->transition_n;
    e->transitions = ARENA_ARRAY(d->out, struct engine_transition, state->transition_n);
    for (uint32_t i = 0; i < state->transition_n; i++) {
        struct engine_transition *t = &e->transitions[i];
        engine_evaluate(d, e, &state->transitions[i], t);
        if (t->error.n > 0) {
            buf_add(&errors, errors.n > 0 ? STR("\n") : STR(""));
            buf_add(&errors, t->error);
        } else if (t->chain_passed) {
            t->held = t->target == PROFILE_STATE_MAINTENANCE ? engine_held_reason(d, e) : STR_NONE;
            t->passed = t->held.n == 0;
            chosen = chosen < 0 && t->passed ? (int64_t)i : chosen;
        }
    }
    if (errors.n > 0) {
        e->error = arena_concat(d->out, STR("had failed transition checks: "), buf_str(&errors));
        e->failed = STR("At least one check plugin failed");
        return -1;
    }
    return chosen;
}

/* The profile's enter chain of that state is done. */
static void engine_end_enter(struct decision *d, uint32_t index, struct node_data_profile *entry,
                             enum profile_state state)
{
    struct engine_profile *e = &d->effect->profiles[index];
    engine_add_ran(e, &e->profile->states[state].enter);
    entry->previous = entry->current;
    if (state == PROFILE_STATE_MAINTENANCE) {
        d->effect->entered = true;
        d->effect->entered_profile = index;
    }
}

/* The new state is written together with the edits of the transition's triggers. */
static void engine_enter_state(struct decision *d, uint32_t index, struct node_data_profile *entry,
                               enum profile_state next)
{
    struct engine_profile *e = &d->effect->profiles[index];
    entry->transition = d->now;
    entry->previous = entry->current;
    entry->current = profile_state_name(next);
    e->next = next;
    d->in_maintenance = d->in_maintenance || next == PROFILE_STATE_MAINTENANCE;
}

/* The enter chains of new states run after the triggers of all profiles, in the label's order, as
 * they do for the original, which runs them in its next pass. They are in the same patch up to the
 * first that waits or notifies: that one has its own step, and the others follow it. */
static void engine_run_enters(struct decision *d)
{
    for (uint32_t i = 0; i < d->effect->profile_n; i++) {
        const struct engine_profile *e = &d->effect->profiles[i];
        const struct config_state *state = &e->profile->states[e->next];
        if (e->next == e->state) {
            continue;
        }
        if (state->notify.n > 0 || engine_chain_waits(d, &state->enter)) {
            return;
        }
        enum trigger_result r = engine_run_chain(d, i, &state->enter);
        ASSERT(r == TRIGGER_DONE);
        engine_end_enter(d, i, node_data_find_profile(&d->data, e->name), e->next);
    }
}

static void engine_try_transition(struct decision *d, uint32_t index,
                                  struct node_data_profile *entry)
{
    struct engine_effect *effect = d->effect;
    struct engine_profile *e = &effect->profiles[index];
    int64_t chosen = engine_choose(d, e);
    if (chosen < 0) {
        return;
    }
    const struct engine_transition *t = &e->transitions[chosen];
    if (t->target == e->state) {
        return; /* it only keeps the transitions behind it from being chosen */
    }
    const struct config_transition *config = &e->profile->states[e->state].transitions[chosen];
    if (engine_chain_fails(d, index, &config->trigger)) {
        return;
    }
    bool granted = engine_is_granted(d, e);
    bool wants_grant = t->target == PROFILE_STATE_MAINTENANCE || engine_takes_lease(t);
    if (wants_grant && (!granted || d->in->progress.confirming)) {
        effect->needs |= ENGINE_NEED_GRANT;
        effect->grant_profile = index;
        effect->grant_transition = (uint32_t)chosen;
        return;
    }
    /* A way for which no grant is needed ends the one that it holds for another. */
    granted = granted && wants_grant;
    effect->keeps_grant = effect->keeps_grant || granted;
    if (engine_run_chain(d, index, &config->trigger) == TRIGGER_DONE) {
        engine_add_ran(e, &config->trigger);
        engine_enter_state(d, index, entry, t->target);
        if (granted) {
            effect->enters = true;
            effect->enters_profile = index;
            effect->enters_transition = (uint32_t)chosen;
        }
    }
}

/* For people: what the checks say while a notification keeps the profile waiting. */
static void engine_explain_notify_wait(struct decision *d, struct engine_profile *e)
{
    struct str error = e->error;
    struct str failed = e->failed;
    if (!d->in->explain) {
        return;
    }
    (void)engine_choose(d, e); /* nothing is chosen yet */
    e->error = error.n > 0 ? error : e->error;
    e->failed = error.n > 0 ? failed : e->failed;
    for (uint32_t i = 0; i < e->transition_n; i++) {
        struct engine_transition *t = &e->transitions[i];
        t->held = t->passed ? STR("a notification is sent first") : t->held;
        t->passed = false;
    }
}

static void engine_decide_profile(struct decision *d, uint32_t index)
{
    struct engine_effect *effect = d->effect;
    struct engine_profile *e = &effect->profiles[index];
    struct node_data_profile *entry = node_data_find_profile(&d->data, e->name);
    bool moved = !str_eq(entry->current, entry->previous);
    if (moved && engine_run_chain(d, index, &e->profile->states[e->state].enter) != TRIGGER_DONE) {
        return;
    }
    if (!engine_notify(d, index, entry)) {
        e->notifying = moved;
        bool granted = engine_is_granted(d, e);
        effect->keeps_grant = effect->keeps_grant || (granted && e->error.n == 0);
        engine_explain_notify_wait(d, e);
        return;
    }
    if (moved) {
        engine_end_enter(d, index, entry, e->state);
    }
    engine_try_transition(d, index, entry);
}

/* ── giving up ─────────────────────────────────────────────────────────────────────────────── */

static void engine_lift_cordon(struct decision *d)
{
    struct engine_effect *effect = d->effect;
    effect->lifted = node_annotation(d->in->node, KEY_PROFILE_CORDON);
    node_edit_set_unschedulable(&effect->edit, false);
    node_edit_remove_annotation(&effect->edit, KEY_PROFILE_CORDON);
}

/* A profile that has left the label or the configuration lifts its cordon never again: it is lifted
 * here. */
static void engine_lift_orphan(struct decision *d)
{
    struct str mark = node_annotation(d->in->node, KEY_PROFILE_CORDON);
    if (!d->in->node->unschedulable || mark.n == 0 ||
        mutated(d->in->mutations, MUTATION_CORDON_LEFT)) {
        return;
    }
    for (uint32_t i = 0; i < d->effect->profile_n; i++) {
        if (str_eq(d->effect->profiles[i].name, mark)) {
            return;
        }
    }
    engine_lift_cordon(d);
}

/* Somebody has asked to give up what the profiles have under way: they are operational again, no
 * trigger runs, and their cordon is lifted. */
static void engine_abort(struct decision *d)
{
    struct engine_effect *effect = d->effect;
    effect->aborted = true;
    for (uint32_t i = 0; i < effect->profile_n; i++) {
        struct engine_profile *e = &effect->profiles[i];
        struct node_data_profile *entry = node_data_find_profile(&d->data, e->name);
        entry->transition = e->state == PROFILE_STATE_OPERATIONAL ? entry->transition : d->now;
        entry->current = profile_state_name(PROFILE_STATE_OPERATIONAL);
        entry->previous = entry->current;
        e->next = PROFILE_STATE_OPERATIONAL;
    }
    if (d->in->node->unschedulable && node_annotation(d->in->node, KEY_PROFILE_CORDON).n > 0 &&
        !mutated(d->in->mutations, MUTATION_CORDON_LEFT)) {
        engine_lift_cordon(d);
    }
    node_edit_remove_annotation(&effect->edit, KEY_ABORT);
}

/* ── the whole ─────────────────────────────────────────────────────────────────────────────── */

static int engine_finish(struct decision *d, struct err *err)
{
    struct engine_effect *effect = d->effect;
    enum profile_state state = PROFILE_STATE_OPERATIONAL;
    for (uint32_t i = 0; i < effect->profile_n; i++) {
        state = profile_state_worse(state, effect->profiles[i].next);
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    int r = node_data_print(&d->data, &text, err);
    if (r < 0) {
        return r;
    }
    node_edit_set_label(&effect->edit, KEY_STATE, profile_state_name(state));
    struct str was = node_annotation(d->in->node, KEY_DATA);
    if (was.p == NULL || !str_eq(was, buf_str(&text))) {
        node_edit_set_annotation(&effect->edit, KEY_DATA, arena_str(d->out, buf_str(&text)));
    }
    return 0;
}

int engine_decide(const struct engine_input *in, struct arena *out, struct engine_effect *ret,
                  struct err *err)
{
    *ret = (struct engine_effect){
        .edit = { .name = in->name, .node = in->node, .out = out },
        .again_at = USEC_NEVER,
    };
    struct decision d = {
        .in = in,
        .out = out,
        .effect = ret,
        .now = timestamp_from_usec(in->wall),
    };
    int r = node_data_parse(node_annotation(in->node, KEY_DATA), out, &d.data, err);
    if (r < 0) {
        return r;
    }
    struct str label = node_label(in->node, KEY_PROFILE);
    engine_sync_profiles(&d, label);
    r = engine_collect_profiles(&d, label, err);
    if (r < 0) {
        return r;
    }
    d.in_maintenance = ret->in_maintenance;
    if (!in->node->unschedulable) {
        /* The node was uncordoned by somebody else: the next cordon is not a profile's. */
        node_edit_remove_annotation(&ret->edit, KEY_PROFILE_CORDON);
    }
    if (node_annotation(in->node, KEY_ABORT).p != NULL) {
        engine_abort(&d);
        return engine_finish(&d, err);
    }
    engine_lift_orphan(&d);
    for (uint32_t i = 0; i < ret->profile_n; i++) {
        engine_decide_profile(&d, i);
    }
    engine_run_enters(&d);
    return engine_finish(&d, err);
}
