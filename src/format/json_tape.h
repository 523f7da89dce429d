/*
 * json_tape: how the cells of json.h are laid down; for readers that make a tape, of JSON or of
 * YAML.
 *
 * A container is pushed first, then what is in it, then it is closed: that is when its span is
 * known. Cells are addressed by index while the tape grows, since growing moves it.
 */
#pragma once

#include "format/json.h"

#define TAPE_KIND_BITS 3u
#define TAPE_KIND_MASK ((1u << TAPE_KIND_BITS) - 1)

struct tape {
    struct arena *out;
    struct jval *cells;
    uint32_t n;
    uint32_t cap;
};

/* The cell is good until the next push. */
static inline struct jval *tape_push(struct tape *t, enum jkind kind)
{
    if (t->n == t->cap) {
        ARENA_GROW(t->out, t->cells, t->n, t->cap);
    }
    struct jval *v = &t->cells[t->n++];
    *v = (struct jval){ .tag = (1u << TAPE_KIND_BITS) | (uint32_t)kind };
    return v;
}

/* Everything behind `at` is in it. */
static inline void tape_close(struct tape *t, uint32_t at)
{
    struct jval *v = &t->cells[at];
    v->tag = (t->n - at) << TAPE_KIND_BITS | (v->tag & TAPE_KIND_MASK);
}
