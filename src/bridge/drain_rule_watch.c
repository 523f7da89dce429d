/*
 * drain_rule_watch: watches the MachineDrainRules of the management cluster, and collects those
 * that apply to a Machine whose Node is asked for something.
 */
#include "bridge/bridge_internal.h"
#include "bridge/drain_rule.h"

/* ── what is watched ───────────────────────────────────────────────────────────────────────── */

/* Marks the Machines whose Node is asked for something; of one namespace, or of all (empty). */
static void drain_rule_watch_mark(struct bridge *b, struct str namespace)
{
    MAP_EACH (&b->by_cluster, entry) {
        struct cluster_state *cs = map_item_value(entry);
        if (namespace.n > 0 && !str_eq(cs->namespace, namespace)) {
            continue;
        }
        LIST_EACH (&cs->machines, link) {
            struct machine_state *ms = CONTAINER_OF(link, struct machine_state, link);
            if (machine_has_request(machine_object(ms))) {
                machine_mark(ms);
            }
        }
    }
}

static void drain_rule_watch_on_change(void *ctx, struct store_item *item,
                                       const void *before UNUSED)
{
    struct bridge *b = ctx;
    struct str namespace;
    struct str name;
    (void)str_cut(item->name, STR("/"), &namespace, &name); /* stores name their items so */
    b->drain_rules.sorted = false;
    drain_rule_watch_mark(b, namespace);
}

static void drain_rule_watch_on_gone(void *ctx, struct store_item *item)
{
    drain_rule_watch_on_change(ctx, item, NULL);
}

static int drain_rule_watch_status(const struct drain_rule_watch *k)
{
    return k->informer.failing ? k->informer.reflector.status : 0;
}

/* After a 403 the rules may have changed without our seeing it. With any other failure of the watch
 * the last list counts, as it does for Machines. */
static bool drain_rule_watch_known(const struct drain_rule_watch *k)
{
    return k->absent || (k->informer.synced && drain_rule_watch_status(k) != 403);
}

/* Marks the Machines if the rules became known, unknown or absent. */
static void drain_rule_watch_update(struct bridge *b)
{
    struct drain_rule_watch *k = &b->drain_rules;
    bool known = drain_rule_watch_known(k);
    if (known != k->known || k->absent != k->marked_absent) {
        k->known = known;
        k->marked_absent = k->absent;
        drain_rule_watch_mark(b, STR_NONE);
        bridge_wake(b);
    }
}

static void drain_rule_watch_on_update(void *ctx)
{
    struct bridge *b = ctx;
    struct drain_rule_watch *k = &b->drain_rules;
    if (informer_healthy(&k->informer)) {
        k->absent = false;
        k->missed_at = 0;
        k->warned = false;
    }
    drain_rule_watch_update(b);
}

/* The reflector goes on asking for a kind that is absent. */
static void drain_rule_watch_on_error(void *ctx, const struct err *err)
{
    struct bridge *b = ctx;
    struct drain_rule_watch *k = &b->drain_rules;
    usec_t now = loop_now(b->loop);
    if (drain_rule_watch_status(k) == 404) {
        k->absent = kind_is_absent(&k->missed_at, now) || k->absent;
    }
    if (!k->warned) {
        log_warn(b->log, "drain rules of the management cluster", KV_ERR(err));
    }
    k->warned = true;
    drain_rule_watch_update(b);
}

void drain_rule_watch_init(struct bridge *b)
{
    const struct informer_config config = {
        .client = &b->client,
        .kind = &drainrule_kind,
        .on_change = drain_rule_watch_on_change,
        .on_gone = drain_rule_watch_on_gone,
        .on_update = drain_rule_watch_on_update,
        .on_error = drain_rule_watch_on_error,
        .ctx = b,
    };
    informer_init(&b->drain_rules.informer, &config);
}

void drain_rule_watch_start(struct bridge *b, struct str path)
{
    struct drain_rule_watch *k = &b->drain_rules;
    k->absent = false;
    k->missed_at = 0;
    k->warned = false;
    informer_start(&k->informer, path);
    drain_rule_watch_update(b);
}

void drain_rule_watch_done(struct bridge *b)
{
    informer_done(&b->drain_rules.informer);
    arena_done(&b->drain_rules.memory);
}

bool drain_rule_watch_ready(const struct bridge *b, struct str *ret_why)
{
    const struct drain_rule_watch *k = &b->drain_rules;
    if (!k->informer.failing || drain_rule_watch_status(k) == 404) {
        return true;
    }
    *ret_why = str_from(k->informer.trouble.msg);
    return false;
}

/* ── for one Machine ───────────────────────────────────────────────────────────────────────── */

static int drain_rule_watch_compare(const void *left, const void *right)
{
    const struct store_item *const *a = left;
    const struct store_item *const *b = right;
    return str_cmp((*a)->name, (*b)->name);
}

/* By namespace and name, which is the order in which Cluster API applies them. */
static void drain_rule_watch_sort(struct drain_rule_watch *k)
{
    if (k->sorted) {
        return;
    }
    arena_reset(&k->memory);
    k->n = 0;
    k->rules = ARENA_ARRAY(&k->memory, const struct store_item *,
                           MAX(store_count(&k->informer.store), 1u));
    MAP_EACH (&k->informer.store.items, entry) {
        k->rules[k->n++] = map_item_value(entry);
    }
    qsort(k->rules, k->n, sizeof(*k->rules), drain_rule_watch_compare);
    k->sorted = true;
}

/* The index of the first rule whose name is not before `prefix`. */
static uint32_t drain_rule_watch_first(const struct drain_rule_watch *k, struct str prefix)
{
    uint32_t low = 0;
    uint32_t high = k->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp(k->rules[middle]->name, prefix) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void drain_rule_watch_collect(struct drain_rule_watch *k, const struct machine_state *ms,
                                     struct arena *out, struct drain_rules *ret)
{
    const struct machine *m = machine_object(ms);
    const struct cluster *cluster = cluster_object(ms->cluster);
    const struct drainrule_case whose = {
        .machine = m->labels,
        .cluster = cluster == NULL ? STR_NONE : cluster->labels,
    };
    bool all = mutated(ms->bridge->config.mutations, MUTATION_RULES_OF_ALL);
    struct str prefix = all ? STR("") : arena_concat(out, m->namespace, STR("/"));
    drain_rule_watch_sort(k);
    uint32_t first = drain_rule_watch_first(k, prefix);
    uint32_t n = 0;
    while (first + n < k->n && str_starts(k->rules[first + n]->name, prefix)) {
        n++;
    }
    const struct drainrule **rules = ARENA_ARRAY(out, const struct drainrule *, MAX(n, 1u));
    for (uint32_t i = 0; i < n; i++) {
        rules[i] = k->rules[first + i]->object;
    }
    drainrule_collect(rules, n, &whose, out, ret);
}

void machine_drain_rules(const struct machine_state *ms, struct arena *out,
                         struct machine_drain_rules *ret)
{
    struct drain_rule_watch *k = &ms->bridge->drain_rules;
    *ret = (struct machine_drain_rules){ .asked = machine_has_request(machine_object(ms)),
                                         .known = drain_rule_watch_known(k) };
    if (!ret->asked) {
        return;
    }
    if (!ret->known) {
        ret->trouble = k->informer.failing
                           ? arena_printf(out, "the MachineDrainRules cannot be listed: %s",
                                          k->informer.trouble.msg)
                           : STR("the MachineDrainRules are being listed");
        return;
    }
    if (!k->absent) {
        drain_rule_watch_collect(k, ms, out, &ret->rules);
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    drain_rules_print(&ret->rules, &text);
    ret->text = arena_str(out, buf_str(&text));
    struct err err = { 0 };
    bool too_many = ret->rules.error.n == 0 && str_starts(ret->text, STR("{"));
    if (too_many && drain_rules_parse(ret->text, out, &ret->rules, &err) < 0) {
        ret->rules.error = arena_str(out, str_from(err.msg));
    }
}
