/*
 * auth: who asks, and whether they may. There are three: the administrator, who may all, anybody
 * else, who may only discover, and a token nobody knows.
 */
#pragma once

#include "sandbox/server.h"

/* NULL: may. `c->kind` is NULL for what is no resource. */
struct status *auth_check(struct call *c);
