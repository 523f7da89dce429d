/*
 * node_maintenance: reads a NodeMaintenance: what is done on which machines, when, and how
 * carefully.
 *
 * All defaults are applied here, short forms become the long ones, and waves always end with one
 * that has everybody. An object with a problem is not accepted: nothing of it may be acted upon.
 * References (windows, series, templates, other objects) are names here; whoever decides looks them
 * up.
 */
#pragma once

#include "kinds/keys.h"
#include "kinds/maintenance_gate.h"
#include "kinds/node_operation.h"

#define MAINTENANCE_NAME_MAX 52u  /* labels of Jobs hold it, and more */
#define MAINTENANCE_WAVES_MAX 10u /* the schema's, as those below; one more is implied */
#define MAINTENANCE_DEPENDS_MAX 16u
#define MAINTENANCE_SILENCES_MAX 8u
#define MAINTENANCE_NOTIFY_MAX 8u
#define MAINTENANCE_VISITS_MAX 256u /* the ledger in the status; also the most at once */
#define MAINTENANCE_HANDLED_MAX 32u
#define MAINTENANCE_REST "rest" /* name of the implied wave */
#define MAINTENANCE_DRAIN_TIMEOUT MINUTES(15)

enum maintenance_order {
    ORDER_AUTO, /* by zone where nodes have one, else at random */
    ORDER_RANDOM,
    ORDER_NAME,
    ORDER_AGE,
    ORDER_ZONE,
    ORDER_LABEL,
};
enum control_plane_order { CONTROL_PLANE_FIRST, CONTROL_PLANE_LAST, CONTROL_PLANE_IGNORE };
enum maintenance_cordon { CORDON_AUTO, CORDON_ALWAYS, CORDON_NEVER };
enum drain_by { DRAIN_BY_AUTO, DRAIN_BY_VISIT, DRAIN_BY_LIMIT, DRAIN_BY_NOBODY };
enum drain_on_timeout { DRAIN_FAIL, DRAIN_PROCEED, DRAIN_FORCE };
enum on_node_failure { NODE_FAILURE_AUTO, NODE_FAILURE_KEEP, NODE_FAILURE_UNCORDON };

enum notify_event {
    NOTIFY_VISIT_STARTED = 1 << 0,
    NOTIFY_VISIT_SUCCEEDED = 1 << 1,
    NOTIFY_VISIT_FAILED = 1 << 2,
    NOTIFY_PAUSED = 1 << 3,
    NOTIFY_COMPLETE = 1 << 4,
};

struct maintenance_when {
    bool given; /* false: always, except during a freeze */
    struct spec_texts refs;
    struct window_hours own; /* `given` tells whether there are any */
    bool has_override;
    usec_t override_until;
    struct str override_reason;
};

struct maintenance_where {
    struct str ref;         /* of a NodeSeries; empty: `own` counts */
    struct series_spec own; /* not given: all nodes */
};

struct maintenance_dependency {
    struct str name;
    struct str operation; /* empty: all */
    bool same_node;       /* scope Node; otherwise Series */
};

struct maintenance_wave {
    struct str name;
    bool has_selector; /* otherwise `size` counts */
    struct selector selector;
    struct spec_share size;
    usec_t soak;
    bool manual;
    bool implied;
    struct maintenance_gates gates;
};

struct maintenance_rollout {
    struct spec_share max_concurrent;
    struct str spread_key; /* empty: none */
    uint32_t spread_max;
    enum maintenance_order order;
    struct str order_label;
    enum control_plane_order control_plane;
    struct maintenance_wave *waves;
    uint32_t wave_n; /* at least 1; the last has everybody */
    usec_t min_ready;
    usec_t pace;
    struct maintenance_gates before;
    struct maintenance_gates after;
    struct str exclusive_group;
};

struct maintenance_drain {
    bool given;
    bool enabled;
    usec_t grace; /* -1: the pod's own */
    usec_t timeout;
    struct str pod_selector; /* as text; empty: all pods */
    bool ignore_daemon_sets;
    bool delete_empty_dir;
    bool delete_unmanaged;
    bool wait_for_detach;
    enum drain_on_timeout on_timeout;
};

struct maintenance_silence {
    struct str url;
    struct spec_texts matchers;
    struct str secret;
    struct str secret_key;
    usec_t max_duration;
};

struct maintenance_disruption {
    enum maintenance_cordon cordon;
    struct maintenance_drain drain;
    enum drain_by drain_by;
    bool prefer_no_schedule;
    bool leave_load_balancers;
    usec_t load_balancer_wait;
    struct str labels_before; /* JSON; "{}" for none */
    struct str labels_after;
    const struct maintenance_silence *silences;
    uint32_t silence_n;
};

struct maintenance_failure {
    uint32_t retries;
    usec_t backoff_initial;
    uint32_t backoff_factor;
    usec_t backoff_max;
    struct spec_share pause_after;
    bool go_on; /* onLimit Continue */
    enum on_node_failure on_node;
    usec_t failed_ttl; /* 0: never */
};

struct maintenance_notify {
    struct str secret;
    struct str key;
    bool slack;
    unsigned events; /* enum notify_event */
};

/* Annotations of people. */
struct maintenance_asks {
    struct str approve;
    struct str resume;
    struct str rerun;
    struct str run;
    bool abandon;
};

/* What of the status decisions are based on. */
struct maintenance_place {
    struct str machine;
    struct str uid;
    struct str request;
    usec_t since;
    bool pending;
    struct str gate; /* why its visit fails before it begins; empty: it does not */
};

struct maintenance_wave_record {
    bool given;
    uint32_t index;
    struct str revision;
    usec_t tick;
    usec_t complete_at;
    usec_t soak_until;
    uint32_t restarts;
    bool trouble; /* what restarted it lasts */
    struct str approved_by;
};

/* The gate at which everything waits. */
struct maintenance_gate_record {
    struct str place; /* "rollout.gates.beforeNode[0].pods" */
    struct str revision;
    usec_t since;     /* 0: there is none */
    usec_t next;      /* when it is asked again; 0 or USEC_NEVER: when something changes */
    usec_t timed_out; /* when its time was over, and everything paused; 0: it was not */
    struct str message;
};

struct maintenance_operation_record {
    struct str name;
    struct str revision;
    usec_t last_tick;
};

#define MAINTENANCE_DURATIONS_MAX 20u

struct maintenance_record {
    const struct maintenance_place *places;
    uint32_t place_n;
    struct maintenance_wave_record wave;
    struct maintenance_gate_record gate;
    const struct maintenance_operation_record *operations;
    uint32_t operation_n;
    usec_t durations[MAINTENANCE_DURATIONS_MAX]; /* of the last visits, the oldest first */
    uint32_t duration_n;
    struct spec_texts approved;
    struct str resumed;
    struct str reran;
    struct str ran;
    struct str json; /* the whole status */
};

struct node_maintenance {
    struct spec_meta meta;
    bool held;                /* label */
    bool finalizer;           /* ours is there, */
    uint32_t finalizer_index; /* at this place */
    uint32_t finalizer_n;     /* all of them */
    struct maintenance_asks asks;
    bool suspend;
    bool dry_run;
    bool abort_on_delete;
    int32_t priority;
    struct maintenance_when window;
    struct maintenance_where series;
    const struct maintenance_dependency *depends;
    uint32_t depend_n;
    struct maintenance_rollout rollout;
    bool unbudgeted;
    struct str profile;
    struct maintenance_disruption disruption;
    struct maintenance_failure failure;
    const struct maintenance_notify *notify;
    uint32_t notify_n;
    uint32_t keep_succeeded;
    uint32_t keep_failed;
    const struct node_operation *operations;
    uint32_t operation_n;
    struct maintenance_record record;
    struct spec_problem problem;
};

void node_maintenance_read(const struct jval *object, const struct window_sources *sources,
                           struct arena *out, struct node_maintenance *ret);
/* For kube/store; its context is a struct window_sources. */
extern const struct store_kind node_maintenance_kind;

/* Whose the label is that disruption.nodeLabels may not set; NULL: it may. */
const char *node_maintenance_taken_label(struct str key);

/* Whether a visit of this object alone would drain: its author said so, or it may reboot. */
bool node_maintenance_drains(const struct node_maintenance *m);
