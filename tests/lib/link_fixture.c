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
    client_init(&w->home, w->loop, w->api);
    sim_clusters_init(&w->book);
    w->dialer = sim_dialer_new(w->loop, &w->book);
    w->sink = (struct log){ .write = link_world_log, .ctx = w, .level = LOG_DEBUG };
}

static void link_site_free(struct link_site *site)
{
    link_free(site->link);
    faults_done(&site->faults);
    apiserver_free(site->server);
    buf_done(&site->gone);
    alloc_free(site);
}

void link_world_end(struct link_world *w)
{
    for (uint32_t i = 0; i < w->sites_n; i++) {
        link_free(STEAL(w->sites[i]->link));
    }
    CHECK_EQ(sim_dialer_open(w->dialer), 0);
    CHECK_EQ(sim_api_in_flight(w->api), 0);
    sim_dialer_free(w->dialer);
    sim_clusters_done(&w->book);
    for (uint32_t i = 0; i < w->sites_n; i++) {
        link_site_free(w->sites[i]);
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
    for (uint32_t i = 0; i < w->sites_n; i++) {
        if (w->sites[i]->link != NULL) {
            link_check(w->sites[i]->link);
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

bool link_world_until(struct link_world *w, struct link_site *site, enum link_state state,
                      usec_t span)
{
    usec_t until = virtual_loop_now(w->time) + span;
    while (link_state(site->link) != state) {
        if (!link_world_step(w, until)) {
            return link_state(site->link) == state;
        }
    }
    return true;
}

/* ── what the link tells ───────────────────────────────────────────────────────────────────── */

static void link_site_on_state(void *ctx, struct link *l)
{
    struct link_site *site = ctx;
    site->states++;
    if (link_fresh(l)) {
        site->fresh++;
        site->fresh_at = virtual_loop_now(site->world->time);
        CHECK_EQ(link_away_since(l), 0);
    }
    site->idle += link_state(l) == LINK_IDLE ? 1 : 0;
    if (site->on_state != NULL) {
        site->on_state(site);
    }
}

static void link_site_on_nodes(void *ctx, struct link *l)
{
    struct link_site *site = ctx;
    CHECK(link_fresh(l));
    site->stirs++;
    while (store_take(link_nodes(l)) != NULL) {
        site->taken++;
    }
}

static void link_site_on_gone(void *ctx, struct link *l, struct str node)
{
    struct link_site *site = ctx;
    CHECK(link_fresh(l));
    buf_printf(&site->gone, STR_FMT " ", STR_ARG(node));
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

static bool link_site_may_write(void *ctx)
{
    const struct link_site *site = ctx;
    return !site->locked;
}

void link_site_relink(struct link_site *site)
{
    struct link_world *w = site->world;
    CHECK(site->link == NULL);
    site->link = link_new(&(struct link_config){
        .home = &w->home,
        .dialer = w->instead != NULL ? w->instead : w->dialer,
        .connects = &w->connects,
        .log = &w->sink,
        .space = site->space,
        .cluster = site->name,
        .uid = STR("uid"),
        .manage = w->manage,
        .on_state = link_site_on_state,
        .may_write = link_site_may_write,
        .on_nodes = link_site_on_nodes,
        .on_gone = link_site_on_gone,
        .ctx = site,
    });
}

struct link_site *link_site_with(struct link_world *w, const char *name, const char *kubeconfig)
{
    CHECK(w->sites_n < LINK_SITES_MAX);
    struct link_site *site = ALLOC_NEW(struct link_site);
    w->sites[w->sites_n++] = site;
    site->world = w;
    site->name = arena_str(&w->memory, str_from(name));
    site->space = STR("default");
    site->server = apiserver_new(w->loop, w->sites_n);
    apiserver_set_token(site->server, STR("t1"));
    faults_init(&site->faults, 1000 + w->sites_n);
    site->entry = sim_clusters_add(&w->book, arena_printf(&w->memory, "https://%s", name),
                                   site->server, &site->faults);
    if (kubeconfig != NULL) {
        link_site_secret_text(site, str_from(kubeconfig));
    }
    link_site_relink(site);
    return site;
}

struct link_site *link_site_new(struct link_world *w, const char *name)
{
    struct str address = arena_printf(&w->memory, "https://%s", name);
    return link_site_with(w, name, sim_clusters_kubeconfig(address, STR("t1"), &w->memory).p);
}

void link_site_secret_text(struct link_site *site, struct str text)
{
    struct link_world *w = site->world;
    struct str path =
        arena_printf(&w->memory, "/api/v1/namespaces/" STR_FMT "/secrets", STR_ARG(site->space));
    struct str one = arena_printf(&w->memory, STR_FMT "/" STR_FMT "-kubeconfig", STR_ARG(path),
                                  STR_ARG(site->name));
    struct str body = arena_printf(
        &w->memory,
        "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"" STR_FMT
        "-kubeconfig\",\"namespace\":\"" STR_FMT "\"},\"data\":{\"value\":\"" STR_FMT "\"}}",
        STR_ARG(site->name), STR_ARG(site->space), STR_ARG(base64_encode(&w->memory, text)));
    int status = world_request(w, w->server, "PUT", one, body);
    if (status == 404) {
        status = world_request(w, w->server, "POST", path, body);
    }
    CHECK(status == 200 || status == 201);
}

void link_site_secret(struct link_site *site, const char *token)
{
    struct link_world *w = site->world;
    struct str address = arena_printf(&w->memory, "https://" STR_FMT, STR_ARG(site->name));
    link_site_secret_text(site, sim_clusters_kubeconfig(address, str_from(token), &w->memory));
}

void link_site_secret_delete(struct link_site *site)
{
    struct link_world *w = site->world;
    struct str one =
        arena_printf(&w->memory, "/api/v1/namespaces/" STR_FMT "/secrets/" STR_FMT "-kubeconfig",
                     STR_ARG(site->space), STR_ARG(site->name));
    CHECK_EQ(world_request(w, w->server, "DELETE", one, STR_NONE), 200);
}

void link_site_follow(struct link_site *site)
{
    struct link_world *w = site->world;
    struct str name = arena_printf(&w->memory, STR_FMT "-kubeconfig", STR_ARG(site->name));
    const struct jval *secret =
        apiserver_find(w->server, STR_NONE, STR("secrets"), site->space, name);
    link_on_secret(site->link, secret != NULL ? store_version(secret) : 0);
}

void link_site_node(struct link_site *site, const char *name)
{
    struct link_world *w = site->world;
    struct str body = arena_printf(
        &w->memory, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\"}}",
        name);
    CHECK_EQ(world_request(w, site->server, "POST", STR("/api/v1/nodes"), body), 201);
}

void link_site_label(struct link_site *site, const char *name, const char *label, bool set)
{
    struct link_world *w = site->world;
    struct str path = arena_printf(&w->memory, "/api/v1/nodes/%s", name);
    struct str body = arena_printf(&w->memory, "{\"metadata\":{\"labels\":{\"%s\":%s}}}", label,
                                   set ? "\"true\"" : "null");
    CHECK_EQ(world_request(w, site->server, "PATCH", path, body), 200);
}

void link_site_node_delete(struct link_site *site, const char *name)
{
    struct link_world *w = site->world;
    struct str path = arena_printf(&w->memory, "/api/v1/nodes/%s", name);
    CHECK_EQ(world_request(w, site->server, "DELETE", path, STR_NONE), 200);
}

struct link_site *link_world_one(struct link_world *w)
{
    link_world_begin(w, 1);
    struct link_site *east = link_site_new(w, "east");
    link_site_node(east, "a");
    link_site_node(east, "b");
    return east;
}

struct link_site *link_world_fresh(struct link_world *w)
{
    struct link_site *east = link_world_one(w);
    link_open(east->link, /* hurry= */ false);
    CHECK(link_world_until(w, east, LINK_WATCHING, SECONDS(1)));
    link_world_run(w, MSECONDS(100));
    return east;
}

uint64_t link_world_reads(struct link_world *w)
{
    uint32_t n;
    const struct sim_api_count *tally = sim_api_counts(w->api, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(tally[i].resource, STR("secrets"))) {
            return tally[i].sent[SIM_GET];
        }
    }
    return 0;
}

struct link_view link_site_view(const struct link_site *site)
{
    struct link_view view;
    link_view(site->link, &view);
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

bool link_site_agrees(const struct link_site *site)
{
    struct agreement a = { .store = link_nodes(site->link), .all = true };
    apiserver_each(site->server, STR_NONE, STR("nodes"), STR_NONE, agree_on, &a);
    return a.all && store_count(a.store) == apiserver_count(site->server, STR_NONE, STR("nodes"));
}
