#include "format/template_func.h"

#include "base/percent.h"
#include "base/utf8.h"
#include "format/goprintf.h"
#include "format/template.h"

#define CALL_FAIL(c, ...) err_set((c)->err, ERR_INVALID, __VA_ARGS__)

/* What was printed becomes the answer. */
static int call_text(struct tcall *c, const struct buf *text)
{
    if (text->full) {
        return err_set(c->err, ERR_LIMIT, "a text of more than %zu bytes", TEMPLATE_OUTPUT_MAX);
    }
    *c->ret = govalue_str(arena_str(c->tmp, buf_str(text)));
    return 0;
}

static int func_print(struct tcall *c)
{
    CLEANUP(buf_done)
    struct buf text = { .max = TEMPLATE_OUTPUT_MAX };
    goprintf_print(&text, c->args, c->n, c->tmp);
    return call_text(c, &text);
}

static int func_println(struct tcall *c)
{
    CLEANUP(buf_done)
    struct buf text = { .max = TEMPLATE_OUTPUT_MAX };
    goprintf_println(&text, c->args, c->n, c->tmp);
    return call_text(c, &text);
}

static int func_printf(struct tcall *c)
{
    CLEANUP(buf_done)
    struct buf text = { .max = TEMPLATE_OUTPUT_MAX };
    if (c->args[0].kind != GO_STRING) {
        return CALL_FAIL(c, "found %s, want a string as format", govalue_type_name(&c->args[0]));
    }
    goprintf_printf(&text, c->args[0].text, c->args + 1, c->n - 1, c->tmp);
    return call_text(c, &text);
}

/* The arguments as one text; what has no value is shown as actions show it. */
static struct str escape_input(struct tcall *c)
{
    CLEANUP(buf_done)
    struct buf text = { .max = TEMPLATE_OUTPUT_MAX };
    struct govalue *shown = ARENA_ARRAY(c->tmp, struct govalue, c->n + 1);
    for (uint32_t i = 0; i < c->n; i++) {
        shown[i] = c->args[i].kind == GO_NONE ? govalue_str(STR("<no value>")) : c->args[i];
    }
    goprintf_print(&text, shown, c->n, c->tmp);
    return arena_str(c->tmp, buf_str(&text));
}

static int func_html(struct tcall *c)
{
    CLEANUP(buf_done)
    struct buf text = { .max = TEMPLATE_OUTPUT_MAX };
    struct str input = escape_input(c);
    for (size_t i = 0; i < input.n; i++) {
        static const char from[] = "'\"&<>";
        static const char *const to[] = { "&#39;", "&#34;", "&amp;", "&lt;", "&gt;" };
        char byte = input.p[i];
        const char *hit = byte != '\0' ? strchr(from, byte) : NULL;
        if (byte == '\0') {
            buf_add(&text, STR("\xef\xbf\xbd"));
        } else if (hit != NULL) {
            buf_add(&text, str_from(to[hit - from]));
        } else {
            buf_add_char(&text, byte);
        }
    }
    return call_text(c, &text);
}

static int func_js(struct tcall *c)
{
    CLEANUP(buf_done)
    struct buf text = { .max = TEMPLATE_OUTPUT_MAX };
    struct str input = escape_input(c);
    for (size_t at = 0; at < input.n;) {
        uint32_t point;
        size_t n = utf8_decode(str_sub(input, at, input.n - at), &point);
        if (n == 0) {
            buf_add_char(&text, input.p[at]);
            n = 1;
        } else if (point == '\\' || point == '\'' || point == '"') {
            buf_add_char(&text, '\\');
            buf_add_char(&text, (char)point);
        } else if (point == '<' || point == '>' || point == '&' || point == '=' ||
                   (point != 0x7f && !goprintf_is_print(point))) {
            buf_printf(&text, "\\u%04X", point);
        } else {
            utf8_add(&text, point);
        }
        at += n;
    }
    return call_text(c, &text);
}

static int func_urlquery(struct tcall *c)
{
    CLEANUP(buf_done)
    struct buf text = { .max = TEMPLATE_OUTPUT_MAX };
    percent_add_form(&text, escape_input(c));
    return call_text(c, &text);
}

static int func_len(struct tcall *c)
{
    const struct govalue *v = &c->args[0];
    if (v->kind == GO_STRING) {
        *c->ret = govalue_i64((int64_t)v->text.n);
    } else if (v->kind == GO_SLICE || v->kind == GO_MAP) {
        *c->ret = govalue_i64(v->n);
    } else {
        return CALL_FAIL(c, "found %s, want a string, list or map to measure",
                         govalue_type_name(v));
    }
    return 0;
}

/* A number that is at most `most`. */
static int index_read(struct tcall *c, const struct govalue *v, size_t most, size_t *ret)
{
    if (v->kind != GO_INT) {
        return CALL_FAIL(c, "found %s, want a whole number as index", govalue_type_name(v));
    }
    if (v->number < 0 || (uint64_t)v->number > most) {
        return CALL_FAIL(c, "index %lld is out of range, there are %zu", (long long)v->number,
                         most);
    }
    *ret = (size_t)v->number;
    return 0;
}

static struct govalue zero_of(const struct gotype *type, struct arena *tmp)
{
    return govalue_from(type, NULL, tmp);
}

static int index_one(struct tcall *c, struct govalue *item, const struct govalue *index)
{
    size_t at = 0;
    size_t n = item->kind == GO_STRING ? item->text.n : item->n;
    if (item->kind == GO_MAP) {
        struct govalue found;
        if (index->kind != GO_STRING) {
            return CALL_FAIL(c, "found %s, want a string as key", govalue_type_name(index));
        }
        *item = govalue_member(item, index->text, c->tmp, &found)
                    ? found
                    : zero_of(item->type->item, c->tmp);
        return 0;
    }
    if (item->kind != GO_SLICE && item->kind != GO_STRING) {
        return CALL_FAIL(c, "found %s, want a list, map or string", govalue_type_name(item));
    }
    int r = index_read(c, index, n, &at);
    if (r < 0) {
        return r;
    }
    if (at == n) {
        return CALL_FAIL(c, "index %zu is out of range, there are %zu", at, n);
    }
    if (item->kind == GO_STRING) {
        unsigned char byte = (unsigned char)item->text.p[at];
        *item = (struct govalue){ .kind = GO_INT, .type = &gotype_uint8, .number = byte };
    } else {
        *item = item->items[at];
    }
    return 0;
}

static int func_index(struct tcall *c)
{
    struct govalue item = c->args[0];
    if (item.kind == GO_NONE) {
        return CALL_FAIL(c, "found nil, want a list, map or string");
    }
    for (uint32_t i = 1; i < c->n; i++) {
        int r = index_one(c, &item, &c->args[i]);
        if (r < 0) {
            return r;
        }
    }
    *c->ret = item;
    return 0;
}

static int func_slice(struct tcall *c)
{
    struct govalue item = c->args[0];
    if (item.kind != GO_STRING && item.kind != GO_SLICE) {
        return CALL_FAIL(c, "found %s, want a list or string", govalue_type_name(&item));
    }
    size_t n = item.kind == GO_STRING ? item.text.n : item.n;
    size_t most = item.kind == GO_STRING ? 2 : 3;
    size_t bounds[3] = { 0, n, n };
    if (c->n - 1 > most) {
        return CALL_FAIL(c, "found %u bounds, want at most %zu", c->n - 1, most);
    }
    for (uint32_t i = 1; i < c->n; i++) {
        int r = index_read(c, &c->args[i], n, &bounds[i - 1]);
        if (r < 0) {
            return r;
        }
    }
    if (bounds[0] > bounds[1] || bounds[1] > bounds[2]) {
        return CALL_FAIL(c, "found bounds %zu and %zu, want them in order",
                         bounds[bounds[0] > bounds[1] ? 0 : 1],
                         bounds[bounds[0] > bounds[1] ? 1 : 2]);
    }
    if (item.kind == GO_STRING) {
        item.text = str_sub(item.text, bounds[0], bounds[1] - bounds[0]);
    } else {
        item.items = item.items != NULL ? item.items + bounds[0] : NULL;
        item.n = (uint32_t)(bounds[1] - bounds[0]);
    }
    *c->ret = item;
    return 0;
}

static int func_call(struct tcall *c)
{
    return CALL_FAIL(c, "found %s, want a function: no field is one",
                     govalue_type_name(&c->args[0]));
}

static int func_not(struct tcall *c)
{
    *c->ret = govalue_bool(!govalue_truth(&c->args[0]));
    return 0;
}

static bool kind_is_basic(enum gokind kind)
{
    return kind >= GO_BOOL && kind <= GO_STRING;
}

static bool basic_eq(const struct govalue *a, const struct govalue *b)
{
    switch (a->kind) {
    case GO_BOOL:
        return a->truth == b->truth;
    case GO_INT:
        return a->number == b->number;
    case GO_FLOAT:
        return a->parts[0] == b->parts[0];
    case GO_COMPLEX:
        return a->parts[0] == b->parts[0] && a->parts[1] == b->parts[1];
    default:
        return str_eq(a->text, b->text);
    }
}

static int eq_refuse(struct tcall *c, const struct govalue *a, const struct govalue *b)
{
    return CALL_FAIL(c, "found %s and %s, want two of a kind that can be compared",
                     govalue_type_name(a), govalue_type_name(b));
}

/* Lists, maps, structs, times, quantities and nothing at all. */
static int eq_other(struct tcall *c, const struct govalue *a, const struct govalue *b, bool *ret)
{
    bool lists =
        a->kind == GO_MAP || a->kind == GO_SLICE || b->kind == GO_MAP || b->kind == GO_SLICE;
    bool nothing = a->kind == GO_NONE || b->kind == GO_NONE;
    bool nil = govalue_is_nil(a) || govalue_is_nil(b);
    bool apart = a->kind != b->kind && !nothing && (lists || !nil);
    if (apart || (lists && !nil)) {
        return eq_refuse(c, a, b);
    }
    if (nil) {
        *ret = govalue_is_nil(a) == govalue_is_nil(b);
    } else if (a->kind == GO_TIME) {
        *ret = a->time.sec == b->time.sec && a->time.nsec == b->time.nsec &&
               a->time.offset == b->time.offset;
    } else if (a->kind == GO_QUANTITY) {
        *ret = str_eq(a->text, b->text);
    } else {
        *ret = a->json == b->json && a->members == b->members;
    }
    return 0;
}

static int eq_two(struct tcall *c, const struct govalue *a, const struct govalue *b, bool *ret)
{
    if (!kind_is_basic(a->kind) && !kind_is_basic(b->kind)) {
        return eq_other(c, a, b, ret);
    }
    if (a->kind == b->kind) {
        *ret = basic_eq(a, b);
        return 0;
    }
    *ret = false;
    return a->kind == GO_NONE || b->kind == GO_NONE ? 0 : eq_refuse(c, a, b);
}

static int func_eq(struct tcall *c)
{
    bool same = false;
    if (c->n < 2) {
        return CALL_FAIL(c, "found one value, want another to compare it with");
    }
    for (uint32_t i = 1; i < c->n && !same; i++) {
        int r = eq_two(c, &c->args[0], &c->args[i], &same);
        if (r < 0) {
            return r;
        }
    }
    *c->ret = govalue_bool(same);
    return 0;
}

static int func_ne(struct tcall *c)
{
    int r = func_eq(c);
    c->ret->truth = r == 0 && !c->ret->truth;
    return r;
}

/* Below 0, 0 or above 0, for what has an order. */
static int order_two(struct tcall *c, int *ret)
{
    const struct govalue *a = &c->args[0];
    const struct govalue *b = &c->args[1];
    if (a->kind != b->kind) {
        return eq_refuse(c, a, b);
    }
    if (a->kind == GO_INT) {
        *ret = (a->number > b->number) - (a->number < b->number);
    } else if (a->kind == GO_FLOAT) {
        *ret = (a->parts[0] > b->parts[0]) - (a->parts[0] < b->parts[0]);
    } else if (a->kind == GO_STRING) {
        *ret = str_cmp(a->text, b->text);
    } else {
        return CALL_FAIL(c, "found %s, want what has an order", govalue_type_name(a));
    }
    return 0;
}

static int func_lt(struct tcall *c)
{
    int order = 0;
    int r = order_two(c, &order);
    *c->ret = govalue_bool(order < 0);
    return r;
}

static int func_le(struct tcall *c)
{
    int order = 0;
    int r = order_two(c, &order);
    *c->ret = govalue_bool(order <= 0);
    return r;
}

static int func_gt(struct tcall *c)
{
    int order = 0;
    int r = order_two(c, &order);
    *c->ret = govalue_bool(order > 0);
    return r;
}

static int func_ge(struct tcall *c)
{
    int order = 0;
    int r = order_two(c, &order);
    *c->ret = govalue_bool(order >= 0);
    return r;
}

static const struct template_func funcs[] = {
    { STR_INIT("and"), 1, UINT32_MAX, NULL },
    { STR_INIT("or"), 1, UINT32_MAX, NULL },
    { STR_INIT("not"), 1, 1, func_not },
    { STR_INIT("len"), 1, 1, func_len },
    { STR_INIT("index"), 1, UINT32_MAX, func_index },
    { STR_INIT("slice"), 1, UINT32_MAX, func_slice },
    { STR_INIT("print"), 0, UINT32_MAX, func_print },
    { STR_INIT("printf"), 1, UINT32_MAX, func_printf },
    { STR_INIT("println"), 0, UINT32_MAX, func_println },
    { STR_INIT("html"), 0, UINT32_MAX, func_html },
    { STR_INIT("js"), 0, UINT32_MAX, func_js },
    { STR_INIT("urlquery"), 0, UINT32_MAX, func_urlquery },
    { STR_INIT("call"), 1, UINT32_MAX, func_call },
    { STR_INIT("eq"), 1, UINT32_MAX, func_eq },
    { STR_INIT("ne"), 2, 2, func_ne },
    { STR_INIT("lt"), 2, 2, func_lt },
    { STR_INIT("le"), 2, 2, func_le },
    { STR_INIT("gt"), 2, 2, func_gt },
    { STR_INIT("ge"), 2, 2, func_ge },
};

const struct template_func *template_func_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(funcs); i++) {
        if (str_eq(funcs[i].name, name)) {
            return &funcs[i];
        }
    }
    return NULL;
}
