/*
 * config_oracle: whether a step of a blueprint may be taken, by what is on the server and by a clock; the
 * contract read once more, without the controllers' code.
 *
 * An answer may be open: what depends on when somebody looked cannot be decided from outside.
 */
#pragma once

#include "sandbox/apiserver/apiserver.h"
#include "tests/swarm/random_config.h"

enum judgement { JUDGED_NO, JUDGED_OPEN, JUDGED_YES };

struct judge {
    struct apiserver *server;
    const struct blueprint *blueprint;
    usec_t wall;               /* of the clock that counts */
    usec_t slack;              /* what came true less than that ago is open */
    const struct jval *grants; /* as the leader's Lease records them; NULL: not looked at */
    /* True for a node that does not count against the limit; may be NULL. */
    bool (*ignore)(void *ctx, const struct jval *object, uint32_t limit);
    void *ctx;
};

/* One profile of a node, as its data annotation has it. */
struct judge_entry {
    uint32_t profile;
    enum blueprint_state current;
    enum blueprint_state previous;
    struct str transition; /* as written */
    usec_t since;
};

struct judge_node {
    const struct jval *object; /* borrowed: from the server */
    struct str name;
    bool readable;
    struct judge_entry entries[BLUEPRINT_PROFILES_MAX]; /* of the blueprint's profiles */
    uint32_t entry_n;
    uint32_t in_maintenance; /* profiles of any name */
};

/* Texts live in `tmp`. */
void judge_read(const struct blueprint *b, const struct jval *object, struct arena *tmp,
                struct judge_node *ret);
const struct judge_entry *judge_find(const struct judge_node *node, uint32_t profile);

/* Other nodes that count against that limit for this one. */
/* Whether the limit counts that node once it is in maintenance. */
bool judge_is_counted(const struct blueprint *b, const struct jval *object, uint32_t limit);
uint32_t judge_count(const struct judge *j, const struct judge_node *node, uint32_t limit,
                     uint32_t *ret_granted);
enum judgement judge_ask(const struct judge *j, const struct judge_node *node,
                         const struct judge_entry *entry, enum blueprint_check ask);
/* All that the step asks for, but for the bits in `without`. */
enum judgement judge_step(const struct judge *j, const struct judge_node *node,
                          const struct judge_entry *entry, const struct blueprint_step *step,
                          uint32_t without);
bool judge_window_open(const struct blueprint *b, usec_t wall);
