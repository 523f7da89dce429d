/*
 * newest_version_version: the newest version of many, and how many there are of it, as they come
 * and go.
 *
 * Only the newest is kept. When the last of it goes, the next one is unknown: it is `lost`, and
 * whoever knows all of them counts anew. Texts that are no versions are as if they were not there.
 * Versions that differ in their build only are equally new.
 */
#pragma once

#include "base/buf.h"
#include "format/semver.h"

struct newest_version {
    struct buf text;
    struct semver version; /* of `text` */
    uint32_t holders;
};

void newest_version_done(struct newest_version *n);
void newest_version_reset(struct newest_version *n);

/* Answers whether it is another one now. */
bool newest_version_add(struct newest_version *n, struct str text);
void newest_version_remove(struct newest_version *n, struct str text);
static inline bool newest_version_is_lost(const struct newest_version *n)
{
    return n->holders == 0 && n->text.n > 0;
}
