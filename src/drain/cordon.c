#include "drain/cordon.h"

#include "base/alloc.h"
#include "base/list.h"
#include "format/json_writer.h"
#include "kinds/keys.h"
#include "kube/writer.h"

#define MAY_ACT_RECHECK SECONDS(1) /* until may_act is asked again: no event tells */

static const struct writer_rules cordon_rules = {
    .conflict = { MSECONDS(20), SECONDS(2) },
    .refused = { SECONDS(10), MINUTES(5) }, /* somebody has to mend it */
    .failed = { MSECONDS(500), SECONDS(30) },
};

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
    struct writer writer;
    struct loop_timer timer;
    struct err last_error;
};

/* What was read of the node. */
struct cordon_node {
    struct str version;
    struct str uid;
    struct str mark;
    struct str request_mark;
    struct str kept_mark;
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
    writer_cancel(&c->writer);
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
    ASSERT(spec->uid.n > 0 && spec->node.n > 0 && spec->mark.n > 0);
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
    c->spec.take_over = arena_str(&c->memory, spec->take_over);
    c->spec.kept = arena_str(&c->memory, spec->kept);
    c->spec.node = arena_str(&c->memory, spec->node);
    writer_init(&c->writer, cs->config.client, &cordon_rules);
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
    if (c->writer.call != NULL && c->writer.verb == API_PATCH) {
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

static void cordon_send(struct cordon *c, enum api_verb verb, api_on_reply on_reply)
{
    struct cordons *cs = c->cordons;
    buf_reset(&cs->path);
    buf_add(&cs->path, STR("/api/v1/nodes/"));
    client_add_segment(&cs->path, c->spec.node);
    const struct api_request request = {
        .verb = verb,
        .path = buf_str(&cs->path),
        .body = verb == API_PATCH ? buf_str(&cs->body) : STR_NONE,
    };
    writer_send(&c->writer, &request, /* version= */ 0, on_reply, c); /* it is read each time */
}

static void cordon_turn(void *ctx)
{
    struct cordon *c = ctx;
    if (c->writer.call != NULL || !cordon_is_first(c)) {
        return;
    }
    usec_t now = loop_now(c->cordons->config.client->loop);
    usec_t at = writer_ready_at(&c->writer, 0);
    if (!cordons_may_act(c->cordons)) {
        at = MAX(at, now + MAY_ACT_RECHECK);
    }
    if (now < at) {
        loop_timer_set(&c->timer, at);
        return;
    }
    cordon_send(c, API_GET, cordon_on_read);
}

/* As far as we know nothing has changed. The node is read anew before the next try. */
static void cordon_failed(struct cordon *c, enum retry_verdict verdict, const struct err *err)
{
    if (c->on_result == NULL) {
        cordon_finish(c, CORDON_RESULT_NONE); /* nobody wants it any more */
        return;
    }
    loop_timer_set(&c->timer, c->writer.retry_at);
    if (verdict != RETRY_OBSERVE) {
        c->last_error = *err;
        c->on_result(c->ctx, CORDON_RESULT_NONE);
    }
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
        return facts->unschedulable &&
               (ours || !(cordon_is_ours(facts->request_mark, c->spec.take_over) ||
                          cordon_is_ours(facts->kept_mark, c->spec.kept)));
    }
    *ret = CORDON_RESULT_CLEARED;
    bool lifts_anyway = mutated(c->cordons->config.client->mutations, MUTATION_UNCORDON_OTHERS) &&
                        c->spec.action == CORDON_ACTION_UNCORDON && facts->unschedulable;
    return !ours && !lifts_anyway;
}

static void cordon_write_marks(const struct cordon *c, const struct cordon_node *facts,
                               struct json_writer *w)
{
    jw_key(w, c->spec.mark);
    if (c->spec.action == CORDON_ACTION_CORDON) {
        jw_str(w, c->spec.uid);
    } else {
        jw_null(w);
    }
    if (c->spec.action == CORDON_ACTION_CORDON &&
        cordon_is_ours(facts->request_mark, c->spec.take_over)) {
        jw_key(w, KEY_REQUEST_CORDON);
        jw_null(w);
    }
    if (c->spec.action == CORDON_ACTION_CORDON && cordon_is_ours(facts->kept_mark, c->spec.kept)) {
        jw_key(w, KEY_KEPT_CORDON);
        jw_null(w);
    }
    if (c->spec.action == CORDON_ACTION_KEEP) {
        jw_key(w, KEY_KEPT_CORDON);
        jw_str(w, c->spec.kept);
    }
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
    cordon_write_marks(c, facts, &w);
    jw_obj_end(&w);
    jw_obj_end(&w);
    if (c->spec.action == CORDON_ACTION_CORDON || c->spec.action == CORDON_ACTION_UNCORDON) {
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

static struct cordon_node cordon_read(const struct cordon *c, const struct jval *node)
{
    const struct jval *notes = jval_at(node, "metadata.annotations");
    return (struct cordon_node){
        .version = jval_str(jval_at(node, "metadata.resourceVersion")),
        .uid = jval_str(jval_at(node, "metadata.uid")),
        .mark = jval_str(jval_get(notes, c->spec.mark)),
        .request_mark = jval_str(jval_get(notes, KEY_REQUEST_CORDON)),
        .kept_mark = jval_str(jval_get(notes, KEY_KEPT_CORDON)),
        .unschedulable = jval_bool(jval_at(node, "spec.unschedulable"), false),
    };
}

static void cordon_on_read(void *ctx, const struct api_reply *reply)
{
    struct cordon *c = ctx;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    enum cordon_result end = CORDON_RESULT_NONE;
    enum retry_verdict verdict = writer_on_reply(&c->writer, reply, NULL, STR_NONE, &r);
    if (verdict == RETRY_ABSENT) {
        cordon_finish(c, CORDON_RESULT_NODE_GONE);
        return;
    }
    if (verdict != RETRY_DONE) {
        cordon_failed(c, verdict, &r.err);
        return;
    }
    struct cordon_node facts = cordon_read(c, r.object);
    if (cordon_decide(c, &facts, &end)) {
        cordon_finish(c, end);
    } else if (!cordons_may_act(c->cordons)) {
        usec_t now = loop_now(c->cordons->config.client->loop);
        loop_timer_set(&c->timer, now + MAY_ACT_RECHECK);
    } else {
        cordon_write_patch(c, &facts);
        cordon_send(c, API_PATCH, cordon_on_patched);
    }
}

/* ── the patch's answer ────────────────────────────────────────────────────────────────────── */

static void cordon_send_event(const struct cordon *c, const struct jval *node)
{
    struct cordons *cs = c->cordons;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    bool cordoned = c->spec.action == CORDON_ACTION_CORDON;
    if (c->spec.action != CORDON_ACTION_CORDON && c->spec.action != CORDON_ACTION_UNCORDON) {
        return; /* the node is as schedulable as before */
    }
    const char *verb = cordoned ? "cordoned" : "uncordoned";
    bool of_request = str_eq(c->spec.mark, KEY_REQUEST_CORDON);
    struct str who = c->spec.request.n > 0 ? c->spec.request : c->spec.uid;
    struct str request_text =
        arena_printf(&tmp, "%s" STR_FMT, of_request ? "maintenance request " : "", STR_ARG(who));
    if (cs->config.log != NULL) {
        log_info(cs->config.log, cordoned ? "node cordoned" : "node uncordoned",
                 KV_STR("node", c->spec.node), KV_STR("request", who));
    }
    if (cs->config.recorder == NULL) {
        return;
    }
    recorder_add(cs->config.recorder,
                 &(struct recorder_event){
                     .type = STR("Normal"),
                     .reason = cordoned ? STR("CordonedNode") : STR("UncordonedNode"),
                     .action = cordoned ? STR("Cordon") : STR("Uncordon"),
                     .note = arena_printf(&tmp, "%s for " STR_FMT, verb,
                                          STR_ARG(request_text)),
                     .regarding = {
                         .kind = STR("Node"),
                         .api_version = STR("v1"),
                         .name = c->spec.node,
                         .uid = cordon_read(c, node).uid,
                     },
                 });
}

static void cordon_on_patched(void *ctx, const struct api_reply *reply)
{
    struct cordon *c = ctx;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    enum retry_verdict verdict = writer_on_reply(&c->writer, reply, NULL, STR_NONE, &r);
    if (verdict == RETRY_DONE) {
        cordon_send_event(c, r.object);
        cordon_finish(c, c->spec.action == CORDON_ACTION_CORDON ? CORDON_RESULT_OURS
                                                                : CORDON_RESULT_CLEARED);
    } else if (verdict == RETRY_ABSENT) {
        cordon_finish(c, CORDON_RESULT_NODE_GONE);
    } else {
        cordon_failed(c, verdict, &r.err);
    }
}
