#include "profile/ucfg_variables.h"

#include "base/buf.h"

struct reader {
    struct str text;
    size_t at;
    uint32_t depth;
    struct arena *out;
    struct err *err;
};

static struct splice_piece *add_piece(struct arena *out, struct splice *s)
{
    if (s->n == s->cap) {
        ARENA_GROW(out, s->pieces, s->n, s->cap);
    }
    s->pieces[s->n] = (struct splice_piece){ .variable = false };
    return &s->pieces[s->n++];
}

static void flush(struct reader *r, struct splice *s, struct buf *text)
{
    if (text->n > 0) {
        add_piece(r->out, s)->text = arena_str(r->out, buf_str(text));
        buf_reset(text);
    }
}

static int fail(struct reader *r, size_t at, const char *text)
{
    r->err->pos = (struct pos){ .line = 1, .column = (uint32_t)at + 1 };
    return err_set(r->err, ERR_INVALID, "%s", text);
}

static char peek(const struct reader *r, size_t ahead)
{
    return r->at + ahead < r->text.n ? r->text.p[r->at + ahead] : '\0';
}

static int read_variable(struct reader *r, struct splice *into);

/* Up to one of `stops`, which are looked for inside of variables only. */
static int read_pieces(struct reader *r, const char *stops, struct splice *into)
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

static int read_variable(struct reader *r, struct splice *into)
{
    size_t start = r->at;
    if (r->depth == SPLICE_DEPTH_MAX) {
        return fail(r, start, "found too many variables in variables");
    }
    r->depth++;
    r->at += 2;
    struct splice *name = ARENA_NEW(r->out, struct splice);
    struct splice *right = ARENA_NEW(r->out, struct splice);
    enum splice_op op = SPLICE_PLAIN;
    int result = read_pieces(r, ":}", name);
    if (result == 0 && peek(r, 0) == ':') {
        char sign = peek(r, 1);
        op = sign == '+' ? SPLICE_INSTEAD : sign == '?' ? SPLICE_MESSAGE : SPLICE_DEFAULT;
        r->at += op == SPLICE_DEFAULT ? 1 : 2;
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
    struct splice_piece *piece = add_piece(r->out, into);
    *piece = (struct splice_piece){ .variable = true, .op = op, .name = name, .right = right };
    return 0;
}

int splice_parse(struct str text, struct arena *out, struct splice *ret, struct err *err)
{
    struct reader r = { .text = text, .out = out, .err = err };
    struct splice s = { 0 };
    int result = read_pieces(&r, "", &s);
    if (result == 0) {
        *ret = s;
    }
    return result;
}

bool splice_is_text(const struct splice *s, struct arena *out, struct str *ret)
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

bool splice_is_name(const struct splice *s, struct str *ret)
{
    if (s->n != 1 || !s->pieces[0].variable || s->pieces[0].op != SPLICE_PLAIN ||
        s->pieces[0].name->n != 1 || s->pieces[0].name->pieces[0].variable) {
        return false;
    }
    *ret = s->pieces[0].name->pieces[0].text;
    return true;
}
