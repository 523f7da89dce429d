/*
 * mergepatch: JSON merge patches (RFC 7386), applied and made.
 *
 * As kube-apiserver's library does it, which differs from the RFC in two corners: members that are
 * null are also dropped from objects inside lists, unless the list replaces an object; and a
 * document that is null takes no patch.
 */
#pragma once

#include "format/json_tree.h"

/* `*ret` is new; `doc` and `patch` stay as they are. */
NODISCARD
int mergepatch_apply(const struct tree *doc, const struct tree *patch, struct arena *out,
                     struct tree **ret, struct err *err);

/* The patch that turns `from` into `to`, with its keys sorted at every depth. Both are objects
 * (null counts as {}), or lists of as many objects: then the patches of each pair. */
NODISCARD
int mergepatch_create(const struct tree *from, const struct tree *to, struct arena *out,
                      struct tree **ret, struct err *err);
