/*
 * converge: makes a machine what a graph says. It does what the engine decides, one resource at a
 * time, and writes down first what must survive a crash.
 *
 *     check → save the original → mark those it notifies (on the disk) → apply → check again
 *           → refresh, strike out the mark
 *
 * When nothing is left to do, what was taken off the list is put back or removed, the last first.
 */
#pragma once

#include "agent/engine.h"
#include "agent/journal.h"
#include "agent/originals.h"
#include "agent/veto.h"
#include "base/buf.h"
#include "port/loop.h"

/* Who runs programs. `on_end` is called once, later, from the loop. */
struct converge_runner {
    int (*run)(void *ctx, const struct command_spec *command,
               void (*on_end)(void *ctx, const struct command_result *result), void *end_ctx,
               struct err *err);
    void *ctx;
};

/* What was done to the machine, for whoever tells it. */
enum converge_verb {
    CONVERGE_CHANGED,  /* it is as it should be for the first time */
    CONVERGE_REPAIRED, /* it was right before: drift */
    CONVERGE_REFRESHED,
    CONVERGE_FAILED,
    CONVERGE_CONTESTED,
    CONVERGE_REMOVED, /* or restored, or forgotten: converge.removals has more */
};

struct converge_spec {
    struct loop *loop; /* borrowed, as all below */
    struct root *root; /* read_only exactly when the rules say noop */
    const struct graph *graph;
    struct engine_rules rules;
    const struct veto *veto; /* of the machine's owner; NULL = nothing is forbidden */
    struct converge_runner runner;
    struct units units;   /* the service manager; without `ask` there is none */
    struct str state_dir; /* of the agent, on the machine */
    /* It stays: what fails is tried again while the rest goes on. */
    bool stays;
    /* Nothing is left to do, and (unless it stays) no retry is due later; from the loop. */
    void (*on_idle)(void *ctx);
    /* Our own change is made, and the check behind it comes: what has been seen of this resource up
     * to now is old. May be NULL, as the next one. */
    void (*on_applied)(void *ctx, uint32_t v);
    /* `v` is a vertex, or for CONVERGE_REMOVED an index of the removals. */
    void (*on_action)(void *ctx, uint32_t v, enum converge_verb verb);
    void *ctx;
};

/* Of each resource, what the last check found before anything was done. */
struct converge_vertex {
    struct arena memory;
    struct difference *differences;
    uint32_t difference_n;
    bool saved; /* its original is on the disk */
};

/* What was on the list and is not any more. */
struct converge_removal {
    struct str id;
    enum on_remove how; /* ON_REMOVE_KEEP: it was forgotten */
    bool done;          /* false: it would be, or it failed */
    struct str message; /* why it failed; empty = it did not */
};

struct converge {
    struct converge_spec spec;
    struct engine engine;
    struct journal journal;
    struct originals originals;
    struct map ids; /* of the graph */
    struct converge_vertex *vertices;
    struct converge_removal *removals;
    uint32_t removal_n;
    struct original_record *records; /* that are to be taken back, once nothing else is left */
    uint32_t record_n;
    uint32_t record_next;
    struct arena removal_memory;
    struct arena memory;
    struct loop_timer timer;
    bool idle;
    bool stopped; /* nothing new is begun */
    /* The work under way: */
    bool working;
    bool waiting; /* for a program or the service manager */
    uint32_t current;
    int phase;
    struct resource_call call;
    struct arena tmp;
};

NODISCARD
int converge_start(struct converge *c, const struct converge_spec *spec, struct err *err);
void converge_done(struct converge *c);

/* Something may have happened to a resource: it is looked at soon. */
void converge_dirty(struct converge *c, uint32_t v);
/* All of them, and what is not listed any more. */
void converge_dirty_all(struct converge *c);
/* The work under way comes to its end, and nothing new is begun; on_idle says when. */
void converge_stop(struct converge *c);
void converge_go_on(struct converge *c);
/* After converge_start: what has not changed since the graph before need not be looked at again. */
void converge_carry(struct converge *c, const struct converge *old);

/* Whether everything is right: nothing failed, nothing is blocked, nothing waits. */
bool converge_is_good(const struct converge *c);

/* For people: a line for each resource that was changed or is not right, and a summary. */
void converge_print_text(const struct converge *c, struct buf *out);
void converge_print_json(const struct converge *c, struct buf *out);
