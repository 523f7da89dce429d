/*
 * Takes a Lease of a stagger for a node, by compare-and-swap:
 *
 *     WRITE → (done)                 written, or refused for good
 *     WRITE → VERIFY → (done)        no reply came: the Lease is read to see whether it was written
 *     NONE → (done)                  there was no free Lease
 */
#include "base/alloc.h"
#include "profile/external_internal.h"

#define STAGGER_TAKE_VERIFY_MAX 3u /* after so many reads without a reply the take fails */
#define STAGGER_TAKE_VERIFY_PAUSE SECONDS(1)

enum stagger_take_state { STAGGER_TAKE_NONE, STAGGER_TAKE_WRITE, STAGGER_TAKE_VERIFY };

struct stagger_take {
    struct list link; /* in `takes` of the external facts */
    struct external_facts *e;
    struct fact_query *query; /* NULL: not in the configuration any more */
    uint32_t i;               /* the lease */
    enum stagger_take_state state;
    struct arena memory;
    struct str node;
    struct str path;
    struct str body;
    usec_t renewed; /* as written */
    uint32_t verify_n;
    struct api_call *call;
    struct loop_timer timer;
    struct err err; /* for on_done */
    void (*on_done)(void *ctx, const struct err *err);
    void *ctx;
};

static void stagger_take_unlink(struct stagger_take *t)
{
    if (t->query != NULL) {
        ASSERT(t->query->leases[t->i].take == t);
        t->query->leases[t->i].take = NULL;
    }
    t->query = NULL;
}

void stagger_take_detach(struct stagger_take *t)
{
    stagger_take_unlink(t);
}

static void stagger_take_free(struct stagger_take *t)
{
    stagger_take_unlink(t);
    if (t->call != NULL) {
        api_cancel(t->e->config.client->api, STEAL(t->call));
    }
    loop_timer_done(&t->timer);
    list_del(&t->link);
    arena_done(&t->memory);
    alloc_free(t);
}

void stagger_take_free_all(struct external_facts *e)
{
    LIST_EACH (&e->takes, link) {
        stagger_take_free(CONTAINER_OF(link, struct stagger_take, link));
    }
}

/* The facts said that the node has the Lease; now the Lease is unknown. */
static void stagger_take_invalidate(struct stagger_take *t)
{
    struct fact_query *q = t->query;
    struct facts_lease unknown = { 0 };
    if (q == NULL) {
        return;
    }
    stagger_take_unlink(t);
    buf_reset(&q->leases[t->i].version);
    (void)facts_put_lease(q->e->facts, q->index, t->i, &unknown); /* reported in any case */
    external_facts_changed(q->e, check_bit(q->index));
    fact_query_refresh(q);
}

static void stagger_take_end(struct stagger_take *t, const struct err *err)
{
    void (*on_done)(void *, const struct err *) = t->on_done;
    void *ctx = t->ctx;
    struct err copy = { 0 };
    if (err != NULL) {
        copy = *err;
        stagger_take_invalidate(t);
    }
    stagger_take_free(t);
    on_done(ctx, err != NULL ? &copy : NULL); /* last: it may call back */
}

/* Whether the server's Lease has the holder and the time that were written here. */
static bool stagger_take_is_ours(struct stagger_take *t, struct str json)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    struct facts_lease lease = { 0 };
    struct err ignored = { 0 };
    if (json_parse(json, JSON_GO, &tmp, &root, &ignored) < 0) {
        return false;
    }
    stagger_lease_read(root, 0, &lease);
    return lease.complete && str_eq(lease.holder, t->node) &&
           timestamp_to_usec(lease.renewed) == t->renewed;
}

static void stagger_take_succeed(struct stagger_take *t, struct str json)
{
    struct fact_query *q = t->query;
    struct err ignored = { 0 };
    if (q != NULL && stagger_put_lease(q, t->i, json, &ignored) < 0) {
        /* The Lease is taken, as the facts say already; only the reply cannot be read. */
        buf_reset(&q->leases[t->i].version);
    }
    stagger_take_end(t, NULL);
}

static void stagger_take_verify_later(struct stagger_take *t)
{
    usec_t now = loop_now(t->e->loop);
    loop_timer_set(&t->timer,
                   MAX(now + STAGGER_TAKE_VERIFY_PAUSE, client_open_at(t->e->config.client)));
}

static void stagger_take_on_reply(void *ctx, const struct api_reply *reply)
{
    struct stagger_take *t = ctx;
    t->call = NULL;
    enum retry_verdict verdict = client_note(
        t->e->config.client, t->state == STAGGER_TAKE_VERIFY ? API_GET : API_PATCH, reply);
    bool ours = verdict == RETRY_DONE && stagger_take_is_ours(t, reply->body);
    if (ours) {
        stagger_take_succeed(t, reply->body);
        return;
    }
    if (t->state == STAGGER_TAKE_VERIFY && verdict == RETRY_DONE) {
        stagger_take_end(t, &t->err); /* of the write */
        return;
    }
    client_explain(reply->status, reply->body, reply->err, &t->err);
    (void)err_wrap(&t->err, "take a lease for node '" STR_FMT "'", STR_ARG(t->node));
    if (verdict == RETRY_OBSERVE || verdict == RETRY_ABSENT || verdict == RETRY_DONE) {
        t->err.code = ERR_CONFLICT;
        stagger_take_end(t, &t->err);
    } else if (verdict == RETRY_REFUSED || t->verify_n == STAGGER_TAKE_VERIFY_MAX) {
        stagger_take_end(t, &t->err);
    } else {
        /* The Lease may have been written. */
        t->state = STAGGER_TAKE_VERIFY;
        stagger_take_verify_later(t);
    }
}

static void stagger_take_send(struct stagger_take *t)
{
    struct api_request request = { .verb = API_GET, .path = t->path };
    if (t->state == STAGGER_TAKE_WRITE) {
        request.verb = API_PATCH;
        request.content_type = API_MERGE_PATCH;
        request.body = t->body;
    } else {
        t->verify_n++;
    }
    t->call = api_send(t->e->config.client->api, &request, stagger_take_on_reply, t);
}

static void stagger_take_on_timer(void *ctx)
{
    struct stagger_take *t = ctx;
    if (t->state == STAGGER_TAKE_NONE) {
        stagger_take_end(t, &t->err);
    } else if (!client_open(t->e->config.client)) {
        loop_timer_set(&t->timer, client_open_at(t->e->config.client));
    } else {
        stagger_take_send(t);
    }
}

static void stagger_take_print_patch(struct stagger_take *t)
{
    const struct fact_query *q = t->query;
    const struct stagger_lease *lease = &q->leases[t->i];
    CLEANUP(buf_done)
    struct buf out = { 0 };
    stagger_lease_path(&out, q->namespace, q->lease, t->i);
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
    stagger_write_spec(&w, t->node, t->renewed, q->duration_s);
    jw_pair_i64(&w, "leaseTransitions", lease->has_transitions ? lease->transitions + 1 : 0);
    jw_obj_end(&w);
    jw_obj_end(&w);
    t->body = arena_str(&t->memory, buf_str(&out));
}

/* The first lease that is free; lease_n when there is none. */
static uint32_t stagger_take_find_free(const struct fact_query *q)
{
    usec_t wall = loop_wall(q->e->loop);
    for (uint32_t i = 0; i < q->lease_n; i++) {
        struct facts_lease lease = facts_stagger(q->e->facts, q->index, i);
        bool sure = q->leases[i].take == NULL && q->leases[i].version.n > 0;
        if (sure && facts_lease_is_free(&lease, wall)) {
            return i;
        }
    }
    return q->lease_n;
}

static void stagger_take_fail_soon(struct stagger_take *t, const char *why)
{
    t->state = STAGGER_TAKE_NONE;
    (void)err_set(&t->err, ERR_CONFLICT, "take a lease for node '" STR_FMT "': %s",
                  STR_ARG(t->node), why);
    loop_timer_set(&t->timer, loop_now(t->e->loop));
}

struct stagger_take *stagger_take(struct external_facts *e, uint32_t index, struct str node,
                                  void (*on_done)(void *ctx, const struct err *err), void *ctx)
{
    ASSERT(node.n > 0);
    struct fact_query *q = index < e->instance_n ? e->instances[index] : NULL;
    struct stagger_take *t = ALLOC_NEW(struct stagger_take);
    t->e = e;
    t->on_done = on_done;
    t->ctx = ctx;
    t->memory.first = 1024;
    t->node = arena_str(&t->memory, node);
    list_add(&e->takes, &t->link);
    loop_timer_init(&t->timer, e->loop, stagger_take_on_timer, t);
    if (q == NULL || q->kind != FACTS_STAGGER) {
        stagger_take_fail_soon(t, "the configuration has this stagger no more");
        return t;
    }
    t->i = stagger_take_find_free(q);
    if (t->i == q->lease_n) {
        stagger_take_fail_soon(t, "none of its leases is free");
        fact_query_refresh(q);
        return t;
    }
    t->state = STAGGER_TAKE_WRITE;
    t->query = q;
    t->renewed = loop_wall(e->loop);
    q->leases[t->i].take = t;
    q->leases[t->i].touched = true;
    stagger_take_print_patch(t);
    struct facts_lease promised = {
        .known = true,
        .complete = true,
        .holder = t->node,
        .renewed = timestamp_from_usec(t->renewed),
        .duration_s = q->duration_s,
        .asked = t->renewed,
    };
    (void)facts_put_lease(e->facts, index, t->i, &promised); /* it was free: this is different */
    external_facts_changed(e, check_bit(index));
    loop_timer_set(&t->timer, MAX(loop_now(e->loop), client_open_at(e->config.client)));
    return t;
}

void stagger_take_cancel(struct stagger_take *t)
{
    stagger_take_invalidate(t);
    stagger_take_free(t);
}
