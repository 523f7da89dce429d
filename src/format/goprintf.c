#include "format/goprintf.h"

#include "base/duration.h"
#include "base/utf8.h"
#include "format/gotime.h"
#include "format/quantity.h"

#define SIZE_LIMIT 1000000 /* Go's own: a larger width or precision is no number to fmt */

/* One "%-08.3f", and where its output goes. */
struct verb {
    struct buf *out;
    struct arena *tmp;
    bool sharp;
    bool zero;
    bool plus;
    bool minus;
    bool space;
    bool go_syntax;   /* %#v */
    bool field_names; /* %+v */
    bool complaining; /* inside "%!d(…)": texts of types are not asked for */
    bool width_given;
    bool precision_given;
    int64_t width;
    int64_t precision;
};

static int64_t count_points(struct str s)
{
    int64_t count = 0;
    for (size_t at = 0; at < s.n; count++) {
        uint32_t point;
        size_t n = utf8_decode(str_sub(s, at, s.n - at), &point);
        at += n == 0 ? 1 : n;
    }
    return count;
}

static void put_fill(struct verb *v, int64_t n, char c)
{
    for (int64_t i = 0; i < n && !v->out->full; i++) {
        buf_add_char(v->out, c);
    }
}

static void put_padded(struct verb *v, struct str s, bool zero)
{
    int64_t missing = v->width_given ? v->width - count_points(s) : 0;
    if (!v->minus) {
        put_fill(v, missing, zero && v->zero ? '0' : ' ');
    }
    buf_add(v->out, s);
    if (v->minus) {
        put_fill(v, missing, ' ');
    }
}

/* Controls, blanks other than ' ', format and private points. */
bool goprintf_is_print(uint32_t point)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } dark[] = {
        { 0x00, 0x1f },          { 0x7f, 0xa0 },       { 0xad, 0xad },       { 0x600, 0x605 },
        { 0x61c, 0x61c },        { 0x6dd, 0x6dd },     { 0x70f, 0x70f },     { 0x890, 0x891 },
        { 0x8e2, 0x8e2 },        { 0x1680, 0x1680 },   { 0x180e, 0x180e },   { 0x2000, 0x200f },
        { 0x2028, 0x202f },      { 0x205f, 0x206f },   { 0x3000, 0x3000 },   { 0xd800, 0xf8ff },
        { 0xfeff, 0xfeff },      { 0xfff0, 0xfffb },   { 0xfffe, 0xffff },   { 0x110bd, 0x110bd },
        { 0x13430, 0x1343f },    { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0x323b0, 0xe00ff },
        { 0xe01f0, UINT32_MAX },
    };
    for (size_t i = 0; i < ARRAY_LEN(dark); i++) {
        if (point >= dark[i].first && point <= dark[i].last) {
            return false;
        }
    }
    return true;
}

static void quote_point(struct buf *out, uint32_t point, char mark, bool ascii)
{
    static const char from[] = "\a\b\f\n\r\t\v\\";
    static const char to[] = "abfnrtv\\";
    const char *hit = point > 0 && point < 0x80 ? strchr(from, (int)point) : NULL;
    if (hit != NULL) {
        buf_add_char(out, '\\');
        buf_add_char(out, to[hit - from]);
    } else if (point == (uint32_t)mark) {
        buf_add_char(out, '\\');
        buf_add_char(out, mark);
    } else if (goprintf_is_print(point) && (point < 0x80 || !ascii)) {
        utf8_add(out, point);
    } else if (point < 0x20 || point == 0x7f) {
        buf_printf(out, "\\x%02x", point);
    } else {
        buf_printf(out, point < 0x10000 ? "\\u%04x" : "\\U%08x", point);
    }
}

void goprintf_quote(struct buf *out, struct str text, char mark, bool ascii)
{
    buf_add_char(out, mark);
    for (size_t at = 0; at < text.n;) {
        uint32_t point;
        size_t n = utf8_decode(str_sub(text, at, text.n - at), &point);
        if (n == 0) {
            buf_printf(out, "\\x%02x", (unsigned char)text.p[at]);
            n = 1;
        } else {
            quote_point(out, point, mark, ascii);
        }
        at += n;
    }
    buf_add_char(out, mark);
}

/* The first `precision` characters. */
static struct str cut_points(struct verb *v, struct str s)
{
    size_t at = 0;
    for (int64_t i = 0; at < s.n && i < v->precision; i++) {
        uint32_t point;
        size_t n = utf8_decode(str_sub(s, at, s.n - at), &point);
        at += n == 0 ? 1 : n;
    }
    return v->precision_given ? str_sub(s, 0, at) : s;
}

static void put_quoted(struct verb *v, struct str s)
{
    CLEANUP(buf_done)
    struct buf text = { .max = v->out->max };
    bool raw = v->sharp && str_find_char(s, '`') == SIZE_MAX;
    for (size_t i = 0; i < s.n && raw; i++) {
        raw = (unsigned char)s.p[i] >= ' ' ? s.p[i] != 0x7f : s.p[i] == '\t';
    }
    if (raw && utf8_find_invalid(s) == SIZE_MAX) {
        buf_add_char(&text, '`');
        buf_add(&text, s);
        buf_add_char(&text, '`');
    } else {
        goprintf_quote(&text, s, '"', v->plus);
    }
    put_padded(v, buf_str(&text), /* zero= */ true);
}

static void put_hex(struct verb *v, struct str s, bool upper)
{
    CLEANUP(buf_done)
    struct buf text = { .max = v->out->max };
    size_t n = v->precision_given ? MIN(s.n, (size_t)v->precision) : s.n;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && v->space) {
            buf_add_char(&text, ' ');
        }
        if (v->sharp && (i == 0 || v->space)) {
            buf_add(&text, upper ? STR("0X") : STR("0x"));
        }
        buf_printf(&text, upper ? "%02X" : "%02x", (unsigned char)s.p[i]);
    }
    put_padded(v, buf_str(&text), /* zero= */ true);
}

/* False when a string does not know the verb. */
static bool put_string(struct verb *v, struct str s, uint32_t verb)
{
    switch (verb) {
    case 'v':
    case 's':
        if (verb == 'v' && v->go_syntax) {
            put_quoted(v, cut_points(v, s));
        } else {
            put_padded(v, cut_points(v, s), /* zero= */ true);
        }
        return true;
    case 'q':
        put_quoted(v, cut_points(v, s));
        return true;
    case 'x':
    case 'X':
        put_hex(v, s, verb == 'X');
        return true;
    default:
        return false;
    }
}

static size_t digits_of(uint64_t u, unsigned base, bool upper, char out[64])
{
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    size_t at = 64;
    do {
        out[--at] = digits[u % base];
        u /= base;
    } while (u > 0);
    return at;
}

static void put_integer(struct verb *v, int64_t number, unsigned base, uint32_t verb)
{
    CLEANUP(buf_done)
    struct buf text = { .max = v->out->max };
    char room[64];
    bool negative = number < 0;
    uint64_t size = negative ? -(uint64_t)number : (uint64_t)number;
    size_t at = digits_of(size, base, verb == 'X', room);
    struct str digits = { room + at, sizeof(room) - at };
    bool sign = negative || v->plus || v->space;
    int64_t least = v->precision;
    if (!v->precision_given) {
        least = v->zero && !v->minus && v->width_given ? v->width - (sign ? 1 : 0) : 0;
    } else if (v->precision == 0 && size == 0) {
        put_padded(v, STR(""), /* zero= */ false);
        return;
    }
    if (sign) {
        buf_add_char(&text, negative ? '-' : v->plus ? '+' : ' ');
    }
    if (verb == 'O') {
        buf_add(&text, STR("0o"));
    } else if (v->sharp && base == 16) {
        buf_add(&text, verb == 'X' ? STR("0X") : STR("0x"));
    } else if (v->sharp && base == 2) {
        buf_add(&text, STR("0b"));
    } else if (v->sharp && base == 8 && least <= (int64_t)digits.n && digits.p[0] != '0') {
        buf_add_char(&text, '0');
    }
    for (int64_t i = (int64_t)digits.n; i < least && !text.full; i++) {
        buf_add_char(&text, '0');
    }
    buf_add(&text, digits);
    v->out->full = v->out->full || text.full;
    put_padded(v, buf_str(&text), /* zero= */ false);
}

static void put_point(struct verb *v, int64_t number, uint32_t verb)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    bool valid = number >= 0 && number <= 0x10ffff && !(number >= 0xd800 && number <= 0xdfff);
    uint32_t point = valid ? (uint32_t)number : 0xfffd;
    if (verb == 'U') {
        buf_printf(&text, "U+%0*llX",
                   v->precision_given && v->precision > 4 ? (int)v->precision : 4,
                   (unsigned long long)number);
        if (v->sharp && valid && goprintf_is_print(point)) {
            buf_add(&text, STR(" '"));
            utf8_add(&text, point);
            buf_add_char(&text, '\'');
        }
        put_padded(v, buf_str(&text), /* zero= */ false);
        return;
    }
    if (verb == 'q') {
        buf_add_char(&text, '\'');
        quote_point(&text, point, '\'', v->plus);
        buf_add_char(&text, '\'');
    } else {
        utf8_add(&text, point);
    }
    put_padded(v, buf_str(&text), /* zero= */ true);
}

static bool put_number(struct verb *v, int64_t number, uint32_t verb)
{
    switch (verb) {
    case 'v':
    case 'd':
        put_integer(v, number, 10, verb);
        return true;
    case 'b':
        put_integer(v, number, 2, verb);
        return true;
    case 'o':
    case 'O':
        put_integer(v, number, 8, verb);
        return true;
    case 'x':
    case 'X':
        put_integer(v, number, 16, verb);
        return true;
    case 'c':
    case 'q':
    case 'U':
        put_point(v, number, verb);
        return true;
    default:
        return false;
    }
}

/* The fewest digits that give the same double back; from an exponent of 6 on as %e has it. */
static void add_shortest(struct buf *text, double size)
{
    char room[40];
    int precision = 0;
    for (;; precision++) {
        double back;
        (void)snprintf(room, sizeof(room), "%.*e", precision, size);
        if (precision == 17 || (str_to_f64(str_from(room), &back) && back == size)) {
            break;
        }
    }
    struct str mantissa;
    struct str exponent_text;
    (void)str_cut(str_from(room), STR("e"), &mantissa, &exponent_text); /* "%e" has one */
    int64_t exponent = 0;
    bool known = str_to_i64(str_sub(exponent_text, 1, exponent_text.n - 1), &exponent);
    ASSERT(known);
    exponent = exponent_text.p[0] == '-' ? -exponent : exponent;
    if (exponent < -4 || exponent >= 6) {
        buf_add(text, str_from(room));
    } else {
        buf_printf(text, "%.*f", MAX(precision - (int)exponent, 0), size);
    }
}

static bool put_float(struct verb *v, double number, uint32_t verb)
{
    if (verb > 0x7f || strchr("vgGeEfF", (int)verb) == NULL || verb == '\0') {
        return false;
    }
    CLEANUP(buf_done)
    struct buf text = { .max = v->out->max };
    bool negative = __builtin_signbit(number);
    double size = negative ? -number : number;
    int precision = v->precision_given ? (int)v->precision : 6;
    bool general = verb == 'v' || verb == 'g' || verb == 'G';
    if (negative || v->plus || v->space) {
        buf_add_char(&text, negative ? '-' : v->plus ? '+' : ' ');
    }
    size_t sign = text.n;
    if (general && !v->precision_given) {
        add_shortest(&text, size);
    } else if (general) {
        buf_printf(&text, "%.*g", precision, size);
    } else {
        buf_printf(&text, verb == 'e' || verb == 'E' ? "%.*e" : "%.*f", precision, size);
    }
    for (size_t i = 0; i < text.n && (verb == 'E' || verb == 'G'); i++) {
        text.p[i] = text.p[i] == 'e' ? 'E' : text.p[i];
    }
    v->out->full = v->out->full || text.full;
    struct str shown = buf_str(&text);
    if (sign > 0 && v->zero && !v->minus && v->width_given) {
        buf_add_char(v->out, shown.p[0]);
        shown = str_sub(shown, 1, shown.n - 1);
        v->width--;
        put_padded(v, shown, /* zero= */ true);
        v->width++;
    } else {
        put_padded(v, shown, /* zero= */ true);
    }
    return true;
}

static bool put_complex(struct verb *v, const double parts[2], uint32_t verb)
{
    struct verb inner = *v;
    size_t before = v->out->n;
    buf_add_char(v->out, '(');
    bool known = put_float(&inner, parts[0], verb);
    inner.plus = true;
    if (!known || !put_float(&inner, parts[1], verb)) {
        v->out->n = before;
        return false;
    }
    buf_add(v->out, STR("i)"));
    return true;
}

/* The text of a type that has one (Go's Stringer); false for the others. */
static bool text_of(const struct govalue *value, struct arena *tmp, struct str *ret)
{
    char room[TIMESTAMP_TEXT_MAX];
    _Static_assert(sizeof(room) >= DURATION_TEXT_MAX, "the room is for both");
    if (value->kind == GO_TIME) {
        *ret = arena_str(tmp, timestamp_print_go(value->time, room));
    } else if (value->kind == GO_QUANTITY) {
        struct quantity q;
        struct err err = { 0 };
        *ret = value->text;
        if (quantity_parse(value->text, &q, &err) == 0) {
            CLEANUP(buf_done)
            struct buf text = { 0 };
            quantity_print(&q, &text);
            *ret = arena_str(tmp, buf_str(&text));
        }
    } else if (value->kind == GO_INT && value->type == &gotype_month) {
        *ret = gotime_month(value->number);
    } else if (value->kind == GO_INT && value->type == &gotype_weekday) {
        *ret = gotime_weekday(value->number);
    } else if (value->kind == GO_INT && value->type == &gotype_duration) {
        *ret = arena_str(tmp, duration_print(value->number, room));
    } else {
        return false;
    }
    return true;
}

static void put_value(struct verb *v, const struct govalue *value, uint32_t verb);

static void put_slice(struct verb *v, const struct govalue *value, uint32_t verb)
{
    if (v->go_syntax) {
        buf_add(v->out, str_from(govalue_type_name(value)));
    }
    if (v->go_syntax && value->items == NULL) {
        buf_add(v->out, STR("(nil)"));
        return;
    }
    buf_add_char(v->out, v->go_syntax ? '{' : '[');
    for (uint32_t i = 0; i < value->n && !v->out->full; i++) {
        if (i > 0) {
            buf_add(v->out, v->go_syntax ? STR(", ") : STR(" "));
        }
        put_value(v, &value->items[i], verb);
    }
    buf_add_char(v->out, v->go_syntax ? '}' : ']');
}

static void put_map(struct verb *v, const struct govalue *value, uint32_t verb)
{
    buf_add(v->out, v->go_syntax ? str_from(govalue_type_name(value)) : STR("map"));
    if (v->go_syntax && value->members == NULL) {
        buf_add(v->out, STR("(nil)"));
        return;
    }
    buf_add_char(v->out, v->go_syntax ? '{' : '[');
    for (uint32_t i = 0; i < value->n && !v->out->full; i++) {
        if (i > 0) {
            buf_add(v->out, v->go_syntax ? STR(", ") : STR(" "));
        }
        struct govalue name = govalue_str(value->members[i].name);
        put_value(v, &name, verb);
        buf_add_char(v->out, ':');
        put_value(v, &value->members[i].value, verb);
    }
    buf_add_char(v->out, v->go_syntax ? '}' : ']');
}

static void put_struct(struct verb *v, const struct govalue *value, uint32_t verb)
{
    struct gomember field;
    if (v->go_syntax) {
        buf_add(v->out, str_from(govalue_type_name(value)));
    }
    buf_add_char(v->out, '{');
    for (uint32_t i = 0; !v->out->full && govalue_field_at(value, i, v->tmp, &field); i++) {
        if (i > 0) {
            buf_add(v->out, v->go_syntax ? STR(", ") : STR(" "));
        }
        if (v->go_syntax || v->field_names) {
            buf_add(v->out, field.name);
            buf_add_char(v->out, ':');
        }
        put_value(v, &field.value, verb);
    }
    buf_add_char(v->out, '}');
}

static void put_complaint(struct verb *v, const struct govalue *value, uint32_t verb)
{
    buf_add(v->out, STR("%!"));
    utf8_add(v->out, verb);
    buf_add_char(v->out, '(');
    if (value->kind == GO_NONE) {
        buf_add(v->out, STR("<nil>"));
    } else {
        v->complaining = true;
        buf_printf(v->out, "%s=", govalue_type_name(value));
        put_value(v, value, 'v');
        v->complaining = false;
    }
    buf_add_char(v->out, ')');
}

/* False when the value does not know the verb. */
static bool put_known(struct verb *v, const struct govalue *value, uint32_t verb)
{
    struct str text;
    bool as_text = verb == 'v' || verb == 's' || verb == 'q' || verb == 'x' || verb == 'X';
    bool plain = value->kind == GO_INT && v->complaining;
    if (as_text && !plain && !v->go_syntax && text_of(value, v->tmp, &text)) {
        return put_string(v, text, verb);
    }
    if (as_text && value->kind == GO_NIL && value->type->kind == GO_TIME && !v->complaining) {
        buf_add(v->out, STR("<nil>")); /* what fmt makes of a String() that met a nil */
        return true;
    }
    switch (value->kind) {
    case GO_BOOL:
        if (verb == 'v' || verb == 't') {
            put_padded(v, value->truth ? STR("true") : STR("false"), /* zero= */ true);
        }
        return verb == 'v' || verb == 't';
    case GO_INT:
        return put_number(v, value->number, verb);
    case GO_FLOAT:
        return put_float(v, value->parts[0], verb);
    case GO_COMPLEX:
        return put_complex(v, value->parts, verb);
    case GO_STRING:
        return put_string(v, value->text, verb);
    case GO_SLICE:
        put_slice(v, value, verb);
        return true;
    case GO_MAP:
        put_map(v, value, verb);
        return true;
    case GO_STRUCT:
        put_struct(v, value, verb);
        return true;
    case GO_TIME:
    case GO_QUANTITY:
        return verb == 'v' && text_of(value, v->tmp, &text) && put_string(v, text, 'v');
    default:
        if (verb == 'v') {
            put_padded(v, STR("<nil>"), /* zero= */ true);
        }
        return verb == 'v';
    }
}

static void put_value(struct verb *v, const struct govalue *value, uint32_t verb)
{
    if (!put_known(v, value, verb)) {
        put_complaint(v, value, verb);
    }
}

void goprintf_print(struct buf *out, const struct govalue *args, uint32_t n, struct arena *tmp)
{
    for (uint32_t i = 0; i < n; i++) {
        struct verb v = { .out = out, .tmp = tmp };
        if (i > 0 && args[i].kind != GO_STRING && args[i - 1].kind != GO_STRING) {
            buf_add_char(out, ' ');
        }
        put_value(&v, &args[i], 'v');
    }
}

void goprintf_println(struct buf *out, const struct govalue *args, uint32_t n, struct arena *tmp)
{
    for (uint32_t i = 0; i < n; i++) {
        struct verb v = { .out = out, .tmp = tmp };
        if (i > 0) {
            buf_add_char(out, ' ');
        }
        put_value(&v, &args[i], 'v');
    }
    buf_add_char(out, '\n');
}

/* Where Printf stands in its format and in its arguments. */
struct format {
    struct str text;
    size_t at;
    const struct govalue *args;
    uint32_t n;
    uint32_t arg;
    bool reordered;
    bool good_index;
    bool after_index;
};

static bool format_at(const struct format *f, char c)
{
    return f->at < f->text.n && f->text.p[f->at] == c;
}

static bool format_number(struct format *f, int64_t *ret)
{
    size_t start = f->at;
    int64_t value = 0;
    *ret = 0;
    while (f->at < f->text.n && f->text.p[f->at] >= '0' && f->text.p[f->at] <= '9') {
        if (value > SIZE_LIMIT) {
            f->at = f->text.n; /* as Go does: the rest of the format is lost */
            return false;
        }
        value = value * 10 + (f->text.p[f->at++] - '0');
    }
    *ret = value;
    return f->at > start;
}

/* "[3]": the next argument is the third. */
static void format_index(struct format *f)
{
    f->after_index = false;
    if (!format_at(f, '[')) {
        return;
    }
    f->reordered = true;
    struct str rest = str_sub(f->text, f->at, f->text.n - f->at);
    size_t close = str_find_char(rest, ']');
    size_t start = f->at;
    int64_t index = 0;
    f->at++;
    if (close == SIZE_MAX) {
        f->good_index = false;
        return;
    }
    bool whole = format_number(f, &index) && f->at == start + close;
    f->at = start + close + 1;
    f->after_index = whole;
    if (whole && index >= 1 && index <= f->n) {
        f->arg = (uint32_t)index - 1;
    } else {
        f->good_index = false;
    }
}

/* "*": a number out of the arguments. */
static bool format_star(struct format *f, int64_t *ret)
{
    f->at++;
    f->after_index = false;
    if (f->arg >= f->n) {
        return false;
    }
    const struct govalue *value = &f->args[f->arg++];
    if (value->kind != GO_INT || value->number > SIZE_LIMIT || value->number < -SIZE_LIMIT) {
        return false;
    }
    *ret = value->number;
    return true;
}

static void format_width(struct format *f, struct verb *v)
{
    if (!format_at(f, '*')) {
        v->width_given = format_number(f, &v->width);
        f->good_index = f->good_index && !(f->after_index && v->width_given);
        return;
    }
    v->width_given = format_star(f, &v->width);
    if (!v->width_given) {
        buf_add(v->out, STR("%!(BADWIDTH)"));
    }
    if (v->width < 0) {
        v->width = -v->width;
        v->minus = true;
        v->zero = false;
    }
}

static void format_precision(struct format *f, struct verb *v)
{
    if (!format_at(f, '.') || f->at + 1 >= f->text.n) {
        return;
    }
    f->at++;
    f->good_index = f->good_index && !f->after_index;
    format_index(f);
    if (!format_at(f, '*')) {
        (void)format_number(f, &v->precision); /* "%.f" is a precision of 0 */
        v->precision_given = true;
        return;
    }
    v->precision_given = format_star(f, &v->precision) && v->precision >= 0;
    if (!v->precision_given) {
        v->precision = 0;
        buf_add(v->out, STR("%!(BADPREC)"));
    }
}

static void format_flags(struct format *f, struct verb *v)
{
    for (; f->at < f->text.n; f->at++) {
        switch (f->text.p[f->at]) {
        case '#':
            v->sharp = true;
            break;
        case '0':
            v->zero = true;
            break;
        case '+':
            v->plus = true;
            break;
        case '-':
            v->minus = true;
            break;
        case ' ':
            v->space = true;
            break;
        default:
            return;
        }
    }
}

static void format_verb(struct format *f, struct verb *v)
{
    uint32_t verb;
    size_t n = utf8_decode(str_sub(f->text, f->at, f->text.n - f->at), &verb);
    if (n == 0) {
        verb = 0xfffd;
        n = 1;
    }
    f->at += n;
    if (verb == '%') {
        buf_add_char(v->out, '%');
        return;
    }
    if (!f->good_index || f->arg >= f->n) {
        buf_add(v->out, STR("%!"));
        utf8_add(v->out, verb);
        buf_add(v->out, f->good_index ? STR("(MISSING)") : STR("(BADINDEX)"));
        return;
    }
    const struct govalue *value = &f->args[f->arg++];
    if (verb == 'v') {
        v->go_syntax = v->sharp;
        v->field_names = v->plus;
        v->sharp = false;
        v->plus = false;
    }
    if (verb == 'T') {
        struct str name = str_from(value->kind == GO_NONE ? "<nil>" : govalue_type_name(value));
        put_padded(v, cut_points(v, name), /* zero= */ true);
    } else if (verb == 'w') {
        put_complaint(v, value, verb); /* only Go's Errorf knows it */
    } else {
        put_value(v, value, verb);
    }
}

static void format_extra(struct format *f, struct verb *v)
{
    buf_add(v->out, STR("%!(EXTRA "));
    for (uint32_t i = f->arg; i < f->n; i++) {
        if (i > f->arg) {
            buf_add(v->out, STR(", "));
        }
        if (f->args[i].kind != GO_NONE) {
            buf_printf(v->out, "%s=", govalue_type_name(&f->args[i]));
        }
        put_value(v, &f->args[i], 'v');
    }
    buf_add_char(v->out, ')');
}

void goprintf_printf(struct buf *out, struct str format, const struct govalue *args, uint32_t n,
                     struct arena *tmp)
{
    struct format f = { .text = format, .args = args, .n = n };
    while (f.at < format.n && !out->full) {
        struct str rest = str_sub(format, f.at, format.n - f.at);
        size_t plain = MIN(str_find_char(rest, '%'), rest.n);
        buf_add(out, str_sub(rest, 0, plain));
        f.at += plain + 1;
        if (plain == rest.n) {
            break;
        }
        struct verb v = { .out = out, .tmp = tmp };
        f.good_index = true;
        format_flags(&f, &v);
        format_index(&f);
        format_width(&f, &v);
        format_precision(&f, &v);
        if (!f.after_index) {
            format_index(&f);
        }
        if (f.at >= format.n) {
            buf_add(out, STR("%!(NOVERB)"));
            break;
        }
        format_verb(&f, &v);
    }
    if (!f.reordered && f.arg < n) {
        format_extra(&f, &(struct verb){ .out = out, .tmp = tmp });
    }
}
