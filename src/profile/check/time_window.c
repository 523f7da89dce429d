/* timeWindow: the time is within a window, given by weekdays and times of the day or by a cron
 * pattern and a duration. */
#include "calendar/window.h"

#include "profile/check/check_plugin.h"

struct time_window {
    bool by_pattern;
    struct window window;
    struct cron_window cron;
    const struct zone *zone;
    struct str zone_name; /* "UTC" for none */
};

static const struct zone *read_zone(const struct check_prepare_input *input,
                                    const struct plugin_value *value)
{
    struct err err = { 0 };
    struct str bytes;
    const struct zone *zone = NULL;
    struct str shown = check_quote_text(input->out, value->text);
    if (input->env->zone == NULL) {
        problems_add(input->problems, value->pos,
                     "key 'timeZone': found " STR_FMT " where no zones are known, want UTC",
                     STR_ARG(shown));
    } else if (input->env->zone(input->env->ctx, value->text, input->out, &bytes, &err) < 0 ||
               zone_parse(bytes, input->out, &zone, &err) < 0) {
        problems_add(input->problems, value->pos,
                     "key 'timeZone': found " STR_FMT " (%s), want a zone such as Europe/Berlin",
                     STR_ARG(shown), err.msg);
    }
    return zone;
}

static const void *prepare(const struct check_prepare_input *input)
{
    struct time_window *prepared = ARENA_NEW(input->out, struct time_window);
    const struct plugin_value *zone = check_value(input, "timeZone");
    const struct plugin_value *exclude = check_value(input, "exclude");
    prepared->zone_name = STR("UTC");
    if (zone->text.n > 0 && !str_eq(zone->text, STR("UTC"))) {
        prepared->zone_name = zone->text;
        prepared->zone = read_zone(input, zone);
    }
    prepared->by_pattern = check_value(input, "cron")->given;
    prepared->window = (struct window){
        .weekdays = (uint8_t)check_value(input, "weekdays")->number,
        .overnight = check_value(input, "overnight")->truth,
        .open = (uint32_t)check_value(input, "start")->number,
        .close = (uint32_t)check_value(input, "end")->number,
        .zone = prepared->zone,
    };
    for (uint32_t i = 0; i < exclude->item_n; i++) {
        window_exclude(&prepared->window, exclude->dates[i]);
    }
    if (prepared->by_pattern) {
        prepared->cron = (struct cron_window){
            .cron = *check_value(input, "cron")->cron,
            .duration = MAX(check_value(input, "duration")->number / 1000, (int64_t)1),
            .zone = prepared->zone,
        };
    }
    return prepared;
}

static bool is_open(const struct time_window *prepared, struct timestamp now, usec_t *ret_next,
                    const char **ret_reason)
{
    if (prepared->by_pattern) {
        struct cron_answer answer = cron_window_at(&prepared->cron, timestamp_to_usec(now));
        *ret_next = answer.next;
        return answer.open;
    }
    struct window_answer answer = window_at(&prepared->window, now);
    *ret_next = answer.next;
    *ret_reason = answer.reason;
    return answer.passed;
}

/* "opens on Mon 22:00 CET" */
static struct str explain(const struct check_input *in, const struct time_window *prepared,
                          const struct check_verdict *verdict)
{
    bool open = verdict->answer == CHECK_PASS;
    const char *verb = open ? "close" : "open";
    const char *reason;
    usec_t later;
    if (verdict->next == USEC_NEVER) {
        return arena_printf(in->out, "it never %ss", verb);
    }
    struct zone_span span = zone_at(prepared->zone, verdict->next / 1000000);
    struct str when = arena_printf(
        in->out, STR_FMT " " STR_FMT,
        STR_ARG(check_time_text(in->out, verdict->next, timestamp_to_usec(in->now), span.offset)),
        STR_ARG(prepared->zone == NULL ? STR("UTC") : span.name));
    /* Far ahead, `next` is only when to look again, not when the window changes. */
    if (is_open(prepared, timestamp_from_usec(verdict->next), &later, &reason) == open) {
        return arena_printf(in->out, "does not %s before " STR_FMT, verb, STR_ARG(when));
    }
    return arena_printf(in->out, "%ss on " STR_FMT, verb, STR_ARG(when));
}

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct time_window *prepared = check_prepared(in, index);
    const char *reason = NULL;
    ret->answer = is_open(prepared, in->now, &ret->next, &reason) ? CHECK_PASS : CHECK_FAIL;
    if (in->explain) {
        ret->reason = explain(in, prepared, ret);
        ret->info = reason != NULL ? check_info_reason(in->out, str_from(reason)) : STR("");
    }
}

const struct check_plugin check_time_window = {
    .name = "timeWindow",
    .prepare = prepare,
    .run = run,
};
