#include "format/yaml_scalar.h"

#include "base/base64.h"
#include "base/hex.h"
#include "format/json_writer.h"

#define TAG_PREFIX "tag:yaml.org,2002:"

static const struct {
    struct str text;
    enum jkind kind;
    bool truth;
    struct str shown;
} words[] = {
    { STR_INIT("y"), JBOOL, true, STR_INIT("") },
    { STR_INIT("Y"), JBOOL, true, STR_INIT("") },
    { STR_INIT("yes"), JBOOL, true, STR_INIT("") },
    { STR_INIT("Yes"), JBOOL, true, STR_INIT("") },
    { STR_INIT("YES"), JBOOL, true, STR_INIT("") },
    { STR_INIT("true"), JBOOL, true, STR_INIT("") },
    { STR_INIT("True"), JBOOL, true, STR_INIT("") },
    { STR_INIT("TRUE"), JBOOL, true, STR_INIT("") },
    { STR_INIT("on"), JBOOL, true, STR_INIT("") },
    { STR_INIT("On"), JBOOL, true, STR_INIT("") },
    { STR_INIT("ON"), JBOOL, true, STR_INIT("") },
    { STR_INIT("n"), JBOOL, false, STR_INIT("") },
    { STR_INIT("N"), JBOOL, false, STR_INIT("") },
    { STR_INIT("no"), JBOOL, false, STR_INIT("") },
    { STR_INIT("No"), JBOOL, false, STR_INIT("") },
    { STR_INIT("NO"), JBOOL, false, STR_INIT("") },
    { STR_INIT("false"), JBOOL, false, STR_INIT("") },
    { STR_INIT("False"), JBOOL, false, STR_INIT("") },
    { STR_INIT("FALSE"), JBOOL, false, STR_INIT("") },
    { STR_INIT("off"), JBOOL, false, STR_INIT("") },
    { STR_INIT("Off"), JBOOL, false, STR_INIT("") },
    { STR_INIT("OFF"), JBOOL, false, STR_INIT("") },
    { STR_INIT(""), JNULL, false, STR_INIT("") },
    { STR_INIT("~"), JNULL, false, STR_INIT("") },
    { STR_INIT("null"), JNULL, false, STR_INIT("") },
    { STR_INIT("Null"), JNULL, false, STR_INIT("") },
    { STR_INIT("NULL"), JNULL, false, STR_INIT("") },
    { STR_INIT(".nan"), JSTR, false, STR_INIT("NaN") },
    { STR_INIT(".NaN"), JSTR, false, STR_INIT("NaN") },
    { STR_INIT(".NAN"), JSTR, false, STR_INIT("NaN") },
    { STR_INIT(".inf"), JSTR, false, STR_INIT("+Inf") },
    { STR_INIT(".Inf"), JSTR, false, STR_INIT("+Inf") },
    { STR_INIT(".INF"), JSTR, false, STR_INIT("+Inf") },
    { STR_INIT("+.inf"), JSTR, false, STR_INIT("+Inf") },
    { STR_INIT("+.Inf"), JSTR, false, STR_INIT("+Inf") },
    { STR_INIT("+.INF"), JSTR, false, STR_INIT("+Inf") },
    { STR_INIT("-.inf"), JSTR, false, STR_INIT("-Inf") },
    { STR_INIT("-.Inf"), JSTR, false, STR_INIT("-Inf") },
    { STR_INIT("-.INF"), JSTR, false, STR_INIT("-Inf") },
};

static bool is_digit(struct str s, size_t at)
{
    return at < s.n && s.p[at] >= '0' && s.p[at] <= '9';
}

static struct str without_underscores(struct str text, struct arena *out)
{
    char *plain = arena_alloc(out, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '_') {
            plain[n++] = text.p[i];
        }
    }
    return (struct str){ .p = plain, .n = n };
}

static bool digits_read(struct str s, unsigned base, uint64_t *ret)
{
    uint64_t value = 0;
    if (s.n == 0) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = (unsigned)hex_digit(s.p[i]); /* what is none is above every base */
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return false;
        }
    }
    *ret = value;
    return true;
}

/* As strconv.ParseInt and ParseUint with base 0: the prefix names the base. Above the greatest
 * int64 only without a sign. */
static bool integer_read(struct str plain, struct arena *out, struct str *ret)
{
    static const struct {
        struct str prefix;
        unsigned base;
    } bases[] = {
        { STR_INIT("0x"), 16 }, { STR_INIT("0X"), 16 }, { STR_INIT("0o"), 8 },
        { STR_INIT("0O"), 8 },  { STR_INIT("0b"), 2 },  { STR_INIT("0B"), 2 },
    };
    struct str digits;
    bool negative = str_cut_prefix(plain, STR("-"), &digits);
    bool sign = negative || str_cut_prefix(plain, STR("+"), &digits);
    unsigned base = digits.n > 1 && digits.p[0] == '0' ? 8 : 10;
    for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
        if (str_cut_prefix(digits, bases[i].prefix, &digits)) {
            base = bases[i].base;
            break;
        }
    }
    uint64_t value;
    if (!digits_read(digits, base, &value) ||
        (sign && value > (uint64_t)INT64_MAX + (negative ? 1 : 0))) {
        return false;
    }
    *ret = arena_printf(out, "%s%llu", negative && value > 0 ? "-" : "", (unsigned long long)value);
    return true;
}

/* [-+]? ( . digits | digits [. digits?] ) ( [eE] [-+]? digits )? */
static bool looks_like_float(struct str s)
{
    size_t at = s.n > 0 && (s.p[0] == '-' || s.p[0] == '+') ? 1 : 0;
    size_t start = at;
    while (is_digit(s, at)) {
        at++;
    }
    bool whole = at > start;
    if (at < s.n && s.p[at] == '.') {
        size_t point = at++;
        while (is_digit(s, at)) {
            at++;
        }
        if (!whole && at == point + 1) {
            return false;
        }
    } else if (!whole) {
        return false;
    }
    if (at < s.n && (s.p[at] == 'e' || s.p[at] == 'E')) {
        at++;
        at += at < s.n && (s.p[at] == '-' || s.p[at] == '+') ? 1 : 0;
        if (!is_digit(s, at)) {
            return false;
        }
        while (is_digit(s, at)) {
            at++;
        }
    }
    return at == s.n;
}

static bool is_json_number(struct str s)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *v;
    return json_parse(s, 0, &tmp, &v, &err) == 0 && jval_kind(v) == JNUM &&
           v->n == s.n; /* white space around it is none of ours */
}

/* The text stays where JSON has it that way, too; a whole number gets a point, to tell it apart. */
static bool float_read(struct str plain, struct arena *out, struct str *ret)
{
    double value;
    if (!looks_like_float(plain) || !str_to_f64(plain, &value)) {
        return false;
    }
    bool marked = str_find_char(plain, '.') != SIZE_MAX || str_find_char(plain, 'e') != SIZE_MAX ||
                  str_find_char(plain, 'E') != SIZE_MAX;
    if (marked && is_json_number(plain)) {
        *ret = arena_str(out, plain);
        return true;
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct json_writer w = json_writer_on(&text);
    struct err err = { 0 };
    if (jw_f64(&w, value, &err) < 0) {
        return false;
    }
    struct str shown = buf_str(&text);
    if (str_find_char(shown, '.') == SIZE_MAX && str_find_char(shown, 'e') == SIZE_MAX) {
        buf_add(&text, STR(".0"));
    }
    *ret = arena_str(out, buf_str(&text));
    return true;
}

/* What the text looks like, whatever its tag. */
static struct yscalar guess(struct str text, struct arena *out)
{
    struct yscalar s = { .kind = JSTR };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eq(words[i].text, text)) {
            return (struct yscalar){ .kind = words[i].kind,
                                     .truth = words[i].truth,
                                     .text = words[i].shown };
        }
    }
    if (text.n > 0 && (is_digit(text, 0) || strchr("+-.", text.p[0]) != NULL)) {
        struct str plain = text.p[0] == '.' ? text : without_underscores(text, out);
        if ((text.p[0] != '.' && integer_read(plain, out, &s.text)) ||
            float_read(plain, out, &s.text)) {
            s.kind = JNUM;
            return s;
        }
    }
    s.text = arena_str(out, text);
    return s;
}

static bool is_float(const struct yscalar *s)
{
    return s->kind == JNUM &&
           (str_find_char(s->text, '.') != SIZE_MAX || str_find_char(s->text, 'e') != SIZE_MAX ||
            str_find_char(s->text, 'E') != SIZE_MAX);
}

static int tag_fail(struct str text, struct str tag, struct err *err)
{
    struct str shown = str_sub(text, 0, 64);
    return err_set(err, ERR_INVALID, "found '" STR_FMT "', want what its tag !!" STR_FMT " says",
                   STR_ARG(shown), STR_ARG(tag));
}

int yscalar_resolve(struct str text, struct str tag, struct arena *out, struct yscalar *ret,
                    struct err *err)
{
    bool known = str_cut_prefix(tag, STR(TAG_PREFIX), &tag) || str_cut_prefix(tag, STR("!!"), &tag);
    if (str_eq(tag, STR("binary")) && known) {
        struct str bytes;
        if (!base64_decode(text, out, &bytes)) {
            return tag_fail(text, tag, err);
        }
        *ret = (struct yscalar){ .kind = JSTR, .text = bytes };
        return 0;
    }
    if (tag.n > 0 && (!known || str_eq(tag, STR("str")) || str_eq(tag, STR("timestamp")))) {
        *ret = (struct yscalar){ .kind = JSTR, .text = arena_str(out, text) };
        return 0;
    }
    struct yscalar s = guess(text, out);
    bool right = tag.n == 0 || (str_eq(tag, STR("bool")) && s.kind == JBOOL) ||
                 (str_eq(tag, STR("null")) && s.kind == JNULL) ||
                 (str_eq(tag, STR("int")) && s.kind == JNUM && !is_float(&s)) ||
                 (str_eq(tag, STR("float")) &&
                  (s.kind == JNUM || (s.kind == JSTR && !str_eq(s.text, text))));
    if (!right) {
        return tag_fail(text, tag, err);
    }
    *ret = s;
    return 0;
}
