/*
 * assets: the dashboard's files, put into the program when it is built (tools/embed).
 */
#pragma once

#include "base/str.h"

struct asset {
    const char *name; /* below src/web/assets: "app.js" */
    const char *type;
    const unsigned char *bytes;
    size_t n;
};

extern const struct asset assets[];
extern const size_t assets_count;
