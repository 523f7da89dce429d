/*
 * Locks of targets: one Lease for each target that is disturbed. Only one controller can create it,
 * so its holder alone disturbs the target, whatever limits apply and whatever other controllers
 * believe. The Leases are watched by their label: locks that other controllers took or left behind
 * are seen, and the leader's own Lease is not among them.
 */
#include "base/alloc.h"
#include "base/hex.h"
#include "base/timestamp.h"
#include "format/digest.h"
#include "format/json_writer.h"
#include "ledger/arbiter_internal.h"

/* After a conflict the Lease is there already, or is another one: it is read at once. */
static const struct writer_rules target_lock_rules = {
    .refused = { MSECONDS(500), SECONDS(30) },
    .failed = { MSECONDS(500), SECONDS(30) },
};

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static struct target_lock *target_lock_new(struct arbiter *a, struct str name)
{
    struct target_lock *l = ALLOC_NEW(struct target_lock);
    l->arbiter = a;
    l->memory.first = 256;
    l->name = arena_str(&l->memory, name);
    writer_init(&l->writer, a->client, &target_lock_rules);
    list_init(&l->asks);
    (void)map_put(&a->locks, name, l); /* it was not there */
    return l;
}

static void target_lock_free(struct target_lock *l)
{
    struct arbiter *a = l->arbiter;
    a->lock_calls -= l->writer.call != NULL ? 1 : 0;
    writer_cancel(&l->writer);
    if (l->target.n > 0) {
        (void)map_del(&a->targets, l->target); /* it is this one */
    }
    (void)map_del(&a->locks, l->name);
    buf_done(&l->holder);
    buf_done(&l->holder_name);
    buf_done(&l->uid);
    buf_done(&l->created_uid);
    arena_done(&l->memory);
    alloc_free(l);
}

/* Forgets a lock without a Lease, request or ask. Should the Lease be there after all, the watch
 * brings it back. */
static void target_lock_free_if_unused(struct target_lock *l)
{
    if (!l->exists && l->writer.call == NULL && list_empty(&l->asks)) {
        target_lock_free(l);
    }
}

static struct str target_lock_name(struct str target, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf name = { 0 };
    unsigned char hash[SHA256_BYTES];
    sha256(target, hash);
    buf_add(&name, STR("target-"));
    hex_add(&name, hash, 16, /* upper= */ false);
    return arena_str(out, buf_str(&name));
}

struct target_lock *target_lock_find(const struct arbiter *a, struct str target, struct arena *tmp)
{
    struct target_lock *l = map_find(&a->targets, target);
    return l != NULL ? l : map_find(&a->locks, target_lock_name(target, tmp));
}

void target_lock_join(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    struct str target = arena_printf(&k->memory, STR_FMT "/" STR_FMT "/" STR_FMT,
                                     STR_ARG(target_type_name(k->spec.type)),
                                     STR_ARG(k->spec.namespace), STR_ARG(k->spec.target));
    struct target_lock *l = map_find(&a->targets, target);
    if (l == NULL) {
        struct str name = target_lock_name(target, &k->memory);
        l = map_find(&a->locks, name);
        l = l != NULL ? l : target_lock_new(a, name);
        l->target = arena_str(&l->memory, target);
        (void)map_put(&a->targets, target, l); /* it was not there */
    }
    list_add(&l->asks, &k->lock_link);
    k->lock = l;
}

void target_lock_leave(struct ask *k)
{
    struct target_lock *l = STEAL(k->lock);
    list_del(&k->lock_link);
    l->taker = l->taker == k ? NULL : l->taker;
    if (list_empty(&l->asks)) {
        (void)map_del(&l->arbiter->targets, l->target); /* it is this one */
        l->target = STR_NONE;
    }
    target_lock_free_if_unused(l);
}

bool target_lock_is_held_by(const struct target_lock *l, struct str uid)
{
    return l->exists && str_eq(buf_str(&l->holder), uid);
}

/* ── the watch ─────────────────────────────────────────────────────────────────────────────── */

static void target_lock_set_text(struct buf *b, struct str text)
{
    buf_reset(b);
    buf_add(b, text);
}

static void target_lock_read(struct target_lock *l, const struct jval *object, uint64_t version)
{
    struct arbiter *a = l->arbiter;
    l->exists = true;
    l->version = version;
    l->grant = 0;
    (void)str_to_u32(/* 0 when it does not say */
                     jval_str(jval_get(jval_at(object, "metadata.annotations"), KEY_LOCK_GRANT)),
                     &l->grant);
    l->grant = l->grant <= MREQUEST_GRANT_MAX ? l->grant : 0; /* no request gets so far */
    target_lock_set_text(&l->holder, jval_str(jval_at(object, "spec.holderIdentity")));
    target_lock_set_text(&l->holder_name, jval_str(jval_get(jval_at(object, "metadata.annotations"),
                                                            KEY_LOCK_HOLDER)));
    target_lock_set_text(&l->uid, jval_str(jval_at(object, "metadata.uid")));
    a->sweep_needed = true;
    a->lock_changes++;
    arbiter_run_soon(a);
}

static void target_lock_on_gone(struct target_lock *l)
{
    l->exists = false;
    l->arbiter->lock_changes++;
    l->arbiter->sweep_needed = true;
    arbiter_run_soon(l->arbiter);
}

static void target_locks_on_list(void *ctx)
{
    struct arbiter *a = ctx;
    a->lock_list++;
}

static int target_locks_on_object(void *ctx, const struct jval *object, bool deleted,
                                  struct err *err)
{
    struct arbiter *a = ctx;
    struct str name = jval_str(jval_at(object, "metadata.name"));
    uint64_t version = store_version(object);
    if (name.n == 0 || version == 0) {
        return err_set(err, ERR_PROTO, "a lease has no name or no version");
    }
    struct target_lock *l = map_find(&a->locks, name);
    if (l == NULL && deleted) {
        return 0;
    }
    if (l == NULL) {
        l = target_lock_new(a, name);
    }
    l->list = a->lock_list;
    /* The answer to a request of ours has brought this version already, or a newer one. */
    if (version <= l->version) {
        return 0;
    }
    if (deleted) {
        l->version = version;
        target_lock_on_gone(l);
        target_lock_free_if_unused(l);
    } else {
        target_lock_read(l, object, version);
    }
    return 0;
}

static bool target_locks_on_synced(void *ctx, uint64_t version)
{
    struct arbiter *a = ctx;
    MAP_EACH (&a->locks, entry) {
        struct target_lock *l = map_item_value(entry);
        if (l->exists && l->list != a->lock_list && l->version <= version) {
            target_lock_on_gone(l);
            target_lock_free_if_unused(l);
        }
    }
    a->target_locks_synced = true;
    arbiter_run_soon(a);
    return true;
}

static void target_locks_on_error(void *ctx, const struct err *err, bool bad UNUSED)
{
    struct arbiter *a = ctx;
    if (a->config.log != NULL) {
        log_debug(a->config.log, "watch of target locks failed", KV_TEXT("error", err->msg));
    }
}

void target_locks_start(struct arbiter *a)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/apis/coordination.k8s.io/v1/namespaces/"));
    client_add_segment(&path, a->config.namespace);
    buf_add(&path, STR("/leases"));
    a->target_locks_path = arena_str(&a->memory, buf_str(&path));
    map_init(&a->locks, loop_random(a->loop), loop_random(a->loop));
    map_init(&a->targets, loop_random(a->loop), loop_random(a->loop));
    reflector_init(&a->target_locks_reflector, a->client,
                   &(struct reflector_config){
                       .path = a->target_locks_path,
                       .query = STR("&labelSelector=" KEY_LOCK_QUERY "%3Dtarget"),
                       .on_list = target_locks_on_list,
                       .on_object = target_locks_on_object,
                       .on_synced = target_locks_on_synced,
                       .on_error = target_locks_on_error,
                       .ctx = a,
                   });
    reflector_start(&a->target_locks_reflector);
}

void target_locks_stop(struct arbiter *a)
{
    reflector_done(&a->target_locks_reflector);
    MAP_EACH (&a->locks, entry) {
        struct target_lock *l = map_item_value(entry);
        ASSERT(list_empty(&l->asks));
        target_lock_free(l);
    }
    map_done(&a->locks);
    map_done(&a->targets);
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static void target_lock_on_reply(void *ctx, const struct api_reply *reply)
{
    struct target_lock *l = ctx;
    struct arbiter *a = l->arbiter;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    enum retry_verdict verdict = writer_on_reply(&l->writer, reply, NULL, l->name, &r);
    enum api_verb verb = l->writer.verb;
    a->lock_calls--;
    if (verdict == RETRY_ABSENT && verb == API_POST) {
        writer_back_off(&l->writer); /* the namespace is missing, and will be for a while */
    } else if (verdict == RETRY_ABSENT || (verdict == RETRY_DONE && verb == API_DELETE)) {
        l->writer.must_read = false;
        target_lock_on_gone(l);
    } else if (verdict == RETRY_DONE) {
        uint64_t version = store_version(r.object);
        if (version >= l->version) {
            target_lock_read(l, r.object, version);
        }
        if (verb == API_POST) {
            target_lock_set_text(&l->created_uid, buf_str(&l->uid));
        }
    } else if (verdict != RETRY_OBSERVE) {
        arbiter_run_at(a, writer_ready_at(&l->writer, 0));
    }
    arbiter_run_soon(a);
    target_lock_free_if_unused(l);
}

static bool target_lock_may_send(struct target_lock *l)
{
    struct arbiter *a = l->arbiter;
    if (l->writer.call != NULL) {
        return false; /* its answer makes a turn */
    }
    usec_t at = writer_ready_at(&l->writer, l->version);
    if (at > a->now) {
        arbiter_run_at(a, at);
        return false;
    }
    return a->lock_calls < ARBITER_LOCK_CALLS_MAX; /* otherwise an answer makes a turn */
}

static void target_lock_send(struct target_lock *l, enum api_verb verb)
{
    struct arbiter *a = l->arbiter;
    buf_reset(&a->path);
    buf_add(&a->path, a->target_locks_path);
    if (verb != API_POST) {
        buf_add_char(&a->path, '/');
        buf_add(&a->path, l->name);
    }
    writer_send(&l->writer,
                &(struct api_request){
                    .verb = verb,
                    .path = buf_str(&a->path),
                    .body = verb == API_GET ? STR_NONE : buf_str(&a->body),
                },
                l->version, target_lock_on_reply, l);
    a->lock_calls++;
}

static void target_lock_compose(struct target_lock *l, const struct ask *k)
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
    jw_pair(&w, "namespace", a->config.namespace);
    jw_key(&w, STR("labels"));
    jw_obj(&w);
    jw_pair(&w, KEY_LOCK.p, STR("target"));
    jw_obj_end(&w);
    jw_key(&w, STR("annotations"));
    jw_obj(&w);
    jw_pair(&w, KEY_LOCK_HOLDER.p, k->spec.name);
    jw_pair(&w, KEY_LOCK_TARGET.p, l->target);
    if (k->spec.grant > 0) {
        char number[24];
        int n = snprintf(number, sizeof(number), "%u", k->spec.grant);
        jw_pair(&w, KEY_LOCK_GRANT.p, (struct str){ number, (size_t)n });
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

void target_lock_take(struct target_lock *l, struct ask *k)
{
    if ((l->exists && !l->writer.must_read) || !target_lock_may_send(l)) {
        return;
    }
    if (l->writer.must_read) {
        target_lock_send(l, API_GET);
        return;
    }
    target_lock_compose(l, k);
    target_lock_send(l, API_POST);
}

void target_lock_release(struct target_lock *l)
{
    struct arbiter *a = l->arbiter;
    if (!target_lock_may_send(l)) {
        return;
    }
    if (l->writer.must_read) {
        target_lock_send(l, API_GET);
        return;
    }
    writer_print_delete(buf_str(&l->uid), 0, &a->body);
    target_lock_send(l, API_DELETE);
}
