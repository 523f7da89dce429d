#include "sandbox/world/world_internal.h"

#include "base/duration.h"
#include "base/timestamp.h"

const struct world_kind_info world_kinds[WORLD_KINDS] = {
    [WORLD_NODE] = { STR_INIT(""), STR_INIT("v1"), STR_INIT("nodes"), STR_INIT("Node"),
                     world_node_reconcile },
    [WORLD_NAMESPACE] = { STR_INIT(""), STR_INIT("v1"), STR_INIT("namespaces"),
                          STR_INIT("Namespace"), namespace_reconcile },
    [WORLD_PDB] = { STR_INIT("policy"), STR_INIT("v1"), STR_INIT("poddisruptionbudgets"),
                    STR_INIT("PodDisruptionBudget"), pdb_reconcile },
    [WORLD_DEPLOYMENT] = { STR_INIT("apps"), STR_INIT("v1"), STR_INIT("deployments"),
                           STR_INIT("Deployment"), deployment_reconcile },
    [WORLD_REPLICASET] = { STR_INIT("apps"), STR_INIT("v1"), STR_INIT("replicasets"),
                           STR_INIT("ReplicaSet"), replicaset_reconcile },
    [WORLD_STATEFULSET] = { STR_INIT("apps"), STR_INIT("v1"), STR_INIT("statefulsets"),
                            STR_INIT("StatefulSet"), statefulset_reconcile },
    [WORLD_DAEMONSET] = { STR_INIT("apps"), STR_INIT("v1"), STR_INIT("daemonsets"),
                          STR_INIT("DaemonSet"), daemonset_reconcile },
    [WORLD_CRONJOB] = { STR_INIT("batch"), STR_INIT("v1"), STR_INIT("cronjobs"),
                        STR_INIT("CronJob"), cronjob_reconcile },
    [WORLD_JOB] = { STR_INIT("batch"), STR_INIT("v1"), STR_INIT("jobs"), STR_INIT("Job"),
                    job_reconcile },
    [WORLD_POD] = { STR_INIT(""), STR_INIT("v1"), STR_INIT("pods"), STR_INIT("Pod"),
                    world_pod_reconcile },
};

const struct jval *world_object_get(struct world_object *t)
{
    const struct world_kind_info *type = &world_kinds[t->kind];
    return t->gone ? NULL
                   : apiserver_find(t->w->server, type->group, type->plural, t->namespace, t->name);
}

void world_mark_dirty(struct world_object *t)
{
    if (t->gone || list_linked(&t->dirty)) {
        return;
    }
    list_add(&t->w->dirty, &t->dirty);
    if (!t->w->turn.armed) {
        loop_timer_set(&t->w->turn, loop_now(t->w->loop) + t->w->config.react);
    }
}

static void world_object_on_timer(void *ctx)
{
    world_mark_dirty(ctx);
}

void world_mark_dirty_at(struct world_object *t, usec_t at)
{
    if (!t->gone) {
        loop_timer_pull(&t->timer, at);
    }
}

struct world_object *world_find(struct world *w, enum world_kind kind, struct str key)
{
    return map_find(&w->objects[kind], key);
}

struct world_object *world_object_first(struct world *w, enum world_kind kind)
{
    struct list *head = &w->of_kind[kind];
    return list_empty(head) ? NULL : WORLD_OBJECT_OF(head->next, of_kind);
}

struct world_object *world_object_next(struct world_object *t)
{
    struct list *head = &t->w->of_kind[t->kind];
    return t->of_kind.next == head ? NULL : WORLD_OBJECT_OF(t->of_kind.next, of_kind);
}

struct str world_object_url(struct world_object *t, const char *subresource)
{
    const struct world_kind_info *type = &world_kinds[t->kind];
    struct str root = type->group.n == 0 ? STR("/api") : STR("/apis/");
    struct str within = t->namespace.n == 0 ? STR("") : STR("/namespaces/");
    return arena_printf(
        &t->w->tmp, STR_FMT STR_FMT "/" STR_FMT STR_FMT STR_FMT "/" STR_FMT "/" STR_FMT "%s",
        STR_ARG(root), STR_ARG(type->group), STR_ARG(type->version), STR_ARG(within),
        STR_ARG(t->namespace), STR_ARG(type->plural), STR_ARG(t->name), subresource);
}

int world_send(struct world *w, const char *who, const char *method, struct str path,
               struct str body, struct str *ret_body)
{
    bool patch = method[0] == 'P' && method[1] == 'A';
    struct apiserver_request request = {
        .method = str_from(method),
        .path = path,
        .content_type = patch ? STR("application/merge-patch+json") : STR("application/json"),
        .user_agent = str_from(who),
        .body = body,
    };
    struct apiserver_reply reply;
    apiserver_handle(w->server, &request, &w->tmp, &reply);
    ASSERT(reply.watch == NULL);
    w->requests++;
    if (ret_body != NULL) {
        *ret_body = reply.body;
    }
    return reply.status;
}

int world_patch(struct world *w, const char *who, struct str path, struct str body)
{
    return world_send(w, who, "PATCH", path, body, NULL);
}

/* Whether merging `want` into `have` would change nothing. */
static bool world_status_contains(const struct jval *have, const struct tree *want)
{
    if (tree_kind(want) == JOBJ && want->n > 0) {
        TREE_EACH (want, member) {
            const struct jval *v = jval_get(have, member->key);
            if (tree_kind(member) == JNULL ? v != NULL : !world_status_contains(v, member)) {
                return false;
            }
        }
        return true;
    }
    if (have == NULL || jval_kind(have) != tree_kind(want)) {
        return false;
    }
    switch (tree_kind(want)) {
    case JARR: {
        uint32_t i = 0;
        if (have->n != want->n) {
            return false;
        }
        JVAL_EACH (have, item) {
            if (!world_status_contains(item, tree_index(want, i++))) {
                return false;
            }
        }
        return true;
    }
    case JSTR:
        return str_eq(jval_str(have), want->text);
    case JNUM:
        return str_eq((struct str){ have->p, have->n }, want->text);
    case JBOOL:
        return jval_bool(have, false) == want->truth;
    case JOBJ:
    case JNULL:
        break;
    }
    return true;
}

void world_object_set_status(struct world_object *t, const char *who, struct tree *status)
{
    struct world *w = t->w;
    const struct jval *object = world_object_get(t);
    if (object == NULL || world_status_contains(jval_get(object, STR("status")), status)) {
        return;
    }
    struct tree *patch = tree_obj(&w->tmp);
    tree_set(&w->tmp, patch, STR("status"), status);
    (void)world_patch(w, who, world_object_url(t, "/status"), tree_json(&w->tmp, patch));
}

void world_object_delete(struct world_object *t, const char *who, int64_t grace)
{
    struct world *w = t->w;
    struct str body = grace < 0
                          ? arena_printf(&w->tmp, "{\"preconditions\":{\"uid\":\"" STR_FMT "\"}}",
                                         STR_ARG(t->uid))
                          : arena_printf(&w->tmp,
                                         "{\"gracePeriodSeconds\":%lld,"
                                         "\"preconditions\":{\"uid\":\"" STR_FMT "\"}}",
                                         (long long)grace, STR_ARG(t->uid));
    (void)world_send(w, who, "DELETE", world_object_url(t, ""), body, NULL);
}

struct str world_time(struct world *w)
{
    char text[TIMESTAMP_TEXT_MAX];
    return arena_str(&w->tmp, timestamp_print_seconds(loop_wall(w->loop), text));
}

int64_t jval_number(const struct jval *v, const char *path, int64_t otherwise)
{
    int64_t n;
    return jval_i64(jval_at(v, path), &n) ? n : otherwise;
}

usec_t jval_duration_at(const struct jval *object, const char *annotation, usec_t otherwise)
{
    struct err err = { 0 };
    int64_t ns;
    struct str text =
        jval_str(jval_get(jval_at(object, "metadata.annotations"), str_from(annotation)));
    /* An annotation that does not parse counts as absent. */
    return text.n > 0 && duration_parse(text, &ns, &err) == 0 && ns >= 0 ? ns / 1000 : otherwise;
}

int64_t jval_int_or_percent(const struct jval *v, int64_t whole, bool round_up, int64_t otherwise)
{
    int64_t n;
    struct str digits;
    uint32_t percent;
    if (jval_i64(v, &n)) {
        return n;
    }
    if (str_cut_suffix(jval_str(v), STR("%"), &digits) && str_to_u32(digits, &percent)) {
        return (whole * percent + (round_up ? 99 : 0)) / 100;
    }
    return otherwise;
}

struct tree *world_condition(struct world *w, const struct jval *old_list, const char *type,
                             const char *status, const char *reason, const char *message)
{
    struct str since = world_time(w);
    JVAL_EACH (old_list, c) {
        if (str_eq(jval_str(jval_at(c, "type")), str_from(type)) &&
            str_eq(jval_str(jval_at(c, "status")), str_from(status))) {
            since = jval_str(jval_at(c, "lastTransitionTime"));
        }
    }
    struct tree *t = tree_obj(&w->tmp);
    tree_set(&w->tmp, t, STR("type"), tree_str(&w->tmp, str_from(type)));
    tree_set(&w->tmp, t, STR("status"), tree_str(&w->tmp, str_from(status)));
    tree_set(&w->tmp, t, STR("lastTransitionTime"), tree_str(&w->tmp, since));
    if (reason[0] != 0) {
        tree_set(&w->tmp, t, STR("reason"), tree_str(&w->tmp, str_from(reason)));
        tree_set(&w->tmp, t, STR("message"), tree_str(&w->tmp, str_from(message)));
    }
    return t;
}

static void world_object_free(struct world_object *t)
{
    list_del(&t->dirty);
    loop_timer_done(&t->timer);
    loop_timer_done(&t->heartbeat);
    arena_done(&t->memory);
    alloc_free(t);
}

static struct str world_object_owner_uid(const struct jval *object)
{
    JVAL_EACH (jval_at(object, "metadata.ownerReferences"), ref) {
        if (jval_bool(jval_at(ref, "controller"), false)) {
            return jval_str(jval_at(ref, "uid"));
        }
    }
    return STR_NONE;
}

static void world_object_adopt(struct world_object *t, const struct jval *object)
{
    struct str uid = world_object_owner_uid(object);
    struct world_object *owner = uid.n > 0 ? map_find(&t->w->by_uid, uid) : NULL;
    if (owner == t->owner) {
        return;
    }
    list_del(&t->sibling);
    t->owner = owner;
    if (owner != NULL) {
        list_add(&owner->children, &t->sibling);
    }
}

static struct world_object *world_object_new(struct world *w, enum world_kind kind, struct str key,
                                             const struct jval *object)
{
    struct world_object *t = ALLOC_NEW(struct world_object);
    const struct jval *metadata = jval_get(object, STR("metadata"));
    t->w = w;
    t->kind = kind;
    t->memory.first = 256;
    t->key = arena_str(&t->memory, key);
    t->namespace = arena_str(&t->memory, jval_str(jval_get(metadata, STR("namespace"))));
    t->name = arena_str(&t->memory, jval_str(jval_get(metadata, STR("name"))));
    t->uid = arena_str(&t->memory, jval_str(jval_get(metadata, STR("uid"))));
    list_init(&t->children);
    list_init(&t->pods);
    loop_timer_init(&t->timer, w->loop, world_object_on_timer, t);
    list_add(&w->of_kind[kind], &t->of_kind);
    (void)map_put(&w->objects[kind], t->key, t); /* there was none */
    (void)map_put(&w->by_uid, t->uid, t);
    return t;
}

/* The object is gone; its record is freed at the end of the turn. */
static void world_object_remove(struct world_object *t)
{
    struct world *w = t->w;
    t->gone = true;
    (void)map_del(&w->objects[t->kind], t->key);
    (void)map_del(&w->by_uid, t->uid);
    LIST_EACH (&t->children, item) {
        list_del(item);
        WORLD_OBJECT_OF(item, sibling)->owner = NULL;
    }
    if (t->kind == WORLD_NODE) {
        world_node_gone(t);
    }
    if (t->kind == WORLD_POD) {
        world_pod_observe(t, NULL, NULL);
    }
    list_del(&t->sibling);
    list_del(&t->of_kind);
    list_del(&t->dirty);
    loop_timer_stop(&t->timer);
    loop_timer_stop(&t->heartbeat);
    list_add(&w->gone_objects, &t->dirty);
    if (!w->turn.armed) {
        loop_timer_set(&w->turn, loop_now(w->loop) + w->config.react);
    }
}

static bool world_kind_of(struct str group, struct str plural, enum world_kind *ret)
{
    for (int kind = 0; kind < WORLD_KINDS; kind++) {
        if (str_eq(world_kinds[kind].plural, plural) && str_eq(world_kinds[kind].group, group)) {
            *ret = (enum world_kind)kind;
            return true;
        }
    }
    return false;
}

static void world_observe(struct world *w, enum world_kind kind, struct str key,
                          const struct jval *old, const struct jval *now)
{
    struct world_object *t = world_find(w, kind, key);
    if (t != NULL && (now == NULL || !str_eq(t->uid, jval_str(jval_at(now, "metadata.uid"))))) {
        if (t->owner != NULL) {
            world_mark_dirty(t->owner);
        }
        world_object_remove(t);
        t = NULL;
    }
    if (now == NULL) {
        return;
    }
    if (t == NULL) {
        t = world_object_new(w, kind, key, now);
    }
    world_object_adopt(t, now);
    if (kind == WORLD_POD) {
        world_pod_observe(t, old, now);
    } else if (kind == WORLD_NODE) {
        world_node_observe(t, now);
    }
    if (t->owner != NULL) {
        world_mark_dirty(t->owner);
    }
    world_mark_dirty(t);
}

static void world_on_server_commit(void *ctx, const struct apiserver_commit *commit)
{
    struct world *w = ctx;
    enum world_kind kind;
    if (w->on_commit != NULL) {
        w->on_commit(w->on_commit_ctx, commit);
    }
    if (!world_kind_of(commit->group, commit->plural, &kind)) {
        return;
    }
    char text[512]; /* names and namespaces are at most 253 and 63 long */
    struct str key = commit->name;
    if (commit->namespace.n > 0) {
        int n = snprintf(text, sizeof(text), STR_FMT "/" STR_FMT, STR_ARG(commit->namespace),
                         STR_ARG(commit->name));
        ASSERT(n > 0 && (size_t)n < sizeof(text));
        key = (struct str){ text, (size_t)n };
    }
    world_observe(w, kind, key, commit->old, commit->now);
}

/* Only pods and nodes have something left to do once their deletion has begun. */
static void world_object_reconcile(struct world *w, struct world_object *t)
{
    const struct jval *object = world_object_get(t);
    bool deleting = jval_at(object, "metadata.deletionTimestamp") != NULL;
    if (object != NULL && (!deleting || t->kind == WORLD_POD || t->kind == WORLD_NODE)) {
        world_kinds[t->kind].reconcile(w, t, object);
    }
    arena_reset(&w->tmp);
}

static void world_reconcile(void *ctx)
{
    struct world *w = ctx;
    /* Objects that this turn's writes make dirty wait for the next turn. */
    struct list now;
    list_move(&now, &w->dirty);
    while (!list_empty(&now)) {
        struct world_object *t = WORLD_OBJECT_OF(now.next, dirty);
        list_del(&t->dirty);
        world_object_reconcile(w, t);
    }
    LIST_EACH (&w->gone_objects, item) {
        world_object_free(WORLD_OBJECT_OF(item, dirty));
    }
    if (!list_empty(&w->dirty)) {
        loop_timer_pull(&w->turn, loop_now(w->loop) + w->config.react);
    }
}

static void world_defaults(struct world_config *c)
{
    static const struct {
        size_t field;
        usec_t value;
    } spans[] = {
        { offsetof(struct world_config, react), MSECONDS(20) },
        { offsetof(struct world_config, start_min), SECONDS(1) },
        { offsetof(struct world_config, start_max), SECONDS(3) },
        { offsetof(struct world_config, stop), SECONDS(2) },
        { offsetof(struct world_config, run), SECONDS(20) },
        { offsetof(struct world_config, boot), SECONDS(30) },
        { offsetof(struct world_config, reboot), SECONDS(60) },
        { offsetof(struct world_config, unknown), SECONDS(40) },
    };
    for (size_t i = 0; i < ARRAY_LEN(spans); i++) {
        usec_t *field = (usec_t *)(void *)((char *)c + spans[i].field);
        if (*field == 0) {
            *field = spans[i].value;
        }
    }
    c->start_max = MAX(c->start_min, c->start_max);
    c->zones = c->zones == 0 ? 1 : MIN(c->zones, WORLD_ZONES_MAX);
    c->nodes = MIN(c->nodes, WORLD_NODES_MAX);
}

static void world_observe_existing(void *ctx, const struct jval *object)
{
    struct world *w = ctx;
    struct str kind = jval_str(jval_at(object, "kind"));
    struct str namespace = jval_str(jval_at(object, "metadata.namespace"));
    struct str name = jval_str(jval_at(object, "metadata.name"));
    for (int i = 0; i < WORLD_KINDS; i++) {
        if (str_eq(world_kinds[i].kind, kind)) {
            struct str key = namespace.n == 0 ? name
                                              : arena_printf(&w->tmp, STR_FMT "/" STR_FMT,
                                                             STR_ARG(namespace), STR_ARG(name));
            world_observe(w, (enum world_kind)i, key, NULL, object);
        }
    }
}

struct world *world_new(struct loop *loop, struct apiserver *server,
                        const struct world_config *config)
{
    struct world *w = ALLOC_NEW(struct world);
    w->loop = loop;
    w->server = server;
    w->config = *config;
    world_defaults(&w->config);
    rng_init(&w->rng, config->seed);
    list_init(&w->dirty);
    list_init(&w->gone_objects);
    list_init(&w->waiting);
    for (int i = 0; i < WORLD_KINDS; i++) {
        list_init(&w->of_kind[i]);
    }
    loop_timer_init(&w->turn, loop, world_reconcile, w);
    apiserver_on_commit(server, world_on_server_commit, w);
    /* Owners come before their dependents, because enum world_kind is in that order. */
    for (int i = 0; i < WORLD_KINDS; i++) {
        apiserver_each(server, world_kinds[i].group, world_kinds[i].plural, STR(""),
                       world_observe_existing, w);
    }
    for (uint32_t i = 0; i < w->config.nodes; i++) {
        struct err err = { 0 };
        usec_t boot = w->config.boot;
        w->config.boot = 0;
        int r = world_add_node(w, STR(""), &err);
        ASSERT(r == 0 || r == -ERR_CONFLICT); /* it may exist already */
        w->config.boot = boot;
        arena_reset(&w->tmp);
    }
    return w;
}

void world_free(struct world *w)
{
    if (w == NULL) {
        return;
    }
    apiserver_on_commit(w->server, NULL, NULL);
    for (int i = 0; i < WORLD_KINDS; i++) {
        MAP_EACH (&w->objects[i], item) {
            world_object_free(map_item_value(item));
        }
        map_done(&w->objects[i]);
    }
    LIST_EACH (&w->gone_objects, item) {
        world_object_free(WORLD_OBJECT_OF(item, dirty));
    }
    map_done(&w->by_uid);
    loop_timer_done(&w->turn);
    arena_done(&w->tmp);
    alloc_free(w);
}

void world_on_commit(struct world *w, apiserver_on_commit_fn fn, void *ctx)
{
    w->on_commit = fn;
    w->on_commit_ctx = ctx;
}

uint32_t world_node_count(const struct world *w)
{
    return map_count(&w->objects[WORLD_NODE]);
}

uint64_t world_requests_sent(const struct world *w)
{
    return w->requests;
}
