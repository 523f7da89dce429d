/* The rights of operations, from both sides: all work is done with those of the list, and there is
 * none among them that nothing asks for. */
#include "sandbox/sim/outbound.h"
#include "tests/unit/operation/operations_fixture.h"

#define JOBS_SPACE "/api/v1/namespaces/drydock-jobs"

struct story {
    struct operations_fixture x;
    struct rights_judge judge;
    struct inbox inbox;
    struct outbound *outbound;
};

static void on_question(void *ctx UNUSED, const struct inbox_message *message UNUSED,
                        struct inbox_answer *answer)
{
    answer->body = STR("{\"status\":\"success\",\"data\":{\"alerts\":[]}}");
}

static void begin(struct story *s)
{
    *s = (struct story){ .judge = { .home = { "default", "drydock-system" },
                                    .jobs = "drydock-jobs" } };
    rights_judge_give(&s->judge, "controller");
    rights_judge_give(&s->judge, "operations");
    operations_begin(&s->x, 2);
    operations_crash(&s->x);
    inbox_init(&s->inbox);
    s->inbox.script = on_question;
    s->outbound = sim_outbound_new(virtual_loop_root(s->x.time), &s->inbox, NULL);
    s->x.config.outbound = s->outbound;
    s->x.config.allow_urls = STR("http://prom.example");
    s->x.judge = &s->judge;
    operations_start(&s->x);
    operations_run(&s->x, SECONDS(5));
}

static void end(struct story *s)
{
    operations_crash(&s->x);
    sim_outbound_free(s->outbound);
    inbox_done(&s->inbox);
    s->x.judge = NULL;
    operations_start(&s->x); /* operations_end ends it */
    operations_end(&s->x);
    rights_judge_done(&s->judge);
}

/* Everything that operations do in their life, once. */
static void work(struct story *s)
{
    struct operations_fixture *x = &s->x;
    struct err err = { 0 };
    operations_create(x, "MaintenanceWindow", "maintenancewindows", "always",
                      "  {days: [Mon], from: '00:00', to: '04:00'}\n");
    operations_create(x, "NodeSeries", "nodeseries", "all", "  {globs: ['node-*']}\n");
    operations_create(x, "NodeOperationTemplate", "nodeoperationtemplates", "greet",
                      "  job: {script: 'echo hello'}\n");
    (void)operations_http(x, 201, "POST", JOBS_SPACE "/configmaps",
                          STR("{\"metadata\":{\"name\":\"c\"},\"data\":{}}"));
    (void)operations_http(x, 201, "POST", JOBS_SPACE "/secrets",
                          STR("{\"metadata\":{\"name\":\"prom\",\"labels\":{\"drydock.dev/use\":"
                              "\"outbound\"}},\"data\":{\"token\":\"czNjcmV0Cg==\"}}"));
    operations_maintain(x, "all",
                        "  window: {refs: [always]}\n"
                        "  nodeSeries: {ref: all}\n"
                        "  disruption: {cordon: Always}\n"
                        "  rollout: {gates: {beforeNode: [{alerts: {url: 'http://prom.example', "
                        "secretRef: {name: prom}}}]}}\n"
                        "  operations:\n"
                        "  - {name: greet, type: one-shot, template: {name: greet}}\n"
                        "  - {name: say, type: one-shot, job: {script: a, configMaps: [{name: c, "
                        "mountPath: /c}], secrets: [{name: prom, mountPath: /s}]}}\n");
    operations_run(x, MINUTES(10));
    operations_maintain(x, "fails",
                        "  failurePolicy: {retries: 0}\n"
                        "  operations:\n"
                        "  - {name: say, type: one-shot, script: exit 1}\n");
    operations_run(x, MINUTES(3));
    CHECK_EQ(world_remove_node(x->world, STR("node-002"), &err), 0);
    CHECK_EQ(world_add_node(x->world, STR("node-002"), &err), 0); /* another machine */
    operations_run(x, MINUTES(2));
    (void)operations_http(x, 200, "DELETE", NODE_MAINTENANCES_PATH "/all", STR(""));
    (void)operations_http(x, 200, "DELETE", NODE_MAINTENANCES_PATH "/fails", STR(""));
    operations_run(x, MINUTES(5));
}

TEST(operations_use_every_right_of_theirs_and_no_other)
{
    struct story s;
    begin(&s);
    work(&s);
    CHECK_STR(s.judge.foreign, "");
    for (uint32_t i = 0; i < s.judge.n; i++) {
        const struct rights_judge_row *row = &s.judge.rows[i];
        if (!row->used && str_eq(str_from(row->right->role), STR("operations"))) {
            check_fail(__FILE__, __LINE__, "nothing asks to " STR_FMT " " STR_FMT " (%s)",
                       STR_ARG(row->verb), STR_ARG(row->resource), row->right->why);
        }
    }
    end(&s);
}
