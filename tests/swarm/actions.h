/*
 * actions: a run's state, and what the scenario's actions do to it.
 */
#pragma once

#include "base/rng.h"
#include "sandbox/world/world.h"
#include "tests/swarm/check_esx.h"
#include "tests/swarm/controller_process.h"
#include "tests/swarm/scenario.h"

#define SIM_RUN_WORK_MAX 64u
#define SIM_RUN_ACTORS_MAX 12u
#define SIM_RUN_JOB_PODS_MAX 64u

/* What those do who look after NodeMaintenances, and what becomes of the pods of Jobs. */
struct operations_story {
    uint32_t versions[RANDOM_MAINTENANCES_MAX]; /* of what they run */
    usec_t create_at[RANDOM_MAINTENANCES_MAX];  /* when one that was deleted is made again */
    usec_t unsuspend_at[RANDOM_MAINTENANCES_MAX];
    usec_t resume_at; /* when somebody lets all that failed be tried again */
    struct job_pod {
        char name[80];
        bool lost;
        usec_t at; /* when it gets its fate, or is lost */
    } pods[SIM_RUN_JOB_PODS_MAX];
    uint32_t pod_n;
};

struct sim_run {
    const struct scenario *scenario; /* borrowed */
    struct rng rng;
    struct virtual_loop *vloop;
    struct apiserver *server;
    struct world *world;
    struct controller_process processes[SCENARIO_PROCESSES_MAX];
    struct check_basic basic;
    struct check_service service;
    struct check_requests requests; /* its `on` says whether the run is about requests */
    struct sim_vcenter vcenter;     /* if the run is about ESX hosts, */
    struct check_esx esx;           /* as its `on` says */
    usec_t vcenter_up_at;
    usec_t hosts_back_at;               /* in the end */
    struct check_operations operations; /* its `on` says whether there are NodeMaintenances */
    struct operations_story story;
    struct inbox inbox;
    usec_t notify_fail_end;
    usec_t pdb_block_end;
    usec_t prometheus_no_end;
    usec_t pause_all_end;
    struct rng rules_rng; /* its own: runs without rules are what they were before there were any */
    usec_t rules_at;      /* when the rules of a node change; USEC_NEVER: they do not */
    uint32_t file;        /* the configuration on disk: a valid one, or a broken one */
    uint32_t last_good_file; /* the last configuration that was there */
    uint64_t file_version;   /* counts the changes */
    struct node_work {
        char node[64];
        usec_t at;
    } work[SIM_RUN_WORK_MAX];
    uint32_t work_n;
    usec_t work_end; /* nothing more is begun */
    struct actor {
        char name[16]; /* of its request */
        enum actor_behavior behavior;
        bool gave_back; /* its approval back */
        usec_t at;      /* when it looks at its request; USEC_NEVER: when that changes */
    } actors[SIM_RUN_ACTORS_MAX];
    uint32_t actor_n;
    usec_t limits_end[RANDOM_LIMITS_MAX]; /* when a limit is as it was */
    bool calm;                            /* everybody finishes what they have */
    struct arena tmp;                     /* one event */
    uint32_t next_action;
    usec_t faults_end;
    usec_t server_up_at;
    uint64_t hash;
    uint64_t events;
    usec_t event_rate_since; /* the second that `event_rate` counts the events of */
    uint32_t event_rate;
    uint32_t last_view; /* the view of the event that was last: 0 is the world's */
    bool verbose;
};

/* Workloads and budgets, so that the server and the world are not empty but for nodes. */
void sim_run_add_workloads(struct sim_run *t);

/* A request of the administrator; its answer's status. */
int sim_run_admin_request(struct sim_run *t, const char *method, struct str path, struct str type,
                          struct str body);
/* The node that an action means; empty when there is none at all. */
struct str sim_run_pick_node(struct sim_run *t, const struct action *action);
/* Sets or (value STR_NONE) removes one label or annotation; `map` names which. */
void sim_run_set_node_meta(struct sim_run *t, struct str node, const char *map, struct str key,
                           struct str value);

/* ── actions_service.c: what concerns a configuration ── */
void sim_run_service_action(struct sim_run *t, const struct action *action);
/* The write of a controller that is gone arrives. */
void sim_run_deliver_late_write(struct sim_run *t, struct controller_process *p);
/* While it is on its way, more become eager than before. */
void sim_run_approve_all(struct sim_run *t);
/* Budgets let no pod go, or one at a time again. */
void sim_run_block_pdbs(struct sim_run *t, bool hold);
/* Everything is paused by the Lease's annotation, or is not any more. */
void sim_run_pause_all(struct sim_run *t, bool pause);
usec_t sim_run_next_work(const struct sim_run *t);
void sim_run_finish_work_due(struct sim_run *t, usec_t now);
/* People approve everything, and lift what they cordoned. */
void sim_run_recover_service(struct sim_run *t);
/* The profiles and needs that nodes begin with. */
void sim_run_label_nodes(struct sim_run *t);
/* Somebody works on a node that is in maintenance, and will be done at some time. */
void sim_run_start_work(struct sim_run *t, struct str node);
/* Starts what is not running, with the configuration that is on disk. */
void sim_run_start_process(struct sim_run *t, struct controller_process *p);
/* Gives it what is on disk, unless it has that already. */
void sim_run_load_config(struct sim_run *t, struct controller_process *p);
/* A third party takes a message in, or does not. */
void sim_run_on_message(void *ctx, const struct inbox_message *message,
                        struct inbox_answer *answer);

void sim_run_cordon(struct sim_run *t, struct str node, bool cordon);

/* ── actions_drain_rules.c: drain rules of nodes ── */
/* In two of three runs: pods that rules are about, and nodes with rules. */
void sim_run_init_drain_rules(struct sim_run *t);
void sim_run_change_drain_rules(struct sim_run *t);
/* All rules are such that drains end. */
void sim_run_recover_drain_rules(struct sim_run *t);

/* ── actions_esx.c: what concerns ESX hosts ── */
void sim_run_init_esx(struct sim_run *t);
void sim_run_esx_action(struct sim_run *t, const struct action *action);
usec_t sim_run_next_esx_event(const struct sim_run *t);
void sim_run_esx_due(struct sim_run *t, usec_t now);
void sim_run_recover_esx(struct sim_run *t);

/* ── actions_requests.c: what concerns requests and limits ── */
void sim_run_install_crds(struct sim_run *t);
void sim_run_init_requests(struct sim_run *t);
void sim_run_request_action(struct sim_run *t, const struct action *action);
void sim_run_crash_at_write(struct sim_run *t, const struct action *action);
/* A request was written: its actor looks at it some time. */
void sim_run_wake_actor(struct sim_run *t, const struct apiserver_commit *commit);
usec_t sim_run_next_request_event(const struct sim_run *t);
void sim_run_requests_due(struct sim_run *t, usec_t now);
/* Limits are as they were, nodes need nothing, and all actors finish. */
void sim_run_recover_requests(struct sim_run *t);

/* ── actions_requests.c and actions_operations.c ── */
/* The kinds, the limits that are drawn, and nodes that they select. */
void sim_run_install_limits(struct sim_run *t);
/* What a pause or a reduction has changed is as it was; the limit may be gone. */
void sim_run_restore_limit(struct sim_run *t, uint32_t i);

/* ── actions_operations.c: what concerns NodeMaintenances ── */
void sim_run_init_operations(struct sim_run *t);
void sim_run_maintenance_action(struct sim_run *t, const struct action *action);
/* The pod of a Job was written: one that is new gets its fate. */
void sim_run_on_job_pod(struct sim_run *t, const struct apiserver_commit *commit);
usec_t sim_run_next_operation_event(const struct sim_run *t);
void sim_run_operations_due(struct sim_run *t, usec_t now);
/* Nothing is suspended or deleted any more, all Jobs succeed, and people resume what failed. */
void sim_run_recover_operations(struct sim_run *t);

/* What runs again and again is suspended, and nobody resumes anything any more. */
void sim_run_end_operations(struct sim_run *t);

/* When the next action begins or the next one ends; USEC_NEVER: none. */
usec_t sim_run_next_action(const struct sim_run *t);
/* Does and ends what is due now. */
void sim_run_actions_due(struct sim_run *t);
/* Ends everything that is wrong: thaws, joins, starts, clears the sky. */
void sim_run_recover(struct sim_run *t);
