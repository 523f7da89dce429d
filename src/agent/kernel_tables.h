/*
 * kernel_tables: what the running kernel tells in tables: its modules, its swap and the mounts of a
 * process. Pure: text in, entries out.
 */
#pragma once

#include "base/arena.h"

/* Of /proc/modules. Names of modules have dashes or underscores, which mean the same. */
struct kernel_module {
    struct str name;
    uint32_t users; /* how many use it */
};
bool kernel_module_find(struct str modules, struct str name, struct kernel_module *ret);
/* Whether it is one of modules.builtin: a part of the kernel that cannot go. */
bool kernel_module_is_builtin(struct str builtin, struct str name);
bool kernel_module_same(struct str a, struct str b);

/* Walks over the devices and files of /proc/swaps. */
bool kernel_swap_next(struct str *rest, struct arena *out, struct str *ret_path);

/* A line of /proc/PID/mountinfo. */
struct kernel_mount {
    struct str path;
    struct str options; /* of this mount */
    struct str type;
    struct str device;
    struct str super_options; /* of the file system */
};
/* What is seen at a path: of several mounts the last. */
bool kernel_mount_find(struct str mountinfo, struct str path, struct arena *out,
                       struct kernel_mount *ret);
/* Whether a list with commas has it. */
bool kernel_options_have(struct str options, struct str option);
