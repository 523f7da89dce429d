/* The parser of go-ucfg's small language for the text of a variable. */
#include "format/ucfg_literal.h"

#include "base/buf.h"
#include "format/gofloat.h"
#include "format/gounquote.h"

struct ucfg_literal_reader {
    struct str rest;
    bool objects;
    uint32_t depth;
    struct arena *out;
    struct err *err;
};

static int read_value(struct ucfg_literal_reader *r, const char *stops, struct ucfg_value *ret);

static void skip_space(struct ucfg_literal_reader *r)
{
    while (r->rest.n > 0 && strchr(" \t\n\v\f\r", r->rest.p[0]) != NULL) {
        r->rest = str_sub(r->rest, 1, r->rest.n - 1);
    }
}

static void skip(struct ucfg_literal_reader *r, size_t n)
{
    r->rest = str_sub(r->rest, n, r->rest.n - n);
}

static int read_plain(struct ucfg_literal_reader *r, const char *stops, struct str *ret)
{
    size_t n = 0;
    while (n < r->rest.n && (r->rest.p[n] == '\0' || strchr(stops, r->rest.p[n]) == NULL)) {
        n++;
    }
    if (n == 0) {
        return err_set(r->err, ERR_INVALID, "found '%c', want a value", r->rest.p[0]);
    }
    *ret = str_trim(str_sub(r->rest, 0, n));
    skip(r, n);
    return 0;
}

static int read_primitive(struct ucfg_literal_reader *r, const char *stops, struct ucfg_value *ret)
{
    static const struct {
        struct str text;
        bool truth;
    } words[] = {
        { STR_INIT("t"), true },      { STR_INIT("T"), true },      { STR_INIT("true"), true },
        { STR_INIT("TRUE"), true },   { STR_INIT("True"), true },   { STR_INIT("on"), true },
        { STR_INIT("ON"), true },     { STR_INIT("f"), false },     { STR_INIT("F"), false },
        { STR_INIT("false"), false }, { STR_INIT("FALSE"), false }, { STR_INIT("False"), false },
        { STR_INIT("off"), false },   { STR_INIT("OFF"), false },
    };
    struct str text;
    int result = read_plain(r, stops, &text);
    if (result < 0) {
        return result;
    }
    if (str_eq(text, STR("null"))) {
        *ret = (struct ucfg_value){ .kind = UCFG_VALUE_NULL };
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eq(words[i].text, text)) {
            *ret = (struct ucfg_value){ .kind = UCFG_VALUE_BOOL, .truth = words[i].truth };
            return 0;
        }
    }
    double real;
    if (ucfg_value_read_integer(text, ret)) {
        return 0;
    }
    if (gofloat_parse(text, &real)) {
        *ret = (struct ucfg_value){ .kind = UCFG_VALUE_FLOAT, .real = real };
        return 0;
    }
    *ret = (struct ucfg_value){ .kind = UCFG_VALUE_STR, .text = arena_str(r->out, text) };
    return 0;
}

static int read_double(struct ucfg_literal_reader *r, struct str *ret)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct str s = r->rest;
    size_t at = 1;
    while (at < s.n && s.p[at] != '"') {
        if (s.p[at] == '\n') {
            return err_set(r->err, ERR_INVALID, "found a line break between '\"'");
        }
        if (s.p[at] != '\\') {
            buf_add_char(&text, s.p[at++]);
            continue;
        }
        size_t n = gounquote_escape(str_sub(s, at + 1, s.n - at - 1), '"', &text);
        if (n == 0) {
            return err_set(r->err, ERR_INVALID, "found an escape that does not exist, in '\"'");
        }
        at += 1 + n;
    }
    if (at == s.n) {
        return err_set(r->err, ERR_INVALID, "found no closing '\"'");
    }
    *ret = arena_str(r->out, buf_str(&text));
    skip(r, at + 1);
    return 0;
}

static int read_single(struct ucfg_literal_reader *r, struct str *ret)
{
    struct str inner = str_sub(r->rest, 1, r->rest.n - 1);
    size_t n = str_find_char(inner, '\'');
    if (n == SIZE_MAX) {
        return err_set(r->err, ERR_INVALID, "found no closing \"'\"");
    }
    *ret = arena_str(r->out, str_sub(inner, 0, n));
    skip(r, n + 2);
    return 0;
}

/* What follows an element: 1 to go on, 0 at the end. */
static int read_separator(struct ucfg_literal_reader *r, char end)
{
    skip_space(r);
    char found = r->rest.n > 0 ? r->rest.p[0] : '\0';
    if (found != ',' && found != end) {
        return err_set(r->err, ERR_INVALID, "found no ',' or '%c' behind an element", end);
    }
    skip(r, 1);
    return found == ',';
}

static void add_item(struct ucfg_literal_reader *r, struct ucfg_value *obj, uint32_t *cap,
                     const struct ucfg_value *item)
{
    if (obj->item_n == *cap) {
        ARENA_GROW(r->out, obj->items, obj->item_n, *cap);
    }
    obj->items[obj->item_n] = ARENA_NEW(r->out, struct ucfg_value);
    *obj->items[obj->item_n++] = *item;
}

static int read_array(struct ucfg_literal_reader *r, struct ucfg_value *ret)
{
    struct ucfg_value list = { .kind = UCFG_VALUE_OBJ, .list = true };
    uint32_t cap = 0;
    int more = 1;
    skip(r, 1);
    while (more > 0) {
        skip_space(r);
        if (r->rest.n > 0 && r->rest.p[0] == ']') {
            skip(r, 1);
            break;
        }
        struct ucfg_value item = { .kind = UCFG_VALUE_NULL };
        more = read_value(r, ",]", &item);
        if (more < 0) {
            return more;
        }
        add_item(r, &list, &cap, &item);
        more = read_separator(r, ']');
    }
    if (more < 0) {
        return more;
    }
    *ret = list;
    return 0;
}

static int read_key(struct ucfg_literal_reader *r, struct str *ret)
{
    if (r->rest.n == 0) {
        return err_set(r->err, ERR_INVALID, "found no closing '}'");
    }
    int result = r->rest.p[0] == '"'    ? read_double(r, ret)
                 : r->rest.p[0] == '\'' ? read_single(r, ret)
                                        : read_plain(r, ":", ret);
    skip_space(r);
    if (result == 0 && (r->rest.n == 0 || r->rest.p[0] != ':')) {
        result = err_set(r->err, ERR_INVALID, "found '{' without 'key: value' behind it");
    }
    if (result == 0) {
        skip(r, 1);
    }
    return result;
}

static int read_object(struct ucfg_literal_reader *r, struct ucfg_value *ret)
{
    struct ucfg_value obj = { .kind = UCFG_VALUE_OBJ };
    uint32_t cap = 0;
    int more = 1;
    skip(r, 1);
    while (more > 0) {
        skip_space(r);
        if (r->rest.n > 0 && r->rest.p[0] == '}') {
            skip(r, 1);
            break;
        }
        struct str key = STR_NONE;
        struct ucfg_value *value = ARENA_NEW(r->out, struct ucfg_value);
        more = read_key(r, &key);
        if (more == 0) {
            more = read_value(r, ",}", value);
        }
        if (more < 0) {
            return more;
        }
        if (obj.member_n == cap) {
            ARENA_GROW(r->out, obj.members, obj.member_n, cap);
        }
        obj.members[obj.member_n++] =
            (struct ucfg_value_member){ .name = arena_str(r->out, key), .value = value };
        more = read_separator(r, '}');
    }
    if (more < 0) {
        return more;
    }
    *ret = obj;
    return 0;
}

static int read_quoted(struct ucfg_literal_reader *r, struct ucfg_value *ret)
{
    struct str text = STR_NONE;
    int result = r->rest.p[0] == '"' ? read_double(r, &text) : read_single(r, &text);
    if (result == 0) {
        *ret = (struct ucfg_value){ .kind = UCFG_VALUE_STR, .text = text };
    }
    return result;
}

static int read_value(struct ucfg_literal_reader *r, const char *stops, struct ucfg_value *ret)
{
    skip_space(r);
    if (r->rest.n == 0) {
        *ret = (struct ucfg_value){ .kind = UCFG_VALUE_NULL };
        return 0;
    }
    char first = r->rest.p[0];
    if (first == '"' || first == '\'') {
        return read_quoted(r, ret);
    }
    if (first != '[' && (first != '{' || !r->objects)) {
        return read_primitive(r, stops, ret);
    }
    if (r->depth == UCFG_LITERAL_DEPTH_MAX) {
        return err_set(r->err, ERR_LIMIT, "nested deeper than %u", UCFG_LITERAL_DEPTH_MAX);
    }
    r->depth++;
    int result = first == '[' ? read_array(r, ret) : read_object(r, ret);
    r->depth--;
    return result;
}

int ucfg_literal_parse(struct str text, bool objects, struct arena *out, struct ucfg_value *ret,
                       struct err *err)
{
    struct ucfg_literal_reader r = {
        .rest = str_trim(text), .objects = objects, .out = out, .err = err
    };
    if (r.rest.n == 0) {
        *ret = (struct ucfg_value){ .kind = UCFG_VALUE_STR, .text = STR("") };
        return 0;
    }
    struct ucfg_value list = { .kind = UCFG_VALUE_OBJ, .list = true };
    uint32_t cap = 0;
    for (;;) {
        struct ucfg_value item = { .kind = UCFG_VALUE_NULL };
        int result = read_value(&r, ",", &item);
        if (result < 0) {
            return result;
        }
        add_item(&r, &list, &cap, &item);
        skip_space(&r);
        if (r.rest.n == 0) {
            break;
        }
        if (r.rest.p[0] != ',') {
            return err_set(err, ERR_INVALID, "found '%c' behind a value, want ','", r.rest.p[0]);
        }
        skip(&r, 1);
    }
    *ret = list.item_n == 1 ? *list.items[0] : list;
    return 0;
}
