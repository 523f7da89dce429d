#include "cmd/limits_table.h"

#include "format/json_writer.h"
#include "kinds/keys.h"
#include "ledger/limit.h"
#include "kinds/maintenance_request.h"

static uint32_t number(const struct jval *status, const char *key)
{
    int64_t n;
    return jval_i64(jval_get(status, str_from(key)), &n) && n > 0 && n <= UINT32_MAX ? (uint32_t)n
                                                                                     : 0;
}

static const struct jval *condition(const struct jval *object, struct str type)
{
    const struct jval *conditions = jval_at(object, "status.conditions");
    JVAL_EACH (jval_kind(conditions) == JARR ? conditions : NULL, c) {
        if (str_eq(jval_str(jval_get(c, STR("type"))), type)) {
            return c;
        }
    }
    return NULL;
}

static bool condition_is(const struct jval *object, struct str type, struct str status)
{
    return str_eq(jval_str(jval_get(condition(object, type), STR("status"))), status);
}

/* What the conditions of a limit say is wrong; empty = nothing. */
static struct str limit_problem(const struct jval *object)
{
    struct str type =
        condition_is(object, STR("Accepted"), STR("False")) ? STR("Accepted") : STR("Computed");
    return condition_is(object, type, STR("False"))
               ? jval_str(jval_get(condition(object, type), STR("message")))
               : STR_NONE;
}

/* Limits as objects, to find out what they say together about a request. */
struct limits_table_objects {
    const struct limit **items; /* by name, as the API server lists them */
    uint32_t n;
};

static void add_limit(struct limits_report *b, struct limits_table_objects *limits,
                      const struct jval *object, struct arena *out)
{
    const struct jval *status = jval_get(object, STR("status"));
    struct str type = jval_str(jval_get(status, STR("type")));
    struct limit *l = ARENA_NEW(out, struct limit);
    limit_parse(object, out, l);
    limits->items[limits->n++] = l;
    struct limits_report_holder *holders =
        ARENA_ARRAY(out, struct limits_report_holder, l->reservations.n + 1);
    for (uint32_t i = 0; i < l->reservations.n; i++) {
        const struct reservation *r = &l->reservations.items[i];
        holders[i] =
            (struct limits_report_holder){ .target = r->target,
                                           .uid = r->uid,
                                           .name = r->name,
                                           .phase = r->state,
                                           .since = r->granted == USEC_NEVER ? 0 : r->granted,
                                           .deadline = USEC_NEVER };
    }
    uint32_t limit = number(status, "limit");
    limits_report_add_limit(
        b,
        &(struct limits_report_limit){
            .name = l->name,
            .type = type.n > 0 || !l->type_known ? type : target_type_name(l->type),
            .selects = limit_selects_text(l, out),
            .exclusive = l->exclusive,
            .percent = l->percent,
            .minimum = l->minimum,
            .most = l->max_count,
            .computed = jval_get(status, STR("nominal")) != NULL,
            .population = number(status, "population"),
            .allowed = number(status, "nominal"),
            .held = l->reservations.n,
            .unavailable = number(status, "unavailableCount"),
            .room = limit > l->reservations.targets ? limit - l->reservations.targets : 0,
            .waiting = number(status, "waiting"),
            .paused = jval_bool(jval_at(object, "spec.paused"), false),
            .over = condition_is(object, STR("OverCommitted"), STR("True")),
            .problem = limit_problem(object),
            .gap_end = limit_gap_end(l),
            .holders = holders,
            .holder_n = l->reservations.n,
        },
        out);
}

static struct str at_deadline(const struct limits_table_objects *limits,
                              const struct mrequest_status *s, struct arena *out)
{
    const struct limit **applied = ARENA_ARRAY(out, const struct limit *, limits->n + 1);
    uint32_t n = 0;
    struct limit_options options;
    for (uint32_t i = 0; i < limits->n; i++) {
        for (uint32_t k = 0; k < s->limit_n; k++) {
            if (str_eq(limits->items[i]->name, s->limits[k])) {
                applied[n++] = limits->items[i];
            }
        }
    }
    if (n == 0 || s->deadline <= 0) {
        return STR_NONE;
    }
    limit_merge_options(applied, n, &options);
    return limits_report_at_deadline(s->phase, s->step, &options);
}

static void add_request(struct limits_report *b, const struct limits_table_objects *limits,
                        const struct jval *object, struct arena *out)
{
    struct maintenance_request *m = ARENA_NEW(out, struct maintenance_request);
    mrequest_read(object, out, m);
    const struct mrequest_status *s = &m->status;
    bool waits = s->phase <= MR_PHASE_PENDING && m->state <= MR_STATE_PENDING;
    if (mrequest_phase_ended(s->phase) || m->state == MR_STATE_COMPLETED) {
        return;
    }
    enum mrequest_phase phase = s->phase == MR_PHASE_ABSENT ? MR_PHASE_PENDING : s->phase;
    usec_t since = mrequest_status_since(s);
    limits_report_add_claim(
        b,
        &(struct limits_report_claim){
            .uid = m->uid,
            .name = m->name,
            .client = m->client,
            .type = m->type_text,
            .target = m->namespace.n == 0 ? m->target
                                          : arena_printf(out, STR_FMT "/" STR_FMT,
                                                         STR_ARG(m->namespace), STR_ARG(m->target)),
            .phase = mrequest_phase_name(phase),
            .step = mrequest_step_name(s->step),
            .reason = s->reason,
            .message = s->message,
            .waits = waits,
            .last = s->position == 0,
            .priority = m->priority,
            .position = waits ? s->position : 0,
            .since = since > 0 ? since : m->created,
            .deadline = s->deadline > 0 ? s->deadline : USEC_NEVER,
            .at_deadline = at_deadline(limits, s, out),
            .next = USEC_NEVER,
            .limits = s->limits,
            .limit_n = s->limit_n,
        },
        out);
}

void limits_table_print_text(const struct limits_table *q, struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct limits_report b = { .now = q->now, .columns = q->columns };
    uint32_t n = jval_kind(q->limits) == JARR ? q->limits->n : 0;
    struct limits_table_objects limits = {
        .items = ARENA_ARRAY(&tmp, const struct limit *, n + 1),
    };
    JVAL_EACH (n > 0 ? q->limits : NULL, limit) {
        add_limit(&b, &limits, limit, &tmp);
    }
    JVAL_EACH (jval_kind(q->requests) == JARR ? q->requests : NULL, request) {
        add_request(&b, &limits, request, &tmp);
    }
    limits_report_finish(&b, &tmp);
    limits_report_print_text(&b, q->wide, out);
}

static bool is_completed(const struct jval *request)
{
    return str_eq(jval_str(jval_at(request, "spec.state")), STR("Completed"));
}

void limits_table_print_names(const struct limits_table *q, struct buf *out)
{
    JVAL_EACH (jval_kind(q->limits) == JARR ? q->limits : NULL, limit) {
        buf_printf(out, "maintenancelimit." MAINTENANCE_GROUP "/" STR_FMT "\n",
                   STR_ARG(jval_str(jval_at(limit, "metadata.name"))));
    }
    JVAL_EACH (jval_kind(q->requests) == JARR ? q->requests : NULL, request) {
        if (!is_completed(request)) {
            buf_printf(out, "maintenancerequest." MAINTENANCE_GROUP "/" STR_FMT "\n",
                       STR_ARG(jval_str(jval_at(request, "metadata.name"))));
        }
    }
}

void limits_table_print_json(const struct limits_table *q, struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("v1"));
    jw_pair(&w, "kind", STR("List"));
    jw_key(&w, STR("items"));
    jw_arr(&w);
    if (jval_kind(q->limits) == JARR) {
        JVAL_EACH (q->limits, limit) {
            jw_val(&w, limit);
        }
    }
    if (jval_kind(q->requests) == JARR) {
        JVAL_EACH (q->requests, request) {
            if (!is_completed(request)) {
                jw_val(&w, request);
            }
        }
    }
    jw_arr_end(&w);
    jw_obj_end(&w);
}
