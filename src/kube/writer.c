#include "kube/writer.h"

void writer_init(struct writer *w, struct client *client, const struct writer_rules *rules)
{
    *w = (struct writer){ .client = client, .rules = rules };
}

static void writer_end_call(struct writer *w)
{
    w->call = NULL;
    w->client->urgent -= w->rules->urgent ? 1 : 0;
}

void writer_cancel(struct writer *w)
{
    if (w->call != NULL) {
        api_cancel(w->client->api, w->call);
        writer_end_call(w);
    }
}

/* ── before a write ────────────────────────────────────────────────────────────────────────── */

usec_t writer_retry_at(const struct writer *w, uint64_t version)
{
    return w->outdated && version > w->version ? 0 : w->retry_at;
}

usec_t writer_ready_at(const struct writer *w, uint64_t version)
{
    return MAX(writer_retry_at(w, version), client_open_at(w->client));
}

bool writer_must_read(const struct writer *w, uint64_t version)
{
    return w->must_read && version <= w->version;
}

void writer_send(struct writer *w, const struct api_request *request, uint64_t version,
                 api_on_reply on_reply, void *ctx)
{
    struct api_request sent = *request;
    ASSERT(w->call == NULL);
    if (sent.verb == API_PATCH && sent.content_type.n == 0) {
        sent.content_type = API_MERGE_PATCH;
    }
    w->verb = sent.verb;
    w->version = version;
    w->must_read = w->must_read && sent.verb == API_GET;
    w->client->urgent += w->rules->urgent ? 1 : 0;
    w->call = api_send(w->client->api, &sent, on_reply, ctx);
}

/* ── the answer ────────────────────────────────────────────────────────────────────────────── */

static void writer_wait(struct writer *w, const struct writer_wait *wait)
{
    struct loop *loop = w->client->loop;
    if (wait->base == 0) {
        return;
    }
    if (w->backoff.base != wait->base) {
        w->backoff = (struct backoff){ .base = wait->base, .max = wait->max };
    }
    w->retry_at = loop_now(loop) + backoff_next(&w->backoff, loop_random(loop));
}

void writer_back_off(struct writer *w)
{
    w->outdated = false;
    writer_wait(w, &w->rules->failed);
}

static int writer_read(struct str body, struct store *store, struct writer_reply *ret)
{
    int r = json_parse(body, 0, &ret->memory, &ret->object, &ret->err);
    if (r == 0 && store_version(ret->object) == 0) {
        r = err_set(&ret->err, ERR_PROTO, "an object without a version");
    }
    if (r == 0 && store != NULL) {
        r = store_learn(store, ret->object, &ret->err);
    }
    if (r < 0) {
        ret->object = NULL;
        ret->unreadable = true;
        return err_wrap(&ret->err, "the answer cannot be read");
    }
    return 0;
}

/* The watch brings the newer version, if it has not yet; to send before that would fail again. */
static void writer_on_conflict(struct writer *w, struct store *store, struct str name)
{
    struct store_item *item = store == NULL ? NULL : store_find(store, name);
    if (item != NULL && item->version > w->version) {
        store_mark(store, item);
    } else if (item != NULL) {
        store_await(item);
    }
    w->must_read = true;
    w->outdated = true;
    writer_wait(w, &w->rules->conflict);
}

enum retry_verdict writer_on_verdict(struct writer *w, enum retry_verdict verdict,
                                     const struct api_reply *reply, struct store *store,
                                     struct str name, struct writer_reply *ret)
{
    *ret = (struct writer_reply){ 0 };
    if (verdict != RETRY_DONE) {
        client_explain(reply->status, reply->body, reply->err, &ret->err);
    } else if (w->verb != API_DELETE && writer_read(reply->body, store, ret) < 0) {
        verdict = RETRY_LATER;
    }
    if (verdict == RETRY_OBSERVE) {
        writer_on_conflict(w, store, name);
        return verdict;
    }
    w->must_read = verdict != RETRY_DONE;
    w->outdated = verdict == RETRY_ABSENT;
    if (verdict != RETRY_DONE) {
        writer_wait(w, verdict == RETRY_ABSENT    ? &w->rules->absent
                       : verdict == RETRY_REFUSED ? &w->rules->refused
                                                  : &w->rules->failed);
        w->retry_at = MAX(w->retry_at, loop_now(w->client->loop) + retry_after(reply));
    } else if (w->verb != API_GET) {
        w->retry_at = 0;
        backoff_reset(&w->backoff); /* a read proves nothing about writes */
    }
    return verdict;
}

enum retry_verdict writer_on_reply(struct writer *w, const struct api_reply *reply,
                                   struct store *store, struct str name, struct writer_reply *ret)
{
    writer_end_call(w);
    return writer_on_verdict(w, client_note(w->client, w->verb, reply), reply, store, name, ret);
}

void writer_reply_done(struct writer_reply *r)
{
    arena_done(&r->memory);
}

/* ── bodies ────────────────────────────────────────────────────────────────────────────────── */

static void writer_add_version_pair(struct json_writer *w, uint64_t version)
{
    char text[24];
    if (version > 0) {
        int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)version);
        jw_pair(w, "resourceVersion", (struct str){ text, (size_t)n });
    }
}

void writer_add_version(struct json_writer *w, uint64_t version)
{
    if (version > 0) {
        jw_key(w, STR("metadata"));
        jw_obj(w);
        writer_add_version_pair(w, version);
        jw_obj_end(w);
    }
}

void writer_print_delete(struct str uid, uint64_t version, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    buf_reset(out);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("v1"));
    jw_pair(&w, "kind", STR("DeleteOptions"));
    jw_key(&w, STR("preconditions"));
    jw_obj(&w);
    writer_add_version_pair(&w, version);
    jw_pair(&w, "uid", uid);
    jw_obj_end(&w);
    jw_obj_end(&w);
}
