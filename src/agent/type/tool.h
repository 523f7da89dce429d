/*
 * tool: a program of the machine that a type needs (useradd, mount, …), put together word by word,
 * and what is said when it fails.
 *
 * Types that need several look at the machine before each and ask for the next one, so that a
 * second run after a crash goes on where the first one was.
 */
#pragma once

#include "agent/resource.h"

#define TOOL_WORDS_MAX 300u /* lists of packages are the longest */

struct tool {
    struct str words[TOOL_WORDS_MAX];
    uint32_t n; /* 0 = nothing is to be run */
    struct str input;
    const struct str *env;
    uint32_t env_n;
    usec_t time_max; /* 0 = COMMAND_TIME */
};

void tool_add(struct tool *t, struct str word);
void tool_add_option(struct tool *t, struct str option, struct str value);

/* What is to be run now, as the machine is; nothing when all is done. */
typedef int (*tool_next_fn)(struct resource_call *call, const void *ctx, struct tool *ret,
                            struct err *err);

/* For `apply` and `restore`: runs one after the other until `next` asks for nothing. A tool that
 * fails ends it, and so does one that is asked for again because it had no effect: the check that
 * follows says what is left. */
int tool_run_all(struct resource_call *call, tool_next_fn next, const void *ctx, struct err *err);

/* The first of these paths that the machine has; -ERR_NOTFOUND when it has none. */
NODISCARD
int tool_find(struct resource_call *call, const char *const *paths, struct str *ret,
              struct err *err);

/* Whether the command of the step before has failed, in its own words. */
NODISCARD
int tool_judge(const struct resource_call *call, struct err *err);
