/*
 * podlist: the pods of one node, read a page at a time.
 *
 * For questions that are asked once in a while; what must know of every change watches instead.
 */
#pragma once

#include "base/buf.h"
#include "format/json.h"

#define PODLIST_PAGE                                                                               \
    100 /* a page of full pods is some 1 MB, and mostly the first one is enough                    \
         */

struct podlist_request {
    struct str node;
    struct str page; /* where the list goes on; empty = its beginning */
    bool cached;     /* what the server has at hand will do: it need not ask its storage */
};

/* The path of the request, percent-encoded. */
void podlist_add_path(struct buf *path, const struct podlist_request *request);

/* False: it has seen enough. */
typedef bool (*podlist_visit)(void *ctx, const struct jval *pod);

/* Visits the pods of an answer; `page` becomes where the list goes on, empty at its end or when
 * enough was seen. */
NODISCARD
int podlist_read(struct str list, podlist_visit visit, void *ctx, struct buf *page,
                 struct err *err);
