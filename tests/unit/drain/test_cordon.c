/* Whose a cordon is. How cordons are made and lifted is tested with the preparation of nodes. */
#include "drain/cordon.h"
#include "tests/check.h"

TEST(cordon_is_ours_only_with_a_mark_that_names_us)
{
    CHECK(cordon_is_ours(STR("a"), STR("a")));
    CHECK(!cordon_is_ours(STR("b"), STR("a")));
    CHECK(!cordon_is_ours(STR(""), STR("a")));
    CHECK(!cordon_is_ours(STR_NONE, STR("a")));
    CHECK(!cordon_is_ours(STR("ab"), STR("a")));
    CHECK(!cordon_is_ours(STR_NONE, STR_NONE));
}
