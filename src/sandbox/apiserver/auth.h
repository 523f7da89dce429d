/*
 * auth: who sends a request, and whether RBAC allows it.
 *
 * The administrator may do everything. Anybody else (a service account with its token, an
 * impersonated user, an anonymous client) may read discovery documents and do what the roles bound
 * to them allow. A token that the server did not issue is refused.
 */
#pragma once

#include "sandbox/apiserver/apiserver_internal.h"

#define AUTH_ANONYMOUS STR("system:anonymous")

/* What somebody wants to do: to a resource, or at a path that is none. */
struct auth_attributes {
    struct str user; /* "" = the administrator */
    /* Groups beside those that follow from the name; borrowed, NULL = none. */
    const struct tree *groups;
    struct str verb;
    struct str group;
    struct str resource; /* the plural */
    struct str subresource;
    struct str namespace; /* "" = all, or none */
    struct str name;
    struct str path; /* not empty: the fields from group on do not count */
};

/* `*ret_reason` says which binding allows it, as the real server words it; empty where no binding
 * had to be looked at. */
bool auth_allows(struct apiserver *s, const struct auth_attributes *asked, struct arena *a,
                 struct str *ret_reason);

/* The rules of all roles that are bound to the user everywhere or in the namespace. */
typedef void (*auth_visit)(void *ctx, const struct jval *rule);
void auth_each_rule(struct apiserver *s, const struct auth_attributes *asked, auth_visit visit,
                    void *ctx);

/* The groups that follow from a user's name, with blanks between them. */
struct str auth_groups(struct arena *a, struct str user);

/* Who sends the request: "" is the administrator. False: the credentials are unknown. */
bool auth_user(struct request_ctx *c, struct str *ret_user);

/* NULL: the request is allowed. `c->kind` is NULL when the URL names no resource. */
struct status *auth_check(struct request_ctx *c);
