/*
 * completion: scripts that teach a shell the commands, their flags and what these take, from the
 * same tables that parse them.
 */
#pragma once

#include "cmd/command.h"

#define COMPLETION_SHELLS "bash|zsh|fish"

/* False when the shell is none of COMPLETION_SHELLS; nothing is printed then. */
NODISCARD
bool completion_print(const struct command_list *list, struct str shell, struct buf *out);
