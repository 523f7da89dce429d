#include "bridge/workload_node.h"

#include "tests/check.h"

#define LEGACY "runtime-extension-maintenance-controller.cloud.sap/"

static const struct workload_node *read_node(struct arena *out, const char *text)
{
    const struct jval *object = NULL;
    struct err err = { 0 };
    void *ret = NULL;
    CHECK_EQ(json_parse(str_from(text), 0, out, &object, &err), 0);
    CHECK_EQ(workload_node_kind.project(NULL, object, out, &ret, &err), 0);
    return ret;
}

TEST(workload_node_reads_labels_exactly_and_the_state_by_its_presence)
{
    static const struct {
        const char *labels;
        struct workload_node wanted;
    } cases[] = {
        { "{}", { .managed = false } },
        { "null", { .managed = false } },
        { "[]", { .managed = false } },
        { "{\"" LEGACY "machine-deleted\":\"true\"}", { .machine_deleted = true } },
        { "{\"" LEGACY "machine-maintenance\":\"true\"}", { .machine_maintenance = true } },
        { "{\"" LEGACY "approve-deletion\":\"true\"}", { .approve_deletion = true } },
        { "{\"" LEGACY "approve-maintenance\":\"true\"}", { .approve_maintenance = true } },
        { "{\"" LEGACY "approve-deletion\":\"True\"}", { .managed = false } },
        { "{\"" LEGACY "approve-deletion\":\"\"}", { .managed = false } },
        { "{\"" LEGACY "approve-deletion\":true}", { .managed = false } },
        { "{\"cloud.sap/maintenance-state\":\"\"}", { .managed = true } },
        { "{\"cloud.sap/maintenance-state\":\"in-maintenance\"}", { .managed = true } },
        { "{\"cloud.sap/maintenance-state\":\"operational\"}",
          { .managed = true, .operational = true } },
        { "{\"cloud.sap/maintenance-state\":null}", { .managed = false } },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_case((int64_t)i);
        CLEANUP(arena_done)
        struct arena a = { 0 };
        const struct workload_node *p =
            read_node(&a, arena_printf(&a, "{\"metadata\":{\"labels\":%s}}", cases[i].labels).p);
        CHECK(workload_node_kind.same(p, &cases[i].wanted));
    }
    check_case(-1);
}

TEST(workload_node_reads_annotations)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct workload_node *p = read_node(
        &a, "{\"metadata\":{\"uid\":\"n1\",\"deletionTimestamp\":\"2026-03-01T10:00:00Z\","
            "\"annotations\":{\"drydock.dev/deletion-request\":\"u\","
            "\"drydock.dev/maintenance-request\":\"u/3\","
            "\"drydock.dev/deletion-approved-for\":\"v\","
            "\"drydock.dev/maintenance-approved-for\":\"u/2\","
            "\"cluster.x-k8s.io/machine\":\"m1\","
            "\"cluster.x-k8s.io/cluster-namespace\":\"\"}}}");
    const struct workload_node wanted = {
        .uid = STR("n1"),
        .deleting = true,
        .deletion_request = STR("u"),
        .maintenance_request = STR("u/3"),
        .deletion_approved_for = STR("v"),
        .maintenance_approved_for = STR("u/2"),
        .machine = STR("m1"),
        .namespace = STR(""),
    };
    CHECK(workload_node_kind.same(p, &wanted));
    CHECK(p->namespace.p != NULL);
    p = read_node(&a, "{\"metadata\":{\"annotations\":{\"cluster.x-k8s.io/machine\":7}}}");
    CHECK(p->machine.p == NULL && p->deletion_request.p == NULL);
}

/* Whatever somebody writes there costs eight bytes. */
TEST(workload_node_knows_drain_rules_by_their_number)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct workload_node *p =
        read_node(&a, "{\"metadata\":{\"annotations\":{\"drydock.dev/drain-rules\":\"[]\"}}}");
    CHECK_EQ(p->drain_rules, workload_node_hash(STR("[]")));
    CHECK(p->drain_rules != 0 && p->drain_rules != workload_node_hash(STR("[ ]")));
    CHECK_EQ(workload_node_hash(STR("[]")), 0x4f53cda18c2baa0cull); /* of its SHA-256 */
    p = read_node(&a, "{\"metadata\":{\"annotations\":{\"drydock.dev/drain-rules\":\"\"}}}");
    CHECK(p->drain_rules != 0);
    p = read_node(&a, "{\"metadata\":{\"annotations\":{\"drydock.dev/drain-rules\":7}}}");
    CHECK_EQ(p->drain_rules, 0);
    CHECK_EQ(workload_node_hash(STR_NONE), 0);
    CLEANUP(arena_done)
    struct arena out = { 0 };
    const struct jval *object = NULL;
    struct err err = { 0 };
    void *ret = NULL;
    struct str text = arena_printf(
        &a, "{\"metadata\":{\"annotations\":{\"drydock.dev/drain-rules\":\"%0200000d\"}}}", 0);
    CHECK_EQ(json_parse(text, 0, &a, &object, &err), 0);
    CHECK_EQ(workload_node_kind.project(NULL, object, &out, &ret, &err), 0);
    CHECK(out.total <= 320);
}

/* A name too long to be kept must not look like one that is not there: it names another Machine. */
TEST(workload_node_cuts_what_is_too_long)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    const struct workload_node *p = read_node(
        &a, arena_printf(
                &a, "{\"metadata\":{\"annotations\":{\"cluster.x-k8s.io/machine\":\"%0600d\"}}}", 0)
                .p);
    CHECK_EQ(p->machine.n, WORKLOAD_NODE_TEXT_MAX);
}

TEST(workload_node_tells_every_fact_from_its_absence)
{
    const struct workload_node plain = { 0 };
    const struct workload_node others[] = {
        { .uid = STR("x") },
        { .managed = true },
        { .operational = true },
        { .deleting = true },
        { .machine_deleted = true },
        { .machine_maintenance = true },
        { .approve_deletion = true },
        { .approve_maintenance = true },
        { .deletion_request = STR("") },
        { .maintenance_request = STR("") },
        { .deletion_approved_for = STR("") },
        { .maintenance_approved_for = STR("") },
        { .machine = STR("") },
        { .namespace = STR("") },
        { .drain_rules = 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        check_case((int64_t)i);
        CHECK(!workload_node_kind.same(&plain, &others[i]));
        bool marked = i == 4 || i == 5 || i == 8 || i == 9;
        CHECK_EQ(workload_node_marked(&others[i]), marked);
    }
    check_case(-1);
    CHECK(!workload_node_marked(&plain));
    CHECK(!workload_node_kind.namespaced);
}

/* A link keeps all Nodes of its cluster. */
TEST(workload_node_takes_little_room)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *object = NULL;
    struct err err = { 0 };
    CHECK_EQ(json_parse(STR("{\"metadata\":{\"uid\":\"1d5f3f4e-7c3b-4a3b-9d55-0a1b2c3d4e5f\","
                            "\"annotations\":{\"cluster.x-k8s.io/machine\":\"workers-7f9c4-x2x9z\","
                            "\"cluster.x-k8s.io/cluster-namespace\":\"tenant-a\"}}}"),
                        0, &tmp, &object, &err),
             0);
    CLEANUP(arena_done)
    struct arena out = { 0 };
    void *ret = NULL;
    CHECK_EQ(workload_node_kind.project(NULL, object, &out, &ret, &err), 0);
    CHECK(out.total <= 320);
}
