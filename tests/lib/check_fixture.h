/*
 * check_fixture: nodes, a configuration, a fleet and facts, as checks are run on, without a loop or
 * an API.
 *
 * Nodes are given as the insides of a Node's metadata and conditions; every change goes through a
 * real store, so the fleet sees what it would see in production.
 */
#pragma once

#include "kube/node.h"
#include "profile/check/check.h"

struct check_fixture {
    struct node_keep keep; /* first: the store's context */
    struct intern labels;
    struct store store;
    struct fleet *fleet;
    struct facts *facts;
    struct arena memory;
    struct config config;
    struct str annotations[4];
    uint64_t version;
    struct str profile; /* of the inputs made */
    enum profile_state state;
    const char *transition; /* RFC 3339 */
    const char *now;
    bool granted;
};

/* `yaml` holds the instances of check plugins: "- {name: a, type: hasLabel, config: {key: x}}"
 * lines. The profiles p and q are there besides default. */
void check_fixture_begin(struct check_fixture *b, const char *checks);
void check_fixture_configure(struct check_fixture *b, const char *checks);
void check_fixture_end(struct check_fixture *b);

/* `labels` and `annotations`: "a=1 b=2"; NULL for none. An annotation of "data" is the data
 * annotation; its value, to the end of the text, may have spaces. */
void check_fixture_node(struct check_fixture *b, const char *name, const char *labels,
                        const char *annotations);
/* With a list of conditions in JSON. */
void check_fixture_node_conditions(struct check_fixture *b, const char *name,
                                   const char *conditions);
void check_fixture_remove_node(struct check_fixture *b, const char *name);

uint32_t check_fixture_index(const struct check_fixture *b, const char *instance);
/* Runs the check for a node that is known, with words; lives in the bed. */
struct check_verdict check_fixture_run(struct check_fixture *b, const char *instance,
                                       const char *node);
/* When a text is, as wall time. */
usec_t check_fixture_wall(const char *text);
