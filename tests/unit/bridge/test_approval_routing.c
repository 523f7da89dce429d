/* Requests that the limits of the workload cluster are asked for, and what becomes of grants. */
#include "bridge/bridge_internal.h"
#include "bridge/workload_request.h"
#include "format/json_writer.h"
#include "kinds/crd.h"
#include "kinds/keys.h"
#include "tests/check.h"
#include "tests/lib/bridge_fixture.h"

static const struct bridge_config routed = { .by_requests = true };

#define GROUP STR("repairman.k8s.io")
#define PLURAL STR("maintenancerequests")

static void install(struct bridge_fixture *s, const char *cluster)
{
    for (size_t i = 0; i < crds_count; i++) {
        CLEANUP(buf_done)
        struct buf body = { 0 };
        struct json_writer w = json_writer_on(&body);
        jw_val(&w, crd_object(&crds[i], &s->memory));
        buf_add_char(&body, '\0');
        bridge_fixture_workload(s, cluster, "POST",
                                STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
                                body.p);
    }
}

/* East has two Machines whose Nodes no engine manages, and the kinds; west has one and no kinds. */
static void begin(struct bridge_fixture *s)
{
    bridge_fixture_begin(s, "v1beta2");
    bridge_fixture_add_cluster(s, "east");
    bridge_fixture_add_cluster(s, "west");
    install(s, "east");
    bridge_fixture_machine(s, "east", "e1", "enabled");
    bridge_fixture_machine(s, "east", "e2", "enabled");
    bridge_fixture_machine(s, "west", "w1", "enabled");
    bridge_fixture_bridge(s, &routed);
    bridge_fixture_run(s, SECONDS(5));
}

/* ── MaintenanceRequests ───────────────────────────────────────────────────────────────────── */

struct snapshot {
    const char *node;  /* NULL = any */
    const char *state; /* NULL = any but Completed */
    uint32_t n;
    char name[64]; /* the last one */
};

static void snapshot(void *ctx, const struct jval *object)
{
    struct snapshot *g = ctx;
    struct str state = jval_str(jval_at(object, "spec.state"));
    bool counts =
        g->state == NULL ? !str_eq(state, STR("Completed")) : str_eq(state, str_from(g->state));
    if (counts &&
        (g->node == NULL || str_eq(jval_str(jval_at(object, "spec.name")), str_from(g->node)))) {
        g->n++;
        (void)snprintf(g->name, sizeof(g->name), STR_FMT,
                       STR_ARG(jval_str(jval_at(object, "metadata.name"))));
    }
}

static uint32_t requests(struct bridge_fixture *s, const char *node, const char *state)
{
    struct snapshot g = { .node = node, .state = state };
    apiserver_each(bridge_fixture_find_cluster(s, "east")->server, GROUP, PLURAL, STR(""), snapshot,
                   &g);
    return g.n;
}

/* Somebody writes a state into the one of that Node that is not over. */
static void put_state(struct bridge_fixture *s, const char *node, const char *state)
{
    struct snapshot g = { .node = node };
    apiserver_each(bridge_fixture_find_cluster(s, "east")->server, GROUP, PLURAL, STR(""), snapshot,
                   &g);
    CHECK_EQ(g.n, 1);
    bridge_fixture_workload(s, "east", "PATCH",
                            arena_printf(&s->memory, MAINTENANCE_REQUESTS_PATH "/%s", g.name),
                            arena_printf(&s->memory, "{\"spec\":{\"state\":\"%s\"}}", state).p);
}

/* Whether MaintenanceRequests of that cluster are watched; a matter of memory, which no server can
 * tell. */
static bool watched(const struct bridge_fixture *s)
{
    const struct cluster_state *y = map_find(&s->bridge->by_cluster, STR("default/east"));
    return y->routing != NULL && y->routing->open;
}

#define NODES                                                                                      \
    "{\"apiGroups\":[\"\"],\"resources\":[\"nodes\"],\"verbs\":[\"get\",\"list\",\"watch\","       \
    "\"patch\"]}"
#define REQUESTS                                                                                   \
    "{\"apiGroups\":[\"repairman.k8s.io\"],\"resources\":[\"maintenancerequests\"],"               \
    "\"verbs\":[\"list\",\"watch\",\"create\",\"patch\"]}"

/* ── the way of one request ────────────────────────────────────────────────────────────────── */

TEST(bridge_route_holds_machines_where_there_are_requests)
{
    struct bridge_fixture s;
    begin(&s);
    CHECK(bridge_fixture_has_hook(&s, "e1") && bridge_fixture_has_hook(&s, "e2"));
    CHECK(!bridge_fixture_has_hook(&s, "w1"));
    CHECK_EQ(requests(&s, NULL, NULL), 0);
    bridge_fixture_run(&s, MINUTES(2));
    CHECK(!bridge_fixture_has_hook(&s, "w1")); /* nobody is there to approve */
    bridge_fixture_end(&s);
}

TEST(bridge_route_takes_a_deletion_through_the_limits)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(5));
    CHECK_EQ(requests(&s, "e1", "Pending"), 1);
    CHECK_EQ(requests(&s, NULL, NULL), 1);
    struct bridge_machine_view report;
    CHECK(bridge_explain(s.bridge, STR("default"), STR("e1"), &s.memory, &report));
    CHECK(str_starts(report.request, STR("mr-")));
    CHECK_STR(report.workload_request_state, "Pending");
    CHECK(bridge_explain(s.bridge, STR("default"), STR("e2"), &s.memory, &report));
    CHECK_STR(report.request, "");
    bridge_fixture_run(&s, HOURS(1));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    CHECK_EQ(requests(&s, NULL, NULL), 1);
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_APPROVE_DELETION).p == NULL);
    put_state(&s, "e1", "Approved");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_EQ(requests(&s, "e1", "InProgress"), 1);
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_APPROVE_DELETION), "true");
    CHECK_STR(bridge_fixture_node_annotation(&s, "east", "e1", KEY_DELETION_APPROVED_FOR),
              bridge_fixture_node_annotation(&s, "east", "e1", KEY_DELETION_REQUEST));
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_delete_node(&s, "east", "e1");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_EQ(requests(&s, "e1", "Completed"), 1);
    CHECK(bridge_fixture_has_hook(&s, "e2"));
    bridge_fixture_end(&s);
}

TEST(bridge_route_takes_each_maintenance_through_the_limits)
{
    struct bridge_fixture s;
    begin(&s);
    for (uint32_t i = 0; i < 3; i++) {
        check_case(i);
        bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
        bridge_fixture_run(&s, MINUTES(1));
        CHECK_EQ(requests(&s, "e1", "Pending"), 1);
        CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "requested");
        put_state(&s, "e1", "Approved");
        bridge_fixture_run(&s, SECONDS(2));
        CHECK_EQ(requests(&s, "e1", "InProgress"), 1);
        CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "approved");
        bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
        bridge_fixture_run(&s, SECONDS(2));
        CHECK_EQ(requests(&s, NULL, NULL), 0);
        CHECK_EQ(requests(&s, "e1", "Completed"), i + 1);
        CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_APPROVE_MAINTENANCE).p == NULL);
        CHECK(bridge_fixture_node_annotation(&s, "east", "e1", KEY_MAINTENANCE_APPROVED_FOR).p ==
              NULL);
    }
    check_case(-1);
    bridge_fixture_end(&s);
}

TEST(bridge_route_withdraws_what_is_not_wanted_any_more)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_EQ(requests(&s, "e1", "Pending"), 1);
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_EQ(requests(&s, "e1", "Completed"), 1);
    bridge_fixture_end(&s);
}

TEST(bridge_route_asks_again_when_its_request_is_closed_or_deleted)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(2));
    put_state(&s, "e1", "Completed");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_EQ(requests(&s, "e1", "Pending"), 1);
    CHECK_EQ(requests(&s, "e1", "Completed"), 1);
    struct snapshot g = { .node = "e1" };
    apiserver_each(bridge_fixture_find_cluster(&s, "east")->server, GROUP, PLURAL, STR(""),
                   snapshot, &g);
    bridge_fixture_workload(&s, "east", "DELETE",
                            arena_printf(&s.memory, MAINTENANCE_REQUESTS_PATH "/%s", g.name), "");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_EQ(requests(&s, "e1", "Pending"), 1);
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_end(&s);
}

TEST(bridge_route_takes_the_approval_back_with_the_grant)
{
    struct bridge_fixture s;
    bridge_fixture_begin(&s, "v1beta2");
    bridge_fixture_add_cluster(&s, "east");
    install(&s, "east");
    bridge_fixture_machine(&s, "east", "e1", "enabled control-plane");
    bridge_fixture_machine(&s, "east", "e2", "enabled control-plane"); /* two of two: no quorum */
    bridge_fixture_bridge(&s, &routed);
    bridge_fixture_run(&s, SECONDS(5));
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(2));
    put_state(&s, "e1", "Approved");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(bridge_fixture_node_label(&s, "east", "e1", KEY_APPROVE_MAINTENANCE), "true");
    CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "requested"); /* withheld */
    put_state(&s, "e1", "Pending"); /* its time was over */
    bridge_fixture_run(&s, SECONDS(2));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_APPROVE_MAINTENANCE).p == NULL);
    CHECK_EQ(requests(&s, "e1", "Pending"), 1);
    bridge_fixture_end(&s);
}

/* ── whom it believes ──────────────────────────────────────────────────────────────────────── */

TEST(bridge_route_takes_no_grant_that_is_not_its_own)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(2));
    struct str uid = bridge_fixture_node_annotation(&s, "east", "e1", KEY_DELETION_REQUEST);
    static const char *const others[][3] = {
        { "other-client", "somebody", "e1" },
        { "other-node", WORKLOAD_REQUEST_CLIENT, "e2" },
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        bridge_fixture_workload(
            &s, "east", "POST", STR(MAINTENANCE_REQUESTS_PATH),
            arena_printf(&s.memory,
                         "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":"
                         "\"MaintenanceRequest\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
                         "\"maintenancerequests.repairman.k8s.io/clientname\":\"%s\"},"
                         "\"annotations\":{\"drydock.dev/bridge-request\":\"" STR_FMT
                         "\"}},\"spec\":{\"type\":\"node\",\"name\":\"%s\",\"state\":"
                         "\"Approved\"}}",
                         others[i][0], others[i][1], STR_ARG(uid), others[i][2])
                .p);
    }
    bridge_fixture_run(&s, MINUTES(1));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_APPROVE_DELETION).p == NULL);
    CHECK(bridge_fixture_node_label(&s, "east", "e2", KEY_APPROVE_DELETION).p == NULL);
    CHECK_EQ(requests(&s, NULL, "InProgress"), 0);
    bridge_fixture_end(&s);
}

/* Without a right to look, nobody can tell whether limits are there: nothing is let go. */
TEST(bridge_route_holds_on_while_requests_cannot_be_read)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_restrict(&s, "east", NODES);
    bridge_fixture_run(&s, SECONDS(5));
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, HOURS(1));
    CHECK(bridge_fixture_has_hook(&s, "e1") && bridge_fixture_has_hook(&s, "e2"));
    bridge_fixture_secret(&s, "east", "t1");
    bridge_fixture_run(&s, SECONDS(10));
    CHECK_EQ(requests(&s, "e1", "Pending"), 1);
    bridge_fixture_end(&s);
}

TEST(bridge_route_gives_up_a_cluster_whose_requests_take_too_much_memory)
{
    struct bridge_fixture s;
    begin(&s);
    const struct cluster_state *east = map_find(&s.bridge->by_cluster, STR("default/east"));
    const struct cluster_state *west = map_find(&s.bridge->by_cluster, STR("default/west"));
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(5));
    CHECK(watched(&s));
    struct str body = STR_NONE;
    for (uint32_t i = 0; i < LINK_REQUESTS_BYTES_MAX / 200000 + 1; i++) {
        body =
            arena_printf(&s.memory,
                         "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceRequest\","
                         "\"metadata\":{\"name\":\"fat-%u\",\"labels\":{\"" STR_FMT
                         "\":\"" WORKLOAD_REQUEST_CLIENT "\"},\"annotations\":{\"" STR_FMT
                         "\":\"%0200000d\"}},\"spec\":{\"name\":\"x\",\"type\":\"node\","
                         "\"state\":\"Pending\"}}",
                         i, STR_ARG(KEY_CLIENT), STR_ARG(KEY_RUN), 0);
        bridge_fixture_workload(&s, "east", "POST", STR(MAINTENANCE_REQUESTS_PATH), body.p);
    }
    bridge_fixture_run(&s, SECONDS(5));
    struct link_view view;
    link_view(east->link, &view);
    CHECK_EQ(view.state, LINK_BACKOFF);
    CHECK_EQ(view.over_limit, 1);
    CHECK(str_ends(view.trouble, STR("the objects of kind maintenancerequest take more than "
                                     "33554432 bytes of memory")));
    CHECK(!watched(&s));
    CHECK(link_fresh(west->link));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_end(&s);
}

/* Those that the documentation lists. */
TEST(bridge_route_needs_no_more_rights_than_it_says)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_restrict(&s, "east", NODES "," REQUESTS);
    bridge_fixture_run(&s, SECONDS(5));
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(2));
    put_state(&s, "e1", "Approved");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "approved");
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_EQ(requests(&s, "e1", "Completed"), 1);
    bridge_fixture_end(&s);
}

/* With an account of its own the connection moves over to another token again and again. */
TEST(bridge_route_goes_on_when_its_token_is_renewed)
{
    struct bridge_fixture s;
    bridge_fixture_begin(&s, "v1beta2");
    bridge_fixture_add_cluster(&s, "east");
    install(&s, "east");
    bridge_fixture_machine(&s, "east", "e1", "enabled");
    bridge_fixture_machine(&s, "east", "e2", "enabled");
    bridge_fixture_bridge(&s, &(struct bridge_config){ .by_requests = true, .manage_rbac = true });
    bridge_fixture_run(&s, SECONDS(10));
    CHECK(bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    for (int i = 0; i < 6; i++) {
        check_case(i);
        bridge_fixture_run(&s, MINUTES(30));
        CHECK(watched(&s));
        CHECK_EQ(requests(&s, "e1", "Pending"), 1);
        CHECK(bridge_fixture_has_hook(&s, "e1") && bridge_fixture_has_hook(&s, "e2"));
    }
    check_case(-1);
    put_state(&s, "e1", "Approved");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_STR(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE), "approved");
    bridge_fixture_run(&s, HOURS(2));
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    bridge_fixture_run(&s, SECONDS(5));
    CHECK_EQ(requests(&s, "e1", "Completed"), 1);
    CHECK_EQ(requests(&s, NULL, NULL), 0);
    bridge_fixture_end(&s);
}

/* ── crashes, and clusters that are away ───────────────────────────────────────────────────── */

/* After every single commit of a whole deletion and a whole maintenance it is killed. */
TEST(bridge_route_goes_on_wherever_it_was_cut_off)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_label_machine(&s, "e2", KEY_MAINTENANCE, "requested");
    for (int i = 0; i < 200; i++) {
        bridge_fixture_crash(&s);
        bridge_fixture_bridge(&s, &routed);
        bridge_fixture_run(&s, MSECONDS(20 + 13 * (i % 20)));
        if (requests(&s, "e1", "Pending") == 1) {
            put_state(&s, "e1", "Approved");
        }
        if (requests(&s, "e2", "Pending") == 1) {
            put_state(&s, "e2", "Approved");
        }
        CHECK(requests(&s, NULL, NULL) <= 2);
        bool free = !bridge_fixture_has_hook(&s, "e1");
        CHECK(!free || requests(&s, "e1", "InProgress") == 1);
    }
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    CHECK_STR(bridge_fixture_machine_label(&s, "e2", KEY_MAINTENANCE), "approved");
    bridge_fixture_delete_node(&s, "east", "e1");
    bridge_fixture_label_machine(&s, "e2", KEY_MAINTENANCE, NULL);
    for (int i = 0; i < 60; i++) {
        bridge_fixture_crash(&s);
        bridge_fixture_bridge(&s, &routed);
        bridge_fixture_run(&s, MSECONDS(20 + 13 * (i % 20)));
    }
    CHECK_EQ(requests(&s, NULL, NULL), 0);
    bridge_fixture_end(&s);
}

TEST(bridge_route_gives_back_what_ended_while_the_cluster_was_away)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(2));
    put_state(&s, "e1", "Approved");
    bridge_fixture_run(&s, SECONDS(2));
    bridge_fixture_find_cluster(&s, "east")->faults.down = true;
    bridge_fixture_run(&s, SECONDS(1));
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    bridge_fixture_run(&s, MINUTES(20));
    CHECK_EQ(requests(&s, "e1", "InProgress"), 1);
    bridge_fixture_find_cluster(&s, "east")->faults.down = false;
    bridge_fixture_run(&s, MINUTES(7));
    CHECK_EQ(requests(&s, NULL, NULL), 0);
    bridge_fixture_end(&s);
}

/* The last Machines go, and the grant is given back before the connection ends. */
TEST(bridge_route_gives_back_what_a_machine_leaves_behind)
{
    for (int i = 0; i < 4; i++) {
        bool away = i % 2 == 1;
        bool disabled = i / 2 == 1;
        struct bridge_fixture s;
        check_case(i);
        begin(&s);
        bridge_fixture_label_machine(&s, "e2", KEY_ENABLED, NULL);
        bridge_fixture_delete_machine(&s, "e1");
        bridge_fixture_run(&s, SECONDS(2));
        put_state(&s, "e1", "Approved");
        bridge_fixture_run(&s, SECONDS(2));
        bridge_fixture_find_cluster(&s, "east")->faults.partitioned = away;
        if (disabled) {
            bridge_fixture_label_machine(&s, "e1", KEY_ENABLED, NULL);
        } else {
            bridge_fixture_management(
                &s, "PATCH", STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/e1"),
                "{\"metadata\":{\"finalizers\":null}}");
            bridge_fixture_delete_node(&s, "east", "e1");
        }
        bridge_fixture_run(&s, MINUTES(4));
        if (away) {
            CHECK_EQ(requests(&s, "e1", "InProgress"), 1);
            if (disabled) {
                bridge_fixture_crash(&s); /* the Machine remembers */
                bridge_fixture_bridge(&s, &routed);
            }
            bridge_fixture_find_cluster(&s, "east")->faults.partitioned = false;
            bridge_fixture_run(&s, MINUTES(8));
        }
        CHECK_EQ(requests(&s, NULL, NULL), 0);
        CHECK_EQ(bridge_fixture_find_cluster(&s, "east")->entry->open, 0);
        if (disabled) {
            CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_STATUS).p == NULL);
            CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_APPROVE_DELETION).p == NULL);
        }
        bridge_fixture_end(&s);
    }
    check_case(-1);
}

static bool clean_and_held(struct bridge_fixture *s)
{
    return bridge_fixture_node_label(s, "east", "e1", KEY_APPROVE_MAINTENANCE).p == NULL &&
           requests(s, "e1", "InProgress") == 1;
}

/* The last Machine is disabled, its Node is clean, and the bridge dies before it could give the
 * grant back. The Machine still remembers. */
TEST(bridge_route_lets_a_disabled_machine_remember_its_grant)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_label_machine(&s, "e2", KEY_ENABLED, NULL);
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(2));
    put_state(&s, "e1", "Approved");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK(!clean_and_held(&s));
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    bridge_fixture_label_machine(&s, "e1", KEY_ENABLED, NULL);
    CHECK(bridge_fixture_run_until(&s, clean_and_held, SECONDS(5)));
    bridge_fixture_find_cluster(&s, "east")->faults.request_lost = 1000;
    bridge_fixture_run(&s, SECONDS(5));
    bridge_fixture_crash(&s);
    CHECK_EQ(requests(&s, "e1", "InProgress"), 1);
    bridge_fixture_find_cluster(&s, "east")->faults.calm = true;
    bridge_fixture_bridge(&s, &routed);
    bridge_fixture_run(&s, MINUTES(1));
    CHECK_EQ(requests(&s, NULL, NULL), 0);
    CHECK(bridge_fixture_machine_annotation(&s, "e1", KEY_STATUS).p == NULL);
    CHECK_EQ(bridge_fixture_find_cluster(&s, "east")->entry->open, 0);
    bridge_fixture_end(&s);
}

/* A Node that stays when its Machine is gone. */
TEST(bridge_route_cleans_a_node_that_outlives_its_machine)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(2));
    put_state(&s, "e1", "Approved");
    bridge_fixture_run(&s, SECONDS(2));
    bridge_fixture_management(&s, "PATCH",
                              STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines/e1"),
                              "{\"metadata\":{\"finalizers\":null}}");
    bridge_fixture_run(&s, SECONDS(5));
    CHECK_EQ(requests(&s, NULL, NULL), 0);
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_DELETED).p == NULL);
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_APPROVE_DELETION).p == NULL);
    CHECK(bridge_fixture_node_annotation(&s, "east", "e1", KEY_DELETION_APPROVED_FOR).p == NULL);
    bridge_fixture_end(&s);
}

static bool has_request(struct bridge_fixture *s)
{
    return requests(s, "e1", "Pending") == 1;
}

/* It is made, and taken back before its watch has told of it. */
/* Where there are no requests an engine approves, and what it has written is its own to take away,
 * also when the Machine is gone. */
TEST(bridge_route_leaves_approvals_of_an_engine_alone)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_machine(&s, "west", "w2", "enabled managed");
    bridge_fixture_run(&s, MINUTES(2));
    CHECK(bridge_fixture_has_hook(&s, "w2"));
    bridge_fixture_node(&s, "west", "w9", /* managed= */ true);
    bridge_fixture_label_node(&s, "west", "w9", KEY_APPROVE_MAINTENANCE, "true");
    bridge_fixture_annotate_node(&s, "west", "w9", KEY_MAINTENANCE_APPROVED_FOR, "gone/1");
    bridge_fixture_annotate_node(&s, "west", "w9", KEY_MAINTENANCE_REQUEST, "gone/1");
    bridge_fixture_run(&s, MINUTES(10));
    CHECK(bridge_fixture_node_annotation(&s, "west", "w9", KEY_MAINTENANCE_REQUEST).p == NULL);
    CHECK_STR(bridge_fixture_node_label(&s, "west", "w9", KEY_APPROVE_MAINTENANCE), "true");
    bridge_fixture_end(&s);
}

TEST(bridge_route_does_not_forget_what_it_has_made_and_not_seen)
{
    struct bridge_fixture s;
    begin(&s);
    struct bridge_fixture_cluster *east = bridge_fixture_find_cluster(&s, "east");
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    CHECK(bridge_fixture_run_until(&s, has_request, SECONDS(10)));
    east->faults.watch_stall = 1000;
    east->faults.watch_stall_max = SECONDS(60);
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    bridge_fixture_run(&s, SECONDS(2));
    CHECK(bridge_fixture_node_label(&s, "east", "e1", KEY_MACHINE_MAINTENANCE).p == NULL);
    east->faults.calm = true;
    bridge_fixture_run(&s, MINUTES(3));
    CHECK_EQ(requests(&s, NULL, NULL), 0);
    bridge_fixture_end(&s);
}

/* Somebody has written to the request since it was seen: what they wrote is looked at first. */
TEST(bridge_route_takes_a_grant_on_the_version_that_it_has_seen)
{
    struct bridge_fixture s;
    struct bridge_stats stats;
    begin(&s);
    struct bridge_fixture_cluster *east = bridge_fixture_find_cluster(&s, "east");
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(2));
    east->faults.latency_min = SECONDS(1);
    east->faults.latency_max = SECONDS(1);
    put_state(&s, "e1", "Approved");
    bridge_fixture_run(&s,
                       MSECONDS(1500)); /* the bridge has seen it, and its answer is on its way */
    put_state(&s, "e1", "Approved\",\"reason\":\"another");
    CHECK_EQ(requests(&s, "e1", "Approved"), 1);
    bridge_fixture_run(&s, SECONDS(1));
    CHECK_EQ(requests(&s, "e1", "Approved"), 1);
    bridge_fixture_run(&s, SECONDS(10));
    CHECK_EQ(requests(&s, "e1", "InProgress"), 1);
    bridge_stats(s.bridge, &stats);
    CHECK_EQ(stats.conflicts, 1);
    bridge_fixture_end(&s);
}

/* ── in any weather ────────────────────────────────────────────────────────────────────────── */

struct witness {
    struct bridge_fixture *fixture;
    struct str request; /* that a grant is looked for */
    struct str node;
    bool held;
};

static void witness_look(void *ctx, const struct jval *object)
{
    struct witness *w = ctx;
    const struct jval *notes = jval_at(object, "metadata.annotations");
    w->held = w->held || (str_eq(jval_str(jval_at(object, "spec.state")), STR("InProgress")) &&
                          str_eq(jval_str(jval_at(object, "spec.name")), w->node) &&
                          str_eq(jval_str(jval_get(notes, KEY_BRIDGE_REQUEST)), w->request));
}

/* Whenever an approval comes to a Node, a grant for that very request is held. */
static void witness_commit(void *ctx, const struct apiserver_commit *commit)
{
    static const struct str keys[][2] = {
        { STR_INIT(KEYS_LEGACY "approve-deletion"), STR_INIT(KEYS_OWN "deletion-approved-for") },
        { STR_INIT(KEYS_LEGACY "approve-maintenance"),
          STR_INIT(KEYS_OWN "maintenance-approved-for") },
    };
    struct bridge_fixture *s = ctx;
    if (!str_eq(commit->plural, STR("nodes")) || commit->now == NULL) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct jval *label = jval_get(jval_at(commit->now, "metadata.labels"), keys[i][0]);
        struct str request =
            jval_str(jval_get(jval_at(commit->now, "metadata.annotations"), keys[i][1]));
        struct str before =
            commit->old == NULL
                ? STR_NONE
                : jval_str(jval_get(jval_at(commit->old, "metadata.annotations"), keys[i][1]));
        if (label != NULL && !str_eq(before, request)) {
            struct witness w = { .fixture = s, .request = request, .node = commit->name };
            apiserver_each(bridge_fixture_find_cluster(s, "east")->server, GROUP, PLURAL, STR(""),
                           witness_look, &w);
            CHECK(w.held);
        }
    }
}

/* One at a time, as a limit of one has it. */
static void grant_one(struct bridge_fixture *s)
{
    static const char *const nodes[] = { "e1", "e2" };
    if (requests(s, NULL, "Approved") + requests(s, NULL, "InProgress") > 0) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        if (requests(s, nodes[i], NULL) == 1 && requests(s, nodes[i], "Pending") == 1) {
            put_state(s, nodes[i], "Approved");
            return;
        }
    }
}

/* Requests come and go, the network loses what it likes, and the bridge dies now and then. */
TEST(bridge_route_approves_only_what_is_granted_in_any_weather)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct bridge_fixture s;
        struct rng rng;
        static const char *const machines[] = { "e1", "e2" };
        check_case((int64_t)seed);
        rng_init(&rng, seed);
        begin(&s);
        struct bridge_fixture_cluster *east = bridge_fixture_find_cluster(&s, "east");
        apiserver_on_commit(east->server, witness_commit, &s);
        faults_randomize(&east->faults);
        for (int step = 0; step < 80; step++) {
            const char *machine = machines[rng_below(&rng, 2)];
            switch (rng_below(&rng, 4)) {
            case 0:
                bridge_fixture_label_machine(&s, machine, KEY_MAINTENANCE,
                                             rng_below(&rng, 2) == 0 ? "requested" : NULL);
                break;
            case 1:
                if (rng_below(&rng, 4) == 0) {
                    bridge_fixture_crash(&s);
                    bridge_fixture_bridge(&s, &routed);
                }
                break;
            case 2:
                bridge_fixture_label_machine(&s, machine, KEY_ENABLED,
                                             rng_below(&rng, 4) > 0 ? "true" : NULL);
                break;
            default:
                grant_one(&s);
            }
            bridge_fixture_run(&s, MSECONDS(100) * rng_below(&rng, 100));
        }
        east->faults.calm = true;
        for (size_t i = 0; i < 2; i++) {
            bridge_fixture_label_machine(&s, machines[i], KEY_ENABLED, "true");
            bridge_fixture_label_machine(&s, machines[i], KEY_MAINTENANCE, "requested");
        }
        for (int i = 0; i < 40; i++) {
            bridge_fixture_run(&s, SECONDS(30));
            grant_one(&s);
            for (size_t k = 0; k < 2; k++) {
                if (str_eq(bridge_fixture_machine_label(&s, machines[k], KEY_MAINTENANCE),
                           KEY_APPROVED)) {
                    bridge_fixture_label_machine(&s, machines[k], KEY_MAINTENANCE, NULL);
                }
            }
        }
        CHECK_EQ(requests(&s, NULL, NULL), 0);
        CHECK(bridge_fixture_machine_label(&s, "e1", KEY_MAINTENANCE).p == NULL);
        CHECK(bridge_fixture_machine_label(&s, "e2", KEY_MAINTENANCE).p == NULL);
        bridge_fixture_end(&s);
    }
    check_case(-1);
}

/* ── what it costs ─────────────────────────────────────────────────────────────────────────── */

TEST(bridge_route_watches_requests_only_while_there_are_some)
{
    struct bridge_fixture s;
    begin(&s);
    CHECK(!watched(&s));
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, SECONDS(2));
    CHECK(watched(&s));
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, NULL);
    bridge_fixture_run(&s, SECONDS(2));
    CHECK(!watched(&s));
    bridge_fixture_end(&s);
}

TEST(bridge_route_writes_nothing_while_nothing_changes)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_label_machine(&s, "e1", KEY_MAINTENANCE, "requested");
    bridge_fixture_run(&s, MINUTES(2));
    uint64_t management = apiserver_resource_version(s.management);
    uint64_t away = apiserver_resource_version(bridge_fixture_find_cluster(&s, "east")->server);
    bridge_fixture_run(&s, HOURS(2));
    CHECK_EQ(apiserver_resource_version(s.management), management);
    CHECK_EQ(apiserver_resource_version(bridge_fixture_find_cluster(&s, "east")->server), away);
    bridge_fixture_end(&s);
}

TEST(bridge_route_leaves_what_is_paused_alone)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(2));
    bridge_fixture_annotate_machine(&s, "e1", KEY_PAUSED, "");
    bridge_fixture_run(&s, SECONDS(2));
    put_state(&s, "e1", "Approved");
    bridge_fixture_run(&s, MINUTES(1));
    CHECK_EQ(requests(&s, "e1", "Approved"), 1);
    bridge_fixture_annotate_machine(&s, "e1", KEY_PAUSED, NULL);
    bridge_fixture_run(&s, SECONDS(2));
    CHECK_EQ(requests(&s, "e1", "InProgress"), 1);
    CHECK(!bridge_fixture_has_hook(&s, "e1"));
    bridge_fixture_end(&s);
}

/* The kinds come while it runs. */
TEST(bridge_route_finds_requests_that_are_installed_later)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_run(&s, MINUTES(3));
    install(&s, "west");
    bridge_fixture_run(&s, MINUTES(6));
    CHECK(bridge_fixture_has_hook(&s, "w1"));
    bridge_fixture_end(&s);
}

/* A server that has just begun may not know its kinds yet: that is no reason to let anything go. */
TEST(bridge_route_wants_to_hear_twice_that_there_are_no_requests)
{
    struct bridge_fixture s;
    begin(&s);
    bridge_fixture_delete_machine(&s, "e1");
    bridge_fixture_run(&s, SECONDS(2));
    bridge_fixture_crash(&s);
    struct str crd = STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/");
    for (size_t i = 0; i < crds_count; i++) {
        struct str name = jval_str(jval_at(crd_object(&crds[i], &s.memory), "metadata.name"));
        bridge_fixture_workload(&s, "east", "DELETE", arena_concat(&s.memory, crd, name), "");
    }
    bridge_fixture_bridge(&s, &routed);
    bridge_fixture_run(&s, SECONDS(25));
    CHECK(bridge_fixture_has_hook(&s, "e1") && bridge_fixture_has_hook(&s, "e2"));
    install(&s, "east");
    bridge_fixture_run(&s, SECONDS(40));
    CHECK(bridge_fixture_has_hook(&s, "e1") && bridge_fixture_has_hook(&s, "e2"));
    CHECK_EQ(requests(&s, "e1", "Pending"), 1);
    bridge_fixture_end(&s);
}

/* By default nothing of it happens. */
TEST(bridge_route_is_not_taken_unless_told)
{
    struct bridge_fixture s;
    bridge_fixture_begin(&s, "v1beta2");
    bridge_fixture_add_cluster(&s, "east");
    install(&s, "east");
    bridge_fixture_machine(&s, "east", "e1", "enabled");
    bridge_fixture_machine(&s, "east", "e2", "enabled managed");
    bridge_fixture_bridge(&s, NULL);
    bridge_fixture_run(&s, SECONDS(5));
    CHECK(!bridge_fixture_has_hook(&s, "e1") && bridge_fixture_has_hook(&s, "e2"));
    bridge_fixture_delete_machine(&s, "e2");
    bridge_fixture_run(&s, MINUTES(1));
    CHECK_EQ(requests(&s, NULL, NULL), 0);
    bridge_fixture_end(&s);
}
