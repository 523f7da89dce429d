#include "kube/recorder.h"

#include "base/alloc.h"
#include "base/timestamp.h"
#include "format/json_writer.h"

struct recorder_series {
    struct arena memory;
    struct str key;
    struct str name;
    struct str namespace;
    struct recorder_event event; /* what a creation sends */
    usec_t first_wall;
    struct list link;  /* in the queue */
    uint32_t count;    /* 1 = no series yet */
    usec_t queued_at;  /* monotonic */
    usec_t last_wall;  /* of the last repeat */
    usec_t last_at;    /* the same, monotonic */
    usec_t refresh_at; /* when the count is to be written again */
    bool created;      /* the server has it */
    bool unwritten;    /* counted more than the server knows */
    bool ending;       /* forgotten once it is written */
};

static void recorder_send(void *ctx);
static void recorder_tidy(void *ctx);

void recorder_init(struct recorder *r, struct client *client, struct str controller,
                   struct str instance)
{
    *r = (struct recorder){
        .client = client,
        .controller = controller,
        .instance = instance,
        .bucket = { .rate = RECORDER_RATE, .burst = RECORDER_BURST },
    };
    map_init(&r->series, loop_random(client->loop), loop_random(client->loop));
    list_init(&r->queue);
    loop_timer_init(&r->send, client->loop, recorder_send, r);
    loop_timer_init(&r->tidy, client->loop, recorder_tidy, r);
}

void recorder_on_denied(struct recorder *r, void (*on_denied)(void *ctx, enum recorder_api api),
                        void *ctx)
{
    r->on_denied = on_denied;
    r->ctx = ctx;
}

static void recorder_unqueue(struct recorder *r, struct recorder_series *s)
{
    if (list_linked(&s->link)) {
        list_del(&s->link);
        r->stats.queued--;
    }
}

static void recorder_forget(struct recorder *r, struct recorder_series *s)
{
    recorder_unqueue(r, s);
    (void)map_del(&r->series, s->key); /* it is there: every series is */
    r->stats.remembered--;
    arena_done(&s->memory);
    alloc_free(s);
}

void recorder_done(struct recorder *r)
{
    if (r->client == NULL) {
        return;
    }
    if (r->call != NULL) {
        api_cancel(r->client->api, STEAL(r->call));
    }
    MAP_EACH (&r->series, item) {
        recorder_forget(r, map_item_value(item));
    }
    map_done(&r->series);
    loop_timer_done(&r->send);
    loop_timer_done(&r->tidy);
    buf_done(&r->path);
    buf_done(&r->body);
    r->client = NULL;
}

/* ── making ────────────────────────────────────────────────────────────────────────────────── */

static void recorder_key_ref(struct buf *key, const struct recorder_ref *ref)
{
    const struct str parts[] = { ref->kind,      ref->api_version, ref->name,
                                 ref->namespace, ref->uid,         ref->version };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        buf_add(key, parts[i]);
        buf_add_char(key, '\0');
    }
}

static void recorder_key(const struct recorder_event *e, struct buf *key)
{
    const struct str parts[] = { e->type, e->action, e->reason };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        buf_add(key, parts[i]);
        buf_add_char(key, '\0');
    }
    recorder_key_ref(key, &e->regarding);
    recorder_key_ref(key, &e->related);
}

static void recorder_write_ref(struct json_writer *w, const char *key,
                               const struct recorder_ref *ref)
{
    if (ref->name.n == 0) {
        return;
    }
    jw_key(w, str_from(key));
    jw_obj(w);
    jw_pair(w, "kind", ref->kind);
    jw_pair_some(w, "namespace", ref->namespace);
    jw_pair(w, "name", ref->name);
    jw_pair(w, "uid", ref->uid);
    jw_pair(w, "apiVersion", ref->api_version);
    jw_pair(w, "resourceVersion", ref->version);
    jw_obj_end(w);
}

/* A DNS subdomain, as names of events must be. */
static bool recorder_name_is_valid(struct str name)
{
    bool start = true; /* of a piece between dots */
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        bool inner = c == '-' && !start && i + 1 < name.n && name.p[i + 1] != '.';
        bool dot = c == '.' && !start && i + 1 < name.n;
        if (!alnum && !inner && !dot) {
            return false;
        }
        start = c == '.';
    }
    return name.n > 0 && name.n <= 253;
}

static struct str recorder_name(struct recorder *r, struct arena *a, struct str object)
{
    struct loop *loop = r->client->loop;
    /* Two events of one instant still need two names. */
    r->last_ns = MAX(r->last_ns + 1, loop_wall(loop) * 1000);
    struct str name =
        arena_printf(a, STR_FMT ".%llx", STR_ARG(object), (unsigned long long)r->last_ns);
    if (recorder_name_is_valid(name)) {
        return name;
    }
    uint64_t high = (loop_random(loop) & ~0xf000ULL) | 0x4000ULL;
    uint64_t low = (loop_random(loop) >> 2) | (1ULL << 63);
    return arena_printf(a, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(high >> 32),
                        (unsigned)(high >> 16) & 0xffff, (unsigned)high & 0xffff,
                        (unsigned)(low >> 48), (unsigned long long)(low & 0xffffffffffffULL));
}

static struct recorder_ref recorder_copy_ref(struct arena *a, const struct recorder_ref *ref)
{
    return (struct recorder_ref){
        .kind = arena_str(a, ref->kind),
        .api_version = arena_str(a, ref->api_version),
        .name = arena_str(a, ref->name),
        .namespace = arena_str(a, ref->namespace),
        .uid = arena_str(a, ref->uid),
        .version = arena_str(a, ref->version),
    };
}

static struct recorder_event recorder_copy(struct arena *a, const struct recorder_event *e)
{
    return (struct recorder_event){
        .type = arena_str(a, e->type),
        .reason = arena_str(a, e->reason),
        .action = arena_str(a, e->action),
        .note = arena_str(a, str_sub(e->note, 0, RECORDER_NOTE_BYTES_MAX)),
        .regarding = recorder_copy_ref(a, &e->regarding),
        .related = recorder_copy_ref(a, &e->related),
    };
}

/* Whoever has been silent for longest makes room; a series that waits to be sent stays. */
static bool recorder_make_room(struct recorder *r)
{
    if (r->stats.remembered < RECORDER_REMEMBERED_MAX) {
        return true;
    }
    MAP_EACH (&r->series, item) {
        struct recorder_series *s = map_item_value(item);
        if (!list_linked(&s->link)) {
            recorder_forget(r, s);
            return true;
        }
    }
    return false;
}

static bool recorder_enqueue(struct recorder *r, struct recorder_series *s)
{
    if (list_linked(&s->link)) {
        return true;
    }
    if (r->stats.queued >= RECORDER_QUEUE_MAX) {
        return false;
    }
    list_add(&r->queue, &s->link);
    s->queued_at = loop_now(r->client->loop);
    r->stats.queued++;
    loop_timer_pull(&r->send, MAX(loop_now(r->client->loop), r->not_before));
    return true;
}

static void recorder_add_first(struct recorder *r, const struct recorder_event *e, struct str key)
{
    usec_t now = loop_now(r->client->loop);
    if (r->stats.queued >= RECORDER_QUEUE_MAX || !recorder_make_room(r)) {
        r->stats.dropped++;
        return;
    }
    struct recorder_series *s = ALLOC_NEW(struct recorder_series);
    s->memory.first = 1024;
    s->key = arena_str(&s->memory, key);
    s->namespace = arena_str(&s->memory, e->regarding.namespace.n > 0 ? e->regarding.namespace
                                                                      : STR("default"));
    s->name = recorder_name(r, &s->memory, e->regarding.name);
    s->count = 1;
    s->first_wall = loop_wall(r->client->loop);
    s->last_at = now;
    s->refresh_at = now + RECORDER_REFRESH;
    s->event = recorder_copy(&s->memory, e);
    (void)map_put(&r->series, s->key, s); /* it was not there */
    r->stats.remembered++;
    (void)recorder_enqueue(r, s); /* there is room: asked above */
    loop_timer_pull(&r->tidy, now + RECORDER_SILENCE);
}

void recorder_add(struct recorder *r, const struct recorder_event *event)
{
    CLEANUP(buf_done)
    struct buf key = { 0 };
    recorder_key(event, &key);
    struct recorder_series *s = map_find(&r->series, buf_str(&key));
    if (s == NULL) {
        recorder_add_first(r, event, buf_str(&key));
        return;
    }
    s->count++;
    s->last_wall = loop_wall(r->client->loop);
    s->last_at = loop_now(r->client->loop);
    s->unwritten = true;
    s->ending = false;
    if (s->count == 2 && !recorder_enqueue(r, s)) {
        r->stats.dropped++;
    }
}

/* ── sending ───────────────────────────────────────────────────────────────────────────────── */

static struct recorder_series *recorder_first(const struct recorder *r)
{
    return list_empty(&r->queue) ? NULL : CONTAINER_OF(r->queue.next, struct recorder_series, link);
}

/* True when a token is there now; otherwise `*ret_at` is when the next one is. */
static bool recorder_take_token(struct recorder *r, usec_t now, usec_t *ret_at)
{
    *ret_at = ratelimit_ready_at(&r->bucket, now);
    if (*ret_at > now) {
        return false;
    }
    ratelimit_take(&r->bucket, now);
    return true;
}

/* Whether others go first, and until when at most. A queue that fills up would drop Events: then
 * nobody does. */
static bool recorder_yields(const struct recorder *r, const struct recorder_series *s, usec_t now,
                            usec_t *ret_at)
{
    usec_t end = s->queued_at + RECORDER_YIELD_MAX;
    *ret_at = MIN(now + RECORDER_YIELD, end);
    return r->client->urgent > 0 && r->stats.queued < RECORDER_YIELD_QUEUED && now < end;
}

static void recorder_next(struct recorder *r)
{
    if (!list_empty(&r->queue) && r->call == NULL) {
        loop_timer_pull(&r->send, MAX(loop_now(r->client->loop), r->not_before));
    }
}

/* Sent, rejected or lost: the queue's first is done with. */
static void recorder_pass(struct recorder *r, struct recorder_series *s)
{
    r->tries = 0;
    memset(r->denied, 0, sizeof(r->denied));
    recorder_unqueue(r, s);
    if (s->ending || !s->created) {
        recorder_forget(r, s); /* a repeat starts anew */
    } else if (s->unwritten && s->count == 2) {
        (void)recorder_enqueue(r, s); /* repeated while its creation was under way */
    }
    recorder_next(r);
}

/* Other refusals with 403 are about the object: a namespace that is being deleted, a webhook. */
static bool recorder_lacks_right(const struct api_reply *reply)
{
    struct err err = { 0 };
    if (reply->status != 403) {
        return false;
    }
    client_explain(reply->status, reply->body, reply->err, &err);
    struct str why = str_from(err.msg);
    return str_contains(why, STR(" cannot create resource \"events\"")) ||
           str_contains(why, STR(" cannot patch resource \"events\""));
}

/* True when the other API has not been asked yet for the queue's first. */
static bool recorder_take_denial(struct recorder *r)
{
    enum recorder_api denied = r->api;
    r->denied[denied] = true;
    if (!r->told[denied]) {
        r->told[denied] = true;
        if (r->on_denied != NULL) {
            r->on_denied(r->ctx, denied);
        }
    }
    r->api = denied == RECORDER_API_EVENTS ? RECORDER_API_CORE : RECORDER_API_EVENTS;
    return !r->denied[r->api];
}

static void recorder_on_reply(void *ctx, const struct api_reply *reply)
{
    struct recorder *r = ctx;
    struct recorder_series *s = recorder_first(r);
    ASSERT(s != NULL);
    bool patch = s->created;
    r->call = NULL;
    enum retry_verdict verdict = client_note(r->client, patch ? API_PATCH : API_POST, reply);
    if (reply->status == 0) {
        usec_t wait = RECORDER_RETRY +
                      (usec_t)(loop_random(r->client->loop) % (uint64_t)(RECORDER_RETRY / 4));
        r->not_before = loop_now(r->client->loop) + wait;
        if (++r->tries < RECORDER_TRIES) {
            recorder_next(r);
            return;
        }
        r->stats.lost++;
    } else if (recorder_lacks_right(reply) && recorder_take_denial(r)) {
        recorder_next(r);
        return;
    } else if (verdict == RETRY_ABSENT && patch) {
        s->created = false; /* it has expired on the server: make it again */
        recorder_next(r);
        return;
    } else if (verdict == RETRY_DONE || (verdict == RETRY_OBSERVE && !patch)) {
        /* A creation that finds its own name went through the first time. */
        r->stats.created += patch ? 0 : 1;
        r->stats.patched += patch ? 1 : 0;
        s->unwritten = patch ? false : s->unwritten;
        s->created = true;
        s->refresh_at = loop_now(r->client->loop) + RECORDER_REFRESH;
    } else {
        r->stats.rejected++;
    }
    recorder_pass(r, s);
}

/* events.k8s.io/v1 */
static void recorder_write_new(const struct recorder *r, const struct recorder_series *s,
                               struct json_writer *w)
{
    char text[TIMESTAMP_TEXT_MAX];
    const struct recorder_event *e = &s->event;
    jw_pair(w, "eventTime", timestamp_print_micro(s->first_wall, text));
    jw_pair(w, "reportingController", r->controller);
    jw_pair(w, "reportingInstance", r->instance);
    jw_pair(w, "action", e->action);
    jw_pair(w, "reason", e->reason);
    recorder_write_ref(w, "regarding", &e->regarding);
    recorder_write_ref(w, "related", &e->related);
    jw_pair(w, "note", e->note);
}

/* The core API's, as kubelet writes them. */
static void recorder_write_core(const struct recorder *r, const struct recorder_series *s,
                                struct json_writer *w)
{
    char text[TIMESTAMP_TEXT_MAX];
    const struct recorder_event *e = &s->event;
    jw_pair(w, "firstTimestamp", timestamp_print_seconds(s->first_wall, text));
    jw_pair(w, "lastTimestamp", timestamp_print_seconds(s->first_wall, text));
    jw_pair_i64(w, "count", 1);
    jw_pair(w, "reportingComponent", r->controller);
    jw_pair(w, "reportingInstance", r->instance);
    jw_key(w, STR("source"));
    jw_obj(w);
    jw_pair(w, "component", r->controller);
    jw_obj_end(w);
    jw_pair(w, "action", e->action);
    jw_pair(w, "reason", e->reason);
    recorder_write_ref(w, "involvedObject", &e->regarding);
    recorder_write_ref(w, "related", &e->related);
    jw_pair(w, "message", e->note);
}

static void recorder_write_event(struct recorder *r, const struct recorder_series *s)
{
    bool core = r->api == RECORDER_API_CORE;
    struct json_writer w = json_writer_on(&r->body);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", core ? STR("v1") : STR("events.k8s.io/v1"));
    jw_pair(&w, "kind", STR("Event"));
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "name", s->name);
    jw_pair(&w, "namespace", s->namespace);
    jw_obj_end(&w);
    if (core) {
        recorder_write_core(r, s, &w);
    } else {
        recorder_write_new(r, s, &w);
    }
    jw_pair(&w, "type", s->event.type);
    jw_obj_end(&w);
}

static void recorder_write_count(struct recorder *r, const struct recorder_series *s)
{
    char text[TIMESTAMP_TEXT_MAX];
    struct json_writer w = json_writer_on(&r->body);
    jw_obj(&w);
    if (r->api == RECORDER_API_CORE) {
        jw_pair_i64(&w, "count", s->count);
        jw_pair(&w, "lastTimestamp", timestamp_print_seconds(s->last_wall, text));
    } else {
        jw_key(&w, STR("series"));
        jw_obj(&w);
        jw_pair_i64(&w, "count", s->count);
        jw_pair(&w, "lastObservedTime", timestamp_print_micro(s->last_wall, text));
        jw_obj_end(&w);
    }
    jw_obj_end(&w);
}

static void recorder_send(void *ctx)
{
    struct recorder *r = ctx;
    struct recorder_series *s = recorder_first(r);
    usec_t now = loop_now(r->client->loop);
    usec_t at = MAX(r->not_before, client_open_at(r->client));
    if (s == NULL || r->call != NULL) {
        return;
    }
    if (now < at || recorder_yields(r, s, now, &at) || !recorder_take_token(r, now, &at)) {
        loop_timer_set(&r->send, at);
        return;
    }
    struct api_request request = { .verb = s->created ? API_PATCH : API_POST };
    buf_reset(&r->path);
    buf_add(&r->path, r->api == RECORDER_API_CORE ? STR("/api/v1/namespaces/")
                                                  : STR("/apis/events.k8s.io/v1/namespaces/"));
    client_add_segment(&r->path, s->namespace);
    buf_add(&r->path, STR("/events"));
    buf_reset(&r->body);
    if (s->created) {
        buf_add_char(&r->path, '/');
        client_add_segment(&r->path, s->name);
        recorder_write_count(r, s);
        request.content_type = API_STRATEGIC_PATCH;
    } else {
        recorder_write_event(r, s);
    }
    request.path = buf_str(&r->path);
    request.body = buf_str(&r->body);
    r->call = api_send(r->client->api, &request, recorder_on_reply, r);
}

/* Writes counts that are due, and forgets what has been silent. */
static void recorder_tidy(void *ctx)
{
    struct recorder *r = ctx;
    usec_t now = loop_now(r->client->loop);
    usec_t next = USEC_NEVER;
    MAP_EACH (&r->series, item) {
        struct recorder_series *s = map_item_value(item);
        bool silent = now >= s->last_at + RECORDER_SILENCE;
        if (list_linked(&s->link)) {
            next = MIN(next, now + RECORDER_SILENCE);
        } else if (silent && !s->unwritten) {
            recorder_forget(r, s);
        } else if (silent || (s->unwritten && now >= s->refresh_at)) {
            s->ending = silent;
            (void)recorder_enqueue(r, s); /* a full queue: the next look finds it again */
            next = MIN(next, now + RECORDER_SILENCE);
        } else {
            next = MIN(next, s->last_at + RECORDER_SILENCE);
            next = s->unwritten ? MIN(next, s->refresh_at) : next;
        }
    }
    if (next != USEC_NEVER) {
        loop_timer_set(&r->tidy, next);
    }
}

void recorder_check(const struct recorder *r)
{
    uint32_t queued = 0;
    ASSERT(map_count(&r->series) == r->stats.remembered);
    ASSERT(r->stats.remembered <= RECORDER_REMEMBERED_MAX);
    MAP_EACH (&r->series, item) {
        const struct recorder_series *s = map_item_value(item);
        queued += list_linked(&s->link) ? 1 : 0;
    }
    ASSERT(queued == r->stats.queued && queued <= RECORDER_QUEUE_MAX);
    ASSERT(r->call == NULL || queued > 0);
}
