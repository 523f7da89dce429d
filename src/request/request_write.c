#include "base/alloc.h"
#include "format/json_writer.h"
#include "request/requests_internal.h"

#define REMOVE_PATIENCE SECONDS(5) /* the watch tells that it is gone */
#define REFUSED_FAILURES 4u        /* a refusal starts with a wait of some seconds */

static const enum api_verb letter_verbs[] = {
    [LETTER_STATUS] = API_PATCH,
    [LETTER_STATE] = API_PATCH,
    [LETTER_REMOVE] = API_DELETE,
    [LETTER_READ] = API_GET,
};

static void letter_on_reply(void *ctx, const struct api_reply *reply);

void letter_cancel(struct claim *c)
{
    if (c->call != NULL) {
        api_cancel(c->r->config.client->api, STEAL(c->call));
        c->r->in_flight--;
        c->r->config.client->urgent--;
    }
    buf_reset(&c->news);
}

static void letter_post(struct claim *c, enum letter_kind kind)
{
    struct requests *r = c->r;
    ASSERT(c->call == NULL);
    buf_reset(&r->path);
    buf_add(&r->path, STR(MAINTENANCE_REQUESTS_PATH));
    buf_add_char(&r->path, '/');
    client_add_segment(&r->path, c->name);
    if (kind == LETTER_STATUS) {
        buf_add(&r->path, STR("/status"));
    }
    const struct api_request request = {
        .verb = letter_verbs[kind],
        .path = buf_str(&r->path),
        .content_type = letter_verbs[kind] == API_PATCH ? API_MERGE_PATCH : STR_NONE,
        .body = kind == LETTER_READ ? STR_NONE : buf_str(&r->body),
    };
    c->kind = kind;
    c->version = c->item->version;
    c->told_at = kind == LETTER_STATUS ? loop_now(r->loop) : c->told_at;
    list_del(&c->writer);
    r->in_flight++;
    r->config.client->urgent++;
    c->call = api_send(r->config.client->api, &request, letter_on_reply, c);
}

/* ── what is written ───────────────────────────────────────────────────────────────────────── */

static void letter_begin(struct json_writer *w, const struct claim *c)
{
    jw_obj(w);
    jw_key(w, STR("metadata"));
    jw_obj(w);
    if (!mutated(c->r->config.mutations, MUTATION_SKIP_RV)) {
        CLEANUP(buf_done)
        struct buf version = { 0 };
        buf_printf(&version, "%llu", (unsigned long long)c->item->version);
        jw_pair(w, "resourceVersion", buf_str(&version));
    }
    jw_obj_end(w);
}

static void letter_write_status(struct claim *c, const struct mr_status *status)
{
    struct buf *body = &c->r->body;
    buf_reset(body);
    struct json_writer w = json_writer_on(body);
    CLEANUP(buf_done)
    struct buf text = { 0 };
    mr_status_print(status, &text);
    c->grant = status->grant;
    letter_begin(&w, c);
    jw_key(&w, STR("status"));
    jw_raw(&w, buf_str(&text));
    jw_obj_end(&w);
    letter_post(c, LETTER_STATUS);
}

static void letter_write_state(struct claim *c, enum mr_state state)
{
    struct buf *body = &c->r->body;
    buf_reset(body);
    struct json_writer w = json_writer_on(body);
    letter_begin(&w, c);
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    jw_pair(&w, "state", mr_state_name(state));
    jw_obj_end(&w);
    jw_obj_end(&w);
    c->state = state;
    letter_post(c, LETTER_STATE);
}

static void letter_remove(struct claim *c)
{
    struct buf *body = &c->r->body;
    buf_reset(body);
    struct json_writer w = json_writer_on(body);
    CLEANUP(buf_done)
    struct buf version = { 0 };
    buf_printf(&version, "%llu", (unsigned long long)c->item->version);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("v1"));
    jw_pair(&w, "kind", STR("DeleteOptions"));
    jw_key(&w, STR("preconditions"));
    jw_obj(&w);
    jw_pair(&w, "resourceVersion", buf_str(&version));
    jw_pair(&w, "uid", c->uid);
    jw_obj_end(&w);
    jw_obj_end(&w);
    letter_post(c, LETTER_REMOVE);
}

static void letter_keep_news(struct claim *c, const struct phase_plan *plan)
{
    buf_reset(&c->news);
    for (uint32_t i = 0; i < plan->news_n; i++) {
        const struct phase_news *news = &plan->news[i];
        buf_add_char(&c->news, news->warning ? 'W' : 'N');
        buf_add(&c->news, news->reason);
        buf_add_char(&c->news, '\n');
        buf_add(&c->news, str_sub(news->note, 0, RECORDER_NOTE_BYTES_MAX));
        buf_add_char(&c->news, '\0');
    }
}

/* How long what is only told to people may wait. */
static usec_t letter_patience(const struct mr_status *status)
{
    if (status->phase == MR_PHASE_PREPARING) {
        return CLAIM_STEPS_EVERY;
    }
    return status->position > CLAIM_NEAR ? CLAIM_SOFT_FAR : CLAIM_SOFT_EVERY;
}

enum letter_want { WANT_NOTHING, WANT_SOON, WANT_SOFT };

/* Whether there is something to write, and how much it matters. */
static enum letter_want letter_want(struct claim *c, const struct phase_plan *plan)
{
    const struct mrequest *m = c->item->object;
    if (plan->state != MR_STATE_ABSENT || plan->remove) {
        return WANT_SOON;
    }
    if (plan->undo || plan->status.phase == MR_PHASE_ABSENT ||
        mr_status_same(&plan->status, &m->status)) {
        return WANT_NOTHING;
    }
    if (m->status.phase == MR_PHASE_ABSENT && plan->status.phase == MR_PHASE_PENDING) {
        return WANT_SOFT; /* its first word, which only says that it waits */
    }
    if (!mr_status_similar(&plan->status, &m->status)) {
        return WANT_SOON;
    }
    usec_t due = c->told_at + letter_patience(&plan->status);
    if (loop_now(c->r->loop) < due) {
        claim_wake_at(c, due);
        return WANT_NOTHING;
    }
    return WANT_SOFT;
}

void letter_send(struct claim *c, const struct phase_plan *plan)
{
    struct requests *r = c->r;
    struct client *client = r->config.client;
    usec_t now = loop_now(r->loop);
    enum letter_want want = c->call != NULL ? WANT_NOTHING : letter_want(c, plan);
    list_del(&c->writer);
    if (want == WANT_NOTHING) {
        return;
    }
    usec_t may = MAX(c->retry_at, client_open(client) ? 0 : client_open_at(client));
    if (now < may) {
        claim_wake_at(c, may);
        return;
    }
    bool soft = want == WANT_SOFT;
    if (r->in_flight >= (soft ? REQUESTS_SOFT_WINDOW : REQUESTS_WINDOW)) {
        list_add(soft ? &r->soft_writers : &r->writers, &c->writer);
        return;
    }
    if (c->refresh && c->item->version <= c->version) {
        if (now < c->read_at) {
            claim_wake_at(c, c->read_at);
        } else {
            letter_post(c, LETTER_READ);
        }
        return;
    }
    c->refresh = false;
    letter_keep_news(c, plan);
    if (plan->state != MR_STATE_ABSENT) {
        letter_write_state(c, plan->state);
    } else if (plan->remove) {
        letter_remove(c);
    } else {
        letter_write_status(c, &plan->status);
    }
}

/* ── what is answered ──────────────────────────────────────────────────────────────────────── */

static void letter_tell(struct claim *c)
{
    struct requests *r = c->r;
    struct str rest = buf_str(&c->news);
    struct str line;
    while (rest.n > 0 && str_split_next(&rest, '\0', &line)) {
        struct str reason;
        struct str note;
        if (line.n < 2) {
            continue;
        }
        (void)str_cut(str_sub(line, 1, SIZE_MAX), STR("\n"), &reason, &note); /* always there */
        log_info(r->config.log, "maintenance request", KV_STR("request", c->name),
                 KV_STR("target", c->target), KV_STR("event", reason), KV_STR("note", note));
        if (str_eq(reason, STR("ForgedApproval"))) {
            account_count(r->gauges.forged);
        } else if (str_eq(reason, STR("RequestAdopted"))) {
            account_count(r->gauges.adopted);
        }
        if (r->config.recorder != NULL) {
            recorder_add(r->config.recorder, &(struct recorder_event){
                                                 .type = line.p[0] == 'W' ? STR("Warning")
                                                                          : STR("Normal"),
                                                 .reason = reason,
                                                 .action = reason,
                                                 .note = note,
                                                 .regarding = {
                                                     .kind = STR("MaintenanceRequest"),
                                                     .api_version = STR("repairman.k8s.io/v1"),
                                                     .name = c->name,
                                                     .uid = c->uid,
                                                 },
                                             });
        }
    }
    buf_reset(&c->news);
}

static void letter_fail(struct claim *c, enum retry_verdict verdict, const struct err *err)
{
    struct requests *r = c->r;
    if (verdict != RETRY_ABSENT) { /* gone already: the watch says so in a moment */
        account_count(r->gauges.errors);
        log_warn(r->config.log, "Failed to write a MaintenanceRequest", KV_STR("request", c->name),
                 KV_ERR(err));
    }
    if (verdict == RETRY_REFUSED) {
        c->backoff.failures = MAX(c->backoff.failures, REFUSED_FAILURES);
    }
    c->refresh = true; /* it may have gone through all the same */
    c->read_at = 0;
    c->retry_at = loop_now(r->loop) + backoff_next(&c->backoff, loop_random(r->loop));
    claim_wake_at(c, c->retry_at);
}

/* A field that the server's schema does not know is dropped without a word. */
static void letter_look_at_number(const struct claim *c, const struct jval *object)
{
    struct requests *r = c->r;
    if (c->grant > 0 && !r->prunes &&
        jval_get(jval_get(object, STR("status")), STR("grant")) == NULL) {
        r->prunes = true;
        log_warn(r->config.log, "The CRD of MaintenanceRequests is older than this program: two "
                                "controllers that both believe to lead cannot tell the grants of "
                                "one request apart; apply what drydock crds prints");
    }
}

static void letter_on_object(struct claim *c, struct str body)
{
    struct requests *r = c->r;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *object = NULL;
    struct err err = { 0 };
    int result = json_parse(body, 0, &tmp, &object, &err);
    /* The answer to a deletion is the object as it was, or a Status: neither is news. */
    if (result == 0 && c->kind != LETTER_REMOVE) {
        result = store_learn(&r->store, object, &err);
    }
    if (result < 0) {
        (void)err_wrap(&err, "the answer cannot be read");
        letter_fail(c, RETRY_LATER, &err);
        return;
    }
    c->refresh = false;
    c->retry_at = c->kind == LETTER_REMOVE ? loop_now(r->loop) + REMOVE_PATIENCE : 0;
    backoff_reset(&c->backoff);
    if (c->kind == LETTER_STATUS) {
        letter_look_at_number(c, object);
    }
    if (c->kind == LETTER_STATE && c->state == MR_STATE_APPROVED) {
        c->committed = true;
    }
    if (c->kind == LETTER_STATUS || c->kind == LETTER_STATE) {
        letter_tell(c);
    }
}

static void letter_on_conflict(struct claim *c)
{
    struct requests *r = c->r;
    account_count(r->gauges.conflicts);
    /* The watch brings what we have not seen. Should it not, the object is read. */
    c->refresh = true;
    if (c->item->version <= c->version) {
        store_await(c->item);
        c->read_at = loop_now(r->loop) + backoff_next(&c->backoff, loop_random(r->loop));
        claim_wake_at(c, c->read_at);
    }
}

static void letter_on_reply(void *ctx, const struct api_reply *reply)
{
    struct claim *c = ctx;
    struct requests *r = c->r;
    c->call = NULL;
    r->in_flight--;
    r->config.client->urgent--;
    enum retry_verdict verdict = client_note(r->config.client, letter_verbs[c->kind], reply);
    if (verdict == RETRY_DONE) {
        letter_on_object(c, reply->body);
    } else if (verdict == RETRY_OBSERVE) {
        letter_on_conflict(c);
    } else {
        struct err err = { 0 };
        client_explain(reply->status, reply->body, reply->err, &err);
        letter_fail(c, verdict, &err);
    }
    claim_mark(c);
}
