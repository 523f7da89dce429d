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
enum known_as {
    KNOWN_COUNTS,  /* its pods are counted under its own name */
    KNOWN_BEHIND,  /* they are counted under the Deployment behind it */
    KNOWN_NOBODYS, /* it is gone, or belongs to somebody whom we do not know */
};

/* Remembered from one node to the next: neighbours run pods of the same owners. */
struct known {
    enum known_as as;
    int64_t replicas;  /* KNOWN_COUNTS */
    struct buf behind; /* KNOWN_BEHIND: name of the Deployment, in the same namespace */
    usec_t at;         /* monotonic */
};

struct owner {
    enum owner_kind kind;
    struct str namespace;
    struct str name;
    struct str key; /* "kind/space/name" */
    uint32_t pods;
    bool counts;
    int64_t replicas;
    struct owner *next;
};

enum job_stage {
    JOB_QUEUED, /* until there is a place in flight */
    JOB_PODS,   /* its pods are listed, page by page */
    JOB_OWNERS, /* their owners are read, one after the other */
};

/* One node to be counted. */
struct job {
    struct shuffle *s;
    enum job_stage stage;
    struct list link; /* in `counts` or `flying` */
    struct buf node;
    struct buf profile;
    bool counts; /* otherwise it touches only */
    uint32_t tries;
    struct api_call *call;
    struct buf page;
    struct arena memory; /* of the owners */
    struct owner *owners;
    struct owner **tail;
    struct owner *at; /* JOB_OWNERS: the next to be read */
    uint32_t owner_n;
    bool crowded; /* there are more owners than are kept */
};

struct shuffle {
    struct loop *loop;
    struct client *client;
    struct gauges *gauges;
    struct log *log;
    struct list counts; /* go first: pods do not wait on the node to be counted */
    uint32_t counts_n;
    struct map touches; /* "profile/node" → struct job, the oldest first */
    usec_t touch_at;    /* when the next of them may go, monotonic */
    struct list flying;
    uint32_t in_flight;
    struct loop_timer pump;
    struct map known; /* "kind/space/name" → struct known */
    usec_t tell_at;
    uint64_t hidden;
};

static void shuffle_pump(void *ctx);
static void job_step(struct job *j);

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct shuffle *shuffle_new(struct client *client, struct gauges *gauges, struct log *log)
{
    struct shuffle *s = ALLOC_NEW(struct shuffle);
    s->loop = client->loop;
    s->client = client;
    s->gauges = gauges;
    s->log = log;
    list_init(&s->counts);
    list_init(&s->flying);
    loop_timer_init(&s->pump, s->loop, shuffle_pump, s);
    map_init(&s->touches, loop_random(s->loop), loop_random(s->loop));
    map_init(&s->known, loop_random(s->loop), loop_random(s->loop));
    return s;
}

static void job_free(struct job *j)
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

static void shuffle_forget_known(struct shuffle *s)
{
    MAP_EACH (&s->known, entry) {
        struct known *k = map_item_value(entry);
        (void)map_del(&s->known, map_item_name(entry)); /* it is `k` */
        buf_done(&k->behind);
        alloc_free(k);
    }
}

void shuffle_forget(struct shuffle *s)
{
    struct list *const lists[] = { &s->counts, &s->flying };
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        LIST_EACH (lists[i], link) {
            job_free(CONTAINER_OF(link, struct job, link));
        }
    }
    MAP_EACH (&s->touches, entry) {
        struct job *j = map_item_value(entry);
        (void)map_del(&s->touches, map_item_name(entry)); /* it is `j` */
        job_free(j);
    }
    s->counts_n = 0;
    s->in_flight = 0;
    loop_timer_stop(&s->pump);
    shuffle_forget_known(s);
}

void shuffle_free(struct shuffle *s)
{
    if (s == NULL) {
        return;
    }
    shuffle_forget(s);
    map_done(&s->touches);
    map_done(&s->known);
    loop_timer_done(&s->pump);
    alloc_free(s);
}

/* ── the queue ─────────────────────────────────────────────────────────────────────────────── */

static void shuffle_tell(struct shuffle *s, const struct job *j, const struct err *err)
{
    usec_t now = loop_now(s->loop);
    if (s->tell_at > now) {
        s->hidden++;
        return;
    }
    log_info(s->log,
             j->counts ? "failed to record shuffle metrics" : "failed to touch shuffle metrics",
             KV_STR("node", buf_str(&j->node)), KV_STR("profile", buf_str(&j->profile)),
             KV_ERR(err), KV_I64("suppressed", s->hidden));
    s->tell_at = now + SHUFFLE_TELL_EVERY;
    s->hidden = 0;
}

static struct str touch_key(struct arena *a, struct str node, struct str profile)
{
    return arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(profile), STR_ARG(node));
}

/* False when too many wait already. */
static bool job_queue(struct job *j)
{
    struct shuffle *s = j->s;
    uint32_t waiting = j->counts ? s->counts_n : map_count(&s->touches);
    if (waiting >= SHUFFLE_QUEUE_MAX) {
        return false;
    }
    j->stage = JOB_QUEUED;
    if (j->counts) {
        list_add(&s->counts, &j->link);
        s->counts_n++;
        loop_timer_pull(&s->pump, loop_now(s->loop));
        return true;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct job *older =
        map_put(&s->touches, touch_key(&tmp, buf_str(&j->node), buf_str(&j->profile)), j);
    if (older != NULL) {
        job_free(older);
    }
    loop_timer_pull(&s->pump, MAX(s->touch_at, loop_now(s->loop)));
    return true;
}

static void shuffle_add(struct shuffle *s, bool counts, struct str node, struct str profile)
{
    if (s->gauges->metrics == NULL) {
        return;
    }
    struct job *j = ALLOC_NEW(struct job);
    j->s = s;
    j->counts = counts;
    buf_add(&j->node, node);
    buf_add(&j->profile, profile);
    if (!job_queue(j)) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_LIMIT, "%u nodes wait to be counted already", SHUFFLE_QUEUE_MAX);
        shuffle_tell(s, j, &err);
        job_free(j);
    }
}

void shuffle_count(struct shuffle *s, struct str node, struct str profile)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct job *touch = map_del(&s->touches, touch_key(&tmp, node, profile));
    if (touch != NULL) {
        job_free(touch);
    }
    shuffle_add(s, /* counts= */ true, node, profile);
}

void shuffle_touch(struct shuffle *s, struct str node, struct str profile)
{
    shuffle_add(s, /* counts= */ false, node, profile);
}

static void job_begin(struct job *j)
{
    struct shuffle *s = j->s;
    list_add(&s->flying, &j->link);
    s->in_flight++;
    j->stage = JOB_PODS;
    j->tries++;
    buf_reset(&j->page);
    arena_reset(&j->memory);
    j->owners = NULL;
    j->tail = &j->owners;
    j->owner_n = 0;
    j->crowded = false;
    job_step(j);
}

/* NULL when nothing waits, or it is too early for what does. */
static struct job *shuffle_next(struct shuffle *s)
{
    if (s->counts_n > 0) {
        struct job *j = CONTAINER_OF(s->counts.next, struct job, link);
        list_del(&j->link);
        s->counts_n--;
        return j;
    }
    struct map_item *first = map_next(&s->touches, NULL);
    usec_t now = loop_now(s->loop);
    if (first == NULL) {
        return NULL;
    }
    if (s->touch_at > now) {
        loop_timer_pull(&s->pump, s->touch_at);
        return NULL;
    }
    s->touch_at = now + SHUFFLE_TOUCH_EVERY;
    return map_del(&s->touches, map_item_name(first));
}

static void shuffle_pump(void *ctx)
{
    struct shuffle *s = ctx;
    while (s->in_flight < SHUFFLE_FLIGHT_MAX) {
        if (!client_open(s->client)) {
            loop_timer_pull(&s->pump, client_open_at(s->client));
            return;
        }
        struct job *j = shuffle_next(s);
        if (j == NULL) {
            return;
        }
        job_begin(j);
    }
}

static void job_land(struct job *j)
{
    struct shuffle *s = j->s;
    list_del(&j->link);
    s->in_flight--;
    if (s->counts_n > 0 || map_count(&s->touches) > 0) {
        loop_timer_pull(&s->pump, loop_now(s->loop));
    } else if (s->in_flight == 0) {
        shuffle_forget_known(s);
    }
}

static void job_fail(struct job *j, enum retry_verdict verdict, const struct err *err)
{
    bool may_pass = verdict == RETRY_QUIET || verdict == RETRY_LATER || verdict == RETRY_RELIST;
    job_land(j);
    if (may_pass && j->tries < SHUFFLE_TRIES_MAX && job_queue(j)) {
        return;
    }
    shuffle_tell(j->s, j, err);
    job_free(j);
}

/* ── owners ────────────────────────────────────────────────────────────────────────────────── */

/* The owner of that name among the job's, made at first sight; NULL when there are too many. */
static struct owner *job_owner(struct job *j, enum owner_kind kind, struct str namespace,
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
        j->crowded = true;
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
    /* Other groups have a StatefulSet too. */
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

static bool job_visit(void *ctx, const struct jval *pod)
{
    struct job *j = ctx;
    struct str namespace = jval_str(jval_at(pod, "metadata.namespace"));
    const struct jval *references = jval_at(pod, "metadata.ownerReferences");
    JVAL_EACH (references, reference) {
        enum owner_kind kind;
        struct str name = jval_str(jval_get(reference, STR("name")));
        if (!owner_find_kind(reference, &kind) || kind == OWNER_DEPLOYMENT || name.n == 0) {
            continue; /* no Deployment owns pods itself */
        }
        struct owner *o = job_owner(j, kind, namespace, name);
        if (o == NULL) {
            return false;
        }
        o->pods++;
    }
    return true;
}

/* Who stands behind a ReplicaSet. */
static void known_read_replica_set(const struct jval *object, struct known *ret)
{
    const struct jval *references = jval_at(object, "metadata.ownerReferences");
    ret->as = KNOWN_COUNTS;
    JVAL_EACH (references, reference) {
        enum owner_kind kind;
        ret->as = KNOWN_NOBODYS;
        if (owner_find_kind(reference, &kind) && kind == OWNER_DEPLOYMENT) {
            ret->as = KNOWN_BEHIND;
            buf_reset(&ret->behind);
            buf_add(&ret->behind, jval_str(jval_get(reference, STR("name"))));
            return;
        }
    }
}

static void known_read(const struct jval *object, enum owner_kind kind, struct known *ret)
{
    bool daemon = kind == OWNER_DAEMON_SET;
    ret->as = KNOWN_COUNTS;
    if (kind == OWNER_REPLICA_SET) {
        known_read_replica_set(object, ret);
    }
    if (!jval_i64(jval_at(object, daemon ? "status.numberReady" : "spec.replicas"),
                  &ret->replicas)) {
        ret->replicas = daemon ? 0 : 1; /* as the API's defaults are */
    }
}

/* `object` is NULL when the owner is gone. */
static void shuffle_learn(struct shuffle *s, const struct owner *o, const struct jval *object)
{
    struct known *k = map_find(&s->known, o->key);
    if (k == NULL) {
        if (map_count(&s->known) >= SHUFFLE_KNOWN_MAX) {
            shuffle_forget_known(s);
        }
        k = ALLOC_NEW(struct known);
        (void)map_put(&s->known, o->key, k); /* nothing was there */
    }
    k->at = loop_now(s->loop);
    k->as = KNOWN_NOBODYS;
    if (object != NULL) {
        known_read(object, o->kind, k);
    }
}

static void job_apply(struct job *j, struct owner *o, const struct known *k)
{
    if (k->as == KNOWN_COUNTS) {
        o->counts = true;
        o->replicas = k->replicas;
    } else if (k->as == KNOWN_BEHIND) {
        struct owner *deployment =
            job_owner(j, OWNER_DEPLOYMENT, o->namespace, buf_str(&k->behind));
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

static void job_finish(struct job *j)
{
    for (const struct owner *o = j->owners; o != NULL; o = o->next) {
        if (!o->counts) {
            continue;
        }
        struct str label = arena_concat(&j->memory, str_from(kinds[o->kind].label), o->name);
        gauges_shuffle(j->s->gauges, label, buf_str(&j->profile), j->counts ? o->pods : 0,
                       j->counts ? o->pods * owner_share(o) : 0);
    }
    job_land(j);
    job_free(j);
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static void job_on_pods(void *ctx, const struct api_reply *reply)
{
    struct job *j = ctx;
    struct err err = { 0 };
    j->call = NULL;
    enum retry_verdict verdict = client_note(j->s->client, API_GET, reply);
    if (verdict != RETRY_DONE) {
        client_explain(reply->status, reply->body, reply->err, &err);
    } else if (podlist_read(reply->body, job_visit, j, &j->page, &err) == 0) {
        if (j->page.n == 0) {
            j->stage = JOB_OWNERS;
            j->at = j->owners;
        }
        job_step(j);
        return;
    }
    (void)err_wrap(&err, "list the pods of node '" STR_FMT "'", STR_ARG(buf_str(&j->node)));
    job_fail(j, verdict, &err);
}

static void job_list_pods(struct job *j)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    podlist_add_path(&path, &(struct podlist_request){ .node = buf_str(&j->node),
                                                       .page = buf_str(&j->page),
                                                       .cached = true });
    const struct api_request request = { .verb = API_GET, .path = buf_str(&path) };
    j->call = api_send(j->s->client->api, &request, job_on_pods, j);
}

static void job_on_owner(void *ctx, const struct api_reply *reply)
{
    struct job *j = ctx;
    struct shuffle *s = j->s;
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
        shuffle_learn(s, o, object);
        job_step(j);
        return;
    }
    (void)err_wrap(&err, "get %s '" STR_FMT "/" STR_FMT "'", kinds[o->kind].kind,
                   STR_ARG(o->namespace), STR_ARG(o->name));
    job_fail(j, verdict, &err);
}

static void job_get_owner(struct job *j)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/apis/apps/v1/namespaces/"));
    client_add_segment(&path, j->at->namespace);
    buf_printf(&path, "/%s/", kinds[j->at->kind].plural);
    client_add_segment(&path, j->at->name);
    const struct api_request request = { .verb = API_GET, .path = buf_str(&path) };
    j->call = api_send(j->s->client->api, &request, job_on_owner, j);
}

/* What is known of the owner and not too old; NULL otherwise. */
static const struct known *shuffle_find(const struct shuffle *s, const struct owner *o)
{
    const struct known *k = map_find(&s->known, o->key);
    return k != NULL && loop_now(s->loop) - k->at < SHUFFLE_KNOWN_FOR ? k : NULL;
}

static void job_step(struct job *j)
{
    ASSERT(j->stage != JOB_QUEUED && j->call == NULL);
    if (j->stage == JOB_PODS) {
        job_list_pods(j);
        return;
    }
    for (; j->at != NULL; j->at = j->at->next) {
        struct owner *o = j->at;
        if (!j->counts && o->kind != OWNER_REPLICA_SET) {
            o->counts = true; /* its name is all that is needed */
            continue;
        }
        const struct known *k = shuffle_find(j->s, o);
        if (k == NULL) {
            job_get_owner(j);
            return;
        }
        job_apply(j, o, k);
    }
    if (j->crowded) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_LIMIT, "the node's pods have more than %u owners",
                      SHUFFLE_OWNERS_MAX);
        job_fail(j, RETRY_REFUSED, &err);
        return;
    }
    job_finish(j);
}
