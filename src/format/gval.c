#include "format/gval.h"

#include "format/gofloat.h"
#include "format/json.h"
#include "format/gval_lex.h"
#include "format/gval_value.h"
#include "format/regex.h"

enum gval_node_kind {
    NODE_CONSTANT,
    NODE_VALUE,
    NODE_MISTAKE, /* evaluating it fails with the message in `constant` */
    NODE_PREFIX,
    NODE_INFIX,
    NODE_CHOICE,
    NODE_LIST,
    NODE_DATE,
};

struct gval_node {
    enum gval_node_kind kind;
    enum gval_op op;
    char sign;
    struct gval_value constant;
    struct regex *regex;               /* of =~ and !~ where the right side is constant */
    const struct gval_node *condition; /* NODE_CHOICE */
    const struct gval_node *left;      /* NODE_INFIX, NODE_CHOICE: where the condition holds */
    const struct gval_node *right;     /* and NODE_PREFIX */
    uint32_t n;
    struct gval_node *first; /* NODE_LIST, NODE_DATE: elements or arguments */
    struct gval_node *next;  /* in its list */
};

struct parser {
    struct gval_lex lex;
    struct gval_lex_token token;
    struct arena *out;
    struct err *err;
    uint32_t words;
    uint32_t depth;
};

/* Of one evaluation. */
struct run {
    double value;
    struct arena *tmp;
    struct err *err;
};

static int eval_node(const struct gval_node *node, struct run *run, struct gval_value *ret);

/* Sets where the message that was just made belongs; passes its code on. */
static int parser_at(struct parser *p, const char *place, int r)
{
    p->err->pos = json_pos(p->lex.text, (size_t)(place - p->lex.text.p));
    return r;
}

static int parser_wants(struct parser *p, const char *wanted)
{
    struct str found = p->token.text;
    if (p->token.kind == GVAL_TOKEN_END) {
        found = STR("the end");
    }
    const char *quote = p->token.kind == GVAL_TOKEN_END ? "" : "'";
    return parser_at(p, p->token.text.p,
                     err_set(p->err, ERR_INVALID, "found %s" STR_FMT "%s: want %s", quote,
                             STR_ARG(found), quote, wanted));
}

static int parser_next(struct parser *p)
{
    if (p->words++ == GVAL_WORDS_MAX) {
        return parser_at(p, p->lex.text.p + p->lex.at,
                         err_set(p->err, ERR_LIMIT, "an expression has at most %u words and signs",
                                 GVAL_WORDS_MAX));
    }
    return gval_lex_next(&p->lex, p->out, &p->token, p->err);
}

static bool parser_sees(const struct parser *p, char sign)
{
    return p->token.kind == GVAL_TOKEN_SIGN && p->token.sign == sign;
}

static struct gval_node *parser_node(struct parser *p, enum gval_node_kind kind)
{
    struct gval_node *node = ARENA_NEW(p->out, struct gval_node);
    node->kind = kind;
    return node;
}

static struct gval_node *parser_constant(struct parser *p, struct gval_value value)
{
    struct gval_node *node = parser_node(p, NODE_CONSTANT);
    node->constant = value;
    return node;
}

/* An operator on constants becomes its result, or the mistake that it is. */
static int parser_fold(struct parser *p, struct gval_node *node, const char *place)
{
    if (node->right->kind != NODE_CONSTANT ||
        (node->kind == NODE_INFIX && node->left->kind != NODE_CONSTANT)) {
        return 0;
    }
    struct run run = { .tmp = p->out, .err = p->err };
    struct gval_value result = { .kind = GVAL_NIL };
    int r = eval_node(node, &run, &result);
    if (r < 0) {
        return parser_at(p, place, r);
    }
    node->kind = NODE_CONSTANT;
    node->constant = result;
    return 0;
}

static int parse_expression(struct parser *p, struct gval_node **ret);
static int parse_operand(struct parser *p, struct gval_node **ret);

/* One more element behind `*last` of the node's list. */
static int parse_item(struct parser *p, struct gval_node *node, struct gval_node **last)
{
    struct gval_node *item = NULL;
    int r = parse_expression(p, &item);
    if (r < 0) {
        return r;
    }
    if (*last == NULL) {
        node->first = item;
    } else {
        (*last)->next = item;
    }
    *last = item;
    node->n++;
    return 0;
}

/* At '[', up to and with ']'. Commas may be left out or repeated, as gval has it. */
static int parse_list(struct parser *p, struct gval_node *node)
{
    struct gval_node *last = NULL;
    int r = parser_next(p);
    while (r == 0 && !parser_sees(p, ']')) {
        r = parser_sees(p, ',') ? parser_next(p) : parse_item(p, node, &last);
    }
    return r == 0 ? parser_next(p) : r;
}

/* At '(', up to and with ')'. */
static int parse_arguments(struct parser *p, struct gval_node *node)
{
    struct gval_node *last = NULL;
    int r = parser_next(p);
    if (r == 0 && parser_sees(p, ')')) {
        return parser_next(p);
    }
    while (r == 0) {
        r = parse_item(p, node, &last);
        if (r == 0 && parser_sees(p, ')')) {
            return parser_next(p);
        }
        if (r == 0 && !parser_sees(p, ',')) {
            return parser_wants(p, "an operator, ',' or ')'");
        }
        r = r == 0 ? parser_next(p) : r;
    }
    return r;
}

/* A step behind a name: ".name" or "[key]". `*path` is the name with the steps so far. */
static int parse_step(struct parser *p, struct str *path)
{
    bool index = parser_sees(p, '[');
    struct gval_node *key = NULL;
    int r = parser_next(p);
    if (r < 0) {
        return r;
    }
    if (!index) {
        if (p->token.kind != GVAL_TOKEN_NAME) {
            return parser_wants(p, "a name");
        }
        *path = arena_printf(p->out, STR_FMT "." STR_FMT, STR_ARG(*path), STR_ARG(p->token.text));
        return parser_next(p);
    }
    r = parse_expression(p, &key);
    if (r < 0) {
        return r;
    }
    if (!parser_sees(p, ']')) {
        return parser_wants(p, "an operator or ']'");
    }
    ASSERT(key != NULL);
    *path = key->kind == NODE_CONSTANT
                ? arena_printf(p->out, STR_FMT "." STR_FMT, STR_ARG(*path),
                               STR_ARG(gval_value_print(&key->constant, p->out)))
                : arena_concat(p->out, *path, STR("[…]"));
    return parser_next(p);
}

/* Behind a name: a path, an index, a call. None of it can be evaluated, but it has to be well
 * formed. The message names the first step that leads nowhere. */
static int parse_path(struct parser *p, struct str name, struct gval_node *node)
{
    bool mistaken = node->kind == NODE_MISTAKE;
    struct str wrong = name;
    while (parser_sees(p, '.') || parser_sees(p, '[')) {
        struct str path = name;
        int r = parse_step(p, &path);
        if (r < 0) {
            return r;
        }
        wrong = mistaken ? wrong : path;
        mistaken = true;
    }
    if (parser_sees(p, '(')) {
        struct gval_node arguments = { 0 };
        node->kind = NODE_MISTAKE;
        node->constant.text =
            mistaken ? arena_printf(p->out, "could not call function: unknown parameter " STR_FMT,
                                    STR_ARG(wrong))
                     : STR("could not call 'value' type float64");
        return parse_arguments(p, &arguments);
    }
    if (mistaken) {
        node->kind = NODE_MISTAKE;
        node->constant.text = arena_printf(p->out, "unknown parameter " STR_FMT, STR_ARG(wrong));
    }
    return 0;
}

static int parse_name(struct parser *p, struct gval_node **ret)
{
    struct str name = p->token.text;
    bool yes = str_eq(name, STR("true"));
    int r = parser_next(p);
    if (r < 0) {
        return r;
    }
    if (yes || str_eq(name, STR("false"))) {
        *ret = parser_constant(p, gval_value_bool(yes));
        return 0;
    }
    if (str_eq(name, STR("date"))) {
        *ret = parser_node(p, NODE_DATE);
        return parser_sees(p, '(') ? parse_arguments(p, *ret) : 0;
    }
    *ret = parser_node(p, str_eq(name, STR("value")) ? NODE_VALUE : NODE_MISTAKE);
    return parse_path(p, name, *ret);
}

static int parse_literal(struct parser *p, struct gval_node **ret)
{
    double number = 0;
    bool text = p->token.kind == GVAL_TOKEN_TEXT;
    if (!text && !gofloat_parse(p->token.text, &number)) {
        return parser_wants(p, "a decimal number that fits 64 bits");
    }
    *ret = parser_constant(p, text ? gval_value_text(p->token.value) : gval_value_number(number));
    return parser_next(p);
}

static int parse_prefix(struct parser *p, struct gval_node **ret)
{
    struct gval_lex_token token = p->token;
    struct gval_node *operand = NULL;
    int r = parser_next(p);
    if (r == 0) {
        r = parse_operand(p, &operand);
    }
    if (r < 0) {
        return r;
    }
    ASSERT(operand != NULL);
    *ret = parser_node(p, NODE_PREFIX);
    (*ret)->sign = token.sign;
    (*ret)->right = operand;
    return parser_fold(p, *ret, token.text.p);
}

static int parse_bracket(struct parser *p, struct gval_node **ret)
{
    if (p->token.sign == '[') {
        *ret = parser_node(p, NODE_LIST);
        return parse_list(p, *ret);
    }
    int r = parser_next(p);
    if (r == 0) {
        r = parse_expression(p, ret);
    }
    if (r == 0 && !parser_sees(p, ')')) {
        r = parser_wants(p, "an operator or ')'");
    }
    return r == 0 ? parser_next(p) : r;
}

static int parse_operand(struct parser *p, struct gval_node **ret)
{
    if (p->token.kind == GVAL_TOKEN_NUMBER || p->token.kind == GVAL_TOKEN_TEXT) {
        return parse_literal(p, ret);
    }
    if (p->depth == GVAL_DEPTH_MAX) {
        return parser_at(
            p, p->token.text.p,
            err_set(p->err, ERR_LIMIT, "an expression nests at most %u deep", GVAL_DEPTH_MAX));
    }
    p->depth++;
    int r = 0;
    if (p->token.kind == GVAL_TOKEN_NAME) {
        r = parse_name(p, ret);
    } else if (parser_sees(p, '!') || parser_sees(p, '-') || parser_sees(p, '~')) {
        r = parse_prefix(p, ret);
    } else if (parser_sees(p, '(') || parser_sees(p, '[')) {
        r = parse_bracket(p, ret);
    } else {
        r = parser_wants(p, "a value, a prefix operator or '('");
    }
    p->depth--;
    return r;
}

/* The longest operator that begins at the token, or GVAL_OP_COUNT. */
static enum gval_op parser_operator(const struct parser *p)
{
    enum gval_op best = GVAL_OP_COUNT;
    if (p->token.kind == GVAL_TOKEN_NAME) {
        return str_eq(p->token.text, STR("in")) ? GVAL_OP_IN : GVAL_OP_COUNT;
    }
    if (p->token.kind != GVAL_TOKEN_SIGN) {
        return GVAL_OP_COUNT;
    }
    size_t at = (size_t)(p->token.text.p - p->lex.text.p);
    struct str rest = str_sub(p->lex.text, at, p->lex.text.n - at);
    for (unsigned i = 0; i < GVAL_OP_COUNT; i++) {
        struct str text = gval_op_rules[i].text;
        if (str_starts(rest, text) &&
            (best == GVAL_OP_COUNT || text.n > gval_op_rules[best].text.n)) {
            best = (enum gval_op)i;
        }
    }
    return best;
}

static int parse_power(struct parser *p, unsigned power, struct gval_node **ret);

/* At the operator; `*tree` is the left operand, and then the whole. */
static int parse_infix(struct parser *p, enum gval_op op, struct gval_node **tree)
{
    const char *place = p->token.text.p;
    struct gval_node *right = NULL;
    /* The token is the operator's first character; the others belong to it. */
    p->lex.at = (size_t)(place - p->lex.text.p) + gval_op_rules[op].text.n;
    int r = parser_next(p);
    if (r == 0) {
        r = parse_power(p, gval_op_rules[op].power + 1u, &right);
    }
    if (r < 0) {
        return r;
    }
    ASSERT(right != NULL);
    struct gval_node *node = parser_node(p, NODE_INFIX);
    node->op = op;
    node->left = *tree;
    node->right = right;
    *tree = node;
    if ((op == GVAL_OP_MATCH || op == GVAL_OP_DIFFER) && right->kind == NODE_CONSTANT) {
        r = regex_compile(gval_value_print(&right->constant, p->out), p->out, &node->regex, p->err);
    }
    return r < 0 ? parser_at(p, place, r) : parser_fold(p, node, place);
}

/* Operators that bind as tightly as `power` or tighter. */
static int parse_power(struct parser *p, unsigned power, struct gval_node **ret)
{
    int r = parse_operand(p, ret);
    enum gval_op op = GVAL_OP_COUNT;
    while (r == 0 && (op = parser_operator(p)) != GVAL_OP_COUNT &&
           gval_op_rules[op].power >= power) {
        r = parse_infix(p, op, ret);
    }
    return r;
}

/* At '?'; `*tree` is the condition, and then the whole. */
static int parse_choice(struct parser *p, struct gval_node **tree)
{
    struct gval_node *yes = NULL;
    struct gval_node *no = NULL;
    int r = parser_next(p);
    if (r == 0) {
        r = parse_expression(p, &yes);
    }
    if (r < 0) {
        return r;
    }
    if (p->token.kind == GVAL_TOKEN_END) {
        /* Without its other branch, at the very end, a choice may be nothing, which is false. */
        no = parser_constant(p, (struct gval_value){ .kind = GVAL_NIL });
    } else if (!parser_sees(p, ':')) {
        return parser_wants(p, "an operator or ':'");
    } else {
        r = parser_next(p);
        if (r == 0) {
            r = parse_expression(p, &no);
        }
    }
    struct gval_node *node = parser_node(p, NODE_CHOICE);
    node->condition = *tree;
    node->left = yes;
    node->right = no;
    *tree = node;
    return r;
}

static int parse_expression(struct parser *p, struct gval_node **ret)
{
    if (p->depth == GVAL_DEPTH_MAX) {
        return parser_at(
            p, p->token.text.p,
            err_set(p->err, ERR_LIMIT, "an expression nests at most %u deep", GVAL_DEPTH_MAX));
    }
    int r = parse_power(p, 0, ret);
    if (r == 0 && parser_sees(p, '?')) {
        p->depth++;
        r = parse_choice(p, ret);
        p->depth--;
    }
    return r;
}

int gval_parse(struct str text, struct arena *out, struct gval *ret, struct err *err)
{
    if (text.n > GVAL_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "an expression has at most %u bytes", GVAL_BYTES_MAX);
    }
    struct str copy = arena_str(out, text);
    struct parser p = { .lex = { .text = copy }, .out = out, .err = err };
    struct gval_node *root = NULL;
    int r = parser_next(&p);
    if (r == 0) {
        r = parse_expression(&p, &root);
    }
    if (r == 0 && p.token.kind != GVAL_TOKEN_END) {
        r = parser_wants(&p, "an operator or the end");
    }
    if (r == 0) {
        *ret = (struct gval){ .text = copy, .root = root };
    }
    return r;
}

static int eval_match(const struct gval_node *node, struct run *run, struct gval_value *ret)
{
    struct gval_value text = { .kind = GVAL_NIL };
    struct gval_value pattern = { .kind = GVAL_NIL };
    struct regex *regex = node->regex;
    bool matches = false;
    int r = eval_node(node->left, run, &text);
    if (r == 0 && regex == NULL) {
        r = eval_node(node->right, run, &pattern);
        if (r == 0) {
            r = regex_compile(gval_value_print(&pattern, run->tmp), run->tmp, &regex, run->err);
        }
    }
    if (r == 0) {
        r = regex_match(regex, gval_value_print(&text, run->tmp), run->tmp, &matches, run->err);
    }
    if (r == 0) {
        *ret = gval_value_bool(matches == (node->op == GVAL_OP_MATCH));
    }
    return r;
}

static int eval_infix(const struct gval_node *node, struct run *run, struct gval_value *ret)
{
    struct gval_value left = { .kind = GVAL_NIL };
    struct gval_value right = { .kind = GVAL_NIL };
    if (node->op == GVAL_OP_MATCH || node->op == GVAL_OP_DIFFER) {
        return eval_match(node, run, ret);
    }
    int r = eval_node(node->left, run, &left);
    if (r < 0) {
        return r;
    }
    /* Only the truth values themselves end "&&" and "||" early: 0 && unknown is a mistake. */
    bool decided = left.kind == GVAL_BOOL &&
                   ((node->op == GVAL_OP_AND && !left.yes) || (node->op == GVAL_OP_OR && left.yes));
    if (decided || (node->op == GVAL_OP_COALESCE && !gval_value_is_zero(&left))) {
        *ret = left;
        return 0;
    }
    r = eval_node(node->right, run, &right);
    return r == 0 ? gval_value_infix(node->op, &left, &right, run->tmp, ret, run->err) : r;
}

static int eval_list(const struct gval_node *node, struct run *run, struct gval_value *ret)
{
    struct gval_value *items = ARENA_ARRAY(run->tmp, struct gval_value, node->n);
    uint32_t n = 0;
    for (const struct gval_node *item = node->first; item != NULL; item = item->next) {
        int r = eval_node(item, run, &items[n++]);
        if (r < 0) {
            return r;
        }
    }
    *ret = (struct gval_value){ .kind = GVAL_LIST, .n = n, .items = items };
    return 0;
}

static int eval_date(const struct gval_node *node, struct run *run, struct gval_value *ret)
{
    struct gval_value arguments = { .kind = GVAL_NIL };
    int r = eval_list(node, run, &arguments);
    if (r < 0) {
        return r;
    }
    if (arguments.n != 1 || arguments.items[0].kind != GVAL_TEXT) {
        return err_set(run->err, ERR_INVALID, "date() expects exactly one string argument");
    }
    return gval_value_date(arguments.items[0].text, ret, run->err);
}

static int eval_node(const struct gval_node *node, struct run *run, struct gval_value *ret)
{
    struct gval_value first = { .kind = GVAL_NIL };
    int r = 0;
    switch (node->kind) {
    case NODE_CONSTANT:
        *ret = node->constant;
        return 0;
    case NODE_VALUE:
        *ret = gval_value_number(run->value);
        return 0;
    case NODE_MISTAKE:
        return err_set(run->err, ERR_INVALID, STR_FMT, STR_ARG(node->constant.text));
    case NODE_PREFIX:
        r = eval_node(node->right, run, &first);
        return r == 0 ? gval_value_prefix(node->sign, &first, run->tmp, ret, run->err) : r;
    case NODE_INFIX:
        return eval_infix(node, run, ret);
    case NODE_CHOICE:
        r = eval_node(node->condition, run, &first);
        return r == 0 ? eval_node(gval_value_is_zero(&first) ? node->right : node->left, run, ret)
                      : r;
    case NODE_LIST:
        return eval_list(node, run, ret);
    case NODE_DATE:
        break;
    }
    return eval_date(node, run, ret);
}

int gval_eval(const struct gval *e, double value, struct arena *tmp, bool *ret, struct err *err)
{
    struct run run = { .value = value, .tmp = tmp, .err = err };
    struct gval_value result = { .kind = GVAL_NIL };
    int r = eval_node(e->root, &run, &result);
    if (r == 0 && !gval_value_to_bool(&result, ret)) {
        r = err_set(err, ERR_INVALID, "expected bool but got " STR_FMT " (%s)",
                    STR_ARG(gval_value_print(&result, tmp)), gval_value_type(&result));
    }
    return r;
}
