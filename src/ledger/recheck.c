/*
 * The double check, right before an approval: everything it rests on is read once more from the
 * server. One list of the limits serves all who asked before it was sent; the target is read for
 * each.
 */
#include "ledger/arbiter_internal.h"

#define DOUBLE_BACKOFF_BASE MSECONDS(500)
#define DOUBLE_BACKOFF_MAX SECONDS(15)
#define DOUBLE_BOOKS_MAX 256u

void ask_check(struct ask *k, struct str target_uid,
               void (*on_checked)(void *ctx, const struct err *err), void *ctx)
{
    struct arbiter *a = k->arbiter;
    ASSERT(!k->checking && !k->ending);
    k->checking = true;
    k->check_listed = false;
    k->check_read = false;
    k->check_err = (struct err){ 0 };
    k->check_uid = arena_str(&k->memory, target_uid);
    k->check_retry = 0;
    /* A list that is on its way may have been made before what this check must see. */
    k->check_list = a->check_list + 1;
    k->on_checked = on_checked;
    k->check_ctx = ctx;
    arbiter_soon(a);
}

void double_end(struct ask *k)
{
    if (k->check_call != NULL) {
        api_cancel(k->arbiter->client->api, STEAL(k->check_call));
    }
    if (k->fact_call != NULL) {
        api_cancel(k->arbiter->client->api, STEAL(k->fact_call));
    }
    k->checking = false;
}

void double_stop(struct arbiter *a)
{
    if (a->check_call != NULL) {
        api_cancel(a->client->api, STEAL(a->check_call));
    }
}

/* ── the limits ────────────────────────────────────────────────────────────────────────────── */

/* One that the watch has not brought yet counts already. One that is not known although the watch
 * is beyond it has been deleted since. */
static bool learn_limit(struct arbiter *a, const struct jval *object)
{
    struct err ignored = { 0 };
    struct str name = jval_str(jval_at(object, "metadata.name"));
    if (store_find(&a->limits, name) != NULL) {
        return store_learn(&a->limits, object, &ignored) >= 0;
    }
    return store_version(object) <= a->limits.version_max ||
           store_observe(&a->limits, object, /* deleted= */ false, &ignored) >= 0;
}

static void on_list(void *ctx, const struct api_reply *reply)
{
    struct arbiter *a = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *list = NULL;
    enum retry_verdict verdict = client_note(a->client, API_GET, reply);
    bool good = verdict == RETRY_DONE &&
                json_parse(reply->body, JSON_GO, &tmp, &list, &ignored) == 0 &&
                jval_kind(jval_get(list, STR("items"))) == JARR;
    a->check_call = NULL;
    arbiter_soon(a);
    JVAL_EACH (good ? jval_get(list, STR("items")) : NULL, object) {
        good = learn_limit(a, object) && good;
    }
    if (!good && verdict != RETRY_ABSENT) {
        a->check_retry = loop_now(a->loop) + backoff_next(&a->check_backoff, loop_random(a->loop));
        return;
    }
    a->check_retry = 0;
    backoff_reset(&a->check_backoff);
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        k->check_listed = k->check_listed || (k->checking && k->check_list <= a->check_list);
    }
}

static void list_limits(struct arbiter *a)
{
    usec_t at = MAX(a->check_retry, client_open_at(a->client));
    if (a->check_call != NULL) {
        return;
    }
    if (at > a->now) {
        arbiter_at(a, at);
        return;
    }
    a->check_list++;
    if (a->check_backoff.base == 0) {
        a->check_backoff =
            (struct backoff){ .base = DOUBLE_BACKOFF_BASE, .max = DOUBLE_BACKOFF_MAX };
    }
    a->check_call = api_send(
        a->client->api, &(struct api_request){ .verb = API_GET, .path = STR(ARBITER_LIMITS_PATH) },
        on_list, a);
}

/* ── the target ────────────────────────────────────────────────────────────────────────────── */

static void check_limit(struct ask *k, const struct book *b, struct err *err)
{
    const struct limit *l = book_limit(b);
    struct arbiter *a = k->arbiter;
    struct limit_tally t = { .population = b->population,
                             .granted = l->books.targets,
                             .unavailable = map_count(&b->hits) };
    MAP_EACH (&b->hits, entry) {
        bool counted = reserves_has_target(&l->books, map_item_name(entry));
        t.unavailable -= counted && !a->config.legacy_double_count ? 1 : 0;
    }
    const struct reserve *entry = book_find(b, k->spec.uid);
    if (entry == NULL || !ask_is_mine(k, entry->grant)) {
        (void)err_set(err, ERR_CONFLICT, "limit " STR_FMT ": the reservation is not there",
                      STR_ARG(l->name));
    } else if (l->paused) {
        (void)err_set(err, ERR_BUSY, "limit " STR_FMT " is paused", STR_ARG(l->name));
    } else if (!b->usable || !population_known(a, l->type)) {
        (void)err_set(err, ERR_BUSY, "limit " STR_FMT " cannot be computed", STR_ARG(l->name));
    } else if (limit_is_over(l, &t) && !(k->was_unavailable && l->repair_unavailable &&
                                         t.granted <= limit_nominal(l, t.population))) {
        (void)err_set(err, ERR_BUSY,
                      "limit " STR_FMT ": %u granted and %u unavailable of %u allowed",
                      STR_ARG(l->name), t.granted, t.unavailable, limit_nominal(l, t.population));
    }
}

static void check_target(struct ask *k, const struct jval *object, struct err *err)
{
    const struct jval *labels = jval_at(object, "metadata.labels");
    struct str uid = jval_str(jval_at(object, "metadata.uid"));
    struct book *books[DOUBLE_BOOKS_MAX];
    struct member m = {
        .type = k->spec.type,
        .name = k->full,
        .space = k->spec.space,
        .plain = k->spec.target,
        .lookup = member_lookup_jval,
        .ctx = (void *)(uintptr_t)labels,
    };
    if (object != NULL && k->check_uid.n > 0 && !str_eq(uid, k->check_uid)) {
        (void)err_set(err, ERR_CONFLICT, STR_FMT " " STR_FMT " is another one than it was",
                      STR_ARG(target_type_name(k->spec.type)), STR_ARG(k->full));
        return;
    }
    population_recount(k->arbiter); /* the list may have brought limits that nobody counted yet */
    uint32_t n = population_books(k->arbiter, &m, books, DOUBLE_BOOKS_MAX);
    for (uint32_t i = 0; i < n && err->code == 0; i++) {
        if (ask_part_of(k, books[i]) == NULL) {
            (void)err_set(err, ERR_CONFLICT, "limit " STR_FMT " applies now, and did not",
                          STR_ARG(book_limit(books[i])->name));
        } else {
            check_limit(k, books[i], err);
        }
    }
    for (uint32_t i = 0; i < k->part_n && err->code == 0; i++) {
        bool applies = k->parts[i].book->item == NULL;
        for (uint32_t j = 0; j < n; j++) {
            applies = applies || books[j] == k->parts[i].book;
        }
        if (!applies) {
            (void)err_set(err, ERR_CONFLICT, "limit " STR_FMT " does not apply any more",
                          STR_ARG(book_limit(k->parts[i].book)->name));
        }
    }
}

static void on_target(void *ctx, const struct api_reply *reply)
{
    struct ask *k = ctx;
    struct arbiter *a = k->arbiter;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *object = NULL;
    enum retry_verdict verdict = client_note(a->client, API_GET, reply);
    k->check_call = NULL;
    arbiter_soon(a);
    if (verdict == RETRY_ABSENT && !a->config.grant_missing) {
        (void)err_set(&k->check_err, ERR_NOTFOUND, STR_FMT " " STR_FMT " is gone",
                      STR_ARG(target_type_name(k->spec.type)), STR_ARG(k->full));
        k->check_read = true;
        return;
    }
    if (verdict != RETRY_ABSENT &&
        (verdict != RETRY_DONE || json_parse(reply->body, JSON_GO, &tmp, &object, &ignored) < 0)) {
        k->check_retry = loop_now(a->loop) + DOUBLE_BACKOFF_BASE;
        return;
    }
    check_target(k, object, &k->check_err);
    k->check_read = true;
}

void double_target_path(const struct ask *k)
{
    static const char *const paths[TARGET_TYPES] = {
        [TARGET_NODE] = "/api/v1/nodes/",
        [TARGET_DEPLOYMENT] = "deployments/",
        [TARGET_DAEMONSET] = "daemonsets/",
        [TARGET_STATEFULSET] = "statefulsets/",
    };
    struct arbiter *a = k->arbiter;
    buf_reset(&a->path);
    if (k->spec.type != TARGET_NODE) {
        buf_add(&a->path, STR("/apis/apps/v1/namespaces/"));
        client_add_segment(&a->path, k->spec.space);
        buf_add_char(&a->path, '/');
    }
    buf_add(&a->path, str_from(paths[k->spec.type]));
    client_add_segment(&a->path, k->spec.target);
}

static void read_target(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    usec_t at = MAX(k->check_retry, client_open_at(a->client));
    if (k->check_call != NULL) {
        return;
    }
    if (at > a->now) {
        arbiter_at(a, at);
        return;
    }
    double_target_path(k);
    k->check_call =
        api_send(a->client->api,
                 &(struct api_request){ .verb = API_GET, .path = buf_str(&a->path) }, on_target, k);
}

/* ── the turn's part ───────────────────────────────────────────────────────────────────────── */

/* True when the check is over and its owner was told; anything may have changed then. */
static bool ask_check_step(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    if (!k->check_listed) {
        if (!a->limits_absent) {
            list_limits(a);
            return false;
        }
        k->check_listed = true;
    }
    if (!k->check_read) {
        read_target(k);
        return false;
    }
    struct err err = k->check_err;
    k->checking = false;
    k->on_checked(k->check_ctx, err.code == 0 ? NULL : &err);
    return true;
}

void double_step(struct arbiter *a)
{
    bool again = true;
    while (again) {
        again = false;
        LIST_EACH (&a->queue, link) {
            struct ask *k = CONTAINER_OF(link, struct ask, link);
            if (k->checking && ask_check_step(k)) {
                again = true; /* the owner may have added and ended asks */
                break;
            }
        }
    }
}
