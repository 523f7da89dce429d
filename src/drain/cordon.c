#include "drain/cordon.h"

#include "base/alloc.h"
#include "base/list.h"
#include "format/json_writer.h"
#include "kinds/keys.h"

/* Waits before the next try: somebody else changed the node first; a failure that ends by itself;
 * a refusal that somebody has to mend. */
#define CONFLICT_BASE MSECONDS(20)
#define CONFLICT_MAX SECONDS(2)
#define FAILED_BASE MSECONDS(500)
#define FAILED_MAX SECONDS(30)
#define REFUSED_BASE SECONDS(10)
#define REFUSED_MAX MINUTES(5)
#define MAY_ACT_RECHECK SECONDS(1) /* until may_act is asked again: no event tells */

struct cordons {
    struct cordons_config config;
    struct list queue; /* in the order in which they were asked for */
    struct buf path;
    struct buf body;
};

struct cordon {
    struct cordons *cordons;
    struct list link;
    struct cordon_spec spec;
    struct arena memory; /* of the spec's texts */
    void (*on_result)(void *ctx, enum cordon_result end);
    void *ctx;
    struct api_call *call;
    bool patching; /* `call` is the patch */
    struct loop_timer timer;
    usec_t retry_at;
    struct backoff backoff;
    struct err last_error;
};

/* What was read of the node. */
struct cordon_node {
    struct str version;
    struct str uid;
    struct str mark;
    bool unschedulable;
};

static void cordon_turn(void *ctx);

bool cordon_is_ours(struct str mark, struct str owner)
{
    return owner.n > 0 && str_eq(mark, owner);
}

struct cordons *cordons_new(const struct cordons_config *config)
{
    struct cordons *cs = ALLOC_NEW(struct cordons);
    cs->config = *config;
    list_init(&cs->queue);
    return cs;
}

static void cordon_free(struct cordon *c)
{
    struct cordons *cs = c->cordons;
    if (c->call != NULL) {
        api_cancel(cs->config.client->api, STEAL(c->call));
    }
    loop_timer_done(&c->timer);
    list_del(&c->link);
    arena_done(&c->memory);
    alloc_free(c);
}

void cordons_free(struct cordons *cs)
{
    if (cs == NULL) {
        return;
    }
    LIST_EACH (&cs->queue, link) {
        cordon_free(CONTAINER_OF(link, struct cordon, link));
    }
    buf_done(&cs->path);
    buf_done(&cs->body);
    alloc_free(cs);
}

/* The next change of that node has its turn. */
static void cordons_start_next(struct cordons *cs, struct str node)
{
    LIST_EACH (&cs->queue, link) {
        struct cordon *c = CONTAINER_OF(link, struct cordon, link);
        if (str_eq(c->spec.node, node)) {
            loop_timer_pull(&c->timer, loop_now(cs->config.client->loop));
            return;
        }
    }
}

static void cordon_finish(struct cordon *c, enum cordon_result end)
{
    struct cordons *cs = c->cordons;
    void (*on_result)(void *ctx, enum cordon_result end) = c->on_result;
    void *ctx = c->ctx;
    list_del(&c->link);
    cordons_start_next(cs, c->spec.node);
    cordon_free(c);
    if (on_result != NULL) {
        on_result(ctx, end);
    }
}

struct cordon *cordon_start(struct cordons *cs, const struct cordon_spec *spec,
                            void (*on_result)(void *ctx, enum cordon_result end), void *ctx)
{
    ASSERT(spec->uid.n > 0 && spec->node.n > 0);
    struct cordon *c = ALLOC_NEW(struct cordon);
    *c = (struct cordon){
        .cordons = cs,
        .spec = *spec,
        .memory = { .first = 256 },
        .on_result = on_result,
        .ctx = ctx,
    };
    c->spec.uid = arena_str(&c->memory, spec->uid);
    c->spec.request = arena_str(&c->memory, spec->request);
    c->spec.node = arena_str(&c->memory, spec->node);
    loop_timer_init(&c->timer, cs->config.client->loop, cordon_turn, c);
    list_add(&cs->queue, &c->link);
    loop_timer_set(&c->timer, loop_now(cs->config.client->loop));
    return c;
}

void cordon_stop(struct cordon *c)
{
    if (c == NULL) {
        return;
    }
    c->on_result = NULL;
    if (c->patching) {
        return; /* the answer ends it */
    }
    cordon_finish(c, CORDON_RESULT_NONE);
}

struct str cordon_error(const struct cordon *c)
{
    return c->last_error.code != 0 ? str_from(c->last_error.msg) : STR_NONE;
}

/* ── reading the node ──────────────────────────────────────────────────────────────────────── */

static void cordon_on_read(void *ctx, const struct api_reply *reply);
static void cordon_on_patched(void *ctx, const struct api_reply *reply);

static bool cordon_is_first(const struct cordon *c)
{
    LIST_EACH (&c->cordons->queue, link) {
        const struct cordon *other = CONTAINER_OF(link, struct cordon, link);
        if (str_eq(other->spec.node, c->spec.node)) {
            return other == c;
        }
    }
    return false;
}

/* In a process that was frozen an answer may come before the process notices that it does not lead
 * any more. */
static bool cordons_may_act(const struct cordons *cs)
{
    return cs->config.may_act == NULL || cs->config.may_act(cs->config.ctx);
}

static void cordon_set_path(struct cordon *c)
{
    struct buf *path = &c->cordons->path;
    buf_reset(path);
    buf_add(path, STR("/api/v1/nodes/"));
    client_add_segment(path, c->spec.node);
}

static void cordon_turn(void *ctx)
{
    struct cordon *c = ctx;
    struct client *client = c->cordons->config.client;
    if (c->call != NULL || !cordon_is_first(c)) {
        return;
    }
    usec_t now = loop_now(client->loop);
    usec_t at = MAX(c->retry_at, client_open_at(client));
    if (!cordons_may_act(c->cordons)) {
        at = MAX(at, now + MAY_ACT_RECHECK);
    }
    if (now < at) {
        loop_timer_set(&c->timer, at);
        return;
    }
    cordon_set_path(c);
    const struct api_request request = { .verb = API_GET, .path = buf_str(&c->cordons->path) };
    c->call = api_send(client->api, &request, cordon_on_read, c);
}

static void cordon_retry(struct cordon *c, usec_t base, usec_t max)
{
    struct loop *loop = c->cordons->config.client->loop;
    if (c->backoff.base != base) {
        c->backoff = (struct backoff){ .base = base, .max = max };
    }
    c->retry_at = loop_now(loop) + backoff_next(&c->backoff, loop_random(loop));
    loop_timer_set(&c->timer, c->retry_at);
}

/* As far as we know nothing has changed. The node is read anew before the next try. */
static void cordon_failed(struct cordon *c, const struct api_reply *reply,
                          enum retry_verdict verdict)
{
    if (c->on_result == NULL) {
        cordon_finish(c, CORDON_RESULT_NONE); /* nobody wants it any more */
        return;
    }
    if (verdict == RETRY_OBSERVE) {
        cordon_retry(c, CONFLICT_BASE, CONFLICT_MAX);
        return;
    }
    client_explain(reply->status, reply->body, reply->err, &c->last_error);
    if (verdict == RETRY_REFUSED) {
        cordon_retry(c, REFUSED_BASE, REFUSED_MAX);
    } else {
        cordon_retry(c, FAILED_BASE, FAILED_MAX);
    }
    c->on_result(c->ctx, CORDON_RESULT_NONE);
}

/* ── deciding ──────────────────────────────────────────────────────────────────────────────── */

/* True when the node needs no patch; then *ret is the result. */
static bool cordon_decide(const struct cordon *c, const struct cordon_node *facts,
                          enum cordon_result *ret)
{
    bool ours = cordon_is_ours(facts->mark, c->spec.uid);
    if (c->spec.action == CORDON_ACTION_CORDON) {
        /* A mark on a schedulable node is left over from a cordon that somebody has lifted. */
        *ret = ours ? CORDON_RESULT_OURS : CORDON_RESULT_OTHERS;
        return facts->unschedulable;
    }
    *ret = CORDON_RESULT_CLEARED;
    bool lifts_anyway = mutated(c->cordons->config.client->mutations, MUTATION_UNCORDON_OTHERS) &&
                        c->spec.action == CORDON_ACTION_UNCORDON && facts->unschedulable;
    return !ours && !lifts_anyway;
}

static void cordon_write_patch(struct cordon *c, const struct cordon_node *facts)
{
    struct cordons *cs = c->cordons;
    buf_reset(&cs->body);
    struct json_writer w = json_writer_on(&cs->body);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    if (!mutated(cs->config.client->mutations, MUTATION_SKIP_RV)) {
        jw_pair(&w, "resourceVersion", facts->version);
    }
    jw_key(&w, STR("annotations"));
    jw_obj(&w);
    jw_key(&w, KEY_REQUEST_CORDON);
    if (c->spec.action == CORDON_ACTION_CORDON) {
        jw_str(&w, c->spec.uid);
    } else {
        jw_null(&w);
    }
    jw_obj_end(&w);
    jw_obj_end(&w);
    if (c->spec.action != CORDON_ACTION_UNMARK) {
        jw_key(&w, STR("spec"));
        jw_obj(&w);
        jw_key(&w, STR("unschedulable"));
        if (c->spec.action == CORDON_ACTION_CORDON) {
            jw_bool(&w, true);
        } else {
            jw_null(&w);
        }
        jw_obj_end(&w);
    }
    jw_obj_end(&w);
}

static int cordon_read(struct str body, struct arena *tmp, struct cordon_node *ret, struct err *err)
{
    const struct jval *node = NULL;
    int r = json_parse(body, JSON_GO, tmp, &node, err);
    if (r < 0) {
        return err_wrap(err, "the node cannot be read");
    }
    *ret = (struct cordon_node){
        .version = jval_str(jval_at(node, "metadata.resourceVersion")),
        .uid = jval_str(jval_at(node, "metadata.uid")),
        .mark = jval_str(jval_get(jval_at(node, "metadata.annotations"), KEY_REQUEST_CORDON)),
        .unschedulable = jval_bool(jval_at(node, "spec.unschedulable"), false),
    };
    return ret->version.n > 0 ? 0 : err_set(err, ERR_PROTO, "a node without a version");
}

static void cordon_on_read(void *ctx, const struct api_reply *reply)
{
    struct cordon *c = ctx;
    struct client *client = c->cordons->config.client;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct cordon_node facts;
    enum cordon_result end = CORDON_RESULT_NONE;
    c->call = NULL;
    enum retry_verdict verdict = client_note(client, API_GET, reply);
    if (verdict == RETRY_ABSENT) {
        cordon_finish(c, CORDON_RESULT_NODE_GONE);
    } else if (verdict != RETRY_DONE) {
        cordon_failed(c, reply, verdict);
    } else if (cordon_read(reply->body, &tmp, &facts, &c->last_error) < 0) {
        cordon_retry(c, FAILED_BASE, FAILED_MAX);
    } else if (cordon_decide(c, &facts, &end)) {
        cordon_finish(c, end);
    } else if (!cordons_may_act(c->cordons)) {
        loop_timer_set(&c->timer, loop_now(client->loop) + MAY_ACT_RECHECK);
    } else {
        cordon_set_path(c);
        cordon_write_patch(c, &facts);
        const struct api_request request = {
            .verb = API_PATCH,
            .path = buf_str(&c->cordons->path),
            .content_type = API_MERGE_PATCH,
            .body = buf_str(&c->cordons->body),
        };
        c->patching = true;
        c->call = api_send(client->api, &request, cordon_on_patched, c);
    }
}

/* ── the patch's answer ────────────────────────────────────────────────────────────────────── */

static void cordon_send_event(const struct cordon *c, struct str body)
{
    struct cordons *cs = c->cordons;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct cordon_node facts = { 0 };
    struct err ignored = { 0 };
    bool cordoned = c->spec.action == CORDON_ACTION_CORDON;
    if (c->spec.action == CORDON_ACTION_UNMARK) {
        return; /* the node is as schedulable as before */
    }
    if (cordon_read(body, &tmp, &facts, &ignored) < 0) {
        facts.uid = STR_NONE; /* an Event without it finds its node by the name */
    }
    const char *verb = cordoned ? "cordoned" : "uncordoned";
    struct str request_text = c->spec.request.n > 0 ? c->spec.request : c->spec.uid;
    if (cs->config.log != NULL) {
        log_info(cs->config.log, cordoned ? "node cordoned" : "node uncordoned",
                 KV_STR("node", c->spec.node), KV_STR("request", request_text));
    }
    if (cs->config.recorder == NULL) {
        return;
    }
    recorder_add(cs->config.recorder,
                 &(struct recorder_event){
                     .type = STR("Normal"),
                     .reason = cordoned ? STR("CordonedNode") : STR("UncordonedNode"),
                     .action = cordoned ? STR("Cordon") : STR("Uncordon"),
                     .note = arena_printf(&tmp, "%s for maintenance request " STR_FMT, verb,
                                          STR_ARG(request_text)),
                     .regarding = {
                         .kind = STR("Node"),
                         .api_version = STR("v1"),
                         .name = c->spec.node,
                         .uid = facts.uid,
                     },
                 });
}

static void cordon_on_patched(void *ctx, const struct api_reply *reply)
{
    struct cordon *c = ctx;
    c->call = NULL;
    c->patching = false;
    enum retry_verdict verdict = client_note(c->cordons->config.client, API_PATCH, reply);
    if (verdict == RETRY_DONE) {
        cordon_send_event(c, reply->body);
        cordon_finish(c, c->spec.action == CORDON_ACTION_CORDON ? CORDON_RESULT_OURS
                                                                : CORDON_RESULT_CLEARED);
    } else if (verdict == RETRY_ABSENT) {
        cordon_finish(c, CORDON_RESULT_NODE_GONE);
    } else {
        cordon_failed(c, reply, verdict);
    }
}
