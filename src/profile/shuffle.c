#include "profile/shuffle.h"

#include "base/arena.h"
#include "base/heap.h"
#include "base/list.h"
#include "format/jsplit.h"
#include "format/json.h"

#define PODS_PAGE 100 /* a page of full pods is some 1 MB */

enum owner_kind { OWNER_DAEMON_SET, OWNER_STATEFUL_SET, OWNER_REPLICA_SET, OWNER_DEPLOYMENT };

static const struct {
    const char *kind;
    const char *resource;
    const char *label;    /* as the original spells the beginning of its owners */
    const char *replicas; /* where an object says how many it has */
} owner_kinds[] = {
    [OWNER_DAEMON_SET] = { "DaemonSet", "daemonsets", "daemon_set_", "status.numberReady" },
    [OWNER_STATEFUL_SET] = { "StatefulSet", "statefulsets", "stateful_set_", "spec.replicas" },
    [OWNER_REPLICA_SET] = { "ReplicaSet", "replicasets", "replica_set_", "spec.replicas" },
    [OWNER_DEPLOYMENT] = { "Deployment", "deployments", "deployment_", "spec.replicas" },
};

struct owner {
    enum owner_kind kind;
    struct str space;
    struct str name;
    uint32_t pods;
};

/* One node that is looked at: its pods page by page, then its owners one by one. */
struct shuffle {
    struct shuffles *all;
    struct list link;
    struct arena memory;
    struct str node;
    struct str profile;
    struct str page;
    struct owner *owners;
    uint32_t owner_n;
    uint32_t owner_cap;
    uint32_t at; /* the owner that is looked up */
    struct api_call *call;
};

struct shuffles {
    struct client *client;
    struct metric *counts;
    struct metric *shares;
    struct list active;
    struct list waiting;
    uint32_t active_n;
    uint32_t waiting_n;
};

static void shuffle_list(struct shuffle *s);
static void shuffle_look_up(struct shuffle *s);

/* ── a life ────────────────────────────────────────────────────────────────────────────────── */

struct shuffles *shuffles_new(struct client *client, struct metrics *metrics)
{
    static const struct metric_spec counts = {
        .name = "maintenance_controller_pod_shuffle_count",
        .help = "Pods on nodes that came into maintenance, by owner and profile.",
        .kind = METRIC_COUNTER,
        .labels = { "owner", "profile" },
    };
    static const struct metric_spec shares = {
        .name = "maintenance_controller_pod_shuffles_per_replica",
        .help = "The same as a share of the owner's replicas.",
        .kind = METRIC_COUNTER,
        .labels = { "owner", "profile" },
    };
    struct shuffles *s = HEAP_NEW(struct shuffles);
    s->client = client;
    s->counts = metrics_family(metrics, &counts);
    s->shares = metrics_family(metrics, &shares);
    list_init(&s->active);
    list_init(&s->waiting);
    return s;
}

static void shuffle_free(struct shuffle *s)
{
    if (s->call != NULL) {
        api_cancel(s->all->client->api, STEAL(s->call));
    }
    list_del(&s->link);
    arena_done(&s->memory);
    heap_free(s);
}

void shuffles_free(struct shuffles *s)
{
    if (s == NULL) {
        return;
    }
    LIST_EACH (&s->active, link) {
        shuffle_free(CONTAINER_OF(link, struct shuffle, link));
    }
    LIST_EACH (&s->waiting, link) {
        shuffle_free(CONTAINER_OF(link, struct shuffle, link));
    }
    heap_free(s);
}

static void shuffles_begin(struct shuffles *all)
{
    while (all->active_n < SHUFFLES_AT_ONCE && all->waiting_n > 0) {
        struct shuffle *s = CONTAINER_OF(all->waiting.next, struct shuffle, link);
        list_del(&s->link);
        list_add(&all->active, &s->link);
        all->waiting_n--;
        all->active_n++;
        shuffle_list(s);
    }
}

static void shuffle_end(struct shuffle *s)
{
    struct shuffles *all = s->all;
    shuffle_free(s);
    all->active_n--;
    shuffles_begin(all);
}

bool shuffles_count(struct shuffles *all, struct str node, struct str profile)
{
    if (all->waiting_n >= SHUFFLES_MAX) {
        return false;
    }
    struct shuffle *s = HEAP_NEW(struct shuffle);
    s->all = all;
    s->node = arena_str(&s->memory, node);
    s->profile = arena_str(&s->memory, profile);
    list_init(&s->link);
    list_add(&all->waiting, &s->link);
    all->waiting_n++;
    shuffles_begin(all);
    return true;
}

/* ── owners ────────────────────────────────────────────────────────────────────────────────── */

static void shuffle_add(struct shuffle *s, enum owner_kind kind, struct str space, struct str name)
{
    for (uint32_t i = 0; i < s->owner_n; i++) {
        struct owner *o = &s->owners[i];
        if (o->kind == kind && str_eq(o->space, space) && str_eq(o->name, name)) {
            o->pods++;
            return;
        }
    }
    if (s->owner_n < SHUFFLE_OWNERS_MAX) {
        ARENA_GROW(&s->memory, s->owners, s->owner_n, s->owner_cap);
        s->owners[s->owner_n++] = (struct owner){
            .kind = kind,
            .space = arena_str(&s->memory, space),
            .name = arena_str(&s->memory, name),
            .pods = 1,
        };
    }
}

static void shuffle_add_pod(struct shuffle *s, const struct jval *pod)
{
    const struct jval *references = jval_at(pod, "metadata.ownerReferences");
    struct str space = jval_str(jval_at(pod, "metadata.namespace"));
    JVAL_EACH (references, reference) {
        struct str kind = jval_str(jval_get(reference, STR("kind")));
        for (int i = OWNER_DAEMON_SET; i <= OWNER_REPLICA_SET; i++) {
            if (str_eq(kind, str_from(owner_kinds[i].kind))) {
                shuffle_add(s, (enum owner_kind)i, space,
                            jval_str(jval_get(reference, STR("name"))));
            }
        }
    }
}

/* The Deployment that a ReplicaSet belongs to; false: it is on its own. */
static bool owner_is_deployments(const struct jval *object, struct arena *out, struct str *ret)
{
    const struct jval *references = jval_at(object, "metadata.ownerReferences");
    JVAL_EACH (references, reference) {
        if (str_eq(jval_str(jval_get(reference, STR("kind"))), STR("Deployment"))) {
            *ret = arena_str(out, jval_str(jval_get(reference, STR("name"))));
            return true;
        }
    }
    return false;
}

static void owner_count(const struct shuffle *s, const struct owner *o, const struct jval *object)
{
    CLEANUP(buf_done)
    struct buf label = { 0 };
    int64_t replicas = 1;
    (void)jval_i64(jval_at(object, owner_kinds[o->kind].replicas), &replicas); /* absent: one */
    buf_printf(&label, "%s" STR_FMT, owner_kinds[o->kind].label, STR_ARG(o->name));
    const struct str values[] = { buf_str(&label), s->profile };
    metric_add(metric_series(s->all->counts, values), o->pods);
    metric_add(metric_series(s->all->shares, values), (double)o->pods / (double)MAX(replicas, 1));
}

static void shuffle_on_owner(void *ctx, const struct api_reply *reply)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct shuffle *s = ctx;
    struct owner *o = &s->owners[s->at];
    const struct jval *object = NULL;
    struct err ignored = { 0 };
    s->call = NULL;
    bool read = client_note(s->all->client, API_GET, reply) == RETRY_DONE &&
                json_parse(reply->body, JSON_GO, &tmp, &object, &ignored) == 0;
    if (read && o->kind == OWNER_REPLICA_SET &&
        owner_is_deployments(object, &s->memory, &o->name)) {
        o->kind = OWNER_DEPLOYMENT;
        shuffle_look_up(s);
        return;
    }
    if (read) {
        owner_count(s, o, object);
    }
    s->at++;
    shuffle_look_up(s);
}

static void shuffle_look_up(struct shuffle *s)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    if (s->at >= s->owner_n) {
        shuffle_end(s);
        return;
    }
    const struct owner *o = &s->owners[s->at];
    buf_add(&path, STR("/apis/apps/v1/namespaces/"));
    client_add_segment(&path, o->space);
    buf_printf(&path, "/%s/", owner_kinds[o->kind].resource);
    client_add_segment(&path, o->name);
    struct api_request request = { .verb = API_GET, .path = buf_str(&path) };
    s->call = api_send(s->all->client->api, &request, shuffle_on_owner, s);
}

/* ── pods ──────────────────────────────────────────────────────────────────────────────────── */

static int shuffle_read_pods(struct shuffle *s, struct str list, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct jsplit split;
    struct str item;
    int r = 0;
    jsplit_init(&split, list);
    while ((r = jsplit_next(&split, &item, err)) > 0) {
        const struct jval *pod = NULL;
        arena_reset(&tmp);
        if (json_parse(item, JSON_GO, &tmp, &pod, err) < 0) {
            return err_wrap(err, "a pod");
        }
        shuffle_add_pod(s, pod);
    }
    if (r < 0) {
        return r;
    }
    const struct jval *metadata = NULL;
    arena_reset(&tmp);
    if (split.metadata.n > 0 && json_parse(split.metadata, JSON_GO, &tmp, &metadata, err) < 0) {
        return err_wrap(err, "a list's metadata");
    }
    s->page = arena_str(&s->memory, jval_str(jval_get(metadata, STR("continue"))));
    return 0;
}

static void shuffle_on_pods(void *ctx, const struct api_reply *reply)
{
    struct shuffle *s = ctx;
    struct err ignored = { 0 };
    s->call = NULL;
    if (client_note(s->all->client, API_GET, reply) != RETRY_DONE ||
        shuffle_read_pods(s, reply->body, &ignored) < 0) {
        shuffle_end(s);
    } else if (s->page.n > 0) {
        shuffle_list(s);
    } else {
        shuffle_look_up(s);
    }
}

static void shuffle_list(struct shuffle *s)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/api/v1/pods?fieldSelector=spec.nodeName%3D"));
    client_add_segment(&path, s->node);
    buf_printf(&path, "&limit=%d", PODS_PAGE);
    if (s->page.n > 0) {
        buf_add(&path, STR("&continue="));
        client_add_segment(&path, s->page);
    }
    struct api_request request = { .verb = API_GET, .path = buf_str(&path) };
    s->call = api_send(s->all->client->api, &request, shuffle_on_pods, s);
}
