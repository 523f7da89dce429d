/*
 * auth: who asks, and whether they may. The administrator may all. Anybody else (a service account
 * with its token, an impersonated user, nobody at all) may discover, and what roles that are bound
 * to them allow. A token that nobody knows is refused.
 */
#pragma once

#include "sandbox/apiserver/apiserver_internal.h"

/* NULL: may. `c->kind` is NULL for what is no resource. */
struct status *auth_check(struct request_ctx *c);
