/*
 * Events about limits. The same text about one limit is sent at most once in
 * ARBITER_EVENT_INTERVAL.
 */
#include "ledger/arbiter_internal.h"

static void limit_event_send(struct limit_state *b, uint32_t kind,
                             const struct recorder_event *event)
{
    struct arbiter *a = b->arbiter;
    usec_t now = loop_now(a->loop);
    if (a->config.recorder == NULL) {
        return;
    }
    if (str_eq(buf_str(&b->event_text[kind]), event->note) &&
        now < b->event_sent_at[kind] + ARBITER_EVENT_INTERVAL) {
        return;
    }
    buf_reset(&b->event_text[kind]);
    buf_add(&b->event_text[kind], event->note);
    b->event_sent_at[kind] = now;
    recorder_add(a->config.recorder, event);
}

static struct recorder_ref limit_state_ref(const struct limit_state *b)
{
    const struct limit *l = limit_of(b);
    return (struct recorder_ref){
        .kind = STR("MaintenanceLimit"),
        .api_version = STR(MAINTENANCE_API_VERSION),
        .name = l->name,
        .uid = l->uid,
    };
}

void limit_event_updated(struct limit_state *b, uint32_t limit, uint32_t population)
{
    CLEANUP(arena_done)
    struct arena tmp = { .first = 256 };
    limit_event_send(
        b, 0,
        &(struct recorder_event){
            .type = STR("Normal"),
            .reason = STR("UpdatedLimits"),
            .action = STR("UpdateLimits"),
            .note = arena_printf(&tmp, "updated limits to %u of %u", limit, population),
            .regarding = limit_state_ref(b),
        });
}

void limit_event_overcommitted(struct limit_state *b, struct str text)
{
    limit_event_send(b, 1,
                     &(struct recorder_event){
                         .type = STR("Warning"),
                         .reason = STR("LimitOverCommitted"),
                         .action = STR("UpdateLimits"),
                         .note = text,
                         .regarding = limit_state_ref(b),
                     });
}

void limit_event_missing(struct ask *k)
{
    struct arbiter *a = k->arbiter;
    usec_t *told = &a->missing_event_at[k->spec.type];
    if (a->config.recorder == NULL || k->spec.owner != ASK_OF_REQUEST ||
        a->now < *told + ARBITER_MISSING_INTERVAL) {
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
                                          STR_ARG(type), STR_ARG(k->target_name)),
                     .regarding = { .kind = STR("MaintenanceRequest"),
                                    .api_version = STR(MAINTENANCE_API_VERSION),
                                    .name = k->spec.name,
                                    .uid = k->spec.uid },
                 });
}
