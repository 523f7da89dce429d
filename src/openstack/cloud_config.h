/*
 * cloud_config: the file `cloudprovider.conf` by which programs in a cluster reach OpenStack: INI
 * with a section [Global].
 *
 * Names of sections and keys are the same in any case; a value may stand in double quotes, with \"
 * and \\ within; ';' and '#' begin a comment, at the beginning of a line or behind a space. Of a
 * key that comes twice the last one counts. Keys of other programs are passed over. No message
 * shows a value.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#define CLOUD_CONFIG_LINES_MAX 1000u /* it has ten */

struct cloud_config {
    struct str auth_url;
    struct str username;
    struct str password;
    struct str region;
    struct str domain_name; /* the user's */
    struct str tenant_id;   /* the project's id */
};

/* Texts live in `out`, which is to be wiped. Errors have the line; -ERR_INVALID also when auth-url,
 * username, password or tenant-id is missing. */
NODISCARD
int cloud_config_parse(struct str text, struct arena *out, struct cloud_config *ret,
                       struct err *err);
