/*
 * commands: the subcommands, one file each.
 */
#pragma once

#include "cmd/command.h"
