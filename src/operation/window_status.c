/* The status of a MaintenanceWindow: open or not, until when, and the next openings. */
#include "operation/reference_status.h"

static const struct maintenance_window *window_of(const void *object)
{
    return object;
}

static struct str window_status(const void *object)
{
    return window_of(object)->status;
}

static const struct spec_meta *window_meta(const void *object)
{
    return &window_of(object)->meta;
}

/* Only the object itself, and time. */
static uint64_t window_sources_number(const struct operations *o UNUSED)
{
    return 0;
}

static bool window_look_ahead(struct reference *r)
{
    const struct maintenance_window *w = r->item->object;
    const struct opening_hours *hours[] = { &w->window.hours };
    const struct opening_plan plan = { .hours = hours, .hours_n = 1 };
    struct window_outlook *outlook = &r->outlook;
    bool under_way = outlook->begun && !outlook->known && r->outlook_of == w;
    if (!under_way) {
        window_outlook_begin(outlook, r->o->now);
        r->outlook_of = w;
    }
    if (w->problem.reason.n > 0) {
        outlook->known = true; /* it has no hours */
    }
    return window_outlook_search(outlook, &plan);
}

static struct tree *window_upcoming(const struct window_outlook *outlook, struct arena *tmp)
{
    struct tree *list = tree_arr(tmp);
    for (uint32_t i = 0; i < outlook->next_n; i++) {
        struct tree *one = tree_obj(tmp);
        reference_set_time(one, "start", outlook->next[i].start, tmp);
        reference_set_time(one, "end", outlook->next[i].end, tmp);
        tree_add(list, one);
    }
    return list;
}

static struct status_condition window_condition(const struct maintenance_window *w,
                                                const struct window_outlook *outlook,
                                                struct arena *tmp)
{
    struct str problem = w->problem.reason;
    bool opens = outlook->open || outlook->next_n > 0;
    if (outlook->given_up) {
        return (struct status_condition){ "Valid", false, STR("TooComplex"),
                                          STR("spec: the next openings cannot be found in "
                                              "reasonable time; write simpler rules") };
    }
    /* One that is read after its last opening has the problem itself, with other words. */
    if (str_eq(problem, STR("NeverOpens")) || (problem.n == 0 && !opens)) {
        return (struct status_condition){
            "Valid", false, STR("NeverOpens"),
            arena_printf(tmp, "spec: it does not open in the next %d years", RRULE_YEARS_MAX)
        };
    }
    return (struct status_condition){ "Valid", problem.n == 0,
                                      problem.n == 0 ? STR("Valid") : problem,
                                      spec_problem_text(&w->problem, tmp) };
}

static bool window_compose(struct reference *r, struct tree *status, usec_t *until,
                           struct arena *tmp)
{
    const struct maintenance_window *w = r->item->object;
    const struct window_outlook *outlook = &r->outlook;
    if (!window_look_ahead(r)) {
        operations_schedule(r->o);
        return false;
    }
    struct interval next = outlook->next_n > 0 ? outlook->next[0] : (struct interval){ 0 };
    struct status_condition valid = window_condition(w, outlook, tmp);
    tree_set(tmp, status, STR("open"), tree_bool(tmp, outlook->open));
    reference_set_time(status, "currentEnd", outlook->open ? outlook->open_until : 0, tmp);
    reference_set_time(status, "nextStart", next.start, tmp);
    reference_set_time(status, "nextEnd", next.end, tmp);
    tree_set(tmp, status, STR("upcoming"), window_upcoming(outlook, tmp));
    reference_set_condition(r, status, &valid, tmp);
    *until = window_outlook_until(outlook);
    return true;
}

const struct reference_kind window_reference = {
    .path = MAINTENANCE_WINDOWS_PATH,
    .status = window_status,
    .meta = window_meta,
    .sources = window_sources_number,
    .compose = window_compose,
};
