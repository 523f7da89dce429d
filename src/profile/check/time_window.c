/* The time is right: on some weekdays from one time of the day to another, or from the times of a
 * pattern on for a while. */
#include "calendar/window.h"

#include "profile/check/check_plugin.h"

struct time_window {
    bool by_pattern;
    struct window window;
    struct cron_window cron;
    const struct zone *zone;
    struct str zone_name; /* "UTC" for none */
};

static const struct zone *read_zone(const struct check_setup *setup,
                                    const struct plugin_value *value)
{
    struct err err = { 0 };
    struct str bytes;
    const struct zone *zone = NULL;
    struct str shown = check_quote(setup->out, value->text);
    if (setup->env->zone == NULL) {
        problems_add(setup->problems, value->pos,
                     "key 'timeZone': found " STR_FMT " where no zones are known, want UTC",
                     STR_ARG(shown));
    } else if (setup->env->zone(setup->env->ctx, value->text, setup->out, &bytes, &err) < 0 ||
               zone_parse(bytes, setup->out, &zone, &err) < 0) {
        problems_add(setup->problems, value->pos,
                     "key 'timeZone': found " STR_FMT " (%s), want a zone such as Europe/Berlin",
                     STR_ARG(shown), err.msg);
    }
    return zone;
}

static const void *prepare(const struct check_setup *setup)
{
    struct time_window *plan = ARENA_NEW(setup->out, struct time_window);
    const struct plugin_value *zone = check_value(setup, "timeZone");
    const struct plugin_value *exclude = check_value(setup, "exclude");
    plan->zone_name = STR("UTC");
    if (zone->text.n > 0 && !str_eq(zone->text, STR("UTC"))) {
        plan->zone_name = zone->text;
        plan->zone = read_zone(setup, zone);
    }
    plan->by_pattern = check_value(setup, "cron")->given;
    plan->window = (struct window){
        .weekdays = (uint8_t)check_value(setup, "weekdays")->number,
        .overnight = check_value(setup, "overnight")->truth,
        .open = (uint32_t)check_value(setup, "start")->number,
        .close = (uint32_t)check_value(setup, "end")->number,
        .zone = plan->zone,
    };
    for (uint32_t i = 0; i < exclude->item_n; i++) {
        window_exclude(&plan->window, exclude->dates[i]);
    }
    if (plan->by_pattern) {
        plan->cron = (struct cron_window){
            .cron = *check_value(setup, "cron")->cron,
            .duration = MAX(check_value(setup, "duration")->number / 1000, (int64_t)1),
            .zone = plan->zone,
        };
    }
    return plan;
}

static bool look(const struct time_window *plan, struct timestamp now, usec_t *ret_next,
                 const char **ret_reason)
{
    if (plan->by_pattern) {
        struct cron_answer answer = cron_window_at(&plan->cron, timestamp_to_usec(now));
        *ret_next = answer.next;
        return answer.open;
    }
    struct window_answer answer = window_at(&plan->window, now);
    *ret_next = answer.next;
    *ret_reason = answer.reason;
    return answer.passed;
}

/* "opens on Mon 22:00 CET" */
static struct str explain(const struct check_input *in, const struct time_window *plan,
                          const struct check_verdict *verdict)
{
    bool open = verdict->answer == CHECK_PASS;
    const char *verb = open ? "close" : "open";
    const char *reason;
    usec_t later;
    if (verdict->next == USEC_NEVER) {
        return arena_printf(in->out, "it never %ss", verb);
    }
    struct zone_span span = zone_at(plan->zone, verdict->next / 1000000);
    struct str when = arena_printf(
        in->out, STR_FMT " " STR_FMT,
        STR_ARG(check_moment(in->out, verdict->next, timestamp_to_usec(in->now), span.offset)),
        STR_ARG(plan->zone == NULL ? STR("UTC") : span.name));
    /* Far ahead it is only where one has to look again. */
    if (look(plan, timestamp_from_usec(verdict->next), &later, &reason) == open) {
        return arena_printf(in->out, "does not %s before " STR_FMT, verb, STR_ARG(when));
    }
    return arena_printf(in->out, "%ss on " STR_FMT, verb, STR_ARG(when));
}

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct time_window *plan = check_prepared(in, index);
    const char *reason = NULL;
    ret->answer = look(plan, in->now, &ret->next, &reason) ? CHECK_PASS : CHECK_FAIL;
    if (in->explain) {
        ret->reason = explain(in, plan, ret);
        ret->info = reason != NULL ? check_info_reason(in->out, str_from(reason)) : STR("");
    }
}

const struct check_plugin check_time_window = {
    .name = "timeWindow",
    .prepare = prepare,
    .run = run,
};
