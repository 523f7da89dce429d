/*
 * The rulebook of a drain's node: who decides about a pod, and whose turn it is.
 */
#include "drain/drain_internal.h"
#include "format/label_pack.h"
#include "kinds/keys.h"

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static void node_rules_read(struct drain_node_rules *b, struct str text)
{
    b->given = true;
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
    if (b->given == given && (!given || str_eq(b->text, text))) {
        return;
    }
    struct arena old = b->memory;
    *b = (struct drain_node_rules){ .memory = { .first = 256 } };
    if (given) {
        node_rules_read(b, text);
    }
    arena_done(&old);
    /* In this order: a watch that both books need goes on. */
    if (b->rules.by_namespace) {
        drains_watch_namespaces(d->drains);
    }
    if (by_namespace) {
        drains_unwatch_namespaces(d->drains);
    }
    d->volumes_changed = true; /* other pods may stay, and so their claims */
    d->view.done = false;      /* by the rules before it was, perhaps */
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

int drain_find_rule(const struct drain_pod_state *p, const struct drain_rule **ret)
{
    const struct drain *d = p->drain;
    struct str *namespace = NULL;
    *ret = NULL;
    if (!d->drain_rules.given || drain_pod_of(p)->drain_label != DRAIN_LABEL_NONE) {
        return 0;
    }
    if (drain_rules_unusable(d)) {
        return -ERR_INVALID;
    }
    if (d->drain_rules.rules.by_namespace) {
        namespace = drains_find_namespace(d->drains, drain_namespace(p->item));
    }
    const struct drain_rule_pod pod = {
        .pod = drain_pod_lookup,
        .pod_ctx = drain_pod_of(p),
        .namespace = namespace != NULL ? label_pack_find : NULL,
        .namespace_ctx = namespace,
    };
    return drain_rules_find(&d->drain_rules.rules, &pod, ret);
}

/* ── whose turn it is ──────────────────────────────────────────────────────────────────────── */

int32_t drain_pod_order(const struct drain_pod_state *p)
{
    const struct drain_rule *rule = NULL;
    int r = drain_find_rule(p, &rule);
    return r == 0 && rule != NULL ? rule->order : 0;
}

bool drain_pod_is_gone(const struct drain_pod_state *p, usec_t now)
{
    const struct drain_pod *pod = drain_pod_of(p);
    return p->gone || (pod->deleting && p->drain->unreachable &&
                       now >= drain_after(p->deleting_at, pod->deletion_grace));
}

/* Whoever is on its way counts until its object is gone. */
void drain_update_order(struct drain *d, usec_t now)
{
    d->current_order = INT32_MAX;
    d->forbidden = false;
    LIST_EACH (&d->pod_states, link) {
        const struct drain_pod_state *p = CONTAINER_OF(link, struct drain_pod_state, link);
        enum drain_wait wait = DRAIN_WAIT_NONE;
        enum pod_fate fate = drain_pod_fate(p, &wait);
        if (fate == POD_FATE_STAYS || drain_pod_is_gone(p, now)) {
            continue;
        }
        if (d->drain_rules.given) {
            d->current_order = MIN(d->current_order, drain_pod_order(p));
        }
        /* One that goes bars nobody, unless nobody can tell whether others may go before it has. */
        bool going = drain_pod_of(p)->deleting && wait != DRAIN_WAIT_RULES;
        d->forbidden = d->forbidden || (fate == POD_FATE_FORBIDDEN && !going);
    }
}

bool drain_pod_has_turn(const struct drain_pod_state *p)
{
    const struct drain *d = p->drain;
    return !d->drain_rules.given || d->forcing || drain_pod_order(p) <= d->current_order ||
           mutated(d->drains->config.mutations, MUTATION_ORDER_IGNORED);
}
