/*
 * launcher: a small process that starts programs for another one, which then need not start any
 * itself and can be forbidden to.
 *
 * It is forked off first, while the process is small and has one thread. A program gets no
 * descriptor but its three, an environment that is given whole, a process group of its own, the
 * root directory of the machine, and the user that is asked for. What it writes is kept up to a
 * limit, of which the rest is read and dropped: a program that talks much still ends. At the
 * deadline its whole group is killed.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "port/loop.h"

#define LAUNCHER_WORDS_MAX 512u                 /* arguments and variables */
#define LAUNCHER_BYTES_MAX ((size_t)96 * 1024)  /* of one request */
#define LAUNCHER_OUTPUT_MAX ((size_t)64 * 1024) /* kept of what a program writes */

struct launcher;

struct launcher_command {
    const struct str *argv; /* the first is a path below the root directory */
    uint32_t argv_n;
    const struct str *env; /* "NAME=value" */
    uint32_t env_n;
    struct str cwd;   /* empty = "/" */
    struct str input; /* what it reads */
    uint32_t uid;
    uint32_t gid;
    usec_t time_max;
};

struct launcher_result {
    int exit_code;  /* 128 + n when signal n ended it; 126 and 127 when it could not be started */
    bool timed_out; /* we have ended it */
    struct str out; /* both outputs as they came; lives until the callback returns */
};

/* Before the first loop. `root` is a path; "/" stays where it is. */
NODISCARD
int launcher_new(struct str root, struct launcher **ret, struct err *err);
/* Every job has ended. What still runs goes on. Accepts NULL. */
void launcher_free(struct launcher *l);

/* `on_end` is called once, from the loop. */
NODISCARD
int launcher_run(struct launcher *l, struct loop *loop, const struct launcher_command *command,
                 void (*on_end)(void *ctx, const struct launcher_result *result), void *ctx,
                 struct err *err);
