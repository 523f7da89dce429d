/*
 * kubernikusCount: the cluster has as many nodes as its Kubernikus pools are to have. The answer is
 * the same for every node, so Kubernikus is asked once for all.
 *
 * An answer that is older than the refresh interval does not count, and an error of Kubernikus is
 * an error here: an outage must not pass for a complete cluster.
 */
#include "profile/check/check_plugin.h"

static const void *prepare(const struct check_prepare_input *input)
{
    struct str *cluster = ARENA_NEW(input->out, struct str);
    *cluster = check_value(input, "cluster")->text;
    return cluster;
}

static void explain(const struct check_input *in, const struct facts_prometheus *fact,
                    struct check_verdict *ret)
{
    if (!fact->known) {
        ret->reason = STR("Kubernikus has not answered yet");
    } else if (ret->answer == CHECK_PENDING) {
        ret->reason = STR("Kubernikus is asked again: its last answer is too old");
    } else if (ret->answer == CHECK_ERROR) {
        ret->reason = STR("it cannot be told from what Kubernikus answered");
    } else {
        uint32_t n = fleet_count(in->fleet);
        ret->info = check_info_reason(
            in->out, ret->answer == CHECK_PASS
                         ? STR("found equal or more nodes than specified by nodepool")
                         : STR("found less nodes than specified by nodepool"));
        ret->reason = arena_printf(in->out, "the cluster has %u node%s, its pools are to have %.0f",
                                   n, n == 1 ? "" : "s", fact->value);
    }
}

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    struct facts_prometheus fact = facts_prometheus(in->facts, index);
    bool due = check_needs_refresh(in, fact.known, fact.asked, fact.answered, ret);
    bool stale = due && !in->granted && !mutated(in->mutations, MUTATION_STALE_ANSWERS);
    if (!fact.known) {
        ret->answer = CHECK_PENDING;
    } else if (fact.error.n > 0) {
        check_fail_with(in, ret, STR_FMT, STR_ARG(fact.error));
    } else if (stale) {
        ret->answer = CHECK_PENDING;
    } else {
        ret->answer = (double)fleet_count(in->fleet) >= fact.value ? CHECK_PASS : CHECK_FAIL;
    }
    if (due) {
        check_want(in, ret, &(struct facts_want){ .kind = FACTS_POOLS, .index = index });
    }
    if (in->explain) {
        explain(in, &fact, ret);
    }
}

const struct check_plugin check_kubernikus_count = {
    .name = "kubernikusCount",
    .prepare = prepare,
    .run = run,
};
