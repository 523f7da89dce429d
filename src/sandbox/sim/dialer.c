#include "sandbox/sim/dialer.h"

#include "base/alloc.h"
#include "format/yaml.h"
#include "sandbox/sim/sim_api.h"

struct sim_dialer {
    struct dialer dialer; /* first */
    struct loop *view;    /* borrowed: the client's, as the next */
    struct sim_clusters *clusters;
    struct list connections;
    uint32_t open;
};

/* One connection that is open. */
struct sim_connection {
    struct list link;
    struct api *api;
    struct sim_cluster *entry; /* NULL: to an unknown address */
};

/* ── clusters ──────────────────────────────────────────────────────────────────────────────── */

void sim_clusters_init(struct sim_clusters *b)
{
    *b = (struct sim_clusters){ 0 };
    list_init(&b->entries);
    faults_init(&b->unknown_host_faults, 0);
    b->unknown_host_faults.down = true;
}

void sim_clusters_done(struct sim_clusters *b)
{
    LIST_EACH (&b->entries, link) {
        if (link == NULL) {
            return; /* zeroed */
        }
        ASSERT(CONTAINER_OF(link, struct sim_cluster, link)->open == 0);
    }
    faults_done(&b->unknown_host_faults);
    arena_done(&b->memory);
}

struct sim_cluster *sim_clusters_add(struct sim_clusters *b, struct str address,
                                     struct apiserver *server, struct faults *faults)
{
    ASSERT(sim_clusters_find(b, address) == NULL);
    struct sim_cluster *entry = ARENA_NEW(&b->memory, struct sim_cluster);
    entry->address = arena_str(&b->memory, address);
    entry->server = server;
    entry->faults = faults;
    list_add(&b->entries, &entry->link);
    return entry;
}

struct sim_cluster *sim_clusters_find(const struct sim_clusters *b, struct str address)
{
    LIST_EACH (&b->entries, link) {
        struct sim_cluster *entry = CONTAINER_OF(link, struct sim_cluster, link);
        if (str_eq(entry->address, address)) {
            return entry;
        }
    }
    return NULL;
}

struct str sim_clusters_kubeconfig(struct str address, struct str token, struct arena *out)
{
    return arena_printf(out,
                        "apiVersion: v1\n"
                        "kind: Config\n"
                        "current-context: admin\n"
                        "contexts:\n"
                        "- name: admin\n"
                        "  context: {cluster: workload, user: admin}\n"
                        "clusters:\n"
                        "- name: workload\n"
                        "  cluster: {server: \"" STR_FMT "\"}\n"
                        "users:\n"
                        "- name: admin\n"
                        "  user: {token: \"" STR_FMT "\"}\n",
                        STR_ARG(address), STR_ARG(token));
}

/* ── dialling ──────────────────────────────────────────────────────────────────────────────── */

static struct sim_dialer *sim_dialer_of(struct dialer *d)
{
    return CONTAINER_OF(d, struct sim_dialer, dialer);
}

/* Of the first cluster and the first user; those in Secrets have no others. */
static int sim_dialer_read_kubeconfig(struct str text, struct arena *tmp, struct str *ret_address,
                                      struct str *ret_token, struct err *err)
{
    struct ydoc doc;
    int r = ydoc_parse(text, tmp, &doc, err);
    if (r < 0) {
        return r;
    }
    const struct jval *cluster = jval_first(jval_get(doc.root, STR("clusters")));
    const struct jval *user = jval_first(jval_get(doc.root, STR("users")));
    *ret_address = jval_str(jval_at(cluster, "cluster.server"));
    *ret_token = jval_str(jval_at(user, "user.token"));
    return ret_address->n > 0 ? 0
                              : err_set(err, ERR_INVALID,
                                        "the kubeconfig names no server of a "
                                        "cluster");
}

static struct api *sim_dialer_dial(struct dialer *dialer, const struct dialer_spec *spec,
                                   struct err *err)
{
    struct sim_dialer *d = sim_dialer_of(dialer);
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str address = STR_NONE;
    struct str token = STR_NONE;
    if (sim_dialer_read_kubeconfig(spec->kubeconfig, &tmp, &address, &token, err) < 0) {
        return NULL;
    }
    struct sim_cluster *entry = sim_clusters_find(d->clusters, address);
    if (entry != NULL) {
        entry->dial_count++;
        if (entry->refusal != NULL) {
            (void)err_set(err, ERR_INVALID, "%s", entry->refusal); /* the code is not returned */
            return NULL;
        }
        entry->open++;
    }
    struct sim_connection *connection = ALLOC_NEW(struct sim_connection);
    connection->entry = entry;
    connection->api = entry != NULL ? sim_api_new(d->view, entry->server, entry->faults)
                                    : sim_api_new(d->view, NULL, &d->clusters->unknown_host_faults);
    sim_api_set_token(connection->api, spec->token.n > 0 ? spec->token : token);
    list_add(&d->connections, &connection->link);
    d->open++;
    return connection->api;
}

static void sim_connection_free(struct sim_dialer *d, struct sim_connection *connection)
{
    if (connection->entry != NULL) {
        connection->entry->open--;
    }
    list_del(&connection->link);
    sim_api_free(connection->api);
    alloc_free(connection);
    d->open--;
}

static void sim_dialer_hang_up(struct dialer *dialer, struct api *api)
{
    struct sim_dialer *d = sim_dialer_of(dialer);
    struct sim_connection *found = NULL;
    LIST_EACH (&d->connections, link) {
        struct sim_connection *connection = CONTAINER_OF(link, struct sim_connection, link);
        found = connection->api == api ? connection : found;
    }
    ASSERT(found != NULL);
    sim_connection_free(d, found);
}

static const struct dialer_ops dialer_ops = { .dial = sim_dialer_dial,
                                              .hang_up = sim_dialer_hang_up };

struct dialer *sim_dialer_new(struct loop *view, struct sim_clusters *clusters)
{
    struct sim_dialer *d = ALLOC_NEW(struct sim_dialer);
    d->dialer.ops = &dialer_ops;
    d->view = view;
    d->clusters = clusters;
    list_init(&d->connections);
    return &d->dialer;
}

void sim_dialer_free(struct dialer *dialer)
{
    if (dialer == NULL) {
        return;
    }
    struct sim_dialer *d = sim_dialer_of(dialer);
    LIST_EACH (&d->connections, link) {
        sim_connection_free(d, CONTAINER_OF(link, struct sim_connection, link));
    }
    alloc_free(d);
}

uint32_t sim_dialer_open(struct dialer *dialer)
{
    return sim_dialer_of(dialer)->open;
}
