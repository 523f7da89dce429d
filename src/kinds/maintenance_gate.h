/*
 * maintenance_gate: reads the gates of a NodeMaintenance: conditions that a visit or a wave waits
 * for.
 *
 * Gates that are answered from what the controller knows are read whole; of those that ask others
 * the fields stay JSON, for whoever asks.
 */
#pragma once

#include "kinds/spec_read.h"

#define GATES_MAX 16u /* the schema's, of one list */
#define GATE_NAMESPACES_MAX 64u
#define GATE_VALUES_MAX 32u
#define GATE_TIMEOUT MINUTES(10)
#define GATE_INTERVAL SECONDS(10)
#define GATE_INTERVAL_MIN SECONDS(5)
#define GATE_JOB_INTERVAL SECONDS(60) /* default and minimum: each look is a Job */

enum gate_kind {
    GATE_NODES,
    GATE_PODS,
    GATE_BLOCKING_PODS,
    GATE_ALERTS,
    GATE_QUERY,
    GATE_RESOURCE,
    GATE_JOB,
};
#define GATE_KINDS 7u

enum gate_on_timeout { GATE_FAIL, GATE_PAUSE, GATE_SKIP };

struct maintenance_gate {
    enum gate_kind kind;
    usec_t timeout;
    usec_t interval;
    enum gate_on_timeout on_timeout;
    struct spec_share max_not_ready; /* GATE_NODES; not given: no limit */
    struct spec_share max_cordoned;
    bool has_selector; /* GATE_NODES, GATE_PODS, GATE_BLOCKING_PODS, GATE_RESOURCE */
    struct selector selector;
    struct spec_texts namespaces; /* of pods; none: all */
    uint32_t min_ready_percent;   /* GATE_PODS */
    struct str url;               /* GATE_ALERTS, GATE_QUERY */
    struct str fields;            /* JSON of the kind's object */
};

struct maintenance_gates {
    const struct maintenance_gate *items;
    uint32_t n;
};

/* The field of the spec: "blockingPods". */
const char *gate_kind_name(enum gate_kind kind);

/* `of_wave`: no gate may reach a host. */
struct maintenance_gates maintenance_gates_read(const struct spec_node *at, const char *key,
                                                bool of_wave);
