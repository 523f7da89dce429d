#include "tests/swarm/controller_process.h"

/* The newest version of a node that this incarnation has shown. */
struct seen {
    uint64_t version;
    struct str uid;
};

void process_init(struct process *p, uint32_t index, struct virtual_loop *vloop,
                  struct apiserver *server, struct promise *promise)
{
    *p = (struct process){
        .index = index,
        .vloop = vloop,
        .server = server,
        .promise = promise,
        .start_at = USEC_NEVER,
        .thaw_at = USEC_NEVER,
        .join_at = USEC_NEVER,
        .late_at = USEC_NEVER,
        .blueprint = SERVICE_BLUEPRINTS,
    };
}

void process_sender(const struct process *p, struct service_sender *ret)
{
    *ret = (struct service_sender){
        .identity = str_from(p->identity),
        .term = p->term,
        .blueprint = p->blueprint,
        .wall = loop_wall(p->view),
        .now = virtual_loop_now(p->vloop),
        .blueprint_since = p->blueprint_since,
        .blueprint_count = p->blueprint_count,
    };
}

/* A patch of a node, an eviction, the deletion of a pod: what only a leader may send. */
static bool is_leaders(const struct api_request *request)
{
    return request->verb != API_GET && (str_starts(request->path, STR("/api/v1/nodes/")) ||
                                        str_contains(request->path, STR("/pods/")));
}

static void process_on_send(void *ctx, const struct api_request *request)
{
    struct process *p = ctx;
    struct service_sender who;
    if (p->elect && (is_leaders(request) || (p->budget->on && budget_is_leaders(request)))) {
        promise_on_node_send(p->promise, str_from(p->identity), virtual_loop_now(p->vloop));
    }
    if (p->budget->on) {
        budget_on_send(p->budget, str_from(p->identity), request, virtual_loop_now(p->vloop));
    }
    if (p->service->on) {
        process_sender(p, &who);
        service_on_send(p->service, &who, request);
    }
}

static void process_on_tell(void *ctx, struct str text)
{
    struct process *p = ctx;
    struct service_sender who;
    struct str message = service_message(text);
    process_sender(p, &who);
    if (message.n > 0) {
        service_on_tell(p->service, &who, message);
    }
}

static void process_on_told(void *ctx, struct str text, const struct outbound_reply *reply)
{
    struct process *p = ctx;
    struct service_sender who;
    struct str message = service_message(text);
    process_sender(p, &who);
    if (message.n > 0 && reply->status >= 200 && reply->status < 300) {
        service_on_told(p->service, &who, message);
    }
}

static void process_on_leading(void *ctx, bool leading)
{
    struct process *p = ctx;
    p->term += leading ? 1 : 0;
}

static void process_on_stopped(void *ctx)
{
    struct process *p = ctx;
    p->stopped = true;
}

static void process_on_node(void *ctx, const struct store_item *item, const void *before, bool gone)
{
    struct process *p = ctx;
    request_parts_on_node(&p->parts, item, before, gone);
}

static void process_on_acting(void *ctx)
{
    struct process *p = ctx;
    request_parts_on_acting(&p->parts);
}

/* What runs beside the profiles. */
static void process_add_parts(struct process *p)
{
    request_parts_init(&p->parts, &(struct request_parts_config){
                                      .loop = p->view,
                                      .controller = p->controller,
                                      .space = STR("default"),
                                      .finished_ttl = p->budget->terms.finished_ttl,
                                      .skew_tolerance = SECONDS(5),
                                      .mutations = p->mutations,
                                  });
}

void process_start(struct process *p)
{
    ASSERT(!process_runs(p));
    p->incarnation++;
    p->stopped = false;
    p->start_at = USEC_NEVER;
    (void)snprintf(p->identity, sizeof(p->identity), "drydock-%u_%u", p->index, p->incarnation);
    p->upstream = sim_api_new(p->view, p->server, &p->faults);
    sim_api_set_user_agent(p->upstream, str_from(p->identity));
    api_tap_init(&p->tap, p->upstream, process_on_send, p);
    p->post = sim_outbound_new(p->view, p->inbox, &p->faults);
    p->outbound_tap = (struct outbound_tap){
        .upstream = p->post,
        .arena = &p->arena,
        .on_send = process_on_tell,
        .on_reply = process_on_told,
        .ctx = p,
    };
    outbound_tap_init(&p->outbound_tap);
    p->blueprint = SERVICE_BLUEPRINTS;
    struct controller_config config = {
        .identity = str_from(p->identity),
        .elect = p->elect,
        .mutations = p->mutations,
        .outbound = p->service->on ? &p->outbound_tap.outbound : NULL,
        .wait_for_setup = p->service->on || (p->budget->on && p->budget->terms.profile),
        .wait_for_limits = p->budget->on,
        .keep = p->budget->on ? request_parts_annotations : NULL,
        .keep_n = p->budget->on ? REQUEST_PARTS_ANNOTATIONS : 0,
        .on_node = p->budget->on ? process_on_node : NULL,
        .on_acting = p->budget->on ? process_on_acting : NULL,
        .on_leading = process_on_leading,
        .on_stopped = process_on_stopped,
        .ctx = p,
    };
    p->controller = controller_new(p->view, &p->tap.api, NULL, NULL, &config);
    if (p->budget->on) {
        process_add_parts(p);
    }
}

void process_configure_asking(struct process *p, uint64_t count)
{
    p->blueprint_count = count;
    if (!p->budget->terms.profile) {
        return;
    }
    CLEANUP(buf_done)
    struct buf text = { 0 };
    bool records = p->budget->terms.records;
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
        records ? "  - {name: few, type: maxMaintenance, config: {max: 2}}\n" : "",
        records ? "need && few" : "need");
    int r = controller_configure(p->controller, STR("maintenance.yaml"), buf_str(&text),
                                 (struct ucfg_env){ 0 });
    ASSERT(r == 0); /* the swarm's own text */
}

void process_configure(struct process *p, uint32_t blueprint, uint64_t count)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct controller_setup before;
    struct controller_setup after;
    if (blueprint < SERVICE_BLUEPRINTS) {
        blueprint_print(&p->service->blueprints[blueprint], &text);
    } else {
        buf_add(&text, STR("intervals: {requeue: 30s}\nprofiles:\n- name: p0\n  operational:\n"
                           "    transitions: [{check: nobody, next: nowhere}]\n"));
    }
    controller_setup(p->controller, &before);
    int r = controller_configure(p->controller, STR("maintenance.yaml"), buf_str(&text),
                                 (struct ucfg_env){ 0 });
    controller_setup(p->controller, &after);
    if (blueprint < SERVICE_BLUEPRINTS) {
        ASSERT(r == 0); /* the swarm's own text */
        p->blueprint = blueprint;
        p->blueprint_since = virtual_loop_now(p->vloop);
        p->blueprint_count = count;
    } else if (r == 0 || after.generation != before.generation || after.error.n == 0) {
        promise_break(p->promise, "I10: %s took a broken configuration, or did not tell",
                      p->identity);
    }
}

void process_crash(struct process *p)
{
    request_parts_done(&p->parts);
    p->parts = (struct request_parts){ 0 };
    controller_free(STEAL(p->controller));
    sim_outbound_free(STEAL(p->post));
    sim_api_free(STEAL(p->upstream));
    map_done(&p->versions);
    arena_done(&p->arena);
}

void process_done(struct process *p)
{
    if (process_runs(p)) {
        process_crash(p);
    }
    api_tap_done(&p->tap);
    virtual_loop_view_free(p->view);
    faults_done(&p->faults);
}

bool process_runs(const struct process *p)
{
    return p->controller != NULL;
}

bool process_frozen(const struct process *p)
{
    return p->thaw_at != USEC_NEVER;
}

static bool process_see(void *ctx, const struct controller_node *node)
{
    struct process *p = ctx;
    struct seen *seen = map_find(&p->versions, node->name);
    if (seen == NULL) {
        seen = ARENA_NEW(&p->arena, struct seen);
        (void)map_put(&p->versions, node->name, seen); /* it was not there */
    }
    if (str_eq(seen->uid, node->uid) && node->version < seen->version) {
        promise_break(p->promise,
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

void process_bury(struct process *p)
{
    if (!process_runs(p)) {
        return;
    }
    if (p->tap.crashed) {
        if (p->tap.crash == API_TAP_CRASH_MAINTENANCE || p->tap.crash == API_TAP_CRASH_GRANTS ||
            p->tap.crash == API_TAP_CRASH_WRITE_LATE) {
            p->late_at = virtual_loop_now(p->vloop) + p->late_span;
            memcpy(p->late_agent, p->identity, sizeof(p->late_agent));
        }
        process_crash(p);
        p->start_at = virtual_loop_now(p->vloop) + SECONDS(5);
    } else if (p->stopped) {
        process_crash(p); /* nothing is left to crash */
        p->start_at = virtual_loop_now(p->vloop) + SECONDS(20);
    }
}

void process_check(struct process *p, bool deep)
{
    controller_check(p->controller);
    if (p->parts.arbiter != NULL) {
        arbiter_check(p->parts.arbiter);
        requests_check(p->parts.requests);
    }
    if (deep) {
        controller_each_node(p->controller, process_see, p);
    }
}
