#include "kube/intern.h"

#include "base/alloc.h"
#include "base/map.h"

#define INTERN_SLOTS_MIN 64u

void intern_init(struct intern *table, uint64_t key0, uint64_t key1)
{
    *table = (struct intern){ .key = { key0, key1 } };
}

void intern_done(struct intern *table)
{
    for (uint32_t i = 0; i < table->slot_count; i++) {
        alloc_free(table->slots[i]);
    }
    alloc_free(table->slots);
    *table = (struct intern){ .key = { table->key[0], table->key[1] } };
}

/* The slot that holds the text, or the empty one where it would go. */
static uint32_t intern_slot(const struct intern *table, struct str s, uint64_t hash)
{
    uint32_t mask = table->slot_count - 1;
    uint32_t at = (uint32_t)hash & mask;
    while (table->slots[at] != NULL) {
        const struct intern_text *text = table->slots[at];
        if (text->hash == hash && str_eq(intern_str(text), s)) {
            return at;
        }
        at = (at + 1) & mask;
    }
    return at;
}

static void intern_grow(struct intern *table)
{
    uint32_t old_count = table->slot_count;
    struct intern_text **old = table->slots;
    table->slot_count = old_count == 0 ? INTERN_SLOTS_MIN : old_count * 2;
    table->slots = alloc_bytes(table->slot_count * sizeof(struct intern_text *));
    for (uint32_t i = 0; i < old_count; i++) {
        if (old[i] != NULL) {
            table->slots[intern_slot(table, intern_str(old[i]), old[i]->hash)] = old[i];
        }
    }
    alloc_free(old);
}

const struct intern_text *intern_take(struct intern *table, struct str s)
{
    ASSERT(s.n < UINT32_MAX);
    if (table->count * 4 >= table->slot_count * 3) {
        intern_grow(table);
    }
    uint64_t hash = map_hash(table->key, s);
    uint32_t at = intern_slot(table, s, hash);
    struct intern_text *text = table->slots[at];
    if (text == NULL) {
        text = alloc_bytes(sizeof(*text) + s.n + 1);
        text->n = (uint32_t)s.n;
        text->hash = hash;
        if (s.n > 0) {
            memcpy(text->p, s.p, s.n);
        }
        table->slots[at] = text;
        table->count++;
    }
    text->refs++;
    return text;
}

const struct intern_text *intern_find(const struct intern *table, struct str s)
{
    if (table->count == 0) {
        return NULL;
    }
    return table->slots[intern_slot(table, s, map_hash(table->key, s))];
}

void intern_give(struct intern *table, const struct intern_text *text)
{
    if (text == NULL) {
        return;
    }
    uint32_t at = intern_slot(table, intern_str(text), text->hash);
    struct intern_text *held = table->slots[at];
    ASSERT(held == text && held->refs > 0);
    if (--held->refs > 0) {
        return;
    }
    alloc_free(held);
    table->slots[at] = NULL;
    table->count--;
    /* What probed past the emptied slot moves up, or it would not be found again. */
    uint32_t mask = table->slot_count - 1;
    for (uint32_t next = (at + 1) & mask; table->slots[next] != NULL; next = (next + 1) & mask) {
        struct intern_text *moved = table->slots[next];
        table->slots[next] = NULL;
        table->slots[intern_slot(table, intern_str(moved), moved->hash)] = moved;
    }
}

void intern_check(const struct intern *table)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->slot_count; i++) {
        const struct intern_text *text = table->slots[i];
        if (text != NULL) {
            count++;
            ASSERT(text->refs > 0);
            ASSERT(intern_slot(table, intern_str(text), text->hash) == i);
        }
    }
    ASSERT(count == table->count);
}
