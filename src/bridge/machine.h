/*
 * machine: what decisions use of a Cluster API Machine, v1beta1 and v1beta2 alike.
 *
 * The paths that count are the same in both versions. Of managedFields only one thing is kept: who
 * owns the label `maintenance`.
 */
#pragma once

#include "kube/store.h"

#define MACHINE_TEXT_MAX 2048u /* of a text that is kept; longer is not ours */

enum machine_request {
    MACHINE_REQUEST_NONE, /* no label, or another value: as without */
    MACHINE_REQUEST_REQUESTED,
    MACHINE_REQUEST_APPROVED,
};

struct machine {
    struct str namespace;
    struct str name;
    struct str uid;
    struct str cluster;     /* spec.clusterName */
    struct str node;        /* status.nodeRef.name; empty = none yet */
    struct str provider_id; /* spec.providerID */
    struct str infra_kind;  /* spec.infrastructureRef, whom a BareMetalHost names as its consumer */
    struct str infra_name;
    bool enabled;
    bool deleting;
    bool paused; /* by its own annotation */
    bool control_plane;
    bool unhealthy;               /* Cluster API does not find its Node healthy */
    bool updating;                /* an in-place update is under way, or about to be */
    enum machine_request request; /* the label `maintenance` */
    bool request_templated;       /* the label belongs to a template: whoever applies it wins */
    bool hook;
    struct str hook_value;
    struct str released; /* our annotations (kinds/keys.h); `.p` is NULL where there is none */
    struct str granted;
    struct str status;
    struct str power;
    struct str power_mode;
    bool approved_by_annotation;
    bool skip;       /* skip-remediation is there, */
    bool skip_empty; /* with the empty value that we would write */
    bool skip_ours;
    usec_t deleted_at;       /* wall; deletionTimestamp; 0 = not being deleted */
    usec_t hooks_wait_since; /* wall: Cluster API waits for pre-drain hooks since; 0 = unknown */
    /* Its own annotation, which wins over the flag; USEC_NEVER = it says 0: without a limit; 0 =
     * there is none, or one that cannot be read. */
    usec_t hold_max;
    struct str labels; /* packed (label_pack.h); empty unless machine_has_request */
};

/* Its Node is to be asked for something. Only then its labels are needed, for drain rules. */
bool machine_has_request(const struct machine *m);

/* Its ctx is not used. Items are named "namespace/name". */
extern const struct store_kind machine_kind;
