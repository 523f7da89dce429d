/* One machine on which something is under way: its NodeState, and its visit from the first record
 * to the last. */
#include "base/alloc.h"
#include "operation/operations_internal.h"

#define DECISIONS_MAX 16u /* of one look: more steps than a visit has without anything outside */
#define MESSAGE_MAX 256u  /* the schema's */

static const struct writer_rules work_rules = {
    .conflict = { MSECONDS(20), SECONDS(2) },
    .absent = { SECONDS(1), MINUTES(1) },
    .refused = { SECONDS(10), MINUTES(5) },
    .failed = { MSECONDS(500), SECONDS(30) },
};

static void work_on_labels(void *ctx)
{
    struct work *w = ctx;
    operations_schedule(w->o);
}

struct work *work_new(struct operations *o, struct str name)
{
    struct work *w = ALLOC_NEW(struct work);
    w->o = o;
    w->memory.first = 256;
    w->name = arena_str(&w->memory, name);
    writer_init(&w->state, &o->core->client, &work_rules);
    writer_init(&w->request, &o->core->client, &work_rules);
    writer_init(&w->job, &o->core->client, &work_rules);
    node_write_init(&w->labels, o->core, name, work_on_labels, w);
    list_add(&o->works, &w->link);
    (void)map_put(&o->work_by_name, w->name, w); /* it was not there */
    return w;
}

static void work_cancel(struct work *w)
{
    struct writer *const writers[] = { &w->state, &w->request, &w->job };
    for (uint32_t i = 0; i < ARRAY_LEN(writers); i++) {
        w->o->in_flight -= writers[i]->call != NULL ? 1 : 0;
        writer_cancel(writers[i]);
    }
    cordon_stop(STEAL(w->cordon));
    work_stop_drain(w);
    if (w->output.call != NULL) {
        api_cancel(w->o->core->client.api, STEAL(w->output.call));
    }
    node_write_done(&w->labels);
    run_output_done(&w->output);
}

void work_reset(struct work *w)
{
    work_cancel(w);
    writer_init(&w->state, &w->o->core->client, &work_rules);
    writer_init(&w->request, &w->o->core->client, &work_rules);
    writer_init(&w->job, &w->o->core->client, &work_rules);
    node_write_init(&w->labels, w->o->core, w->name, work_on_labels, w);
    w->cordon_step = VISIT_CORDON_KEEP;
    w->ends = false;
}

void work_free(struct work *w)
{
    work_cancel(w);
    (void)map_del(&w->o->work_by_name, w->name); /* it is there */
    list_del(&w->link);
    buf_done(&w->waits);
    buf_done(&w->request_name);
    buf_done(&w->job_key);
    arena_done(&w->ended_memory);
    arena_done(&w->memory);
    alloc_free(w);
}

/* ── the NodeState ─────────────────────────────────────────────────────────────────────────── */

static void work_state_path(struct work *w, const char *behind)
{
    struct operations *o = w->o;
    buf_reset(&o->path);
    buf_add(&o->path, STR(OPERATION_PATH "/namespaces/"));
    client_add_segment(&o->path, o->config.namespace);
    buf_add(&o->path, STR("/nodestates"));
    if (behind != NULL) {
        buf_add_char(&o->path, '/');
        client_add_segment(&o->path, w->name);
        buf_add(&o->path, str_from(behind));
    }
}

/* The record is gone: it is told and counted once. */
static void work_on_end(struct work *w)
{
    struct operations *o = w->o;
    usec_t took = w->ended.began > 0 ? MAX(o->now - w->ended.began, 0) : 0;
    if (took > 0) {
        operations_add_duration(o, &w->ended, took);
    }
    operations_tell_end(o, w->name, &w->ended);
    operations_metrics_end(o, &w->ended, took);
    histories_add(o, w->name, &w->ended);
}

static void work_on_state(void *ctx, const struct api_reply *reply)
{
    struct work *w = ctx;
    struct operations *o = w->o;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    CLEANUP(buf_done)
    struct buf key = { 0 };
    o->in_flight--;
    buf_printf(&key, STR_FMT "/" STR_FMT, STR_ARG(o->config.namespace), STR_ARG(w->name));
    enum retry_verdict verdict =
        writer_on_reply(&w->state, reply, &o->states.store, buf_str(&key), &r);
    if (w->state.verb == API_POST) {
        operations_note_made(o, MADE_STATE, verdict, &r.err);
    }
    if (verdict != RETRY_DONE && verdict != RETRY_OBSERVE) {
        log_warn(o->log, "the NodeState could not be written", KV_STR("node", w->name),
                 KV_ERR(&r.err));
    }
    if (w->ends && verdict == RETRY_DONE) {
        work_on_end(w);
    }
    w->ends = false;
    operations_schedule(o);
    core_written(o->core);
}

static void work_send_state(struct work *w, enum api_verb verb, uint64_t version)
{
    struct operations *o = w->o;
    const struct api_request request = {
        .verb = verb,
        .path = buf_str(&o->path),
        .content_type = verb == API_PATCH ? API_JSON_PATCH : STR_NONE,
        .body = buf_str(&o->body),
    };
    o->in_flight++;
    writer_send(&w->state, &request, version, work_on_state, w);
}

static bool work_may_write(struct work *w, struct writer *writer, uint64_t version)
{
    usec_t at = writer_ready_at(writer, version);
    usec_t now = loop_now(w->o->loop);
    if (writer->call != NULL || !operations_may_send(w->o)) {
        return false; /* the answer asks for a turn */
    }
    if (at > now) {
        loop_timer_pull(&w->o->turn, at);
        return false;
    }
    return true;
}

static void work_create_state(struct work *w, const struct turn_machine *machine)
{
    struct operations *o = w->o;
    if (!work_may_write(w, &w->state, 0)) {
        return;
    }
    buf_reset(&o->body);
    struct json_writer j = json_writer_on(&o->body);
    jw_obj(&j);
    jw_pair(&j, "apiVersion", STR(OPERATION_API_VERSION));
    jw_pair(&j, "kind", STR("NodeState"));
    jw_key(&j, STR("metadata"));
    jw_obj(&j);
    jw_pair(&j, "name", w->name);
    jw_pair(&j, "namespace", o->config.namespace);
    jw_key(&j, STR("ownerReferences"));
    jw_arr(&j);
    jw_obj(&j);
    jw_pair(&j, "apiVersion", STR("v1"));
    jw_pair(&j, "kind", STR("Node"));
    jw_pair(&j, "name", w->name);
    jw_pair(&j, "uid", machine->node->uid);
    jw_obj_end(&j);
    jw_arr_end(&j);
    jw_obj_end(&j);
    jw_key(&j, STR("spec"));
    jw_obj(&j);
    jw_pair_i64(&j, "format", NODE_STATE_FORMAT);
    jw_key(&j, STR("target"));
    jw_obj(&j);
    jw_pair(&j, "kind", STR("Node"));
    jw_pair(&j, "name", w->name);
    jw_pair(&j, "uid", machine->node->uid);
    jw_obj_end(&j);
    jw_obj_end(&j);
    jw_obj_end(&j);
    work_state_path(w, NULL);
    work_send_state(w, API_POST, 0);
}

/* A Node of the same name is another machine: what is noted about the old one goes. */
static void work_delete_state(struct work *w, const struct turn_machine *machine)
{
    const struct node_state *old = machine->state_item->object;
    if (work_may_write(w, &w->state, machine->state_item->version)) {
        buf_reset(&w->o->body);
        writer_print_delete(old->meta.uid, 0, &w->o->body);
        work_state_path(w, "");
        work_send_state(w, API_DELETE, machine->state_item->version);
    }
}

/* ── writing the visit ─────────────────────────────────────────────────────────────────────── */

static void patch_op(struct json_writer *j, const char *op, const char *path)
{
    jw_obj(j);
    jw_pair(j, "op", str_from(op));
    jw_pair(j, "path", str_from(path));
}

/* The server refuses a patch of any other version. */
static void patch_begin(struct json_writer *j, const struct turn_machine *machine)
{
    char version[24];
    jw_arr(j);
    patch_op(j, "replace", "/metadata/resourceVersion");
    (void)snprintf(version, sizeof(version), "%llu",
                   (unsigned long long)machine->state_item->version);
    jw_pair(j, "value", str_from(version));
    jw_obj_end(j);
    if (!machine->state->has_status) {
        patch_op(j, "add", "/status");
        jw_key(j, STR("value"));
        jw_obj(j);
        jw_obj_end(j);
        jw_obj_end(j);
    }
}

static void work_write_visit(struct work *w, const struct turn_machine *machine,
                             const struct visit_record *v)
{
    struct operations *o = w->o;
    uint64_t version = machine->state_item->version;
    if (!work_may_write(w, &w->state, version)) {
        return;
    }
    buf_reset(&o->body);
    struct json_writer j = json_writer_on(&o->body);
    patch_begin(&j, machine);
    patch_op(&j, "add", "/status/visit");
    jw_key(&j, STR("value"));
    visit_record_print(v, &j);
    jw_obj_end(&j);
    if (v->phase == VISIT_REBOOTING &&
        (machine->state->visit.phase != VISIT_REBOOTING || machine->state->rebooted == 0)) {
        patch_op(&j, "add", "/status/rebootedAt");
        jw_pair_time(&j, "value", o->now);
        jw_obj_end(&j);
    }
    jw_arr_end(&j);
    work_state_path(w, "/status");
    work_send_state(w, API_PATCH, version);
}

/* ── the end ───────────────────────────────────────────────────────────────────────────────── */

static const struct visit_run *visit_find_run(const struct visit_record *v,
                                              const struct operation_state *s)
{
    for (uint32_t i = 0; i < v->run_n; i++) {
        const struct visit_run *run = &v->runs[i];
        if (str_eq(run->maintenance_uid, s->maintenance_uid) &&
            str_eq(run->operation, s->operation)) {
            return run;
        }
    }
    return NULL;
}

static bool run_is_result(const struct visit_run *run)
{
    return run->phase == VISIT_RUN_SUCCEEDED || run->phase == VISIT_RUN_SKIPPED ||
           run->phase == VISIT_RUN_FAILED;
}

static void print_operation(const struct operation_state *s, struct json_writer *j)
{
    jw_obj(j);
    jw_pair(j, "maintenance", s->maintenance);
    jw_pair_some(j, "maintenanceUID", s->maintenance_uid);
    jw_pair(j, "operation", s->operation);
    jw_pair_some(j, "revision", s->revision);
    jw_pair_some(j, "phase", s->phase);
    jw_pair_some(j, "reason", s->reason);
    if (s->attempt > 0) {
        jw_pair_i64(j, "attempt", s->attempt);
    }
    jw_pair_time(j, "tick", s->tick);
    jw_pair_time(j, "startedAt", s->started);
    jw_pair_time(j, "finishedAt", s->finished);
    if (s->interruptions > 0) {
        jw_pair_i64(j, "interruptions", s->interruptions);
        jw_pair_some(j, "interruptedRevision", s->interrupted_revision);
        jw_pair_time(j, "interruptedTick", s->interrupted_tick);
    }
    if (s->success_revision.n > 0) {
        jw_key(j, STR("lastSuccess"));
        jw_obj(j);
        jw_pair(j, "revision", s->success_revision);
        jw_pair_time(j, "time", s->success_time);
        jw_obj_end(j);
    }
    jw_pair_some(j, "request", s->request);
    jw_pair_some(j, "message", str_sub(s->message, 0, MIN(s->message.n, (size_t)MESSAGE_MAX)));
    jw_obj_end(j);
}

/* What is kept of a run once its visit is over. A failure counts its attempts, in a row. */
static struct operation_state run_result(const struct work *w, const struct visit_record *v,
                                         const struct visit_run *run,
                                         const struct operation_state *old)
{
    bool good = run->phase != VISIT_RUN_FAILED;
    struct operation_state s = {
        .maintenance = run->maintenance,
        .maintenance_uid = run->maintenance_uid,
        .operation = run->operation,
        .revision = run->revision,
        .phase = visit_run_phase_name(run->phase),
        .reason = run->reason,
        .attempt = run->attempt,
        .tick = run->tick,
        .started = run->started,
        .finished = w->o->now,
        .request = v->request,
        .message = run->message,
    };
    if (good) {
        s.success_revision = run->revision;
        s.success_time = w->o->now;
    } else if (old != NULL) {
        s.success_revision = old->success_revision;
        s.success_time = old->success_time;
    }
    return s;
}

/* A run that was taken away leaves what was known as it was, and is counted. */
static struct operation_state run_interruption(const struct visit_run *run,
                                               const struct operation_state *old)
{
    struct operation_state s = { .maintenance = run->maintenance,
                                 .maintenance_uid = run->maintenance_uid,
                                 .operation = run->operation };
    s = old != NULL && str_eq(old->maintenance_uid, run->maintenance_uid) ? *old : s;
    bool same = str_eq(s.interrupted_revision, run->revision) && s.interrupted_tick == run->tick;
    s.interruptions = same ? s.interruptions + 1 : 1;
    s.interrupted_revision = run->revision;
    s.interrupted_tick = run->tick;
    return s;
}

static bool run_is_noted(const struct visit_run *run)
{
    return run_is_result(run) || run->interrupted;
}

static void print_results(const struct work *w, const struct turn_machine *machine,
                          const struct visit_record *v, struct json_writer *j)
{
    const struct node_state *state = machine->state;
    uint32_t n = 0;
    jw_arr(j);
    for (uint32_t i = 0; i < v->run_n && n < NODE_STATE_OPERATIONS_MAX; i++) {
        if (run_is_noted(&v->runs[i])) {
            const struct operation_state *old =
                node_state_find(state, v->runs[i].maintenance, v->runs[i].operation);
            struct operation_state s = run_is_result(&v->runs[i])
                                           ? run_result(w, v, &v->runs[i], old)
                                           : run_interruption(&v->runs[i], old);
            print_operation(&s, j);
            n++;
        }
    }
    for (uint32_t i = 0; i < state->operation_n && n < NODE_STATE_OPERATIONS_MAX; i++) {
        const struct operation_state *s = &state->operations[i];
        const struct visit_run *run = visit_find_run(v, s);
        bool replaced = run != NULL && run_is_noted(run);
        bool known = operations_campaign(w->o, s->maintenance_uid) != NULL;
        if (!replaced && known) {
            print_operation(s, j);
            n++;
        }
    }
    jw_arr_end(j);
}

/* The machine was asked, and does not want a reboot: the next one is for another reason. */
static bool visit_saw_no_reboot(const struct visit_record *v)
{
    bool seen = v->reboot_checked && !v->reboot_useless;
    for (uint32_t i = 0; i < v->run_n; i++) {
        const struct visit_run *run = &v->runs[i];
        seen = seen || (run->reboot == VISIT_REBOOT_IF_REQUIRED && !run->reboot_required &&
                        (run->phase == VISIT_RUN_SUCCEEDED || run->phase == VISIT_RUN_SKIPPED));
    }
    return seen && !v->reboot_useless;
}

/* The record goes, and what its runs did is kept. */
static void work_end_visit(struct work *w, const struct turn_machine *machine,
                           const struct visit_record *v)
{
    struct operations *o = w->o;
    uint64_t version = machine->state_item->version;
    if (!work_may_write(w, &w->state, version)) {
        return;
    }
    buf_reset(&o->body);
    struct json_writer j = json_writer_on(&o->body);
    patch_begin(&j, machine);
    patch_op(&j, "remove", "/status/visit");
    jw_obj_end(&j);
    patch_op(&j, "add", "/status/operations");
    jw_key(&j, STR("value"));
    print_results(w, machine, v, &j);
    jw_obj_end(&j);
    if (v->reboot_useless || (machine->state->reboot_useless && visit_saw_no_reboot(v))) {
        patch_op(&j, "add", "/status/rebootDidNotHelp");
        jw_pair_bool(&j, "value", v->reboot_useless);
        jw_obj_end(&j);
    }
    jw_arr_end(&j);
    arena_reset(&w->ended_memory);
    visit_record_copy(v, &w->ended_memory, &w->ended);
    w->ends = true;
    work_state_path(w, "/status");
    work_send_state(w, API_PATCH, version);
}

/* ── the beginning ─────────────────────────────────────────────────────────────────────────── */

/* Several objects share a visit: pods are left alone only if all leave them alone, and the longest
 * time counts. */
static void drain_join(struct visit_drain *d, const struct node_maintenance *m)
{
    const struct maintenance_drain *s = &m->disruption.drain;
    bool visit_drains = node_maintenance_drains(m) && m->disruption.drain_by != DRAIN_BY_LIMIT &&
                        m->disruption.drain_by != DRAIN_BY_NOBODY;
    if (!visit_drains) {
        return;
    }
    if (!d->enabled) {
        *d = (struct visit_drain){
            .enabled = true,
            .timeout = s->timeout,
            .grace = s->grace,
            .pod_selector = s->pod_selector,
            .evict_daemon_sets = !s->ignore_daemon_sets,
            .keep_empty_dir = !s->delete_empty_dir,
            .keep_unmanaged = !s->delete_unmanaged,
            .proceed = s->on_timeout == DRAIN_PROCEED,
            .force = s->on_timeout == DRAIN_FORCE,
        };
        return;
    }
    d->timeout = MAX(d->timeout, s->timeout);
    d->grace = MAX(d->grace, s->grace);
    d->pod_selector = str_eq(d->pod_selector, s->pod_selector) ? d->pod_selector : STR_NONE;
    d->evict_daemon_sets = d->evict_daemon_sets || !s->ignore_daemon_sets;
    d->keep_empty_dir = d->keep_empty_dir || !s->delete_empty_dir;
    d->keep_unmanaged = d->keep_unmanaged || !s->delete_unmanaged;
    d->proceed = d->proceed && s->on_timeout == DRAIN_PROCEED;
    d->force = d->force && s->on_timeout == DRAIN_FORCE;
}

static bool campaign_may_reboot(const struct campaign *c)
{
    bool may = false;
    for (uint32_t i = 0; i < c->operation_n; i++) {
        may = may || c->operations[i].reboot.policy != REBOOT_NEVER;
    }
    return may;
}

/* A template may reboot where the object itself does not say so. */
static void visit_join(struct visit_record *v, const struct campaign *c)
{
    const struct node_maintenance *m = c->m;
    const struct maintenance_drain *drain = &m->disruption.drain;
    drain_join(&v->drain, m);
    if (!v->drain.enabled && campaign_may_reboot(c) && drain->enabled &&
        m->disruption.drain_by != DRAIN_BY_LIMIT) {
        v->drain = (struct visit_drain){ .enabled = true,
                                         .timeout = drain->timeout,
                                         .grace = drain->grace,
                                         .keep_unmanaged = !drain->delete_unmanaged };
    }
    if (m->disruption.cordon == CORDON_ALWAYS ||
        (m->disruption.cordon == CORDON_AUTO && (v->drain.enabled || campaign_may_reboot(c)))) {
        v->cordon = VISIT_CORDON_OURS;
    }
    visit_labels_join(v, c);
    v->min_ready = MAX(v->min_ready, m->rollout.min_ready);
    for (uint32_t i = 0; i < c->operation_n; i++) {
        v->reboot_timeout = MAX(v->reboot_timeout, c->operations[i].reboot.timeout);
    }
    if (m->failure.on_node == NODE_FAILURE_KEEP) {
        v->on_failure = VISIT_FAILURE_KEEP;
    } else if (m->failure.on_node == NODE_FAILURE_AUTO && v->on_failure == VISIT_FAILURE_UNCORDON) {
        v->on_failure = VISIT_FAILURE_AUTO;
    }
}

static bool run_is_quiet(const struct operations *o, const struct visit_run *run)
{
    const struct campaign *c = operations_campaign(o, run->maintenance_uid);
    const struct campaign_operation *op = c != NULL ? campaign_operation(c, run->operation) : NULL;
    return op != NULL && op->quiet;
}

/* Adds to the visit what those have due here that have a place for the machine and are not part of
 * it yet. True when something was added. */
static bool visit_add_runs(const struct work *w, const struct turn_machine *machine,
                           struct visit_record *v)
{
    uint32_t before = v->run_n;
    LIST_EACH (&w->o->campaigns, link) {
        const struct campaign *c = CONTAINER_OF(link, struct campaign, link);
        const struct campaign_member *m = campaign_member(c, machine);
        if (m != NULL && m->place && !m->visited && visit_labels_fit(v, c)) {
            uint32_t n = campaign_add_runs(c, machine, v->runs, v->run_n, VISIT_RUNS_MAX);
            if (n > v->run_n) {
                visit_join(v, c);
            }
            v->run_n = n;
        }
    }
    v->quiet = v->run_n > 0;
    for (uint32_t i = 0; i < v->run_n; i++) {
        v->quiet = v->quiet && run_is_quiet(w->o, &v->runs[i]);
    }
    return v->run_n > before;
}

/* Steps that follow from what is known already are one write: the record moves on until nothing is
 * left but to act, or to wait. */
static void work_decide(struct work *w, const struct turn_machine *machine, struct visit_record *v,
                        struct visit_plan *ret)
{
    for (uint32_t i = 0; i < DECISIONS_MAX; i++) {
        struct visit_facts facts;
        work_facts(w, machine, v, &facts);
        visit_decide(v, &facts, &w->o->tmp, ret);
        if (ret->end || visit_record_same(&ret->record, v)) {
            return;
        }
        *v = ret->record;
    }
}

static void work_begin_visit(struct work *w, const struct turn_machine *machine)
{
    struct operations *o = w->o;
    struct visit_record v = {
        .format = VISIT_FORMAT,
        .id = arena_printf(&o->tmp, "%016llx", (unsigned long long)loop_random(o->loop)),
        .node_uid = machine->node->uid,
        .phase = VISIT_CHECKING,
        .phase_time = o->now,
        .deadline = USEC_NEVER,
        .on_failure = VISIT_FAILURE_UNCORDON,
        .runs = ARENA_ARRAY(&o->tmp, struct visit_run, VISIT_RUNS_MAX),
    };
    if (!visit_add_runs(w, machine, &v)) {
        return;
    }
    if (v.quiet) {
        v.cordon = VISIT_CORDON_NONE;
        v.drain.enabled = false;
        v.label_n = 0;
    }
    if (machine->state == NULL) {
        work_create_state(w, machine);
    } else {
        struct visit_plan plan;
        work_decide(w, machine, &v, &plan);
        work_write_visit(w, machine, &v);
    }
}

/* ── one look ──────────────────────────────────────────────────────────────────────────────── */

static bool visit_may_grow(const struct visit_record *v)
{
    return v->phase == VISIT_CHECKING || (v->phase == VISIT_REQUESTED && !v->quiet);
}

static void work_note_waits(struct work *w, struct str waits)
{
    buf_reset(&w->waits);
    buf_add(&w->waits, waits);
}

static void work_visit(struct work *w, const struct turn_machine *machine)
{
    struct operations *o = w->o;
    struct visit_record v = machine->state->visit;
    struct visit_record stored = v;
    struct visit_plan plan = { 0 };
    if (visit_may_grow(&v) && machine->node != NULL) {
        struct visit_run *runs = ARENA_ARRAY(&o->tmp, struct visit_run, VISIT_RUNS_MAX);
        for (uint32_t i = 0; i < v.run_n; i++) {
            runs[i] = v.runs[i];
        }
        v.runs = runs;
        bool quiet = v.quiet;
        (void)visit_add_runs(w, machine, &v); /* maybe there is nothing to add */
        v.quiet = quiet && v.quiet;
        v.phase = quiet && !v.quiet ? VISIT_CHECKING : v.phase;
    }
    work_decide(w, machine, &v, &plan);
    work_note_waits(w, plan.waits);
    operations_wake_at(o, plan.next);
    if (plan.end) {
        work_stop_drain(w);
        work_end_visit(w, machine, &plan.record);
    } else if (!visit_record_same(&v, &stored)) {
        work_write_visit(w, machine, &v);
        if (mutated(o->core->client.mutations, MUTATION_JOB_UNRECORDED)) {
            work_act(w, machine, &v, &plan);
        }
    } else {
        work_act(w, machine, &v, &plan);
    }
}

void work_step(struct work *w, struct turn_machine *machine)
{
    if (w->state.call != NULL) {
        return; /* what is known of the record may be old */
    }
    if (machine->state == NULL && machine->state_item != NULL) {
        const struct node_state *old = machine->state_item->object;
        if (old->visit.phase == VISIT_NONE) { /* otherwise that ends first */
            work_delete_state(w, machine);
        }
    } else if (machine->state != NULL && machine->state->visit.phase != VISIT_NONE) {
        if (machine->state->visit.phase != VISIT_UNKNOWN) {
            work_visit(w, machine);
        }
    } else if (machine->node != NULL) {
        work_stop_drain(w);
        work_begin_visit(w, machine);
    }
}
