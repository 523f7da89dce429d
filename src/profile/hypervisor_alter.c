/*
 * The Hypervisors as the controller knows them, and the changes that triggers make to them.
 *
 * They are watched while the configuration names a plugin that reads or changes them, and not
 * otherwise: most clusters have no such kind.
 */
#include "base/alloc.h"
#include "kinds/keys.h"
#include "profile/controller_internal.h"
#include "profile/trigger/trigger.h"

#define HYPERVISOR_BYTES_MAX ((size_t)64 * 1024 * 1024) /* 10,000 of them have a tenth */

#define ALTER_DONE_MAX 4096u /* some dozens of steps; a node has a few under way */

static const struct writer_rules hypervisor_rules = {
    .conflict = { MSECONDS(500), MINUTES(5) },
    .absent = { SECONDS(2), MINUTES(5) },
    .refused = { SECONDS(8), MINUTES(5) },
    .failed = { MSECONDS(500), MINUTES(5) },
    .urgent = true,
};

/* Of one node: the change under way, and those that were made. */
struct hypervisor_alter {
    struct managed_node *m;
    struct writer writer;
    struct buf key;   /* of the change that was sent last */
    struct buf done;  /* keys of those that were made, a line each */
    struct buf error; /* why the last one was not; empty: it was, or none has ended */
};

/* ── watching ──────────────────────────────────────────────────────────────────────────────── */

static bool is_hypervisor_plugin(const struct plugin *plugin)
{
    static const char *const names[] = { "checkHypervisor", "hypervisorCondition",
                                         "alterHypervisor" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_eq(str_from(plugin->name), str_from(names[i]))) {
            return true;
        }
    }
    return false;
}

static bool config_names_hypervisors(const struct config *config)
{
    for (uint32_t kind = 0; kind < PLUGIN_KINDS; kind++) {
        for (uint32_t i = 0; i < config->instances[kind].n; i++) {
            if (is_hypervisor_plugin(config->instances[kind].items[i].plugin)) {
                return true;
            }
        }
    }
    return false;
}

/* The node of that name is decided again. */
static void hypervisors_on_item(struct controller *c, struct str name)
{
    struct store_item *node = store_find(&c->core->nodes.store, name);
    if (node != NULL) {
        store_mark(&c->core->nodes.store, node);
        controller_schedule_turn(c);
    }
}

static void hypervisors_on_change(void *ctx, struct store_item *item, const void *before UNUSED)
{
    hypervisors_on_item(ctx, item->name);
}

static void hypervisors_on_gone(void *ctx, struct store_item *item)
{
    hypervisors_on_item(ctx, item->name);
}

/* What is known of all of them at once; every node is decided again when it changes. */
static void hypervisors_on_state(void *ctx)
{
    struct controller *c = ctx;
    const struct informer *s = &c->hypervisors;
    uint32_t state = (s->synced ? 1u : 0u) | (s->absent ? 2u : 0u) | (s->failing ? 4u : 0u);
    if (state != c->hypervisors_state) {
        c->hypervisors_state = state;
        turn_mark_all(c);
        controller_schedule_turn(c);
    }
}

static void hypervisors_on_error(void *ctx, const struct err *err)
{
    struct controller *c = ctx;
    if ((c->hypervisors_state & 4u) == 0) {
        log_error(c->log, "The hypervisors cannot be watched", KV_ERR(err));
    }
    hypervisors_on_state(c);
}

void hypervisors_configure(struct controller *c, const struct config *config)
{
    bool wanted = config_names_hypervisors(config);
    bool watched = c->hypervisors.config.client != NULL;
    if (wanted && !watched) {
        informer_init(&c->hypervisors,
                      &(struct informer_config){ .client = &c->core->client,
                                                 .kind = &hypervisor_kind,
                                                 .optional = true,
                                                 .bytes_max = HYPERVISOR_BYTES_MAX,
                                                 .on_change = hypervisors_on_change,
                                                 .on_gone = hypervisors_on_gone,
                                                 .on_update = hypervisors_on_state,
                                                 .on_error = hypervisors_on_error,
                                                 .ctx = c });
        c->hypervisors_state = 0;
        external_facts_set_hypervisors(c->external, &c->hypervisors);
        informer_start(&c->hypervisors, STR(HYPERVISORS_PATH));
    } else if (!wanted && watched) {
        hypervisors_stop(c);
    }
}

void hypervisors_stop(struct controller *c)
{
    external_facts_set_hypervisors(c->external, NULL);
    informer_done(&c->hypervisors);
}

bool hypervisors_known(const struct controller *c)
{
    const struct informer *s = &c->hypervisors;
    return s->config.client == NULL || s->synced || s->failing;
}

/* ── changing ──────────────────────────────────────────────────────────────────────────────── */

static bool alter_has_done(const struct hypervisor_alter *a, struct str key)
{
    struct str rest = buf_str(&a->done);
    struct str line;
    while (rest.n > 0 && str_split_next(&rest, '\n', &line)) {
        if (str_eq(line, key)) {
            return true;
        }
    }
    return false;
}

bool hypervisor_alter_done(const void *ctx, struct str key)
{
    const struct managed_node *m = ctx;
    return m->alter != NULL && alter_has_done(m->alter, key);
}

struct str hypervisor_alter_error(const struct managed_node *m)
{
    return m->alter != NULL ? buf_str(&m->alter->error) : STR_NONE;
}

static void alter_on_reply(void *ctx, const struct api_reply *reply)
{
    struct hypervisor_alter *a = ctx;
    struct managed_node *m = a->m;
    struct controller *c = m->c;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    enum retry_verdict verdict =
        writer_on_reply(&a->writer, reply, &c->hypervisors.store, m->item->name, &r);
    c->altering--;
    buf_reset(&a->error);
    if (verdict == RETRY_DONE) {
        if (a->done.n > ALTER_DONE_MAX) {
            buf_reset(&a->done); /* of steps that ended long ago */
        }
        buf_add(&a->done, buf_str(&a->key));
        buf_add_char(&a->done, '\n');
        log_info(c->log, "Changed the hypervisor", KV_STR("node", m->item->name));
    } else {
        buf_printf(&a->error, HYPERVISORS_NAME " \"" STR_FMT "\" cannot be changed: %s",
                   STR_ARG(m->item->name), r.err.msg);
        managed_node_wake_at(m, a->writer.retry_at);
    }
    store_mark(&c->core->nodes.store, m->item);
    core_written(c->core);
    controller_schedule_turn(c);
}

static void alter_print_patch(const struct config_instance *instance, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    for (uint32_t i = 0; i < instance->plugin->key_n; i++) {
        const struct plugin_key *key = &instance->plugin->keys[i];
        if (instance->values[i].given && key->type == PLUGIN_BOOL) {
            jw_pair_bool(&w, key->name, instance->values[i].truth);
        } else if (instance->values[i].given) {
            jw_pair(&w, key->name, instance->values[i].text);
        }
    }
    jw_obj_end(&w);
    jw_obj_end(&w);
}

/* The patch has no resourceVersion: its fields are the trigger's, whatever else changes. */
static void alter_send(struct hypervisor_alter *a, const struct engine_effect *effect)
{
    struct controller *c = a->m->c;
    CLEANUP(buf_done)
    struct buf body = { 0 };
    buf_reset(&a->key);
    buf_add(&a->key, effect->alter_key);
    buf_reset(&c->path);
    buf_add(&c->path, STR(HYPERVISORS_PATH "/"));
    client_add_segment(&c->path, a->m->item->name);
    alter_print_patch(effect->alter, &body);
    c->altering++;
    writer_send(&a->writer,
                &(struct api_request){
                    .verb = API_PATCH, .path = buf_str(&c->path), .body = buf_str(&body) },
                0, alter_on_reply, a);
}

void hypervisor_alter_run(struct managed_node *m, const struct engine_effect *effect)
{
    if (m->alter == NULL) {
        m->alter = ALLOC_NEW(struct hypervisor_alter);
        m->alter->m = m;
        writer_init(&m->alter->writer, &m->c->core->client, &hypervisor_rules);
    }
    struct hypervisor_alter *a = m->alter;
    usec_t ready = writer_ready_at(&a->writer, 0);
    if (a->writer.call != NULL) {
        return; /* the reply marks the node again */
    }
    if (loop_now(m->c->loop) < ready) {
        managed_node_wake_at(m, ready);
        return;
    }
    alter_send(a, effect);
}

void hypervisor_alter_free(struct managed_node *m)
{
    struct hypervisor_alter *a = STEAL(m->alter);
    if (a != NULL) {
        m->c->altering -= a->writer.call != NULL ? 1 : 0;
        writer_cancel(&a->writer);
        buf_done(&a->key);
        buf_done(&a->done);
        buf_done(&a->error);
        alloc_free(a);
    }
}
