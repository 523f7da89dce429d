/*
 * maintenance_window: reads a MaintenanceWindow, and the window that a NodeMaintenance describes
 * itself, into opening hours.
 *
 * Both forms, days with from and to and the list of recurrences, become the same. What the API
 * server cannot judge is judged here: a zone or calendar file that is not there, a rule that is not
 * supported, a window that never opens, as far as one turn's work of opening_next can see. A window
 * with a problem has no hours, so it never opens, and the NodeMaintenance that names it waits.
 */
#pragma once

#include "calendar/ics.h"
#include "calendar/opening_hours.h"
#include "kinds/spec_read.h"
#include "kinds/store_kind.h"

#define WINDOW_RECURRENCES_MAX 256u /* that open, and as many that close; dates count each */
#define WINDOW_EVENTS_MAX 2000u     /* of all calendar files of a window together */
#define WINDOW_REFS_MAX 8u          /* the schema's */
#define WINDOW_MIN_REMAINING MINUTES(15)

/* Where zones and calendar files come from. */
struct window_sources {
    ics_zone_fn find_zone; /* NULL: only UTC is known */
    /* The text of a key of a ConfigMap; NULL: there are none. */
    int (*find_calendar)(void *ctx, struct str config_map, struct str key, struct str *ret,
                         struct err *err);
    void *ctx;
    usec_t now; /* wall clock: from when on it must open */
};

enum window_effect { WINDOW_OPEN, WINDOW_FREEZE };
enum window_at_close { WINDOW_FINISH, WINDOW_STOP };

struct window_hours {
    bool given;              /* days, from and to, or recurrences are there */
    struct str zone_name;    /* "UTC" for none */
    const struct zone *zone; /* borrowed: from the sources; NULL is UTC */
    struct opening_hours hours;
    usec_t min_remaining;
    enum window_at_close at_close;
};

struct maintenance_window {
    struct spec_meta meta;
    enum window_effect effect;
    struct window_hours window;
    struct spec_problem problem;
    struct str status; /* JSON */
};

/* Reads the fields that a MaintenanceWindow and the window of a NodeMaintenance share. */
void window_hours_read(const struct spec_node *at, const struct window_sources *sources,
                       struct window_hours *ret);
void maintenance_window_read(const struct jval *object, const struct window_sources *sources,
                             struct arena *out, struct maintenance_window *ret);
/* For kube/store; its context is a struct window_sources. */
extern const struct store_kind maintenance_window_kind;
