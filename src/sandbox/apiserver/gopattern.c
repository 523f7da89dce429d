#include "sandbox/apiserver/gopattern.h"

#include <regex.h>

#include "base/buf.h"
#include "base/duration.h"
#include "base/timestamp.h"

#define COST_MAX 2000u /* nodes after repetition; the C library copies them, then squares them */
#define GROUPS_MAX 32u
#define PATTERN_MAX 4096u

struct rewrite {
    struct str rest;
    struct buf out;
    /* What the C library will copy, for each open group: all but the last atom, and that one. */
    struct {
        uint64_t sum;
        uint64_t last;
    } cost[GROUPS_MAX];
    uint32_t depth;
    bool repeated; /* the last thing was a repetition; Go has none of repetitions themselves */
    bool icase;
    bool unknown;
};

static char peek(const struct rewrite *w, size_t at)
{
    return at < w->rest.n ? w->rest.p[at] : '\0';
}

static void skip(struct rewrite *w, size_t n)
{
    n = MIN(n, w->rest.n);
    w->rest = str_sub(w->rest, n, w->rest.n - n);
}

static void atom(struct rewrite *w)
{
    w->repeated = false;
    w->cost[w->depth].sum += w->cost[w->depth].last;
    w->cost[w->depth].last = 1;
}

static void repeat(struct rewrite *w, uint64_t times)
{
    w->unknown = w->unknown || w->repeated;
    w->repeated = true;
    w->cost[w->depth].last *= times;
    w->unknown = w->unknown || w->cost[w->depth].sum + w->cost[w->depth].last > COST_MAX;
}

static void group_open(struct rewrite *w)
{
    if (w->depth + 1 == GROUPS_MAX) {
        w->unknown = true;
        return;
    }
    w->depth++;
    w->repeated = false;
    w->cost[w->depth].sum = 0;
    w->cost[w->depth].last = 0;
}

static void group_close(struct rewrite *w)
{
    if (w->depth == 0) {
        w->unknown = true;
        return;
    }
    uint64_t all = w->cost[w->depth].sum + w->cost[w->depth].last + 1;
    w->depth--;
    atom(w);
    w->cost[w->depth].last = all;
}

static void escape_outside(struct rewrite *w)
{
    char c = peek(w, 1);
    switch (c) {
    case 'd':
        buf_add(&w->out, STR("[0-9]"));
        break;
    case 'D':
        buf_add(&w->out, STR("[^0-9]"));
        break;
    case 'w':
        buf_add(&w->out, STR("[A-Za-z0-9_]"));
        break;
    case 'W':
        buf_add(&w->out, STR("[^A-Za-z0-9_]"));
        break;
    case 's':
        buf_add(&w->out, STR("[ \t\n\f\r]"));
        break;
    case 'S':
        buf_add(&w->out, STR("[^ \t\n\f\r]"));
        break;
    case 'A':
        buf_add_char(&w->out, '^');
        break;
    case 'z':
        buf_add_char(&w->out, '$');
        break;
    case 'n':
        buf_add_char(&w->out, '\n');
        break;
    case 't':
        buf_add_char(&w->out, '\t');
        break;
    default:
        if (c == '\0' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
            (c >= 'a' && c <= 'z')) {
            w->unknown = true;
            return;
        }
        buf_add_char(&w->out, '\\');
        buf_add_char(&w->out, c);
    }
    skip(w, 2);
}

/* In a bracket expression of the C library a backslash is itself, so escapes are spelled out; a
 * minus goes to the end, where it stands for itself. */
static void bracket(struct rewrite *w)
{
    bool minus = false;
    buf_add_char(&w->out, '[');
    skip(w, 1);
    if (peek(w, 0) == '^') {
        buf_add_char(&w->out, '^');
        skip(w, 1);
    }
    while (!w->unknown && peek(w, 0) != ']') {
        char c = peek(w, 0);
        if (c == '\0' || (c == '[' && (peek(w, 1) == '=' || peek(w, 1) == '.'))) {
            w->unknown = true;
        } else if (c == '[' && peek(w, 1) == ':') {
            size_t end = str_find(w->rest, STR(":]"));
            if (end == SIZE_MAX) {
                w->unknown = true;
                break;
            }
            buf_add(&w->out, str_sub(w->rest, 0, end + 2));
            skip(w, end + 2);
        } else if (c != '\\') {
            buf_add_char(&w->out, c);
            skip(w, 1);
        } else {
            char e = peek(w, 1);
            if (e == 'd' || e == 'w' || e == 's') {
                buf_add(&w->out, e == 'd'   ? STR("0-9")
                                 : e == 'w' ? STR("A-Za-z0-9_")
                                            : STR(" \t\n\f\r"));
            } else if (e == '-') {
                minus = true;
            } else if (e == 'n' || e == 't') {
                buf_add_char(&w->out, e == 'n' ? '\n' : '\t');
            } else if (e == ']' || e == '^' || e == '\0' || (e >= 'A' && e <= 'Z') ||
                       (e >= 'a' && e <= 'z') || (e >= '0' && e <= '9')) {
                w->unknown = true;
            } else {
                buf_add_char(&w->out, e);
            }
            skip(w, w->unknown ? 0 : 2);
        }
    }
    buf_add(&w->out, minus ? STR("-]") : STR("]"));
    skip(w, 1);
}

static void repetition(struct rewrite *w)
{
    size_t end = str_find_char(w->rest, '}');
    if (end == SIZE_MAX) {
        w->unknown = true;
        return;
    }
    struct str least;
    struct str most;
    bool range = str_cut(str_sub(w->rest, 1, end - 1), STR(","), &least, &most);
    uint32_t n = 0;
    struct str last = range && most.n > 0 ? most : least;
    if (!str_to_u32(last, &n) || n > 1000) {
        w->unknown = true; /* a brace that is no repetition stands for itself in Go */
        return;
    }
    repeat(w, n + 1u);
    buf_add(&w->out, str_sub(w->rest, 0, end + 1));
    skip(w, end + 1);
}

static void rewrite_char(struct rewrite *w)
{
    char c = peek(w, 0);
    buf_add_char(&w->out, c);
    skip(w, 1);
    if (c == '(') {
        group_open(w);
    } else if (c == ')') {
        group_close(w);
    } else if (c == '*' || c == '+' || c == '?') {
        repeat(w, 2);
        skip(w, peek(w, 0) == '?' ? 1 : 0); /* lazy or greedy, the question is if it matches */
    } else {
        atom(w);
    }
}

static void rewrite_next(struct rewrite *w)
{
    char c = peek(w, 0);
    if (c == '\\') {
        escape_outside(w);
        atom(w);
    } else if (c == '[') {
        bracket(w);
        atom(w);
    } else if (c == '{') {
        repetition(w);
    } else if (c == '(' && peek(w, 1) == '?') {
        if (peek(w, 2) != ':') {
            w->unknown = true;
            return;
        }
        buf_add_char(&w->out, '(');
        skip(w, 3);
        group_open(w);
    } else {
        rewrite_char(w);
    }
}

enum gopattern_answer gopattern_match(struct str pattern, struct str text)
{
    if (pattern.n > PATTERN_MAX) {
        return GOPATTERN_UNKNOWN;
    }
    struct rewrite w = { .rest = pattern };
    if (str_cut_prefix(w.rest, STR("(?i)"), &w.rest)) {
        w.icase = true;
    }
    while (w.rest.n > 0 && !w.unknown) {
        rewrite_next(&w);
    }
    buf_add_char(&w.out, '\0');
    enum gopattern_answer answer = GOPATTERN_UNKNOWN;
    regex_t compiled;
    if (!w.unknown && regcomp(&compiled, w.out.p, REG_EXTENDED | (w.icase ? REG_ICASE : 0)) == 0) {
        regmatch_t whole = { .rm_so = 0, .rm_eo = (regoff_t)text.n };
        int r = regexec(&compiled, text.n > 0 ? text.p : "", 1, &whole, REG_STARTEND);
        answer = r == 0 ? GOPATTERN_MATCHES : GOPATTERN_DIFFERS;
        regfree(&compiled);
    }
    buf_done(&w.out);
    return answer;
}

static bool is_base64(struct str s)
{
    size_t padding = 0;
    while (s.n > 0 && s.p[s.n - 1] == '=' && padding < 2) {
        s.n--;
        padding++;
    }
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              c == '+' || c == '/')) {
            return false;
        }
    }
    return (s.n + padding) % 4 == 0;
}

static bool is_date(struct str s)
{
    char text[32];
    if (s.n != 10) {
        return false;
    }
    (void)snprintf(text, sizeof(text), STR_FMT "T00:00:00Z", STR_ARG(s));
    struct timestamp stamp;
    struct err err;
    return timestamp_parse(str_from(text), &stamp, &err) == 0;
}

bool goformat_match(struct str format, struct str text)
{
    struct err err;
    if (str_eq(format, STR("date-time"))) {
        struct timestamp stamp;
        return timestamp_parse(text, &stamp, &err) == 0;
    }
    if (str_eq(format, STR("date"))) {
        return is_date(text);
    }
    if (str_eq(format, STR("byte"))) {
        return is_base64(text);
    }
    if (str_eq(format, STR("duration"))) {
        int64_t ns;
        return duration_parse(text, &ns, &err) == 0;
    }
    if (str_eq(format, STR("uuid"))) {
        return gopattern_match(
                   STR("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
                   text) != GOPATTERN_DIFFERS;
    }
    if (str_eq(format, STR("ipv4"))) {
        return gopattern_match(STR("^(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
                                   "(\\.(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])){3}$"),
                               text) != GOPATTERN_DIFFERS;
    }
    return true;
}
