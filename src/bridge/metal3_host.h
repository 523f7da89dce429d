/*
 * metal3_host: what decisions use of a Metal3 BareMetalHost (metal3.io/v1alpha1).
 */
#pragma once

#include "kube/store.h"

/* Of one text that is kept: names and UIDs. A longer one is cut off, and so equals none of ours. */
#define METAL3_HOST_TEXT_MAX 512u

struct metal3_host {
    struct str uid;
    struct str namespace;
    struct str name;
    bool provisioned;         /* status.provisioning.state */
    bool powered_on;          /* status.poweredOn */
    struct str consumer_kind; /* spec.consumerRef; all empty = nobody's */
    struct str consumer_namespace;
    struct str consumer_name;
    bool paused;             /* Metal3's or Cluster API's annotation */
    bool reboot;             /* our annotation is there, */
    struct str reboot_value; /* with this value, */
    struct str owner;        /* for the Machine of this UID; `.p` NULL = it does not say */
};

/* Its ctx is not used. Items are named "namespace/name". */
extern const struct store_kind metal3_host_kind;
