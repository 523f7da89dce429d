/*
 * metadata_patch: what is to change in an object's labels and annotations, and the merge patch that
 * does it.
 *
 * A patch names exactly the keys that change and carries the resourceVersion of the object on which
 * it was decided, so it never overwrites what its decision had not seen.
 */
#pragma once

#include "base/buf.h"

#define META_PATCH_MAX 16u /* more keys than one object of the bridge has */

struct meta_patch_key {
    struct str key;
    struct str value;
    bool label; /* otherwise an annotation */
    bool remove;
};

struct meta_patch {
    struct meta_patch_key keys[META_PATCH_MAX];
    uint32_t n;
};

/* Texts are borrowed. A key that is there already gets the newer value. */
void meta_patch_set(struct meta_patch *e, bool label, struct str key, struct str value);
void meta_patch_remove(struct meta_patch *e, bool label, struct str key);
/* NULL: it does not speak of that key. */
const struct meta_patch_key *meta_patch_find(const struct meta_patch *e, bool label,
                                             struct str key);

/* {"metadata":{"resourceVersion":"7","labels":{…},"annotations":{…}}}; labels and annotations only
 * where there are any. `version` 0 writes none. */
void meta_patch_print(const struct meta_patch *e, uint64_t version, struct buf *out);
