/* hypervisorCondition: a condition of the node's Hypervisor has the configured status. */
#include "profile/check/check_plugin.h"

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct hypervisor *h = NULL;
    if (check_find_hypervisor(in, ret, &h)) {
        const struct check_condition_config *prepared = check_prepared(in, index);
        check_condition_run(in, prepared, "hypervisor", hypervisor_condition(h, prepared->type),
                            ret);
    }
}

const struct check_plugin check_hypervisor_condition = {
    .name = "hypervisorCondition",
    .prepare = check_condition_prepare,
    .run = run,
};
