/*
 * continue_token: continue tokens: where a list goes on, and at which version.
 *
 * The same form as the real server's, base64 of {"v":"meta.k8s.io/v1","rv":…,"start":…}, so that
 * tools that look inside find what they expect. Version -1 goes on at the latest.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct page {
    int64_t rv;       /* > 0, or -1: inconsistent, at the latest version */
    struct str start; /* first key that may be listed */
};

struct str page_print(const struct page *page, struct arena *out);
/* The message is what follows "invalid continue token: ". */
NODISCARD
int page_parse(struct str token, struct arena *out, struct page *ret, struct err *err);
