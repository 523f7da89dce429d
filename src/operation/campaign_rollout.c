/* The machines of a NodeMaintenance: what each has done, what is due there, and which of them come
 * next. */
#include "operation/operations_internal.h"

#include <stdlib.h>

/* Labels by which kubeadm and others mark machines of the control plane. */
static const struct str control_plane_labels[] = {
    STR_INIT("node-role.kubernetes.io/control-plane"),
    STR_INIT("node-role.kubernetes.io/master"),
};
#define ZONE_LABEL STR("topology.kubernetes.io/zone")
#define REVISION_NAMED 16u /* digits of a revision that people write */

/* ── what has been done ────────────────────────────────────────────────────────────────────── */

static struct due_history member_history(const struct operation_state *s)
{
    struct due_history h = { 0 };
    if (s == NULL) {
        return h;
    }
    h.result = str_eq(s->phase, STR("Succeeded")) ? DUE_RESULT_SUCCEEDED
               : str_eq(s->phase, STR("Skipped")) ? DUE_RESULT_SKIPPED
               : str_eq(s->phase, STR("Failed"))  ? DUE_RESULT_FAILED
                                                  : DUE_RESULT_NONE;
    h.revision = s->revision;
    h.tick = s->tick;
    h.attempts = s->attempt;
    h.ended = s->finished;
    h.success = s->success_revision;
    return h;
}

/* The time behind the '@' of what people ask for; 0 = there is none, or it is not a time. */
static usec_t ask_time(struct str text, struct str *ret_what)
{
    struct str when;
    struct timestamp t;
    struct err err = { 0 };
    *ret_what = text;
    if (!str_cut(text, STR("@"), ret_what, &when) || timestamp_parse(when, &t, &err) < 0) {
        return 0;
    }
    return SECONDS(t.sec);
}

/* "<operation>[/<machine>]@<time>": since when that is to run again; 0 = it is not meant. */
static usec_t rerun_time(struct str rerun, struct str operation, struct str machine)
{
    struct str what;
    struct str name;
    struct str only;
    usec_t at = ask_time(rerun, &what);
    bool one = str_cut(what, STR("/"), &name, &only);
    bool meant = str_eq(one ? name : what, operation) && (!one || str_eq(only, machine));
    return meant ? at : 0;
}

/* What counts is remembered in the status: an annotation that a repository puts back at each sync
 * is acted upon once. */
void campaign_look_at_asks(struct campaign *c)
{
    char text[TIMESTAMP_TEXT_MAX];
    struct str what;
    struct str before;
    struct str taken;
    usec_t now = c->o->now;
    usec_t asked = ask_time(c->m->asks.rerun, &what);
    bool fresh = asked > ask_time(c->m->record.reran, &before) && asked <= now + MINUTES(1) &&
                 now - asked <= DAYS(1);
    c->rerun = fresh ? c->m->asks.rerun : c->m->record.reran;
    /* "<revision>[@<time>] at <time>" */
    struct str when = STR_NONE;
    struct timestamp t = { 0 };
    struct err err = { 0 };
    taken = str_cut(c->m->record.resumed, STR(" at "), &taken, &when) ? taken : STR_NONE;
    c->resumed = c->m->record.resumed;
    c->resumed_at = timestamp_parse(when, &t, &err) == 0 ? SECONDS(t.sec) : 0;
    (void)ask_time(c->m->asks.resume, &what); /* its time only makes it another text */
    if (c->m->asks.resume.n > 0 && campaign_is_revision(c, what) &&
        !str_eq(c->m->asks.resume, taken)) {
        c->resumed_at = now;
        c->resumed = arena_printf(&c->o->tmp, STR_FMT " at " STR_FMT, STR_ARG(c->m->asks.resume),
                                  STR_ARG(timestamp_print_seconds(now, text)));
    }
}

static struct due_answer member_due(const struct campaign *c, const struct campaign_operation *op,
                                    const struct turn_machine *machine)
{
    const struct maintenance_failure *f = &c->m->failure;
    const struct operation_state *s =
        machine->state == NULL ? NULL
                               : node_state_find(machine->state, c->m->meta.name, op->spec->name);
    if (s != NULL && !str_eq(s->maintenance_uid, c->m->meta.uid)) {
        s = NULL; /* of an object of the same name that is gone */
    }
    struct due_history history = member_history(s);
    if (mutated(c->o->core->client.mutations, MUTATION_RUN_REPEATED)) {
        history = (struct due_history){ 0 };
    }
    usec_t rerun = rerun_time(c->rerun, op->spec->name, machine->name);
    if (history.result == DUE_RESULT_FAILED) {
        rerun = MAX(rerun, c->resumed_at);
    }
    struct due_rule rule = {
        .cron = op->cron,
        .revision = op->revision,
        .rerun_at = rerun,
        .tick = op->tick,
        .tick_deadline = op->tick_deadline,
        .retries = f->retries,
        .backoff = { f->backoff_initial, f->backoff_factor, f->backoff_max },
    };
    bool skip_new = op->spec->skip_new_nodes && machine->node->created > c->m->meta.created;
    if (skip_new || !series_when(&op->spec->when, &machine->machine)) {
        return (struct due_answer){ .state = DUE_NOT, .next = USEC_NEVER };
    }
    return due_decide(&rule, &history, c->o->now);
}

bool campaign_done_on(const struct campaign *c, const struct campaign_member *member,
                      struct str operation)
{
    for (uint32_t i = 0; i < c->operation_n; i++) {
        if (operation.n > 0 && !str_eq(operation, c->operations[i].spec->name)) {
            continue;
        }
        enum due_state s = member->due[i].state;
        bool served = c->operations[i].cron && s == DUE_EXHAUSTED;
        if (s != DUE_SUCCEEDED && s != DUE_SKIPPED && !served &&
            !(s == DUE_NOT && !c->operations[i].cron)) {
            return false;
        }
    }
    return true;
}

/* ── members ───────────────────────────────────────────────────────────────────────────────── */

static enum rollout_progress member_progress(const struct campaign *c,
                                             const struct campaign_member *m)
{
    bool now = false;
    bool backoff = false;
    bool failed = false;
    bool succeeded = false;
    for (uint32_t i = 0; i < c->operation_n; i++) {
        enum due_state s = m->due[i].state;
        now = now || s == DUE_NOW;
        backoff = backoff || s == DUE_BACKOFF;
        failed = failed || s == DUE_EXHAUSTED;
        succeeded = succeeded || s == DUE_SUCCEEDED;
    }
    /* A machine that a failure left cordoned has its place, too, and waits. */
    if (m->visited || (m->place && now)) {
        return ROLLOUT_ACTIVE;
    }
    return failed      ? ROLLOUT_FAILED
           : backoff   ? ROLLOUT_BACKOFF
           : now       ? ROLLOUT_TODO
           : succeeded ? ROLLOUT_SUCCEEDED
                       : ROLLOUT_SKIPPED;
}

static usec_t member_served(const struct campaign *c, const struct turn_machine *machine)
{
    usec_t served = 0;
    for (uint32_t i = 0; machine->state != NULL && i < machine->state->operation_n; i++) {
        const struct operation_state *s = &machine->state->operations[i];
        if (str_eq(s->maintenance_uid, c->m->meta.uid)) {
            served = MAX(served, s->finished);
        }
    }
    return served;
}

static bool machine_is_control_plane(const struct node *node)
{
    for (uint32_t i = 0; i < ARRAY_LEN(control_plane_labels); i++) {
        if (node_label(node, control_plane_labels[i]).p != NULL) {
            return true;
        }
    }
    return false;
}

static uint32_t member_selectors(const struct campaign *c, const struct turn_machine *machine)
{
    uint32_t bits = 0;
    const struct maintenance_rollout *r = &c->m->rollout;
    for (uint32_t i = 0; i + 1 < r->wave_n; i++) {
        if (r->waves[i].has_selector &&
            selector_match(&r->waves[i].selector, machine->machine.label,
                           machine->machine.label_ctx)) {
            bits |= 1u << i;
        }
    }
    return bits;
}

/* "<operation>/<machine>@<time>": this machine comes first, whatever its wave. */
static bool member_is_asked_for(const struct campaign *c, struct str machine)
{
    struct str operation;
    struct str rest;
    usec_t at = str_cut(c->m->asks.run, STR("/"), &operation, &rest)
                    ? rerun_time(c->m->asks.run, operation, machine)
                    : 0;
    return at > 0 && at <= c->o->now + MINUTES(1) && c->o->now - at <= DAYS(1);
}

static int64_t label_number(struct str text)
{
    int64_t n = 0;
    return str_to_i64(text, &n) ? n : 0;
}

static struct rollout_machine member_rollout(const struct campaign *c,
                                             const struct campaign_member *m)
{
    const struct turn_machine *machine = &c->o->machines[m->machine];
    const struct maintenance_rollout *r = &c->m->rollout;
    return (struct rollout_machine){
        .name = machine->name,
        .hash = rollout_hash(machine->node->uid),
        .zone = node_label(machine->node, ZONE_LABEL),
        .spread = r->spread_key.n > 0 ? node_label(machine->node, r->spread_key) : STR_NONE,
        .label = r->order_label.n > 0 ? label_number(node_label(machine->node, r->order_label)) : 0,
        .created = machine->node->created,
        .served = member_served(c, machine),
        .selectors = member_selectors(c, machine),
        .control_plane = machine_is_control_plane(machine->node),
        .can_run = machine->reachable && !m->held,
        .ready = machine->node->ready,
        .kept = str_eq(node_annotation(machine->node, KEY_KEPT_CORDON), c->m->meta.uid),
        .excused = machine->work != NULL || machine->node->unschedulable,
        .asked_for = member_is_asked_for(c, machine->name),
        .progress = member_progress(c, m),
    };
}

static void campaign_count(struct campaign *c, const struct campaign_member *m,
                           const struct rollout_machine *r)
{
    struct campaign_counts *n = &c->counts;
    n->selected++;
    n->held += m->held ? 1 : 0;
    n->unreachable += !c->o->machines[m->machine].reachable ? 1 : 0;
    n->in_visit += r->progress == ROLLOUT_ACTIVE ? 1 : 0;
    n->pending += r->progress == ROLLOUT_TODO || r->progress == ROLLOUT_BACKOFF ? 1 : 0;
    n->succeeded += r->progress == ROLLOUT_SUCCEEDED ? 1 : 0;
    n->skipped += r->progress == ROLLOUT_SKIPPED ? 1 : 0;
    n->failed += r->progress == ROLLOUT_FAILED ? 1 : 0;
    for (uint32_t i = 0; i < c->operation_n; i++) {
        struct campaign_operation *op = &c->operations[i];
        op->succeeded += m->due[i].state == DUE_SUCCEEDED || m->due[i].state == DUE_SKIPPED ? 1 : 0;
        op->failed += m->due[i].state == DUE_EXHAUSTED ? 1 : 0;
        op->missed += m->due[i].missed ? 1 : 0;
        operations_wake_at(c->o, m->due[i].next);
    }
}

static const struct maintenance_place *campaign_place(const struct campaign *c,
                                                      const struct turn_machine *machine)
{
    for (uint32_t i = 0; i < c->m->record.place_n; i++) {
        const struct maintenance_place *p = &c->m->record.places[i];
        if (str_eq(p->machine, machine->name) && str_eq(p->uid, machine->node->uid)) {
            return p;
        }
    }
    return NULL;
}

static bool visit_has_run_of(const struct turn_machine *machine, struct str maintenance_uid)
{
    const struct visit_record *v = machine->state != NULL ? &machine->state->visit : NULL;
    for (uint32_t i = 0; v != NULL && i < v->run_n; i++) {
        if (str_eq(v->runs[i].maintenance_uid, maintenance_uid)) {
            return true;
        }
    }
    return false;
}

static void campaign_add_member(struct campaign *c, uint32_t index)
{
    const struct turn_machine *machine = &c->o->machines[index];
    const struct maintenance_place *place = campaign_place(c, machine);
    struct campaign_member *m = &c->members[c->member_n];
    *m = (struct campaign_member){
        .machine = index,
        .due = ARENA_ARRAY(&c->o->tmp, struct due_answer, c->operation_n),
        .place = place != NULL,
        .gate = place != NULL ? place->gate : STR_NONE,
        .visited = visit_has_run_of(machine, c->m->meta.uid),
        .held = machine_is_held(&machine->machine, c->m->meta.name),
    };
    for (uint32_t i = 0; i < c->operation_n; i++) {
        m->due[i] = member_due(c, &c->operations[i], machine);
    }
    c->rollout[c->member_n] = member_rollout(c, m);
    campaign_count(c, m, &c->rollout[c->member_n]);
    c->member_n++;
}

/* Which machines: those of the series, and those where a visit of it is still under way. */
static void campaign_select(struct campaign *c, bool *chosen)
{
    (void)series_members(c->o, c->series, chosen); /* they are counted one by one */
    for (uint32_t i = 0; i < c->o->machine_n; i++) {
        chosen[i] = chosen[i] || visit_has_run_of(&c->o->machines[i], c->m->meta.uid);
    }
}

void campaign_look_at_machines(struct campaign *c)
{
    struct operations *o = c->o;
    bool *chosen = ARENA_ARRAY(&o->tmp, bool, o->machine_n);
    c->member_n = 0;
    c->counts = (struct campaign_counts){ 0 };
    for (uint32_t i = 0; i < c->operation_n; i++) {
        c->operations[i].succeeded = 0;
        c->operations[i].failed = 0;
        c->operations[i].missed = 0;
    }
    if (c->problem.n > 0) {
        return;
    }
    campaign_select(c, chosen);
    c->members = ARENA_ARRAY(&o->tmp, struct campaign_member, o->machine_n);
    c->rollout = ARENA_ARRAY(&o->tmp, struct rollout_machine, o->machine_n);
    for (uint32_t i = 0; i < o->machine_n; i++) {
        if (chosen[i]) {
            campaign_add_member(c, i);
        }
    }
}

const struct campaign_member *campaign_member(const struct campaign *c,
                                              const struct turn_machine *machine)
{
    uint32_t index = (uint32_t)(machine - c->o->machines);
    uint32_t low = 0;
    uint32_t high = c->member_n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->members[middle].machine < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < c->member_n && c->members[low].machine == index ? &c->members[low] : NULL;
}

/* ── which come next ───────────────────────────────────────────────────────────────────────── */

bool campaign_is_revision(const struct campaign *c, struct str named)
{
    return named.n >= REVISION_NAMED && str_starts(c->revision, named);
}

/* "<revision>/<wave>[@<tick>] by <user>" */
static bool approval_is_for(struct str text, const struct campaign *c, struct str wave)
{
    struct str what;
    struct str who;
    struct str revision;
    struct str rest;
    struct str name;
    struct str tick;
    char printed[TIMESTAMP_TEXT_MAX];
    what = str_cut(text, STR(" by "), &what, &who) ? what : text;
    if (!str_cut(what, STR("/"), &revision, &rest)) {
        return false;
    }
    bool has_tick = str_cut(rest, STR("@"), &name, &tick);
    bool tick_right =
        c->tick == 0 || (has_tick && str_eq(tick, timestamp_print_seconds(c->tick, printed)));
    return campaign_is_revision(c, revision) && str_eq(has_tick ? name : rest, wave) && tick_right;
}

bool campaign_wave_is_approved(const struct campaign *c, struct str text)
{
    for (uint32_t i = 0; i < c->m->rollout.wave_n; i++) {
        if (c->m->rollout.waves[i].manual &&
            approval_is_for(text, c, c->m->rollout.waves[i].name)) {
            return true;
        }
    }
    return false;
}

static bool wave_is_approved(const struct campaign *c, struct str wave)
{
    if (approval_is_for(c->m->asks.approve, c, wave)) {
        return true;
    }
    for (uint32_t i = 0; i < c->m->record.approved.n; i++) {
        if (approval_is_for(c->m->record.approved.items[i], c, wave)) {
            return true;
        }
    }
    return false;
}

static enum rollout_by rollout_order(const struct campaign *c)
{
    switch (c->m->rollout.order) {
    case ORDER_NAME:
        return ROLLOUT_BY_NAME;
    case ORDER_AGE:
        return ROLLOUT_BY_AGE;
    case ORDER_ZONE:
        return ROLLOUT_BY_ZONE;
    case ORDER_LABEL:
        return ROLLOUT_BY_LABEL;
    case ORDER_RANDOM:
        return ROLLOUT_BY_HASH;
    case ORDER_AUTO:
        break;
    }
    return c->member_n > 0 && c->rollout[0].zone.p != NULL ? ROLLOUT_BY_ZONE : ROLLOUT_BY_HASH;
}

/* Machines that a failure left cordoned keep their places. */
static uint32_t campaign_kept_cordons(const struct campaign *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->member_n; i++) {
        n += c->rollout[i].kept && c->rollout[i].progress != ROLLOUT_ACTIVE ? 1 : 0;
    }
    return n;
}

bool campaign_keeps_cordon(const struct campaign *c, const struct turn_machine *machine)
{
    const struct campaign_member *m = c != NULL ? campaign_member(c, machine) : NULL;
    bool keeps = false;
    if (m == NULL || c->m->meta.deleting) {
        return false;
    }
    for (uint32_t i = 0; i < c->operation_n; i++) {
        const struct operation_state *s =
            node_state_find(machine->state, c->m->meta.name, c->operations[i].spec->name);
        enum due_state due = m->due[i].state;
        usec_t until = s != NULL ? s->finished + c->m->failure.failed_ttl : 0;
        bool over = c->m->failure.failed_ttl > 0 && c->o->now >= until;
        if (s != NULL && str_eq(s->phase, STR("Failed")) && !over &&
            (due == DUE_EXHAUSTED || due == DUE_BACKOFF || due == DUE_NOW) &&
            str_eq(s->revision, c->operations[i].revision)) {
            keeps = true;
        }
        if (c->m->failure.failed_ttl > 0) {
            operations_wake_at(c->o, until);
        }
    }
    return keeps;
}

static void campaign_fill_spec(const struct campaign *c, struct rollout_wave *waves,
                               struct rollout_spec *ret)
{
    const struct maintenance_rollout *r = &c->m->rollout;
    uint32_t limit = spec_share_of(r->max_concurrent, c->member_n);
    uint32_t kept = campaign_kept_cordons(c);
    if (mutated(c->o->core->client.mutations, MUTATION_VISITS_UNCOUNTED)) {
        limit = c->member_n + kept;
    }
    *ret = (struct rollout_spec){
        .max_concurrent = { limit, false },
        .max_active = MIN(limit, MAINTENANCE_VISITS_MAX) > kept
                          ? MIN(limit, MAINTENANCE_VISITS_MAX) - kept
                          : 0,
        .spread_max =
            r->spread_key.n > 0 && !mutated(c->o->core->client.mutations, MUTATION_SPREAD_IGNORED)
                ? r->spread_max
                : 0,
        .by = rollout_order(c),
        .control_plane = r->control_plane == CONTROL_PLANE_FIRST  ? ROLLOUT_CP_FIRST
                         : r->control_plane == CONTROL_PLANE_LAST ? ROLLOUT_CP_LAST
                                                                  : ROLLOUT_CP_IGNORE,
        .waves = waves,
        .pace = r->pace,
    };
    for (uint32_t i = 0; i < r->wave_n && !r->waves[i].implied; i++) {
        const struct maintenance_wave *w = &r->waves[i];
        waves[ret->wave_n++] = (struct rollout_wave){
            .name = w->name,
            .by_selector = w->has_selector,
            .size = { w->size.n, w->size.percent },
            .soak = w->soak,
            .manual = w->manual,
            .approved = w->manual && wave_is_approved(c, w->name),
        };
    }
}

void campaign_find_waves(const struct campaign *c, uint32_t *ret)
{
    struct rollout_wave waves[MAINTENANCE_WAVES_MAX + 1];
    struct rollout_spec spec;
    campaign_fill_spec(c, waves, &spec);
    const struct rollout_facts facts = {
        .now = c->o->now,
        .machines = c->rollout,
        .machine_n = c->member_n,
    };
    rollout_find_waves(&spec, &facts, &c->o->tmp, ret);
}

static struct rollout_record campaign_wave_record(const struct campaign *c)
{
    const struct maintenance_wave_record *w = &c->m->record.wave;
    if (!w->given || !str_eq(w->revision, c->revision) || w->tick != c->tick) {
        return (struct rollout_record){ 0 };
    }
    struct rollout_record r = {
        .wave = w->index,
        .complete_at = w->complete_at,
        .soak_until = w->soak_until,
        .restarts = w->restarts,
        .trouble = w->trouble,
    };
    if (r.restarts > 0 && c->resumed_at > r.complete_at && r.wave < c->m->rollout.wave_n) {
        r.restarts = 0; /* a person has looked: it soaks once more */
        r.trouble = false;
        r.complete_at = c->resumed_at;
        r.soak_until = c->resumed_at + c->m->rollout.waves[r.wave].soak;
    }
    return r;
}

static const struct {
    const char *reason;
    const char *message;
} rollout_waits[] = {
    [ROLLOUT_WAIT_NONE] = { "", "" },
    [ROLLOUT_WAIT_CONCURRENT] = { "Visit", "as many machines as rollout.maxConcurrent allows are "
                                           "being visited" },
    [ROLLOUT_WAIT_SPREAD] = { "Visit", "the machines that are left have as many neighbours being "
                                       "visited as rollout.spread allows" },
    [ROLLOUT_WAIT_BACKOFF] = { "Backoff", "machines that failed are tried again after a while" },
    [ROLLOUT_WAIT_ACTIVE] = { "Visit", "the last machines of the wave are being visited" },
    [ROLLOUT_WAIT_SOAK] = { "Soaking", "the wave is complete, and its quiet time is not over" },
    [ROLLOUT_WAIT_APPROVAL] = { "WaitingApproval", "the next wave begins when it is approved" },
    [ROLLOUT_WAIT_NO_CANDIDATE] = { "NoCandidate", "no machine of the wave can run: none is Ready "
                                                   "and not held" },
    [ROLLOUT_WAIT_NO_SUCCESS] = { "NoSuccess", "every machine of the wave has failed" },
    [ROLLOUT_WAIT_PACE] = { "Pace", "rollout.paceAfterNode is not over" },
    [ROLLOUT_WAIT_SOAK_FAILED] = { "SoakFailed", "a machine of the wave did not stay well: have a "
                                                 "look, then resume" },
};

static usec_t campaign_last_end(const struct campaign *c)
{
    usec_t last = 0;
    for (uint32_t i = 0; i < c->member_n; i++) {
        last = MAX(last, c->rollout[i].served);
    }
    return last;
}

static bool campaign_is_paused(const struct campaign *c)
{
    uint32_t limit = spec_share_of(c->m->failure.pause_after, c->member_n);
    return !c->m->failure.go_on && c->counts.failed >= MAX(limit, 1u) && c->counts.failed > 0;
}

static void campaign_stop(struct campaign *c, const char *reason, struct str message)
{
    c->may_start = false;
    c->wait = (struct campaign_wait){ .reason = str_from(reason), .message = message };
}

/* What keeps everything of the object from starting, the strongest reason last. */
static void campaign_look_at_stops(struct campaign *c)
{
    struct str waits = campaign_waits_for(c, NULL, &c->o->tmp);
    struct campaign_wait lack = operations_lack(c->o);
    bool go_on = c->open;
    c->paused = campaign_is_paused(c);
    c->lacks = false;
    if (waits.n > 0) {
        campaign_stop(c, "WaitingDependency", waits);
    }
    if (lack.reason.n > 0 && c->counts.pending + c->counts.in_visit > 0) {
        c->lacks = true; /* what has a place tries on */
        c->may_start = false;
        c->wait = lack;
    }
    if (c->paused) {
        c->pause_reason = STR("FailureLimit");
        campaign_stop(c, "FailureLimit",
                      arena_printf(&c->o->tmp,
                                   "%u of %u machines have failed, failurePolicy.pauseAfter is "
                                   "reached: mend it, then 'drydock resume " STR_FMT "'",
                                   c->counts.failed, c->counts.selected, STR_ARG(c->m->meta.name)));
        go_on = false;
    }
    if (!c->paused && campaign_gate_timed_out(c)) {
        go_on = false;
    }
    if (!core_may_grant(c->o->core)) {
        campaign_stop(c, "EverythingPaused", core_grants_stopped(c->o->core));
        go_on = false;
    }
    if (c->m->held) {
        campaign_stop(c, "Hold", STR("the label " KEY_HOLD_TEXT " is set"));
        go_on = false;
    }
    if (c->m->suspend) {
        campaign_stop(c, "UserSuspended", STR("spec.suspend is true"));
        go_on = false;
    }
    if (c->m->dry_run) {
        campaign_stop(c, "DryRun", STR("spec.mode is DryRun: nothing is started"));
        go_on = false;
    }
    if (c->m->meta.deleting) {
        campaign_stop(c, "Deleting", STR("the object is being deleted"));
        go_on = false;
    }
    c->may_go_on = go_on && c->problem.n == 0;
}

void campaign_decide(struct campaign *c)
{
    struct rollout_wave waves[MAINTENANCE_WAVES_MAX + 1];
    struct rollout_spec spec;
    c->plan = (struct rollout_plan){ .at = USEC_NEVER };
    c->may_go_on = false;
    c->gate = (struct maintenance_gate_record){ 0 };
    c->gate_answer = (struct gates_answer){ 0 };
    c->gated_n = 0;
    if (c->problem.n > 0) {
        c->may_start = false;
        return;
    }
    campaign_look_at_stops(c);
    struct rollout_record record = campaign_wave_record(c);
    campaign_fill_spec(c, waves, &spec);
    struct gates_answer wave_gates = campaign_look_at_wave_gates(c, &record, &spec, waves);
    const struct rollout_facts facts = {
        .now = c->o->now,
        .last_end = campaign_last_end(c),
        .machines = c->rollout,
        .machine_n = c->member_n,
    };
    do {
        rollout_decide(&spec, &record, &facts, &c->o->tmp, &c->plan);
    } while (campaign_pass_over_gated(c));
    operations_wake_at(c->o, c->plan.at);
    if (!c->may_start) {
        c->plan.next_n = 0;
    } else if (c->plan.wait != ROLLOUT_WAIT_NONE) {
        c->wait = (struct campaign_wait){
            .reason = str_from(rollout_waits[c->plan.wait].reason),
            .message = str_from(rollout_waits[c->plan.wait].message),
        };
        campaign_tell_soak(c, &wave_gates);
    }
    campaign_look_at_gates(c);
}

/* ── runs ──────────────────────────────────────────────────────────────────────────────────── */

static enum visit_reboot run_reboot(enum reboot_policy policy)
{
    return policy == REBOOT_ALWAYS        ? VISIT_REBOOT_ALWAYS
           : policy == REBOOT_IF_REQUIRED ? VISIT_REBOOT_IF_REQUIRED
                                          : VISIT_REBOOT_NEVER;
}

uint32_t campaign_add_runs(const struct campaign *c, const struct turn_machine *machine,
                           struct visit_run *runs, uint32_t n, uint32_t max)
{
    const struct campaign_member *m = campaign_member(c, machine);
    if (m == NULL || !c->may_go_on || m->held || campaign_gates_rest(c, machine->name) ||
        campaign_waits_for(c, machine, &c->o->tmp).n > 0) {
        return n;
    }
    for (uint32_t i = 0; i < c->operation_n && n < max; i++) {
        const struct campaign_operation *op = &c->operations[i];
        if (m->due[i].state == DUE_EXHAUSTED || m->due[i].state == DUE_BACKOFF) {
            break; /* those after it rest on it */
        }
        if (m->due[i].state != DUE_NOW) {
            continue;
        }
        runs[n++] = (struct visit_run){
            .maintenance = c->m->meta.name,
            .maintenance_uid = c->m->meta.uid,
            .operation = op->spec->name,
            .revision = op->revision,
            .attempt = m->due[i].attempt,
            .tick = op->cron ? op->tick : 0,
            .reboot = run_reboot(op->reboot.policy),
            .preflight =
                op->preflight.given || (op->bare && op->reboot.policy == REBOOT_IF_REQUIRED),
            .bare = op->bare,
            .phase = m->gate.n > 0 ? VISIT_RUN_FAILED : VISIT_RUN_PENDING,
            .since = c->o->now,
            .reason = m->gate.n > 0 ? STR("GateTimeout") : STR_NONE,
            .message = str_sub(m->gate, 0, MIN(m->gate.n, (size_t)VISIT_MESSAGE_MAX)),
        };
    }
    return n;
}
