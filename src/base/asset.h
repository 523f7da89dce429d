/*
 * asset: a file that was put into the program when it was built (tools/embed).
 */
#pragma once

#include "base/str.h"

struct asset {
    const char *name; /* without its folder: "app.js" */
    const char *type; /* its media type */
    const unsigned char *bytes;
    size_t n;
};

static inline struct str asset_text(const struct asset *a)
{
    return (struct str){ .p = (const char *)a->bytes, .n = a->n };
}
