/*
 * templates_page: the reference page of the templates that come with the program,
 * docs/templates.md.
 */
#pragma once

#include "base/buf.h"

void templates_page_print(struct buf *out);
