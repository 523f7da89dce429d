/*
 * root_internal: what the files of root share.
 */
#pragma once

#include "agent/root.h"

/* Opens the last name itself; -1 and errno when that fails. */
int root_open_name(const struct root_place *place, uint64_t flags);
/* Comes before every call that changes the disk. */
void root_step(struct root *root, const char *what);
