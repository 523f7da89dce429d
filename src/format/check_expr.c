#include "format/check_expr.h"

#include "base/utf8.h"
#include "format/gofloat.h"
#include "format/json.h"

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_AND, TOKEN_OR, TOKEN_NOT, TOKEN_OPEN, TOKEN_CLOSE };

struct token {
    enum token_kind kind;
    struct str text;
};

struct parser {
    struct str text;
    const struct instance_names *names;
    struct err *err;
    size_t at; /* the lexer's place in `text` */
    struct token token;
    uint32_t depth;
    uint32_t n;
    struct check_expr_node nodes[CHECK_EXPR_NODES_MAX];
    uint32_t var_n;
    struct check_expr_var vars[CHECK_EXPR_NODES_MAX];
    uint32_t run_n;
    uint32_t runs[CHECK_EXPR_NODES_MAX];
};

/* Sets where the message that was just made belongs; passes its code on. */
static int parser_at(struct parser *p, const char *place, int r)
{
    p->err->pos = json_pos(p->text, (size_t)(place - p->text.p));
    return r;
}

static struct token token_next(struct parser *p)
{
    static const struct {
        struct str text;
        enum token_kind kind;
    } signs[] = {
        { STR_INIT("&&"), TOKEN_AND }, { STR_INIT("||"), TOKEN_OR },   { STR_INIT("!"), TOKEN_NOT },
        { STR_INIT("("), TOKEN_OPEN }, { STR_INIT(")"), TOKEN_CLOSE },
    };
    while (p->at < p->text.n && p->text.p[p->at] == ' ') {
        p->at++;
    }
    size_t start = p->at;
    for (; p->at < p->text.n && p->text.p[p->at] != ' '; p->at++) {
        struct str rest = str_sub(p->text, p->at, p->text.n - p->at);
        for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
            if (!str_starts(rest, signs[i].text)) {
                continue;
            }
            if (p->at == start) {
                p->at += signs[i].text.n;
                return (struct token){ signs[i].kind, str_sub(rest, 0, signs[i].text.n) };
            }
            return (struct token){ TOKEN_NAME, str_sub(p->text, start, p->at - start) };
        }
    }
    return (struct token){ p->at > start ? TOKEN_NAME : TOKEN_END,
                           str_sub(p->text, start, p->at - start) };
}

/* White space that an editor shows as a space, or as nothing: the message names it. */
static const char *white_name(uint32_t point)
{
    switch (point) {
    case '\t':
        return "a tab";
    case '\n':
    case '\r':
        return "a line break";
    case 0xa0:
    case 0x202f:
        return "a no-break space";
    case 0x3000:
    case 0xfeff:
        return "an unusual space";
    default:
        return point >= 0x2000 && point <= 0x200b ? "an unusual space" : NULL;
    }
}

static bool name_has(uint32_t point, bool first)
{
    if (point == '_' || point >= 0x80) {
        return true;
    }
    if ((point >= 'a' && point <= 'z') || (point >= 'A' && point <= 'Z')) {
        return true;
    }
    return !first && (point == '-' || point == '.' || (point >= '0' && point <= '9'));
}

/* What is wrong with the characters of a word; `known` says that there is such an instance. */
static int name_check(struct parser *p, struct str name, bool known)
{
    for (size_t i = 0; i < name.n;) {
        uint32_t point = 0;
        struct str rest = str_sub(name, i, name.n - i);
        size_t n = utf8_decode(rest, &point);
        const char *white = n > 0 ? white_name(point) : NULL;
        if (white != NULL) {
            return parser_at(p, rest.p,
                             err_set(p->err, ERR_INVALID,
                                     "found %s: only spaces may stand between names", white));
        }
        if (n == 0) {
            return parser_at(p, rest.p,
                             err_set(p->err, ERR_INVALID, "found bytes that are no UTF-8"));
        }
        if (known && !name_has(point, i == 0)) {
            return parser_at(p, rest.p,
                             err_set(p->err, ERR_INVALID,
                                     "found '" STR_FMT "': want a name that begins with a letter "
                                     "or '_' and goes on with letters, digits, '_', '-' or '.'",
                                     STR_ARG(name)));
        }
        i += n;
    }
    return 0;
}

static bool constant_parse(struct str word, bool *ret)
{
    double number = 0;
    if (str_eq(word, STR("true")) || str_eq(word, STR("false"))) {
        *ret = word.p[0] == 't';
        return true;
    }
    if (word.p[0] < '0' || word.p[0] > '9' || !gofloat_parse(word, &number)) {
        return false;
    }
    *ret = number != 0;
    return true;
}

/* All names are looked up before the grammar is, as in the original: a misspelled name is the more
 * likely mistake. */
static int parser_check_names(struct parser *p)
{
    struct token token;
    while ((token = token_next(p)).kind != TOKEN_END) {
        uint32_t index = 0;
        bool constant = false;
        if (token.kind != TOKEN_NAME) {
            continue;
        }
        bool known = p->names->find(p->names->ctx, token.text, &index);
        if (known && constant_parse(token.text, &constant)) {
            continue;
        }
        int r = name_check(p, token.text, known);
        if (r == 0 && !known) {
            r = parser_at(p, token.text.p, instance_names_unknown(p->names, token.text, p->err));
        }
        if (r < 0) {
            return r;
        }
    }
    p->at = 0;
    return 0;
}

static int parser_wants(struct parser *p, const char *wanted)
{
    struct token *t = &p->token;
    if (t->kind == TOKEN_END) {
        return parser_at(p, p->text.p + p->text.n,
                         err_set(p->err, ERR_INVALID, "found the end: want %s", wanted));
    }
    return parser_at(
        p, t->text.p,
        err_set(p->err, ERR_INVALID, "found '" STR_FMT "': want %s", STR_ARG(t->text), wanted));
}

static int parser_push(struct parser *p, struct check_expr_node node)
{
    if (p->n == CHECK_EXPR_NODES_MAX) {
        return parser_at(p, p->text.p,
                         err_set(p->err, ERR_LIMIT,
                                 "an expression has at most %u names and operators",
                                 CHECK_EXPR_NODES_MAX));
    }
    p->nodes[p->n++] = node;
    return 0;
}

static int parse_name(struct parser *p)
{
    struct str name = p->token.text;
    struct check_expr_node node = { .kind = CHECK_EXPR_NAME };
    while (node.var < p->var_n && !str_eq(p->vars[node.var].name, name)) {
        node.var++;
    }
    if (constant_parse(name, &node.value)) {
        node.kind = CHECK_EXPR_CONSTANT;
    }
    int r = parser_push(p, node);
    if (r < 0) {
        return r;
    }
    if (node.var == p->var_n) {
        uint32_t index = 0;
        bool known = p->names->find(p->names->ctx, name, &index);
        ASSERT(known);
        p->vars[p->var_n++] = (struct check_expr_var){ .name = name, .index = index };
    }
    p->runs[p->run_n++] = node.var;
    p->token = token_next(p);
    return 0;
}

/* The binding power of an operator between two operands; 0 for everything else. */
static int token_power(enum token_kind kind)
{
    return kind == TOKEN_AND ? 2 : kind == TOKEN_OR ? 1 : 0;
}

static int parse_power(struct parser *p, int power);

static int parse_operand(struct parser *p)
{
    struct token token = p->token;
    if (token.kind == TOKEN_NAME) {
        return parse_name(p);
    }
    if (token.kind != TOKEN_NOT && token.kind != TOKEN_OPEN) {
        return parser_wants(p, "a name, '!' or '('");
    }
    if (p->depth == CHECK_EXPR_DEPTH_MAX) {
        return parser_at(p, token.text.p,
                         err_set(p->err, ERR_LIMIT, "an expression nests at most %u deep",
                                 CHECK_EXPR_DEPTH_MAX));
    }
    p->depth++;
    p->token = token_next(p);
    int r = token.kind == TOKEN_NOT ? parse_operand(p) : parse_power(p, 1);
    p->depth--;
    if (r < 0) {
        return r;
    }
    if (token.kind == TOKEN_NOT) {
        return parser_push(p,
                           (struct check_expr_node){ .kind = CHECK_EXPR_NOT, .right = p->n - 1 });
    }
    if (p->token.kind != TOKEN_CLOSE) {
        return parser_wants(p, "'&&', '||' or ')'");
    }
    p->token = token_next(p);
    return 0;
}

/* Operators that bind as tightly as `power` or tighter; those of one power associate to the left.
 */
static int parse_power(struct parser *p, int power)
{
    int r = parse_operand(p);
    while (r == 0 && token_power(p->token.kind) >= power) {
        struct check_expr_node node = {
            .kind = p->token.kind == TOKEN_AND ? CHECK_EXPR_AND : CHECK_EXPR_OR,
            .left = p->n - 1,
        };
        int own = token_power(p->token.kind);
        p->token = token_next(p);
        r = parse_power(p, own + 1);
        if (r == 0) {
            node.right = p->n - 1;
            r = parser_push(p, node);
        }
    }
    return r;
}

static void parser_result(const struct parser *p, struct arena *out, struct check_expr *ret)
{
    *ret = (struct check_expr){
        .text = arena_str(out, p->text),
        .n = p->n,
        .nodes = ARENA_ARRAY(out, struct check_expr_node, p->n),
        .var_n = p->var_n,
        .vars = ARENA_ARRAY(out, struct check_expr_var, p->var_n),
        .run_n = p->run_n,
        .runs = ARENA_ARRAY(out, uint32_t, p->run_n),
    };
    for (uint32_t i = 0; i < p->n; i++) {
        ret->nodes[i] = p->nodes[i];
    }
    for (uint32_t i = 0; i < p->var_n; i++) {
        ret->vars[i] = (struct check_expr_var){ .name = arena_str(out, p->vars[i].name),
                                                .index = p->vars[i].index };
    }
    for (uint32_t i = 0; i < p->run_n; i++) {
        ret->runs[i] = p->runs[i];
    }
}

int check_expr_parse(struct str text, const struct instance_names *names, struct arena *out,
                     struct check_expr *ret, struct err *err)
{
    if (text.n > CHECK_EXPR_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "an expression has at most %u bytes", CHECK_EXPR_BYTES_MAX);
    }
    /* In an arena of its own: it is too large for a stack frame. */
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct parser *p = ARENA_NEW(&tmp, struct parser);
    p->text = text;
    p->names = names;
    p->err = err;
    int r = parser_check_names(p);
    if (r == 0 && text.n > 0) {
        p->token = token_next(p);
        r = parse_power(p, 1);
        if (r == 0 && p->token.kind != TOKEN_END) {
            r = parser_wants(p, "'&&', '||' or the end");
        }
    }
    if (r == 0) {
        parser_result(p, out, ret);
    }
    return r;
}

int check_expr_eval(const struct check_expr *e, const enum check_expr_verdict *verdicts, bool *ret,
                    struct err *err)
{
    CLEANUP(buf_done)
    struct buf failed = { 0 };
    for (uint32_t i = 0; i < e->run_n; i++) {
        if (verdicts[e->runs[i]] == CHECK_EXPR_FAILED) {
            buf_add(&failed, failed.n > 0 ? STR(", ") : STR(""));
            buf_add(&failed, e->vars[e->runs[i]].name);
        }
    }
    if (failed.n > 0) {
        return err_set(err, ERR_INVALID, "failed check instances: " STR_FMT,
                       STR_ARG(buf_str(&failed)));
    }
    bool values[CHECK_EXPR_NODES_MAX];
    for (uint32_t i = 0; i < e->n; i++) {
        const struct check_expr_node *node = &e->nodes[i];
        switch (node->kind) {
        case CHECK_EXPR_NAME:
            values[i] = verdicts[node->var] == CHECK_EXPR_TRUE;
            break;
        case CHECK_EXPR_CONSTANT:
            values[i] = node->value;
            break;
        case CHECK_EXPR_NOT:
            values[i] = !values[node->right];
            break;
        case CHECK_EXPR_AND:
            values[i] = values[node->left] && values[node->right];
            break;
        case CHECK_EXPR_OR:
            values[i] = values[node->left] || values[node->right];
            break;
        }
    }
    *ret = e->n == 0 || values[e->n - 1];
    return 0;
}

/* How tightly what stands at a node holds together; an operand that holds less needs parentheses.
 */
static int node_power(const struct check_expr_node *node)
{
    return node->kind == CHECK_EXPR_OR ? 1 : node->kind == CHECK_EXPR_AND ? 2 : 3;
}

static void print_node(const struct check_expr *e, uint32_t i, int power, struct buf *out)
{
    const struct check_expr_node *node = &e->nodes[i];
    int own = node_power(node);
    if (own < power) {
        buf_add_char(out, '(');
    }
    switch (node->kind) {
    case CHECK_EXPR_NAME:
    case CHECK_EXPR_CONSTANT:
        buf_add(out, e->vars[node->var].name);
        break;
    case CHECK_EXPR_NOT:
        buf_add_char(out, '!');
        print_node(e, node->right, own, out);
        break;
    case CHECK_EXPR_AND:
    case CHECK_EXPR_OR:
        print_node(e, node->left, own, out);
        buf_add(out, node->kind == CHECK_EXPR_AND ? STR(" && ") : STR(" || "));
        print_node(e, node->right, own + 1, out);
        break;
    }
    if (own < power) {
        buf_add_char(out, ')');
    }
}

void check_expr_print(const struct check_expr *e, struct buf *out)
{
    if (e->n > 0) {
        print_node(e, e->n - 1, 0, out);
    }
}
