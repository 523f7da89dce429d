#include "base/map.h"

#define HASH_NONFATAL_OOM 0
#define uthash_fatal(msg) out_of_memory(0)
#include <uthash.h>

struct map_item {
    UT_hash_handle hh;
    void *value;
    size_t n;
    char name[];
};

static uint64_t sip_rotate(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = sip_rotate(v[1], 13) ^ v[0];
    v[0] = sip_rotate(v[0], 32);
    v[2] += v[3];
    v[3] = sip_rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = sip_rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = sip_rotate(v[1], 17) ^ v[2];
    v[2] = sip_rotate(v[2], 32);
}

uint64_t map_hash(const uint64_t key[2], struct str bytes)
{
    uint64_t v[4] = {
        0x736f6d6570736575ULL ^ key[0],
        0x646f72616e646f6dULL ^ key[1],
        0x6c7967656e657261ULL ^ key[0],
        0x7465646279746573ULL ^ key[1],
    };
    size_t whole = bytes.n & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8) {
        uint64_t word;
        memcpy(&word, bytes.p + i, sizeof(word));
        v[3] ^= word;
        sip_round(v);
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)bytes.n << 56;
    for (size_t i = whole; i < bytes.n; i++) {
        last |= (uint64_t)(unsigned char)bytes.p[i] << (8 * (i & 7));
    }
    v[3] ^= last;
    sip_round(v);
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void map_init(struct map *m, uint64_t key0, uint64_t key1)
{
    *m = (struct map){ .key = { key0, key1 } };
}

void map_done(struct map *m)
{
    struct map_item *item = m->items;
    HASH_CLEAR(hh, m->items); /* frees the table; the items stay in their list */
    while (item != NULL) {
        struct map_item *next = item->hh.next;
        free(item);
        item = next;
    }
}

uint32_t map_count(const struct map *m)
{
    return HASH_COUNT(m->items);
}

static struct map_item *map_item_find(const struct map *m, struct str name, unsigned hash)
{
    struct map_item *item = NULL;
    const char *p = name.n > 0 ? name.p : ""; /* uthash compares; memcmp wants no NULL */
    HASH_FIND_BYHASHVALUE(hh, m->items, p, name.n, hash, item);
    return item;
}

void *map_find(const struct map *m, struct str name)
{
    if (m->items == NULL) {
        return NULL;
    }
    struct map_item *item = map_item_find(m, name, (unsigned)map_hash(m->key, name));
    return item == NULL ? NULL : item->value;
}

void *map_put(struct map *m, struct str name, void *value)
{
    ASSERT(value != NULL);
    unsigned hash = (unsigned)map_hash(m->key, name);
    struct map_item *item = m->items == NULL ? NULL : map_item_find(m, name, hash);
    if (item != NULL) {
        void *old = item->value;
        item->value = value;
        return old;
    }
    item = calloc(1, sizeof(*item) + name.n + 1);
    if (item == NULL) {
        out_of_memory(sizeof(*item) + name.n);
    }
    item->value = value;
    item->n = name.n;
    if (name.n > 0) {
        memcpy(item->name, name.p, name.n);
    }
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, m->items, item->name, item->n, hash, item);
    return NULL;
}

void *map_del(struct map *m, struct str name)
{
    if (m->items == NULL) {
        return NULL;
    }
    struct map_item *item = map_item_find(m, name, (unsigned)map_hash(m->key, name));
    if (item == NULL) {
        return NULL;
    }
    void *value = item->value;
    HASH_DELETE(hh, m->items, item);
    free(item);
    return value;
}

struct map_item *map_next(const struct map *m, const struct map_item *item)
{
    return item == NULL ? m->items : item->hh.next;
}

struct map_item *map_after(const struct map *m, const struct map_item *item)
{
    return item == NULL ? NULL : map_next(m, item);
}

struct str map_item_name(const struct map_item *item)
{
    return (struct str){ .p = item->name, .n = item->n };
}

void *map_item_value(const struct map_item *item)
{
    return item->value;
}
