/*
 * selector: which objects are meant: label selectors as text ("a=1,b in (x,y),!c") and as
 * LabelSelector objects, field selectors as text ("spec.nodeName=n1").
 *
 * Reads, matches and prints as Kubernetes does, its error texts included: users see them in the
 * API server's answers. A selector without terms matches everything.
 */
#pragma once

#include "format/json_tree.h"

enum selector_op {
    SELECTOR_EQUALS,
    SELECTOR_DOUBLE_EQUALS, /* means the same, and is printed as it was written */
    SELECTOR_NOT_EQUALS,
    SELECTOR_IN,
    SELECTOR_NOT_IN,
    SELECTOR_EXISTS,
    SELECTOR_ABSENT,
    SELECTOR_GREATER,
    SELECTOR_LESS,
};

struct selector_term {
    struct str key;
    enum selector_op op;
    uint32_t n;
    struct str *values;
};

struct selector {
    bool nothing; /* the selector that matches no object: a LabelSelector that is null */
    bool fields;  /* an absent field is an empty one */
    uint32_t n;
    struct selector_term *terms; /* sorted by key */
};

/* All text of the result is copied into `out`. */
NODISCARD
int selector_parse(struct str text, struct arena *out, struct selector *ret, struct err *err);
NODISCARD
int selector_parse_fields(struct str text, struct arena *out, struct selector *ret,
                          struct err *err);
/* A LabelSelector; NULL and null match nothing, {} matches everything. */
NODISCARD
int selector_from_tree(const struct tree *object, struct arena *out, struct selector *ret,
                       struct err *err);
NODISCARD
int selector_from_jval(const struct jval *object, struct arena *out, struct selector *ret,
                       struct err *err);

/* Answers whether the object has the label or field `key`, and its value. */
typedef bool selector_lookup(void *ctx, struct str key, struct str *ret_value);
bool selector_match(const struct selector *s, selector_lookup *lookup, void *ctx);
/* `labels` is an object of strings, as in metadata.labels; NULL has none. */
bool selector_match_tree(const struct selector *s, const struct tree *labels);
bool selector_match_jval(const struct selector *s, const struct jval *labels);

/* The canonical text. */
void selector_print(const struct selector *s, struct buf *out);
