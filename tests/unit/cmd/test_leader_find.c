#include "cmd/leader_find.h"

#include "tests/check.h"

#define BRIDGE "runtime-extension-maintenance-controller"
#define CONTROLLER "maintenance-controller-leader-election.cloud.sap"

#define LEASE(ns, name, holder)                                                                    \
    "{\"metadata\":{\"namespace\":\"" ns "\",\"name\":\"" name                                     \
    "\"},\"spec\":{\"holderIdentity\":\"" holder "\"}}"
#define LIST(items) "{\"items\":[" items "]}"

TEST(leader_path_asks_for_one_lease_unless_there_may_be_shards)
{
    static const struct {
        enum leader_kind kind;
        const char *ns;
        const char *want;
    } cases[] = {
        { LEADER_CONTROLLER, "", "leases?fieldSelector=metadata.name%3D" CONTROLLER },
        { LEADER_CONTROLLER, "ops", "namespaces/ops/leases/" CONTROLLER },
        { LEADER_BRIDGE, "", "leases" },
        { LEADER_BRIDGE, "ops", "namespaces/ops/leases" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(buf_done)
        struct buf path = { 0 };
        struct str rest;
        leader_lease_path(cases[i].kind, str_from(cases[i].ns), &path);
        CHECK(str_cut_prefix(buf_str(&path), STR("/apis/coordination.k8s.io/v1/"), &rest));
        CHECK_STR(rest, cases[i].want);
    }
}

TEST(leader_read_names_pods_or_says_why_there_is_none)
{
    static const struct {
        enum leader_kind kind;
        const char *json;
        const char *pods; /* "namespace: pod pod"; or "!": an error that has the rest */
    } cases[] = {
        { LEADER_CONTROLLER, LEASE("ops", CONTROLLER, "ctl-0_1a"), "ops: ctl-0" },
        { LEADER_CONTROLLER, LIST(LEASE("ops", CONTROLLER, "ctl-0_1a")), "ops: ctl-0" },
        { LEADER_CONTROLLER, LIST(LEASE("ops", CONTROLLER, "")),
          "!no maintenance-controller is leading" },
        { LEADER_CONTROLLER, LIST(""), "!no controller is known to this cluster" },
        { LEADER_CONTROLLER, LIST(LEASE("ops", CONTROLLER "-shard-0", "ctl-0_1a")),
          "!there is no Lease '" CONTROLLER "'" },
        { LEADER_CONTROLLER, LIST(LEASE("a", CONTROLLER, "x_1") "," LEASE("b", CONTROLLER, "y_1")),
          "!2 namespaces have a controller's Lease, 'a' among them: choose one with" },
        { LEADER_BRIDGE,
          LIST(LEASE("kube-node-lease", "n1", "n1") "," LEASE("ops", BRIDGE, "b-0_1")),
          "ops: b-0" },
        { LEADER_BRIDGE,
          LIST(LEASE("ops", BRIDGE "-shard-0", "b-0_1") "," LEASE(
              "ops", BRIDGE "-shard-1", "") "," LEASE("ops", BRIDGE "-shard-10", "c-0_2")),
          "ops: b-0 c-0" },
        { LEADER_BRIDGE,
          LIST(LEASE("ops", BRIDGE "-shard-", "b_1") "," LEASE(
              "ops", BRIDGE "-shard-x", "b_1") "," LEASE("ops", BRIDGE "s", "b_1")),
          "!no bridge is known to this cluster: there is no Lease '" BRIDGE "'" },
        { LEADER_BRIDGE,
          LIST(LEASE("a", BRIDGE "-shard-0", "x_1") "," LEASE("b", BRIDGE "-shard-1", "y_1")),
          "!2 namespaces have a bridge's Lease" },
        { LEADER_BRIDGE, LIST(LEASE("a", BRIDGE, "")), "!no bridge is leading" },
        { LEADER_BRIDGE, "[]", "!no bridge is known" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        CLEANUP(buf_done)
        struct buf text = { 0 };
        const struct jval *root;
        struct leaders leaders = { 0 };
        struct err err = { 0 };
        check_case((int64_t)i);
        CHECK_EQ(json_parse(str_from(cases[i].json), 0, &tmp, &root, &err), 0);
        struct str want = str_from(cases[i].pods);
        if (str_cut_prefix(want, STR("!"), &want)) {
            CHECK(leader_find_pods(cases[i].kind, root, &tmp, &leaders, &err) < 0);
            CHECK(str_contains(str_from(err.msg), want));
            CHECK_EQ(leaders.n, 0);
            continue;
        }
        CHECK_EQ(leader_find_pods(cases[i].kind, root, &tmp, &leaders, &err), 0);
        buf_printf(&text, STR_FMT ":", STR_ARG(leaders.ns));
        for (uint32_t k = 0; k < leaders.n; k++) {
            buf_printf(&text, " " STR_FMT, STR_ARG(leaders.pods[k]));
        }
        CHECK_STR(buf_str(&text), want);
    }
    check_case(-1);
}

TEST(leader_read_takes_no_more_than_there_can_be)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf json = { 0 };
    const struct jval *root;
    struct leaders leaders;
    struct err err = { 0 };
    buf_add(&json, STR("{\"items\":["));
    for (uint32_t i = 0; i < LEADERS_MAX + 10; i++) {
        buf_printf(&json,
                   "%s{\"metadata\":{\"namespace\":\"a\",\"name\":\"" BRIDGE "-shard-%u\"},"
                   "\"spec\":{\"holderIdentity\":\"p_%u\"}}",
                   i > 0 ? "," : "", i, i);
    }
    buf_add(&json, STR("]}"));
    CHECK_EQ(json_parse(buf_str(&json), 0, &tmp, &root, &err), 0);
    CHECK_EQ(leader_find_pods(LEADER_BRIDGE, root, &tmp, &leaders, &err), 0);
    CHECK_EQ(leaders.n, LEADERS_MAX);
}
