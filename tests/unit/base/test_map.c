#include "base/map.h"
#include "tests/check.h"

TEST(map_takes_the_empty_name)
{
    CLEANUP(map_done)
    struct map m = { 0 };
    int one;
    int two;
    CHECK(map_put(&m, STR_NONE, &one) == NULL);
    CHECK(map_put(&m, STR("a"), &two) == NULL);
    CHECK(map_find(&m, STR("")) == &one);
    CHECK(map_del(&m, STR_NONE) == &one);
    CHECK(map_find(&m, STR_NONE) == NULL);
    CHECK_EQ(map_count(&m), 1);
}
