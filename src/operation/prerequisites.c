/* What must be there before anything can be done: the namespaces, the kinds and the controller's
 * rights. Somebody has to mend it, so the status of every NodeMaintenance says what and how. */
#include "operation/operations_internal.h"

#define REFUSAL_COUNTS MINUTES(2) /* longer than the longest wait between two tries */

/* ── what the server has refused ───────────────────────────────────────────────────────────── */

void operations_note_made(struct operations *o, enum operations_made made,
                          enum retry_verdict verdict, const struct err *err)
{
    struct operations_refusal *r = &o->refusals[made];
    bool refused = verdict != RETRY_DONE && verdict != RETRY_OBSERVE &&
                   (err->code == ERR_NOTFOUND || err->code == ERR_DENIED);
    r->until = refused ? loop_now(o->loop) + REFUSAL_COUNTS : 0;
    r->code = err->code;
    buf_reset(&r->text);
    if (refused) {
        buf_add(&r->text, str_from(err->msg));
    }
}

static struct campaign_wait refusal_wait(const struct operations *o, enum operations_made made)
{
    static const char *const kinds[] = { [MADE_STATE] = "NodeStates", [MADE_JOB] = "Jobs" };
    static const char *const flags[] = {
        [MADE_STATE] = "--system-namespace", [MADE_JOB] = "--jobs-namespace"
    };
    const struct operations_refusal *r = &o->refusals[made];
    struct str namespace = made == MADE_JOB ? o->config.jobs_namespace : o->config.namespace;
    struct arena *out = &((struct operations *)(uintptr_t)o)->tmp;
    if (made == MADE_STATE && o->states.absent) {
        return (struct campaign_wait){
            .reason = STR("KindMissing"),
            .message = STR("the kind NodeState is not installed: 'drydock crds | kubectl apply -f "
                           "-' does it"),
        };
    }
    if (r->code == ERR_NOTFOUND) {
        return (struct campaign_wait){
            .reason = STR("NamespaceMissing"),
            .message =
                arena_printf(out,
                             "%s are kept in namespace '" STR_FMT
                             "', which does not exist: 'kubectl create namespace " STR_FMT
                             "', or name another one with the controller's flag %s",
                             kinds[made], STR_ARG(namespace), STR_ARG(namespace), flags[made]),
        };
    }
    return (struct campaign_wait){
        .reason = STR("Forbidden"),
        .message = arena_printf(
            out, "the API server refuses %s in namespace '" STR_FMT "': " STR_FMT "; " RIGHTS_HINT,
            kinds[made], STR_ARG(namespace), STR_ARG(buf_str(&r->text))),
    };
}

/* ── what cannot be read ───────────────────────────────────────────────────────────────────── */

/* Somebody has to give the right: it does not come by itself. */
static struct campaign_wait watch_wait(const struct operations *o)
{
    const struct {
        const struct informer *informer;
        const char *kind;
    } watches[] = {
        { &o->windows, "MaintenanceWindows" },
        { &o->series, "NodeSeries" },
        { &o->templates, "NodeOperationTemplates" },
        { &o->states, "NodeStates" },
        { &o->jobs, "Jobs" },
        { &o->requests, "MaintenanceRequests" },
    };
    struct arena *out = &((struct operations *)(uintptr_t)o)->tmp;
    for (uint32_t i = 0; i < ARRAY_LEN(watches); i++) {
        const struct informer *w = watches[i].informer;
        if (w->failing && w->trouble.code == ERR_DENIED) {
            return (struct campaign_wait){
                .reason = STR("Forbidden"),
                .message = arena_printf(out, "%s cannot be read: %s; " RIGHTS_HINT, watches[i].kind,
                                        w->trouble.msg),
            };
        }
    }
    return (struct campaign_wait){ 0 };
}

struct campaign_wait operations_lack(struct operations *o)
{
    struct campaign_wait wait = watch_wait(o);
    for (uint32_t i = 0; i < MADE_KINDS && wait.reason.n == 0; i++) {
        usec_t until = o->refusals[i].until;
        if (until > loop_now(o->loop)) {
            loop_timer_pull(&o->turn, until);
            wait = refusal_wait(o, (enum operations_made)i);
        }
    }
    return wait;
}

/* ── the status while nothing can be decided ───────────────────────────────────────────────── */

static const struct jval *condition_find(const struct jval *status, const char *type)
{
    JVAL_EACH (jval_get(status, STR("conditions")), condition) {
        if (str_eq(jval_str(jval_get(condition, STR("type"))), str_from(type))) {
            return condition;
        }
    }
    return NULL;
}

static bool lack_is_written(const struct jval *status, const struct campaign_wait *lack)
{
    const struct jval *stalled = condition_find(status, "Stalled");
    return str_eq(jval_str(jval_get(stalled, STR("status"))), STR("True")) &&
           str_eq(jval_str(jval_get(stalled, STR("reason"))), lack->reason) &&
           str_eq(jval_str(jval_get(stalled, STR("message"))), lack->message);
}

/* The other conditions stay as they were: nothing is known that would change them. */
static void print_lack(const struct campaign *c, const struct jval *old,
                       const struct campaign_wait *lack, struct json_writer *w)
{
    static const char *const own[] = { "Progressing", "Ready", "Stalled" };
    const struct condition_writer x = { c, old, w };
    jw_pair(w, "phase", STR("Waiting"));
    jw_pair(w, "reason", lack->reason);
    jw_key(w, STR("conditions"));
    jw_arr(w);
    JVAL_EACH (jval_get(old, STR("conditions")), condition) {
        struct str type = jval_str(jval_get(condition, STR("type")));
        bool replaced = false;
        for (uint32_t i = 0; i < ARRAY_LEN(own); i++) {
            replaced = replaced || str_eq(type, str_from(own[i]));
        }
        if (!replaced) {
            jw_val(w, condition);
        }
    }
    for (uint32_t i = 0; i < ARRAY_LEN(own); i++) {
        campaign_print_condition(&x, own[i], str_eq(str_from(own[i]), STR("Stalled")), lack->reason,
                                 lack->message);
    }
    jw_arr_end(w);
}

static void campaign_write_lack(struct campaign *c, const struct campaign_wait *lack)
{
    struct operations *o = c->o;
    const struct jval *old = NULL;
    struct err err = { 0 };
    c->m = c->item->object;
    if (json_parse(c->m->record.json, JSON_GO, &o->tmp, &old, &err) < 0) {
        old = NULL; /* all is new */
    }
    if (lack_is_written(old, lack) || !campaign_may_send(c)) {
        return;
    }
    buf_reset(&o->body);
    struct json_writer w = json_writer_on(&o->body);
    jw_obj(&w);
    writer_add_version(&w, c->item->version);
    jw_key(&w, STR("status"));
    jw_obj(&w);
    print_lack(c, old, lack, &w);
    jw_obj_end(&w);
    jw_obj_end(&w);
    c->written = 0; /* the whole status follows as soon as it is known */
    campaign_send_status(c);
}

void operations_tell_lack(struct operations *o)
{
    struct campaign_wait lack = watch_wait(o);
    if (lack.reason.n == 0 || !o->watching || !informer_healthy(&o->maintenances) ||
        !core_may_act(o->core)) {
        return;
    }
    LIST_EACH (&o->campaigns, link) {
        campaign_write_lack(CONTAINER_OF(link, struct campaign, link), &lack);
    }
}

void operations_free_refusals(struct operations *o)
{
    for (uint32_t i = 0; i < MADE_KINDS; i++) {
        buf_done(&o->refusals[i].text);
    }
}
