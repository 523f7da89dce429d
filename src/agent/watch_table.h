/*
 * watch_table: which paths wait for what from an inotify instance.
 *
 * The kernel gives each watched file or folder a number; many paths go through one folder. An entry
 * says that a path waits for one name in a folder, or for the file itself. Of the name only a hash
 * is kept: another name with the same hash costs one look too many, and ten thousand files cost
 * little memory. A watch that no path needs any more is given back to the kernel.
 */
#pragma once

#include "base/str.h"

#define WATCH_TABLE_NONE UINT32_MAX

struct watch_entry {
    int wd;           /* 0 = the entry is free */
    uint32_t name;    /* hash; 0 = the file itself, 1 = this entry counts those of its number */
    uint32_t path;    /* or the count */
    uint32_t next;    /* in its bucket */
    uint32_t sibling; /* the next entry of the same path, or the next free one */
};

struct watch_table {
    int fd; /* borrowed: inotify's */
    struct watch_entry *entries;
    uint32_t entry_n;
    uint32_t entry_cap;
    uint32_t free_first;
    uint32_t *buckets; /* as many as entry_cap, a power of two */
    uint32_t watch_n;  /* of the kernel's */
    uint32_t watch_max;
};

void watch_table_init(struct watch_table *t, int fd, uint32_t watch_max);
void watch_table_done(struct watch_table *t);

/* Watches what `fd` (O_PATH) is, and notes that `path` waits for `name` in it, or for itself
 * without a name. `*first` heads the path's entries. Answers a negative errno when the kernel
 * cannot. */
int watch_table_put(struct watch_table *t, int fd, uint32_t mask, struct str name, uint32_t path,
                    uint32_t *first);
/* Takes out the entries from `first` on. */
void watch_table_drop(struct watch_table *t, uint32_t first);
/* The kernel has given up this number itself. */
void watch_table_forget(struct watch_table *t, int wd);

typedef void (*watch_table_fn)(void *ctx, uint32_t path);
/* Those that wait for this name in this folder. `fn` changes nothing of the table. */
void watch_table_find(const struct watch_table *t, int wd, struct str name, watch_table_fn fn,
                      void *ctx);
/* Those that wait for anything in it; of a folder it looks at all entries. */
void watch_table_each(const struct watch_table *t, int wd, watch_table_fn fn, void *ctx);
