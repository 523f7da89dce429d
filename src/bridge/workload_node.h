/*
 * workload_node: what decisions use of a workload cluster's Node: a few labels and annotations.
 *
 * It is read from metadata alone. Nothing of it is ever used to find an object of the management
 * cluster; the two annotations of Cluster API serve as a cross-check.
 */
#pragma once

#include "kube/store.h"

#define WORKLOAD_NODE_TEXT_MAX 512u /* of an annotation: names and UIDs; longer is cut off */

struct workload_node {
    struct str uid;
    bool managed;     /* the engine's state label is there, whatever its value */
    bool operational; /* and says that the node is in service */
    bool deleting;
    bool machine_deleted; /* labels, with the value "true" */
    bool machine_maintenance;
    bool approve_deletion;
    bool approve_maintenance;
    /* Annotations; `.p` is NULL where there is none. */
    struct str deletion_request;
    struct str maintenance_request;
    struct str deletion_approved_for;
    struct str maintenance_approved_for;
    struct str machine; /* Cluster API's */
    struct str namespace;
    uint64_t drain_rules; /* workload_node_hash of KEY_DRAIN_RULES; 0 = there is none */
};

/* Its ctx is not used. */
extern const struct store_kind workload_node_kind;

/* A number that stands for an annotation's text: others may write long ones, and they are only
 * compared. 0 for one that is not there (`.p` NULL), and for no other. */
uint64_t workload_node_hash(struct str text);
/* It carries something that we put there. */
bool workload_node_marked(const struct workload_node *p);
