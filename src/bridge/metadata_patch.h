/*
 * metadata_patch: what is to change in an object's labels and annotations, and the merge patch that does it.
 *
 * A patch names exactly the keys that change and carries the resourceVersion of the object on which
 * it was decided, so it never overwrites what its decision had not seen.
 */
#pragma once

#include "base/buf.h"

#define EDIT_MAX 16u /* more keys than one object of the bridge has */

struct edit_key {
    struct str key;
    struct str value;
    bool label; /* otherwise an annotation */
    bool remove;
};

struct edit {
    struct edit_key keys[EDIT_MAX];
    uint32_t n;
};

/* Texts are borrowed. A key that is there already gets the newer value. */
void edit_set(struct edit *e, bool label, struct str key, struct str value);
void edit_remove(struct edit *e, bool label, struct str key);
/* NULL: it does not speak of that key. */
const struct edit_key *edit_find(const struct edit *e, bool label, struct str key);

/* {"metadata":{"resourceVersion":"7","labels":{…},"annotations":{…}}}; labels and annotations only
 * where there are any. `version` 0 writes none. */
void edit_print(const struct edit *e, uint64_t version, struct buf *out);
