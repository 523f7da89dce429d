/* The report of NodeMaintenances as JSON, for scripts and the dashboard. */
#include "operation/operations_report.h"

#define BRIEF_MACHINES 60u /* of a kind; nobody reads more on a page */

struct json_page {
    const struct operations_report *report;
    enum operations_report_form form;
    struct json_writer *w;
};

static void print_openings(struct json_writer *w, const struct interval *items, uint32_t n)
{
    jw_key(w, STR("upcoming"));
    jw_arr(w);
    for (uint32_t i = 0; i < n; i++) {
        jw_obj(w);
        jw_pair_time(w, "start", items[i].start);
        jw_pair_time(w, "end", items[i].end);
        jw_obj_end(w);
    }
    jw_arr_end(w);
}

static void print_window(const struct operations_report_window *x, struct json_writer *w)
{
    jw_obj(w);
    jw_pair(w, "name", x->name);
    jw_pair(w, "timeZone", x->zone);
    jw_pair(w, "effect", x->freeze ? STR("Freeze") : STR("Open"));
    jw_pair_some(w, "problem", x->problem);
    jw_pair_bool(w, "open", x->open);
    jw_pair_time(w, "until", x->open_until);
    print_openings(w, x->opening, x->opening_n);
    jw_obj_end(w);
}

static void print_operations(const struct operations_report_maintenance *m, struct json_writer *w)
{
    jw_key(w, STR("operations"));
    jw_arr(w);
    for (uint32_t i = 0; i < m->operation_n; i++) {
        const struct operations_report_operation *op = &m->operations[i];
        jw_obj(w);
        jw_pair(w, "name", op->name);
        jw_pair(w, "type", op->type);
        jw_pair_some(w, "version", op->version);
        jw_pair_some(w, "revision", op->revision);
        jw_pair_time(w, "lastTick", op->tick);
        jw_pair_time(w, "nextTick", op->next_tick);
        jw_pair_i64(w, "succeeded", op->succeeded);
        jw_pair_i64(w, "failed", op->failed);
        jw_obj_end(w);
    }
    jw_arr_end(w);
}

static void print_waves(const struct operations_report_maintenance *m, struct json_writer *w)
{
    static const char *const states[] = { "done", "now", "soaking", "waiting for approval",
                                          "coming" };
    jw_key(w, STR("waves"));
    jw_arr(w);
    for (uint32_t i = 0; i < m->wave_n; i++) {
        const struct operations_report_wave *x = &m->waves[i];
        jw_obj(w);
        jw_pair(w, "name", x->name);
        jw_pair(w, "state", str_from(states[x->state]));
        jw_pair_i64(w, "machines", x->machines);
        jw_pair_i64(w, "done", x->done);
        jw_pair_i64(w, "failed", x->failed);
        jw_pair_i64(w, "active", x->active);
        jw_pair_i64(w, "soakSeconds", x->soak / SECONDS(1));
        jw_pair_time(w, "soakUntil", x->soak_until);
        jw_pair_bool(w, "manual", x->manual);
        jw_obj_end(w);
    }
    jw_arr_end(w);
}

static void print_machine(const struct operations_report_machine *x, bool waves,
                          struct json_writer *w)
{
    jw_obj(w);
    jw_pair(w, "name", x->name);
    jw_pair(w, "state", operations_report_state_name(x->state));
    if (waves) {
        jw_pair_i64(w, "wave", x->wave);
    }
    jw_pair_some(w, "phase", x->phase);
    jw_pair_some(w, "operation", x->operation);
    jw_pair_time(w, "since", x->since);
    jw_pair_some(w, "waitsFor", x->waits);
    jw_pair_time(w, "next", x->next);
    if (x->attempts > 0) {
        jw_pair_i64(w, "attempts", x->attempts);
    }
    jw_pair_some(w, "reason", x->reason);
    jw_pair_some(w, "message", x->message);
    jw_obj_end(w);
}

static bool machine_is_shown(const struct json_page *p, enum operations_report_state state)
{
    return p->form == OPERATIONS_REPORT_WHOLE || state == REPORT_MACHINE_FAILED ||
           state == REPORT_MACHINE_VISIT || state == REPORT_MACHINE_BACKOFF;
}

static void print_machines(const struct json_page *p, const struct operations_report_maintenance *m)
{
    uint32_t shown[REPORT_MACHINE_STATES] = { 0 };
    jw_key(p->w, STR("machines"));
    jw_arr(p->w);
    for (uint32_t i = 0; i < m->machine_n; i++) {
        enum operations_report_state state = m->machines[i].state;
        bool more = p->form == OPERATIONS_REPORT_WHOLE || shown[state] < BRIEF_MACHINES;
        if (machine_is_shown(p, state) && more) {
            print_machine(&m->machines[i], m->wave_n > 0, p->w);
            shown[state]++;
        }
    }
    jw_arr_end(p->w);
}

static void print_maintenance(const struct json_page *p,
                              const struct operations_report_maintenance *m)
{
    struct json_writer *w = p->w;
    jw_obj(w);
    jw_pair(w, "name", m->name);
    jw_pair(w, "phase", m->phase);
    jw_pair(w, "reason", m->reason);
    jw_pair_some(w, "message", m->message);
    jw_pair_some(w, "revision", m->revision);
    jw_pair_i64(w, "priority", m->priority);
    jw_pair_time(w, "next", m->next);
    jw_key(w, STR("window"));
    jw_obj(w);
    jw_pair_bool(w, "limited", m->limited);
    jw_pair_bool(w, "open", m->open);
    jw_pair_time(w, "until", m->open_until);
    print_openings(w, m->opening, m->opening_n);
    jw_obj_end(w);
    jw_key(w, STR("counts"));
    jw_obj(w);
    jw_pair_i64(w, "selected", m->selected);
    for (uint32_t i = 0; i < REPORT_MACHINE_STATES; i++) {
        jw_key(w, operations_report_state_name((enum operations_report_state)i));
        jw_i64(w, m->counts[i]);
    }
    jw_obj_end(w);
    print_operations(m, w);
    print_waves(m, w);
    print_machines(p, m);
    jw_obj_end(w);
}

void operations_report_print_json(const struct operations_report *r,
                                  enum operations_report_form form, struct json_writer *w)
{
    const struct json_page p = { .report = r, .form = form, .w = w };
    jw_obj(w);
    jw_pair_bool(w, "known", r->known);
    jw_key(w, STR("maintenances"));
    jw_arr(w);
    for (uint32_t i = 0; i < r->maintenance_n; i++) {
        print_maintenance(&p, &r->maintenances[i]);
    }
    jw_arr_end(w);
    jw_key(w, STR("windows"));
    jw_arr(w);
    for (uint32_t i = 0; i < r->window_n; i++) {
        print_window(&r->windows[i], w);
    }
    jw_arr_end(w);
    jw_obj_end(w);
}
