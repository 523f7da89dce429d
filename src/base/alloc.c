#include "base/alloc.h"

void *heap_alloc(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL) {
        out_of_memory(size);
    }
    return memory;
}

void heap_free(void *memory)
{
    free(memory);
}
