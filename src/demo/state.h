/*
 * state: the demo's nodes as the API server has them, and how far each is with its update.
 *
 * Read from the objects alone, never from what a controller believes: what is counted here would
 * be the same if somebody counted with kubectl.
 */
#pragma once

#include "base/str.h"

struct apiserver;

#define SCENE_NODES_MAX 64u
#define SCENE_ZONES_MAX 8u

#define UPDATE_NEEDED "update.example.org/needed"
#define UPDATE_APPROVED "update.example.org/approved"
#define UPDATE_REBOOT "update.example.org/reboot"
#define UPDATE_IMAGE "update.example.org/image"

enum scene_state {
    SCENE_OPERATIONAL,
    SCENE_REQUIRED,
    SCENE_DRAINING, /* cordoned, and not in maintenance yet */
    SCENE_MAINTENANCE,
    SCENE_STATES,
};

struct scene_node {
    char name[64];
    char zone[32];
    enum scene_state state;
    bool ready;
    bool labelled; /* state label and data annotation are both there */
    bool needed;   /* its update agent asks */
    bool approved;
    bool granted; /* it may reboot */
    bool updated; /* it runs the new image */
    bool rebooting;
};

struct scene {
    struct scene_node nodes[SCENE_NODES_MAX]; /* in order of their names */
    uint32_t n;
    uint32_t states[SCENE_STATES];
    uint32_t ready;
    uint32_t labelled;
    uint32_t serviced; /* updated, operational and ready */
    uint32_t out;      /* draining or in maintenance */
    uint32_t out_zone; /* in the zone that has most of them */
};

void scene_look(struct apiserver *server, struct scene *ret);
/* NULL when there is none. */
const struct scene_node *scene_find(const struct scene *s, struct str name);

/* Pods that are ready, and pods that there are; of one app, or of all with "". */
struct scene_pods {
    uint32_t ready;
    uint32_t all;
};
struct scene_pods scene_pods(struct apiserver *server, struct str app);
