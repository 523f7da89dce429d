#include "cmd/man_page.h"

#include "tests/check.h"

static int run_nothing(const struct command_call *call UNUSED)
{
    return COMMAND_OK;
}

static const struct option options[] = {
    { "o", OPTION_CHOICE, .choices = "text|json", .help = "the form", .initial = "text",
      .also = "output" },
    { "dry-run", OPTION_BOOL, .help = "do nothing; 'why' not" },
    { "file", OPTION_FILE, .value = "FILE", .help = "C:\\temp" },
};

static const struct command move = {
    .name = "move-it",
    .args = "NODE…",
    .summary = "move a node",
    .text = "Moves it.\n'Quoted' first.\n\nLike this:\n\n  drydock move-it n1\n  .hidden\n\nDone.",
    .options = { .options = options, .count = ARRAY_LEN(options) },
    .run = run_nothing,
};

static const struct command stay = {
    .name = "stay",
    .summary = "stay",
    .text = ".starts with a dot",
    .run = run_nothing,
};

static const struct command *const commands[] = { &move, &stay, NULL };
static const struct command_list list = { .items = commands };

TEST(man_page_of_a_command_has_all_that_its_help_has)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    man_page_print(&list, &move, &out);
    CHECK_STR(buf_str(&out),
              ".\\\" Made from the tables of the program; see src/cmd/man_page.c.\n"
              ".TH DRYDOCK\\-MOVE\\-IT 1 \"\" \"drydock " DRYDOCK_VERSION "\" \"drydock\"\n"
              ".SH NAME\ndrydock\\-move\\-it \\- move a node\n"
              ".SH SYNOPSIS\n.B drydock move\\-it\n[\\fIflags\\fR]\n\\fINODE…\\fR\n"
              ".SH DESCRIPTION\nMoves it.\n\\&\\(aqQuoted\\(aq first.\n.PP\nLike this:\n"
              ".PP\n.nf\n.RS 4\ndrydock move\\-it n1\n\\&.hidden\n.RE\n.fi\nDone.\n"
              ".SH OPTIONS\n"
              ".TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fItext|json\\fR\nthe form (default text)\n"
              ".TP\n\\fB\\-\\-dry\\-run\\fR\ndo nothing; \\(aqwhy\\(aq not\n"
              ".TP\n\\fB\\-\\-file\\fR \\fIFILE\\fR\nC:\\etemp\n"
              ".SH SEE ALSO\n.BR drydock (1)\n");
}

TEST(man_page_never_begins_a_line_with_a_request_of_the_text)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    man_page_print(&list, &stay, &out);
    CHECK(str_contains(buf_str(&out), STR("\n\\&.starts with a dot\n")));
    CHECK(!str_contains(buf_str(&out), STR(".SH OPTIONS")));
}

TEST(man_page_of_the_program_lists_its_commands)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    man_page_print(&list, NULL, &out);
    CHECK(str_contains(buf_str(&out), STR(".TP\n\\fBmove\\-it\\fR\nmove a node\n")));
    CHECK(str_contains(buf_str(&out), STR(".TP\n\\fBcompletion\\fR\n")));
    CHECK(
        str_contains(buf_str(&out), STR(".BR drydock\\-move\\-it (1),\n.BR drydock\\-stay (1)\n")));
}
