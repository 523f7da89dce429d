#include "format/selector.h"

#include "base/utf8.h"
#include "format/goprintf.h"
#include "format/label_syntax.h"

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_IN,
    TOKEN_NOT_IN,
    TOKEN_EQUALS,
    TOKEN_DOUBLE_EQUALS,
    TOKEN_NOT_EQUALS,
    TOKEN_NOT,
    TOKEN_GREATER,
    TOKEN_LESS,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_COMMA,
};

struct token {
    enum token_kind kind;
    struct str text;
};

static const struct token symbols[] = {
    { TOKEN_DOUBLE_EQUALS, STR_INIT("==") }, { TOKEN_NOT_EQUALS, STR_INIT("!=") },
    { TOKEN_EQUALS, STR_INIT("=") },         { TOKEN_NOT, STR_INIT("!") },
    { TOKEN_GREATER, STR_INIT(">") },        { TOKEN_LESS, STR_INIT("<") },
    { TOKEN_OPEN, STR_INIT("(") },           { TOKEN_CLOSE, STR_INIT(")") },
    { TOKEN_COMMA, STR_INIT(",") },
};

struct reader {
    struct str rest;
    struct token ahead;
    struct arena *out;
    struct selector s;
    uint32_t cap;
    struct err *err;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_word(char c)
{
    return c != '\0' && !is_space(c) && strchr("=!()<>,", c) == NULL;
}

static void skip_nul(struct str *rest)
{
    if (rest->n > 0 && rest->p[0] == '\0') {
        *rest = str_sub(*rest, 1, rest->n - 1);
    }
}

/* The next token leaves `*rest`. Like the original, a NUL byte where a token should begin is the
 * end, and one behind a token is passed over. */
static struct token token_next(struct str *rest)
{
    while (rest->n > 0 && is_space(rest->p[0])) {
        *rest = str_sub(*rest, 1, rest->n - 1);
    }
    if (rest->n == 0 || rest->p[0] == '\0') {
        *rest = STR("");
        return (struct token){ .kind = TOKEN_END };
    }
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        if (str_cut_prefix(*rest, symbols[i].text, rest)) {
            skip_nul(rest);
            return symbols[i];
        }
    }
    size_t n = 0;
    while (n < rest->n && is_word(rest->p[n])) {
        n++;
    }
    struct token token = { .kind = TOKEN_WORD, .text = str_sub(*rest, 0, n) };
    if (str_eq(token.text, STR("in"))) {
        token.kind = TOKEN_IN;
    } else if (str_eq(token.text, STR("notin"))) {
        token.kind = TOKEN_NOT_IN;
    }
    *rest = str_sub(*rest, n, rest->n - n);
    skip_nul(rest);
    return token;
}

static struct token reader_take(struct reader *r)
{
    struct token token = r->ahead;
    r->ahead = token_next(&r->rest);
    return token;
}

/* "in" and "notin" are words wherever no operator can stand. */
static bool token_is_word(struct token token)
{
    return token.kind == TOKEN_WORD || token.kind == TOKEN_IN || token.kind == TOKEN_NOT_IN;
}

static int reader_fail(struct reader *r, struct token found, const char *wanted)
{
    return err_set(r->err, ERR_INVALID, "found '" STR_FMT "'%s", STR_ARG(found.text), wanted);
}

static void term_add_value(struct selector_term *t, uint32_t *cap, struct str value,
                           struct arena *out)
{
    ARENA_GROW(out, t->values, t->n, *cap);
    t->values[t->n++] = arena_str(out, value);
}

static int compare_str(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Sorts the values and keeps each of them once. */
static void term_sort_values(struct selector_term *t)
{
    uint32_t kept = 0;
    if (t->n > 0) {
        qsort(t->values, t->n, sizeof(*t->values), compare_str);
    }
    for (uint32_t i = 0; i < t->n; i++) {
        if (kept == 0 || !str_eq(t->values[kept - 1], t->values[i])) {
            t->values[kept++] = t->values[i];
        }
    }
    t->n = kept;
}

/* path: Invalid value: "…": why */
static int fail_value(struct err *err, struct str path, struct str value, struct str why)
{
    CLEANUP(buf_done)
    struct buf shown = { 0 };
    goprintf_quote(&shown, value, '"', /* ascii= */ false);
    return err_set(err, ERR_INVALID, STR_FMT ": Invalid value: " STR_FMT ": " STR_FMT,
                   STR_ARG(path), STR_ARG(buf_str(&shown)), STR_ARG(why));
}

static int check_key(struct str key, struct str path, struct err *err)
{
    CLEANUP(buf_done)
    struct buf why = { 0 };
    return label_key_check(key, &why) ? 0 : fail_value(err, path, key, buf_str(&why));
}

/* As strconv.ParseInt reads decimal numbers. */
static bool parse_number(struct str text, int64_t *ret)
{
    struct str digits;
    if (str_cut_prefix(text, STR("+"), &digits) && str_starts(digits, STR("-"))) {
        return false;
    }
    return str_to_i64(digits, ret);
}

static int check_count(const struct selector_term *t, struct err *err)
{
    bool set = t->op == SELECTOR_IN || t->op == SELECTOR_NOT_IN;
    if (set && t->n == 0) {
        return err_set(err, ERR_INVALID,
                       "values: Invalid value: null: for 'in', 'notin' operators, values set "
                       "can't be empty");
    }
    if ((t->op == SELECTOR_EXISTS || t->op == SELECTOR_ABSENT) && t->n > 0) {
        CLEANUP(buf_done)
        struct buf shown = { 0 };
        struct json_writer w = json_writer_on(&shown);
        jw_strs(&w, t->values, t->n);
        return err_set(err, ERR_INVALID,
                       "values: Invalid value: " STR_FMT
                       ": values set must be empty for exists and does not exist",
                       STR_ARG(buf_str(&shown)));
    }
    return 0;
}

static int check_values(const struct selector_term *t, struct err *err)
{
    bool number = t->op == SELECTOR_GREATER || t->op == SELECTOR_LESS;
    for (uint32_t i = 0; i < t->n; i++) {
        CLEANUP(buf_done)
        struct buf why = { 0 };
        CLEANUP(buf_done)
        struct buf path = { 0 };
        int64_t ignored;
        buf_printf(&path, "values[%u]", i);
        if (number && !parse_number(t->values[i], &ignored)) {
            return fail_value(err, buf_str(&path), t->values[i],
                              STR("for 'Gt', 'Lt' operators, the value must be an integer"));
        }
        if (!label_value_check(t->values[i], &why)) {
            buf_printf(&path, "[" STR_FMT "]", STR_ARG(t->key));
            return fail_value(err, buf_str(&path), t->values[i], buf_str(&why));
        }
    }
    return 0;
}

static int check_term(const struct selector_term *t, struct err *err)
{
    int r = check_key(t->key, STR("key"), err);
    if (r == 0) {
        r = check_count(t, err);
    }
    return r == 0 ? check_values(t, err) : r;
}

static int read_operator(struct reader *r, enum selector_op *ret)
{
    struct token token = reader_take(r);
    switch (token.kind) {
    case TOKEN_IN:
        *ret = SELECTOR_IN;
        return 0;
    case TOKEN_NOT_IN:
        *ret = SELECTOR_NOT_IN;
        return 0;
    case TOKEN_EQUALS:
        *ret = SELECTOR_EQUALS;
        return 0;
    case TOKEN_DOUBLE_EQUALS:
        *ret = SELECTOR_DOUBLE_EQUALS;
        return 0;
    case TOKEN_NOT_EQUALS:
        *ret = SELECTOR_NOT_EQUALS;
        return 0;
    case TOKEN_GREATER:
        *ret = SELECTOR_GREATER;
        return 0;
    case TOKEN_LESS:
        *ret = SELECTOR_LESS;
        return 0;
    default:
        return reader_fail(r, token, ", expected: in, notin, =, ==, !=, gt, lt");
    }
}

/* "(x,y)", also with nothing between or around the commas: that is the empty value. */
static int read_values(struct reader *r, struct selector_term *t)
{
    uint32_t cap = 0;
    struct token token = reader_take(r);
    if (token.kind != TOKEN_OPEN) {
        return reader_fail(r, token, " expected: '('");
    }
    if (!token_is_word(r->ahead) && r->ahead.kind != TOKEN_COMMA && r->ahead.kind != TOKEN_CLOSE) {
        return reader_fail(r, r->ahead, ", expected: ',', ')' or identifier");
    }
    bool wanted = true; /* a value may stand here; without one it is the empty value */
    for (;;) {
        token = reader_take(r);
        if (token_is_word(token) && wanted) {
            term_add_value(t, &cap, token.text, r->out);
            wanted = false;
        } else if (token.kind == TOKEN_COMMA || token.kind == TOKEN_CLOSE) {
            if (wanted) {
                term_add_value(t, &cap, STR(""), r->out);
            }
            wanted = true;
            if (token.kind == TOKEN_CLOSE) {
                term_sort_values(t);
                return 0;
            }
        } else {
            return reader_fail(
                r, token, wanted ? ", expected: ',', or identifier" : ", expected: ',' or ')'");
        }
    }
}

static int read_value(struct reader *r, struct selector_term *t)
{
    uint32_t cap = 0;
    if (r->ahead.kind == TOKEN_END || r->ahead.kind == TOKEN_COMMA) {
        term_add_value(t, &cap, STR(""), r->out);
        return 0;
    }
    struct token token = reader_take(r);
    if (!token_is_word(token)) {
        return reader_fail(r, token, ", expected: identifier");
    }
    term_add_value(t, &cap, token.text, r->out);
    return 0;
}

static int read_term(struct reader *r, struct selector_term *ret)
{
    struct selector_term t = { .op = SELECTOR_EXISTS };
    struct token token = reader_take(r);
    bool negated = token.kind == TOKEN_NOT;
    if (negated) {
        t.op = SELECTOR_ABSENT;
        token = reader_take(r);
    }
    if (!token_is_word(token)) {
        return reader_fail(r, token, ", expected: identifier");
    }
    int result = check_key(token.text, STR("<nil>"), r->err);
    if (result < 0) {
        return result;
    }
    t.key = arena_str(r->out, token.text);
    bool bare = negated || r->ahead.kind == TOKEN_END || r->ahead.kind == TOKEN_COMMA;
    if (!bare) {
        result = read_operator(r, &t.op);
        if (result < 0) {
            return result;
        }
        bool set = t.op == SELECTOR_IN || t.op == SELECTOR_NOT_IN;
        result = set ? read_values(r, &t) : read_value(r, &t);
    }
    if (result == 0) {
        result = check_term(&t, r->err);
    }
    *ret = t;
    return result;
}

static void reader_add(struct reader *r, struct selector_term t)
{
    ARENA_GROW(r->out, r->s.terms, r->s.n, r->cap);
    r->s.terms[r->s.n++] = t;
}

struct placed_term {
    struct selector_term term;
    uint32_t place;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed_term *left = a;
    const struct placed_term *right = b;
    int order = str_cmp(left->term.key, right->term.key);
    return order != 0 ? order : (left->place > right->place) - (left->place < right->place);
}

/* By key; of one key the order in which they were written is kept. */
static struct selector reader_end(struct reader *r)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct selector *s = &r->s;
    struct placed_term *placed = ARENA_ARRAY(&tmp, struct placed_term, (size_t)s->n + 1);
    for (uint32_t i = 0; i < s->n; i++) {
        placed[i] = (struct placed_term){ .term = s->terms[i], .place = i };
    }
    qsort(placed, s->n, sizeof(*placed), compare_placed);
    for (uint32_t i = 0; i < s->n; i++) {
        s->terms[i] = placed[i].term;
    }
    return *s;
}

int selector_parse(struct str text, struct arena *out, struct selector *ret, struct err *err)
{
    struct reader r = { .rest = text, .out = out, .err = err };
    r.ahead = token_next(&r.rest);
    if (!token_is_word(r.ahead) && r.ahead.kind != TOKEN_NOT && r.ahead.kind != TOKEN_END) {
        return reader_fail(&r, r.ahead, ", expected: !, identifier, or 'end of string'");
    }
    while (r.ahead.kind != TOKEN_END) {
        struct selector_term t = { 0 };
        int result = read_term(&r, &t);
        if (result < 0) {
            return err_wrap(err, "unable to parse requirement");
        }
        reader_add(&r, t);
        struct token token = reader_take(&r);
        if (token.kind == TOKEN_END) {
            break;
        }
        if (token.kind != TOKEN_COMMA) {
            return reader_fail(&r, token, ", expected: ',' or 'end of string'");
        }
        if (!token_is_word(r.ahead) && r.ahead.kind != TOKEN_NOT) {
            return reader_fail(&r, r.ahead, ", expected: identifier after ','");
        }
    }
    *ret = reader_end(&r);
    return 0;
}

/* At the first of "!=", "==" and "=". */
static bool field_split(struct str term, struct selector_term *ret, struct str *ret_value)
{
    static const struct {
        struct str text;
        enum selector_op op;
    } ops[] = {
        { STR_INIT("!="), SELECTOR_NOT_EQUALS },
        { STR_INIT("=="), SELECTOR_EQUALS },
        { STR_INIT("="), SELECTOR_EQUALS },
    };
    for (size_t at = 0; at < term.n; at++) {
        for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
            if (str_cut_prefix(str_sub(term, at, term.n - at), ops[i].text, ret_value)) {
                ret->key = str_sub(term, 0, at);
                ret->op = ops[i].op;
                return true;
            }
        }
    }
    return false;
}

static int field_unescape(struct str text, struct arena *out, struct str *ret, struct err *err)
{
    char *plain = arena_alloc(out, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == ',' || c == '=') {
            return err_set(err, ERR_INVALID,
                           "invalid field selector: unescaped character in value: %d", c);
        }
        if (c == '\\') {
            i++;
            if (i == text.n || strchr("\\,=", text.p[i]) == NULL || text.p[i] == '\0') {
                uint32_t point;
                struct str next = str_sub(text, i, text.n - i);
                next.n = MAX(utf8_decode(next, &point), (size_t)(next.n > 0));
                return err_set(err, ERR_INVALID,
                               "invalid field selector: invalid escape sequence: \\" STR_FMT,
                               STR_ARG(next));
            }
            c = text.p[i];
        }
        plain[n++] = c;
    }
    *ret = (struct str){ .p = plain, .n = n };
    return 0;
}

/* The next piece between commas that no backslash precedes; false behind the last one. */
static bool field_next(struct str *rest, struct str *ret)
{
    if (rest->p == NULL) {
        return false;
    }
    size_t end = 0;
    while (end < rest->n && rest->p[end] != ',') {
        end += rest->p[end] == '\\' ? 2 : 1;
    }
    end = MIN(end, rest->n);
    *ret = str_sub(*rest, 0, end);
    *rest = end < rest->n ? str_sub(*rest, end + 1, rest->n - end - 1) : STR_NONE;
    return true;
}

int selector_parse_fields(struct str text, struct arena *out, struct selector *ret, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str *parts = NULL;
    uint32_t n = 0;
    uint32_t cap = 0;
    struct str rest = text;
    struct str part;
    while (field_next(&rest, &part)) {
        if (part.n > 0) {
            ARENA_GROW(&tmp, parts, n, cap);
            parts[n++] = part;
        }
    }
    if (n > 0) {
        qsort(parts, n, sizeof(*parts), compare_str);
    }
    struct selector s = { .fields = true };
    s.terms = ARENA_ARRAY(out, struct selector_term, n);
    for (uint32_t i = 0; i < n; i++) {
        struct selector_term *t = &s.terms[s.n++];
        struct str value;
        if (!field_split(parts[i], t, &value)) {
            return err_set(err, ERR_INVALID,
                           "invalid selector: '" STR_FMT "'; can't understand '" STR_FMT "'",
                           STR_ARG(text), STR_ARG(parts[i]));
        }
        t->key = arena_str(out, t->key);
        t->n = 1;
        t->values = ARENA_NEW(out, struct str);
        int r = field_unescape(value, out, &t->values[0], err);
        if (r < 0) {
            return r;
        }
    }
    *ret = s;
    return 0;
}

static int want_kind(const struct tree *t, enum jkind kind, const char *what, struct err *err)
{
    if (tree_kind(t) == kind || tree_kind(t) == JNULL) {
        return 0; /* null is as good as absent, as Go reads it */
    }
    return err_set(err, ERR_INVALID, "%s: found %s, want %s", what, jkind_name(tree_kind(t)),
                   jkind_name(kind));
}

static int object_labels(struct reader *r, const struct tree *labels)
{
    int result = want_kind(labels, JOBJ, "matchLabels", r->err);
    if (result < 0) {
        return result;
    }
    TREE_EACH (labels, label) {
        result = want_kind(label, JSTR, "matchLabels", r->err);
        if (result < 0) {
            return result;
        }
        uint32_t cap = 0;
        struct selector_term t = { .key = arena_str(r->out, label->key), .op = SELECTOR_EQUALS };
        term_add_value(&t, &cap, tree_text(label), r->out);
        result = check_term(&t, r->err);
        if (result < 0) {
            return result;
        }
        reader_add(r, t);
    }
    return 0;
}

static int object_operator(struct str text, enum selector_op *ret, struct err *err)
{
    static const struct {
        struct str text;
        enum selector_op op;
    } ops[] = {
        { STR_INIT("In"), SELECTOR_IN },
        { STR_INIT("NotIn"), SELECTOR_NOT_IN },
        { STR_INIT("Exists"), SELECTOR_EXISTS },
        { STR_INIT("DoesNotExist"), SELECTOR_ABSENT },
    };
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        if (str_eq(text, ops[i].text)) {
            *ret = ops[i].op;
            return 0;
        }
    }
    CLEANUP(buf_done)
    struct buf shown = { 0 };
    goprintf_quote(&shown, text, '"', /* ascii= */ false);
    return err_set(err, ERR_INVALID, STR_FMT " is not a valid label selector operator",
                   STR_ARG(buf_str(&shown)));
}

static int object_expression(struct reader *r, const struct tree *expression)
{
    static const struct {
        const char *name;
        enum jkind kind;
    } members[] = { { "key", JSTR }, { "operator", JSTR }, { "values", JARR } };
    int result = want_kind(expression, JOBJ, "matchExpressions", r->err);
    for (size_t i = 0; i < ARRAY_LEN(members) && result == 0; i++) {
        result = want_kind(tree_at(expression, members[i].name), members[i].kind, members[i].name,
                           r->err);
    }
    struct selector_term t = { .key = arena_str(r->out, tree_text_at(expression, "key")) };
    if (result == 0) {
        result = object_operator(tree_text_at(expression, "operator"), &t.op, r->err);
    }
    if (result < 0) {
        return result;
    }
    uint32_t cap = 0;
    TREE_EACH (tree_at(expression, "values"), value) {
        result = want_kind(value, JSTR, "values", r->err);
        if (result < 0) {
            return result;
        }
        term_add_value(&t, &cap, tree_text(value), r->out);
    }
    result = check_term(&t, r->err);
    if (result == 0) {
        reader_add(r, t);
    }
    return result;
}

int selector_from_tree(const struct tree *object, struct arena *out, struct selector *ret,
                       struct err *err)
{
    struct reader r = { .out = out, .err = err };
    if (tree_kind(object) == JNULL) {
        *ret = (struct selector){ .nothing = true };
        return 0;
    }
    const struct tree *expressions = tree_at(object, "matchExpressions");
    int result = want_kind(object, JOBJ, "selector", err);
    if (result == 0) {
        result = want_kind(expressions, JARR, "matchExpressions", err);
    }
    if (result == 0) {
        result = object_labels(&r, tree_at(object, "matchLabels"));
    }
    if (result < 0) {
        return result;
    }
    TREE_EACH (expressions, expression) {
        result = object_expression(&r, expression);
        if (result < 0) {
            return result;
        }
    }
    *ret = reader_end(&r);
    return 0;
}

int selector_from_jval(const struct jval *object, struct arena *out, struct selector *ret,
                       struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    return selector_from_tree(tree_from(&tmp, object), out, ret, err);
}

static bool term_has(const struct selector_term *t, struct str value)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (str_eq(t->values[i], value)) {
            return true;
        }
    }
    return false;
}

static bool term_compare(const struct selector_term *t, struct str value)
{
    int64_t limit;
    int64_t number;
    if (!parse_number(t->values[0], &limit) || !parse_number(value, &number)) {
        return false;
    }
    return t->op == SELECTOR_GREATER ? number > limit : number < limit;
}

static bool term_match(const struct selector_term *t, bool present, struct str value)
{
    switch (t->op) {
    case SELECTOR_EQUALS:
    case SELECTOR_DOUBLE_EQUALS:
    case SELECTOR_IN:
        return present && term_has(t, value);
    case SELECTOR_NOT_EQUALS:
    case SELECTOR_NOT_IN:
        return !present || !term_has(t, value);
    case SELECTOR_EXISTS:
        return present;
    case SELECTOR_ABSENT:
        return !present;
    case SELECTOR_GREATER:
    case SELECTOR_LESS:
        return present && term_compare(t, value);
    }
    return false;
}

bool selector_match(const struct selector *s, selector_lookup *lookup, void *ctx)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct str value = STR_NONE;
        bool present = lookup(ctx, s->terms[i].key, &value);
        if (!term_match(&s->terms[i], present || s->fields, present ? value : STR_NONE)) {
            return false;
        }
    }
    return !s->nothing;
}

static bool tree_lookup(void *ctx, struct str key, struct str *ret_value)
{
    const struct tree *value = tree_get(*(const struct tree **)ctx, key);
    *ret_value = tree_text(value);
    return value != NULL;
}

bool selector_match_tree(const struct selector *s, const struct tree *labels)
{
    return selector_match(s, tree_lookup, &labels);
}

static bool jval_lookup(void *ctx, struct str key, struct str *ret_value)
{
    const struct jval *value = jval_get(*(const struct jval **)ctx, key);
    *ret_value = jval_str(value);
    return value != NULL;
}

bool selector_match_jval(const struct selector *s, const struct jval *labels)
{
    return selector_match(s, jval_lookup, &labels);
}

static void print_values(const struct selector_term *t, struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str *sorted = ARENA_ARRAY(&tmp, struct str, t->n);
    memcpy(sorted, t->values, t->n * sizeof(*sorted));
    qsort(sorted, t->n, sizeof(*sorted), compare_str);
    for (uint32_t i = 0; i < t->n; i++) {
        if (i > 0) {
            buf_add_char(out, ',');
        }
        buf_add(out, sorted[i]);
    }
}

static void print_field_value(struct str value, struct buf *out)
{
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        if (c == '\\' || c == ',' || c == '=') {
            buf_add_char(out, '\\');
        }
        buf_add_char(out, c);
    }
}

void selector_print(const struct selector *s, struct buf *out)
{
    static const char *const signs[] = {
        [SELECTOR_EQUALS] = "=", [SELECTOR_DOUBLE_EQUALS] = "==", [SELECTOR_NOT_EQUALS] = "!=",
        [SELECTOR_IN] = " in (", [SELECTOR_NOT_IN] = " notin (",  [SELECTOR_EXISTS] = "",
        [SELECTOR_ABSENT] = "",  [SELECTOR_GREATER] = ">",        [SELECTOR_LESS] = "<",
    };
    for (uint32_t i = 0; i < s->n; i++) {
        const struct selector_term *t = &s->terms[i];
        if (i > 0) {
            buf_add_char(out, ',');
        }
        if (t->op == SELECTOR_ABSENT) {
            buf_add_char(out, '!');
        }
        buf_add(out, t->key);
        buf_add(out, str_from(signs[t->op]));
        if (s->fields) {
            print_field_value(t->values[0], out);
        } else if (t->n > 0) {
            print_values(t, out);
        }
        if (t->op == SELECTOR_IN || t->op == SELECTOR_NOT_IN) {
            buf_add_char(out, ')');
        }
    }
}
