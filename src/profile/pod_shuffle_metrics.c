/* Lists the pods of a node, reads their owners, and adds the counts to the metrics. */
#include "profile/pod_shuffle_metrics.h"

#include <math.h>

#include "base/alloc.h"
#include "base/list.h"
#include "kube/podlist.h"

enum owner_kind { OWNER_DAEMON_SET, OWNER_STATEFUL_SET, OWNER_REPLICA_SET, OWNER_DEPLOYMENT };

static const struct {
    const char *kind;
    const char *plural;
    const char *label; /* what the owner's name is prefixed with */
} kinds[] = {
    [OWNER_DAEMON_SET] = { "DaemonSet", "daemonsets", "daemon_set_" },
    [OWNER_STATEFUL_SET] = { "StatefulSet", "statefulsets", "stateful_set_" },
    [OWNER_REPLICA_SET] = { "ReplicaSet", "replicasets", "replica_set_" },
    [OWNER_DEPLOYMENT] = { "Deployment", "deployments", "deployment_" },
};

/* What an owner turned out to be. */
enum owner_counted_as {
    OWNER_INFO_COUNTED,    /* its pods are counted under its own name */
    OWNER_INFO_DEPLOYMENT, /* they are counted under the Deployment behind it */
    OWNER_INFO_IGNORED,    /* it is gone, or has an owner of an unknown kind */
};

/* Cached from one node to the next, because nodes run pods of the same owners. */
struct owner_info {
    enum owner_counted_as as;
    int64_t replicas; /* OWNER_INFO_COUNTED */
    struct buf
        deployment; /* OWNER_INFO_DEPLOYMENT: name of the Deployment, in the same namespace */
    usec_t at;      /* monotonic */
};

struct owner {
    enum owner_kind kind;
    struct str namespace;
    struct str name;
    struct str key; /* "kind/namespace/name" */
    uint32_t pods;
    bool counts;
    int64_t replicas;
    struct owner *next;
};

enum count_stage {
    COUNT_QUEUED, /* until a request may be sent */
    COUNT_PODS,   /* its pods are listed, page by page */
    COUNT_OWNERS, /* their owners are read, one after the other */
};

/* One node to be counted. */
struct count_job {
    struct pod_shuffle *s;
    enum count_stage stage;
    struct list link; /* in `counts` or `running` */
    struct buf node;
    struct buf profile;
    bool counts; /* otherwise it makes zeros */
    uint32_t tries;
    struct api_call *call;
    struct buf page;
    struct arena memory; /* of the owners */
    struct owner *owners;
    struct owner **tail;
    struct owner *at; /* COUNT_OWNERS: the next to be read */
    uint32_t owner_n;
    bool too_many_owners; /* there are more owners than are kept */
};

struct pod_shuffle {
    struct loop *loop;
    struct client *client;
    struct controller_metrics *metrics;
    struct log *log;
    struct list counts; /* go before `zeros`: the pods may leave the node at any time */
    uint32_t counts_n;
    struct map zeros; /* "profile/node" → struct count_job, the oldest first */
    usec_t zero_at;   /* when the next of them may go, monotonic */
    struct list running;
    uint32_t in_flight;
    struct loop_timer run_timer;
    struct map owner_infos; /* "kind/namespace/name" → struct owner_info */
    usec_t log_at;
    uint64_t suppressed;
};

static void shuffle_run(void *ctx);
static void count_step(struct count_job *j);

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct pod_shuffle *shuffle_new(struct client *client, struct controller_metrics *metrics,
                                struct log *log)
{
    struct pod_shuffle *s = ALLOC_NEW(struct pod_shuffle);
    s->loop = client->loop;
    s->client = client;
    s->metrics = metrics;
    s->log = log;
    list_init(&s->counts);
    list_init(&s->running);
    loop_timer_init(&s->run_timer, s->loop, shuffle_run, s);
    map_init(&s->zeros, loop_random(s->loop), loop_random(s->loop));
    map_init(&s->owner_infos, loop_random(s->loop), loop_random(s->loop));
    return s;
}

static void count_free(struct count_job *j)
{
    if (j->call != NULL) {
        api_cancel(j->s->client->api, STEAL(j->call));
    }
    list_del(&j->link);
    buf_done(&j->node);
    buf_done(&j->profile);
    buf_done(&j->page);
    arena_done(&j->memory);
    alloc_free(j);
}

static void shuffle_drop_owners(struct pod_shuffle *s)
{
    MAP_EACH (&s->owner_infos, entry) {
        struct owner_info *k = map_item_value(entry);
        (void)map_del(&s->owner_infos, map_item_name(entry)); /* it is `k` */
        buf_done(&k->deployment);
        alloc_free(k);
    }
}

void shuffle_drop_all(struct pod_shuffle *s)
{
    struct list *const lists[] = { &s->counts, &s->running };
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        LIST_EACH (lists[i], link) {
            count_free(CONTAINER_OF(link, struct count_job, link));
        }
    }
    MAP_EACH (&s->zeros, entry) {
        struct count_job *j = map_item_value(entry);
        (void)map_del(&s->zeros, map_item_name(entry)); /* it is `j` */
        count_free(j);
    }
    s->counts_n = 0;
    s->in_flight = 0;
    loop_timer_stop(&s->run_timer);
    shuffle_drop_owners(s);
}

void shuffle_free(struct pod_shuffle *s)
{
    if (s == NULL) {
        return;
    }
    shuffle_drop_all(s);
    map_done(&s->zeros);
    map_done(&s->owner_infos);
    loop_timer_done(&s->run_timer);
    alloc_free(s);
}

/* ── the queue ─────────────────────────────────────────────────────────────────────────────── */

static void shuffle_log_failure(struct pod_shuffle *s, const struct count_job *j,
                                const struct err *err)
{
    usec_t now = loop_now(s->loop);
    if (s->log_at > now) {
        s->suppressed++;
        return;
    }
    log_info(s->log,
             j->counts ? "failed to record shuffle metrics" : "failed to touch shuffle metrics",
             KV_STR("node", buf_str(&j->node)), KV_STR("profile", buf_str(&j->profile)),
             KV_ERR(err), KV_I64("suppressed", s->suppressed));
    s->log_at = now + SHUFFLE_LOG_EVERY;
    s->suppressed = 0;
}

static struct str zero_key(struct arena *a, struct str node, struct str profile)
{
    return arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(profile), STR_ARG(node));
}

/* False when too many wait already. */
static bool count_queue(struct count_job *j)
{
    struct pod_shuffle *s = j->s;
    uint32_t waiting = j->counts ? s->counts_n : map_count(&s->zeros);
    if (waiting >= SHUFFLE_QUEUE_MAX) {
        return false;
    }
    j->stage = COUNT_QUEUED;
    if (j->counts) {
        list_add(&s->counts, &j->link);
        s->counts_n++;
        loop_timer_pull(&s->run_timer, loop_now(s->loop));
        return true;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct count_job *older =
        map_put(&s->zeros, zero_key(&tmp, buf_str(&j->node), buf_str(&j->profile)), j);
    if (older != NULL) {
        count_free(older);
    }
    loop_timer_pull(&s->run_timer, MAX(s->zero_at, loop_now(s->loop)));
    return true;
}

static void shuffle_add(struct pod_shuffle *s, bool counts, struct str node, struct str profile)
{
    if (s->metrics->registry == NULL) {
        return;
    }
    struct count_job *j = ALLOC_NEW(struct count_job);
    j->s = s;
    j->counts = counts;
    buf_add(&j->node, node);
    buf_add(&j->profile, profile);
    if (!count_queue(j)) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_LIMIT, "%u nodes wait to be counted already", SHUFFLE_QUEUE_MAX);
        shuffle_log_failure(s, j, &err);
        count_free(j);
    }
}

void shuffle_count(struct pod_shuffle *s, struct str node, struct str profile)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct count_job *zeros = map_del(&s->zeros, zero_key(&tmp, node, profile));
    if (zeros != NULL) {
        count_free(zeros);
    }
    shuffle_add(s, /* counts= */ true, node, profile);
}

void shuffle_make_zeros(struct pod_shuffle *s, struct str node, struct str profile)
{
    shuffle_add(s, /* counts= */ false, node, profile);
}

static void count_begin(struct count_job *j)
{
    struct pod_shuffle *s = j->s;
    list_add(&s->running, &j->link);
    s->in_flight++;
    j->stage = COUNT_PODS;
    j->tries++;
    buf_reset(&j->page);
    arena_reset(&j->memory);
    j->owners = NULL;
    j->tail = &j->owners;
    j->owner_n = 0;
    j->too_many_owners = false;
    count_step(j);
}

/* NULL when no job waits, or the next zeros are not due yet. */
static struct count_job *shuffle_next(struct pod_shuffle *s)
{
    if (s->counts_n > 0) {
        struct count_job *j = CONTAINER_OF(s->counts.next, struct count_job, link);
        list_del(&j->link);
        s->counts_n--;
        return j;
    }
    struct map_item *first = map_next(&s->zeros, NULL);
    usec_t now = loop_now(s->loop);
    if (first == NULL) {
        return NULL;
    }
    if (s->zero_at > now) {
        loop_timer_pull(&s->run_timer, s->zero_at);
        return NULL;
    }
    s->zero_at = now + SHUFFLE_ZERO_EVERY;
    return map_del(&s->zeros, map_item_name(first));
}

static void shuffle_run(void *ctx)
{
    struct pod_shuffle *s = ctx;
    while (s->in_flight < SHUFFLE_IN_FLIGHT_MAX) {
        if (!client_open(s->client)) {
            loop_timer_pull(&s->run_timer, client_open_at(s->client));
            return;
        }
        struct count_job *j = shuffle_next(s);
        if (j == NULL) {
            return;
        }
        count_begin(j);
    }
}

static void count_end(struct count_job *j)
{
    struct pod_shuffle *s = j->s;
    list_del(&j->link);
    s->in_flight--;
    if (s->counts_n > 0 || map_count(&s->zeros) > 0) {
        loop_timer_pull(&s->run_timer, loop_now(s->loop));
    } else if (s->in_flight == 0) {
        shuffle_drop_owners(s);
    }
}

static void count_fail(struct count_job *j, enum retry_verdict verdict, const struct err *err)
{
    bool may_pass = verdict == RETRY_QUIET || verdict == RETRY_LATER || verdict == RETRY_RELIST;
    count_end(j);
    if (may_pass && j->tries < SHUFFLE_TRIES_MAX && count_queue(j)) {
        return;
    }
    shuffle_log_failure(j->s, j, err);
    count_free(j);
}

/* ── owners ────────────────────────────────────────────────────────────────────────────────── */

/* The owner of that name among the job's, made at first sight; NULL when there are too many. */
static struct owner *count_owner(struct count_job *j, enum owner_kind kind, struct str namespace,
                                 struct str name)
{
    struct str key = arena_printf(&j->memory, "%d/" STR_FMT "/" STR_FMT, (int)kind,
                                  STR_ARG(namespace), STR_ARG(name));
    for (struct owner *o = j->owners; o != NULL; o = o->next) {
        if (str_eq(o->key, key)) {
            return o;
        }
    }
    if (j->owner_n >= SHUFFLE_OWNERS_MAX) {
        j->too_many_owners = true;
        return NULL;
    }
    struct owner *o = ARENA_NEW(&j->memory, struct owner);
    o->kind = kind;
    o->namespace = arena_str(&j->memory, namespace);
    o->name = arena_str(&j->memory, name);
    o->key = key;
    *j->tail = o;
    j->tail = &o->next;
    j->owner_n++;
    return o;
}

static bool owner_find_kind(const struct jval *reference, enum owner_kind *ret)
{
    /* Other API groups have a StatefulSet, too. */
    if (!str_eq(jval_str(jval_get(reference, STR("apiVersion"))), STR("apps/v1"))) {
        return false;
    }
    struct str kind = jval_str(jval_get(reference, STR("kind")));
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (str_eq(kind, str_from(kinds[i].kind))) {
            *ret = (enum owner_kind)i;
            return true;
        }
    }
    return false;
}

static bool count_visit(void *ctx, const struct jval *pod)
{
    struct count_job *j = ctx;
    struct str namespace = jval_str(jval_at(pod, "metadata.namespace"));
    const struct jval *references = jval_at(pod, "metadata.ownerReferences");
    JVAL_EACH (references, reference) {
        enum owner_kind kind;
        struct str name = jval_str(jval_get(reference, STR("name")));
        if (!owner_find_kind(reference, &kind) || kind == OWNER_DEPLOYMENT || name.n == 0) {
            continue; /* no Deployment owns pods itself */
        }
        struct owner *o = count_owner(j, kind, namespace, name);
        if (o == NULL) {
            return false;
        }
        o->pods++;
    }
    return true;
}

/* The Deployment that owns a ReplicaSet, if one does. */
static void owner_info_read_replica_set(const struct jval *object, struct owner_info *ret)
{
    const struct jval *references = jval_at(object, "metadata.ownerReferences");
    ret->as = OWNER_INFO_COUNTED;
    JVAL_EACH (references, reference) {
        enum owner_kind kind;
        ret->as = OWNER_INFO_IGNORED;
        if (owner_find_kind(reference, &kind) && kind == OWNER_DEPLOYMENT) {
            ret->as = OWNER_INFO_DEPLOYMENT;
            buf_reset(&ret->deployment);
            buf_add(&ret->deployment, jval_str(jval_get(reference, STR("name"))));
            return;
        }
    }
}

static void owner_info_read(const struct jval *object, enum owner_kind kind, struct owner_info *ret)
{
    bool daemon = kind == OWNER_DAEMON_SET;
    ret->as = OWNER_INFO_COUNTED;
    if (kind == OWNER_REPLICA_SET) {
        owner_info_read_replica_set(object, ret);
    }
    if (!jval_i64(jval_at(object, daemon ? "status.numberReady" : "spec.replicas"),
                  &ret->replicas)) {
        ret->replicas = daemon ? 0 : 1; /* as the API's defaults are */
    }
}

/* `object` is NULL when the owner is gone. */
static void shuffle_keep_owner(struct pod_shuffle *s, const struct owner *o,
                               const struct jval *object)
{
    struct owner_info *k = map_find(&s->owner_infos, o->key);
    if (k == NULL) {
        if (map_count(&s->owner_infos) >= SHUFFLE_OWNER_CACHE_MAX) {
            shuffle_drop_owners(s);
        }
        k = ALLOC_NEW(struct owner_info);
        (void)map_put(&s->owner_infos, o->key, k); /* nothing was there */
    }
    k->at = loop_now(s->loop);
    k->as = OWNER_INFO_IGNORED;
    if (object != NULL) {
        owner_info_read(object, o->kind, k);
    }
}

static void count_apply(struct count_job *j, struct owner *o, const struct owner_info *k)
{
    if (k->as == OWNER_INFO_COUNTED) {
        o->counts = true;
        o->replicas = k->replicas;
    } else if (k->as == OWNER_INFO_DEPLOYMENT) {
        struct owner *deployment =
            count_owner(j, OWNER_DEPLOYMENT, o->namespace, buf_str(&k->deployment));
        if (deployment != NULL) {
            deployment->pods += o->pods;
        }
    }
}

/* ── the end ───────────────────────────────────────────────────────────────────────────────── */

/* A DaemonSet without a ready pod makes infinity, as it always did: dashboards know it. What is
 * scaled to nothing while its last pods end counts as one. */
static double owner_share(const struct owner *o)
{
    if (o->kind == OWNER_DAEMON_SET) {
        return o->replicas > 0 ? 1.0 / (double)o->replicas : (double)INFINITY;
    }
    return 1.0 / (double)MAX(o->replicas, 1);
}

static void count_finish(struct count_job *j)
{
    for (const struct owner *o = j->owners; o != NULL; o = o->next) {
        if (!o->counts) {
            continue;
        }
        struct str label = arena_concat(&j->memory, str_from(kinds[o->kind].label), o->name);
        controller_metrics_shuffle(j->s->metrics, label, buf_str(&j->profile),
                                   j->counts ? o->pods : 0,
                                   j->counts ? o->pods * owner_share(o) : 0);
    }
    count_end(j);
    count_free(j);
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static void count_on_pods(void *ctx, const struct api_reply *reply)
{
    struct count_job *j = ctx;
    struct err err = { 0 };
    j->call = NULL;
    enum retry_verdict verdict = client_note(j->s->client, API_GET, reply);
    if (verdict != RETRY_DONE) {
        client_explain(reply->status, reply->body, reply->err, &err);
    } else if (podlist_read(reply->body, count_visit, j, &j->page, &err) == 0) {
        if (j->page.n == 0) {
            j->stage = COUNT_OWNERS;
            j->at = j->owners;
        }
        count_step(j);
        return;
    }
    (void)err_wrap(&err, "list the pods of node '" STR_FMT "'", STR_ARG(buf_str(&j->node)));
    count_fail(j, verdict, &err);
}

static void count_list_pods(struct count_job *j)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    podlist_add_path(&path, &(struct podlist_request){ .node = buf_str(&j->node),
                                                       .page = buf_str(&j->page),
                                                       .cached = true });
    const struct api_request request = { .verb = API_GET, .path = buf_str(&path) };
    j->call = api_send(j->s->client->api, &request, count_on_pods, j);
}

static void count_on_owner(void *ctx, const struct api_reply *reply)
{
    struct count_job *j = ctx;
    struct pod_shuffle *s = j->s;
    struct owner *o = j->at;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *object = NULL;
    struct err err = { 0 };
    j->call = NULL;
    enum retry_verdict verdict = client_note(s->client, API_GET, reply);
    int r = 0;
    if (verdict == RETRY_DONE) {
        r = json_parse(reply->body, JSON_GO, &tmp, &object, &err);
    } else if (verdict != RETRY_ABSENT) {
        client_explain(reply->status, reply->body, reply->err, &err);
        r = -1;
    }
    if (r == 0) {
        shuffle_keep_owner(s, o, object);
        count_step(j);
        return;
    }
    (void)err_wrap(&err, "get %s '" STR_FMT "/" STR_FMT "'", kinds[o->kind].kind,
                   STR_ARG(o->namespace), STR_ARG(o->name));
    count_fail(j, verdict, &err);
}

static void count_get_owner(struct count_job *j)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/apis/apps/v1/namespaces/"));
    client_add_segment(&path, j->at->namespace);
    buf_printf(&path, "/%s/", kinds[j->at->kind].plural);
    client_add_segment(&path, j->at->name);
    const struct api_request request = { .verb = API_GET, .path = buf_str(&path) };
    j->call = api_send(j->s->client->api, &request, count_on_owner, j);
}

/* What is known of the owner and not too old; NULL otherwise. */
static const struct owner_info *shuffle_find_owner(const struct pod_shuffle *s,
                                                   const struct owner *o)
{
    const struct owner_info *k = map_find(&s->owner_infos, o->key);
    return k != NULL && loop_now(s->loop) - k->at < SHUFFLE_OWNER_CACHE_TTL ? k : NULL;
}

static void count_step(struct count_job *j)
{
    ASSERT(j->stage != COUNT_QUEUED && j->call == NULL);
    if (j->stage == COUNT_PODS) {
        count_list_pods(j);
        return;
    }
    for (; j->at != NULL; j->at = j->at->next) {
        struct owner *o = j->at;
        if (!j->counts && o->kind != OWNER_REPLICA_SET) {
            o->counts = true; /* its name is all that is needed */
            continue;
        }
        const struct owner_info *k = shuffle_find_owner(j->s, o);
        if (k == NULL) {
            count_get_owner(j);
            return;
        }
        count_apply(j, o, k);
    }
    if (j->too_many_owners) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_LIMIT, "the node's pods have more than %u owners",
                      SHUFFLE_OWNERS_MAX);
        count_fail(j, RETRY_REFUSED, &err);
        return;
    }
    count_finish(j);
}
