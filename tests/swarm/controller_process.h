/*
 * controller_process: one controller as an operating system sees it: started, crashed, frozen, cut
 * off, stopped in order.
 *
 * Each start is a new incarnation with an identity of its own; its clock and its network stay.
 */
#pragma once

#include "base/mutation.h"
#include "integration/integration.h"
#include "operation/operations.h"
#include "profile/controller.h"
#include "request/requests_part.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/sim/outbound.h"
#include "tests/swarm/check_operations.h"
#include "tests/swarm/check_requests.h"
#include "tests/swarm/check_basic.h"
#include "tests/swarm/check_esx.h"
#include "tests/swarm/check_service.h"
#include "tests/swarm/api_tap.h"

struct controller_process {
    uint32_t index;
    uint32_t incarnation;
    bool elect;
    mutations_t mutations;
    struct virtual_loop *vloop; /* borrowed */
    struct apiserver *server;   /* borrowed */
    struct check_basic *basic;  /* borrowed */
    struct loop *view;
    uint32_t view_id; /* as the trace names it */
    struct faults faults;
    struct api *upstream;
    struct api_tap tap;
    struct check_service *service;   /* borrowed; its `on` says whether there is a configuration */
    struct check_requests *requests; /* borrowed; its `on` says whether it serves requests */
    struct check_operations
        *checked; /* borrowed; its `on` says whether there are NodeMaintenances */
    struct requests_part requests_part; /* if it does */
    struct check_esx *esx;              /* borrowed; its `on` says whether nodes are on ESX hosts */
    struct integrations integrations;   /* if they are */
    struct operations *operations;      /* if there are NodeMaintenances */
    struct inbox *inbox;                /* borrowed */
    struct outbound *outbound;          /* the sandbox's */
    struct outbound_tap outbound_tap;   /* what the controller is given */
    uint32_t term;                      /* counts its times as leader */
    uint32_t config;                    /* in force; CHECK_SERVICE_CONFIGS: none */
    usec_t config_since;
    uint64_t config_version;
    struct core *core;
    struct controller *controller; /* NULL while it does not run */
    bool stopped;                  /* the orderly end has come */
    usec_t start_at;               /* when something will start it again; USEC_NEVER: nothing */
    usec_t unfreeze_at;
    usec_t late_at; /* when the write that is on its way for long arrives; USEC_NEVER: none is */
    usec_t late_duration; /* how long one will take */
    char late_agent[64];
    usec_t reconnect_at; /* when its network is back */
    struct map versions; /* node name → struct seen_version *: never goes back */
    struct arena arena;  /* of this incarnation */
    char identity[64];
};

void controller_process_init(struct controller_process *p, uint32_t index,
                             struct virtual_loop *vloop, struct apiserver *server,
                             struct check_basic *basic);
void controller_process_done(struct controller_process *p);

void controller_process_start(struct controller_process *p);
void controller_process_crash(struct controller_process *p);
bool controller_process_runs(const struct controller_process *p);
bool controller_process_frozen(const struct controller_process *p);

/* Gives it the text of a configuration: that of a configuration, or (CHECK_SERVICE_CONFIGS) one
 * that cannot be read. It runs. */
void controller_process_configure(struct controller_process *p, uint32_t config, uint64_t count);
/* The same where requests share their limits with a profile, or with none. */
void controller_process_configure_requests(struct controller_process *p, uint64_t count);
void controller_process_sender(const struct controller_process *p, struct check_sender *ret);

/* After an event: buries what has ended. */
void controller_process_reap(struct controller_process *p);
/* What must hold inside; `deep` looks at each node. It runs. */
void controller_process_check(struct controller_process *p, bool each_node);
