/*
 * type_reference: the reference page of all types of resources, from their tables.
 */
#pragma once

#include "base/buf.h"

/* As Markdown: docs/agent-resources.md is this. */
void type_reference_print(struct buf *out);
