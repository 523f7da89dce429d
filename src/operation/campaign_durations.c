/* How long the visits of a NodeMaintenance took: the last ones stand in its status, so that a new
 * leader knows how much of a window the next one needs. */
#include "operation/operations_internal.h"

void campaign_read_durations(struct campaign *c)
{
    const struct maintenance_record *r = &c->m->record;
    if (c->durations_known) {
        return; /* what is in memory is newer than what is written */
    }
    c->durations_known = true;
    c->durations = (struct window_rest_durations){ 0 };
    for (uint32_t i = 0; i < r->duration_n; i++) {
        window_rest_add(&c->durations, r->durations[i]);
    }
}

/* The oldest first, so that they are read back in the same order. */
void campaign_print_durations(const struct campaign *c, struct json_writer *w)
{
    const struct window_rest_durations *d = &c->durations;
    jw_key(w, STR("visitSeconds"));
    jw_arr(w);
    for (uint32_t i = 0; i < d->n; i++) {
        uint32_t at = (d->next + WINDOW_REST_KEPT - d->n + i) % WINDOW_REST_KEPT;
        jw_i64(w, d->items[at] / SECONDS(1));
    }
    jw_arr_end(w);
}

/* Once for each object that had something run there; what a preflight found done took no visit. */
void operations_add_duration(struct operations *o, const struct visit_record *v, usec_t took)
{
    for (uint32_t i = 0; i < v->run_n; i++) {
        const struct visit_run *run = &v->runs[i];
        struct campaign *c = operations_campaign(o, run->maintenance_uid);
        bool counted = run->phase != VISIT_RUN_SUCCEEDED && run->phase != VISIT_RUN_FAILED;
        for (uint32_t k = 0; k < i; k++) {
            counted =
                counted ||
                (str_eq(v->runs[k].maintenance_uid, run->maintenance_uid) &&
                 (v->runs[k].phase == VISIT_RUN_SUCCEEDED || v->runs[k].phase == VISIT_RUN_FAILED));
        }
        if (c != NULL && !counted) {
            campaign_read_durations(c);
            window_rest_add(&c->durations, took);
        }
    }
}
