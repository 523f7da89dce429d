#include "format/chain.h"

#include "format/json.h"

static struct str trim_spaces(struct str s)
{
    while (s.n > 0 && s.p[0] == ' ') {
        s = str_sub(s, 1, s.n - 1);
    }
    while (s.n > 0 && s.p[s.n - 1] == ' ') {
        s.n--;
    }
    return s;
}

/* The message quotes the piece as it was written, with its spaces: an empty one is then seen. */
static int chain_find(struct str text, struct str piece, const struct instance_names *names,
                      struct chain_link *ret, struct err *err)
{
    struct str name = trim_spaces(piece);
    uint32_t index = 0;
    if (!names->find(names->ctx, name, &index)) {
        int r = instance_names_unknown(names, piece, err);
        err->pos = json_pos(text, (size_t)((name.n > 0 ? name.p : piece.p) - text.p));
        return r;
    }
    *ret = (struct chain_link){ .name = name, .index = index };
    return 0;
}

int chain_parse(struct str text, const struct instance_names *names, struct arena *out,
                struct chain *ret, struct err *err)
{
    struct chain chain = { 0 };
    uint32_t cap = 0;
    struct str rest = text;
    bool more = text.n > 0;
    while (more) {
        struct str piece;
        more = str_cut(rest, STR("&&"), &piece, &rest);
        if (chain.n == CHAIN_MAX) {
            int r = err_set(err, ERR_LIMIT, "a chain has at most %u instances", CHAIN_MAX);
            err->pos = json_pos(text, (size_t)(piece.p - text.p));
            return r;
        }
        struct chain_link link = { 0 };
        int r = chain_find(text, piece, names, &link, err);
        if (r < 0) {
            return r;
        }
        ARENA_GROW(out, chain.links, chain.n, cap);
        link.name = arena_str(out, link.name);
        chain.links[chain.n++] = link;
    }
    *ret = chain;
    return 0;
}

void chain_print(const struct chain *chain, struct buf *out)
{
    for (uint32_t i = 0; i < chain->n; i++) {
        if (i > 0) {
            buf_add(out, STR(" && "));
        }
        buf_add(out, chain->links[i].name);
    }
}
