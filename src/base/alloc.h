/*
 * alloc: single objects on the heap that share their lifetime with nothing else: a connection, a
 * watch, a server.
 *
 * Everything that shares a lifetime belongs into an arena instead. Memory comes back zeroed;
 * running out ends the process.
 */
#pragma once

#include "base/defs.h"

#define ALLOC_NEW(type) ((type *)alloc_bytes(sizeof(type)))

void *alloc_bytes(size_t size);
void alloc_free(void *memory); /* accepts NULL */
/* Gives back to the system what was freed: for whoever did much and now waits for long. */
void alloc_trim(void);
