/*
 * story: a small cluster, two replicas of the controller, and what happens to them.
 *
 * A chapter does something to the world (nodes boot, the leader is killed, the API server goes
 * away, labels are deleted) and then waits until the world shows that it was dealt with. What is
 * told of it is measured: counts are read from the API server, times from the world's clock.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/metric.h"
#include "port/loop.h"
#include "sandbox/faults.h"
#include "web/source.h"

struct apiserver;
struct world;
struct api;
struct controller;

#define STORY_REPLICAS 2u
#define STORY_NODES_MAX 64u

struct story_replica {
    struct story *story;
    struct str name;
    struct controller *controller; /* NULL = it was killed */
    struct api *door;
    bool leading;
};

struct story_node {
    char name[64];
    char zone[32];
    bool ready;
    bool labelled; /* state label and data annotation are both there */
};

/* The world as the API server has it. */
struct story_view {
    struct story_node nodes[STORY_NODES_MAX];
    uint32_t n;
    uint32_t ready;
    uint32_t labelled;
};

struct story {
    struct loop *time; /* borrowed: the world's clock */
    struct apiserver *server;
    struct world *world;
    struct faults network;
    struct metrics metrics;
    struct story_replica replicas[STORY_REPLICAS];
    struct source source; /* what the dashboard reads: the leader, or whoever lives */
    struct loop_timer tick;
    struct rng rng;
    usec_t began;
    /* the chapter under way */
    uint32_t chapter;
    bool waiting; /* a pause before the next chapter */
    usec_t chapter_at;
    usec_t until; /* of the pause */
    struct story_replica *victim;
    char gone[64]; /* a node that was taken away */
    usec_t took;   /* until the chapter's own measure was reached; 0 = not yet */
    uint32_t counted;
    /* sums */
    uint32_t failovers;
    uint64_t requests_of_the_dead;
    uint64_t writes_of_the_dead;
    bool endless; /* the later chapters come again and again */
    bool over;
    bool failed;
    struct story_replica *led_last;
    /* Called with each milestone, a whole sentence. */
    void (*on_milestone)(void *ctx, usec_t at, struct str text);
    void *ctx;
};

void story_init(struct story *s, struct loop *time, uint64_t seed, bool endless);
void story_begin(struct story *s);
void story_done(struct story *s);

void story_look(const struct story *s, struct story_view *ret);
usec_t story_elapsed(const struct story *s);    /* world time */
uint64_t story_requests(const struct story *s); /* of all replicas that ever were */
uint64_t story_writes(const struct story *s);
