#include "sandbox/apiserver/go_quote.h"

#include "base/utf8.h"

static void print(struct buf *b, const struct tree *value);

/* The member whose key follows `last` (NULL: the smallest). Go prints maps in the order of keys. */
static const struct tree *member_after(const struct tree *map, const struct tree *last)
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

static void print_map(struct buf *b, const struct tree *map)
{
    const struct tree *member = NULL;
    buf_add(b, STR("map["));
    for (uint32_t i = 0; i < map->n; i++) {
        member = member_after(map, member);
        buf_add(b, i > 0 ? STR(" ") : STR(""));
        buf_add(b, member->key);
        buf_add_char(b, ':');
        print(b, member);
    }
    buf_add_char(b, ']');
}

static void print(struct buf *b, const struct tree *value)
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
            print(b, item);
            first = false;
        }
        buf_add_char(b, ']');
        break;
    case JOBJ:
        print_map(b, value);
        break;
    }
}

struct str goprint(struct arena *out, const struct tree *value)
{
    CLEANUP(buf_done)
    struct buf b = { 0 };
    print(&b, value);
    return arena_str(out, buf_str(&b));
}

static void quote_point(struct buf *b, struct str piece, uint32_t point)
{
    static const char letters[] = "abtnvfr"; /* \a is 7, \r is 13 */
    if (point == '"' || point == '\\') {
        buf_printf(b, "\\%c", (char)point);
    } else if (point >= 7 && point <= 13) {
        buf_printf(b, "\\%c", letters[point - 7]);
    } else if (point < 0x20 || point == 0x7f) {
        buf_printf(b, "\\x%02x", point);
    } else {
        buf_add(b, piece);
    }
}

struct str goprint_quote(struct arena *out, struct str text)
{
    CLEANUP(buf_done)
    struct buf b = { 0 };
    buf_add_char(&b, '"');
    while (text.n > 0) {
        uint32_t point;
        size_t n = utf8_decode(text, &point);
        if (n == 0) {
            buf_printf(&b, "\\x%02x", (unsigned char)text.p[0]);
            n = 1;
        } else {
            quote_point(&b, str_sub(text, 0, n), point);
        }
        text = str_sub(text, n, text.n - n);
    }
    buf_add_char(&b, '"');
    return arena_str(out, buf_str(&b));
}

static struct tree *sorted(struct arena *a, const struct tree *value)
{
    struct tree *out = tree_clone(a, value);
    if (value->kind == JOBJ) {
        out = tree_obj(a);
        const struct tree *member = NULL;
        for (uint32_t i = 0; i < value->n; i++) {
            member = member_after(value, member);
            tree_set(a, out, member->key, sorted(a, member));
        }
    } else if (value->kind == JARR) {
        out = tree_arr(a);
        TREE_EACH (value, item) {
            tree_add(out, sorted(a, item));
        }
    }
    return out;
}

struct str goprint_value(struct arena *out, const struct tree *value)
{
    return value->kind == JSTR ? goprint_quote(out, value->text)
                               : tree_json(out, sorted(out, value));
}
