/* What a visit's plan says, done: the request, the cordon, the drain and the Jobs. */
#include "operation/operations_internal.h"

#define REQUEST_TTL_S 3600 /* finished requests of visits go soon: there are many */

static bool act_may_send(struct work *w, struct writer *writer, uint64_t version)
{
    usec_t at = writer_ready_at(writer, version);
    if (writer->call != NULL || !operations_may_send(w->o)) {
        return false;
    }
    if (at > loop_now(w->o->loop)) {
        loop_timer_pull(&w->o->turn, at);
        return false;
    }
    return true;
}

/* ── the request ───────────────────────────────────────────────────────────────────────────── */

static void act_on_request(void *ctx, const struct api_reply *reply)
{
    struct work *w = ctx;
    struct operations *o = w->o;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    o->in_flight--;
    w->begins = false;
    struct str name = buf_str(&w->request_name);
    enum retry_verdict verdict = writer_on_reply(&w->request, reply, &o->requests.store, name, &r);
    if (verdict != RETRY_DONE && verdict != RETRY_OBSERVE) {
        log_warn(o->log, "the MaintenanceRequest of a visit could not be written",
                 KV_STR("node", w->name), KV_STR("request", name), KV_ERR(&r.err));
    }
    operations_schedule(o);
    core_written(o->core);
}

static void act_send_request(struct work *w, enum api_verb verb, struct str name, uint64_t version)
{
    struct operations *o = w->o;
    buf_reset(&w->request_name);
    buf_add(&w->request_name, name);
    buf_reset(&o->path);
    buf_add(&o->path, STR(MAINTENANCE_REQUESTS_PATH));
    if (verb != API_POST) {
        buf_add_char(&o->path, '/');
        client_add_segment(&o->path, name);
    }
    const struct api_request request = { .verb = verb,
                                         .path = buf_str(&o->path),
                                         .body = buf_str(&o->body) };
    o->in_flight++;
    writer_send(&w->request, &request, version, act_on_request, w);
}

/* The operations, for people who look at the request. */
static struct str visit_reason(const struct operations *o, const struct visit_record *v)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    for (uint32_t i = 0; i < v->run_n && text.n < MREQUEST_REASON_MAX; i++) {
        buf_printf(&text, "%s" STR_FMT "/" STR_FMT, i > 0 ? ", " : "",
                   STR_ARG(v->runs[i].maintenance), STR_ARG(v->runs[i].operation));
    }
    struct str all = buf_str(&text);
    return arena_str((struct arena *)(uintptr_t)&o->tmp,
                     str_sub(all, 0, MIN(all.n, (size_t)MREQUEST_REASON_MAX)));
}

static void act_make_request(struct work *w, const struct visit_record *v)
{
    struct operations *o = w->o;
    int32_t priority = INT32_MIN;
    bool by_visit = true;
    if (!act_may_send(w, &w->request, 0)) {
        return;
    }
    for (uint32_t i = 0; i < v->run_n; i++) {
        const struct campaign *c = operations_campaign(o, v->runs[i].maintenance_uid);
        if (c != NULL) {
            priority = MAX(priority, c->m->priority);
            by_visit = by_visit && c->m->disruption.drain_by == DRAIN_BY_VISIT;
        }
    }
    buf_reset(&o->body);
    mrequest_print_new(
        &(struct mrequest_new){
            .name = v->request,
            .client = STR(VISIT_CLIENT),
            .target = { .type = STR("node"), .name = w->name },
            .reason = visit_reason(o, v),
            .priority = priority == INT32_MIN ? 0 : priority,
            .unprepared = by_visit || v->expired,
            .visit = v->id,
            .ttl_s = REQUEST_TTL_S,
        },
        &o->body);
    act_send_request(w, API_POST, v->request, 0);
}

static void act_change_request(struct work *w, const struct visit_record *v,
                               const struct visit_plan *plan)
{
    struct operations *o = w->o;
    const struct maintenance_request *m = work_request(w, v);
    const struct store_item *item = m != NULL ? store_find(&o->requests.store, v->request) : NULL;
    if (item == NULL || !act_may_send(w, &w->request, item->version)) {
        return;
    }
    bool begin = plan->request == VISIT_REQUEST_BEGIN;
    bool began = m->state == MR_STATE_IN_PROGRESS;
    buf_reset(&o->body);
    mrequest_print_change(
        &(struct mrequest_change){
            .version = arena_printf(&o->tmp, "%llu", (unsigned long long)item->version),
            .uid = m->uid,
            .state = begin ? MR_STATE_IN_PROGRESS : MR_STATE_COMPLETED,
            .exit_code = !begin && began ? plan->exit_code : STR_NONE,
            .withdrawn = !begin && !began,
        },
        &o->body);
    w->begins = begin;
    act_send_request(w, API_PATCH, v->request, item->version);
}

/* ── cordon and drain ──────────────────────────────────────────────────────────────────────── */

static void act_on_cordon(void *ctx, enum cordon_result end)
{
    struct work *w = ctx;
    if (end != CORDON_RESULT_NONE) {
        w->cordon = NULL;
        w->cordon_step = VISIT_CORDON_KEEP;
    }
    operations_schedule(w->o);
}

/* The mark of a cordon that a failure left: the one that is there and is taken over, whichever of
 * the visit's objects left it, or the one that stays. */
static struct str visit_kept_mark(const struct turn_machine *machine, const struct visit_record *v,
                                  enum visit_cordon_step step)
{
    struct str there =
        machine->node != NULL ? node_annotation(machine->node, KEY_KEPT_CORDON) : STR_NONE;
    struct str kept = STR_NONE;
    for (uint32_t i = 0; i < v->run_n; i++) {
        const struct visit_run *run = &v->runs[i];
        if (step == VISIT_CORDON_MAKE && str_eq(run->maintenance_uid, there)) {
            return there;
        }
        kept = kept.n == 0 || run->phase == VISIT_RUN_FAILED ? run->maintenance_uid : kept;
    }
    return kept;
}

static void act_cordon(struct work *w, const struct turn_machine *machine,
                       const struct visit_record *v, enum visit_cordon_step step)
{
    static const enum cordon_action actions[] = {
        [VISIT_CORDON_MAKE] = CORDON_ACTION_CORDON,
        [VISIT_CORDON_LIFT] = CORDON_ACTION_UNCORDON,
        [VISIT_CORDON_LEAVE] = CORDON_ACTION_KEEP,
    };
    if (step == w->cordon_step) {
        return;
    }
    cordon_stop(STEAL(w->cordon));
    w->cordon_step = step;
    if (step == VISIT_CORDON_KEEP) {
        return;
    }
    w->cordon = cordon_start(w->o->cordons,
                             &(struct cordon_spec){
                                 .action = actions[step],
                                 .mark = KEY_VISIT_CORDON,
                                 .uid = v->id,
                                 .request = visit_reason(w->o, v),
                                 .node = w->name,
                                 .take_over = v->request_uid,
                                 .kept = visit_kept_mark(machine, v, step),
                             },
                             act_on_cordon, w);
}

void work_lift_kept(struct work *w, struct str maintenance_uid)
{
    if (w->cordon == NULL) {
        w->cordon_step = VISIT_CORDON_LIFT;
        w->cordon = cordon_start(w->o->cordons,
                                 &(struct cordon_spec){
                                     .action = CORDON_ACTION_UNCORDON,
                                     .mark = KEY_KEPT_CORDON,
                                     .uid = maintenance_uid,
                                     .request = STR("a visit that failed"),
                                     .node = w->name,
                                 },
                                 act_on_cordon, w);
    }
}

static void act_on_drain(void *ctx)
{
    struct work *w = ctx;
    w->drained = drain_is_done(w->drain);
    operations_schedule(w->o);
}

void work_stop_drain(struct work *w)
{
    drain_stop(STEAL(w->drain));
    w->drained = false;
}

static void act_drain(struct work *w, const struct turn_machine *machine,
                      const struct visit_record *v)
{
    const struct visit_drain *d = &v->drain;
    struct selector *pods = NULL;
    struct err err = { 0 };
    if (w->drain != NULL) {
        drain_pause(w->drain, !core_may_grant(w->o->core)); /* somebody has paused everything */
        if (d->force && v->deadline != USEC_NEVER && w->o->now >= v->deadline) {
            drain_force(w->drain);
        }
        return;
    }
    if (d->pod_selector.n > 0) {
        pods = ARENA_NEW(&w->memory, struct selector);
        if (selector_parse(d->pod_selector, &w->memory, pods, &err) < 0) {
            pods = NULL; /* the schema has checked it; all pods is the safe reading */
        }
    }
    w->drain = drain_start(w->o->core->drains,
                           &(struct drain_spec){
                               .node = w->name,
                               .node_uid = v->node_uid,
                               .eviction_timeout = USEC_NEVER,
                               .deletion_timeout = USEC_NEVER,
                               .grace = d->grace,
                               .flags = DRAIN_USE_POD_LABEL |
                                        (d->keep_unmanaged ? DRAIN_FORBID_UNMANAGED : 0) |
                                        (d->keep_empty_dir ? DRAIN_FORBID_EMPTYDIR : 0) |
                                        (d->evict_daemon_sets ? DRAIN_FORBID_DAEMONSET : 0),
                               .pods = pods,
                               .drain_rules = node_annotation(machine->node, KEY_DRAIN_RULES),
                           },
                           act_on_drain, w);
    w->drained = drain_is_done(w->drain);
}

/* ── Jobs ──────────────────────────────────────────────────────────────────────────────────── */

static void act_on_job(void *ctx, const struct api_reply *reply)
{
    struct work *w = ctx;
    struct operations *o = w->o;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    o->in_flight--;
    bool made = w->job.verb == API_POST;
    enum retry_verdict verdict =
        writer_on_reply(&w->job, reply, &o->jobs.store, buf_str(&w->job_key), &r);
    if (made) {
        operations_note_made(o, MADE_JOB, verdict, &r.err);
    }
    if (made && verdict != RETRY_DONE && verdict != RETRY_OBSERVE) {
        log_warn(o->log, "the Job of a visit could not be made", KV_STR("node", w->name),
                 KV_ERR(&r.err));
        buf_reset(&w->waits);
        buf_printf(&w->waits, "its Job to be made: %s", r.err.msg);
    }
    operations_schedule(o);
    core_written(o->core);
}

static void act_send_job(struct work *w, enum api_verb verb, struct str name)
{
    struct operations *o = w->o;
    buf_reset(&w->job_key);
    buf_add(&w->job_key, work_job_key(w, name));
    buf_reset(&o->path);
    buf_add(&o->path, STR("/apis/batch/v1/namespaces/"));
    client_add_segment(&o->path, o->config.jobs_namespace);
    buf_add(&o->path, STR("/jobs"));
    if (verb == API_DELETE) {
        buf_add_char(&o->path, '/');
        client_add_segment(&o->path, name);
    }
    o->in_flight++;
    writer_send(
        &w->job,
        &(struct api_request){ .verb = verb, .path = buf_str(&o->path), .body = buf_str(&o->body) },
        0, act_on_job, w);
}

/* Its pod is told to end, as with every pod that is deleted. */
static void act_stop(struct work *w, const struct visit_record *v)
{
    int32_t open = visit_open_run(v);
    if (open < 0 || !act_may_send(w, &w->job, 0)) {
        return;
    }
    struct str name = work_job_name(w, v, &v->runs[open], /* preflight= */ false);
    const struct job_state *job = work_find_job(w, name);
    if (job != NULL && !job->deleting) {
        job_print_delete(job, "Foreground",
                         &w->o->body); /* so it is there until its pod has ended */
        act_send_job(w, API_DELETE, name);
    }
}

static bool act_jobs_are_full(const struct work *w)
{
    return store_count(&w->o->jobs.store) >= w->o->config.jobs_max;
}

static void act_run(struct work *w, const struct turn_machine *machine,
                    const struct visit_record *v, const struct visit_plan *plan)
{
    struct operations *o = w->o;
    const struct visit_run *run = &v->runs[plan->run];
    const struct campaign *c = operations_campaign(o, run->maintenance_uid);
    const struct campaign_operation *op = c != NULL ? campaign_operation(c, run->operation) : NULL;
    struct run_job_spec spec;
    struct err err = { 0 };
    if (op == NULL || !act_may_send(w, &w->job, 0)) {
        return;
    }
    if (act_jobs_are_full(w)) {
        buf_reset(&w->waits);
        buf_printf(&w->waits, "Jobs to end: there are %u, as many as --jobs-max allows",
                   store_count(&o->jobs.store));
        return;
    }
    int r = plan->probe ? reboot_probe_spec(c, op, machine, run->attempt, &o->tmp, &spec, &err)
                        : campaign_run_spec(c, op, machine, run->attempt, plan->preflight, &o->tmp,
                                            &spec, &err);
    spec.visit = v->id;
    buf_reset(&o->body);
    r = r < 0 ? r : run_job_print(&spec, &o->body, &err);
    if (r < 0) {
        buf_reset(&w->waits);
        buf_printf(&w->waits, "%s", err.msg);
        return;
    }
    act_send_job(w, API_POST, run_job_name(&spec, &o->tmp));
}

static void act_reboot(struct work *w, const struct turn_machine *machine,
                       const struct visit_record *v)
{
    struct operations *o = w->o;
    const struct run_job_reboot reboot = { .visit = v->reboot_id, .boot_id = v->boot_id };
    const struct campaign *c = NULL;
    for (uint32_t i = 0; i < v->run_n && c == NULL; i++) {
        c = operations_campaign(o, v->runs[i].maintenance_uid);
    }
    struct str name = run_job_reboot_name(&reboot, &o->tmp);
    if (c == NULL || work_find_job(w, name) != NULL || !act_may_send(w, &w->job, 0)) {
        return;
    }
    buf_reset(&o->body);
    run_job_print_reboot(
        &(struct run_job_spec){
            .namespace = o->config.jobs_namespace,
            .machine = machine->name,
            .machine_uid = v->node_uid,
            .maintenance = c->m->meta.name,
            .maintenance_uid = c->m->meta.uid,
            .operation = STR("reboot"),
            .revision = c->revision,
            .attempt = 1,
            .timeout = v->reboot_timeout,
            .runner_image = o->config.runner_image,
            .priority_class = o->config.priority_class,
        },
        &reboot, &o->body);
    act_send_job(w, API_POST, name);
}

void work_act(struct work *w, const struct turn_machine *machine, const struct visit_record *v,
              const struct visit_plan *plan)
{
    act_cordon(w, machine, v, plan->cordon);
    work_act_labels(w, v, plan);
    if (plan->drain) {
        act_drain(w, machine, v);
    } else if (v->phase != VISIT_DRAINING) {
        work_stop_drain(w);
    }
    if (plan->request == VISIT_REQUEST_NEW) {
        act_make_request(w, v);
    } else if (plan->request != VISIT_REQUEST_KEEP) {
        act_change_request(w, v, plan);
    }
    if (plan->run >= 0) {
        act_run(w, machine, v, plan);
    }
    if (plan->stop) {
        act_stop(w, v);
    }
    if (plan->reboot) {
        act_reboot(w, machine, v);
    }
    if (mutated(w->o->core->client.mutations, MUTATION_REBOOT_AGAIN) &&
        v->phase == VISIT_SETTLING && v->reboot_id.n > 0 && machine->node != NULL) {
        struct visit_record again = *v;
        again.reboot_id = v->id;
        again.boot_id = machine->node->boot_id;
        act_reboot(w, machine, &again);
    }
}
