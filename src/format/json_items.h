/*
 * json_items: the items of a Kubernetes list, one at a time, without a tape of the whole.
 *
 * Give it a complete list document; each step finds the next item's bytes by counting braces
 * outside strings. The caller parses one item, keeps what it needs and throws the rest away, so a
 * page of 500 nodes never exists as 500 parsed objects.
 */
#pragma once

#include "format/json.h"

struct json_items {
    struct str text;
    size_t at;
    bool in_items;
    bool done;
    struct str metadata; /* the list's "metadata" object, when it has been passed */
};

void json_items_init(struct json_items *s, struct str list);
/* 1 and `*ret_item`, 0 at the end (then `metadata` is known), or an error for text that is no list.
 */
NODISCARD
int json_items_next(struct json_items *s, struct str *ret_item, struct err *err);
