/*
 * rights: every right that drydock's programs, and those who ask them, need in a cluster.
 *
 * One list, from which `drydock rbac` prints roles, the Helm chart makes its own
 * (deploy/helm/drydock/files/rights.json) and docs/rbac.md is written. Whoever sends a request of a
 * new kind adds a row; tests/e2e/test_rights.py takes rows away one at a time and sees that
 * something misses each.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* Where a right counts. */
enum right_scope {
    RIGHT_CLUSTER, /* in all namespaces, and for what has none */
    RIGHT_HOME,    /* in the program's own namespace */
    RIGHT_NAMED,   /* in namespaces that the configuration names */
    RIGHT_SYSTEM,  /* in kube-system */
    RIGHT_JOBS,    /* in the namespace of Jobs */
    RIGHT_SCOPES,
};

struct right {
    const char *role; /* "controller" */
    const char *use;  /* what it is for, if not every installation does that; NULL = always */
    enum right_scope scope;
    const char *group;     /* "" is the core group */
    const char *resources; /* by commas */
    const char *names;     /* only these objects, by commas; NULL = all */
    const char *verbs;     /* by commas, in the order of rights_verbs */
    const char *why;       /* "evicts pods": a half sentence whose subject is the role */
};

extern const struct right rights[];
extern const uint32_t rights_count;

/* The roles in the order of the list, each with what it is; and the uses of the list. */
struct right_role {
    const char *name;
    const char *text;
};
extern const struct right_role right_roles[];
extern const uint32_t right_roles_count;

struct right_use {
    const char *role;
    const char *name;
    const char *text;    /* when an installation needs it */
    const char *setting; /* the values of the Helm chart that switch it */
};
extern const struct right_use right_uses[];
extern const uint32_t right_uses_count;

/* The rules of one role in one scope: every resource in one rule, without what `leave_out` names.
 */
struct right_rule {
    struct str group;
    struct str names; /* as in `struct right`; may be empty */
    struct str *resources;
    struct str *verbs;
    uint32_t resource_n;
    uint32_t verb_n;
};

struct right_query {
    struct str role;
    enum right_scope scope;
    const struct str *leave_out; /* uses */
    uint32_t leave_out_n;
};

/* Returns how many there are; *ret and what it names are in `out`. */
uint32_t rights_rules(const struct right_query *query, struct arena *out, struct right_rule **ret);

bool rights_has_role(struct str name);
bool rights_has_use(struct str name);
