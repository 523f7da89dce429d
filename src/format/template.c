#include "format/template.h"

#include "format/goprintf.h"
#include "format/template_func.h"
#include "format/template_lex.h"
#include "format/template_parse.h"

struct var {
    struct str name;
    struct govalue value;
};

struct run {
    const struct template *t;
    struct arena tmp;
    struct buf *out;
    struct var *vars;
    uint32_t vars_n;
    uint32_t vars_cap;
    uint32_t vars_base; /* what lies below belongs to the templates that called this one */
    uint32_t steps;
    uint32_t depth;
    enum { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;
    struct err *err;
};

#define RUN_FAIL(x, at, ...) template_lex_fail((x)->err, (x)->t->text, (at), __VA_ARGS__)

/* Puts the place before what a function said. */
static int run_wrap(struct run *x, uint32_t at, struct str name)
{
    x->err->pos = json_pos(x->t->text, at);
    return err_wrap(x->err, "line %u, column %u: '" STR_FMT "'", x->err->pos.line,
                    x->err->pos.column, STR_ARG(str_sub(name, 0, MIN(name.n, (size_t)64))));
}

static int run_limit(struct run *x, uint32_t at, const char *what, size_t limit)
{
    x->err->pos = json_pos(x->t->text, at);
    return err_set(x->err, ERR_LIMIT, "line %u, column %u: found more than %zu %s, want fewer",
                   x->err->pos.line, x->err->pos.column, limit, what);
}

static int run_step(struct run *x, uint32_t at)
{
    if (++x->steps > TEMPLATE_STEPS_MAX) {
        return run_limit(x, at, "steps", TEMPLATE_STEPS_MAX);
    }
    if (x->tmp.total > TEMPLATE_MEMORY_MAX) {
        return run_limit(x, at, "bytes of memory", TEMPLATE_MEMORY_MAX);
    }
    return x->out->full ? run_limit(x, at, "bytes of output", TEMPLATE_OUTPUT_MAX) : 0;
}

static void var_push(struct run *x, struct str name, const struct govalue *value)
{
    ARENA_GROW(&x->tmp, x->vars, x->vars_n, x->vars_cap);
    x->vars[x->vars_n++] = (struct var){ name, *value };
}

static struct govalue *var_find(struct run *x, struct str name)
{
    for (uint32_t i = x->vars_n; i > x->vars_base; i--) {
        if (str_eq(x->vars[i - 1].name, name)) {
            return &x->vars[i - 1].value;
        }
    }
    return NULL;
}

static int var_set(struct run *x, struct str name, const struct govalue *value, uint32_t at)
{
    struct govalue *var = var_find(x, name);
    if (var == NULL) {
        return RUN_FAIL(x, at, "found '" STR_FMT "', want a variable declared before",
                        STR_ARG(str_sub(name, 0, MIN(name.n, (size_t)64))));
    }
    *var = *value;
    return 0;
}

static int eval_pipe(struct run *x, const struct govalue *dot, const struct tpipe *pipe,
                     struct govalue *ret);
static int eval_arg(struct run *x, const struct govalue *dot, const struct tnode *node,
                    struct govalue *ret);

/* What a command calls: the operands behind its first word, and what came through the pipe. */
struct given {
    const struct govalue *dot;
    const struct tnode *args;    /* borrowed: from the tree */
    const struct govalue *final; /* NULL: nothing came */
};

static uint32_t given_count(const struct given *g)
{
    uint32_t n = g->final != NULL ? 1 : 0;
    for (const struct tnode *node = g->args; node != NULL; node = node->next) {
        n++;
    }
    return n;
}

/* All of them in a row, with room for a receiver before. */
static int given_eval(struct run *x, const struct given *g, struct govalue **ret)
{
    uint32_t n = 1;
    *ret = ARENA_ARRAY(&x->tmp, struct govalue, given_count(g) + 1);
    for (const struct tnode *node = g->args; node != NULL; node = node->next) {
        int r = eval_arg(x, g->dot, node, &(*ret)[n++]);
        if (r < 0) {
            return r;
        }
    }
    if (g->final != NULL) {
        (*ret)[n] = *g->final;
    }
    return 0;
}

/* `and` and `or` stop at the first value that decides. */
static int eval_logic(struct run *x, const struct tnode *word, const struct given *g,
                      struct govalue *ret)
{
    bool wanted = str_eq(word->func->name, STR("or"));
    for (const struct tnode *node = g->args; node != NULL; node = node->next) {
        int r = eval_arg(x, g->dot, node, ret);
        if (r < 0 || govalue_truth(ret) == wanted) {
            return r;
        }
    }
    if (g->final != NULL) {
        *ret = *g->final;
    }
    return 0;
}

static int eval_func(struct run *x, const struct tnode *word, const struct given *g,
                     struct govalue *ret)
{
    const struct template_func *f = word->func;
    uint32_t n = given_count(g);
    struct govalue *args;
    if (n < f->least || n > f->most) {
        return RUN_FAIL(x, word->at, "'" STR_FMT "': found %u arguments, want %s%u",
                        STR_ARG(f->name), n, f->most > f->least ? "at least " : "", f->least);
    }
    if (f->run == NULL) {
        return eval_logic(x, word, g, ret);
    }
    int r = given_eval(x, g, &args);
    if (r < 0) {
        return r;
    }
    struct tcall call = { .tmp = &x->tmp, .args = args + 1, .n = n, .ret = ret, .err = x->err };
    r = f->run(&call);
    return r < 0 ? run_wrap(x, word->at, f->name) : 0;
}

/* One name behind a value: a method, a field or a map's entry. */
static int eval_field(struct run *x, uint32_t at, struct str name, const struct given *g,
                      struct govalue *value)
{
    struct govalue receiver = *value;
    struct str shown = str_sub(name, 0, MIN(name.n, (size_t)64));
    if (receiver.kind == GO_NONE) {
        return 0;
    }
    const struct template_method *m = template_method_find(&receiver, name);
    if (m != NULL) {
        struct govalue *args;
        int r = given_eval(x, g, &args);
        if (r < 0) {
            return r;
        }
        args[0] = receiver;
        struct tcall call = {
            .tmp = &x->tmp, .args = args, .n = given_count(g) + 1, .ret = value, .err = x->err
        };
        r = template_method_call(m, &call);
        return r < 0 ? run_wrap(x, at, name) : 0;
    }
    if (!govalue_member(&receiver, name, &x->tmp, value)) {
        *value = (struct govalue){ 0 };
        /* Names of resources are lower case: what is not is a method mistyped. */
        bool resource =
            receiver.type != &gotype_resources || !(name.p[0] >= 'A' && name.p[0] <= 'Z');
        if (receiver.kind != GO_MAP || !resource) {
            return RUN_FAIL(x, at, "found '." STR_FMT "', want a field that %s%s has",
                            STR_ARG(shown),
                            receiver.kind == GO_NIL ? "the nil pointer of type " : "",
                            govalue_type_name(&receiver));
        }
    }
    if (given_count(g) > 0) {
        return RUN_FAIL(x, at, "'." STR_FMT "': found arguments, want none: it is no function",
                        STR_ARG(shown));
    }
    return 0;
}

static int eval_fields(struct run *x, const struct tnode *node, const struct given *g,
                       struct govalue *value)
{
    static const struct given none = { 0 };
    for (uint32_t i = 0; i < node->names_n; i++) {
        bool last = i + 1 == node->names_n;
        int r = eval_field(x, node->at, node->names[i], last ? g : &none, value);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* What the fields of a chain, variable or field node start from. */
static int eval_start(struct run *x, const struct govalue *dot, const struct tnode *node,
                      struct govalue *ret)
{
    if (node->kind == TNODE_CHAIN) {
        return eval_arg(x, dot, node->inner, ret);
    }
    if (node->kind == TNODE_FIELD) {
        *ret = *dot;
        return 0;
    }
    const struct govalue *var = var_find(x, node->text);
    if (var == NULL) {
        return RUN_FAIL(x, node->at, "found '" STR_FMT "', want a variable that was declared",
                        STR_ARG(str_sub(node->text, 0, MIN(node->text.n, (size_t)64))));
    }
    *ret = *var;
    return 0;
}

/* A first word that is a value takes no arguments. */
static int eval_plain(struct run *x, const struct tnode *word, const struct given *g,
                      struct govalue *ret)
{
    if (given_count(g) > 0) {
        return RUN_FAIL(x, word->at, "found arguments behind a value, want a function before them");
    }
    switch (word->kind) {
    case TNODE_PIPE:
        return eval_pipe(x, g->dot, word->pipe, ret);
    case TNODE_DOT:
        *ret = *g->dot;
        return 0;
    case TNODE_NIL:
        return RUN_FAIL(x, word->at, "found nil, want a command");
    default:
        ASSERT(word->kind == TNODE_CONST);
        *ret = word->value;
        return ret->kind != GO_NONE ? 0 : RUN_FAIL(x, word->at, "found a number too large for int");
    }
}

static int eval_word(struct run *x, const struct tnode *word, const struct given *g,
                     struct govalue *ret)
{
    int r = run_step(x, word->at);
    if (r < 0) {
        return r;
    }
    if (word->kind == TNODE_FUNC) {
        return eval_func(x, word, g, ret);
    }
    if (word->kind != TNODE_FIELD && word->kind != TNODE_CHAIN && word->kind != TNODE_VARIABLE) {
        return eval_plain(x, word, g, ret);
    }
    r = eval_start(x, g->dot, word, ret);
    if (r < 0) {
        return r;
    }
    if (word->names_n == 0 && given_count(g) > 0) {
        return RUN_FAIL(x, word->at, "found arguments behind a value, want a function before them");
    }
    return eval_fields(x, word, g, ret);
}

static int eval_arg(struct run *x, const struct govalue *dot, const struct tnode *node,
                    struct govalue *ret)
{
    if (node->kind == TNODE_NIL) {
        *ret = (struct govalue){ 0 };
        return 0;
    }
    return eval_word(x, node, &(struct given){ .dot = dot }, ret);
}

static int eval_commands(struct run *x, const struct govalue *dot, const struct tpipe *pipe,
                         struct govalue *ret)
{
    struct govalue value = { 0 };
    for (const struct tcommand *c = pipe->commands; c != NULL; c = c->next) {
        struct govalue before = value;
        struct given g = { .dot = dot,
                           .args = c->args->next,
                           .final = c == pipe->commands ? NULL : &before };
        int r = eval_word(x, c->args, &g, &value);
        if (r < 0) {
            return r;
        }
    }
    *ret = value;
    return 0;
}

static int run_enter(struct run *x, uint32_t at)
{
    if (x->depth == TEMPLATE_DEPTH_MAX) {
        return run_limit(x, at, "levels", TEMPLATE_DEPTH_MAX);
    }
    x->depth++;
    return 0;
}

static int eval_pipe(struct run *x, const struct govalue *dot, const struct tpipe *pipe,
                     struct govalue *ret)
{
    int r = run_enter(x, pipe->at);
    if (r < 0) {
        return r;
    }
    r = eval_commands(x, dot, pipe, ret);
    x->depth--;
    for (uint32_t i = 0; r == 0 && i < pipe->vars_n; i++) {
        if (pipe->assign) {
            r = var_set(x, pipe->vars[i], ret, pipe->at);
        } else {
            var_push(x, pipe->vars[i], ret);
        }
    }
    return r;
}

static int walk(struct run *x, const struct tnode *list, const struct govalue *dot);

static int walk_action(struct run *x, const struct tnode *node, const struct govalue *dot)
{
    struct govalue value;
    int r = eval_pipe(x, dot, node->pipe, &value);
    if (r < 0 || node->pipe->vars_n > 0) {
        return r;
    }
    if (value.kind == GO_NONE) {
        buf_add(x->out, STR("<no value>"));
    } else {
        goprintf_print(x->out, &value, 1, &x->tmp);
    }
    return 0;
}

static int walk_if(struct run *x, const struct tnode *node, const struct govalue *dot)
{
    struct govalue value;
    int r = eval_pipe(x, dot, node->pipe, &value);
    if (r < 0) {
        return r;
    }
    if (govalue_truth(&value)) {
        return walk(x, node->list, node->kind == TNODE_WITH ? &value : dot);
    }
    return walk(x, node->other, dot);
}

/* One turn of a loop; `index` is NULL where there is none. */
static int walk_turn(struct run *x, const struct tnode *node, const struct govalue *index,
                     const struct govalue *element)
{
    const struct tpipe *pipe = node->pipe;
    uint32_t mark = x->vars_n;
    int r = run_step(x, node->at);
    if (r == 0 && pipe->assign && pipe->vars_n > 0) {
        r = var_set(x, pipe->vars[pipe->vars_n - 1], element, pipe->at);
        if (r == 0 && pipe->vars_n > 1) {
            r = var_set(x, pipe->vars[0], index, pipe->at);
        }
    } else if (r == 0 && pipe->vars_n > 0) {
        x->vars[mark - 1].value = *element;
        if (pipe->vars_n > 1) {
            x->vars[mark - 2].value = *index;
        }
    }
    if (r == 0) {
        r = walk(x, node->list, element);
    }
    x->vars_n = mark;
    return r;
}

/* The i-th turn over a list, a map or a number; false behind the last. */
static bool range_at(const struct govalue *over, int64_t i, struct govalue *index,
                     struct govalue *element)
{
    if (i >= (over->kind == GO_INT ? over->number : (int64_t)over->n)) {
        return false;
    }
    *index = over->kind == GO_MAP ? govalue_str(over->members[i].name) : govalue_i64(i);
    *element = over->kind == GO_MAP     ? over->members[i].value
               : over->kind == GO_SLICE ? over->items[i]
                                        : govalue_i64(i);
    return true;
}

static int walk_range(struct run *x, const struct tnode *node, const struct govalue *dot)
{
    struct govalue over;
    struct govalue index;
    struct govalue element;
    int r = eval_pipe(x, dot, node->pipe, &over);
    if (r < 0) {
        return r;
    }
    bool pairs = over.kind == GO_SLICE || over.kind == GO_MAP || over.kind == GO_NONE;
    if (!pairs && !(over.kind == GO_INT && node->pipe->vars_n < 2)) {
        return RUN_FAIL(x, node->pipe->at, "found %s, want a list or map to range over",
                        govalue_type_name(&over));
    }
    int64_t i = 0;
    for (; r == 0 && x->flow == FLOW_ON && range_at(&over, i, &index, &element); i++) {
        r = walk_turn(x, node, &index, &element);
        x->flow = x->flow == FLOW_CONTINUE ? FLOW_ON : x->flow;
    }
    x->flow = FLOW_ON;
    return r == 0 && i == 0 ? walk(x, node->other, dot) : r;
}

static const struct ttree *tree_named(const struct template *t, struct str name)
{
    const struct ttree *tree = t->trees;
    while (tree != NULL && !str_eq(tree->name, name)) {
        tree = tree->next;
    }
    return tree;
}

static int walk_template(struct run *x, const struct tnode *node, const struct govalue *dot)
{
    struct govalue inner = { 0 };
    const struct ttree *tree = tree_named(x->t, node->text);
    if (tree == NULL) {
        return RUN_FAIL(x, node->at, "found '" STR_FMT "', want a template that is defined",
                        STR_ARG(str_sub(node->text, 0, MIN(node->text.n, (size_t)64))));
    }
    int r = node->pipe != NULL ? eval_pipe(x, dot, node->pipe, &inner) : 0;
    if (r < 0) {
        return r;
    }
    uint32_t base = x->vars_base;
    x->vars_base = x->vars_n;
    var_push(x, STR("$"), &inner);
    r = walk(x, tree->list, &inner);
    x->vars_n = x->vars_base;
    x->vars_base = base;
    return r;
}

static int walk_node(struct run *x, const struct tnode *node, const struct govalue *dot)
{
    uint32_t mark = x->vars_n;
    int r = run_step(x, node->at);
    if (r < 0) {
        return r;
    }
    switch (node->kind) {
    case TNODE_TEXT:
        buf_add(x->out, node->text);
        return 0;
    case TNODE_ACTION:
        return walk_action(x, node, dot); /* its variables stay to the end of the list */
    case TNODE_IF:
    case TNODE_WITH:
        r = walk_if(x, node, dot);
        break;
    case TNODE_RANGE:
        r = walk_range(x, node, dot);
        break;
    case TNODE_TEMPLATE:
        r = walk_template(x, node, dot);
        break;
    default:
        ASSERT(node->kind == TNODE_BREAK || node->kind == TNODE_CONTINUE);
        x->flow = node->kind == TNODE_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
        return 0;
    }
    x->vars_n = mark;
    return r;
}

static int walk(struct run *x, const struct tnode *list, const struct govalue *dot)
{
    int r = run_enter(x, list != NULL ? list->at : 0);
    if (r < 0) {
        return r;
    }
    for (; r == 0 && x->flow == FLOW_ON && list != NULL; list = list->next) {
        r = walk_node(x, list, dot);
    }
    x->depth--;
    return r;
}

int template_parse(struct str text, struct arena *out, struct template **ret, struct err *err)
{
    struct template *t = ARENA_NEW(out, struct template);
    if (text.n > TEMPLATE_TEXT_MAX) {
        return err_set(err, ERR_LIMIT, "found a template of %zu bytes, want at most %zu", text.n,
                       TEMPLATE_TEXT_MAX);
    }
    int r = template_parse_text(text, out, t, err);
    if (r == 0) {
        *ret = t;
    }
    return r;
}

int template_render(const struct template *t, const struct govalue *root, struct buf *out,
                    struct err *err)
{
    CLEANUP(buf_done)
    struct buf message = { .max = TEMPLATE_OUTPUT_MAX };
    struct run x = { .t = t, .out = &message, .err = err };
    const struct ttree *tree = tree_named(t, STR(TEMPLATE_MAIN));
    ASSERT(tree != NULL);
    var_push(&x, STR("$"), root);
    int r = walk(&x, tree->list, root);
    if (r == 0 && message.full) {
        r = run_limit(&x, (uint32_t)t->text.n, "bytes of output", TEMPLATE_OUTPUT_MAX);
    }
    if (r == 0) {
        buf_add(out, buf_str(&message));
    }
    arena_done(&x.tmp);
    return r;
}
