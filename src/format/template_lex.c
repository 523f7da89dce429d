#include "format/template_lex.h"

#include <stdarg.h>

#include "base/buf.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "format/gounquote.h"

struct lexer {
    struct str text;
    size_t at;
    uint32_t parens; /* open ones */
    bool trim;       /* the action before ended in "-}}" */
    struct arena *tmp;
    struct ttoken *tokens;
    uint32_t n;
    uint32_t cap;
    struct err *err;
};

int template_lex_fail(struct err *err, struct str text, size_t at, const char *fmt, ...)
{
    char message[sizeof(err->msg)];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, args); /* err_set marks what does not fit */
    va_end(args);
    err->pos = json_pos(text, at);
    return err_set(err, ERR_INVALID, "line %u, column %u: %s", err->pos.line, err->pos.column,
                   message);
}

static void lex_emit(struct lexer *l, enum ttoken_kind kind, size_t from, size_t to)
{
    ARENA_GROW(l->tmp, l->tokens, l->n, l->cap);
    l->tokens[l->n++] = (struct ttoken){ kind, (uint32_t)from, str_sub(l->text, from, to - from) };
}

static struct str lex_rest(const struct lexer *l)
{
    return str_sub(l->text, l->at, l->text.n - l->at);
}

static char lex_peek(const struct lexer *l, size_t ahead)
{
    return l->at + ahead < l->text.n ? l->text.p[l->at + ahead] : '\0';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Letters beyond ASCII are taken as letters all: a name with another sign in it is no name of a
 * field anyway. */
static bool is_word(char c)
{
    return c == '_' || is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (unsigned char)c >= 0x80;
}

/* " -}}": bytes until behind the braces; 0 when it is something else. */
static size_t lex_right(struct str rest)
{
    if (str_starts(rest, STR("}}"))) {
        return 2;
    }
    bool trim =
        rest.n >= 4 && is_space(rest.p[0]) && str_starts(str_sub(rest, 1, rest.n - 1), STR("-}}"));
    return trim ? 4 : 0;
}

static void lex_end_action(struct lexer *l, size_t n)
{
    lex_emit(l, TOKEN_RIGHT, l->at, l->at + n);
    l->trim = n == 4;
    l->at += n;
}

/* At the slash, behind "{{" and maybe "- ". */
static int lex_comment(struct lexer *l)
{
    size_t end = str_find(lex_rest(l), STR("*/"));
    if (end == SIZE_MAX) {
        return template_lex_fail(l->err, l->text, l->at,
                                 "found a comment without an end, want '*/'");
    }
    l->at += end + 2;
    size_t n = lex_right(lex_rest(l));
    if (n == 0) {
        return template_lex_fail(l->err, l->text, l->at, "want '}}' directly behind a comment");
    }
    l->trim = n == 4;
    l->at += n;
    return 0;
}

/* Up to the next action and into it; `*ret_inside` says whether an action's inside follows. */
static int lex_text(struct lexer *l, bool *ret_inside)
{
    size_t from = l->at;
    size_t n = MIN(str_find(lex_rest(l), STR("{{")), l->text.n - l->at);
    size_t to = from + n;
    l->at = to;
    *ret_inside = to < l->text.n;
    bool trim_before = *ret_inside && lex_peek(l, 2) == '-' && is_space(lex_peek(l, 3));
    while (l->trim && from < to && is_space(l->text.p[from])) {
        from++;
    }
    l->trim = false;
    while (trim_before && from < to && is_space(l->text.p[to - 1])) {
        to--;
    }
    if (to > from) {
        lex_emit(l, TOKEN_TEXT, from, to);
    }
    if (!*ret_inside) {
        return 0;
    }
    size_t left = l->at;
    l->at += trim_before ? 4 : 2;
    if (str_starts(lex_rest(l), STR("/*"))) {
        *ret_inside = false;
        return lex_comment(l);
    }
    lex_emit(l, TOKEN_LEFT, left, l->at);
    l->parens = 0;
    return 0;
}

/* A name ends here: at a blank, at what may follow an operand, or at the action's end. */
static int lex_word_end(struct lexer *l)
{
    char c = lex_peek(l, 0);
    if (l->at >= l->text.n || is_space(c) || (c != '\0' && strchr(".,|:)(", c) != NULL) ||
        str_starts(lex_rest(l), STR("}}"))) {
        return 0;
    }
    return template_lex_fail(l->err, l->text, l->at,
                             "found '%c', want a blank or the end of the name",
                             c >= ' ' && c < 0x7f ? c : '?');
}

static enum ttoken_kind lex_keyword(struct str word)
{
    static const struct {
        struct str word;
        enum ttoken_kind kind;
    } keywords[] = {
        { STR_INIT("block"), TOKEN_BLOCK },
        { STR_INIT("break"), TOKEN_BREAK },
        { STR_INIT("continue"), TOKEN_CONTINUE },
        { STR_INIT("define"), TOKEN_DEFINE },
        { STR_INIT("else"), TOKEN_ELSE },
        { STR_INIT("end"), TOKEN_END },
        { STR_INIT("if"), TOKEN_IF },
        { STR_INIT("nil"), TOKEN_NIL },
        { STR_INIT("range"), TOKEN_RANGE },
        { STR_INIT("template"), TOKEN_TEMPLATE },
        { STR_INIT("with"), TOKEN_WITH },
        { STR_INIT("true"), TOKEN_BOOL },
        { STR_INIT("false"), TOKEN_BOOL },
    };
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
        if (str_eq(word, keywords[i].word)) {
            return keywords[i].kind;
        }
    }
    return TOKEN_WORD;
}

/* `.name`, `$name`, `name`; a sign alone is the dot or the root. */
static int lex_name(struct lexer *l)
{
    size_t from = l->at;
    char first = l->text.p[from];
    do {
        l->at++;
    } while (is_word(lex_peek(l, 0)));
    int r = lex_word_end(l);
    if (r < 0) {
        return r;
    }
    enum ttoken_kind kind = first == '$'        ? TOKEN_VARIABLE
                            : first != '.'      ? lex_keyword(str_sub(l->text, from, l->at - from))
                            : l->at == from + 1 ? TOKEN_DOT
                                                : TOKEN_FIELD;
    lex_emit(l, kind, from, l->at);
    return 0;
}

/* A quoted thing up to its closing mark. */
static int lex_quoted(struct lexer *l, char mark, enum ttoken_kind kind)
{
    size_t from = l->at++;
    while (l->at < l->text.n && l->text.p[l->at] != mark) {
        if (l->text.p[l->at] == '\n' && mark != '`') {
            break;
        }
        l->at += mark != '`' && l->text.p[l->at] == '\\' && lex_peek(l, 1) != '\n' ? 2 : 1;
    }
    if (l->at >= l->text.n || l->text.p[l->at] != mark) {
        return template_lex_fail(l->err, l->text, from, "found %c without its end, want another %c",
                                 mark, mark);
    }
    l->at++;
    lex_emit(l, kind, from, l->at);
    return 0;
}

static bool lex_accept(struct lexer *l, const char *set)
{
    char c = lex_peek(l, 0);
    bool hit = c != '\0' && strchr(set, c) != NULL;
    l->at += hit ? 1 : 0;
    return hit;
}

static bool lex_scan_number(struct lexer *l)
{
    const char *digits = "0123456789_";
    bool hex = false;
    (void)lex_accept(l, "+-");
    if (lex_accept(l, "0")) {
        hex = lex_accept(l, "xX");
        digits = hex                   ? "0123456789abcdefABCDEF_"
                 : lex_accept(l, "oO") ? "01234567_"
                 : lex_accept(l, "bB") ? "01_"
                                       : digits;
    }
    while (lex_accept(l, digits)) {
    }
    if (lex_accept(l, ".")) {
        while (lex_accept(l, digits)) {
        }
    }
    if ((strlen(digits) == 11 && lex_accept(l, "eE")) || (hex && lex_accept(l, "pP"))) {
        (void)lex_accept(l, "+-");
        while (lex_accept(l, "0123456789_")) {
        }
    }
    (void)lex_accept(l, "i");
    return !is_word(lex_peek(l, 0));
}

static int lex_number(struct lexer *l)
{
    size_t from = l->at;
    bool good = lex_scan_number(l);
    if (good && (lex_peek(l, 0) == '+' || lex_peek(l, 0) == '-')) {
        good = lex_scan_number(l) && l->text.p[l->at - 1] == 'i'; /* 1+2i */
    }
    if (!good) {
        struct str shown = str_sub(l->text, from, MIN(l->at + 1, l->text.n) - from);
        return template_lex_fail(l->err, l->text, from, "found '" STR_FMT "', want a number",
                                 STR_ARG(shown));
    }
    lex_emit(l, TOKEN_NUMBER, from, l->at);
    return 0;
}

static int lex_sign(struct lexer *l, char c)
{
    static const char signs[] = "=|()";
    static const enum ttoken_kind kinds[] = { TOKEN_ASSIGN, TOKEN_PIPE, TOKEN_OPEN, TOKEN_CLOSE };
    const char *hit = strchr(signs, c);
    if (c == ':') {
        if (lex_peek(l, 1) != '=') {
            return template_lex_fail(l->err, l->text, l->at, "found ':', want ':='");
        }
        lex_emit(l, TOKEN_DECLARE, l->at, l->at + 2);
        l->at += 2;
        return 0;
    }
    if (c < ' ' || c == 0x7f) {
        return template_lex_fail(l->err, l->text, l->at, "found a control character in an action");
    }
    if (c == ')' && l->parens == 0) {
        return template_lex_fail(l->err, l->text, l->at, "found ')' that no '(' opens");
    }
    l->parens += c == '(' ? 1 : 0;
    l->parens -= c == ')' ? 1 : 0;
    lex_emit(l, hit != NULL ? kinds[hit - signs] : TOKEN_CHAR, l->at, l->at + 1);
    l->at++;
    return 0;
}

/* One token of an action; `*ret_inside` is false behind its end. */
static int lex_action(struct lexer *l, bool *ret_inside)
{
    size_t end = lex_right(lex_rest(l));
    if (end > 0) {
        if (l->parens > 0) {
            return template_lex_fail(l->err, l->text, l->at, "found '}}', want ')'");
        }
        lex_end_action(l, end);
        *ret_inside = false;
        return 0;
    }
    if (l->at >= l->text.n) {
        return template_lex_fail(l->err, l->text, l->at,
                                 "found the end of the template, want '}}'");
    }
    char c = lex_peek(l, 0);
    if (is_space(c)) {
        size_t from = l->at;
        while (is_space(lex_peek(l, 0)) && lex_right(lex_rest(l)) == 0) {
            l->at++;
        }
        lex_emit(l, TOKEN_SPACE, from, l->at);
        return 0;
    }
    switch (c) {
    case '"':
        return lex_quoted(l, c, TOKEN_STRING);
    case '`':
        return lex_quoted(l, c, TOKEN_RAW);
    case '\'':
        return lex_quoted(l, c, TOKEN_RUNE);
    case '+':
    case '-':
        return lex_number(l);
    default:
        if (is_digit(c) || (c == '.' && is_digit(lex_peek(l, 1)))) {
            return lex_number(l);
        }
        return c == '.' || c == '$' || is_word(c) ? lex_name(l) : lex_sign(l, c);
    }
}

int tlex(struct str text, struct arena *tmp, struct ttoken **ret, struct err *err)
{
    struct lexer l = { .text = text, .tmp = tmp, .err = err };
    bool inside = false;
    while (inside || l.at < text.n) {
        int r = inside ? lex_action(&l, &inside) : lex_text(&l, &inside);
        if (r < 0) {
            return r;
        }
    }
    lex_emit(&l, TOKEN_EOF, text.n, text.n);
    *ret = l.tokens;
    return 0;
}

/* The text between two marks. */
static bool unquote(struct str s, char mark, struct buf *out)
{
    for (size_t at = 0; at < s.n;) {
        uint32_t point;
        size_t n = utf8_decode(str_sub(s, at, s.n - at), &point);
        if (s.p[at] == '\\' && mark != '`') {
            n = gounquote_escape(str_sub(s, at + 1, s.n - at - 1), mark, out);
            if (n == 0) {
                return false;
            }
            at += 1 + n;
        } else if (mark == '`') {
            if (s.p[at] != '\r') {
                buf_add_char(out, s.p[at]);
            }
            at++;
        } else {
            utf8_add(out, n == 0 ? 0xfffd : point);
            at += n == 0 ? 1 : n;
        }
    }
    return true;
}

/* An underscore stands between digits, or behind a base's prefix. */
static bool drop_underscores(struct str s, struct buf *out)
{
    char before = '\0';
    for (size_t i = 0; i < s.n; i++) {
        bool digit = hex_digit(s.p[i]) >= 0 || (i > 0 && strchr("xXoO", s.p[i]) != NULL);
        if ((s.p[i] == '_' && before != '0') || (!digit && before == '_')) {
            return false;
        }
        before = s.p[i] == '_' ? '_' : digit ? '0' : '!';
        if (s.p[i] != '_') {
            buf_add_char(out, s.p[i]);
        }
    }
    return before != '_';
}

enum number_fit { FIT_NO, FIT_INT, FIT_LARGE, FIT_TOO_LARGE };

static enum number_fit read_int(struct str s, int64_t *ret)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    s = s.n > 0 && (s.p[0] == '-' || s.p[0] == '+') ? str_sub(s, 1, s.n - 1) : s;
    unsigned base = 10;
    if (s.n > 1 && s.p[0] == '0') {
        char c = s.p[1] | 0x20;
        base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
        s = str_sub(s, base == 8 && c != 'o' ? 1 : 2, s.n);
    }
    uint64_t value = 0;
    bool fits = true;
    for (size_t i = 0; i < s.n; i++) {
        int digit = hex_digit(s.p[i]);
        if (digit < 0 || digit >= (int)base) {
            return FIT_NO;
        }
        fits = fits && !__builtin_mul_overflow(value, (uint64_t)base, &value) &&
               !__builtin_add_overflow(value, (uint64_t)digit, &value);
    }
    uint64_t most = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    *ret = (int64_t)(negative ? -value : value);
    return s.n == 0                ? FIT_NO
           : fits && value <= most ? FIT_INT
           : fits && !negative     ? FIT_LARGE
                                   : FIT_TOO_LARGE;
}

static bool read_float(struct str s, double *ret)
{
    bool hex = s.n > 2 && str_find_char(str_sub(s, 0, 3), 'x') != SIZE_MAX;
    bool power = str_find_char(s, 'p') != SIZE_MAX || str_find_char(s, 'P') != SIZE_MAX;
    return hex == power && str_to_f64(s, ret); /* Go's hexadecimal floats have a power */
}

/* "2i" and "1+2i". */
static bool read_complex(struct str s, double ret[2])
{
    size_t split = 0;
    s.n--;
    for (size_t i = 1; i < s.n; i++) {
        bool exponent = (s.p[i - 1] | 0x20) == 'e' || (s.p[i - 1] | 0x20) == 'p';
        split = (s.p[i] == '+' || s.p[i] == '-') && !exponent ? i : split;
    }
    ret[0] = 0;
    return (split == 0 || read_float(str_sub(s, 0, split), &ret[0])) &&
           read_float(str_sub(s, split, s.n - split), &ret[1]);
}

static bool read_number(struct str text, struct govalue *ret)
{
    CLEANUP(buf_done)
    struct buf plain = { 0 };
    int64_t number = 0;
    if (!drop_underscores(text, &plain)) {
        return false;
    }
    struct str s = buf_str(&plain);
    *ret = (struct govalue){ 0 };
    if (s.p[s.n - 1] == 'i') {
        ret->kind = GO_COMPLEX;
        return read_complex(s, ret->parts);
    }
    enum number_fit fit = read_int(s, &number);
    if (fit == FIT_INT) {
        *ret = govalue_i64(number);
    } else if (fit == FIT_NO) {
        ret->kind = GO_FLOAT;
        bool written = false;
        for (size_t i = 0; i < s.n; i++) {
            written = written || strchr(".eEpP", s.p[i]) != NULL;
        }
        return written && read_float(s, &ret->parts[0]);
    }
    return fit != FIT_TOO_LARGE;
}

int template_lex_value(struct str text, const struct ttoken *token, struct arena *out,
                       struct govalue *ret, struct err *err)
{
    const char *wanted = "want a number that Go can read";
    bool good;
    if (token->kind == TOKEN_NUMBER) {
        good = read_number(token->text, ret);
    } else {
        CLEANUP(buf_done)
        struct buf content = { 0 };
        wanted = "want escapes that Go has";
        good = unquote(str_sub(token->text, 1, token->text.n - 2), token->text.p[0], &content);
        *ret = govalue_str(arena_str(out, buf_str(&content)));
        if (good && token->kind == TOKEN_RUNE) {
            uint32_t point = 0;
            wanted = "want one character between the quotes";
            size_t n = utf8_decode(ret->text, &point);
            good = ret->text.n > 0 && (n == ret->text.n || (n == 0 && ret->text.n == 1));
            *ret = govalue_i64(n == 0 && good ? (unsigned char)ret->text.p[0] : point);
        }
    }
    if (!good) {
        struct str shown = str_sub(token->text, 0, 64);
        return template_lex_fail(err, text, token->at, "found " STR_FMT ", %s", STR_ARG(shown),
                                 wanted);
    }
    return 0;
}
