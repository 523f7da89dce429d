/*
 * What becomes of a pod, by the rules of its drain; and what a caller may ask of a drain under way.
 */
#include "base/alloc.h"
#include "drain/drain_internal.h"

/* What has finished runs nowhere: nobody misses it, whoever made it and whatever it kept. */
static enum pod_fate pod_fate_of_others(const struct drain *d, const struct drain_pod *pod,
                                        enum drain_wait *ret_wait)
{
    uint32_t rules = d->forcing ? 0 : d->spec.flags;
    if (pod->finished) {
        bool goes = d->drain_rules.given || (d->spec.flags & DRAIN_EVICT_FINISHED) != 0;
        return goes ? POD_FATE_GOES : POD_FATE_STAYS;
    }
    if ((rules & DRAIN_FORBID_UNMANAGED) != 0 && !pod->managed) {
        *ret_wait = DRAIN_WAIT_UNMANAGED;
        return POD_FATE_FORBIDDEN;
    }
    if ((rules & DRAIN_FORBID_EMPTYDIR) != 0 && pod->has_emptydir) {
        *ret_wait = DRAIN_WAIT_EMPTYDIR;
        return POD_FATE_FORBIDDEN;
    }
    return POD_FATE_GOES;
}

static enum pod_fate pod_fate_of_daemonset(const struct drain *d, const struct drain_pod *pod,
                                           enum drain_wait *ret_wait)
{
    /* Its controller would put it there again at once, so not even force helps. */
    bool forbidden = (d->spec.flags & DRAIN_FORBID_DAEMONSET) != 0 && !d->forcing && !pod->finished;
    *ret_wait = forbidden ? DRAIN_WAIT_DAEMONSET : DRAIN_WAIT_NONE;
    return forbidden ? POD_FATE_FORBIDDEN : POD_FATE_STAYS;
}

/* Force goes on without what cannot be known, but not because it is not known yet: a rule may skip
 * the pod. */
static bool pod_fate_is_unknown(const struct drain *d, int asked)
{
    bool soon =
        asked == -ERR_NOTFOUND && drains_await_namespaces(d->drains, loop_now(d->drains->loop));
    return asked < 0 && (!d->forcing || soon);
}

static enum drain_pod_label pod_fate_label(const struct drain *d, const struct drain_pod *pod)
{
    bool counts = d->drain_rules.given || (d->spec.flags & DRAIN_USE_POD_LABEL) != 0;
    return counts ? pod->drain_label : DRAIN_LABEL_NONE;
}

/* Of a DaemonSet that counts as such: Cluster API sends finished pods away, whoever made them. */
static bool pod_fate_is_daemonset(const struct drain *d, const struct drain_pod *pod)
{
    return pod->daemonset && !(d->drain_rules.given && pod->finished);
}

enum pod_fate drain_pod_fate(const struct drain_pod_state *p, enum drain_wait *ret_wait)
{
    const struct drain *d = p->drain;
    struct drain_pod *pod = drain_pod_of(p);
    const struct drain_rule *rule = NULL;
    enum drain_pod_label drain_label = pod_fate_label(d, pod);
    bool meant = d->spec.pods == NULL || selector_match(d->spec.pods, drain_pod_lookup, pod);
    if (pod->mirror || !meant || drain_label == DRAIN_LABEL_SKIP) {
        return POD_FATE_STAYS;
    }
    if (pod_fate_is_daemonset(d, pod)) {
        return pod_fate_of_daemonset(d, pod, ret_wait);
    }
    if (pod_fate_is_unknown(d, drain_find_rule(p, &rule))) {
        *ret_wait = DRAIN_WAIT_RULES;
        return POD_FATE_FORBIDDEN;
    }
    if (rule != NULL && rule->behavior == DRAIN_RULE_SKIP) {
        return POD_FATE_STAYS;
    }
    bool waits = drain_label == DRAIN_LABEL_WAIT_COMPLETED ||
                 (rule != NULL && rule->behavior == DRAIN_RULE_WAIT_COMPLETED);
    if (waits && pod->finished && !d->drain_rules.given) {
        return POD_FATE_STAYS;
    }
    if (waits && !d->forcing) {
        *ret_wait = DRAIN_WAIT_COMPLETION;
        return POD_FATE_WAITED;
    }
    return pod_fate_of_others(d, pod, ret_wait);
}

void drain_force(struct drain *d)
{
    if (!d->forcing) {
        d->forcing = true;
        d->spec.force = true;
        d->spec.eviction_timeout = 0;
        d->spec.deletion_timeout = DRAIN_FORCE_TIMEOUT;
        drain_mark(d);
    }
}

void drain_observe_only(struct drain *d)
{
    if (!d->observing) {
        d->observing = true;
        drain_mark(d);
    }
}

void drain_set_unreachable(struct drain *d, bool unreachable)
{
    if (d->unreachable != unreachable) {
        d->unreachable = unreachable;
        drain_mark(d);
    }
}

bool drain_wait_is_expected(enum drain_wait wait)
{
    return wait == DRAIN_WAIT_COMPLETION || wait == DRAIN_WAIT_ORDER;
}

uint32_t drain_waiting_pods(const struct drain *d, struct arena *out, struct drain_waiting_pod *ret,
                            uint32_t max)
{
    CLEANUP(buf_done)
    struct buf reason = { 0 };
    uint32_t n = 0;
    for (int expected = 0; expected <= 1; expected++) {
        LIST_EACH (&d->pod_states, link) {
            const struct drain_pod_state *p = CONTAINER_OF(link, struct drain_pod_state, link);
            if (p->wait == DRAIN_WAIT_NONE || drain_wait_is_expected(p->wait) != (expected == 1) ||
                n++ >= max) {
                continue;
            }
            buf_reset(&reason);
            drain_explain(p, &reason);
            ret[n - 1] = (struct drain_waiting_pod){
                .namespace = arena_str(out, drain_namespace(p->item)),
                .pod = arena_str(out, drain_name(p->item)),
                .wait = p->wait,
                .reason = arena_str(out, buf_str(&reason)),
            };
        }
    }
    return n;
}

/* It is left where it is on purpose, be it meant or not. */
static bool pod_fate_is_skipped(const struct drain_pod_state *p)
{
    const struct drain *d = p->drain;
    const struct drain_pod *pod = drain_pod_of(p);
    const struct drain_rule *rule = NULL;
    if (pod->mirror || pod_fate_is_daemonset(d, pod) ||
        pod_fate_label(d, pod) == DRAIN_LABEL_SKIP) {
        return true;
    }
    int r = drain_find_rule(p, &rule);
    return r == 0 && rule != NULL && rule->behavior == DRAIN_RULE_SKIP;
}

void drain_each_volume_claim(const struct drain *d,
                             void (*fn)(void *ctx, struct str namespace, struct str claim),
                             void *ctx)
{
    LIST_EACH (&d->pod_states, link) {
        const struct drain_pod_state *p = CONTAINER_OF(link, struct drain_pod_state, link);
        const struct drain_pod *pod = drain_pod_of(p);
        bool skipped = pod->claim_count > 0 && pod_fate_is_skipped(p);
        for (uint32_t i = 0; skipped && i < pod->claim_count; i++) {
            fn(ctx, drain_namespace(p->item), pod->claims[i]);
        }
    }
}
