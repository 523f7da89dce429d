#include "tests/swarm/process.h"

/* The newest version of a node that this incarnation has shown. */
struct seen {
    uint64_t version;
    struct str uid;
};

void process_init(struct process *p, uint32_t index, struct vloop *vloop, struct apiserver *server,
                  struct promise *promise)
{
    *p = (struct process){
        .index = index,
        .vloop = vloop,
        .server = server,
        .promise = promise,
        .start_at = USEC_NEVER,
        .thaw_at = USEC_NEVER,
        .join_at = USEC_NEVER,
    };
}

static void process_on_send(void *ctx, const struct api_request *request)
{
    struct process *p = ctx;
    if (p->elect && request->verb == API_PATCH &&
        str_starts(request->path, STR("/api/v1/nodes/"))) {
        promise_on_node_send(p->promise, str_from(p->identity), vloop_now(p->vloop));
    }
}

static void process_on_stopped(void *ctx)
{
    struct process *p = ctx;
    p->stopped = true;
}

void process_start(struct process *p)
{
    ASSERT(!process_runs(p));
    p->incarnation++;
    p->stopped = false;
    p->start_at = USEC_NEVER;
    (void)snprintf(p->identity, sizeof(p->identity), "drydock-%u_%u", p->index, p->incarnation);
    p->door = door_new(p->view, p->server, &p->faults);
    door_set_agent(p->door, str_from(p->identity));
    tap_init(&p->tap, p->door, process_on_send, p);
    struct controller_config config = {
        .identity = str_from(p->identity),
        .elect = p->elect,
        .mutations = p->mutations,
        .on_stopped = process_on_stopped,
        .ctx = p,
    };
    p->controller = controller_new(p->view, &p->tap.api, NULL, NULL, &config);
}

void process_crash(struct process *p)
{
    controller_free(STEAL(p->controller));
    door_free(STEAL(p->door));
    map_done(&p->versions);
    arena_done(&p->arena);
}

void process_done(struct process *p)
{
    if (process_runs(p)) {
        process_crash(p);
    }
    vloop_view_free(p->view);
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
        process_crash(p);
        p->start_at = vloop_now(p->vloop) + SECONDS(5);
    } else if (p->stopped) {
        process_crash(p); /* nothing is left to crash */
        p->start_at = vloop_now(p->vloop) + SECONDS(20);
    }
}

void process_check(struct process *p, bool deep)
{
    controller_check(p->controller);
    if (deep) {
        controller_each_node(p->controller, process_see, p);
    }
}
