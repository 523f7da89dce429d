#include "web/controller_source.h"

#include "base/map.h"
#include "core/core.h"
#include "integration/integration.h"
#include "kinds/keys.h"
#include "kube/node.h"
#include "profile/config.h"
#include "profile/controller.h"
#include "profile/node_data.h"

static void controller_source_add_why(struct controller_source *s, struct str *why, struct str more)
{
    if (more.n > 0) {
        *why = why->n == 0
                   ? more
                   : arena_printf(&s->pause, STR_FMT "; " STR_FMT, STR_ARG(*why), STR_ARG(more));
    }
}

static bool controller_source_ready(void *ctx, struct str *ret_why)
{
    struct controller_source *s = ctx;
    if (s->controller == NULL) {
        *ret_why = STR("no controller runs");
        return false;
    }
    const struct core *core = controller_core(s->controller);
    bool ready = core_ready(core, ret_why);
    arena_reset(&s->pause);
    controller_source_add_why(s, ret_why, core_pause_text(core, &s->pause));
    controller_source_add_why(s, ret_why, core->paused);
    return ready;
}

static void controller_source_config_status(struct controller_source *s, struct web_status *ret)
{
    struct controller_config_state config_state;
    controller_config_state(s->controller, &config_state);
    ret->config_file = config_state.file;
    ret->config_error = config_state.error;
    ret->config_warnings = config_state.warnings;
    ret->config_loaded = config_state.loaded;
    if (config_state.config == NULL) {
        return;
    }
    arena_reset(&s->names);
    struct str *names = ARENA_ARRAY(&s->names, struct str, config_state.config->profile_n);
    for (uint32_t i = 0; i < config_state.config->profile_n; i++) {
        names[i] = config_state.config->profiles[i].name;
    }
    ret->profiles = names;
    ret->profile_count = config_state.config->profile_n;
}

/* ---- integrations ---- */

struct controller_source_activities {
    struct arena *out;
    struct activity *items;
    uint32_t n;
    uint32_t cap;
};

static void controller_source_add_activity(void *ctx, const struct activity *activity)
{
    struct controller_source_activities *to = ctx;
    if (to->n == to->cap) {
        ARENA_GROW(to->out, to->items, to->n, to->cap);
    }
    to->items[to->n++] = activity_copy(activity, to->out);
}

static void controller_source_status(void *ctx, struct web_status *ret)
{
    struct controller_source *s = ctx;
    struct web_status status = { .title = s->title, .identity = s->identity };
    status.ready = controller_source_ready(ctx, &status.why);
    if (s->controller != NULL) {
        struct controller_stats stats;
        controller_stats(s->controller, &stats);
        status.writes = stats.patches;
        status.leading = core_leads(controller_core(s->controller));
        status.leader = core_leader(controller_core(s->controller));
        status.pause = core_pause_text(controller_core(s->controller), &s->pause);
        status.paused = controller_core(s->controller)->paused;
        status.denied = controller_core(s->controller)->denied;
        controller_source_config_status(s, &status);
    }
    if (s->integrations != NULL) {
        struct controller_source_activities to = { .out = &s->activities };
        arena_reset(&s->activities);
        integrations_each(s->integrations, controller_source_add_activity, &to);
        status.integrations = to.items;
        status.integration_count = to.n;
    }
    *ret = status;
}

/* A node's profiles as its label and its annotation have them; what cannot be read is left out. */
static void controller_source_profiles(struct controller_source *s,
                                       const struct controller_node *node, struct web_node *ret)
{
    struct str label = STR_NONE;
    for (uint32_t i = 0; i < node->label_count; i++) {
        if (str_eq(intern_str(node->labels[i].key), KEY_PROFILE)) {
            label = intern_str(node->labels[i].value);
        }
    }
    struct node_data data = { 0 };
    struct err err = { 0 };
    if (node_data_parse(node->data, &s->tmp, &data, &err) < 0) {
        data = (struct node_data){ 0 }; /* the node's error says what is wrong */
    }
    struct web_profile *profiles = NULL;
    uint32_t cap = 0;
    struct str name;
    for (size_t at = 0; profile_label_next(label, &at, &name);) {
        const struct node_data_profile *known = node_data_find_profile(&data, name);
        if (ret->profile_count == cap) {
            ARENA_GROW(&s->tmp, profiles, ret->profile_count, cap);
        }
        struct web_profile *p = &profiles[ret->profile_count++];
        p->name = name;
        if (known != NULL && !known->null) {
            p->state = known->current;
            p->since =
                timestamp_is_zero(known->transition) ? 0 : timestamp_to_usec(known->transition);
        }
    }
    ret->profiles = profiles;
}

struct controller_source_walk {
    struct controller_source *source;
    const struct web_visit *visit;
    struct arena memory;
    struct map drains; /* node → struct node_report_drain */
};

/* Of several drains of a node, one that is blocked is shown. */
static void controller_source_add_drain(void *ctx, struct str node,
                                        const struct node_report_drain *drain)
{
    struct controller_source_walk *walk = ctx;
    const struct node_report_drain *known = map_find(&walk->drains, node);
    if (known == NULL || !known->blocked) {
        struct node_report_drain *copy = ARENA_NEW(&walk->memory, struct node_report_drain);
        *copy = *drain;
        (void)map_put(&walk->drains, node, copy); /* or replaces one that is not blocked */
    }
}

/* A node is shown with its error and its drain, so the version covers the object and both. The
 * reason of a drain is left out: its numbers move without anything happening. */
static uint64_t controller_source_version(const struct controller_node *node,
                                          const struct node_report_drain *drain)
{
    static const uint64_t key[2] = { 0, 0 }; /* compared with itself over time, by nobody else */
    uint64_t version =
        node->error.n == 0 ? node->version : node->version ^ map_hash(key, node->error);
    if (drain != NULL) {
        const uint64_t drain_key[2] = { drain->left, drain->blocked ? 2 : 1 };
        version ^= map_hash(drain_key, drain->pod);
        version ^= map_hash(drain_key, drain->namespace);
        version ^= map_hash(drain_key, drain->pdb);
    }
    return version;
}

static bool controller_source_node(void *ctx, const struct controller_node *node)
{
    struct controller_source_walk *walk = ctx;
    const struct web_visit *visit = walk->visit;
    struct arena *tmp = &walk->source->tmp;
    const struct node_report_drain *drain = map_find(&walk->drains, node->name);
    uint64_t version = controller_source_version(node, drain);
    if (visit->wants != NULL && !visit->wants(visit->ctx, node->name, version)) {
        return true;
    }
    arena_reset(tmp);
    struct web_label *labels = ARENA_ARRAY(tmp, struct web_label, node->label_count);
    for (uint32_t i = 0; i < node->label_count; i++) {
        labels[i] = (struct web_label){ .key = intern_str(node->labels[i].key),
                                        .value = intern_str(node->labels[i].value) };
    }
    struct web_node shown = { .name = node->name,
                              .version = version,
                              .state = node->state,
                              .error = node->error,
                              .ready = node->ready,
                              .unschedulable = node->unschedulable,
                              .draining = drain != NULL ? *drain : (struct node_report_drain){ 0 },
                              .labels = labels,
                              .label_count = node->label_count };
    controller_source_profiles(walk->source, node, &shown);
    visit->fn(visit->ctx, &shown);
    return true;
}

static void controller_source_each_node(void *ctx, const struct web_visit *visit)
{
    struct controller_source *s = ctx;
    struct controller_source_walk walk = { .source = s, .visit = visit };
    if (s->controller != NULL) {
        map_init(&walk.drains, 0, 0);
        controller_each_drain(s->controller, &walk.memory, controller_source_add_drain, &walk);
        controller_each_node(s->controller, controller_source_node, &walk);
        map_done(&walk.drains);
        arena_done(&walk.memory);
    }
}

/* Before there is a configuration, what the node itself carries is all there is to say. */
static void controller_source_report_unconfigured(struct controller_source *s,
                                                  const struct controller_node *node,
                                                  struct arena *out, struct node_report *ret)
{
    struct web_node shown = { 0 };
    arena_reset(&s->tmp);
    controller_source_profiles(s, node, &shown);
    struct node_report_profile *profiles =
        ARENA_ARRAY(out, struct node_report_profile, shown.profile_count);
    for (uint32_t i = 0; i < shown.profile_count; i++) {
        profiles[i].name = arena_str(out, shown.profiles[i].name);
        profiles[i].since = shown.profiles[i].since;
        (void)profile_state_parse(shown.profiles[i].state, &profiles[i].state); /* or operational */
        profiles[i].next = profiles[i].state;
    }
    *ret = (struct node_report){ .node = node->name,
                                 .state = node->state,
                                 .error = node->error,
                                 .ready = node->ready,
                                 .cordoned = node->unschedulable,
                                 .updated = node->decided,
                                 .profiles = profiles,
                                 .profile_n = shown.profile_count };
}

static bool controller_source_report(void *ctx, struct str name, struct arena *out,
                                     struct node_report *ret)
{
    struct controller_source *s = ctx;
    struct controller_node node;
    if (s->controller == NULL || !controller_find_node(s->controller, name, &node)) {
        return false;
    }
    if (!controller_explain(s->controller, name, out, ret)) {
        controller_source_report_unconfigured(s, &node, out, ret);
    }
    if (s->integrations != NULL) {
        struct controller_source_activities to = { .out = out };
        integrations_each_of_node(s->integrations, name, controller_source_add_activity, &to);
        ret->activities = to.items;
        ret->activity_n = to.n;
    }
    return true;
}

/* ---- limits ---- */

static bool controller_source_has_limits(const struct controller_source *s)
{
    return s->controller != NULL && controller_core(s->controller)->arbiter != NULL;
}

struct controller_source_limits_report {
    struct limits_report *limits_report;
    struct arena *out;
};

static void controller_source_add_wait(void *ctx, const struct controller_limit_wait *wait)
{
    const struct controller_source_limits_report *to = ctx;
    limits_report_add_claim(to->limits_report,
                            &(struct limits_report_claim){
                                .uid = wait->uid,
                                .name = arena_concat(to->out, STR("profile/"), wait->profile),
                                .type = target_type_name(TARGET_NODE),
                                .target = wait->node,
                                .phase = STR("Pending"),
                                .reason = wait->view->reason,
                                .message = wait->view->message,
                                .waits = true,
                                .position = wait->view->position,
                                .since = wait->since,
                                .deadline = USEC_NEVER,
                                .next = wait->view->next,
                                .limit = wait->view->limit,
                                .limits = wait->view->limits,
                                .limit_n = wait->view->limit_n,
                                .blocker_uid = wait->view->blocker,
                            },
                            to->out);
}

static bool controller_source_limits_report(void *ctx, bool ended, struct arena *out,
                                            struct limits_report *ret)
{
    struct controller_source *s = ctx;
    struct controller_source_limits_report to = { .limits_report = ret, .out = out };
    *ret = (struct limits_report){ 0 };
    if (!controller_source_has_limits(s)) {
        return false;
    }
    limits_report_collect(ret, controller_core(s->controller)->arbiter, *s->requests, ended, out);
    controller_each_limit_wait(s->controller, out, controller_source_add_wait, &to);
    limits_report_finish(ret, out);
    return true;
}

static uint64_t controller_source_limits_report_version(void *ctx)
{
    const struct controller_source *s = ctx;
    struct controller_stats stats;
    if (!controller_source_has_limits(s)) {
        return 0;
    }
    controller_stats(s->controller, &stats);
    return 1 + arbiter_turn_count(controller_core(s->controller)->arbiter) +
           requests_turns(*s->requests) + stats.turns;
}

static bool controller_source_operations(void *ctx, struct arena *out,
                                         struct operations_report *ret)
{
    const struct controller_source *s = ctx;
    return s->operations != NULL && *s->operations != NULL &&
           operations_report(*s->operations, out, ret);
}

static uint64_t controller_source_operations_version(void *ctx)
{
    const struct controller_source *s = ctx;
    return s->operations != NULL && *s->operations != NULL
               ? operations_report_version(*s->operations)
               : 0;
}

void controller_source_init(struct controller_source *s, struct controller *controller)
{
    *s = (struct controller_source){
        .controller = controller,
        .web = { .ctx = s,
                 .status = controller_source_status,
                 .each_node = controller_source_each_node,
                 .report = controller_source_report,
                 .limits_report = controller_source_limits_report,
                 .limits_report_version = controller_source_limits_report_version,
                 .operations_report = controller_source_operations,
                 .operations_version = controller_source_operations_version },
        .health = { .ctx = s, .ready = controller_source_ready },
    };
}

void controller_source_done(struct controller_source *s)
{
    arena_done(&s->names);
    arena_done(&s->pause);
    arena_done(&s->activities);
    arena_done(&s->tmp);
}
