/*
 * payload_source: what is kept of a ConfigMap or Secret that payloads and windows may refer to.
 *
 * Of a Secret that is the hash of its data and the names of its keys: never a value. A ConfigMap
 * also keeps those of its values that are calendars. Both are looked for in the namespace of Jobs
 * alone, so nobody can have the controller read another one's.
 */
#pragma once

#include "base/arena.h"
#include "format/json.h"
#include "kinds/store_kind.h"

#define PAYLOAD_SOURCE_KEYS_MAX 256u /* more than people write; the hash has all of them */

struct payload_calendar {
    struct str key;
    struct str text;
};

struct payload_source {
    struct str hash; /* of all data, in hexadecimal digits */
    const struct str *keys;
    uint32_t key_n;
    const struct payload_calendar *calendars;
    uint32_t calendar_n;
};

bool payload_source_has_key(const struct payload_source *s, struct str key);
/* NULL: it is not there, or is no calendar. */
const struct payload_calendar *payload_source_calendar(const struct payload_source *s,
                                                       struct str key);

/* For kube/store. */
extern const struct store_kind payload_config_map_kind;
extern const struct store_kind payload_secret_kind;
