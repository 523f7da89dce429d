/*
 * package_lock: whether a package manager is in the middle of its work.
 *
 * dpkg, apt and rpm hold a lock of the kernel's on a file while they change the machine. One that
 * is killed then leaves packages half installed, so whoever stops a script waits for the lock
 * first.
 */
#pragma once

#include <stdbool.h>

/* `root` is the machine's root, "" for this one's own. What cannot be read is not locked. */
bool package_lock_held(const char *root);
