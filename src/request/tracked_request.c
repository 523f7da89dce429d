#include "base/alloc.h"
#include "request/requests_internal.h"

#define CLAIM_BACKOFF_BASE MSECONDS(500)
#define CLAIM_BACKOFF_MAX MINUTES(5)
#define WAKE_GRID MSECONDS(50) /* waits end together, so that many make one turn */

bool claim_by_wake(struct prioqueue_item *a, struct prioqueue_item *b)
{
    return CONTAINER_OF(a, struct claim, wake)->wake_at <
           CONTAINER_OF(b, struct claim, wake)->wake_at;
}

static const struct mrequest *claim_object(const struct claim *c)
{
    return c->item->object;
}

struct claim *claim_new(struct requests *r, struct store_item *item)
{
    const struct mrequest *m = item->object;
    struct claim *c = ALLOC_NEW(struct claim);
    c->r = r;
    c->item = item;
    c->memory.first = 256;
    c->name = arena_str(&c->memory, item->name);
    c->uid = arena_str(&c->memory, m->uid);
    c->backoff = (struct backoff){ .base = CLAIM_BACKOFF_BASE, .max = CLAIM_BACKOFF_MAX };
    c->pausing = (struct backoff){ .base = CLAIM_PAUSE_BASE, .max = CLAIM_PAUSE_MAX };
    c->lift = true;
    list_add(&r->claims, &c->link);
    (void)map_put(&r->by_uid, c->uid, c); /* a uid is given once */
    return c;
}

void claim_end_safety(struct claim *c)
{
    list_del(&c->hope);
    safety_free(STEAL(c->safety));
}

/* Ends what goes on by itself. What is on the server stays there. */
static void claim_stop(struct claim *c)
{
    prepare_free(STEAL(c->prepare));
    arena_reset(&c->prepare_memory);
    undo_free(STEAL(c->undo));
    claim_end_safety(c);
    c->undo_done = false;
    c->check = PHASE_CHECK_NONE;
    ask_free(STEAL(c->ask));
    c->asked = (struct ask_spec){ 0 };
}

void claim_forget(struct claim *c)
{
    claim_stop(c);
    letter_cancel(c);
    if (prioqueue_inside(&c->wake)) {
        prioqueue_take(&c->r->waking, &c->wake);
    }
    list_del(&c->writer);
    c->releasing = false;
    c->touched = false;
    c->committed = false;
    c->rollback = (struct phase_rollback){ 0 };
    c->refresh = false;
    c->pause = 0;
    c->timer_start = 0;
    buf_reset(&c->target_uid);
    const struct mrequest *m = c->item == NULL ? NULL : claim_object(c);
    if (m != NULL) {
        claim_on_change(c, NULL);
    }
}

void claim_free(struct claim *c)
{
    claim_stop(c);
    letter_cancel(c);
    if (prioqueue_inside(&c->wake)) {
        prioqueue_take(&c->r->waking, &c->wake);
    }
    list_del(&c->writer);
    list_del(&c->dirty);
    list_del(&c->link);
    if (c->item != NULL) {
        c->item->extra = NULL;
    }
    if (map_find(&c->r->by_uid, c->uid) == c) {
        (void)map_del(&c->r->by_uid, c->uid); /* it is there */
    }
    buf_done(&c->check_error);
    buf_done(&c->rollback_reason);
    buf_done(&c->rollback_message);
    buf_done(&c->target_uid);
    buf_done(&c->news);
    arena_done(&c->prepare_memory);
    arena_done(&c->memory);
    alloc_free(c);
}

void claim_mark(struct claim *c)
{
    if (!list_linked(&c->dirty)) {
        list_add(&c->r->dirty, &c->dirty);
    }
    requests_soon(c->r);
}

void claim_wake_at(struct claim *c, usec_t at)
{
    struct requests *r = c->r;
    if (at == USEC_NEVER) {
        return;
    }
    at = (at + WAKE_GRID - 1) / WAKE_GRID * WAKE_GRID;
    if (prioqueue_inside(&c->wake)) {
        if (c->wake_at <= at) {
            return;
        }
        prioqueue_take(&r->waking, &c->wake);
    }
    c->wake_at = at;
    prioqueue_put(&r->waking, &c->wake);
    loop_timer_pull(&r->wake, at);
}

/* ── what is known ─────────────────────────────────────────────────────────────────────────── */

uint32_t claim_grant(const struct claim *c)
{
    const struct mr_status *s = &claim_object(c)->status;
    return c->r->prunes ? 0 : s->grant + (mr_phase_granted(s->phase) ? 0 : 1);
}

/* Of the numbers of its grants, which are over. The object may be newer on the server; what it says
 * here stays true. */
static uint32_t claim_over(const struct claim *c)
{
    if (c->item == NULL || mr_phase_ended(claim_object(c)->status.phase)) {
        return ASK_GRANTS_ALL;
    }
    return claim_grant(c);
}

static void claim_drop_check(struct claim *c)
{
    c->check = PHASE_CHECK_NONE;
    if (!list_linked(&c->hope)) { /* one that has refused is kept beyond its grant */
        claim_end_safety(c);
    }
}

/* A grant is over: what belonged to it is forgotten, and given back before the next one. */
static void claim_drop_grant(struct claim *c, bool failed)
{
    struct requests *r = c->r;
    c->releasing = c->ask != NULL;
    c->committed = false;
    c->rollback = (struct phase_rollback){ 0 };
    buf_reset(&c->target_uid);
    if (failed) {
        c->hoped_at = loop_now(r->loop);
        c->pause = c->hoped_at + backoff_next(&c->pausing, loop_random(r->loop));
        if (c->safety != NULL && !list_linked(&c->hope)) {
            list_add(&r->hopeful, &c->hope);
        }
    }
}

void claim_on_change(struct claim *c, const struct mrequest *before)
{
    const struct mrequest *m = claim_object(c);
    if (m->type_known && m->target.n > 0 && !c->typed) {
        c->typed = true; /* neither changes once it is set */
        c->type = m->type;
        c->space = arena_str(&c->memory, m->space);
        c->target = arena_str(&c->memory, m->target);
    }
    enum mr_phase phase = m->status.phase;
    if (before == NULL) {
        /* Of the one before us: its cordon may be there or on its way. */
        c->touched = !mr_phase_ended(phase) &&
                     (m->status.cordoned ||
                      (phase == MR_PHASE_PREPARING && m->status.step != MR_STEP_FINAL_CHECK));
        return;
    }
    enum mr_phase was = before->status.phase;
    if (mr_phase_granted(phase) && mr_phase_granted(was) &&
        m->status.grant != before->status.grant) {
        /* Another controller gave back and was granted again, and we have not seen it. */
        claim_drop_check(c);
        c->committed = false;
        c->rollback = (struct phase_rollback){ 0 };
    }
    if (phase == MR_PHASE_PENDING && was > MR_PHASE_PENDING) {
        claim_drop_grant(c, /* failed= */ c->rollback.wanted && !c->rollback.rejection);
    }
    if (phase == MR_PHASE_APPROVED && was != phase) {
        backoff_reset(&c->pausing);
    }
    if (phase != MR_PHASE_PREPARING || m->state == MR_STATE_PENDING ||
        m->state == MR_STATE_ABSENT) {
        c->committed = false;
    }
}

bool claim_marked(const struct claim *c)
{
    if (!c->typed || c->type != TARGET_NODE) {
        return false;
    }
    const struct node *node = requests_node(c->r, c->target);
    return c->touched || (node != NULL && str_eq(node_annotation(node, PREPARE_MARK), c->uid));
}

/* How long the time limit of the phase has run, by the clock that does not jump; what ran before
 * this process saw it is told by the wall's. */
static usec_t claim_elapsed(struct claim *c, const struct mrequest *m, usec_t wall)
{
    usec_t now = loop_now(c->r->loop);
    usec_t start = phase_timer(&m->status);
    if (start != c->timer_start) {
        c->timer_start = start;
        c->timer_elapsed = MAX(wall - start, 0);
        c->timer_now = now;
    }
    int speed = mutated(c->r->config.mutations, MUTATION_TIMEOUT_EARLY) ? 2 : 1;
    return start == 0 ? 0 : (c->timer_elapsed + (now - c->timer_now)) * speed;
}

static void claim_know_ask(struct claim *c, struct phase_facts *f)
{
    struct requests *r = c->r;
    f->options = (struct limit_options){ .ledger_init_time = USEC_NEVER };
    f->ask.next = USEC_NEVER;
    f->ask_adopts = c->asked.already_true;
    if (c->ask == NULL) {
        return;
    }
    ask_view(c->ask, &f->ask);
    f->asked = true;
    if (f->ask.stage == ASK_HELD && f->ask.grant != claim_grant(c)) {
        f->ask.stage = ASK_TAKING; /* that is another grant than the one it has */
    }
    bool looked_at = f->ask.stage == ASK_WAITING && f->ask.why != ASK_WHY_NONE &&
                     f->ask.why != ASK_WHY_NOT_COMPUTED;
    f->options_known = looked_at || f->ask.stage == ASK_TAKING || f->ask.stage == ASK_HELD;
    if (f->options_known) {
        ask_options(c->ask, &r->tmp, &f->options);
        c->lift = !f->options.drain.enabled || f->options.drain.uncordon_after;
    }
    if (f->ask.stage == ASK_HELD) {
        f->limit = account_limit(r, &f->ask);
    }
}

static void claim_know_target(struct claim *c, struct phase_facts *f)
{
    if (!c->typed || c->type != TARGET_NODE) {
        return;
    }
    const struct node *node = requests_node(c->r, c->target);
    enum mr_phase phase = claim_object(c)->status.phase;
    if (phase == MR_PHASE_PREPARING && node != NULL && c->target_uid.n == 0) {
        buf_add(&c->target_uid, node->uid);
    }
    f->target_gone = c->target_uid.n > 0 && node == NULL;
    f->target_changed =
        c->target_uid.n > 0 && node != NULL && !str_eq(node->uid, buf_str(&c->target_uid));
}

/* A pause is for what nobody tells. What the watches tell ends it: the next try is worth it then.
 */
static void claim_hope(struct claim *c)
{
    usec_t now = loop_now(c->r->loop);
    if (!list_linked(&c->hope)) {
        return;
    }
    if (c->pause > now && now >= c->hoped_at + CLAIM_HOPE_EVERY) {
        c->hoped_at = now;
        c->pause = safety_hopes(c->safety) ? 0 : c->pause;
    }
    if (c->pause <= now) {
        claim_end_safety(c);
    }
}

static void claim_know(struct claim *c, struct phase_facts *f)
{
    struct requests *r = c->r;
    claim_hope(c);
    const struct mrequest *m = claim_object(c);
    usec_t wall = requests_wall(r);
    usec_t now = loop_now(r->loop);
    *f = (struct phase_facts){
        .now = wall,
        .doubt = server_clock_doubt(&r->config.client->clock),
        .elapsed = claim_elapsed(c, m, wall),
        .tolerance = r->config.skew_tolerance,
        .finished_ttl = r->config.finished_ttl,
        .trust = r->config.trust_approval,
        .rejected = requests_rejected(r, m),
        .releasing = c->releasing,
        .numbered = !r->prunes,
        .pause = c->pause > now ? wall + (c->pause - now) : 0,
        .rollback = c->rollback,
        .marked = claim_marked(c),
        .check = c->check,
        .check_error = buf_str(&c->check_error),
        .committed = c->committed,
    };
    claim_know_ask(c, f);
    claim_know_target(c, f);
    if (c->prepare != NULL) {
        f->preparing = true;
        prepare_view(c->prepare, &f->preparation);
    }
}

/* ── what is done ──────────────────────────────────────────────────────────────────────────── */

static void claim_on_event(void *ctx)
{
    claim_mark(ctx);
}

bool claim_end_ask(struct claim *c)
{
    if (c->ask != NULL) {
        ask_close_grants_below(c->ask, claim_over(c));
    }
    if (c->ask != NULL && ask_stage(c->ask) < ASK_ENDING) {
        ask_end(c->ask);
        claim_drop_check(c); /* it ends with the ask, without a word */
    }
    if (c->ask != NULL && ask_stage(c->ask) == ASK_ENDED) {
        ask_free(STEAL(c->ask));
    }
    if (c->ask == NULL) {
        if (c->releasing && c->item != NULL) {
            claim_mark(c); /* it may ask again */
        }
        c->releasing = false;
        c->asked = (struct ask_spec){ 0 };
    }
    return c->ask == NULL;
}

static void claim_want_ask(struct claim *c, const struct phase_plan *plan)
{
    const struct mrequest *m = claim_object(c);
    bool adopt = plan->ask == PHASE_ASK_ADOPT;
    struct ask_spec spec = {
        .owner = ASK_REQUEST,
        .uid = c->uid,
        .name = c->name,
        .type = c->type,
        .space = c->space,
        .target = c->target,
        .priority = m->priority,
        .since = plan->status.queued > 0 ? plan->status.queued : m->created,
        .last = plan->ask_last,
        .state = plan->ask_state,
        .grant = claim_grant(c),
        .already_true = adopt,
    };
    if (c->ask != NULL) {
        ask_close_grants_below(c->ask, claim_over(c));
    }
    if (c->ask != NULL && ask_stage(c->ask) == ASK_ENDED) {
        ask_free(STEAL(c->ask));
    }
    if (c->ask == NULL) {
        c->asked = spec;
        c->ask = ask_new(c->r->config.arbiter, &spec, claim_on_event, c);
        return;
    }
    /* One that waits is no question any more when it has become a fact. */
    spec.already_true = c->asked.already_true || (adopt && ask_stage(c->ask) == ASK_WAITING);
    if (ask_stage(c->ask) < ASK_ENDING &&
        (spec.already_true != c->asked.already_true || spec.grant != c->asked.grant ||
         spec.priority != c->asked.priority || spec.since != c->asked.since ||
         spec.last != c->asked.last || !str_eq(spec.state, c->asked.state))) {
        c->asked = spec;
        ask_update(c->ask, &spec);
    }
}

static void claim_prepare(struct claim *c, bool wanted, const struct phase_facts *f)
{
    const struct mrequest *m = claim_object(c);
    if (!wanted) {
        prepare_free(STEAL(c->prepare));
        arena_reset(&c->prepare_memory);
        return;
    }
    if (c->prepare != NULL || c->undo != NULL || f->ask.stage != ASK_HELD) {
        return;
    }
    struct prepare_spec spec = {
        .uid = c->uid,
        .request = c->name,
        .node = c->target,
        .routed = m->routed,
        .step = phase_prepare_step(m->status.step),
        .step_time = m->status.step_time,
    };
    ask_options(c->ask, &c->prepare_memory, &spec.options);
    c->touched = true;
    c->prepare = prepare_new(c->r->preparer, &spec, claim_on_event, c);
    claim_mark(c); /* what it says at once */
}

static void claim_on_undone(void *ctx)
{
    struct claim *c = ctx;
    c->undo_done = true;
    claim_mark(c);
}

void claim_tidy_undo(struct claim *c)
{
    if (c->undo_done) {
        undo_free(STEAL(c->undo));
        c->undo_done = false;
        c->touched = false;
    }
}

void claim_undo(struct claim *c, bool lift)
{
    if (c->undo == NULL) {
        c->undo = prepare_undo(c->r->preparer, c->uid, c->target, lift, claim_on_undone, c);
    }
}

static void claim_checked(struct claim *c, const struct err *err)
{
    buf_reset(&c->check_error);
    c->check = err == NULL ? PHASE_CHECK_PASSED : PHASE_CHECK_FAILED;
    if (err != NULL) {
        buf_add(&c->check_error, str_from(err->msg));
    }
    claim_mark(c);
}

static void claim_on_safe(void *ctx, const struct err *err)
{
    claim_checked(ctx, err);
}

/* The books still stand; what the limits want to be looked at besides comes next. */
static void claim_on_checked(void *ctx, const struct err *err)
{
    struct claim *c = ctx;
    struct requests *r = c->r;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct limit_options options;
    if (c->check != PHASE_CHECK_RUNNING) {
        return; /* nobody waits for it any more */
    }
    ask_options(c->ask, &tmp, &options);
    if (err != NULL || options.safety == 0 || c->type != TARGET_NODE) {
        claim_checked(c, err);
        return;
    }
    c->safety = safety_new(
        &(struct safety_spec){
            .client = r->config.client,
            .nodes = r->config.nodes,
            .arbiter = r->config.arbiter,
            .node = c->target,
            .checks = options.safety,
        },
        claim_on_safe, c);
}

static void claim_check(struct claim *c)
{
    if (c->check != PHASE_CHECK_NONE || c->ask == NULL || ask_stage(c->ask) != ASK_HELD) {
        return;
    }
    c->check = PHASE_CHECK_RUNNING;
    claim_end_safety(c);
    if (mutated(c->r->config.mutations, MUTATION_NO_DOUBLE_CHECK)) {
        claim_checked(c, NULL);
        return;
    }
    ask_recheck(c->ask, buf_str(&c->target_uid), claim_on_checked, c);
}

static void claim_remember(struct claim *c, const struct phase_rollback *rollback)
{
    if (!rollback->wanted || c->rollback.wanted) {
        return;
    }
    buf_reset(&c->rollback_reason);
    buf_reset(&c->rollback_message);
    buf_add(&c->rollback_reason, rollback->reason);
    buf_add(&c->rollback_message, rollback->message);
    c->rollback = *rollback;
    c->rollback.reason = buf_str(&c->rollback_reason);
    c->rollback.message = buf_str(&c->rollback_message);
}

void claim_step(struct claim *c)
{
    struct requests *r = c->r;
    struct phase_facts facts;
    struct phase_plan plan;
    claim_tidy_undo(c);
    claim_know(c, &facts);
    phase_decide(claim_object(c), &facts, &r->tmp, &plan);
    bool passed = c->check == PHASE_CHECK_PASSED;
    letter_send(c, &plan);
    /* Texts of the plan may be the preparation's or the ask's own: they are used up by now. */
    if (passed || (c->check == PHASE_CHECK_FAILED && plan.rollback.wanted)) {
        claim_remember(c, &plan.rollback);
        c->check = PHASE_CHECK_NONE; /* it was good for that one write */
        if (passed) {
            claim_end_safety(c);
        }
        if (passed && c->call == NULL) {
            claim_mark(c);
        }
    }
    claim_remember(c, &plan.rollback);
    claim_prepare(c, plan.prepare, &facts);
    if (plan.undo) {
        claim_undo(c, plan.lift);
        if (mutated(r->config.mutations, MUTATION_RELEASE_EARLY)) {
            (void)claim_end_ask(c); /* what is left of it comes back here */
        }
    }
    if (plan.check) {
        claim_check(c);
    }
    if (plan.ask == PHASE_ASK_NOTHING) {
        (void)claim_end_ask(c); /* what is left of it comes back here */
    } else if (plan.ask != PHASE_ASK_AS_IS && c->typed) {
        claim_want_ask(c, &plan);
    }
    if (plan.next != USEC_NEVER) {
        /* A moment that has come already changes nothing by being looked at again at once. */
        claim_wake_at(c, loop_now(r->loop) + MAX(plan.next - facts.now, WAKE_GRID));
    }
}
