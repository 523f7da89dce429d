/*
 * What happens to limits and requests, and the actors that ask.
 */
#include "format/json_writer.h"
#include "kinds/crd.h"
#include "tests/swarm/actions.h"

#define LIMITS_PATH "/apis/repairman.k8s.io/v1/maintenancelimits"
#define REQUESTS_PATH "/apis/repairman.k8s.io/v1/maintenancerequests"
#define ACTOR_DELAY_MIN MSECONDS(10)

/* ── limits ────────────────────────────────────────────────────────────────────────────────── */

static struct str limit_path(struct sim_run *t, uint32_t i)
{
    return arena_printf(&t->tmp, LIMITS_PATH "/l%u", i);
}

static void limit_add(struct sim_run *t, uint32_t i)
{
    CLEANUP(buf_done)
    struct buf body = { 0 };
    buf_printf(&body,
               "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceLimit\","
               "\"metadata\":{\"name\":\"l%u\"},\"spec\":",
               i);
    random_limit_print(&t->requests.random.limits[i], &body);
    buf_add(&body, STR("}"));
    int status = sim_run_admin_request(t, "POST", STR(LIMITS_PATH), API_JSON, buf_str(&body));
    ASSERT(status == 201 || status == 409); /* it may be there already */
}

void sim_run_restore_limit(struct sim_run *t, uint32_t i)
{
    const struct random_limit *l = &t->requests.random.limits[i];
    struct str body =
        l->percent > 0
            ? arena_printf(&t->tmp, "{\"spec\":{\"paused\":null,\"minimum\":null,\"limit\":%u}}",
                           l->percent)
            : arena_printf(&t->tmp, "{\"spec\":{\"paused\":null,\"minimum\":%u,\"limit\":0}}",
                           l->count);
    t->limits_end[i] = USEC_NEVER;
    (void)sim_run_admin_request(t, "PATCH", limit_path(t, i), API_MERGE_PATCH, body);
}

static void action_on_limit(struct sim_run *t, const struct action *action)
{
    uint32_t i = action->pick % RANDOM_LIMITS_MAX;
    switch (action->kind) {
    case ACTION_LIMIT_ADD:
        limit_add(t, i);
        break;
    case ACTION_LIMIT_DELETE:
        (void)sim_run_admin_request(t, "DELETE", limit_path(t, i), API_JSON,
                                    STR("")); /* it may be gone */
        break;
    default: {
        struct str body = action->kind == ACTION_LIMIT_PAUSE
                              ? STR("{\"spec\":{\"paused\":true}}")
                              : STR("{\"spec\":{\"minimum\":0,\"limit\":0}}");
        /* It may be gone. */
        (void)sim_run_admin_request(t, "PATCH", limit_path(t, i), API_MERGE_PATCH, body);
        t->limits_end[i] = virtual_loop_now(t->vloop) + action->duration;
    }
    }
}

/* ── actors ────────────────────────────────────────────────────────────────────────────────── */

static const struct jval *request_find(struct sim_run *t, struct str name)
{
    return apiserver_find(t->server, CHECK_REPAIRMAN_GROUP, CHECK_REQUESTS_PLURAL, STR(""), name);
}

static struct str request_path(struct sim_run *t, struct str name)
{
    return arena_printf(&t->tmp, REQUESTS_PATH "/" STR_FMT, STR_ARG(name));
}

static void actor_write(struct sim_run *t, const struct actor *a, const char *state)
{
    struct str body = arena_printf(&t->tmp, "{\"spec\":{\"state\":\"%s\"}}", state);
    struct str path = request_path(t, str_from(a->name));
    int status = sim_run_admin_request(t, "PATCH", path, API_MERGE_PATCH, body);
    ASSERT(status == 200); /* an actor knows which steps there are */
}

/* It does nothing before its request changes. */
static void actor_act_pending(struct sim_run *t, struct actor *a)
{
    if (t->calm) {
        return;
    }
    if (a->behavior == BEHAVIOR_WITHDRAWS) {
        actor_write(t, a, "Completed");
    } else if (a->behavior == BEHAVIOR_FORGES) {
        actor_write(t, a, "Approved");
    }
}

static void actor_act_approved(struct sim_run *t, struct actor *a)
{
    bool idle = a->behavior == BEHAVIOR_IDLE && !t->calm;
    if (a->behavior == BEHAVIOR_WITHDRAWS) {
        actor_write(t, a, "Completed");
    } else if (a->behavior == BEHAVIOR_GIVES_BACK && !a->gave_back) {
        a->gave_back = true;
        actor_write(t, a, "Pending");
    } else if (!idle) {
        actor_write(t, a, "InProgress");
    }
}

static void actor_act(struct sim_run *t, struct actor *a)
{
    const struct jval *request = request_find(t, str_from(a->name));
    struct str state = jval_str(jval_at(request, "spec.state"));
    a->at = USEC_NEVER;
    if (request == NULL || str_eq(state, STR("Completed"))) {
        return;
    }
    if (a->behavior == BEHAVIOR_DELETES && !t->calm) {
        int status = sim_run_admin_request(t, "DELETE", request_path(t, str_from(a->name)),
                                           API_JSON, STR(""));
        ASSERT(status == 200);
    } else if (str_eq(state, STR("Approved"))) {
        actor_act_approved(t, a);
    } else if (str_eq(state, STR("InProgress"))) {
        if (a->behavior != BEHAVIOR_HANGS || t->calm) {
            actor_write(t, a, "Completed");
        }
    } else {
        actor_act_pending(t, a);
    }
}

static void actor_new(struct sim_run *t, const struct action *action)
{
    struct str node = sim_run_pick_node(t, action);
    if (t->actor_n == SIM_RUN_ACTORS_MAX) {
        return;
    }
    if (node.n == 0 || action->variant % 16 == 0) {
        node = STR("extra-3"); /* it may come some day */
    }
    struct actor *a = &t->actors[t->actor_n];
    *a = (struct actor){ .at = USEC_NEVER };
    /* Half of all are as they should be, and one in eight of them begins with a lie. */
    uint32_t behavior = action->variant / 16 % (2 * BEHAVIOR_COUNT);
    a->behavior = behavior < BEHAVIOR_COUNT ? (enum actor_behavior)behavior : BEHAVIOR_DILIGENT;
    const char *state = ""; /* the schema would have to refuse all others */
    if (a->behavior == BEHAVIOR_FORGES) {
        static const char *const states[] = { ",\"state\":\"Approved\"", "",
                                              ",\"state\":\"InProgress\"", "" };
        state = states[action->variant / 1024 % ARRAY_LEN(states)];
    }
    (void)snprintf(a->name, sizeof(a->name), "mr-%u", t->actor_n++);
    struct str body = arena_printf(
        &t->tmp,
        "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceRequest\",\"metadata\":{"
        "\"name\":\"%s\",\"labels\":{\"maintenancerequests.repairman.k8s.io/clientname\":\"c%u\"}},"
        "\"spec\":{\"type\":\"node\",\"name\":\"" STR_FMT "\",\"priority\":%u%s%s}}",
        a->name, action->variant % 3, STR_ARG(node), action->variant / 2048 % 3,
        action->variant / 8192 % 4 == 0 ? ",\"preparation\":\"None\"" : "", state);
    int status = sim_run_admin_request(t, "POST", STR(REQUESTS_PATH), API_JSON, body);
    ASSERT(status == 201);
    a->at = virtual_loop_now(t->vloop) + rng_usec(&t->rng, ACTOR_DELAY_MIN, SECONDS(60));
}

void sim_run_wake_actor(struct sim_run *t, const struct apiserver_commit *commit)
{
    struct str old_state = jval_str(jval_at(commit->old, "spec.state"));
    struct str new_state = jval_str(jval_at(commit->now, "spec.state"));
    if (commit->now == NULL || str_eq(old_state, new_state)) {
        return;
    }
    for (uint32_t i = 0; i < t->actor_n; i++) {
        struct actor *a = &t->actors[i];
        if (str_eq(str_from(a->name), commit->name)) {
            usec_t longest = rng_chance(&t->rng, 300) ? SECONDS(60) : SECONDS(5);
            a->at = virtual_loop_now(t->vloop) + rng_usec(&t->rng, ACTOR_DELAY_MIN, longest);
        }
    }
}

/* ── actions ─────────────────────────────────────────────────────────────────────────────────── */

void sim_run_crash_at_write(struct sim_run *t, const struct action *action)
{
    static const enum api_tap_crash crashes[] = { API_TAP_CRASH_WRITE_BEFORE,
                                                  API_TAP_CRASH_WRITE_AFTER };
    struct controller_process *p = &t->processes[action->pick % t->scenario->processes];
    if (!controller_process_runs(p) || p->late_at != USEC_NEVER) {
        return;
    }
    static const enum api_tap_write of_visits[] = {
        API_TAP_WRITE_NODE_STATE,  API_TAP_WRITE_JOB,     API_TAP_WRITE_NODE,
        API_TAP_WRITE_MAINTENANCE, API_TAP_WRITE_REQUEST, API_TAP_WRITE_LIMIT,
        API_TAP_WRITE_NODE_STATE,  API_TAP_WRITE_LEASE,
    };
    p->tap.write = t->operations.on ? of_visits[action->variant % ARRAY_LEN(of_visits)]
                                    : (enum api_tap_write)(action->variant % API_TAP_WRITES);
    p->tap.crash = action->kind == ACTION_LATE_WRITE
                       ? API_TAP_CRASH_WRITE_LATE
                       : crashes[action->variant / API_TAP_WRITES % ARRAY_LEN(crashes)];
    p->late_duration = action->duration;
}

void sim_run_request_action(struct sim_run *t, const struct action *action)
{
    struct str name = arena_printf(&t->tmp, "mr-%u", action->pick % MAX(t->actor_n, 1u));
    char class[2] = { (char)('a' + (int)(action->variant % RANDOM_LIMITS_CLASSES)), '\0' };
    switch (action->kind) {
    case ACTION_REQUEST_CREATE:
        actor_new(t, action);
        break;
    case ACTION_REQUEST_DELETE:
        (void)sim_run_admin_request(t, "DELETE", request_path(t, name), API_JSON,
                                    STR("")); /* may be gone */
        break;
    case ACTION_NODE_RELABEL:
        if (apiserver_count(t->server, STR(""), STR("nodes")) > 0) {
            sim_run_set_node_meta(t, sim_run_pick_node(t, action), "labels",
                                  RANDOM_LIMITS_CLASS_LABEL, str_from(class));
        }
        break;
    case ACTION_CRASH_AT_WRITE:
        sim_run_crash_at_write(t, action);
        break;
    default:
        action_on_limit(t, action);
    }
}

usec_t sim_run_next_request_event(const struct sim_run *t)
{
    usec_t next = USEC_NEVER;
    for (uint32_t i = 0; i < t->actor_n; i++) {
        next = MIN(next, t->actors[i].at);
    }
    for (uint32_t i = 0; (t->requests.on || t->operations.on) && i < RANDOM_LIMITS_MAX; i++) {
        next = MIN(next, t->limits_end[i]);
    }
    return next;
}

void sim_run_requests_due(struct sim_run *t, usec_t now)
{
    for (uint32_t i = 0; i < t->actor_n; i++) {
        if (t->actors[i].at <= now) {
            actor_act(t, &t->actors[i]);
        }
    }
    for (uint32_t i = 0; (t->requests.on || t->operations.on) && i < RANDOM_LIMITS_MAX; i++) {
        if (t->limits_end[i] <= now) {
            sim_run_restore_limit(t, i);
        }
    }
}

/* ── begin and end ─────────────────────────────────────────────────────────────────────────── */

void sim_run_install_crds(struct sim_run *t)
{
    size_t n = crds_count + (t->operations.on ? operation_crds_count : 0);
    for (size_t i = 0; i < n; i++) {
        const struct asset *crd = i < crds_count ? &crds[i] : &operation_crds[i - crds_count];
        CLEANUP(buf_done)
        struct buf body = { 0 };
        struct json_writer w = json_writer_on(&body);
        jw_val(&w, crd_object(crd, &t->tmp));
        int status = sim_run_admin_request(
            t, "POST", STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"), API_JSON,
            buf_str(&body));
        ASSERT(status == 201);
    }
}

void sim_run_install_limits(struct sim_run *t)
{
    sim_run_install_crds(t);
    for (uint32_t i = 0; i < RANDOM_LIMITS_MAX; i++) {
        t->limits_end[i] = USEC_NEVER;
        if (i < t->requests.random.n) {
            limit_add(t, i);
        }
    }
    for (uint32_t i = 0; i < t->scenario->nodes; i++) {
        const struct action action = { .pick = i };
        char class[2] = { (char)('a' + (int)rng_below(&t->rng, RANDOM_LIMITS_CLASSES)), '\0' };
        struct str node = sim_run_pick_node(t, &action);
        sim_run_set_node_meta(t, node, "labels", RANDOM_LIMITS_CLASS_LABEL, str_from(class));
        if (t->requests.random.profile) {
            sim_run_set_node_meta(t, node, "labels", PROFILE_LABEL, STR("p0"));
        }
    }
}

void sim_run_init_requests(struct sim_run *t)
{
    const struct scenario *scenario = t->scenario;
    t->requests = (struct check_requests){
        .basic = &t->basic,
        .server = t->server,
        .on = true,
        .elect = scenario->elect,
        .start_wall = loop_wall(virtual_loop_root(t->vloop)) - virtual_loop_now(t->vloop),
    };
    random_limits_make(&t->requests.random, scenario->seed);
    sim_run_install_limits(t);
}

void sim_run_recover_requests(struct sim_run *t)
{
    t->calm = true;
    for (uint32_t i = 0; i < RANDOM_LIMITS_MAX; i++) {
        sim_run_restore_limit(t, i);
    }
    for (uint32_t i = 0; i < apiserver_count(t->server, STR(""), STR("nodes")); i++) {
        const struct action action = { .pick = i };
        struct str node = sim_run_pick_node(t, &action);
        const struct jval *object = apiserver_find(t->server, STR(""), STR("nodes"), STR(""), node);
        bool marked =
            jval_get(jval_at(object, "metadata.annotations"), CHECK_CORDONED_BY_KEY) != NULL;
        if (jval_bool(jval_at(object, "spec.unschedulable"), false) && !marked) {
            sim_run_cordon(t, node, false);
        }
        sim_run_set_node_meta(t, node, "labels", STR("example.com/need-p0"), STR_NONE);
    }
    for (uint32_t i = 0; i < t->actor_n; i++) {
        t->actors[i].at =
            virtual_loop_now(t->vloop) + rng_usec(&t->rng, ACTOR_DELAY_MIN, SECONDS(60));
    }
}
