/*
 * shard: which part of all Clusters one replica looks after, "2/4".
 */
#pragma once

#include "base/err.h"

#define SHARDS_MAX 64u /* a Lease and a leader each; one bridge serves thousands of Clusters */

struct shard {
    uint32_t index; /* from 0 */
    uint32_t count; /* 0 = there are no shards */
};

/* An empty text is no shard. */
NODISCARD
int shard_parse(struct str text, struct shard *ret, struct err *err);
