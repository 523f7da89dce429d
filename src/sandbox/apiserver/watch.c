#include "sandbox/apiserver/watch.h"

#include "base/alloc.h"
#include "sandbox/apiserver/defaults.h"
#include "sandbox/apiserver/encode.h"

void watches_wake(struct apiserver *s, uint32_t store)
{
    struct object_store *st = storage_get_store(&s->storage, store);
    if (list_empty(&st->watches)) {
        return;
    }
    LIST_EACH (&st->watches, item) {
        struct apiserver_watch *w = CONTAINER_OF(item, struct apiserver_watch, in_store);
        if (!list_linked(&w->in_ready)) {
            list_add(&s->ready, &w->in_ready);
        }
    }
    loop_timer_pull(&s->watch_timer, loop_now(s->loop));
}

static void watch_mark_ready(struct apiserver_watch *w)
{
    if (!list_linked(&w->in_ready)) {
        list_add(&w->s->ready, &w->in_ready);
    }
    loop_timer_pull(&w->s->watch_timer, loop_now(w->s->loop));
}

void watches_end(struct apiserver *s, uint32_t store, bool all)
{
    struct object_store *st = storage_get_store(&s->storage, store);
    LIST_EACH (&st->watches, item) {
        struct apiserver_watch *w = CONTAINER_OF(item, struct apiserver_watch, in_store);
        if (all || kind_is(w->kind, KIND_CUSTOM)) {
            w->ended = true;
            w->kind = NULL; /* the kind may be freed before the stream is closed */
            watch_mark_ready(w);
        }
    }
}

enum watch_event { WATCH_NONE, WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED };

static enum watch_event watch_event_of(const struct apiserver_watch *w,
                                       const struct storage_change *change)
{
    bool was = change->old != NULL && list_filter_match(&w->filter, change->old);
    bool is = !change->deleted && list_filter_match(&w->filter, change->now);
    if (is) {
        return was ? WATCH_MODIFIED : WATCH_ADDED;
    }
    return was ? WATCH_DELETED : WATCH_NONE;
}

/* Skips changes that this watch does not select. */
static void watch_skip_unmatched(struct apiserver_watch *w)
{
    const struct object_store *store = storage_get_store(&w->s->storage, w->store);
    if (w->next < store->first) {
        return;
    }
    while (w->next < store->end &&
           watch_event_of(w, object_store_change(store, w->next)) == WATCH_NONE) {
        w->next++;
    }
}

/* Whether changes left the ring before the client read them. */
static bool watch_is_compacted(const struct apiserver_watch *w)
{
    return w->next < storage_get_store(&w->s->storage, w->store)->first;
}

static bool watch_pending(struct apiserver_watch *w)
{
    if (w->ended || w->error.n > 0 || w->bookmark_due || w->initial_end ||
        w->initial_at < w->initial_n || watch_is_compacted(w)) {
        return true;
    }
    watch_skip_unmatched(w);
    return w->next < storage_get_store(&w->s->storage, w->store)->end;
}

void watch_notify_reader(struct apiserver_watch *w)
{
    if (w->on_ready != NULL && watch_pending(w)) {
        w->on_ready(w->on_ready_ctx);
    }
}

static void watch_set_timer(struct apiserver_watch *w)
{
    loop_timer_set(&w->timer, w->bookmarks ? MIN(w->end_at, w->bookmark_at) : w->end_at);
}

static void watch_on_timer(void *ctx)
{
    struct apiserver_watch *w = ctx;
    usec_t now = loop_now(w->s->loop);
    if (now >= w->end_at) {
        w->ended = true;
    } else {
        w->bookmark_due = true;
        w->bookmark_at = now + WATCH_BOOKMARK_EVERY;
        watch_set_timer(w);
    }
    watch_mark_ready(w);
}

void apiserver_watch_notify(struct apiserver_watch *w, void (*on_ready)(void *ctx), void *ctx)
{
    w->on_ready = on_ready;
    w->on_ready_ctx = ctx;
    if (watch_pending(w)) {
        watch_mark_ready(w);
    }
}

/* Copied by hand: watches of many objects spend most of their time here. */
static struct str watch_line(struct arena *out, const char *type, struct str object)
{
    struct str parts[] = { STR("{\"type\":\""), str_from(type), STR("\",\"object\":"), object,
                           STR("}") };
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        n += parts[i].n;
    }
    char *line = arena_alloc(out, n + 1);
    char *at = line;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        memcpy(at, parts[i].p, parts[i].n);
        at += parts[i].n;
    }
    return (struct str){ .p = line, .n = n };
}

/* The object's text as this watch shows it; `rv` 0 keeps the object's own. */
static struct str watch_encode_object(struct apiserver_watch *w, const struct object *o,
                                      uint64_t rv, struct arena *out)
{
    struct encoder encoder = {
        .server = w->s, .kind = w->kind, .form = w->form, .include_object = w->include_object
    };
    if (w->form == FORM_TABLE) {
        encoder.no_columns = w->table_columns_sent;
        w->table_columns_sent = true;
    }
    return encode_event(&encoder, o, rv, out);
}

static struct str watch_bookmark(struct apiserver_watch *w, uint64_t rv, bool initial_end,
                                 struct arena *out)
{
    struct tree *t = tree_obj(out);
    tree_set(out, t, STR("kind"), tree_str(out, w->kind->kind));
    tree_set(out, t, STR("apiVersion"), tree_str(out, w->kind->api_version));
    tree_set_at(out, t, "metadata.resourceVersion",
                tree_str(out, arena_printf(out, "%llu", (unsigned long long)rv)));
    if (initial_end) {
        tree_set(out, tree_make_at(out, t, "metadata.annotations"),
                 STR("k8s.io/initial-events-end"), tree_str(out, STR("true")));
    }
    if (!kind_is(w->kind, KIND_CUSTOM)) {
        defaults_zero_values(w->kind, t, out);
    }
    if (w->form != FORM_OBJECT) {
        struct encoder encoder = { .server = w->s,
                                   .kind = w->kind,
                                   .form = w->form,
                                   .include_object = w->include_object,
                                   .no_columns = true };
        return watch_line(out, "BOOKMARK", encode_bookmark(&encoder, t, out));
    }
    return watch_line(out, "BOOKMARK", tree_json(out, t));
}

static bool watch_next_initial(struct apiserver_watch *w, struct arena *out, struct str *ret_line)
{
    if (w->initial_at < w->initial_n) {
        struct object *o = w->initial[w->initial_at];
        w->initial[w->initial_at++] = NULL;
        *ret_line = watch_line(out, "ADDED", watch_encode_object(w, o, 0, out));
        object_unref(o);
        return true;
    }
    if (w->initial_end) {
        w->initial_end = false;
        *ret_line = watch_bookmark(w, w->initial_rv, true, out);
        return true;
    }
    return false;
}

static bool watch_next_change(struct apiserver_watch *w, struct arena *out, struct str *ret_line)
{
    static const char *const names[] = { "", "ADDED", "MODIFIED", "DELETED" };
    const struct object_store *store = storage_get_store(&w->s->storage, w->store);
    while (w->next < store->end) {
        const struct storage_change *change = object_store_change(store, w->next++);
        enum watch_event event = watch_event_of(w, change);
        if (event == WATCH_NONE) {
            continue;
        }
        /* An object that no longer matches is sent as DELETED, in its last version that matched. */
        bool left = event == WATCH_DELETED && !change->deleted;
        struct str text = left ? watch_encode_object(w, change->old, change->now->rv, out)
                               : watch_encode_object(w, change->now, 0, out);
        *ret_line = watch_line(out, names[event], text);
        return true;
    }
    return false;
}

bool apiserver_watch_next(struct apiserver_watch *w, struct arena *out, struct str *ret_line,
                          bool *ret_ended)
{
    *ret_ended = false;
    if (w->kind == NULL || w->form == FORM_METADATA_LIST) {
        *ret_ended = true;
        return false;
    }
    if (w->error.n > 0) {
        *ret_line = arena_str(out, w->error);
        w->error = STR("");
        w->ended = true;
        return true;
    }
    if (watch_next_initial(w, out, ret_line)) {
        return true;
    }
    if (watch_is_compacted(w)) {
        *ret_ended = true; /* the real server closes watches that are too slow */
        return false;
    }
    if (watch_next_change(w, out, ret_line)) {
        return true;
    }
    if (w->bookmark_due) {
        w->bookmark_due = false;
        *ret_line = watch_bookmark(w, w->s->storage.rv, false, out);
        return true;
    }
    *ret_ended = w->ended;
    return false;
}

void apiserver_watch_close(struct apiserver_watch *w)
{
    if (w == NULL) {
        return;
    }
    loop_timer_done(&w->timer);
    list_del(&w->in_store);
    list_del(&w->in_ready);
    for (uint32_t i = w->initial_at; i < w->initial_n; i++) {
        object_unref(w->initial[i]);
    }
    arena_done(&w->arena);
    alloc_free(w);
}

static struct str watch_error_line(struct arena *a, const struct status *status)
{
    return watch_line(a, "ERROR", tree_json(a, status_tree(status, a)));
}

static void watch_list_initial(struct apiserver_watch *w)
{
    const struct object_store *store = storage_get_store(&w->s->storage, w->store);
    w->initial = ARENA_ARRAY(&w->arena, struct object *, store->n);
    for (uint32_t i = 0; i < store->n; i++) {
        if (list_filter_match(&w->filter, store->items[i])) {
            w->initial[w->initial_n++] = object_ref(store->items[i]);
        }
    }
    w->initial_rv = w->s->storage.rv;
    w->next = store->end;
}

struct watch_options {
    uint64_t rv;
    bool rv_given;
    bool initial;
    bool bookmarks;
    usec_t timeout;
};

static struct status *watch_options_read(struct request_ctx *c, struct watch_options *ret)
{
    const struct url_params *p = &c->route.params;
    *ret = (struct watch_options){ 0 };
    uint64_t seconds = 0;
    struct status *status = options_check_watch(c);
    if (status != NULL) {
        return status;
    }
    uint64_t limit;
    bool timeout_read = p->timeout_seconds.n == 0 || str_to_u64(p->timeout_seconds, &seconds);
    bool limit_read = p->limit.n == 0 || str_to_u64(p->limit, &limit); /* read, and of no use */
    if (!timeout_read || !limit_read) {
        return status_bad_request(c->a, "strconv.ParseInt: parsing \"" STR_FMT "\": invalid syntax",
                                  STR_ARG(timeout_read ? p->limit : p->timeout_seconds));
    }
    ret->timeout = seconds > 0 ? SECONDS(MIN(seconds, (uint64_t)1000000))
                               : rng_usec(&c->s->rng, WATCH_TIMEOUT_MIN, 2 * WATCH_TIMEOUT_MIN);
    if (p->resource_version.n > 0) {
        if (!str_to_u64(p->resource_version, &ret->rv)) {
            /* The real server lets this error through as it is: 500 without a reason. */
            return status_new(
                c->a, 500, "",
                arena_printf(c->a,
                             "resourceVersion: Invalid value: \"" STR_FMT
                             "\": strconv.ParseUint: parsing \"" STR_FMT "\": invalid syntax",
                             STR_ARG(p->resource_version), STR_ARG(p->resource_version)));
        }
        ret->rv_given = ret->rv > 0;
    }
    (void)url_parse_bool(p->allow_watch_bookmarks, &ret->bookmarks); /* else false */
    (void)url_parse_bool(p->send_initial_events, &ret->initial);
    return NULL;
}

/* Where the stream begins: with the objects there are, after a version, or with an error. */
static void watch_start(struct apiserver_watch *w, const struct watch_options *options)
{
    const struct object_store *store = storage_get_store(&w->s->storage, w->store);
    if (options->initial || !options->rv_given) {
        watch_list_initial(w);
        w->initial_end = options->initial && options->bookmarks;
        return;
    }
    if (options->rv < store->compacted) {
        w->error = watch_error_line(
            &w->arena,
            status_expired(&w->arena,
                           arena_printf(&w->arena, "too old resource version: %llu (%llu)",
                                        (unsigned long long)options->rv,
                                        (unsigned long long)store->compacted)));
        w->next = store->end;
        return;
    }
    w->next = object_store_first_after(store, options->rv);
}

struct status *verb_watch(struct request_ctx *c)
{
    struct watch_options options;
    struct status *status = watch_options_read(c, &options);
    if (status != NULL) {
        return status;
    }
    struct apiserver_watch *w = ALLOC_NEW(struct apiserver_watch);
    w->s = c->s;
    w->arena.first = 1024;
    struct url_route route = c->route;
    struct url_params *p = &route.params;
    route.namespace = arena_str(&w->arena, route.namespace);
    p->label_selector = arena_str(&w->arena, p->label_selector);
    p->field_selector = arena_str(&w->arena, p->field_selector);
    if (route.name.n > 0) {
        p->field_selector = arena_printf(&w->arena, "metadata.name=" STR_FMT, STR_ARG(route.name));
    }
    status = list_filter_init(&w->filter, c->kind, &route, &w->arena);
    if (status != NULL) {
        status->message = arena_str(c->a, status->message);
        struct status *copy = status_new(c->a, status->code, "BadRequest", status->message);
        arena_done(&w->arena);
        alloc_free(w);
        return copy;
    }
    w->kind = c->kind;
    w->store = c->kind->store;
    w->form = c->form;
    w->include_object = arena_str(&w->arena, p->include_object);
    list_add(&storage_get_store(&c->s->storage, w->store)->watches, &w->in_store);
    watch_start(w, &options);
    w->ended = w->form == FORM_METADATA_LIST; /* no change is a list: none can be sent */
    w->bookmarks = options.bookmarks;
    w->bookmark_at = loop_now(c->s->loop) + WATCH_BOOKMARK_EVERY;
    w->end_at = loop_now(c->s->loop) + options.timeout;
    loop_timer_init(&w->timer, c->s->loop, watch_on_timer, w);
    watch_set_timer(w);
    c->reply->status = 200;
    c->reply->content_type = STR("application/json");
    c->reply->watch = w;
    return NULL;
}
