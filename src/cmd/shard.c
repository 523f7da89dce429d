#include "cmd/shard.h"

int shard_parse(struct str text, struct shard *ret, struct err *err)
{
    struct str index;
    struct str count;
    struct shard shard;
    if (text.n == 0) {
        *ret = (struct shard){ 0 };
        return 0;
    }
    if (!str_cut(text, STR("/"), &index, &count) || !str_to_u32(index, &shard.index) ||
        !str_to_u32(count, &shard.count) || shard.index >= shard.count ||
        shard.count > SHARDS_MAX) {
        return err_set(err, ERR_INVALID, "--shard '" STR_FMT "': want i/n with 0 <= i < n <= %u",
                       STR_ARG(text), SHARDS_MAX);
    }
    *ret = shard;
    return 0;
}
