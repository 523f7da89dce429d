/*
 * json_tree: JSON that can be edited. Values hang in linked lists in one arena; members keep their
 * order.
 *
 * The tape of json.h reads, a tree changes: patches, defaults, the sandbox's objects. Nothing is
 * freed piecemeal: an edited tree keeps its dead parts until its arena ends, so long-lived objects
 * are cloned into a fresh arena after an edit.
 */
#pragma once

#include "format/json_writer.h"

struct tree {
    enum jkind kind;
    struct str key;  /* as a member of an object */
    struct str text; /* JSTR: content; JNUM: its text */
    bool truth;      /* JBOOL */
    uint32_t n;      /* children */
    struct tree *first;
    struct tree *last;
    struct tree *next; /* sibling */
};

NODISCARD
int tree_parse(struct str json, struct arena *a, struct tree **ret, struct err *err);
/* Copies all text into `a`: the tape and its input may go. */
struct tree *tree_from(struct arena *a, const struct jval *v);
/* As above, but strings that point into `text`, which must outlive the tree, are not copied. They
 * are not NUL-terminated then. */
struct tree *tree_view(struct arena *a, const struct jval *v, struct str text);
struct tree *tree_clone(struct arena *a, const struct tree *t);
/* A clone that shares the texts: for two trees that end together. */
struct tree *tree_twin(struct arena *a, const struct tree *t);

struct tree *tree_obj(struct arena *a);
struct tree *tree_arr(struct arena *a);
struct tree *tree_str(struct arena *a, struct str s); /* copies */
struct tree *tree_i64(struct arena *a, int64_t n);
struct tree *tree_bool(struct arena *a, bool b);
struct tree *tree_null(struct arena *a);

/* Readers accept NULL and the wrong kind, and answer "absent". */
enum jkind tree_kind(const struct tree *t);
struct tree *tree_get(const struct tree *t, struct str key);
struct tree *tree_at(const struct tree *t, const char *path); /* "metadata.name" */
struct tree *tree_index(const struct tree *t, uint32_t i);
struct str tree_text(const struct tree *t); /* of a string; STR_NONE otherwise */
struct str tree_text_at(const struct tree *t, const char *path);
bool tree_truth(const struct tree *t, bool otherwise);
bool tree_number(const struct tree *t, int64_t *ret);
bool tree_eq(const struct tree *a, const struct tree *b);        /* numbers by their value */
bool tree_identical(const struct tree *a, const struct tree *b); /* numbers by their text */

#define TREE_EACH(parent, t)                                                                       \
    for (struct tree *t = tree_first(parent), *t##_next_ = tree_sibling(t); t != NULL;             \
         t = t##_next_, t##_next_ = tree_sibling(t))
struct tree *tree_first(const struct tree *parent);
struct tree *tree_sibling(const struct tree *t);
/* The members of an object by their names, `n` of them; NULL where there are none. */
struct tree **tree_members_sorted(struct arena *a, const struct tree *obj);

/* Adds or replaces in place; `value` must hang nowhere else. `key` is copied. */
void tree_set(struct arena *a, struct tree *obj, struct str key, struct tree *value);
/* The same for a name that is not there yet, which is not looked for: the caller knows. */
void tree_append(struct arena *a, struct tree *obj, struct str key, struct tree *value);
/* Sets along a path, making objects on the way; what is no object on the way is replaced by one. */
void tree_set_at(struct arena *a, struct tree *obj, const char *path, struct tree *value);
/* The object at the path, made on the way if it is not there. */
struct tree *tree_make_at(struct arena *a, struct tree *obj, const char *path);
bool tree_del(struct tree *obj, struct str key);
bool tree_del_at(struct tree *obj, const char *path);
void tree_add(struct tree *arr, struct tree *value);
void tree_insert(struct tree *arr, uint32_t i, struct tree *value); /* i <= n */
void tree_remove(struct tree *arr, struct tree *value);

void tree_write(const struct tree *t, struct json_writer *w);
void tree_print(const struct tree *t, struct buf *out);
struct str tree_json(struct arena *a, const struct tree *t);
