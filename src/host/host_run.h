/*
 * host_run: runs a script on the machine itself, from inside a privileged pod.
 *
 * The image of such a pod needs neither a shell nor nsenter: the program joins the namespaces of
 * the machine's first process and starts the script there, with the machine's own tools. It waits,
 * in the one place where waiting is all there is to do; so this is for commands, not for the loop.
 *
 * The script is handed over in memory: nothing is written to the machine's disks. Its first line
 * chooses the interpreter ("#!/bin/bash"); without one it is /bin/sh. It leads a process group of
 * its own, which is told to end when this program is, but not in the middle of a package manager's
 * work. What it prints goes where this program's
 * output goes, and the last of it is kept for whoever reports a failure.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define HOST_RUN_TAIL_MAX 256u                  /* what a status can hold of a run's output */
#define HOST_RUN_SCRIPT_MAX ((size_t)96 * 1024) /* it travels in an environment variable */
#define HOST_RUN_STOP_WAIT SECONDS(30)          /* between SIGTERM and SIGKILL */
#define HOST_RUN_STOP_HOLD MINUTES(10)          /* SIGTERM waits for a package manager, so long */

struct host_run_spec {
    int32_t pid;       /* whose namespaces are joined: the machine's first process, 1 */
    struct str script; /* or */
    char *const *argv; /* a program and its arguments, ends with NULL */
};

struct host_run_result {
    int exit_code;        /* 128 + n when signal n ended it */
    bool stopped;         /* it was told to end, because this program was */
    bool reboot_required; /* the machine says so (/run/reboot-required and its kin) */
    char tail[HOST_RUN_TAIL_MAX];
    uint32_t tail_n;
};

/* -ERR_… when the script could not be run at all. */
NODISCARD
int host_run(const struct host_run_spec *spec, struct host_run_result *ret, struct err *err);

/* Reboots the machine of process `pid`, if its boot ID is still `expected`: an order that comes
 * twice is carried out once. -ERR_GONE when the machine has rebooted since. */
NODISCARD
int host_reboot(int32_t pid, struct str expected, struct err *err);
