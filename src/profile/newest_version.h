/*
 * newest_version: the newest of many versions, and how many holders it has, as they come and go.
 *
 * Only the newest is kept. When its last holder goes, the next newest is unknown (`lost`), and the
 * caller, who knows all of them, adds them again. Texts that are not versions are ignored.
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

/* Returns whether the newest version has changed. */
bool newest_version_add(struct newest_version *n, struct str text);
void newest_version_remove(struct newest_version *n, struct str text);
static inline bool newest_version_is_lost(const struct newest_version *n)
{
    return n->holders == 0 && n->text.n > 0;
}
