#include "cmd/quota.h"

#include "base/wrap.h"
#include "client/record.h"
#include "cmd/options.h"
#include "format/jwriter.h"

#include <stdlib.h>

#define COLUMNS_MAX 7u
#define GAP 2u /* spaces between columns */

/* A table of texts; the last column is wrapped. */
struct sheet {
    struct arena memory;
    uint32_t columns;
    uint32_t n;
    uint32_t cap;
    struct sheet_row {
        struct str cells[COLUMNS_MAX];
    } * rows;
};

static void sheet_add(struct sheet *s, const struct sheet_row *row)
{
    ARENA_GROW(&s->memory, s->rows, s->n, s->cap);
    s->rows[s->n++] = *row;
}

static void sheet_print(const struct sheet *s, struct buf *out)
{
    uint32_t at[COLUMNS_MAX] = { 0 };
    for (uint32_t c = 1; c < s->columns; c++) {
        uint32_t width = 0;
        for (uint32_t i = 0; i < s->n; i++) {
            width = MAX(width, wrap_width(s->rows[i].cells[c - 1]));
        }
        at[c] = at[c - 1] + width + GAP;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        struct wrap line = { .out = out, .columns = OPTIONS_COLUMNS, .hang = 4 };
        for (uint32_t c = 0; c < s->columns; c++) {
            if (c > 0 && s->rows[i].cells[c].n > 0) {
                wrap_tab(&line, at[c]);
            }
            wrap_add(&line, s->rows[i].cells[c]);
        }
        wrap_end(&line);
    }
}

static struct str text_or(struct str text, const char *otherwise)
{
    return text.n > 0 ? text : str_from(otherwise);
}

/* A number of the status, or a dash while nobody has computed it. */
static struct str number(const struct jval *v, struct arena *out)
{
    int64_t n;
    return jval_i64(v, &n) ? arena_printf(out, "%lld", (long long)n) : STR("-");
}

static bool condition_is(const struct jval *object, struct str type)
{
    const struct jval *conditions = jval_at(object, "status.conditions");
    if (jval_kind(conditions) != JARR) {
        return false;
    }
    JVAL_EACH (conditions, c) {
        if (str_eq(jval_str(jval_get(c, STR("type"))), type)) {
            return str_eq(jval_str(jval_get(c, STR("status"))), STR("True"));
        }
    }
    return false;
}

/* One word for where a limit stands. */
static struct str limit_standing(const struct jval *limit)
{
    int64_t free = 0;
    int64_t granted = 0;
    const struct jval *status = jval_get(limit, STR("status"));
    if (jval_bool(jval_at(limit, "spec.paused"), false)) {
        return STR("paused");
    }
    if (!jval_i64(jval_get(status, STR("nominal")), &free)) {
        return STR("not computed");
    }
    if (condition_is(limit, STR("OverCommitted"))) {
        return STR("over-committed");
    }
    (void)jval_i64(jval_get(status, STR("limit")), &free);      /* absent is 0 */
    (void)jval_i64(jval_get(status, STR("granted")), &granted); /* likewise */
    return granted < free ? STR("open") : STR("full");
}

static void print_limits(const struct jval *limits, struct buf *out)
{
    struct sheet s = { .columns = 7 };
    struct arena *a = &s.memory;
    sheet_add(&s, &(struct sheet_row){ { STR("LIMIT"), STR("TYPE"), STR("ALLOWED"), STR("GRANTED"),
                                         STR("WAITING"), STR("UNAVAILABLE"), STR("STATUS") } });
    JVAL_EACH (limits, limit) {
        const struct jval *status = jval_get(limit, STR("status"));
        struct str name = jval_str(jval_at(limit, "metadata.name"));
        struct str type = jval_str(jval_get(status, STR("type")));
        struct str nominal = number(jval_get(status, STR("nominal")), a);
        struct str population = number(jval_get(status, STR("population")), a);
        sheet_add(
            &s, &(struct sheet_row){ {
                    name,
                    text_or(type.n > 0 ? type : jval_str(jval_at(limit, "spec.type")), "-"),
                    arena_printf(a, STR_FMT " of " STR_FMT, STR_ARG(nominal), STR_ARG(population)),
                    number(jval_get(status, STR("granted")), a),
                    number(jval_get(status, STR("waiting")), a),
                    number(jval_get(status, STR("unavailableCount")), a),
                    limit_standing(limit),
                } });
    }
    sheet_print(&s, out);
    arena_done(&s.memory);
}

static void print_holders(const struct jval *limits, struct buf *out)
{
    struct sheet s = { .columns = 5 };
    sheet_add(&s, &(struct sheet_row){
                      { STR("HELD"), STR("LIMIT"), STR("STATE"), STR("SINCE"), STR("BY") } });
    JVAL_EACH (limits, limit) {
        const struct jval *held = jval_at(limit, "status.reservations");
        if (jval_kind(held) != JARR) {
            continue;
        }
        JVAL_EACH (held, r) {
            sheet_add(&s, &(struct sheet_row){ {
                              text_or(jval_str(jval_get(r, STR("target"))), "-"),
                              jval_str(jval_at(limit, "metadata.name")),
                              text_or(jval_str(jval_get(r, STR("state"))), "-"),
                              text_or(jval_str(jval_get(r, STR("grantedTime"))), "-"),
                              text_or(jval_str(jval_get(r, STR("requestName"))), "-"),
                          } });
        }
    }
    if (s.n > 1) {
        buf_add(out, STR("\n"));
        sheet_print(&s, out);
    }
    arena_done(&s.memory);
}

/* By place in the queue; those without one behind, by name. */
static int compare_waiting(const void *left, const void *right)
{
    const struct record *a = left;
    const struct record *b = right;
    int64_t x = a->position > 0 ? a->position : INT64_MAX;
    int64_t y = b->position > 0 ? b->position : INT64_MAX;
    return x != y ? (x < y ? -1 : 1) : str_cmp(a->name, b->name);
}

static void add_waiting(struct sheet *s, const struct record *r)
{
    struct arena *a = &s->memory;
    struct str place = r->position > 0 ? arena_printf(a, "%lld", (long long)r->position) : STR("-");
    struct str why =
        r->message.n > 0 && r->reason.n > 0
            ? arena_printf(a, STR_FMT ": " STR_FMT, STR_ARG(r->reason), STR_ARG(r->message))
            : text_or(r->reason, "-");
    struct str target = r->target.space.n > 0
                            ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(r->target.space),
                                           STR_ARG(r->target.name))
                            : r->target.name;
    sheet_add(s, &(struct sheet_row){ { text_or(target, "-"), text_or(r->target.type, "-"), place,
                                        text_or(r->client, "-"), why } });
}

static void print_waiting(const struct jval *requests, struct buf *out)
{
    struct sheet s = { .columns = 5 };
    struct record *waiting = ARENA_ARRAY(&s.memory, struct record, requests->n + 1);
    uint32_t n = 0;
    JVAL_EACH (requests, object) {
        struct err ignored = { 0 };
        if (record_read(object, &s.memory, &waiting[n], &ignored) == 0 &&
            waiting[n].state == RECORD_PENDING) {
            n++;
        }
    }
    qsort(waiting, n, sizeof(*waiting), compare_waiting);
    sheet_add(&s, &(struct sheet_row){
                      { STR("WAITING"), STR("TYPE"), STR("PLACE"), STR("CLIENT"), STR("FOR") } });
    for (uint32_t i = 0; i < n; i++) {
        add_waiting(&s, &waiting[i]);
    }
    if (n > 0) {
        buf_add(out, STR("\n"));
        sheet_print(&s, out);
    }
    arena_done(&s.memory);
}

void quota_print_text(const struct quota *q, struct buf *out)
{
    bool any = jval_kind(q->limits) == JARR && q->limits->n > 0;
    if (any) {
        print_limits(q->limits, out);
        print_holders(q->limits, out);
    } else {
        buf_add(out, STR("There are no limits: every request is granted.\n"));
    }
    if (jval_kind(q->requests) == JARR) {
        print_waiting(q->requests, out);
    }
}

void quota_print_json(const struct quota *q, struct buf *out)
{
    struct jwriter w = jwriter_on(out);
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
            if (!str_eq(jval_str(jval_at(request, "spec.state")), STR("Completed"))) {
                jw_val(&w, request);
            }
        }
    }
    jw_arr_end(&w);
    jw_obj_end(&w);
    buf_add(out, STR("\n"));
}
