#include "format/jsonpath.h"

#define NAME_MAX_BYTES 512u /* a label key has at most 317 */

struct jsonpath_scan {
    struct str rest;
    bool broken;
};

static void jsonpath_skip(struct jsonpath_scan *w, size_t n)
{
    n = MIN(n, w->rest.n);
    w->rest = str_sub(w->rest, n, w->rest.n - n);
}

/* A member name, up to the next dot or bracket; a backslash takes away the meaning of either. */
static struct str jsonpath_take_name(struct jsonpath_scan *w, char out[NAME_MAX_BYTES])
{
    size_t n = 0;
    while (w->rest.n > 0 && w->rest.p[0] != '.' && w->rest.p[0] != '[') {
        if (w->rest.p[0] == '\\' && w->rest.n > 1) {
            jsonpath_skip(w, 1);
        }
        if (n == NAME_MAX_BYTES) {
            w->broken = true;
            break;
        }
        out[n++] = w->rest.p[0];
        jsonpath_skip(w, 1);
    }
    return (struct str){ .p = out, .n = n };
}

static struct str jsonpath_unquote(struct str text)
{
    text = str_trim(text);
    bool quoted =
        text.n >= 2 && (text.p[0] == '"' || text.p[0] == '\'') && text.p[text.n - 1] == text.p[0];
    return quoted ? str_sub(text, 1, text.n - 2) : text;
}

/* @.type=="Ready": the first element whose member has the value. */
static const struct tree *filter_item(const struct tree *list, struct str condition,
                                      bool *ret_broken)
{
    struct str left;
    struct str right;
    struct str member;
    if (!str_cut(condition, STR("=="), &left, &right) ||
        !str_cut_prefix(str_trim(left), STR("@."), &member)) {
        *ret_broken = true;
        return NULL;
    }
    struct str wanted = jsonpath_unquote(right);
    TREE_EACH (list, item) {
        const struct tree *value = tree_get(item, member);
        bool plain = tree_kind(value) == JSTR || tree_kind(value) == JNUM;
        if (plain && str_eq(value->text, wanted)) {
            return item;
        }
    }
    return NULL;
}

static const struct tree *jsonpath_bracket(struct jsonpath_scan *w, const struct tree *at)
{
    size_t end = str_starts(w->rest, STR("[?(")) ? str_find(w->rest, STR(")]"))
                                                 : str_find_char(w->rest, ']');
    if (end == SIZE_MAX) {
        w->broken = true;
        return NULL;
    }
    struct str inner = str_sub(w->rest, 1, end - 1);
    bool filter = str_cut_prefix(inner, STR("?("), &inner);
    jsonpath_skip(w, end + (filter ? 2 : 1));
    if (filter) {
        return filter_item(at, inner, &w->broken);
    }
    uint32_t i;
    if (str_eq(inner, STR("*"))) {
        return tree_first(at);
    }
    if (str_to_u32(inner, &i)) {
        return tree_kind(at) == JARR ? tree_index(at, i) : NULL;
    }
    return tree_get(at, jsonpath_unquote(inner));
}

/* One name or bracket further. */
static const struct tree *jsonpath_step(struct jsonpath_scan *w, const struct tree *at)
{
    char name[NAME_MAX_BYTES];
    if (w->rest.p[0] == '[') {
        return jsonpath_bracket(w, at);
    }
    jsonpath_skip(w, 1);
    struct str key = jsonpath_take_name(w, name);
    return key.n > 0 ? tree_get(at, key) : at;
}

struct str jsonpath_inner(struct str text)
{
    struct str inner = str_trim(text);
    bool braces = inner.n >= 2 && inner.p[0] == '{' && inner.p[inner.n - 1] == '}';
    return braces ? str_trim(str_sub(inner, 1, inner.n - 2)) : inner;
}

bool jsonpath_valid(struct str path)
{
    struct jsonpath_scan w = { .rest = path };
    if (path.n == 0 || path.p[0] != '.') {
        return false;
    }
    while (w.rest.n > 0 && !w.broken) {
        (void)jsonpath_step(&w, NULL); /* only whether it can be read */
    }
    return !w.broken;
}

const struct tree *jsonpath_find(const struct tree *object, struct str path)
{
    struct jsonpath_scan w = { .rest = path };
    const struct tree *at = object;
    if (path.n == 0 || path.p[0] != '.') {
        return NULL;
    }
    while (w.rest.n > 0 && at != NULL && !w.broken) {
        at = jsonpath_step(&w, at);
    }
    return w.broken ? NULL : at;
}
