#include "agent/setting_edit.h"

#include "tests/check.h"

static const struct {
    enum setting_format format;
    const char *section;
    const char *name;
    const char *separator;
    const char *value; /* NULL: it is removed */
    const char *text;
    const char *want;
} cases[] = {
    { SETTING_INI, "", "a", "=", "1", "", "a=1\n" },
    { SETTING_INI, "s", "a", "=", "1", "", "[s]\na=1\n" },
    { SETTING_INI, "s", "a", "=", "1", "[t]\nb=2", "[t]\nb=2\n\n[s]\na=1\n" },
    { SETTING_INI, "s", "a", "=", "1", "[s]\n# a=9\na = 0 \nb=2\n", "[s]\n# a=9\na = 1 \nb=2\n" },
    { SETTING_INI, "s", "a", "=", "1", "[s]\nb=2\n\n[t]\na=7\n", "[s]\nb=2\na=1\n\n[t]\na=7\n" },
    { SETTING_INI, "t", "a", "=", "1", "[s]\na=7\n[t]\n", "[s]\na=7\n[t]\na=1\n" },
    { SETTING_INI, "s", "a", "=", "1", "[s]\na=7\na=8\n", "[s]\na=7\na=1\n" },
    { SETTING_INI, "s", "a", "=", "1", "[s]\na=\n", "[s]\na=1\n" },
    { SETTING_INI, "s", "a", "=", NULL, "[s]\na=7\nb=1\na=8\n[t]\na=1\n", "[s]\nb=1\n[t]\na=1\n" },
    { SETTING_INI, "", "a", "=", "1", "; c\nb=2\n[s]\na=3\n", "; c\nb=2\na=1\n[s]\na=3\n" },
    { SETTING_ENV, "", "A", "=", "x y", "A=z\n", "A=\"x y\"\n" },
    { SETTING_ENV, "", "A", "=", "x", "export A='z'  \nB=1\n", "export A=x  \nB=1\n" },
    { SETTING_ENV, "", "A", "=", "z", "export A='z'\n", "export A='z'\n" },
    { SETTING_ENV, "", "A", "=", "$x\"`\\", "", "A=\"\\$x\\\"\\`\\\\\"\n" },
    { SETTING_ENV, "", "A", "=", "", "", "A=\"\"\n" },
    { SETTING_KV, "", "a.b", " = ", "1 2", "a.b=3\n", "a.b=1 2\n" },
    { SETTING_KV, "", "a.b", " = ", "1", "# x\n", "# x\na.b = 1\n" },
    { SETTING_KV, "", "a", " ", "1", "a\t 2\nab 3\n", "a\t 1\nab 3\n" },
    { SETTING_KV, "", "a", ":", NULL, "a: 2\nb: 3", "b: 3" },
    { SETTING_SSHD, "", "PermitRootLogin", " ", "no", "#PermitRootLogin yes\nX11Forwarding yes\n",
      "#PermitRootLogin yes\nX11Forwarding yes\nPermitRootLogin no\n" },
    { SETTING_SSHD, "", "PermitRootLogin", " ", "no", "permitrootlogin yes\nPermitRootLogin yes\n",
      "permitrootlogin no\nPermitRootLogin yes\n" },
    { SETTING_SSHD, "", "PermitRootLogin", " ", "no",
      "Port 22\n\nMatch User bob\n PermitRootLogin yes\n",
      "Port 22\nPermitRootLogin no\n\nMatch User bob\n PermitRootLogin yes\n" },
    { SETTING_SSHD, "", "Port", " ", "22", "Port = 2222\n", "Port = 22\n" },
};

TEST(setting_is_set_and_removed_and_the_rest_stays)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        struct setting_key key = { .format = cases[i].format,
                                   .section = str_from(cases[i].section),
                                   .name = str_from(cases[i].name),
                                   .separator = str_from(cases[i].separator) };
        struct str value = str_from(cases[i].value);
        struct str text;
        struct str found;
        CHECK_EQ(setting_check(&key, value, &err), 0);
        if (cases[i].value != NULL) {
            CHECK_EQ(setting_set(&key, value, str_from(cases[i].text), &memory, &text, &err), 0);
            CHECK(setting_find(&key, text, &memory, &found));
            CHECK_STR(found, value);
            CHECK_EQ(setting_set(&key, value, text, &memory, &found, &err), 0);
            CHECK_STR(found, text);
        } else {
            CHECK_EQ(setting_remove(&key, str_from(cases[i].text), &memory, &text, &err), 0);
            CHECK(!setting_find(&key, text, &memory, &found));
        }
        CHECK_STR(text, cases[i].want);
    }
    check_case(-1);
}

TEST(setting_refuses_what_would_be_read_as_something_else)
{
    static const struct {
        enum setting_format format;
        const char *section;
        const char *name;
        const char *value;
    } bad[] = {
        { SETTING_INI, "s", "", "1" },      { SETTING_INI, "s", "a=b", "1" },
        { SETTING_INI, "s", "#a", "1" },    { SETTING_INI, "s", "[a", "1" },
        { SETTING_INI, "s]x", "a", "1" },   { SETTING_INI, "s", "a", "1\n[t]" },
        { SETTING_INI, "s", "a", " 1" },    { SETTING_INI, "s", "a", "1\\" },
        { SETTING_ENV, "", "A B", "1\n2" }, { SETTING_SSHD, "", "Match", "all" },
        { SETTING_SSHD, "", "a b", "c" },   { SETTING_KV, "", "a=b", "1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = { 0 };
        check_case((int64_t)i);
        struct setting_key key = { .format = bad[i].format,
                                   .section = str_from(bad[i].section),
                                   .name = str_from(bad[i].name),
                                   .separator =
                                       bad[i].format == SETTING_SSHD ? STR(" ") : STR("=") };
        CHECK_EQ(setting_check(&key, str_from(bad[i].value), &err), -ERR_INVALID);
    }
    check_case(-1);
}

TEST(setting_leaves_values_alone_that_go_on_on_the_next_line)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct str text;
    struct setting_key key = { .format = SETTING_INI,
                               .section = STR("Service"),
                               .name = STR("ExecStart"),
                               .separator = STR("=") };
    CHECK_EQ(
        setting_set(&key, STR("x"), STR("[Service]\nExecStart=a \\\n b\n"), &memory, &text, &err),
        -ERR_INVALID);
    CHECK_STR(err.msg, "line 2: its value goes on on the next line, which is not supported");
}
