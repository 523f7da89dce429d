/*
 * The configuration in force, and how another takes its place.
 */
#include "base/alloc.h"
#include "kinds/keys.h"
#include "profile/controller_internal.h"

#define RELOAD_PROBLEMS_MAX 20u /* are shown */
#define RELOAD_MESSAGE_MAX 900u /* an Event's note has 1,024 bytes */

void reload_free(struct active_config *s)
{
    if (s != NULL) {
        arena_done(&s->memory);
        alloc_free(s);
    }
}

static void reload_keep_annotation(struct active_config *s, struct str key)
{
    for (uint32_t i = 0; i < s->annotation_n; i++) {
        if (str_eq(s->annotations[i], key)) {
            return;
        }
    }
    s->annotations[s->annotation_n++] = key;
}

/* Lists the annotations of nodes that the configuration reads. */
static void reload_collect_annotations(struct active_config *s)
{
    const struct config_instances *checks = &s->config.instances[PLUGIN_CHECK];
    const struct config_instances *triggers = &s->config.instances[PLUGIN_TRIGGER];
    s->annotations = ARENA_ARRAY(&s->memory, struct str, checks->n + triggers->n + 4);
    reload_keep_annotation(s, KEY_DATA);
    reload_keep_annotation(s, KEY_PROFILE_CORDON);
    reload_keep_annotation(s, KEY_DRAIN_RULES);
    reload_keep_annotation(s, KEY_ABORT);
    for (uint32_t i = 0; i < checks->n; i++) {
        const struct config_instance *instance = &checks->items[i];
        if (str_eq(str_from(instance->plugin->name), STR("hasAnnotation"))) {
            reload_keep_annotation(s, plugin_get(instance->plugin, instance->values, "key")->text);
        }
        s->has_max_maintenance = s->has_max_maintenance ||
                                 str_eq(str_from(instance->plugin->name), STR("maxMaintenance"));
    }
    for (uint32_t i = 0; i < triggers->n; i++) {
        const struct config_instance *instance = &triggers->items[i];
        if (str_eq(str_from(instance->plugin->name), STR("alterAnnotation"))) {
            reload_keep_annotation(s, plugin_get(instance->plugin, instance->values, "key")->text);
        }
    }
}

struct active_config *reload_default(void)
{
    struct active_config *s = ALLOC_NEW(struct active_config);
    struct problems problems = { .out = &s->memory };
    int r = config_load(STR("intervals: {requeue: 30s}"), (struct ucfg_env){ 0 }, &s->memory,
                        &s->config, &problems);
    ASSERT(r == 0); /* a constant of the program */
    reload_collect_annotations(s);
    return s;
}

static bool reload_same_annotations(const struct active_config *a, const struct active_config *b)
{
    bool same = a->annotation_n == b->annotation_n;
    for (uint32_t i = 0; same && i < a->annotation_n; i++) {
        same = str_eq(a->annotations[i], b->annotations[i]);
    }
    return same;
}

/* Wait queues and grants that are not held yet belong to the old configuration. A grant that is
 * held stays: its patch may be under way. */
static void reload_drop_waiting(struct controller *c)
{
    MAP_EACH (&c->core->nodes.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        struct managed_node *m = item->extra;
        if (m == NULL) {
            continue;
        }
        turn_leave_queue(m);
        node_notify_retry_now(m); /* what was wrong may be right now */
        if (grant_is_pending(m->grant)) {
            grant_end(m);
        }
    }
}

/* Puts a configuration in force. All nodes are decided again under it. */
void reload_activate(struct controller *c, struct active_config *s)
{
    struct active_config *old = c->active;
    /* The store kept only those annotations that the old configuration reads: nodes are listed
     * again when the new one reads others. */
    bool relist = old == NULL || !reload_same_annotations(old, s) ||
                  (s->has_max_maintenance && !old->has_max_maintenance);
    s->loaded = loop_wall(c->loop);
    c->active = s;
    c->config_generation++;
    reload_drop_waiting(c);
    fleet_configure(c->fleet, &s->config);
    external_facts_configure(c->external, &s->config);
    hypervisors_configure(c, &s->config);
    turn_mark_all(c);
    c->all_queued = false;
    core_keep_annotations(c->core, &c->part, s->annotations, s->annotation_n, relist);
    reload_free(old);
    alerts_on_drain(c->alerts);
    controller_schedule_turn(c);
}

static void reload_record_event(struct controller *c, const char *type, const char *reason,
                                struct str note)
{
    struct str host;
    struct str rest;
    /* Without '_' the whole identity is the host. */
    (void)str_cut(c->core->config.identity, STR("_"), &host, &rest);
    recorder_add(&c->core->recorder,
                 &(struct recorder_event){
                     .type = str_from(type),
                     .reason = str_from(reason),
                     .action = STR("LoadConfiguration"),
                     .note = str_sub(note, 0, MIN(note.n, (size_t)RELOAD_MESSAGE_MAX)),
                     .regarding = {
                         .kind = STR("Pod"),
                         .api_version = STR("v1"),
                         .name = host,
                         .namespace = c->core->config.lease_namespace,
                     },
                 });
}

static void reload_reject(struct controller *c, struct str file, struct str why)
{
    bool is_new = !str_eq(buf_str(&c->config_error), why);
    buf_reset(&c->config_file);
    buf_add(&c->config_file, file);
    if (is_new) {
        struct str text = arena_str(&c->tmp, why);
        buf_reset(&c->config_error);
        buf_add(&c->config_error, text);
        log_error(c->log, "Failed to parse configuration file", KV_STR("error", text),
                  KV_TEXT("in_force", c->active == NULL ? "nothing" : "the configuration before"));
        reload_record_event(c, "Warning", "ConfigurationInvalid", text);
    }
    metric_set(c->metrics.config_valid, 0);
    if (mutated(c->core->config.mutations, MUTATION_BAD_FILE_STOPS)) {
        c->core->nodes_fresh = false;
    }
}

/* One problem a line: "maintenance.yaml:12:7: …"; the errors, or the warnings. */
static uint32_t reload_print_problems(const struct problems *problems, struct str file,
                                      bool warnings, struct buf *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < problems->n; i++) {
        const struct problem *p = &problems->items[i];
        if (p->warning != warnings || n == RELOAD_PROBLEMS_MAX) {
            n += p->warning == warnings ? 1 : 0;
            continue;
        }
        n++;
        buf_add(out, out->n > 0 ? STR("\n") : STR(""));
        buf_add(out, file);
        if (p->pos.line > 0) {
            buf_printf(out, ":%u:%u", p->pos.line, p->pos.column);
        }
        buf_add(out, STR(": "));
        buf_add(out, p->text);
    }
    return n;
}

/* What the file has that nothing reads: it is in force, but perhaps it was meant otherwise. */
static void reload_note_warnings(struct controller *c, const struct problems *problems,
                                 struct str file)
{
    buf_reset(&c->config_warnings);
    uint32_t n = reload_print_problems(problems, file, /* warnings= */ true, &c->config_warnings);
    metric_set(c->metrics.config_warnings, n);
    if (n > 0) {
        log_warn(c->log, "the configuration may not mean what it was meant to",
                 KV_I64("warnings", n), KV_STR("what", buf_str(&c->config_warnings)));
    }
}

void controller_configure_failed(struct controller *c, struct str file, const struct err *err)
{
    reload_reject(c, file, str_from(err->msg));
}

int controller_configure(struct controller *c, struct str file, struct str text,
                         struct ucfg_env env)
{
    struct active_config *s = ALLOC_NEW(struct active_config);
    struct problems problems = { .out = &s->memory };
    int r = config_load(text, env, &s->memory, &s->config, &problems);
    if (r < 0) {
        CLEANUP(buf_done)
        struct buf why = { 0 };
        (void)reload_print_problems(&problems, file, /* warnings= */ false,
                                    &why); /* their number */
        reload_reject(c, file, buf_str(&why));
        reload_free(s);
        return r;
    }
    reload_collect_annotations(s);
    bool fixed = c->config_error.n > 0;
    buf_reset(&c->config_file);
    buf_add(&c->config_file, file);
    buf_reset(&c->config_error);
    reload_activate(c, s);
    reload_note_warnings(c, &problems, file);
    metric_set(c->metrics.config_valid, 1);
    metric_add(c->metrics.config_loads, 1);
    log_info(c->log, "configuration is in force", KV_STR("file", file),
             KV_I64("profiles", s->config.profile_n), KV_I64("generation", c->config_generation));
    if (fixed) {
        reload_record_event(c, "Normal", "ConfigurationLoaded",
                            STR("the configuration is valid again"));
    }
    return 0;
}

void controller_config_state(const struct controller *c, struct controller_config_state *ret)
{
    *ret = (struct controller_config_state){
        .file = buf_str(&c->config_file),
        .error = buf_str(&c->config_error),
        .warnings = buf_str(&c->config_warnings),
        .loaded = c->active == NULL ? 0 : c->active->loaded,
        .generation = c->config_generation,
        .config = c->active == NULL ? NULL : &c->active->config,
    };
}
