/*
 * The rules of a drain's node: reads them, applies them to the pods, and says whose turn it is.
 */
#include "drain/drain_internal.h"
#include "kinds/keys.h"

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static void node_rules_read(struct drain_node_rules *b, struct str text)
{
    b->text = arena_str(&b->memory, text);
    if (drain_rules_parse(text, &b->memory, &b->rules, &b->failure) < 0) {
        (void)err_wrap(&b->failure, "annotation '" STR_FMT "'", STR_ARG(KEY_DRAIN_RULES));
    }
}

void drain_set_rules(struct drain *d, struct str text)
{
    struct drain_node_rules *b = &d->drain_rules;
    bool by_namespace = b->rules.by_namespace;
    bool given = text.p != NULL;
    if (drain_has_rules(d) == given && (!given || str_eq(b->text, text))) {
        return;
    }
    struct arena old = b->memory;
    *b = (struct drain_node_rules){ .memory = { .first = 256 } };
    if (given) {
        node_rules_read(b, text);
    }
    arena_done(&old);
    /* In this order: a watch that both the old and the new rules need goes on. */
    if (b->rules.by_namespace) {
        drains_watch_namespaces(d->drains);
    }
    if (by_namespace) {
        drains_unwatch_namespaces(d->drains);
    }
    d->volumes_changed = true; /* other pods may stay, and so their claims */
    d->view.done = false;      /* it may have been done by the old rules only */
    drain_mark(d);
}

void drain_drop_rules(struct drain *d)
{
    if (d->drain_rules.rules.by_namespace) {
        drains_unwatch_namespaces(d->drains);
    }
    arena_done(&d->drain_rules.memory);
    d->drain_rules = (struct drain_node_rules){ 0 };
}

bool drain_rules_unusable(const struct drain *d)
{
    return d->drain_rules.failure.code != 0 || d->drain_rules.rules.error.n > 0;
}

/* ── who decides ───────────────────────────────────────────────────────────────────────────── */

struct pod_verdict drain_pod_verdict(const struct drain_pod_state *p)
{
    const struct drain *d = p->drain;
    const struct drains *ds = d->drains;
    bool by_namespace = d->drain_rules.rules.by_namespace;
    const struct pod_policy policy = {
        .flags = d->spec.flags,
        .forcing = d->forcing,
        .pods = d->spec.pods,
        .rules = drain_has_rules(d) ? &d->drain_rules.rules : NULL,
        .rules_unreadable = d->drain_rules.failure.code != 0,
        .namespaces_awaited = by_namespace && drains_await_namespaces(ds, loop_now(ds->loop)),
    };
    return pod_policy_decide(&policy, drain_pod_of(p),
                             by_namespace ? drains_find_namespace(ds, drain_namespace(p->item))
                                          : NULL);
}

/* ── whose turn it is ──────────────────────────────────────────────────────────────────────── */

static int32_t verdict_order(const struct pod_verdict *v)
{
    return v->rule != NULL ? v->rule->order : 0;
}

bool drain_pod_is_gone(const struct drain_pod_state *p, usec_t now)
{
    const struct drain_pod *pod = drain_pod_of(p);
    return p->gone || (pod->deleting && p->drain->unreachable &&
                       now >= drain_after(p->deleting_at, pod->deletion_grace));
}

/* A pod that is being deleted counts until its object is gone. */
void drain_update_order(struct drain *d, usec_t now)
{
    d->current_order = INT32_MAX;
    d->forbidden = false;
    LIST_EACH (&d->pod_states, link) {
        const struct drain_pod_state *p = CONTAINER_OF(link, struct drain_pod_state, link);
        struct pod_verdict v = drain_pod_verdict(p);
        if (v.fate == POD_FATE_STAYS || drain_pod_is_gone(p, now)) {
            continue;
        }
        d->current_order = MIN(d->current_order, verdict_order(&v));
        /* A pod that is being deleted bars no other, unless its rules are not known: by them the
         * others may have to stay until it is gone. */
        bool going = drain_pod_of(p)->deleting && v.wait != DRAIN_WAIT_RULES;
        d->forbidden = d->forbidden || (v.fate == POD_FATE_FORBIDDEN && !going);
    }
}

bool drain_pod_has_turn(const struct drain_pod_state *p, const struct pod_verdict *v)
{
    const struct drain *d = p->drain;
    return d->forcing || verdict_order(v) <= d->current_order ||
           mutated(d->drains->config.client->mutations, MUTATION_ORDER_IGNORED);
}
