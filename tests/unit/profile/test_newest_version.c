#include "profile/newest_version.h"

#include "tests/check.h"

TEST(newest_version_is_kept_with_its_number)
{
    CLEANUP(newest_version_done)
    struct newest_version n = { 0 };
    CHECK(!newest_version_add(&n, STR("garbage")));
    CHECK(!newest_version_is_lost(&n));
    CHECK(newest_version_add(&n, STR("1.2.3")));
    CHECK(!newest_version_add(&n, STR("1.2.2")));
    CHECK(!newest_version_add(&n, STR("1.2.3+build")));
    CHECK_EQ(n.holders, 2);
    newest_version_remove(&n, STR("1.2.3"));
    newest_version_remove(&n, STR("1.2.2"));
    newest_version_remove(&n, STR("garbage"));
    CHECK_EQ(n.holders, 1);
    CHECK(newest_version_add(&n, STR("2.0.0-rc")));
    CHECK_STR(buf_str(&n.text), "2.0.0-rc");
    CHECK_EQ(n.holders, 1);
}

TEST(newest_version_is_lost_with_the_last_of_it)
{
    CLEANUP(newest_version_done)
    struct newest_version n = { 0 };
    CHECK(newest_version_add(&n, STR("1.2.3")));
    newest_version_remove(&n, STR("1.2.3"));
    CHECK(newest_version_is_lost(&n));
    CHECK(!newest_version_add(&n, STR("1.0.0")));
    CHECK(newest_version_is_lost(&n)); /* something between the two may be there */
    CHECK(!newest_version_add(&n, STR("1.2.3")));
    CHECK(!newest_version_is_lost(&n));
    newest_version_reset(&n);
    CHECK(!newest_version_is_lost(&n));
    CHECK(newest_version_add(&n, STR("1.0.0")));
}
