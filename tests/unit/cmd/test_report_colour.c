#include "cmd/report_colour.h"
#include "tests/check.h"

static void check_coloured(const char *text, const char *want)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    report_colour_add(str_from(text), &out);
    CHECK_STR(buf_str(&out), want);
}

TEST(report_colour_marks_what_stands_in_the_way)
{
    check_coloured("node worker-1: operational, ready\n"
                   "  error    it is broken\n"
                   "\n"
                   "profile os: maintenance-required\n"
                   "  to in-maintenance: not yet; could change in 5m\n"
                   "      if       a && b\n"
                   "    * fail     a (hasLabel): no such label\n"
                   "      pass     b\n"
                   "  to operational: no\n",
                   "\033[1mnode worker-1: operational, ready\033[0m\n"
                   "  \033[31merror    it is broken\033[0m\n"
                   "\n"
                   "\033[1mprofile os: maintenance-required\033[0m\n"
                   "  to in-maintenance: \033[33mnot yet\033[0m; could change in 5m\n"
                   "      if       a && b\n"
                   "    * \033[31mfail     a (hasLabel): no such label\033[0m\n"
                   "      \033[32mpass \033[0m    b\n"
                   "  to operational: \033[31mno\033[0m\n");
}

TEST(report_colour_leaves_other_lines_as_they_are)
{
    check_coloured("", "");
    check_coloured("a line without its end", "a line without its end");
    check_coloured("  to be or not\n      passing by\n", "  to be or not\n      passing by\n");
    check_coloured("failing (2)\n  worker-1  os: it failed\n",
                   "\033[31mfailing (2)\033[0m\n  worker-1  os: it failed\n");
}
