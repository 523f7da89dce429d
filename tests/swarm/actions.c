#include "tests/swarm/actions.h"

#include "format/json_writer.h"

int trial_ask(struct trial *t, const char *method, struct str path, struct str type,
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

static void trial_must(struct trial *t, const char *method, const char *path, const char *body)
{
    int status = trial_ask(t, method, str_from(path), STR("application/json"), str_from(body));
    ASSERT(status == 200 || status == 201);
}

void trial_populate(struct trial *t)
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
        trial_must(t, "POST", "/apis/apps/v1/namespaces/default/deployments", body.p);
        body = arena_printf(&t->tmp,
                            "{\"metadata\":{\"name\":\"app-%u\"},\"spec\":{\"maxUnavailable\":1,"
                            "\"selector\":{\"matchLabels\":{\"app\":\"a%u\"}}}}",
                            i, i);
        trial_must(t, "POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", body.p);
    }
}

struct pick {
    uint32_t wanted;
    uint32_t at;
    struct arena *out;
    struct str name;
};

static void pick_visit(void *ctx, const struct jval *object)
{
    struct pick *pick = ctx;
    if (pick->at++ == pick->wanted) {
        pick->name = arena_str(pick->out, jval_str(jval_at(object, "metadata.name")));
    }
}

struct str trial_pick_node(struct trial *t, const struct deed *deed)
{
    uint32_t n = apiserver_count(t->server, STR(""), STR("nodes"));
    if (n == 0) {
        return STR_NONE;
    }
    struct pick pick = { .wanted = deed->who % n, .out = &t->tmp };
    apiserver_each(t->server, STR(""), STR("nodes"), STR(""), pick_visit, &pick);
    return pick.name;
}

void trial_set_meta(struct trial *t, struct str node, const char *map, struct str key,
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
    int status = trial_ask(t, "PATCH", path, STR("application/merge-patch+json"), buf_str(&body));
    ASSERT(status == 200);
}

/* For what cannot fail while the plan's own picture of the world is right. */
static void must(int r)
{
    ASSERT(r == 0);
}

static void deed_to_node(struct trial *t, const struct deed *deed)
{
    static const struct str states[] = { STR_INIT("in-maintenance"), STR_INIT("nonsense"),
                                         STR_INIT("maintenance-required") };
    static const struct str broken[] = { STR_INIT("{"), STR_INIT("[]x"),
                                         STR_INIT("{\"Profiles\":7}"), STR_INIT(" ") };
    static const struct str profiles[] = {
        STR_INIT("default"), STR_INIT("unknown"), STR_INIT("unknown--default"), { NULL, 0 }
    };
    struct err ignored = { 0 };
    if (deed->kind == DEED_NODE_ADD) {
        struct str name = arena_printf(&t->tmp, "extra-%u", deed->what % 8);
        int r = world_add_node(t->world, name, &ignored);
        ASSERT(r == 0 || r == -ERR_CONFLICT); /* it may be there already */
        return;
    }
    struct str node = trial_pick_node(t, deed);
    if (node.n == 0) {
        return;
    }
    switch (deed->kind) {
    case DEED_NODE_REMOVE:
        must(world_remove_node(t->world, node, &ignored));
        break;
    case DEED_NODE_REPLACE:
        must(world_remove_node(t->world, node, &ignored));
        if (apiserver_find(t->server, STR(""), STR("nodes"), STR(""), node) == NULL) {
            must(world_add_node(t->world, node, &ignored));
        } /* otherwise a finalizer holds it */
        break;
    case DEED_NODE_REBOOT:
        must(world_reboot_node(t->world, node, &ignored));
        break;
    case DEED_NODE_TOUCH:
        trial_set_meta(t, node, "labels", STR("example.com/touched"),
                       arena_printf(&t->tmp, "%u", deed->what));
        break;
    case DEED_STATE_ERASE:
        trial_set_meta(t, node, "labels", STATE_LABEL, STR_NONE);
        break;
    case DEED_STATE_FORGE:
        trial_set_meta(t, node, "labels", STATE_LABEL, states[deed->what % ARRAY_LEN(states)]);
        break;
    case DEED_DATA_ERASE:
        trial_set_meta(t, node, "annotations", DATA_ANNOTATION, STR_NONE);
        break;
    case DEED_DATA_BREAK:
        trial_set_meta(t, node, "annotations", DATA_ANNOTATION,
                       broken[deed->what % ARRAY_LEN(broken)]);
        break;
    case DEED_PROFILE_SET:
        trial_set_meta(t, node, "labels", PROFILE_LABEL,
                       profiles[deed->what % ARRAY_LEN(profiles)]);
        break;
    default:
        ASSERT(false);
    }
}

static void process_crash_later(struct process *p, usec_t start_at)
{
    process_crash(p);
    p->start_at = start_at;
}

static void deed_to_process(struct trial *t, const struct deed *deed)
{
    struct process *p = &t->processes[deed->who % t->plan->processes];
    usec_t now = virtual_loop_now(t->vloop);
    if (deed->kind == DEED_START) {
        if (!process_runs(p)) {
            trial_start(t, p);
        }
        return;
    }
    if (deed->kind == DEED_CLOCK_STEP) {
        virtual_loop_step_wall(p->view, deed->span);
        return;
    }
    if (!process_runs(p)) {
        return;
    }
    switch (deed->kind) {
    case DEED_CRASH:
        process_crash_later(p, now + deed->span);
        break;
    case DEED_CRASH_BEFORE:
        p->tap.crash = API_TAP_CRASH_BEFORE;
        break;
    case DEED_CRASH_AFTER:
        p->tap.crash = API_TAP_CRASH_AFTER;
        break;
    case DEED_STOP:
        if (!process_frozen(p)) {
            controller_stop(p->controller);
        }
        break;
    case DEED_FREEZE:
        virtual_loop_freeze(p->view, true);
        p->thaw_at = now + deed->span;
        break;
    default:
        ASSERT(false);
    }
}

static void deed_to_wire(struct trial *t, const struct deed *deed)
{
    struct process *p = &t->processes[deed->who % t->plan->processes];
    usec_t now = virtual_loop_now(t->vloop);
    switch (deed->kind) {
    case DEED_CUT:
        if (p->upstream != NULL) {
            sim_api_disconnect(p->upstream);
        }
        p->faults.down = true;
        p->join_at = now + deed->span;
        break;
    case DEED_STALL:
        p->faults.partitioned = true;
        p->join_at = now + deed->span;
        break;
    case DEED_WEATHER:
        for (uint32_t i = 0; i < t->plan->processes; i++) {
            faults_randomize(&t->processes[i].faults);
            t->processes[i].faults.calm = false;
        }
        t->weather_end = now + deed->span;
        break;
    case DEED_SERVER_DOWN:
        for (uint32_t i = 0; i < t->plan->processes; i++) {
            t->processes[i].faults.down = true;
            if (t->processes[i].upstream != NULL) {
                sim_api_disconnect(t->processes[i].upstream);
            }
        }
        apiserver_restart(t->server);
        t->server_up_at = now + deed->span;
        break;
    case DEED_SERVER_RESTART:
        apiserver_restart(t->server);
        break;
    case DEED_COMPACT:
        apiserver_compact(t->server);
        break;
    default:
        ASSERT(false);
    }
}

usec_t trial_next_deed(const struct trial *t)
{
    usec_t next = MIN(t->weather_end, t->server_up_at);
    next = MIN(next, trial_next_chore(t));
    next = MIN(next, trial_next_asking(t));
    next = MIN(next, t->deaf_end);
    next = MIN(next, t->hold_end);
    next = MIN(next, t->rules_at);
    if (t->next_deed < t->plan->n) {
        next = MIN(next, t->plan->deeds[t->next_deed].at);
    }
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        const struct process *p = &t->processes[i];
        next = MIN(next, p->start_at);
        next = MIN(next, p->thaw_at);
        next = MIN(next, p->join_at);
        next = MIN(next, p->late_at);
    }
    return next;
}

static void trial_end_process_deeds(struct trial *t, struct process *p, usec_t now)
{
    if (p->late_at <= now) {
        trial_deliver(t, p);
    }
    if (p->thaw_at <= now) {
        virtual_loop_freeze(p->view, false);
        p->thaw_at = USEC_NEVER;
        trial_read_file(t, p); /* it may have changed meanwhile */
    }
    if (p->join_at <= now) {
        p->faults.down = false;
        p->faults.partitioned = false;
        p->join_at = USEC_NEVER;
    }
    if (p->start_at <= now && !process_frozen(p)) {
        p->start_at = USEC_NEVER;
        if (!process_runs(p)) {
            trial_start(t, p);
        }
    } else if (p->start_at <= now) {
        p->start_at = p->thaw_at; /* a frozen machine starts nothing */
    }
}

static void trial_end_deeds(struct trial *t, usec_t now)
{
    if (t->weather_end <= now) {
        for (uint32_t i = 0; i < t->plan->processes; i++) {
            t->processes[i].faults.calm = true;
        }
        t->weather_end = USEC_NEVER;
    }
    if (t->server_up_at <= now) {
        for (uint32_t i = 0; i < t->plan->processes; i++) {
            t->processes[i].faults.down = t->processes[i].join_at != USEC_NEVER;
        }
        t->server_up_at = USEC_NEVER;
    }
    if (t->hold_end <= now) {
        trial_hold_pods(t, /* hold= */ false);
        t->hold_end = USEC_NEVER;
    }
    if (t->rules_at <= now) {
        trial_change_rules(t);
    }
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        trial_end_process_deeds(t, &t->processes[i], now);
    }
}

void trial_do_deeds(struct trial *t)
{
    usec_t now = virtual_loop_now(t->vloop);
    trial_end_deeds(t, now);
    trial_do_chores(t, now);
    trial_end_asking(t, now);
    while (t->next_deed < t->plan->n && t->plan->deeds[t->next_deed].at <= now) {
        const struct deed *deed = &t->plan->deeds[t->next_deed++];
        if (t->verbose) {
            (void)fprintf(stderr, "%12.3f s %s who %u what %u for %.3f s\n", (double)now / 1e6,
                          deed_name(deed->kind), deed->who, deed->what, (double)deed->span / 1e6);
        }
        if (deed->kind <= DEED_PROFILE_SET) {
            deed_to_node(t, deed);
        } else if (deed->kind <= DEED_CLOCK_STEP) {
            deed_to_process(t, deed);
        } else if (deed->kind <= DEED_COMPACT) {
            deed_to_wire(t, deed);
        } else if (deed->kind <= DEED_HOLD) {
            trial_do_service(t, deed);
        } else {
            trial_do_asking(t, deed);
        }
    }
}

void trial_calm_down(struct trial *t)
{
    t->next_deed = t->plan->n;
    usec_t now = virtual_loop_now(t->vloop);
    t->weather_end = MIN(t->weather_end, now);
    t->deaf_end = MIN(t->deaf_end, now);
    t->hold_end = t->hold_end != USEC_NEVER ? now : USEC_NEVER;
    t->server_up_at = MIN(t->server_up_at, now);
    for (uint32_t i = 0; i < t->plan->processes; i++) {
        struct process *p = &t->processes[i];
        p->tap.crash = API_TAP_CRASH_NONE;
        p->faults.calm = true;
        p->thaw_at = process_frozen(p) ? now : USEC_NEVER;
        p->join_at = p->join_at != USEC_NEVER ? now : USEC_NEVER;
        p->start_at = process_runs(p) ? USEC_NEVER : now;
    }
    trial_end_deeds(t, now);
    if (t->service.on) {
        trial_calm_service(t);
        trial_calm_rules(t);
    }
    if (t->budget.on) {
        trial_calm_asking(t);
    }
}
