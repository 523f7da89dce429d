#include "profile/external_internal.h"

#define LEASE_TRIES 4u /* of making one that is there, then is not, then is there */

void lease_path(struct buf *out, struct str namespace, struct str name, int64_t i)
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

void lease_read(const struct jval *root, usec_t asked, struct facts_lease *ret)
{
    const struct jval *spec = jval_get(root, STR("spec"));
    struct err ignored = { 0 }; /* a time that is none is as good as absent */
    bool renewed =
        timestamp_parse(jval_str(jval_get(spec, STR("renewTime"))), &ret->renewed, &ignored) == 0;
    bool lasting = jval_i64(jval_get(spec, STR("leaseDurationSeconds")), &ret->duration_s);
    ret->known = true;
    ret->complete = renewed && lasting;
    ret->holder = jval_str(jval_get(spec, STR("holderIdentity")));
    ret->asked = asked;
}

int stagger_learn(struct ask *a, uint32_t i, struct str json, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    struct facts_lease answer = { 0 };
    struct ask_lease *lease = &a->leases[i];
    int r = json_parse(json, JSON_GO, &tmp, &root, err);
    if (r < 0) {
        return r;
    }
    struct str version = jval_str(jval_at(root, "metadata.resourceVersion"));
    if (version.n == 0) {
        return err_set(err, ERR_PROTO, "a Lease without resourceVersion");
    }
    lease_read(root, a->asked, &answer);
    buf_reset(&lease->version);
    buf_add(&lease->version, version);
    lease->has_transitions = jval_i64(jval_at(root, "spec.leaseTransitions"), &lease->transitions);
    if (facts_put_lease(a->q->facts, a->index, i, &answer)) {
        inquiry_note(a->q, inquiry_bit(a->index));
    }
    return 0;
}

void stagger_tell(struct ask *a, const struct err *err)
{
    struct facts_lease answer = {
        .known = true,
        .error = str_from(err->msg),
        .asked = a->asked,
    };
    if (a->at < a->lease_n) {
        a->changed |= facts_put_lease(a->q->facts, a->index, a->at, &answer);
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

/* Its time is over before it begins, so that it is free for whoever comes first. */
static void stagger_compose(const struct ask *a, struct buf *out)
{
    CLEANUP(buf_done)
    struct buf name = { 0 };
    buf_printf(&name, STR_FMT "-%u", STR_ARG(a->lease), a->at);
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("coordination.k8s.io/v1"));
    jw_pair(&w, "kind", STR("Lease"));
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "name", buf_str(&name));
    jw_pair(&w, "namespace", a->namespace);
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    stagger_write_spec(&w, buf_str(&a->holder), loop_wall(a->q->loop) - 2 * SECONDS(a->duration_s),
                       a->duration_s);
    jw_obj_end(&w);
    jw_obj_end(&w);
}

static void stagger_send(struct ask *a);

/* Reads on until one is free; those behind it are nobody's concern. What is being taken counts as
 * taken until its own answer is there. */
static void stagger_next(struct ask *a)
{
    while (a->at < a->lease_n && a->leases[a->at].take != NULL) {
        a->at++;
    }
    if (a->at == a->lease_n) {
        ask_finish(a);
        return;
    }
    a->making = false;
    a->tries = 0;
    stagger_send(a);
}

static void stagger_learned(struct ask *a)
{
    struct facts_lease lease = facts_stagger(a->q->facts, a->index, a->at);
    if (facts_lease_is_free(&lease, loop_wall(a->q->loop))) {
        ask_finish(a);
        return;
    }
    a->at++;
    stagger_next(a);
}

static void stagger_on_reply(void *ctx, const struct api_reply *reply)
{
    struct ask *a = ctx;
    struct err err = { 0 };
    bool made = a->making;
    a->call = NULL;
    enum retry_verdict verdict = client_note(a->q->config.client, made ? API_POST : API_GET, reply);
    bool absent = verdict == RETRY_ABSENT && !made;
    bool there = verdict == RETRY_OBSERVE && made; /* another has made it in between */
    if ((absent || there) && ++a->tries < LEASE_TRIES) {
        a->making = absent;
        stagger_send(a);
        return;
    }
    if (verdict == RETRY_DONE) {
        if (a->leases[a->at].touched || stagger_learn(a, a->at, reply->body, &err) == 0) {
            stagger_learned(a);
            return;
        }
    } else {
        client_explain(reply->status, reply->body, reply->err, &err);
    }
    (void)err_wrap(&err, "lease " STR_FMT "/" STR_FMT "-%u", STR_ARG(a->namespace),
                   STR_ARG(a->lease), a->at);
    ask_fail(a, verdict == RETRY_QUIET || verdict == RETRY_OBSERVE, reply->retry_after, &err);
}

static void stagger_send(struct ask *a)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    CLEANUP(buf_done)
    struct buf body = { 0 };
    lease_path(&path, a->namespace, a->lease, a->making ? -1 : (int64_t)a->at);
    if (a->making) {
        stagger_compose(a, &body);
    }
    struct api_request request = {
        .verb = a->making ? API_POST : API_GET,
        .path = buf_str(&path),
        .body = buf_str(&body),
    };
    a->call = api_send(a->q->config.client->api, &request, stagger_on_reply, a);
}

void stagger_ask(struct ask *a)
{
    a->at = 0;
    for (uint32_t i = 0; i < a->lease_n; i++) {
        a->leases[i].touched = false;
    }
    if (a->parallel > (int64_t)a->lease_n && a->lease_n > 0) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_LIMIT, "parallel is %lld, at most %u are possible",
                      (long long)a->parallel, FACTS_LEASES_MAX);
        stagger_tell(a, &err);
        ask_finish(a);
        return;
    }
    stagger_next(a);
}
