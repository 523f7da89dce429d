/*
 * auth: who sends a request, and whether RBAC allows it.
 *
 * The administrator may do everything. Anybody else (a service account with its token, an
 * impersonated user, an anonymous client) may read discovery documents and do what the roles bound
 * to them allow. A token that the server did not issue is refused.
 */
#pragma once

#include "sandbox/apiserver/apiserver_internal.h"

/* NULL: the request is allowed. `c->kind` is NULL when the URL names no resource. */
struct status *auth_check(struct request_ctx *c);
