/*
 * kubernikus: nodes of a Kubernikus cluster. Each gets a label that says whether its kubelet has
 * another version than the API server.
 */
#include "base/alloc.h"
#include "core/node_write.h"
#include "format/json.h"
#include "format/semver.h"
#include "format/unknown_keys.h"
#include "integration/file_reader.h"
#include "integration/providers.h"
#include "kinds/keys.h"

#define VERSION_RETRY_MIN SECONDS(2)
#define VERSION_RETRY_MAX MINUTES(5)

struct kubernikus_config {
    usec_t requeue;
    usec_t deletion_timeout;
    usec_t eviction_timeout;
    bool force;
    struct str secret_namespace;
    struct str secret_name;
};

struct kubernikus {
    struct integration *in;
    struct map nodes; /* name → struct kubernikus_node */
    struct list dirty;
    /* The API server's version, asked for every `requeue`: */
    struct api_call *version_call;
    struct buf version; /* without its first byte; empty = not known */
    usec_t version_at;  /* monotonic: when it is asked for again */
    struct backoff version_backoff;
};

struct kubernikus_node {
    struct kubernikus *k;
    struct list dirty;
    struct node_write write;
    struct activity_note note;
    struct str name; /* borrowed: the map's key */
    char name_bytes[];
};

/* ── configuration ─────────────────────────────────────────────────────────────────────────── */

static void kubernikus_read(const struct ucfg *u, void *ret, struct problems *problems)
{
    struct kubernikus_config *config = ret;
    const struct file_reader r = { .u = u, .problems = problems };
    unknown_keys_warn_root(u, "intervals|cloudProviderSecret", problems);
    const struct ucfg_value *intervals =
        file_reader_obj(&r, u->root, "intervals", "requeue|podDeletion|podEviction");
    config->requeue = file_reader_duration(&r, intervals, "intervals.requeue", true);
    const struct ucfg_value *deletion =
        file_reader_obj(&r, intervals, "intervals.podDeletion", "period|timeout");
    const struct ucfg_value *eviction =
        file_reader_obj(&r, intervals, "intervals.podEviction", "period|timeout|force");
    /* The periods have no effect: drains are moved by events. The original wants them. */
    (void)file_reader_duration(&r, deletion, "intervals.podDeletion.period", true);
    config->deletion_timeout =
        file_reader_duration(&r, deletion, "intervals.podDeletion.timeout", true);
    (void)file_reader_duration(&r, eviction, "intervals.podEviction.period", true); /* likewise */
    config->eviction_timeout =
        file_reader_duration(&r, eviction, "intervals.podEviction.timeout", true);
    config->force = file_reader_bool(&r, eviction, "intervals.podEviction.force");
    const struct ucfg_value *secret =
        file_reader_obj(&r, u->root, "cloudProviderSecret", "name|namespace");
    config->secret_name = file_reader_text(&r, secret, "cloudProviderSecret.name", false);
    config->secret_namespace = file_reader_text(&r, secret, "cloudProviderSecret.namespace", false);
    if ((config->secret_name.n > 0) != (config->secret_namespace.n > 0)) {
        problems_warn(problems, secret->pos,
                      "key 'cloudProviderSecret': found one of 'name' and 'namespace', want both; "
                      "the file is used");
    }
}

/* ── the API server's version ──────────────────────────────────────────────────────────────── */

/* "v1.31.2" without its first byte. */
static struct str without_first(struct str version)
{
    return version.n > 0 ? str_sub(version, 1, version.n - 1) : STR("");
}

/* The node is looked at in the turn of that time, or in one before. */
static void node_again_at(struct kubernikus_node *n, usec_t at)
{
    if (!list_linked(&n->dirty)) {
        list_add(&n->k->dirty, &n->dirty);
    }
    integration_wake_at(n->k->in, at);
}

static void kubernikus_mark(struct kubernikus_node *n)
{
    node_again_at(n, loop_now(n->k->in->core->loop));
}

static int version_read(struct kubernikus *k, const struct api_reply *reply, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    if (client_note(&k->in->core->client, API_GET, reply) != RETRY_DONE) {
        client_explain(reply->status, reply->body, reply->err, err);
        return -(int)ERR_IO;
    }
    int r = json_parse(reply->body, JSON_GO, &tmp, &root, err);
    struct str version = without_first(jval_str(jval_get(root, STR("gitVersion"))));
    struct semver parsed;
    r = r < 0 ? r : semver_parse(version, &parsed, err);
    if (r < 0) {
        return err_wrap(err, "the API server's version");
    }
    if (!str_eq(buf_str(&k->version), version)) {
        buf_reset(&k->version);
        buf_add(&k->version, version);
        MAP_EACH (&k->nodes, entry) {
            kubernikus_mark(map_item_value(entry));
        }
    }
    return 0;
}

static void version_on_reply(void *ctx, const struct api_reply *reply)
{
    struct kubernikus *k = ctx;
    const struct kubernikus_config *config = k->in->config;
    struct loop *loop = k->in->core->loop;
    struct err err = { 0 };
    k->version_call = NULL;
    if (version_read(k, reply, &err) < 0) {
        k->version_at = loop_now(loop) + backoff_next(&k->version_backoff, loop_random(loop));
        integration_failed(k->in, &err);
    } else {
        backoff_reset(&k->version_backoff);
        k->version_at = loop_now(loop) + config->requeue;
    }
    integration_wake(k->in);
}

static void version_step(struct kubernikus *k)
{
    struct core *core = k->in->core;
    usec_t at = MAX(k->version_at, client_open_at(&core->client));
    if (k->version_call != NULL) {
        return;
    }
    if (loop_now(core->loop) < at) {
        integration_wake_at(k->in, at);
        return;
    }
    k->version_call = api_send(core->client.api,
                               &(struct api_request){ .verb = API_GET, .path = STR("/version") },
                               version_on_reply, k);
}

/* ── nodes ─────────────────────────────────────────────────────────────────────────────────── */

/* Whether the two differ, in either direction; builds say nothing. */
static int kubelet_needs_update(struct str kubelet, struct str server, bool *ret, struct err *err)
{
    struct semver a;
    struct semver b;
    int r = semver_parse(kubelet, &a, err);
    r = r < 0 ? err_wrap(err, "the kubelet's version") : semver_parse(server, &b, err);
    if (r == 0) {
        *ret = semver_cmp(&a, &b) != 0;
    }
    return r;
}

static void node_fail(struct kubernikus_node *n, const struct err *err)
{
    struct core *core = n->k->in->core;
    if (activity_failed(&n->note, loop_wall(core->loop), str_from(err->msg))) {
        log_error(core->log, "failed to mark node for kubelet upgrade", KV_STR("node", n->name),
                  KV_ERR(err));
    }
}

static void node_label_step(struct kubernikus_node *n, const struct store_item *item)
{
    struct integration *in = n->k->in;
    const struct node *node = item->object;
    struct err err = { 0 };
    bool needs = false;
    if (n->k->version.n == 0) {
        return; /* the version wakes every node */
    }
    if (kubelet_needs_update(without_first(intern_str(node->kubelet_version)),
                             buf_str(&n->k->version), &needs, &err) < 0) {
        node_fail(n, &err);
        return;
    }
    struct node_write_wish wish = { 0 };
    node_write_label(&wish, KEY_KUBELET_NEEDS_UPDATE, needs ? STR("true") : STR("false"));
    uint64_t sent = n->write.sent;
    switch (node_write_step(&n->write, item, &wish)) {
    case NODE_WRITE_DONE:
        break;
    case NODE_WRITE_PENDING:
        if (n->write.sent > sent) {
            activity_did(&n->note, loop_wall(in->core->loop),
                         "the label of the kubelet's version is set to %s",
                         needs ? "true" : "false");
        }
        break;
    case NODE_WRITE_WAITS:
        if (n->write.err.code != 0) {
            node_fail(n, &n->write.err);
        }
        activity_waits(&n->note, integration_wall(in, n->write.retry_at),
                       "the next try to write its label");
        node_again_at(n, n->write.retry_at);
        break;
    }
}

static void kubernikus_turn(struct integration *in)
{
    struct kubernikus *k = in->self;
    struct list todo;
    version_step(k);
    list_move(&todo, &k->dirty);
    while (!list_empty(&todo)) {
        struct kubernikus_node *n = CONTAINER_OF(todo.next, struct kubernikus_node, dirty);
        const struct store_item *item = store_find(&in->core->nodes.store, n->name);
        list_del(&n->dirty);
        if (item != NULL) {
            node_label_step(n, item);
        }
    }
}

static void node_on_change(void *ctx)
{
    kubernikus_mark(ctx);
}

static void node_free(struct kubernikus_node *n)
{
    list_del(&n->dirty);
    node_write_done(&n->write);
    activity_note_done(&n->note);
    alloc_free(n);
}

static struct kubernikus_node *node_new(struct kubernikus *k, struct str name)
{
    struct kubernikus_node *n = alloc_bytes(sizeof(*n) + name.n);
    memcpy(n->name_bytes, name.p, name.n);
    n->name = (struct str){ .p = n->name_bytes, .n = name.n };
    n->k = k;
    node_write_init(&n->write, k->in->core, name, node_on_change, n);
    (void)map_put(&k->nodes, n->name, n); /* it was not there */
    return n;
}

static void kubernikus_on_node(struct integration *in, struct store_item *item, bool gone)
{
    struct kubernikus *k = in->self;
    struct kubernikus_node *n = map_find(&k->nodes, item->name);
    if (gone) {
        if (n != NULL) {
            (void)map_del(&k->nodes, item->name); /* it is freed here */
            node_free(n);
        }
        return;
    }
    kubernikus_mark(n != NULL ? n : node_new(k, item->name));
}

/* ── its life ──────────────────────────────────────────────────────────────────────────────── */

static void kubernikus_start(struct integration *in)
{
    struct kubernikus *k = ALLOC_NEW(struct kubernikus);
    k->in = in;
    k->version_backoff = (struct backoff){ .base = VERSION_RETRY_MIN, .max = VERSION_RETRY_MAX };
    map_init(&k->nodes, 0, 0);
    list_init(&k->dirty);
    in->self = k;
}

static void kubernikus_configure(struct integration *in)
{
    struct kubernikus *k = in->self;
    MAP_EACH (&k->nodes, entry) {
        kubernikus_mark(map_item_value(entry));
    }
}

static bool kubernikus_node_activity(const struct integration *in, struct str node,
                                     struct activity *ret)
{
    const struct kubernikus *k = in->self;
    const struct kubernikus_node *n = map_find(&k->nodes, node);
    if (n == NULL) {
        return false;
    }
    activity_read(&n->note, str_from(in->provider->name), ret);
    return true;
}

static bool kubernikus_is_busy(const struct integration *in)
{
    const struct kubernikus *k = in->self;
    MAP_EACH (&k->nodes, entry) {
        const struct kubernikus_node *n = map_item_value(entry);
        if (node_write_is_busy(&n->write)) {
            return true;
        }
    }
    return false;
}

static void kubernikus_stop(struct integration *in)
{
    struct kubernikus *k = in->self;
    if (k->version_call != NULL) {
        api_cancel(in->core->client.api, k->version_call);
    }
    MAP_EACH (&k->nodes, entry) {
        node_free(map_item_value(entry));
    }
    map_done(&k->nodes);
    buf_done(&k->version);
    alloc_free(k);
}

const struct integration_provider integration_kubernikus = {
    .name = "kubernikus",
    .title = "Kubernikus",
    .file = "config/kubernikus.yaml",
    .config_size = sizeof(struct kubernikus_config),
    .read = kubernikus_read,
    .start = kubernikus_start,
    .configure = kubernikus_configure,
    .on_node = kubernikus_on_node,
    .turn = kubernikus_turn,
    .node_activity = kubernikus_node_activity,
    .is_busy = kubernikus_is_busy,
    .stop = kubernikus_stop,
};
