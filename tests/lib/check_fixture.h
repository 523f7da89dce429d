/*
 * check_fixture: nodes, a configuration, a fleet and facts, as checks are run on, without a loop or an API.
 *
 * Nodes are given as the insides of a Node's metadata and conditions; every change goes through a
 * real store, so the fleet sees what it would see in production.
 */
#pragma once

#include "kube/node.h"
#include "profile/check/check.h"

struct bed {
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
    enum label_state state;
    const char *transition; /* RFC 3339 */
    const char *now;
    bool granted;
};

/* `yaml` holds the instances of check plugins: "- {name: a, type: hasLabel, config: {key: x}}"
 * lines. The profiles p and q are there besides default. */
void bed_begin(struct bed *b, const char *checks);
void bed_configure(struct bed *b, const char *checks);
void bed_end(struct bed *b);

/* `labels` and `annotations`: "a=1 b=2"; NULL for none. An annotation of "data" is the data
 * annotation; its value, to the end of the text, may have spaces. */
void bed_node(struct bed *b, const char *name, const char *labels, const char *annotations);
/* With a list of conditions in JSON. */
void bed_node_conditions(struct bed *b, const char *name, const char *conditions);
void bed_gone(struct bed *b, const char *name);

uint32_t bed_index(const struct bed *b, const char *instance);
/* Runs the check for a node that is known, with words; lives in the bed. */
struct check_verdict bed_run(struct bed *b, const char *instance, const char *node);
/* When a text is, as wall time. */
usec_t bed_wall(const char *text);
