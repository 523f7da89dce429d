/*
 * drain_rule_watch: the MachineDrainRules of the management cluster, and the rulebook that they are
 * for each Machine that asks for something.
 */
#include "bridge/bridge_internal.h"
#include "bridge/drain_rule.h"

/* ── what is watched ───────────────────────────────────────────────────────────────────────── */

/* Machines whose Node is asked for something decide again; of one namespace, or of all. */
static void codex_mark(struct bridge *b, struct str space)
{
    MAP_EACH (&b->yards, entry) {
        struct yard *y = map_item_value(entry);
        if (space.n > 0 && !str_eq(y->space, space)) {
            continue;
        }
        LIST_EACH (&y->berths, link) {
            struct berth *at = CONTAINER_OF(link, struct berth, link);
            if (machine_asks(berth_machine(at))) {
                berth_mark(at);
            }
        }
    }
}

void codex_on_change(void *ctx, struct store_item *item, const void *before UNUSED)
{
    struct bridge *b = ctx;
    struct str space;
    struct str name;
    (void)str_cut(item->name, STR("/"), &space, &name); /* stores name their items so */
    b->codex.sorted = false;
    codex_mark(b, space);
}

void codex_on_gone(void *ctx, struct store_item *item)
{
    codex_on_change(ctx, item, NULL);
}

static int codex_status(const struct codex *k)
{
    return k->supply.failing ? k->supply.reflector.status : 0;
}

/* A list that is not allowed any more is not what the rules are now; one that merely fails is as
 * good as that of the Machines. */
static bool codex_known(const struct codex *k)
{
    return k->absent || (k->supply.synced && codex_status(k) != 403);
}

/* Whether there are rules to go by has changed. */
static void codex_settle(struct bridge *b)
{
    struct codex *k = &b->codex;
    bool known = codex_known(k);
    if (known != k->known || k->absent != k->empty) {
        k->known = known;
        k->empty = k->absent;
        codex_mark(b, STR_NONE);
        bridge_wake(b);
    }
}

void codex_on_news(void *ctx)
{
    struct bridge *b = ctx;
    struct codex *k = &b->codex;
    if (supply_well(&k->supply)) {
        k->absent = false;
        k->missed_at = 0;
        k->warned = false;
    }
    codex_settle(b);
}

/* Once may be a server that has just begun; it is asked again and again all the same. */
void codex_on_trouble(void *ctx, const struct err *err)
{
    struct bridge *b = ctx;
    struct codex *k = &b->codex;
    usec_t now = loop_now(b->loop);
    if (codex_status(k) == 404) {
        k->missed_at = k->missed_at == 0 ? now : k->missed_at;
        k->absent = k->absent || now >= k->missed_at + CODEX_ABSENT_AFTER;
    }
    if (bridge_logs(b) && !k->warned) {
        log_warn(b->log, "drain rules of the management cluster", KV_ERR(err));
    }
    k->warned = true;
    codex_settle(b);
}

void codex_start(struct bridge *b, struct str path)
{
    struct codex *k = &b->codex;
    k->absent = false;
    k->missed_at = 0;
    k->warned = false;
    supply_start(&k->supply, path);
    codex_settle(b);
}

void codex_done(struct bridge *b)
{
    supply_done(&b->codex.supply);
    arena_done(&b->codex.memory);
}

bool codex_ready(const struct bridge *b, struct str *ret_why)
{
    const struct codex *k = &b->codex;
    if (!k->supply.failing || codex_status(k) == 404) {
        return true;
    }
    *ret_why = str_from(k->supply.trouble.msg);
    return false;
}

/* ── for one Machine ───────────────────────────────────────────────────────────────────────── */

static int codex_compare(const void *left, const void *right)
{
    const struct store_item *const *a = left;
    const struct store_item *const *b = right;
    return str_cmp((*a)->name, (*b)->name);
}

/* By namespace and name: those of one namespace stand together, and in the order that counts. */
static void codex_sort(struct codex *k)
{
    if (k->sorted) {
        return;
    }
    arena_reset(&k->memory);
    k->n = 0;
    k->rules =
        ARENA_ARRAY(&k->memory, const struct store_item *, MAX(store_count(&k->supply.store), 1u));
    MAP_EACH (&k->supply.store.items, entry) {
        k->rules[k->n++] = map_item_value(entry);
    }
    qsort(k->rules, k->n, sizeof(*k->rules), codex_compare);
    k->sorted = true;
}

/* Where the rules begin whose names begin so, or would. */
static uint32_t codex_first(const struct codex *k, struct str prefix)
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

static void codex_gather(struct codex *k, const struct berth *at, struct arena *out,
                         struct drain_rules *ret)
{
    const struct machine *m = berth_machine(at);
    const struct cluster *cluster = yard_cluster(at->yard);
    const struct drainrule_case whose = {
        .machine = m->labels,
        .cluster = cluster == NULL ? STR_NONE : cluster->labels,
    };
    bool all = mutated(at->bridge->config.mutations, MUTATION_RULES_OF_ALL);
    struct str prefix = all ? STR("") : arena_concat(out, m->space, STR("/"));
    codex_sort(k);
    uint32_t first = codex_first(k, prefix);
    uint32_t n = 0;
    while (first + n < k->n && str_starts(k->rules[first + n]->name, prefix)) {
        n++;
    }
    const struct drainrule **rules = ARENA_ARRAY(out, const struct drainrule *, MAX(n, 1u));
    for (uint32_t i = 0; i < n; i++) {
        rules[i] = k->rules[first + i]->object;
    }
    drainrule_book(rules, n, &whose, out, ret);
}

void berth_book(const struct berth *at, struct arena *out, struct berth_book *ret)
{
    struct codex *k = &at->bridge->codex;
    *ret = (struct berth_book){ .asked = machine_asks(berth_machine(at)), .known = codex_known(k) };
    if (!ret->asked) {
        return;
    }
    if (!ret->known) {
        ret->trouble = k->supply.failing
                           ? arena_printf(out, "the MachineDrainRules cannot be listed: %s",
                                          k->supply.trouble.msg)
                           : STR("the MachineDrainRules are being listed");
        return;
    }
    if (!k->absent) {
        codex_gather(k, at, out, &ret->book);
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    drain_rules_print(&ret->book, &text);
    ret->text = arena_str(out, buf_str(&text));
    struct err err = { 0 };
    bool too_many = ret->book.error.n == 0 && str_starts(ret->text, STR("{"));
    if (too_many && drain_rules_parse(ret->text, out, &ret->book, &err) < 0) {
        ret->book.error = arena_str(out, str_from(err.msg));
    }
}
