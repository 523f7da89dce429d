/*
 * wait_common: what wait and waitExclude have in common: all but the weekdays.
 */
#pragma once

#include "profile/check/check_plugin.h"

/* What is prepared is a struct wait (calendar/wait.h). */
void wait_common_run(const struct check_input *in, uint32_t index, struct check_verdict *ret);
