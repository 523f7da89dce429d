/* condition: a condition of the node has the configured status. */
#include "profile/check/check_plugin.h"

const void *check_condition_prepare(const struct check_prepare_input *input)
{
    struct check_condition_config *prepared = ARENA_NEW(input->out, struct check_condition_config);
    prepared->type = check_value(input, "type")->text;
    prepared->status = check_value(input, "status")->text;
    return prepared;
}

static void explain(const struct check_input *in, const struct check_condition_config *prepared,
                    const char *whose, struct str status, struct check_verdict *ret)
{
    struct check_info info;
    if (status.p == NULL) {
        ret->info =
            check_info_reason(in->out, arena_printf(in->out, "condition " STR_FMT " not present",
                                                    STR_ARG(prepared->type)));
        ret->reason = arena_printf(in->out, "the %s has no condition " STR_FMT, whose,
                                   STR_ARG(prepared->type));
        return;
    }
    check_info_begin(&info);
    jw_pair(&info.json, "current", status);
    jw_pair(&info.json, "expected", prepared->status);
    ret->info = check_info_end(&info, in->out);
    ret->reason = arena_printf(in->out, "condition " STR_FMT " is " STR_FMT,
                               STR_ARG(prepared->type), STR_ARG(check_quote_text(in->out, status)));
    if (ret->answer != CHECK_PASS) {
        ret->reason = arena_printf(in->out, STR_FMT ", not " STR_FMT, STR_ARG(ret->reason),
                                   STR_ARG(check_quote_text(in->out, prepared->status)));
    }
}

void check_condition_run(const struct check_input *in,
                         const struct check_condition_config *prepared, const char *whose,
                         struct str status, struct check_verdict *ret)
{
    ret->answer = status.p != NULL && str_eq(status, prepared->status) ? CHECK_PASS : CHECK_FAIL;
    if (in->explain) {
        explain(in, prepared, whose, status, ret);
    }
}

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct check_condition_config *prepared = check_prepared(in, index);
    check_condition_run(in, prepared, "node", node_condition(in->edit->node, prepared->type), ret);
}

const struct check_plugin check_condition = {
    .name = "condition",
    .prepare = check_condition_prepare,
    .run = run,
};
