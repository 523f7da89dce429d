/* verb_read: GET of one object, and LIST with paging and resourceVersions. */
#include "sandbox/apiserver/continue_token.h"
#include "sandbox/apiserver/apiserver_internal.h"
#include "sandbox/apiserver/encode.h"

#define READ_FUTURE_DELAY SECONDS(3) /* the real server waits that long for a version to come */

struct object *request_find_object(struct request_ctx *c)
{
    return storage_find(&c->s->storage, c->kind->store, c->route.namespace, c->route.name);
}

static struct status *read_future_version(struct request_ctx *c, uint64_t rv)
{
    if (rv <= c->s->storage.rv) {
        return NULL;
    }
    struct status *s =
        status_new(c->a, 504, "Timeout",
                   arena_printf(c->a, "Timeout: Too large resource version: %llu, current: %llu",
                                (unsigned long long)rv, (unsigned long long)c->s->storage.rv));
    struct status_cause *cause = ARENA_NEW(c->a, struct status_cause);
    cause->reason = STR("ResourceVersionTooLarge");
    cause->message = STR("Too large resource version");
    s->first_cause = cause;
    s->last_cause = cause;
    s->retry_after_seconds = 1;
    c->reply->delay = READ_FUTURE_DELAY;
    return s;
}

struct status *verb_get(struct request_ctx *c)
{
    struct object *o = request_find_object(c);
    if (o == NULL) {
        return status_not_found(c->a, c->kind, c->route.name);
    }
    uint64_t rv;
    if (str_to_u64(c->route.params.resource_version, &rv)) {
        struct status *status = read_future_version(c, rv);
        if (status != NULL) {
            return status;
        }
    }
    reply_object(c, 200, o);
    return NULL;
}

struct list_options {
    int64_t limit;
    uint64_t rv; /* list at this version; 0 = the latest */
    struct str start;
};

static struct status *read_continue(struct request_ctx *c, struct list_options *ret)
{
    struct continue_token page;
    struct err err = { 0 };
    if (continue_token_parse(c->route.params.continue_token, c->a, &page, &err) < 0) {
        return status_bad_request(c->a, "invalid continue token: %s", err.msg);
    }
    const struct object_store *store = storage_get_store(&c->s->storage, c->kind->store);
    ret->start = page.start;
    if (page.rv > 0 && (uint64_t)page.rv < store->compacted) {
        struct status *s = status_expired(
            c->a, STR("The provided continue parameter is too old to display a consistent list "
                      "result. You can start a new list without the continue parameter, or use the "
                      "continue token in this response to retrieve the remainder of the results. "
                      "Continuing with the provided token results in an inconsistent list - "
                      "objects that were created, modified, or deleted between the time the first "
                      "chunk was returned and now may show up in the list."));
        page.rv = -1;
        s->continue_token = continue_token_print(&page, c->a);
        return s;
    }
    ret->rv = page.rv > 0 ? (uint64_t)page.rv : 0;
    return read_future_version(c, ret->rv);
}

static struct status *read_version(struct request_ctx *c, struct list_options *ret)
{
    const struct url_params *p = &c->route.params;
    struct str match = p->resource_version_match;
    uint64_t rv = 0;
    if (p->resource_version.n > 0 && !str_to_u64(p->resource_version, &rv)) {
        return status_bad_request(c->a,
                                  "invalid resource version: resourceVersion: Invalid value: "
                                  "\"" STR_FMT "\": strconv.ParseUint: parsing \"" STR_FMT
                                  "\": invalid syntax",
                                  STR_ARG(p->resource_version), STR_ARG(p->resource_version));
    }
    struct status *status = read_future_version(c, rv);
    bool exact = str_eq(match, STR("Exact")) || (match.n == 0 && ret->limit > 0);
    if (status != NULL || rv == 0 || !exact) {
        return status;
    }
    if (rv < storage_get_store(&c->s->storage, c->kind->store)->compacted) {
        return status_expired(c->a, STR("The resourceVersion for the provided list is too old."));
    }
    ret->rv = rv;
    return NULL;
}

static struct status *list_options_read(struct request_ctx *c, struct list_options *ret)
{
    const struct url_params *p = &c->route.params;
    *ret = (struct list_options){ 0 };
    if (p->limit.n > 0 && (!str_to_i64(p->limit, &ret->limit) || ret->limit < 0)) {
        return status_bad_request(c->a, "strconv.ParseInt: parsing \"" STR_FMT "\": invalid syntax",
                                  STR_ARG(p->limit));
    }
    struct status *status = options_check_list(c);
    if (status != NULL) {
        return status;
    }
    return p->continue_token.n > 0 ? read_continue(c, ret) : read_version(c, ret);
}

struct status *verb_list(struct request_ctx *c)
{
    struct list_options options;
    struct list_filter filter;
    struct status *status = list_options_read(c, &options);
    if (status == NULL) {
        status = list_filter_init(&filter, c->kind, &c->route, c->a);
    }
    if (status != NULL) {
        return status;
    }
    const struct object_store *store = storage_get_store(&c->s->storage, c->kind->store);
    struct encode_list list = { .rv = options.rv > 0 ? options.rv : c->s->storage.rv };
    struct object_store view = { 0 };
    view.items = object_store_at(store, list.rv, c->a, &view.n);
    uint32_t at = object_store_lower(&view, options.start);
    if (options.start.n == 0 && filter.namespace.n > 0) {
        at = object_store_lower(&view, filter.namespace);
    }
    struct object **items = ARENA_ARRAY(c->a, struct object *, view.n - at);
    for (; at < view.n && (options.limit == 0 || list.n < (uint64_t)options.limit); at++) {
        if (list_filter_match(&filter, view.items[at])) {
            items[list.n++] = view.items[at];
        }
    }
    list.items = items;
    uint64_t remaining = 0;
    for (uint32_t i = at; i < view.n && options.limit > 0; i++) {
        remaining += list_filter_match(&filter, view.items[i]);
    }
    if (remaining > 0) {
        struct continue_token page = { .rv = (int64_t)list.rv,
                                       .start = arena_concat(c->a, items[list.n - 1]->key,
                                                             (struct str){ .p = "\0", .n = 1 }) };
        list.continue_token = continue_token_print(&page, c->a);
        list.remaining_known = filter.labels.n == 0 && filter.fields.n == 0;
        list.remaining = (int64_t)remaining;
    }
    reply_list(c, &list);
    return NULL;
}
