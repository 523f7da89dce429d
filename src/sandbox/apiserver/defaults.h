/*
 * defaults: what the server adds to built-in objects that their authors left out.
 */
#pragma once

#include "sandbox/apiserver/kind.h"

/* Every write: fills in what is absent. `t` is in its stored form. */
void defaults_apply(const struct kind *kind, struct tree *t, struct arena *a);
/* A new object: its first status, and what only a creation sets. */
void defaults_create(const struct kind *kind, struct tree *t, struct arena *a);
/* The members that an empty object of the kind still shows, as in bookmarks. */
void defaults_zero_values(const struct kind *kind, struct tree *t, struct arena *a);
