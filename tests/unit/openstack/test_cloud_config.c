#include "openstack/cloud_config.h"

#include "base/buf.h"
#include "tests/check.h"

TEST(cloud_config_reads_the_section_global)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct cloud_config c;
    struct err err = { 0 };
    CHECK_EQ(cloud_config_parse(STR("\xef\xbb\xbf; a comment\n"
                                    "auth-url = before any section\n"
                                    "[ GLOBAL ] # ours\r\n"
                                    "Auth-URL = https://id.example/v3 ; not part of it\n"
                                    "username=\"a \\\"b\\\" \\\\ c#d\"  # comment\n"
                                    "password = p#a;s=s\n"
                                    "domain-name=Default\n"
                                    "tenant-id=first\n"
                                    "tenant-id=second\n"
                                    "lb-version=v2\n"
                                    "[LoadBalancer]\n"
                                    "region=theirs\n"
                                    "a line of theirs\n"
                                    "[Global]\n"
                                    "region=ours"),
                                &a, &c, &err),
             0);
    CHECK_STR(c.auth_url, "https://id.example/v3");
    CHECK_STR(c.username, "a \"b\" \\ c#d");
    CHECK_STR(c.password, "p#a;s=s");
    CHECK_STR(c.domain_name, "Default");
    CHECK_STR(c.tenant_id, "second");
    CHECK_STR(c.region, "ours");
}

TEST(cloud_config_says_what_is_wrong_and_shows_no_value)
{
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        { "", "key 'auth-url' of section [Global] is missing or empty" },
        { "[Global]\nauth-url=x\nusername=u\ntenant-id=t\npassword=\"\"\n",
          "key 'password' of section [Global] is missing or empty" },
        { "[Global\n", "line 1: found no end of the section's name, want [Global]" },
        { "[Global]\nsecret\n", "line 2: found no '=', want key = value" },
        { "[Global]\n\npassword=\"secret\n", "line 3: found no closing quote" },
        { "[Global]\npassword=\"secret\" more\n",
          "line 2: found something behind the closing quote" },
        { "[Global]\npassword=\"se\\cret\"\n", "line 2: found an escape other than \\\" and \\\\" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct cloud_config c;
        struct err err = { 0 };
        CHECK_EQ(cloud_config_parse(str_from(cases[i].text), &a, &c, &err), -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].error);
    }
    check_case(-1);
}

TEST(cloud_config_has_a_limit)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct cloud_config c;
    struct err err = { 0 };
    buf_add(&text, STR("[Global]\nauth-url=x\nusername=u\npassword=p\ntenant-id=t\n"));
    for (uint32_t i = 5; i < CLOUD_CONFIG_LINES_MAX; i++) {
        buf_add(&text, STR("\n"));
    }
    CHECK_EQ(cloud_config_parse(buf_str(&text), &a, &c, &err), 0);
    buf_add(&text, STR("\n\n"));
    CHECK_EQ(cloud_config_parse(buf_str(&text), &a, &c, &err), -ERR_LIMIT);
}
