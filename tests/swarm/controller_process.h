/*
 * controller_process: one controller as an operating system sees it: started, crashed, frozen, cut
 * off, stopped in order.
 *
 * Each start is a new incarnation with an identity of its own; its clock and its network stay.
 */
#pragma once

#include "cmd/request_parts.h"
#include "base/mutation.h"
#include "profile/controller.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/sim/outbound.h"
#include "tests/swarm/check_requests.h"
#include "tests/swarm/check_basic.h"
#include "tests/swarm/check_service.h"
#include "tests/swarm/api_tap.h"

struct process {
    uint32_t index;
    uint32_t incarnation;
    bool elect;
    mutations_t mutations;
    struct virtual_loop *vloop; /* borrowed */
    struct apiserver *server;   /* borrowed */
    struct promise *promise;    /* borrowed */
    struct loop *view;
    uint32_t view_id; /* as the trace names it */
    struct faults faults;
    struct api *upstream;
    struct api_tap tap;
    struct service *service;          /* borrowed; its `on` says whether there is a configuration */
    struct budget *budget;            /* borrowed; its `on` says whether it serves requests */
    struct request_parts parts;       /* if it does */
    struct inbox *inbox;              /* borrowed */
    struct outbound *post;            /* the sandbox's */
    struct outbound_tap outbound_tap; /* what the controller is given */
    uint32_t term;                    /* counts its times as leader */
    uint32_t blueprint;               /* in force; SERVICE_BLUEPRINTS: none */
    usec_t blueprint_since;
    uint64_t blueprint_count;
    struct controller *controller; /* NULL while it does not run */
    bool stopped;                  /* the orderly end has come */
    usec_t start_at;               /* when something will start it again; USEC_NEVER: nothing */
    usec_t thaw_at;
    usec_t late_at;   /* when the write that is on its way for long arrives; USEC_NEVER: none is */
    usec_t late_span; /* how long one will take */
    char late_agent[64];
    usec_t join_at;      /* when its network is back */
    struct map versions; /* node name → struct seen *: never goes back */
    struct arena arena;  /* of this incarnation */
    char identity[64];
};

void process_init(struct process *p, uint32_t index, struct virtual_loop *vloop,
                  struct apiserver *server, struct promise *promise);
void process_done(struct process *p);

void process_start(struct process *p);
void process_crash(struct process *p);
bool process_runs(const struct process *p);
bool process_frozen(const struct process *p);

/* Gives it the text of a configuration: that of a blueprint, or (SERVICE_BLUEPRINTS) one that
 * cannot be read. It runs. */
void process_configure(struct process *p, uint32_t blueprint, uint64_t count);
/* The same where requests share their limits with a profile, or with none. */
void process_configure_asking(struct process *p, uint64_t count);
void process_sender(const struct process *p, struct service_sender *ret);

/* After an event: buries what has ended. */
void process_bury(struct process *p);
/* What must hold inside; `deep` looks at each node. It runs. */
void process_check(struct process *p, bool deep);
