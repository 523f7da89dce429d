/* rules_hook: when the pre-drain hook is attached to a Machine, and on which facts it is removed.
 */
#include "kinds/keys.h"
#include "bridge/rules_internal.h"

usec_t rules_hold_end(const struct rules_case *c)
{
    const struct machine *m = c->machine;
    usec_t most = m->hold_max != 0 ? m->hold_max : c->options->hold_max;
    usec_t start = m->hooks_wait_since > 0 ? m->hooks_wait_since : m->deleted_at;
    usec_t end;
    if (!m->deleting || start <= 0 || most <= 0 || most == USEC_NEVER) {
        return USEC_NEVER;
    }
    if (__builtin_add_overflow(start, most, &end) ||
        __builtin_add_overflow(end, c->options->skew, &end)) {
        return USEC_NEVER;
    }
    return end;
}

static bool hook_unreachable_over(const struct rules_case *c)
{
    return c->sight == RULES_NODE_UNKNOWN && c->options->unreachable_max > 0 &&
           c->facts->unreachable_for >= c->options->unreachable_max;
}

/* The facts that let a deletion go on, the first one that holds (B1). */
static bool hook_deletion_free(const struct rules_case *c, enum rules_why *ret)
{
    if (rules_deletion_approved(c)) {
        *ret = RULES_WHY_APPROVED;
    } else if (c->cluster == NULL || c->cluster->deleting) {
        *ret = RULES_WHY_CLUSTER_DELETED;
    } else if (c->sight == RULES_NODE_ABSENT && !c->options->missing_holds) {
        *ret = RULES_WHY_NODE_MISSING;
    } else if (hook_unreachable_over(c)) {
        *ret = RULES_WHY_UNREACHABLE;
    } else if (c->facts->wall >= rules_hold_end(c)) {
        *ret = RULES_WHY_HOLD_OVER;
    } else {
        return false;
    }
    return true;
}

/* True when there is to be no hook, and why; false when it comes or stays. */
static bool hook_goes(const struct rules_case *c, enum rules_why *ret)
{
    const struct machine *m = c->machine;
    if (!m->enabled) {
        *ret = RULES_WHY_NOT_ENABLED;
        return true;
    }
    /* The hook was removed once, and does not come back, even if somebody attaches it again
     * (B2). Only here the strict mode differs from the original, which stops a drain that has
     * begun when the approval is removed. */
    if (m->deleting && m->released.p != NULL) {
        *ret = rules_why_find(m->released);
        return true;
    }
    if (c->options->strict_approval && c->node != NULL && c->node->approve_deletion) {
        *ret = RULES_WHY_APPROVED; /* whether it is being deleted or not */
        return true;
    }
    if (m->deleting && hook_deletion_free(c, ret)) {
        return true;
    }
    if (c->node != NULL && !c->managed && !c->options->eager) {
        *ret = RULES_WHY_ENGINE_ABSENT;
        return true;
    }
    return false;
}

struct str rules_why_text(const struct rules_case *c, enum rules_why why)
{
    struct str node = c->machine->node;
    struct str cluster = c->machine->cluster;
    switch (why) {
    case RULES_WHY_APPROVED:
        return arena_printf(c->out, "the deletion of Node '" STR_FMT "' is approved",
                            STR_ARG(node));
    case RULES_WHY_NOT_ENABLED:
        return STR("the Machine is not enabled");
    case RULES_WHY_CLUSTER_DELETED:
        return arena_printf(c->out, "Cluster '" STR_FMT "' is being deleted, or gone",
                            STR_ARG(cluster));
    case RULES_WHY_NODE_MISSING:
        return arena_printf(c->out,
                            "Node '" STR_FMT "' does not exist in cluster '" STR_FMT "' any more",
                            STR_ARG(node), STR_ARG(cluster));
    case RULES_WHY_UNREACHABLE:
        return arena_printf(c->out, "cluster '" STR_FMT "' has not answered for the time allowed",
                            STR_ARG(cluster));
    case RULES_WHY_HOLD_OVER:
        return STR("the deletion was held for as long as its time limit allows");
    case RULES_WHY_ENGINE_ABSENT:
        return arena_printf(c->out, "no maintenance engine manages Node '" STR_FMT "'",
                            STR_ARG(node));
    default:
        return STR("it was released before");
    }
}

/* A Warning if the hook goes without an approval. */
static void hook_warn(struct rules_case *c, enum rules_why why, struct str because)
{
    if (why == RULES_WHY_NODE_MISSING) {
        rules_event(c, RULES_EVENT_NODE_MISSING, because, RULES_WITH_MACHINE);
    } else if (why == RULES_WHY_UNREACHABLE) {
        rules_event(c, RULES_EVENT_UNREACHABLE, because, RULES_WITH_MACHINE);
    } else if (why == RULES_WHY_HOLD_OVER) {
        rules_event(c, RULES_EVENT_HOLD_OVER, because, RULES_WITH_MACHINE);
    }
}

static void hook_remove(struct rules_case *c, enum rules_why why)
{
    const struct machine *m = c->machine;
    struct meta_patch *e = &c->verdict->machine;
    c->hook = false;
    c->not_held = m->deleting;
    c->not_held_why = why;
    bool first = m->deleting && m->released.p == NULL;
    /* Also if somebody else has removed the hook before: it must not come back when the approval
     * goes. */
    if (first && (m->hook || (m->enabled && why == RULES_WHY_APPROVED))) {
        meta_patch_set(e, false, KEY_RELEASED, rules_why_name(why));
    }
    if (!m->hook) {
        return;
    }
    meta_patch_remove(e, false, KEY_HOOK);
    struct str because = rules_why_text(c, why);
    rules_event(c, RULES_EVENT_HOOK_RELEASED,
                arena_printf(c->out, "hook removed: " STR_FMT, STR_ARG(because)),
                RULES_WITH_MACHINE);
    if (first) {
        hook_warn(c, why, because);
    }
}

static bool hook_comes(const struct rules_case *c)
{
    if (c->machine->hook || c->cluster == NULL) {
        return false;
    }
    return c->options->eager || c->managed;
}

void rules_hook(struct rules_case *c)
{
    const struct machine *m = c->machine;
    enum rules_why why = RULES_WHY_RELEASED;
    c->hook = m->hook;
    if (hook_goes(c, &why)) {
        hook_remove(c, why);
        return;
    }
    if (hook_comes(c)) {
        c->hook = true;
        meta_patch_set(&c->verdict->machine, false, KEY_HOOK, KEY_HOOK_VALUE);
        rules_event(c, RULES_EVENT_HOOK_ATTACHED,
                    STR("hook attached: a deletion waits until the maintenance engine approves it"),
                    RULES_WITH_MACHINE);
    }
    if (!m->deleting || !c->hook) {
        return;
    }
    rules_wake(c, rules_hold_end(c));
    if (c->sight == RULES_NODE_UNKNOWN && c->facts->unreachable_for > 0 &&
        c->options->unreachable_max > 0) {
        rules_wake_in(c, c->options->unreachable_max - c->facts->unreachable_for);
    }
}
