/*
 * yaml: reading YAML 1.1 into the tape of json.h, with the place of every value.
 *
 * Scanning is libyaml's. Scalars mean what yaml.v2 makes of them (yaml_scalar.h), aliases are
 * copies,
 * "<<" merges mappings (keys written out win), names of members become strings. Refused: a name
 * that comes twice (unless asked for), names that are no scalars, an alias inside its own anchor,
 * more depth, values or work on merges than limits.h allows.
 */
#pragma once

#include "format/json.h"

struct ydoc {
    const struct jval *root;   /* never NULL: an empty document is null */
    const struct ymark *marks; /* of each cell of the tape */
};

struct ymark {
    struct pos pos;      /* the column counts characters */
    enum jkind key_kind; /* of a member's name, before it became a string */
};

/* The first document. Everything lives in `out`; `text` may go. */
NODISCARD
int ydoc_parse(struct str text, struct arena *out, struct ydoc *ret, struct err *err);
/* The same for files that yaml.v2 has read so far: of a name that comes twice the last one counts,
 * which is what jval_get answers. */
NODISCARD
int ydoc_parse_lenient(struct str text, struct arena *out, struct ydoc *ret, struct err *err);
/* The same for texts of strangers: anchors, aliases and "<<" are errors, so that the work is linear
 * in the size of the text. */
NODISCARD
int ydoc_parse_plain(struct str text, struct arena *out, struct ydoc *ret, struct err *err);
/* All documents of the stream; `*ret_n` may be 0. */
NODISCARD
int ydoc_parse_all(struct str text, struct arena *out, struct ydoc **ret, uint32_t *ret_n,
                   struct err *err);

/* Where a value of this document begins; line 0 for NULL. */
struct pos ydoc_pos(const struct ydoc *doc, const struct jval *v);
/* Where the name of a member begins. */
struct pos ydoc_key_pos(const struct ydoc *doc, const struct jval *member);
/* What the name of a member was: JSTR, or JBOOL for `yes: …`, JNUM for `1: …`. */
enum jkind ydoc_key_kind(const struct ydoc *doc, const struct jval *member);
