/* The Secrets and ConfigMaps that payloads and windows refer to: whether they are there, and their
 * hashes as a part of revisions. They are watched once somebody refers to one, and in the namespace
 * of Jobs alone. */
#include "operation/payload_source.h"
#include "operation/operations_internal.h"

/* ── watching ──────────────────────────────────────────────────────────────────────────────── */

static struct informer *source_informer(struct operations *o, bool secret)
{
    return secret ? &o->secrets : &o->config_maps;
}

static bool source_denied(const struct informer *i)
{
    return i->failing && i->trouble.code == ERR_DENIED;
}

static void source_start(struct operations *o, struct informer *i, const char *plural)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/api/v1/namespaces/"));
    client_add_segment(&path, o->config.jobs_namespace);
    buf_add_char(&path, '/');
    buf_add(&path, str_from(plural));
    informer_start(i, buf_str(&path));
}

/* Calendars are read with the windows that name them. */
static void calendars_read_again(struct operations *o)
{
    o->calendars_stale = false;
    store_reshape(&o->windows.store);
    informer_relist(&o->windows);
    store_reshape(&o->maintenances.store);
    informer_relist(&o->maintenances);
}

bool payload_references_known(struct operations *o)
{
    if (o->wants_config_maps && !o->config_maps.started) {
        source_start(o, &o->config_maps, "configmaps");
    }
    if (o->wants_secrets && !o->secrets.started) {
        source_start(o, &o->secrets, "secrets");
    }
    bool known =
        (!o->config_maps.started || o->config_maps.synced || source_denied(&o->config_maps)) &&
        (!o->secrets.started || o->secrets.synced || source_denied(&o->secrets));
    if (known && o->calendars_stale) {
        calendars_read_again(o);
        return false;
    }
    return known;
}

static struct str source_key(const struct operations *o, struct str name, struct arena *out)
{
    return arena_printf(out, STR_FMT "/" STR_FMT, STR_ARG(o->config.jobs_namespace), STR_ARG(name));
}

/* ── calendars ─────────────────────────────────────────────────────────────────────────────── */

static bool calendar_is_asked_for(const struct operations *o, const struct store_item *item)
{
    return map_find(&o->calendars, item->name) != NULL;
}

void payload_references_on_config_map(void *ctx, struct store_item *item, const void *before)
{
    struct operations *o = ctx;
    const struct payload_source *was = before;
    const struct payload_source *is = item->object;
    if (calendar_is_asked_for(o, item) && (was == NULL || !str_eq(was->hash, is->hash))) {
        o->calendars_stale = true;
    }
}

void payload_references_on_config_map_gone(void *ctx, struct store_item *item)
{
    struct operations *o = ctx;
    o->calendars_stale = o->calendars_stale || calendar_is_asked_for(o, item);
}

int payload_references_calendar(void *ctx, struct str config_map, struct str key, struct str *ret,
                                struct err *err)
{
    struct operations *o = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str name = source_key(o, config_map, &tmp);
    o->wants_config_maps = true;
    if (map_find(&o->calendars, name) == NULL && map_count(&o->calendars) < CALENDARS_MAX) {
        (void)map_put(&o->calendars, name, o); /* it was not there */
    }
    const struct store_item *item = store_find(&o->config_maps.store, name);
    if (source_denied(&o->config_maps)) {
        return err_set(err, ERR_DENIED, "ConfigMaps cannot be read: %s",
                       o->config_maps.trouble.msg);
    }
    if (item == NULL) {
        return err_set(err, ERR_NOTFOUND,
                       "there is no ConfigMap '" STR_FMT "' in namespace '" STR_FMT "'",
                       STR_ARG(config_map), STR_ARG(o->config.jobs_namespace));
    }
    const struct payload_calendar *c = payload_source_calendar(item->object, key);
    if (c == NULL) {
        return err_set(err, ERR_NOTFOUND,
                       "ConfigMap '" STR_FMT "' has no calendar (BEGIN:VCALENDAR) under the key "
                       "'" STR_FMT "'",
                       STR_ARG(config_map), STR_ARG(key));
    }
    *ret = c->text;
    return 0;
}

/* ── payloads ──────────────────────────────────────────────────────────────────────────────── */

struct reference_walk {
    struct campaign *c;
    struct campaign_operation *op;
    struct str *hashes;
    uint32_t n;
    uint32_t max;
    struct err *err;
    int result;
};

struct payload_reference {
    bool secret;
    struct str name;
    struct str key; /* that must be there; empty: any */
    bool optional;
    bool ignore_updates;
    struct str field;
};

static int reference_missing(const struct reference_walk *w, const struct payload_reference *r,
                             struct str what)
{
    return err_set(w->err, ERR_NOTFOUND,
                   STR_FMT ": " STR_FMT " in namespace '" STR_FMT
                           "', where all that payloads refer to is looked for",
                   STR_ARG(r->field), STR_ARG(what), STR_ARG(w->c->o->config.jobs_namespace));
}

static int reference_add(struct reference_walk *w, const struct payload_reference *r)
{
    struct operations *o = w->c->o;
    struct arena *out = &w->c->memory;
    const struct informer *i = source_informer(o, r->secret);
    const char *kind = r->secret ? "Secret" : "ConfigMap";
    bool *wants = r->secret ? &o->wants_secrets : &o->wants_config_maps;
    *wants = true;
    if (source_denied(i)) {
        return err_set(w->err, ERR_IO,
                       STR_FMT ": %ss cannot be read: %s; " RIGHTS_HINT
                               ", and with trackReferences: false they need not be read",
                       STR_ARG(r->field), kind, i->trouble.msg);
    }
    const struct store_item *item = store_find(&i->store, source_key(o, r->name, out));
    const struct payload_source *s = item != NULL ? item->object : NULL;
    if (s == NULL && !r->optional) {
        return reference_missing(
            w, r, arena_printf(out, "there is no %s '" STR_FMT "'", kind, STR_ARG(r->name)));
    }
    if (s != NULL && r->key.n > 0 && !r->optional && !payload_source_has_key(s, r->key)) {
        return reference_missing(w, r,
                                 arena_printf(out, "%s '" STR_FMT "' has no key '" STR_FMT "'",
                                              kind, STR_ARG(r->name), STR_ARG(r->key)));
    }
    if (!r->ignore_updates && w->n < w->max) {
        w->hashes[w->n++] = s != NULL ? s->hash : STR_NONE;
    }
    return 0;
}

static void walk_add(struct reference_walk *w, const struct payload_reference *r)
{
    if (w->result == 0 && r->name.n > 0) {
        w->result = reference_add(w, r);
    }
}

static void walk_mounts(struct reference_walk *w, const char *list, bool secret)
{
    uint32_t i = 0;
    JVAL_EACH (jval_get(w->op->payload, str_from(list)), item) {
        walk_add(w, &(struct payload_reference){
                        .secret = secret,
                        .name = jval_str(jval_get(item, STR("name"))),
                        .optional = jval_bool(jval_get(item, STR("optional")), false),
                        .ignore_updates = jval_bool(jval_get(item, STR("ignoreUpdates")), false),
                        .field = arena_printf(&w->c->memory, "job.%s[%u].name", list, i),
                    });
        i++;
    }
}

static void walk_member(struct reference_walk *w, const struct jval *from, const char *member,
                        bool secret, struct str field)
{
    const struct jval *v = jval_get(from, str_from(member));
    walk_add(w, &(struct payload_reference){
                    .secret = secret,
                    .name = jval_str(jval_get(v, STR("name"))),
                    .key = jval_str(jval_get(v, STR("key"))),
                    .optional = jval_bool(jval_get(v, STR("optional")), false),
                    .field = arena_printf(&w->c->memory, STR_FMT ".%s", STR_ARG(field), member),
                });
}

static void walk_environment(struct reference_walk *w)
{
    uint32_t i = 0;
    JVAL_EACH (jval_get(w->op->payload, STR("env")), item) {
        struct str field = arena_printf(&w->c->memory, "job.env[%u].valueFrom", i++);
        const struct jval *from = jval_get(item, STR("valueFrom"));
        walk_member(w, from, "secretKeyRef", true, field);
        walk_member(w, from, "configMapKeyRef", false, field);
    }
    i = 0;
    JVAL_EACH (jval_get(w->op->payload, STR("envFrom")), item) {
        struct str field = arena_printf(&w->c->memory, "job.envFrom[%u]", i++);
        walk_member(w, item, "secretRef", true, field);
        walk_member(w, item, "configMapRef", false, field);
    }
}

static void walk_parameters(struct reference_walk *w)
{
    for (uint32_t i = 0; i < w->op->parameter_n; i++) {
        const struct run_job_parameter *p = &w->op->parameters[i];
        walk_add(w, &(struct payload_reference){
                        .secret = true,
                        .name = p->secret,
                        .key = p->secret_key,
                        .field = arena_printf(&w->c->memory, "template.parameters, of " STR_FMT,
                                              STR_ARG(p->name)),
                    });
    }
}

int payload_references(struct campaign *c, struct campaign_operation *op, struct str *hashes,
                       uint32_t max, uint32_t *ret_n, struct err *err)
{
    struct reference_walk w = { .c = c, .op = op, .hashes = hashes, .max = max, .err = err };
    const struct jval *script = jval_get(op->payload, STR("scriptFrom"));
    *ret_n = 0;
    if (!op->spec->track_references) {
        return 0;
    }
    walk_add(&w, &(struct payload_reference){
                     .name = jval_str(jval_get(script, STR("configMap"))),
                     .key = jval_str(jval_get(script, STR("key"))),
                     .field = STR("job.scriptFrom"),
                 });
    walk_mounts(&w, "secrets", true);
    walk_mounts(&w, "configMaps", false);
    walk_environment(&w);
    walk_parameters(&w);
    *ret_n = w.n;
    return w.result;
}
