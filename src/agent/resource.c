#include "agent/resource.h"

#include "base/closest.h"
#include "base/map.h"
#include "format/json_writer.h"

static const struct field common_items[] = {
    { "name", FIELD_TEXT, .required = true, .help = "what others call it; unique" },
    { "type", FIELD_TEXT, .required = true, .help = "what it is" },
    { "requires", FIELD_TEXTS, .help = "names of those that must be right before" },
    { "notifies", FIELD_TEXTS, .help = "names of those that are refreshed when it has changed" },
};
static const struct field_table common_fields = FIELD_TABLE(common_items);

static const struct field meta_items[] = {
    { "noop", FIELD_BOOL, .initial = "false", .help = "say what would be done, do nothing" },
    { "retries", FIELD_INT, .help = "how often it is tried again; -1: for ever" },
    { "backoff", FIELD_DURATION, .initial = "1s",
      .help = "the wait before the first retry; it doubles up to 5m" },
    { "onRemove", FIELD_CHOICE, .initial = "Keep", .choices = "Keep|Restore|Remove",
      .help = "what becomes of it when the resource is taken off the list: it stays, what was "
              "there before comes back, or it is removed" },
    { "disruptive", FIELD_CHOICE, .initial = "Auto", .choices = "Auto|Always|Never",
      .help = "whether a change waits until the node is out of service" },
    { "sensitive", FIELD_BOOL, .initial = "false",
      .help = "tell no values, only that they differ" },
    { "unsafePath", FIELD_CHOICE, .initial = "Refuse", .choices = "Refuse|Allow",
      .help = "whether others than root may have write access on the way" },
};
const struct field_table resource_meta_fields = FIELD_TABLE(meta_items);

const struct resource_type *resource_type_find(struct str name)
{
    for (const struct resource_type *const *t = resource_types; *t != NULL; t++) {
        if (str_eq(str_from((*t)->name), name)) {
            return *t;
        }
    }
    return NULL;
}

const struct field_value *resource_value(const struct resource *r, const char *name)
{
    return field_get(&r->type->fields, r->values, name);
}

void resource_uses(struct resource_prepare *p, const char *kind, struct str what)
{
    resource_uses_all(p, arena_printf(p->out, "%s:" STR_FMT, kind, STR_ARG(what)));
}

void resource_uses_all(struct resource_prepare *p, struct str what)
{
    ARENA_GROW(p->out, p->uses, p->uses_n, p->uses_cap);
    p->uses[p->uses_n++] = what;
}

void resource_uses_parent(struct resource_prepare *p, struct str path)
{
    size_t slash = str_rfind_char(path, '/');
    if (slash != SIZE_MAX && slash > 0) {
        resource_uses(p, "path", str_sub(path, 0, slash));
    }
}

void resource_watch(const struct resource *r, watch_add_fn add, void *ctx)
{
    for (size_t i = 0; i < WATCH_NEEDS_MAX && r->type->watch[i].kind != WATCH_NONE; i++) {
        const struct watch_need *need = &r->type->watch[i];
        struct str path =
            need->field != NULL ? resource_value(r, need->field)->text : str_from(need->path);
        if (need->field == NULL || path.n > 0) {
            add(ctx, need->kind, path);
        }
    }
    if (r->type->watch_more != NULL) {
        r->type->watch_more(r, add, ctx);
    }
}

int resource_save_nothing(struct resource_call *call, struct original *ret, struct err *err)
{
    (void)call;
    (void)ret;
    (void)err;
    return 0;
}

int resource_restore_nothing(struct resource_call *call, const struct original *original,
                             struct err *err)
{
    (void)call;
    (void)original;
    (void)err;
    return 0;
}

static struct str difference_text(struct resource_call *call, struct str text)
{
    if (text.n <= DIFFERENCE_TEXT_MAX) {
        return arena_str(call->tmp, text);
    }
    return arena_printf(call->tmp, STR_FMT "…", STR_ARG(str_sub(text, 0, DIFFERENCE_TEXT_MAX)));
}

void resource_differs(struct resource_call *call, const char *property, struct str was,
                      struct str want)
{
    if (call->difference_n == DIFFERENCES_MAX) {
        return; /* it is known to differ; the rest would only be more text */
    }
    struct difference *d = &call->differences[call->difference_n++];
    *d = (struct difference){ .property = property };
    if (!call->resource->meta.sensitive) {
        d->was = difference_text(call, was);
        d->want = difference_text(call, want);
    }
}

void resource_differs_in_state(struct resource_call *call, bool exists)
{
    resource_differs(call, "state", exists ? STR("present") : STR("absent"),
                     exists ? STR("absent") : STR("present"));
}

bool resource_is_absent(const struct resource *r)
{
    return str_eq(resource_value(r, "state")->text, STR("absent"));
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static int check_unknown(const struct field_table *table, const struct field_table *beside,
                         bool meta, const struct jval *object, struct arena *out, struct err *err)
{
    JVAL_EACH (object, v) {
        struct str key = jval_key(v);
        if (field_find(table, key) != NULL || (beside != NULL && field_find(beside, key) != NULL) ||
            (meta && str_eq(key, STR("meta")))) {
            continue;
        }
        struct closest near = closest_to(key);
        for (uint32_t i = 0; i < table->n; i++) {
            closest_offer(&near, str_from(table->items[i].name));
        }
        struct str hint =
            near.best.n > 0 ? arena_printf(out, ", did you mean '" STR_FMT "'?", STR_ARG(near.best))
                            : STR("");
        return err_set(err, ERR_INVALID, "unknown field '" STR_FMT "'" STR_FMT,
                       STR_ARG(str_sub(key, 0, 64)), STR_ARG(hint));
    }
    return 0;
}

static int read_meta(const struct jval *v, struct arena *out, struct resource_meta *ret,
                     struct err *err)
{
    const struct field_table *table = &resource_meta_fields;
    const struct jval *bad;
    struct field_value *values;
    if (v != NULL && jval_kind(v) != JOBJ) {
        return err_set(err, ERR_INVALID, "field 'meta': found %s, want an object",
                       jkind_name(jval_kind(v)));
    }
    int r = check_unknown(table, NULL, false, v, out, err);
    r = r < 0 ? r : field_read_all(table, v, out, &values, &bad, err);
    if (r < 0) {
        return err_wrap(err, "field 'meta'");
    }
    struct str on_remove = field_get(table, values, "onRemove")->text;
    struct str disruptive = field_get(table, values, "disruptive")->text;
    *ret = (struct resource_meta){
        .noop = field_get(table, values, "noop")->truth,
        .retries_given = field_get(table, values, "retries")->given,
        .retries = field_get(table, values, "retries")->number,
        .backoff = field_get(table, values, "backoff")->number,
        .on_remove = str_eq(on_remove, STR("Restore"))  ? ON_REMOVE_RESTORE
                     : str_eq(on_remove, STR("Remove")) ? ON_REMOVE_REMOVE
                                                        : ON_REMOVE_KEEP,
        .disruptive = str_eq(disruptive, STR("Always"))  ? DISRUPTIVE_ALWAYS
                      : str_eq(disruptive, STR("Never")) ? DISRUPTIVE_NEVER
                                                         : DISRUPTIVE_AUTO,
        .sensitive = field_get(table, values, "sensitive")->truth,
        .unsafe_path = str_eq(field_get(table, values, "unsafePath")->text, STR("Allow")),
    };
    if (ret->retries < -1 || ret->retries > INT32_MAX) {
        return err_set(err, ERR_INVALID,
                       "field 'meta': field 'retries': found %lld, want -1 or more",
                       (long long)ret->retries);
    }
    return 0;
}

static struct str make_id(const struct resource *r, struct arena *out)
{
    struct str id = arena_printf(out, "%s:", r->type->name);
    for (size_t i = 0; i < ARRAY_LEN(r->type->identity) && r->type->identity[i] != NULL; i++) {
        struct str part = resource_value(r, r->type->identity[i])->text;
        id = arena_printf(out, STR_FMT "%s" STR_FMT, STR_ARG(id), i > 0 ? ":" : "", STR_ARG(part));
    }
    return id;
}

/* What the type makes of the object; a problem is the resource's own. */
static int read_typed(const struct jval *object, struct arena *out, struct resource *r,
                      struct err *err)
{
    struct str type = jval_str(jval_get(object, STR("type")));
    r->type = resource_type_find(type);
    if (r->type == NULL) {
        struct closest near = closest_to(type);
        for (const struct resource_type *const *t = resource_types; *t != NULL; t++) {
            closest_offer(&near, str_from((*t)->name));
        }
        return err_set(err, ERR_INVALID, "unknown type '" STR_FMT "'%s" STR_FMT "%s",
                       STR_ARG(str_sub(type, 0, 64)), near.best.n > 0 ? ", did you mean '" : "",
                       STR_ARG(near.best), near.best.n > 0 ? "'?" : "");
    }
    const struct jval *bad;
    struct field_value *values;
    int result = check_unknown(&r->type->fields, &common_fields, true, object, out, err);
    result =
        result < 0 ? result : field_read_all(&r->type->fields, object, out, &values, &bad, err);
    result = result < 0 ? result : read_meta(jval_get(object, STR("meta")), out, &r->meta, err);
    if (result < 0) {
        return result;
    }
    r->values = values;
    r->id = make_id(r, out);
    struct resource_prepare p = { .resource = r, .out = out };
    result = r->type->prepare(&p, err);
    if (result < 0) {
        return result;
    }
    r->uses = p.uses;
    r->uses_n = p.uses_n;
    return 0;
}

static int read_edges(const struct jval *object, const char *name, struct arena *out,
                      const struct str **ret, uint32_t *ret_n, struct err *err)
{
    const struct jval *v = jval_get(object, str_from(name));
    struct field_value value = { 0 };
    if (v != NULL && jval_kind(v) != JNULL) {
        int r = field_read(field_find(&common_fields, str_from(name)), v, out, &value, err);
        if (r < 0) {
            return r;
        }
    }
    if (value.item_n > RESOURCE_EDGES_MAX) {
        return err_set(err, ERR_LIMIT, "field '%s': found %u names, want at most %u", name,
                       value.item_n, RESOURCE_EDGES_MAX);
    }
    *ret = value.items;
    *ret_n = value.item_n;
    return 0;
}

static void read_one(const struct jval *object, struct arena *out, struct resource *r)
{
    struct err err = { 0 };
    CLEANUP(buf_done)
    struct buf json = { 0 };
    struct json_writer w = json_writer_on(&json);
    jw_val(&w, object);
    r->json = arena_str(out, buf_str(&json));
    /* Edges first: whoever waits for a resource that is wrong waits all the same. */
    int result = read_edges(object, "requires", out, &r->requires_names, &r->requires_n, &err);
    result = result < 0
                 ? result
                 : read_edges(object, "notifies", out, &r->notifies_names, &r->notifies_n, &err);
    result = result < 0 ? result : read_typed(object, out, r, &err);
    if (result < 0) {
        r->problem = arena_str(out, str_from(err.msg));
        r->id = r->id.n > 0 ? r->id : arena_printf(out, "invalid:" STR_FMT, STR_ARG(r->name));
    }
}

static int read_name(const struct jval *object, uint32_t index, struct arena *out,
                     struct resource *r, struct err *err)
{
    const struct jval *v = jval_get(object, STR("name"));
    if (jval_kind(object) != JOBJ) {
        return err_set(err, ERR_INVALID, "resources[%u]: found %s, want an object", index,
                       jkind_name(jval_kind(object)));
    }
    struct str name = jval_str(v);
    if (name.n == 0 || name.n > RESOURCE_NAME_MAX) {
        return err_set(err, ERR_INVALID,
                       "resources[%u]: field 'name': found %s, want a text of 1 to %u bytes", index,
                       v == NULL ? "nothing" : jkind_name(jval_kind(v)), RESOURCE_NAME_MAX);
    }
    r->name = arena_str(out, name);
    return 0;
}

int resource_list_read(const struct ydoc *doc, struct arena *out, struct resource_list *ret,
                       struct err *err)
{
    const struct jval *list = jval_get(doc->root, STR("resources"));
    if (jval_kind(list) != JARR || list->n == 0) {
        err->pos = ydoc_pos(doc, doc->root);
        return err_set(err, ERR_INVALID, "field 'resources': found %s, want a list of resources",
                       list == NULL              ? "nothing"
                       : jval_kind(list) == JARR ? "an empty list"
                                                 : jkind_name(jval_kind(list)));
    }
    if (list->n > RESOURCES_MAX) {
        return err_set(err, ERR_LIMIT, "field 'resources': found %u, want at most %u", list->n,
                       RESOURCES_MAX);
    }
    JVAL_EACH (doc->root, member) {
        if (!str_eq(jval_key(member), STR("resources"))) {
            err->pos = ydoc_key_pos(doc, member);
            return err_set(err, ERR_INVALID, "unknown field '" STR_FMT "', want 'resources'",
                           STR_ARG(str_sub(jval_key(member), 0, 64)));
        }
    }
    struct resource *items = ARENA_ARRAY(out, struct resource, list->n);
    CLEANUP(map_done)
    struct map names = { 0 };
    uint32_t n = 0;
    JVAL_EACH (list, object) {
        struct resource *r = &items[n];
        r->pos = ydoc_pos(doc, object);
        err->pos = r->pos;
        int result = read_name(object, n, out, r, err);
        if (result < 0) {
            return result;
        }
        if (map_put(&names, r->name, r) != NULL) {
            return err_set(err, ERR_INVALID, "resource '" STR_FMT "': the name comes twice",
                           STR_ARG(r->name));
        }
        read_one(object, out, r);
        n++;
    }
    *ret = (struct resource_list){ .items = items, .n = n };
    return 0;
}

int resource_read_json(struct str json, struct arena *out, struct resource *ret, struct err *err)
{
    const struct jval *object;
    int r = json_parse(arena_str(out, json), 0, out, &object, err);
    r = r < 0 ? r : read_name(object, 0, out, ret, err);
    if (r < 0) {
        return r;
    }
    read_one(object, out, ret);
    return ret->problem.n == 0 ? 0 : err_set(err, ERR_INVALID, STR_FMT, STR_ARG(ret->problem));
}
