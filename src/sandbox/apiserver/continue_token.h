/*
 * continue_token: the `continue` of a paged list: the next key, and at which version.
 *
 * The same form as the real server's, base64 of {"v":"meta.k8s.io/v1","rv":…,"start":…}, so that
 * tools that look inside find what they expect. Version -1 goes on at the latest.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct continue_token {
    int64_t rv;       /* > 0, or -1: inconsistent, at the latest version */
    struct str start; /* first key that may be listed */
};

struct str continue_token_print(const struct continue_token *page, struct arena *out);
/* The message is what follows "invalid continue token: ". */
NODISCARD
int continue_token_parse(struct str token, struct arena *out, struct continue_token *ret,
                         struct err *err);
