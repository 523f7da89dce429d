/* Counts the serving pods of a node by the workload that owns them. */
#include "request/workload_losses.h"

#include "kube/client.h"

static const struct {
    struct str kind;
    bool counted; /* limits count it */
    enum target_type type;
} owners[] = {
    { STR_INIT("ReplicaSet"), false, TARGET_DEPLOYMENT },
    { STR_INIT("Deployment"), true, TARGET_DEPLOYMENT },
    { STR_INIT("StatefulSet"), true, TARGET_STATEFULSET },
    { STR_INIT("DaemonSet"), true, TARGET_DAEMONSET },
};

struct workload_loss {
    uint32_t owner; /* index of `owners` */
    struct str namespace;
    struct str name;
    struct str full_name; /* "namespace/name" */
    uint32_t pods;
    bool resolved; /* what stands behind a ReplicaSet is counted there */
};

void losses_init(struct workload_losses *l, uint64_t key0, uint64_t key1)
{
    *l = (struct workload_losses){ 0 };
    map_init(&l->by_owner, key0, key1);
}

void losses_done(struct workload_losses *l)
{
    map_done(&l->by_owner); /* the values are the arena's */
    arena_done(&l->memory);
}

/* Whoever controls the object, if it is of a kind that we know. */
static bool owner_of(const struct jval *object, uint32_t *ret_owner, struct str *ret_name)
{
    JVAL_EACH (jval_at(object, "metadata.ownerReferences"), reference) {
        struct str kind = jval_str(jval_get(reference, STR("kind")));
        if (!jval_bool(jval_get(reference, STR("controller")), false) ||
            !str_starts(jval_str(jval_get(reference, STR("apiVersion"))), STR("apps/"))) {
            continue;
        }
        for (uint32_t i = 0; i < ARRAY_LEN(owners); i++) {
            if (str_eq(kind, owners[i].kind)) {
                *ret_owner = i;
                *ret_name = jval_str(jval_get(reference, STR("name")));
                return ret_name->n > 0;
            }
        }
    }
    return false;
}

static void losses_add_pods(struct workload_losses *l, uint32_t owner, struct str namespace,
                            struct str name, uint32_t pods)
{
    struct str key = arena_printf(&l->memory, STR_FMT "/" STR_FMT "/" STR_FMT,
                                  STR_ARG(owners[owner].kind), STR_ARG(namespace), STR_ARG(name));
    struct workload_loss *loss = map_find(&l->by_owner, key);
    if (loss == NULL) {
        loss = ARENA_NEW(&l->memory, struct workload_loss);
        *loss = (struct workload_loss){
            .owner = owner,
            .namespace = arena_str(&l->memory, namespace),
            .name = arena_str(&l->memory, name),
            .full_name =
                arena_printf(&l->memory, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name)),
            .resolved = owners[owner].counted,
        };
        (void)map_put(&l->by_owner, key, loss); /* it was not there */
    }
    loss->pods += pods;
}

void losses_add(struct workload_losses *l, const struct jval *object, const struct drain_pod *pod)
{
    uint32_t owner = 0;
    struct str name = STR_NONE;
    /* One that does not serve, or is going by itself, is no loss: whoever owns it lacks it already.
     */
    if (!pod->ready || pod->finished || pod->deleting || !owner_of(object, &owner, &name)) {
        return;
    }
    losses_add_pods(l, owner, jval_str(jval_at(object, "metadata.namespace")), name, 1);
}

static struct workload_loss *losses_unresolved(const struct workload_losses *l)
{
    MAP_EACH (&l->by_owner, entry) {
        struct workload_loss *loss = map_item_value(entry);
        if (!loss->resolved) {
            return loss;
        }
    }
    return NULL;
}

bool losses_next_replicaset(const struct workload_losses *l, struct buf *path)
{
    const struct workload_loss *loss = losses_unresolved(l);
    if (loss == NULL) {
        return false;
    }
    buf_reset(path);
    buf_add(path, STR("/apis/apps/v1/namespaces/"));
    client_add_segment(path, loss->namespace);
    buf_add(path, STR("/replicasets/"));
    client_add_segment(path, loss->name);
    return true;
}

void losses_resolve(struct workload_losses *l, const struct jval *object)
{
    struct workload_loss *loss = losses_unresolved(l);
    uint32_t owner = 0;
    struct str name = STR_NONE;
    ASSERT(loss != NULL);
    loss->resolved = true;
    if (owner_of(object, &owner, &name) && owners[owner].counted) {
        losses_add_pods(l, owner, loss->namespace, name, loss->pods);
    }
}

const struct arbiter_loss *losses_list(const struct workload_losses *l, struct arena *out,
                                       uint32_t *ret_n)
{
    struct arbiter_loss *list = ARENA_ARRAY(out, struct arbiter_loss, map_count(&l->by_owner) + 1);
    uint32_t n = 0;
    MAP_EACH (&l->by_owner, entry) {
        const struct workload_loss *loss = map_item_value(entry);
        if (owners[loss->owner].counted) {
            list[n++] = (struct arbiter_loss){
                .type = owners[loss->owner].type,
                .target = loss->full_name,
                .pods = loss->pods,
            };
        }
    }
    *ret_n = n;
    return list;
}
