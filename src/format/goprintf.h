/*
 * goprintf: Go's fmt over Go values: Print, Println and Printf with Go's verbs, flags and
 * complaints.
 *
 * Not there, because no message needs them: %p, %b and %x of floats, '#' of floats, and Go's own
 * dumps of types that have a text (times, quantities): those print their text.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "format/govalue.h"

/* Operands between which neither is a string are set apart by a blank. */
void goprintf_print(struct buf *out, const struct govalue *args, uint32_t n, struct arena *tmp);
void goprintf_println(struct buf *out, const struct govalue *args, uint32_t n, struct arena *tmp);
void goprintf_printf(struct buf *out, struct str format, const struct govalue *args, uint32_t n,
                     struct arena *tmp);

/* strconv.Quote and its relatives: `mark` is '"' or '\''; `ascii` escapes all else. */
void goprintf_quote(struct buf *out, struct str text, char mark, bool ascii);
/* unicode.IsPrint, except that most points Unicode has not given away yet count as printable. */
bool goprintf_is_print(uint32_t point);
