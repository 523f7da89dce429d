#include "tests/swarm/actions.h"

#include "format/json_writer.h"

int sim_run_admin_request(struct sim_run *t, const char *method, struct str path, struct str type,
                          struct str body)
{
    struct apiserver_request request = {
        .method = str_from(method),
        .path = path,
        .content_type = type,
        .user_agent = STR("admin"),
        .body = body,
    };
    struct apiserver_reply reply;
    apiserver_handle(t->server, &request, &t->tmp, &reply);
    return reply.status;
}

static void sim_run_must_request(struct sim_run *t, const char *method, const char *path,
                                 const char *body)
{
    int status =
        sim_run_admin_request(t, method, str_from(path), STR("application/json"), str_from(body));
    ASSERT(status == 200 || status == 201);
}

void sim_run_add_workloads(struct sim_run *t)
{
    uint32_t workloads = rng_below(&t->rng, 3);
    for (uint32_t i = 0; i < workloads; i++) {
        uint32_t replicas = 1 + rng_below(&t->rng, 5);
        struct str body = arena_printf(
            &t->tmp,
            "{\"metadata\":{\"name\":\"app-%u\"},\"spec\":{\"replicas\":%u,\"selector\":{"
            "\"matchLabels\":"
            "{\"app\":\"a%u\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"a%u\"}},\"spec\":"
            "{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}",
            i, replicas, i, i);
        sim_run_must_request(t, "POST", "/apis/apps/v1/namespaces/default/deployments", body.p);
        body = arena_printf(&t->tmp,
                            "{\"metadata\":{\"name\":\"app-%u\"},\"spec\":{\"maxUnavailable\":1,"
                            "\"selector\":{\"matchLabels\":{\"app\":\"a%u\"}}}}",
                            i, i);
        sim_run_must_request(t, "POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
                             body.p);
    }
}

struct node_pick {
    uint32_t wanted;
    uint32_t at;
    struct arena *out;
    struct str name;
};

static void node_pick_visit(void *ctx, const struct jval *object)
{
    struct node_pick *pick = ctx;
    if (pick->at++ == pick->wanted) {
        pick->name = arena_str(pick->out, jval_str(jval_at(object, "metadata.name")));
    }
}

struct str sim_run_pick_node(struct sim_run *t, const struct action *action)
{
    uint32_t n = apiserver_count(t->server, STR(""), STR("nodes"));
    if (n == 0) {
        return STR_NONE;
    }
    struct node_pick pick = { .wanted = action->pick % n, .out = &t->tmp };
    apiserver_each(t->server, STR(""), STR("nodes"), STR(""), node_pick_visit, &pick);
    return pick.name;
}

void sim_run_set_node_meta(struct sim_run *t, struct str node, const char *map, struct str key,
                           struct str value)
{
    CLEANUP(buf_done)
    struct buf body = { 0 };
    struct json_writer w = json_writer_on(&body);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_key(&w, str_from(map));
    jw_obj(&w);
    jw_key(&w, key);
    if (value.p == NULL) {
        jw_null(&w);
    } else {
        jw_str(&w, value);
    }
    jw_obj_end(&w);
    jw_obj_end(&w);
    jw_obj_end(&w);
    struct str path = arena_printf(&t->tmp, "/api/v1/nodes/" STR_FMT, STR_ARG(node));
    int status = sim_run_admin_request(t, "PATCH", path, STR("application/merge-patch+json"),
                                       buf_str(&body));
    ASSERT(status == 200);
}

/* For what cannot fail while the scenario's own picture of the world is right. */
static void world_must(int r)
{
    ASSERT(r == 0);
}

static void action_on_node(struct sim_run *t, const struct action *action)
{
    static const struct str wrong_states[] = { STR_INIT("in-maintenance"), STR_INIT("nonsense"),
                                               STR_INIT("maintenance-required") };
    static const struct str unreadable_data[] = { STR_INIT("{"), STR_INIT("[]x"),
                                                  STR_INIT("{\"Profiles\":7}"), STR_INIT(" ") };
    static const struct str profiles[] = {
        STR_INIT("default"), STR_INIT("unknown"), STR_INIT("unknown--default"), { NULL, 0 }
    };
    struct err ignored = { 0 };
    if (action->kind == ACTION_NODE_ADD) {
        struct str name = arena_printf(&t->tmp, "extra-%u", action->variant % 8);
        int r = world_add_node(t->world, name, &ignored);
        ASSERT(r == 0 || r == -ERR_CONFLICT); /* it may be there already */
        return;
    }
    struct str node = sim_run_pick_node(t, action);
    if (node.n == 0) {
        return;
    }
    switch (action->kind) {
    case ACTION_NODE_REMOVE:
        world_must(world_remove_node(t->world, node, &ignored));
        break;
    case ACTION_NODE_REPLACE:
        world_must(world_remove_node(t->world, node, &ignored));
        if (apiserver_find(t->server, STR(""), STR("nodes"), STR(""), node) == NULL) {
            world_must(world_add_node(t->world, node, &ignored));
        } /* otherwise a finalizer holds it */
        break;
    case ACTION_NODE_REBOOT:
        if (t->operations.on) {
            check_operations_on_reboot_by_hand(&t->operations, node);
        }
        world_must(world_reboot_node(t->world, node, &ignored));
        break;
    case ACTION_NODE_TOUCH:
        sim_run_set_node_meta(t, node, "labels", STR("example.com/touched"),
                              arena_printf(&t->tmp, "%u", action->variant));
        break;
    case ACTION_STATE_ERASE:
        sim_run_set_node_meta(t, node, "labels", STATE_LABEL, STR_NONE);
        break;
    case ACTION_STATE_FORGE:
        sim_run_set_node_meta(t, node, "labels", STATE_LABEL,
                              wrong_states[action->variant % ARRAY_LEN(wrong_states)]);
        break;
    case ACTION_DATA_ERASE:
        sim_run_set_node_meta(t, node, "annotations", NODE_DATA_ANNOTATION, STR_NONE);
        break;
    case ACTION_DATA_BREAK:
        sim_run_set_node_meta(t, node, "annotations", NODE_DATA_ANNOTATION,
                              unreadable_data[action->variant % ARRAY_LEN(unreadable_data)]);
        break;
    case ACTION_PROFILE_SET:
        sim_run_set_node_meta(t, node, "labels", PROFILE_LABEL,
                              profiles[action->variant % ARRAY_LEN(profiles)]);
        break;
    default:
        ASSERT(false);
    }
}

static void crash_and_restart_at(struct controller_process *p, usec_t start_at)
{
    controller_process_crash(p);
    p->start_at = start_at;
}

static void action_on_process(struct sim_run *t, const struct action *action)
{
    struct controller_process *p = &t->processes[action->pick % t->scenario->processes];
    usec_t now = virtual_loop_now(t->vloop);
    if (action->kind == ACTION_START) {
        if (!controller_process_runs(p)) {
            sim_run_start_process(t, p);
        }
        return;
    }
    if (action->kind == ACTION_CLOCK_STEP) {
        virtual_loop_step_wall(p->view, action->duration);
        return;
    }
    if (!controller_process_runs(p)) {
        return;
    }
    switch (action->kind) {
    case ACTION_CRASH:
        crash_and_restart_at(p, now + action->duration);
        break;
    case ACTION_CRASH_BEFORE:
        p->tap.crash = API_TAP_CRASH_BEFORE;
        break;
    case ACTION_CRASH_AFTER:
        p->tap.crash = API_TAP_CRASH_AFTER;
        break;
    case ACTION_STOP:
        if (!controller_process_frozen(p)) {
            core_stop(p->core);
        }
        break;
    case ACTION_FREEZE:
        virtual_loop_freeze(p->view, true);
        p->unfreeze_at = now + action->duration;
        break;
    default:
        ASSERT(false);
    }
}

static void action_on_network(struct sim_run *t, const struct action *action)
{
    struct controller_process *p = &t->processes[action->pick % t->scenario->processes];
    usec_t now = virtual_loop_now(t->vloop);
    switch (action->kind) {
    case ACTION_DISCONNECT:
        if (p->upstream != NULL) {
            sim_api_disconnect(p->upstream);
        }
        p->faults.down = true;
        p->reconnect_at = now + action->duration;
        break;
    case ACTION_STALL:
        p->faults.partitioned = true;
        p->reconnect_at = now + action->duration;
        break;
    case ACTION_FAULTS:
        for (uint32_t i = 0; i < t->scenario->processes; i++) {
            faults_randomize(&t->processes[i].faults);
            t->processes[i].faults.calm = false;
        }
        t->faults_end = now + action->duration;
        break;
    case ACTION_SERVER_DOWN:
        for (uint32_t i = 0; i < t->scenario->processes; i++) {
            t->processes[i].faults.down = true;
            if (t->processes[i].upstream != NULL) {
                sim_api_disconnect(t->processes[i].upstream);
            }
        }
        apiserver_restart(t->server);
        t->server_up_at = now + action->duration;
        break;
    case ACTION_SERVER_RESTART:
        apiserver_restart(t->server);
        break;
    case ACTION_COMPACT:
        apiserver_compact(t->server);
        break;
    default:
        ASSERT(false);
    }
}

usec_t sim_run_next_action(const struct sim_run *t)
{
    usec_t next = MIN(t->faults_end, t->server_up_at);
    next = MIN(next, sim_run_next_work(t));
    next = MIN(next, sim_run_next_request_event(t));
    next = MIN(next, sim_run_next_esx_event(t));
    next = MIN(next, sim_run_next_operation_event(t));
    next = MIN(next, t->notify_fail_end);
    next = MIN(next, t->pdb_block_end);
    next = MIN(next, t->prometheus_no_end);
    next = MIN(next, t->pause_all_end);
    next = MIN(next, t->rules_at);
    if (t->next_action < t->scenario->n) {
        next = MIN(next, t->scenario->actions[t->next_action].at);
    }
    for (uint32_t i = 0; i < t->scenario->processes; i++) {
        const struct controller_process *p = &t->processes[i];
        next = MIN(next, p->start_at);
        next = MIN(next, p->unfreeze_at);
        next = MIN(next, p->reconnect_at);
        next = MIN(next, p->late_at);
    }
    return next;
}

static void sim_run_end_process_actions(struct sim_run *t, struct controller_process *p, usec_t now)
{
    if (p->late_at <= now) {
        sim_run_deliver_late_write(t, p);
    }
    if (p->unfreeze_at <= now) {
        virtual_loop_freeze(p->view, false);
        p->unfreeze_at = USEC_NEVER;
        sim_run_load_config(t, p); /* it may have changed meanwhile */
    }
    if (p->reconnect_at <= now) {
        p->faults.down = false;
        p->faults.partitioned = false;
        p->reconnect_at = USEC_NEVER;
    }
    if (p->start_at <= now && !controller_process_frozen(p)) {
        p->start_at = USEC_NEVER;
        if (!controller_process_runs(p)) {
            sim_run_start_process(t, p);
        }
    } else if (p->start_at <= now) {
        p->start_at = p->unfreeze_at; /* a frozen machine starts nothing */
    }
}

static void sim_run_end_actions(struct sim_run *t, usec_t now)
{
    if (t->faults_end <= now) {
        for (uint32_t i = 0; i < t->scenario->processes; i++) {
            t->processes[i].faults.calm = true;
        }
        t->faults_end = USEC_NEVER;
    }
    if (t->server_up_at <= now) {
        for (uint32_t i = 0; i < t->scenario->processes; i++) {
            t->processes[i].faults.down = t->processes[i].reconnect_at != USEC_NEVER;
        }
        t->server_up_at = USEC_NEVER;
    }
    if (t->pdb_block_end <= now) {
        sim_run_block_pdbs(t, /* hold= */ false);
        t->pdb_block_end = USEC_NEVER;
    }
    if (t->prometheus_no_end <= now) {
        t->prometheus_no_end = USEC_NEVER;
        t->service.prometheus_no_since = USEC_NEVER;
    }
    if (t->pause_all_end <= now) {
        t->pause_all_end = USEC_NEVER;
        sim_run_pause_all(t, /* pause= */ false);
    }
    if (t->rules_at <= now) {
        sim_run_change_drain_rules(t);
    }
    for (uint32_t i = 0; i < t->scenario->processes; i++) {
        sim_run_end_process_actions(t, &t->processes[i], now);
    }
}

void sim_run_actions_due(struct sim_run *t)
{
    usec_t now = virtual_loop_now(t->vloop);
    sim_run_end_actions(t, now);
    sim_run_finish_work_due(t, now);
    sim_run_requests_due(t, now);
    sim_run_esx_due(t, now);
    sim_run_operations_due(t, now);
    while (t->next_action < t->scenario->n && t->scenario->actions[t->next_action].at <= now) {
        const struct action *action = &t->scenario->actions[t->next_action++];
        if (t->verbose) {
            (void)fprintf(stderr, "%12.3f s %s who %u what %u for %.3f s\n", (double)now / 1e6,
                          action_name(action->kind), action->pick, action->variant,
                          (double)action->duration / 1e6);
        }
        if (action->kind <= ACTION_PROFILE_SET) {
            action_on_node(t, action);
        } else if (action->kind <= ACTION_CLOCK_STEP) {
            action_on_process(t, action);
        } else if (action->kind <= ACTION_COMPACT) {
            action_on_network(t, action);
        } else if (action->kind <= ACTION_PAUSE_ALL) {
            sim_run_service_action(t, action);
        } else if (action->kind >= ACTION_MAINTENANCE_CHANGE) {
            sim_run_maintenance_action(t, action);
        } else if (action->kind >= ACTION_ESX_HOST) {
            sim_run_esx_action(t, action);
        } else {
            sim_run_request_action(t, action);
        }
    }
}

void sim_run_recover(struct sim_run *t)
{
    t->next_action = t->scenario->n;
    usec_t now = virtual_loop_now(t->vloop);
    t->faults_end = MIN(t->faults_end, now);
    t->notify_fail_end = MIN(t->notify_fail_end, now);
    t->pdb_block_end = t->pdb_block_end != USEC_NEVER ? now : USEC_NEVER;
    t->prometheus_no_end = MIN(t->prometheus_no_end, now);
    t->pause_all_end = t->pause_all_end != USEC_NEVER ? now : USEC_NEVER;
    t->server_up_at = MIN(t->server_up_at, now);
    for (uint32_t i = 0; i < t->scenario->processes; i++) {
        struct controller_process *p = &t->processes[i];
        p->tap.crash = API_TAP_CRASH_NONE;
        p->faults.calm = true;
        p->unfreeze_at = controller_process_frozen(p) ? now : USEC_NEVER;
        p->reconnect_at = p->reconnect_at != USEC_NEVER ? now : USEC_NEVER;
        p->start_at = controller_process_runs(p) ? USEC_NEVER : now;
    }
    sim_run_end_actions(t, now);
    if (t->service.on) {
        sim_run_recover_service(t);
        sim_run_recover_drain_rules(t);
    }
    if (t->requests.on) {
        sim_run_recover_requests(t);
    }
    if (t->esx.on) {
        sim_run_recover_esx(t);
    }
    if (t->operations.on) {
        sim_run_recover_operations(t);
    }
}
