#include "format/gval_lex.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "format/gounquote.h"
#include "format/json.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    char lower = (char)(c | 0x20);
    return (lower >= 'a' && lower <= 'z') || c == '_' || (unsigned char)c >= 0x80;
}

static char peek(const struct gval_lex *lex, size_t ahead)
{
    return lex->at + ahead < lex->text.n ? lex->text.p[lex->at + ahead] : '\0';
}

static bool skip_comment(struct gval_lex *lex)
{
    struct str rest = str_sub(lex->text, lex->at, lex->text.n - lex->at);
    struct str end = str_starts(rest, STR("//")) ? STR("\n") : STR("*/");
    if (end.n == 2 && !str_starts(rest, STR("/*"))) {
        return false;
    }
    size_t n = str_find(str_sub(rest, 2, rest.n - 2), end);
    /* A comment that does not end goes on to the end of the text. */
    lex->at = n == SIZE_MAX ? lex->text.n : lex->at + 2 + n + end.n;
    return true;
}

static void skip_white(struct gval_lex *lex)
{
    while (lex->at < lex->text.n) {
        char c = peek(lex, 0);
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            lex->at++;
        } else if (c != '/' || !skip_comment(lex)) {
            return;
        }
    }
}

static void skip_digits(struct gval_lex *lex, bool hex)
{
    for (;; lex->at++) {
        char c = peek(lex, 0);
        char lower = (char)(c | 0x20);
        if (!is_digit(c) && c != '_' && !(hex && lower >= 'a' && lower <= 'f')) {
            return;
        }
    }
}

/* More than numbers: what is none is refused by whoever reads its value, as a whole. */
static void skip_number(struct gval_lex *lex)
{
    bool prefixed =
        peek(lex, 0) == '0' && peek(lex, 1) != '\0' && strchr("xXbBoO", peek(lex, 1)) != NULL;
    bool hex = prefixed && (peek(lex, 1) | 0x20) == 'x';
    lex->at += prefixed ? 2 : 0;
    skip_digits(lex, hex);
    if (peek(lex, 0) == '.') {
        lex->at++;
        skip_digits(lex, hex);
    }
    char lower = (char)(peek(lex, 0) | 0x20);
    if (lower == 'e' || lower == 'p') {
        lex->at += peek(lex, 1) == '+' || peek(lex, 1) == '-' ? 2 : 1;
        skip_digits(lex, false);
    }
}

/* What is between the quotes; single ones hold one character, or none. */
static bool unquote(struct str inner, char quote, struct buf *out)
{
    size_t characters = 0;
    while (inner.n > 0) {
        char c = inner.p[0];
        uint32_t point = 0;
        size_t n = utf8_decode(inner, &point);
        if (c == '\n' && quote != '`') {
            return false;
        }
        characters++;
        if (c == '\\' && quote != '`') {
            n = gounquote_escape(str_sub(inner, 1, inner.n - 1), quote, out);
            if (n == 0) {
                return false;
            }
            inner = str_sub(inner, 1 + n, inner.n - 1 - n);
            continue;
        }
        n = n > 0 ? n : 1;
        if (c != '\r' || quote != '`') {
            buf_add(out, str_sub(inner, 0, n));
        }
        inner = str_sub(inner, n, inner.n - n);
    }
    return quote != '\'' || characters <= 1;
}

/* Where the literal that begins at `at` has its closing quote, or SIZE_MAX. */
static size_t find_quote(const struct gval_lex *lex, char quote)
{
    for (size_t i = lex->at + 1; i < lex->text.n; i++) {
        if (lex->text.p[i] == quote) {
            return i;
        }
        i += lex->text.p[i] == '\\' && quote != '`' ? 1 : 0;
    }
    return SIZE_MAX;
}

static int read_text(struct gval_lex *lex, struct arena *out, struct gval_lex_token *ret,
                     struct err *err)
{
    char quote = peek(lex, 0);
    size_t end = find_quote(lex, quote);
    CLEANUP(buf_done)
    struct buf value = { 0 };
    if (end == SIZE_MAX) {
        int r = err_set(err, ERR_INVALID, "found a text without its closing %c", quote);
        err->pos = json_pos(lex->text, lex->at);
        return r;
    }
    if (!unquote(str_sub(lex->text, lex->at + 1, end - lex->at - 1), quote, &value)) {
        struct str found = str_sub(lex->text, lex->at, end + 1 - lex->at);
        int r = err_set(err, ERR_INVALID, "found " STR_FMT ": want %s", STR_ARG(found),
                        quote == '\'' ? "at most one character between single quotes"
                                      : "a text with Go's escapes");
        err->pos = json_pos(lex->text, lex->at);
        return r;
    }
    ret->kind = GVAL_TOKEN_TEXT;
    ret->value = arena_str(out, buf_str(&value));
    lex->at = end + 1;
    return 0;
}

int gval_lex_next(struct gval_lex *lex, struct arena *out, struct gval_lex_token *ret,
                  struct err *err)
{
    skip_white(lex);
    size_t start = lex->at;
    char c = peek(lex, 0);
    struct gval_lex_token token = { .kind = GVAL_TOKEN_END, .text = str_sub(lex->text, start, 0) };
    if (start == lex->text.n) {
        *ret = token;
        return 0;
    }
    if (is_digit(c) || (c == '.' && is_digit(peek(lex, 1)))) {
        token.kind = GVAL_TOKEN_NUMBER;
        skip_number(lex);
    } else if (c == '"' || c == '\'' || c == '`') {
        int r = read_text(lex, out, &token, err);
        if (r < 0) {
            return r;
        }
    } else if (is_letter(c)) {
        token.kind = GVAL_TOKEN_NAME;
        while (is_letter(peek(lex, 0)) || is_digit(peek(lex, 0))) {
            lex->at++;
        }
    } else {
        token.kind = GVAL_TOKEN_SIGN;
        token.sign = c;
        lex->at++;
    }
    token.text = str_sub(lex->text, start, lex->at - start);
    *ret = token;
    return 0;
}
