#include "host/outbound.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "host/curl_endpoint.h"
#include "host/outbound_internal.h"

#define RETRY_AFTER_MAX HOURS(1) /* a server that asks for more is not obeyed blindly */

static struct host_outbound *outbound_of(const struct outbound *outbound)
{
    return CONTAINER_OF((struct outbound *)(uintptr_t)outbound, struct host_outbound, door);
}

static void outbound_wake(struct host_outbound *w)
{
    loop_timer_pull(&w->pump, loop_now(w->loop));
}

void outbound_call_end(struct outbound_call *call)
{
    struct host_outbound *w = call->outbound;
    if (call->state == OUTBOUND_QUEUED) {
        w->queued--;
        w->in_flight++;
        list_del(&call->link);
        list_add(&w->flying, &call->link);
    }
    call->state = OUTBOUND_OVER;
    loop_timer_stop(&call->timer);
    if (!list_linked(&call->ready)) {
        list_add(&w->ready, &call->ready);
    }
    outbound_wake(w);
}

void outbound_call_fail(struct outbound_call *call, struct err *err)
{
    (void)err_wrap(err, "%s '" STR_FMT "'", call->is_mail ? "mail server" : "server",
                   STR_ARG(call->peer));
    call->err = *err;
    outbound_call_end(call);
}

/* Takes the transfer away from libcurl; the bytes received so far are kept. */
static void call_stop(struct outbound_call *call)
{
    if (call->is_mail) {
        outbound_mail_stop(call);
    } else if (call->attached) {
        curl_loop_remove(call->outbound->multi, call->easy);
        call->attached = false;
    }
}

static void call_free(struct outbound_call *call)
{
    struct host_outbound *w = call->outbound;
    call_stop(call);
    if (call->state == OUTBOUND_QUEUED) {
        w->queued--;
    } else {
        w->in_flight--;
    }
    list_del(&call->link);
    list_del(&call->ready);
    loop_timer_done(&call->timer);
    if (call->easy != NULL) {
        curl_easy_cleanup(call->easy);
    }
    smtp_done(&call->mail_state.smtp);
    buf_done(&call->reply);
    arena_wipe(&call->memory); /* a request may hold a password */
    alloc_free(call);
}

static void on_deadline(void *ctx)
{
    struct outbound_call *call = ctx;
    struct err err = { 0 };
    if (call->is_mail && outbound_mail_decided(call)) {
        outbound_call_end(call); /* only the answer to QUIT is missing */
        return;
    }
    const char *where =
        call->state == OUTBOUND_QUEUED ? "while it waited in the queue" : "from the server";
    (void)err_set(&err, ERR_TIMEOUT, "no answer in %lld ms, %s", (long long)(call->timeout / 1000),
                  where);
    call_stop(call);
    outbound_call_fail(call, &err);
}

static struct outbound_call *call_new(struct outbound *outbound, usec_t timeout,
                                      outbound_on_reply on_reply, void *ctx)
{
    struct host_outbound *w = outbound_of(outbound);
    struct outbound_call *call = ALLOC_NEW(struct outbound_call);
    call->outbound = w;
    call->memory.first = 1024;
    call->on_reply = on_reply;
    call->ctx = ctx;
    call->timeout = timeout > 0 ? timeout : OUTBOUND_TIMEOUT;
    loop_timer_init(&call->timer, w->loop, on_deadline, call);
    loop_timer_set(&call->timer, loop_now(w->loop) + call->timeout);
    list_add(&w->queue, &call->link);
    w->queued++;
    outbound_wake(w);
    return call;
}

static void curlu_done(CURLU **u)
{
    curl_url_cleanup(*u);
}

static struct str url_part(CURLU *u, CURLUPart part, struct arena *out)
{
    char *text = NULL;
    if (curl_url_get(u, part, &text, 0) != CURLUE_OK) {
        return STR_NONE;
    }
    struct str copy = arena_str(out, str_from(text));
    curl_free(text);
    return copy;
}

static bool is_line(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        if ((unsigned char)text.p[i] < 0x20 && text.p[i] != '\t') {
            return false;
        }
    }
    return true;
}

/* RFC 9110 §5.6.2 */
static bool is_token(struct str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL)) {
            return false;
        }
    }
    return text.n > 0;
}

static int http_check(struct outbound_call *call, struct err *err)
{
    const struct outbound_request *r = &call->request;
    CLEANUP(curlu_done)
    CURLU *u = curl_url();
    if (u == NULL) {
        out_of_memory(sizeof(*call));
    }
    bool known = str_starts(r->url, STR("http://")) || str_starts(r->url, STR("https://"));
    if (!known || strlen(r->url.p) != r->url.n ||
        curl_url_set(u, CURLUPART_URL, r->url.p, 0) != CURLUE_OK) {
        call->peer = STR("…"); /* what is no URL may still be a secret */
        return err_set(err, ERR_INVALID, "the address is no URL of http or https");
    }
    struct str scheme = url_part(u, CURLUPART_SCHEME, &call->memory);
    struct str host = url_part(u, CURLUPART_HOST, &call->memory);
    struct str port = url_part(u, CURLUPART_PORT, &call->memory);
    call->peer = arena_printf(&call->memory, STR_FMT "://" STR_FMT "%s" STR_FMT, STR_ARG(scheme),
                              STR_ARG(host), port.n > 0 ? ":" : "", STR_ARG(port));
    if (!is_token(r->method)) {
        return err_set(err, ERR_INVALID, "the method of the request is none");
    }
    for (uint32_t i = 0; i < r->header_n; i++) {
        if (!is_token(r->headers[i].name) || !is_line(r->headers[i].value)) {
            return err_set(err, ERR_INVALID, "header %u of the request is none", i + 1);
        }
    }
    return 0;
}

static struct outbound_call *host_http(struct outbound *outbound,
                                       const struct outbound_request *request,
                                       outbound_on_reply on_reply, void *ctx)
{
    struct outbound_call *call = call_new(outbound, request->timeout, on_reply, ctx);
    struct arena *a = &call->memory;
    struct outbound_header *headers = ARENA_ARRAY(a, struct outbound_header, request->header_n);
    for (uint32_t i = 0; i < request->header_n; i++) {
        headers[i].name = arena_str(a, request->headers[i].name);
        headers[i].value = arena_str(a, request->headers[i].value);
    }
    call->request = *request;
    call->request.method = arena_str(a, request->method);
    call->request.url = arena_str(a, request->url);
    call->request.headers = headers;
    call->request.body = arena_str(a, request->body);
    call->request.reply_header = arena_str(a, request->reply_header);
    call->reply.max = request->reply_max > 0 ? request->reply_max : OUTBOUND_REPLY_MAX;
    struct err err = { 0 };
    if (http_check(call, &err) < 0) {
        outbound_call_fail(call, &err);
    }
    return call;
}

static struct outbound_call *host_mail(struct outbound *outbound, const struct outbound_mail *mail,
                                       outbound_on_reply on_reply, void *ctx)
{
    struct outbound_call *call = call_new(outbound, mail->timeout, on_reply, ctx);
    struct arena *a = &call->memory;
    struct str *to = ARENA_ARRAY(a, struct str, mail->to_n);
    for (uint32_t i = 0; i < mail->to_n; i++) {
        to[i] = arena_str(a, mail->to[i]);
    }
    call->is_mail = true;
    call->mail = *mail;
    call->mail.address = arena_str(a, mail->address);
    call->mail.from = arena_str(a, mail->from);
    call->mail.to = to;
    call->mail.payload = arena_str(a, mail->payload);
    call->mail.identity = arena_str(a, mail->identity);
    call->mail.user = arena_str(a, mail->user);
    call->mail.password = arena_str(a, mail->password);
    call->peer = call->mail.address;
    struct err err = { 0 };
    if (outbound_mail_check(call, &err) < 0) {
        outbound_call_fail(call, &err);
    }
    return call;
}

static void host_cancel(struct outbound *outbound UNUSED, struct outbound_call *call)
{
    struct host_outbound *w = call->outbound;
    ASSERT(!call->in_callback); /* the handle is gone by then */
    call_free(call);
    if (!w->freed) {
        outbound_wake(w); /* its place is free */
    }
}

static const struct outbound_ops host_outbound_ops = {
    .http = host_http,
    .mail = host_mail,
    .cancel = host_cancel,
};

static size_t curl_on_body(char *data, size_t size, size_t n, void *ctx)
{
    struct outbound_call *call = ctx;
    buf_add(&call->reply, (struct str){ .p = data, .n = size * n });
    call->over_limit = call->reply.full;
    return call->over_limit ? 0 : size * n;
}

static void http_note_header(struct outbound_call *call, struct str line)
{
    struct str name;
    struct str value;
    if (str_starts(line, STR("HTTP/"))) {
        call->header = STR_NONE; /* the answer of a proxy came before */
    } else if (call->request.reply_header.n > 0 && call->header.n == 0 &&
               str_cut(line, STR(":"), &name, &value) &&
               str_eq_fold(str_trim(name), call->request.reply_header)) {
        call->header = arena_str(&call->memory, str_trim(value));
    }
}

static size_t curl_on_header(char *data, size_t size, size_t n, void *ctx)
{
    struct outbound_call *call = ctx;
    struct str line = str_trim((struct str){ .p = data, .n = size * n });
    http_note_header(call, line);
    if (line.n == 0) {
        long status = 0;
        (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
        call->head_done = status >= 200;
    }
    return size * n;
}

void outbound_call_prepare(struct outbound_call *call)
{
    const struct host_outbound_config *config = &call->outbound->config;
    call->easy = curl_easy_init();
    if (call->easy == NULL) {
        out_of_memory(sizeof(*call));
    }
    curl_endpoint_prepare_any(call->easy);
    (void)curl_easy_setopt(call->easy, CURLOPT_PRIVATE, call);
    (void)curl_easy_setopt(call->easy, CURLOPT_ERRORBUFFER, call->detail);
    (void)curl_easy_setopt(call->easy, CURLOPT_CONNECTTIMEOUT_MS,
                           (long)(config->connect_max / 1000));
    (void)curl_easy_setopt(call->easy, CURLOPT_NOPROXY, ""); /* decided already */
    if (config->ca_file.n > 0) {
        (void)curl_easy_setopt(call->easy, CURLOPT_CAINFO, config->ca_file.p);
    }
    if (call->outbound->pins[0] != '\0') {
        (void)curl_easy_setopt(call->easy, CURLOPT_PINNEDPUBLICKEY, call->outbound->pins);
        (void)curl_easy_setopt(call->easy, CURLOPT_SSL_VERIFYPEER, 0L);
        (void)curl_easy_setopt(call->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

/* libcurl reads the list and never owns it, so its links may live in the arena. */
static struct curl_slist *request_headers(struct outbound_call *call)
{
    struct curl_slist *first = ARENA_NEW(&call->memory, struct curl_slist);
    struct curl_slist *last = first;
    first->data = (char *)(uintptr_t) "Expect:"; /* its round trip buys nothing here */
    for (uint32_t i = 0; i < call->request.header_n; i++) {
        const struct outbound_header *h = &call->request.headers[i];
        struct curl_slist *item = ARENA_NEW(&call->memory, struct curl_slist);
        /* libcurl's way to send a header without a value is a semicolon. */
        struct str line = h->value.n > 0
                              ? arena_printf(&call->memory, STR_FMT ": " STR_FMT, STR_ARG(h->name),
                                             STR_ARG(h->value))
                              : arena_printf(&call->memory, STR_FMT ";", STR_ARG(h->name));
        item->data = (char *)(uintptr_t)line.p;
        last->next = item;
        last = item;
    }
    return first;
}

static void http_start(struct outbound_call *call)
{
    const struct outbound_request *r = &call->request;
    const struct host_outbound_config *config = &call->outbound->config;
    struct str proxy = config->env != NULL
                           ? proxy_choose(call->peer, config->env, config->env_ctx, &call->memory)
                           : STR_NONE;
    outbound_call_prepare(call);
    (void)curl_easy_setopt(call->easy, CURLOPT_URL, r->url.p);
    (void)curl_easy_setopt(call->easy, CURLOPT_PROXY, proxy.n > 0 ? proxy.p : "");
    (void)curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, request_headers(call));
    (void)curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, curl_on_body);
    (void)curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call);
    (void)curl_easy_setopt(call->easy, CURLOPT_HEADERFUNCTION, curl_on_header);
    (void)curl_easy_setopt(call->easy, CURLOPT_HEADERDATA, call);
    if (r->insecure) {
        (void)curl_easy_setopt(call->easy, CURLOPT_SSL_VERIFYPEER, 0L);
        (void)curl_easy_setopt(call->easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (r->body.n > 0 || str_eq(r->method, STR("POST")) || str_eq(r->method, STR("PUT"))) {
        (void)curl_easy_setopt(call->easy, CURLOPT_POST, 1L);
        (void)curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.n);
        (void)curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, r->body.p);
    } else if (str_eq(r->method, STR("HEAD"))) {
        (void)curl_easy_setopt(call->easy, CURLOPT_NOBODY, 1L);
    }
    (void)curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, r->method.p);
    curl_loop_add(call->outbound->multi, call->easy);
    call->attached = true;
}

/* libcurl has finished a request, with or without success. */
static void on_transfer_done(void *ctx UNUSED, CURL *easy, CURLcode result)
{
    char *private = NULL;
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
    struct outbound_call *call = (struct outbound_call *)(void *)private;
    struct err err = { 0 };
    long status = 0;
    curl_off_t retry_after = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after);
    call->attached = false;
    if (call->over_limit) {
        (void)err_set(&err, ERR_LIMIT, "the answer is longer than %zu bytes", call->reply.max);
    } else if (result != CURLE_OK) {
        (void)curl_endpoint_explain(easy, result, call->detail, &err);
    } else if (!call->head_done) {
        /* libcurl takes a connection that closes among the headers for their end. */
        (void)err_set(&err, ERR_IO, "the answer broke off in its headers");
    }
    if (err.code != 0) {
        outbound_call_fail(call, &err);
        return;
    }
    call->status = (int)status;
    call->retry_after = MIN(SECONDS(MAX(retry_after, (curl_off_t)0)), RETRY_AFTER_MAX);
    outbound_call_end(call);
}

static void outbound_start_all(struct host_outbound *w)
{
    while (!list_empty(&w->queue) && w->in_flight < w->config.calls_max) {
        struct outbound_call *call = CONTAINER_OF(w->queue.next, struct outbound_call, link);
        list_del(&call->link);
        list_add(&w->flying, &call->link);
        call->state = OUTBOUND_FLYING;
        w->queued--;
        w->in_flight++;
        if (call->is_mail) {
            outbound_mail_start(call);
        } else {
            http_start(call);
        }
    }
}

static void deliver(struct outbound_call *call)
{
    struct outbound_reply reply = { .err = &call->err };
    if (call->err.code == 0) {
        reply = (struct outbound_reply){
            .status = call->status,
            .body = buf_str(&call->reply),
            .header = call->header,
            .retry_after = call->retry_after,
        };
    }
    call->in_callback = true;
    call->on_reply(call->ctx, &reply);
    call_free(call);
}

static void outbound_end(struct host_outbound *w)
{
    struct list *const all[] = { &w->queue, &w->flying };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        while (!list_empty(all[i])) {
            call_free(CONTAINER_OF(all[i]->next, struct outbound_call, link));
        }
    }
    loop_timer_done(&w->pump);
    curl_loop_free(w->multi);
    arena_done(&w->memory);
    alloc_free(w);
}

/* The one place where readers are called: first what has come, then what may go. What becomes ready
 * meanwhile waits for the next turn. */
static void on_pump(void *ctx)
{
    struct host_outbound *w = ctx;
    struct list batch;
    list_move(&batch, &w->ready);
    w->pumping = true;
    while (!list_empty(&batch) && !w->freed) {
        struct outbound_call *call = CONTAINER_OF(batch.next, struct outbound_call, ready);
        list_del(&call->ready);
        deliver(call);
    }
    w->pumping = false;
    if (w->freed) {
        outbound_end(w);
        return;
    }
    outbound_start_all(w);
}

struct outbound *host_outbound_new(struct loop *loop, const struct host_outbound_config *config)
{
    struct host_outbound *w = ALLOC_NEW(struct host_outbound);
    w->door.ops = &host_outbound_ops;
    w->loop = loop;
    w->memory.first = 256;
    w->config = *config;
    w->config.ca_file = arena_str(&w->memory, config->ca_file);
    w->config.calls_max = config->calls_max > 0 ? config->calls_max : OUTBOUND_CALLS_MAX;
    w->config.connect_max = config->connect_max > 0 ? config->connect_max : OUTBOUND_CONNECT_MAX;
    list_init(&w->queue);
    list_init(&w->flying);
    list_init(&w->ready);
    loop_timer_init(&w->pump, loop, on_pump, w);
    w->multi = curl_loop_new(loop, on_transfer_done, w);
    curl_loop_set_connections_max(w->multi, w->config.calls_max);
    return &w->door;
}

void host_outbound_free(struct outbound *outbound)
{
    if (outbound == NULL) {
        return;
    }
    struct host_outbound *w = outbound_of(outbound);
    w->freed = true;
    if (!w->pumping) {
        outbound_end(w);
    }
}

void host_outbound_pin(struct outbound *outbound, const unsigned char one[OUTBOUND_PIN_BYTES],
                       const unsigned char other[OUTBOUND_PIN_BYTES])
{
    struct host_outbound *w = outbound_of(outbound);
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str first =
        base64_encode(&tmp, (struct str){ .p = (const char *)one, .n = OUTBOUND_PIN_BYTES });
    struct str second =
        base64_encode(&tmp, (struct str){ .p = (const char *)other, .n = OUTBOUND_PIN_BYTES });
    int n = snprintf(w->pins, sizeof(w->pins), "sha256//" STR_FMT ";sha256//" STR_FMT,
                     STR_ARG(first), STR_ARG(second));
    ASSERT(n > 0 && (size_t)n < sizeof(w->pins));
}

uint32_t host_outbound_queued(const struct outbound *outbound)
{
    return outbound_of(outbound)->queued;
}

uint32_t host_outbound_in_flight(const struct outbound *outbound)
{
    return outbound_of(outbound)->in_flight;
}
