#include "client/uninstall.h"

#include "tests/unit/client/client_fixture.h"

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"
#define LEADER "maintenance-controller-leader-election.cloud.sap"
#define MAINTENANCES "/apis/drydock.dev/v1alpha1/nodemaintenances"

/* A cluster that a controller has left. */
struct fixture {
    struct actor_fixture base;
    struct buf told; /* a line a change */
    bool disturbs;   /* somebody writes the node as soon as it is told of */
};

static void on_change(void *ctx, struct str text)
{
    struct fixture *f = ctx;
    buf_add(&f->told, text);
    buf_add(&f->told, STR("\n"));
    if (f->disturbs && str_starts(text, STR("node/n1:"))) {
        CHECK_EQ(actor_fixture_http(&f->base, "PATCH", STR("/api/v1/nodes/n1"),
                                    STR("{\"metadata\":{\"labels\":{\"theirs\":\"now\"}}}")),
                 200);
    }
}

static void put(struct fixture *f, const char *method, const char *path, const char *body)
{
    int status = actor_fixture_http(&f->base, method, str_from(path), str_from(body));
    CHECK(status == 200 || status == 201);
}

static void begin(struct fixture *f)
{
    *f = (struct fixture){ 0 };
    actor_fixture_begin(&f->base, "tester");
    actor_fixture_install(&f->base);
    for (size_t i = 0; i < operation_crds_count; i++) {
        const struct tree *crd =
            tree_from(&f->base.memory, crd_object(&operation_crds[i], &f->base.memory));
        CHECK_EQ(
            actor_fixture_http(&f->base, "POST", STR(CRD_PATH), tree_json(&f->base.memory, crd)),
            201);
    }
    (void)virtual_loop_run(f->base.time, virtual_loop_now(f->base.time) + SECONDS(5));
    put(f, "PATCH", "/api/v1/nodes/n1",
        "{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-state\":\"in-maintenance\","
        "\"cloud.sap/maintenance-profile\":\"p\"},\"annotations\":{\"cloud.sap/maintenance-data\":"
        "\"{}\",\"drydock.dev/cordoned-by\":\"profile\"}},\"spec\":{\"unschedulable\":true}}");
    put(f, "PATCH", "/api/v1/nodes/n2", "{\"spec\":{\"unschedulable\":true}}"); /* by hand */
    put(f, "POST", LEASES,
        "{\"metadata\":{\"name\":\"" LEADER "\"},\"spec\":{\"holderIdentity\":\"pod_1\","
        "\"leaseDurationSeconds\":15,\"renewTime\":\"2026-01-02T03:04:00.000000Z\"}}");
    put(f, "POST", LEASES,
        "{\"metadata\":{\"name\":\"target-1\",\"labels\":{\"repairman.k8s.io/lock\":\"target\"}}}");
    put(f, "POST", LEASES, "{\"metadata\":{\"name\":\"somebody-else\"}}");
    put(f, "POST", "/apis/batch/v1/namespaces/default/jobs",
        "{\"metadata\":{\"name\":\"visit\",\"labels\":{\"drydock.dev/managed\":\"true\"}},\"spec\":"
        "{\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\","
        "\"image\":\"i\"}]}}}}");
    put(f, "POST", "/apis/batch/v1/namespaces/default/jobs",
        "{\"metadata\":{\"name\":\"theirs\"},\"spec\":{\"template\":{\"spec\":{\"restartPolicy\":"
        "\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}");
    put(f, "POST", MAINTENANCES,
        "{\"apiVersion\":\"drydock.dev/v1alpha1\",\"kind\":\"NodeMaintenance\",\"metadata\":{"
        "\"name\":\"patch\",\"finalizers\":[\"example.com/theirs\",\"drydock.dev/node-maintenance\""
        "]},\"spec\":{\"operations\":[{\"name\":\"o\",\"type\":\"realtime\",\"reboot\":{"
        "\"policy\":\"IfRequired\"}}]}}");
}

static void end(struct fixture *f)
{
    buf_done(&f->told);
    actor_fixture_end(&f->base);
}

static int run(struct fixture *f, bool apply, bool with_crds)
{
    buf_reset(&f->told);
    f->base.err = (struct err){ 0 };
    return uninstall_run(&f->base.blocking_api,
                         &(struct uninstall_config){
                             .apply = apply,
                             .crds = with_crds,
                             .on_change = on_change,
                             .ctx = f,
                         },
                         &f->base.err);
}

static const struct jval *find(struct fixture *f, const char *group, const char *plural,
                               const char *ns, const char *name)
{
    return apiserver_find(f->base.server, str_from(group), str_from(plural), str_from(ns),
                          str_from(name));
}

static const char all_changes[] =
    "job/default/visit: delete\n"
    "nodemaintenance/patch: remove the finalizer\n"
    "node/n1: lift the cordon, remove cloud.sap/maintenance-state, cloud.sap/maintenance-data, "
    "drydock.dev/cordoned-by\n"
    "lease/default/target-1: delete\n"
    "lease/default/" LEADER ": delete\n";

TEST(uninstall_shows_everything_and_changes_nothing)
{
    struct fixture f;
    begin(&f);
    uint64_t version = apiserver_resource_version(f.base.server);
    CHECK_EQ(run(&f, /* apply= */ false, /* with_crds= */ false), 0);
    CHECK_STR(buf_str(&f.told), all_changes);
    CHECK_EQ(apiserver_resource_version(f.base.server), version);
    end(&f);
}

TEST(uninstall_does_nothing_while_a_controller_leads)
{
    struct fixture f;
    begin(&f);
    put(&f, "PATCH", LEASES "/" LEADER,
        "{\"spec\":{\"renewTime\":\"2026-01-02T03:04:10.000000Z\"}}");
    uint64_t version = apiserver_resource_version(f.base.server);
    CHECK_EQ(run(&f, /* apply= */ true, /* with_crds= */ false), -ERR_BUSY);
    CHECK_STR(f.base.err.msg,
              "a controller runs: 'pod_1' leads in namespace 'default' and would write "
              "everything again; stop it first");
    CHECK_EQ(f.told.n, 0);
    CHECK_EQ(apiserver_resource_version(f.base.server), version);
    end(&f);
}

TEST(uninstall_takes_away_what_is_ours_and_leaves_the_rest)
{
    struct fixture f;
    begin(&f);
    (void)virtual_loop_run(f.base.time, virtual_loop_now(f.base.time) + MINUTES(1));
    f.disturbs = true;
    CHECK_EQ(run(&f, /* apply= */ true, /* with_crds= */ false), 0);
    CHECK_STR(buf_str(&f.told), all_changes);
    const struct jval *node = find(&f, "", "nodes", "", "n1");
    const struct jval *labels = jval_at(node, "metadata.labels");
    CHECK(!jval_bool(jval_at(node, "spec.unschedulable"), false));
    CHECK(jval_get(labels, KEY_STATE) == NULL);
    CHECK_STR(jval_str(jval_get(labels, KEY_PROFILE)), "p");
    CHECK_STR(jval_str(jval_get(labels, STR("theirs"))), "now"); /* written meanwhile */
    CHECK(jval_bool(jval_at(find(&f, "", "nodes", "", "n2"), "spec.unschedulable"), false));
    CHECK(find(&f, "coordination.k8s.io", "leases", "default", LEADER) == NULL);
    CHECK(find(&f, "coordination.k8s.io", "leases", "default", "target-1") == NULL);
    CHECK(find(&f, "coordination.k8s.io", "leases", "default", "somebody-else") != NULL);
    CHECK(find(&f, "batch", "jobs", "default", "theirs") != NULL);
    const struct jval *left =
        jval_at(find(&f, "drydock.dev", "nodemaintenances", "", "patch"), "metadata.finalizers");
    CHECK_EQ(left->n, 1);
    CHECK_STR(jval_str(jval_first(left)), "example.com/theirs");
    CHECK_EQ(run(&f, /* apply= */ true, /* with_crds= */ false), 0);
    CHECK_EQ(f.told.n, 0);
    end(&f);
}

TEST(uninstall_deletes_the_crds_where_it_is_asked_to)
{
    struct fixture f;
    begin(&f);
    (void)virtual_loop_run(f.base.time, virtual_loop_now(f.base.time) + MINUTES(1));
    put(&f, "POST", MAINTENANCE_LIMITS_PATH,
        "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceLimit\",\"metadata\":{"
        "\"name\":\"few\"},\"spec\":{\"type\":\"node\",\"limit\":0,\"minimum\":1}}");
    CHECK_EQ(run(&f, /* apply= */ true, /* with_crds= */ true), 0);
    CHECK(str_contains(buf_str(&f.told),
                       STR("crd/maintenancelimits.repairman.k8s.io: delete, with 1 objects\n")));
    (void)virtual_loop_run(f.base.time, virtual_loop_now(f.base.time) + SECONDS(10));
    CHECK(find(&f, "apiextensions.k8s.io", "customresourcedefinitions", "",
               "maintenancelimits.repairman.k8s.io") == NULL);
    end(&f);
}
