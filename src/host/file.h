/*
 * file: whole files with a limit, for the small ones that configuration consists of.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#define CREDENTIAL_FILE_BYTES_MAX                                                                  \
    ((size_t)256 * 1024) /* a token has 2 KiB, a bundle of authorities some dozens */
#define CONFIG_FILE_BYTES_MAX ((size_t)4 * 1024 * 1024) /* kubeconfigs of 1,000 clusters exist */

/* Differs when a file has been replaced or changed. */
struct file_mark {
    uint64_t inode;
    int64_t mtime_ns;
    int64_t size;
};

bool file_mark_eq(const struct file_mark *a, const struct file_mark *b);
NODISCARD
int file_mark(struct str path, struct file_mark *ret, struct err *err);

/* The content, NUL-terminated behind its end. -ERR_LIMIT when it is longer than `max`. */
NODISCARD
int file_read(struct str path, size_t max, struct arena *out, struct str *ret, struct err *err);

/* Written beside its place and renamed, so a reader never sees half of it. Only the owner may read
 * the file: what is written this way carries keys. */
NODISCARD
int file_replace(struct str path, struct str content, struct err *err);
