/*
 * What happens to NodeMaintenances and to the pods of their Jobs, and those who look after them.
 */
#include "base/timestamp.h"
#include "tests/swarm/actions.h"

#define MAINTENANCES_PATH "/apis/drydock.dev/v1alpha1/nodemaintenances"
#define RESUME_EVERY MINUTES(10)
#define NODES_IN_THE_END 4u /* at least */

/* ── NodeMaintenances ──────────────────────────────────────────────────────────────────────── */

static struct str maintenance_path(struct sim_run *t, uint32_t i)
{
    return arena_printf(&t->tmp, MAINTENANCES_PATH "/m%u", i);
}

static void maintenance_patch(struct sim_run *t, uint32_t i, struct str body)
{
    (void)sim_run_admin_request(t, "PATCH", maintenance_path(t, i), API_MERGE_PATCH,
                                body); /* it may be gone */
}

static void maintenance_suspend(struct sim_run *t, uint32_t i, bool suspend)
{
    maintenance_patch(
        t, i, arena_printf(&t->tmp, "{\"spec\":{\"suspend\":%s}}", suspend ? "true" : "null"));
}

/* One that is deleted is there until its visits are over. */
static void maintenance_create(struct sim_run *t, uint32_t i)
{
    CLEANUP(buf_done)
    struct buf body = { 0 };
    struct operations_story *story = &t->story;
    random_maintenance_print(&t->operations.random.maintenances[i], i, story->versions[i], &body);
    int status = sim_run_admin_request(t, "POST", STR(MAINTENANCES_PATH), API_JSON, buf_str(&body));
    ASSERT(status == 201 || status == 409);
    story->create_at[i] = status == 201 ? USEC_NEVER : virtual_loop_now(t->vloop) + SECONDS(10);
}

static void maintenance_change(struct sim_run *t, uint32_t i)
{
    CLEANUP(buf_done)
    struct buf body = { 0 };
    t->story.versions[i]++;
    random_maintenance_print(&t->operations.random.maintenances[i], i, t->story.versions[i], &body);
    maintenance_patch(t, i, buf_str(&body));
}

void sim_run_maintenance_action(struct sim_run *t, const struct action *action)
{
    uint32_t i = action->pick % t->operations.random.n;
    usec_t until = virtual_loop_now(t->vloop) + action->duration;
    switch (action->kind) {
    case ACTION_MAINTENANCE_CHANGE:
        maintenance_change(t, i);
        break;
    case ACTION_MAINTENANCE_SUSPEND:
        maintenance_suspend(t, i, /* suspend= */ true);
        t->story.unsuspend_at[i] = until;
        break;
    default:
        (void)sim_run_admin_request(t, "DELETE", maintenance_path(t, i), API_JSON,
                                    STR("")); /* may be gone */
        t->story.create_at[i] = until;
    }
}

/* What failed is tried again, as people do when they have mended it. */
static void maintenance_resume(struct sim_run *t, uint32_t i)
{
    char text[TIMESTAMP_TEXT_MAX];
    const struct jval *object =
        apiserver_find(t->server, CHECK_OPERATIONS_GROUP, STR("nodemaintenances"), STR(""),
                       arena_printf(&t->tmp, "m%u", i));
    struct str revision = jval_str(jval_at(object, "status.revision"));
    struct str now = timestamp_print_seconds(loop_wall(virtual_loop_root(t->vloop)), text);
    if (revision.n > 0) {
        maintenance_patch(t, i,
                          arena_printf(&t->tmp,
                                       "{\"metadata\":{\"annotations\":{\"drydock.dev/resume\":"
                                       "\"" STR_FMT "@" STR_FMT "\"}}}",
                                       STR_ARG(revision), STR_ARG(now)));
    }
}

/* ── pods of Jobs ──────────────────────────────────────────────────────────────────────────── */

static struct str pod_path(struct sim_run *t, struct str name, const char *behind)
{
    return arena_printf(&t->tmp, "/api/v1/namespaces/drydock-jobs/pods/" STR_FMT "%s",
                        STR_ARG(name), behind);
}

/* How long it runs, how it ends, and what it finds out. */
static void pod_set_fate(struct sim_run *t, struct str name)
{
    uint32_t failing = t->calm ? 0 : t->operations.random.failing;
    bool slow = !t->calm && rng_chance(&t->rng, 80);
    const char *code = rng_chance(&t->rng, failing) ? "1" : rng_chance(&t->rng, 150) ? "77" : "0";
    struct str body = arena_printf(
        &t->tmp,
        "{\"metadata\":{\"annotations\":{\"sandbox.drydock.dev/run\":\"%us\","
        "\"sandbox.drydock.dev/exit\":\"%s\",\"sandbox.drydock.dev/reboot-required\":\"%s\"}}}",
        1 + rng_below(&t->rng, slow ? 400 : 20), code, rng_chance(&t->rng, 500) ? "true" : "false");
    (void)sim_run_admin_request(t, "PATCH", pod_path(t, name, ""), API_MERGE_PATCH,
                                body); /* it may be gone */
}

static void pod_lose(struct sim_run *t, struct str name)
{
    if (rng_chance(&t->rng, 500)) {
        (void)sim_run_admin_request(t, "DELETE", pod_path(t, name, "?gracePeriodSeconds=0"),
                                    API_JSON, STR("")); /* may be gone */
    } else {
        (void)sim_run_admin_request(t, "PATCH", pod_path(t, name, "/status"), API_MERGE_PATCH,
                                    STR("{\"status\":{\"phase\":\"Failed\",\"reason\":\"Evicted\"}"
                                        "}")); /* it may be gone */
    }
}

void sim_run_on_job_pod(struct sim_run *t, const struct apiserver_commit *commit)
{
    struct str job = jval_str(jval_get(jval_at(commit->now, "metadata.labels"), STR("job-name")));
    struct operations_story *story = &t->story;
    if (commit->old != NULL || str_starts(job, STR("dd-reboot-")) ||
        story->pod_n == SIM_RUN_JOB_PODS_MAX) {
        return;
    }
    struct job_pod *pod = &story->pods[story->pod_n++];
    *pod = (struct job_pod){ .at = virtual_loop_now(t->vloop) };
    (void)snprintf(pod->name, sizeof(pod->name), STR_FMT, STR_ARG(commit->name));
}

static void job_pods_due(struct sim_run *t, usec_t now)
{
    struct operations_story *story = &t->story;
    for (uint32_t i = story->pod_n; i-- > 0;) {
        struct job_pod pod = story->pods[i];
        if (pod.at > now) {
            continue;
        }
        story->pods[i] = story->pods[--story->pod_n];
        if (pod.lost) {
            pod_lose(t, str_from(pod.name));
            continue;
        }
        pod_set_fate(t, str_from(pod.name));
        if (!t->calm && rng_chance(&t->rng, 60)) {
            pod.lost = true;
            pod.at = now + rng_usec(&t->rng, MSECONDS(100), SECONDS(20));
            story->pods[story->pod_n++] = pod;
        }
    }
}

static void job_pod_mend(void *ctx, const struct jval *object)
{
    struct sim_run *t = ctx;
    struct operations_story *story = &t->story;
    struct str name = jval_str(jval_at(object, "metadata.name"));
    struct str job = jval_str(jval_get(jval_at(object, "metadata.labels"), STR("job-name")));
    if (!str_starts(job, STR("dd-reboot-")) && story->pod_n < SIM_RUN_JOB_PODS_MAX) {
        struct job_pod *pod = &story->pods[story->pod_n++];
        *pod = (struct job_pod){ .at = virtual_loop_now(t->vloop) };
        (void)snprintf(pod->name, sizeof(pod->name), STR_FMT, STR_ARG(name));
    }
}

/* ── begin, time and end ───────────────────────────────────────────────────────────────────── */

void sim_run_init_operations(struct sim_run *t)
{
    static const char *const namespaces[] = { "drydock-system", "drydock-jobs" };
    const struct scenario *scenario = t->scenario;
    t->operations = (struct check_operations){
        .basic = &t->basic,
        .server = t->server,
        .on = true,
        .start_wall = loop_wall(virtual_loop_root(t->vloop)) - virtual_loop_now(t->vloop),
        .recovered = USEC_NEVER,
    };
    random_operations_make(&t->operations.random, scenario->seed);
    t->requests.random.limits[0] = t->operations.random.limit;
    t->requests.random.n = t->operations.random.has_limit ? 1 : 0;
    sim_run_install_limits(t);
    for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
        int status = sim_run_admin_request(
            t, "POST", STR("/api/v1/namespaces"), API_JSON,
            arena_printf(&t->tmp, "{\"metadata\":{\"name\":\"%s\"}}", namespaces[i]));
        ASSERT(status == 201);
    }
    for (uint32_t i = 0; i < RANDOM_MAINTENANCES_MAX; i++) {
        t->story.create_at[i] = USEC_NEVER;
        t->story.unsuspend_at[i] = USEC_NEVER;
        if (i < t->operations.random.n) {
            maintenance_create(t, i);
        }
    }
    t->story.resume_at = USEC_NEVER;
}

usec_t sim_run_next_operation_event(const struct sim_run *t)
{
    usec_t next = USEC_NEVER;
    if (!t->operations.on) {
        return next;
    }
    next = t->story.resume_at;
    for (uint32_t i = 0; i < RANDOM_MAINTENANCES_MAX; i++) {
        next = MIN(next, t->story.create_at[i]);
        next = MIN(next, t->story.unsuspend_at[i]);
    }
    for (uint32_t i = 0; i < t->story.pod_n; i++) {
        next = MIN(next, t->story.pods[i].at);
    }
    return next;
}

void sim_run_operations_due(struct sim_run *t, usec_t now)
{
    struct operations_story *story = &t->story;
    if (!t->operations.on) {
        return;
    }
    job_pods_due(t, now);
    bool resume = story->resume_at <= now;
    story->resume_at = resume ? now + RESUME_EVERY : story->resume_at;
    for (uint32_t i = 0; i < t->operations.random.n; i++) {
        if (story->unsuspend_at[i] <= now) {
            story->unsuspend_at[i] = USEC_NEVER;
            maintenance_suspend(t, i, /* suspend= */ false);
        }
        if (story->create_at[i] <= now) {
            maintenance_create(t, i);
        }
        if (resume) {
            maintenance_resume(t, i);
        }
    }
}

void sim_run_end_operations(struct sim_run *t)
{
    t->story.resume_at = USEC_NEVER;
    for (uint32_t i = 0; i < t->operations.random.n; i++) {
        if (random_maintenance_has_cron(&t->operations.random.maintenances[i])) {
            maintenance_suspend(t, i, /* suspend= */ true);
        }
    }
}

/* Cordons by hand are lifted. */
static void sim_run_lift_cordons(struct sim_run *t)
{
    static const struct str marks[] = { STR_INIT("drydock.dev/visit-cordon"),
                                        STR_INIT("drydock.dev/kept-cordon"),
                                        STR_INIT("repairman.k8s.io/cordoned-by") };
    for (uint32_t i = 0; i < apiserver_count(t->server, STR(""), STR("nodes")); i++) {
        const struct action action = { .pick = i };
        struct str node = sim_run_pick_node(t, &action);
        const struct jval *object = apiserver_find(t->server, STR(""), STR("nodes"), STR(""), node);
        const struct jval *annotations = jval_at(object, "metadata.annotations");
        bool marked = false;
        for (size_t k = 0; k < ARRAY_LEN(marks); k++) {
            marked = marked || jval_get(annotations, marks[k]) != NULL;
        }
        if (jval_bool(jval_at(object, "spec.unschedulable"), false) && !marked) {
            sim_run_cordon(t, node, false);
        }
    }
}

/* Pods that a drain evicts need somewhere to go. */
static void sim_run_add_missing_nodes(struct sim_run *t)
{
    struct err ignored = { 0 };
    for (uint32_t i = 0; apiserver_count(t->server, STR(""), STR("nodes")) < NODES_IN_THE_END;
         i++) {
        int r = world_add_node(t->world, arena_printf(&t->tmp, "last-%u", i), &ignored);
        ASSERT(r == 0); /* nobody else calls nodes so */
    }
}

void sim_run_recover_operations(struct sim_run *t)
{
    usec_t now = virtual_loop_now(t->vloop);
    t->calm = true;
    t->operations.recovered = now;
    for (uint32_t i = 0; i < t->operations.random.n; i++) {
        t->story.unsuspend_at[i] = now;
        t->story.create_at[i] = t->story.create_at[i] != USEC_NEVER ? now : USEC_NEVER;
    }
    for (uint32_t i = 0; i < RANDOM_LIMITS_MAX; i++) {
        sim_run_restore_limit(t, i);
    }
    t->story.pod_n = 0;
    apiserver_each(t->server, STR(""), STR("pods"), CHECK_JOBS_NAMESPACE, job_pod_mend, t);
    sim_run_lift_cordons(t);
    sim_run_add_missing_nodes(t);
    t->story.resume_at = now + SECONDS(1);
    sim_run_operations_due(t, now);
}
