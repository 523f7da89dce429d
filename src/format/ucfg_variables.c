/* The parser of text with variables. */
#include "format/ucfg_variables.h"

#include "base/buf.h"

struct ucfg_vars_reader {
    struct str text;
    size_t at;
    uint32_t depth;
    struct arena *out;
    struct err *err;
};

static struct ucfg_vars_piece *add_piece(struct arena *out, struct ucfg_vars *s)
{
    if (s->n == s->cap) {
        ARENA_GROW(out, s->pieces, s->n, s->cap);
    }
    s->pieces[s->n] = (struct ucfg_vars_piece){ .variable = false };
    return &s->pieces[s->n++];
}

static void flush(struct ucfg_vars_reader *r, struct ucfg_vars *s, struct buf *text)
{
    if (text->n > 0) {
        add_piece(r->out, s)->text = arena_str(r->out, buf_str(text));
        buf_reset(text);
    }
}

static int fail(struct ucfg_vars_reader *r, size_t at, const char *text)
{
    r->err->pos = (struct pos){ .line = 1, .column = (uint32_t)at + 1 };
    return err_set(r->err, ERR_INVALID, "%s", text);
}

static char peek(const struct ucfg_vars_reader *r, size_t ahead)
{
    return r->at + ahead < r->text.n ? r->text.p[r->at + ahead] : '\0';
}

static int read_variable(struct ucfg_vars_reader *r, struct ucfg_vars *into);

/* Up to one of `stops`, which are looked for inside of variables only. */
static int read_pieces(struct ucfg_vars_reader *r, const char *stops, struct ucfg_vars *into)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    while (r->at < r->text.n) {
        char c = r->text.p[r->at];
        char next = peek(r, 1);
        if (c != '\0' && strchr(stops, c) != NULL) {
            break;
        }
        if (c == '$' && next == '{') {
            flush(r, into, &text);
            int result = read_variable(r, into);
            if (result < 0) {
                return result;
            }
            continue;
        }
        if (c == '$' && (next == '$' || next == '}')) {
            r->at++;
        }
        buf_add_char(&text, r->text.p[r->at++]);
    }
    flush(r, into, &text);
    return 0;
}

static int read_variable(struct ucfg_vars_reader *r, struct ucfg_vars *into)
{
    size_t start = r->at;
    if (r->depth == UCFG_VARS_DEPTH_MAX) {
        return fail(r, start, "found too many variables in variables");
    }
    r->depth++;
    r->at += 2;
    struct ucfg_vars *name = ARENA_NEW(r->out, struct ucfg_vars);
    struct ucfg_vars *right = ARENA_NEW(r->out, struct ucfg_vars);
    enum ucfg_vars_op op = UCFG_VARS_PLAIN;
    int result = read_pieces(r, ":}", name);
    if (result == 0 && peek(r, 0) == ':') {
        char sign = peek(r, 1);
        op = sign == '+'   ? UCFG_VARS_ALTERNATIVE
             : sign == '?' ? UCFG_VARS_MESSAGE
                           : UCFG_VARS_DEFAULT;
        r->at += op == UCFG_VARS_DEFAULT ? 1 : 2;
        result = read_pieces(r, "}", right);
    }
    r->depth--;
    if (result < 0) {
        return result;
    }
    if (peek(r, 0) != '}') {
        return fail(r, start, "found '${' without an end, want '}' behind the name");
    }
    r->at++;
    if (name->n == 0) {
        return fail(r, start, "found '${}', want a name in it");
    }
    struct ucfg_vars_piece *piece = add_piece(r->out, into);
    *piece = (struct ucfg_vars_piece){ .variable = true, .op = op, .name = name, .operand = right };
    return 0;
}

int ucfg_vars_parse(struct str text, struct arena *out, struct ucfg_vars *ret, struct err *err)
{
    struct ucfg_vars_reader r = { .text = text, .out = out, .err = err };
    struct ucfg_vars s = { 0 };
    int result = read_pieces(&r, "", &s);
    if (result == 0) {
        *ret = s;
    }
    return result;
}

bool ucfg_vars_is_text(const struct ucfg_vars *s, struct arena *out, struct str *ret)
{
    struct str text = STR("");
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->pieces[i].variable) {
            return false;
        }
        text = i == 0 ? s->pieces[i].text : arena_concat(out, text, s->pieces[i].text);
    }
    *ret = text;
    return true;
}

bool ucfg_vars_is_name(const struct ucfg_vars *s, struct str *ret)
{
    if (s->n != 1 || !s->pieces[0].variable || s->pieces[0].op != UCFG_VARS_PLAIN ||
        s->pieces[0].name->n != 1 || s->pieces[0].name->pieces[0].variable) {
        return false;
    }
    *ret = s->pieces[0].name->pieces[0].text;
    return true;
}
