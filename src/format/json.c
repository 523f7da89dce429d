#include "format/json.h"

#include "base/arena.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/timestamp.h"
#include "base/utf8.h"
#include "format/json_tape.h"

struct parser {
    struct str text;
    size_t at;
    unsigned flags;
    struct tape tape;
    uint32_t open[JSON_DEPTH_MAX]; /* tape indices of the containers around us */
    uint32_t depth;
    struct err *err;
};

struct pos json_pos(struct str text, size_t at)
{
    struct pos pos = { .line = 1, .column = 1 };
    for (size_t i = 0; i < at && i < text.n; i++) {
        if (text.p[i] == '\n') {
            pos.line++;
            pos.column = 1;
        } else {
            pos.column++;
        }
    }
    return pos;
}

static int parser_fail(struct parser *p, size_t at, const char *what)
{
    p->err->pos = json_pos(p->text, at);
    char found[16];
    if (at >= p->text.n) {
        (void)snprintf(found, sizeof(found), "the end");
    } else if (p->text.p[at] >= ' ' && p->text.p[at] < 0x7f) {
        (void)snprintf(found, sizeof(found), "'%c'", p->text.p[at]);
    } else {
        (void)snprintf(found, sizeof(found), "byte 0x%02x", (unsigned char)p->text.p[at]);
    }
    return err_set(p->err, ERR_INVALID, "line %u, column %u: found %s, want %s", p->err->pos.line,
                   p->err->pos.column, found, what);
}

static void parser_skip_space(struct parser *p)
{
    while (p->at < p->text.n) {
        char c = p->text.p[p->at];
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
            return;
        }
        p->at++;
    }
}

/* Four hex digits at `at`; false when they are not there. */
static bool parser_hex4(const struct parser *p, size_t at, uint32_t *ret)
{
    if (p->text.n - at < 4) {
        return false;
    }
    uint32_t value = 0;
    for (size_t i = 0; i < 4; i++) {
        int digit = hex_digit(p->text.p[at + i]);
        if (digit < 0) {
            return false;
        }
        value = value << 4 | (uint32_t)digit;
    }
    *ret = value;
    return true;
}

/* Behind "\u". Takes a surrogate pair whole. */
static int parser_unicode(struct parser *p, struct buf *decoded)
{
    uint32_t point;
    size_t start = p->at;
    if (!parser_hex4(p, p->at, &point)) {
        return parser_fail(p, p->at, "four hexadecimal digits");
    }
    p->at += 4;
    if (point >= 0xd800 && point <= 0xdfff) {
        uint32_t low = 0;
        bool pair = point < 0xdc00 && p->text.n - p->at >= 6 && p->text.p[p->at] == '\\' &&
                    p->text.p[p->at + 1] == 'u' && parser_hex4(p, p->at + 2, &low) &&
                    low >= 0xdc00 && low <= 0xdfff;
        if (pair) {
            p->at += 6;
            point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
        } else if ((p->flags & JSON_GO) != 0) {
            point = 0xfffd;
        } else {
            return parser_fail(p, start, "a surrogate pair");
        }
    }
    utf8_add(decoded, point);
    return 0;
}

static int parser_escape(struct parser *p, struct buf *decoded)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    if (p->at >= p->text.n) {
        return parser_fail(p, p->at, "an escape");
    }
    char c = p->text.p[p->at];
    if (c == 'u') {
        p->at++;
        return parser_unicode(p, decoded);
    }
    const char *hit = c == '\0' ? NULL : strchr(from, c);
    if (hit == NULL) {
        return parser_fail(p, p->at, "one of \" \\ / b f n r t u");
    }
    p->at++;
    buf_add_char(decoded, to[hit - from]);
    return 0;
}

/* One character that is neither quote nor backslash; into `decoded` unless that is NULL. */
static int parser_char(struct parser *p, struct buf *decoded)
{
    unsigned char c = (unsigned char)p->text.p[p->at];
    if (c < 0x20) {
        return parser_fail(p, p->at, "no control character in a string");
    }
    if (c < 0x80) {
        if (decoded != NULL) {
            buf_add_char(decoded, (char)c);
        }
        p->at++;
        return 0;
    }
    uint32_t point;
    size_t n = utf8_decode(str_sub(p->text, p->at, p->text.n), &point);
    if (n == 0) {
        if ((p->flags & JSON_GO) == 0 || decoded == NULL) {
            return parser_fail(p, p->at, "valid UTF-8");
        }
        utf8_add(decoded, 0xfffd);
        p->at++;
        return 0;
    }
    if (decoded != NULL) {
        buf_add(decoded, str_sub(p->text, p->at, n));
    }
    p->at += n;
    return 0;
}

/* The rare string: it holds an escape or, where that is allowed, invalid UTF-8. */
static int parser_string_decoded(struct parser *p, struct jval *v)
{
    CLEANUP(buf_done)
    struct buf decoded = { 0 };
    for (;;) {
        if (p->at >= p->text.n) {
            return parser_fail(p, p->at, "the closing '\"'");
        }
        char c = p->text.p[p->at];
        int r = 0;
        if (c == '"') {
            p->at++;
            break;
        }
        if (c == '\\') {
            p->at++;
            r = parser_escape(p, &decoded);
        } else {
            r = parser_char(p, &decoded);
        }
        if (r < 0) {
            return r;
        }
    }
    ASSERT(!decoded.full);
    v->p = arena_str(p->tape.out, buf_str(&decoded)).p;
    v->n = (uint32_t)decoded.n;
    return 0;
}

#define EIGHT_OF(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Sets the highest bit of every byte that is 0. Bytes above the lowest such byte may be set, too.
 */
static uint64_t zero_bytes(uint64_t eight)
{
    return (eight - EIGHT_OF(0x01)) & ~eight & EIGHT_OF(0x80);
}

/* Past plain characters, eight at a time: nearly all of what is read is inside of strings. */
static void parser_skip_plain(struct parser *p)
{
    size_t at = p->at;
    while (p->text.n - at >= sizeof(uint64_t)) {
        uint64_t eight;
        memcpy(&eight, p->text.p + at, sizeof(eight));
        uint64_t control = (eight - EIGHT_OF(0x20)) & EIGHT_OF(0x80);
        if ((control | (eight & EIGHT_OF(0x80)) | zero_bytes(eight ^ EIGHT_OF('"')) |
             zero_bytes(eight ^ EIGHT_OF('\\'))) != 0) {
            break;
        }
        at += sizeof(eight);
    }
    p->at = at;
}

static int parser_string(struct parser *p)
{
    struct jval *v = tape_push(&p->tape, JSTR);
    size_t start = ++p->at;
    parser_skip_plain(p);
    while (p->at < p->text.n) {
        char c = p->text.p[p->at];
        if (c == '"') {
            v->p = p->text.p + start;
            v->n = (uint32_t)(p->at - start);
            p->at++;
            return 0;
        }
        if (c == '\\') {
            break;
        }
        if ((unsigned char)c >= 0x20 && (unsigned char)c < 0x80) {
            p->at++;
            continue;
        }
        if ((p->flags & JSON_GO) != 0 && (unsigned char)c >= 0x80) {
            uint32_t point;
            size_t n = utf8_decode(str_sub(p->text, p->at, p->text.n), &point);
            if (n == 0) {
                break;
            }
            p->at += n;
            continue;
        }
        int r = parser_char(p, NULL);
        if (r < 0) {
            return r;
        }
    }
    p->at = start;
    return parser_string_decoded(p, v);
}

static bool parser_digits(struct parser *p)
{
    size_t start = p->at;
    while (p->at < p->text.n && p->text.p[p->at] >= '0' && p->text.p[p->at] <= '9') {
        p->at++;
    }
    return p->at > start;
}

static bool parser_take(struct parser *p, char c)
{
    if (p->at < p->text.n && p->text.p[p->at] == c) {
        p->at++;
        return true;
    }
    return false;
}

static int parser_number(struct parser *p)
{
    size_t start = p->at;
    (void)parser_take(p, '-'); /* a sign is allowed, not required */
    if (!parser_take(p, '0') && !parser_digits(p)) {
        return parser_fail(p, p->at, "a digit");
    }
    if (parser_take(p, '.') && !parser_digits(p)) {
        return parser_fail(p, p->at, "a digit");
    }
    if (parser_take(p, 'e') || parser_take(p, 'E')) {
        if (!parser_take(p, '+')) {
            (void)parser_take(p, '-'); /* a sign is allowed, not required */
        }
        if (!parser_digits(p)) {
            return parser_fail(p, p->at, "a digit");
        }
    }
    struct jval *v = tape_push(&p->tape, JNUM);
    v->p = p->text.p + start;
    v->n = (uint32_t)(p->at - start);
    return 0;
}

static int parser_word(struct parser *p)
{
    static const struct {
        struct str word;
        enum jkind kind;
        uint32_t n;
    } words[] = {
        { STR_INIT("true"), JBOOL, 1 },
        { STR_INIT("false"), JBOOL, 0 },
        { STR_INIT("null"), JNULL, 0 },
    };
    struct str rest = str_sub(p->text, p->at, p->text.n);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_starts(rest, words[i].word)) {
            struct jval *v = tape_push(&p->tape, words[i].kind);
            v->p = rest.p;
            v->n = words[i].n;
            p->at += words[i].word.n;
            return 0;
        }
    }
    return parser_fail(p, p->at, "a value");
}

static int parser_open(struct parser *p, enum jkind kind)
{
    if (p->depth == JSON_DEPTH_MAX) {
        p->err->pos = json_pos(p->text, p->at);
        return err_set(p->err, ERR_LIMIT, "line %u, column %u: nested deeper than %u",
                       p->err->pos.line, p->err->pos.column, JSON_DEPTH_MAX);
    }
    p->open[p->depth++] = p->tape.n;
    tape_push(&p->tape, kind)->p = p->text.p + p->at;
    p->at++;
    return 0;
}

static void parser_close(struct parser *p)
{
    tape_close(&p->tape, p->open[--p->depth]);
    p->at++;
}

/* A scalar, or the opening of a container. */
static int parser_value(struct parser *p)
{
    if (p->tape.n >= JSON_VALUES_MAX) {
        return err_set(p->err, ERR_LIMIT, "more than %u values", JSON_VALUES_MAX);
    }
    if (p->at >= p->text.n) {
        return parser_fail(p, p->at, "a value");
    }
    char c = p->text.p[p->at];
    switch (c) {
    case '{':
        return parser_open(p, JOBJ);
    case '[':
        return parser_open(p, JARR);
    case '"':
        return parser_string(p);
    default:
        return c == '-' || (c >= '0' && c <= '9') ? parser_number(p) : parser_word(p);
    }
}

static int parser_key(struct parser *p)
{
    if (p->at >= p->text.n || p->text.p[p->at] != '"') {
        return parser_fail(p, p->at, "a member name");
    }
    int r = parser_string(p);
    if (r < 0) {
        return r;
    }
    parser_skip_space(p);
    if (!parser_take(p, ':')) {
        return parser_fail(p, p->at, "':'");
    }
    parser_skip_space(p);
    return 0;
}

/* Inside the innermost container: closes it (true in `*ret_closed`), or stands before its next
 * value. */
static int parser_in_container(struct parser *p, bool first, bool *ret_closed)
{
    struct jval *v = &p->tape.cells[p->open[p->depth - 1]];
    bool object = jval_kind(v) == JOBJ;
    *ret_closed = false;
    if (p->at < p->text.n && p->text.p[p->at] == (object ? '}' : ']')) {
        parser_close(p);
        *ret_closed = true;
        return 0;
    }
    if (!first) {
        if (!parser_take(p, ',')) {
            return parser_fail(p, p->at, object ? "',' or '}'" : "',' or ']'");
        }
        parser_skip_space(p);
    }
    v->n++;
    return object ? parser_key(p) : 0;
}

static int parser_run(struct parser *p)
{
    parser_skip_space(p);
    for (;;) {
        uint32_t depth = p->depth;
        int r = parser_value(p);
        if (r < 0) {
            return r;
        }
        bool first = p->depth > depth;
        bool closed = true;
        while (p->depth > 0 && closed) {
            parser_skip_space(p);
            r = parser_in_container(p, first, &closed);
            if (r < 0) {
                return r;
            }
            first = false;
        }
        if (p->depth == 0) {
            return 0;
        }
    }
}

int json_parse(struct str text, unsigned flags, struct arena *out, const struct jval **ret,
               struct err *err)
{
    if (text.n > UINT32_MAX / 2) {
        return err_set(err, ERR_LIMIT, "a document of %zu bytes is too long", text.n);
    }
    struct parser p = { .text = text, .flags = flags, .tape = { .out = out }, .err = err };
    int r = parser_run(&p);
    if (r < 0) {
        return r;
    }
    parser_skip_space(&p);
    if (p.at < text.n && (flags & JSON_TRAILING) == 0) {
        return parser_fail(&p, p.at, "nothing after the value");
    }
    *ret = p.tape.cells;
    return 0;
}

enum jkind jval_kind(const struct jval *v)
{
    return v == NULL ? JNULL : (enum jkind)(v->tag & TAPE_KIND_MASK);
}

const char *jkind_name(enum jkind kind)
{
    static const char *const names[] = { "null",     "a boolean", "a number",
                                         "a string", "a list",    "an object" };
    return names[kind];
}

uint32_t jval_span(const struct jval *v)
{
    return v->tag >> TAPE_KIND_BITS;
}

const struct jval *jval_first(const struct jval *parent)
{
    enum jkind kind = jval_kind(parent);
    if ((kind != JARR && kind != JOBJ) || parent->n == 0) {
        return NULL;
    }
    return kind == JOBJ ? parent + 2 : parent + 1;
}

const struct jval *jval_next(const struct jval *parent, const struct jval *v)
{
    const struct jval *next = v + jval_span(v);
    if (next >= parent + jval_span(parent)) {
        return NULL;
    }
    return jval_kind(parent) == JOBJ ? next + 1 : next;
}

struct str jval_key(const struct jval *v)
{
    return jval_str(v - 1);
}

const struct jval *jval_get(const struct jval *v, struct str key)
{
    if (jval_kind(v) != JOBJ) {
        return NULL;
    }
    const struct jval *found = NULL;
    JVAL_EACH (v, member) {
        if (str_eq(jval_key(member), key)) {
            found = member;
        }
    }
    return found;
}

const struct jval *jval_at(const struct jval *v, const char *path)
{
    struct str rest = str_from(path);
    struct str name;
    while (v != NULL && str_split_next(&rest, '.', &name)) {
        v = jval_get(v, name);
    }
    return v;
}

struct str jval_str(const struct jval *v)
{
    return jval_kind(v) == JSTR ? (struct str){ .p = v->p, .n = v->n } : STR_NONE;
}

bool jval_bool(const struct jval *v, bool otherwise)
{
    return jval_kind(v) == JBOOL ? v->n != 0 : otherwise;
}

usec_t jval_time(const struct jval *v, usec_t otherwise)
{
    struct timestamp time;
    struct err ignored = { 0 };
    struct str text = jval_str(v);
    bool read = text.n > 0 && timestamp_parse(text, &time, &ignored) == 0;
    return read ? timestamp_to_usec(time) : otherwise;
}

bool jval_i64(const struct jval *v, int64_t *ret)
{
    return jval_kind(v) == JNUM && str_to_i64((struct str){ .p = v->p, .n = v->n }, ret);
}

bool jval_f64(const struct jval *v, double *ret)
{
    return jval_kind(v) == JNUM && str_to_f64((struct str){ .p = v->p, .n = v->n }, ret);
}

static bool number_eq(const struct jval *a, const struct jval *b)
{
    if (a->n == b->n && memcmp(a->p, b->p, a->n) == 0) {
        return true;
    }
    int64_t ia;
    int64_t ib;
    if (jval_i64(a, &ia) && jval_i64(b, &ib)) {
        return ia == ib;
    }
    double fa;
    double fb;
    return jval_f64(a, &fa) && jval_f64(b, &fb) && fa == fb;
}

static bool array_eq(const struct jval *a, const struct jval *b)
{
    if (a->n != b->n) {
        return false;
    }
    const struct jval *other = jval_first(b);
    JVAL_EACH (a, v) {
        if (!jval_eq(v, other)) {
            return false;
        }
        other = jval_next(b, other);
    }
    return true;
}

static bool object_covers(const struct jval *a, const struct jval *b)
{
    JVAL_EACH (a, v) {
        struct str key = jval_key(v);
        const struct jval *other = jval_get(b, key);
        if (other == NULL || !jval_eq(jval_get(a, key), other)) {
            return false;
        }
    }
    return true;
}

#define JVAL_MEMBERS_SCANNED 64u /* more members are rare, and may be an attack */

/* By name, and those of one name as they stand in the text. */
static int member_compare(const void *a, const void *b)
{
    const struct jval *left = *(const struct jval *const *)a;
    const struct jval *right = *(const struct jval *const *)b;
    int order = str_cmp(jval_key(left), jval_key(right));
    return order != 0 ? order : (left > right) - (left < right);
}

/* The members that count, the last of each name, sorted. */
static const struct jval **members_sorted(struct arena *tmp, const struct jval *v, uint32_t *ret_n)
{
    const struct jval **all = ARENA_ARRAY(tmp, const struct jval *, (size_t)v->n + 1);
    uint32_t n = 0;
    JVAL_EACH (v, member) {
        all[n++] = member;
    }
    qsort(all, n, sizeof(*all), member_compare);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i + 1 == n || !str_eq(jval_key(all[i]), jval_key(all[i + 1]))) {
            all[kept++] = all[i];
        }
    }
    *ret_n = kept;
    return all;
}

static bool object_eq(const struct jval *a, const struct jval *b)
{
    if (a->n <= JVAL_MEMBERS_SCANNED && b->n <= JVAL_MEMBERS_SCANNED) {
        return object_covers(a, b) && object_covers(b, a);
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    uint32_t a_n;
    uint32_t b_n;
    const struct jval **as = members_sorted(&tmp, a, &a_n);
    const struct jval **bs = members_sorted(&tmp, b, &b_n);
    bool same = a_n == b_n;
    for (uint32_t i = 0; i < a_n && same; i++) {
        same = str_eq(jval_key(as[i]), jval_key(bs[i])) && jval_eq(as[i], bs[i]);
    }
    return same;
}

bool jval_eq(const struct jval *a, const struct jval *b)
{
    if (jval_kind(a) != jval_kind(b)) {
        return false;
    }
    switch (jval_kind(a)) {
    case JNULL:
        return true;
    case JBOOL:
        return a->n == b->n;
    case JNUM:
        return number_eq(a, b);
    case JSTR:
        return str_eq(jval_str(a), jval_str(b));
    case JARR:
        return array_eq(a, b);
    case JOBJ:
        return object_eq(a, b);
    }
    return false;
}
