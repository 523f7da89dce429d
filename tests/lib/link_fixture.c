#include "tests/lib/link_fixture.h"

#include "base/base64.h"
#include "base/alloc.h"
#include "tests/check.h"

static void link_world_log(void *ctx, struct str line)
{
    struct link_world *w = ctx;
    buf_add(&w->log, line);
}

void link_world_begin(struct link_world *w, uint64_t seed)
{
    *w = (struct link_world){ .connects = { .rate = 50, .burst = 50 } };
    w->time = virtual_loop_new(seed, SECONDS(1767323045));
    w->loop = virtual_loop_root(w->time);
    w->server = apiserver_new(w->loop, seed);
    faults_init(&w->faults, seed + 1);
    w->api = sim_api_new(w->loop, w->server, &w->faults);
    client_init(&w->management, w->loop, w->api);
    sim_clusters_init(&w->book);
    w->dialer = sim_dialer_new(w->loop, &w->book);
    w->sink = (struct log){ .write = link_world_log, .ctx = w, .level = LOG_DEBUG };
}

static void link_cluster_free(struct link_cluster *cluster)
{
    link_free(cluster->link);
    faults_done(&cluster->faults);
    apiserver_free(cluster->server);
    buf_done(&cluster->gone);
    alloc_free(cluster);
}

void link_world_end(struct link_world *w)
{
    for (uint32_t i = 0; i < w->cluster_n; i++) {
        link_free(STEAL(w->clusters[i]->link));
    }
    CHECK_EQ(sim_dialer_open(w->dialer), 0);
    CHECK_EQ(sim_api_in_flight(w->api), 0);
    sim_dialer_free(w->dialer);
    sim_clusters_done(&w->book);
    for (uint32_t i = 0; i < w->cluster_n; i++) {
        link_cluster_free(w->clusters[i]);
    }
    sim_api_free(w->api);
    faults_done(&w->faults);
    apiserver_free(w->server);
    CHECK_EQ(virtual_loop_armed(w->time), 0);
    virtual_loop_free(w->time);
    buf_done(&w->log);
    arena_done(&w->memory);
}

static bool link_world_step(struct link_world *w, usec_t until)
{
    bool more = virtual_loop_step(w->time, until);
    for (uint32_t i = 0; i < w->cluster_n; i++) {
        if (w->clusters[i]->link != NULL) {
            link_check(w->clusters[i]->link);
        }
    }
    return more;
}

void link_world_run(struct link_world *w, usec_t span)
{
    usec_t until = virtual_loop_now(w->time) + span;
    while (link_world_step(w, until)) {
    }
}

bool link_world_until(struct link_world *w, struct link_cluster *cluster, enum link_state state,
                      usec_t span)
{
    usec_t until = virtual_loop_now(w->time) + span;
    while (link_state(cluster->link) != state) {
        if (!link_world_step(w, until)) {
            return link_state(cluster->link) == state;
        }
    }
    return true;
}

/* ── what the link tells ───────────────────────────────────────────────────────────────────── */

static void link_cluster_on_state(void *ctx, struct link *l)
{
    struct link_cluster *cluster = ctx;
    cluster->states++;
    if (link_fresh(l)) {
        cluster->fresh++;
        cluster->fresh_at = virtual_loop_now(cluster->world->time);
        CHECK_EQ(link_unreachable_since(l), 0);
    }
    cluster->idle += link_state(l) == LINK_IDLE ? 1 : 0;
    if (cluster->on_state != NULL) {
        cluster->on_state(cluster);
    }
}

static void link_cluster_on_nodes(void *ctx, struct link *l)
{
    struct link_cluster *cluster = ctx;
    CHECK(link_fresh(l));
    cluster->node_updates++;
    while (store_take(link_nodes(l)) != NULL) {
        cluster->taken++;
    }
}

static void link_cluster_on_gone(void *ctx, struct link *l, struct str node)
{
    struct link_cluster *cluster = ctx;
    CHECK(link_fresh(l));
    buf_printf(&cluster->gone, STR_FMT " ", STR_ARG(node));
}

/* ── the world ─────────────────────────────────────────────────────────────────────────────── */

static int world_request(struct link_world *w, struct apiserver *server, const char *method,
                         struct str path, struct str body)
{
    struct apiserver_reply reply = { 0 };
    apiserver_handle(server,
                     &(struct apiserver_request){
                         .method = str_from(method),
                         .path = path,
                         .content_type = str_eq(str_from(method), STR("PATCH"))
                                             ? STR("application/merge-patch+json")
                                             : STR("application/json"),
                         .body = body,
                     },
                     &w->memory, &reply);
    return reply.status;
}

static bool link_cluster_may_write(void *ctx)
{
    const struct link_cluster *cluster = ctx;
    return !cluster->locked;
}

void link_cluster_relink(struct link_cluster *cluster)
{
    struct link_world *w = cluster->world;
    CHECK(cluster->link == NULL);
    cluster->link = link_new(&(struct link_config){
        .management = &w->management,
        .dialer = w->instead != NULL ? w->instead : w->dialer,
        .connects = &w->connects,
        .log = &w->sink,
        .namespace = cluster->namespace,
        .cluster = cluster->name,
        .uid = STR("uid"),
        .manage = w->manage,
        .on_state = link_cluster_on_state,
        .may_write = link_cluster_may_write,
        .on_nodes = link_cluster_on_nodes,
        .on_gone = link_cluster_on_gone,
        .ctx = cluster,
    });
}

struct link_cluster *link_cluster_with_kubeconfig(struct link_world *w, const char *name,
                                                  const char *kubeconfig)
{
    CHECK(w->cluster_n < LINK_WORLD_CLUSTERS_MAX);
    struct link_cluster *cluster = ALLOC_NEW(struct link_cluster);
    w->clusters[w->cluster_n++] = cluster;
    cluster->world = w;
    cluster->name = arena_str(&w->memory, str_from(name));
    cluster->namespace = STR("default");
    cluster->server = apiserver_new(w->loop, w->cluster_n);
    apiserver_set_token(cluster->server, STR("t1"));
    faults_init(&cluster->faults, 1000 + w->cluster_n);
    cluster->entry = sim_clusters_add(&w->book, arena_printf(&w->memory, "https://%s", name),
                                      cluster->server, &cluster->faults);
    if (kubeconfig != NULL) {
        link_cluster_secret_text(cluster, str_from(kubeconfig));
    }
    link_cluster_relink(cluster);
    return cluster;
}

struct link_cluster *link_cluster_new(struct link_world *w, const char *name)
{
    struct str address = arena_printf(&w->memory, "https://%s", name);
    return link_cluster_with_kubeconfig(w, name,
                                        sim_clusters_kubeconfig(address, STR("t1"), &w->memory).p);
}

void link_cluster_secret_text(struct link_cluster *cluster, struct str text)
{
    struct link_world *w = cluster->world;
    struct str path = arena_printf(&w->memory, "/api/v1/namespaces/" STR_FMT "/secrets",
                                   STR_ARG(cluster->namespace));
    struct str one = arena_printf(&w->memory, STR_FMT "/" STR_FMT "-kubeconfig", STR_ARG(path),
                                  STR_ARG(cluster->name));
    struct str body = arena_printf(
        &w->memory,
        "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"" STR_FMT
        "-kubeconfig\",\"namespace\":\"" STR_FMT "\"},\"data\":{\"value\":\"" STR_FMT "\"}}",
        STR_ARG(cluster->name), STR_ARG(cluster->namespace),
        STR_ARG(base64_encode(&w->memory, text)));
    int status = world_request(w, w->server, "PUT", one, body);
    if (status == 404) {
        status = world_request(w, w->server, "POST", path, body);
    }
    CHECK(status == 200 || status == 201);
}

void link_cluster_secret(struct link_cluster *cluster, const char *token)
{
    struct link_world *w = cluster->world;
    struct str address = arena_printf(&w->memory, "https://" STR_FMT, STR_ARG(cluster->name));
    link_cluster_secret_text(cluster,
                             sim_clusters_kubeconfig(address, str_from(token), &w->memory));
}

void link_cluster_secret_delete(struct link_cluster *cluster)
{
    struct link_world *w = cluster->world;
    struct str one =
        arena_printf(&w->memory, "/api/v1/namespaces/" STR_FMT "/secrets/" STR_FMT "-kubeconfig",
                     STR_ARG(cluster->namespace), STR_ARG(cluster->name));
    CHECK_EQ(world_request(w, w->server, "DELETE", one, STR_NONE), 200);
}

void link_cluster_watch_secret(struct link_cluster *cluster)
{
    struct link_world *w = cluster->world;
    struct str name = arena_printf(&w->memory, STR_FMT "-kubeconfig", STR_ARG(cluster->name));
    const struct jval *secret =
        apiserver_find(w->server, STR_NONE, STR("secrets"), cluster->namespace, name);
    link_on_secret(cluster->link, secret != NULL ? store_version(secret) : 0);
}

void link_cluster_node(struct link_cluster *cluster, const char *name)
{
    struct link_world *w = cluster->world;
    struct str body = arena_printf(
        &w->memory, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\"}}",
        name);
    CHECK_EQ(world_request(w, cluster->server, "POST", STR("/api/v1/nodes"), body), 201);
}

void link_cluster_label(struct link_cluster *cluster, const char *name, const char *label, bool set)
{
    struct link_world *w = cluster->world;
    struct str path = arena_printf(&w->memory, "/api/v1/nodes/%s", name);
    struct str body = arena_printf(&w->memory, "{\"metadata\":{\"labels\":{\"%s\":%s}}}", label,
                                   set ? "\"true\"" : "null");
    CHECK_EQ(world_request(w, cluster->server, "PATCH", path, body), 200);
}

void link_cluster_node_delete(struct link_cluster *cluster, const char *name)
{
    struct link_world *w = cluster->world;
    struct str path = arena_printf(&w->memory, "/api/v1/nodes/%s", name);
    CHECK_EQ(world_request(w, cluster->server, "DELETE", path, STR_NONE), 200);
}

struct link_cluster *link_world_with_cluster(struct link_world *w)
{
    link_world_begin(w, 1);
    struct link_cluster *east = link_cluster_new(w, "east");
    link_cluster_node(east, "a");
    link_cluster_node(east, "b");
    return east;
}

struct link_cluster *link_world_fresh(struct link_world *w)
{
    struct link_cluster *east = link_world_with_cluster(w);
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(w, east, LINK_WATCHING, SECONDS(1)));
    link_world_run(w, MSECONDS(100));
    return east;
}

uint64_t link_world_secret_reads(struct link_world *w)
{
    uint32_t n;
    const struct sim_api_count *series = sim_api_counts(w->api, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(series[i].resource, STR("secrets"))) {
            return series[i].sent[SIM_GET];
        }
    }
    return 0;
}

struct link_view link_cluster_view(const struct link_cluster *cluster)
{
    struct link_view view;
    link_view(cluster->link, &view);
    return view;
}

struct agreement {
    const struct store *store;
    bool all;
};

static void agree_on(void *ctx, const struct jval *object)
{
    struct agreement *a = ctx;
    const struct store_item *item =
        store_find(a->store, jval_str(jval_at(object, "metadata.name")));
    a->all = a->all && item != NULL && item->version == store_version(object);
}

bool link_cluster_store_matches(const struct link_cluster *cluster)
{
    struct agreement a = { .store = link_nodes(cluster->link), .all = true };
    apiserver_each(cluster->server, STR_NONE, STR("nodes"), STR_NONE, agree_on, &a);
    return a.all &&
           store_count(a.store) == apiserver_count(cluster->server, STR_NONE, STR("nodes"));
}
