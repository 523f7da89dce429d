/*
 * reference: the page of documentation that lists every plugin with its keys, from the tables that
 * read configurations.
 */
#pragma once

#include "base/buf.h"

/* Markdown, the same text each time. */
void reference_print(struct buf *out);
