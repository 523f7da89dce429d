/* cel_parse: the text of a rule as an expression (cel_internal.h). */
#include "base/utf8.h"
#include "format/cel_internal.h"

struct cel_parser {
    struct arena *a;
    struct str text;
    size_t at;
    uint32_t depth;
    bool uses_old_self;
    struct err *err;
};

static int parse_fail(struct cel_parser *p, const char *wanted)
{
    size_t left = p->text.n - p->at;
    struct str found = str_sub(p->text, p->at, MIN(left, (size_t)16));
    return err_set(p->err, ERR_INVALID, "column %zu: found '" STR_FMT "', want %s", p->at + 1,
                   STR_ARG(found), wanted);
}

static void skip_blanks(struct cel_parser *p)
{
    while (p->at < p->text.n && strchr(" \t\r\n", p->text.p[p->at]) != NULL) {
        p->at++;
    }
}

static bool take_sign(struct cel_parser *p, const char *sign)
{
    struct str s = str_from(sign);
    skip_blanks(p);
    if (!str_starts(str_sub(p->text, p->at, p->text.n - p->at), s)) {
        return false;
    }
    p->at += s.n;
    return true;
}

static bool name_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

static bool take_name(struct cel_parser *p, struct str *ret)
{
    skip_blanks(p);
    size_t end = p->at;
    while (end < p->text.n && name_char(p->text.p[end], end == p->at)) {
        end++;
    }
    *ret = str_sub(p->text, p->at, end - p->at);
    p->at = end;
    return ret->n > 0;
}

/* A word that is an operator: "in", and nothing that only begins so. */
static bool take_word(struct cel_parser *p, const char *word)
{
    size_t before = p->at;
    struct str name;
    if (take_name(p, &name) && str_eq(name, str_from(word))) {
        return true;
    }
    p->at = before;
    return false;
}

static struct cel_node *node_new(struct cel_parser *p, enum cel_op op)
{
    struct cel_node *node = ARENA_NEW(p->a, struct cel_node);
    node->op = op;
    return node;
}

static void node_add(struct cel_parser *p, struct cel_node *node, struct cel_node *item)
{
    ARENA_GROW(p->a, node->items, node->n, node->cap);
    node->items[node->n++] = item;
}

static struct cel_node *node_pair(struct cel_parser *p, enum cel_op op, struct cel_node *left,
                                  struct cel_node *right)
{
    struct cel_node *node = node_new(p, op);
    node_add(p, node, left);
    if (right != NULL) {
        node_add(p, node, right);
    }
    return node;
}

static int parse_expression(struct cel_parser *p, struct cel_node **ret);

static int parse_text(struct cel_parser *p, char quote, struct cel_node **ret)
{
    static const char escapes[] = "\\\\\"\"''``n\nr\rt\t??a\ab\bf\fv\v";
    CLEANUP(buf_done)
    struct buf text = { 0 };
    while (p->at < p->text.n && p->text.p[p->at] != quote) {
        char c = p->text.p[p->at++];
        if (c == '\n') {
            return parse_fail(p, "the end of the text");
        }
        if (c == '\\') {
            const char *escape = NULL;
            for (size_t i = 0; i + 1 < sizeof(escapes) && p->at < p->text.n; i += 2) {
                escape = escapes[i] == p->text.p[p->at] ? &escapes[i] : escape;
            }
            if (escape == NULL) {
                return parse_fail(p, "a known escape");
            }
            p->at++;
            c = escape[1];
        }
        buf_add_char(&text, c);
    }
    if (p->at >= p->text.n) {
        return parse_fail(p, "the end of the text");
    }
    p->at++;
    *ret = node_new(p, CEL_TEXT);
    (*ret)->text = arena_str(p->a, buf_str(&text));
    return 0;
}

static int parse_number(struct cel_parser *p, struct cel_node **ret)
{
    size_t end = p->at;
    bool fraction = false;
    while (end < p->text.n && strchr("0123456789.eE", p->text.p[end]) != NULL) {
        fraction = fraction || strchr(".eE", p->text.p[end]) != NULL;
        end++;
    }
    struct str text = str_sub(p->text, p->at, end - p->at);
    struct cel_node *node = node_new(p, fraction ? CEL_DOUBLE : CEL_INT);
    bool read = fraction ? str_to_f64(text, &node->number) : str_to_i64(text, &node->integer);
    if (!read) {
        return parse_fail(p, "a number");
    }
    p->at = end;
    *ret = node;
    return 0;
}

/* Expressions separated by commas, up to `end`. */
static int parse_items(struct cel_parser *p, const char *end, struct cel_node *into)
{
    if (take_sign(p, end)) {
        return 0;
    }
    for (;;) {
        struct cel_node *item;
        int r = parse_expression(p, &item);
        if (r < 0) {
            return r;
        }
        node_add(p, into, item);
        if (take_sign(p, end)) {
            return 0;
        }
        if (!take_sign(p, ",")) {
            return parse_fail(p, end);
        }
    }
}

/* "__namespace__" stands for a member whose name is a word of the language. */
static struct str unescape_member(struct cel_parser *p, struct str name)
{
    static const struct {
        const char *escape;
        const char *text;
    } rows[] = {
        { "__dot__", "." }, { "__dash__", "-" }, { "__slash__", "/" }, { "__underscores__", "__" }
    };
    struct str rest;
    if (name.n > 4 && str_starts(name, STR("__")) && str_ends(name, STR("__")) &&
        !str_contains(str_sub(name, 2, name.n - 4), STR("__"))) {
        return arena_str(p->a, str_sub(name, 2, name.n - 4));
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str left;
        while (str_cut(name, str_from(rows[i].escape), &left, &rest)) {
            name = arena_printf(p->a, STR_FMT "%s" STR_FMT, STR_ARG(left), rows[i].text,
                                STR_ARG(rest));
        }
    }
    return arena_str(p->a, name);
}

static int parse_has(struct cel_parser *p, struct cel_node **ret)
{
    struct cel_node *member;
    int r = parse_expression(p, &member);
    if (r < 0) {
        return r;
    }
    if (member->op != CEL_MEMBER || !take_sign(p, ")")) {
        return parse_fail(p, "has(a.b)");
    }
    member->op = CEL_HAS;
    *ret = member;
    return 0;
}

static bool name_is_one_of(struct str name, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (str_eq(name, str_from(*list))) {
            return true;
        }
    }
    return false;
}

static int parse_name(struct cel_parser *p, struct str name, struct cel_node **ret)
{
    static const char *const functions[] = { "size",   "duration", "timestamp", "int",
                                             "double", "string",   NULL };
    if (take_sign(p, "(")) {
        if (str_eq(name, STR("has"))) {
            return parse_has(p, ret);
        }
        struct cel_node *call = node_new(p, CEL_CALL);
        call->text = arena_str(p->a, name);
        *ret = call;
        int r = parse_items(p, ")", call);
        if (r == 0 && (!name_is_one_of(name, functions) || call->n != 1)) {
            return err_set(p->err, ERR_INVALID,
                           "function '" STR_FMT "' with %u arguments is not known", STR_ARG(name),
                           call->n);
        }
        return r;
    }
    bool yes = str_eq(name, STR("true"));
    if (yes || str_eq(name, STR("false"))) {
        *ret = node_new(p, CEL_BOOL);
        (*ret)->truth = yes;
    } else if (str_eq(name, STR("null"))) {
        *ret = node_new(p, CEL_NULL);
    } else {
        p->uses_old_self = p->uses_old_self || str_eq(name, STR("oldSelf"));
        *ret = node_new(p, CEL_NAME);
        (*ret)->text = arena_str(p->a, name);
    }
    return 0;
}

static int parse_primary(struct cel_parser *p, struct cel_node **ret)
{
    struct str name;
    skip_blanks(p);
    char c = p->at < p->text.n ? p->text.p[p->at] : '\0';
    if (c == '\'' || c == '"') {
        p->at++;
        return parse_text(p, c, ret);
    }
    if (c >= '0' && c <= '9') {
        return parse_number(p, ret);
    }
    if (take_sign(p, "(")) {
        int r = parse_expression(p, ret);
        return r < 0 || take_sign(p, ")") ? r : parse_fail(p, "')'");
    }
    if (take_sign(p, "[")) {
        *ret = node_new(p, CEL_LIST);
        return parse_items(p, "]", *ret);
    }
    return take_name(p, &name) ? parse_name(p, name, ret) : parse_fail(p, "a value");
}

/* list.all(x, expression) */
static int parse_macro(struct cel_parser *p, struct str name, struct cel_node *target,
                       struct cel_node **ret)
{
    struct cel_node *macro = node_pair(p, CEL_MACRO, target, NULL);
    struct str variable;
    macro->text = arena_str(p->a, name);
    if (!take_name(p, &variable) || !take_sign(p, ",")) {
        return parse_fail(p, "a variable and ','");
    }
    macro->name = arena_str(p->a, variable);
    *ret = macro;
    int r = parse_items(p, ")", macro);
    return r < 0 || macro->n == 2 ? r : parse_fail(p, "one expression in a macro");
}

static int parse_member(struct cel_parser *p, struct cel_node *target, struct cel_node **ret)
{
    static const char *const macros[] = { "all", "exists", "exists_one", "filter", "map", NULL };
    static const char *const methods[] = { "size",     "startsWith", "endsWith",
                                           "contains", "matches",    NULL };
    struct str name;
    if (!take_name(p, &name)) {
        return parse_fail(p, "a name");
    }
    if (!take_sign(p, "(")) {
        *ret = node_pair(p, CEL_MEMBER, target, NULL);
        (*ret)->text = unescape_member(p, name);
        return 0;
    }
    if (name_is_one_of(name, macros)) {
        return parse_macro(p, name, target, ret);
    }
    struct cel_node *call = node_pair(p, CEL_METHOD, target, NULL);
    call->text = arena_str(p->a, name);
    *ret = call;
    int r = parse_items(p, ")", call);
    uint32_t wanted = str_eq(name, STR("size")) ? 1 : 2;
    if (r == 0 && (!name_is_one_of(name, methods) || call->n != wanted)) {
        return err_set(p->err, ERR_INVALID, "method '" STR_FMT "' with %u arguments is not known",
                       STR_ARG(name), call->n - 1);
    }
    return r;
}

static int parse_postfix(struct cel_parser *p, struct cel_node **ret)
{
    int r = parse_primary(p, ret);
    while (r == 0) {
        if (take_sign(p, ".")) {
            r = parse_member(p, *ret, ret);
        } else if (take_sign(p, "[")) {
            struct cel_node *index;
            r = parse_expression(p, &index);
            if (r == 0 && !take_sign(p, "]")) {
                return parse_fail(p, "']'");
            }
            *ret = r == 0 ? node_pair(p, CEL_INDEX, *ret, index) : *ret;
        } else {
            return 0;
        }
    }
    return r;
}

static int parse_unary(struct cel_parser *p, struct cel_node **ret)
{
    uint32_t nots = 0;
    uint32_t minuses = 0;
    for (;;) {
        skip_blanks(p);
        bool differs = p->at + 1 < p->text.n && p->text.p[p->at + 1] == '=';
        if (minuses == 0 && !differs && take_sign(p, "!")) {
            nots++;
        } else if (nots == 0 && take_sign(p, "-")) {
            minuses++;
        } else {
            break;
        }
    }
    int r = parse_postfix(p, ret);
    if (r == 0 && (nots % 2 != 0 || minuses % 2 != 0)) {
        *ret = node_pair(p, nots > 0 ? CEL_NOT : CEL_NEGATE, *ret, NULL);
    }
    return r;
}

/* From the loosest to the tightest; of signs that begin alike the longer one first. */
static const struct cel_sign {
    unsigned level;
    const char *sign;
    enum cel_op op;
} cel_signs[] = {
    { 0, "||", CEL_OR },    { 1, "&&", CEL_AND },     { 2, "==", CEL_EQ },
    { 2, "!=", CEL_NE },    { 2, "<=", CEL_LE },      { 2, ">=", CEL_GE },
    { 2, "<", CEL_LT },     { 2, ">", CEL_GT },       { 2, "in", CEL_IN },
    { 3, "+", CEL_ADD },    { 3, "-", CEL_SUBTRACT }, { 4, "*", CEL_MULTIPLY },
    { 4, "/", CEL_DIVIDE }, { 4, "%", CEL_MODULO },
};
#define CEL_LEVELS 5u

static const struct cel_sign *take_operator(struct cel_parser *p, unsigned level)
{
    for (size_t i = 0; i < ARRAY_LEN(cel_signs); i++) {
        const struct cel_sign *sign = &cel_signs[i];
        if (sign->level == level &&
            (sign->op == CEL_IN ? take_word(p, sign->sign) : take_sign(p, sign->sign))) {
            return sign;
        }
    }
    return NULL;
}

static int parse_level(struct cel_parser *p, unsigned level, struct cel_node **ret)
{
    if (level == CEL_LEVELS) {
        return parse_unary(p, ret);
    }
    int r = parse_level(p, level + 1, ret);
    const struct cel_sign *sign;
    while (r == 0 && (sign = take_operator(p, level)) != NULL) {
        struct cel_node *right;
        r = parse_level(p, level + 1, &right);
        *ret = r == 0 ? node_pair(p, sign->op, *ret, right) : *ret;
    }
    return r;
}

static int parse_expression(struct cel_parser *p, struct cel_node **ret)
{
    if (p->depth >= CEL_DEPTH_MAX) {
        return err_set(p->err, ERR_LIMIT, "expressions nest deeper than %u levels", CEL_DEPTH_MAX);
    }
    p->depth++;
    int r = parse_level(p, 0, ret);
    if (r == 0 && take_sign(p, "?")) {
        struct cel_node *choose = node_pair(p, CEL_CHOOSE, *ret, NULL);
        struct cel_node *arm;
        for (int i = 0; i < 2 && r == 0; i++) {
            r = parse_expression(p, &arm);
            if (r == 0) {
                node_add(p, choose, arm);
                r = i == 0 && !take_sign(p, ":") ? parse_fail(p, "':'") : 0;
            }
        }
        *ret = choose;
    }
    p->depth--;
    return r;
}

int cel_compile(struct str text, struct arena *a, const struct cel_program **ret, struct err *err)
{
    if (text.n > CEL_TEXT_MAX) {
        return err_set(err, ERR_LIMIT, "a rule has more than %u bytes", CEL_TEXT_MAX);
    }
    if (utf8_find_invalid(text) != SIZE_MAX || str_find_char(text, '\0') != SIZE_MAX) {
        return err_set(err, ERR_INVALID, "the rule is no text");
    }
    struct cel_program *program = ARENA_NEW(a, struct cel_program);
    program->text = arena_str(a, text);
    struct cel_parser p = { .a = a, .text = program->text, .err = err };
    struct cel_node *root;
    int r = parse_expression(&p, &root);
    skip_blanks(&p);
    if (r == 0 && p.at < p.text.n) {
        r = parse_fail(&p, "the end");
    }
    if (r < 0) {
        return r;
    }
    program->root = root;
    program->uses_old_self = p.uses_old_self;
    *ret = program;
    return 0;
}

bool cel_uses_old_self(const struct cel_program *program)
{
    return program->uses_old_self;
}
