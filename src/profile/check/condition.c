/* A condition of the node has the status. */
#include "profile/check/check_plugin.h"

struct condition {
    struct str type;
    struct str status;
};

static const void *prepare(const struct check_setup *setup)
{
    struct condition *plan = ARENA_NEW(setup->out, struct condition);
    plan->type = check_value(setup, "type")->text;
    plan->status = check_value(setup, "status")->text;
    return plan;
}

static void explain(const struct check_input *in, const struct condition *plan, struct str status,
                    struct check_verdict *ret)
{
    struct check_info info;
    if (status.p == NULL) {
        ret->info =
            check_info_reason(in->out, arena_printf(in->out, "condition " STR_FMT " not present",
                                                    STR_ARG(plan->type)));
        ret->reason =
            arena_printf(in->out, "the node has no condition " STR_FMT, STR_ARG(plan->type));
        return;
    }
    check_info_begin(&info);
    jw_pair(&info.json, "current", status);
    jw_pair(&info.json, "expected", plan->status);
    ret->info = check_info_end(&info, in->out);
    ret->reason = arena_printf(in->out, "condition " STR_FMT " is " STR_FMT, STR_ARG(plan->type),
                               STR_ARG(check_quote(in->out, status)));
    if (ret->answer != CHECK_PASS) {
        ret->reason = arena_printf(in->out, STR_FMT ", not " STR_FMT, STR_ARG(ret->reason),
                                   STR_ARG(check_quote(in->out, plan->status)));
    }
}

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct condition *plan = check_prepared(in, index);
    struct str status = node_condition(in->subject->node, plan->type);
    ret->answer = status.p != NULL && str_eq(status, plan->status) ? CHECK_PASS : CHECK_FAIL;
    if (in->explain) {
        explain(in, plan, status, ret);
    }
}

const struct check_plugin check_condition = {
    .name = "condition",
    .prepare = prepare,
    .run = run,
};
