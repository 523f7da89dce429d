/* The safety checks: quorum from what is known; budgets, pods and their owners by live reads. */
#include "request/safety_checks.h"

#include "base/alloc.h"
#include "drain/pdb.h"
#include "drain/pod_policy.h"
#include "kinds/keys.h"
#include "kube/node.h"
#include "kube/podlist.h"
#include "request/workload_losses.h"

#define PDBS_PATH STR("/apis/policy/v1/poddisruptionbudgets")
#define PDBS_PAGE 500
#define SAFETY_NAMES_MAX 5u    /* pods that are named */
#define SAFETY_PDBS_MAX 20000u /* budgets of a cluster */
#define CONTROL_PLANE STR("node-role.kubernetes.io/control-plane")

struct safety_checks {
    struct safety_spec spec;
    void (*on_done)(void *ctx, const struct err *err);
    void *ctx;
    struct loop_timer timer; /* answers from the loop, never from within safety_new */
    struct api_call *call;
    struct arena memory;
    struct pdb **pdbs;
    uint32_t pdb_n;
    uint32_t pdb_cap;
    struct buf page;
    struct buf path;
    struct buf blocked; /* pods, and the budgets that hold them */
    uint32_t blocked_n;
    struct drain_rules drain_rules; /* of the node; empty where it has none that can be read */
    struct workload_losses losses;
    uint32_t refused_check; /* SAFETY_…: the check that did, if it is made of what is known here */
    bool failed;
    struct err err;
};

static void safety_end(struct safety_checks *s)
{
    loop_timer_set(&s->timer, loop_now(s->spec.client->loop));
}

static void safety_fail(struct safety_checks *s)
{
    s->failed = true;
    safety_end(s);
}

static void safety_on_timer(void *ctx)
{
    struct safety_checks *s = ctx;
    s->on_done(s->ctx, s->failed ? &s->err : NULL);
}

/* ── ControlPlaneQuorum ────────────────────────────────────────────────────────────────────── */

struct held_nodes {
    struct map names; /* nodes that somebody holds */
};

static bool held_nodes_visit(void *ctx, const struct arbiter_limit *limit)
{
    struct held_nodes *h = ctx;
    for (uint32_t i = 0; limit->type == TARGET_NODE && i < limit->granted; i++) {
        if (limit->holders[i].target.n > 0) {
            (void)map_put(&h->names, limit->holders[i].target, h); /* once is enough */
        }
    }
    return true;
}

static int safety_check_quorum(const struct safety_checks *s, struct err *err)
{
    const struct store_item *this_node = store_find(s->spec.nodes, s->spec.node);
    if (this_node == NULL || node_label(this_node->object, CONTROL_PLANE).p == NULL) {
        return 0;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct held_nodes h = { 0 };
    arbiter_each_limit(s->spec.arbiter, &tmp, held_nodes_visit, &h);
    uint32_t n = 0;
    uint32_t away = 0;
    MAP_EACH (&s->spec.nodes->items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct node *node = item->object;
        if (node_label(node, CONTROL_PLANE).p == NULL) {
            continue;
        }
        n++;
        away += item == this_node || !node->ready || node->unschedulable || node->deleting ||
                        map_find(&h.names, item->name) != NULL
                    ? 1
                    : 0;
    }
    map_done(&h.names);
    if (away > (n - 1) / 2) {
        return err_set(err, ERR_BUSY,
                       "ControlPlaneQuorum: %u of %u control-plane nodes would be away, at most %u "
                       "may be",
                       away, n, (n - 1) / 2);
    }
    return 0;
}

/* ── PodDisruptionBudgets ──────────────────────────────────────────────────────────────────── */

static void safety_get(struct safety_checks *s, api_on_reply on_reply)
{
    s->call =
        api_send(s->spec.client->api,
                 &(struct api_request){ .verb = API_GET, .path = buf_str(&s->path) }, on_reply, s);
}

/* The answer as a body, or the end of it. */
static bool safety_reply_ok(struct safety_checks *s, const struct api_reply *reply)
{
    s->call = NULL;
    if (client_note(s->spec.client, API_GET, reply) == RETRY_DONE) {
        return true;
    }
    client_explain(reply->status, reply->body, reply->err, &s->err);
    (void)err_wrap(&s->err, "the safety checks cannot be made");
    safety_fail(s);
    return false;
}

static void safety_add_blocked(struct safety_checks *s, const char *what, struct str namespace,
                               struct str pod)
{
    if (s->blocked_n++ < SAFETY_NAMES_MAX) {
        buf_printf(&s->blocked, "%s" STR_FMT "/" STR_FMT " (%s)", s->blocked.n > 0 ? ", " : "",
                   STR_ARG(namespace), STR_ARG(pod), what);
    }
}

/* Names the pod if it would have to go and a budget refuses that. A rule that asks for the labels
 * of namespaces, which are not known here, spares no pod. */
static void safety_check_pdbs(struct safety_checks *s, struct str namespace, struct str name,
                              const struct drain_pod *pod)
{
    const struct pod_policy policy = { .flags = DRAIN_USE_POD_LABEL, .rules = &s->drain_rules };
    bool stays = pod_policy_decide(&policy, pod, NULL).fate == POD_FATE_STAYS;
    if (stays || pod->finished || pod->deleting || pod->pending) {
        return;
    }
    for (uint32_t i = 0; i < s->pdb_n; i++) {
        const struct pdb *b = s->pdbs[i];
        if (b->allowed <= 0 && pdb_covers(b, namespace, pod) && !pdb_exempts(b, pod)) {
            safety_add_blocked(s, "its budget allows no disruption", namespace, name);
            return;
        }
    }
}

static bool safety_visit_pod(void *ctx, const struct jval *object)
{
    struct safety_checks *s = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    void *projection = NULL;
    struct str namespace = jval_str(jval_at(object, "metadata.namespace"));
    struct str name = jval_str(jval_at(object, "metadata.name"));
    if (drain_pod_kind.project(NULL, object, &tmp, &projection, &ignored) < 0) {
        safety_add_blocked(s, "unreadable", namespace,
                           name); /* what is not understood is not safe */
        return true;
    }
    safety_check_pdbs(s, namespace, name, projection);
    if ((s->spec.checks & SAFETY_WORKLOADS) != 0) {
        losses_add(&s->losses, object, projection);
    }
    return true;
}

/* ── WorkloadLimits ────────────────────────────────────────────────────────────────────────── */

static int safety_check_losses(const struct safety_checks *s, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    uint32_t n = 0;
    const struct arbiter_loss *list = losses_list(&s->losses, &tmp, &n);
    return arbiter_check_losses(s->spec.arbiter, list, n, err) < 0 ? err_wrap(err, "WorkloadLimits")
                                                                   : 0;
}

static void safety_finish_losses(struct safety_checks *s)
{
    if (safety_check_losses(s, &s->err) < 0) {
        s->refused_check = SAFETY_WORKLOADS;
        safety_fail(s);
    } else {
        safety_end(s);
    }
}

static void safety_read_owners(struct safety_checks *s);

static void safety_on_owner(void *ctx, const struct api_reply *reply)
{
    struct safety_checks *s = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *object = NULL;
    if (reply->status == 404) {
        s->call = NULL;
        (void)client_note(s->spec.client, API_GET, reply); /* it is gone: counted, no more */
    } else if (!safety_reply_ok(s, reply)) {
        return;
    } else if (json_parse(reply->body, JSON_GO, &tmp, &object, &s->err) < 0) {
        (void)err_wrap(&s->err, "a ReplicaSet");
        safety_fail(s);
        return;
    }
    losses_resolve(&s->losses, object);
    safety_read_owners(s);
}

static void safety_read_owners(struct safety_checks *s)
{
    bool deployments = arbiter_has_limits(s->spec.arbiter, TARGET_DEPLOYMENT);
    if (deployments && losses_next_replicaset(&s->losses, &s->path)) {
        safety_get(s, safety_on_owner);
    } else {
        safety_finish_losses(s);
    }
}

static void safety_read_pods(struct safety_checks *s);

static void safety_on_pods(void *ctx, const struct api_reply *reply)
{
    struct safety_checks *s = ctx;
    if (!safety_reply_ok(s, reply)) {
        return;
    }
    if (podlist_read(reply->body, safety_visit_pod, s, &s->page, &s->err) < 0) {
        safety_fail(s);
    } else if (s->page.n > 0) {
        safety_read_pods(s);
    } else if (s->blocked_n > 0) {
        (void)err_set(&s->err, ERR_BUSY, "PDBWouldBlock: " STR_FMT "%s",
                      STR_ARG(buf_str(&s->blocked)), s->blocked_n > SAFETY_NAMES_MAX ? ", …" : "");
        safety_fail(s);
    } else {
        safety_read_owners(s);
    }
}

static void safety_read_pods(struct safety_checks *s)
{
    buf_reset(&s->path);
    podlist_add_path(&s->path,
                     &(struct podlist_request){ .node = s->spec.node, .page = buf_str(&s->page) });
    safety_get(s, safety_on_pods);
}

static int safety_parse_pdbs(struct safety_checks *s, struct str body)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *list = NULL;
    if (json_parse(body, JSON_GO, &tmp, &list, &s->err) < 0) {
        return err_wrap(&s->err, "the list of budgets");
    }
    const struct jval *items = jval_get(list, STR("items"));
    if (jval_kind(items) != JARR) {
        return err_set(&s->err, ERR_PROTO, "a list of budgets without items");
    }
    JVAL_EACH (items, item) {
        void *pdb = NULL;
        if (s->pdb_n >= SAFETY_PDBS_MAX) {
            return err_set(&s->err, ERR_LIMIT, "more than %u budgets", SAFETY_PDBS_MAX);
        }
        if (pdb_kind.project(NULL, item, &s->memory, &pdb, &s->err) < 0) {
            return err_wrap(&s->err, "a budget");
        }
        ARENA_GROW(&s->memory, s->pdbs, s->pdb_n, s->pdb_cap);
        s->pdbs[s->pdb_n++] = pdb;
    }
    buf_reset(&s->page);
    buf_add(&s->page, jval_str(jval_at(list, "metadata.continue")));
    return 0;
}

static void safety_read_pdbs(struct safety_checks *s);

static void safety_on_pdbs(void *ctx, const struct api_reply *reply)
{
    struct safety_checks *s = ctx;
    if (!safety_reply_ok(s, reply)) {
        return;
    }
    if (safety_parse_pdbs(s, reply->body) < 0) {
        safety_fail(s);
    } else if (s->page.n > 0) {
        safety_read_pdbs(s);
    } else {
        safety_read_pods(s);
    }
}

static void safety_read_pdbs(struct safety_checks *s)
{
    buf_reset(&s->path);
    buf_add(&s->path, PDBS_PATH);
    buf_printf(&s->path, "?limit=%d", PDBS_PAGE);
    if (s->page.n > 0) {
        buf_add(&s->path, STR("&continue="));
        client_add_segment(&s->path, buf_str(&s->page));
    }
    safety_get(s, safety_on_pdbs);
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void safety_read_drain_rules(struct safety_checks *s)
{
    const struct store_item *item = store_find(s->spec.nodes, s->spec.node);
    struct str text = item != NULL ? node_annotation(item->object, KEY_DRAIN_RULES) : STR_NONE;
    struct err ignored = { 0 };
    if (text.p != NULL && drain_rules_parse(text, &s->memory, &s->drain_rules, &ignored) < 0) {
        s->drain_rules = (struct drain_rules){ 0 }; /* rules that cannot be read spare no pod */
    }
}

struct safety_checks *safety_new(const struct safety_spec *spec,
                                 void (*on_done)(void *ctx, const struct err *err), void *ctx)
{
    struct safety_checks *s = ALLOC_NEW(struct safety_checks);
    s->spec = *spec;
    s->spec.node = arena_str(&s->memory, spec->node);
    s->on_done = on_done;
    s->ctx = ctx;
    safety_read_drain_rules(s);
    loop_timer_init(&s->timer, spec->client->loop, safety_on_timer, s);
    losses_init(&s->losses, loop_random(spec->client->loop), loop_random(spec->client->loop));
    if ((spec->checks & SAFETY_QUORUM) != 0 && safety_check_quorum(s, &s->err) < 0) {
        s->refused_check = SAFETY_QUORUM;
        safety_fail(s);
    } else if ((spec->checks & SAFETY_BUDGETS) != 0) {
        safety_read_pdbs(s);
    } else if ((spec->checks & SAFETY_WORKLOADS) != 0) {
        safety_read_pods(s);
    } else {
        safety_end(s);
    }
    return s;
}

bool safety_would_pass_now(const struct safety_checks *s)
{
    struct err ignored = { 0 };
    switch (s->refused_check) {
    case SAFETY_QUORUM:
        return safety_check_quorum(s, &ignored) == 0;
    case SAFETY_WORKLOADS:
        return safety_check_losses(s, &ignored) == 0;
    default:
        return false;
    }
}

void safety_free(struct safety_checks *s)
{
    if (s == NULL) {
        return;
    }
    if (s->call != NULL) {
        api_cancel(s->spec.client->api, s->call);
    }
    loop_timer_done(&s->timer);
    buf_done(&s->page);
    buf_done(&s->path);
    buf_done(&s->blocked);
    losses_done(&s->losses);
    arena_done(&s->memory);
    alloc_free(s);
}
