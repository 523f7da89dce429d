/*
 * fleet_report: the fleet in one document: how many nodes each profile has in which state, and
 * whoever is not at rest, with what it waits for.
 *
 * Made of reports, printed as JSON for scripts and as text for people, and read back like them.
 */
#pragma once

#include "profile/node_report.h"

#define ROSTER_ENTRIES_MAX 200000u /* twenty profiles on each node of the largest clusters */
#define ROSTER_SHOWN 20u           /* of one kind in the text; -o wide has all */

struct roster_profile {
    struct str name;
    uint32_t counts[LABEL_STATE_COUNT];
};

/* A profile of a node that is not at rest: not operational, doing something, or failing. */
struct roster_entry {
    struct str node;
    struct str profile; /* empty: the node as a whole cannot be served */
    enum label_state state;
    usec_t since; /* 0 = unknown */
    bool failing;
    struct str gist; /* report_gist, or the node's error */
};

struct roster {
    struct str version;
    struct str title;  /* the cluster's name or address */
    struct str leader; /* empty = nobody leads */
    struct str why;    /* the controller is not ready because of this; empty = it is */
    struct str config_file;
    struct str config_error; /* empty = the file is good */
    usec_t config_loaded;    /* 0 = unknown */
    usec_t now;
    uint32_t nodes;
    uint32_t counts[LABEL_STATE_COUNT]; /* by the node's label; those without are operational */
    struct roster_profile *profiles;    /* sorted by name */
    uint32_t profile_n;
    uint32_t profile_cap;
    struct roster_entry *entries; /* see roster_sort */
    uint32_t entry_n;
    uint32_t entry_cap;
    struct str board; /* limits and requests as JSON, told by whoever knows them; empty = nobody */
};

/* Names a profile, so that it is listed even if no node has it. */
struct roster_profile *roster_profile(struct roster *s, struct arena *out, struct str name);
/* Counts a node. Texts are copied. */
void roster_add(struct roster *s, const struct report *r, struct arena *out);
/* Failing ones first, then by state from maintenance down, then who is there longest, then by
 * name. */
void roster_sort(struct roster *s);

void roster_print_json(const struct roster *s, struct json_writer *w);
NODISCARD
int roster_parse(struct str text, struct arena *out, struct roster *ret, struct err *err);

void roster_print_text(const struct roster *s, enum report_form form, struct buf *out);
