#include "base/alloc.h"
#include "tests/check.h"

TEST(alloc_gives_zeroed_memory_and_takes_it_back)
{
    struct pair {
        uint64_t a;
        char b[100];
    } *pair = ALLOC_NEW(struct pair);
    CHECK_EQ(pair->a, 0);
    CHECK_EQ(pair->b[99], 0);
    memset(pair, 'x', sizeof(*pair));
    alloc_free(pair);
    alloc_free(NULL);
}
