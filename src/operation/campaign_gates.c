/* Gates before a visit: conditions of the cluster that are looked at when a machine is next, and
 * once more, live, when its request is approved. What cannot be read has not passed. */
#include "base/alloc.h"
#include "base/timestamp.h"
#include "operation/operations_internal.h"

#define GATED_MAX 32u /* machines that are passed over in a turn: each may cost a question */
#define GATE_PAUSE_MIN MINUTES(5)
#define GATE_PAUSE_MAX HOURS(2)
#define GATE_PAUSES_MAX 5u /* in a row; then a person has to look */

/* ── nodes ─────────────────────────────────────────────────────────────────────────────────── */

struct gate_count {
    uint32_t whole;
    uint32_t not_ready;
    uint32_t cordoned;
};

/* The machine of the visit itself does not count: a limit may have cordoned it already. */
static struct gate_count gate_count_nodes(const struct operations *o,
                                          const struct maintenance_gate *g,
                                          const struct turn_machine *except)
{
    struct gate_count n = { 0 };
    for (uint32_t i = 0; i < o->machine_n; i++) {
        const struct turn_machine *t = &o->machines[i];
        if (g->has_selector &&
            !selector_match(&g->selector, t->machine.label, t->machine.label_ctx)) {
            continue;
        }
        n.whole++;
        n.not_ready += t != except && !t->node->ready ? 1 : 0;
        n.cordoned += t != except && t->node->unschedulable ? 1 : 0;
    }
    return n;
}

static struct str gate_refuses(uint32_t found, struct spec_share share, uint32_t whole,
                               const char *what, const char *field, struct arena *out)
{
    uint32_t allowed = spec_share_of(share, whole);
    return found <= allowed ? STR_NONE
                            : arena_printf(out, "%u nodes are %s, and %s allows %u", found, what,
                                           field, allowed);
}

static struct gate_look gate_look_at_nodes(const struct campaign *c, const struct gate_place *p)
{
    const struct maintenance_gate *g = p->gate;
    struct arena *out = &c->o->tmp;
    struct gate_count n = gate_count_nodes(c->o, g, p->machine);
    struct str why = STR_NONE;
    if (g->max_not_ready.given) {
        why = gate_refuses(n.not_ready, g->max_not_ready, n.whole, "not Ready", "maxNotReady", out);
    }
    if (why.n == 0 && g->max_cordoned.given) {
        why = gate_refuses(n.cordoned, g->max_cordoned, n.whole, "cordoned", "maxCordoned", out);
    }
    return (struct gate_look){ .verdict = why.n > 0 ? GATE_REFUSES : GATE_PASSES,
                               .fresh = true,
                               .recent = true,
                               .why = why,
                               .next = USEC_NEVER };
}

/* ── all gates of a list ───────────────────────────────────────────────────────────────────── */

static struct str gate_place_name(const struct gate_place *p, struct arena *out)
{
    return arena_printf(out, "%s[%u].%s", p->list, p->index, gate_kind_name(p->gate->kind));
}

static struct str gate_sentence(struct str place, const struct gate_look *look, struct arena *out)
{
    char text[TIMESTAMP_TEXT_MAX];
    if (look->next == USEC_NEVER) {
        return arena_printf(out, "gate " STR_FMT ": " STR_FMT, STR_ARG(place), STR_ARG(look->why));
    }
    return arena_printf(out, "gate " STR_FMT ": " STR_FMT "; asked again at " STR_FMT,
                        STR_ARG(place), STR_ARG(look->why),
                        STR_ARG(timestamp_print_seconds(look->next, text)));
}

struct gates_answer campaign_gates_ask(struct campaign *c, const char *list,
                                       const struct maintenance_gates *gates,
                                       const struct gates_asker *asker)
{
    struct gates_answer answer = { .verdict = GATE_PASSES, .next = USEC_NEVER };
    struct arena *out = &c->o->tmp;
    for (uint32_t i = 0; i < gates->n; i++) {
        const struct gate_place p = { list, i, &gates->items[i], asker->machine };
        if (asker->skips != NULL && asker->skips(c, asker, &p)) {
            continue;
        }
        struct gate_look look = p.gate->kind == GATE_NODES
                                    ? gate_look_at_nodes(c, &p)
                                    : gate_question_look(c, &p, asker->since);
        /* While it is asked again, what it said before is still said to people. */
        bool refuses = look.verdict == GATE_REFUSES && look.recent;
        if (refuses && look.final && p.gate->on_timeout == GATE_SKIP) {
            continue;
        }
        if (refuses && answer.verdict != GATE_REFUSES) {
            struct str place = gate_place_name(&p, out);
            answer = (struct gates_answer){
                .verdict = GATE_REFUSES,
                .of_machine = gate_is_of_machine(&p),
                .final = look.final,
                .gate = p.gate,
                .place = place,
                .why = gate_sentence(place, &look, out),
                .next = look.next,
            };
        } else if (!refuses && !look.fresh && answer.verdict == GATE_PASSES) {
            struct str place = gate_place_name(&p, out);
            answer = (struct gates_answer){
                .verdict = GATE_NOT_KNOWN,
                .gate = p.gate,
                .place = place,
                .why = arena_printf(out, "gate " STR_FMT " is being asked", STR_ARG(place)),
                .next = USEC_NEVER,
            };
        }
    }
    return answer;
}

/* ── before a visit ────────────────────────────────────────────────────────────────────────── */

static bool gate_waits_here(const struct campaign *c, struct str place)
{
    const struct maintenance_gate_record *r = &c->m->record.gate;
    return r->since > 0 && str_eq(r->place, place) && str_eq(r->revision, c->revision);
}

/* It was waited for long enough, and its author wants to go on without. */
static bool gate_is_skipped(const struct campaign *c, const struct gates_asker *asker UNUSED,
                            const struct gate_place *p)
{
    return p->gate->on_timeout == GATE_SKIP && gate_waits_here(c, gate_place_name(p, &c->o->tmp)) &&
           c->o->now >= c->m->record.gate.since + p->gate->timeout;
}

/* Whoever may be skipped after a while has had that while before the request was made; and a Job
 * takes too long while everybody waits for the approval to be used. */
static bool gate_is_not_for_approval(const struct campaign *c UNUSED,
                                     const struct gates_asker *asker UNUSED,
                                     const struct gate_place *p)
{
    return p->gate->on_timeout == GATE_SKIP || p->gate->kind == GATE_JOB;
}

static struct campaign_gate_pause *gate_pause_find(const struct campaign *c, struct str machine)
{
    LIST_EACH (&c->gate_pauses, link) {
        struct campaign_gate_pause *p = CONTAINER_OF(link, struct campaign_gate_pause, link);
        if (str_eq(p->machine, machine)) {
            return p;
        }
    }
    return NULL;
}

bool campaign_gates_rest(const struct campaign *c, struct str machine)
{
    const struct campaign_gate_pause *p = gate_pause_find(c, machine);
    return p != NULL && p->until > c->o->now;
}

static void gate_pause_free(struct campaign_gate_pause *p)
{
    list_del(&p->link);
    arena_done(&p->memory);
    alloc_free(p);
}

void campaign_gate_pauses_free(struct campaign *c)
{
    LIST_EACH (&c->gate_pauses, link) {
        gate_pause_free(CONTAINER_OF(link, struct campaign_gate_pause, link));
    }
}

/* The gates of the machine refused when its request was approved. It goes to the end for a while:
 * otherwise a gate that opens and shuts would cordon and uncordon the machine all the time. */
static void gate_pause_begin(struct campaign *c, struct str machine, struct str visit)
{
    struct campaign_gate_pause *p = gate_pause_find(c, machine);
    if (p != NULL && str_eq(p->visit, visit)) {
        return; /* this one is known */
    }
    uint32_t times = p != NULL ? p->times + 1 : 1;
    if (p != NULL) {
        gate_pause_free(p);
    }
    uint32_t doublings = MIN(times - 1, GATE_PAUSES_MAX);
    usec_t pause = MIN(GATE_PAUSE_MIN << doublings, (usec_t)GATE_PAUSE_MAX);
    p = ALLOC_NEW(struct campaign_gate_pause);
    p->memory.first = 128;
    p->machine = arena_str(&p->memory, machine);
    p->visit = arena_str(&p->memory, visit);
    p->times = times;
    p->until = c->o->now + pause;
    list_add(&c->gate_pauses, &p->link);
}

void campaign_gates_passed(struct campaign *c, struct str machine)
{
    struct campaign_gate_pause *p = gate_pause_find(c, machine);
    if (p != NULL) {
        gate_pause_free(p);
    }
}

struct gates_answer campaign_gates_at_approval(struct campaign *c,
                                               const struct turn_machine *machine, usec_t since,
                                               struct str visit)
{
    const struct gates_asker asker = { .machine = machine,
                                       .since = since,
                                       .skips = gate_is_not_for_approval };
    struct gates_answer answer = campaign_gates_ask(c, GATES_BEFORE, &c->m->rollout.before, &asker);
    if (answer.verdict == GATE_REFUSES) {
        gate_pause_begin(c, machine->name, visit);
    }
    return answer;
}

static struct gates_answer campaign_gates_before(struct campaign *c,
                                                 const struct turn_machine *machine)
{
    char text[TIMESTAMP_TEXT_MAX];
    const struct gates_asker asker = { .machine = machine, .since = 0, .skips = gate_is_skipped };
    const struct campaign_gate_pause *p = gate_pause_find(c, machine->name);
    if (p != NULL && p->until > c->o->now) {
        operations_wake_at(c->o, p->until);
        return (struct gates_answer){
            .verdict = GATE_REFUSES,
            .of_machine = true,
            .why = arena_printf(&c->o->tmp,
                                "a gate refused node " STR_FMT
                                " when its request was approved, for the %u. time; tried again "
                                "at " STR_FMT,
                                STR_ARG(machine->name), p->times,
                                STR_ARG(timestamp_print_seconds(p->until, text))),
            .next = p->until,
        };
    }
    return campaign_gates_ask(c, GATES_BEFORE, &c->m->rollout.before, &asker);
}

/* ── who waits ─────────────────────────────────────────────────────────────────────────────── */

static const struct turn_machine *plan_machine(const struct campaign *c, uint32_t i)
{
    return &c->o->machines[c->members[c->plan.next[i]].machine];
}

bool campaign_pass_over_gated(struct campaign *c)
{
    bool more = false;
    for (uint32_t i = 0; c->may_start && i < c->plan.next_n && c->gated_n < GATED_MAX; i++) {
        struct gates_answer a = campaign_gates_before(c, plan_machine(c, i));
        if (a.verdict == GATE_REFUSES && a.of_machine) {
            c->rollout[c->plan.next[i]].gated = true;
            c->gate_answer = c->gated_n == 0 ? a : c->gate_answer;
            c->gated_n++;
            more = true;
        }
    }
    return more;
}

static void campaign_pause_at_gate(struct campaign *c, struct str why)
{
    c->paused = true;
    c->pause_reason = STR("GateTimeout");
    c->may_start = false;
    c->plan.next_n = 0;
    c->wait = (struct campaign_wait){
        .reason = c->pause_reason,
        .message = arena_printf(&c->o->tmp,
                                STR_FMT "; the time of the gate is over: mend it, then 'drydock "
                                        "resume " STR_FMT "'",
                                STR_ARG(why), STR_ARG(c->m->meta.name)),
    };
}

bool campaign_gate_timed_out(struct campaign *c)
{
    const struct maintenance_gate_record *r = &c->m->record.gate;
    if (r->timed_out == 0 || !str_eq(r->revision, c->revision) || c->resumed_at >= r->timed_out) {
        return false;
    }
    c->gate = *r;
    campaign_pause_at_gate(c, r->message);
    return true;
}

void campaign_time_out_at_gate(struct campaign *c, struct str place, struct str why)
{
    c->gate = (struct maintenance_gate_record){
        .place = place,
        .revision = c->revision,
        .since = c->o->now,
        .timed_out = c->o->now,
        .message = arena_str(&c->o->tmp, str_sub(why, 0, MIN(why.n, (size_t)GATE_MESSAGE_MAX))),
    };
    campaign_pause_at_gate(c, why);
}

/* Nobody may begin, because of a gate. */
static void campaign_wait_at_gate(struct campaign *c, const struct gates_answer *a)
{
    struct operations *o = c->o;
    bool waited = gate_waits_here(c, a->place);
    usec_t since = waited ? c->m->record.gate.since : o->now;
    if (a->verdict == GATE_NOT_KNOWN) {
        if (waited) { /* as it was, until the answer is there */
            c->gate = c->m->record.gate;
            c->wait =
                (struct campaign_wait){ .reason = STR("WaitingGate"), .message = c->gate.message };
        }
        return;
    }
    c->wait = (struct campaign_wait){ .reason = STR("WaitingGate"), .message = a->why };
    c->gate = (struct maintenance_gate_record){
        .place = a->place,
        .revision = c->revision,
        .since = since,
        .next = a->next,
        .message = arena_str(&o->tmp, str_sub(a->why, 0, MIN(a->why.n, (size_t)GATE_MESSAGE_MAX))),
    };
    if (a->gate == NULL) {
        return; /* a machine that was refused before */
    }
    operations_wake_at(o, since + a->gate->timeout);
    bool over = a->final || o->now >= since + a->gate->timeout;
    if (over && a->gate->on_timeout == GATE_PAUSE) {
        campaign_time_out_at_gate(c, a->place, a->why);
    }
}

/* Its visit begins only to fail: that is what its author wants of a gate that stays shut. */
static bool gate_fails_visit(const struct campaign *c, const struct gates_answer *a)
{
    if (a->verdict != GATE_REFUSES || a->gate == NULL || a->gate->on_timeout != GATE_FAIL) {
        return false;
    }
    return a->final || (gate_waits_here(c, a->place) &&
                        c->o->now >= c->m->record.gate.since + a->gate->timeout);
}

static bool campaign_tried_too_often(struct campaign *c)
{
    LIST_EACH (&c->gate_pauses, link) {
        struct campaign_gate_pause *p = CONTAINER_OF(link, struct campaign_gate_pause, link);
        if (p->times >= GATE_PAUSES_MAX) {
            campaign_time_out_at_gate(c, STR(GATES_BEFORE),
                                      arena_printf(&c->o->tmp,
                                                   "gates refused node " STR_FMT
                                                   " %u times in a row when "
                                                   "its request was approved",
                                                   STR_ARG(p->machine), p->times));
            gate_pause_free(p);
            return true;
        }
    }
    return false;
}

void campaign_look_at_gates(struct campaign *c)
{
    uint32_t kept = 0;
    struct gates_answer refused = c->gate_answer;
    if (!c->may_start || campaign_tried_too_often(c)) {
        return;
    }
    for (uint32_t i = 0; i < c->plan.next_n; i++) {
        struct campaign_member *m = &c->members[c->plan.next[i]];
        struct gates_answer a = campaign_gates_before(c, plan_machine(c, i));
        m->gate = gate_fails_visit(c, &a) ? a.why : STR_NONE;
        if (a.verdict == GATE_PASSES || m->gate.n > 0) {
            c->plan.next[kept++] = c->plan.next[i];
        } else if (refused.why.n == 0 || refused.of_machine) {
            refused = a;
        }
    }
    bool waits = kept == 0 && refused.why.n > 0 && (c->plan.next_n > 0 || c->plan.active == 0);
    c->plan.next_n = kept;
    if (waits) {
        campaign_wait_at_gate(c, &refused);
    }
}

void campaign_print_gate(const struct campaign *c, struct json_writer *w)
{
    const struct maintenance_gate_record *g = &c->gate;
    jw_key(w, STR("gate"));
    if (g->since == 0) {
        jw_null(w);
        return;
    }
    jw_obj(w);
    jw_pair(w, "place", g->place);
    jw_pair(w, "revision", g->revision);
    jw_pair_time(w, "since", g->since);
    if (g->next > 0 && g->next != USEC_NEVER) {
        jw_pair_time(w, "next", g->next);
    } else {
        jw_key(w, STR("next"));
        jw_null(w);
    }
    if (g->timed_out > 0) {
        jw_pair_time(w, "timedOutAt", g->timed_out);
    } else {
        jw_key(w, STR("timedOutAt"));
        jw_null(w);
    }
    jw_pair(w, "message", g->message);
    jw_obj_end(w);
}
