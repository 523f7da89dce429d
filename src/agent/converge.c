#include "agent/converge.h"

#define CONVERGE_MARKS_MAX RESOURCE_EDGES_MAX
#define CONVERGE_STEPS 32u /* in one turn, so that signals and programs are not kept waiting */

enum phase { PHASE_CHECK, PHASE_SAVE, PHASE_APPLY, PHASE_VERIFY, PHASE_REFRESH };

static const struct resource *current(const struct converge *c)
{
    return &c->spec.graph->resources->items[c->current];
}

static void schedule(struct converge *c, usec_t at)
{
    loop_timer_pull(&c->timer, at);
}

static void forget_differences(struct converge_vertex *v)
{
    arena_done(&v->memory);
    v->differences = NULL;
    v->difference_n = 0;
}

static void work_end(struct converge *c)
{
    c->working = false;
    if (c->spec.stays && c->engine.vertices[c->current].state == VERTEX_OK) {
        forget_differences(&c->vertices[c->current]); /* they were told */
    }
    arena_reset(&c->tmp);
    schedule(c, loop_now(c->spec.loop));
}

static void tell(const struct converge *c, uint32_t v, enum converge_verb verb)
{
    if (c->spec.on_action != NULL) {
        c->spec.on_action(c->spec.ctx, v, verb);
    }
}

/* Events of our own work need no look. */
static void forget_own_events(const struct converge *c)
{
    if (c->spec.on_applied != NULL) {
        c->spec.on_applied(c->spec.ctx, c->current);
    }
}

static const char *reason_of(const struct err *err)
{
    if (err->os != 0) {
        return "Failed"; /* the system's own words say why */
    }
    switch (err->code) {
    case ERR_DENIED:
        return "UnsafePath";
    case ERR_NOTFOUND:
        return "NotFound";
    case ERR_INVALID:
        return "Invalid";
    case ERR_LIMIT:
        return "TooLarge";
    case ERR_TIMEOUT:
        return "Timeout";
    case ERR_CONFLICT:
        return "NotMet"; /* of an assert */
    default:
        return "Failed";
    }
}

static void work_fail(struct converge *c, const char *reason, const char *message)
{
    if (c->phase != PHASE_CHECK) {
        forget_own_events(c);
    }
    engine_failed(&c->engine, c->current, loop_now(c->spec.loop), loop_random(c->spec.loop), reason,
                  message);
    tell(c, c->current, CONVERGE_FAILED);
    work_end(c);
}

static void enter(struct converge *c, enum phase phase)
{
    c->phase = (int)phase;
    c->call = (struct resource_call){ .resource = current(c),
                                      .root = c->spec.root,
                                      .tmp = &c->tmp,
                                      .refresh = c->engine.vertices[c->current].refresh,
                                      .refreshed = c->call.refreshed };
    schedule(c, loop_now(c->spec.loop));
}

/* ── what follows from each phase ──────────────────────────────────────────────────────────── */

static void keep_differences(struct converge *c)
{
    struct converge_vertex *v = &c->vertices[c->current];
    forget_differences(v);
    if (c->call.difference_n == 0) {
        return;
    }
    v->memory.first = 512; /* some lines of text: with many resources a page each would be much */
    v->differences = ARENA_ARRAY(&v->memory, struct difference, c->call.difference_n);
    for (uint32_t i = 0; i < c->call.difference_n; i++) {
        const struct difference *d = &c->call.differences[i];
        v->differences[i] = (struct difference){ .property = d->property,
                                                 .was = arena_str(&v->memory, d->was),
                                                 .want = arena_str(&v->memory, d->want) };
    }
    v->difference_n = c->call.difference_n;
}

/* Those that will have to be refreshed, on the disk before the change is made. */
static int mark_notified(struct converge *c, struct err *err)
{
    struct graph_edges notifies = c->spec.graph->vertices[c->current].notifies;
    struct str ids[CONVERGE_MARKS_MAX];
    uint32_t n = 0;
    ASSERT(notifies.n <= ARRAY_LEN(ids));
    for (uint32_t i = 0; i < notifies.n; i++) {
        const struct resource *target = &c->spec.graph->resources->items[notifies.items[i]];
        if (target->type != NULL && target->type->refresh != NULL) {
            ids[n++] = target->id;
        }
    }
    return journal_mark(&c->journal, ids, n, err);
}

static void follow(struct converge *c, enum engine_step step)
{
    struct err err = { 0 };
    switch (step) {
    case ENGINE_APPLY:
        if (mark_notified(c, &err) < 0) {
            work_fail(c, "Journal", err.msg);
        } else {
            enter(c, PHASE_APPLY);
        }
        return;
    case ENGINE_REFRESH:
        enter(c, PHASE_REFRESH);
        return;
    default:
        work_end(c);
        return;
    }
}

static void decide(struct converge *c)
{
    enum vertex_state before = c->engine.vertices[c->current].state;
    enum engine_step step = engine_checked(
        &c->engine, c->current, c->vertices[c->current].difference_n > 0, c->call.disruption);
    if (c->engine.vertices[c->current].state == VERTEX_CONTESTED && before != VERTEX_CONTESTED) {
        tell(c, c->current, CONVERGE_CONTESTED);
    }
    follow(c, step);
}

static bool needs_save(const struct converge *c)
{
    const struct converge_vertex *v = &c->vertices[c->current];
    return !engine_is_noop(&c->engine, c->current) && !v->saved &&
           (v->difference_n > 0 || current(c)->meta.on_remove != ON_REMOVE_KEEP);
}

static uint64_t sequence_of(const struct converge *c)
{
    uint64_t place = 0;
    while (c->spec.graph->order[place] != c->current) {
        place++;
    }
    return place;
}

static int save(struct converge *c, struct err *err)
{
    struct original original = { .json = STR("{}") };
    int r = current(c)->type->save(&c->call, &original, err);
    if (r != 0) {
        return r;
    }
    r = originals_put(&c->originals, current(c), sequence_of(c), &original, err);
    c->vertices[c->current].saved = r == 0;
    return r;
}

static void verified(struct converge *c)
{
    if (c->call.difference_n == 0) {
        bool drift = c->engine.vertices[c->current].was_right;
        enum engine_step step = engine_applied(&c->engine, c->current, c->call.refreshed);
        tell(c, c->current, drift ? CONVERGE_REPAIRED : CONVERGE_CHANGED);
        follow(c, step);
        return;
    }
    const struct difference *d = &c->call.differences[0];
    struct str text = current(c)->meta.sensitive
                          ? arena_printf(&c->tmp, "%s is still not as it should be", d->property)
                          : arena_printf(&c->tmp, "%s is still '" STR_FMT "', want '" STR_FMT "'",
                                         d->property, STR_ARG(d->was), STR_ARG(d->want));
    work_fail(c, "DidNotConverge", text.p);
}

static int refresh(struct converge *c, struct err *err)
{
    const struct resource_type *type = current(c)->type;
    int r = type->refresh != NULL && !c->call.refreshed ? type->refresh(&c->call, err) : 0;
    return r != 0 ? r : journal_unmark(&c->journal, current(c)->id, err);
}

static int run_phase(struct converge *c, struct err *err)
{
    const struct resource_type *type = current(c)->type;
    switch ((enum phase)c->phase) {
    case PHASE_CHECK:
    case PHASE_VERIFY:
        return type->check(&c->call, err);
    case PHASE_SAVE:
        return save(c, err);
    case PHASE_APPLY:
        return type->apply(&c->call, err);
    default:
        return refresh(c, err);
    }
}

static void phase_end(struct converge *c)
{
    switch ((enum phase)c->phase) {
    case PHASE_CHECK:
        keep_differences(c);
        if (needs_save(c)) {
            enum disruption found = c->call.disruption;
            enter(c, PHASE_SAVE);
            c->call.disruption = found;
        } else {
            decide(c);
        }
        return;
    case PHASE_SAVE:
        decide(c);
        return;
    case PHASE_APPLY:
        forget_own_events(c);
        enter(c, PHASE_VERIFY);
        return;
    case PHASE_VERIFY:
        verified(c);
        return;
    default:
        engine_refreshed(&c->engine, c->current);
        if (c->engine.vertices[c->current].refreshed) {
            tell(c, c->current, CONVERGE_REFRESHED);
        }
        work_end(c);
        return;
    }
}

/* ── programs ──────────────────────────────────────────────────────────────────────────────── */

static void go_on(struct converge *c)
{
    c->call.step++;
    c->waiting = false;
    schedule(c, loop_now(c->spec.loop));
}

static void on_command_end(void *ctx, const struct command_result *result)
{
    struct converge *c = ctx;
    struct command_result *kept = ARENA_NEW(&c->tmp, struct command_result);
    *kept = *result;
    kept->out = arena_str(&c->tmp, result->out);
    c->call.result = kept;
    go_on(c);
}

static int run_command(struct converge *c, struct err *err)
{
    struct command_spec *command = &c->call.command;
    ASSERT(command->argv_n > 0);
    if (c->spec.runner.run == NULL) {
        return err_set(err, ERR_INVALID, "no program can be run here");
    }
    command->time_max = command->time_max > 0 ? command->time_max : COMMAND_TIME;
    int r = c->spec.runner.run(c->spec.runner.ctx, command, on_command_end, c, err);
    c->waiting = r == 0;
    return r;
}

/* ── the service manager ───────────────────────────────────────────────────────────────────── */

static void on_answer(void *ctx, const struct unit_reply *reply)
{
    struct converge *c = ctx;
    struct unit_reply *kept = ARENA_NEW(&c->tmp, struct unit_reply);
    *kept = (struct unit_reply){ .problem = arena_str(&c->tmp, reply->problem),
                                 .load = arena_str(&c->tmp, reply->load),
                                 .active = arena_str(&c->tmp, reply->active),
                                 .file = arena_str(&c->tmp, reply->file),
                                 .need_reload = reply->need_reload };
    c->call.answer = kept;
    go_on(c);
}

static int ask_units(struct converge *c, struct err *err)
{
    ASSERT(c->call.ask.time_max > 0);
    if (c->spec.units.ask == NULL) {
        return err_set(err, ERR_INVALID, "no service manager can be asked here");
    }
    int r = c->spec.units.ask(c->spec.units.ctx, &c->call.ask, on_answer, c, err);
    c->waiting = r == 0;
    return r;
}

/* Does what a function asks for before it goes on. True: the end comes later. */
static bool serve(struct converge *c, int *r, struct err *err)
{
    if (*r != RESOURCE_RUN && *r != RESOURCE_ASK) {
        return false;
    }
    *r = *r == RESOURCE_RUN ? run_command(c, err) : ask_units(c, err);
    return *r == 0;
}

static void work(struct converge *c)
{
    struct err err = { 0 };
    int r = run_phase(c, &err);
    if (serve(c, &r, &err)) {
        return;
    }
    if (r < 0) {
        work_fail(c, reason_of(&err), err.msg);
    } else {
        phase_end(c);
    }
}

/* ── what was taken off the list ───────────────────────────────────────────────────────────── */

static bool is_listed(const struct converge *c, struct str id)
{
    return map_find(&c->ids, id) != NULL;
}

static bool find_unlisted(struct converge *c, struct err *err)
{
    struct original_record *records;
    uint32_t n;
    if (originals_list(&c->originals, &c->removal_memory, &records, &n, err) < 0) {
        return false;
    }
    c->record_n = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_listed(c, records[i].id)) {
            records[c->record_n++] = records[i];
        }
    }
    if (c->record_n == 0) {
        /* Nearly always. The records of all that is listed are much, and nobody needs them. */
        arena_done(&c->removal_memory);
        records = ARENA_NEW(&c->removal_memory, struct original_record);
    }
    c->records = records;
    c->removals = ARENA_ARRAY(&c->removal_memory, struct converge_removal, c->record_n + 1);
    return true;
}

static int take_back(struct converge *c, const struct original_record *record, struct err *err)
{
    enum on_remove how = record->resource.meta.on_remove;
    if (!record->resource_known) {
        return err_set(err, ERR_INVALID, "the record is of another version, which must undo it");
    }
    struct str why;
    if (how != ON_REMOVE_KEEP && veto_forbids(c->spec.veto, &record->resource, &c->tmp, &why)) {
        return err_set(err, ERR_DENIED, STR_FMT, STR_ARG(why));
    }
    int r = how == ON_REMOVE_KEEP
                ? 0
                : record->resource.type->restore(
                      &c->call, how == ON_REMOVE_RESTORE ? &record->original : NULL, err);
    return r != 0 ? r : originals_remove(&c->originals, record->id, err);
}

/* One record; comes again until all are done. */
static void remove_next(struct converge *c)
{
    const struct original_record *record = &c->records[c->record_next];
    struct converge_removal *removal = &c->removals[c->removal_n];
    struct err err = { 0 };
    *removal = (struct converge_removal){ .id = record->id };
    removal->how = record->resource.meta.on_remove;
    if (c->call.step == 0) {
        c->call = (struct resource_call){ .resource = &record->resource,
                                          .root = c->spec.root,
                                          .tmp = &c->tmp };
    }
    int r = c->spec.rules.noop ? 0 : take_back(c, record, &err);
    if (serve(c, &r, &err)) {
        return;
    }
    removal->done = r == 0 && !c->spec.rules.noop;
    removal->message = r == 0 ? STR_NONE : arena_str(&c->removal_memory, str_from(err.msg));
    tell(c, c->removal_n, CONVERGE_REMOVED);
    c->removal_n++;
    c->record_next++;
    c->call.step = 0;
    arena_reset(&c->tmp);
    schedule(c, loop_now(c->spec.loop));
}

/* ── the loop ──────────────────────────────────────────────────────────────────────────────── */

static void become_idle(struct converge *c)
{
    c->idle = true;
    if (c->spec.on_idle != NULL) {
        c->spec.on_idle(c->spec.ctx);
    }
}

/* The graph is done: now for what was taken off it. */
static void finish(struct converge *c)
{
    struct err err = { 0 };
    if (c->records == NULL) {
        c->call.step = 0;
        if (!find_unlisted(c, &err)) {
            c->records = ARENA_NEW(&c->removal_memory, struct original_record);
            c->removals = ARENA_NEW(&c->removal_memory, struct converge_removal);
            c->removals[0].id = STR("originals");
            c->removals[0].message = arena_str(&c->removal_memory, str_from(err.msg));
            tell(c, c->removal_n++, CONVERGE_REMOVED);
        }
    }
    if (c->record_next < c->record_n) {
        remove_next(c);
    } else if (!c->idle) {
        engine_check(&c->engine);
        become_idle(c);
    }
}

/* One step; false when there is nothing to go on with now. `c` may be gone then. */
static bool take_step(struct converge *c)
{
    usec_t when;
    if (c->waiting) {
        return false; /* the program's end comes */
    }
    if (c->working) {
        work(c);
        return true;
    }
    if (c->stopped) {
        become_idle(c);
        return false;
    }
    if (engine_next(&c->engine, loop_now(c->spec.loop), &c->current, &when)) {
        c->working = true;
        c->call.refreshed = false;
        enter(c, PHASE_CHECK);
        return true;
    }
    if (when != USEC_NEVER) {
        schedule(c, when);
    }
    /* Whoever stays does not let what fails hold up what is taken off the list. */
    if (when == USEC_NEVER || c->spec.stays) {
        finish(c);
    }
    return false;
}

/* Some steps a turn: with a turn each, a look at a thousand files would be mostly turns. */
static void on_timer(void *ctx)
{
    struct converge *c = ctx;
    for (uint32_t i = 0; i < CONVERGE_STEPS && take_step(c); i++) {
    }
}

/* Marks of a life before this one. Those of resources that nobody asks for mean nothing. */
static int take_marks(struct converge *c, struct err *err)
{
    const struct resource_list *resources = c->spec.graph->resources;
    for (uint32_t i = 0; i < resources->n; i++) {
        if (journal_is_marked(&c->journal, resources->items[i].id)) {
            engine_mark(&c->engine, i);
        }
    }
    int r = 0;
    MAP_EACH (&c->journal.marks, mark) {
        if (r == 0 && !c->spec.rules.noop && !is_listed(c, map_item_name(mark))) {
            r = journal_unmark(&c->journal, map_item_name(mark), err);
        }
    }
    return r;
}

static void take_vetoes(struct converge *c)
{
    for (uint32_t i = 0; i < c->spec.graph->resources->n; i++) {
        const struct resource *r = &c->spec.graph->resources->items[i];
        struct str why;
        if (r->problem.n == 0 && veto_forbids(c->spec.veto, r, &c->tmp, &why)) {
            engine_veto(&c->engine, i, why.p);
        }
    }
    arena_reset(&c->tmp);
}

int converge_start(struct converge *c, const struct converge_spec *spec, struct err *err)
{
    ASSERT(spec->root->read_only == spec->rules.noop);
    *c = (struct converge){ .spec = *spec };
    loop_timer_init(&c->timer, spec->loop, on_timer, c);
    engine_init(&c->engine, spec->graph, &spec->rules, &c->memory);
    c->engine.random = loop_random(spec->loop);
    c->vertices = ARENA_ARRAY(&c->memory, struct converge_vertex, spec->graph->resources->n);
    c->originals = (struct originals){
        .root = spec->root,
        .folder = arena_printf(&c->memory, STR_FMT "/orig", STR_ARG(spec->state_dir)),
    };
    for (uint32_t i = 0; i < spec->graph->resources->n; i++) {
        struct resource *r = &spec->graph->resources->items[i];
        (void)map_put(&c->ids, r->id, r); /* ids are unique */
    }
    struct str path = arena_printf(&c->memory, STR_FMT "/journal", STR_ARG(spec->state_dir));
    int r = journal_open(&c->journal, spec->root, path, loop_wall(spec->loop), err);
    r = r < 0 ? r : take_marks(c, err);
    if (r < 0) {
        converge_done(c);
        return r;
    }
    take_vetoes(c);
    schedule(c, loop_now(spec->loop));
    return 0;
}

void converge_done(struct converge *c)
{
    for (uint32_t i = 0; c->vertices != NULL && i < c->spec.graph->resources->n; i++) {
        arena_done(&c->vertices[i].memory);
    }
    c->vertices = NULL;
    loop_timer_done(&c->timer);
    journal_done(&c->journal);
    map_done(&c->ids);
    arena_done(&c->tmp);
    arena_done(&c->removal_memory);
    arena_done(&c->memory);
}

/* ── staying ───────────────────────────────────────────────────────────────────────────────── */

static void wake(struct converge *c)
{
    c->idle = false;
    schedule(c, loop_now(c->spec.loop));
}

void converge_dirty(struct converge *c, uint32_t v)
{
    engine_dirty(&c->engine, v);
    wake(c);
}

void converge_dirty_all(struct converge *c)
{
    for (uint32_t i = 0; i < c->spec.graph->resources->n; i++) {
        engine_dirty(&c->engine, i);
    }
    if (c->records != NULL && c->record_next == c->record_n) {
        c->records = NULL;
        c->removal_n = 0;
        c->record_n = 0;
        c->record_next = 0;
        arena_reset(&c->removal_memory);
    }
    wake(c);
}

void converge_stop(struct converge *c)
{
    c->stopped = true;
    wake(c);
}

void converge_go_on(struct converge *c)
{
    c->stopped = false;
    wake(c);
}

void converge_carry(struct converge *c, const struct converge *old)
{
    for (uint32_t i = 0; i < c->spec.graph->resources->n; i++) {
        const struct resource *r = &c->spec.graph->resources->items[i];
        const struct resource *was = map_find(&old->ids, r->id);
        if (was != NULL && str_eq(was->json, r->json) && r->problem.n == 0) {
            uint32_t v = (uint32_t)(was - old->spec.graph->resources->items);
            engine_carry(&c->engine, i, &old->engine.vertices[v]);
            c->vertices[i].saved = old->vertices[v].saved;
        }
    }
}

bool converge_is_good(const struct converge *c)
{
    struct engine_counts counts = engine_count(&c->engine);
    for (uint32_t i = 0; i < c->removal_n; i++) {
        if (c->removals[i].message.n > 0) {
            return false;
        }
    }
    return counts.states[VERTEX_OK] + counts.states[VERTEX_NOOP] + counts.states[VERTEX_DEFERRED] ==
           counts.total;
}
