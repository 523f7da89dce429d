#include "format/template_parse.h"

#include "format/template.h"
#include "format/template_func.h"
#include "format/template_lex.h"

/* One template or definition on the way: each has its own variables and loops. */
struct scope {
    struct scope *outer;
    struct str *vars;
    uint32_t vars_n;
    uint32_t vars_cap;
    uint32_t loops; /* {{range}}s around */
};

struct parser {
    struct str text;
    const struct ttoken *tokens;
    uint32_t at;
    uint32_t depth;
    struct arena *out;
    struct scope *scope;
    struct ttree *trees;
    struct err *err;
};

#define PARSE_FAIL(p, at, ...) template_lex_fail((p)->err, (p)->text, (at), __VA_ARGS__)

static const struct ttoken *parse_peek(const struct parser *p)
{
    return &p->tokens[p->at];
}

static const struct ttoken *parse_next(struct parser *p)
{
    const struct ttoken *token = &p->tokens[p->at];
    p->at += token->kind != TOKEN_EOF ? 1 : 0;
    return token;
}

static const struct ttoken *parse_peek_solid(struct parser *p)
{
    while (parse_peek(p)->kind == TOKEN_SPACE) {
        p->at++;
    }
    return parse_peek(p);
}

static const struct ttoken *parse_next_solid(struct parser *p)
{
    (void)parse_peek_solid(p);
    return parse_next(p);
}

static int parse_unexpected(struct parser *p, const struct ttoken *token, const char *wanted)
{
    if (token->kind == TOKEN_EOF) {
        return PARSE_FAIL(p, token->at, "found the end of the template, want %s", wanted);
    }
    struct str shown = str_sub(token->text, 0, MIN(token->text.n, (size_t)64));
    return PARSE_FAIL(p, token->at, "found '" STR_FMT "', want %s", STR_ARG(shown), wanted);
}

static int parse_enter(struct parser *p, uint32_t at)
{
    if (p->depth == TEMPLATE_DEPTH_MAX) {
        p->err->pos = json_pos(p->text, at);
        return err_set(p->err, ERR_LIMIT, "line %u, column %u: nested deeper than %u",
                       p->err->pos.line, p->err->pos.column, TEMPLATE_DEPTH_MAX);
    }
    p->depth++;
    return 0;
}

static struct tnode *node_new(struct parser *p, enum tnode_kind kind, uint32_t at)
{
    struct tnode *node = ARENA_NEW(p->out, struct tnode);
    node->kind = kind;
    node->at = at;
    return node;
}

static void scope_declare(struct parser *p, struct str name)
{
    struct scope *s = p->scope;
    ARENA_GROW(p->out, s->vars, s->vars_n, s->vars_cap);
    s->vars[s->vars_n++] = name;
}

static bool scope_has(const struct parser *p, struct str name)
{
    for (uint32_t i = 0; i < p->scope->vars_n; i++) {
        if (str_eq(p->scope->vars[i], name)) {
            return true;
        }
    }
    return str_eq(name, STR("$"));
}

static int parse_pipe(struct parser *p, const char *where, enum ttoken_kind end,
                      struct tpipe **ret);

static int parse_literal(struct parser *p, const struct ttoken *token, struct tnode **ret)
{
    struct tnode *node = node_new(p, TNODE_CONST, token->at);
    *ret = node;
    if (token->kind == TOKEN_BOOL) {
        node->value = govalue_bool(token->text.n == 4);
        return 0;
    }
    return template_lex_value(p->text, token, p->out, &node->value, p->err);
}

/* An operand without the fields behind it; NULL where none begins. */
static int parse_term(struct parser *p, struct tnode **ret)
{
    const struct ttoken *token = parse_next_solid(p);
    switch (token->kind) {
    case TOKEN_WORD:
        *ret = node_new(p, TNODE_FUNC, token->at);
        (*ret)->func = template_func_find(token->text);
        if ((*ret)->func == NULL) {
            return parse_unexpected(p, token, "a function that templates have");
        }
        return 0;
    case TOKEN_DOT:
        *ret = node_new(p, TNODE_DOT, token->at);
        return 0;
    case TOKEN_NIL:
        *ret = node_new(p, TNODE_NIL, token->at);
        return 0;
    case TOKEN_VARIABLE:
        *ret = node_new(p, TNODE_VARIABLE, token->at);
        (*ret)->text = token->text;
        return scope_has(p, token->text) ? 0
                                         : parse_unexpected(p, token, "a variable declared before");
    case TOKEN_FIELD:
        *ret = node_new(p, TNODE_FIELD, token->at);
        p->at--; /* it is the first of the fields that follow */
        return 0;
    case TOKEN_BOOL:
    case TOKEN_RUNE:
    case TOKEN_NUMBER:
    case TOKEN_STRING:
    case TOKEN_RAW:
        return parse_literal(p, token, ret);
    case TOKEN_OPEN:
        *ret = node_new(p, TNODE_PIPE, token->at);
        return parse_pipe(p, "a parenthesized pipeline", TOKEN_CLOSE, &(*ret)->pipe);
    default:
        *ret = NULL;
        p->at -= token->kind != TOKEN_EOF ? 1 : 0;
        return 0;
    }
}

static int parse_operand(struct parser *p, struct tnode **ret)
{
    struct tnode *node;
    int r = parse_term(p, &node);
    *ret = node;
    const struct ttoken *first = parse_peek(p);
    if (r < 0 || node == NULL || first->kind != TOKEN_FIELD) {
        return r;
    }
    if (node->kind == TNODE_CONST || node->kind == TNODE_NIL || node->kind == TNODE_DOT) {
        return parse_unexpected(p, first, "no field: what stands before has none");
    }
    if (node->kind != TNODE_FIELD && node->kind != TNODE_VARIABLE) {
        *ret = node_new(p, TNODE_CHAIN, first->at);
        (*ret)->inner = node;
        node = *ret;
    }
    uint32_t cap = 0;
    while (parse_peek(p)->kind == TOKEN_FIELD) {
        struct str name = parse_next(p)->text;
        ARENA_GROW(p->out, node->names, node->names_n, cap);
        node->names[node->names_n++] = str_sub(name, 1, name.n - 1);
    }
    return 0;
}

/* Operands up to a pipe sign, which it takes, or to the pipeline's end, which it leaves. */
static int parse_command(struct parser *p, struct tcommand *command)
{
    struct tnode **tail = &command->args;
    for (;;) {
        struct tnode *operand;
        (void)parse_peek_solid(p);
        int r = parse_operand(p, &operand);
        if (r < 0) {
            return r;
        }
        if (operand != NULL) {
            *tail = operand;
            tail = &operand->next;
            command->n++;
        }
        const struct ttoken *token = parse_peek(p);
        switch (token->kind) {
        case TOKEN_SPACE:
            break;
        case TOKEN_RIGHT:
        case TOKEN_CLOSE:
            return 0;
        case TOKEN_PIPE:
            p->at++;
            return 0;
        default:
            return parse_unexpected(p, token, "a blank, '|' or the end of the command");
        }
    }
}

/* "$i, $v :=" at the start of a pipeline, if it is there. */
static int parse_declarations(struct parser *p, const char *where, bool range, struct tpipe *pipe)
{
    while (parse_peek_solid(p)->kind == TOKEN_VARIABLE) {
        uint32_t before = p->at;
        struct str name = parse_next(p)->text;
        const struct ttoken *sign = parse_peek_solid(p);
        bool comma = sign->kind == TOKEN_CHAR && sign->text.p[0] == ',';
        if (!comma && sign->kind != TOKEN_ASSIGN && sign->kind != TOKEN_DECLARE) {
            p->at = before;
            return 0;
        }
        p->at++;
        if (comma && (!range || pipe->vars_n > 0)) {
            return PARSE_FAIL(p, sign->at, "found ',', want one declaration in %s", where);
        }
        scope_declare(p, name);
        pipe->vars[pipe->vars_n++] = name;
        pipe->assign = sign->kind == TOKEN_ASSIGN;
        if (!comma) {
            return 0;
        }
        const struct ttoken *second = parse_peek_solid(p);
        if (second->kind != TOKEN_VARIABLE) {
            return parse_unexpected(p, second, "a second variable");
        }
    }
    return 0;
}

static int parse_check_pipe(struct parser *p, const struct tpipe *pipe, const char *where)
{
    if (pipe->commands == NULL) {
        return PARSE_FAIL(p, pipe->at, "found nothing, want a value for %s", where);
    }
    for (const struct tcommand *c = pipe->commands->next; c != NULL; c = c->next) {
        enum tnode_kind kind = c->args->kind;
        if (kind == TNODE_CONST || kind == TNODE_NIL || kind == TNODE_DOT) {
            return PARSE_FAIL(p, c->at, "found a value behind '|', want a function or a method");
        }
    }
    return 0;
}

static int parse_pipe_inner(struct parser *p, const char *where, enum ttoken_kind end,
                            struct tpipe *pipe)
{
    struct tcommand **tail = &pipe->commands;
    int r = parse_declarations(p, where, str_eq(str_from(where), STR("range")), pipe);
    while (r == 0) {
        const struct ttoken *token = parse_peek_solid(p);
        if (token->kind == end) {
            p->at++;
            return parse_check_pipe(p, pipe, where);
        }
        struct tcommand *command = ARENA_NEW(p->out, struct tcommand);
        command->at = token->at;
        uint32_t before = p->at;
        r = token->kind == TOKEN_PIPE ? 0 : parse_command(p, command);
        if (r == 0 && (command->n == 0 || p->at == before)) {
            return parse_unexpected(p, token, "a command");
        }
        *tail = command;
        tail = &command->next;
    }
    return r;
}

static int parse_pipe(struct parser *p, const char *where, enum ttoken_kind end, struct tpipe **ret)
{
    struct tpipe *pipe = ARENA_NEW(p->out, struct tpipe);
    pipe->at = parse_peek(p)->at;
    *ret = pipe;
    int r = parse_enter(p, pipe->at);
    if (r < 0) {
        return r;
    }
    r = parse_pipe_inner(p, where, end, pipe);
    p->depth--;
    return r;
}

/* How a list ended. */
enum list_end { LIST_EOF, LIST_END, LIST_ELSE };

static int parse_list(struct parser *p, struct tnode **ret, enum list_end *ret_end);

static int parse_list_to_end(struct parser *p, struct tnode **ret)
{
    enum list_end end;
    int r = parse_list(p, ret, &end);
    if (r == 0 && end != LIST_END) {
        const struct ttoken *last = &p->tokens[p->at - (end == LIST_ELSE ? 1 : 0)];
        return parse_unexpected(p, last, "{{end}}");
    }
    return r;
}

static int parse_control(struct parser *p, enum tnode_kind kind, const struct ttoken *word,
                         struct tnode **ret);

/* Behind "{{else": "}}", or "if …}}" in an if and "with …}}" in a with, which share its end. */
static int parse_else(struct parser *p, enum tnode_kind kind, struct tnode **ret)
{
    const struct ttoken *word = parse_next_solid(p);
    if ((word->kind == TOKEN_IF && kind == TNODE_IF) ||
        (word->kind == TOKEN_WITH && kind == TNODE_WITH)) {
        return parse_control(p, kind, word, ret);
    }
    if (word->kind != TOKEN_RIGHT) {
        return parse_unexpected(p, word, "'}}' behind else");
    }
    return parse_list_to_end(p, ret);
}

static int parse_control_inner(struct parser *p, struct tnode *node, const char *where)
{
    enum list_end end;
    int r = parse_pipe(p, where, TOKEN_RIGHT, &node->pipe);
    if (r < 0) {
        return r;
    }
    p->scope->loops += node->kind == TNODE_RANGE ? 1 : 0;
    r = parse_list(p, &node->list, &end);
    p->scope->loops -= node->kind == TNODE_RANGE ? 1 : 0;
    if (r == 0 && end == LIST_EOF) {
        return PARSE_FAIL(p, p->text.n, "found the end of the template, want {{end}} for %s",
                          where);
    }
    return r == 0 && end == LIST_ELSE ? parse_else(p, node->kind, &node->other) : r;
}

static int parse_control(struct parser *p, enum tnode_kind kind, const struct ttoken *word,
                         struct tnode **ret)
{
    static const char *const names[] = {
        [TNODE_IF] = "if", [TNODE_RANGE] = "range", [TNODE_WITH] = "with"
    };
    uint32_t vars = p->scope->vars_n;
    *ret = node_new(p, kind, word->at);
    int r = parse_enter(p, word->at);
    if (r < 0) {
        return r;
    }
    r = parse_control_inner(p, *ret, names[kind]);
    p->depth--;
    p->scope->vars_n = vars;
    return r;
}

static int parse_name(struct parser *p, struct str *ret)
{
    const struct ttoken *token = parse_next_solid(p);
    struct govalue name;
    if (token->kind != TOKEN_STRING && token->kind != TOKEN_RAW) {
        return parse_unexpected(p, token, "a name in quotes");
    }
    int r = template_lex_value(p->text, token, p->out, &name, p->err);
    *ret = r == 0 ? name.text : STR_NONE;
    return r;
}

/* To Go a template of blanks and definitions is empty, and gives way to another of its name. */
static bool list_is_empty(const struct tnode *list)
{
    for (; list != NULL; list = list->next) {
        if (list->kind != TNODE_TEXT || str_trim(list->text).n > 0) {
            return false;
        }
    }
    return true;
}

static int parse_add(struct parser *p, struct str name, struct tnode *list, uint32_t at)
{
    struct ttree **tail = &p->trees;
    for (; *tail != NULL; tail = &(*tail)->next) {
        if (!str_eq((*tail)->name, name)) {
            continue;
        }
        if (!list_is_empty((*tail)->list) && !list_is_empty(list)) {
            return PARSE_FAIL(p, at, "found template '" STR_FMT "' again, want one of each name",
                              STR_ARG(str_sub(name, 0, MIN(name.n, (size_t)64))));
        }
        (*tail)->list = list_is_empty((*tail)->list) ? list : (*tail)->list;
        return 0;
    }
    *tail = ARENA_NEW(p->out, struct ttree);
    **tail = (struct ttree){ .name = name, .list = list };
    return 0;
}

/* The body of a definition or block: its own variables, no loops around. */
static int parse_body(struct parser *p, struct str name, uint32_t at)
{
    struct scope scope = { .outer = p->scope };
    struct tnode *list = NULL;
    int r = parse_enter(p, at);
    if (r < 0) {
        return r;
    }
    p->scope = &scope;
    r = parse_list_to_end(p, &list);
    p->scope = scope.outer;
    p->depth--;
    return r < 0 ? r : parse_add(p, name, list, at);
}

static int parse_define(struct parser *p, const struct ttoken *word)
{
    struct str name;
    int r = parse_name(p, &name);
    if (r < 0) {
        return r;
    }
    const struct ttoken *right = parse_next_solid(p);
    if (right->kind != TOKEN_RIGHT) {
        return parse_unexpected(p, right, "'}}' behind the name");
    }
    return parse_body(p, name, word->at);
}

/* {{template "x" …}} and {{block "x" …}}…{{end}}. */
static int parse_call(struct parser *p, const struct ttoken *word, struct tnode **ret)
{
    *ret = node_new(p, TNODE_TEMPLATE, word->at);
    int r = parse_name(p, &(*ret)->text);
    if (r < 0) {
        return r;
    }
    bool block = word->kind == TOKEN_BLOCK;
    if (!block && parse_peek_solid(p)->kind == TOKEN_RIGHT) {
        p->at++;
        return 0;
    }
    r = parse_pipe(p, block ? "block" : "template", TOKEN_RIGHT, &(*ret)->pipe);
    return r == 0 && block ? parse_body(p, (*ret)->text, word->at) : r;
}

static int parse_jump(struct parser *p, const struct ttoken *word, struct tnode **ret)
{
    *ret = node_new(p, word->kind == TOKEN_BREAK ? TNODE_BREAK : TNODE_CONTINUE, word->at);
    if (p->scope->loops == 0) {
        return parse_unexpected(p, word, "it inside a {{range}}");
    }
    const struct ttoken *right = parse_next_solid(p);
    return right->kind == TOKEN_RIGHT ? 0 : parse_unexpected(p, right, "'}}'");
}

/* Behind "{{"; `*ret` stays NULL for a definition. */
static int parse_action(struct parser *p, struct tnode **ret)
{
    const struct ttoken *word = parse_peek_solid(p);
    switch (word->kind) {
    case TOKEN_IF:
        p->at++;
        return parse_control(p, TNODE_IF, word, ret);
    case TOKEN_RANGE:
        p->at++;
        return parse_control(p, TNODE_RANGE, word, ret);
    case TOKEN_WITH:
        p->at++;
        return parse_control(p, TNODE_WITH, word, ret);
    case TOKEN_TEMPLATE:
    case TOKEN_BLOCK:
        p->at++;
        return parse_call(p, word, ret);
    case TOKEN_BREAK:
    case TOKEN_CONTINUE:
        p->at++;
        return parse_jump(p, word, ret);
    case TOKEN_DEFINE:
        if (p->scope->outer != NULL || p->depth > 0) {
            return parse_unexpected(p, word, "definitions outside of other actions");
        }
        p->at++;
        return parse_define(p, word);
    default:
        *ret = node_new(p, TNODE_ACTION, word->at);
        return parse_pipe(p, "an action", TOKEN_RIGHT, &(*ret)->pipe);
    }
}

/* Behind "{{" stands what closes the list. */
static int parse_list_end(struct parser *p, enum list_end *ret_end)
{
    const struct ttoken *word = parse_next_solid(p);
    *ret_end = word->kind == TOKEN_END ? LIST_END : LIST_ELSE;
    if (word->kind == TOKEN_ELSE) {
        return 0;
    }
    const struct ttoken *right = parse_next_solid(p);
    return right->kind == TOKEN_RIGHT ? 0 : parse_unexpected(p, right, "'}}' behind end");
}

static int parse_list(struct parser *p, struct tnode **ret, enum list_end *ret_end)
{
    struct tnode **tail = ret;
    for (;;) {
        const struct ttoken *token = parse_next(p);
        struct tnode *node = NULL;
        if (token->kind == TOKEN_EOF) {
            *ret_end = LIST_EOF;
            return 0;
        }
        if (token->kind == TOKEN_TEXT) {
            node = node_new(p, TNODE_TEXT, token->at);
            node->text = token->text;
        } else {
            const struct ttoken *word = parse_peek_solid(p);
            if (word->kind == TOKEN_END || word->kind == TOKEN_ELSE) {
                return parse_list_end(p, ret_end);
            }
            int r = parse_action(p, &node);
            if (r < 0) {
                return r;
            }
        }
        *tail = node;
        tail = node != NULL ? &node->next : tail;
    }
}

int template_parse_text(struct str text, struct arena *out, struct template *ret, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct ttoken *tokens;
    struct scope scope = { 0 };
    struct tnode *list = NULL;
    enum list_end end;
    int r = tlex(text, &tmp, &tokens, err);
    if (r < 0) {
        return r;
    }
    struct parser p = { .text = text, .tokens = tokens, .out = out, .scope = &scope, .err = err };
    r = parse_list(&p, &list, &end);
    if (r < 0) {
        return r;
    }
    if (end != LIST_EOF) {
        const struct ttoken *last = &tokens[p.at - 1];
        return PARSE_FAIL(&p, last->at, "found {{%s}} that closes nothing",
                          end == LIST_END ? "end" : "else");
    }
    r = parse_add(&p, STR(TEMPLATE_MAIN), list, 0);
    if (r == 0) {
        *ret = (struct template){ .text = text, .trees = p.trees };
    }
    return r;
}
