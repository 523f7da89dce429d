/*
 * examples: files of docs/examples, put into the program when it is built (tools/embed).
 */
#pragma once

#include "base/asset.h"

extern const struct asset examples[];
extern const size_t examples_count;
