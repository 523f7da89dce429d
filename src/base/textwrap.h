/*
 * textwrap: sentences in lines of limited width, as a terminal shows them.
 *
 * Text comes from anybody: control characters are shown as '?', so that no label can move a
 * cursor. A word that is wider than the line stays whole, for people copy names and paths.
 */
#pragma once

#include "base/buf.h"

struct textwrap {
    struct buf *out;
    uint32_t columns; /* 0 = lines have no end */
    uint32_t hang;    /* where a line goes on that was broken */
    uint32_t column;  /* where the cursor is, from 0 */
    size_t gap;       /* in `out`: where the line can be broken; 0 = nowhere */
};

/* Adds text. Lines are broken at spaces only, whichever call added the space. A line break in the
 * text stays a line break. */
void textwrap_add(struct textwrap *w, struct str text);
void textwrap_printf(struct textwrap *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Spaces up to that column, at least one. */
void textwrap_tab(struct textwrap *w, uint32_t column);
void textwrap_end(
    struct textwrap *w); /* of the line, without spaces at its end; the next one has no hang */

/* Columns that a text takes: characters, of which none is wide. */
uint32_t textwrap_width(struct str text);
