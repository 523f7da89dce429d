/*
 * script: the steps of the demo: 24 nodes that run a shop get an OS update, which two replicas of
 * the controller carry out while a node fails and the leader is killed.
 *
 * A step does something to the world (an update is released, somebody approves, a node loses its
 * network, the leader is killed) and then waits until the world shows that the controller has dealt
 * with it. What a step reports is measured: counts are read from the API server, times from the
 * world's clock. The configuration and the world are files of docs/examples.
 *
 * The script also plays the update agent of each node: it reboots a node that the controller has
 * released, and withdraws the node's request when the node runs the new image.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/metric.h"
#include "demo/state.h"
#include "port/loop.h"
#include "sandbox/sim/faults.h"
#include "sandbox/sim/outbound.h"
#include "core/core.h"
#include "web/controller_source.h"

struct apiserver;
struct world;
struct api;
struct controller;

#define SCRIPT_REPLICAS 2u
/* As docs/examples/os-update.yaml has them. */
#define SCRIPT_ZONE_LIMIT 2u
#define SCRIPT_WINDOW_HOUR 22
#define SCRIPT_LEAD_TIME SECONDS(40) /* from the begin of the script to the window */

struct script_replica {
    struct script *script;
    struct str name;
    struct core *core; /* NULL, as the controller, when the replica was killed */
    struct controller *controller;
    struct api *api;
    struct outbound *outbound;
};

/* A drain that waits, and for what; `node` empty: none. */
struct script_blocked {
    char node[64];
    char why[400];
    usec_t since;  /* wall; when the script noticed */
    uint32_t more; /* other drains that wait too */
};

struct script {
    struct loop *time; /* borrowed: the world's clock */
    struct apiserver *server;
    struct world *world;
    struct faults network;
    struct inbox inbox;
    struct metrics metrics;
    struct script_replica replicas[SCRIPT_REPLICAS];
    struct controller_source source; /* what the dashboard reads: the leader, or whoever lives */
    struct loop_timer tick;
    struct arena tmp; /* of one tick */
    uint64_t seed;
    usec_t began;
    usec_t ended;                 /* once it is over */
    bool reboots[DEMO_NODES_MAX]; /* under way, by the update agent */
    struct script_blocked blocked;
    /* the step under way */
    uint32_t step;
    bool waiting; /* a pause before the next step */
    usec_t step_began;
    usec_t until; /* of the pause */
    usec_t took;  /* what the step measures, once it is known; 0 = not yet */
    uint32_t counted;
    struct script_replica *killed;
    char lost[64];  /* the node without a network */
    char stuck[64]; /* the node that waited for it */
    /* sums */
    uint32_t peak;      /* nodes out of service at one instant, of all … */
    uint32_t peak_zone; /* … and in one zone */
    usec_t first_out;   /* wall; when the first node went; 0 = none has */
    uint32_t failovers;
    uint64_t moved; /* pods, as the API server saw them go */
    uint64_t refused_by_killed;
    bool over;
    bool failed;
    struct script_replica *last_leader;
    /* Called with each milestone, a whole sentence; `wall` is the world's civil time. */
    void (*on_milestone)(void *ctx, usec_t wall, struct str text);
    void *ctx;
};

/* SCRIPT_LEAD_TIME before the window opens on the day of `wall`. */
usec_t script_start_time(usec_t wall);

/* Civil time of `time` is near script_start_time. */
void script_init(struct script *s, struct loop *time, uint64_t seed);
void script_begin(struct script *s);
void script_done(struct script *s);

usec_t script_elapsed(const struct script *s);   /* world time, until it was over */
uint64_t script_refused(const struct script *s); /* evictions, of all replicas so far */
/* "24 nodes serviced, …": two lines, without a line break at the end. */
void script_summary(const struct script *s, struct buf *out);
