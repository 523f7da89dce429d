/* The node has the label. */
#include "profile/check/check_plugin.h"

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct check_key_config *key = check_prepared(in, index);
    struct str value = node_edit_label(in->edit, key->key);
    bool there = value.p != NULL;
    ret->answer =
        there && (key->value.n == 0 || str_eq(value, key->value)) ? CHECK_PASS : CHECK_FAIL;
    if (!in->explain) {
        return;
    }
    if (!there) {
        ret->info = check_info_reason(
            in->out, arena_printf(in->out, "label " STR_FMT " not present", STR_ARG(key->key)));
        ret->reason = arena_printf(in->out, "the node has no label " STR_FMT, STR_ARG(key->key));
    } else if (ret->answer == CHECK_PASS) {
        ret->reason = arena_printf(in->out, "label " STR_FMT " is " STR_FMT, STR_ARG(key->key),
                                   STR_ARG(check_quote_text(in->out, value)));
    } else {
        ret->reason = arena_printf(in->out, "label " STR_FMT " is " STR_FMT ", not " STR_FMT,
                                   STR_ARG(key->key), STR_ARG(check_quote_text(in->out, value)),
                                   STR_ARG(check_quote_text(in->out, key->value)));
    }
}

const struct check_plugin check_has_label = {
    .name = "hasLabel",
    .prepare = check_key_prepare,
    .run = run,
};
