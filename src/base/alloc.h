/*
 * alloc: single objects whose life is nobody else's: a connection, a watch, a server.
 *
 * Everything that shares a lifetime belongs into an arena instead. Memory comes back zeroed;
 * running out ends the process.
 */
#pragma once

#include "base/defs.h"

#define HEAP_NEW(type) ((type *)heap_alloc(sizeof(type)))

void *heap_alloc(size_t size);
void heap_free(void *memory); /* accepts NULL */
