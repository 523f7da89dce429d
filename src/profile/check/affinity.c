/* Nodes without pods that prefer operational nodes go first: such pods are moved once then. */
#include "profile/check/plugin.h"

/* Others' pods that one node asks for at a time. All nodes of a large fleet may be waiting, and
 * each looks at all others and asks for its own: together they know the rest soon enough. */
#define AFFINITY_UNKNOWN_MAX 32u
#define AFFINITY_STALE_MAX 32u
#define AFFINITY_WANTS_MAX (1 + AFFINITY_UNKNOWN_MAX + AFFINITY_STALE_MAX)

static const void *prepare(const struct check_setup *setup)
{
    int64_t *minimum = ARENA_NEW(setup->out, int64_t);
    *minimum = check_value(setup, "minOperational")->number;
    return minimum;
}

enum pods { PODS_UNKNOWN, PODS_WITH, PODS_WITHOUT, PODS_ERROR };

/* Whether the node runs such pods; wants to know it where that is due. */
static enum pods pods_of(const struct check_input *in, uint32_t index, struct str node,
                         struct check_verdict *ret)
{
    struct facts_affinity fact = facts_affinity(in->facts, node);
    bool stale = check_stale(in, fact.known, fact.asked, ret);
    if (stale && ret->want_n < (fact.known ? AFFINITY_STALE_MAX : AFFINITY_WANTS_MAX)) {
        check_want(in, ret,
                   &(struct facts_want){ .kind = FACTS_AFFINITY, .index = index, .node = node });
    }
    if (!fact.known) {
        ret->answer = CHECK_PENDING;
        return PODS_UNKNOWN;
    }
    if (fact.error.n > 0) {
        check_fail_with(in, ret, "failed to check if node " STR_FMT " has affinity pods: " STR_FMT,
                        STR_ARG(str_sub(node, 0, 64)), STR_ARG(fact.error));
        return PODS_ERROR;
    }
    return fact.has ? PODS_WITH : PODS_WITHOUT;
}

static void decide(const struct check_input *in, enum check_answer answer, struct str info,
                   struct str reason, struct check_verdict *ret)
{
    ret->answer = answer;
    if (in->explain) {
        ret->info = info.n > 0 ? check_info_reason(in->out, info) : STR("");
        ret->reason = reason;
    }
}

static void look_at_others(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    uint32_t n = 0;
    uint32_t others = 0;
    uint32_t unknown = 0;
    const struct store_item *const *waiting = fleet_waiting(in->fleet, in->profile, &n);
    for (uint32_t i = 0; i < n && unknown < AFFINITY_UNKNOWN_MAX; i++) {
        struct str name = waiting[i]->name;
        if (str_eq(name, in->subject->name)) {
            continue;
        }
        others++;
        switch (pods_of(in, index, name, ret)) {
        case PODS_ERROR:
            return;
        case PODS_UNKNOWN:
            unknown++;
            break;
        case PODS_WITHOUT:
            decide(in, CHECK_FAIL,
                   arena_printf(in->out, "pods without affinity on: " STR_FMT, STR_ARG(name)),
                   arena_printf(in->out, "node " STR_FMT " goes first: its pods do not mind",
                                STR_ARG(name)),
                   ret);
            return;
        case PODS_WITH:
            break;
        }
    }
    if (unknown > 0) {
        decide(in, CHECK_PENDING, STR(""), STR("the pods of other nodes are not known yet"), ret);
        return;
    }
    decide(in, CHECK_PASS, STR(""),
           arena_printf(in->out, "all of the %u other waiting nodes have such pods, too", others),
           ret);
}

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const int64_t *minimum = check_prepared(in, index);
    if (in->state != LABEL_STATE_REQUIRED) {
        check_fail_with(in, ret,
                        "affinity check plugin failed, node " STR_FMT
                        " is not in maintenance-required but " STR_FMT " state",
                        STR_ARG(str_sub(in->subject->name, 0, 64)),
                        STR_ARG(label_state_name(in->state)));
        return;
    }
    uint32_t operational = fleet_operational(in->fleet, in->profile);
    if (*minimum > 0 && (int64_t)operational >= *minimum) {
        decide(in, CHECK_PASS, STR("minOperational exceeded"),
               arena_printf(in->out, "%u nodes are operational, %lld are enough", operational,
                            (long long)*minimum),
               ret);
        return;
    }
    switch (pods_of(in, index, in->subject->name, ret)) {
    case PODS_WITHOUT:
        decide(in, CHECK_PASS, STR("no pods with affinity"),
               STR("the node has no pods that prefer operational nodes"), ret);
        return;
    case PODS_WITH:
        look_at_others(in, index, ret);
        return;
    case PODS_UNKNOWN:
        decide(in, CHECK_PENDING, STR(""), STR("the node's pods are not known yet"), ret);
        return;
    case PODS_ERROR:
        return;
    }
}

const struct check_plugin check_affinity = {
    .name = "affinity",
    .prepare = prepare,
    .run = run,
};
