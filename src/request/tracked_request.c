/* One MaintenanceRequest: gathers the facts for phase_decide and does what the plan says. */
#include "base/alloc.h"
#include "request/requests_internal.h"

#define ASK_AGAIN SECONDS(1)   /* when another still asks under the same uid */
#define WAKE_GRID MSECONDS(50) /* waits end together, so that many make one turn */

bool tracked_wakes_before(struct prioqueue_item *a, struct prioqueue_item *b)
{
    return CONTAINER_OF(a, struct tracked_request, wake)->wake_at <
           CONTAINER_OF(b, struct tracked_request, wake)->wake_at;
}

static const struct maintenance_request *tracked_object(const struct tracked_request *c)
{
    return c->item->object;
}

struct tracked_request *tracked_new(struct requests *r, struct store_item *item)
{
    const struct maintenance_request *m = item->object;
    struct tracked_request *c = ALLOC_NEW(struct tracked_request);
    c->r = r;
    c->item = item;
    c->memory.first = 256;
    c->rollback_memory.first = 256;
    c->name = arena_str(&c->memory, item->name);
    c->uid = arena_str(&c->memory, m->uid);
    writer_init(&c->writer, r->config.client, &request_write_rules);
    c->pause_backoff = (struct backoff){ .base = CHECK_PAUSE_BASE, .max = CHECK_PAUSE_MAX };
    c->uncordon = true;
    list_add(&r->tracked, &c->link);
    (void)map_put(&r->by_uid, c->uid, c); /* a uid is given once */
    return c;
}

static void tracked_end_safety(struct tracked_request *c)
{
    list_del(&c->pause_link);
    safety_free(STEAL(c->safety));
}

/* Counts the last checks that run; one that ends makes way for the next that waits. */
static void tracked_set_check(struct tracked_request *c, enum phase_check check)
{
    struct requests *r = c->r;
    bool ran = c->check == PHASE_CHECK_RUNNING;
    bool runs = check == PHASE_CHECK_RUNNING;
    c->check = check;
    list_del(&c->check_link);
    r->checks_running += runs && !ran ? 1 : 0;
    r->checks_running -= ran && !runs ? 1 : 0;
    if (ran && !runs) {
        requests_schedule(r);
    }
}

void tracked_stop_work(struct tracked_request *c)
{
    request_write_cancel(c);
    prepare_free(STEAL(c->prepare));
    tracked_end_safety(c);
    tracked_set_check(c, PHASE_CHECK_NONE);
    list_del(&c->write_link);
    if (prioqueue_inside(&c->wake)) {
        prioqueue_take(&c->r->wake_queue, &c->wake);
    }
}

/* Ends all that goes on by itself. What is on the server stays there. */
static void tracked_stop(struct tracked_request *c)
{
    tracked_stop_work(c);
    prepare_undo_free(STEAL(c->undo));
    ask_free(STEAL(c->ask));
    c->asked = (struct ask_spec){ 0 };
}

void tracked_reset(struct tracked_request *c)
{
    tracked_stop(c);
    c->releasing = false;
    c->maybe_cordoned = false;
    c->approved_by_us = false;
    c->rollback = (struct phase_rollback){ 0 };
    c->writer.must_read = false;
    c->pause_until = 0;
    c->timer_start = 0;
    buf_reset(&c->target_uid);
    if (c->item != NULL) {
        tracked_on_change(c, NULL);
    }
}

void tracked_free(struct tracked_request *c)
{
    tracked_stop(c);
    list_del(&c->dirty);
    list_del(&c->link);
    if (c->item != NULL) {
        c->item->extra = NULL;
    }
    if (map_find(&c->r->by_uid, c->uid) == c) {
        (void)map_del(&c->r->by_uid, c->uid); /* it is there */
    }
    buf_done(&c->check_error);
    buf_done(&c->target_uid);
    buf_done(&c->events);
    arena_done(&c->rollback_memory);
    arena_done(&c->memory);
    alloc_free(c);
}

void tracked_mark_dirty(struct tracked_request *c)
{
    if (!list_linked(&c->dirty)) {
        list_add(&c->r->dirty, &c->dirty);
    }
    requests_schedule(c->r);
}

void tracked_wake_at(struct tracked_request *c, usec_t at)
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
        prioqueue_take(&r->wake_queue, &c->wake);
    }
    c->wake_at = at;
    prioqueue_put(&r->wake_queue, &c->wake);
    loop_timer_pull(&r->wake, at);
}

/* ── what is known ─────────────────────────────────────────────────────────────────────────── */

uint32_t tracked_grant_number(const struct tracked_request *c)
{
    const struct mrequest_status *s = &tracked_object(c)->status;
    return c->r->prunes_grant ? 0 : s->grant + (mrequest_phase_granted(s->phase) ? 0 : 1);
}

/* Grants below this number are over. The object may be newer on the server; a grant that is over
 * stays so. */
static uint32_t tracked_grants_over(const struct tracked_request *c)
{
    if (c->item == NULL || mrequest_phase_ended(tracked_object(c)->status.phase)) {
        return ASK_GRANTS_ALL;
    }
    return tracked_grant_number(c);
}

static void tracked_drop_check(struct tracked_request *c)
{
    tracked_set_check(c, PHASE_CHECK_NONE);
    if (!list_linked(&c->pause_link)) { /* a check that refused outlives its grant */
        tracked_end_safety(c);
    }
}

/* A grant is over: what belonged to it is forgotten, and its reservations are given back before the
 * next ask. */
static void tracked_drop_grant(struct tracked_request *c, bool failed)
{
    struct requests *r = c->r;
    c->releasing = c->ask != NULL;
    c->rollback = (struct phase_rollback){ 0 };
    buf_reset(&c->target_uid);
    if (failed) {
        c->pause_checked_at = loop_now(r->loop);
        c->pause_until =
            c->pause_checked_at + backoff_next(&c->pause_backoff, loop_random(r->loop));
        if (c->safety != NULL && !list_linked(&c->pause_link)) {
            list_add(&r->paused, &c->pause_link);
        }
    }
}

void tracked_on_change(struct tracked_request *c, const struct maintenance_request *before)
{
    const struct maintenance_request *m = tracked_object(c);
    if (m->type_known && m->target.n > 0 && c->target.n == 0) {
        c->type = m->type; /* nor does the type change once it is set */
        c->namespace = arena_str(&c->memory, m->namespace);
        c->target = arena_str(&c->memory, m->target);
    }
    enum mrequest_phase phase = m->status.phase;
    if (before == NULL) {
        /* The cordon of the leader before us may be there or on its way. */
        c->maybe_cordoned = !mrequest_phase_ended(phase) &&
                            (m->status.cordoned || (phase == MR_PHASE_PREPARING &&
                                                    m->status.step != MR_STEP_FINAL_CHECK));
        return;
    }
    enum mrequest_phase was = before->status.phase;
    if (mrequest_phase_granted(phase) && mrequest_phase_granted(was) &&
        m->status.grant != before->status.grant) {
        /* Another controller gave the grant back and got a new one, unseen by us. */
        tracked_drop_check(c);
        c->approved_by_us = false;
        c->rollback = (struct phase_rollback){ 0 };
    }
    if (phase == MR_PHASE_PENDING && was > MR_PHASE_PENDING) {
        tracked_drop_grant(c, /* failed= */ c->rollback.wanted && !c->rollback.rejection);
    }
    if (phase == MR_PHASE_APPROVED && was != phase) {
        backoff_reset(&c->pause_backoff);
    }
    if (phase != MR_PHASE_PREPARING || m->state == MR_STATE_PENDING ||
        m->state == MR_STATE_ABSENT) {
        c->approved_by_us = false;
    }
}

bool tracked_node_marked(const struct tracked_request *c)
{
    if (c->target.n == 0 || c->type != TARGET_NODE) {
        return false;
    }
    const struct node *node = requests_node(c->r, c->target);
    return c->maybe_cordoned ||
           (node != NULL && cordon_is_ours(node_annotation(node, KEY_REQUEST_CORDON), c->uid));
}

/* How long the time limit of the phase has run, by the clock that does not jump. What ran before
 * this process saw the request is measured by the wall clock. */
static usec_t tracked_elapsed(struct tracked_request *c, const struct maintenance_request *m,
                              usec_t wall)
{
    usec_t now = loop_now(c->r->loop);
    usec_t start = phase_timer(&m->status);
    if (start != c->timer_start) {
        c->timer_start = start;
        c->timer_elapsed = MAX(wall - start, 0);
        c->timer_now = now;
    }
    int speed = mutated(c->r->config.client->mutations, MUTATION_TIMEOUT_EARLY) ? 2 : 1;
    return start == 0 ? 0 : (c->timer_elapsed + (now - c->timer_now)) * speed;
}

struct tightest_limit {
    const struct ask_view *view;
    uint32_t limit;
};

static bool tightest_limit_visit(void *ctx, const struct arbiter_limit *limit)
{
    struct tightest_limit *t = ctx;
    for (uint32_t i = 0; i < t->view->limit_n; i++) {
        if (str_eq(t->view->limits[i], limit->name)) {
            t->limit = MIN(t->limit, limit->limit);
        }
    }
    return true;
}

/* For the legacy event: how many grants the tightest of the limits allows. */
static uint32_t requests_tightest_limit(const struct requests *r, const struct ask_view *view)
{
    struct tightest_limit t = { .view = view, .limit = UINT32_MAX };
    if (view->limit_n > 0) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        arbiter_each_limit(r->config.arbiter, &tmp, tightest_limit_visit, &t);
    }
    return t.limit;
}

static void tracked_read_ask(struct tracked_request *c, struct phase_facts *f)
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
    if (f->ask.stage == ASK_HELD && f->ask.grant != tracked_grant_number(c)) {
        f->ask.stage = ASK_TAKING; /* that is not the grant of this request now */
    }
    bool was_decided = f->ask.stage == ASK_WAITING && f->ask.why != ASK_WHY_NONE &&
                       f->ask.why != ASK_WHY_NOT_COMPUTED;
    f->options_known = was_decided || f->ask.stage == ASK_TAKING || f->ask.stage == ASK_HELD;
    if (f->options_known) {
        ask_options(c->ask, &r->tmp, &f->options);
        c->uncordon = !f->options.drain.enabled || f->options.drain.uncordon_after;
    }
    if (f->ask.stage == ASK_HELD) {
        f->limit = requests_tightest_limit(r, &f->ask);
    }
}

static void tracked_read_target(struct tracked_request *c, struct phase_facts *f)
{
    if (c->target.n == 0 || c->type != TARGET_NODE) {
        return;
    }
    const struct node *node = requests_node(c->r, c->target);
    enum mrequest_phase phase = tracked_object(c)->status.phase;
    if (phase == MR_PHASE_PREPARING && node != NULL && c->target_uid.n == 0) {
        buf_add(&c->target_uid, node->uid);
    }
    f->target_gone = c->target_uid.n > 0 && node == NULL;
    f->target_changed =
        c->target_uid.n > 0 && node != NULL && !str_eq(node->uid, buf_str(&c->target_uid));
}

/* A pause ends early when the watches show that the check which refused would pass now. */
static void tracked_end_pause_early(struct tracked_request *c)
{
    usec_t now = loop_now(c->r->loop);
    if (!list_linked(&c->pause_link)) {
        return;
    }
    if (c->pause_until > now && now >= c->pause_checked_at + PAUSE_CHECK_EVERY) {
        c->pause_checked_at = now;
        c->pause_until = safety_would_pass_now(c->safety) ? 0 : c->pause_until;
    }
    if (c->pause_until <= now) {
        tracked_end_safety(c);
    }
}

static void tracked_read_facts(struct tracked_request *c, struct phase_facts *f)
{
    struct requests *r = c->r;
    tracked_end_pause_early(c);
    const struct maintenance_request *m = tracked_object(c);
    usec_t wall = requests_wall(r);
    usec_t now = loop_now(r->loop);
    *f = (struct phase_facts){
        .now = wall,
        .clock_lag = server_clock_doubt(&r->config.client->clock),
        .elapsed = tracked_elapsed(c, m, wall),
        .tolerance = r->config.skew_tolerance,
        .finished_ttl = r->config.finished_ttl,
        .trust_approval = r->config.trust_approval ||
                          mutated(r->config.client->mutations, MUTATION_FORGED_ADOPTED),
        .rejected = requests_last_rejection(r, m),
        .releasing = c->releasing,
        .grants_numbered = !r->prunes_grant,
        .pause_until = c->pause_until > now ? wall + (c->pause_until - now) : 0,
        .rollback = c->rollback,
        .node_marked = tracked_node_marked(c),
        .check = c->check,
        .check_error = buf_str(&c->check_error),
        .approved_by_us = c->approved_by_us,
    };
    tracked_read_ask(c, f);
    tracked_read_target(c, f);
    if (c->prepare != NULL) {
        f->preparing = true;
        prepare_view(c->prepare, &f->preparation);
    }
}

/* ── what is done ──────────────────────────────────────────────────────────────────────────── */

static void tracked_on_event(void *ctx)
{
    tracked_mark_dirty(ctx);
}

bool tracked_end_ask(struct tracked_request *c)
{
    if (c->ask != NULL) {
        ask_close_grants_below(c->ask, tracked_grants_over(c));
    }
    if (c->ask != NULL && ask_stage(c->ask) < ASK_ENDING) {
        ask_end(c->ask);
        tracked_drop_check(c); /* the check ends with the ask, without an answer */
    }
    if (c->ask != NULL && ask_stage(c->ask) == ASK_ENDED) {
        ask_free(STEAL(c->ask));
    }
    if (c->ask == NULL) {
        if (c->releasing && c->item != NULL) {
            tracked_mark_dirty(c); /* now the request may ask again */
        }
        c->releasing = false;
        c->asked = (struct ask_spec){ 0 };
    }
    return c->ask == NULL;
}

static void tracked_update_ask(struct tracked_request *c, const struct phase_plan *plan)
{
    const struct maintenance_request *m = tracked_object(c);
    bool adopt = plan->ask == PHASE_ASK_ADOPT;
    struct ask_spec spec = {
        .owner = ASK_OF_REQUEST,
        .uid = c->uid,
        .name = c->name,
        .type = c->type,
        .namespace = c->namespace,
        .target = c->target,
        .priority = m->priority,
        .since = plan->status.queued > 0 ? plan->status.queued : m->created,
        .last = plan->ask_last,
        .state = plan->ask_state,
        .grant = tracked_grant_number(c),
        .already_true = adopt,
    };
    if (c->ask != NULL) {
        ask_close_grants_below(c->ask, tracked_grants_over(c));
    }
    if (c->ask != NULL && ask_stage(c->ask) == ASK_ENDED) {
        ask_free(STEAL(c->ask));
    }
    if (c->ask == NULL) {
        c->asked = spec;
        c->ask = ask_new(c->r->config.arbiter, &spec, tracked_on_event, c);
        if (c->ask == NULL) { /* a request with that uid was deleted, and still gives back */
            c->asked = (struct ask_spec){ 0 };
            tracked_wake_at(c, loop_now(c->r->loop) + ASK_AGAIN);
        }
        return;
    }
    /* An ask that waits becomes a fact when the work is found to be going on. */
    spec.already_true = c->asked.already_true || (adopt && ask_stage(c->ask) == ASK_WAITING);
    if (ask_stage(c->ask) < ASK_ENDING &&
        (spec.already_true != c->asked.already_true || spec.grant != c->asked.grant ||
         spec.priority != c->asked.priority || spec.since != c->asked.since ||
         spec.last != c->asked.last || !str_eq(spec.state, c->asked.state))) {
        c->asked = spec;
        ask_update(c->ask, &spec);
    }
}

static void tracked_update_prepare(struct tracked_request *c, bool wanted,
                                   const struct phase_facts *f)
{
    const struct maintenance_request *m = tracked_object(c);
    if (!wanted) {
        prepare_free(STEAL(c->prepare));
        return;
    }
    if (c->prepare != NULL || c->undo != NULL || f->ask.stage != ASK_HELD) {
        return;
    }
    struct prepare_spec spec = {
        .uid = c->uid,
        .request = c->name,
        .node = c->target,
        .machine_request = m->machine_request,
        .step = phase_prepare_step(m->status.step),
        .step_time = m->status.step_time,
    };
    ask_options(c->ask, &c->r->tmp, &spec.options);
    c->maybe_cordoned = true;
    c->prepare = prepare_new(c->r->preparer, &spec, tracked_on_event, c);
    tracked_mark_dirty(c); /* the preparation has a first status */
}

void tracked_finish_undo(struct tracked_request *c)
{
    if (prepare_undo_is_done(c->undo)) {
        prepare_undo_free(STEAL(c->undo));
        c->maybe_cordoned = false;
    }
}

void tracked_undo(struct tracked_request *c, bool uncordon)
{
    if (c->undo == NULL) {
        c->undo = prepare_undo(c->r->preparer, c->uid, c->target, uncordon, tracked_on_event, c);
    }
}

static void tracked_check_done(struct tracked_request *c, const struct err *err)
{
    buf_reset(&c->check_error);
    tracked_set_check(c, err == NULL ? PHASE_CHECK_PASSED : PHASE_CHECK_FAILED);
    if (err != NULL) {
        buf_add(&c->check_error, str_from(err->msg));
    }
    tracked_mark_dirty(c);
}

static void tracked_on_safety(void *ctx, const struct err *err)
{
    tracked_check_done(ctx, err);
}

/* The reservations still hold; the safety checks of the limits come next. */
static void tracked_on_recheck(void *ctx, const struct err *err)
{
    struct tracked_request *c = ctx;
    struct requests *r = c->r;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct limit_options options;
    if (c->check != PHASE_CHECK_RUNNING) {
        return; /* the check was dropped meanwhile */
    }
    ask_options(c->ask, &tmp, &options);
    if (err != NULL || options.safety == 0 || c->type != TARGET_NODE) {
        tracked_check_done(c, err);
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
        tracked_on_safety, c);
}

static void tracked_check(struct tracked_request *c)
{
    if (c->check != PHASE_CHECK_NONE || c->ask == NULL || ask_stage(c->ask) != ASK_HELD) {
        return;
    }
    if (c->r->checks_running >= REQUESTS_CHECKS_MAX) {
        if (!list_linked(&c->check_link)) {
            list_add(&c->r->check_queue, &c->check_link);
        }
        return;
    }
    tracked_set_check(c, PHASE_CHECK_RUNNING);
    tracked_end_safety(c);
    if (mutated(c->r->config.client->mutations, MUTATION_NO_DOUBLE_CHECK)) {
        tracked_check_done(c, NULL);
        return;
    }
    ask_recheck(c->ask, buf_str(&c->target_uid), tracked_on_recheck, c);
}

static void tracked_keep_rollback(struct tracked_request *c, const struct phase_rollback *rollback)
{
    if (!rollback->wanted || c->rollback.wanted) {
        return;
    }
    arena_reset(&c->rollback_memory);
    c->rollback = *rollback;
    c->rollback.reason = arena_str(&c->rollback_memory, rollback->reason);
    c->rollback.message = arena_str(&c->rollback_memory, rollback->message);
}

void tracked_step(struct tracked_request *c)
{
    struct requests *r = c->r;
    struct phase_facts facts;
    struct phase_plan plan;
    tracked_finish_undo(c);
    tracked_read_facts(c, &facts);
    phase_decide(tracked_object(c), &facts, &r->tmp, &plan);
    bool passed = c->check == PHASE_CHECK_PASSED;
    request_write_send(c, &plan);
    if (passed || (c->check == PHASE_CHECK_FAILED && plan.rollback.wanted)) {
        tracked_set_check(c, PHASE_CHECK_NONE); /* one that passed is good for one write */
        if (passed) {
            tracked_end_safety(c);
        }
        if (passed && c->writer.call == NULL) {
            tracked_mark_dirty(c);
        }
    }
    /* Copied before the preparation or the ask ends: texts of the plan may be borrowed from them.
     */
    tracked_keep_rollback(c, &plan.rollback);
    tracked_update_prepare(c, plan.prepare, &facts);
    if (plan.undo) {
        tracked_undo(c, plan.uncordon);
        if (mutated(r->config.client->mutations, MUTATION_RELEASE_EARLY)) {
            (void)tracked_end_ask(c); /* if it takes longer, a later step goes on */
        }
    }
    if (plan.check) {
        tracked_check(c);
    }
    if (plan.ask == PHASE_ASK_RELEASE) {
        (void)tracked_end_ask(c); /* if it takes longer, a later step goes on */
    } else if (plan.ask != PHASE_ASK_AS_IS && c->target.n > 0) {
        tracked_update_ask(c, &plan);
    }
    if (plan.next != USEC_NEVER) {
        /* A moment that has passed already would wake the request at once, again and again. */
        tracked_wake_at(c, loop_now(r->loop) + MAX(plan.next - facts.now, WAKE_GRID));
    }
}
