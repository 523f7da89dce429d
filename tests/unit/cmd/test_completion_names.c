#include "cmd/completion_names.h"

#include "tests/unit/client/client_fixture.h"

static void check_names(struct actor_fixture *s, unsigned names, const char *prefix,
                        const char *want)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    usec_t until = loop_now(s->blocking_api.loop) + COMPLETION_NAMES_TIME;
    completion_names_list(&s->blocking_api, until, names, str_from(prefix), &out);
    CHECK_STR(buf_str(&out), want);
}

TEST(completion_names_are_those_of_the_cluster)
{
    struct actor_fixture s;
    actor_fixture_begin(&s, "kured");
    actor_fixture_install(&s);
    check_names(&s, COMMAND_NAMES_NODES, "", "n1\nn2\n");
    check_names(&s, COMMAND_NAMES_NODES, "n2", "n2\n");
    check_names(&s, COMMAND_NAMES_NODES, "x", "");
    check_names(&s, COMMAND_NAMES_LIMITS, "", "");
    check_names(&s, COMMAND_NAMES_MAINTENANCES, "", "");
    check_names(&s, COMMAND_NAMES_MACHINES, "", ""); /* no Cluster API here */
    actor_fixture_end(&s);
}

TEST(completion_names_of_limits_and_machines_are_those_of_the_cluster)
{
    static const char machines[] =
        "{\"metadata\":{\"name\":\"machines.cluster.x-k8s.io\"},\"spec\":{"
        "\"group\":\"cluster.x-k8s.io\",\"scope\":\"Namespaced\","
        "\"names\":{\"kind\":\"Machine\",\"plural\":\"machines\"},"
        "\"versions\":[{\"name\":\"v1beta2\",\"served\":true,\"storage\":true,"
        "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\"}}}]}}";
    struct actor_fixture s;
    actor_fixture_begin(&s, "kured");
    CHECK_EQ(actor_fixture_http(&s, "POST", STR(CRD_PATH), str_from(machines)), 201);
    actor_fixture_install(&s);
    CHECK_EQ(actor_fixture_http(&s, "POST", STR(MAINTENANCE_LIMITS_PATH),
                                STR("{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":"
                                    "\"MaintenanceLimit\",\"metadata\":{\"name\":\"workers\"},"
                                    "\"spec\":{\"type\":\"node\",\"limit\":10}}")),
             201);
    CHECK_EQ(actor_fixture_http(&s, "POST",
                                STR("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines"),
                                STR("{\"apiVersion\":\"cluster.x-k8s.io/v1beta2\",\"kind\":"
                                    "\"Machine\",\"metadata\":{\"name\":\"m1\"}}")),
             201);
    check_names(&s, COMMAND_NAMES_LIMITS, "", "workers\n");
    check_names(&s, COMMAND_NAMES_LIMITS, "x", "");
    check_names(&s, COMMAND_NAMES_MACHINES, "", "default/m1\n");
    check_names(&s, COMMAND_NAMES_MACHINES, "m", "");
    actor_fixture_end(&s);
}

TEST(completion_names_of_requests_are_their_own_and_their_nodes)
{
    struct actor_fixture s;
    struct maintenance_request r;
    bool created;
    actor_fixture_begin(&s, "kured");
    actor_fixture_install(&s);
    const struct mrequest_new new = { .target = NODE("n1") };
    CHECK_EQ(actor_request(&s.actor, &new, &s.memory, &r, &created, &s.err), 0);
    struct str both = arena_printf(&s.memory, STR_FMT "\nn1\n", STR_ARG(r.name));
    check_names(&s, COMMAND_NAMES_REQUESTS, "", both.p);
    check_names(&s, COMMAND_NAMES_REQUESTS, "n", "n1\n");
    CHECK_EQ(actor_withdraw(&s.actor, r.name, &s.err), 0);
    check_names(&s, COMMAND_NAMES_REQUESTS, "", ""); /* it is over */
    actor_fixture_end(&s);
}

/* Whoever has pressed Tab does not wait for a server that is silent. */
TEST(completion_names_end_with_their_time)
{
    CLEANUP(buf_done)
    struct buf out = { 0 };
    struct actor_fixture s;
    actor_fixture_begin(&s, "kured");
    actor_fixture_install(&s);
    completion_names_list(&s.blocking_api, loop_now(s.blocking_api.loop), COMMAND_NAMES_NODES,
                          STR_NONE, &out);
    CHECK_EQ(out.n, 0);
    actor_fixture_end(&s);
}
