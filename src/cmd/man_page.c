#include "cmd/man_page.h"

#include <stdio.h>

#define MAN_PAGE_MAX ((size_t)256 * 1024) /* a command's page is a few screens */

/* Text as roff takes it: no backslash of its own, no line that could be a request, and dashes that
 * stay dashes when somebody copies them. */
static void man_add(struct buf *out, struct str text)
{
    if (text.n > 0 && (text.p[0] == '.' || text.p[0] == '\'')) {
        buf_add(out, STR("\\&"));
    }
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '\\') {
            buf_add(out, STR("\\e"));
        } else if (c == '-') {
            buf_add(out, STR("\\-"));
        } else if (c == '\'') {
            buf_add(out, STR("\\(aq"));
        } else if (c == '`' || c == '^' || c == '~') {
            buf_add(out, c == '`' ? STR("\\(ga") : c == '^' ? STR("\\(ha") : STR("\\(ti"));
        } else {
            buf_add_char(out, c);
        }
    }
}

static void man_line(struct buf *out, struct str text)
{
    man_add(out, text);
    buf_add_char(out, '\n');
}

/* Blank lines part paragraphs; lines that are indented are examples and keep their form. */
static void man_add_paragraphs(struct buf *out, struct str text)
{
    struct str line;
    bool example = false;
    while (str_split_next(&text, '\n', &line)) {
        bool indented = str_cut_prefix(line, STR("  "), &line);
        if (indented != example && (indented || line.n > 0)) {
            buf_add(out, indented ? STR(".PP\n.nf\n.RS 4\n") : STR(".RE\n.fi\n"));
            example = indented;
        }
        if (line.n > 0) {
            man_line(out, line);
        } else if (!example && text.n > 0 && !str_starts(text, STR("  "))) {
            buf_add(out, STR(".PP\n"));
        }
    }
    if (example) {
        buf_add(out, STR(".RE\n.fi\n"));
    }
}

static void man_add_head(struct buf *out, const struct command *command, struct str summary)
{
    const char *name = command != NULL ? command->name : "";
    buf_add(out, STR(".\\\" Made from the tables of the program; see src/cmd/man_page.c.\n"));
    buf_add(out, STR(".TH DRYDOCK"));
    for (const char *p = name; *p != '\0'; p++) {
        if (p == name) {
            buf_add(out, STR("\\-"));
        }
        if (*p == '-') {
            buf_add(out, STR("\\-"));
        } else {
            buf_add_char(out, (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p));
        }
    }
    buf_add(out, STR(" 1 \"\" \"drydock " DRYDOCK_VERSION "\" \"drydock\"\n.SH NAME\ndrydock"));
    buf_add(out, command != NULL ? STR("\\-") : STR_NONE);
    man_add(out, str_from(name));
    buf_add(out, STR(" \\- "));
    man_line(out, summary);
}

static void man_add_option(struct buf *out, const struct option *o)
{
    buf_add(out, STR(".TP\n\\fB"));
    man_add(out, str_from(option_dashes(o->name)));
    man_add(out, str_from(o->name));
    buf_add(out, STR("\\fR"));
    if (o->also != NULL) {
        buf_add(out, STR(", \\fB"));
        man_add(out, str_from(option_dashes(o->also)));
        man_add(out, str_from(o->also));
        buf_add(out, STR("\\fR"));
    }
    if (o->kind != OPTION_BOOL) {
        buf_add(out, STR(" \\fI"));
        man_add(out, str_from(o->kind == OPTION_CHOICE ? o->choices : o->value));
        buf_add(out, STR("\\fR"));
    }
    buf_add_char(out, '\n');
    man_add(out, str_from(o->help));
    if (o->initial != NULL && o->initial[0] != '\0') {
        buf_add(out, STR(" (default "));
        man_add(out, str_from(o->initial));
        buf_add(out, STR(")"));
    }
    buf_add_char(out, '\n');
}

static void man_add_command(struct buf *out, const char *name, const char *summary)
{
    buf_add(out, STR(".TP\n\\fB"));
    man_add(out, str_from(name));
    buf_add(out, STR("\\fR\n"));
    man_line(out, str_from(summary));
}

/* The page of the program. */
static void man_print_program(const struct command_list *list, struct buf *out)
{
    man_add_head(out, NULL, STR("take Kubernetes nodes in and out of maintenance"));
    buf_add(out, STR(".SH SYNOPSIS\n.B drydock\n\\fICOMMAND\\fR [\\fIflags\\fR] "
                     "[\\fIarguments\\fR]\n.SH DESCRIPTION\n"));
    man_line(out, STR("drydock knows when a node may be disturbed, asks for leave first and puts "
                      "things back after. As a plugin of kubectl it is called kubectl drydock."));
    buf_add(out, STR(".SH COMMANDS\n"));
    for (const struct command *const *c = list->items; *c != NULL; c++) {
        man_add_command(out, (*c)->name, (*c)->summary);
    }
    for (size_t i = 0; i < COMMAND_BUILTIN_COUNT; i++) {
        man_add_command(out, command_builtins[i].name, command_builtins[i].summary);
    }
    buf_add(out, STR(".SH EXIT STATUS\n"));
    man_line(out, STR("0: it was done. 1: it could not be done. 2: the command line is wrong. "
                      "Commands that have more say so on their own page."));
    buf_add(out, STR(".SH ENVIRONMENT\n.TP\n.B KUBECONFIG\nfiles that say how to reach the "
                     "cluster\n.TP\n.B KUBECONTEXT\nthe context to use, unless a flag names one\n"
                     ".TP\n.B NO_COLOR\nno colours, whatever the terminal can do\n.SH SEE ALSO\n"));
    for (const struct command *const *c = list->items; *c != NULL; c++) {
        buf_add(out, STR(".BR drydock\\-"));
        man_add(out, str_from((*c)->name));
        buf_printf(out, " (1)%s\n", c[1] != NULL ? "," : "");
    }
}

void man_page_print(const struct command_list *list, const struct command *command, struct buf *out)
{
    if (command == NULL) {
        man_print_program(list, out);
        return;
    }
    man_add_head(out, command, str_from(command->summary));
    buf_add(out, STR(".SH SYNOPSIS\n.B drydock "));
    man_line(out, str_from(command->name));
    if (command->options.count > 0) {
        buf_add(out, STR("[\\fIflags\\fR]\n"));
    }
    if (command->args != NULL) {
        buf_add(out, STR("\\fI"));
        man_add(out, str_from(command->args));
        buf_add(out, STR("\\fR\n"));
    }
    buf_add(out, STR(".SH DESCRIPTION\n"));
    man_add_paragraphs(out, str_from(command->text));
    if (command->options.count > 0) {
        buf_add(out, STR(".SH OPTIONS\n"));
    }
    for (uint32_t i = 0; i < command->options.count; i++) {
        man_add_option(out, &command->options.options[i]);
    }
    buf_add(out, STR(".SH SEE ALSO\n.BR drydock (1)\n"));
}

int man_page_answer(const struct command_list *list, char *const *words)
{
    CLEANUP(buf_done)
    struct buf out = { .max = MAN_PAGE_MAX };
    struct str word = str_from(words[0]);
    const struct command *command = word.n > 0 ? command_find(list, word) : NULL;
    if (str_eq(word, STR("--list"))) {
        for (const struct command *const *c = list->items; *c != NULL; c++) {
            buf_printf(&out, "%s\n", (*c)->name);
        }
    } else if (word.n > 0 && command == NULL) {
        (void)fprintf(stderr, "drydock " MAN_PAGE_COMMAND ": there is no command '%s'\n", words[0]);
        return COMMAND_USAGE;
    } else {
        man_page_print(list, command, &out);
    }
    ASSERT(!out.full);                     /* the texts are ours */
    (void)fwrite(out.p, 1, out.n, stdout); /* nobody is left to tell if stdout is gone */
    return ferror(stdout) == 0 ? COMMAND_OK : COMMAND_FAILED;
}
