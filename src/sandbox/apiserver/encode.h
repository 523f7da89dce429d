/*
 * encode: objects on their way out: as themselves, as rows of a table, or as metadata alone; in the
 * version that was asked for.
 */
#pragma once

#include "sandbox/apiserver/apiserver_internal.h"

struct show {
    struct apiserver *server;
    const struct kind *kind; /* what was asked for */
    enum output output;
    struct str include_object; /* of tables: "", None, Metadata, Object */
    bool no_columns;           /* of tables: they were sent before */
};

/* One object; `rv` 0 keeps the object's own version. Shared text is not copied. */
struct str show_event(const struct show *show, const struct object *o, uint64_t rv,
                      struct arena *out);
/* The object of a bookmark, already in the form of its kind. */
struct str show_bookmark(const struct show *show, struct tree *object, struct arena *out);

struct show_list {
    struct object **items;
    uint32_t n;
    uint64_t rv;
    struct str continue_token; /* "" = the list ends here */
    bool remaining_known;
    int64_t remaining;
};

struct str show_list(const struct show *show, const struct show_list *list, struct arena *out);
/* An object that is stored nowhere, in its stored form. */
struct str show_tree(const struct show *show, struct tree *object, struct arena *out);
