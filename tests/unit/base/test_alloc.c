#include "base/alloc.h"
#include "tests/check.h"

TEST(heap_gives_zeroed_memory_and_takes_it_back)
{
    struct pair {
        uint64_t a;
        char b[100];
    } *pair = HEAP_NEW(struct pair);
    CHECK_EQ(pair->a, 0);
    CHECK_EQ(pair->b[99], 0);
    memset(pair, 'x', sizeof(*pair));
    heap_free(pair);
    heap_free(NULL);
}
