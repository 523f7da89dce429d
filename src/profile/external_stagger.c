/* Reads the Leases of a stagger until one is free, and makes those that do not exist. */
#include "profile/external_internal.h"

#define STAGGER_CREATE_TRIES_MAX 4u /* to make a Lease that others make and delete meanwhile */

void stagger_lease_path(struct buf *out, struct str namespace, struct str name, int64_t i)
{
    buf_add(out, STR("/apis/coordination.k8s.io/v1/namespaces/"));
    client_add_segment(out, namespace);
    buf_add(out, STR("/leases"));
    if (i >= 0) {
        buf_add_char(out, '/');
        client_add_segment(out, name);
        buf_printf(out, "-%lld", (long long)i);
    }
}

void stagger_lease_read(const struct jval *root, usec_t asked, struct facts_lease *ret)
{
    const struct jval *spec = jval_get(root, STR("spec"));
    struct err ignored = { 0 }; /* a time that cannot be read counts as absent */
    bool renewed =
        timestamp_parse(jval_str(jval_get(spec, STR("renewTime"))), &ret->renewed, &ignored) == 0;
    bool lasting = jval_i64(jval_get(spec, STR("leaseDurationSeconds")), &ret->duration_s);
    ret->known = true;
    ret->complete = renewed && lasting;
    ret->holder = jval_str(jval_get(spec, STR("holderIdentity")));
    ret->asked = asked;
}

int stagger_put_lease(struct fact_query *q, uint32_t i, struct str json, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    struct facts_lease answer = { 0 };
    struct stagger_lease *lease = &q->leases[i];
    int r = json_parse(json, JSON_GO, &tmp, &root, err);
    if (r < 0) {
        return r;
    }
    struct str version = jval_str(jval_at(root, "metadata.resourceVersion"));
    if (version.n == 0) {
        return err_set(err, ERR_PROTO, "a Lease without resourceVersion");
    }
    stagger_lease_read(root, q->asked, &answer);
    buf_reset(&lease->version);
    buf_add(&lease->version, version);
    lease->has_transitions = jval_i64(jval_at(root, "spec.leaseTransitions"), &lease->transitions);
    if (facts_put_lease(q->e->facts, q->index, i, &answer)) {
        external_facts_changed(q->e, check_bit(q->index));
    }
    return 0;
}

void stagger_put_error(struct fact_query *q, const struct err *err)
{
    struct facts_lease answer = {
        .known = true,
        .error = str_from(err->msg),
        .asked = q->asked,
    };
    if (q->at < q->lease_n) {
        q->changed |= facts_put_lease(q->e->facts, q->index, q->at, &answer);
    }
}

void stagger_write_spec(struct json_writer *w, struct str holder, usec_t renewed,
                        int64_t duration_s)
{
    char text[TIMESTAMP_TEXT_MAX];
    if (holder.n > 0) {
        jw_pair(w, "holderIdentity", holder); /* the server refuses an empty one */
    }
    jw_pair_i64(w, "leaseDurationSeconds", duration_s);
    jw_pair(w, "acquireTime", timestamp_print_micro(renewed, text));
    jw_pair(w, "renewTime", timestamp_print_micro(renewed, text));
}

/* A new Lease has expired already, so that the first node that asks can take it. */
static void stagger_print_lease(const struct fact_query *q, struct buf *out)
{
    CLEANUP(buf_done)
    struct buf name = { 0 };
    buf_printf(&name, STR_FMT "-%u", STR_ARG(q->lease), q->at);
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("coordination.k8s.io/v1"));
    jw_pair(&w, "kind", STR("Lease"));
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "name", buf_str(&name));
    jw_pair(&w, "namespace", q->namespace);
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    stagger_write_spec(&w, buf_str(&q->holder), loop_wall(q->e->loop) - 2 * SECONDS(q->duration_s),
                       q->duration_s);
    jw_obj_end(&w);
    jw_obj_end(&w);
}

static void stagger_send(struct fact_query *q);

/* Reads on until a Lease is free; no check reads those behind it. A Lease that a node is taking is
 * skipped: stagger_take.c learns how that ends. */
static void stagger_read_next(struct fact_query *q)
{
    while (q->at < q->lease_n && q->leases[q->at].take != NULL) {
        q->at++;
    }
    if (q->at == q->lease_n) {
        fact_query_finish(q);
        return;
    }
    q->creating = false;
    q->tries = 0;
    stagger_send(q);
}

static void stagger_on_lease(struct fact_query *q)
{
    struct facts_lease lease = facts_stagger(q->e->facts, q->index, q->at);
    if (facts_lease_is_free(&lease, loop_wall(q->e->loop))) {
        fact_query_finish(q);
        return;
    }
    q->at++;
    stagger_read_next(q);
}

static void stagger_on_reply(void *ctx, const struct api_reply *reply)
{
    struct fact_query *q = ctx;
    struct err err = { 0 };
    bool made = q->creating;
    q->call = NULL;
    enum retry_verdict verdict = client_note(q->e->config.client, made ? API_POST : API_GET, reply);
    bool absent = verdict == RETRY_ABSENT && !made;
    bool there = verdict == RETRY_OBSERVE && made; /* another has made it meanwhile */
    if ((absent || there) && ++q->tries < STAGGER_CREATE_TRIES_MAX) {
        q->creating = absent;
        stagger_send(q);
        return;
    }
    if (verdict == RETRY_DONE) {
        if (q->leases[q->at].touched || stagger_put_lease(q, q->at, reply->body, &err) == 0) {
            stagger_on_lease(q);
            return;
        }
    } else {
        client_explain(reply->status, reply->body, reply->err, &err);
    }
    (void)err_wrap(&err, "lease " STR_FMT "/" STR_FMT "-%u", STR_ARG(q->namespace),
                   STR_ARG(q->lease), q->at);
    fact_query_fail(q, verdict == RETRY_QUIET || verdict == RETRY_OBSERVE, reply->retry_after,
                    &err);
}

static void stagger_send(struct fact_query *q)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    CLEANUP(buf_done)
    struct buf body = { 0 };
    stagger_lease_path(&path, q->namespace, q->lease, q->creating ? -1 : (int64_t)q->at);
    if (q->creating) {
        stagger_print_lease(q, &body);
    }
    struct api_request request = {
        .verb = q->creating ? API_POST : API_GET,
        .path = buf_str(&path),
        .body = buf_str(&body),
    };
    q->call = api_send(q->e->config.client->api, &request, stagger_on_reply, q);
}

void stagger_start(struct fact_query *q)
{
    q->at = 0;
    for (uint32_t i = 0; i < q->lease_n; i++) {
        q->leases[i].touched = false;
    }
    if (q->parallel > (int64_t)q->lease_n && q->lease_n > 0) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_LIMIT, "parallel is %lld, at most %u are possible",
                      (long long)q->parallel, FACTS_LEASES_MAX);
        stagger_put_error(q, &err);
        fact_query_finish(q);
        return;
    }
    stagger_read_next(q);
}
