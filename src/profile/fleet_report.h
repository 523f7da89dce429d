/*
 * fleet_report: all nodes in one document: how many nodes each profile has in which state, and the
 * nodes that are not at rest, with what they wait for.
 *
 * Made of node reports (node_report.h), printed as JSON for scripts and as text for people.
 */
#pragma once

#include "profile/node_report.h"

#define FLEET_REPORT_SHOWN 20u /* of one kind in the text; -o wide has all */

struct fleet_report_profile {
    struct str name;
    uint32_t counts[PROFILE_STATE_COUNT];
};

/* A profile of a node that is not at rest: not operational, doing something, or failing; or a node
 * that a request drains. */
struct fleet_report_entry {
    struct str node;
    struct str profile; /* empty: the node as a whole cannot be served, or a request drains it */
    enum profile_state state;
    usec_t since; /* 0 = unknown */
    bool failing;
    bool draining;
    bool blocked;       /* its drain is */
    struct str summary; /* node_report_summary, or the node's error */
};

struct fleet_report {
    struct str version;
    struct str title;  /* the cluster's name or address */
    struct str leader; /* empty = nobody leads */
    struct str why;    /* why the controller is not ready; empty = it is */
    struct str pause;  /* why it sends no requests now; empty = it does */
    struct str paused; /* why nothing new is granted: people said so; mostly empty */
    struct str denied; /* a right that is missing, and what is not done without it; mostly empty */
    struct str config_file;
    struct str config_error;    /* empty = the file is good */
    struct str config_warnings; /* about the one in force, one a line; empty = none */
    usec_t config_loaded;       /* 0 = unknown */
    usec_t now;
    uint32_t columns; /* of the text; 0 = NODE_REPORT_COLUMNS */
    uint32_t nodes;
    uint32_t draining;                     /* nodes */
    uint32_t blocked;                      /* of them */
    uint32_t counts[PROFILE_STATE_COUNT];  /* by the node's label; those without are operational */
    struct fleet_report_profile *profiles; /* sorted by name */
    uint32_t profile_n;
    uint32_t profile_cap;
    struct fleet_report_entry *entries; /* see fleet_report_sort */
    uint32_t entry_n;
    uint32_t entry_cap;
    struct activity *activities; /* of integrations, one each */
    uint32_t activity_n;
    struct str board;      /* limits and requests as JSON, from the caller; empty = unknown */
    struct str operations; /* NodeMaintenances, likewise */
};

/* Names a profile, so that it is listed even if no node has it. */
struct fleet_report_profile *fleet_report_profile(struct fleet_report *s, struct arena *out,
                                                  struct str name);
/* Counts a node. Texts are copied. */
void fleet_report_add(struct fleet_report *s, const struct node_report *r, struct arena *out);
/* Blocked drains first, then failing ones, then drains, then by state from in-maintenance down,
 * then the longest first, then by name. */
void fleet_report_sort(struct fleet_report *s);

void fleet_report_print_json(const struct fleet_report *s, struct json_writer *w);
void fleet_report_print_text(const struct fleet_report *s, enum report_format form,
                             struct buf *out);
