/*
 * assets: the dashboard's files, put into the program when it is built (tools/embed).
 */
#pragma once

#include "base/asset.h"

extern const struct asset assets[];
extern const size_t assets_count;
