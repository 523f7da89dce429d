/*
 * in_flight: API requests of the bridge that are not answered yet, and what follows from the
 * answers.
 *
 * Patches of Machines, Nodes and hosts and writes of MaintenanceRequests all go through
 * in_flight_write and in_flight_on_reply. What a reply means for the next write is up to their
 * writers (kube/writer.h), one for each kind of object of a Machine; nothing is read before a write
 * is tried again, because the watch brings what is newer.
 * Live reads (in_flight_get) leave their reply to the caller.
 */
#include "base/alloc.h"
#include "bridge/bridge_internal.h"
#include "kinds/keys.h"

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static bool in_flight_is_limited(const struct in_flight *f)
{
    return f->kind == IN_FLIGHT_MACHINE || f->kind == IN_FLIGHT_HOST;
}

struct in_flight *in_flight_new(struct bridge *b, enum in_flight_kind kind,
                                struct machine_state *ms, struct cluster_state *cs, struct str name)
{
    struct in_flight *f = ALLOC_NEW(struct in_flight);
    f->bridge = b;
    f->kind = kind;
    f->machine = ms;
    f->cluster = cs;
    f->memory.first = 256;
    f->name = arena_str(&f->memory, name);
    list_add(&b->in_flight, &f->link);
    if (ms != NULL) {
        ASSERT(ms->in_flight[kind] == NULL);
        ms->in_flight[kind] = f;
    }
    b->patches_in_flight += in_flight_is_limited(f) ? 1 : 0;
    b->stats.in_flight++;
    return f;
}

void in_flight_free(struct in_flight *f)
{
    struct bridge *b = f->bridge;
    if (f->machine != NULL) {
        f->machine->in_flight[f->kind] = NULL;
    }
    if (f->call != NULL) {
        api_cancel(b->client.api, STEAL(f->call));
    }
    link_cancel(STEAL(f->link_call));
    list_del(&f->link);
    b->patches_in_flight -= in_flight_is_limited(f) ? 1 : 0;
    b->stats.in_flight--;
    map_done(&f->namespaces);
    arena_done(&f->memory);
    alloc_free(f);
}

void in_flight_drop_cluster(struct cluster_state *cs)
{
    LIST_EACH (&cs->bridge->in_flight, link) {
        struct in_flight *f = CONTAINER_OF(link, struct in_flight, link);
        if (f->cluster == cs) {
            in_flight_free(f);
        }
    }
}

bool in_flight_exists(const struct cluster_state *cs, enum in_flight_kind kind, struct str name)
{
    LIST_EACH (&cs->bridge->in_flight, link) {
        const struct in_flight *f = CONTAINER_OF(link, struct in_flight, link);
        if (f->kind == kind && f->cluster == cs && str_eq(f->name, name)) {
            return true;
        }
    }
    return false;
}

bool in_flight_may_write(struct machine_state *ms, enum in_flight_kind kind, uint64_t version)
{
    usec_t at = writer_retry_at(&ms->writers[kind], version);
    if (ms->in_flight[kind] != NULL) {
        return false; /* its reply marks the Machine */
    }
    if (loop_now(ms->bridge->loop) < at) {
        machine_wake_at(ms, at);
        return false;
    }
    return true;
}

/* ── replies ───────────────────────────────────────────────────────────────────────────────── */

static const struct writer_rules object_rules = {
    .conflict = { BRIDGE_FAILED_BASE, BRIDGE_FAILED_MAX },
    .absent = { BRIDGE_FAILED_BASE, BRIDGE_FAILED_MAX },
    .refused = { BRIDGE_REFUSED_BASE, BRIDGE_REFUSED_MAX },
    .failed = { BRIDGE_FAILED_BASE, BRIDGE_FAILED_MAX },
};

/* A Machine may have several MaintenanceRequests: one that is outdated stops no other. */
static const struct writer_rules request_rules = {
    .refused = { BRIDGE_REFUSED_BASE, BRIDGE_REFUSED_MAX },
    .failed = { BRIDGE_FAILED_BASE, BRIDGE_FAILED_MAX },
};

void in_flight_init_writer(struct writer *w, struct bridge *b, enum in_flight_kind kind)
{
    writer_init(w, &b->client, kind == IN_FLIGHT_REQUEST ? &request_rules : &object_rules);
}

/* NULL: no later write waits for this one. */
static struct writer *in_flight_writer(const struct in_flight *f)
{
    if (f->machine != NULL) {
        return &f->machine->writers[f->kind];
    }
    return f->kind == IN_FLIGHT_REQUEST ? &f->cluster->routing->writer : NULL;
}

/* Where the written object is kept; NULL: its cluster is not watched at the moment. */
static struct store *in_flight_store(const struct in_flight *f)
{
    if (f->kind == IN_FLIGHT_MACHINE) {
        return &f->bridge->machines.store;
    }
    if (f->kind == IN_FLIGHT_HOST) {
        return &f->bridge->hosts.store;
    }
    if (f->kind == IN_FLIGHT_NODE) {
        return link_fresh(f->cluster->link) ? link_nodes(f->cluster->link) : NULL;
    }
    struct approval_routing *routing = f->cluster->routing;
    ASSERT(routing != NULL); /* it made the request */
    return routing->open ? &routing->informer.store : NULL;
}

static void in_flight_count(const struct in_flight *f, enum retry_verdict verdict)
{
    struct bridge *b = f->bridge;
    enum write_result result = verdict == RETRY_DONE      ? WRITE_DONE
                               : verdict == RETRY_OBSERVE ? WRITE_CONFLICT
                                                          : WRITE_FAILED;
    b->stats.conflicts += result == WRITE_CONFLICT ? 1 : 0;
    b->stats.errors += result == WRITE_FAILED ? 1 : 0;
    bridge_metrics_patch(&b->series, (enum write_object)f->kind, result);
}

static void in_flight_succeeded(struct in_flight *f)
{
    struct bridge *b = f->bridge;
    for (uint32_t i = 0; f->machine != NULL && i < f->event_n; i++) {
        bridge_event_for_machine(f->machine, f->events[i].event, f->events[i].note);
    }
    if (f->releases) {
        b->stats.released++;
        bridge_metrics_hold(&b->series, server_clock_wall(&b->client.clock) - f->held_from);
    }
    if (f->machine != NULL) {
        f->machine->trouble = (struct err){ 0 };
    }
}

static void in_flight_failed(struct in_flight *f, int status, const struct err *err)
{
    if (f->machine != NULL) {
        f->machine->trouble = *err;
        machine_wake_at(f->machine, in_flight_writer(f)->retry_at);
    }
    if (status != 0 && in_flight_writer(f) != NULL) {
        log_warn(f->bridge->log,
                 f->kind == IN_FLIGHT_REQUEST ? "maintenance request" : "patch failed",
                 KV_STR("object", f->name), KV_ERR(err));
    }
}

/* While an approval may have been written, no other member of the control plane is approved. The
 * others decide again when it has not. */
static void in_flight_approval_failed(struct in_flight *f, enum retry_verdict verdict)
{
    struct machine_state *ms = f->machine;
    if (verdict == RETRY_LATER || verdict == RETRY_QUIET) {
        ms->approval_version = f->version;
        ms->approval_unsure_until = loop_now(f->bridge->loop) + BRIDGE_APPROVAL_UNSURE;
    }
    machine_mark_control_plane(ms);
}

/* The Node has no Machine that would look at it again. Changes of the Node that were seen while the
 * patch was in flight are looked at now. */
static void in_flight_recheck_orphan(struct in_flight *f, enum retry_verdict verdict)
{
    struct store *store = in_flight_store(f);
    if (verdict == RETRY_DONE) {
        struct store_item *node = store == NULL ? NULL : store_find(store, f->name);
        backoff_reset(&f->cluster->backoff);
        if (node != NULL) {
            store_mark(store, node);
        }
    } else if (verdict != RETRY_ABSENT) {
        cluster_recheck_nodes_later(f->cluster);
    }
}

/* Whoever the write was for decides again. */
static void in_flight_mark(struct in_flight *f, enum retry_verdict verdict)
{
    struct bridge *b = f->bridge;
    if (f->kind == IN_FLIGHT_HOST && verdict == RETRY_DONE) {
        backoff_reset(&b->host_backoff);
    } else if (f->kind == IN_FLIGHT_HOST && verdict != RETRY_OBSERVE && verdict != RETRY_ABSENT) {
        metal3_recheck_later(b); /* the host may have no Machine that would look at it again */
    }
    if (f->machine != NULL) {
        machine_mark(f->machine);
    } else if (f->kind == IN_FLIGHT_NODE) {
        in_flight_recheck_orphan(f, verdict);
    }
    if (f->cluster != NULL) {
        cluster_mark(f->cluster);
    }
    bridge_wake(b);
}

/* Judges the reply; a MaintenanceRequest that could not be created is not outdated: the name is
 * taken, or the kind is missing. */
static enum retry_verdict in_flight_judge(struct in_flight *f, const struct api_reply *reply,
                                          struct writer_reply *ret)
{
    static const struct writer_rules no_waits = { 0 };
    struct bridge *b = f->bridge;
    bool management = f->cluster == NULL;
    ASSERT(management == in_flight_is_limited(f));
    /* The link itself notes what its cluster answers. */
    enum retry_verdict verdict =
        management ? client_note(&b->client, API_PATCH, reply) : retry_judge(reply);
    bool creates = f->kind == IN_FLIGHT_REQUEST && f->version == 0;
    bool outdated = verdict == RETRY_OBSERVE || verdict == RETRY_ABSENT;
    struct writer own;
    struct writer *w = in_flight_writer(f);
    if (w == NULL) {
        w = &own;
        writer_init(w, &b->client, &no_waits);
    }
    w->verb = API_PATCH;
    w->version = f->version;
    enum retry_verdict result = writer_on_verdict(w, creates && outdated ? RETRY_LATER : verdict,
                                                  reply, in_flight_store(f), f->name, ret);
    return creates && outdated ? verdict : result;
}

static void in_flight_on_reply(void *ctx, const struct api_reply *reply)
{
    struct in_flight *f = ctx;
    f->call = NULL;
    f->link_call = NULL;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    enum retry_verdict verdict = in_flight_judge(f, reply, &r);
    bool creates = f->kind == IN_FLIGHT_REQUEST && f->version == 0;
    in_flight_count(f, verdict);
    if (f->kind == IN_FLIGHT_REQUEST) {
        routing_on_write(f, reply, verdict, r.object);
    }
    if (verdict == RETRY_DONE) {
        in_flight_succeeded(f);
    } else if (creates || (verdict != RETRY_OBSERVE && verdict != RETRY_ABSENT)) {
        in_flight_failed(f, reply->status, &r.err);
    } else if (f->machine != NULL && f->kind != IN_FLIGHT_REQUEST) {
        machine_wake_at(f->machine, in_flight_writer(f)->retry_at);
    }
    if (f->machine != NULL && f->approves && verdict != RETRY_DONE) {
        in_flight_approval_failed(f, verdict);
    }
    in_flight_mark(f, verdict);
    in_flight_free(f);
}

/* ── sending ───────────────────────────────────────────────────────────────────────────────── */

static void in_flight_send(struct in_flight *f, const struct api_request *request,
                           api_on_reply on_reply)
{
    if (f->cluster != NULL) {
        f->link_call = link_send(f->cluster->link, request, on_reply, f);
    } else {
        f->call = api_send(f->bridge->client.api, request, on_reply, f);
    }
}

void in_flight_get(struct in_flight *f, struct str accept, api_on_reply on_reply)
{
    const struct api_request request = {
        .verb = API_GET,
        .path = buf_str(&f->bridge->path),
        .accept = accept,
    };
    in_flight_send(f, &request, on_reply);
}

void in_flight_write(struct in_flight *f, enum api_verb verb)
{
    struct bridge *b = f->bridge;
    buf_add(&b->path, STR("?fieldManager=" BRIDGE_MANAGER));
    const struct api_request request = {
        .verb = verb,
        .path = buf_str(&b->path),
        .content_type = verb == API_POST ? API_JSON : API_MERGE_PATCH,
        .accept = f->kind == IN_FLIGHT_NODE ? API_METADATA : STR_NONE,
        .body = buf_str(&b->body),
    };
    in_flight_send(f, &request, in_flight_on_reply);
    b->stats.patches[f->kind]++;
}

uint64_t in_flight_patch_version(const struct in_flight *f)
{
    bool blind =
        mutated(f->bridge->config.mutations, MUTATION_SKIP_RV) ||
        (f->kind == IN_FLIGHT_HOST && mutated(f->bridge->config.mutations, MUTATION_HOST_BLIND)) ||
        (f->kind == IN_FLIGHT_NODE && mutated(f->bridge->config.mutations, MUTATION_NODE_BLIND));
    return blind ? 0 : f->version;
}

static void in_flight_patch(struct in_flight *f, const struct meta_patch *patch)
{
    struct bridge *b = f->bridge;
    buf_reset(&b->body);
    meta_patch_print(patch, in_flight_patch_version(f), &b->body);
    in_flight_write(f, API_PATCH);
}

/* Of an object whose store names it "namespace/name". */
static void in_flight_path(struct in_flight *f, struct str prefix, const char *plural)
{
    struct str namespace;
    struct str name;
    (void)str_cut(f->name, STR("/"), &namespace, &name); /* there is a "/" */
    (void)bridge_path(f->bridge, prefix, namespace, plural);
    buf_add(&f->bridge->path, STR("/"));
    client_add_segment(&f->bridge->path, name);
}

static void in_flight_node_path(const struct in_flight *f)
{
    struct buf *path = &f->bridge->path;
    buf_reset(path);
    buf_add(path, STR("/api/v1/nodes/"));
    client_add_segment(path, f->name);
}

/* Keeps the events that become true when the write succeeds. */
static void in_flight_take_events(struct in_flight *f, const struct rules_verdict *verdict,
                                  unsigned when)
{
    for (uint32_t i = 0; i < verdict->event_n; i++) {
        if ((unsigned)verdict->events[i].when == when) {
            f->events[f->event_n] = verdict->events[i];
            f->events[f->event_n].note = arena_str(&f->memory, verdict->events[i].note);
            f->event_n++;
        }
    }
}

/* Each of these asks bridge_may_act again: the process may have been frozen past the end of its
 * Lease since the turn began. The next turn finds that out. */

void in_flight_patch_machine(struct machine_state *ms, const struct rules_verdict *verdict,
                             const struct meta_patch *patch)
{
    struct bridge *b = ms->bridge;
    const struct machine *m = machine_object(ms);
    if (!bridge_may_act(b)) {
        return;
    }
    struct in_flight *f = in_flight_new(b, IN_FLIGHT_MACHINE, ms, NULL, ms->item->name);
    const struct meta_patch_key *hook = meta_patch_find(patch, /* label= */ false, KEY_HOOK);
    f->version = ms->item->version;
    f->approves = verdict->approves;
    f->releases = m->deleting && hook != NULL && hook->remove;
    f->held_from = m->hooks_wait_since != 0 ? m->hooks_wait_since : m->deleted_at;
    in_flight_take_events(f, verdict, RULES_WITH_MACHINE);
    in_flight_path(f, bridge_capi_prefix(b), "machines");
    in_flight_patch(f, patch);
}

void in_flight_patch_host(struct bridge *b, struct machine_state *ms, const struct store_item *host,
                          const struct meta_patch *patch)
{
    if (!bridge_may_act(b)) {
        return;
    }
    struct in_flight *f = in_flight_new(b, IN_FLIGHT_HOST, ms, NULL, host->name);
    f->version = host->version;
    in_flight_path(f, METAL3_PREFIX, "baremetalhosts");
    in_flight_patch(f, patch);
}

void in_flight_patch_node(struct machine_state *ms, const struct store_item *node,
                          const struct rules_verdict *verdict)
{
    if (!bridge_may_act(ms->bridge)) {
        return;
    }
    struct in_flight *f = in_flight_new(ms->bridge, IN_FLIGHT_NODE, ms, ms->cluster, node->name);
    f->version = node->version;
    in_flight_take_events(f, verdict, RULES_WITH_NODE);
    in_flight_node_path(f);
    in_flight_patch(f, &verdict->node);
}

void in_flight_patch_orphan(struct cluster_state *cs, struct store_item *node,
                            const struct meta_patch *patch)
{
    if (!bridge_may_act(cs->bridge)) {
        return;
    }
    if (in_flight_exists(cs, IN_FLIGHT_NODE, node->name)) {
        store_await(node); /* the patch in flight makes a newer version */
        return;
    }
    struct in_flight *f = in_flight_new(cs->bridge, IN_FLIGHT_NODE, NULL, cs, node->name);
    f->version = node->version;
    in_flight_node_path(f);
    in_flight_patch(f, patch);
}

struct in_flight *in_flight_get_node(struct machine_state *ms, enum in_flight_kind kind,
                                     struct str accept, api_on_reply on_reply)
{
    struct in_flight *f =
        in_flight_new(ms->bridge, kind, ms, ms->cluster, machine_object(ms)->node);
    in_flight_node_path(f);
    in_flight_get(f, accept, on_reply);
    return f;
}
