#include "bridge/drain_rule.h"

#include "base/utf8.h"
#include "format/label_pack.h"

#define DRAINRULE_MACHINES_MAX 32u /* as Cluster API's own schema has it */

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static int drainrule_read_machines(const struct jval *machines, struct arena *out,
                                   struct drainrule *rule, struct err *err)
{
    if (jval_kind(machines) == JNULL) {
        return 0;
    }
    if (jval_kind(machines) != JARR || machines->n > DRAINRULE_MACHINES_MAX) {
        return err_set(err, ERR_INVALID, "spec.machines: a list of at most %u selectors is wanted",
                       DRAINRULE_MACHINES_MAX);
    }
    rule->machines = ARENA_ARRAY(out, struct drainrule_machines, MAX(machines->n, 1u));
    JVAL_EACH (machines, entry) {
        struct drainrule_machines *at = &rule->machines[rule->n];
        if (jval_kind(entry) != JOBJ) {
            return err_set(err, ERR_INVALID, "spec.machines[%u]: an object is wanted", rule->n);
        }
        if (drain_rule_read_selector(jval_get(entry, STR("selector")), out, &at->machines, err) <
            0) {
            return err_wrap(err, "spec.machines[%u].selector", rule->n);
        }
        if (drain_rule_read_selector(jval_get(entry, STR("clusterSelector")), out, &at->clusters,
                                     err) < 0) {
            return err_wrap(err, "spec.machines[%u].clusterSelector", rule->n);
        }
        rule->n++;
    }
    return 0;
}

/* All that decisions use, as one text to compare: the error, or the rule and its selectors. */
static void drainrule_describe(struct drainrule *rule, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    const struct drain_rules alone = { .rules = &rule->rule, .n = 1, .error = rule->error };
    drain_rules_print(&alone, &text);
    for (uint32_t i = 0; rule->error.n == 0 && i < rule->n; i++) {
        buf_add_char(&text, '\n');
        selector_print(&rule->machines[i].machines, &text);
        buf_add_char(&text, '\n');
        selector_print(&rule->machines[i].clusters, &text);
    }
    rule->text = arena_str(out, buf_str(&text));
}

static int drainrule_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                             void **ret, struct err *err UNUSED)
{
    struct drainrule *rule = ARENA_NEW(out, struct drainrule);
    const struct jval *spec = jval_get(object, STR("spec"));
    struct err wrong = { 0 };
    rule->name = arena_str(out, jval_str(jval_at(object, "metadata.name")));
    int r = drainrule_read_machines(jval_get(spec, STR("machines")), out, rule, &wrong);
    if (r == 0) {
        r = drain_rule_read(rule->name, spec, out, &rule->rule, &wrong);
    }
    if (r < 0) {
        /* A long message is cut. The server would replace half a character, and the bridge would
         * write the annotation of the Node again and again. */
        struct str text = str_from(wrong.msg);
        rule->error = arena_str(out, str_sub(text, 0, utf8_find_invalid(text)));
    }
    drainrule_describe(rule, out);
    *ret = rule;
    return 0;
}

static bool drainrule_same(const void *left, const void *right)
{
    const struct drainrule *a = left;
    const struct drainrule *b = right;
    return str_eq(a->name, b->name) && str_eq(a->text, b->text);
}

const struct store_kind drainrule_kind = {
    .name = "machinedrainrule",
    .namespaced = true,
    .project = drainrule_project,
    .same = drainrule_same,
};

/* ── for one Machine ───────────────────────────────────────────────────────────────────────── */

bool drainrule_matches(const struct drainrule *rule, const struct drainrule_case *whose)
{
    struct str machine = whose->machine;
    struct str cluster = whose->cluster;
    for (uint32_t i = 0; i < rule->n; i++) {
        const struct drainrule_machines *at = &rule->machines[i];
        if (selector_match(&at->machines, label_pack_find, &machine) &&
            selector_match(&at->clusters, label_pack_find, &cluster)) {
            return true;
        }
    }
    return rule->n == 0;
}

void drainrule_collect(const struct drainrule *const *rules, uint32_t n,
                       const struct drainrule_case *whose, struct arena *out,
                       struct drain_rules *ret)
{
    *ret = (struct drain_rules){ .rules = ARENA_ARRAY(out, struct drain_rule, MAX(n, 1u)) };
    for (uint32_t i = 0; i < n; i++) {
        const struct drainrule *rule = rules[i];
        if (rule->error.n > 0) {
            *ret = (struct drain_rules){ .error = arena_printf(
                                             out, "MachineDrainRule '" STR_FMT "': " STR_FMT,
                                             STR_ARG(rule->name), STR_ARG(rule->error)) };
            return;
        }
        if (drainrule_matches(rule, whose)) {
            ret->by_namespace = ret->by_namespace || drain_rule_asks_namespaces(&rule->rule);
            ret->rules[ret->n++] = rule->rule;
        }
    }
}
