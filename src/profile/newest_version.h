/*
 * newest_version: the newest version of many, and how many there are of it, as they come and go.
 *
 * Only the newest is kept. When the last of it goes, the next one is unknown: it is `lost`, and
 * whoever knows all of them counts anew. Texts that are no versions are as if they were not there.
 * Versions that differ in their build only are equally new.
 */
#pragma once

#include "base/buf.h"
#include "format/semver.h"

struct newest {
    struct buf text;
    struct semver version; /* of `text` */
    uint32_t holders;
};

void newest_done(struct newest *n);
void newest_reset(struct newest *n);

/* Answers whether it is another one now. */
bool newest_add(struct newest *n, struct str text);
void newest_remove(struct newest *n, struct str text);
static inline bool newest_is_lost(const struct newest *n)
{
    return n->holders == 0 && n->text.n > 0;
}
