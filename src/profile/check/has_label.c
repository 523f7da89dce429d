/* hasLabel: the node has the label, with the configured value if there is one. */
#include "profile/check/check_plugin.h"

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct check_key_config *key = check_prepared(in, index);
    check_key_run(in, key, "label", node_edit_label(in->edit, key->key), ret);
}

const struct check_plugin check_has_label = {
    .name = "hasLabel",
    .prepare = check_key_prepare,
    .run = run,
};
