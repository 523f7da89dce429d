/*
 * Evictions and deletions of pods: sends them, and takes note of the server's answers.
 */
#include "base/alloc.h"
#include "drain/drain_internal.h"
#include "format/json_writer.h"

bool evict_may_send(const struct drain *d)
{
    return d->in_flight < DRAIN_IN_FLIGHT_MAX && client_open(d->drains->config.client);
}

void eviction_forget_pod(struct eviction *f)
{
    if (f->pod_state != NULL) {
        f->pod_state->eviction = NULL;
        f->pod_state = NULL;
    }
}

void eviction_free(struct eviction *f)
{
    struct drain *d = f->drain;
    if (f->call != NULL) {
        api_cancel(d->drains->config.client->api, STEAL(f->call));
        d->in_flight--;
    }
    if (list_linked(&f->unsettled_link)) {
        list_del(&f->unsettled_link);
        f->pdb->unsettled_n--;
        pdb_state_mark(f->pdb);
    }
    eviction_forget_pod(f);
    list_del(&f->link);
    arena_done(&f->memory);
    alloc_free(f);
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

/* Short for failures that end by themselves, long for those that somebody has to mend. */
#define FAILED_BASE MSECONDS(500)
#define FAILED_MAX SECONDS(30)
#define DENIED_BASE SECONDS(10)
#define DENIED_MAX MINUTES(5)
/* For a refusal by a budget that is not watched: no event tells when to try again. */
#define UNWATCHED_BASE SECONDS(2)
#define UNWATCHED_MAX SECONDS(30)
#define DRAIN_DENIALS_MAX 100u /* told of a drain: one a namespace, and some of webhooks */

static void pod_state_back_off(struct drain_pod_state *p, usec_t base, usec_t max)
{
    struct client *client = p->drain->drains->config.client;
    if (p->backoff.base != base) {
        p->backoff = (struct backoff){ .base = base, .max = max };
    }
    usec_t wait = backoff_next(&p->backoff, loop_random(client->loop));
    p->retry_at = MAX(loop_now(client->loop) + wait, client_open_at(client));
}

/* True when a disruption budget gave this 429, with its words. An overloaded server's has no such
 * cause. */
static bool eviction_refused_by_pdb(const struct api_reply *reply, struct arena *tmp,
                                    struct str *ret_why)
{
    const struct jval *root = NULL;
    struct err ignored = { 0 };
    if (reply->status != 429 || json_parse(reply->body, JSON_GO, tmp, &root, &ignored) < 0) {
        return false;
    }
    JVAL_EACH (jval_at(root, "details.causes"), cause) {
        if (str_eq(jval_str(jval_get(cause, STR("reason"))), STR("DisruptionBudget"))) {
            *ret_why = str_sub(jval_str(jval_get(cause, STR("message"))), 0, 300);
            return true;
        }
    }
    return false;
}

static void eviction_on_refused(struct eviction *f, struct str why)
{
    struct drain *d = f->drain;
    struct drain_pod_state *p = f->pod_state;
    struct pdb_state *w = f->pdb;
    usec_t now = loop_now(d->drains->loop);
    d->refused++;
    d->drains->stats.refused++;
    if (p == NULL) {
        return;
    }
    p->refused_at = p->refused_at < 0 ? now : p->refused_at;
    buf_reset(&p->server_message);
    buf_add(&p->server_message, why);
    usec_t retry = d->spec.retry;
    if (w == NULL) {
        pod_state_back_off(p, retry > 0 ? retry : UNWATCHED_BASE,
                           retry > 0 ? retry : UNWATCHED_MAX);
    } else if (f->exempt) {
        p->unready_retry_at = now + backoff_next(&p->unready_backoff, loop_random(d->drains->loop));
    } else {
        w->refused_version = MAX(w->refused_version, f->version);
        w->retry_at = now + backoff_next(&w->backoff, loop_random(d->drains->loop));
    }
}

static void eviction_on_accepted(struct eviction *f)
{
    struct drain *d = f->drain;
    struct drain_pod_state *p = f->pod_state;
    usec_t now = loop_now(d->drains->loop);
    if (f->verb == DRAIN_VERB_EVICT) {
        d->evicted++;
        d->drains->stats.evicted++;
    } else {
        d->forced++;
        d->drains->stats.forced++;
    }
    if (f->pdb != NULL) {
        f->pdb->evicted_at = now;
        f->pdb->refused_version = 0;
        backoff_reset(&f->pdb->backoff);
    }
    if (p != NULL) {
        p->accepted = true;
        p->force_deleted_at = f->verb == DRAIN_VERB_FORCE_DELETE ? now : -1;
        p->retry_at = 0;
        backoff_reset(&p->backoff);
    }
    f->settle_at = now + DRAIN_SETTLE_TIMEOUT;
    drain_event_accepted(f);
}

/* "… is forbidden: User "x" cannot create resource "pods/eviction" …" is a right that is missing.
 * Any other 403 is somebody's rule, an admission webhook's for one, and speaks for itself. */
static void eviction_on_denied(struct eviction *f, const struct err *err)
{
    struct drain *d = f->drain;
    struct drain_pod_state *p = f->pod_state;
    bool evicting = f->verb == DRAIN_VERB_EVICT;
    struct str missing = evicting ? STR("cannot create resource \"pods/eviction\"")
                                  : STR("cannot delete resource \"pods\"");
    if (str_contains(str_from(err->msg), missing)) {
        buf_reset(&p->server_message);
        buf_printf(&p->server_message, "the right to %s in namespace " STR_FMT " is missing: %s",
                   evicting ? "create pods/eviction" : "delete pods", STR_ARG(f->namespace),
                   err->msg);
    }
    struct str denial = drain_denial(p);
    if (map_find(&d->denials, denial) != NULL || map_count(&d->denials) >= DRAIN_DENIALS_MAX) {
        return;
    }
    (void)map_put(&d->denials, denial, d); /* it was not there */
    if (d->drains->config.on_denied != NULL) {
        d->drains->config.on_denied(d->drains->config.ctx, d->spec.node, p->item->name,
                                    buf_str(&p->server_message));
    }
}

static void eviction_on_failed(struct eviction *f, const struct api_reply *reply,
                               enum retry_verdict verdict)
{
    struct drain_pod_state *p = f->pod_state;
    struct drains_stats *stats = &f->drain->drains->stats;
    if (verdict == RETRY_ABSENT) {
        stats->absent++;
        if (p != NULL) {
            p->gone = true;
        }
        return;
    }
    stats->failed++;
    if (p == NULL) {
        return;
    }
    struct err err = { 0 };
    client_explain(reply->status, reply->body, reply->err, &err);
    buf_reset(&p->server_message);
    buf_add(&p->server_message, str_from(err.msg));
    p->denied = reply->err == NULL && reply->status == 403;
    if (p->denied) {
        eviction_on_denied(f, &err);
    }
    if (verdict == RETRY_REFUSED) {
        pod_state_back_off(p, DENIED_BASE, DENIED_MAX);
    } else {
        pod_state_back_off(p, FAILED_BASE, FAILED_MAX);
    }
    if (p->wait != DRAIN_WAIT_STUCK) {
        drain_pod_wait(p, DRAIN_WAIT_FAILED, loop_now(f->drain->drains->loop));
    }
}

static void eviction_on_reply(void *ctx, const struct api_reply *reply)
{
    struct eviction *f = ctx;
    struct drain *d = f->drain;
    struct client *client = d->drains->config.client;
    enum api_verb verb = f->verb == DRAIN_VERB_EVICT ? API_POST : API_DELETE;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str why = STR_NONE;
    f->call = NULL;
    d->in_flight--;
    drain_mark(d);
    bool accepted = false;
    if (f->verb == DRAIN_VERB_EVICT && eviction_refused_by_pdb(reply, &tmp, &why)) {
        client_note_as(client, verb, reply, RETRY_LATER);
        eviction_on_refused(f, why);
    } else {
        enum retry_verdict verdict = client_note(client, verb, reply);
        accepted = verdict == RETRY_DONE;
        if (accepted) {
            eviction_on_accepted(f);
        } else {
            eviction_on_failed(f, reply, verdict);
        }
    }
    /* A disruption that was spent counts until the budget's status shows it: the watch may be
     * slower than this answer. */
    if (!accepted || !list_linked(&f->unsettled_link)) {
        eviction_free(f);
    }
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static void eviction_write_options(struct json_writer *w, const struct eviction *f)
{
    usec_t grace = f->verb == DRAIN_VERB_FORCE_DELETE ? 0
                   : f->drain->unreachable            ? SECONDS(1)
                                                      : f->drain->spec.grace;
    if (grace >= 0) {
        jw_pair_i64(w, "gracePeriodSeconds", grace / SECONDS(1));
    }
    /* Another pod of that name may be there by now, and is not the one that was decided about. */
    jw_key(w, STR("preconditions"));
    jw_obj(w);
    jw_pair(w, "uid", f->uid);
    jw_obj_end(w);
}

static void eviction_write_body(struct buf *body, const struct eviction *f)
{
    buf_reset(body);
    struct json_writer w = json_writer_on(body);
    jw_obj(&w);
    if (f->verb == DRAIN_VERB_EVICT) {
        jw_pair(&w, "apiVersion", STR("policy/v1"));
        jw_pair(&w, "kind", STR("Eviction"));
        jw_key(&w, STR("metadata"));
        jw_obj(&w);
        jw_pair(&w, "name", f->name);
        jw_pair(&w, "namespace", f->namespace);
        jw_obj_end(&w);
        jw_key(&w, STR("deleteOptions"));
        jw_obj(&w);
        eviction_write_options(&w, f);
        jw_obj_end(&w);
    } else {
        jw_pair(&w, "apiVersion", STR("v1"));
        jw_pair(&w, "kind", STR("DeleteOptions"));
        eviction_write_options(&w, f);
    }
    jw_obj_end(&w);
}

static void eviction_set_note(struct eviction *f)
{
    if (f->verb == DRAIN_VERB_EVICT) {
        f->note = STR("Evicting pod during node drain");
    } else if (f->verb == DRAIN_VERB_FORCE_DELETE) {
        f->note = STR("Force deleting pod that exceeded grace period during node drain");
    } else {
        CLEANUP(buf_done)
        struct buf why = { 0 };
        drain_explain(f->pod_state, &why);
        f->note = arena_printf(&f->memory,
                               "Force deleting pod that could not be evicted during node "
                               "drain: " STR_FMT,
                               STR_ARG(buf_str(&why)));
    }
}

void evict_send(struct drain_pod_state *p, enum drain_verb verb, bool exempt)
{
    struct drain *d = p->drain;
    struct drains *ds = d->drains;
    struct eviction *f = ALLOC_NEW(struct eviction);
    ASSERT(p->eviction == NULL && evict_may_send(d));
    *f = (struct eviction){
        .drain = d,
        .pod_state = p,
        .pdb = p->pdb,
        .verb = verb,
        .exempt = exempt,
        .version = p->pdb != NULL ? p->pdb->item->version : 0,
        .memory = { .first = 512 },
    };
    f->namespace = arena_str(&f->memory, drain_namespace(p->item));
    f->name = arena_str(&f->memory, drain_name(p->item));
    f->uid = arena_str(&f->memory, drain_pod_of(p)->uid);
    eviction_set_note(f);
    list_add(&d->evictions, &f->link);
    p->eviction = f;
    if (verb == DRAIN_VERB_EVICT && p->pdb != NULL && !exempt) {
        pdb_state_add_unsettled(p->pdb, f);
    }
    buf_reset(&ds->path);
    buf_add(&ds->path, STR("/api/v1/namespaces/"));
    client_add_segment(&ds->path, f->namespace);
    buf_add(&ds->path, STR("/pods/"));
    client_add_segment(&ds->path, f->name);
    buf_add(&ds->path, verb == DRAIN_VERB_EVICT ? STR("/eviction") : STR(""));
    eviction_write_body(&ds->body, f);
    const struct api_request request = {
        .verb = verb == DRAIN_VERB_EVICT ? API_POST : API_DELETE,
        .path = buf_str(&ds->path),
        .body = buf_str(&ds->body),
    };
    f->call = api_send(ds->config.client->api, &request, eviction_on_reply, f);
    d->in_flight++;
    ds->stats.sent += verb == DRAIN_VERB_EVICT ? 1 : 0;
}
