/*
 * The pods of nodes: whether any of them prefers operational nodes, watched for some nodes at a
 * time.
 */
#include "base/alloc.h"
#include "kube/reflector.h"
#include "profile/external_internal.h"

/* A matchExpression with exactly "maintenance-state In [operational]". */
static bool pod_term_prefers_operational(const struct jval *expression)
{
    const struct jval *values = jval_get(expression, STR("values"));
    return str_eq(jval_str(jval_get(expression, STR("key"))), LABEL_STATE) &&
           str_eq(jval_str(jval_get(expression, STR("operator"))), STR("In")) &&
           jval_kind(values) == JARR && values->n == 1 &&
           str_eq(jval_str(jval_first(values)), STR("operational"));
}

static bool pod_prefers_operational(const struct jval *pod)
{
    const struct jval *terms =
        jval_at(pod, "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution");
    JVAL_EACH (terms, term) {
        const struct jval *expressions = jval_at(term, "preference.matchExpressions");
        JVAL_EACH (expressions, expression) {
            if (pod_term_prefers_operational(expression)) {
                return true;
            }
        }
    }
    return false;
}

/* ── a watch ───────────────────────────────────────────────────────────────────────────────── */

struct pods {
    struct ask *ask;
    struct reflector reflector;
    struct arena memory; /* of the reflector's texts */
    struct map found;    /* those that prefer operational nodes, "namespace/name" */
    struct buf key;
    bool synced;
    bool cut;       /* it failed: nothing is known by it any more, and it is soon ended */
    bool quiet;     /* and that may pass soon */
    struct err err; /* and that is why */
    usec_t asked;
};

static void pods_put(struct ask *a, const struct facts_affinity *answer)
{
    if (facts_put_affinity(a->q->facts, a->node, answer)) {
        ask_note(a);
    }
}

static void pods_tell(const struct pods *p, bool live)
{
    struct ask *a = p->ask;
    pods_put(a, &(struct facts_affinity){
                    .known = true,
                    .has = map_count(&p->found) > 0,
                    .live = live,
                    .asked = live ? p->asked : loop_wall(a->q->loop),
                });
}

static void pods_on_list(void *ctx)
{
    struct pods *p = ctx;
    MAP_EACH (&p->found, item) {
        (void)map_del(&p->found, map_item_name(item)); /* the very item */
    }
}

static int pods_on_object(void *ctx, const struct jval *object, bool deleted, struct err *err)
{
    struct pods *p = ctx;
    struct str namespace = jval_str(jval_at(object, "metadata.namespace"));
    struct str name = jval_str(jval_at(object, "metadata.name"));
    if (namespace.n == 0 || name.n == 0) {
        return err_set(err, ERR_PROTO, "a pod without a name");
    }
    buf_reset(&p->key);
    buf_printf(&p->key, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name));
    if (!deleted && pod_prefers_operational(object)) {
        (void)map_put(&p->found, buf_str(&p->key), p); /* there is nothing more to keep */
    } else {
        (void)map_del(&p->found, buf_str(&p->key)); /* mostly it was not there */
    }
    if (p->synced && !p->cut) {
        pods_tell(p, /* live= */ true);
    }
    return 0;
}

static bool pods_on_synced(void *ctx, uint64_t version UNUSED)
{
    struct pods *p = ctx;
    struct ask *a = p->ask;
    if (p->cut) {
        return true;
    }
    ASSERT(a->state == ASK_FLYING && !p->synced);
    p->synced = true;
    a->state = ASK_WATCHING;
    a->short_ends = 0;
    a->q->flying[a->kind]--;
    a->q->no_streams = p->reflector.refused;
    backoff_reset(&a->backoff);
    pods_tell(p, /* live= */ true);
    inquiry_wake(a->q); /* the next may fly */
    return true;
}

/* What happened since is not known, so nobody goes by what was; only a new list can tell. Its own
 * line may be at hand, so it is ended from the loop. */
static void pods_on_error(void *ctx, const struct err *err, bool bad)
{
    struct pods *p = ctx;
    struct ask *a = p->ask;
    if (p->cut) {
        return;
    }
    p->cut = true;
    p->quiet = !bad && err->code != ERR_DENIED && err->code != ERR_INVALID;
    p->err = *err;
    (void)err_wrap(&p->err, "look at the pods of node '" STR_FMT "'", STR_ARG(a->node));
    if (facts_affinity(a->q->facts, a->node).error.n == 0) {
        pods_put(a, &(struct facts_affinity){ 0 });
    }
    inquiry_wake(a->q);
}

/* ── places ────────────────────────────────────────────────────────────────────────────────── */

void affinity_ask(struct ask *a)
{
    struct inquiry *q = a->q;
    struct pods *p = ALLOC_NEW(struct pods);
    ASSERT(a->pods == NULL && q->placed < FACTS_WATCHES_MAX);
    a->pods = p;
    list_add(&q->places, &a->place);
    q->placed++;
    p->ask = a;
    p->asked = a->asked;
    p->memory.first = 256;
    map_init(&p->found, loop_random(q->loop), loop_random(q->loop));
    buf_add(&p->key, STR("&fieldSelector=spec.nodeName%3D"));
    client_add_segment(&p->key, a->node);
    const struct reflector_config config = {
        .path = STR("/api/v1/pods"),
        .query = arena_str(&p->memory, buf_str(&p->key)),
        .on_list = pods_on_list,
        .on_object = pods_on_object,
        .on_synced = pods_on_synced,
        .on_error = pods_on_error,
        .ctx = p,
    };
    reflector_init(&p->reflector, q->config.client, &config);
    p->reflector.refused = q->no_streams;
    p->reflector.short_ends = a->short_ends;
    reflector_start(&p->reflector);
}

void affinity_leave(struct ask *a)
{
    struct pods *p = STEAL(a->pods);
    if (p == NULL) {
        return;
    }
    a->short_ends = p->reflector.short_ends;
    list_del(&a->place);
    a->q->placed--;
    reflector_done(&p->reflector);
    map_done(&p->found);
    buf_done(&p->key);
    arena_done(&p->memory);
    alloc_free(p);
}

void affinity_tell(struct ask *a, const struct err *err)
{
    struct facts_affinity answer = {
        .known = true,
        .error = str_from(err->msg),
        .asked = a->asked,
    };
    a->changed |= facts_put_affinity(a->q->facts, a->node, &answer);
}

void affinity_lose(struct inquiry *q)
{
    LIST_EACH (&q->places, link) {
        struct ask *a = CONTAINER_OF(link, struct ask, place);
        if (a->pods->cut) {
            struct err err = a->pods->err;
            ask_fail(a, a->pods->quiet, 0, &err);
        }
    }
}

/* Its answer is kept, as of now. */
static void affinity_park(struct ask *a)
{
    struct inquiry *q = a->q;
    pods_tell(a->pods, /* live= */ false);
    affinity_leave(a);
    a->state = ASK_PARKED;
    a->live = false;
    struct list *before = q->parked.prev;
    while (before != &q->parked && CONTAINER_OF(before, struct ask, link)->serial > a->serial) {
        before = before->prev;
    }
    list_add(before->next, &a->link); /* in front of the next one */
}

/* Who can be done without. Those that must be live are few and do not stay long: the oldest of them
 * has had most time to be of use. */
static struct ask *affinity_spare(struct inquiry *q)
{
    for (struct list *link = q->places.prev; link != &q->places; link = link->prev) {
        struct ask *a = CONTAINER_OF(link, struct ask, place);
        if (a->state == ASK_WATCHING && !a->pods->cut && !a->live) {
            return a;
        }
    }
    LIST_EACH (&q->places, link) {
        struct ask *a = CONTAINER_OF(link, struct ask, place);
        if (a->state == ASK_WATCHING && !a->pods->cut) {
            return a;
        }
    }
    return NULL;
}

struct ask *affinity_first(struct inquiry *q)
{
    struct list *queue = &q->queues[FACTS_AFFINITY];
    bool full = q->placed >= FACTS_WATCHES_MAX;
    if (list_empty(queue)) {
        return full || list_empty(&q->parked) ? NULL
                                              : CONTAINER_OF(q->parked.next, struct ask, link);
    }
    struct ask *spare = full ? affinity_spare(q) : NULL;
    if (full && spare == NULL) {
        return NULL; /* each of them will tell, or fail */
    }
    if (full) {
        affinity_park(spare);
    }
    return CONTAINER_OF(queue->next, struct ask, link);
}

/* A node about to go is not to wait until thousands have been looked at. */
static void affinity_hurry(struct ask *a)
{
    struct list *queue = &a->q->queues[FACTS_AFFINITY];
    list_del(&a->link);
    struct list *before = queue->next;
    while (before != queue && CONTAINER_OF(before, struct ask, link)->live) {
        before = before->next;
    }
    list_add(before, &a->link); /* in front of the first that can wait */
}

void affinity_want(struct ask *a, bool live)
{
    if (a->state == ASK_PARKED && live) {
        list_del(&a->link);
        a->state = ASK_IDLE;
    }
    ask_want(a); /* but for IDLE it is under way, or its answer is there */
    if (live && a->state == ASK_QUEUED && !a->live) {
        affinity_hurry(a);
    }
    a->live = a->live || live;
}

void affinity_check(const struct inquiry *q)
{
    uint32_t placed = 0;
    LIST_EACH (&q->places, link) {
        const struct ask *a = CONTAINER_OF(link, struct ask, place);
        ASSERT(a->state == ASK_FLYING || a->state == ASK_WATCHING);
        ASSERT(a->pods->synced == (a->state == ASK_WATCHING));
        placed++;
    }
    ASSERT(placed == q->placed);
    ASSERT(placed <= FACTS_WATCHES_MAX);
    uint64_t serial = 0;
    LIST_EACH (&q->parked, link) {
        const struct ask *a = CONTAINER_OF(link, struct ask, link);
        ASSERT(a->state == ASK_PARKED && a->pods == NULL);
        ASSERT(a->serial > serial);
        ASSERT(!facts_affinity(q->facts, a->node).live);
        serial = a->serial;
    }
}
