#include "tests/lib/machine_node_fixture.h"

#include "kinds/keys.h"
#include "drain/drain_rules.h"
#include "tests/check.h"

#define WALL SECONDS(1772360000) /* 2026-03-01T10:13:20Z */

void machine_node_init(struct machine_node_fixture *p)
{
    *p = (struct machine_node_fixture){
        .machine = {
            .namespace = STR("t"),
            .name = STR("m1"),
            .uid = STR("u-1"),
            .cluster = STR("c1"),
            .node = STR("n1"),
            .enabled = true,
            .hook = true,
            .hook_value = KEY_HOOK_VALUE,
        },
        .cluster = { .uid = STR("c-1"), .provisioned = true },
        .node = {
            .uid = STR("n-1"),
            .managed = true,
            .operational = true,
            .machine = STR("m1"),
            .namespace = STR("t"),
        },
        .facts = { .sight = RULES_NODE_SEEN, .drain_rules = STR("[]"), .wall = WALL },
    };
}

void machine_node_done(struct machine_node_fixture *p)
{
    arena_done(&p->memory);
}

void machine_node_decide(struct machine_node_fixture *p)
{
    struct rules_facts *f = &p->facts;
    f->machine = &p->machine;
    f->cluster = p->gone ? NULL : &p->cluster;
    f->node = f->sight == RULES_NODE_SEEN ? &p->node : NULL;
    f->deletion_leftover = rules_deletion_leftover(&p->machine, &p->node) ? p->leftover : 0;
    f->maintenance_leftover = rules_maintenance_leftover(&p->machine, &p->node) ? p->leftover : 0;
    rules_decide(&p->options, f, &p->memory, &p->verdict);
}

/* ── the model ─────────────────────────────────────────────────────────────────────────────── */

static void put_text(struct str *at, const struct meta_patch_key *k)
{
    CHECK(k->remove ? at->p != NULL : at->p == NULL || !str_eq(*at, k->value));
    *at = k->remove ? STR_NONE : k->value;
}

/* One that only ever says "true". */
static void put_flag(bool *at, const struct meta_patch_key *k)
{
    CHECK(*at == k->remove);
    CHECK(k->remove || str_eq(k->value, KEYS_TRUE));
    *at = !k->remove;
}

static void put_request(struct machine *m, const struct meta_patch_key *k)
{
    CHECK(!k->remove); /* never ours to take away */
    enum machine_request wanted =
        str_eq(k->value, KEY_APPROVED) ? MACHINE_REQUEST_APPROVED : MACHINE_REQUEST_REQUESTED;
    CHECK(m->request != MACHINE_REQUEST_NONE && m->request != wanted);
    CHECK(str_eq(k->value, KEY_APPROVED) || str_eq(k->value, KEY_REQUESTED));
    m->request = wanted;
}

static void put_hook(struct machine *m, const struct meta_patch_key *k)
{
    CHECK(m->hook == k->remove);
    CHECK(k->remove || str_eq(k->value, KEY_HOOK_VALUE));
    m->hook = !k->remove;
    m->hook_value = k->remove ? STR_NONE : k->value;
}

static void put_skip(struct machine *m, const struct meta_patch_key *k)
{
    CHECK(m->skip == k->remove);
    CHECK_EQ(k->value.n, 0);
    m->skip = !k->remove;
    m->skip_empty = !k->remove;
}

static void machine_apply(struct machine *m, const struct meta_patch *e)
{
    for (uint32_t i = 0; i < e->n; i++) {
        const struct meta_patch_key *k = &e->keys[i];
        CHECK_EQ(k->label, str_eq(k->key, KEY_MAINTENANCE));
        if (k->label) {
            put_request(m, k);
        } else if (str_eq(k->key, KEY_HOOK)) {
            put_hook(m, k);
        } else if (str_eq(k->key, KEY_RELEASED)) {
            CHECK(!k->remove);
            put_text(&m->released, k);
        } else if (str_eq(k->key, KEY_GRANTED)) {
            put_text(&m->granted, k);
        } else if (str_eq(k->key, KEY_STATUS)) {
            put_text(&m->status, k);
        } else if (str_eq(k->key, KEY_APPROVED_ASIDE)) {
            put_flag(&m->approved_by_annotation, k);
        } else if (str_eq(k->key, KEY_SKIP_OURS)) {
            put_flag(&m->skip_ours, k);
        } else if (str_eq(k->key, KEY_SKIP_REMEDIATION)) {
            put_skip(m, k);
        } else {
            check_fail(__FILE__, __LINE__, "the Machine's key '" STR_FMT "' is not ours",
                       STR_ARG(k->key));
        }
    }
}

static void put_book(struct workload_node *n, const struct meta_patch_key *k)
{
    CHECK(!k->label);
    CHECK(k->remove ? n->drain_rules != 0 : n->drain_rules != workload_node_hash(k->value));
    n->drain_rules = k->remove ? 0 : workload_node_hash(k->value);
}

static void node_apply(struct workload_node *n, const struct meta_patch *e)
{
    const struct {
        struct str key;
        bool *flag;
        struct str *text;
        bool engine; /* the engine's: taken away at most */
    } keys[] = {
        { KEY_MACHINE_DELETED, &n->machine_deleted, NULL, false },
        { KEY_MACHINE_MAINTENANCE, &n->machine_maintenance, NULL, false },
        { KEY_APPROVE_DELETION, &n->approve_deletion, NULL, true },
        { KEY_APPROVE_MAINTENANCE, &n->approve_maintenance, NULL, true },
        { KEY_DELETION_REQUEST, NULL, &n->deletion_request, false },
        { KEY_MAINTENANCE_REQUEST, NULL, &n->maintenance_request, false },
        { KEY_DELETION_APPROVED_FOR, NULL, &n->deletion_approved_for, true },
        { KEY_MAINTENANCE_APPROVED_FOR, NULL, &n->maintenance_approved_for, true },
    };
    for (uint32_t i = 0; i < e->n; i++) {
        const struct meta_patch_key *k = &e->keys[i];
        size_t found = 0;
        if (str_eq(k->key, KEY_DRAIN_RULES)) {
            put_book(n, k);
            continue;
        }
        while (found < ARRAY_LEN(keys) && !str_eq(keys[found].key, k->key)) {
            found++;
        }
        if (found == ARRAY_LEN(keys)) {
            check_fail(__FILE__, __LINE__, "the Node's key '" STR_FMT "' is not ours",
                       STR_ARG(k->key));
        }
        CHECK_EQ(k->label, keys[found].flag != NULL);
        CHECK(k->remove || !keys[found].engine);
        if (keys[found].flag == NULL) {
            put_text(keys[found].text, k);
        } else {
            put_flag(keys[found].flag, k);
        }
    }
}

void machine_node_apply(struct machine_node_fixture *p)
{
    machine_apply(&p->machine, &p->verdict.machine);
    node_apply(&p->node, &p->verdict.node);
}

bool machine_node_unchanged(const struct machine_node_fixture *p)
{
    return p->verdict.machine.n == 0 && p->verdict.node.n == 0;
}

uint32_t machine_node_settle(struct machine_node_fixture *p, uint32_t most)
{
    for (uint32_t round = 0; round <= most; round++) {
        machine_node_decide(p);
        if (machine_node_unchanged(p)) {
            return round;
        }
        machine_node_apply(p);
    }
    check_fail(__FILE__, __LINE__, "still edits after %u rounds", most);
}

const struct rules_event_record *machine_node_event(const struct machine_node_fixture *p,
                                                    enum rules_event event)
{
    for (uint32_t i = 0; i < p->verdict.event_n; i++) {
        if (p->verdict.events[i].event == event) {
            return &p->verdict.events[i];
        }
    }
    return NULL;
}
