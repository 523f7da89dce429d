/*
 * kernel_cmdline: the words that a boot loader hands to the kernel, "quiet console=ttyS0 x=\"a
 * b\"". Pure.
 */
#pragma once

#include "base/arena.h"

/* Walks over the words of `*rest`; quotes hold spaces. */
bool kernel_cmdline_next(struct str *rest, struct str *ret);
/* The last word of a parameter counts: "NAME" or "NAME=value". False when there is none. */
bool kernel_cmdline_find(struct str text, struct str name, struct str *ret_word);
/* `word` in the place of the first word of that parameter, and no other; empty = they all go. */
struct str kernel_cmdline_edit(struct str text, struct str name, struct str word,
                               struct arena *out);
/* The words of the first kernel of a grub.cfg; false when it starts none. */
bool kernel_cmdline_of_grub(struct str config, struct str *ret);
