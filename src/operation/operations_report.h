/*
 * operations_report: NodeMaintenances as people see them: how each stands, its waves, its machines
 * with what they wait for, what failed with the end of its output, and when windows open.
 *
 * Plain data and pure printers, for `drydock status`, `drydock explain nodemaintenance`, the
 * dashboard and scripts alike. Texts live in the arena that it was made in.
 */
#pragma once

#include "base/arena.h"
#include "format/json_writer.h"
#include "operation/operations.h"
#include "operation/window_outlook.h"

#define OPERATIONS_REPORT_SHOWN 20u /* machines of one kind in the text; -o wide has all */
#define OPERATIONS_REPORT_COLUMNS 80u

enum operations_report_state {
    REPORT_MACHINE_FAILED, /* all attempts have; the worst come first */
    REPORT_MACHINE_VISIT,
    REPORT_MACHINE_BACKOFF,     /* has failed, and is tried again */
    REPORT_MACHINE_UNREACHABLE, /* not Ready, or being deleted */
    REPORT_MACHINE_HELD,        /* by a label */
    REPORT_MACHINE_PENDING,
    REPORT_MACHINE_DONE,
    REPORT_MACHINE_SKIPPED, /* there was nothing to do */
    REPORT_MACHINE_STATES,
};

struct operations_report_machine {
    struct str name;
    enum operations_report_state state;
    uint32_t wave;        /* its place among the waves */
    struct str phase;     /* of its visit; empty = there is none */
    struct str operation; /* that is under way, or that failed; may be empty */
    usec_t since;         /* wall: of the phase, or of the end; 0 = unknown */
    struct str waits;     /* for what; empty = for nothing */
    usec_t next;          /* wall: when that could change by itself; USEC_NEVER */
    uint32_t attempts;    /* of a failure, as those below */
    struct str reason;
    struct str message; /* the end of its output */
};

enum operations_report_wave_state { WAVE_DONE, WAVE_NOW, WAVE_SOAKING, WAVE_APPROVAL, WAVE_COMING };

struct operations_report_wave {
    struct str name;
    enum operations_report_wave_state state;
    uint32_t machines;
    uint32_t done;
    uint32_t failed;
    uint32_t active;
    usec_t soak; /* 0 = none */
    usec_t soak_until;
    bool manual;
};

struct operations_report_operation {
    struct str name;
    struct str type;
    struct str version;
    struct str revision;
    usec_t tick;
    usec_t next_tick; /* USEC_NEVER: none is known */
    uint32_t succeeded;
    uint32_t failed;
};

struct operations_report_maintenance {
    struct str name;
    struct str phase;
    struct str reason;
    struct str message; /* what it waits for */
    struct str revision;
    int32_t priority;
    bool limited; /* it has a window */
    bool open;
    usec_t open_until;              /* USEC_NEVER: it does not close, or is not open */
    usec_t next;                    /* wall: the next opening or tick; USEC_NEVER */
    const struct interval *opening; /* openings that come */
    uint32_t opening_n;
    uint32_t counts[REPORT_MACHINE_STATES];
    uint32_t selected;
    struct operations_report_operation *operations;
    uint32_t operation_n;
    struct operations_report_wave *waves; /* none: one with everybody */
    uint32_t wave_n;
    struct operations_report_machine *machines; /* by name */
    uint32_t machine_n;
};

/* A MaintenanceWindow. */
struct operations_report_window {
    struct str name;
    struct str zone;
    bool freeze;
    struct str problem; /* why it does not open; empty = nothing is wrong */
    bool open;
    usec_t open_until;
    const struct interval *opening;
    uint32_t opening_n;
};

struct operations_report {
    usec_t now;       /* wall */
    uint32_t columns; /* of the text; 0 = OPERATIONS_REPORT_COLUMNS */
    bool one;         /* it is about one NodeMaintenance */
    bool known;       /* false: the controller does not act now, and little is known */
    struct operations_report_maintenance *maintenances; /* by name */
    uint32_t maintenance_n;
    struct operations_report_window *windows; /* by name */
    uint32_t window_n;
};

/* False: the cluster has no NodeMaintenances installed. */
bool operations_report(struct operations *o, struct arena *out, struct operations_report *ret);
/* Counts up whenever a report may be another one. */
uint64_t operations_report_version(const struct operations *o);
/* Leaves one NodeMaintenance. False: there is no such. */
bool operations_report_only(struct operations_report *r, struct str name);
/* NULL: the node is none of its machines. */
const struct operations_report_machine *
operations_report_machine(const struct operations_report_maintenance *m, struct str name);
/* One sentence: "Draining for 4m, operation upgrade; waits: 2 pods to go". */
struct str operations_report_words(const struct operations_report_machine *machine, usec_t now,
                                   struct arena *out);

struct str operations_report_state_name(enum operations_report_state state);

enum operations_report_form {
    OPERATIONS_REPORT_BRIEF, /* of machines only those that are visited or have failed, the first */
    OPERATIONS_REPORT_WHOLE,
};
void operations_report_print_json(const struct operations_report *r,
                                  enum operations_report_form form, struct json_writer *w);
void operations_report_print_text(const struct operations_report *r, bool wide, struct buf *out);
