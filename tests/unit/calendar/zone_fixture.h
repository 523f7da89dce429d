/*
 * zone_fixture: the zones of tests/data/zone: Berlin as usual; Lord_Howe moves by half an hour, in
 * the south; Apia left out a whole day; Casablanca interrupts its time for Ramadan; Nuuk's rule
 * counts hours from the day after; Kolkata does nothing.
 */
#pragma once

#include "base/timestamp.h"
#include "calendar/zone.h"
#include "tests/check.h"

static const char *const zones_names[] = { "Berlin",     "Lord_Howe", "Apia",
                                           "Casablanca", "Nuuk",      "Kolkata" };

static inline const struct zone *zones_load(const char *name, struct arena *a)
{
    const struct zone *z = NULL;
    struct err err = { 0 };
    if (zone_parse(check_data(arena_printf(a, "zone/%s", name).p), a, &z, &err) < 0) {
        check_fail(__FILE__, __LINE__, "%s: %s", name, err.msg);
    }
    return z;
}

static inline int64_t zones_civil_seconds(int year, int month, int day, int hour, int minute)
{
    struct civil c = { .year = year, .month = month, .day = day, .hour = hour, .minute = minute };
    return civil_to_sec(&c);
}
