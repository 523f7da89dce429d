#include "base/textwrap.h"

#include <string.h>

#include "base/utf8.h"

/* The first character as it is shown, and the bytes that it takes. */
static size_t textwrap_char(struct str text, struct str *ret_shown)
{
    uint32_t point = 0;
    size_t n = utf8_decode(text, &point);
    if (n == 0 || point < 0x20 || (point >= 0x7f && point < 0xa0)) {
        *ret_shown = STR("?");
        return n == 0 ? 1 : n;
    }
    *ret_shown = str_sub(text, 0, n);
    return n;
}

uint32_t textwrap_width(struct str text)
{
    uint32_t width = 0;
    struct str shown;
    for (size_t at = 0; at < text.n; width++) {
        at += textwrap_char(str_sub(text, at, text.n - at), &shown);
    }
    return width;
}

static bool out_ends_with_word(const struct buf *out)
{
    return out->n > 0 && out->p[out->n - 1] != ' ' && out->p[out->n - 1] != '\n';
}

static void textwrap_break(struct textwrap *w)
{
    buf_add_char(w->out, '\n');
    for (uint32_t i = 0; i < w->hang; i++) {
        buf_add_char(w->out, ' ');
    }
    w->column = w->hang;
    w->gap = 0;
}

/* The line became too long: what follows the last gap goes to a line of its own. */
static void textwrap_fold(struct textwrap *w)
{
    struct buf *out = w->out;
    size_t from = w->gap;
    while (from < out->n && out->p[from] == ' ') {
        from++;
    }
    size_t tail = out->n - from;
    size_t to = w->gap + 1 + w->hang;
    for (size_t n = out->n; n < to + tail; n++) {
        buf_add_char(out, ' ');
    }
    if (out->full) {
        return; /* its content is of no use any more */
    }
    memmove(out->p + to, out->p + from, tail);
    memset(out->p + w->gap, ' ', to - w->gap);
    out->p[w->gap] = '\n';
    out->n = to + tail;
    w->column = w->hang + textwrap_width((struct str){ .p = out->p + to, .n = tail });
    w->gap = 0;
}

static void textwrap_space(struct textwrap *w)
{
    if (w->column > w->hang && out_ends_with_word(w->out)) {
        w->gap = w->out->n;
    }
    buf_add_char(w->out, ' ');
    w->column++;
}

void textwrap_add(struct textwrap *w, struct str text)
{
    for (size_t at = 0; at < text.n;) {
        if (text.p[at] == '\n') {
            textwrap_break(w);
            at++;
            continue;
        }
        if (text.p[at] == ' ') {
            textwrap_space(w);
            at++;
            continue;
        }
        struct str shown;
        at += textwrap_char(str_sub(text, at, text.n - at), &shown);
        buf_add(w->out, shown);
        w->column++;
        if (w->columns > 0 && w->column > w->columns && w->gap > 0) {
            textwrap_fold(w);
        }
    }
}

void textwrap_printf(struct textwrap *w, const char *fmt, ...)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&text, fmt, args);
    va_end(args);
    textwrap_add(w, buf_str(&text));
}

void textwrap_tab(struct textwrap *w, uint32_t column)
{
    do {
        textwrap_space(w);
    } while (w->column < column);
}

void textwrap_end(struct textwrap *w)
{
    while (w->out->n > 0 && w->out->p[w->out->n - 1] == ' ') {
        w->out->n--; /* nothing came behind them */
    }
    buf_add_char(w->out, '\n');
    w->column = 0;
    w->hang = 0;
    w->gap = 0;
}
