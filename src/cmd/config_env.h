/*
 * config_env: what a configuration takes from the machine it is read on: environment variables
 * and time zones.
 */
#pragma once

#include "profile/ucfg.h"

struct surroundings {
    struct str zones; /* the folder of the time zones' files */
};

/* The machine's own, with tzdata where every distribution has it. */
extern const struct surroundings surroundings_here;

/* `s` is borrowed as long as the answer is used. */
struct ucfg_env surroundings(const struct surroundings *s);
