/* The status of a NodeMaintenance: the ledger of its visits, and what people read. */
#include "operation/operations_internal.h"

#define ACTIVE_MAX 32u /* the schema's, as those below */
#define FAILED_MAX 32u
#define CONDITION_TEXT_MAX 512u

/* ── the ledger ────────────────────────────────────────────────────────────────────────────── */

static bool visit_is_young(const struct turn_machine *machine)
{
    const struct visit_record *v = machine->state != NULL ? &machine->state->visit : NULL;
    return v == NULL || v->phase == VISIT_NONE || v->phase == VISIT_CHECKING ||
           (v->phase == VISIT_REQUESTED && !v->quiet);
}

static bool campaign_wants(const struct campaign *c, const struct turn_machine *machine)
{
    struct visit_run runs[1];
    return visit_is_young(machine) && campaign_add_runs(c, machine, runs, 0, 1) > 0;
}

/* A Node that is gone may still have a visit, whose record ends first. */
static bool place_has_orphan(const struct operations *o, const struct maintenance_place *p)
{
    for (uint32_t i = 0; i < o->orphan_n; i++) {
        if (str_eq(o->orphans[i].name, p->machine)) {
            return true;
        }
    }
    return false;
}

static bool place_stays(const struct campaign *c, const struct maintenance_place *p)
{
    const struct turn_machine *machine = operations_machine(c->o, p->machine);
    if (machine == NULL || !str_eq(machine->node->uid, p->uid)) {
        return place_has_orphan(c->o, p);
    }
    const struct campaign_member *m = campaign_member(c, machine);
    bool kept = str_eq(node_annotation(machine->node, KEY_KEPT_CORDON), c->m->meta.uid);
    return kept || (m != NULL && (m->visited || campaign_wants(c, machine))) ||
           mutated(c->o->core->client.mutations, MUTATION_PLACE_LEFT);
}

static void campaign_find_places(struct campaign *c)
{
    struct operations *o = c->o;
    c->places = ARENA_ARRAY(&o->tmp, struct maintenance_place, MAINTENANCE_VISITS_MAX);
    c->place_n = 0;
    for (uint32_t i = 0; i < c->m->record.place_n; i++) {
        if (place_stays(c, &c->m->record.places[i])) {
            c->places[c->place_n++] = c->m->record.places[i];
        }
    }
    for (uint32_t i = 0; i < c->plan.next_n && c->place_n < MAINTENANCE_VISITS_MAX; i++) {
        const struct campaign_member *m = &c->members[c->plan.next[i]];
        const struct turn_machine *machine = &o->machines[m->machine];
        if (!m->place && campaign_wants(c, machine)) {
            c->places[c->place_n++] = (struct maintenance_place){
                .machine = machine->name,
                .uid = machine->node->uid,
                .since = o->now,
                .gate = m->gate,
            };
        }
    }
}

static bool places_same(const struct campaign *c)
{
    if (c->place_n != c->m->record.place_n) {
        return false;
    }
    for (uint32_t i = 0; i < c->place_n; i++) {
        if (!str_eq(c->places[i].machine, c->m->record.places[i].machine) ||
            !str_eq(c->places[i].uid, c->m->record.places[i].uid)) {
            return false;
        }
    }
    return true;
}

static void print_places(const struct campaign *c, struct json_writer *w)
{
    jw_key(w, STR("visits"));
    jw_arr(w);
    for (uint32_t i = 0; i < c->place_n; i++) {
        jw_obj(w);
        jw_pair(w, "machine", c->places[i].machine);
        jw_pair(w, "uid", c->places[i].uid);
        jw_pair_time(w, "since", c->places[i].since);
        jw_pair_some(w, "gate", c->places[i].gate);
        jw_obj_end(w);
    }
    jw_arr_end(w);
}

/* ── for people ────────────────────────────────────────────────────────────────────────────── */

static bool campaign_is_complete(const struct campaign *c, bool *ret_has_one_shot)
{
    bool complete = c->member_n > 0;
    *ret_has_one_shot = false;
    for (uint32_t k = 0; k < c->operation_n; k++) {
        if (c->operations[k].cron) {
            continue;
        }
        *ret_has_one_shot = true;
        for (uint32_t i = 0; i < c->member_n && complete; i++) {
            enum due_state s = c->members[i].due[k].state;
            complete = s == DUE_SUCCEEDED || s == DUE_SKIPPED || s == DUE_NOT;
        }
    }
    return complete && *ret_has_one_shot && c->place_n == 0;
}

void campaign_summarize(const struct campaign *c, struct campaign_summary *s)
{
    *s = (struct campaign_summary){ .reason = c->wait.reason, .message = c->wait.message };
    s->complete = c->problem.n == 0 && campaign_is_complete(c, &s->has_one_shot);
    if (c->problem.n > 0) {
        *s = (struct campaign_summary){ "Invalid", c->problem_reason, c->problem, false,
                                        s->has_one_shot };
    } else if (c->m->suspend) {
        s->phase = "Suspended";
    } else if (c->m->dry_run) {
        s->phase = "Planned";
    } else if (c->paused || c->m->held) {
        s->phase = "Paused";
    } else if (c->lacks) {
        s->phase = "Waiting";
    } else if (s->complete) {
        s->phase = "Complete";
        s->reason = STR("Complete");
        s->message = STR("every machine has done it");
    } else if (c->counts.in_visit > 0) {
        s->phase = "Running";
        s->reason = s->reason.n > 0 ? s->reason : STR("Visit");
    } else if (c->member_n == 0) {
        s->phase = "Waiting";
        s->reason = STR("NoMachines");
        s->message = STR("no node matches spec.nodeSeries");
    } else if (c->counts.pending == 0 && c->counts.failed == 0) {
        s->phase = "Waiting";
        s->reason = STR("Idle");
        s->message = STR("nothing is due");
    } else {
        s->phase = c->counts.failed > 0 && c->counts.pending == 0 ? "Degraded" : "Waiting";
        s->reason = s->reason.n > 0 ? s->reason : STR("Pending");
    }
}

/* Since when the condition has its status: as the object says, or now. */
static usec_t condition_since(const struct campaign *c, const struct jval *old, const char *type,
                              const char *status)
{
    JVAL_EACH (jval_get(old, STR("conditions")), condition) {
        if (str_eq(jval_str(jval_get(condition, STR("type"))), str_from(type)) &&
            str_eq(jval_str(jval_get(condition, STR("status"))), str_from(status))) {
            return jval_time(jval_get(condition, STR("lastTransitionTime")), c->o->now);
        }
    }
    return c->o->now;
}

void campaign_print_condition(const struct condition_writer *x, const char *type, bool truth,
                              struct str reason, struct str message)
{
    const char *status = truth ? "True" : "False";
    jw_obj(x->w);
    jw_pair(x->w, "type", str_from(type));
    jw_pair(x->w, "status", str_from(status));
    jw_pair_i64(x->w, "observedGeneration", x->c->m->meta.generation);
    jw_pair_time(x->w, "lastTransitionTime", condition_since(x->c, x->old, type, status));
    jw_pair(x->w, "reason", reason.n > 0 ? reason : str_from(type));
    jw_pair(x->w, "message", str_sub(message, 0, MIN(message.n, (size_t)CONDITION_TEXT_MAX)));
    jw_obj_end(x->w);
}

static void print_conditions(const struct campaign *c, const struct campaign_summary *s,
                             const struct jval *old, struct json_writer *w)
{
    const struct condition_writer x = { c, old, w };
    bool valid = c->problem.n == 0;
    bool stalled = !valid || c->paused || c->lacks;
    bool ready = !stalled && c->member_n > 0;
    bool failed = c->counts.failed > 0;
    jw_key(w, STR("conditions"));
    jw_arr(w);
    campaign_print_condition(&x, "Accepted", valid, valid ? STR("Valid") : c->problem_reason,
                             c->problem);
    campaign_print_condition(&x, "WindowOpen", valid && c->open,
                             !c->open                    ? STR("Closed")
                             : campaign_is_overridden(c) ? STR("Override")
                                                         : STR("Open"),
                             STR_NONE);
    campaign_print_condition(&x, "Progressing", c->counts.in_visit > 0, s->reason, s->message);
    campaign_print_condition(&x, "Paused", c->paused || c->m->suspend || c->m->held,
                             c->m->suspend ? STR("UserSuspended")
                             : c->m->held  ? STR("Hold")
                             : c->paused   ? c->pause_reason
                                           : STR("Active"),
                             STR_NONE);
    if (s->has_one_shot) {
        campaign_print_condition(&x, "Complete", s->complete,
                                 s->complete ? STR("Done") : STR("NotDone"), STR_NONE);
        campaign_print_condition(&x, "Finished", s->complete || stalled,
                                 s->complete ? STR("Succeeded")
                                 : stalled   ? STR("Failed")
                                             : STR("NotDone"),
                                 STR_NONE);
    }
    campaign_print_condition(&x, "Degraded", failed,
                             failed ? STR("FailedMachines") : STR("Healthy"), STR_NONE);
    campaign_print_condition(&x, "Ready", ready,
                             ready     ? s->reason
                             : stalled ? s->reason
                                       : STR("NoMachines"),
                             s->message);
    campaign_print_condition(&x, "Stalled", stalled, stalled ? s->reason : STR("NotStalled"),
                             stalled ? s->message : STR_NONE);
    jw_arr_end(w);
}

static void print_counts(const struct campaign *c, struct json_writer *w)
{
    const struct campaign_counts *n = &c->counts;
    jw_key(w, STR("counts"));
    jw_obj(w);
    jw_pair_i64(w, "selected", n->selected);
    jw_pair_i64(w, "pending", n->pending);
    jw_pair_i64(w, "inVisit", n->in_visit);
    jw_pair_i64(w, "succeeded", n->succeeded);
    jw_pair_i64(w, "failed", n->failed);
    jw_pair_i64(w, "skipped", n->skipped);
    jw_pair_i64(w, "held", n->held);
    jw_pair_i64(w, "unreachable", n->unreachable);
    jw_obj_end(w);
}

static void print_active(const struct campaign *c, struct json_writer *w)
{
    jw_key(w, STR("active"));
    jw_arr(w);
    for (uint32_t i = 0; i < MIN(c->place_n, ACTIVE_MAX); i++) {
        const struct turn_machine *machine = operations_machine(c->o, c->places[i].machine);
        const struct visit_record *v =
            machine != NULL && machine->state != NULL ? &machine->state->visit : NULL;
        bool visited = v != NULL && v->phase != VISIT_NONE;
        jw_obj(w);
        jw_pair(w, "machine", c->places[i].machine);
        jw_pair(w, "phase", visited ? visit_phase_name(v->phase) : STR("Pending"));
        jw_pair_time(w, "since", visited ? v->phase_time : c->places[i].since);
        jw_obj_end(w);
    }
    jw_arr_end(w);
}

static void print_failed(const struct campaign *c, struct json_writer *w)
{
    uint32_t n = 0;
    jw_key(w, STR("failed"));
    jw_arr(w);
    for (uint32_t i = 0; i < c->member_n; i++) {
        const struct turn_machine *machine = &c->o->machines[c->members[i].machine];
        for (uint32_t k = 0; k < c->operation_n && n < FAILED_MAX; k++) {
            const struct operation_state *s =
                machine->state != NULL
                    ? node_state_find(machine->state, c->m->meta.name, c->operations[k].spec->name)
                    : NULL;
            if (c->members[i].due[k].state != DUE_EXHAUSTED || s == NULL) {
                continue;
            }
            jw_obj(w);
            jw_pair(w, "machine", machine->name);
            jw_pair(w, "operation", s->operation);
            jw_pair_i64(w, "attempts", s->attempt);
            jw_pair(w, "reason", s->reason);
            jw_pair(w, "message", s->message);
            jw_obj_end(w);
            n++;
        }
    }
    jw_arr_end(w);
}

static void print_operations(const struct campaign *c, struct json_writer *w)
{
    static const char *const types[] = { "one-shot", "cron", "realtime" };
    jw_key(w, STR("operations"));
    jw_arr(w);
    for (uint32_t i = 0; i < c->operation_n; i++) {
        const struct campaign_operation *op = &c->operations[i];
        jw_obj(w);
        jw_pair(w, "name", op->spec->name);
        jw_pair(w, "type", str_from(types[op->spec->type]));
        jw_pair_some(w, "revision", op->revision);
        jw_pair_some(w, "version", op->spec->version.value);
        jw_pair_time(w, "lastTick", op->tick);
        jw_pair_time(w, "nextTick", op->next_tick);
        jw_pair_i64(w, "succeeded", op->succeeded);
        jw_pair_i64(w, "failed", op->failed);
        jw_pair_i64(w, "missed", op->missed);
        jw_obj_end(w);
    }
    jw_arr_end(w);
}

/* A patch leaves what it does not name: what is not so any more is emptied. */
static void print_time(struct json_writer *w, const char *key, usec_t at)
{
    if (at <= 0 || at == USEC_NEVER) {
        jw_key(w, str_from(key));
        jw_null(w);
    } else {
        jw_pair_time(w, key, at);
    }
}

static void print_wave(const struct campaign *c, struct json_writer *w)
{
    const struct rollout_record *r = &c->plan.record;
    bool waves = c->m->rollout.wave_n > 1 || (c->m->rollout.wave_n == 1 && c->plan.wave.n > 0);
    jw_key(w, STR("wave"));
    if (!waves || c->problem.n > 0) {
        jw_null(w);
        return;
    }
    jw_obj(w);
    jw_pair_i64(w, "index", r->wave);
    jw_pair(w, "name", c->plan.wave);
    jw_pair(w, "revision", c->revision);
    print_time(w, "tick", c->tick);
    print_time(w, "completeAt", r->complete_at);
    print_time(w, "soakUntil", r->soak_until);
    jw_pair_i64(w, "restarts", r->restarts);
    jw_pair_bool(w, "trouble", r->trouble);
    jw_obj_end(w);
}

static void print_handled(const struct campaign *c, struct json_writer *w)
{
    const struct spec_texts *old = &c->m->record.approved;
    struct str approve = c->m->asks.approve;
    bool fresh = approve.n > 0 && campaign_wave_is_approved(c, approve);
    uint32_t from = old->n >= MAINTENANCE_HANDLED_MAX ? 1 : 0;
    jw_key(w, STR("handled"));
    jw_obj(w);
    jw_key(w, STR("approve"));
    jw_arr(w);
    for (uint32_t i = from; i < old->n; i++) {
        jw_str(w, old->items[i]);
        fresh = fresh && !str_eq(old->items[i], approve);
    }
    if (fresh) {
        jw_str(w, approve);
    }
    jw_arr_end(w);
    jw_pair(w, "resume", c->resumed);
    jw_pair(w, "rerun", c->rerun);
    jw_obj_end(w);
}

/* "11-24 02:00Z": short enough for a column. */
static struct str short_time(usec_t at, struct arena *out)
{
    char text[TIMESTAMP_TEXT_MAX];
    if (at <= 0 || at == USEC_NEVER) {
        return STR_NONE;
    }
    struct str full = timestamp_print_seconds(at, text);
    return arena_printf(out, STR_FMT " " STR_FMT "Z", STR_ARG(str_sub(full, 5, 5)),
                        STR_ARG(str_sub(full, 11, 5)));
}

static void print_window(const struct campaign *c, struct json_writer *w)
{
    jw_key(w, STR("window"));
    jw_obj(w);
    jw_pair_bool(w, "open", c->open);
    print_time(w, "until", c->open ? c->window.end : USEC_NEVER);
    print_time(w, "nextStart", c->open ? USEC_NEVER : c->window.start);
    jw_obj_end(w);
}

static void print_status(const struct campaign *c, const struct jval *old, struct json_writer *w)
{
    struct campaign_summary s;
    struct arena *tmp = &c->o->tmp;
    campaign_summarize(c, &s);
    usec_t next = c->open ? USEC_NEVER : c->window.start;
    for (uint32_t i = 0; i < c->operation_n; i++) {
        next = MIN(next, c->operations[i].next_tick);
    }
    jw_pair_i64(w, "observedGeneration", c->m->meta.generation);
    jw_pair(w, "phase", str_from(s.phase));
    jw_pair(w, "reason", s.reason);
    jw_pair(
        w, "progress",
        arena_printf(tmp, "%u/%u", c->counts.succeeded + c->counts.skipped, c->counts.selected));
    jw_pair(w, "next", short_time(next, tmp));
    jw_pair(w, "revision", c->revision);
    print_window(c, w);
    print_wave(c, w);
    campaign_print_gate(c, w);
    print_counts(c, w);
    print_active(c, w);
    print_failed(c, w);
    print_operations(c, w);
    campaign_print_durations(c, w);
    print_handled(c, w);
    print_conditions(c, &s, old, w);
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static void campaign_on_written(void *ctx, const struct api_reply *reply)
{
    struct campaign *c = ctx;
    struct operations *o = c->o;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    o->in_flight--;
    enum retry_verdict verdict =
        writer_on_reply(&c->writer, reply, &o->maintenances.store, c->item->name, &r);
    if (verdict == RETRY_DONE) {
        campaign_tell_turning(c);
    } else {
        buf_reset(&c->sent);
    }
    if (verdict != RETRY_DONE && verdict != RETRY_OBSERVE) {
        log_warn(o->log, "the status of a NodeMaintenance could not be written",
                 KV_STR("name", c->item->name), KV_ERR(&r.err));
    }
    operations_schedule(o);
    core_written(o->core);
}

static void campaign_send(struct campaign *c, const char *behind, struct str type)
{
    struct operations *o = c->o;
    buf_reset(&o->path);
    buf_add(&o->path, STR(NODE_MAINTENANCES_PATH "/"));
    client_add_segment(&o->path, c->item->name);
    buf_add(&o->path, str_from(behind));
    o->in_flight++;
    writer_send(&c->writer,
                &(struct api_request){ .verb = API_PATCH,
                                       .path = buf_str(&o->path),
                                       .content_type = type,
                                       .body = buf_str(&o->body) },
                c->item->version, campaign_on_written, c);
}

bool campaign_may_send(struct campaign *c)
{
    usec_t at = writer_ready_at(&c->writer, c->item->version);
    if (c->writer.call != NULL || !operations_may_send(c->o)) {
        return false;
    }
    if (at > loop_now(c->o->loop)) {
        loop_timer_pull(&c->o->turn, at);
        return false;
    }
    return true;
}

void campaign_send_status(struct campaign *c)
{
    campaign_send(c, "/status", STR_NONE);
}

/* The finalizer comes with the first visit and goes when nothing is left to be undone. */
static bool campaign_write_finalizer(struct campaign *c)
{
    struct operations *o = c->o;
    const struct node_maintenance *m = c->m;
    bool left = c->place_n > 0 || m->record.place_n > 0;
    bool add = !m->finalizer && !m->meta.deleting && c->place_n > 0;
    bool remove = m->finalizer && m->meta.deleting && (!left || m->asks.abandon);
    if (!add && !remove) {
        return false;
    }
    if (!campaign_may_send(c)) {
        return true;
    }
    buf_reset(&o->body);
    buf_printf(&o->body,
               "[{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":\"%llu\"},",
               (unsigned long long)c->item->version);
    if (remove) {
        buf_printf(&o->body, "{\"op\":\"remove\",\"path\":\"/metadata/finalizers/%u\"}]",
                   m->finalizer_index);
    } else {
        buf_printf(&o->body,
                   "{\"op\":\"add\",\"path\":\"/metadata/finalizers%s\",\"value\":%s\"" STR_FMT
                   "\"%s}]",
                   m->finalizer_n > 0 ? "/-" : "", m->finalizer_n > 0 ? "" : "[",
                   STR_ARG(NODE_MAINTENANCE_FINALIZER), m->finalizer_n > 0 ? "" : "]");
    }
    campaign_send(c, "", API_JSON_PATCH);
    return true;
}

/* What must be on the server before anything follows from it. */
static bool campaign_is_urgent(const struct campaign *c)
{
    const struct maintenance_wave_record *w = &c->m->record.wave;
    bool wave = c->problem.n == 0 && c->plan.wave.n > 0 &&
                (!w->given || w->index != c->plan.record.wave ||
                 w->complete_at != c->plan.record.complete_at ||
                 w->soak_until != c->plan.record.soak_until ||
                 w->restarts != c->plan.record.restarts || w->trouble != c->plan.record.trouble ||
                 !str_eq(w->revision, c->revision) || w->tick != c->tick);
    bool gate = c->gate.timed_out != c->m->record.gate.timed_out;
    return wave || gate || !places_same(c) || c->written == 0;
}

void campaign_write(struct campaign *c)
{
    struct operations *o = c->o;
    CLEANUP(buf_done)
    struct buf text = { 0 };
    const struct jval *old = NULL;
    struct err err = { 0 };
    struct campaign_summary summary;
    campaign_find_places(c);
    campaign_summarize(c, &summary);
    c->phase = summary.phase;
    if (campaign_write_finalizer(c)) {
        return;
    }
    if (json_parse(c->m->record.json, JSON_GO, &o->tmp, &old, &err) < 0) {
        old = NULL; /* all is new */
    }
    struct json_writer w = json_writer_on(&text);
    jw_obj(&w);
    print_status(c, old, &w);
    jw_obj_end(&w);
    bool urgent = campaign_is_urgent(c);
    usec_t due = urgent ? 0 : c->written + STATUS_EVERY;
    if (!urgent && str_eq(buf_str(&text), buf_str(&c->sent))) {
        return;
    }
    if (loop_now(o->loop) < due) {
        loop_timer_pull(&o->turn, due);
        return;
    }
    if (!campaign_may_send(c)) {
        return;
    }
    buf_reset(&o->body);
    struct json_writer patch = json_writer_on(&o->body);
    jw_obj(&patch);
    writer_add_version(&patch, c->item->version);
    jw_key(&patch, STR("status"));
    jw_obj(&patch);
    print_status(c, old, &patch);
    print_places(c, &patch);
    jw_obj_end(&patch);
    jw_obj_end(&patch);
    c->written = loop_now(o->loop);
    buf_reset(&c->sent);
    buf_add(&c->sent, buf_str(&text));
    campaign_note_turning(c, old, buf_str(&text));
    campaign_send_status(c);
}
