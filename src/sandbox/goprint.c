#include "sandbox/goprint.h"

static void print(struct buf *b, const struct tree *value);

/* Go prints maps in the order of their keys. */
static void print_map(struct buf *b, const struct tree *map)
{
    const struct tree *last = NULL;
    buf_add(b, STR("map["));
    for (uint32_t i = 0; i < map->n; i++) {
        const struct tree *next = NULL;
        TREE_EACH (map, member) {
            if ((last == NULL || str_cmp(member->key, last->key) > 0) &&
                (next == NULL || str_cmp(member->key, next->key) < 0)) {
                next = member;
            }
        }
        buf_add(b, i > 0 ? STR(" ") : STR(""));
        buf_add(b, next->key);
        buf_add_char(b, ':');
        print(b, next);
        last = next;
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
