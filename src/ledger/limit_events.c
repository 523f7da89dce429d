/*
 * Events of limits. One text about one limit is told once in a while, not with every flicker.
 */
#include "ledger/arbiter_internal.h"

static void tell(struct book *b, uint32_t kind, const struct recorder_event *event)
{
    struct arbiter *a = b->arbiter;
    usec_t now = loop_now(a->loop);
    if (a->config.recorder == NULL) {
        return;
    }
    if (str_eq(buf_str(&b->told[kind]), event->note) && now < b->told_at[kind] + ARBITER_TOLD) {
        return;
    }
    buf_reset(&b->told[kind]);
    buf_add(&b->told[kind], event->note);
    b->told_at[kind] = now;
    recorder_add(a->config.recorder, event);
}

static struct recorder_ref book_ref(const struct book *b)
{
    const struct limit *l = book_limit(b);
    return (struct recorder_ref){
        .kind = STR("MaintenanceLimit"),
        .api_version = STR("repairman.k8s.io/v1"),
        .name = l->name,
        .uid = l->uid,
    };
}

void tell_limits(struct book *b, uint32_t limit, uint32_t population)
{
    CLEANUP(arena_done)
    struct arena tmp = { .first = 256 };
    tell(b, 0,
         &(struct recorder_event){
             .type = STR("Normal"),
             .reason = STR("UpdatedLimits"),
             .action = STR("UpdateLimits"),
             .note = arena_printf(&tmp, "updated limits to %u of %u", limit, population),
             .regarding = book_ref(b),
         });
}

void tell_over(struct book *b, struct str words)
{
    tell(b, 1,
         &(struct recorder_event){
             .type = STR("Warning"),
             .reason = STR("LimitOverCommitted"),
             .action = STR("UpdateLimits"),
             .note = words,
             .regarding = book_ref(b),
         });
}

void tell_missing(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    usec_t *told = &a->missing_told[k->spec.type];
    if (a->config.recorder == NULL || k->spec.owner != ASK_REQUEST ||
        a->now < *told + ARBITER_MISSING_TOLD) {
        return;
    }
    CLEANUP(arena_done)
    struct arena tmp = { .first = 256 };
    struct str type = target_type_name(k->spec.type);
    *told = a->now;
    recorder_add(a->config.recorder,
                 &(struct recorder_event){
                     .type = STR("Warning"),
                     .reason = STR("NoLimitConfigured"),
                     .action = STR("Grant"),
                     .note = arena_printf(&tmp,
                                          "no MaintenanceLimit applies to " STR_FMT " " STR_FMT
                                          ": any number of them may be disturbed at once",
                                          STR_ARG(type), STR_ARG(k->full)),
                     .regarding = { .kind = STR("MaintenanceRequest"),
                                    .api_version = STR("repairman.k8s.io/v1"),
                                    .name = k->spec.name,
                                    .uid = k->spec.uid },
                 });
}
