/*
 * Taking a lease:
 *
 *     WRITE → (done)                 written, or refused for good
 *     WRITE → LOOK → (done)          no answer came: it is looked whether it went through
 *     NONE → (done)                  there was nothing to take
 */
#include "base/alloc.h"
#include "profile/external_internal.h"

#define TAKE_LOOKS 3u /* a server that does not answer so often will be looked at by others */
#define TAKE_PAUSE SECONDS(1)

enum take_state { TAKE_NONE, TAKE_WRITE, TAKE_LOOK };

struct inquiry_take {
    struct list link; /* of the inquiry's takes */
    struct inquiry *q;
    struct ask *ask; /* NULL: the configuration has it no more */
    uint32_t i;      /* the lease */
    enum take_state state;
    struct arena memory;
    struct str node;
    struct str path;
    struct str body;
    usec_t renewed; /* as written */
    uint32_t looks;
    struct api_call *call;
    struct loop_timer timer;
    struct err err; /* what to tell */
    void (*on_done)(void *ctx, const struct err *err);
    void *ctx;
};

static void take_release(struct inquiry_take *t)
{
    if (t->ask != NULL) {
        ASSERT(t->ask->leases[t->i].take == t);
        t->ask->leases[t->i].take = NULL;
    }
    t->ask = NULL;
}

void take_lose(struct inquiry_take *t)
{
    take_release(t);
}

static void take_free(struct inquiry_take *t)
{
    take_release(t);
    if (t->call != NULL) {
        api_cancel(t->q->config.client->api, STEAL(t->call));
    }
    loop_timer_done(&t->timer);
    list_del(&t->link);
    arena_done(&t->memory);
    alloc_free(t);
}

void take_free_all(struct inquiry *q)
{
    LIST_EACH (&q->takes, link) {
        take_free(CONTAINER_OF(link, struct inquiry_take, link));
    }
}

/* What was promised to the others is not known any more. */
static void take_forget(struct inquiry_take *t)
{
    struct ask *a = t->ask;
    struct facts_lease unknown = { 0 };
    if (a == NULL) {
        return;
    }
    take_release(t);
    buf_reset(&a->leases[t->i].version);
    (void)facts_put_lease(a->q->facts, a->index, t->i, &unknown); /* told in any case */
    inquiry_note(a->q, inquiry_bit(a->index));
    ask_anew(a);
}

static void take_end(struct inquiry_take *t, const struct err *err)
{
    void (*on_done)(void *, const struct err *) = t->on_done;
    void *ctx = t->ctx;
    struct err copy = { 0 };
    if (err != NULL) {
        copy = *err;
        take_forget(t);
    }
    take_free(t);
    on_done(ctx, err != NULL ? &copy : NULL); /* last: it may do as it likes */
}

/* The lease as the server has it: ours, with the very time that we wrote? */
static bool take_is_ours(struct inquiry_take *t, struct str json)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    struct facts_lease lease = { 0 };
    struct err ignored = { 0 };
    if (json_parse(json, JSON_GO, &tmp, &root, &ignored) < 0) {
        return false;
    }
    lease_read(root, 0, &lease);
    return lease.complete && str_eq(lease.holder, t->node) &&
           timestamp_to_usec(lease.renewed) == t->renewed;
}

static void take_succeed(struct inquiry_take *t, struct str json)
{
    struct ask *a = t->ask;
    struct err ignored = { 0 };
    if (a != NULL && stagger_learn(a, t->i, json, &ignored) < 0) {
        /* It is taken; only what the server said cannot be read. The facts say so already. */
        buf_reset(&a->leases[t->i].version);
    }
    take_end(t, NULL);
}

static void take_pause(struct inquiry_take *t)
{
    usec_t now = loop_now(t->q->loop);
    loop_timer_set(&t->timer, MAX(now + TAKE_PAUSE, client_open_at(t->q->config.client)));
}

static void take_on_reply(void *ctx, const struct api_reply *reply)
{
    struct inquiry_take *t = ctx;
    t->call = NULL;
    enum retry_verdict verdict =
        client_note(t->q->config.client, t->state == TAKE_LOOK ? API_GET : API_PATCH, reply);
    bool ours = verdict == RETRY_DONE && take_is_ours(t, reply->body);
    if (ours) {
        take_succeed(t, reply->body);
        return;
    }
    if (t->state == TAKE_LOOK && verdict == RETRY_DONE) {
        take_end(t, &t->err); /* of the write */
        return;
    }
    client_explain(reply->status, reply->body, reply->err, &t->err);
    (void)err_wrap(&t->err, "take a lease for node '" STR_FMT "'", STR_ARG(t->node));
    if (verdict == RETRY_OBSERVE || verdict == RETRY_ABSENT || verdict == RETRY_DONE) {
        t->err.code = ERR_CONFLICT;
        take_end(t, &t->err);
    } else if (verdict == RETRY_REFUSED || t->looks == TAKE_LOOKS) {
        take_end(t, &t->err);
    } else {
        /* The write may have gone through. */
        t->state = TAKE_LOOK;
        take_pause(t);
    }
}

static void take_send(struct inquiry_take *t)
{
    struct api_request request = { .verb = API_GET, .path = t->path };
    if (t->state == TAKE_WRITE) {
        request.verb = API_PATCH;
        request.content_type = API_MERGE_PATCH;
        request.body = t->body;
    } else {
        t->looks++;
    }
    t->call = api_send(t->q->config.client->api, &request, take_on_reply, t);
}

static void take_on_timer(void *ctx)
{
    struct inquiry_take *t = ctx;
    if (t->state == TAKE_NONE) {
        take_end(t, &t->err);
    } else if (!client_open(t->q->config.client)) {
        loop_timer_set(&t->timer, client_open_at(t->q->config.client));
    } else {
        take_send(t);
    }
}

static void take_compose(struct inquiry_take *t)
{
    const struct ask *a = t->ask;
    const struct ask_lease *lease = &a->leases[t->i];
    CLEANUP(buf_done)
    struct buf out = { 0 };
    lease_path(&out, a->namespace, a->lease, t->i);
    t->path = arena_str(&t->memory, buf_str(&out));
    buf_reset(&out);
    struct json_writer w = json_writer_on(&out);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "resourceVersion", buf_str(&lease->version));
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    stagger_write_spec(&w, t->node, t->renewed, a->duration_s);
    jw_pair_i64(&w, "leaseTransitions", lease->has_transitions ? lease->transitions + 1 : 0);
    jw_obj_end(&w);
    jw_obj_end(&w);
    t->body = arena_str(&t->memory, buf_str(&out));
}

/* The first lease that is free; lease_n when there is none. */
static uint32_t take_choose(const struct ask *a)
{
    usec_t wall = loop_wall(a->q->loop);
    for (uint32_t i = 0; i < a->lease_n; i++) {
        struct facts_lease lease = facts_stagger(a->q->facts, a->index, i);
        bool sure = a->leases[i].take == NULL && a->leases[i].version.n > 0;
        if (sure && facts_lease_is_free(&lease, wall)) {
            return i;
        }
    }
    return a->lease_n;
}

static void take_refuse(struct inquiry_take *t, const char *why)
{
    t->state = TAKE_NONE;
    (void)err_set(&t->err, ERR_CONFLICT, "take a lease for node '" STR_FMT "': %s",
                  STR_ARG(t->node), why);
    loop_timer_set(&t->timer, loop_now(t->q->loop));
}

struct inquiry_take *inquiry_take(struct inquiry *q, uint32_t index, struct str node,
                                  void (*on_done)(void *ctx, const struct err *err), void *ctx)
{
    ASSERT(node.n > 0);
    struct ask *a = index < q->instance_n ? q->instances[index] : NULL;
    struct inquiry_take *t = ALLOC_NEW(struct inquiry_take);
    t->q = q;
    t->on_done = on_done;
    t->ctx = ctx;
    t->memory.first = 1024;
    t->node = arena_str(&t->memory, node);
    list_add(&q->takes, &t->link);
    loop_timer_init(&t->timer, q->loop, take_on_timer, t);
    if (a == NULL || a->kind != FACTS_STAGGER) {
        take_refuse(t, "the configuration has this stagger no more");
        return t;
    }
    t->i = take_choose(a);
    if (t->i == a->lease_n) {
        take_refuse(t, "none of its leases is free");
        ask_anew(a);
        return t;
    }
    t->state = TAKE_WRITE;
    t->ask = a;
    t->renewed = loop_wall(q->loop);
    a->leases[t->i].take = t;
    a->leases[t->i].touched = true;
    take_compose(t);
    struct facts_lease promised = {
        .known = true,
        .complete = true,
        .holder = t->node,
        .renewed = timestamp_from_usec(t->renewed),
        .duration_s = a->duration_s,
        .asked = t->renewed,
    };
    (void)facts_put_lease(q->facts, index, t->i, &promised); /* it was free: this is different */
    inquiry_note(q, inquiry_bit(index));
    loop_timer_set(&t->timer, MAX(loop_now(q->loop), client_open_at(q->config.client)));
    return t;
}

void inquiry_take_cancel(struct inquiry_take *t)
{
    take_forget(t);
    take_free(t);
}
