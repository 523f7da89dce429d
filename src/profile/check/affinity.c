/* affinity: nodes without pods that prefer operational nodes go first, to move such pods once. */
#include "profile/check/check_plugin.h"

static const void *prepare(const struct check_prepare_input *input)
{
    struct check_affinity_config *prepared = ARENA_NEW(input->out, struct check_affinity_config);
    prepared->operational = check_value(input, "minOperational")->number;
    return prepared;
}

static void want_pods(const struct check_input *in, uint32_t index, struct str node, bool live,
                      struct check_verdict *ret)
{
    check_want(
        in, ret,
        &(struct facts_want){ .kind = FACTS_AFFINITY, .index = index, .node = node, .live = live });
}

static void fail_for_node(const struct check_input *in, struct str node, struct check_verdict *ret)
{
    check_fail_with(in, ret, "failed to check if node " STR_FMT " has affinity pods: " STR_FMT,
                    STR_ARG(str_sub(node, 0, 64)), STR_ARG(facts_affinity(in->facts, node).error));
}

static void set_text(const struct check_input *in, struct str info, struct str reason,
                     struct check_verdict *ret)
{
    ret->info = info.n > 0 ? check_info_reason(in->out, info) : STR("");
    ret->reason = reason;
}

static void explain_all_have(const struct check_input *in, uint32_t n, struct check_verdict *ret)
{
    uint32_t kept = fleet_unwatched_pods(in->fleet, in->profile, in->facts);
    struct str last =
        kept > 0 ? arena_printf(in->out, ", %u of them when they were last looked at", kept)
                 : STR("");
    set_text(in, STR(""),
             arena_printf(in->out,
                          "all %u waiting nodes have pods that prefer operational ones" STR_FMT, n,
                          STR_ARG(last)),
             ret);
}

/* Called for a node that has such pods itself: the sum's `without` is another node. */
static void check_other_nodes(const struct check_input *in, uint32_t index,
                              struct check_verdict *ret)
{
    struct profile_counts_pods pods;
    uint32_t n = fleet_waiting_pods(in->fleet, in->profile, in->facts, &pods);
    if (pods.without != NULL) {
        struct str name = pods.without->name;
        ret->answer = CHECK_FAIL;
        /* A node that is not watched may have got such pods by now: its pods are asked for, so
         * that no other node waits for it in vain. */
        if (!pods.without_live) {
            want_pods(in, index, name, /* live= */ true, ret);
        }
        if (in->explain) {
            set_text(in, arena_printf(in->out, "pods without affinity on: " STR_FMT, STR_ARG(name)),
                     arena_printf(in->out, "node " STR_FMT " goes first: its pods do not mind",
                                  STR_ARG(name)),
                     ret);
        }
        return;
    }
    /* Each of these nodes asks for its own pods, too. */
    for (uint32_t i = 0; i < pods.unknown_n; i++) {
        want_pods(in, index, pods.unknown[i]->name, /* live= */ false, ret);
    }
    if (pods.broken != NULL) {
        fail_for_node(in, pods.broken->name, ret);
        return;
    }
    ret->answer = pods.unknown_n > 0 && !in->granted ? CHECK_PENDING : CHECK_PASS;
    if (in->explain && pods.unknown_n > 0) {
        set_text(in, STR(""), STR("the pods of other nodes are not known yet"), ret);
    } else if (in->explain) {
        explain_all_have(in, n, ret);
    }
}

static void explain_unknown(const struct check_input *in, struct check_verdict *ret)
{
    set_text(in, STR(""),
             arena_printf(in->out,
                          "the node's pods are not known yet: they are looked at when one of %u "
                          "watches is free",
                          FACTS_WATCHES_MAX),
             ret);
}

/* A kept answer is good enough for waiting: the controller reads the pods again before it lets the
 * node go. */
static void explain_none(const struct check_input *in, const struct facts_affinity *own,
                         struct check_verdict *ret)
{
    struct str kept = own->live
                          ? STR("")
                          : arena_printf(in->out,
                                         ", as of " STR_FMT "; its pods are looked at again "
                                         "before it goes",
                                         STR_ARG(check_time_text(in->out, own->asked,
                                                                 timestamp_to_usec(in->now), 0)));
    set_text(in, STR("no pods with affinity"),
             arena_concat(in->out, STR("the node has no pods that prefer operational nodes"), kept),
             ret);
}

static void check_own_pods(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    struct str self = in->edit->name;
    struct facts_affinity own = facts_affinity(in->facts, self);
    ret->reads_pods = true;
    if (!own.known) {
        want_pods(in, index, self, /* live= */ false, ret);
    }
    if (own.error.n > 0) {
        fail_for_node(in, self, ret);
        return;
    }
    if (own.has) {
        check_other_nodes(in, index, ret);
        return;
    }
    /* A node that holds a grant keeps it while its watch starts again. */
    ret->answer = own.known || in->granted ? CHECK_PASS : CHECK_PENDING;
    if (in->explain && own.known) {
        explain_none(in, &own, ret);
    } else if (in->explain) {
        explain_unknown(in, ret);
    }
}

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct check_affinity_config *prepared = check_prepared(in, index);
    if (in->state != PROFILE_STATE_REQUIRED) {
        check_fail_with(in, ret,
                        "affinity check plugin failed, node " STR_FMT
                        " is not in maintenance-required but " STR_FMT " state",
                        STR_ARG(str_sub(in->edit->name, 0, 64)),
                        STR_ARG(profile_state_name(in->state)));
        return;
    }
    uint32_t operational = fleet_operational(in->fleet, in->profile);
    if (prepared->operational <= 0 || (int64_t)operational < prepared->operational) {
        check_own_pods(in, index, ret);
        return;
    }
    ret->answer = CHECK_PASS;
    if (in->explain) {
        set_text(in, STR("minOperational exceeded"),
                 arena_printf(in->out, "%u nodes are operational, %lld are enough", operational,
                              (long long)prepared->operational),
                 ret);
    }
}

const struct check_plugin check_affinity = {
    .name = "affinity",
    .prepare = prepare,
    .run = run,
};
