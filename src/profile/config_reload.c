/*
 * The configuration in force, and how another takes its place.
 */
#include "base/alloc.h"
#include "profile/controller_internal.h"

#define SETUP_MESSAGE_MAX 900u /* an Event's note has 1,024 bytes */

void setup_free(struct setup *s)
{
    if (s != NULL) {
        arena_done(&s->memory);
        alloc_free(s);
    }
}

static void setup_keep(struct setup *s, struct str key)
{
    for (uint32_t i = 0; i < s->annotation_n; i++) {
        if (str_eq(s->annotations[i], key)) {
            return;
        }
    }
    s->annotations[s->annotation_n++] = key;
}

/* What the configuration reads of nodes' annotations, and what others read in the same store. */
static void setup_note_annotations(struct setup *s, const struct controller *c)
{
    const struct config_instances *checks = &s->config.instances[PLUGIN_CHECK];
    const struct config_instances *triggers = &s->config.instances[PLUGIN_TRIGGER];
    s->annotations =
        ARENA_ARRAY(&s->memory, struct str, checks->n + triggers->n + c->config.keep_n + 3);
    setup_keep(s, DATA_ANNOTATION);
    setup_keep(s, SUBJECT_CORDON_MARK);
    setup_keep(s, DRAIN_RULES_ANNOTATION);
    for (uint32_t i = 0; i < c->config.keep_n; i++) {
        setup_keep(s, c->config.keep[i]);
    }
    for (uint32_t i = 0; i < checks->n; i++) {
        const struct config_instance *instance = &checks->items[i];
        if (str_eq(str_from(instance->plugin->name), STR("hasAnnotation"))) {
            setup_keep(s, plugin_get(instance->plugin, instance->values, "key")->text);
        }
        s->limited = s->limited || str_eq(str_from(instance->plugin->name), STR("maxMaintenance"));
    }
    for (uint32_t i = 0; i < triggers->n; i++) {
        const struct config_instance *instance = &triggers->items[i];
        if (str_eq(str_from(instance->plugin->name), STR("alterAnnotation"))) {
            setup_keep(s, plugin_get(instance->plugin, instance->values, "key")->text);
        }
    }
}

struct setup *setup_default(const struct controller *c)
{
    struct setup *s = ALLOC_NEW(struct setup);
    struct problems problems = { .out = &s->memory };
    int r = config_load(STR("intervals: {requeue: 30s}"), (struct ucfg_env){ 0 }, &s->memory,
                        &s->config, &problems);
    ASSERT(r == 0); /* a constant of the program */
    setup_note_annotations(s, c);
    return s;
}

static bool setup_reads_the_same(const struct setup *a, const struct setup *b)
{
    bool same = a->annotation_n == b->annotation_n;
    for (uint32_t i = 0; same && i < a->annotation_n; i++) {
        same = str_eq(a->annotations[i], b->annotations[i]);
    }
    return same;
}

/* Rooms, and the leases that an ask is to take, are those of the configuration before. Who holds a
 * grant keeps it: a patch may be under way. */
static void setup_forget_asks(struct controller *c)
{
    MAP_EACH (&c->store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        struct member *m = item->extra;
        if (m == NULL) {
            continue;
        }
        turn_leave_line(m);
        if (grant_is_pending(m->grant)) {
            grant_end(m);
        }
    }
}

/* Places it in force. What nodes were waiting for is decided anew. */
void setup_use(struct controller *c, struct setup *s)
{
    struct setup *old = c->setup;
    /* Of the nodes that are known already, only what the one before reads was kept; nothing at all
     * where there was none. */
    bool again = old == NULL || !setup_reads_the_same(old, s) || (s->limited && !old->limited);
    s->loaded = loop_wall(c->loop);
    c->setup = s;
    c->setup_generation++;
    c->keep.annotations = s->annotations;
    c->keep.annotation_count = MIN(s->annotation_n, NODE_ANNOTATIONS_MAX);
    setup_forget_asks(c);
    fleet_configure(c->fleet, &s->config);
    inquiry_configure(c->inquiry, &s->config);
    turn_mark_all(c);
    c->surveyed = false;
    if (again && (c->known || store_count(&c->store) > 0)) {
        c->fresh = false;
        store_reshape(&c->store);
        controller_list_again(c);
    }
    setup_free(old);
    controller_soon(c);
}

static void setup_record(struct controller *c, const char *type, const char *reason,
                         struct str note)
{
    struct str host;
    struct str rest;
    (void)str_cut(c->config.identity, STR("_"), &host, &rest); /* without one it is all */
    recorder_add(&c->recorder,
                 &(struct recorder_event){
                     .type = str_from(type),
                     .reason = str_from(reason),
                     .action = STR("LoadConfiguration"),
                     .note = str_sub(note, 0, MIN(note.n, (size_t)SETUP_MESSAGE_MAX)),
                     .regarding = {
                         .kind = STR("Pod"),
                         .api_version = STR("v1"),
                         .name = host,
                         .namespace = c->config.lease_namespace,
                     },
                 });
}

static void setup_refuse(struct controller *c, struct str file, struct str why)
{
    bool news = !str_eq(buf_str(&c->setup_error), why);
    buf_reset(&c->setup_file);
    buf_add(&c->setup_file, file);
    if (news) {
        struct str text = arena_str(&c->tmp, why);
        buf_reset(&c->setup_error);
        buf_add(&c->setup_error, text);
        log_error(c->log, "Failed to parse configuration file", KV_STR("error", text),
                  KV_TEXT("in_force", c->setup == NULL ? "nothing" : "the configuration before"));
        setup_record(c, "Warning", "ConfigurationInvalid", text);
    }
    gauges_put(c->gauges.config_valid, 0);
    c->fresh = c->fresh && !mutated(c->config.mutations, MUTATION_BAD_FILE_STOPS);
}

/* "maintenance.yaml:12:7: …", one a line. */
static void setup_print_problems(const struct problems *problems, struct str file, struct buf *out)
{
    for (uint32_t i = 0; i < problems->n; i++) {
        const struct problem *p = &problems->items[i];
        if (p->warning) {
            continue;
        }
        buf_add(out, out->n > 0 ? STR("\n") : STR(""));
        buf_add(out, file);
        if (p->pos.line > 0) {
            buf_printf(out, ":%u:%u", p->pos.line, p->pos.column);
        }
        buf_add(out, STR(": "));
        buf_add(out, p->text);
    }
}

void controller_configure_failed(struct controller *c, struct str file, const struct err *err)
{
    setup_refuse(c, file, str_from(err->msg));
}

int controller_configure(struct controller *c, struct str file, struct str text,
                         struct ucfg_env env)
{
    struct setup *s = ALLOC_NEW(struct setup);
    struct problems problems = { .out = &s->memory };
    int r = config_load(text, env, &s->memory, &s->config, &problems);
    if (r < 0) {
        CLEANUP(buf_done)
        struct buf why = { 0 };
        setup_print_problems(&problems, file, &why);
        setup_refuse(c, file, buf_str(&why));
        setup_free(s);
        return r;
    }
    setup_note_annotations(s, c);
    bool mended = c->setup_error.n > 0;
    buf_reset(&c->setup_file);
    buf_add(&c->setup_file, file);
    buf_reset(&c->setup_error);
    setup_use(c, s);
    gauges_put(c->gauges.config_valid, 1);
    gauges_count(c->gauges.config_loads);
    log_info(c->log, "configuration is in force", KV_STR("file", file),
             KV_I64("profiles", s->config.profile_n), KV_I64("generation", c->setup_generation));
    if (mended) {
        setup_record(c, "Normal", "ConfigurationLoaded", STR("the configuration is valid again"));
    }
    return 0;
}

void controller_setup(const struct controller *c, struct controller_setup *ret)
{
    *ret = (struct controller_setup){
        .file = buf_str(&c->setup_file),
        .error = buf_str(&c->setup_error),
        .loaded = c->setup == NULL ? 0 : c->setup->loaded,
        .generation = c->setup_generation,
        .config = c->setup == NULL ? NULL : &c->setup->config,
    };
}
