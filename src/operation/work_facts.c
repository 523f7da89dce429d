/* What is known around a visit: its request, its Node, its drain and the Job of its run. */
#include "operation/operations_internal.h"

const struct maintenance_request *work_request(const struct work *w, const struct visit_record *v)
{
    const struct store_item *item =
        v->request.n > 0 ? store_find(&w->o->requests.store, v->request) : NULL;
    const struct maintenance_request *m = item != NULL ? item->object : NULL;
    if (m == NULL) {
        return NULL;
    }
    bool ours = v->request_uid.n > 0 ? str_eq(m->uid, v->request_uid) : str_eq(m->visit, v->id);
    return ours ? m : NULL;
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

/* A name that no request has: others may have made some under our name. */
static struct str work_next_request(const struct work *w, const struct visit_record *v)
{
    struct operations *o = w->o;
    struct str stem = request_name_stem(
        STR(VISIT_CLIENT), &(struct request_target){ .type = STR("node"), .name = w->name },
        &o->tmp);
    uint32_t number = request_name_number(v->request, stem);
    MAP_EACH (&o->requests.store.items, entry) {
        number = MAX(number, request_name_number(map_item_name(entry), stem));
    }
    return arena_printf(&o->tmp, STR_FMT "%u", STR_ARG(stem), number + 1);
}

/* Visits on nodes that no limit selects share one implied limit. */
static bool work_implied_limit_allows(const struct work *w, const struct maintenance_request *m)
{
    uint32_t allowed = w->o->config.unlimited_visits;
    uint32_t others = 0;
    if (allowed == 0 || m->status.limit_n > 0) {
        return true;
    }
    MAP_EACH (&w->o->requests.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct maintenance_request *other = item->object;
        others += other != m && other->status.limit_n == 0 &&
                          other->state == MR_STATE_IN_PROGRESS &&
                          !mrequest_phase_ended(other->status.phase)
                      ? 1
                      : 0;
    }
    LIST_EACH (&w->o->works, link) {
        const struct work *other = CONTAINER_OF(link, struct work, link);
        others += other != w && other->begins ? 1 : 0;
    }
    return others < allowed;
}

static void facts_add_request(const struct work *w, const struct visit_record *v,
                              struct visit_facts *f)
{
    const struct operations *o = w->o;
    const struct maintenance_request *m = work_request(w, v);
    f->request_there = m != NULL;
    f->request_foreign = m == NULL && v->request_uid.n == 0 && v->request.n > 0 &&
                         store_find(&o->requests.store, v->request) != NULL;
    if (v->request.n == 0 || f->request_foreign) {
        f->next_request = work_next_request(w, v);
    }
    if (m == NULL) {
        return;
    }
    f->request_uid = m->uid;
    f->request_state = m->state;
    f->request_phase = m->status.phase;
    f->request_grant = m->status.grant;
    f->request_held = o->core->arbiter != NULL &&
                      arbiter_holds(o->core->arbiter, m->uid, m->status.grant) &&
                      (m->state != MR_STATE_APPROVED || work_implied_limit_allows(w, m));
    if (mutated(o->core->client.mutations, MUTATION_VISIT_UNGRANTED) &&
        m->state == MR_STATE_PENDING) {
        f->request_state = MR_STATE_IN_PROGRESS;
        f->request_phase = MR_PHASE_IN_PROGRESS;
        f->request_grant = 1;
        f->request_held = true;
    }
}

/* ── what may begin ────────────────────────────────────────────────────────────────────────── */

/* Once more, right before the cordon; without waiting, but for the answers. */
static void facts_add_gates(const struct work *w, struct campaign *c,
                            const struct turn_machine *machine, const struct visit_record *v,
                            struct visit_facts *f)
{
    struct gates_answer a = campaign_gates_at_approval(c, machine, w->approved, v->id);
    if (a.verdict == GATE_REFUSES) {
        f->may_start = false;
        f->why_not = a.why;
    } else if (a.verdict == GATE_NOT_KNOWN) {
        f->gates_asked = true;
    }
}

bool visit_run_is_first(const struct visit_record *v, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        if (str_eq(v->runs[k].maintenance_uid, v->runs[i].maintenance_uid)) {
            return false;
        }
    }
    return true;
}

static void facts_add_start(struct work *w, const struct turn_machine *machine,
                            const struct visit_record *v, struct visit_facts *f)
{
    bool approved = v->phase == VISIT_REQUESTED && f->request_there &&
                    f->request_state == MR_STATE_APPROVED && machine->node != NULL;
    w->approved = !approved ? 0 : w->approved == 0 ? loop_now(w->o->loop) : w->approved;
    f->may_start = true;
    for (uint32_t i = 0; i < v->run_n; i++) {
        struct campaign *c = operations_campaign(w->o, v->runs[i].maintenance_uid);
        const struct campaign_operation *op =
            c != NULL ? campaign_operation(c, v->runs[i].operation) : NULL;
        bool same = op != NULL && str_eq(op->revision, v->runs[i].revision);
        if (c == NULL || !c->may_go_on || !same) {
            f->may_start = false;
            f->why_not = c == NULL ? STR("the NodeMaintenance is gone")
                         : !same   ? STR("the operation has changed")
                                   : c->wait.message;
        } else if (approved && f->may_start && visit_run_is_first(v, i)) {
            facts_add_gates(w, c, machine, v, f);
        }
        if (c != NULL && visit_touched(v)) {
            campaign_gates_passed(c, w->name);
        }
    }
}

static void facts_add_stops(const struct work *w, const struct visit_record *v,
                            struct visit_facts *f)
{
    for (uint32_t i = 0; i < v->run_n; i++) {
        const struct campaign *c = operations_campaign(w->o, v->runs[i].maintenance_uid);
        if (c != NULL && c->stops) {
            f->stop |= 1u << i;
            f->stop_why = c->stops_why;
        }
    }
}

static usec_t reboot_min_interval(const struct work *w, const struct visit_record *v)
{
    usec_t interval = 0;
    for (uint32_t i = 0; i < v->run_n; i++) {
        const struct campaign *c = operations_campaign(w->o, v->runs[i].maintenance_uid);
        const struct campaign_operation *op =
            c != NULL ? campaign_operation(c, v->runs[i].operation) : NULL;
        interval = MAX(interval, op != NULL ? op->reboot.min_interval : 0);
    }
    return interval;
}

static void facts_add_node(const struct work *w, const struct turn_machine *machine,
                           const struct visit_record *v, struct visit_facts *f)
{
    const struct node *node = machine->node;
    usec_t interval = reboot_min_interval(w, v);
    usec_t rebooted = machine->state->rebooted;
    f->node_there = node != NULL && str_eq(node->uid, v->node_uid);
    if (!f->node_there) {
        return;
    }
    f->unschedulable = node->unschedulable;
    f->visit_mark = node_annotation(node, KEY_VISIT_CORDON);
    if (mutated(w->o->core->client.mutations, MUTATION_VISIT_CORDON_LEFT) &&
        v->phase == VISIT_ENDING) {
        f->visit_mark = STR_NONE;
    }
    f->request_mark = node_annotation(node, KEY_REQUEST_CORDON);
    struct str kept = node_annotation(node, KEY_KEPT_CORDON);
    for (uint32_t i = 0; kept.n > 0 && i < v->run_n; i++) {
        f->kept_mark = f->kept_mark || str_eq(kept, v->runs[i].maintenance_uid);
    }
    work_label_facts(w, node, v, f);
    f->ready = node->ready;
    f->ready_since = node->ready ? node->ready_since : 0;
    f->boot_id = node->boot_id;
    f->reboot_useless = machine->state->reboot_useless;
    if (rebooted > 0 && v->reboot_id.n == 0 && w->o->now - rebooted < interval) {
        f->reboot_refused = arena_printf(
            &w->o->tmp, "the machine was rebooted %lld s ago, and reboot.minInterval is %lld s",
            (long long)((w->o->now - rebooted) / SECONDS(1)), (long long)(interval / SECONDS(1)));
    }
}

/* ── Jobs ──────────────────────────────────────────────────────────────────────────────────── */

struct str work_job_key(const struct work *w, struct str name)
{
    return arena_printf(&w->o->tmp, STR_FMT "/" STR_FMT, STR_ARG(w->o->config.jobs_namespace),
                        STR_ARG(name));
}

const struct job_state *work_find_job(const struct work *w, struct str name)
{
    const struct store_item *item = store_find(&w->o->jobs.store, work_job_key(w, name));
    return item != NULL ? item->object : NULL;
}

struct str work_job_name(const struct work *w, const struct visit_record *v,
                         const struct visit_run *run, bool preflight)
{
    return run_job_name(
        &(struct run_job_spec){
            .machine_uid = v->node_uid,
            .maintenance_uid = run->maintenance_uid,
            .operation = run->operation,
            .revision = run->revision,
            .attempt = run->attempt,
            .visit = v->id,
            .preflight = preflight,
        },
        &w->o->tmp);
}

struct str work_probe_name(const struct work *w, const struct visit_record *v,
                           const struct visit_run *run)
{
    return run_job_name(
        &(struct run_job_spec){
            .machine_uid = v->node_uid,
            .maintenance_uid = run->maintenance_uid,
            .operation = run->operation,
            .revision = run->revision,
            .attempt = run->attempt,
            .visit = v->id,
            .probe = true,
        },
        &w->o->tmp);
}

/* How often that has happened to this operation here, at the same revision and tick. */
static uint32_t run_interruptions(const struct turn_machine *machine, const struct visit_run *run)
{
    const struct operation_state *s =
        node_state_find(machine->state, run->maintenance, run->operation);
    bool same = s != NULL && str_eq(s->maintenance_uid, run->maintenance_uid) &&
                str_eq(s->interrupted_revision, run->revision) && s->interrupted_tick == run->tick;
    return same ? s->interruptions : 0;
}

/* Taken away through no fault of the payload: the attempt does not count, a few times. A machine
 * that rebooted while the payload ran has ended it, too; once that may be chance. */
static void facts_add_interruption(const struct work *w, const struct turn_machine *machine,
                                   const struct visit_record *v, const struct visit_run *run,
                                   struct visit_facts *f)
{
    uint32_t before = run_interruptions(machine, run);
    bool rebooted = f->node_there && v->boot_id.n > 0 && !str_eq(f->boot_id, v->boot_id) &&
                    !w->output.message.said;
    if (w->output.taken_away) {
        f->job_reason = w->output.pod_reason;
        f->retry_free = before < RUN_TAKEN_AWAY_MAX;
    } else if (rebooted) {
        f->job_reason = STR("RebootedDuringRun");
        f->retry_free = before < RUN_REBOOTED_MAX;
    }
    if (f->job_reason.n > 0 && f->job_message.n == 0 && (w->output.taken_away || rebooted)) {
        f->job_message =
            arena_printf(&w->o->tmp, "its pod was taken away, %u time(s) by now", before + 1);
    }
}

static void facts_add_end(struct work *w, const struct turn_machine *machine,
                          const struct visit_record *v, const struct visit_run *run,
                          const struct job_state *job, struct visit_facts *f)
{
    bool preflight = v->phase == VISIT_CHECKING;
    if (!run_output_know(w, job)) {
        f->job = VISIT_JOB_ACTIVE; /* until its pod has been asked how it ended */
        return;
    }
    const struct run_job_message *m = &w->output.message;
    bool pulled = preflight && w->output.image_pulled && !m->said;
    f->job = job->state == RUN_JOB_SUCCEEDED || pulled ? VISIT_JOB_SUCCEEDED : VISIT_JOB_FAILED;
    f->nothing_to_do = m->said && m->nothing_to_do;
    f->reboot_required = m->said && m->reboot_required;
    f->job_reason = job->reason;
    f->job_message = m->output;
    if (f->job == VISIT_JOB_FAILED) {
        facts_add_interruption(w, machine, v, run, f);
    }
}

static void facts_add_run(struct work *w, const struct turn_machine *machine,
                          const struct visit_record *v, struct visit_facts *f)
{
    bool preflight = v->phase == VISIT_CHECKING;
    int32_t open = visit_open_run(v);
    for (uint32_t i = 0; preflight && i < v->run_n; i++) {
        if (v->runs[i].preflight && v->runs[i].phase <= VISIT_RUN_CHECKING) {
            open = (int32_t)i;
            break;
        }
    }
    bool probe = v->phase == VISIT_SETTLING;
    open = probe ? visit_unproved_run(v) : open;
    if (open < 0) {
        return;
    }
    const struct visit_run *run = &v->runs[open];
    const struct campaign *c = operations_campaign(w->o, run->maintenance_uid);
    const struct campaign_operation *op = c != NULL ? campaign_operation(c, run->operation) : NULL;
    f->superseded = op == NULL || !str_eq(op->revision, run->revision) || c->m->dry_run;
    const struct job_state *job =
        work_find_job(w, probe ? work_probe_name(w, v, run) : work_job_name(w, v, run, preflight));
    if (job == NULL) {
        f->job = w->job.call != NULL ? VISIT_JOB_ACTIVE : VISIT_JOB_ABSENT;
    } else if (!str_eq(job->owner_uid, run->maintenance_uid)) {
        f->job = VISIT_JOB_FAILED;
        f->job_reason = STR("ForeignJob");
        f->job_message = STR("somebody else made a Job of this name");
    } else if (job->state == RUN_JOB_ACTIVE) {
        f->job = VISIT_JOB_ACTIVE;
    } else {
        facts_add_end(w, machine, v, run, job, f);
    }
}

void work_facts(struct work *w, const struct turn_machine *machine, const struct visit_record *v,
                struct visit_facts *ret)
{
    const struct operations *o = w->o;
    *ret = (struct visit_facts){
        .now = o->now,
        .known = informer_healthy(&o->requests) && informer_healthy(&o->jobs) &&
                 informer_healthy(&o->maintenances) && o->core->arbiter != NULL,
    };
    facts_add_request(w, v, ret);
    facts_add_start(w, machine, v, ret);
    facts_add_stops(w, v, ret);
    facts_add_node(w, machine, v, ret);
    facts_add_run(w, machine, v, ret);
    work_after_gates(w, machine, v, ret);
    ret->drain_done = w->drain != NULL && w->drained && drain_is_done(w->drain);
    if (w->drain != NULL) {
        struct drain_status s;
        drain_status(w->drain, &s);
        ret->drain_began = s.evicted + s.forced + s.terminating > 0;
    } else {
        ret->drain_began = v->phase == VISIT_DRAINING; /* by whoever led before, perhaps */
    }
}
