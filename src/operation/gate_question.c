#include "base/alloc.h"
#include "operation/operations_internal.h"

#include <stdarg.h>

static void question_cancel(struct gate_question *q)
{
    if (q->call != NULL) {
        api_cancel(q->o->core->client.api, STEAL(q->call));
        q->o->gate_calls--;
    }
    if (q->outbound_call != NULL) {
        outbound_cancel(q->o->config.outbound, STEAL(q->outbound_call));
        q->o->gate_calls--;
    }
}

static void question_forget_token(struct gate_question *q)
{
    q->token = STR_NONE;
    arena_wipe(&q->token_memory);
}

static void question_free(struct gate_question *q)
{
    question_cancel(q);
    question_forget_token(q);
    list_del(&q->link);
    buf_done(&q->path);
    buf_done(&q->page);
    buf_done(&q->plural);
    buf_done(&q->job);
    buf_done(&q->tally.bad);
    buf_done(&q->why);
    arena_done(&q->memory);
    alloc_free(q);
}

void gate_questions_mark(struct operations *o)
{
    LIST_EACH (&o->questions, link) {
        CONTAINER_OF(link, struct gate_question, link)->wanted = false;
    }
}

void gate_questions_sweep(struct operations *o)
{
    LIST_EACH (&o->questions, link) {
        struct gate_question *q = CONTAINER_OF(link, struct gate_question, link);
        if (!q->wanted) {
            question_free(q);
        }
    }
}

void gate_questions_drop(struct operations *o)
{
    gate_questions_mark(o);
    gate_questions_sweep(o);
}

/* ── one ask ───────────────────────────────────────────────────────────────────────────────── */

static const struct {
    void (*ask)(struct gate_question *q);
    void (*read)(struct gate_question *q, const struct jval *body);
} gate_kinds[GATE_KINDS] = {
    [GATE_PODS] = { gate_pods_ask, gate_pods_read },
    [GATE_BLOCKING_PODS] = { gate_pods_ask, gate_pods_read },
    [GATE_RESOURCE] = { gate_resource_ask, gate_resource_read },
    [GATE_JOB] = { gate_job_ask, gate_job_read },
    [GATE_ALERTS] = { gate_remote_ask, gate_remote_read },
    [GATE_QUERY] = { gate_remote_ask, gate_remote_read },
};

void gate_question_answer(struct gate_question *q, enum gate_verdict verdict, const char *fmt, ...)
{
    va_list args;
    usec_t wall = server_clock_wall(&q->o->core->client.clock);
    question_forget_token(q);
    buf_reset(&q->job);
    q->final = false;
    q->verdict = verdict;
    q->asked = q->began;
    q->next = wall - wall % SECONDS(1) + q->interval;
    buf_reset(&q->why);
    va_start(args, fmt);
    buf_vprintf(&q->why, fmt, args);
    va_end(args);
    operations_schedule(q->o);
}

static void question_on_reply(void *ctx, const struct api_reply *reply)
{
    struct gate_question *q = ctx;
    struct operations *o = q->o;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *body = NULL;
    struct err err = { 0 };
    q->call = NULL;
    o->gate_calls--;
    enum retry_verdict verdict = client_note(&o->core->client, q->verb, reply);
    if (verdict == RETRY_OBSERVE && q->job.n > 0) {
        return; /* the Job is there already */
    }
    if (verdict != RETRY_DONE) {
        client_explain(reply->status, reply->body, reply->err, &err);
        gate_question_answer(q, GATE_REFUSES, "it cannot be read: %s", err.msg);
    } else if (json_parse(reply->body, JSON_GO, &tmp, &body, &err) < 0) {
        gate_question_answer(q, GATE_REFUSES, "the answer cannot be read: %s", err.msg);
    } else {
        gate_kinds[q->kind].read(q, body);
    }
}

static void question_send(struct gate_question *q, enum api_verb verb, struct str body)
{
    struct operations *o = q->o;
    o->gate_calls++;
    q->verb = verb;
    q->call = api_send(
        o->core->client.api,
        &(struct api_request){
            .verb = verb, .path = buf_str(&q->path), .body = body, .timeout = GATE_CALL_TIMEOUT },
        question_on_reply, q);
}

void gate_question_get(struct gate_question *q)
{
    question_send(q, API_GET, STR_NONE);
}

void gate_question_post(struct gate_question *q, struct str body)
{
    question_send(q, API_POST, body);
}

void gate_question_add(struct gate_question *q, const char *key, struct str value)
{
    buf_printf(&q->path, "&%s=", key);
    client_add_segment(&q->path, value);
}

static void question_ask(struct gate_question *q)
{
    struct operations *o = q->o;
    usec_t open_at = client_open_at(&o->core->client);
    if (q->call != NULL || q->outbound_call != NULL || o->gate_calls >= GATE_CALLS_MAX) {
        return; /* an answer asks for a turn */
    }
    if (!client_open(&o->core->client)) {
        loop_timer_pull(&o->turn, open_at);
        return;
    }
    if (q->job.n > 0) {
        gate_job_step(q);
        return;
    }
    q->began = loop_now(o->loop);
    q->namespace = 0;
    q->tally.seen = 0;
    q->tally.good = 0;
    buf_reset(&q->tally.bad);
    buf_reset(&q->page);
    buf_reset(&q->plural);
    gate_kinds[q->kind].ask(q);
}

/* ── looking ───────────────────────────────────────────────────────────────────────────────── */

static struct gate_question *question_find(const struct operations *o, struct str key)
{
    LIST_EACH (&o->questions, link) {
        struct gate_question *q = CONTAINER_OF(link, struct gate_question, link);
        if (str_eq(q->key, key)) {
            return q;
        }
    }
    return NULL;
}

bool gate_is_of_machine(const struct gate_place *place)
{
    enum gate_kind kind = place->gate->kind;
    return (kind == GATE_BLOCKING_PODS || kind == GATE_JOB) && place->machine != NULL;
}

static struct gate_question *question_new(const struct campaign *c, struct str key,
                                          const struct gate_place *place)
{
    struct operations *o = c->o;
    bool of_machine = gate_is_of_machine(place);
    struct gate_question *q = ALLOC_NEW(struct gate_question);
    CLEANUP(buf_done)
    struct buf selector = { 0 };
    struct err err = { 0 };
    q->o = o;
    q->memory.first = 512;
    q->key = arena_str(&q->memory, key);
    q->kind = place->gate->kind;
    q->json = arena_str(&q->memory, place->gate->fields);
    q->machine = of_machine ? arena_str(&q->memory, place->machine->name) : STR_NONE;
    q->machine_uid = of_machine ? arena_str(&q->memory, place->machine->node->uid) : STR_NONE;
    q->maintenance = arena_str(&q->memory, c->m->meta.name);
    q->maintenance_uid = arena_str(&q->memory, c->m->meta.uid);
    q->revision = arena_str(&q->memory, c->revision);
    int r = json_parse(q->json, JSON_GO, &q->memory, &q->fields, &err);
    ASSERT(r == 0); /* the reader has printed it */
    if (place->gate->has_selector) {
        selector_print(&place->gate->selector, &selector);
        q->selector = arena_str(&q->memory, buf_str(&selector));
    }
    list_add(&o->questions, &q->link);
    return q;
}

struct gate_look gate_question_look(struct campaign *c, const struct gate_place *place,
                                    usec_t since)
{
    struct operations *o = c->o;
    struct str machine = gate_is_of_machine(place) ? place->machine->name : STR_NONE;
    /* The list's name has no slash, and names of machines none either. */
    struct str key = arena_printf(&o->tmp, STR_FMT "/%s/%u/" STR_FMT, STR_ARG(c->m->meta.uid),
                                  place->list, place->index, STR_ARG(machine));
    struct gate_question *q = question_find(o, key);
    if (q != NULL && (!str_eq(q->json, place->gate->fields) || q->kind != place->gate->kind)) {
        question_free(q); /* it is another gate now */
        q = NULL;
    }
    if (q == NULL) {
        q = question_new(c, key, place);
    }
    q->wanted = true;
    q->interval = place->gate->interval;
    q->timeout = place->gate->timeout;
    bool recent = q->verdict != GATE_NOT_KNOWN && q->asked >= since;
    bool fresh = recent && o->now < q->next;
    if (!fresh) {
        question_ask(q);
    } else {
        operations_wake_at(o, q->next);
    }
    return (struct gate_look){ .verdict = q->verdict,
                               .fresh = fresh,
                               .recent = recent,
                               .final = q->final,
                               .why = arena_str(&o->tmp, buf_str(&q->why)),
                               .next = q->next };
}
