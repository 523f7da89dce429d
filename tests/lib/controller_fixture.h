/*
 * controller_fixture: a core with the controller of profiles as its only part, in one call.
 */
#pragma once

#include "core/core.h"
#include "profile/controller.h"

struct controller *controller_open(const struct core_config *core,
                                   const struct controller_config *config);
void controller_close(struct controller *c); /* both; accepts NULL */
