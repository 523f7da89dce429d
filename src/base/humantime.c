#include "base/humantime.h"

#include "base/timestamp.h"

struct str humantime_span(usec_t length, struct arena *out)
{
    static const struct {
        usec_t unit;
        char name;
    } units[] = { { DAYS(1), 'd' }, { HOURS(1), 'h' }, { MINUTES(1), 'm' }, { SECONDS(1), 's' } };
    length = MAX(length, 0);
    for (size_t i = 0; i + 1 < ARRAY_LEN(units); i++) {
        int64_t whole = length / units[i].unit;
        int64_t rest = length % units[i].unit / units[i + 1].unit;
        if (whole > 0 && rest > 0) {
            return arena_printf(out, "%lld%c%lld%c", (long long)whole, units[i].name,
                                (long long)rest, units[i + 1].name);
        }
        if (whole > 0) {
            return arena_printf(out, "%lld%c", (long long)whole, units[i].name);
        }
    }
    return arena_printf(out, "%llds", (long long)(length / SECONDS(1)));
}

struct str humantime_since(usec_t now, usec_t since, struct arena *out)
{
    return humantime_span(now - (since - since % SECONDS(1)), out);
}

struct str humantime_at(usec_t now, usec_t when, struct arena *out)
{
    static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
    static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    if (when == USEC_NEVER || when == 0) {
        return STR_NONE;
    }
    if (when - now < SECONDS(1)) {
        return STR("now");
    }
    struct civil at = civil_from_sec(when / SECONDS(1));
    struct str length = humantime_span(when - now, out);
    if (when - now < DAYS(6)) {
        return arena_printf(out, "in " STR_FMT " (%s %02d:%02d:%02d UTC)", STR_ARG(length),
                            days[at.weekday], at.hour, at.minute, at.second);
    }
    return arena_printf(out, "in " STR_FMT " (%s %s %d %lld, %02d:%02d UTC)", STR_ARG(length),
                        days[at.weekday], months[at.month - 1], at.day, (long long)at.year, at.hour,
                        at.minute);
}
