#include "base/alloc.h"

#include <malloc.h>

void *alloc_bytes(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL) {
        out_of_memory(size);
    }
    return memory;
}

void alloc_free(void *memory)
{
    free(memory);
}

void alloc_trim(void)
{
    (void)malloc_trim(0); /* there may be nothing to give */
}
