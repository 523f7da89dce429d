/* Reads maintenance.yaml: plugin instances first, then the profiles that name them. */
#include "profile/config.h"

#include "base/closest.h"
#include "format/unknown_keys.h"
#include "profile/check/check_plugin.h"

#define STATES "operational|maintenance-required|in-maintenance"

struct loader {
    struct ucfg u;
    struct config *config;
    struct problems *problems;
};

static struct pos pos_or(const struct ucfg_value *v, struct pos otherwise)
{
    return v != NULL && v->pos.line > 0 ? v->pos : otherwise;
}

/* The mapping; NULL when nothing was given, or something else, which is added as a problem. */
static const struct ucfg_value *read_obj(struct loader *l, const struct ucfg_value *v,
                                         const char *what)
{
    struct err err = { 0 };
    const struct ucfg_value *obj = NULL;
    if (ucfg_obj(&l->u, v, &obj, &err) < 0) {
        problems_add(l->problems, v->pos, "%s: %s", what, err.msg);
        return NULL;
    }
    if (obj != NULL && obj->list) {
        problems_add(l->problems, obj->pos, "%s: found a list, want a mapping", what);
        return NULL;
    }
    return obj;
}

static struct ucfg_list read_list(struct loader *l, const struct ucfg_value *v, const char *what)
{
    struct err err = { 0 };
    struct ucfg_list list = { 0 };
    if (ucfg_list(&l->u, v, &list, &err) < 0) {
        problems_add(l->problems, v->pos, "%s: %s", what, err.msg);
    }
    return list;
}

/* False when it could not be read, which is added as a problem. */
static bool read_str(struct loader *l, const struct ucfg_value *v, const char *what,
                     struct str *ret)
{
    struct err err = { 0 };
    if (ucfg_str(&l->u, v, ret, &err) < 0) {
        problems_add(l->problems, v->pos, "key '%s': %s", what, err.msg);
        return false;
    }
    return true;
}

/* Of the keys in the `config` of a plugin. */
static void warn_unknown(struct loader *l, const struct ucfg_value *config, const struct plugin *p)
{
    struct str names = STR("");
    if (p->fields_of != NULL) {
        return; /* it is an error there */
    }
    for (uint32_t i = 0; i < p->key_n; i++) {
        struct str name;
        (void)str_cut(str_from(p->keys[i].name), STR("."), &name, &(struct str){ 0 }); /* or all */
        names = arena_printf(l->u.out, STR_FMT "%s" STR_FMT, STR_ARG(names), i > 0 ? "|" : "",
                             STR_ARG(name));
    }
    unknown_keys_warn(config, names.p, p->name, l->problems);
}

static void load_intervals(struct loader *l)
{
    struct err err = { 0 };
    const struct ucfg_value *obj =
        read_obj(l, ucfg_get(l->u.root, STR("intervals")), "key 'intervals'");
    const struct ucfg_value *v = ucfg_get(obj, STR("requeue"));
    struct pos pos = pos_or(v, pos_or(obj, l->u.root->pos));
    unknown_keys_warn(obj, "requeue|notify", "intervals", l->problems); /* it had a 'notify' once */
    l->config->requeue_ns = CONFIG_REQUEUE_NS;
    if (ucfg_duration(&l->u, v, &l->config->requeue_ns, &err) < 0) {
        problems_add(l->problems, pos, "key 'requeue': %s", err.msg);
    } else if (l->config->requeue_ns == 0) {
        problems_add(l->problems, pos, "key 'intervals.requeue': found 0, want a duration");
    } else if (l->config->requeue_ns < 0) {
        problems_warn(l->problems, pos,
                      "key 'requeue': found a negative duration; other systems are asked at each "
                      "look, at most once a second");
    } else if (l->config->requeue_ns < CONFIG_REFRESH_MIN * 1000) {
        problems_warn(l->problems, pos,
                      "key 'requeue': found less than a second; other systems are asked once a "
                      "second");
    }
}

static void load_dashboard(struct loader *l)
{
    struct err err = { 0 };
    const struct ucfg_value *obj =
        read_obj(l, ucfg_get(l->u.root, STR("dashboard")), "key 'dashboard'");
    const struct ucfg_value *v = ucfg_get(obj, STR("labelFilter"));
    unknown_keys_warn(obj, "labelFilter", "dashboard", l->problems);
    if (ucfg_strs(&l->u, v, &l->config->label_filter, &err) < 0) {
        problems_add(l->problems, v->pos, "key 'labelFilter': %s", err.msg);
    }
}

/* The plugin that was probably meant; empty when none is near. */
static struct str suggest(const struct plugin_table *table, struct str name)
{
    struct closest near = closest_to(name);
    for (uint32_t i = 0; i < table->n; i++) {
        closest_offer(&near, str_from(table->items[i].name));
    }
    return near.best;
}

static const struct plugin *find_plugin(struct loader *l, enum plugin_kind kind, struct str type,
                                        struct pos pos)
{
    const struct plugin *p = plugin_find(&plugin_tables[kind], type);
    struct str shown = str_sub(type, 0, MIN(type.n, (size_t)64));
    if (p == NULL) {
        struct str near = suggest(&plugin_tables[kind], type);
        if (near.n > 0) {
            problems_add(l->problems, pos, "found type '" STR_FMT "', want '" STR_FMT "'",
                         STR_ARG(shown), STR_ARG(near));
        } else {
            problems_add(l->problems, pos, "found type '" STR_FMT "', want that of a %s plugin",
                         STR_ARG(shown), plugin_kind_names[kind]);
        }
        return NULL;
    }
    return p;
}

static void load_schedule(struct loader *l, const struct ucfg_value *instance,
                          struct config_instance *ret)
{
    const struct ucfg_value *obj =
        read_obj(l, ucfg_get(instance, STR("schedule")), "key 'schedule'");
    const struct ucfg_value *type = ucfg_get(obj, STR("type"));
    const struct ucfg_value *config = ucfg_get(obj, STR("config"));
    struct pos pos = pos_or(obj, ret->pos);
    uint32_t before = l->problems->errors;
    struct str name = STR("");
    config = read_obj(l, config, "key 'schedule.config'");
    unknown_keys_warn(obj, "type|config", "a schedule", l->problems);
    if (l->problems->errors != before || !read_str(l, type, "type", &name)) {
        return;
    }
    if (config == NULL) {
        problems_add(l->problems, pos,
                     "found a notification without 'schedule.config', want a schedule");
        return;
    }
    for (uint32_t i = 0; i < plugin_schedules.n; i++) {
        if (str_eq_fold(str_from(plugin_schedules.items[i].name), name)) {
            ret->schedule = &plugin_schedules.items[i];
        }
    }
    if (ret->schedule == NULL) {
        problems_add(l->problems, pos_or(type, pos),
                     "found schedule '" STR_FMT "', want periodic, scheduled or oneshot",
                     STR_ARG(str_sub(name, 0, MIN(name.n, (size_t)64))));
        return;
    }
    warn_unknown(l, config, ret->schedule);
    ret->schedule_values = plugin_read(ret->schedule, &l->u, config, config->pos, l->problems);
}

/* Ours: the original has no such key, and always waits. */
static void load_required(struct loader *l, const struct ucfg_value *instance,
                          struct config_instance *ret)
{
    struct err err = { 0 };
    const struct ucfg_value *v = ucfg_get(instance, STR("required"));
    if (v != NULL && ucfg_bool(&l->u, v, &ret->required, &err) < 0) {
        problems_add(l->problems, pos_or(v, ret->pos), "key 'required': %s", err.msg);
    }
}

static void add_instance(struct loader *l, enum plugin_kind kind,
                         const struct config_instance *instance)
{
    struct config_instances *list = &l->config->instances[kind];
    for (uint32_t i = 0; i < list->n; i++) {
        if (str_eq(list->items[i].name, instance->name)) {
            list->items[i] = *instance;
            return;
        }
    }
    if (list->n == list->cap) {
        ARENA_GROW(l->u.out, list->items, list->n, list->cap);
    }
    list->items[list->n++] = *instance;
}

static void prepare_check(struct loader *l, struct config_instance *instance)
{
    const struct check_prepare_input input = { .plugin = instance->plugin,
                                               .values = instance->values,
                                               .env = &l->u.env,
                                               .out = l->u.out,
                                               .problems = l->problems };
    instance->check = check_find(instance->plugin->name);
    ASSERT(instance->check != NULL);
    instance->prepared = instance->check->prepare(&input);
}

/* A wrong instance is still known by its name, so that its uses are no further problems. */
static void load_instance(struct loader *l, enum plugin_kind kind, const struct ucfg_value *v)
{
    const struct ucfg_value *obj = read_obj(l, v, "an instance");
    if (obj == NULL && v->kind != UCFG_VALUE_NULL) {
        return;
    }
    const struct ucfg_value *type_value = ucfg_get(obj, STR("type"));
    struct config_instance instance = { .name = STR(""), .pos = v->pos };
    struct str type = STR("");
    bool named = read_str(l, type_value, "type", &type);
    if (!read_str(l, ucfg_get(obj, STR("name")), "name", &instance.name)) {
        return;
    }
    instance.plugin = named ? find_plugin(l, kind, type, pos_or(type_value, v->pos)) : NULL;
    const struct ucfg_value *config = ucfg_get(obj, STR("config"));
    uint32_t before = l->problems->errors;
    config = read_obj(l, config, "key 'config'");
    unknown_keys_warn(
        obj, kind == PLUGIN_NOTIFY ? "type|name|config|schedule|required" : "type|name|config",
        "an instance", l->problems);
    if (instance.plugin != NULL) {
        warn_unknown(l, config, instance.plugin);
    }
    if (instance.plugin != NULL && l->problems->errors == before) {
        instance.values =
            plugin_read(instance.plugin, &l->u, config, pos_or(config, v->pos), l->problems);
        if (kind == PLUGIN_CHECK && l->problems->errors == before) {
            prepare_check(l, &instance);
        }
    }
    if (kind == PLUGIN_NOTIFY) {
        load_schedule(l, obj, &instance);
        load_required(l, obj, &instance);
    }
    add_instance(l, kind, &instance);
}

static void load_instances(struct loader *l)
{
    const struct ucfg_value *obj =
        read_obj(l, ucfg_get(l->u.root, STR("instances")), "key 'instances'");
    unknown_keys_warn(obj, "check|notify|trigger", "instances", l->problems);
    for (uint32_t kind = 0; kind < PLUGIN_KINDS; kind++) {
        const struct ucfg_value *v = ucfg_get(obj, str_from(plugin_kind_keys[kind]));
        struct ucfg_list list = read_list(l, v, plugin_kind_keys[kind]);
        if (list.n > CONFIG_INSTANCES_MAX) {
            problems_add(l->problems, v->pos, "key '%s': found %u instances, want %u at most",
                         plugin_kind_keys[kind], list.n, CONFIG_INSTANCES_MAX);
            continue;
        }
        for (uint32_t i = 0; i < list.n; i++) {
            load_instance(l, (enum plugin_kind)kind, &list.items[i]);
        }
    }
}

static bool find_name(void *ctx, struct str name, uint32_t *ret_index)
{
    const struct config_instances *list = ctx;
    for (uint32_t i = 0; i < list->n; i++) {
        if (str_eq(list->items[i].name, name)) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

static struct str find_closest(void *ctx, struct str name)
{
    const struct config_instances *list = ctx;
    struct closest near = closest_to(name);
    for (uint32_t i = 0; i < list->n; i++) {
        closest_offer(&near, list->items[i].name);
    }
    return near.best;
}

static struct instance_names names_of(struct loader *l, enum plugin_kind kind)
{
    return (struct instance_names){ .find = find_name,
                                    .closest = find_closest,
                                    .ctx = &l->config->instances[kind],
                                    .kind = plugin_kind_names[kind] };
}

static void load_chain(struct loader *l, const struct ucfg_value *v, enum plugin_kind kind,
                       const char *what, struct chain *ret)
{
    struct err err = { 0 };
    struct instance_names names = names_of(l, kind);
    struct str text = STR("");
    if (read_str(l, v, what, &text) && chain_parse(text, &names, l->u.out, ret, &err) < 0) {
        problems_add(l->problems, ucfg_place(&l->u, v, text, err.pos), "%s", err.msg);
    }
}

static void load_transition(struct loader *l, const struct ucfg_value *v,
                            struct config_transition *ret)
{
    struct err err = { 0 };
    const struct ucfg_value *obj = read_obj(l, v, "a transition");
    if (obj == NULL && v->kind != UCFG_VALUE_NULL) {
        return;
    }
    const struct ucfg_value *check = ucfg_get(obj, STR("check"));
    const struct ucfg_value *next = ucfg_get(obj, STR("next"));
    unknown_keys_warn(obj, "check|next|trigger", "a transition", l->problems);
    struct instance_names names = names_of(l, PLUGIN_CHECK);
    struct str text = STR("");
    if (read_str(l, check, "check", &text)) {
        if (text.n == 0) {
            problems_add(l->problems, pos_or(check, v->pos),
                         "key 'check': found nothing, want an expression");
        } else if (check_expr_parse(text, &names, l->u.out, &ret->check, &err) < 0) {
            problems_add(l->problems, ucfg_place(&l->u, check, text, err.pos), "%s", err.msg);
        } else if (ret->check.n == 0) {
            problems_add(l->problems, pos_or(check, v->pos),
                         "key 'check': found only spaces, want an expression");
        }
    }
    text = STR("");
    if (read_str(l, next, "next", &text) && !profile_state_parse(text, &ret->next)) {
        struct str shown = str_sub(text, 0, MIN(text.n, (size_t)64));
        struct closest near = closest_to(text);
        for (uint32_t i = 0; i < PROFILE_STATE_COUNT; i++) {
            closest_offer(&near, profile_state_name((enum profile_state)i));
        }
        problems_add(l->problems, pos_or(next, v->pos),
                     near.best.n > 0 ? "key 'next': found '" STR_FMT "', want '" STR_FMT "'"
                                     : "key 'next': found '" STR_FMT
                                       "', want a state such as in-maintenance" STR_FMT,
                     STR_ARG(shown), STR_ARG(near.best));
    }
    load_chain(l, ucfg_get(obj, STR("trigger")), PLUGIN_TRIGGER, "trigger", &ret->trigger);
}

static void load_state(struct loader *l, const struct ucfg_value *v, struct config_state *ret)
{
    const struct ucfg_value *obj = read_obj(l, v, "a state");
    unknown_keys_warn(obj, "enter|notify|transitions", "a state", l->problems);
    load_chain(l, ucfg_get(obj, STR("enter")), PLUGIN_TRIGGER, "enter", &ret->enter);
    load_chain(l, ucfg_get(obj, STR("notify")), PLUGIN_NOTIFY, "notify", &ret->notify);
    struct ucfg_list list = read_list(l, ucfg_get(obj, STR("transitions")), "key 'transitions'");
    ret->transitions = ARENA_ARRAY(l->u.out, struct config_transition, list.n + 1);
    for (; ret->transition_n < list.n; ret->transition_n++) {
        load_transition(l, &list.items[ret->transition_n], &ret->transitions[ret->transition_n]);
    }
}

static void add_profile(struct loader *l, const struct config_profile *profile)
{
    struct config *c = l->config;
    for (uint32_t i = 0; i < c->profile_n; i++) {
        if (str_eq(c->profiles[i].name, profile->name)) {
            c->profiles[i] = *profile;
            return;
        }
    }
    if (c->profile_n == c->profile_cap) {
        ARENA_GROW(l->u.out, c->profiles, c->profile_n, c->profile_cap);
    }
    c->profiles[c->profile_n++] = *profile;
}

static void load_profile(struct loader *l, const struct ucfg_value *v)
{
    const struct ucfg_value *obj = read_obj(l, v, "a profile");
    if (obj == NULL && v->kind != UCFG_VALUE_NULL) {
        return;
    }
    const struct ucfg_value *name = ucfg_get(obj, STR("name"));
    unknown_keys_warn(obj, "name|" STATES, "a profile", l->problems);
    struct config_profile profile = { .name = STR("") };
    if (read_str(l, name, "name", &profile.name) && profile.name.n == 0) {
        problems_add(l->problems, pos_or(name, v->pos),
                     "key 'name': found nothing, want the profile's name");
    }
    for (uint32_t i = 0; i < PROFILE_STATE_COUNT; i++) {
        const struct ucfg_value *state = ucfg_get(obj, profile_state_name((enum profile_state)i));
        load_state(l, state, &profile.states[i]);
    }
    add_profile(l, &profile);
}

static void load_profiles(struct loader *l)
{
    struct config_profile standard = { .name = NODE_LABEL_DEFAULT_PROFILE };
    struct ucfg_list list = read_list(l, ucfg_get(l->u.root, STR("profiles")), "key 'profiles'");
    add_profile(l, &standard);
    if (list.n > CONFIG_PROFILES_MAX) {
        problems_add(l->problems, list.items[0].pos, "found %u profiles, want %u at most", list.n,
                     CONFIG_PROFILES_MAX);
        return;
    }
    for (uint32_t i = 0; i < list.n; i++) {
        load_profile(l, &list.items[i]);
    }
}

static const struct str alert_names[] = {
    [CONFIG_ALERT_DRAIN_BLOCKED] = STR_INIT("drainBlocked"),
    [CONFIG_ALERT_REQUEST_REJECTED] = STR_INIT("requestRejected"),
    [CONFIG_ALERT_REQUEST_EXPIRED] = STR_INIT("requestExpired"),
};

struct str config_alert_name(enum config_alert_kind kind)
{
    return alert_names[kind];
}

static void load_alert(struct loader *l, const struct ucfg_value *v, bool timed,
                       struct config_alert *ret)
{
    struct err err = { 0 };
    int64_t after_ns = CONFIG_ALERT_AFTER_NS;
    const struct ucfg_value *obj = read_obj(l, v, "an entry of 'notify'");
    if (obj == NULL) {
        return;
    }
    unknown_keys_warn(obj, timed ? "instances|after" : "instances", "an entry of 'notify'",
                      l->problems);
    uint32_t before = l->problems->errors;
    load_chain(l, ucfg_get(obj, STR("instances")), PLUGIN_NOTIFY, "instances", &ret->instances);
    if (ret->instances.n == 0 && l->problems->errors == before) {
        problems_add(l->problems, pos_or(obj, v->pos),
                     "key 'instances': found nothing, want the names of notify instances");
    }
    const struct ucfg_value *after = timed ? ucfg_get(obj, STR("after")) : NULL;
    if (ucfg_duration(&l->u, after, &after_ns, &err) < 0) {
        problems_add(l->problems, pos_or(after, obj->pos), "key 'after': %s", err.msg);
    } else if (after_ns < 0) {
        problems_add(l->problems, pos_or(after, obj->pos),
                     "key 'after': found a negative duration, want one such as 10m");
    }
    ret->after = after_ns / 1000;
}

/* Ours: the original has no such key, and takes what stands there for the value of a variable. */
static void load_alerts(struct loader *l)
{
    struct err err = { 0 };
    const struct ucfg_value *v = ucfg_get(l->u.root, STR("notify"));
    const struct ucfg_value *obj = NULL;
    if (ucfg_obj(&l->u, v, &obj, &err) < 0 || (obj != NULL && obj->list)) {
        problems_warn(l->problems, v->pos,
                      "key 'notify': ignored, because it is no mapping such as {drainBlocked: "
                      "{after: 10m, instances: mail}}");
        return;
    }
    unknown_keys_warn(obj, "drainBlocked|requestRejected|requestExpired", "notify", l->problems);
    for (uint32_t i = 0; i < CONFIG_ALERT_KINDS; i++) {
        const struct ucfg_value *alert = ucfg_get(obj, alert_names[i]);
        if (alert != NULL) {
            load_alert(l, alert, i == CONFIG_ALERT_DRAIN_BLOCKED, &l->config->alerts[i]);
        }
    }
}

int config_load(struct str text, struct ucfg_env env, struct arena *out, struct config *ret,
                struct problems *problems)
{
    struct config config = { 0 };
    struct loader l = { .config = &config, .problems = problems };
    ASSERT(problems->n == 0);
    int result = ucfg_load(text, env, out, &l.u, problems);
    if (result == 0) {
        unknown_keys_warn_root(&l.u, "intervals|dashboard|instances|notify|profiles", problems);
        load_intervals(&l);
        load_dashboard(&l);
        load_instances(&l);
        load_alerts(&l);
        load_profiles(&l);
    }
    problems_sort(problems);
    if (problems->errors > 0) {
        return -ERR_INVALID;
    }
    *ret = config;
    return 0;
}

usec_t config_refresh(const struct config *c)
{
    return MAX(c->requeue_ns / 1000, CONFIG_REFRESH_MIN);
}

const struct config_profile *config_find_profile(const struct config *c, struct str name)
{
    for (uint32_t i = 0; i < c->profile_n; i++) {
        if (str_eq(c->profiles[i].name, name)) {
            return &c->profiles[i];
        }
    }
    return NULL;
}

const struct config_instance *config_find_instance(const struct config *c, enum plugin_kind kind,
                                                   struct str name)
{
    const struct config_instances *list = &c->instances[kind];
    for (uint32_t i = 0; i < list->n; i++) {
        if (str_eq(list->items[i].name, name)) {
            return &list->items[i];
        }
    }
    return NULL;
}
