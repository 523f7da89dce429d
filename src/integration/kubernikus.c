/*
 * kubernikus: nodes of a Kubernikus cluster.
 *
 * Each gets a label that says whether its kubelet has another version than the API server. A node
 * whose label asks for its deletion is cordoned and drained; then its server is deleted in
 * OpenStack, and its pool makes a new one. The Node object goes by itself.
 *
 * Nothing is remembered but what the Node says: the label that asks, and an annotation, written
 * with the cordon, that it has begun and counts under the limits. After a crash the node is still
 * cordoned, the drain finds nothing left, and the server is looked for again. A server is deleted
 * only if its name is that of the node, byte for byte: OpenStack takes the name of a query for a
 * pattern, so a query for a-1 also finds a-10.
 */
#include "base/alloc.h"
#include "base/percent.h"
#include "format/json.h"
#include "format/semver.h"
#include "format/unknown_keys.h"
#include "integration/file_reader.h"
#include "integration/integration_node.h"
#include "integration/providers.h"
#include "kinds/keys.h"
#include "openstack/openstack.h"

#define SERVERS_REPLY_MAX ((size_t)8 * 1024 * 1024) /* 1,000 servers in detail */
#define SERVERS_PAGES_MAX 100u                      /* of one query for one name */
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
    struct openstack openstack;
    struct metric_series *deleted;
    struct metric_series *deleting;
    struct integration_nodes nodes; /* of struct kubernikus_node by its `common` */
    /* The API server's version, asked for every `requeue`: */
    struct api_call *version_call;
    struct buf version; /* without its first byte; empty = not known */
    usec_t version_at;  /* monotonic: when it is asked for again */
    struct backoff version_backoff;
};

/* How far the deletion of a node's server is. */
enum deletion_stage {
    DELETION_NONE,  /* the servers of its name are not known */
    DELETION_LISTS, /* they are asked for */
    DELETION_FOUND, /* one has that name: `server` */
    DELETION_SENT,  /* it is to be deleted */
    DELETION_RESTS, /* it was deleted, or there is none; looked at again at `look_at` */
};

struct kubernikus_node {
    struct integration_node common;
    struct kubernikus *k;
    bool asked;   /* the node's label asks for its deletion */
    bool removed; /* its server was deleted */
    enum deletion_stage stage;
    struct outside_call compute; /* to the compute service */
    uint64_t generation;         /* of the session that the request was sent with */
    struct buf server;           /* its id; while listing, the last one of the page before */
    uint32_t matches;
    uint32_t pages;
    struct buf marker;        /* behind which the next page begins */
    struct buf version_error; /* why it is not known how old its kubelet is; mostly empty */
    struct backoff backoff;   /* of the deletion as a whole */
    usec_t retry_at;          /* monotonic: nothing is asked before */
    usec_t look_at;           /* monotonic */
};

static struct kubernikus_node *node_of(struct integration_node *common)
{
    return CONTAINER_OF(common, struct kubernikus_node, common);
}

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
        MAP_EACH (&k->nodes.by_name, entry) {
            integration_node_mark(map_item_value(entry));
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

static void node_fail(struct kubernikus_node *n, const char *what, const struct err *err)
{
    struct integration *in = n->k->in;
    struct core *core = in->core;
    if (activity_failed(&n->common.note, loop_wall(core->loop), str_from(err->msg))) {
        metric_add(in->failures, 1);
        log_error(core->log, what, KV_STR("node", n->common.name), KV_ERR(err));
    }
}

/* Whether the label is to be written, and with what. */
static bool node_version_label(struct kubernikus_node *n, const struct node *node, struct str *ret)
{
    struct err err = { 0 };
    bool needs = false;
    if (n->k->version.n == 0 || intern_str(node->kubelet_version).n == 0) {
        return false; /* either wakes the node when it comes */
    }
    if (kubelet_needs_update(without_first(intern_str(node->kubelet_version)),
                             buf_str(&n->k->version), &needs, &err) < 0) {
        if (!str_eq(buf_str(&n->version_error), str_from(err.msg))) {
            log_error(n->k->in->core->log, "failed to mark node for kubelet upgrade",
                      KV_STR("node", n->common.name), KV_ERR(&err));
        }
        buf_reset(&n->version_error);
        buf_add(&n->version_error, str_from(err.msg));
        return false;
    }
    buf_reset(&n->version_error);
    *ret = needs ? STR("true") : STR("false");
    return true;
}

/* Whether the Node says that its deletion has begun. */
static bool is_begun(const struct node *node)
{
    return str_eq(node_annotation(node, KEY_DELETING), KEYS_TRUE);
}

/* True: label, annotation and cordon are as they should be. `deletes`: its label asks for that, and
 * it has its place under the limits. */
static bool node_write(struct kubernikus_node *n, const struct store_item *item, bool deletes)
{
    struct integration *in = n->k->in;
    const struct node *node = item->object;
    struct node_write_wish wish = { .cordon =
                                        deletes ? NODE_WRITE_CORDON : NODE_WRITE_CORDON_KEEP };
    if (deletes || !n->asked) {
        node_write_annotation(&wish, KEY_DELETING, deletes ? KEYS_TRUE : STR_NONE);
    }
    struct str label = STR_NONE;
    if (node_version_label(n, node, &label)) {
        node_write_label(&wish, KEY_KUBELET_NEEDS_UPDATE, label);
    }
    bool cordons = deletes && !node->unschedulable;
    uint64_t sent = n->common.write.sent;
    enum node_write_result r = node_write_step(&n->common.write, item, &wish);
    if (r == NODE_WRITE_PENDING && n->common.write.sent > sent) {
        activity_did(&n->common.note, loop_wall(in->core->loop), "%s",
                     cordons ? "the node is cordoned for its deletion"
                             : "the label of the kubelet's version is written");
    } else if (r == NODE_WRITE_WAITS) {
        if (n->common.write.err.code != 0) {
            node_fail(n, "the node cannot be written", &n->common.write.err);
        }
        activity_waits(&n->common.note, integration_wall(in, n->common.write.retry_at),
                       "the next try to write to the node");
        integration_node_again_at(&n->common, n->common.write.retry_at);
    }
    return r == NODE_WRITE_DONE;
}

/* ── deletion: drain ───────────────────────────────────────────────────────────────────────── */

/* True: no pod is left that would have to go. */
static bool node_drain(struct kubernikus_node *n, const struct store_item *item)
{
    const struct kubernikus_config *config = n->k->in->config;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    integration_node_drain(&n->common, item,
                           &(struct integration_drain){
                               .eviction_timeout = config->eviction_timeout,
                               .deletion_timeout = config->deletion_timeout,
                               .force = config->force,
                               .grace = -1,
                               .flags = DRAIN_NOTIFY_ALL,
                           });
    if (drain_is_done(n->common.drain)) {
        return true;
    }
    activity_waits(&n->common.note, USEC_NEVER, "its pods to go: " STR_FMT,
                   STR_ARG(drain_text(n->common.drain, &tmp)));
    return false;
}

/* ── deletion: server ──────────────────────────────────────────────────────────────────────── */

static void deletion_reset(struct kubernikus_node *n)
{
    n->stage = DELETION_NONE;
    n->matches = 0;
    n->pages = 0;
    buf_reset(&n->server);
    buf_reset(&n->marker);
}

/* What was tried failed: from the beginning, after the wait that `compute` or the session has. */
static void deletion_fail(struct kubernikus_node *n, const char *what, const struct err *err)
{
    struct loop *loop = n->k->in->core->loop;
    n->retry_at = loop_now(loop) + backoff_next(&n->backoff, loop_random(loop));
    deletion_reset(n);
    node_fail(n, what, err);
    integration_node_mark(&n->common);
}

static void deletion_rest(struct kubernikus_node *n)
{
    const struct kubernikus_config *config = n->k->in->config;
    backoff_reset(&n->backoff);
    deletion_reset(n);
    n->stage = DELETION_RESTS;
    n->look_at = loop_now(n->k->in->core->loop) + config->requeue;
    integration_node_mark(&n->common);
}

/* Judges a reply. The token may have expired: then there is another one soon. */
static int compute_judge(struct kubernikus_node *n, const struct outbound_reply *reply,
                         struct err *err)
{
    int r = outside_call_judge(&n->compute, reply, err);
    if (reply->status == 401) {
        openstack_refused(&n->k->openstack, n->generation);
        return err_set(err, ERR_DENIED, "the compute service refused the token with 401");
    }
    return r < 0 ? err_wrap(err, "the compute service") : 0;
}

static bool is_server_of(const struct kubernikus_node *n, const struct jval *server)
{
    struct str project = jval_str(jval_get(server, STR("tenant_id")));
    return str_eq(jval_str(jval_get(server, STR("name"))), n->common.name) &&
           (project.n == 0 || str_eq(project, n->k->openstack.session.project));
}

/* One page of servers. `*ret_more`: another follows behind n->marker. */
static int servers_read(struct kubernikus_node *n, struct str body, bool *ret_more, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    struct err why = { 0 };
    const struct jval *servers = NULL;
    if (json_parse(body, JSON_GO, &tmp, &root, &why) < 0 ||
        jval_kind(servers = jval_get(root, STR("servers"))) != JARR) {
        return err_set(err, ERR_PROTO, "the compute service's answer has no list of servers");
    }
    buf_reset(&n->marker);
    JVAL_EACH (servers, server) {
        struct str id = jval_str(jval_get(server, STR("id")));
        if (id.n == 0) {
            return err_set(err, ERR_PROTO, "the compute service's answer has a server without id");
        }
        buf_reset(&n->marker);
        buf_add(&n->marker, id);
        if (is_server_of(n, server) && !str_eq(id, buf_str(&n->server))) {
            n->matches++;
            buf_reset(&n->server);
            buf_add(&n->server, id);
        }
    }
    const struct jval *links = jval_get(root, STR("servers_links"));
    *ret_more = false;
    if (jval_kind(links) == JARR && servers->n > 0) {
        JVAL_EACH (links, link) {
            *ret_more = *ret_more || str_eq(jval_str(jval_get(link, STR("rel"))), STR("next"));
        }
    }
    return 0;
}

static void servers_on_reply(void *ctx, const struct outbound_reply *reply)
{
    struct kubernikus_node *n = ctx;
    struct err err = { 0 };
    bool more = false;
    n->pages++;
    int r = compute_judge(n, reply, &err);
    r = r < 0 ? r : servers_read(n, reply->body, &more, &err);
    if (r == 0 && more && n->pages >= SERVERS_PAGES_MAX) {
        r = err_set(&err, ERR_LIMIT, "the compute service has more than %u pages of servers",
                    SERVERS_PAGES_MAX);
    }
    if (r == 0 && !more && n->matches > 1) {
        r = err_set(&err, ERR_INVALID, "expected to list 1 or 0 servers, but got %u", n->matches);
    }
    if (r < 0) {
        deletion_fail(n, "the servers of a node cannot be listed", &err);
        return;
    }
    n->stage = more ? DELETION_NONE : DELETION_FOUND;
    integration_node_mark(&n->common);
}

static void servers_send(struct kubernikus_node *n, const struct openstack_session *session)
{
    const struct outbound_header headers[] = {
        { STR("X-Auth-Token"), session->token },
        { STR("Accept"), STR("application/json") },
    };
    CLEANUP(buf_done)
    struct buf url = { 0 };
    buf_add(&url, session->compute);
    buf_add(&url, STR("/servers/detail?name="));
    percent_add_form(&url, n->common.name);
    buf_add(&url, STR("&tenant_id="));
    percent_add_form(&url, session->project);
    if (n->marker.n > 0) {
        buf_add(&url, STR("&marker="));
        percent_add_form(&url, buf_str(&n->marker));
    }
    n->stage = DELETION_LISTS;
    n->generation = session->generation;
    activity_waits(&n->common.note, USEC_NEVER, "OpenStack, which is asked for its server");
    outside_call_send(&n->compute,
                      &(struct outbound_request){ .method = STR("GET"),
                                                  .url = buf_str(&url),
                                                  .headers = headers,
                                                  .header_n = ARRAY_LEN(headers),
                                                  .reply_max = SERVERS_REPLY_MAX },
                      servers_on_reply, n);
}

static void server_report(struct kubernikus_node *n)
{
    struct core *core = n->k->in->core;
    const struct store_item *item = store_find(&core->nodes.store, n->common.name);
    const struct node *node = item == NULL ? NULL : item->object;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    log_info(core->log, "Deleted the server of a node", KV_STR("node", n->common.name),
             KV_STR("server", buf_str(&n->server)));
    metric_add(n->k->deleted, 1);
    n->removed = true;
    activity_did(&n->common.note, loop_wall(core->loop), "server " STR_FMT " is deleted",
                 STR_ARG(buf_str(&n->server)));
    activity_did(&n->k->in->note, loop_wall(core->loop),
                 "the server of node " STR_FMT " is deleted", STR_ARG(n->common.name));
    recorder_add(&core->recorder,
                 &(struct recorder_event){
                     .type = STR("Normal"),
                     .reason = STR("ServerDeleted"),
                     .action = STR("DeleteServer"),
                     .note = arena_printf(&tmp,
                                          "Server " STR_FMT " of the node was deleted, as its "
                                          "label asked",
                                          STR_ARG(buf_str(&n->server))),
                     .regarding = { .kind = STR("Node"),
                                    .api_version = STR("v1"),
                                    .name = n->common.name,
                                    .uid = node == NULL ? STR_NONE : node->uid },
                 });
}

static void server_on_reply(void *ctx, const struct outbound_reply *reply)
{
    struct kubernikus_node *n = ctx;
    struct err err = { 0 };
    int r = compute_judge(n, reply, &err);
    if (r < 0 && r != -ERR_NOTFOUND) {
        deletion_fail(n, "the server of a node cannot be deleted", &err);
    } else {
        if (r == 0) {
            server_report(n);
        }
        deletion_rest(n);
    }
    core_written(n->k->in->core);
}

static void server_delete(struct kubernikus_node *n, const struct openstack_session *session)
{
    const struct outbound_header headers[] = { { STR("X-Auth-Token"), session->token } };
    CLEANUP(buf_done)
    struct buf url = { 0 };
    buf_add(&url, session->compute);
    buf_add(&url, STR("/servers/"));
    client_add_segment(&url, buf_str(&n->server));
    n->stage = DELETION_SENT;
    n->generation = session->generation;
    activity_waits(&n->common.note, USEC_NEVER, "OpenStack, which is to delete its server");
    outside_call_send(&n->compute,
                      &(struct outbound_request){ .method = STR("DELETE"),
                                                  .url = buf_str(&url),
                                                  .headers = headers,
                                                  .header_n = ARRAY_LEN(headers) },
                      server_on_reply, n);
}

static void deletion_wait(struct kubernikus_node *n, usec_t at, const char *what)
{
    activity_waits(&n->common.note, integration_wall(n->k->in, at), "%s", what);
    integration_node_again_at(&n->common, at);
}

/* The node is cordoned and drained in this very turn, and its label asks. */
static void deletion_step(struct kubernikus_node *n)
{
    struct kubernikus *k = n->k;
    struct openstack_session session;
    struct err err = { 0 };
    if (n->stage == DELETION_RESTS && loop_now(k->in->core->loop) < n->look_at) {
        deletion_wait(n, n->look_at, "its Node object to go");
        return;
    }
    if (n->compute.call != NULL) {
        return; /* the reply marks the node again */
    }
    usec_t retry_at = MAX(n->retry_at, n->compute.retry_at);
    if (loop_now(k->in->core->loop) < retry_at) {
        deletion_wait(n, retry_at, "the next try to ask the compute service");
        return;
    }
    int r = openstack_get(&k->openstack, &session, &err);
    if (r == -ERR_BUSY) {
        activity_waits(&n->common.note, USEC_NEVER, "a token of OpenStack");
        return; /* the session marks the node again */
    }
    if (r == 0 && session.compute.n == 0) {
        r = err_set(&err, ERR_INVALID, "OpenStack: " STR_FMT, STR_ARG(session.compute_error));
        n->retry_at =
            loop_now(k->in->core->loop) + backoff_next(&n->backoff, loop_random(k->in->core->loop));
        openstack_refused(&k->openstack, session.generation); /* the next one may have it */
    }
    if (r < 0) {
        usec_t at = MAX(openstack_retry_at(&k->openstack), n->retry_at);
        deletion_reset(n);
        integration_failed(k->in, &err);
        node_fail(n, "OpenStack cannot be used", &err);
        deletion_wait(n, at, "the next try to ask OpenStack");
        return;
    }
    if (n->stage == DELETION_FOUND && n->matches == 1) {
        server_delete(n, &session);
    } else if (n->stage == DELETION_FOUND) {
        if (!n->removed) {
            activity_did(&n->common.note, loop_wall(k->in->core->loop),
                         "OpenStack has no server of its name");
        }
        deletion_rest(n);
    } else {
        if (n->stage == DELETION_RESTS) {
            deletion_reset(n);
        }
        servers_send(n, &session);
    }
}

/* ── deletion: as a whole ──────────────────────────────────────────────────────────────────── */

static bool node_confirm(void *ctx UNUSED, const struct jval *node)
{
    return str_eq(jval_str(jval_get(jval_at(node, "metadata.annotations"), KEY_DELETING)),
                  KEYS_TRUE);
}

/* Its place under the limits, as long as its label asks, and until its annotation is gone. */
static bool node_reserve(struct kubernikus_node *n, const struct store_item *item)
{
    bool begun = is_begun(item->object);
    struct str why = STR_NONE;
    if (!n->asked && !begun) {
        integration_node_unreserve(&n->common, item);
        return false;
    }
    CLEANUP(buf_done)
    struct buf name = { 0 };
    buf_printf(&name, "kubernikus/" STR_FMT, STR_ARG(n->common.name));
    if (integration_node_reserve(&n->common, item,
                                 &(struct node_reservation_spec){
                                     .name = buf_str(&name),
                                     .already_true = begun,
                                     .confirm = node_confirm,
                                 },
                                 &why)) {
        return true;
    }
    activity_waits(&n->common.note, USEC_NEVER, "its place under the limits: " STR_FMT,
                   STR_ARG(why));
    return false;
}

static void node_step(struct integration_node *common, const struct store_item *item)
{
    struct kubernikus_node *n = node_of(common);
    n->asked = str_eq(node_label(item->object, KEY_DELETE_NODE), KEYS_TRUE);
    bool reserved = node_reserve(n, item);
    bool written = node_write(n, item, n->asked && reserved);
    if (!n->asked) {
        integration_node_stop_drain(&n->common);
        if (n->compute.call == NULL) {
            deletion_reset(n);
        }
        if (written) {
            activity_waits(&n->common.note, USEC_NEVER, "%s", "");
        }
        return;
    }
    /* A node that somebody has uncordoned is cordoned again before anything else. */
    if (reserved && written && node_drain(n, item)) {
        deletion_step(n);
    }
}

static void kubernikus_turn(struct integration *in)
{
    struct kubernikus *k = in->self;
    version_step(k);
    integration_nodes_turn(&k->nodes, node_step);
}

static bool kubernikus_disturbs(const struct integration *in UNUSED, const struct store_item *item)
{
    return is_begun(item->object);
}

static void kubernikus_on_limits(struct integration *in)
{
    struct kubernikus *k = in->self;
    integration_nodes_on_limits(&k->nodes);
}

static void node_free(struct kubernikus_node *n)
{
    outside_call_done(&n->compute);
    buf_done(&n->server);
    buf_done(&n->marker);
    buf_done(&n->version_error);
    integration_node_done(&n->common);
    alloc_free(n);
}

static struct kubernikus_node *node_new(struct kubernikus *k, struct str name)
{
    struct kubernikus_node *n = ALLOC_NEW(struct kubernikus_node);
    n->k = k;
    integration_node_init(&n->common, &k->nodes, name);
    outside_call_init(&n->compute, k->in->core->loop, k->in->outbound);
    n->backoff = (struct backoff){ .base = OUTSIDE_RETRY_MIN, .max = OUTSIDE_RETRY_MAX };
    return n;
}

static void kubernikus_on_node(struct integration *in, struct store_item *item, bool gone)
{
    struct kubernikus *k = in->self;
    struct integration_node *n = integration_nodes_find(&k->nodes, item->name);
    if (gone && n != NULL) {
        node_free(node_of(n));
    } else if (!gone) {
        integration_node_mark(n != NULL ? n : &node_new(k, item->name)->common);
    }
}

/* ── its life ──────────────────────────────────────────────────────────────────────────────── */

static void kubernikus_on_session(void *ctx)
{
    struct kubernikus *k = ctx;
    if (k->openstack.stage == OPENSTACK_OPEN) {
        activity_did(&k->in->note, loop_wall(k->in->core->loop), "logged in to OpenStack");
    }
    MAP_EACH (&k->nodes.by_name, entry) {
        struct kubernikus_node *n = node_of(map_item_value(entry));
        if (n->asked) {
            integration_node_mark(&n->common);
        }
    }
}

static void kubernikus_start(struct integration *in)
{
    struct kubernikus *k = ALLOC_NEW(struct kubernikus);
    k->in = in;
    k->version_backoff = (struct backoff){ .base = VERSION_RETRY_MIN, .max = VERSION_RETRY_MAX };
    struct metrics *metrics = in->core->config.metrics;
    k->deleted = metrics_series(metrics, METRIC_COUNTER, "drydock_kubernikus_servers_deleted_total",
                                "Servers of nodes that were deleted in OpenStack.");
    k->deleting = metrics_series(metrics, METRIC_GAUGE, "drydock_kubernikus_nodes_deleting",
                                 "Nodes whose label asks for their deletion.");
    integration_nodes_init(&k->nodes, in);
    openstack_init(&k->openstack, &(struct openstack_config){ .client = &in->core->client,
                                                              .outbound = in->outbound,
                                                              .files = in->files,
                                                              .on_change = kubernikus_on_session,
                                                              .ctx = k });
    in->self = k;
}

static void kubernikus_configure(struct integration *in)
{
    struct kubernikus *k = in->self;
    const struct kubernikus_config *config = in->config;
    openstack_set_secret(&k->openstack, config->secret_namespace, config->secret_name);
    MAP_EACH (&k->nodes.by_name, entry) {
        integration_node_mark(map_item_value(entry));
    }
}

static void kubernikus_collect(struct integration *in)
{
    const struct kubernikus *k = in->self;
    uint32_t asked = 0;
    MAP_EACH (&k->nodes.by_name, entry) {
        const struct kubernikus_node *n = node_of(map_item_value(entry));
        asked += n->asked ? 1 : 0;
    }
    metric_set(k->deleting, asked);
}

static bool kubernikus_node_activity(const struct integration *in, struct str node,
                                     struct activity *ret)
{
    const struct kubernikus *k = in->self;
    if (!integration_nodes_activity(&k->nodes, node, ret)) {
        return false;
    }
    const struct kubernikus_node *n = node_of(integration_nodes_find(&k->nodes, node));
    if (ret->error.n == 0 && n->version_error.n > 0) {
        ret->error = buf_str(&n->version_error);
        ret->error_at = loop_wall(in->core->loop);
    }
    return true;
}

static bool kubernikus_is_busy(const struct integration *in)
{
    const struct kubernikus *k = in->self;
    MAP_EACH (&k->nodes.by_name, entry) {
        const struct kubernikus_node *n = node_of(map_item_value(entry));
        if (n->stage == DELETION_SENT) {
            return true;
        }
    }
    return integration_nodes_are_busy(&k->nodes);
}

static void kubernikus_stop(struct integration *in)
{
    struct kubernikus *k = in->self;
    if (k->version_call != NULL) {
        api_cancel(in->core->client.api, k->version_call);
    }
    MAP_EACH (&k->nodes.by_name, entry) {
        node_free(node_of(map_item_value(entry)));
    }
    integration_nodes_done(&k->nodes);
    openstack_done(&k->openstack);
    buf_done(&k->version);
    alloc_free(k);
}

static const struct str annotations[] = {
    STR_INIT(KEY_DELETING_TEXT),
    STR_INIT(KEY_DRAIN_RULES_TEXT),
};

const struct integration_provider integration_kubernikus = {
    .name = "kubernikus",
    .title = "Kubernikus",
    .file = "config/kubernikus.yaml",
    .config_size = sizeof(struct kubernikus_config),
    .annotations = annotations,
    .annotation_n = ARRAY_LEN(annotations),
    .read = kubernikus_read,
    .start = kubernikus_start,
    .configure = kubernikus_configure,
    .on_node = kubernikus_on_node,
    .turn = kubernikus_turn,
    .disturbs = kubernikus_disturbs,
    .on_limits = kubernikus_on_limits,
    .node_activity = kubernikus_node_activity,
    .is_busy = kubernikus_is_busy,
    .collect = kubernikus_collect,
    .stop = kubernikus_stop,
};
