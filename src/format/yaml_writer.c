#include "format/yaml_writer.h"

#include "base/utf8.h"
#include "format/json_writer.h"
#include "format/yaml_scalar.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether a text can stand without quotes. Dates and numbers begin with a digit, words such as
 * "yes" are found by resolving them. */
static bool is_plain(struct str s)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct yscalar meaning;
    struct err err = { 0 };
    if (s.n == 0 || !(is_letter(s.p[0]) || s.p[0] == '/' || s.p[0] == '_') || s.p[s.n - 1] == ' ') {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool colon = c == ':' && i + 1 < s.n && s.p[i + 1] != ' ';
        bool good = is_letter(c) || (c >= '0' && c <= '9') || colon ||
                    str_find_char(STR(" _./-+=@%(),;'"), c) != SIZE_MAX;
        if (!good) {
            return false;
        }
    }
    return yscalar_resolve(s, STR_NONE, &tmp, &meaning, &err) == 0 && meaning.kind == JSTR;
}

/* A JSON string is a YAML one, but for DEL and the control characters above it, which YAML wants
 * escaped. */
static void write_quoted(struct str s, struct buf *out)
{
    CLEANUP(buf_done)
    struct buf json = { 0 };
    json_quote(&json, s);
    struct str rest = buf_str(&json);
    while (rest.n > 0) {
        uint32_t point = 0;
        size_t n = MAX(utf8_decode(rest, &point), (size_t)1);
        if ((point >= 0x7f && point < 0xa0) || point == 0xfeff) {
            buf_printf(out, "\\u%04x", point);
        } else {
            buf_add(out, str_sub(rest, 0, n));
        }
        rest = str_sub(rest, n, rest.n - n);
    }
}

static void write_text(struct str s, struct buf *out)
{
    if (is_plain(s)) {
        buf_add(out, s);
    } else {
        write_quoted(s, out);
    }
}

static void write_indent(uint32_t depth, struct buf *out)
{
    for (uint32_t i = 0; i < depth; i++) {
        buf_add(out, STR("  "));
    }
}

static bool is_block(const struct jval *v)
{
    return (jval_kind(v) == JOBJ || jval_kind(v) == JARR) && jval_first(v) != NULL;
}

static void write_value(const struct jval *v, uint32_t depth, struct buf *out);

/* The first member stands where the cursor is. */
static void write_members(const struct jval *v, uint32_t depth, struct buf *out)
{
    bool first = true;
    JVAL_EACH (v, member) {
        if (!first) {
            write_indent(depth, out);
        }
        first = false;
        write_text(jval_key(member), out);
        buf_add(out, STR(":"));
        if (is_block(member)) {
            /* Items of a list stand below their key, as kubectl prints them. */
            uint32_t inner = jval_kind(member) == JARR ? depth : depth + 1;
            buf_add_char(out, '\n');
            write_indent(inner, out);
            write_value(member, inner, out);
        } else {
            buf_add_char(out, ' ');
            write_value(member, depth, out);
        }
    }
}

static void write_items(const struct jval *v, uint32_t depth, struct buf *out)
{
    bool first = true;
    JVAL_EACH (v, item) {
        if (!first) {
            write_indent(depth, out);
        }
        first = false;
        buf_add(out, STR("- "));
        write_value(item, depth + 1, out);
    }
}

/* Ends with a line break. Recursion is as deep as the document, which json_parse bounds. */
static void write_value(const struct jval *v, uint32_t depth, struct buf *out)
{
    if (is_block(v)) {
        if (jval_kind(v) == JOBJ) {
            write_members(v, depth, out);
        } else {
            write_items(v, depth, out);
        }
        return;
    }
    if (jval_kind(v) == JSTR) {
        write_text(jval_str(v), out);
    } else {
        struct json_writer w = json_writer_on(out);
        jw_val(&w, v); /* null, truth, numbers, [] and {} are the same in both */
    }
    buf_add_char(out, '\n');
}

void yaml_write(const struct jval *value, struct buf *out)
{
    write_value(value, 0, out);
}
