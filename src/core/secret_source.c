#include "core/secret_source.h"

#include "base/base64.h"
#include "format/json.h"

void secret_source_init(struct secret_source *c, struct client *client, const struct files *files,
                        void (*on_ready)(void *ctx), void *ctx)
{
    *c = (struct secret_source){
        .client = client,
        .files = files,
        .on_ready = on_ready,
        .ctx = ctx,
        .backoff = { .base = SECRET_SOURCE_RETRY_MIN, .max = SECRET_SOURCE_RETRY_MAX },
    };
}

static void secret_source_stop(struct secret_source *c)
{
    if (c->call != NULL) {
        api_cancel(c->client->api, STEAL(c->call));
    }
}

void secret_source_wipe(struct secret_source *c)
{
    arena_wipe(&c->memory);
    c->text = STR_NONE;
}

void secret_source_done(struct secret_source *c)
{
    secret_source_stop(c);
    secret_source_wipe(c);
    arena_done(&c->where);
}

bool secret_source_set_place(struct secret_source *c, const struct secret_source_place *place)
{
    if (str_eq(c->place.namespace, place->namespace) && str_eq(c->place.name, place->name) &&
        str_eq(c->place.key, place->key) && str_eq(c->place.file, place->file)) {
        return false;
    }
    secret_source_stop(c);
    secret_source_wipe(c);
    arena_done(&c->where);
    c->place = (struct secret_source_place){
        .namespace = arena_str(&c->where, place->namespace),
        .name = arena_str(&c->where, place->name),
        .key = arena_str(&c->where, place->key),
        .file = arena_str(&c->where, place->file),
    };
    backoff_reset(&c->backoff);
    c->retry_at = 0;
    c->err = (struct err){ 0 };
    return true;
}

struct str secret_source_where(const struct secret_source *c, struct arena *out)
{
    if (c->place.name.n > 0) {
        return arena_printf(out, "Secret '" STR_FMT "/" STR_FMT "'", STR_ARG(c->place.namespace),
                            STR_ARG(c->place.name));
    }
    return arena_printf(out, "file '" STR_FMT "'", STR_ARG(c->place.file));
}

static int secret_source_fail(struct secret_source *c, const struct err *err)
{
    secret_source_wipe(c);
    c->err = *err;
    /* ERR_BUSY says that it is being read: a server that is busy (429) is another failure. */
    c->err.code = err->code == ERR_BUSY ? ERR_IO : err->code;
    c->retry_at =
        loop_now(c->client->loop) + backoff_next(&c->backoff, loop_random(c->client->loop));
    return -(int)c->err.code;
}

static void secret_source_good(struct secret_source *c)
{
    backoff_reset(&c->backoff);
    c->retry_at = 0;
    c->err = (struct err){ 0 };
}

/* ── Secret ────────────────────────────────────────────────────────────────────────────────── */

static int secret_source_read_secret(struct secret_source *c, struct str body, struct err *err)
{
    const struct jval *secret = NULL;
    if (json_parse(body, JSON_GO, &c->memory, &secret, err) < 0) {
        return err_set(err, ERR_PROTO, "the server's answer cannot be read");
    }
    const struct jval *value = jval_get(jval_get(secret, STR("data")), c->place.key);
    if (jval_kind(value) != JSTR) {
        /* As the original puts it. */
        return err_set(err, ERR_INVALID,
                       "secret " STR_FMT "/" STR_FMT " does not contain key '" STR_FMT "'",
                       STR_ARG(c->place.namespace), STR_ARG(c->place.name), STR_ARG(c->place.key));
    }
    if (jval_str(value).n / 4 * 3 > SECRET_SOURCE_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "key '" STR_FMT "': more than %zu bytes",
                       STR_ARG(c->place.key), SECRET_SOURCE_BYTES_MAX);
    }
    struct str text = STR_NONE;
    if (!base64_decode(jval_str(value), &c->memory, &text)) {
        return err_set(err, ERR_INVALID, "key '" STR_FMT "' is not in base64",
                       STR_ARG(c->place.key));
    }
    c->text = text.p == NULL ? STR("") : text;
    return 0;
}

static void secret_source_on_secret(void *ctx, const struct api_reply *reply)
{
    struct secret_source *c = ctx;
    struct err err = { 0 };
    c->call = NULL;
    enum retry_verdict verdict = client_note(c->client, API_GET, reply);
    int r = -1;
    if (verdict == RETRY_DONE) {
        r = secret_source_read_secret(c, reply->body, &err);
    } else if (verdict == RETRY_ABSENT) {
        (void)err_set(&err, ERR_NOTFOUND, "there is no such Secret");
    } else {
        client_explain(reply->status, reply->body, reply->err, &err);
    }
    if (r < 0) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        (void)err_wrap(&err, STR_FMT, STR_ARG(secret_source_where(c, &tmp)));
        (void)secret_source_fail(c, &err); /* asked for again, it answers with this */
    } else {
        secret_source_good(c);
    }
    c->on_ready(c->ctx);
}

static void secret_source_send(struct secret_source *c)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/api/v1/namespaces/"));
    client_add_segment(&path, c->place.namespace);
    buf_add(&path, STR("/secrets/"));
    client_add_segment(&path, c->place.name);
    c->call =
        api_send(c->client->api, &(struct api_request){ .verb = API_GET, .path = buf_str(&path) },
                 secret_source_on_secret, c);
}

/* ── file ──────────────────────────────────────────────────────────────────────────────────── */

static int secret_source_read_file(struct secret_source *c, struct err *err)
{
    struct str text = STR_NONE;
    int r = c->files == NULL ? err_set(err, ERR_INVALID, "files cannot be read here")
                             : c->files->read(c->files->ctx, c->place.file, SECRET_SOURCE_BYTES_MAX,
                                              &c->memory, &text, err);
    if (r < 0) {
        return secret_source_fail(c, err);
    }
    secret_source_good(c);
    c->text = text.p == NULL ? STR("") : text;
    return 0;
}

int secret_source_get(struct secret_source *c, struct str *ret, struct err *err)
{
    usec_t now = loop_now(c->client->loop);
    int r = 0;
    if (c->text.p == NULL && c->call == NULL && now < c->retry_at) {
        *err = c->err;
        return -(int)err->code;
    }
    if (c->text.p == NULL && c->place.name.n == 0) {
        r = secret_source_read_file(c, err);
    } else if (c->text.p == NULL && c->call == NULL && !client_open(c->client)) {
        err->retry_at = client_open_at(c->client);
        c->retry_at = err->retry_at;
        r = err_set(&c->err, ERR_IO, "the API server cannot be asked now");
        *err = c->err;
    } else if (c->text.p == NULL) {
        if (c->call == NULL) {
            secret_source_send(c);
        }
        r = err_set(err, ERR_BUSY, "the credentials are being read");
    }
    if (r == 0) {
        *ret = c->text;
    }
    return r;
}
