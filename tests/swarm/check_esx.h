/*
 * check_esx: the promises about nodes on ESX hosts (docs/contract/integrations.md), as they can be
 * seen at the server's commits, at the calls that arrive at the vCenter, and at the end.
 *
 * A Node is written by compare-and-swap, so what it says at a commit is what its writer knew, and
 * is judged without slack. What a writer knows of the vCenter is as old as its last reading, and
 * what it knows of other objects may be older; both have their slack.
 */
#pragma once

#include "sandbox/apiserver/apiserver.h"
#include "tests/swarm/check_basic.h"
#include "tests/swarm/sim_vcenter.h"

struct check_esx {
    struct check_basic *basic;   /* borrowed */
    struct apiserver *server;    /* borrowed */
    struct sim_vcenter *vcenter; /* borrowed */
    bool on;
    bool whole_host; /* a host's nodes go when all of them are approved */
    uint32_t limit;  /* of nodes that may be away; 0 = there is none */
    usec_t now;      /* true time */
    struct check_esx_node {
        usec_t unapproved_at; /* when people last took the approval back; 0 = never */
        usec_t uncordoned_at; /* and lifted a cordon */
    } nodes[SIM_VCENTER_VMS_MAX];
};

/* A write to a Node was committed, by a controller or by somebody else. */
void check_esx_on_commit(struct check_esx *c, bool controller,
                         const struct apiserver_commit *commit, usec_t now);
/* A call about a machine arrives at the vCenter. */
void check_esx_on_power(struct check_esx *c, uint32_t vm, enum sim_vcenter_power what, usec_t now);

/* Nothing is wrong any more, and this host is in maintenance for long: its machines are gone. */
void check_esx_host_is_free(struct check_esx *c, uint32_t host);
/* All hosts are back for long: so are all nodes. */
void check_esx_at_end(struct check_esx *c);
