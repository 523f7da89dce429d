/* anyLabel: any node of the cluster has the label. */
#include "profile/check/check_plugin.h"

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct check_key_config *key = check_prepared(in, index);
    uint32_t n = fleet_any_label(in->fleet, index);
    ret->answer = n > 0 ? CHECK_PASS : CHECK_FAIL;
    if (in->explain) {
        struct str wanted = key->key;
        if (key->value.n > 0) {
            wanted =
                arena_printf(in->out, STR_FMT "=" STR_FMT, STR_ARG(key->key), STR_ARG(key->value));
        }
        ret->reason =
            arena_printf(in->out, "%u of %u nodes %s the label " STR_FMT, n, fleet_count(in->fleet),
                         n == 1 ? "has" : "have", STR_ARG(wanted));
    }
}

const struct check_plugin check_any_label = {
    .name = "anyLabel",
    .prepare = check_key_prepare,
    .run = run,
};
