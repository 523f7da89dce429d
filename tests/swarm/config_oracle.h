/*
 * config_oracle: whether a step of a configuration may be taken, by what is on the server and by a
 * clock: a second reading of docs/contract/profiles.md, without the controllers' code.
 *
 * An answer may be open: what depends on when somebody looked cannot be decided from outside.
 */
#pragma once

#include "sandbox/apiserver/apiserver.h"
#include "tests/swarm/random_config.h"

enum config_oracle_verdict { CONFIG_ORACLE_NO, CONFIG_ORACLE_UNDECIDED, CONFIG_ORACLE_YES };

struct config_oracle {
    struct apiserver *server;
    const struct random_config *config;
    usec_t wall;               /* of the clock that counts */
    usec_t slack;              /* what came true less than that ago is open */
    const struct jval *grants; /* as the leader's Lease records them; NULL: not looked at */
    /* True for a node that does not count against the limit; may be NULL. */
    bool (*ignore)(void *ctx, const struct jval *object, uint32_t limit);
    void *ctx;
};

/* One profile of a node, as its data annotation has it. */
struct oracle_profile {
    uint32_t profile;
    enum random_config_state current;
    enum random_config_state previous;
    struct str transition; /* as written */
    usec_t since;
};

struct oracle_node {
    const struct jval *object; /* borrowed: from the server */
    struct str name;
    bool readable;
    struct oracle_profile entries[RANDOM_CONFIG_PROFILES_MAX]; /* of the configuration's profiles */
    uint32_t entry_n;
    uint32_t in_maintenance; /* profiles of any name */
};

/* Texts live in `tmp`. */
void node_data_read(const struct random_config *b, const struct jval *object, struct arena *tmp,
                    struct oracle_node *ret);
const struct oracle_profile *node_data_find(const struct oracle_node *node, uint32_t profile);

/* Other nodes that count against that limit for this one. */
/* Whether the limit counts that node once it is in maintenance. */
bool config_oracle_counts_node(const struct random_config *b, const struct jval *object,
                               uint32_t limit);
uint32_t config_oracle_count(const struct config_oracle *j, const struct oracle_node *node,
                             uint32_t limit, uint32_t *ret_granted);
enum config_oracle_verdict config_oracle_check(const struct config_oracle *j,
                                               const struct oracle_node *node,
                                               const struct oracle_profile *entry,
                                               enum random_config_check check);
/* All that the step asks for, but for the bits in `without`. */
enum config_oracle_verdict config_oracle_step(const struct config_oracle *j,
                                              const struct oracle_node *node,
                                              const struct oracle_profile *entry,
                                              const struct random_config_step *step,
                                              uint32_t without);
bool config_oracle_window_open(const struct random_config *b, usec_t wall);
