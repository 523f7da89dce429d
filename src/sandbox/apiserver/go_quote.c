#include "sandbox/apiserver/go_quote.h"

#include "format/goprintf.h"

static void go_print_value(struct buf *b, const struct tree *value);

/* The member whose key follows `last` (NULL: the smallest). Go prints maps in the order of keys. */
static const struct tree *map_next_sorted(const struct tree *map, const struct tree *last)
{
    const struct tree *next = NULL;
    TREE_EACH (map, member) {
        if ((last == NULL || str_cmp(member->key, last->key) > 0) &&
            (next == NULL || str_cmp(member->key, next->key) < 0)) {
            next = member;
        }
    }
    return next;
}

static void go_print_map(struct buf *b, const struct tree *map)
{
    const struct tree *member = NULL;
    buf_add(b, STR("map["));
    for (uint32_t i = 0; i < map->n; i++) {
        member = map_next_sorted(map, member);
        buf_add(b, i > 0 ? STR(" ") : STR(""));
        buf_add(b, member->key);
        buf_add_char(b, ':');
        go_print_value(b, member);
    }
    buf_add_char(b, ']');
}

static void go_print_value(struct buf *b, const struct tree *value)
{
    bool first = true;
    switch (tree_kind(value)) {
    case JNULL:
        buf_add(b, STR("<nil>"));
        break;
    case JBOOL:
        buf_add(b, value->truth ? STR("true") : STR("false"));
        break;
    case JNUM:
    case JSTR:
        buf_add(b, value->text);
        break;
    case JARR:
        buf_add_char(b, '[');
        TREE_EACH (value, item) {
            buf_add(b, first ? STR("") : STR(" "));
            go_print_value(b, item);
            first = false;
        }
        buf_add_char(b, ']');
        break;
    case JOBJ:
        go_print_map(b, value);
        break;
    }
}

struct str go_print(struct arena *out, const struct tree *value)
{
    CLEANUP(buf_done)
    struct buf b = { 0 };
    go_print_value(&b, value);
    return arena_str(out, buf_str(&b));
}

struct str go_quote(struct arena *out, struct str text)
{
    CLEANUP(buf_done)
    struct buf b = { 0 };
    goprintf_quote(&b, text, '"', /* ascii= */ false);
    return arena_str(out, buf_str(&b));
}

static struct tree *tree_sorted(struct arena *a, const struct tree *value)
{
    struct tree *out = tree_clone(a, value);
    if (value->kind == JOBJ) {
        out = tree_obj(a);
        const struct tree *member = NULL;
        for (uint32_t i = 0; i < value->n; i++) {
            member = map_next_sorted(value, member);
            tree_set(a, out, member->key, tree_sorted(a, member));
        }
    } else if (value->kind == JARR) {
        out = tree_arr(a);
        TREE_EACH (value, item) {
            tree_add(out, tree_sorted(a, item));
        }
    }
    return out;
}

struct str go_quote_value(struct arena *out, const struct tree *value)
{
    return value->kind == JSTR ? go_quote(out, value->text)
                               : tree_json(out, tree_sorted(out, value));
}
