#include "operation/run_job.h"

#include "kinds/keys.h"
#include "tests/check.h"

struct fixture {
    struct arena memory;
    struct buf out;
    struct run_job_spec spec;
};

static void fixture_done(struct fixture *x)
{
    buf_done(&x->out);
    arena_done(&x->memory);
}

static const struct jval *parse(struct fixture *x, struct str json)
{
    const struct jval *v;
    struct err err = { 0 };
    CHECK_EQ(json_parse(json, 0, &x->memory, &v, &err), 0);
    return v;
}

static void fixture_init(struct fixture *x, const char *payload)
{
    *x = (struct fixture){
        .spec = { .namespace = STR("drydock-jobs"),
                  .machine = STR("worker-1"),
                  .machine_uid = STR("n1"),
                  .maintenance = STR("patches"),
                  .maintenance_uid = STR("m1"),
                  .operation = STR("apt"),
                  .revision = STR("0123456789abcdef0123456789abcdef"),
                  .attempt = 1,
                  .timeout = MINUTES(45),
                  .version = STR("1.34.2"),
                  .runner_image = STR("drydock:1") },
    };
    x->spec.payload = parse(x, str_from(payload));
}

static const struct jval *fixture_print(struct fixture *x)
{
    struct err err = { 0 };
    buf_reset(&x->out);
    CHECK_EQ(run_job_print(&x->spec, &x->out, &err), 0);
    return parse(x, arena_str(&x->memory, buf_str(&x->out)));
}

static struct str text_at(const struct jval *v, const char *path)
{
    return jval_str(jval_at(v, path));
}

static const struct jval *container_of(const struct jval *job)
{
    return jval_first(jval_at(job, "spec.template.spec.containers"));
}

static struct str env_of(const struct jval *job, const char *name)
{
    JVAL_EACH (jval_get(container_of(job), STR("env")), entry) {
        if (str_eq(jval_str(jval_get(entry, STR("name"))), str_from(name))) {
            return jval_str(jval_get(entry, STR("value")));
        }
    }
    return STR_NONE;
}

TEST(run_job_is_pinned_to_its_machine_and_never_repeats_itself)
{
    CLEANUP(fixture_done)
    struct fixture x;
    fixture_init(&x, "{\"script\":\"apt-get update\"}");
    const struct jval *job = fixture_print(&x);
    int64_t n = 7;
    CHECK_STR(text_at(job, "metadata.namespace"), "drydock-jobs");
    CHECK(jval_i64(jval_at(job, "spec.backoffLimit"), &n) && n == 0);
    CHECK(jval_i64(jval_at(job, "spec.activeDeadlineSeconds"), &n) && n == 2700);
    CHECK(str_contains(buf_str(&x.out),
                       STR("\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\","
                           "\"values\":[\"worker-1\"]}]")));
    CHECK_STR(text_at(job, "spec.template.spec.restartPolicy"), "Never");
    CHECK(!jval_bool(jval_at(job, "spec.template.spec.automountServiceAccountToken"), true));
    CHECK(jval_bool(jval_at(job, "spec.template.spec.hostPID"), false));
    CHECK_STR(jval_str(jval_get(jval_first(jval_at(job, "metadata.ownerReferences")), STR("uid"))),
              "m1");
}

TEST(run_job_runs_a_script_by_our_runner)
{
    CLEANUP(fixture_done)
    struct fixture x;
    fixture_init(&x, "{\"script\":\"apt-get update\",\"shell\":\"/bin/bash\",\"env\":[{\"name\":"
                     "\"MIRROR\",\"value\":\"m\"}]}");
    const struct run_job_parameter parameters[] = { { .name = STR("DD_ORIGIN"),
                                                      .value = STR("security") } };
    x.spec.parameters = parameters;
    x.spec.parameter_n = 1;
    const struct jval *job = fixture_print(&x);
    CHECK_STR(jval_str(jval_get(container_of(job), STR("image"))), "drydock:1");
    int64_t user = 7;
    CHECK(jval_bool(jval_at(container_of(job), "securityContext.privileged"), false));
    CHECK(jval_i64(jval_at(container_of(job), "securityContext.runAsUser"), &user) && user == 0);
    CHECK_STR(env_of(job, "DD_SCRIPT"), "#!/bin/bash\napt-get update");
    CHECK_STR(env_of(job, "DD_MACHINE"), "worker-1");
    CHECK_STR(env_of(job, "SYSTEM_UPGRADE_PLAN_LATEST_VERSION"), "1.34.2");
    CHECK_STR(env_of(job, "DD_ORIGIN"), "security");
    CHECK_STR(env_of(job, "MIRROR"), "m");
    CHECK_EQ(jval_at(job, "spec.template.spec.volumes")->n, 0);
}

TEST(run_job_runs_an_image_with_the_machine_below_host)
{
    CLEANUP(fixture_done)
    struct fixture x;
    fixture_init(&x, "{\"image\":\"k3s-upgrade:v1\",\"args\":[\"prepare\"],\"secrets\":[{\"name\":"
                     "\"token\",\"mountPath\":\"/t\"}],\"host\":{\"namespaces\":[\"net\"]},"
                     "\"securityContext\":{\"privileged\":false},\"podLabels\":{\"team\":\"a\"}}");
    x.spec.priority_class = STR("drydock-job");
    const struct jval *job = fixture_print(&x);
    const struct jval *container = container_of(job);
    CHECK_STR(jval_str(jval_get(container, STR("image"))), "k3s-upgrade:v1");
    CHECK(jval_get(container, STR("command")) == NULL);
    CHECK(!jval_bool(jval_at(container, "securityContext.privileged"), true));
    CHECK(jval_at(container, "securityContext.runAsUser") == NULL); /* the image's own */
    CHECK(!jval_bool(jval_at(job, "spec.template.spec.hostPID"), true));
    CHECK_STR(text_at(job, "spec.template.metadata.labels.team"), "a");
    CHECK_STR(text_at(job, "spec.template.spec.priorityClassName"), "drydock-job");
    CHECK(str_contains(buf_str(&x.out),
                       STR("\"volumes\":[{\"name\":\"host\",\"hostPath\":{\"path\":\"/\"}},{"
                           "\"name\":\"secret-0\",\"secret\":{\"secretName\":\"token\","
                           "\"defaultMode\":256,\"optional\":false}}]")));
    CHECK(str_contains(buf_str(&x.out), STR("{\"name\":\"host\",\"mountPath\":\"/host\",")));
}

TEST(run_job_is_named_by_what_it_is_for)
{
    CLEANUP(fixture_done)
    struct fixture x;
    fixture_init(&x, "{\"script\":\"true\"}");
    struct str name = run_job_name(&x.spec, &x.memory);
    CHECK(str_starts(name, STR("dd-apt-")) && name.n == 7 + 12);
    CHECK_STR(name, run_job_name(&x.spec, &x.memory));
    struct run_job_spec other = x.spec;
    other.attempt = 2;
    CHECK(!str_eq(name, run_job_name(&other, &x.memory)));
    other = x.spec;
    other.machine_uid = STR("n2");
    CHECK(!str_eq(name, run_job_name(&other, &x.memory)));
    other.operation = STR("a-name-of-forty-characters-0123456789-01");
    CHECK(run_job_name(&other, &x.memory).n <= RUN_JOB_NAME_MAX);
}

TEST(run_job_refuses_variables_that_are_its_own)
{
    CLEANUP(fixture_done)
    struct fixture x;
    struct err err = { 0 };
    fixture_init(&x, "{\"script\":\"true\",\"env\":[{\"name\":\"A\"},{\"name\":\"DD_SCRIPT\"}]}");
    CHECK_EQ(run_job_print(&x.spec, &x.out, &err), -ERR_INVALID);
    CHECK_STR(err.msg, "job.env[1].name 'DD_SCRIPT': names that begin with DD_ or SYSTEM_UPGRADE_ "
                       "are set by drydock; choose another one");
}

TEST(run_job_reboots_one_boot_only)
{
    CLEANUP(fixture_done)
    struct fixture x;
    fixture_init(&x, "{\"script\":\"true\"}");
    const struct run_job_reboot reboot = { .visit = STR("u1"), .boot_id = STR("b1") };
    run_job_print_reboot(&x.spec, &reboot, &x.out);
    const struct jval *job = parse(&x, buf_str(&x.out));
    CHECK_STR(text_at(job, "metadata.name"), run_job_reboot_name(&reboot, &x.memory));
    CHECK(str_contains(buf_str(&x.out), STR("\"--expect-boot-id\",\"b1\"]")));
    CHECK_STR(env_of(job, "DD_SCRIPT"), "");
}

/* A Job of the fixture's spec, with a status. */
static struct run_job_end read_end(struct fixture *x, const char *status)
{
    struct run_job_end end;
    (void)fixture_print(x);
    struct str text = buf_str(&x->out);
    struct str job = arena_printf(&x->memory, STR_FMT ",\"status\":%s}",
                                  STR_ARG(str_sub(text, 0, text.n - 1)), status);
    run_job_read(parse(x, job), &x->spec, &x->memory, &end);
    return end;
}

TEST(run_job_tells_how_it_ended)
{
    static const struct {
        const char *status;
        enum run_job_state state;
        const char *reason;
    } rows[] = {
        { "{}", RUN_JOB_ACTIVE, "" },
        { "{\"active\":1}", RUN_JOB_ACTIVE, "" },
        { "{\"conditions\":[{\"type\":\"Complete\",\"status\":\"True\"}]}", RUN_JOB_SUCCEEDED, "" },
        { "{\"conditions\":[{\"type\":\"Failed\",\"status\":\"False\"}]}", RUN_JOB_ACTIVE, "" },
        { "{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\",\"reason\":\"Deadline"
          "Exceeded\"}]}",
          RUN_JOB_FAILED, "Timeout" },
        { "{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\",\"reason\":\"BackoffLimit"
          "Exceeded\"}]}",
          RUN_JOB_FAILED, "ExitCode" },
    };
    for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(fixture_done)
        struct fixture x;
        fixture_init(&x, "{\"script\":\"true\"}");
        check_case(i);
        struct run_job_end end = read_end(&x, rows[i].status);
        CHECK(end.ours);
        CHECK_EQ(end.state, rows[i].state);
        CHECK_STR(end.reason, rows[i].reason);
    }
}

TEST(run_job_of_another_owner_or_content_is_not_ours)
{
    CLEANUP(fixture_done)
    struct fixture x;
    struct run_job_end end;
    fixture_init(&x, "{\"script\":\"true\"}");
    const struct jval *job = fixture_print(&x);
    struct run_job_spec other = x.spec;
    other.maintenance_uid = STR("m2");
    run_job_read(job, &other, &x.memory, &end);
    CHECK(!end.ours);
    other = x.spec;
    other.payload = parse(&x, STR("{\"script\":\"rm -rf /\"}"));
    run_job_read(job, &other, &x.memory, &end);
    CHECK(!end.ours);
}

TEST(run_job_reads_what_the_runner_left)
{
    CLEANUP(arena_done)
    struct arena a = { 0 };
    struct run_job_message m;
    run_job_read_message(STR("{\"exitCode\":77,\"rebootRequired\":true}"), &a, &m);
    CHECK(m.said && m.nothing_to_do && m.reboot_required);
    run_job_read_message(STR("{\"exitCode\":3,\"output\":\"no\\u001b[31m space\\n\"}"), &a, &m);
    CHECK(m.said && !m.nothing_to_do);
    CHECK_STR(m.output, "no [31m space ");
    run_job_read_message(STR("E: cannot open"), &a, &m);
    CHECK(!m.said);
    run_job_read_message(STR("[]"), &a, &m);
    CHECK(!m.said);
}

TEST(run_job_of_a_wave_sees_nothing_of_a_host)
{
    CLEANUP(fixture_done)
    struct fixture x;
    fixture_init(&x, "{\"image\":\"look:1\"}");
    x.spec.machine = STR_NONE;
    x.spec.no_host = true;
    const struct jval *job = fixture_print(&x);
    const struct jval *pod = jval_at(job, "spec.template.spec");
    CHECK(jval_get(pod, STR("affinity")) == NULL);
    CHECK(!jval_bool(jval_get(pod, STR("hostPID")), true));
    CHECK(!jval_bool(jval_get(pod, STR("hostNetwork")), true));
    CHECK_EQ(jval_get(pod, STR("volumes"))->n, 0);
    CHECK_EQ(jval_get(pod, STR("tolerations"))->n, 0);
    const struct jval *security = jval_get(container_of(job), STR("securityContext"));
    CHECK(jval_get(security, STR("privileged")) == NULL);
    CHECK(!jval_bool(jval_get(security, STR("allowPrivilegeEscalation")), true));
}
