/*
 * actions: a trial's state, and what the plan's deeds do to it.
 */
#pragma once

#include "base/rng.h"
#include "sandbox/world/world.h"
#include "tests/swarm/scenario.h"
#include "tests/swarm/controller_process.h"

#define TRIAL_CHORES_MAX 64u
#define TRIAL_ACTORS_MAX 12u

struct trial {
    const struct plan *plan; /* borrowed */
    struct rng rng;
    struct virtual_loop *vloop;
    struct apiserver *server;
    struct world *world;
    struct process processes[PLAN_PROCESSES_MAX];
    struct promise promise;
    struct service service;
    struct budget budget; /* its `on` says whether the trial is about requests */
    struct inbox inbox;
    usec_t deaf_end;
    usec_t hold_end;
    struct rng rules_rng; /* its own: runs without rules are what they were before there were any */
    usec_t rules_at;      /* when the rules of a node change; USEC_NEVER: they do not */
    uint32_t file;        /* the configuration on disk: a blueprint, or a broken one */
    uint32_t good;        /* the last blueprint that was there */
    uint64_t file_count;  /* counts the changes */
    struct chore {
        char node[64];
        usec_t at;
    } chores[TRIAL_CHORES_MAX];
    uint32_t chore_n;
    usec_t chores_end; /* nothing more is begun */
    struct actor {
        char name[16]; /* of its request */
        enum manner manner;
        bool gave; /* its approval back */
        usec_t at; /* when it looks at its request; USEC_NEVER: when that changes */
    } actors[TRIAL_ACTORS_MAX];
    uint32_t actor_n;
    usec_t limits_end[TERMS_LIMITS_MAX]; /* when a limit is as it was */
    bool calm;                           /* everybody finishes what they have */
    struct arena tmp;                    /* one event */
    uint32_t next_deed;
    usec_t weather_end;
    usec_t server_up_at;
    uint64_t hash;
    uint64_t events;
    usec_t pace_since; /* the second that `pace` counts the events of */
    uint32_t pace;
    uint32_t ran; /* the view of the event that was last: 0 is the world's */
    bool verbose;
};

/* Workloads and budgets, so that the server and the world are not empty but for nodes. */
void trial_populate(struct trial *t);

/* A request of the administrator; its answer's status. */
int trial_ask(struct trial *t, const char *method, struct str path, struct str type,
              struct str body);
/* The node that a deed means; empty when there is none at all. */
struct str trial_pick_node(struct trial *t, const struct deed *deed);
/* Sets or (value STR_NONE) removes one label or annotation; `map` names which. */
void trial_set_meta(struct trial *t, struct str node, const char *map, struct str key,
                    struct str value);

/* ── serving.c: what concerns a configuration ── */
void trial_do_service(struct trial *t, const struct deed *deed);
/* The write of a controller that is gone arrives. */
void trial_deliver(struct trial *t, struct process *p);
/* While it is on its way, more become eager than before. */
void trial_approve(struct trial *t);
/* Budgets let no pod go, or one at a time again. */
void trial_hold_pods(struct trial *t, bool hold);
usec_t trial_next_chore(const struct trial *t);
void trial_do_chores(struct trial *t, usec_t now);
/* People approve everything, and lift what they cordoned. */
void trial_calm_service(struct trial *t);
/* The profiles and needs that nodes begin with. */
void trial_label_nodes(struct trial *t);
/* Somebody works on a node that is in maintenance, and will be done at some time. */
void trial_note_chore(struct trial *t, struct str node);
/* Starts what is not running, with the configuration that is on disk. */
void trial_start(struct trial *t, struct process *p);
/* Gives it what is on disk, unless it has that already. */
void trial_read_file(struct trial *t, struct process *p);
/* A third party takes a message in, or does not. */
void trial_on_message(void *ctx, const struct inbox_message *message, struct inbox_answer *answer);

void trial_cordon(struct trial *t, struct str node, bool cordon);

/* ── ruling.c: rulebooks of nodes ── */
/* In two of three runs: pods that rules are about, and nodes with rules. */
void trial_begin_rules(struct trial *t);
void trial_change_rules(struct trial *t);
/* All rules are such that drains end. */
void trial_calm_rules(struct trial *t);

/* ── asking.c: what concerns requests and limits ── */
void trial_init_asking(struct trial *t);
void trial_do_asking(struct trial *t, const struct deed *deed);
void trial_crash_step(struct trial *t, const struct deed *deed);
/* A request was written: its actor looks at it some time. */
void trial_note_request(struct trial *t, const struct apiserver_commit *commit);
usec_t trial_next_asking(const struct trial *t);
void trial_end_asking(struct trial *t, usec_t now);
/* Limits are as they were, nodes need nothing, and all actors finish. */
void trial_calm_asking(struct trial *t);

/* When the next deed begins or the next one ends; USEC_NEVER: none. */
usec_t trial_next_deed(const struct trial *t);
/* Does and ends what is due now. */
void trial_do_deeds(struct trial *t);
/* Ends everything that is wrong: thaws, joins, starts, clears the sky. */
void trial_calm_down(struct trial *t);
