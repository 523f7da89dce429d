/*
 * banned: calls that are not made here, as compile errors.
 *
 * Each has a safer sibling: str for parsing, buf for building text, timestamp for civil time,
 * host/child for processes. Included by defs.h, after the libc headers that declare them.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* With _FORTIFY_SOURCE these are macros for clang, which refuses to poison a macro. */
#undef sprintf
#undef vsprintf
#undef strcpy
#undef strcat
#undef strncat

#pragma GCC poison atoi atol atoll strtol strtoul strtoll strtoull sscanf strcpy strcat sprintf
#pragma GCC poison vsprintf strncat strtok strtok_r gmtime localtime gmtime_r localtime_r system   \
    popen
