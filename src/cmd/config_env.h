/*
 * config_env: what a configuration takes from the machine it is read on: environment variables
 * and time zones.
 */
#pragma once

#include "format/ucfg.h"

struct config_env {
    struct str zones; /* the folder of the time zones' files */
};

/* The machine's own, with tzdata where every distribution has it. */
extern const struct config_env config_env_host;

/* `s` is borrowed as long as the answer is used. */
struct ucfg_env config_env_of(const struct config_env *s);
