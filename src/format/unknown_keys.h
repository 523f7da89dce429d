/*
 * unknown_keys: warns of keys that nothing reads, with the key that was probably meant.
 *
 * The original ignores such keys, and files with them are in use: they are accepted. But a slip
 * such as `timezone` for `timeZone` changes what a file means, so it is told.
 */
#pragma once

#include "format/ucfg.h"

/* `names` is what may stand in the mapping: "check|notify|trigger". `what` is where, for people:
 * "a transition". `obj` may be NULL. */
void unknown_keys_warn(const struct ucfg_value *obj, const char *names, const char *what,
                       struct problems *problems);
/* The same for the file as a whole, where any key that a variable names may stand, too. */
void unknown_keys_warn_root(const struct ucfg *u, const char *names, struct problems *problems);
