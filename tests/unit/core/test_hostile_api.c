/*
 * A whole controller, profiles and requests with drains, in front of an API server that lies: its
 * answers and events are those of the sandbox, and some of them are changed on their way. Fields
 * are missing or of another type, items come twice, texts are empty or huge, names, uids, versions
 * and kinds are wrong, documents are cut, statuses are others. Everything follows from the seed.
 *
 * The controller neither aborts nor leaks, and what it sends keeps its form: a write names the
 * version or the uid that it is based on, no work is begun for an actor, no path leaves its place.
 * After that a controller that is told the truth finds everything in a state that it can finish.
 */
#include "base/alloc.h"
#include "core/core.h"
#include "format/json_tree.h"
#include "kinds/crd.h"
#include "kinds/keys.h"
#include "profile/controller.h"
#include "request/requests_part.h"
#include "sandbox/sim/sim_api.h"
#include "sandbox/sim/virtual_loop.h"
#include "sandbox/world/world.h"
#include "tests/check.h"

#define WALL SECONDS(1767323045)
#define SEEDS 24u
#define LIES_WANTED 4000u /* in all seeds together */
#define LYING MINUTES(4)
#define HONEST MINUTES(30)
#define NODES 5u
#define LIMITS_PATH "/apis/repairman.k8s.io/v1/maintenancelimits"
#define REQUESTS_PATH "/apis/repairman.k8s.io/v1/maintenancerequests"

static uint32_t lies; /* told so far */

/* ── lies ──────────────────────────────────────────────────────────────────────────────────── */

static struct tree *another_value(struct rng *rng, struct arena *a)
{
    static const char *const texts[] = {
        "",     "x",        "../../etc",  "a/b?c=d#e", "\xc3\xa9\x01",
        "true", "Approved", "InProgress", "node-001",  "9"
    };
    static const int64_t numbers[] = { 0, -1, 1, INT64_MAX, INT64_MIN, 4294967295, 4294967294 };
    switch (rng_below(rng, 8)) {
    case 0:
        return tree_null(a);
    case 1:
        return tree_bool(a, rng_below(rng, 2) > 0);
    case 2:
        return tree_obj(a);
    case 3:
        return tree_arr(a);
    case 4:
        return tree_i64(a, numbers[rng_below(rng, ARRAY_LEN(numbers))]);
    case 5: {
        char *bytes = arena_alloc(a, 20001);
        memset(bytes, 'a', 20000);
        return tree_str(a, (struct str){ .p = bytes, .n = 20000 });
    }
    default:
        return tree_str(a, str_from(texts[rng_below(rng, ARRAY_LEN(texts))]));
    }
}

/* Somewhere below `t`, or the root itself is left as it is. */
static void change_somewhere(struct rng *rng, struct arena *a, struct tree *t)
{
    for (uint32_t depth = 0; t->n > 0; depth++) {
        struct tree *child = t->first;
        for (uint32_t skip = rng_below(rng, t->n); skip > 0; skip--) {
            child = child->next;
        }
        bool leaf = child->n == 0;
        if (!leaf && (depth == 0 || rng_below(rng, 3) > 0)) {
            t = child;
            continue;
        }
        if (t->kind == JARR) {
            if (rng_below(rng, 2) > 0) {
                tree_add(t, tree_clone(a, child));
            } else {
                tree_remove(t, child);
            }
        } else if (rng_below(rng, 3) == 0) {
            (void)tree_del(t, child->key); /* it is there */
        } else {
            tree_set(a, t, child->key, another_value(rng, a));
        }
        return;
    }
}

static struct tree *first_object(struct tree *root)
{
    struct tree *items = tree_get(root, STR("items"));
    struct tree *object = tree_get(root, STR("object"));
    return tree_kind(items) == JARR && items->n > 0 ? items->first
           : tree_kind(object) == JOBJ              ? object
                                                    : root;
}

/* What decisions are kept by is lied about more often than the rest. */
static void change_identity(struct rng *rng, struct arena *a, struct tree *root)
{
    static const char *const paths[] = {
        "metadata.uid",
        "metadata.resourceVersion",
        "metadata.name",
        "metadata.namespace",
        "metadata.generation",
        "metadata.deletionTimestamp",
        "metadata.creationTimestamp",
        "kind",
        "spec.state",
        "spec.name",
        "spec.type",
        "status.phase",
        "status.step",
        "status.grant",
        "status.reservations",
        "spec.limit",
        "spec.nodeName",
        "status.disruptionsAllowed",
        "spec.holderIdentity",
        "metadata.annotations",
        "metadata.labels",
    };
    struct tree *object = first_object(root);
    const char *path = paths[rng_below(rng, ARRAY_LEN(paths))];
    struct tree *items = tree_get(root, STR("items"));
    if (rng_below(rng, 3) == 0 && tree_kind(items) == JARR && items->n > 1) {
        /* Two objects of a list have the same of it. */
        tree_set_at(a, items->last, path, tree_str(a, tree_text_at(items->first, path)));
    } else if (rng_below(rng, 2) == 0) {
        (void)tree_del_at(object, path); /* it may not be there */
    } else {
        tree_set_at(a, object, path, another_value(rng, a));
    }
}

static struct str lie(struct rng *rng, struct arena *a, struct str body)
{
    struct tree *root = NULL;
    struct err ignored = { 0 };
    lies++;
    switch (rng_below(rng, 12)) {
    case 0:
        return str_sub(body, 0, body.n / 2);
    case 1:
        return STR("<html>it works</html>");
    case 2:
        return STR("");
    default:
        break;
    }
    if (tree_parse(body, a, &root, &ignored) < 0 || root->kind != JOBJ) {
        return STR("[]");
    }
    for (uint32_t n = 1 + rng_below(rng, 3); n > 0; n--) {
        if (rng_below(rng, 2) > 0) {
            change_identity(rng, a, root);
        } else {
            change_somewhere(rng, a, root);
        }
    }
    return tree_json(a, root);
}

/* ── between the controller and the server ─────────────────────────────────────────────────── */

struct liar {
    struct api api; /* first */
    struct api *upstream;
    struct rng rng;
    bool honest;
    struct list open; /* calls and watches */
};

struct liar_call {
    struct list link;
    struct liar *liar;
    struct api_call *call;
    struct api_watch *watch;
    api_on_reply on_reply;
    api_on_event on_event;
    void *ctx;
};

static bool liar_lies(struct liar *l)
{
    return !l->honest && rng_below(&l->rng, 5) == 0;
}

static void liar_forget(struct liar_call *c)
{
    list_del(&c->link);
    alloc_free(c);
}

static void liar_on_reply(void *ctx, const struct api_reply *reply)
{
    static const int statuses[] = { 100, 200, 201, 204, 301, 400, 401, 403,
                                    404, 409, 410, 422, 429, 500, 503, 999 };
    struct liar_call *c = ctx;
    struct liar *l = c->liar;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct api_reply told = *reply;
    if (reply->status != 0 && liar_lies(l)) {
        if (rng_below(&l->rng, 4) == 0) {
            told.status = statuses[rng_below(&l->rng, ARRAY_LEN(statuses))];
            lies++;
        } else {
            told.body = lie(&l->rng, &tmp, reply->body);
        }
    }
    api_on_reply on_reply = c->on_reply;
    void *own = c->ctx;
    liar_forget(c);
    on_reply(own, &told);
}

static void liar_on_event(void *ctx, const struct api_watch_event *event)
{
    struct liar_call *c = ctx;
    struct liar *l = c->liar;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct api_watch_event told = *event;
    if (event->kind == API_WATCH_LINE && liar_lies(l)) {
        told.line = lie(&l->rng, &tmp, event->line);
    }
    api_on_event on_event = c->on_event;
    void *own = c->ctx;
    if (event->kind == API_WATCH_END) {
        liar_forget(c);
    }
    on_event(own, &told);
}

static void check_sent(const struct api_request *request)
{
    CHECK(!str_contains(request->path, STR("/../")) && !str_contains(request->path, STR("//")));
    CHECK(!str_contains(request->path, STR(" ")) && !str_contains(request->path, STR("#")));
    CHECK(request->path.n < 100000 && request->body.n < 1536 * 1024);
    CHECK(!str_contains(request->body, STR("\"state\":\"InProgress\"},")) ||
          str_contains(request->path, STR("/status"))); /* R5: in a ledger alone */
    if (request->verb == API_PATCH && !str_contains(request->path, STR("/events"))) {
        CHECK(str_contains(request->body, STR("\"resourceVersion\":\"")));
    }
}

static struct api_call *liar_send(struct api *api, const struct api_request *request,
                                  api_on_reply on_reply, void *ctx)
{
    struct liar *l = CONTAINER_OF(api, struct liar, api);
    struct liar_call *c = ALLOC_NEW(struct liar_call);
    check_sent(request);
    *c = (struct liar_call){ .liar = l, .on_reply = on_reply, .ctx = ctx };
    list_add(&l->open, &c->link);
    c->call = api_send(l->upstream, request, liar_on_reply, c);
    return (struct api_call *)(void *)c;
}

static void liar_cancel(struct api *api, struct api_call *call)
{
    struct liar_call *c = (struct liar_call *)(void *)call;
    api_cancel(CONTAINER_OF(api, struct liar, api)->upstream, c->call);
    liar_forget(c);
}

static struct api_watch *liar_watch(struct api *api, const struct api_watch_spec *spec,
                                    api_on_event on_event, void *ctx)
{
    struct liar *l = CONTAINER_OF(api, struct liar, api);
    struct liar_call *c = ALLOC_NEW(struct liar_call);
    *c = (struct liar_call){ .liar = l, .on_event = on_event, .ctx = ctx };
    list_add(&l->open, &c->link);
    c->watch = api_watch(l->upstream, spec, liar_on_event, c);
    return (struct api_watch *)(void *)c;
}

static void liar_watch_stop(struct api *api, struct api_watch *watch)
{
    struct liar_call *c = (struct liar_call *)(void *)watch;
    api_watch_stop(CONTAINER_OF(api, struct liar, api)->upstream, c->watch);
    liar_forget(c);
}

static const struct api_ops liar_ops = {
    .send = liar_send,
    .cancel = liar_cancel,
    .watch = liar_watch,
    .watch_stop = liar_watch_stop,
};

/* ── the cluster ───────────────────────────────────────────────────────────────────────────── */

struct fixture {
    struct arena memory;
    struct virtual_loop *time;
    struct apiserver *server;
    struct world *world;
    struct liar liar;
    struct core *core;
    struct controller *controller;
    struct requests_part requests;
};

static int fixture_send(struct fixture *f, const char *method, const char *path, struct str body)
{
    struct apiserver_reply reply = { 0 };
    struct apiserver_request request = {
        .method = str_from(method),
        .path = str_from(path),
        .content_type = str_eq(str_from(method), STR("PATCH")) ? API_MERGE_PATCH : API_JSON,
        .body = body,
    };
    apiserver_handle(f->server, &request, &f->memory, &reply);
    return reply.status;
}

static void fixture_create(struct fixture *f, const char *path, const char *body)
{
    CHECK_EQ(fixture_send(f, "POST", path, str_from(body)), 201);
}

static void fixture_create_objects(struct fixture *f)
{
    for (size_t i = 0; i < crds_count; i++) {
        CLEANUP(buf_done)
        struct buf body = { 0 };
        struct json_writer w = json_writer_on(&body);
        jw_val(&w, crd_object(&crds[i], &f->memory));
        CHECK_EQ(fixture_send(f, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                              buf_str(&body)),
                 201);
    }
    fixture_create(f, LIMITS_PATH,
                   "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceLimit\","
                   "\"metadata\":{\"name\":\"node\"},\"spec\":{\"limit\":40,\"drain\":{},"
                   "\"policies\":[\"NotReady\"],\"safetyChecks\":[\"PodDisruptionBudgets\"]}}");
    fixture_create(f, LIMITS_PATH,
                   "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceLimit\","
                   "\"metadata\":{\"name\":\"other\"},\"spec\":{\"type\":\"node\",\"limit\":60,"
                   "\"timeouts\":{\"approvedSeconds\":60,\"inProgressSeconds\":120}}}");
    fixture_create(
        f, "/apis/apps/v1/namespaces/default/deployments",
        "{\"metadata\":{\"name\":\"web\"},\"spec\":{\"replicas\":6,\"selector\":{"
        "\"matchLabels\":{\"app\":\"web\"}},\"template\":{\"metadata\":{\"labels\":{"
        "\"app\":\"web\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}");
    fixture_create(f, "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
                   "{\"metadata\":{\"name\":\"web\"},\"spec\":{\"maxUnavailable\":1,\"selector\":{"
                   "\"matchLabels\":{\"app\":\"web\"}}}}");
    for (uint32_t i = 0; i < NODES; i++) {
        struct str body =
            arena_printf(&f->memory,
                         "{\"apiVersion\":\"repairman.k8s.io/v1\",\"kind\":\"MaintenanceRequest\","
                         "\"metadata\":{\"name\":\"mr-%u\"},\"spec\":{\"type\":\"node\",\"name\":"
                         "\"node-%03u\"}}",
                         i, 1 + i);
        CHECK_EQ(fixture_send(f, "POST", REQUESTS_PATH, body), 201);
    }
}

static void fixture_start(struct fixture *f, const char *identity)
{
    static const char config[] =
        "intervals: {requeue: 30s}\n"
        "instances:\n"
        "  check:\n"
        "  - {name: need, type: hasLabel, config: {key: need, value: 'true'}}\n"
        "  - {name: few, type: maxMaintenance, config: {max: 1}}\n"
        "  trigger:\n"
        "  - {name: drain, type: eviction, config: {action: drain}}\n"
        "  - {name: uncordon, type: eviction, config: {action: uncordon}}\n"
        "profiles:\n"
        "- name: p\n"
        "  operational:\n    transitions:\n"
        "    - {check: need && few, next: in-maintenance, trigger: drain}\n"
        "  maintenance-required:\n    transitions: []\n"
        "  in-maintenance:\n    transitions:\n"
        "    - {check: '!need', next: operational, trigger: uncordon}\n";
    f->core = core_new(&(struct core_config){ .loop = virtual_loop_root(f->time),
                                              .api = &f->liar.api,
                                              .identity = str_from(identity),
                                              .elect = true,
                                              .use_limits = true,
                                              .limits = { .namespace = STR("default") } });
    f->controller = controller_new(f->core, &(struct controller_config){ .wait_for_config = true });
    requests_part_init(&f->requests, f->core,
                       &(struct requests_config){ .skew_tolerance = SECONDS(5) });
    core_start(f->core);
    CHECK_EQ(controller_configure(f->controller, STR("c.yaml"), str_from(config),
                                  (struct ucfg_env){ 0 }),
             0);
}

static void fixture_check(const struct fixture *f)
{
    core_check(f->core);
    controller_check(f->controller);
    if (f->requests.requests != NULL) {
        requests_check(f->requests.requests);
    }
}

static void fixture_crash(struct fixture *f)
{
    requests_part_done(&f->requests);
    controller_free(STEAL(f->controller));
    core_free(STEAL(f->core));
    CHECK(list_empty(&f->liar.open)); /* nothing is left that nobody waits for */
}

static void fixture_begin(struct fixture *f, uint64_t seed)
{
    *f = (struct fixture){ .time = virtual_loop_new(seed, WALL) };
    struct loop *loop = virtual_loop_root(f->time);
    f->server = apiserver_new(loop, seed);
    f->world = world_new(loop, f->server, &(struct world_config){ .seed = seed, .nodes = NODES });
    fixture_create_objects(f);
    f->liar = (struct liar){ .api.ops = &liar_ops, .upstream = sim_api_new(loop, f->server, NULL) };
    rng_init(&f->liar.rng, seed);
    list_init(&f->liar.open);
    fixture_start(f, "liar_1");
}

static void fixture_end(struct fixture *f)
{
    fixture_crash(f);
    sim_api_free(f->liar.upstream);
    world_free(f->world);
    apiserver_free(f->server);
    arena_done(&f->memory);
    CHECK_EQ(virtual_loop_armed(f->time), 0);
    virtual_loop_free(f->time);
}

static const struct jval *fixture_request(struct fixture *f, struct str name)
{
    return apiserver_find(f->server, STR("repairman.k8s.io"), STR("maintenancerequests"), STR(""),
                          name);
}

/* Actors do their part, and the profile's nodes are needed and not needed in turns. */
static void fixture_live(struct fixture *f, uint32_t round, bool needed)
{
    static const char *const next[][2] = { { "Approved", "InProgress" },
                                           { "InProgress", "Completed" } };
    for (uint32_t i = 0; i < NODES; i++) {
        struct str name = arena_printf(&f->memory, "mr-%u", i);
        const struct jval *request = fixture_request(f, name);
        struct str state = jval_str(jval_at(request, "spec.state"));
        for (size_t k = 0; k < ARRAY_LEN(next); k++) {
            if (str_eq(state, str_from(next[k][0]))) {
                struct str path = arena_printf(&f->memory, REQUESTS_PATH "/mr-%u", i);
                struct str body =
                    arena_printf(&f->memory, "{\"spec\":{\"state\":\"%s\"}}", next[k][1]);
                CHECK_EQ(fixture_send(f, "PATCH", path.p, body), 200);
            }
        }
    }
    struct str node = arena_printf(&f->memory, "/api/v1/nodes/node-%03u", 1 + round % NODES);
    CHECK_EQ(fixture_send(f, "PATCH", node.p,
                          needed
                              ? STR("{\"metadata\":{\"labels\":{\"cloud.sap/maintenance-profile\":"
                                    "\"p\",\"need\":\"true\"}}}")
                              : STR("{\"metadata\":{\"labels\":{\"need\":null}}}")),
             200);
}

static bool fixture_is_finished(struct fixture *f)
{
    static const struct str limits[] = { STR_INIT("node"), STR_INIT("other") };
    for (uint32_t i = 0; i < NODES; i++) {
        const struct jval *r = fixture_request(f, arena_printf(&f->memory, "mr-%u", i));
        struct str node = arena_printf(&f->memory, "node-%03u", 1 + i);
        const struct jval *n = apiserver_find(f->server, STR(""), STR("nodes"), STR(""), node);
        bool marked = jval_get(jval_at(n, "metadata.annotations"), KEY_REQUEST_CORDON) != NULL;
        bool ended = str_eq(jval_str(jval_at(r, "status.phase")), STR("Completed"));
        if (marked || !ended) {
            return false;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        const struct jval *limit = apiserver_find(f->server, STR("repairman.k8s.io"),
                                                  STR("maintenancelimits"), STR(""), limits[i]);
        if (jval_first(jval_at(limit, "status.reservations")) != NULL) {
            return false;
        }
    }
    return true;
}

TEST(a_controller_survives_an_api_server_that_lies)
{
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        struct fixture f;
        check_case((int64_t)seed);
        fixture_begin(&f, seed);
        for (uint32_t round = 0; virtual_loop_now(f.time) < LYING; round++) {
            (void)virtual_loop_run(f.time, virtual_loop_now(f.time) + SECONDS(5));
            fixture_check(&f);
            fixture_live(&f, round, round / NODES % 2 == 0);
        }
        fixture_crash(&f);
        f.liar.honest = true;
        fixture_start(&f, "honest_2");
        usec_t until = virtual_loop_now(f.time) + HONEST;
        bool finished = false;
        for (uint32_t round = 0; !finished && virtual_loop_now(f.time) < until; round++) {
            (void)virtual_loop_run(f.time, virtual_loop_now(f.time) + SECONDS(5));
            fixture_live(&f, round, /* needed= */ false);
            finished = round >= NODES && fixture_is_finished(&f);
        }
        CHECK(finished);
        fixture_end(&f);
    }
    check_case(-1);
    CHECK(lies >= LIES_WANTED);
}
