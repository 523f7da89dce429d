/*
 * launcher_internal: what both sides of the launcher's socket know.
 */
#pragma once

#include "host/launcher.h"

/* A request: this, then its strings, each with its NUL: working directory, arguments, variables.
 * The descriptors that come with it are the program's input, its output, and the pipe for news. */
struct launcher_request {
    uint32_t argv_n;
    uint32_t env_n;
    uint32_t uid;
    uint32_t gid;
};

enum { LAUNCHER_FD_INPUT, LAUNCHER_FD_OUTPUT, LAUNCHER_FD_NEWS, LAUNCHER_FDS };

/* News: first the process, then how it ended, as wait(2) has it. */
struct launcher_news {
    int32_t pid; /* 0 = it could not be started, and `status` is an errno */
    int32_t ended;
    int32_t status;
};

/* The process itself; does not return. */
NORETURN void launcher_serve(int socket, int root);
