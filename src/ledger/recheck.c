/*
 * The double check, right before an approval: the limits and the target are read once more from the
 * server. One list of the limits serves all asks that wanted a check before it was sent; the target
 * is read for each.
 */
#include "ledger/arbiter_internal.h"

#define RECHECK_BACKOFF_BASE MSECONDS(500)
#define RECHECK_BACKOFF_MAX SECONDS(15)
#define RECHECK_LIMITS_MAX 256u

void ask_recheck(struct ask *k, struct str target_uid,
                 void (*on_rechecked)(void *ctx, const struct err *err), void *ctx)
{
    struct arbiter *a = k->arbiter;
    ASSERT(!k->rechecking && !k->ending);
    k->rechecking = true;
    k->recheck_listed = false;
    k->recheck_read = false;
    k->recheck_err = (struct err){ 0 };
    k->recheck_uid = arena_str(&k->memory, target_uid);
    k->recheck_retry = 0;
    /* A list that is under way may be older than what this check has to see. */
    k->recheck_list = a->recheck_list + 1;
    k->on_rechecked = on_rechecked;
    k->recheck_ctx = ctx;
    arbiter_run_soon(a);
}

void recheck_cancel(struct ask *k)
{
    if (k->recheck_call != NULL) {
        api_cancel(k->arbiter->client->api, STEAL(k->recheck_call));
    }
    if (k->confirm_call != NULL) {
        api_cancel(k->arbiter->client->api, STEAL(k->confirm_call));
    }
    k->rechecking = false;
}

void recheck_stop(struct arbiter *a)
{
    if (a->recheck_call != NULL) {
        api_cancel(a->client->api, STEAL(a->recheck_call));
    }
}

/* ── the limits ────────────────────────────────────────────────────────────────────────────── */

/* A limit that the watch has not brought yet counts already. One that is not known although the
 * watch is past its version has been deleted since. */
static bool recheck_learn_limit(struct arbiter *a, const struct jval *object)
{
    struct err ignored = { 0 };
    struct str name = jval_str(jval_at(object, "metadata.name"));
    if (store_find(&a->limits.store, name) != NULL) {
        return store_learn(&a->limits.store, object, &ignored) >= 0;
    }
    return store_version(object) <= a->limits.store.version_max ||
           store_observe(&a->limits.store, object, /* deleted= */ false, &ignored) >= 0;
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
    a->recheck_call = NULL;
    arbiter_run_soon(a);
    JVAL_EACH (good ? jval_get(list, STR("items")) : NULL, object) {
        good = recheck_learn_limit(a, object) && good;
    }
    if (!good && verdict != RETRY_ABSENT) {
        a->recheck_retry =
            loop_now(a->loop) + backoff_next(&a->recheck_backoff, loop_random(a->loop));
        return;
    }
    a->recheck_retry = 0;
    backoff_reset(&a->recheck_backoff);
    LIST_EACH (&a->queue, link) {
        struct ask *k = CONTAINER_OF(link, struct ask, link);
        k->recheck_listed =
            k->recheck_listed || (k->rechecking && k->recheck_list <= a->recheck_list);
    }
}

static void recheck_list_limits(struct arbiter *a)
{
    usec_t at = MAX(a->recheck_retry, client_open_at(a->client));
    if (a->recheck_call != NULL) {
        return;
    }
    if (at > a->now) {
        arbiter_run_at(a, at);
        return;
    }
    a->recheck_list++;
    if (a->recheck_backoff.base == 0) {
        a->recheck_backoff =
            (struct backoff){ .base = RECHECK_BACKOFF_BASE, .max = RECHECK_BACKOFF_MAX };
    }
    a->recheck_call = api_send(
        a->client->api,
        &(struct api_request){ .verb = API_GET, .path = STR(MAINTENANCE_LIMITS_PATH) }, on_list, a);
}

/* ── the target ────────────────────────────────────────────────────────────────────────────── */

static void recheck_limit(struct ask *k, const struct limit_state *b, struct err *err)
{
    const struct limit *l = limit_of(b);
    struct arbiter *a = k->arbiter;
    struct limit_counts t = limit_state_server_counts(b);
    const struct reservation *entry = limit_state_reservation(b, k->spec.uid);
    if (entry == NULL || !ask_grant_is_current(k, entry->grant)) {
        (void)err_set(err, ERR_CONFLICT, "limit " STR_FMT ": the reservation is not there",
                      STR_ARG(l->name));
    } else if (l->paused) {
        (void)err_set(err, ERR_BUSY, "limit " STR_FMT " is paused", STR_ARG(l->name));
    } else if (!b->usable || !population_known(a, l->type)) {
        (void)err_set(err, ERR_BUSY, "limit " STR_FMT " cannot be computed", STR_ARG(l->name));
    } else if (limit_is_overcommitted(l, &t) && !(k->was_unavailable && l->repair_unavailable &&
                                                  t.granted <= limit_nominal(l, t.population))) {
        (void)err_set(err, ERR_BUSY,
                      "limit " STR_FMT ": %u granted and %u unavailable of %u allowed",
                      STR_ARG(l->name), t.granted, t.unavailable, limit_nominal(l, t.population));
    }
}

static void recheck_target(struct ask *k, const struct jval *object, struct err *err)
{
    const struct jval *labels = jval_at(object, "metadata.labels");
    struct str uid = jval_str(jval_at(object, "metadata.uid"));
    struct limit_state *limits[RECHECK_LIMITS_MAX];
    struct counted_object m = {
        .type = k->spec.type,
        .name = k->target_name,
        .namespace = k->spec.namespace,
        .bare_name = k->spec.target,
        .lookup = counted_object_lookup_jval,
        .ctx = (void *)(uintptr_t)labels,
    };
    if (object != NULL && k->recheck_uid.n > 0 && !str_eq(uid, k->recheck_uid)) {
        (void)err_set(err, ERR_CONFLICT, STR_FMT " " STR_FMT " is another one than it was",
                      STR_ARG(target_type_name(k->spec.type)), STR_ARG(k->target_name));
        return;
    }
    population_recount(k->arbiter); /* the list may have brought new limits */
    uint32_t n = population_limits(k->arbiter, &m, limits, RECHECK_LIMITS_MAX);
    for (uint32_t i = 0; i < n && err->code == 0; i++) {
        if (ask_applied_limit(k, limits[i]) == NULL) {
            (void)err_set(err, ERR_CONFLICT, "limit " STR_FMT " applies now, and did not",
                          STR_ARG(limit_of(limits[i])->name));
        } else {
            recheck_limit(k, limits[i], err);
        }
    }
    for (uint32_t i = 0; i < k->applied_n && err->code == 0; i++) {
        bool applies = k->applied[i].limit->item == NULL;
        for (uint32_t j = 0; j < n; j++) {
            applies = applies || limits[j] == k->applied[i].limit;
        }
        if (!applies) {
            (void)err_set(err, ERR_CONFLICT, "limit " STR_FMT " does not apply any more",
                          STR_ARG(limit_of(k->applied[i].limit)->name));
        }
    }
}

static void recheck_on_target(void *ctx, const struct api_reply *reply)
{
    struct ask *k = ctx;
    struct arbiter *a = k->arbiter;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *object = NULL;
    enum retry_verdict verdict = client_note(a->client, API_GET, reply);
    k->recheck_call = NULL;
    arbiter_run_soon(a);
    if (verdict == RETRY_ABSENT && !a->config.grant_missing) {
        (void)err_set(&k->recheck_err, ERR_NOTFOUND, STR_FMT " " STR_FMT " is gone",
                      STR_ARG(target_type_name(k->spec.type)), STR_ARG(k->target_name));
        k->recheck_read = true;
        return;
    }
    if (verdict != RETRY_ABSENT &&
        (verdict != RETRY_DONE || json_parse(reply->body, JSON_GO, &tmp, &object, &ignored) < 0)) {
        k->recheck_retry = loop_now(a->loop) + RECHECK_BACKOFF_BASE;
        return;
    }
    recheck_target(k, object, &k->recheck_err);
    k->recheck_read = true;
}

void ask_target_path(const struct ask *k)
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
        client_add_segment(&a->path, k->spec.namespace);
        buf_add_char(&a->path, '/');
    }
    buf_add(&a->path, str_from(paths[k->spec.type]));
    client_add_segment(&a->path, k->spec.target);
}

static void recheck_read_target(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    usec_t at = MAX(k->recheck_retry, client_open_at(a->client));
    if (k->recheck_call != NULL) {
        return;
    }
    if (at > a->now) {
        arbiter_run_at(a, at);
        return;
    }
    ask_target_path(k);
    k->recheck_call = api_send(a->client->api,
                               &(struct api_request){ .verb = API_GET, .path = buf_str(&a->path) },
                               recheck_on_target, k);
}

/* ── steps ─────────────────────────────────────────────────────────────────────────────────── */

/* True when the check is over and the ask's owner was told; any ask may have changed then. */
static bool recheck_step_ask(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    if (!k->recheck_listed) {
        if (!a->limits.absent) {
            recheck_list_limits(a);
            return false;
        }
        k->recheck_listed = true;
    }
    if (!k->recheck_read) {
        recheck_read_target(k);
        return false;
    }
    struct err err = k->recheck_err;
    struct str paused = arbiter_paused(a);
    if (err.code == 0 && paused.n > 0) {
        (void)err_set(&err, ERR_BUSY, STR_FMT, STR_ARG(paused));
    }
    k->rechecking = false;
    k->on_rechecked(k->recheck_ctx, err.code == 0 ? NULL : &err);
    return true;
}

void recheck_step(struct arbiter *a)
{
    bool again = true;
    while (again) {
        again = false;
        LIST_EACH (&a->queue, link) {
            struct ask *k = CONTAINER_OF(link, struct ask, link);
            if (k->rechecking && recheck_step_ask(k)) {
                again = true; /* the owner may have added and ended asks */
                break;
            }
        }
    }
}
