/*
 * no_exec: a process that is forbidden to become another program.
 *
 * For a process that reads what others have written and starts its programs elsewhere (launcher.h):
 * whoever gets hold of it still cannot run a shell in its place. Children that it makes afterwards
 * are bound likewise; those that were made before are not.
 */
#pragma once

#include "base/err.h"

/* From now on execve and execveat fail with EPERM. It cannot be taken back. */
NODISCARD
int no_exec_enter(struct err *err);
