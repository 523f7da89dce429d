/*
 * One Lease a target. Only one can create it, so whoever has it is the only one who disturbs the
 * target, whatever limits apply and whoever else believes to lead. Leases are watched by their
 * label: a lock that others took or left behind is seen, and the leader's own Lease is not.
 */
#include "base/alloc.h"
#include "base/sha256.h"
#include "base/timestamp.h"
#include "format/json_writer.h"
#include "ledger/arbiter_internal.h"

#define LOCK_LABEL "repairman.k8s.io/lock"
#define LOCK_HOLDER "repairman.k8s.io/holder"
#define LOCK_TARGET "repairman.k8s.io/target"
#define LOCK_GRANT "repairman.k8s.io/grant"
#define LOCK_BACKOFF_BASE MSECONDS(500)
#define LOCK_BACKOFF_MAX SECONDS(30)

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static struct lock *lock_new(struct arbiter *a, struct str name)
{
    struct lock *l = ALLOC_NEW(struct lock);
    l->arbiter = a;
    l->memory.first = 256;
    l->name = arena_str(&l->memory, name);
    l->backoff = (struct backoff){ .base = LOCK_BACKOFF_BASE, .max = LOCK_BACKOFF_MAX };
    list_init(&l->asks);
    (void)map_put(&a->locks, name, l); /* it was not there */
    return l;
}

static void lock_free(struct lock *l)
{
    struct arbiter *a = l->arbiter;
    if (l->call != NULL) {
        api_cancel(a->client->api, STEAL(l->call));
        a->lock_calls--;
    }
    if (l->target.n > 0) {
        (void)map_del(&a->targets, l->target); /* it is this one */
    }
    (void)map_del(&a->locks, l->name);
    buf_done(&l->holder);
    buf_done(&l->holder_name);
    buf_done(&l->uid);
    buf_done(&l->made);
    arena_done(&l->memory);
    alloc_free(l);
}

/* Forgets a lock that is about nothing any more. Should it be there after all, the watch brings it
 * back. */
static void lock_tidy(struct lock *l)
{
    if (!l->there && l->call == NULL && list_empty(&l->asks)) {
        lock_free(l);
    }
}

static struct str lock_name(struct str target, struct arena *out)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[SHA256_BYTES];
    char text[33];
    sha256(target, hash);
    for (size_t i = 0; i < 16; i++) {
        text[2 * i] = digits[hash[i] >> 4];
        text[2 * i + 1] = digits[hash[i] & 15];
    }
    text[32] = '\0';
    return arena_printf(out, "target-%s", text);
}

struct lock *lock_find(const struct arbiter *a, struct str target, struct arena *tmp)
{
    struct lock *l = map_find(&a->targets, target);
    return l != NULL ? l : map_find(&a->locks, lock_name(target, tmp));
}

void lock_join(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    struct str target = arena_printf(&k->memory, STR_FMT "/" STR_FMT "/" STR_FMT,
                                     STR_ARG(target_type_name(k->spec.type)),
                                     STR_ARG(k->spec.space), STR_ARG(k->spec.target));
    struct lock *l = map_find(&a->targets, target);
    if (l == NULL) {
        struct str name = lock_name(target, &k->memory);
        l = map_find(&a->locks, name);
        l = l != NULL ? l : lock_new(a, name);
        l->target = arena_str(&l->memory, target);
        (void)map_put(&a->targets, target, l); /* it was not there */
    }
    list_add(&l->asks, &k->at);
    k->lock = l;
}

void lock_leave(struct ask *k)
{
    struct lock *l = STEAL(k->lock);
    list_del(&k->at);
    l->taker = l->taker == k ? NULL : l->taker;
    if (list_empty(&l->asks)) {
        (void)map_del(&l->arbiter->targets, l->target); /* it is this one */
        l->target = STR_NONE;
    }
    lock_tidy(l);
}

bool lock_is_of(const struct lock *l, struct str uid)
{
    return l->there && str_eq(buf_str(&l->holder), uid);
}

/* ── what is known of it ───────────────────────────────────────────────────────────────────── */

static void lock_set(struct buf *b, struct str text)
{
    buf_reset(b);
    buf_add(b, text);
}

static void lock_learn(struct lock *l, const struct jval *object, uint64_t version)
{
    struct arbiter *a = l->arbiter;
    l->there = true;
    l->version = version;
    l->grant = 0;
    (void)str_to_u32(/* 0 when it does not say */
                     jval_str(
                         jval_get(jval_at(object, "metadata.annotations"), str_from(LOCK_GRANT))),
                     &l->grant);
    lock_set(&l->holder, jval_str(jval_at(object, "spec.holderIdentity")));
    lock_set(&l->holder_name,
             jval_str(jval_get(jval_at(object, "metadata.annotations"), str_from(LOCK_HOLDER))));
    lock_set(&l->uid, jval_str(jval_at(object, "metadata.uid")));
    a->books_dirty = true;
    a->lock_changes++;
    arbiter_soon(a);
}

static void lock_gone(struct lock *l)
{
    l->there = false;
    l->arbiter->lock_changes++;
    l->arbiter->books_dirty = true;
    arbiter_soon(l->arbiter);
}

static void locks_on_list(void *ctx)
{
    struct arbiter *a = ctx;
    a->lock_list++;
}

static int locks_on_object(void *ctx, const struct jval *object, bool deleted, struct err *err)
{
    struct arbiter *a = ctx;
    struct str name = jval_str(jval_at(object, "metadata.name"));
    uint64_t version = store_version(object);
    if (name.n == 0 || version == 0) {
        return err_set(err, ERR_PROTO, "a lease has no name or no version");
    }
    struct lock *l = map_find(&a->locks, name);
    if (l == NULL && deleted) {
        return 0;
    }
    if (l == NULL) {
        l = lock_new(a, name);
    }
    l->list = a->lock_list;
    /* What an answer has said already, or overtaken, is old. */
    if (version <= l->version) {
        return 0;
    }
    if (deleted) {
        l->version = version;
        lock_gone(l);
        lock_tidy(l);
    } else {
        lock_learn(l, object, version);
    }
    return 0;
}

static bool locks_on_synced(void *ctx, uint64_t version)
{
    struct arbiter *a = ctx;
    MAP_EACH (&a->locks, entry) {
        struct lock *l = map_item_value(entry);
        if (l->there && l->list != a->lock_list && l->version <= version) {
            lock_gone(l);
            lock_tidy(l);
        }
    }
    a->locks_synced = true;
    arbiter_soon(a);
    return true;
}

static void locks_on_error(void *ctx, const struct err *err, bool bad UNUSED)
{
    struct arbiter *a = ctx;
    if (a->config.log != NULL) {
        log_debug(a->config.log, "watch of target locks failed", KV_TEXT("error", err->msg));
    }
}

void locks_start(struct arbiter *a)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/apis/coordination.k8s.io/v1/namespaces/"));
    client_add_segment(&path, a->config.space);
    buf_add(&path, STR("/leases"));
    a->locks_path = arena_str(&a->memory, buf_str(&path));
    map_init(&a->locks, loop_random(a->loop), loop_random(a->loop));
    map_init(&a->targets, loop_random(a->loop), loop_random(a->loop));
    reflector_init(&a->locks_reflector, a->client,
                   &(struct reflector_config){
                       .path = a->locks_path,
                       .query = STR("&labelSelector=repairman.k8s.io%2Flock%3Dtarget"),
                       .on_list = locks_on_list,
                       .on_object = locks_on_object,
                       .on_synced = locks_on_synced,
                       .on_error = locks_on_error,
                       .ctx = a,
                   });
    reflector_start(&a->locks_reflector);
}

void locks_stop(struct arbiter *a)
{
    reflector_done(&a->locks_reflector);
    MAP_EACH (&a->locks, entry) {
        struct lock *l = map_item_value(entry);
        ASSERT(list_empty(&l->asks));
        lock_free(l);
    }
    map_done(&a->locks);
    map_done(&a->targets);
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static void lock_back_off(struct lock *l)
{
    struct arbiter *a = l->arbiter;
    l->unsure = true;
    l->retry_at = MAX(loop_now(a->loop) + backoff_next(&l->backoff, loop_random(a->loop)),
                      client_open_at(a->client));
    arbiter_at(a, l->retry_at);
}

static void lock_on_object(struct lock *l, struct str body)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *object = NULL;
    uint64_t version = 0;
    if (json_parse(body, JSON_GO, &tmp, &object, &ignored) == 0) {
        version = store_version(object);
    }
    if (version == 0) {
        lock_back_off(l);
        return;
    }
    l->unsure = false;
    backoff_reset(&l->backoff);
    if (version >= l->version) {
        lock_learn(l, object, version);
    }
}

static void lock_on_reply(void *ctx, const struct api_reply *reply)
{
    struct lock *l = ctx;
    struct arbiter *a = l->arbiter;
    enum retry_verdict verdict = client_note(a->client, l->verb, reply);
    l->call = NULL;
    a->lock_calls--;
    if (verdict == RETRY_ABSENT && l->verb != API_POST) {
        l->unsure = false;
        lock_gone(l);
    } else if (verdict == RETRY_DONE && l->verb == API_DELETE) {
        l->unsure = false;
        backoff_reset(&l->backoff);
        lock_gone(l);
    } else if (verdict == RETRY_DONE) {
        lock_on_object(l, reply->body);
        if (l->verb == API_POST) {
            lock_set(&l->made, buf_str(&l->uid));
        }
    } else if (verdict == RETRY_OBSERVE) {
        l->unsure = true; /* it is there, or it is another: see whose */
    } else {
        /* No namespace to create it in is a 404 as well: that is nothing a second mends. */
        lock_back_off(l);
    }
    arbiter_soon(a);
    lock_tidy(l);
}

static bool lock_may_send(struct lock *l)
{
    struct arbiter *a = l->arbiter;
    if (l->call != NULL) {
        return false; /* its answer wakes us */
    }
    usec_t at = MAX(l->retry_at, client_open_at(a->client));
    if (at > a->now) {
        arbiter_at(a, at);
        return false;
    }
    return a->lock_calls < ARBITER_LOCKS_MAX; /* an answer wakes us */
}

static void lock_send(struct lock *l, enum api_verb verb)
{
    struct arbiter *a = l->arbiter;
    buf_reset(&a->path);
    buf_add(&a->path, a->locks_path);
    if (verb != API_POST) {
        buf_add_char(&a->path, '/');
        buf_add(&a->path, l->name);
    }
    l->verb = verb;
    l->call = api_send(a->client->api,
                       &(struct api_request){
                           .verb = verb,
                           .path = buf_str(&a->path),
                           .body = verb == API_GET ? STR_NONE : buf_str(&a->body),
                       },
                       lock_on_reply, l);
    a->lock_calls++;
}

static void lock_write(struct lock *l, const struct ask *k)
{
    struct arbiter *a = l->arbiter;
    char text[TIMESTAMP_TEXT_MAX];
    buf_reset(&a->body);
    struct json_writer w = json_writer_on(&a->body);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("coordination.k8s.io/v1"));
    jw_pair(&w, "kind", STR("Lease"));
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "name", l->name);
    jw_pair(&w, "namespace", a->config.space);
    jw_key(&w, STR("labels"));
    jw_obj(&w);
    jw_pair(&w, LOCK_LABEL, STR("target"));
    jw_obj_end(&w);
    jw_key(&w, STR("annotations"));
    jw_obj(&w);
    jw_pair(&w, LOCK_HOLDER, k->spec.name);
    jw_pair(&w, LOCK_TARGET, l->target);
    if (k->spec.grant > 0) {
        char number[24];
        int n = snprintf(number, sizeof(number), "%u", k->spec.grant);
        jw_pair(&w, LOCK_GRANT, (struct str){ number, (size_t)n });
    }
    jw_obj_end(&w);
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    jw_pair(&w, "holderIdentity", k->spec.uid);
    jw_pair(&w, "acquireTime", timestamp_print_micro(a->wall, text));
    jw_obj_end(&w);
    jw_obj_end(&w);
}

void lock_take(struct lock *l, struct ask *k)
{
    if ((l->there && !l->unsure) || !lock_may_send(l)) {
        return;
    }
    if (l->unsure) {
        lock_send(l, API_GET);
        return;
    }
    lock_write(l, k);
    lock_send(l, API_POST);
}

void lock_drop(struct lock *l)
{
    struct arbiter *a = l->arbiter;
    if (!lock_may_send(l)) {
        return;
    }
    if (l->unsure) {
        lock_send(l, API_GET);
        return;
    }
    buf_reset(&a->body);
    struct json_writer w = json_writer_on(&a->body);
    jw_obj(&w);
    jw_key(&w, STR("preconditions"));
    jw_obj(&w);
    jw_pair(&w, "uid", buf_str(&l->uid));
    jw_obj_end(&w);
    jw_obj_end(&w);
    lock_send(l, API_DELETE);
}
