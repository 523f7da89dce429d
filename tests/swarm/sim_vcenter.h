/*
 * sim_vcenter: a vCenter with some hosts and one virtual machine for each node, as one of the third
 * parties of a run. Its systems take their time to end when they are asked to, some do not listen,
 * and some have no tools.
 *
 * What is in it is the truth, which the checks (check_esx.h) compare with what controllers say.
 */
#pragma once

#include "base/buf.h"
#include "base/rng.h"
#include "sandbox/sim/outbound.h"
#include "sandbox/sim/virtual_loop.h"

#define SIM_VCENTER_HOSTS 2u
#define SIM_VCENTER_VMS_MAX 16u /* no fleet of its story is larger */

enum sim_vcenter_power {
    SIM_VCENTER_ON,
    SIM_VCENTER_OFF,
    SIM_VCENTER_SHUTDOWN, /* its system is asked to end */
};

struct sim_vcenter {
    struct virtual_loop *vloop; /* borrowed */
    struct rng rng;
    struct sim_vcenter_host {
        bool maintenance;
        usec_t since; /* that it is so */
    } hosts[SIM_VCENTER_HOSTS];
    struct sim_vcenter_vm {
        bool on;
        bool deaf;     /* its system does not end when it is asked to */
        bool no_tools; /* it cannot even be asked */
        usec_t ends;   /* when it will be off; 0 = nobody asked it */
        uint32_t host;
        usec_t moved_at; /* 0 = it never was */
    } vms[SIM_VCENTER_VMS_MAX];
    uint32_t vm_n;
    bool session;
    bool down; /* answers nothing, or with an error */
    /* Power of a machine is about to change, by the call of a client. */
    void (*on_power)(void *ctx, uint32_t vm, enum sim_vcenter_power what);
    void *ctx;
    struct buf text;
};

void sim_vcenter_init(struct sim_vcenter *v, struct virtual_loop *vloop, uint64_t seed,
                      uint32_t vm_n);
void sim_vcenter_done(struct sim_vcenter *v); /* accepts a zeroed one */

/* Systems whose time has come are off. */
void sim_vcenter_settle(struct sim_vcenter *v);
void sim_vcenter_set_maintenance(struct sim_vcenter *v, uint32_t host, bool maintenance);
/* A machine goes on on another host. */
void sim_vcenter_move(struct sim_vcenter *v, uint32_t vm);

/* An inbox_responder; `ctx` is the struct sim_vcenter. */
void sim_vcenter_answer(void *ctx, const struct inbox_message *message, struct inbox_answer *ret);
/* Whether the text of a request changes the power of a machine. */
bool sim_vcenter_is_power_call(struct str body);
