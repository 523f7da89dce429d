#include "format/json_writer.h"

#include "base/timestamp.h"
#include "base/utf8.h"

#include <math.h>

struct json_writer json_writer_on(struct buf *out)
{
    return (struct json_writer){ .out = out };
}

static void jw_before(struct json_writer *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    uint64_t *comma = &w->comma[w->depth / 64];
    uint64_t bit = UINT64_C(1) << w->depth % 64;
    if ((*comma & bit) != 0) {
        buf_add_char(w->out, ',');
    }
    *comma |= bit;
}

static void jw_open(struct json_writer *w, char c)
{
    jw_before(w);
    buf_add_char(w->out, c);
    ASSERT(w->depth < JSON_DEPTH_MAX);
    w->depth++;
    w->comma[w->depth / 64] &= ~(UINT64_C(1) << w->depth % 64);
}

static void jw_close(struct json_writer *w, char c)
{
    ASSERT(w->depth > 0 && !w->after_key);
    w->depth--;
    buf_add_char(w->out, c);
}

void jw_obj(struct json_writer *w)
{
    jw_open(w, '{');
}

void jw_obj_end(struct json_writer *w)
{
    jw_close(w, '}');
}

void jw_arr(struct json_writer *w)
{
    jw_open(w, '[');
}

void jw_arr_end(struct json_writer *w)
{
    jw_close(w, ']');
}

void jw_key(struct json_writer *w, struct str key)
{
    jw_before(w);
    json_quote(w->out, key);
    buf_add_char(w->out, ':');
    w->after_key = true;
}

void jw_str(struct json_writer *w, struct str s)
{
    jw_before(w);
    json_quote(w->out, s);
}

void jw_i64(struct json_writer *w, int64_t n)
{
    jw_before(w);
    buf_printf(w->out, "%lld", (long long)n);
}

void jw_bool(struct json_writer *w, bool b)
{
    jw_before(w);
    buf_add(w->out, b ? STR("true") : STR("false"));
}

void jw_null(struct json_writer *w)
{
    jw_before(w);
    buf_add(w->out, STR("null"));
}

/* Moves the point of "d.ddde±xx" to where the exponent says and fills up with zeros. libc's "%f"
 * would print the double's further digits there instead of zeros. */
static void float_spread(struct buf *out, struct str digits, int64_t exponent)
{
    if (exponent < 0) {
        buf_add(out, STR("0."));
        for (int64_t i = -1; i > exponent; i--) {
            buf_add_char(out, '0');
        }
    }
    for (size_t i = 0; i < digits.n || (int64_t)i <= exponent; i++) {
        if (exponent >= 0 && (int64_t)i == exponent + 1) {
            buf_add_char(out, '.');
        }
        buf_add_char(out, i < digits.n ? digits.p[i] : '0');
    }
}

/* As ES6 writes numbers, and so encoding/json. */
static void float_print(struct buf *out, double size)
{
    /* The fewest digits that give the same double back. */
    char text[32];
    for (int precision = 0; precision < 17; precision++) {
        (void)snprintf(text, sizeof(text), "%.*e", precision, size);
        if (strtod(text, NULL) == size) {
            break;
        }
    }
    struct str mantissa;
    struct str exponent_text;
    (void)str_cut(str_from(text), STR("e"), &mantissa, &exponent_text); /* "%e" has one */
    bool negative = exponent_text.p[0] == '-';
    int64_t exponent = 0;
    bool known = str_to_i64(str_sub(exponent_text, 1, exponent_text.n - 1), &exponent);
    ASSERT(known);
    if (size != 0 && (size < 1e-6 || size >= 1e21)) {
        buf_add(out, mantissa);
        buf_printf(out, "e%c%lld", negative ? '-' : '+', (long long)exponent);
        return;
    }
    char digits[32];
    size_t n = 0;
    for (size_t i = 0; i < mantissa.n; i++) {
        if (mantissa.p[i] != '.') {
            digits[n++] = mantissa.p[i];
        }
    }
    float_spread(out, (struct str){ .p = digits, .n = n }, negative ? -exponent : exponent);
}

int jw_f64(struct json_writer *w, double f, struct err *err)
{
    if (!isfinite(f)) {
        return err_set(err, ERR_INVALID, "JSON has no number for %s",
                       isnan(f) ? "NaN"
                       : f > 0  ? "+Inf"
                                : "-Inf");
    }
    jw_before(w);
    if (signbit(f)) {
        buf_add_char(w->out, '-');
    }
    float_print(w->out, fabs(f));
    return 0;
}

void jw_raw(struct json_writer *w, struct str json)
{
    jw_before(w);
    buf_add(w->out, json);
}

static void jw_members(struct json_writer *w, const struct jval *v)
{
    JVAL_EACH (v, member) {
        jw_key(w, jval_key(member));
        jw_val(w, member);
    }
}

void jw_val(struct json_writer *w, const struct jval *v)
{
    switch (jval_kind(v)) {
    case JNULL:
        jw_null(w);
        break;
    case JBOOL:
        jw_bool(w, v->n != 0);
        break;
    case JNUM:
        jw_raw(w, (struct str){ .p = v->p, .n = v->n });
        break;
    case JSTR:
        jw_str(w, jval_str(v));
        break;
    case JARR:
        jw_arr(w);
        JVAL_EACH (v, item) {
            jw_val(w, item);
        }
        jw_arr_end(w);
        break;
    case JOBJ:
        jw_obj(w);
        jw_members(w, v);
        jw_obj_end(w);
        break;
    }
}

void jw_strs(struct json_writer *w, const struct str *texts, uint32_t n)
{
    jw_arr(w);
    for (uint32_t i = 0; i < n; i++) {
        jw_str(w, texts[i]);
    }
    jw_arr_end(w);
}

void jw_pair(struct json_writer *w, const char *key, struct str value)
{
    jw_key(w, str_from(key));
    jw_str(w, value);
}

void jw_pair_bool(struct json_writer *w, const char *key, bool b)
{
    jw_key(w, str_from(key));
    jw_bool(w, b);
}

void jw_pair_i64(struct json_writer *w, const char *key, int64_t n)
{
    jw_key(w, str_from(key));
    jw_i64(w, n);
}

void jw_pair_some(struct json_writer *w, const char *key, struct str value)
{
    if (value.n > 0) {
        jw_pair(w, key, value);
    }
}

void jw_pair_time(struct json_writer *w, const char *key, usec_t wall)
{
    char text[TIMESTAMP_TEXT_MAX];
    if (wall > 0 && wall != USEC_NEVER) {
        jw_pair(w, key, timestamp_print_seconds(wall, text));
    }
}

static void quote_ascii(struct buf *out, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    const char *hit = c == '\0' ? NULL : strchr(from, c);
    if (hit != NULL) {
        buf_add_char(out, '\\');
        buf_add_char(out, to[hit - from]);
    } else if (c < 0x20 || c == '<' || c == '>' || c == '&') {
        buf_printf(out, "\\u%04x", c);
    } else {
        buf_add_char(out, (char)c);
    }
}

static bool quote_is_plain(unsigned char c)
{
    static const bool plain[256] = {
        [' ' ... '!'] = true, ['#' ... '%'] = true, ['\'' ... ';'] = true,
        ['='] = true,         ['?' ... '['] = true, [']' ... 0x7f] = true,
    };
    return plain[c];
}

void json_quote(struct buf *out, struct str s)
{
    buf_add_char(out, '"');
    size_t at = 0;
    while (at < s.n) {
        size_t plain = at;
        while (plain < s.n && quote_is_plain((unsigned char)s.p[plain])) {
            plain++;
        }
        buf_add(out, str_sub(s, at, plain - at));
        at = plain;
        if (at == s.n) {
            break;
        }
        if ((unsigned char)s.p[at] < 0x80) {
            quote_ascii(out, (unsigned char)s.p[at++]);
            continue;
        }
        uint32_t point;
        size_t n = utf8_decode(str_sub(s, at, s.n), &point);
        if (n == 0) {
            buf_add(out, STR("\\ufffd"));
            n = 1;
        } else if (point == 0x2028 || point == 0x2029) {
            buf_printf(out, "\\u%04x", point);
        } else {
            buf_add(out, str_sub(s, at, n));
        }
        at += n;
    }
    buf_add_char(out, '"');
}
