/* Whatever a Machine, a Cluster, a MachineDrainRule or a Node's metadata hold, they are read;
 * reading twice gives the same, what is kept stays within its limits, and a rule makes a rulebook
 * that can be read. */
#include "bridge/cluster.h"
#include "bridge/drain_rule.h"
#include "bridge/machine.h"
#include "bridge/workload_node.h"
#include "tests/fuzz/target.h"

static const void *read_object(const struct store_kind *kind, const struct jval *object,
                               struct arena *a)
{
    struct err err = { 0 };
    void *ret = NULL;
    int r = kind->project(NULL, object, a, &ret, &err);
    ASSERT(r == 0 && ret != NULL);
    return ret;
}

static void check_machine(const struct machine *m)
{
    const struct str kept[] = {
        m->namespace,   m->name,       m->uid,        m->cluster,    m->node,
        m->provider_id, m->infra_kind, m->infra_name, m->hook_value, m->released,
        m->granted,     m->status,     m->power,      m->power_mode,
    };
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        ASSERT(kept[i].n <= MACHINE_TEXT_MAX && (kept[i].p != NULL || kept[i].n == 0));
    }
    ASSERT(m->deleted_at == 0 || m->deleting);
    ASSERT(m->hooks_wait_since >= 0 && m->hold_max >= 0);
    ASSERT(m->skip || !m->skip_empty);
    ASSERT(m->hook || m->hook_value.p == NULL);
    ASSERT(m->labels.n == 0 || machine_has_request(m));
}

static void check_peer(const struct workload_node *p)
{
    const struct str kept[] = {
        p->uid,     p->deletion_request, p->maintenance_request,      p->deletion_approved_for,
        p->machine, p->namespace,        p->maintenance_approved_for,
    };
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        ASSERT(kept[i].n <= WORKLOAD_NODE_TEXT_MAX && (kept[i].p != NULL || kept[i].n == 0));
    }
    ASSERT(p->managed || !p->operational);
    ASSERT(workload_node_marked(p) || (!p->machine_deleted && p->deletion_request.p == NULL));
}

/* What a rule says is found again in the book that the Node gets, whomever it means. */
static void check_rule(const struct drainrule *rule, const struct machine *m,
                       const struct cluster *c)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    CLEANUP(buf_done)
    struct buf again = { 0 };
    const struct drainrule_case whose = { .machine = m->labels, .cluster = c->labels };
    struct drain_rules drain_rules;
    struct drain_rules read;
    struct err err = { 0 };
    drainrule_collect(&rule, 1, &whose, &tmp, &drain_rules);
    ASSERT((drain_rules.error.n > 0) == (rule->error.n > 0));
    ASSERT(drain_rules.error.n > 0 || (drain_rules.n == 1) == drainrule_matches(rule, &whose));
    drain_rules_print(&drain_rules, &text);
    int r = drain_rules_parse(buf_str(&text), &tmp, &read, &err);
    ASSERT(r == 0);
    ASSERT(read.error.n > 0 ||
           (read.n == drain_rules.n && read.by_namespace == drain_rules.by_namespace));
    drain_rules_print(&read, &again);
    ASSERT(str_eq(buf_str(&text), buf_str(&again)));
}

FUZZ_TARGET(text)
{
    static const struct store_kind *const kinds[] = { &machine_kind, &cluster_kind,
                                                      &workload_node_kind, &drainrule_kind };
    const void *first[ARRAY_LEN(kinds)];
    CLEANUP(arena_done)
    struct arena input = { 0 };
    CLEANUP(arena_done)
    struct arena kept = { 0 };
    {
        CLEANUP(arena_done)
        struct arena again = { 0 };
        struct err err = { 0 };
        const struct jval *object = NULL;
        if (json_parse(text, JSON_GO, &input, &object, &err) < 0) {
            return;
        }
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
            first[i] = read_object(kinds[i], object, &kept);
            ASSERT(kinds[i]->same(first[i], read_object(kinds[i], object, &again)));
        }
    }
    arena_done(&input); /* a projection holds no view into the object */
    check_machine(first[0]);
    check_peer(first[2]);
    check_rule(first[3], first[0], first[1]);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        ASSERT(kinds[i]->same(first[i], first[i]));
    }
}
