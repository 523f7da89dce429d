#include "base/err.h"

#include <errno.h>

#include "tests/check.h"

TEST(err_set_says_code_and_text_and_keeps_the_place)
{
    struct err err = { .pos = { .line = 3 }, .retry_at = 9, .os = 5 };
    CHECK_EQ(err_set(&err, ERR_BUSY, "%d of %d", 1, 2), -ERR_BUSY);
    CHECK_STR(err.msg, "1 of 2");
    CHECK_EQ(err.pos.line, 3);
    CHECK_EQ(err.retry_at, 9);
    CHECK_EQ(err.os, 0);
}

TEST(err_wrap_puts_its_text_in_front)
{
    struct err err = { 0 };
    (void)err_set(&err, ERR_NOTFOUND, "no such node"); /* the code is checked below */
    CHECK_EQ(err_wrap(&err, "cordon '%s'", "n1"), -ERR_NOTFOUND);
    CHECK_STR(err.msg, "cordon 'n1': no such node");
    CHECK_EQ(err_wrap(&err, "%s", err.msg), -ERR_NOTFOUND); /* it may quote itself */
    CHECK_STR(err.msg, "cordon 'n1': no such node: cordon 'n1': no such node");
}

TEST(err_messages_that_do_not_fit_end_in_an_ellipsis)
{
    struct err err = { 0 };
    char text[2000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    CHECK_EQ(err_set(&err, ERR_IO, "%s", text), -ERR_IO);
    CHECK_EQ(strlen(err.msg), sizeof(err.msg) - 1);
    CHECK(str_ends(str_from(err.msg), STR("…")));
    CHECK_EQ(err_wrap(&err, "%s", "outer"), -ERR_IO);
    CHECK(str_starts(str_from(err.msg), STR("outer: xxx")));
    CHECK(str_ends(str_from(err.msg), STR("…")));
}

TEST(err_set_os_finds_the_code_for_what_the_system_says)
{
    static const struct {
        int os;
        enum err_code code;
    } cases[] = {
        { ENOENT, ERR_NOTFOUND },   { EACCES, ERR_DENIED },  { EPERM, ERR_DENIED },
        { ETIMEDOUT, ERR_TIMEOUT }, { EINVAL, ERR_INVALID }, { ECONNREFUSED, ERR_IO },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = { 0 };
        CHECK_EQ(err_set_os(&err, cases[i].os, "open %s", "f"), -(int)cases[i].code);
        CHECK_EQ(err.os, cases[i].os);
        CHECK(str_starts(str_from(err.msg), STR("open f: ")));
    }
}

TEST(err_codes_have_names)
{
    for (int code = ERR_INVALID; code <= ERR_CANCELLED; code++) {
        CHECK(strcmp(err_code_name((enum err_code)code), "none") != 0);
    }
    CHECK_STR(err_code_name((enum err_code)0), "none");
    CHECK_STR(err_code_name((enum err_code)99), "none");
}
