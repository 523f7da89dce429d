/*
 * fstab: /etc/fstab, and the way in which it and the kernel write paths. Pure; lines that an edit
 * does not concern stay as they are, to the byte, and so does one that says the same already.
 */
#pragma once

#include "base/arena.h"

struct fstab_entry {
    struct str device;
    struct str path; /* "none" for swap */
    struct str type;
    struct str options;
    struct str raw; /* the line with its end */
};

/* Walks over the entries of `*rest`; comments and nonsense are skipped. */
bool fstab_next(struct str *rest, struct arena *out, struct fstab_entry *ret);

/* Which lines are meant. */
struct fstab_key {
    bool swap;         /* swap, on `device` or, without one, on anything */
    struct str device; /* swap only */
    struct str path;   /* not swap */
};

bool fstab_find(const struct fstab_key *key, struct str text, struct arena *out,
                struct fstab_entry *ret);
/* The lines that are meant, as they are. */
struct str fstab_lines(const struct fstab_key *key, struct str text, struct arena *out);
/* One line for `entry` in the place of those that are meant; NULL = they go. */
struct str fstab_edit(const struct fstab_key *key, const struct fstab_entry *entry, struct str text,
                      struct arena *out);
/* Lines of before in the place of those that are meant. */
struct str fstab_restore(const struct fstab_key *key, struct str lines, struct str text,
                         struct arena *out);

/* "\040" is a space, in fstab and in the tables of the kernel. */
struct str fstab_unescape(struct str word, struct arena *out);
/* The next word of a line; false at its end. */
bool fstab_next_word(struct str *rest, struct str *ret);
