/* hasAnnotation: the node has the annotation, with the configured value if there is one. */
#include "profile/check/check_plugin.h"

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct check_key_config *key = check_prepared(in, index);
    check_key_run(in, key, "annotation", node_edit_annotation(in->edit, key->key), ret);
}

const struct check_plugin check_has_annotation = {
    .name = "hasAnnotation",
    .prepare = check_key_prepare,
    .run = run,
};
