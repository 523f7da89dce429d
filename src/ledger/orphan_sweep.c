/*
 * Removes reservations and locks that no ask claims: their controller died after the request had
 * ended, or the request was deleted while no controller ran. The owners have said that they know
 * all of their own. Before anything is removed the server is asked once more, because another
 * controller may have granted a request that our watch does not show yet.
 */
#include "base/alloc.h"
#include "ledger/arbiter_internal.h"

#define ORPHAN_RETRY SECONDS(30)

static enum ask_owner ask_owner_of(struct str name)
{
    return str_find_char(name, '/') < name.n ? ASK_OF_TARGET : ASK_OF_REQUEST;
}

static void orphan_free(struct orphan *o)
{
    struct arbiter *a = o->arbiter;
    if (o->call != NULL) {
        api_cancel(a->client->api, STEAL(o->call));
        a->orphan_calls--;
    }
    (void)map_del(&a->orphans, o->uid); /* it is this one */
    arena_done(&o->memory);
    alloc_free(o);
}

void orphan_forget(struct arbiter *a, struct str uid)
{
    struct orphan *o = map_find(&a->orphans, uid);
    if (o != NULL) {
        orphan_free(o);
    }
}

bool orphan_may_release(const struct arbiter *a, struct str uid, uint32_t grant)
{
    const struct orphan *o = map_find(&a->orphans, uid);
    if (mutated(a->config.client->mutations, MUTATION_STRIKE_BY_REQUEST)) {
        grant = 0;
    }
    return o != NULL && !o->marked && (grant > 0 ? grant < o->closed_below : o->unnumbered);
}

void orphan_sweep_stop(struct arbiter *a)
{
    MAP_EACH (&a->orphans, entry) {
        orphan_free(map_item_value(entry));
    }
    map_done(&a->orphans);
}

/* The request needs its grants no more: it was deleted, another one has its name, or it ended. */
static bool request_has_ended(const struct maintenance_request *m, struct str uid)
{
    return !str_eq(m->uid, uid) || mrequest_phase_ended(m->status.phase);
}

/* Grants with lower numbers are over, whatever happens to the request from now on. */
static uint32_t request_closed_below(const struct maintenance_request *m, struct str uid)
{
    if (request_has_ended(m, uid)) {
        return ASK_GRANTS_ALL;
    }
    uint32_t number = m->status.grant < ASK_GRANTS_ALL - 1 ? m->status.grant : 0;
    return number + (mrequest_phase_granted(m->status.phase) ? 0 : 1);
}

static void orphan_on_reply(void *ctx, const struct api_reply *reply)
{
    struct orphan *o = ctx;
    struct arbiter *a = o->arbiter;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *object = NULL;
    enum retry_verdict verdict = client_note(a->client, API_GET, reply);
    o->call = NULL;
    a->orphan_calls--;
    a->sweep_needed = true;
    arbiter_run_soon(a);
    o->retry_at = loop_now(a->loop) + ORPHAN_RETRY;
    if (verdict == RETRY_ABSENT) {
        o->closed_below = ASK_GRANTS_ALL;
        o->unnumbered = true;
    } else if (verdict == RETRY_DONE &&
               json_parse(reply->body, JSON_GO, &tmp, &object, &ignored) == 0) {
        struct maintenance_request m;
        mrequest_read(object, &tmp, &m);
        o->closed_below = request_closed_below(&m, o->uid);
        o->unnumbered = request_has_ended(&m, o->uid) || m.status.phase == MR_PHASE_EXPIRED;
    }
}

static void orphan_read_request(struct orphan *o)
{
    struct arbiter *a = o->arbiter;
    usec_t at = MAX(o->retry_at, client_open_at(a->client));
    if (at > a->now) {
        arbiter_run_at(a, at);
        return;
    }
    if (a->orphan_calls >= ARBITER_ORPHAN_CALLS_MAX) {
        return; /* an answer makes a turn */
    }
    buf_reset(&a->path);
    buf_add(&a->path, STR(MAINTENANCE_REQUESTS_PATH "/"));
    client_add_segment(&a->path, o->name);
    a->orphan_calls++;
    o->call = api_send(a->client->api,
                       &(struct api_request){ .verb = API_GET, .path = buf_str(&a->path) },
                       orphan_on_reply, o);
}

static bool confirm_holds(const struct jval *object, const struct ask *k, struct arena *tmp)
{
    if (k->spec.owner == ASK_OF_TARGET) {
        return str_eq(jval_str(jval_at(object, "metadata.uid")), k->spec.uid) &&
               k->spec.confirm(k->ctx, object);
    }
    struct maintenance_request m;
    mrequest_read(object, tmp, &m);
    return !request_has_ended(&m, k->spec.uid) && m.status.phase != MR_PHASE_EXPIRED &&
           (k->spec.grant == 0 || k->spec.grant >= request_closed_below(&m, k->spec.uid)) &&
           (m.state == MR_STATE_APPROVED || m.state == MR_STATE_IN_PROGRESS);
}

static void confirm_on_reply(void *ctx, const struct api_reply *reply)
{
    struct ask *k = ctx;
    struct arbiter *a = k->arbiter;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *object = NULL;
    bool good = client_note(a->client, API_GET, reply) == RETRY_DONE &&
                json_parse(reply->body, JSON_GO, &tmp, &object, &ignored) == 0 &&
                confirm_holds(object, k, &tmp);
    k->confirm_call = NULL;
    k->confirm_retry = good ? 0 : loop_now(a->loop) + ARBITER_WRITE_INTERVAL;
    for (uint32_t i = 0; i < k->applied_n && good; i++) {
        k->applied[i].confirmed = k->applied[i].confirm_asked;
    }
    arbiter_run_soon(a);
}

void ask_confirm(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    usec_t at = MAX(k->confirm_retry, client_open_at(a->client));
    if (k->confirm_call != NULL) {
        return; /* its answer makes a turn */
    }
    if (at > a->now) {
        arbiter_run_at(a, at);
        return;
    }
    for (uint32_t i = 0; i < k->applied_n; i++) {
        k->applied[i].confirm_asked = k->applied[i].version;
    }
    if (k->spec.owner == ASK_OF_TARGET) {
        ask_target_path(k);
    } else {
        buf_reset(&a->path);
        buf_add(&a->path, STR(MAINTENANCE_REQUESTS_PATH "/"));
        client_add_segment(&a->path, k->spec.name);
    }
    k->confirm_call = api_send(a->client->api,
                               &(struct api_request){ .verb = API_GET, .path = buf_str(&a->path) },
                               confirm_on_reply, k);
}

static void orphan_step(struct orphan *o)
{
    struct arbiter *a = o->arbiter;
    if (o->closed_below == ASK_GRANTS_ALL || o->call != NULL) {
        return;
    }
    if (o->owner == ASK_OF_REQUEST && o->name.n > 0) {
        orphan_read_request(o);
        return;
    }
    /* The owner is synced: it knows the target, and would have asked by now. */
    if (a->now >= o->since + ARBITER_ORPHAN_WAIT) {
        o->closed_below = ASK_GRANTS_ALL;
        o->unnumbered = true;
        arbiter_run_soon(a);
    } else {
        arbiter_run_at(a, o->since + ARBITER_ORPHAN_WAIT);
    }
}

static void orphan_note(struct arbiter *a, struct str uid, struct str name)
{
    enum ask_owner owner = ask_owner_of(name);
    if (uid.n == 0 || ask_find_by_uid(a, uid) != NULL || !a->owner_synced[owner]) {
        return;
    }
    struct orphan *o = map_find(&a->orphans, uid);
    if (o == NULL) {
        o = ALLOC_NEW(struct orphan);
        o->arbiter = a;
        o->memory.first = 256;
        o->uid = arena_str(&o->memory, uid);
        o->name = arena_str(&o->memory, name);
        o->owner = owner;
        o->since = a->now;
        (void)map_put(&a->orphans, uid, o); /* it was not there */
    }
    o->seen = true;
}

/* A reservation has to be removed before the lock. */
static bool orphan_is_reserved(const struct arbiter *a, struct str uid)
{
    LIST_EACH (&a->limit_states, link) {
        const struct reservation *entry =
            limit_state_reservation(CONTAINER_OF(link, struct limit_state, link), uid);
        if (entry != NULL && orphan_may_release(a, uid, entry->grant)) {
            return true;
        }
    }
    return false;
}

static void orphan_sweep_locks(struct arbiter *a)
{
    if (map_count(&a->orphans) == 0) {
        return;
    }
    MAP_EACH (&a->locks, entry) {
        struct target_lock *l = map_item_value(entry);
        struct str holder = buf_str(&l->holder);
        if (l->exists && orphan_may_release(a, holder, l->grant) &&
            !orphan_is_reserved(a, holder)) {
            target_lock_release(l);
        }
    }
}

void orphan_sweep(struct arbiter *a)
{
    if (!a->may_act) {
        return;
    }
    if (a->sweep_needed) {
        a->sweep_needed = false;
        MAP_EACH (&a->orphans, entry) {
            ((struct orphan *)map_item_value(entry))->seen = false;
        }
        LIST_EACH (&a->limit_states, link) {
            const struct limit *l = limit_of(CONTAINER_OF(link, struct limit_state, link));
            for (uint32_t i = 0; i < l->reservations.n; i++) {
                orphan_note(a, l->reservations.items[i].uid, l->reservations.items[i].name);
            }
        }
        MAP_EACH (&a->locks, entry) {
            const struct target_lock *l = map_item_value(entry);
            if (l->exists) {
                orphan_note(a, buf_str(&l->holder), buf_str(&l->holder_name));
            }
        }
        MAP_EACH (&a->orphans, entry) {
            struct orphan *o = map_item_value(entry);
            if (!o->seen) {
                orphan_free(o);
            }
        }
    }
    MAP_EACH (&a->orphans, entry) {
        struct orphan *o = map_item_value(entry);
        orphan_step(o);
        o->marked = a->config.has_mark != NULL && a->config.has_mark(a->config.ctx, o->uid);
    }
    orphan_sweep_locks(a);
}
