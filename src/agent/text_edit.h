/*
 * text_edit: one line or one marked block of a text file, put in or taken out. Pure: text in, text
 * out, and what the edit does not concern stays as it is, to the byte.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct regex;

enum text_position { TEXT_END, TEXT_START, TEXT_AFTER, TEXT_BEFORE };

struct text_line {
    struct str line;           /* without its end */
    const struct regex *match; /* the last line that matches becomes `line`; NULL = only an equal */
    bool absent;               /* every line that matches, or is equal, goes */
    enum text_position position; /* of a new line */
    const struct regex *anchor; /* TEXT_AFTER: the last line that matches; TEXT_BEFORE: the first */
};

/* -ERR_NOTFOUND when nothing matches the anchor. */
NODISCARD
int text_line_edit(const struct text_line *spec, struct str text, struct arena *out,
                   struct str *ret, struct err *err);
/* The line that the edit would replace; false when there is none. */
NODISCARD
int text_line_find(const struct text_line *spec, struct str text, struct arena *tmp,
                   struct str *ret, bool *ret_found, struct err *err);

struct text_block {
    struct str begin; /* the whole line before */
    struct str end;   /* the whole line behind */
    struct str content;
    bool absent;
    bool at_start; /* of a new block */
};

/* -ERR_INVALID when the block begins twice or does not end. */
NODISCARD
int text_block_edit(const struct text_block *spec, struct str text, struct arena *out,
                    struct str *ret, struct err *err);
/* What is between the marks; false when they are not there. */
NODISCARD
int text_block_find(const struct text_block *spec, struct str text, struct str *ret,
                    bool *ret_found, struct err *err);

/* Walks over lines with their ends, so that the pieces make the text again. */
bool text_next_line(struct str *rest, struct str *ret);
/* A line without its end. */
struct str text_chomp(struct str line);
/* Adds a line; one before it that has no end gets one. */
struct buf;
void text_add_line(struct buf *out, struct str line);
