/*
 * encode: objects as a reply shows them: whole, as rows of a table, or as metadata alone, in the
 * API version that was asked for.
 */
#pragma once

#include "sandbox/apiserver/apiserver_internal.h"

struct encoder {
    struct apiserver *server;
    const struct kind *kind; /* what was asked for */
    enum reply_form form;
    struct str include_object; /* of tables: "", None, Metadata, Object */
    bool no_columns;           /* of tables: they were sent before */
};

/* One object; `rv` 0 keeps the object's own version. Shared text is not copied. */
struct str encode_event(const struct encoder *encoder, const struct object *o, uint64_t rv,
                        struct arena *out);
/* The object of a bookmark, already in the form of its kind. */
struct str encode_bookmark(const struct encoder *encoder, struct tree *object, struct arena *out);

struct encode_list {
    struct object **items;
    uint32_t n;
    uint64_t rv;
    struct str continue_token; /* "" = the list ends here */
    bool remaining_known;
    int64_t remaining;
};

struct str encode_list(const struct encoder *encoder, const struct encode_list *list,
                       struct arena *out);
/* An object that is stored nowhere, in its stored form. */
struct str encode_tree(const struct encoder *encoder, struct tree *object, struct arena *out);
