#include "agent/watch_table.h"

#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>

#include "base/alloc.h"

#define NAME_SELF 0u
#define NAME_COUNT 1u
#define COUNT_FOLDER 1u /* as `sibling` of a count: some wait for names in it */
#define CAP_FIRST 64u

void watch_table_init(struct watch_table *t, int fd, uint32_t watch_max)
{
    *t = (struct watch_table){ .fd = fd,
                               .free_first = WATCH_TABLE_NONE,
                               .watch_max = watch_max > 0 ? watch_max : UINT32_MAX };
}

void watch_table_done(struct watch_table *t)
{
    alloc_free(t->entries);
    alloc_free(t->buckets);
    t->entries = NULL;
    t->buckets = NULL;
}

/* FNV-1a: names are those of the machine's administrators, and a crowd of equal ones costs looks,
 * not safety. */
static uint32_t hash_of(struct str name)
{
    uint32_t hash = 2166136261u;
    if (name.n == 0) {
        return NAME_SELF;
    }
    for (size_t i = 0; i < name.n; i++) {
        hash = (hash ^ (unsigned char)name.p[i]) * 16777619u;
    }
    return hash > NAME_COUNT ? hash : hash + 2;
}

static uint32_t bucket_of(const struct watch_table *t, int wd, uint32_t name)
{
    uint32_t mixed = ((uint32_t)wd * 2654435761u) ^ (name * 2246822519u);
    return (mixed ^ (mixed >> 15)) & (t->entry_cap - 1);
}

static void link_entry(struct watch_table *t, uint32_t i)
{
    struct watch_entry *e = &t->entries[i];
    uint32_t *head = &t->buckets[bucket_of(t, e->wd, e->name)];
    e->next = *head;
    *head = i;
}

static void grow(struct watch_table *t)
{
    uint32_t cap = t->entry_cap == 0 ? CAP_FIRST : t->entry_cap * 2;
    struct watch_entry *entries = alloc_bytes((size_t)cap * sizeof(*entries));
    uint32_t *buckets = alloc_bytes((size_t)cap * sizeof(*buckets));
    if (t->entry_n > 0) {
        memcpy(entries, t->entries, (size_t)t->entry_n * sizeof(*entries));
    }
    watch_table_done(t);
    t->entries = entries;
    t->buckets = buckets;
    t->entry_cap = cap;
    for (uint32_t i = 0; i < cap; i++) {
        buckets[i] = WATCH_TABLE_NONE;
    }
    for (uint32_t i = 0; i < t->entry_n; i++) {
        if (entries[i].wd != 0) {
            link_entry(t, i);
        }
    }
}

static uint32_t add_entry(struct watch_table *t, struct watch_entry entry)
{
    uint32_t i = t->free_first;
    if (i != WATCH_TABLE_NONE) {
        t->free_first = t->entries[i].sibling;
    } else {
        if (t->entry_n == t->entry_cap) {
            grow(t);
        }
        i = t->entry_n++;
    }
    t->entries[i] = entry;
    link_entry(t, i);
    return i;
}

static void remove_entry(struct watch_table *t, uint32_t i)
{
    struct watch_entry *e = &t->entries[i];
    uint32_t *at = &t->buckets[bucket_of(t, e->wd, e->name)];
    while (*at != i) {
        ASSERT(*at != WATCH_TABLE_NONE);
        at = &t->entries[*at].next;
    }
    *at = e->next;
    *e = (struct watch_entry){ .sibling = t->free_first };
    t->free_first = i;
}

static uint32_t find_count(const struct watch_table *t, int wd)
{
    if (t->entry_cap == 0) {
        return WATCH_TABLE_NONE;
    }
    uint32_t i = t->buckets[bucket_of(t, wd, NAME_COUNT)];
    while (i != WATCH_TABLE_NONE && (t->entries[i].wd != wd || t->entries[i].name != NAME_COUNT)) {
        i = t->entries[i].next;
    }
    return i;
}

int watch_table_put(struct watch_table *t, int fd, uint32_t mask, struct str name, uint32_t path,
                    uint32_t *first)
{
    char place[32];
    (void)snprintf(place, sizeof(place), "/proc/self/fd/%d", fd);
    int wd = inotify_add_watch(t->fd, place, mask | IN_MASK_ADD);
    if (wd < 0) {
        return -errno;
    }
    uint32_t count = find_count(t, wd);
    if (count == WATCH_TABLE_NONE && t->watch_n >= t->watch_max) {
        (void)inotify_rm_watch(t->fd, wd); /* it was just made */
        return -ENOSPC;
    }
    if (count == WATCH_TABLE_NONE) {
        count = add_entry(t, (struct watch_entry){ .wd = wd, .name = NAME_COUNT });
        t->watch_n++;
    }
    t->entries[count].path++;
    t->entries[count].sibling = name.n > 0 ? COUNT_FOLDER : t->entries[count].sibling;
    *first = add_entry(t, (struct watch_entry){
                              .wd = wd, .name = hash_of(name), .path = path, .sibling = *first });
    return 0;
}

void watch_table_drop(struct watch_table *t, uint32_t first)
{
    while (first != WATCH_TABLE_NONE) {
        int wd = t->entries[first].wd;
        uint32_t next = t->entries[first].sibling;
        uint32_t count = find_count(t, wd);
        remove_entry(t, first);
        if (count != WATCH_TABLE_NONE && --t->entries[count].path == 0) {
            remove_entry(t, count);
            t->watch_n--;
            (void)inotify_rm_watch(t->fd, wd); /* fails when its file is gone already */
        }
        first = next;
    }
}

void watch_table_forget(struct watch_table *t, int wd)
{
    uint32_t count = find_count(t, wd);
    if (count != WATCH_TABLE_NONE) {
        remove_entry(t, count);
        t->watch_n--;
    }
}

void watch_table_find(const struct watch_table *t, int wd, struct str name, watch_table_fn fn,
                      void *ctx)
{
    uint32_t hash = hash_of(name);
    if (t->entry_cap == 0) {
        return;
    }
    for (uint32_t i = t->buckets[bucket_of(t, wd, hash)]; i != WATCH_TABLE_NONE;
         i = t->entries[i].next) {
        if (t->entries[i].wd == wd && t->entries[i].name == hash) {
            fn(ctx, t->entries[i].path);
        }
    }
}

void watch_table_each(const struct watch_table *t, int wd, watch_table_fn fn, void *ctx)
{
    uint32_t count = find_count(t, wd);
    if (count == WATCH_TABLE_NONE || t->entries[count].sibling != COUNT_FOLDER) {
        watch_table_find(t, wd, STR_NONE, fn, ctx);
        return;
    }
    for (uint32_t i = 0; i < t->entry_n; i++) {
        if (t->entries[i].wd == wd && t->entries[i].name != NAME_COUNT) {
            fn(ctx, t->entries[i].path);
        }
    }
}
