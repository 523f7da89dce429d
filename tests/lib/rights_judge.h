/*
 * rights_judge: a door that lets pass what rights of kinds/rights.h allow, and notes by which of
 * them; everything else is forbidden, as a server does whose roles say so.
 *
 * It also plays a server that cannot stream lists, so that `list` is asked for. What it does not
 * let pass goes to a path that no server has: so its answer comes when answers come, and only its
 * status is another.
 */
#pragma once

#include "base/arena.h"
#include "kinds/rights.h"
#include "port/api.h"

#define RIGHTS_JUDGE_ROWS_MAX 256u

/* One verb on one resource: what a role has or has not. */
struct rights_judge_row {
    const struct right *right;
    struct str resource;
    struct str verb;
    bool used;
};

struct rights_judge {
    struct api api; /* first */
    struct api *upstream;
    struct rights_judge_row rows[RIGHTS_JUDGE_ROWS_MAX];
    uint32_t n;
    const char *home[2]; /* namespaces of RIGHT_HOME */
    const char *jobs;    /* the namespace of RIGHT_JOBS */
    char foreign[256];   /* the first that no role allows; empty: none */
    struct arena memory;
};

/* Gives all rights of a role, whatever their use. */
void rights_judge_give(struct rights_judge *j, const char *role);
/* The door in front of that one. */
struct api *rights_judge_open(struct rights_judge *j, struct api *upstream);
void rights_judge_done(struct rights_judge *j);
