/*
 * state: the demo's nodes as the API server has them, and how far each is with its update.
 *
 * Everything is read from the API server's objects, never from a controller: kubectl would show the
 * same counts.
 */
#pragma once

#include "base/str.h"

struct apiserver;

#define DEMO_NODES_MAX 64u
#define DEMO_ZONES_MAX 8u

#define DEMO_UPDATE_NEEDED "update.example.org/needed"
#define DEMO_UPDATE_APPROVED "update.example.org/approved"
#define DEMO_UPDATE_REBOOT "update.example.org/reboot"
#define DEMO_UPDATE_IMAGE "update.example.org/image"

enum demo_node_state {
    DEMO_NODE_OPERATIONAL,
    DEMO_NODE_REQUIRED,
    DEMO_NODE_DRAINING, /* cordoned, and not in maintenance yet */
    DEMO_NODE_MAINTENANCE,
    DEMO_NODE_STATES,
};

struct demo_node {
    char name[64];
    char zone[32];
    enum demo_node_state state;
    bool ready;
    bool labelled; /* state label and data annotation are both there */
    bool needed;   /* its update agent asks */
    bool approved;
    bool granted; /* it may reboot */
    bool updated; /* it runs the new image */
    bool rebooting;
};

struct demo_state {
    struct demo_node nodes[DEMO_NODES_MAX]; /* in order of their names */
    uint32_t n;
    uint32_t states[DEMO_NODE_STATES];
    uint32_t ready;
    uint32_t labelled;
    uint32_t serviced; /* updated, operational and ready */
    uint32_t out;      /* draining or in maintenance */
    uint32_t out_zone; /* in the zone that has most of them */
};

void demo_state_read(struct apiserver *server, struct demo_state *ret);
/* NULL when there is none. */
const struct demo_node *demo_state_find(const struct demo_state *s, struct str name);

/* Pods that are ready, and pods that there are; of one app, or of all with "". */
struct demo_state_pods {
    uint32_t ready;
    uint32_t all;
};
struct demo_state_pods demo_state_pods(struct apiserver *server, struct str app);
