#include "drain/pod_policy.h"

#include "format/label_pack.h"

static bool policy_has(const struct pod_policy *policy, uint32_t flag)
{
    return (policy->flags & flag) != 0;
}

/* The label of the pod itself comes before all rules. < 0: no rule can be named. */
static int policy_find_rule(const struct pod_policy *policy, const struct drain_pod *pod,
                            const struct str *namespace_labels, const struct drain_rule **ret)
{
    if (policy->rules == NULL || pod->drain_label != DRAIN_LABEL_NONE) {
        return 0;
    }
    if (policy->rules_unreadable || policy->rules->error.n > 0) {
        return -ERR_INVALID;
    }
    return drain_rules_find(policy->rules, &pod->labels, namespace_labels, ret);
}

/* A finished pod runs nowhere: nobody misses it, whoever made it and whatever data it kept. */
static struct pod_verdict policy_evict(const struct pod_policy *policy, const struct drain_pod *pod,
                                       struct pod_verdict v)
{
    if (pod->finished) {
        bool goes = policy->rules != NULL || policy_has(policy, DRAIN_EVICT_FINISHED);
        v.fate = goes ? POD_FATE_GOES : POD_FATE_STAYS;
    } else if (policy_has(policy, DRAIN_FORBID_UNMANAGED) && !policy->forcing && !pod->managed) {
        v.wait = DRAIN_WAIT_UNMANAGED;
    } else if (policy_has(policy, DRAIN_FORBID_EMPTYDIR) && !policy->forcing && pod->has_emptydir) {
        v.wait = DRAIN_WAIT_EMPTYDIR;
    }
    v.fate = v.wait != DRAIN_WAIT_NONE ? POD_FATE_FORBIDDEN : v.fate;
    return v;
}

struct pod_verdict pod_policy_decide(const struct pod_policy *policy, const struct drain_pod *pod,
                                     const struct str *namespace_labels)
{
    struct pod_verdict v = { .fate = POD_FATE_STAYS };
    struct str labels = pod->labels; /* a lookup's context is not const */
    int found = policy_find_rule(policy, pod, namespace_labels, &v.rule);
    enum drain_rule_behavior behavior = v.rule != NULL ? v.rule->behavior : DRAIN_RULE_DRAIN;
    bool label_counts = policy->rules != NULL || policy_has(policy, DRAIN_USE_POD_LABEL);
    bool label_skips = label_counts && pod->drain_label == DRAIN_LABEL_SKIP;
    bool label_waits = label_counts && pod->drain_label == DRAIN_LABEL_WAIT_COMPLETED;
    /* Cluster API sends finished pods away, whoever made them. */
    bool daemonset = pod->daemonset && !(policy->rules != NULL && pod->finished);
    bool meant = policy->pods == NULL || selector_match(policy->pods, label_pack_find, &labels);
    v.keeps_volumes = pod->mirror || label_skips || daemonset || behavior == DRAIN_RULE_SKIP;
    if (pod->mirror || !meant || label_skips) {
        return v;
    }
    if (daemonset) {
        /* Its controller would put the pod there again at once, so not even force evicts it. */
        if (policy_has(policy, DRAIN_FORBID_DAEMONSET) && !policy->forcing && !pod->finished) {
            v.fate = POD_FATE_FORBIDDEN;
            v.wait = DRAIN_WAIT_DAEMONSET;
        }
        return v;
    }
    /* Force goes on without rules that cannot be known. It does wait for labels of namespaces that
     * may still come: by them a rule may skip the pod. */
    if (found < 0 && (!policy->forcing || (found == -ERR_NOTFOUND && policy->namespaces_awaited))) {
        v.fate = POD_FATE_FORBIDDEN;
        v.wait = DRAIN_WAIT_RULES;
        return v;
    }
    bool waits = label_waits || behavior == DRAIN_RULE_WAIT_COMPLETED;
    if (behavior == DRAIN_RULE_SKIP || (waits && pod->finished && policy->rules == NULL)) {
        return v;
    }
    v.fate = POD_FATE_GOES;
    if (waits && !policy->forcing) {
        v.fate = POD_FATE_WAITED;
        v.wait = DRAIN_WAIT_COMPLETION;
        return v;
    }
    return policy_evict(policy, pod, v);
}
