/*
 * chain: trigger and notify chains: names of instances, joined by "&&", run in order.
 *
 * "&&" is the only operator: "||", "!" and parentheses are characters like any other, since names
 * of triggers and notifications have always been free to use them. Only spaces are trimmed.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "format/instance_names.h"

#define CHAIN_MAX 256u /* links; the longest chains in use have five */

struct chain {
    uint32_t n;
    struct chain_link {
        struct str name;
        uint32_t index; /* of the instance, as struct instance_names gave it */
    } * links;
};

/* The empty text is the empty chain. All text of the result is copied into `out`; err->pos is the
 * place within `text`. */
NODISCARD
int chain_parse(struct str text, const struct instance_names *names, struct arena *out,
                struct chain *ret, struct err *err);

/* The canonical text. */
void chain_print(const struct chain *chain, struct buf *out);
