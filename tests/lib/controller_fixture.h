/*
 * controller_fixture: a core with the controller of profiles as its only part, in one call.
 */
#pragma once

#include "core/core.h"
#include "profile/controller.h"
#include "sandbox/apiserver/apiserver.h"

struct controller *controller_open(const struct core_config *core,
                                   const struct controller_config *config);
void controller_close(struct controller *c); /* both; accepts NULL */

/* How many Events of nodes have that reason; the note of the last one is in `out`, which may be
 * NULL. */
uint32_t controller_events(struct apiserver *server, const char *reason, struct arena *out,
                           struct str *ret_note);
