#include "host/transport.h"

#include "base/alloc.h"
#include "host/transport_request.h"

static struct transport *transport_of(struct api *api)
{
    return CONTAINER_OF(api, struct transport, door);
}

static void transport_wake(struct transport *t)
{
    loop_timer_pull(&t->pump, loop_now(t->loop));
}

/* Ends a request: it leaves the queue or libcurl, and its reply is delivered in the next turn. */
static void transport_request_end(struct transport_request *x)
{
    list_del(&x->link);
    loop_timer_stop(&x->timer);
    x->state = TRANSPORT_REQUEST_OVER;
    if (!list_linked(&x->ready)) {
        list_add(&x->transport->ready, &x->ready);
    }
    transport_wake(x->transport);
}

static struct curl_loop *transport_request_multi(const struct transport_request *x)
{
    return x->own ? x->transport->own_multi : x->transport->multi;
}

/* How many requests of its kind wait, and how many are under way. */
static uint32_t *transport_request_queued(struct transport_request *x)
{
    struct transport_stats *s = &x->transport->stats;
    return x->watch ? &s->watches_queued : (x->own ? &s->own_queued : &s->queued);
}

static uint32_t *transport_request_in_flight(struct transport_request *x)
{
    struct transport_stats *s = &x->transport->stats;
    return x->watch ? &s->watches : (x->own ? &s->own : &s->in_flight);
}

static void transport_request_fail(struct transport_request *x, const struct err *err)
{
    if (x->state == TRANSPORT_REQUEST_FLYING) {
        curl_loop_remove(transport_request_multi(x), x->slot->easy);
    }
    x->err = ALLOC_NEW(struct err);
    *x->err = *err;
    x->transport->stats.replies[0]++;
    transport_request_end(x);
}

static void transport_request_free(struct transport_request *x)
{
    struct transport *t = x->transport;
    if (x->state == TRANSPORT_REQUEST_FLYING) {
        curl_loop_remove(transport_request_multi(x), x->slot->easy);
    }
    if (x->slot != NULL) {
        (*transport_request_in_flight(x))--;
        slot_give(t, x->slot);
    } else if (x->state == TRANSPORT_REQUEST_QUEUED) {
        (*transport_request_queued(x))--;
    }
    list_del(&x->link);
    list_del(&x->ready);
    loop_timer_done(&x->timer);
    alloc_free(x->err);
    alloc_free(x);
}

/* Cancelled by its owner. From inside its own callback, the pump frees it. */
static void transport_request_drop(struct transport_request *x)
{
    if (x->in_callback) {
        x->dropped = true;
        return;
    }
    struct transport *t = x->transport;
    transport_request_free(x);
    if (!t->freed) {
        transport_wake(t); /* its place is free */
    }
}

static void on_request_timer(void *ctx)
{
    struct transport_request *x = ctx;
    struct transport *t = x->transport;
    struct err err = { 0 };
    usec_t now = loop_now(t->loop);
    if (!x->watch) {
        const char *where = x->state == TRANSPORT_REQUEST_QUEUED ? "while it waited in the queue"
                                                                 : "from the server";
        (void)err_set(&err, ERR_TIMEOUT, "server '" STR_FMT "': no answer in %lld ms, %s",
                      STR_ARG(t->access->server), (long long)(x->timeout / 1000), where);
        if (x->state == TRANSPORT_REQUEST_QUEUED) {
            (*transport_request_queued(x))--;
        }
        transport_request_fail(x, &err);
        return;
    }
    if (now < x->last_byte + x->timeout) {
        loop_timer_set(&x->timer, x->last_byte + x->timeout);
        return;
    }
    (void)err_set(&err, ERR_TIMEOUT, "server '" STR_FMT "': the watch was silent for %lld ms",
                  STR_ARG(t->access->server), (long long)(x->timeout / 1000));
    transport_request_fail(x, &err);
}

static struct transport_request *transport_request_new(struct transport *t,
                                                       const struct api_request *request)
{
    ASSERT(request->path.n > 0 && request->path.p[0] == '/');
    const struct str from[] = { request->path, request->content_type, request->accept,
                                request->body };
    size_t size = 1;
    for (size_t i = 0; i < ARRAY_LEN(from); i++) {
        size += from[i].n;
    }
    struct transport_request *x = alloc_bytes(sizeof(*x) + size);
    x->transport = t;
    x->verb = request->verb;
    char *at = x->text;
    struct str *into[] = { &x->path, &x->content_type, &x->accept, &x->body };
    for (size_t i = 0; i < ARRAY_LEN(from); i++) {
        if (from[i].n > 0) {
            memcpy(at, from[i].p, from[i].n);
        }
        *into[i] = (struct str){ .p = at, .n = from[i].n };
        at += from[i].n;
    }
    loop_timer_init(&x->timer, t->loop, on_request_timer, x);
    return x;
}

static struct api_call *transport_send(struct api *api, const struct api_request *request,
                                       api_on_reply on_reply, void *ctx)
{
    struct transport *t = transport_of(api);
    struct transport_request *x = transport_request_new(t, request);
    x->on_reply = on_reply;
    x->ctx = ctx;
    x->timeout = request->timeout > 0 ? request->timeout : API_TIMEOUT;
    x->sent = loop_now(t->loop);
    x->own = request->own_connection;
    if (!x->own) { /* else it counts from the start: it waits for nothing but a credential */
        loop_timer_set(&x->timer, x->sent + x->timeout);
    }
    list_add(x->own ? &t->own_queue : &t->queue, &x->link);
    (*transport_request_queued(x))++;
    transport_wake(t);
    return (struct api_call *)x;
}

static void transport_cancel(struct api *api UNUSED, struct api_call *call)
{
    transport_request_drop((struct transport_request *)call);
}

static struct api_watch *transport_watch(struct api *api, const struct api_watch_spec *spec,
                                         api_on_event on_event, void *ctx)
{
    struct transport *t = transport_of(api);
    const struct api_request request = { .path = spec->path, .accept = spec->accept };
    struct transport_request *x = transport_request_new(t, &request);
    x->watch = true;
    x->on_event = on_event;
    x->ctx = ctx;
    x->timeout = spec->silence_max;
    list_add(&t->watch_queue, &x->link);
    (*transport_request_queued(x))++;
    transport_wake(t);
    return (struct api_watch *)x;
}

static void transport_watch_stop(struct api *api UNUSED, struct api_watch *watch)
{
    transport_request_drop((struct transport_request *)watch);
}

static const struct api_ops transport_ops = {
    .send = transport_send,
    .cancel = transport_cancel,
    .watch = transport_watch,
    .watch_stop = transport_watch_stop,
};

/* libcurl has finished a transfer, with or without success. */
static void on_transfer_done(void *ctx UNUSED, CURL *easy, CURLcode result)
{
    char *private = NULL;
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
    struct slot *s = (struct slot *)(void *)private;
    struct transport_request *x = s->request;
    struct transport *t = x->transport;
    struct err err = { 0 };
    long status = 0;
    long connects = 0;
    curl_off_t retry_after = 0;
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects);
    (void)curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after);
    t->stats.connections += (uint64_t)MAX(connects, 0L);
    x->state = TRANSPORT_REQUEST_OVER; /* it has left the multi */
    if (status == 401) {
        credentials_refused(t->credentials, s->credential);
    }
    if (x->over_limit) {
        bool head = x->head_bytes > TRANSPORT_HEAD_BYTES_MAX;
        const char *what = head        ? "the head of the answer"
                           : x->opened ? "a line of the watch"
                                       : "the answer";
        size_t most = head        ? TRANSPORT_HEAD_BYTES_MAX
                      : x->opened ? t->limits.line_bytes_max
                                  : s->reply.max;
        (void)err_set(&err, ERR_LIMIT, "server '" STR_FMT "': %s is longer than %zu bytes",
                      STR_ARG(t->access->server), what, most);
    } else if (result != CURLE_OK) {
        (void)curl_endpoint_error(&t->endpoint, easy, result, s->detail, &err);
    } else if (!x->head_done) {
        /* libcurl takes a connection that closes among the headers for their end. */
        (void)err_set(&err, ERR_IO, "server '" STR_FMT "': the answer broke off in its headers",
                      STR_ARG(t->access->server));
    } else if (x->opened && s->reply.n > x->lines_end) {
        (void)err_set(&err, ERR_PROTO, "server '" STR_FMT "': the watch ended within a line",
                      STR_ARG(t->access->server));
    }
    if (err.code != 0) {
        transport_request_fail(x, &err);
        return;
    }
    x->status = (int)status;
    x->retry_after = MIN(SECONDS(MAX(retry_after, (curl_off_t)0)), RETRY_AFTER_MAX);
    t->stats.replies[MIN(MAX(status / 100, 0L), 5L)]++;
    transport_request_end(x);
}

/* Sends the first of a queue. False when it has to wait. */
static bool transport_start(struct transport *t, struct transport_request *x)
{
    struct credential *credential;
    struct err err = { 0 };
    int r = credentials_take(t->credentials, &credential, &err);
    if (r == -ERR_BUSY) {
        return false;
    }
    (*transport_request_queued(x))--;
    if (r < 0) {
        (void)err_wrap(&err, "server '" STR_FMT "'", STR_ARG(t->access->server));
        transport_request_fail(x, &err);
        return true;
    }
    x->slot = slot_take(t);
    x->slot->request = x;
    x->slot->credential = credential;
    slot_load(x->slot, x);
    x->state = TRANSPORT_REQUEST_FLYING;
    list_del(&x->link);
    list_add(&t->flying, &x->link);
    (*transport_request_in_flight(x))++;
    if (x->watch) {
        t->stats.sent_watch++;
        x->last_byte = loop_now(t->loop);
        if (x->timeout > 0) {
            loop_timer_set(&x->timer, x->last_byte + x->timeout);
        }
    } else {
        t->stats.sent[x->verb]++;
        if (x->own) {
            loop_timer_set(&x->timer, loop_now(t->loop) + x->timeout);
        }
    }
    curl_loop_add(transport_request_multi(x), x->slot->easy);
    return true;
}

/* While a credential plugin runs, no request can be sent. */
static void transport_start_all(struct transport *t)
{
    while (!list_empty(&t->own_queue) && t->stats.own < TRANSPORT_OWN_MAX) {
        if (!transport_start(t, CONTAINER_OF(t->own_queue.next, struct transport_request, link))) {
            return;
        }
    }
    while (!list_empty(&t->watch_queue) && t->stats.watches < t->limits.watches_max) {
        if (!transport_start(t,
                             CONTAINER_OF(t->watch_queue.next, struct transport_request, link))) {
            return;
        }
    }
    while (!list_empty(&t->queue) && t->stats.in_flight < t->limits.requests_max) {
        if (!transport_start(t, CONTAINER_OF(t->queue.next, struct transport_request, link))) {
            return;
        }
    }
}

/* Tells a watch's reader one thing; false when the reader has dropped the watch. */
static bool watch_tell(struct transport_request *x, const struct api_watch_event *event)
{
    x->in_callback = true;
    x->on_event(x->ctx, event);
    x->in_callback = false;
    return !x->dropped;
}

/* Hands out the lines that are complete. False when the reader has dropped the watch. */
static bool watch_tell_lines(struct transport_request *x)
{
    struct slot *s = x->slot;
    size_t at = 0;
    while (at < x->lines_end) {
        struct str rest = { .p = s->reply.p + at, .n = x->lines_end - at };
        size_t n = str_find_char(rest, '\n');
        struct api_watch_event event = {
            .kind = API_WATCH_LINE,
            .status = x->status,
            .line = { .p = rest.p, .n = n },
        };
        at += n + 1;
        if (n > 0 && !watch_tell(x, &event)) {
            return false;
        }
    }
    buf_drop(&s->reply, x->lines_end);
    x->lines_end = 0;
    if (s->reply.n == 0 && s->reply.cap > SLOT_KEEP_MAX) {
        buf_done(&s->reply);
    }
    return true;
}

static void deliver_watch(struct transport_request *x)
{
    if (x->opened && !x->open_told) {
        x->open_told = true;
        struct api_watch_event event = { .kind = API_WATCH_OPEN, .status = x->status };
        if (!watch_tell(x, &event)) {
            transport_request_free(x);
            return;
        }
    }
    if (x->opened && x->lines_end > 0 && !watch_tell_lines(x)) {
        transport_request_free(x);
        return;
    }
    if (x->state != TRANSPORT_REQUEST_OVER) {
        if (x->paused) {
            x->paused = false;
            /* May hand over bytes at once; a failure shows as the end of the transfer. */
            (void)curl_easy_pause(x->slot->easy, CURLPAUSE_CONT);
        } else if (x->transport->group != NULL) {
            slot_rest(x->slot);
        }
        return;
    }
    struct api_watch_event event = {
        .kind = API_WATCH_END,
        .status = x->err == NULL || x->opened ? x->status : 0,
        .line = x->err == NULL && !x->opened ? buf_str(&x->slot->reply) : STR_NONE,
        .retry_after = x->retry_after,
        .err = x->err,
    };
    (void)watch_tell(x, &event); /* it ends now, either way */
    transport_request_free(x);
}

static void deliver_call(struct transport_request *x)
{
    struct api_reply reply = {
        .status = x->status,
        .body = x->err == NULL ? buf_str(&x->slot->reply) : STR_NONE,
        .retry_after = x->retry_after,
        .date = x->date,
        .took = loop_now(x->transport->loop) - x->sent,
        .err = x->err,
    };
    x->in_callback = true;
    x->on_reply(x->ctx, &reply);
    transport_request_free(x);
}

static void transport_end(struct transport *t);

/* The one place where readers are called: first what has come, then what may go. What becomes ready
 * meanwhile waits for the next turn. */
static void on_pump(void *ctx)
{
    struct transport *t = ctx;
    struct list batch;
    list_move(&batch, &t->ready);
    t->pumping = true;
    while (!list_empty(&batch)) {
        struct transport_request *x = CONTAINER_OF(batch.next, struct transport_request, ready);
        list_del(&x->ready);
        if (t->freed) {
            transport_request_free(x);
        } else if (x->watch) {
            deliver_watch(x);
        } else {
            deliver_call(x);
        }
    }
    t->pumping = false;
    if (t->freed) {
        transport_end(t);
        return;
    }
    transport_start_all(t);
}

static void on_credentials(void *ctx)
{
    transport_wake(ctx);
}

static struct transport *transport_begin(struct loop *loop, const struct cluster_access *access)
{
    struct transport *t = ALLOC_NEW(struct transport);
    t->door.ops = &transport_ops;
    t->loop = loop;
    t->access = access;
    list_init(&t->queue);
    list_init(&t->own_queue);
    list_init(&t->watch_queue);
    list_init(&t->flying);
    list_init(&t->ready);
    list_init(&t->slots);
    loop_timer_init(&t->pump, loop, on_pump, t);
    return t;
}

struct api *transport_new(struct loop *loop, const struct cluster_access *access, struct err *err)
{
    struct transport *t = transport_begin(loop, access);
    if (curl_endpoint_init(&t->endpoint, access, err) < 0) {
        loop_timer_done(&t->pump);
        alloc_free(t);
        return NULL;
    }
    t->multi = curl_loop_new(loop, on_transfer_done, NULL);
    t->own_multi = curl_loop_new(loop, on_transfer_done, NULL);
    curl_loop_set_connections_max(t->own_multi, TRANSPORT_OWN_MAX);
    t->share = curl_share_init();
    if (t->share == NULL) {
        out_of_memory(sizeof(*t));
    }
    (void)curl_share_setopt(t->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    t->credentials = credentials_new(loop, access, on_credentials, t);
    transport_set_limits(&t->door, &(struct transport_limits){ 0 });
    return &t->door;
}

struct transport_group *transport_group_new(struct loop *loop)
{
    struct transport_group *group = ALLOC_NEW(struct transport_group);
    group->loop = loop;
    group->multi = curl_loop_new(loop, on_transfer_done, NULL);
    return group;
}

void transport_group_free(struct transport_group *group)
{
    if (group == NULL) {
        return;
    }
    ASSERT(group->members == 0);
    curl_loop_free(group->multi);
    alloc_free(group);
}

/* Copies what is needed for as long as the transport lives. Keys and passwords stay views, to be
 * dropped when others have made of them what they need. */
static void transport_own(struct transport *t, const struct cluster_access *access)
{
    t->own = *access;
    t->access = &t->own;
    struct cluster_access *own = &t->own;
    struct str *texts[] = { &own->name,      &own->server,           &own->tls_server_name,
                            &own->proxy_url, &own->impersonate_user, &own->impersonate_uid,
                            &own->ns };
    t->memory.first = 256;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (texts[i]->n > 0) {
            *texts[i] = arena_str(&t->memory, *texts[i]);
        }
    }
    struct str *groups = ARENA_ARRAY(&t->memory, struct str, own->impersonate_groups_n);
    for (uint32_t i = 0; i < own->impersonate_groups_n; i++) {
        groups[i] = arena_str(&t->memory, access->impersonate_groups[i]);
    }
    own->impersonate_groups = groups;
}

static void transport_forget_keys(struct transport *t)
{
    t->own.ca_pem = STR_NONE;
    t->own.cert_pem = STR_NONE;
    t->own.key_pem = STR_NONE;
    t->own.token = STR_NONE;
    t->own.username = STR_NONE;
    t->own.password = STR_NONE;
}

struct api *transport_group_join(struct transport_group *group, const struct cluster_access *access,
                                 struct err *err)
{
    ASSERT(access->exec.command.n == 0);
    ASSERT(access->token_file.n == 0);
    struct transport *t = transport_begin(group->loop, NULL);
    t->group = group;
    t->multi = group->multi;
    t->own_multi = group->multi;
    transport_own(t, access);
    int r = curl_endpoint_init(&t->endpoint, &t->own, err);
    r = r < 0 ? r : tls_identity_init(&t->identity, &t->own, err);
    if (r < 0) {
        curl_endpoint_done(&t->endpoint);
        loop_timer_done(&t->pump);
        arena_wipe(&t->memory);
        alloc_free(t);
        return NULL;
    }
    t->own.cert_pem = STR_NONE; /* the identity has them */
    t->own.key_pem = STR_NONE;
    t->credentials = credentials_new(group->loop, &t->own, on_credentials, t);
    transport_forget_keys(t);
    group->members++;
    transport_set_limits(&t->door, &(struct transport_limits){ 0 });
    return &t->door;
}

static void drop_all(struct list *head)
{
    LIST_EACH (head, link) {
        transport_request_drop(CONTAINER_OF(link, struct transport_request, link));
    }
}

/* No callback is called any more; memory that a running callback uses is freed after it. */
static void transport_drop(struct transport *t)
{
    t->freed = true;
    drop_all(&t->queue);
    drop_all(&t->own_queue);
    drop_all(&t->watch_queue);
    drop_all(&t->flying);
}

static void transport_end(struct transport *t)
{
    while (!list_empty(&t->ready)) {
        transport_request_free(CONTAINER_OF(t->ready.next, struct transport_request, ready));
    }
    LIST_EACH (&t->slots, link) {
        slot_free(CONTAINER_OF(link, struct slot, link));
    }
    loop_timer_done(&t->pump);
    credentials_free(t->credentials);
    (void)curl_share_cleanup(t->share); /* its users are gone; NULL is none */
    if (t->group != NULL) {
        t->group->members--;
    } else {
        curl_loop_free(t->multi);
        curl_loop_free(t->own_multi);
    }
    curl_endpoint_done(&t->endpoint);
    tls_identity_done(&t->identity);
    arena_wipe(&t->memory); /* a proxy's URL may hold a password */
    alloc_free(t);
}

void transport_free(struct api *api)
{
    if (api == NULL) {
        return;
    }
    struct transport *t = transport_of(api);
    transport_drop(t);
    if (!t->pumping) {
        transport_end(t);
    }
}

void transport_set_limits(struct api *api, const struct transport_limits *limits)
{
    struct transport *t = transport_of(api);
    t->limits = *limits;
    struct transport_limits *l = &t->limits;
    l->requests_max = l->requests_max > 0 ? l->requests_max : TRANSPORT_REQUESTS_MAX;
    l->watches_max = l->watches_max > 0 ? l->watches_max : TRANSPORT_WATCHES_MAX;
    l->connect_max = l->connect_max > 0 ? l->connect_max : TRANSPORT_CONNECT_MAX;
    l->reply_bytes_max = l->reply_bytes_max > 0 ? l->reply_bytes_max : REPLY_BYTES_MAX;
    l->line_bytes_max = l->line_bytes_max > 0 ? l->line_bytes_max : TRANSPORT_LINE_MAX;
    if (t->group == NULL) { /* a group keeps no connection that is not in use */
        curl_loop_set_connections_max(t->multi, l->requests_max + l->watches_max);
    }
    transport_wake(t);
}

struct transport_stats transport_stats(const struct api *api)
{
    return ((const struct transport *)(const void *)api)->stats; /* the door is its first member */
}
