/*
 * drained_check: whether a Node is cordoned and no pod is left that a drain would evict or wait
 * for (drain/pod_policy.h). Reads the Node, the namespaces if the drain rules ask for their labels,
 * and the Node's pods.
 */
#include "base/limits.h"
#include "bridge/bridge_internal.h"
#include "drain/pod_policy.h"
#include "format/json_items.h"
#include "format/label_pack.h"

#define DRAINED_CHECK_PODS_MAX 500u /* more than a node has; with more it counts as not drained */
#define DRAINED_CHECK_NAMESPACES_PAGE 500u
#define DRAINED_CHECK_PAGES_MAX 20u /* of namespaces; with more the check fails */
#define DRAINED_CHECK_BYTES_MAX ((size_t)8 * 1024 * 1024) /* of their labels; likewise */

/* `found` says why the Node does not count as drained. NULL: the check was cut short, and the
 * result of the one before stays. */
static void drained_check_end(struct in_flight *f, const struct err *found)
{
    struct machine_state *ms = f->machine;
    in_flight_free(f);
    if (ms == NULL) {
        return;
    }
    if (found != NULL) {
        buf_reset(&ms->not_drained_why);
        buf_add(&ms->not_drained_why, str_from(found->msg));
    }
    machine_mark(ms);
}

static bool drained_check_goes_on(const struct in_flight *f)
{
    const struct link *link = f->cluster->link;
    return f->machine != NULL && link != NULL && link_fresh(link);
}

static void drained_check_explain(const char *what, const struct api_reply *reply, struct err *ret)
{
    client_explain(reply->status, reply->body, reply->err, ret);
    (void)err_wrap(ret, "%s cannot be listed", what);
}

/* ── pods ──────────────────────────────────────────────────────────────────────────────────── */

/* 0: a drain would evict no pod and wait for none. An error: it would, or the list is incomplete.
 */
static int drained_check_find_pod(const struct pod_policy *policy, const struct map *namespaces,
                                  struct str body, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct json_items split;
    struct str item;
    int more;
    json_items_init(&split, body);
    while ((more = json_items_next(&split, &item, err)) > 0) {
        const struct jval *object = NULL;
        void *projection = NULL;
        arena_reset(&tmp);
        if (json_parse(item, 0, &tmp, &object, err) < 0 ||
            drain_pod_kind.project(NULL, object, &tmp, &projection, err) < 0) {
            return err_wrap(err, "its pods cannot be read");
        }
        struct str namespace = jval_str(jval_at(object, "metadata.namespace"));
        const struct str *labels = namespaces != NULL ? map_find(namespaces, namespace) : NULL;
        if (pod_policy_decide(policy, projection, labels).fate != POD_FATE_STAYS) {
            return err_set(err, ERR_BUSY, "pod '" STR_FMT "/" STR_FMT "' is still there",
                           STR_ARG(namespace), STR_ARG(jval_str(jval_at(object, "metadata.name"))));
        }
    }
    const struct jval *metadata = NULL;
    if (more < 0 || json_parse(split.metadata, 0, &tmp, &metadata, err) < 0) {
        return err_wrap(err, "its pods cannot be read");
    }
    return jval_str(jval_get(metadata, STR("continue"))).n == 0
               ? 0
               : err_set(err, ERR_LIMIT, "it has more than %u pods", DRAINED_CHECK_PODS_MAX);
}

/* With the rules as they are now. While they are not known, or cannot be used, nothing counts as
 * drained. */
static int drained_check_read_pods(struct in_flight *f, struct str body, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct machine_drain_rules rules;
    machine_drain_rules(f->machine, &tmp, &rules);
    if (rules.asked && !rules.known) {
        return err_set(err, ERR_NOTFOUND, STR_FMT, STR_ARG(rules.trouble));
    }
    if (rules.asked && rules.rules.error.n > 0) {
        return err_set(err, ERR_INVALID, "its drain rules cannot be used: " STR_FMT,
                       STR_ARG(rules.rules.error));
    }
    const struct pod_policy policy = {
        .flags = DRAIN_USE_POD_LABEL,
        .rules = rules.asked ? &rules.rules : NULL,
    };
    return drained_check_find_pod(&policy, f->paged ? &f->namespaces : NULL, body, err);
}

static void drained_check_on_pods(void *ctx, const struct api_reply *reply)
{
    struct in_flight *f = ctx;
    struct err found = { 0 };
    f->link_call = NULL;
    if (reply->status != 200) {
        drained_check_explain("its pods", reply, &found);
    } else if (f->machine != NULL) {
        f->machine->drained = drained_check_read_pods(f, reply->body, &found) == 0;
        f->machine->drained_check_at = loop_now(f->bridge->loop); /* however long the answer took */
    }
    drained_check_end(f, &found);
}

static void drained_check_list_pods(struct in_flight *f)
{
    struct bridge *b = f->bridge;
    buf_reset(&b->path);
    buf_printf(&b->path, "/api/v1/pods?limit=%u&fieldSelector=spec.nodeName%%3D",
               DRAINED_CHECK_PODS_MAX);
    client_add_segment(&b->path, f->name);
    in_flight_get(f, STR_NONE, drained_check_on_pods);
}

/* ── namespaces ────────────────────────────────────────────────────────────────────────────── */

static void drained_check_list_namespaces(struct in_flight *f, struct str from);

static int drained_check_read_namespaces(struct in_flight *f, struct str body, struct arena *tmp,
                                         struct str *ret_more, struct err *err)
{
    struct json_items split;
    struct str item;
    int more;
    json_items_init(&split, body);
    while ((more = json_items_next(&split, &item, err)) > 0) {
        const struct jval *object = NULL;
        arena_reset(tmp);
        int r = json_parse(item, 0, tmp, &object, err);
        if (r < 0) {
            return r;
        }
        struct str name = jval_str(jval_at(object, "metadata.name"));
        if (name.n > OBJECT_NAME_MAX) {
            return err_set(err, ERR_LIMIT, "a name of %zu bytes, at most %u", name.n,
                           OBJECT_NAME_MAX);
        }
        struct str *kept = ARENA_NEW(&f->memory, struct str);
        *kept = label_pack_keep(jval_at(object, "metadata.labels"), &f->memory);
        /* A namespace that came twice, on two pages, is the same. */
        (void)map_put(&f->namespaces, name, kept);
    }
    const struct jval *metadata = NULL;
    if (more == 0) {
        more = json_parse(split.metadata, 0, tmp, &metadata, err);
    }
    *ret_more = jval_str(jval_get(metadata, STR("continue")));
    if (more == 0 && (f->memory.total > DRAINED_CHECK_BYTES_MAX ||
                      (ret_more->n > 0 && f->pages >= DRAINED_CHECK_PAGES_MAX))) {
        return err_set(err, ERR_LIMIT, "they are too many");
    }
    return more;
}

static void drained_check_on_namespaces(void *ctx, const struct api_reply *reply)
{
    struct in_flight *f = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err found = { 0 };
    struct str more = STR_NONE;
    f->link_call = NULL;
    if (reply->status != 200) {
        drained_check_explain("the namespaces", reply, &found);
    } else if (drained_check_read_namespaces(f, reply->body, &tmp, &more, &found) < 0) {
        (void)err_wrap(&found, "the namespaces cannot be read");
    }
    if (found.code != 0 || !drained_check_goes_on(f)) {
        drained_check_end(f, found.code != 0 ? &found : NULL);
    } else if (more.n > 0) {
        drained_check_list_namespaces(f, more);
    } else {
        f->paged = true;
        drained_check_list_pods(f);
    }
}

static void drained_check_list_namespaces(struct in_flight *f, struct str from)
{
    struct bridge *b = f->bridge;
    buf_reset(&b->path);
    buf_printf(&b->path, "/api/v1/namespaces?limit=%u", DRAINED_CHECK_NAMESPACES_PAGE);
    if (from.n > 0) {
        buf_add(&b->path, STR("&continue="));
        client_add_segment(&b->path, from);
    }
    f->pages++;
    in_flight_get(f, API_METADATA_LIST, drained_check_on_namespaces);
}

/* ── the Node ──────────────────────────────────────────────────────────────────────────────── */

static int drained_check_read_node(const struct api_reply *reply, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *node = NULL;
    if (reply->status != 200) {
        client_explain(reply->status, reply->body, reply->err, err);
        return err_wrap(err, "it cannot be read");
    }
    if (json_parse(reply->body, 0, &tmp, &node, err) < 0) {
        return err_wrap(err, "it cannot be read");
    }
    return jval_bool(jval_at(node, "spec.unschedulable"), false)
               ? 0
               : err_set(err, ERR_BUSY, "it is not cordoned");
}

static bool drained_check_needs_namespaces(const struct machine_state *ms)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct machine_drain_rules rules;
    machine_drain_rules(ms, &tmp, &rules);
    return rules.rules.by_namespace;
}

static void drained_check_on_node(void *ctx, const struct api_reply *reply)
{
    struct in_flight *f = ctx;
    struct err found = { 0 };
    bool cordoned = drained_check_read_node(reply, &found) == 0;
    f->link_call = NULL;
    if (f->machine != NULL) {
        f->machine->cordoned = cordoned;
    }
    if (!cordoned || !drained_check_goes_on(f)) {
        drained_check_end(f, !cordoned ? &found : NULL);
    } else if (drained_check_needs_namespaces(f->machine)) {
        drained_check_list_namespaces(f, STR_NONE);
    } else {
        drained_check_list_pods(f);
    }
}

void drained_check_start(struct machine_state *ms)
{
    struct loop *loop = ms->bridge->loop;
    struct in_flight *f =
        in_flight_get_node(ms, IN_FLIGHT_DRAINED_CHECK, STR_NONE, drained_check_on_node);
    map_init(&f->namespaces, loop_random(loop), loop_random(loop));
}
