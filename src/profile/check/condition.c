/* condition: a condition of the node has the configured status. */
#include "profile/check/check_plugin.h"

struct condition {
    struct str type;
    struct str status;
};

static const void *prepare(const struct check_prepare_input *input)
{
    struct condition *prepared = ARENA_NEW(input->out, struct condition);
    prepared->type = check_value(input, "type")->text;
    prepared->status = check_value(input, "status")->text;
    return prepared;
}

static void explain(const struct check_input *in, const struct condition *prepared,
                    struct str status, struct check_verdict *ret)
{
    struct check_info info;
    if (status.p == NULL) {
        ret->info =
            check_info_reason(in->out, arena_printf(in->out, "condition " STR_FMT " not present",
                                                    STR_ARG(prepared->type)));
        ret->reason =
            arena_printf(in->out, "the node has no condition " STR_FMT, STR_ARG(prepared->type));
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

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct condition *prepared = check_prepared(in, index);
    struct str status = node_condition(in->edit->node, prepared->type);
    ret->answer = status.p != NULL && str_eq(status, prepared->status) ? CHECK_PASS : CHECK_FAIL;
    if (in->explain) {
        explain(in, prepared, status, ret);
    }
}

const struct check_plugin check_condition = {
    .name = "condition",
    .prepare = prepare,
    .run = run,
};
