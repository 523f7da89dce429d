#include "client/uninstall.h"

#include "base/timestamp.h"
#include "format/json.h"
#include "format/json_writer.h"
#include "kinds/crd.h"
#include "kinds/keys.h"
#include "kinds/node_marks.h"
#include "kube/client.h"

#define PAGE_OBJECTS 100 /* a page of Nodes has 6 MiB then, at most */
#define NODE_TRIES 10u   /* a kubelet writes its Node now and then, not always */
#define CRDS_PATH "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define LEASES_API "/apis/coordination.k8s.io/v1/"
#define JOBS_API "/apis/batch/v1/"

struct uninstall {
    struct blocking_api *api;
    const struct uninstall_config *config;
};

static void tell(struct uninstall *u, const char *kind, struct str name, const char *what)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_printf(&text, "%s/" STR_FMT ": %s", kind, STR_ARG(name), what);
    u->config->on_change(u->config->ctx, buf_str(&text));
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

/* `*ret` is the status: below 300, 404 or 409. Everything else is an error. */
static int send(struct uninstall *u, const struct api_request *request, struct arena *out,
                const struct jval **ret_object, int *ret, struct err *err)
{
    struct blocking_api_reply reply;
    int r = blocking_api_send(u->api, request, out, &reply, err);
    if (r == 0 && reply.status >= 300 && reply.status != 404 && reply.status != 409) {
        client_explain(reply.status, reply.body, NULL, err);
        return err_wrap(err, STR_FMT, STR_ARG(request->path));
    }
    if (r == 0 && ret_object != NULL) {
        *ret_object = NULL;
        r = reply.status < 300 ? json_parse(reply.body, JSON_GO, out, ret_object, err) : 0;
    }
    *ret = r == 0 ? reply.status : 0;
    return r;
}

typedef int (*on_object)(struct uninstall *u, const struct jval *object, void *ctx,
                         struct err *err);

/* Calls `fn` for each object of a list; a kind that the server does not have has none. */
static int each(struct uninstall *u, struct str path, on_object fn, void *ctx, struct err *err)
{
    CLEANUP(buf_done)
    struct buf next = { 0 };
    bool more = true;
    while (more) {
        CLEANUP(arena_done)
        struct arena memory = { 0 };
        CLEANUP(buf_done)
        struct buf url = { 0 };
        const struct jval *list = NULL;
        int status = 0;
        buf_printf(&url, STR_FMT "%climit=%d", STR_ARG(path),
                   str_contains(path, STR("?")) ? '&' : '?', PAGE_OBJECTS);
        if (next.n > 0) {
            buf_add(&url, STR("&continue="));
            client_add_segment(&url, buf_str(&next));
        }
        int r = send(u, &(struct api_request){ .verb = API_GET, .path = buf_str(&url) }, &memory,
                     &list, &status, err);
        JVAL_EACH (r < 0 ? NULL : jval_get(list, STR("items")), object) {
            r = r < 0 ? r : fn(u, object, ctx, err);
        }
        if (r < 0) {
            return r;
        }
        buf_reset(&next);
        buf_add(&next, jval_str(jval_at(list, "metadata.continue")));
        more = next.n > 0;
    }
    return 0;
}

/* Deletes it, of that very version. One that is gone or has changed meanwhile is somebody's. */
static int delete_object(struct uninstall *u, struct str path, const struct jval *object,
                         struct err *err)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct str uid = jval_str(jval_at(object, "metadata.uid"));
    struct str version = jval_str(jval_at(object, "metadata.resourceVersion"));
    int status = 0;
    int r = send(
        u,
        &(struct api_request){
            .verb = API_DELETE,
            .path = path,
            .content_type = API_JSON,
            .body = arena_printf(&memory,
                                 "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
                                 "\"propagationPolicy\":\"Background\",\"preconditions\":"
                                 "{\"uid\":\"" STR_FMT "\",\"resourceVersion\":\"" STR_FMT "\"}}",
                                 STR_ARG(uid), STR_ARG(version)),
        },
        &memory, NULL, &status, err);
    if (r == 0 && status == 409) {
        return err_set(err, ERR_CONFLICT, STR_FMT ": it was changed just now; run this again",
                       STR_ARG(path));
    }
    return r;
}

/* ── Nodes ─────────────────────────────────────────────────────────────────────────────────── */

static void tell_node(struct uninstall *u, struct str name, const struct node_marks *marks)
{
    CLEANUP(buf_done)
    struct buf what = { 0 };
    buf_add(&what, marks->lift ? STR("lift the cordon, remove") : STR("remove"));
    for (uint32_t i = 0; i < marks->n; i++) {
        buf_printf(&what, "%s " STR_FMT, i > 0 ? "," : "", STR_ARG(marks->items[i].key));
    }
    if (marks->stays != NULL) {
        buf_printf(&what, "; it stays cordoned: %s", marks->stays);
    }
    buf_add(&what, (struct str){ .p = "", .n = 1 });
    tell(u, "node", name, what.p);
}

static int strip_node(struct uninstall *u, struct str name, struct err *err)
{
    for (uint32_t i = 0; i < NODE_TRIES; i++) {
        CLEANUP(arena_done)
        struct arena memory = { 0 };
        CLEANUP(buf_done)
        struct buf path = { 0 };
        CLEANUP(buf_done)
        struct buf body = { 0 };
        const struct jval *node = NULL;
        struct node_marks marks;
        int status = 0;
        buf_add(&path, STR("/api/v1/nodes/"));
        client_add_segment(&path, name);
        int r = send(u, &(struct api_request){ .verb = API_GET, .path = buf_str(&path) }, &memory,
                     &node, &status, err);
        if (r < 0 || node == NULL) {
            return r; /* one that is gone has no marks */
        }
        node_marks_find(node, &marks);
        if (marks.n == 0) {
            return 0;
        }
        node_marks_patch(&marks, jval_str(jval_at(node, "metadata.resourceVersion")), &body);
        r = send(u,
                 &(struct api_request){ .verb = API_PATCH,
                                        .path = buf_str(&path),
                                        .content_type = API_MERGE_PATCH,
                                        .body = buf_str(&body) },
                 &memory, NULL, &status, err);
        if (r < 0 || status != 409) {
            return r;
        }
    }
    return err_set(err, ERR_CONFLICT, "node '" STR_FMT "' is written by somebody else all the time",
                   STR_ARG(name));
}

static int on_node(struct uninstall *u, const struct jval *node, void *ctx UNUSED, struct err *err)
{
    struct node_marks marks;
    struct str name = jval_str(jval_at(node, "metadata.name"));
    node_marks_find(node, &marks);
    if (marks.n == 0) {
        return 0;
    }
    tell_node(u, name, &marks);
    return u->config->apply ? strip_node(u, name, err) : 0;
}

/* ── NodeMaintenances and their Jobs ───────────────────────────────────────────────────────── */

static int on_maintenance(struct uninstall *u, const struct jval *object, void *ctx UNUSED,
                          struct err *err)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    CLEANUP(buf_done)
    struct buf path = { 0 };
    struct str ours = NODE_MAINTENANCE_FINALIZER;
    struct str name = jval_str(jval_at(object, "metadata.name"));
    int64_t index = -1;
    int64_t i = 0;
    int status = 0;
    JVAL_EACH (jval_at(object, "metadata.finalizers"), item) {
        index = str_eq(jval_str(item), ours) ? i : index;
        i++;
    }
    if (index < 0) {
        return 0;
    }
    tell(u, "nodemaintenance", name, "remove the finalizer");
    if (!u->config->apply) {
        return 0;
    }
    buf_add(&path, STR(NODE_MAINTENANCES_PATH "/"));
    client_add_segment(&path, name);
    struct str body =
        arena_printf(&memory,
                     "[{\"op\":\"test\",\"path\":\"/metadata/finalizers/%lld\",\"value\":\"" STR_FMT
                     "\"},{\"op\":\"remove\",\"path\":\"/metadata/finalizers/%lld\"}]",
                     (long long)index, STR_ARG(ours), (long long)index);
    return send(u,
                &(struct api_request){ .verb = API_PATCH,
                                       .path = buf_str(&path),
                                       .content_type = API_JSON_PATCH,
                                       .body = body },
                &memory, NULL, &status, err);
}

/* A kind of objects in namespaces that go as a whole. */
struct removed_kind {
    const char *kind;
    struct str api; /* "/apis/batch/v1/" */
    const char *plural;
};

static int remove_object(struct uninstall *u, const struct removed_kind *kind,
                         const struct jval *object, struct err *err)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    CLEANUP(buf_done)
    struct buf path = { 0 };
    struct str ns = jval_str(jval_at(object, "metadata.namespace"));
    struct str name = jval_str(jval_at(object, "metadata.name"));
    tell(u, kind->kind, arena_printf(&memory, STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(name)),
         "delete");
    if (!u->config->apply) {
        return 0;
    }
    buf_add(&path, kind->api);
    buf_add(&path, STR("namespaces/"));
    client_add_segment(&path, ns);
    buf_printf(&path, "/%s/", kind->plural);
    client_add_segment(&path, name);
    return delete_object(u, buf_str(&path), object, err);
}

static int on_job(struct uninstall *u, const struct jval *job, void *ctx UNUSED, struct err *err)
{
    return remove_object(u, &(struct removed_kind){ "job", STR(JOBS_API), "jobs" }, job, err);
}

/* ── Leases ────────────────────────────────────────────────────────────────────────────────── */

static void leases_path(const struct uninstall *u, struct buf *out, struct str query)
{
    buf_add(out, STR(LEASES_API));
    if (u->config->ns.n > 0) {
        buf_add(out, STR("namespaces/"));
        client_add_segment(out, u->config->ns);
        buf_add(out, STR("/"));
    }
    buf_add(out, STR("leases?"));
    buf_add(out, query);
}

static int on_leader(struct uninstall *u, const struct jval *lease, void *ctx UNUSED,
                     struct err *err)
{
    struct str holder = jval_str(jval_at(lease, "spec.holderIdentity"));
    struct str ns = jval_str(jval_at(lease, "metadata.namespace"));
    struct timestamp renewed;
    struct err ignored = { 0 };
    int64_t seconds = 0;
    if (!u->config->apply || holder.n == 0 ||
        timestamp_parse(jval_str(jval_at(lease, "spec.renewTime")), &renewed, &ignored) < 0 ||
        !jval_i64(jval_at(lease, "spec.leaseDurationSeconds"), &seconds)) {
        return 0;
    }
    usec_t age = loop_wall(u->api->loop) - timestamp_to_usec(renewed);
    if (age > seconds * SECONDS(1)) {
        return 0;
    }
    return err_set(err, ERR_BUSY,
                   "a controller runs: '" STR_FMT "' leads in namespace '" STR_FMT
                   "' and would write everything again; stop it first",
                   STR_ARG(holder), STR_ARG(ns));
}

static int on_lease(struct uninstall *u, const struct jval *lease, void *ctx UNUSED,
                    struct err *err)
{
    return remove_object(u, &(struct removed_kind){ "lease", STR(LEASES_API), "leases" }, lease,
                         err);
}

/* The controllers' own, or the locks of targets. */
static int each_lease(struct uninstall *u, bool locks, on_object fn, struct err *err)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    CLEANUP(buf_done)
    struct buf query = { 0 };
    struct str name = CORE_LEASE_NAME;
    if (locks) {
        buf_add(&query, STR("labelSelector=" KEY_LOCK_QUERY "%3Dtarget"));
    } else {
        buf_printf(&query, "fieldSelector=metadata.name%%3D" STR_FMT, STR_ARG(name));
    }
    leases_path(u, &path, buf_str(&query));
    return each(u, buf_str(&path), fn, NULL, err);
}

/* ── CRDs ──────────────────────────────────────────────────────────────────────────────────── */

static int on_counted(struct uninstall *u UNUSED, const struct jval *object UNUSED, void *ctx,
                      struct err *err UNUSED)
{
    (*(uint32_t *)ctx)++;
    return 0;
}

static int remove_crd(struct uninstall *u, const struct jval *crd, struct err *err)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct str name = jval_str(jval_at(crd, "metadata.name"));
    struct str path = arena_printf(&memory, CRDS_PATH "/" STR_FMT, STR_ARG(name));
    const struct jval *found = NULL;
    uint32_t objects = 0;
    int status = 0;
    int r = send(u, &(struct api_request){ .verb = API_GET, .path = path }, &memory, &found,
                 &status, err);
    if (r < 0 || found == NULL) {
        return r;
    }
    struct str group = jval_str(jval_at(crd, "spec.group"));
    struct str plural = jval_str(jval_at(crd, "spec.names.plural"));
    struct str version = jval_str(jval_get(jval_first(jval_at(crd, "spec.versions")), STR("name")));
    r = each(u,
             arena_printf(&memory, "/apis/" STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(group),
                          STR_ARG(version), STR_ARG(plural)),
             on_counted, &objects, err);
    if (r < 0) {
        return r;
    }
    tell(u, "crd", name, arena_printf(&memory, "delete, with %u objects", objects).p);
    return u->config->apply ? delete_object(u, path, found, err) : 0;
}

static int remove_crds(struct uninstall *u, struct err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < crd_count(); i++) {
        CLEANUP(arena_done)
        struct arena memory = { 0 };
        r = remove_crd(u, crd_object(crd_at(i), &memory), err);
    }
    return r;
}

int uninstall_run(struct blocking_api *api, const struct uninstall_config *config, struct err *err)
{
    struct uninstall u = { .api = api, .config = config };
    int r = each_lease(&u, /* locks= */ false, on_leader, err);
    r = r < 0 ? r
              : each(&u, STR(JOBS_API "jobs?labelSelector=" KEY_JOB_MANAGED_QUERY "%3Dtrue"),
                     on_job, NULL, err);
    r = r < 0 ? r : each(&u, STR(NODE_MAINTENANCES_PATH), on_maintenance, NULL, err);
    r = r < 0 ? r : each(&u, STR("/api/v1/nodes"), on_node, NULL, err);
    r = r < 0 ? r : each_lease(&u, /* locks= */ true, on_lease, err);
    r = r < 0 ? r : each_lease(&u, /* locks= */ false, on_lease, err);
    return r < 0 || !config->crds ? r : remove_crds(&u, err);
}
