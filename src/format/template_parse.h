/*
 * template_parse: a Go template as a tree of nodes.
 *
 * Names of variables are looked up while the template runs, as Go does it; the parser only refuses
 * what can never be declared there.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "format/govalue.h"

struct template_func;

enum tnode_kind {
    /* What a list is made of. */
    TNODE_TEXT,
    TNODE_ACTION,
    TNODE_IF,
    TNODE_RANGE,
    TNODE_WITH,
    TNODE_TEMPLATE, /* {{template}}, and {{block}} where it stands */
    TNODE_BREAK,
    TNODE_CONTINUE,
    /* What a command is made of. */
    TNODE_CONST,
    TNODE_NIL,
    TNODE_DOT,
    TNODE_FIELD,    /* .a.b */
    TNODE_VARIABLE, /* $x.a.b */
    TNODE_FUNC,
    TNODE_PIPE,  /* (…) */
    TNODE_CHAIN, /* (…).a.b */
};

struct tnode {
    enum tnode_kind kind;
    uint32_t at;
    struct tnode *next;
    struct str text;                  /* TEXT: itself; TEMPLATE, VARIABLE: the name */
    struct govalue value;             /* CONST */
    const struct template_func *func; /* FUNC */
    struct str *names;                /* FIELD, VARIABLE, CHAIN: the fields, in order */
    uint32_t names_n;
    struct tpipe *pipe;  /* ACTION, IF, RANGE, WITH, PIPE; TEMPLATE: or NULL */
    struct tnode *inner; /* CHAIN: what the fields are of */
    struct tnode *list;  /* IF, RANGE, WITH */
    struct tnode *other; /* their else */
};

struct tpipe {
    uint32_t at;
    bool assign; /* "=", not ":=" */
    uint32_t vars_n;
    struct str vars[2];
    struct tcommand *commands;
};

struct tcommand {
    uint32_t at;
    uint32_t n;
    struct tnode *args; /* at least one */
    struct tcommand *next;
};

struct ttree {
    struct str name;
    struct tnode *list;
    struct ttree *next;
};

struct template
{
    struct str text;
    struct ttree *trees; /* the template itself, then what it defines */
};

NODISCARD
int template_parse_text(struct str text, struct arena *out, struct template *ret, struct err *err);
