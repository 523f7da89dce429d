#include "agent/kernel_cmdline.h"

#include "tests/check.h"

TEST(kernel_cmdline_words_have_quotes)
{
    struct str rest = STR(" quiet\tdyndbg=\"file a +p\"  x\n");
    struct str word;
    CHECK(kernel_cmdline_next(&rest, &word));
    CHECK_STR(word, "quiet");
    CHECK(kernel_cmdline_next(&rest, &word));
    CHECK_STR(word, "dyndbg=\"file a +p\"");
    CHECK(kernel_cmdline_next(&rest, &word));
    CHECK_STR(word, "x");
    CHECK(!kernel_cmdline_next(&rest, &word));
}

TEST(kernel_cmdline_has_one_of_each_after_an_edit)
{
    static const struct {
        const char *text;
        const char *word;
        const char *want;
    } cases[] = {
        { "", "a=1", "a=1" },
        { "quiet", "a=1", "quiet a=1" },
        { "a=0 quiet a", "a=1", "a=1 quiet" },
        { "ab=1 a.b=2", "a", "ab=1 a.b=2 a" },
        { "x a=0  y", "", "x y" },
    };
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct str word;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CHECK_STR(kernel_cmdline_edit(str_from(cases[i].text), STR("a"), str_from(cases[i].word),
                                      &memory),
                  cases[i].want);
    }
    check_case(-1);
    CHECK(kernel_cmdline_find(STR("a=0 a=1 ab"), STR("a"), &word));
    CHECK_STR(word, "a=1");
    CHECK(!kernel_cmdline_find(STR("ab=1 b"), STR("a"), &word));
}

TEST(kernel_cmdline_is_found_in_grubs_own_file)
{
    struct str words;
    CHECK(kernel_cmdline_of_grub(STR("menuentry 'x' {\n\tlinux /vmlinuz root=/dev/a ro quiet \n}\n"
                                     "linux /old\n"),
                                 &words));
    CHECK_STR(words, "root=/dev/a ro quiet");
    CHECK(!kernel_cmdline_of_grub(STR("# linux /vmlinuz\nlinux\n"), &words));
}
