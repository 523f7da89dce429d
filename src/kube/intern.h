/*
 * intern: texts that repeat, kept once and counted.
 *
 * Label keys and most label values are the same on thousands of nodes; each costs a pointer there
 * and its bytes here. A text is freed when the last who took it gives it back.
 */
#pragma once

#include "base/str.h"

struct intern_text {
    uint32_t refs;
    uint32_t n;
    uint64_t hash;
    char p[];
};

struct intern {
    struct intern_text **slots; /* open addressing, linear probing; a power of two */
    uint32_t slot_count;
    uint32_t count;
    uint64_t key[2]; /* of the hash: names chosen by a stranger must not make it slow */
};

void intern_init(struct intern *table, uint64_t key0, uint64_t key1);
/* Frees the texts too, whoever still holds them. */
void intern_done(struct intern *table);

const struct intern_text *intern_take(struct intern *table, struct str s);
void intern_give(struct intern *table, const struct intern_text *text);

/* NULL when nobody holds it. For lookups that need no count. */
const struct intern_text *intern_find(const struct intern *table, struct str s);

static inline struct str intern_str(const struct intern_text *text)
{
    return text == NULL ? STR_NONE : (struct str){ .p = text->p, .n = text->n };
}

void intern_check(const struct intern *table);
