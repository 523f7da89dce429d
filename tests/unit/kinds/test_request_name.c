#include "kinds/request_name.h"

#include "tests/check.h"

TEST(request_name_follows_from_who_asks_for_what)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct request_target node = { STR("node"), STR_NONE, STR("n1") };
    const struct request_target loud = { STR("Node"), STR_NONE, STR("N1") };
    const struct request_target web = { STR("deployment"), STR("shop"), STR("web") };
    struct str stem = request_name_stem(STR("rebooter"), &node, &a);
    CHECK_STR(stem, "mr-efcdb05683ab2bad-");
    CHECK_STR(request_name_stem(STR("rebooter"), &loud, &a), stem);
    CHECK(!str_eq(request_name_stem(STR("other"), &node, &a), stem));
    CHECK_STR(request_name_stem(STR("rebooter"), &web, &a), "mr-b68a2c4adccdc239-");
    CHECK_STR(request_name_stem(STR("cluster-api-bridge"), &node, &a), "mr-6a9d4879b3c9b375-");
    CHECK_STR(request_target_text(&node, &a), "node n1");
    CHECK_STR(request_target_text(&web, &a), "deployment shop/web");
}

TEST(request_name_numbers_are_read_behind_their_own_stem)
{
    CHECK_EQ(request_name_number(STR("mr-0123-7"), STR("mr-0123-")), 7);
    CHECK_EQ(request_name_number(STR("mr-0123-x"), STR("mr-0123-")), 0);
    CHECK_EQ(request_name_number(STR("mr-9999-7"), STR("mr-0123-")), 0);
    CHECK_EQ(request_name_number(STR("mr-0123-"), STR("mr-0123-")), 0);
}
