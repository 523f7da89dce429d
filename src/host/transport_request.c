#include "host/transport_request.h"

#include "base/alloc.h"

/* All of a request's bytes, or none: libcurl ends the transfer on a short count. */
static size_t reply_take(struct transport_request *x, struct str bytes)
{
    struct slot *s = x->slot;
    buf_add(&s->reply, bytes);
    if (s->reply.full) {
        x->over_limit = true;
        return 0;
    }
    return bytes.n;
}

static size_t watch_take(struct transport_request *x, struct str bytes)
{
    struct slot *s = x->slot;
    if (x->lines_end > WATCH_BACKLOG_MAX) {
        x->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    size_t before = s->reply.n;
    if (reply_take(x, bytes) == 0) {
        return 0;
    }
    size_t last = str_rfind_char(bytes, '\n');
    if (last != SIZE_MAX) {
        x->lines_end = before + last + 1;
        if (!list_linked(&x->ready)) {
            list_add(&x->transport->ready, &x->ready);
        }
        loop_timer_pull(&x->transport->pump, loop_now(x->transport->loop));
    }
    if (s->reply.n - x->lines_end > x->transport->limits.line_bytes_max) {
        x->over_limit = true;
        return 0;
    }
    return bytes.n;
}

static size_t curl_on_body(char *data, size_t size, size_t n, void *ctx)
{
    struct slot *s = ctx;
    struct transport_request *x = s->request;
    struct str bytes = { .p = data, .n = size * n };
    if (bytes.n == 0) {
        return 0;
    }
    x->last_byte = loop_now(x->transport->loop);
    x->transport->stats.bytes_received += bytes.n;
    return x->watch && x->opened ? watch_take(x, bytes) : reply_take(x, bytes);
}

static void transport_request_note_date(struct transport_request *x, struct str line)
{
    struct str name;
    struct str value;
    char text[64]; /* "Mon, 16 Nov 2026 04:13:28 GMT" */
    if (!str_cut(line, STR(":"), &name, &value) || !str_eq_fold(name, STR("Date"))) {
        return;
    }
    value = str_trim(value);
    if (value.n < sizeof(text)) {
        memcpy(text, value.p, value.n);
        text[value.n] = '\0';
        time_t date = curl_getdate(text, NULL);
        x->date = date > 0 ? SECONDS(date) : 0;
    }
}

static size_t curl_on_header(char *data, size_t size, size_t n, void *ctx)
{
    struct slot *s = ctx;
    struct transport_request *x = s->request;
    struct str line = { .p = data, .n = size * n };
    /* Headers are no sign of life: a server could open a watch a header at a time, for ever. */
    x->head_bytes += line.n;
    if (x->head_bytes > TRANSPORT_HEAD_BYTES_MAX) {
        x->over_limit = true;
        return 0; /* libcurl ends the transfer on a short count */
    }
    if (str_trim(line).n > 0) {
        transport_request_note_date(x, line);
        return line.n;
    }
    /* The empty line: the status is final, unless it was an interim one. */
    long status = 0;
    (void)curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    x->head_done = status >= 200;
    if (x->watch && status == 200) {
        x->opened = true;
        x->status = 200;
        x->last_byte = loop_now(x->transport->loop);
        s->reply.max = x->transport->limits.line_bytes_max + 2 * WATCH_BACKLOG_MAX;
        if (!list_linked(&x->ready)) {
            list_add(&x->transport->ready, &x->ready);
        }
        loop_timer_pull(&x->transport->pump, loop_now(x->transport->loop));
    }
    return line.n;
}

static CURLcode curl_on_tls(CURL *easy UNUSED, void *ssl_ctx, void *ctx)
{
    struct transport *t = ctx;
    tls_identity_use(&t->identity, ssl_ctx);
    return CURLE_OK;
}

/* Settings of a transport that belongs to a group. */
static void slot_prepare_frugal(struct transport *t, CURL *easy)
{
    const long yes = 1;
    (void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, yes);
    (void)curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, yes);
    (void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)TRANSPORT_GROUP_BUFFER);
    if (!t->endpoint.tls) {
        return;
    }
    (void)curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, (long)0); /* kept for nobody */
    (void)curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, curl_on_tls);
    (void)curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, t);
    if (t->identity.trusted_n > 0) {
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
        (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    } else if (curl_version_info(CURLVERSION_NOW)->cainfo != NULL) {
        /* The system's authorities are a megabyte. From a file alone, libcurl keeps them once. */
        (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
}

static struct slot *slot_new(struct transport *t)
{
    struct slot *s = ALLOC_NEW(struct slot);
    s->memory.first = t->group != NULL ? 512 : 2048;
    s->easy = curl_easy_init();
    if (s->easy == NULL) {
        out_of_memory(sizeof(*s));
    }
    curl_endpoint_prepare(&t->endpoint, s->easy);
    (void)curl_easy_setopt(s->easy, CURLOPT_PRIVATE, s);
    (void)curl_easy_setopt(s->easy, CURLOPT_ERRORBUFFER, s->detail);
    (void)curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, curl_on_body);
    (void)curl_easy_setopt(s->easy, CURLOPT_WRITEDATA, s);
    (void)curl_easy_setopt(s->easy, CURLOPT_HEADERFUNCTION, curl_on_header);
    (void)curl_easy_setopt(s->easy, CURLOPT_HEADERDATA, s);
    if (t->group != NULL) {
        slot_prepare_frugal(t, s->easy);
    } else {
        (void)curl_easy_setopt(s->easy, CURLOPT_SHARE, t->share);
    }
    return s;
}

struct slot *slot_take(struct transport *t)
{
    if (list_empty(&t->slots)) {
        return slot_new(t);
    }
    struct slot *s = CONTAINER_OF(t->slots.next, struct slot, link);
    list_del(&s->link);
    return s;
}

void slot_give(struct transport *t, struct slot *s)
{
    if (t->group != NULL) {
        slot_free(s);
        return;
    }
    s->request = NULL;
    credential_unref(STEAL(s->credential));
    arena_reset(&s->memory);
    buf_reset(&s->reply);
    if (s->reply.cap > SLOT_KEEP_MAX) {
        buf_done(&s->reply);
    }
    list_add(&t->slots, &s->link);
}

void slot_free(struct slot *s)
{
    list_del(&s->link);
    curl_easy_cleanup(s->easy);
    credential_unref(s->credential);
    arena_done(&s->memory);
    buf_done(&s->reply);
    alloc_free(s);
}

void slot_rest(struct slot *s)
{
    const struct curl_tlssessioninfo *tls = NULL;
    if (s->reply.n == 0) {
        buf_done(&s->reply);
    }
    /* libcurl copies a request that goes through TLS into its buffer for uploads, 16 KiB, and keeps
     * that for as long as the transfer. Setting its size frees it; the request is long sent. */
    (void)curl_easy_setopt(s->easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)CURL_ENDPOINT_UPLOAD_BUFFER);
    if (curl_easy_getinfo(s->easy, CURLINFO_TLS_SSL_PTR, &tls) == CURLE_OK && tls != NULL &&
        tls->backend == CURLSSLBACKEND_OPENSSL && tls->internals != NULL) {
        tls_identity_rest(tls->internals);
    }
}

/* libcurl reads the list and never owns it, so its links may live in the arena. */
static void header_add(struct slot *s, struct curl_slist ***end, struct str line)
{
    struct curl_slist *item = ARENA_NEW(&s->memory, struct curl_slist);
    item->data = (char *)(uintptr_t)line.p;
    **end = item;
    *end = &item->next;
}

static struct curl_slist *slot_headers(struct slot *s, const struct transport_request *x)
{
    const struct transport *t = x->transport;
    const struct cluster_access *access = t->access;
    struct curl_slist *first = NULL;
    struct curl_slist **end = &first;
    header_add(s, &end,
               x->accept.n > 0 ? arena_concat(&s->memory, STR("Accept: "), x->accept)
                               : STR("Accept: application/json"));
    header_add(s, &end, STR("Expect:")); /* the round trip it costs buys nothing here */
    /* For our own server behind the API server's proxy (web/allowed_hosts.h). */
    header_add(s, &end, STR("Sec-Drydock-Client: 1"));
    if (access->header.n > 0) {
        header_add(s, &end, access->header);
    }
    if (t->endpoint.host_header.n > 0) {
        header_add(s, &end, t->endpoint.host_header);
    }
    if (x->body.n > 0 || x->verb == API_POST || x->verb == API_PUT || x->verb == API_PATCH) {
        struct str type = x->content_type.n > 0 ? x->content_type : API_JSON;
        header_add(s, &end, arena_concat(&s->memory, STR("Content-Type: "), type));
    }
    if (s->credential->header.n > 0) {
        header_add(s, &end, s->credential->header); /* not copied: it is wiped when it ends */
    }
    if (access->impersonate_user.n > 0) {
        header_add(s, &end,
                   arena_concat(&s->memory, STR("Impersonate-User: "), access->impersonate_user));
    }
    if (access->impersonate_uid.n > 0) {
        header_add(s, &end,
                   arena_concat(&s->memory, STR("Impersonate-Uid: "), access->impersonate_uid));
    }
    for (uint32_t i = 0; i < access->impersonate_groups_n; i++) {
        header_add(
            s, &end,
            arena_concat(&s->memory, STR("Impersonate-Group: "), access->impersonate_groups[i]));
    }
    return first;
}

static void slot_load_verb(struct slot *s, const struct transport_request *x)
{
    static const char *const verbs[] = {
        [API_GET] = NULL,      [API_POST] = NULL,       [API_PUT] = "PUT",
        [API_PATCH] = "PATCH", [API_DELETE] = "DELETE",
    };
    bool with_body =
        x->body.n > 0 || x->verb == API_POST || x->verb == API_PUT || x->verb == API_PATCH;
    if (with_body) {
        /* Order matters: POST first, or libcurl falls back to reading a file. */
        (void)curl_easy_setopt(s->easy, CURLOPT_POST, 1L);
        (void)curl_easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body.n);
        (void)curl_easy_setopt(s->easy, CURLOPT_POSTFIELDS, x->body.p);
    } else {
        (void)curl_easy_setopt(s->easy, CURLOPT_POSTFIELDS, NULL);
        (void)curl_easy_setopt(s->easy, CURLOPT_HTTPGET, 1L);
    }
    (void)curl_easy_setopt(s->easy, CURLOPT_CUSTOMREQUEST, verbs[x->verb]);
}

static struct curl_blob slot_blob(struct str pem)
{
    return (struct curl_blob){ .data = (void *)(uintptr_t)pem.p,
                               .len = pem.n,
                               .flags = CURL_BLOB_NOCOPY };
}

void slot_load(struct slot *s, const struct transport_request *x)
{
    const struct transport *t = x->transport;
    s->detail[0] = '\0';
    s->reply.max = x->watch ? ERROR_BODY_MAX : t->limits.reply_bytes_max;
    (void)curl_easy_setopt(s->easy, CURLOPT_URL,
                           arena_concat(&s->memory, t->endpoint.base, x->path).p);
    (void)curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, slot_headers(s, x));
    (void)curl_easy_setopt(s->easy, CURLOPT_CONNECTTIMEOUT_MS,
                           (long)(t->limits.connect_max / 1000));
    slot_load_verb(s, x);
    if (t->endpoint.tls && t->group == NULL) {
        struct curl_blob cert = slot_blob(s->credential->cert_pem);
        struct curl_blob key = slot_blob(s->credential->key_pem);
        bool with = cert.len > 0;
        (void)curl_easy_setopt(s->easy, CURLOPT_SSLCERT_BLOB, with ? &cert : NULL);
        (void)curl_easy_setopt(s->easy, CURLOPT_SSLKEY_BLOB, with ? &key : NULL);
    }
}
