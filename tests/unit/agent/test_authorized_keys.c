#include "agent/authorized_keys.h"

#include "tests/check.h"

#define BLOB "AAAAC3NzaC1lZDI1NTE5AAAAIJ0mJmZp0gq2zkPpB8jYk0mVr8pH7o3E8r2M0w1c5x7Q"
#define KEY "ssh-ed25519 " BLOB

TEST(authorized_keys_read_options_with_quotes)
{
    struct authorized_key key;
    CHECK(authorized_key_read(STR("command=\"echo \\\"a b\\\"\",no-pty\tssh-rsa AAAA  me at home "),
                              &key));
    CHECK_STR(key.options, "command=\"echo \\\"a b\\\"\",no-pty");
    CHECK_STR(key.type, "ssh-rsa");
    CHECK_STR(key.blob, "AAAA");
    CHECK_STR(key.comment, "me at home");
    CHECK(authorized_key_read(STR(KEY), &key));
    CHECK_STR(key.options, "");
    CHECK_STR(key.comment, "");
    CHECK(!authorized_key_read(STR(""), &key));
    CHECK(!authorized_key_read(STR("# " KEY), &key));
    CHECK(!authorized_key_read(STR("ssh-rsa"), &key));
    CHECK(!authorized_key_read(STR("hello world foo"), &key));
    CHECK(!authorized_key_read(STR("command=\"open " KEY), &key));
}

TEST(authorized_keys_take_only_whole_keys)
{
    static const char *const bad[] = {
        "",
        "ssh-ed25519",
        "ssh-ed25519 AAAA",
        "ssh-rsa " BLOB,
        "restrict " KEY,
        KEY "\n" KEY,
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI*",
    };
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct authorized_key key;
    CHECK_EQ(authorized_key_parse(STR(KEY " me"), &memory, &key, &err), 0);
    CHECK_STR(key.comment, "me");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        check_case((int64_t)i);
        CHECK_EQ(authorized_key_parse(str_from(bad[i]), &memory, &key, &err), -ERR_INVALID);
    }
    check_case(-1);
    CHECK(authorized_options_are_good(STR("restrict,command=\"a b\"")));
    CHECK(!authorized_options_are_good(STR("a b")));
    CHECK(!authorized_options_are_good(STR("a\nb")));
    CHECK(!authorized_options_are_good(STR("#a")));
    CHECK(!authorized_options_are_good(STR("ssh-rsa")));
    CHECK(!authorized_options_are_good(STR("")));
}

TEST(authorized_keys_are_edited_line_by_line)
{
    static const struct {
        const char *text;
        const char *options;
        bool absent;
        bool exclusive;
        const char *want;
    } cases[] = {
        { "", NULL, false, false, KEY " me\n" },
        { "# a\nssh-rsa AAAA b", NULL, false, false, "# a\nssh-rsa AAAA b\n" KEY " me\n" },
        { "restrict " KEY " other\n", NULL, false, false, "restrict " KEY " other\n" },
        { "restrict " KEY " other\n", "no-pty", false, false, "no-pty " KEY " me\n" },
        { KEY "\n# a\n" KEY " twice\n", NULL, false, false, KEY "\n# a\n" },
        { "# a\nssh-rsa AAAA b\n" KEY, NULL, false, true, "# a\n" KEY },
        { "# a\nssh-rsa AAAA b\n" KEY, NULL, true, false, "# a\nssh-rsa AAAA b\n" },
    };
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct authorized_keys_edit edit = { .options_given = cases[i].options != NULL,
                                             .absent = cases[i].absent,
                                             .exclusive = cases[i].exclusive };
        CHECK(authorized_key_read(STR(KEY " me"), &edit.key));
        edit.key.options = str_from(cases[i].options);
        struct str once = authorized_keys_edit(&edit, str_from(cases[i].text), &memory);
        CHECK_STR(once, cases[i].want);
        CHECK_STR(authorized_keys_edit(&edit, once, &memory), once);
    }
    check_case(-1);
}

TEST(authorized_keys_come_back_as_they_were)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct authorized_key key;
    CHECK(authorized_key_read(STR(KEY), &key));
    CHECK_STR(authorized_keys_restore(&key, STR(""), STR(""), STR("# a\n" KEY "\nssh-rsa AAAA\n"),
                                      &memory),
              "# a\nssh-rsa AAAA\n");
    CHECK_STR(
        authorized_keys_restore(&key, STR("restrict " KEY), STR(""), STR(KEY "\n# b\n"), &memory),
        "restrict " KEY "\n# b\n");
    CHECK_STR(authorized_keys_restore(&key, STR(""), STR("ssh-rsa AAAA a\nssh-rsa BBBB b\n"),
                                      STR(KEY "\nssh-rsa BBBB c\n"), &memory),
              "ssh-rsa BBBB c\nssh-rsa AAAA a\n");
}
