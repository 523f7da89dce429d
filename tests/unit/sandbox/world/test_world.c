#include "base/arena.h"
#include "base/map.h"
#include "format/json.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/world/world.h"
#include "tests/check.h"

#define WALL_START SECONDS(1700000000)

struct world_fixture {
    struct virtual_loop *v;
    struct apiserver *server;
    struct world *world;
    struct arena memory;
    uint64_t hash;
};

static void world_fixture_on_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct world_fixture *s = ctx;
    static const uint64_t key[2] = { 1, 2 };
    s->hash = s->hash * 31 + map_hash(key, commit->name) + commit->version +
              (uint64_t)virtual_loop_now(s->v);
}

static void world_fixture_init_with(struct world_fixture *s, const struct world_config *config)
{
    *s = (struct world_fixture){ .v = virtual_loop_new(config->seed, WALL_START) };
    s->server = apiserver_new(virtual_loop_root(s->v), config->seed);
    s->world = world_new(virtual_loop_root(s->v), s->server, config);
    world_on_commit(s->world, world_fixture_on_commit, s);
}

static void world_fixture_init(struct world_fixture *s, uint32_t nodes)
{
    world_fixture_init_with(s, &(struct world_config){ .seed = 1, .nodes = nodes, .zones = 3 });
}

static void world_fixture_done(struct world_fixture *s)
{
    apiserver_check(s->server);
    world_free(s->world);
    apiserver_free(s->server);
    arena_done(&s->memory);
    CHECK_EQ(virtual_loop_armed(s->v), 0);
    virtual_loop_free(s->v);
}

static void world_fixture_run(struct world_fixture *s, usec_t duration)
{
    (void)virtual_loop_run(s->v, virtual_loop_now(s->v) + duration);
}

static int world_fixture_send(struct world_fixture *s, const char *method, const char *path,
                              const char *body)
{
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = str_eq(str_from(method), STR("PATCH")) ? STR("application/merge-patch+json")
                                                               : STR("application/json"),
        .body = str_from(body),
    };
    struct apiserver_reply reply;
    apiserver_handle(s->server, &request, &s->memory, &reply);
    if (reply.status >= 400 && reply.status != 429 && reply.status != 404) {
        print_error("%s %s: %d " STR_FMT "\n", method, path, reply.status, STR_ARG(reply.body));
    }
    return reply.status;
}

static void world_fixture_world(struct world_fixture *s, const char *yaml)
{
    struct world_config config = { 0 };
    struct str *objects;
    uint32_t n;
    struct err err = { 0 };
    if (world_file_read(str_from(yaml), &s->memory, &config, &objects, &n, &err) != 0 ||
        world_create_objects(s->world, objects, n, &err) != 0) {
        check_fail(__FILE__, __LINE__, "%s", err.msg);
    }
}

static int64_t world_fixture_number(struct world_fixture *s, const char *group, const char *plural,
                                    const char *name, const char *path)
{
    int64_t n = 0;
    const struct jval *object = apiserver_find(s->server, str_from(group), str_from(plural),
                                               STR("default"), str_from(name));
    CHECK(object != NULL);
    (void)jval_i64(jval_at(object, path), &n); /* absent counts as 0 */
    return n;
}

static struct str world_fixture_node_condition(struct world_fixture *s, const char *node)
{
    const struct jval *object =
        apiserver_find(s->server, STR(""), STR("nodes"), STR(""), str_from(node));
    JVAL_EACH (jval_at(object, "status.conditions"), c) {
        if (str_eq(jval_str(jval_at(c, "type")), STR("Ready"))) {
            return jval_str(jval_at(c, "status"));
        }
    }
    return STR("absent");
}

static uint32_t world_fixture_taints(struct world_fixture *s, const char *node)
{
    const struct jval *taints = jval_at(
        apiserver_find(s->server, STR(""), STR("nodes"), STR(""), str_from(node)), "spec.taints");
    return taints != NULL ? taints->n : 0;
}

/* Pods by node, and what kinds of owner they have. */
struct pod_census {
    const char *node; /* NULL: all */
    const char *owner_kind;
    uint32_t pods;
    uint32_t ready;
    uint32_t bound;
    char names[512];
};

static void census_visit(void *ctx, const struct jval *pod)
{
    struct pod_census *c = ctx;
    struct str node = jval_str(jval_at(pod, "spec.nodeName"));
    const struct jval *owner = jval_first(jval_at(pod, "metadata.ownerReferences"));
    if ((c->node != NULL && !str_eq(node, str_from(c->node))) ||
        (c->owner_kind != NULL &&
         !str_eq(jval_str(jval_at(owner, "kind")), str_from(c->owner_kind)))) {
        return;
    }
    c->pods++;
    c->bound += node.n > 0;
    JVAL_EACH (jval_at(pod, "status.conditions"), condition) {
        c->ready += str_eq(jval_str(jval_at(condition, "type")), STR("Ready")) &&
                    str_eq(jval_str(jval_at(condition, "status")), STR("True"));
    }
    struct str name = jval_str(jval_at(pod, "metadata.name"));
    size_t n = strlen(c->names);
    (void)snprintf(c->names + n, sizeof(c->names) - n, "%s" STR_FMT, n > 0 ? " " : "",
                   STR_ARG(name));
}

static struct pod_census world_fixture_pods(struct world_fixture *s, const char *node,
                                            const char *owner_kind)
{
    struct pod_census c = { .node = node, .owner_kind = owner_kind };
    apiserver_each(s->server, STR(""), STR("pods"), STR(""), census_visit, &c);
    return c;
}

struct evictor {
    struct world_fixture *s;
    const char *node;
    char paths[64][256];
    uint32_t n;
};

static void evictor_visit(void *ctx, const struct jval *pod)
{
    struct evictor *e = ctx;
    const struct jval *owner = jval_first(jval_at(pod, "metadata.ownerReferences"));
    if (str_eq(jval_str(jval_at(pod, "spec.nodeName")), str_from(e->node)) &&
        jval_at(pod, "metadata.deletionTimestamp") == NULL && e->n < 64 &&
        !str_eq(jval_str(jval_at(owner, "kind")), STR("DaemonSet"))) {
        (void)snprintf(e->paths[e->n++], sizeof(e->paths[0]),
                       "/api/v1/namespaces/" STR_FMT "/pods/" STR_FMT "/eviction",
                       STR_ARG(jval_str(jval_at(pod, "metadata.namespace"))),
                       STR_ARG(jval_str(jval_at(pod, "metadata.name"))));
    }
}

/* Tries to evict every pod of the node but daemons; answers how many the budgets refused. */
static uint32_t world_fixture_evict(struct world_fixture *s, const char *node)
{
    struct evictor e = { .s = s, .node = node };
    uint32_t refused = 0;
    apiserver_each(s->server, STR(""), STR("pods"), STR(""), evictor_visit, &e);
    for (uint32_t i = 0; i < e.n; i++) {
        struct str name;
        struct str path = str_from(e.paths[i]);
        (void)str_cut_suffix(path, STR("/eviction"), &path);
        name = str_sub(path, str_rfind_char(path, '/') + 1, path.n);
        char body[256];
        (void)snprintf(body, sizeof(body),
                       "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                       "\"name\":\"" STR_FMT "\",\"namespace\":\"default\"}}",
                       STR_ARG(name));
        int status = world_fixture_send(s, "POST", e.paths[i], body);
        CHECK(status == 201 || status == 429);
        refused += status == 429;
    }
    return refused;
}

TEST(world_nodes_are_as_a_kubelet_registers_them)
{
    struct world_fixture s;
    world_fixture_init(&s, 4);
    world_fixture_run(&s, SECONDS(1));
    CHECK_EQ(world_node_count(s.world), 4);
    const struct jval *node =
        apiserver_find(s.server, STR(""), STR("nodes"), STR(""), STR("node-002"));
    const struct jval *labels = jval_at(node, "metadata.labels");
    CHECK_STR(jval_str(jval_get(labels, STR("kubernetes.io/hostname"))), "node-002");
    CHECK_STR(jval_str(jval_get(labels, STR("topology.kubernetes.io/zone"))), "sandbox-b");
    CHECK_STR(jval_str(jval_at(node, "status.capacity.pods")), "110");
    CHECK_STR(jval_str(jval_at(node, "status.nodeInfo.kubeletVersion")), "v1.35.4");
    CHECK_STR(world_fixture_node_condition(&s, "node-004"), "True");
    CHECK_EQ(world_fixture_taints(&s, "node-004"), 0);
    world_fixture_done(&s);
}

TEST(world_without_events_and_heartbeats_costs_nothing)
{
    struct world_fixture s;
    world_fixture_init(&s, 10);
    world_fixture_run(&s, MINUTES(1));
    uint64_t requests = world_requests_sent(s.world);
    CHECK_EQ(virtual_loop_run(s.v, virtual_loop_now(s.v) + DAYS(30)), 0);
    CHECK_EQ(world_requests_sent(s.world), requests);
    world_fixture_done(&s);
}

TEST(world_heartbeats_renew_leases_and_status)
{
    struct world_fixture s;
    world_fixture_init_with(
        &s, &(struct world_config){ .seed = 1, .nodes = 3, .heartbeats = WORLD_HEARTBEATS_BOTH });
    world_fixture_run(&s, HOURS(1));
    uint64_t before = world_requests_sent(s.world);
    world_fixture_run(&s, HOURS(1));
    /* 360 leases and 12 statuses for each of three */
    uint64_t beats = world_requests_sent(s.world) - before;
    CHECK(beats >= 3 * 370 && beats <= 3 * 374);
    const struct jval *lease = apiserver_find(s.server, STR("coordination.k8s.io"), STR("leases"),
                                              STR("kube-node-lease"), STR("node-001"));
    CHECK_STR(jval_str(jval_at(lease, "spec.holderIdentity")), "node-001");
    world_fixture_done(&s);
}

TEST(world_deployment_becomes_available_and_spreads)
{
    struct world_fixture s;
    world_fixture_init(&s, 3);
    world_fixture_world(&s, "workloads: [{name: web, replicas: 6}]");
    world_fixture_run(&s, SECONDS(1));
    CHECK_EQ(world_fixture_number(&s, "apps", "deployments", "web", "status.replicas"), 6);
    CHECK_EQ(world_fixture_number(&s, "apps", "deployments", "web", "status.readyReplicas"), 0);
    world_fixture_run(&s, SECONDS(10));
    CHECK_EQ(world_fixture_number(&s, "apps", "deployments", "web", "status.readyReplicas"), 6);
    CHECK_EQ(world_fixture_number(&s, "apps", "deployments", "web", "status.updatedReplicas"), 6);
    CHECK_EQ(world_fixture_number(&s, "apps", "deployments", "web", "status.observedGeneration"),
             1);
    CHECK_EQ(world_fixture_pods(&s, "node-001", NULL).ready, 2);
    CHECK_EQ(world_fixture_pods(&s, "node-002", NULL).ready, 2);
    CHECK_EQ(world_fixture_pods(&s, "node-003", NULL).ready, 2);
    CHECK_EQ(world_fixture_send(&s, "PATCH", "/apis/apps/v1/namespaces/default/deployments/web",
                                "{\"spec\":{\"replicas\":2}}"),
             200);
    world_fixture_run(&s, SECONDS(10));
    CHECK_EQ(world_fixture_pods(&s, NULL, NULL).pods, 2);
    world_fixture_done(&s);
}

TEST(world_deployment_rolls_out_a_new_template)
{
    struct world_fixture s;
    world_fixture_init(&s, 3);
    world_fixture_world(&s, "workloads: [{name: web, replicas: 4}]");
    world_fixture_run(&s, SECONDS(10));
    struct pod_census before = world_fixture_pods(&s, NULL, NULL);
    CHECK_EQ(world_fixture_send(
                 &s, "PATCH", "/apis/apps/v1/namespaces/default/deployments/web",
                 "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"v\":\"2\"}}}}}"),
             200);
    for (int i = 0; i < 200; i++) {
        world_fixture_run(&s, MSECONDS(500));
        /* a quarter of four may be missing, and one may be too many */
        CHECK(world_fixture_number(&s, "apps", "deployments", "web", "status.readyReplicas") >= 3);
    }
    CHECK_EQ(world_fixture_number(&s, "apps", "deployments", "web", "status.updatedReplicas"), 4);
    CHECK_EQ(world_fixture_number(&s, "apps", "deployments", "web", "status.replicas"), 4);
    struct pod_census after = world_fixture_pods(&s, NULL, NULL);
    CHECK_EQ(after.pods, 4);
    CHECK(!str_eq(str_from(before.names), str_from(after.names)));
    world_fixture_done(&s);
}

TEST(world_drain_respects_the_budget_and_pods_move)
{
    struct world_fixture s;
    world_fixture_init(&s, 3);
    world_fixture_world(&s, "workloads:\n"
                            "- {name: web, replicas: 3}\n"
                            "- {name: agent, kind: DaemonSet}\n"
                            "budgets: [{name: web, minAvailable: 3}]\n");
    world_fixture_run(&s, SECONDS(20));
    CHECK_EQ(world_fixture_pods(&s, NULL, "DaemonSet").ready, 3);
    CHECK_EQ(world_fixture_number(&s, "policy", "poddisruptionbudgets", "web",
                                  "status.disruptionsAllowed"),
             0);
    CHECK_EQ(
        world_fixture_number(&s, "policy", "poddisruptionbudgets", "web", "status.currentHealthy"),
        3);
    CHECK_EQ(world_fixture_send(&s, "PATCH", "/api/v1/nodes/node-001",
                                "{\"spec\":{\"unschedulable\":true}}"),
             200);
    world_fixture_run(&s, SECONDS(1));
    CHECK_EQ(world_fixture_taints(&s, "node-001"), 1);
    CHECK_EQ(world_fixture_evict(&s, "node-001"), 1);
    world_fixture_run(&s, SECONDS(30));
    CHECK_EQ(world_fixture_pods(&s, "node-001", "ReplicaSet").pods, 1);
    CHECK_EQ(world_fixture_send(&s, "PATCH",
                                "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web",
                                "{\"spec\":{\"minAvailable\":2}}"),
             200);
    world_fixture_run(&s, SECONDS(1));
    CHECK_EQ(world_fixture_evict(&s, "node-001"), 0);
    world_fixture_run(&s, SECONDS(30));
    CHECK_EQ(world_fixture_pods(&s, "node-001", "ReplicaSet").pods, 0);
    CHECK_EQ(world_fixture_pods(&s, "node-001", "DaemonSet").ready, 1);
    CHECK_EQ(world_fixture_pods(&s, NULL, "ReplicaSet").ready, 3);
    CHECK_EQ(world_fixture_number(&s, "policy", "poddisruptionbudgets", "web",
                                  "status.disruptionsAllowed"),
             1);
    CHECK_EQ(world_fixture_send(&s, "PATCH", "/api/v1/nodes/node-001",
                                "{\"spec\":{\"unschedulable\":null}}"),
             200);
    world_fixture_run(&s, SECONDS(1));
    CHECK_EQ(world_fixture_taints(&s, "node-001"), 0);
    world_fixture_done(&s);
}

TEST(world_pods_wait_for_a_place)
{
    struct world_fixture s;
    world_fixture_init(&s, 1);
    CHECK_EQ(world_fixture_send(&s, "PATCH", "/api/v1/nodes/node-001",
                                "{\"spec\":{\"unschedulable\":true}}"),
             200);
    world_fixture_world(&s, "workloads: [{name: web, replicas: 2}]");
    world_fixture_run(&s, MINUTES(1));
    CHECK_EQ(world_fixture_pods(&s, NULL, NULL).bound, 0);
    CHECK_EQ(world_fixture_send(&s, "PATCH", "/api/v1/nodes/node-001",
                                "{\"spec\":{\"unschedulable\":false}}"),
             200);
    world_fixture_run(&s, SECONDS(10));
    CHECK_EQ(world_fixture_pods(&s, NULL, NULL).ready, 2);
    world_fixture_done(&s);
}

TEST(world_reboot_takes_a_node_down_and_brings_it_back)
{
    struct world_fixture s;
    struct err err = { 0 };
    world_fixture_init(&s, 2);
    world_fixture_world(&s, "workloads: [{name: web, replicas: 2}]");
    world_fixture_run(&s, SECONDS(10));
    CHECK_EQ(world_reboot_node(s.world, STR("node-001"), &err), 0);
    world_fixture_run(&s, SECONDS(5));
    CHECK_STR(world_fixture_node_condition(&s, "node-001"), "False");
    CHECK_EQ(world_fixture_taints(&s, "node-001"), 2);
    CHECK_EQ(world_fixture_pods(&s, "node-001", NULL).ready, 0);
    CHECK_EQ(world_fixture_number(&s, "apps", "deployments", "web", "status.readyReplicas"), 1);
    world_fixture_run(&s, SECONDS(70));
    CHECK_STR(world_fixture_node_condition(&s, "node-001"), "True");
    CHECK_EQ(world_fixture_taints(&s, "node-001"), 0);
    CHECK_EQ(world_fixture_pods(&s, "node-001", NULL).ready, 1); /* the same pod, started again */
    const struct jval *node =
        apiserver_find(s.server, STR(""), STR("nodes"), STR(""), STR("node-001"));
    CHECK(jval_get(jval_at(node, "metadata.annotations"), STR("sandbox.drydock.dev/reboot")) ==
          NULL);
    CHECK_EQ(world_reboot_node(s.world, STR("node-999"), &err), -ERR_NOTFOUND);
    world_fixture_done(&s);
}

TEST(world_dead_kubelet_makes_its_node_unknown_and_its_pods_leave)
{
    struct world_fixture s;
    struct err err = { 0 };
    world_fixture_init(&s, 2);
    world_fixture_world(&s, "workloads: [{name: web, replicas: 2}]");
    world_fixture_run(&s, SECONDS(10));
    CHECK_EQ(world_fail_node(s.world, STR("node-002"), &err), 0);
    world_fixture_run(&s, SECONDS(30));
    CHECK_STR(world_fixture_node_condition(&s, "node-002"), "True");
    world_fixture_run(&s, SECONDS(30));
    CHECK_STR(world_fixture_node_condition(&s, "node-002"), "Unknown");
    CHECK_EQ(world_fixture_pods(&s, "node-002", NULL).ready, 0);
    world_fixture_run(&s, MINUTES(6)); /* tolerated for five */
    CHECK_EQ(world_fixture_pods(&s, "node-001", NULL).ready, 2);
    CHECK_EQ(world_fixture_pods(&s, "node-002", NULL).pods, 1); /* nobody there to stop it */
    CHECK_EQ(world_recover_node(s.world, STR("node-002"), &err), 0);
    world_fixture_run(&s, MINUTES(1));
    CHECK_STR(world_fixture_node_condition(&s, "node-002"), "True");
    CHECK_EQ(world_fixture_pods(&s, "node-002", NULL).pods, 0);
    CHECK_EQ(world_fixture_taints(&s, "node-002"), 0);
    world_fixture_done(&s);
}

TEST(world_node_can_be_added_and_removed)
{
    struct world_fixture s;
    struct err err = { 0 };
    world_fixture_init(&s, 1);
    world_fixture_world(&s,
                        "workloads: [{name: web, replicas: 1}, {name: agent, kind: DaemonSet}]");
    world_fixture_run(&s, SECONDS(10));
    CHECK_EQ(world_add_node(s.world, STR(""), &err), 0);
    CHECK_EQ(world_add_node(s.world, STR("node-001"), &err), -ERR_CONFLICT);
    world_fixture_run(&s, SECONDS(5));
    CHECK_STR(world_fixture_node_condition(&s, "node-002"), "False");
    world_fixture_run(&s, SECONDS(40));
    CHECK_STR(world_fixture_node_condition(&s, "node-002"), "True");
    CHECK_EQ(world_fixture_pods(&s, "node-002", "DaemonSet").ready, 1);
    CHECK_EQ(world_remove_node(s.world, STR("node-001"), &err), 0);
    world_fixture_run(&s, MINUTES(3));
    CHECK_EQ(world_node_count(s.world), 1);
    CHECK_EQ(world_fixture_pods(&s, "node-001", NULL).pods, 0);
    CHECK_EQ(world_fixture_pods(&s, "node-002", "ReplicaSet").ready, 1);
    world_fixture_done(&s);
}

TEST(world_node_made_by_hand_gets_a_machine)
{
    struct world_fixture s;
    world_fixture_init(&s, 1);
    CHECK_EQ(world_fixture_send(
                 &s, "POST", "/api/v1/nodes",
                 "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"mine\"}}"),
             201);
    world_fixture_run(&s, SECONDS(5));
    CHECK_STR(world_fixture_node_condition(&s, "mine"), "False");
    world_fixture_run(&s, SECONDS(40));
    CHECK_STR(world_fixture_node_condition(&s, "mine"), "True");
    world_fixture_done(&s);
}

TEST(world_statefulset_keeps_order_and_names)
{
    struct world_fixture s;
    world_fixture_init(&s, 3);
    world_fixture_world(&s, "workloads: [{name: db, kind: StatefulSet, replicas: 3}]");
    world_fixture_run(&s, MSECONDS(500));
    CHECK_STR(world_fixture_pods(&s, NULL, NULL).names, "db-0");
    world_fixture_run(&s, SECONDS(30));
    CHECK_STR(world_fixture_pods(&s, NULL, NULL).names, "db-0 db-1 db-2");
    CHECK_EQ(world_fixture_number(&s, "apps", "statefulsets", "db", "status.readyReplicas"), 3);
    CHECK_EQ(world_fixture_send(&s, "DELETE", "/api/v1/namespaces/default/pods/db-1", ""), 200);
    world_fixture_run(&s, SECONDS(30));
    CHECK_STR(world_fixture_pods(&s, NULL, NULL).names, "db-0 db-1 db-2");
    CHECK_EQ(world_fixture_send(&s, "PATCH", "/apis/apps/v1/namespaces/default/statefulsets/db",
                                "{\"spec\":{\"replicas\":1}}"),
             200);
    world_fixture_run(&s, SECONDS(1));
    CHECK_EQ(world_fixture_pods(&s, NULL, NULL).pods, 3); /* db-2 is going, db-1 waits for it */
    world_fixture_run(&s, SECONDS(30));
    CHECK_STR(world_fixture_pods(&s, NULL, NULL).names, "db-0");
    world_fixture_done(&s);
}

TEST(world_job_completes_and_cronjob_makes_jobs)
{
    struct world_fixture s;
    world_fixture_init(&s, 2);
    world_fixture_world(
        &s, "workloads: [{name: load, kind: Job, replicas: 3}]\n"
            "objects:\n"
            "- apiVersion: batch/v1\n"
            "  kind: CronJob\n"
            "  metadata: {name: tick, namespace: default}\n"
            "  spec:\n"
            "    schedule: '*/10 * * * *'\n"
            "    jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: "
            "[{name: main, image: x}]}}}}\n");
    world_fixture_run(&s, SECONDS(5));
    CHECK_EQ(world_fixture_number(&s, "batch", "jobs", "load", "status.active"), 1);
    world_fixture_run(&s, MINUTES(2));
    CHECK_EQ(world_fixture_number(&s, "batch", "jobs", "load", "status.succeeded"), 3);
    const struct jval *job =
        apiserver_find(s.server, STR("batch"), STR("jobs"), STR("default"), STR("load"));
    CHECK(jval_at(job, "status.completionTime") != NULL);
    CHECK_EQ(apiserver_count(s.server, STR("batch"), STR("jobs")), 1);
    world_fixture_run(&s, HOURS(1));
    CHECK_EQ(apiserver_count(s.server, STR("batch"), STR("jobs")), 1 + 6);
    world_fixture_done(&s);
}

TEST(world_namespaces_get_what_pods_need)
{
    struct world_fixture s;
    world_fixture_init(&s, 1);
    world_fixture_world(&s, "namespaces: [shop]\nworkloads: [{name: web, namespace: shop}]");
    world_fixture_run(&s, SECONDS(10));
    CHECK(apiserver_find(s.server, STR(""), STR("serviceaccounts"), STR("shop"), STR("default")) !=
          NULL);
    CHECK(apiserver_find(s.server, STR(""), STR("configmaps"), STR("shop"),
                         STR("kube-root-ca.crt")) != NULL);
    CHECK_EQ(world_fixture_pods(&s, NULL, NULL).ready, 1);
    CHECK_EQ(world_fixture_send(&s, "DELETE", "/api/v1/namespaces/shop", ""), 200);
    world_fixture_run(&s, MINUTES(1));
    CHECK(apiserver_find(s.server, STR(""), STR("namespaces"), STR(""), STR("shop")) == NULL);
    CHECK_EQ(world_fixture_pods(&s, NULL, NULL).pods, 0);
    world_fixture_done(&s);
}

/* Numbers as the disruption controller of Kubernetes 1.35 gives them. */
TEST(world_budget_counts_as_the_real_controller)
{
    static const struct {
        const char *spec;
        int64_t expected, desired, allowed;
    } cases[] = {
        { "minAvailable: 2", 5, 2, 3 },       { "minAvailable: 7", 5, 7, 0 },
        { "minAvailable: '50%'", 5, 3, 2 },   { "maxUnavailable: 1", 5, 4, 1 },
        { "maxUnavailable: '30%'", 5, 3, 2 }, { "maxUnavailable: 0", 5, 5, 0 },
        { "maxUnavailable: 9", 5, 0, 5 },     { "minAvailable: '100%'", 5, 5, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct world_fixture s;
        char yaml[256];
        world_fixture_init(&s, 3);
        (void)snprintf(yaml, sizeof(yaml),
                       "workloads: [{name: web, replicas: 5}]\nbudgets: [{name: web, %s}]",
                       cases[i].spec);
        world_fixture_world(&s, yaml);
        world_fixture_run(&s, SECONDS(20));
        const char *kind = "poddisruptionbudgets";
        CHECK_EQ(world_fixture_number(&s, "policy", kind, "web", "status.expectedPods"),
                 cases[i].expected);
        CHECK_EQ(world_fixture_number(&s, "policy", kind, "web", "status.desiredHealthy"),
                 cases[i].desired);
        CHECK_EQ(world_fixture_number(&s, "policy", kind, "web", "status.disruptionsAllowed"),
                 cases[i].allowed);
        CHECK_EQ(world_fixture_number(&s, "policy", kind, "web", "status.currentHealthy"), 5);
        CHECK_EQ(world_fixture_number(&s, "policy", kind, "web", "status.observedGeneration"), 1);
        world_fixture_done(&s);
    }
}

TEST(world_file_says_where_it_is_wrong)
{
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        { "nodes: many", "line 1, column 8: nodes: want a number from 0 to 20000" },
        { "nodes: 3\nzoo: 1", "line 2, column 1: 'zoo' is nothing that a world has" },
        { "heartbeats: often", "line 1, column 13: heartbeats: want none, status, lease or both" },
        { "delays: {boot: soon}", "line 1, column 16: want a duration such as 30s" },
        { "workloads: [{name: A}]",
          "line 1, column 13: want a name of small letters, digits and '-'" },
        { "workloads: [{name: a, kind: Thing}]",
          "line 1, column 29: want Deployment, StatefulSet, DaemonSet or Job" },
        { "budgets: [{name: a}]",
          "line 1, column 11: want one of minAvailable and maxUnavailable" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_done)
        struct arena a = { 0 };
        struct world_config config = { 0 };
        struct str *objects;
        uint32_t n;
        struct err err = { 0 };
        CHECK_EQ(world_file_read(str_from(cases[i].yaml), &a, &config, &objects, &n, &err),
                 -ERR_INVALID);
        CHECK_STR(err.msg, cases[i].message);
    }
}

static uint64_t world_run_hash(uint64_t seed)
{
    struct world_fixture s;
    struct err err = { 0 };
    world_fixture_init_with(
        &s,
        &(struct world_config){ .seed = seed, .nodes = 5, .heartbeats = WORLD_HEARTBEATS_LEASE });
    world_fixture_world(&s, "workloads:\n"
                            "- {name: web, replicas: 6}\n"
                            "- {name: db, kind: StatefulSet, replicas: 2}\n"
                            "- {name: agent, kind: DaemonSet}\n"
                            "budgets: [{name: web, maxUnavailable: 1}]\n");
    world_fixture_run(&s, SECONDS(20));
    CHECK_EQ(world_reboot_node(s.world, STR("node-003"), &err), 0);
    (void)world_fixture_evict(&s, "node-001"); /* whether budgets refuse does not matter here */
    world_fixture_run(&s, MINUTES(10));
    CHECK_EQ(world_fail_node(s.world, STR("node-002"), &err), 0);
    world_fixture_run(&s, MINUTES(10));
    uint64_t hash = s.hash;
    world_fixture_done(&s);
    return hash;
}

TEST(world_repeats_a_run_from_its_seed)
{
    CHECK(world_run_hash(7) == world_run_hash(7));
    CHECK(world_run_hash(7) != world_run_hash(8));
}
