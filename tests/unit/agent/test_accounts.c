#include "agent/accounts.h"

#include "tests/check.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
                             "# a comment\n"
                             "\n"
                             "+::::::\n"
                             "short:x:1\n"
                             "bad:x:one:1::/:/bin/sh\n"
                             "bob:x:1000:1001:Bob, B.:/home/bob:/bin/sh";

TEST(accounts_are_found_by_name_and_number)
{
    struct account a;
    CHECK(account_find(STR(passwd), STR("bob"), &a));
    CHECK_EQ(a.uid, 1000);
    CHECK_EQ(a.gid, 1001);
    CHECK_STR(a.comment, "Bob, B.");
    CHECK_STR(a.home, "/home/bob");
    CHECK_STR(a.shell, "/bin/sh");
    CHECK(account_find_uid(STR(passwd), 0, &a));
    CHECK_STR(a.name, "root");
    CHECK(!account_find(STR(passwd), STR("short"), &a));
    CHECK(!account_find(STR(passwd), STR("bad"), &a));
    CHECK(!account_find(STR(passwd), STR("+"), &a));
    CHECK(!account_find(STR(""), STR("root"), &a));
}

TEST(accounts_groups_know_their_members)
{
    struct account_group g;
    struct str text = STR("root:x:0:\nadm:x:4:syslog,bob\nempty:x:5:\n");
    CHECK(account_group_find(text, STR("adm"), &g));
    CHECK_EQ(g.gid, 4);
    CHECK(account_group_has(&g, STR("bob")));
    CHECK(!account_group_has(&g, STR("bo")));
    CHECK(account_group_find_gid(text, 5, &g));
    CHECK(!account_group_has(&g, STR("")));
    CHECK(!account_group_find(text, STR("none"), &g));
}

TEST(accounts_shadow_has_the_hash)
{
    struct account_shadow s;
    struct str text = STR("root:*:19000:0:99999:7:::\nbob:!$y$x:19000::::::\n");
    CHECK(account_shadow_find(text, STR("bob"), &s));
    CHECK_STR(s.hash, "!$y$x");
    CHECK(!account_shadow_find(text, STR("eve"), &s));
}

TEST(accounts_take_the_names_that_useradd_takes)
{
    CHECK(account_name_is_good(STR("bob")));
    CHECK(account_name_is_good(STR("_apt")));
    CHECK(account_name_is_good(STR("host$")));
    CHECK(account_name_is_good(STR("a-b_c1")));
    CHECK(!account_name_is_good(STR("")));
    CHECK(!account_name_is_good(STR("-bob")));
    CHECK(!account_name_is_good(STR("1000")));
    CHECK(!account_name_is_good(STR("a:b")));
    CHECK(!account_name_is_good(STR("a\nb")));
    CHECK(!account_name_is_good(STR("$")));
    CHECK(!account_name_is_good(STR("abcdefghijklmnopqrstuvwxyzabcdefg")));
}
