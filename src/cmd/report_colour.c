#include "cmd/report_colour.h"

#define BOLD "1"
#define RED "31"
#define GREEN "32"
#define YELLOW "33"
#define BLUE "34"

/* A line that begins with `before` and goes on with `word`: that word, or the whole line, gets the
 * colour. The first rule that fits counts. */
static const struct colour_rule {
    const char *before; /* exactly so at the beginning of the line */
    const char *word;
    const char *colour;
    bool whole;
} rules[] = {
    { "    * ", "", RED, true }, /* a check that stands in the way */
    { "      ", "pass ", GREEN, false },
    { "      ", "error ", RED, true },
    { "      ", "held ", YELLOW, true },
    { "  ", "error ", RED, true },
    { "  ", "problem ", RED, true },
    { "  ", "blocked ", RED, true },
    { "  ", "waits ", YELLOW, true },
    { "  ", "unready ", RED, true },
    { "", "unready ", RED, true },
    { "", "blocked drains (", RED, true },
    { "", "failing (", RED, true },
    { "", "waiting for maintenance (", YELLOW, true },
    { "", "in maintenance (", BLUE, true },
    { "", "draining (", BLUE, true },
    { "", "held (", BLUE, true },
    { "", "queue (", YELLOW, true },
    { "", "node ", BOLD, true },
    { "", "request ", BOLD, true },
    { "", "limit ", BOLD, true },
    { "", "machine ", BOLD, true },
    { "", "profile ", BOLD, true },
};

static void add_coloured(struct str text, const char *colour, struct buf *out)
{
    buf_printf(out, "\033[%sm" STR_FMT "\033[0m", colour, STR_ARG(text));
}

/* "  to in-maintenance: not yet; could change in 5m": the verdict gets a colour. */
static bool add_verdict(struct str line, struct buf *out)
{
    static const struct {
        const char *verdict;
        const char *colour;
    } verdicts[] = {
        { "yes", GREEN },
        { "not yet", YELLOW },
        { "no", RED },
        { "cannot be told", RED },
    };
    struct str head;
    struct str tail;
    if (!str_starts(line, STR("  to ")) || !str_cut(line, STR(": "), &head, &tail)) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(verdicts); i++) {
        struct str verdict = str_from(verdicts[i].verdict);
        struct str rest;
        if (str_cut_prefix(tail, verdict, &rest) && (rest.n == 0 || rest.p[0] == ';')) {
            buf_printf(out, STR_FMT ": ", STR_ARG(head));
            add_coloured(verdict, verdicts[i].colour, out);
            buf_add(out, rest);
            return true;
        }
    }
    return false;
}

static void add_line(struct str line, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        struct str before = str_from(rules[i].before);
        struct str word = str_from(rules[i].word);
        struct str rest;
        if (!str_cut_prefix(line, before, &rest) || !str_starts(rest, word)) {
            continue;
        }
        size_t n = rules[i].whole ? rest.n : word.n;
        buf_add(out, before);
        add_coloured(str_sub(rest, 0, n), rules[i].colour, out);
        buf_add(out, str_sub(rest, n, rest.n - n));
        return;
    }
    if (!add_verdict(line, out)) {
        buf_add(out, line);
    }
}

void report_colour_add(struct str text, struct buf *out)
{
    struct str line;
    while (text.n > 0) {
        bool ended = str_find_char(text, '\n') != SIZE_MAX;
        (void)str_split_next(&text, '\n', &line); /* there is text, so there is a line */
        add_line(line, out);
        buf_add(out, ended ? STR("\n") : STR_NONE);
    }
}
