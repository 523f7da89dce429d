#include "tests/swarm/controller_process.h"

/* The newest version of a node that this incarnation has shown. */
struct seen_version {
    uint64_t version;
    struct str uid;
};

void controller_process_init(struct controller_process *p, uint32_t index,
                             struct virtual_loop *vloop, struct apiserver *server,
                             struct check_basic *basic)
{
    *p = (struct controller_process){
        .index = index,
        .vloop = vloop,
        .server = server,
        .basic = basic,
        .start_at = USEC_NEVER,
        .unfreeze_at = USEC_NEVER,
        .reconnect_at = USEC_NEVER,
        .late_at = USEC_NEVER,
        .config = CHECK_SERVICE_CONFIGS,
    };
}

void controller_process_sender(const struct controller_process *p, struct check_sender *ret)
{
    *ret = (struct check_sender){
        .identity = str_from(p->identity),
        .term = p->term,
        .config = p->config,
        .wall = loop_wall(p->view),
        .now = virtual_loop_now(p->vloop),
        .config_since = p->config_since,
        .config_version = p->config_version,
    };
}

/* A patch of a node, an eviction, the deletion of a pod: what only a leader may send. */
static bool is_leader_only(const struct api_request *request)
{
    return request->verb != API_GET && (str_starts(request->path, STR("/api/v1/nodes/")) ||
                                        str_contains(request->path, STR("/pods/")));
}

static void controller_process_on_send(void *ctx, const struct api_request *request)
{
    struct controller_process *p = ctx;
    struct check_sender sender;
    if (p->elect &&
        (is_leader_only(request) || (p->requests->on && check_requests_is_leader_only(request)) ||
         (p->checked->on && check_operations_is_leader_only(request)))) {
        check_basic_on_node_send(p->basic, str_from(p->identity), virtual_loop_now(p->vloop));
    }
    if (p->requests->on) {
        check_requests_on_send(p->requests, str_from(p->identity), request,
                               virtual_loop_now(p->vloop));
    }
    if (p->service->on) {
        controller_process_sender(p, &sender);
        check_service_on_send(p->service, &sender, request);
    }
}

static void controller_process_on_notify_send(void *ctx, struct str text)
{
    struct controller_process *p = ctx;
    struct check_sender sender;
    if (p->esx->on) {
        if (sim_vcenter_is_power_call(text)) {
            check_basic_on_node_send(p->basic, str_from(p->identity), virtual_loop_now(p->vloop));
        }
        return;
    }
    struct str message = check_service_message(text);
    controller_process_sender(p, &sender);
    if (str_starts(text, STR("query="))) {
        check_service_on_query_send(p->service, &sender);
    }
    if (message.n > 0) {
        check_service_on_notify_send(p->service, &sender, message);
    }
}

static void controller_process_on_notify_reply(void *ctx, struct str text,
                                               const struct outbound_reply *reply)
{
    struct controller_process *p = ctx;
    struct check_sender sender;
    struct str message = check_service_message(text);
    controller_process_sender(p, &sender);
    if (message.n > 0 && reply->status >= 200 && reply->status < 300) {
        check_service_on_notify_acked(p->service, &sender, message);
    }
}

static void controller_process_on_leading(void *ctx, bool leading)
{
    struct controller_process *p = ctx;
    p->term += leading ? 1 : 0;
}

static void controller_process_on_stopped(void *ctx)
{
    struct controller_process *p = ctx;
    p->stopped = true;
}

/* Nodes on ESX hosts, with short times: a host is away for minutes. */
static void controller_process_start_esx(struct controller_process *p)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct integrations_config config = { .outbound = &p->outbound_tap.outbound };
    for (uint32_t i = 0; i < integration_provider_n; i++) {
        config.enabled[i] = strcmp(integration_providers[i]->name, "esx") == 0;
    }
    integrations_init(&p->integrations, p->core, &config);
    buf_printf(&text,
               "intervals:\n  check: {period: 10s, jitter: 0.1}\n"
               "  podEviction: {period: 5s, timeout: 5m}\n"
               "  vmShutdown: {period: 2s, timeout: 20s}\n"
               "vCenters:\n  templateUrl: https://vcenter-$AZ\n"
               "  credentials: {a: {username: user, password: secret}}\n"
               "wholeHost: %s\n",
               p->esx->whole_host ? "true" : "false");
    int r = integration_configure(integrations_find(&p->integrations, STR("esx")), STR("esx.yaml"),
                                  buf_str(&text), (struct ucfg_env){ 0 });
    ASSERT(r == 0); /* the swarm's own text */
}

void controller_process_start(struct controller_process *p)
{
    ASSERT(!controller_process_runs(p));
    p->incarnation++;
    p->stopped = false;
    p->start_at = USEC_NEVER;
    (void)snprintf(p->identity, sizeof(p->identity), "drydock-%u_%u", p->index, p->incarnation);
    p->upstream = sim_api_new(p->view, p->server, &p->faults);
    sim_api_set_user_agent(p->upstream, str_from(p->identity));
    api_tap_init(&p->tap, p->upstream, controller_process_on_send, p);
    p->outbound = sim_outbound_new(p->view, p->inbox, &p->faults);
    p->outbound_tap = (struct outbound_tap){
        .upstream = p->outbound,
        .arena = &p->arena,
        .on_send = controller_process_on_notify_send,
        .on_reply = controller_process_on_notify_reply,
        .ctx = p,
    };
    outbound_tap_init(&p->outbound_tap);
    p->config = CHECK_SERVICE_CONFIGS;
    p->core = core_new(&(struct core_config){
        .loop = p->view,
        .api = &p->tap.api,
        .identity = str_from(p->identity),
        .elect = p->elect,
        .use_limits = p->requests->on || p->checked->on || p->esx->limit > 0,
        .limits = { .namespace = STR("default") },
        .mutations = p->mutations,
        .on_leading = controller_process_on_leading,
        .on_stopped = controller_process_on_stopped,
        .ctx = p,
    });
    const struct controller_config config = {
        .outbound = p->service->on ? &p->outbound_tap.outbound : NULL,
        .wait_for_config = p->service->on || (p->requests->on && p->requests->random.profile),
    };
    p->controller = controller_new(p->core, &config);
    if (p->requests->on || p->checked->on) {
        const struct requests_config requests = {
            .finished_ttl = p->requests->random.finished_ttl,
            .skew_tolerance = SECONDS(5),
        };
        requests_part_init(&p->requests_part, p->core, &requests);
    }
    if (p->esx->on) {
        controller_process_start_esx(p);
    }
    if (p->checked->on) {
        p->operations =
            operations_new(p->core, &(struct operations_config){
                                        .runner_image = STR("drydock:swarm"),
                                        .unlimited_visits = p->checked->random.unlimited_visits,
                                    });
    }
    core_start(p->core);
}

void controller_process_configure_requests(struct controller_process *p, uint64_t count)
{
    p->config_version = count;
    if (!p->requests->random.profile) {
        return;
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    bool profile_max = p->requests->random.profile_max;
    buf_printf(
        &text,
        "intervals: {requeue: 30s}\n"
        "instances:\n"
        "  check:\n"
        "  - {name: need, type: hasLabel, config: {key: example.com/need-p0, value: 'true'}}\n%s"
        "profiles:\n"
        "- name: p0\n"
        "  operational:\n    transitions:\n    - {check: %s, next: in-maintenance}\n"
        "  maintenance-required:\n    transitions: []\n"
        "  in-maintenance:\n    transitions:\n    - {check: '!need', next: operational}\n",
        profile_max ? "  - {name: few, type: maxMaintenance, config: {max: 2}}\n" : "",
        profile_max ? "need && few" : "need");
    int r = controller_configure(p->controller, STR("maintenance.yaml"), buf_str(&text),
                                 (struct ucfg_env){ 0 });
    ASSERT(r == 0); /* the swarm's own text */
}

void controller_process_configure(struct controller_process *p, uint32_t config, uint64_t count)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct controller_config_state before;
    struct controller_config_state after;
    if (config < CHECK_SERVICE_CONFIGS) {
        random_config_print(&p->service->configs[config], &text);
    } else {
        buf_add(&text, STR("intervals: {requeue: 30s}\nprofiles:\n- name: p0\n  operational:\n"
                           "    transitions: [{check: nobody, next: nowhere}]\n"));
    }
    controller_config_state(p->controller, &before);
    int r = controller_configure(p->controller, STR("maintenance.yaml"), buf_str(&text),
                                 (struct ucfg_env){ 0 });
    controller_config_state(p->controller, &after);
    if (config < CHECK_SERVICE_CONFIGS) {
        ASSERT(r == 0); /* the swarm's own text */
        p->config = config;
        p->config_since = virtual_loop_now(p->vloop);
        p->config_version = count;
    } else if (r == 0 || after.generation != before.generation || after.error.n == 0) {
        check_violation(p->basic, "I10: %s took a broken configuration, or did not tell",
                        p->identity);
    }
}

void controller_process_crash(struct controller_process *p)
{
    integrations_done(&p->integrations);
    operations_free(STEAL(p->operations));
    requests_part_done(&p->requests_part);
    controller_free(STEAL(p->controller));
    core_free(STEAL(p->core));
    sim_outbound_free(STEAL(p->outbound));
    sim_api_free(STEAL(p->upstream));
    map_done(&p->versions);
    arena_done(&p->arena);
}

void controller_process_done(struct controller_process *p)
{
    if (controller_process_runs(p)) {
        controller_process_crash(p);
    }
    api_tap_done(&p->tap);
    virtual_loop_view_free(p->view);
    faults_done(&p->faults);
}

bool controller_process_runs(const struct controller_process *p)
{
    return p->controller != NULL;
}

bool controller_process_frozen(const struct controller_process *p)
{
    return p->unfreeze_at != USEC_NEVER;
}

static bool controller_process_check_version(void *ctx, const struct controller_node *node)
{
    struct controller_process *p = ctx;
    struct seen_version *seen = map_find(&p->versions, node->name);
    if (seen == NULL) {
        seen = ARENA_NEW(&p->arena, struct seen_version);
        (void)map_put(&p->versions, node->name, seen); /* it was not there */
    }
    if (str_eq(seen->uid, node->uid) && node->version < seen->version) {
        check_violation(p->basic,
                        "I7: what %s knows of " STR_FMT " went back from version %llu to %llu",
                        p->identity, STR_ARG(node->name), (unsigned long long)seen->version,
                        (unsigned long long)node->version);
        return false;
    }
    if (!str_eq(seen->uid, node->uid)) {
        seen->uid = arena_str(&p->arena, node->uid);
    }
    seen->version = node->version;
    return true;
}

void controller_process_reap(struct controller_process *p)
{
    if (!controller_process_runs(p)) {
        return;
    }
    if (p->tap.crashed) {
        if (p->tap.crash == API_TAP_CRASH_MAINTENANCE || p->tap.crash == API_TAP_CRASH_GRANTS ||
            p->tap.crash == API_TAP_CRASH_WRITE_LATE) {
            p->late_at = virtual_loop_now(p->vloop) + p->late_duration;
            memcpy(p->late_agent, p->identity, sizeof(p->late_agent));
        }
        controller_process_crash(p);
        p->start_at = virtual_loop_now(p->vloop) + SECONDS(5);
    } else if (p->stopped) {
        controller_process_crash(p); /* nothing is left to crash */
        p->start_at = virtual_loop_now(p->vloop) + SECONDS(20);
    }
}

void controller_process_check(struct controller_process *p, bool each_node)
{
    controller_check(p->controller);
    if (p->requests_part.requests != NULL) {
        requests_check(p->requests_part.requests);
    }
    if (p->operations != NULL) {
        operations_check(p->operations);
    }
    if (each_node) {
        controller_each_node(p->controller, controller_process_check_version, p);
    }
}
