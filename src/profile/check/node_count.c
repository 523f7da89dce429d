/* nodeCount: the cluster has enough nodes. */
#include "profile/check/check_plugin.h"

static const void *prepare(const struct check_prepare_input *input)
{
    int64_t *count = ARENA_NEW(input->out, int64_t);
    *count = check_value(input, "count")->number;
    return count;
}

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const int64_t *want = check_prepared(in, index);
    uint32_t n = fleet_count(in->fleet);
    ret->answer = (int64_t)n >= *want ? CHECK_PASS : CHECK_FAIL;
    if (!in->explain) {
        return;
    }
    struct check_info info;
    check_info_begin(&info);
    jw_pair_i64(&info.json, "current", n);
    jw_pair_i64(&info.json, "expected", *want);
    ret->info = check_info_end(&info, in->out);
    ret->reason = arena_printf(in->out, "the cluster has %u node%s, %lld are wanted", n,
                               n == 1 ? "" : "s", (long long)*want);
}

const struct check_plugin check_node_count = {
    .name = "nodeCount",
    .prepare = prepare,
    .run = run,
};
