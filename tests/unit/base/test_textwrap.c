#include "base/textwrap.h"

#include "tests/check.h"

TEST(textwrap_breaks_between_words_and_hangs)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct textwrap w = { .out = &out, .columns = 20, .hang = 4 };
    textwrap_add(&w, STR("name"));
    textwrap_tab(&w, 8);
    textwrap_add(&w, STR("the quick brown fox jumps"));
    textwrap_end(&w);
    CHECK_STR(buf_str(&out), "name    the quick\n    brown fox jumps\n");
}

TEST(textwrap_keeps_long_words_whole_and_line_breaks)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct textwrap w = { .out = &out, .columns = 10, .hang = 2 };
    textwrap_add(&w, STR("abc /a/very/long/path b\nc"));
    textwrap_end(&w);
    CHECK_STR(buf_str(&out), "abc\n  /a/very/long/path\n  b\n  c\n");
}

TEST(textwrap_goes_on_behind_a_piece_that_ends_with_a_space)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct textwrap w = { .out = &out, .columns = 9, .hang = 1 };
    textwrap_add(&w, STR("12345678 "));
    textwrap_printf(&w, "%d ", 42);
    textwrap_add(&w, STR("x"));
    textwrap_end(&w);
    CHECK_STR(buf_str(&out), "12345678\n 42 x\n");
}

/* A server prints what users wrote, so no length of theirs may end it. */
TEST(textwrap_printf_takes_text_of_any_length)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct textwrap w = { .out = &out };
    textwrap_printf(&w, "%*s|", 70000, "x");
    CHECK_EQ(out.n, 70001);
    CHECK_EQ(w.column, 70001);
}

TEST(textwrap_shows_control_characters_as_question_marks)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct textwrap w = { .out = &out };
    textwrap_add(&w, STR("\033[2Jred\t\xff\xc2\x9b…"));
    CHECK_STR(buf_str(&out), "?[2Jred???…");
    CHECK_EQ(w.column, 11);
    CHECK_EQ(textwrap_width(STR("größe")), 5);
}

/* Whatever is written, no line is wider than asked for unless one word is. */
PROPERTY(textwrap_never_exceeds_the_width)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    uint32_t columns = 20 + rng_below(rng, 60);
    struct textwrap w = { .out = &out, .columns = columns, .hang = rng_below(rng, 8) };
    for (uint32_t i = 0; i < 50; i++) {
        static const char *const words[] = { "a", "four", " seven..", "to be ", "x y", " ", "- " };
        textwrap_add(&w, str_from(words[rng_below(rng, ARRAY_LEN(words))]));
        if (i % 5 == 0) {
            textwrap_add(&w, STR(" "));
        }
    }
    textwrap_end(&w);
    struct str rest = buf_str(&out);
    struct str line;
    while (str_split_next(&rest, '\n', &line)) {
        CHECK(textwrap_width(line) <= columns || str_find_char(str_trim(line), ' ') == SIZE_MAX);
    }
}
