#include "agent/realtime.h"

#include "base/alloc.h"

/* A watch and whom to wake. */
struct listener {
    struct realtime *r;
    enum watch_source source;
    void *handle;
};

/* One list in force. */
struct life {
    struct desired *desired;
    struct converge converge;
    struct watch *watch;
    struct gather gather; /* of its resources, and of the owner's policy behind them */
    struct veto veto;
    struct arena memory;
};

struct realtime {
    struct realtime_spec spec;
    struct life *life; /* NULL only while the first one is made */
    struct listener listeners[WATCH_SOURCES];
    struct loop_timer gather_timer;
    struct loop_timer audit_timer;
    struct loop_timer poll_timer;
    bool changed; /* the source has something new, and the work under way must end first */
    bool stopping;
    bool trim;                 /* much memory may be free when the work ends */
    bool complained;           /* of what cannot be watched */
    struct engine_counts told; /* of the last summary */
    uint64_t repairs;
};

/* ── what is told ──────────────────────────────────────────────────────────────────────────── */

static const char *const verb_texts[] = {
    [CONVERGE_CHANGED] = "resource changed",     [CONVERGE_REPAIRED] = "resource repaired",
    [CONVERGE_REFRESHED] = "resource refreshed", [CONVERGE_FAILED] = "resource failed",
    [CONVERGE_CONTESTED] = "resource contested", [CONVERGE_REMOVED] = "resource taken off the list",
};

static void tell_removal(struct realtime *r, uint32_t i)
{
    static const char *const hows[] = {
        [ON_REMOVE_KEEP] = "kept", [ON_REMOVE_RESTORE] = "restored", [ON_REMOVE_REMOVE] = "removed"
    };
    const struct converge_removal *removal = &r->life->converge.removals[i];
    if (removal->message.n > 0) {
        log_error(r->spec.log, "resource taken off the list stays", KV_STR("id", removal->id),
                  KV_STR("error", removal->message));
    } else {
        log_info(r->spec.log, verb_texts[CONVERGE_REMOVED], KV_STR("id", removal->id),
                 KV_TEXT("how", hows[removal->how]), KV_BOOL("done", removal->done));
    }
}

static struct str first_difference(const struct converge *c, uint32_t v, struct arena *tmp)
{
    const struct converge_vertex *x = &c->vertices[v];
    if (x->difference_n == 0) {
        return STR("");
    }
    const struct difference *d = &x->differences[0];
    if (c->spec.graph->resources->items[v].meta.sensitive) {
        return str_from(d->property);
    }
    return arena_printf(tmp, "%s: '" STR_FMT "' → '" STR_FMT "'", d->property, STR_ARG(d->was),
                        STR_ARG(d->want));
}

static void on_action(void *ctx, uint32_t v, enum converge_verb verb)
{
    struct realtime *r = ctx;
    const struct converge *c = &r->life->converge;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    if (verb == CONVERGE_REMOVED) {
        tell_removal(r, v);
        return;
    }
    const struct resource *resource = &c->spec.graph->resources->items[v];
    const struct vertex *x = &c->engine.vertices[v];
    r->repairs += verb == CONVERGE_REPAIRED;
    if (verb == CONVERGE_FAILED || verb == CONVERGE_CONTESTED) {
        log_warn(r->spec.log, verb_texts[verb], KV_STR("name", resource->name),
                 KV_STR("id", resource->id), KV_TEXT("reason", x->reason),
                 KV_TEXT("message", vertex_message(x)));
    } else {
        log_info(r->spec.log, verb_texts[verb], KV_STR("name", resource->name),
                 KV_STR("id", resource->id), KV_STR("difference", first_difference(c, v, &tmp)));
    }
}

static void tell_summary(struct realtime *r)
{
    struct engine_counts counts = engine_count(&r->life->converge.engine);
    if (counts.total == r->told.total &&
        memcmp(counts.states, r->told.states, sizeof(counts.states)) == 0) {
        return; /* a repair is told by itself */
    }
    r->told = counts;
    log_info(r->spec.log, "machine checked", KV_I64("resources", counts.total),
             KV_I64("right", counts.states[VERTEX_OK]),
             KV_I64("wouldChange", counts.states[VERTEX_NOOP]),
             KV_I64("failed", counts.states[VERTEX_FAILED]),
             KV_I64("blocked", counts.states[VERTEX_BLOCKED]),
             KV_I64("deferred", counts.states[VERTEX_DEFERRED]),
             KV_I64("contested", counts.states[VERTEX_CONTESTED]),
             KV_I64("vetoed", counts.states[VERTEX_VETOED]), KV_I64("repairs", r->repairs));
}

/* ── news ──────────────────────────────────────────────────────────────────────────────────── */

static void arm_gather(struct realtime *r)
{
    usec_t next = gather_next(&r->life->gather);
    if (next == USEC_NEVER) {
        loop_timer_stop(&r->gather_timer);
    } else {
        loop_timer_set(&r->gather_timer, next);
    }
}

static void on_news(void *ctx, uint32_t owner, enum watch_news news)
{
    struct realtime *r = ctx;
    gather_note(&r->life->gather, owner, news, loop_now(r->spec.loop));
}

void realtime_read(struct realtime *r)
{
    watch_read(r->life->watch, WATCH_SOURCE_FILES);
    arm_gather(r);
}

static void on_readable(void *ctx)
{
    const struct listener *l = ctx;
    watch_read(l->r->life->watch, l->source);
    arm_gather(l->r);
}

/* The list or what the owner forbids has changed. The work under way ends first: a list that goes
 * while its program runs would have nobody to take the program's end. */
static void begin_anew(struct realtime *r)
{
    if (!r->stopping && !r->changed) {
        r->changed = true;
        converge_stop(&r->life->converge);
    }
}

static void on_gathered(void *ctx)
{
    struct realtime *r = ctx;
    uint32_t v;
    while (gather_take(&r->life->gather, loop_now(r->spec.loop), &v)) {
        if (v == r->life->desired->resources.n) {
            begin_anew(r);
        } else {
            converge_dirty(&r->life->converge, v);
        }
    }
    arm_gather(r);
}

/* The kernel has told everything that our own work has caused before the call that caused it came
 * back: it is all here, and the check that follows sees whatever others did. */
static void on_applied(void *ctx, uint32_t v)
{
    struct realtime *r = ctx;
    watch_read(r->life->watch, WATCH_SOURCE_FILES);
    gather_drop(&r->life->gather, v);
    arm_gather(r);
}

/* ── what no event shows ───────────────────────────────────────────────────────────────────── */

static void arm_audit(struct realtime *r)
{
    if (r->spec.audit > 0) {
        /* Four fifths to six fifths: machines that started together do not look together. */
        usec_t spread = r->spec.audit * 2 / 5;
        usec_t jitter = (usec_t)(loop_random(r->spec.loop) % (uint64_t)MAX(spread, (usec_t)1));
        loop_timer_set(&r->audit_timer,
                       loop_now(r->spec.loop) + r->spec.audit - spread / 2 + jitter);
    }
}

static void on_audit(void *ctx)
{
    struct realtime *r = ctx;
    converge_dirty_all(&r->life->converge);
    r->trim = true;
    arm_audit(r);
}

struct blind_look {
    struct realtime *r;
    uint32_t n;
    uint32_t first;
    const char *why;
};

static void count_blind(void *ctx, uint32_t owner, const char *why)
{
    struct blind_look *look = ctx;
    look->first = look->n == 0 ? owner : look->first;
    look->why = look->n == 0 ? why : look->why;
    look->n++;
}

static void look_blind(void *ctx, uint32_t owner, const char *why UNUSED)
{
    struct realtime *r = ctx;
    if (owner < r->life->desired->resources.n) {
        converge_dirty(&r->life->converge, owner);
    } else {
        begin_anew(r); /* the policy may say something else now */
    }
}

/* Said once for a list, and again when it gets better. */
static void tell_blind(struct realtime *r)
{
    struct blind_look look = { .r = r };
    watch_each_blind(r->life->watch, count_blind, &look);
    if (look.n > 0 && !r->complained) {
        struct str first = look.first < r->life->desired->resources.n
                               ? r->life->desired->resources.items[look.first].name
                               : STR(VETO_PATH);
        log_warn(r->spec.log, "some resources cannot be watched and are polled",
                 KV_I64("paths", look.n), KV_STR("first", first), KV_TEXT("why", look.why),
                 KV_US("every", REALTIME_POLL));
    } else if (look.n == 0 && r->complained) {
        log_info(r->spec.log, "all resources are watched");
    }
    r->complained = look.n > 0;
    if (look.n > 0) {
        loop_timer_set(&r->poll_timer, loop_now(r->spec.loop) + REALTIME_POLL);
    }
}

static void on_poll(void *ctx)
{
    struct realtime *r = ctx;
    watch_each_blind(r->life->watch, look_blind, r);
    watch_retry(r->life->watch);
    tell_blind(r);
}

/* ── lists ─────────────────────────────────────────────────────────────────────────────────── */

static void unlisten(struct realtime *r)
{
    for (enum watch_source s = 0; s < WATCH_SOURCES; s++) {
        if (r->listeners[s].handle != NULL) {
            r->spec.unlisten(r->spec.ctx, STEAL(r->listeners[s].handle));
        }
    }
}

static void listen(struct realtime *r)
{
    for (enum watch_source s = 0; s < WATCH_SOURCES && r->spec.listen != NULL; s++) {
        struct listener *l = &r->listeners[s];
        int fd = watch_fd(r->life->watch, s);
        *l = (struct listener){ .r = r, .source = s };
        if (fd >= 0) {
            l->handle = r->spec.listen(r->spec.ctx, fd, on_readable, l);
        }
    }
}

static void life_free(struct life *life)
{
    if (life == NULL) {
        return;
    }
    if (life->converge.vertices != NULL) {
        converge_done(&life->converge);
    }
    watch_free(life->watch);
    desired_free(life->desired);
    arena_done(&life->memory);
    alloc_free(life);
}

static void on_idle(void *ctx);

/* Takes `desired` over in any case. */
static struct life *life_new(struct realtime *r, struct desired *desired, struct err *err)
{
    struct life *life = ALLOC_NEW(struct life);
    struct watch_spec watch_spec = {
        .root = r->spec.root, .on_news = on_news, .ctx = r, .watches_max = r->spec.watches_max
    };
    life->desired = desired;
    gather_init(&life->gather, desired->resources.n + 1, &life->memory);
    life->watch = watch_new(&watch_spec, err);
    if (life->watch == NULL) {
        life_free(life);
        return NULL;
    }
    for (uint32_t i = 0; i < desired->resources.n; i++) {
        watch_resource(life->watch, i, &desired->resources.items[i]);
    }
    watch_add(life->watch, desired->resources.n, WATCH_PATH, STR(VETO_PATH));
    life->veto = veto_load(r->spec.root, &life->memory);
    struct engine_rules rules = r->spec.rules;
    rules.noop = rules.noop || life->veto.noop;
    r->spec.root->read_only = rules.noop;
    struct converge_spec spec = { .loop = r->spec.loop,
                                  .root = r->spec.root,
                                  .graph = &desired->graph,
                                  .rules = rules,
                                  .veto = &life->veto,
                                  .runner = r->spec.runner,
                                  .units = r->spec.units,
                                  .state_dir = r->spec.state_dir,
                                  .stays = true,
                                  .on_idle = on_idle,
                                  .on_applied = on_applied,
                                  .on_action = on_action,
                                  .ctx = r };
    if (converge_start(&life->converge, &spec, err) < 0) {
        life_free(life);
        return NULL;
    }
    return life;
}

/* A refusal is never silent. */
static void tell_vetoes(struct realtime *r)
{
    const struct converge *c = &r->life->converge;
    if (r->life->veto.noop) {
        log_warn(r->spec.log, "nothing is changed: the machine's owner says 'mode noop'",
                 KV_TEXT("policy", VETO_PATH));
    }
    for (uint32_t i = 0; i < c->spec.graph->resources->n; i++) {
        const struct resource *resource = &c->spec.graph->resources->items[i];
        if (c->engine.vertices[i].state == VERTEX_VETOED) {
            log_warn(r->spec.log, "resource vetoed", KV_STR("name", resource->name),
                     KV_STR("id", resource->id),
                     KV_TEXT("message", vertex_message(&c->engine.vertices[i])));
        }
    }
}

static void flush_news(struct realtime *r)
{
    uint32_t v;
    watch_read(r->life->watch, WATCH_SOURCE_FILES);
    while (gather_take(&r->life->gather, USEC_NEVER, &v)) {
        if (v < r->life->desired->resources.n) {
            converge_dirty(&r->life->converge, v);
        }
    }
    loop_timer_stop(&r->gather_timer);
}

static int adopt(struct realtime *r, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str text;
    int result = r->spec.source.read(r->spec.source.ctx, &tmp, &text, err);
    struct desired *desired = result < 0 ? NULL : desired_new(text, err);
    struct life *life = desired == NULL ? NULL : life_new(r, desired, err);
    if (life == NULL) {
        r->spec.root->read_only = r->life != NULL && r->life->converge.spec.rules.noop;
        return -(int)err->code;
    }
    if (r->life != NULL) {
        flush_news(r); /* after the new watches: what comes from now on, they see */
        converge_carry(&life->converge, &r->life->converge);
        unlisten(r);
        loop_timer_stop(&r->poll_timer);
        life_free(r->life);
    }
    r->life = life;
    r->told = (struct engine_counts){ 0 };
    r->trim = true;
    listen(r);
    tell_blind(r);
    arm_audit(r);
    log_info(r->spec.log, "list adopted", KV_STR("from", r->spec.source.name(r->spec.source.ctx)),
             KV_I64("resources", life->desired->resources.n));
    tell_vetoes(r);
    return 0;
}

/* A list that is wrong changes nothing. */
static void adopt_change(struct realtime *r)
{
    struct err err = { 0 };
    r->changed = false;
    if (adopt(r, &err) == 0) {
        return;
    }
    struct str from = r->spec.source.name(r->spec.source.ctx);
    log_error(r->spec.log, "list refused, the old one stays in force", KV_STR("from", from),
              KV_I64("line", err.pos.line), KV_I64("column", err.pos.column), KV_ERR(&err));
    converge_go_on(&r->life->converge);
}

static void on_source_change(void *ctx)
{
    begin_anew(ctx);
}

/* After a list was adopted or everything looked at; one repair leaves nothing worth the call. */
static void trim(struct realtime *r)
{
    if (r->trim) {
        r->trim = false;
        alloc_trim();
    }
}

static void on_idle(void *ctx)
{
    struct realtime *r = ctx;
    if (r->stopping) {
        r->spec.on_stopped(r->spec.ctx);
    } else if (r->changed) {
        adopt_change(r);
    } else {
        tell_summary(r);
        trim(r);
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct realtime *realtime_new(const struct realtime_spec *spec, struct err *err)
{
    struct realtime *r = ALLOC_NEW(struct realtime);
    *r = (struct realtime){ .spec = *spec };
    loop_timer_init(&r->gather_timer, spec->loop, on_gathered, r);
    loop_timer_init(&r->audit_timer, spec->loop, on_audit, r);
    loop_timer_init(&r->poll_timer, spec->loop, on_poll, r);
    /* The watch before the read: what comes between the two is seen. */
    if (spec->source.follow(spec->source.ctx, on_source_change, r, err) < 0 || adopt(r, err) < 0) {
        realtime_free(r);
        return NULL;
    }
    return r;
}

void realtime_free(struct realtime *r)
{
    if (r == NULL) {
        return;
    }
    unlisten(r);
    life_free(r->life);
    loop_timer_done(&r->gather_timer);
    loop_timer_done(&r->audit_timer);
    loop_timer_done(&r->poll_timer);
    alloc_free(r);
}

void realtime_stop(struct realtime *r)
{
    r->stopping = true;
    converge_stop(&r->life->converge);
}

const struct converge *realtime_converge(const struct realtime *r)
{
    return &r->life->converge;
}
