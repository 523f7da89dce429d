#include "base/defs.h"

#include <stdio.h>
#include <stdlib.h>

void assert_fail(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}

void out_of_memory(size_t wanted)
{
    (void)fprintf(stderr, "out of memory: %zu bytes wanted\n", wanted);
    abort();
}
