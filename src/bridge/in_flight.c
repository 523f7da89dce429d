#include "base/alloc.h"
#include "bridge/bridge_internal.h"
#include "kinds/keys.h"

#define PATCH_QUERY STR("?fieldManager=" BRIDGE_MANAGER)

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static bool in_flight_is_limited(const struct in_flight *f)
{
    return f->kind == IN_FLIGHT_MACHINE || f->kind == IN_FLIGHT_HOST;
}

struct in_flight *in_flight_new(struct bridge *b, enum in_flight_kind kind,
                                struct machine_state *ms, struct str name)
{
    struct in_flight *f = ALLOC_NEW(struct in_flight);
    f->bridge = b;
    f->kind = kind;
    f->machine = ms;
    f->memory.first = 256;
    f->name = arena_str(&f->memory, name);
    list_add(&b->in_flight_requests, &f->link);
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
    LIST_EACH (&cs->bridge->in_flight_requests, link) {
        struct in_flight *f = CONTAINER_OF(link, struct in_flight, link);
        if (f->cluster == cs) {
            in_flight_free(f);
        }
    }
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

void in_flight_retry_after(struct bridge_retry *retry, struct loop *loop,
                           enum retry_verdict verdict)
{
    bool refused = verdict == RETRY_REFUSED;
    usec_t base = refused ? BRIDGE_REFUSED_BASE : BRIDGE_FAILED_BASE;
    if (retry->backoff.base != base) {
        retry->backoff = (struct backoff){
            .base = base,
            .max = refused ? BRIDGE_REFUSED_MAX : BRIDGE_FAILED_MAX,
        };
    }
    retry->at = loop_now(loop) + backoff_next(&retry->backoff, loop_random(loop));
    retry->version = 0;
}

bool in_flight_may_write(struct machine_state *ms, enum in_flight_kind kind, uint64_t version)
{
    const struct bridge_retry *retry = &ms->retry[kind];
    if (ms->in_flight[kind] != NULL) {
        return false; /* its answer marks the Machine */
    }
    if (loop_now(ms->bridge->loop) < retry->at &&
        (retry->version == 0 || retry->version == version)) {
        machine_wake_at(ms, retry->at);
        return false;
    }
    return true;
}

const struct jval *in_flight_parse(const struct api_reply *reply, struct arena *tmp)
{
    const struct jval *object = NULL;
    struct err ignored = { 0 };
    /* What cannot be read here comes again by the watch, which tells what is wrong with it. */
    return json_parse(reply->body, 0, tmp, &object, &ignored) < 0 ? NULL : object;
}

void in_flight_store_reply(struct store *store, const struct api_reply *reply)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *object = in_flight_parse(reply, &tmp);
    if (object == NULL || store_learn(store, object, &ignored) < 0) {
        return; /* the watch brings it, too */
    }
}

/* Somebody else was faster. What they wrote may have come already. */
void in_flight_conflict(const struct in_flight *f, struct store *store)
{
    struct store_item *item = store == NULL ? NULL : store_find(store, f->name);
    if (item == NULL) {
        return;
    }
    if (item->version > f->version) {
        store_mark(store, item);
    } else {
        store_await(item);
    }
}

static enum write_result in_flight_metric_result(enum retry_verdict verdict)
{
    return verdict == RETRY_DONE      ? WRITE_DONE
           : verdict == RETRY_OBSERVE ? WRITE_CONFLICT
                                      : WRITE_FAILED;
}

void in_flight_count(const struct in_flight *f, enum retry_verdict verdict)
{
    struct bridge *b = f->bridge;
    b->stats.conflicts += verdict == RETRY_OBSERVE ? 1 : 0;
    b->stats.errors += verdict != RETRY_DONE && verdict != RETRY_OBSERVE ? 1 : 0;
    bridge_metrics_patch(&b->series, (enum write_object)f->kind, in_flight_metric_result(verdict));
}

static void in_flight_on_success(struct in_flight *f)
{
    struct bridge *b = f->bridge;
    for (uint32_t i = 0; f->machine != NULL && i < f->event_n; i++) {
        bridge_event_for_machine(f->machine, f->events[i].event, f->events[i].note);
    }
    if (f->releases) {
        b->stats.released++;
        bridge_metrics_hold(&b->series, server_clock_wall(&b->client.clock) - f->held_from);
    }
}

static void in_flight_on_failure(struct in_flight *f, const struct api_reply *reply,
                                 enum retry_verdict verdict, struct bridge_retry *retry)
{
    struct machine_state *ms = f->machine;
    struct bridge *b = f->bridge;
    client_explain(reply->status, reply->body, reply->err, &ms->trouble);
    in_flight_retry_after(retry, b->loop, verdict);
    machine_wake_at(ms, retry->at);
    if (reply->status != 0) {
        log_warn(b->log, "patch failed", KV_STR("object", f->name), KV_ERR(&ms->trouble));
    }
}

/* The object has changed, or is gone, and nobody has told yet: the watch does, and to ask again and
 * again until then would teach nothing. */
static void in_flight_wait_for_watch(struct in_flight *f, struct bridge_retry *retry)
{
    in_flight_retry_after(retry, f->bridge->loop, RETRY_LATER);
    retry->version = f->version;
    machine_wake_at(f->machine, retry->at);
}

/* Another member of the control plane must not be approved beside one that may be, and is looked
 * at when this one is not. */
static void in_flight_approval_failed(struct in_flight *f, enum retry_verdict verdict)
{
    struct machine_state *ms = f->machine;
    if (verdict == RETRY_LATER || verdict == RETRY_QUIET) {
        ms->approval_version = f->version;
        ms->approval_unsure_until = loop_now(f->bridge->loop) + BRIDGE_APPROVAL_UNSURE;
    }
    machine_mark_control_plane(ms);
}

/* Who it was for decides again. A Node without a Machine is looked at here: what was found out
 * about it while the patch was on its way had to wait. */
static void in_flight_mark_owner(struct in_flight *f, enum retry_verdict verdict,
                                 struct store *store)
{
    struct bridge *b = f->bridge;
    if (f->kind == IN_FLIGHT_HOST && verdict == RETRY_DONE) {
        backoff_reset(&b->host_backoff);
    } else if (f->kind == IN_FLIGHT_HOST && verdict != RETRY_OBSERVE && verdict != RETRY_ABSENT) {
        metal3_recheck_later(b); /* it may have no Machine that would */
    }
    if (f->machine != NULL) {
        machine_mark(f->machine);
    } else if (f->cluster != NULL && verdict == RETRY_DONE) {
        struct store_item *node = store == NULL ? NULL : store_find(store, f->name);
        backoff_reset(&f->cluster->backoff);
        if (node != NULL) {
            store_mark(store, node);
        }
    } else if (f->cluster != NULL && verdict != RETRY_ABSENT) {
        cluster_recheck_nodes_later(f->cluster);
    }
    if (f->cluster != NULL) {
        cluster_mark(f->cluster);
    }
}

/* The end of a patch, whatever it was for: what it says is learned, what failed is tried again. */
static void in_flight_finish(struct in_flight *f, const struct api_reply *reply,
                             enum retry_verdict verdict, struct store *store,
                             struct bridge_retry *retry)
{
    struct bridge *b = f->bridge;
    in_flight_count(f, verdict);
    if (verdict == RETRY_DONE) {
        in_flight_on_success(f);
        if (retry != NULL) {
            backoff_reset(&retry->backoff);
            retry->at = 0;
            retry->version = 0;
            f->machine->trouble = (struct err){ 0 };
        }
        if (store != NULL) {
            in_flight_store_reply(store, reply);
        }
    } else if (retry != NULL && verdict != RETRY_OBSERVE && verdict != RETRY_ABSENT) {
        in_flight_on_failure(f, reply, verdict, retry);
    } else if (retry != NULL) {
        in_flight_wait_for_watch(f, retry);
    }
    if (verdict == RETRY_OBSERVE) {
        in_flight_conflict(f, store);
    }
    if (f->machine != NULL && f->approves && verdict != RETRY_DONE) {
        in_flight_approval_failed(f, verdict);
    }
    in_flight_mark_owner(f, verdict, store);
    bridge_wake(b);
    in_flight_free(f);
}

static void in_flight_on_management_reply(void *ctx, const struct api_reply *reply)
{
    struct in_flight *f = ctx;
    struct bridge *b = f->bridge;
    f->call = NULL;
    enum retry_verdict verdict = client_note(&b->client, API_PATCH, reply);
    struct store *store = f->kind == IN_FLIGHT_MACHINE ? &b->machines.store : &b->hosts.store;
    in_flight_finish(f, reply, verdict, store,
                     f->machine == NULL ? NULL : &f->machine->retry[f->kind]);
}

static void in_flight_on_workload_reply(void *ctx, const struct api_reply *reply)
{
    struct in_flight *f = ctx;
    f->link_call = NULL;
    /* A reply that comes when the link has broken is of a Node that nobody knows any more. */
    struct link *link = f->cluster->link;
    struct store *store = link != NULL && link_fresh(link) ? link_nodes(link) : NULL;
    in_flight_finish(f, reply, retry_judge(reply), store,
                     f->machine == NULL ? NULL : &f->machine->retry[IN_FLIGHT_NODE]);
}

/* ── patches ───────────────────────────────────────────────────────────────────────────────── */

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

/* "namespace/name" below a collection of namespaced objects. */
static void in_flight_management_path(struct bridge *b, struct str group, struct str plural,
                                      struct str name)
{
    struct str namespace;
    struct str rest;
    (void)str_cut(name, STR("/"), &namespace, &rest); /* stores name their items so */
    buf_reset(&b->path);
    buf_printf(&b->path, "/apis/" STR_FMT "/namespaces/", STR_ARG(group));
    client_add_segment(&b->path, namespace);
    buf_printf(&b->path, "/" STR_FMT "/", STR_ARG(plural));
    client_add_segment(&b->path, rest);
}

static void in_flight_send_management(struct in_flight *f, const struct meta_patch *patch)
{
    struct bridge *b = f->bridge;
    buf_add(&b->path, PATCH_QUERY);
    buf_reset(&b->body);
    bool blind = mutated(b->config.mutations, MUTATION_SKIP_RV) ||
                 (f->kind == IN_FLIGHT_HOST && mutated(b->config.mutations, MUTATION_HOST_BLIND));
    meta_patch_print(patch, blind ? 0 : f->version, &b->body);
    const struct api_request request = {
        .verb = API_PATCH,
        .path = buf_str(&b->path),
        .content_type = API_MERGE_PATCH,
        .body = buf_str(&b->body),
    };
    f->call = api_send(b->client.api, &request, in_flight_on_management_reply, f);
}

void in_flight_patch_machine(struct machine_state *ms, const struct rules_verdict *verdict,
                             const struct meta_patch *patch)
{
    struct bridge *b = ms->bridge;
    const struct machine *m = machine_object(ms);
    if (!bridge_may_act(b)) {
        return; /* frozen past the end of the Lease: the next turn finds out */
    }
    struct in_flight *f = in_flight_new(b, IN_FLIGHT_MACHINE, ms, ms->item->name);
    const struct meta_patch_key *hook = meta_patch_find(patch, /* label= */ false, KEY_HOOK);
    f->version = ms->item->version;
    f->approves = verdict->approves;
    f->releases = m->deleting && hook != NULL && hook->remove;
    f->held_from = m->hooks_wait_since != 0 ? m->hooks_wait_since : m->deleted_at;
    in_flight_take_events(f, verdict, RULES_WITH_MACHINE);
    CLEANUP(buf_done)
    struct buf group = { 0 };
    buf_printf(&group, CAPI_GROUP "/" STR_FMT, STR_ARG(b->capi.version));
    in_flight_management_path(b, buf_str(&group), STR("machines"), f->name);
    in_flight_send_management(f, patch);
    b->stats.patches[WRITE_MACHINE]++;
}

void in_flight_patch_host(struct bridge *b, struct machine_state *ms, struct store_item *host,
                          const struct meta_patch *patch)
{
    if (!bridge_may_act(b)) {
        return;
    }
    struct in_flight *f = in_flight_new(b, IN_FLIGHT_HOST, ms, host->name);
    f->version = host->version;
    in_flight_management_path(b, STR(METAL3_API_VERSION), STR("baremetalhosts"), f->name);
    in_flight_send_management(f, patch);
    b->stats.patches[WRITE_HOST]++;
}

void in_flight_node_path(struct bridge *b, struct str node)
{
    buf_reset(&b->path);
    buf_add(&b->path, STR("/api/v1/nodes/"));
    client_add_segment(&b->path, node);
}

static void in_flight_send_workload(struct in_flight *f, const struct meta_patch *patch)
{
    struct bridge *b = f->bridge;
    in_flight_node_path(b, f->name);
    buf_add(&b->path, PATCH_QUERY);
    buf_reset(&b->body);
    bool blind = mutated(b->config.mutations, MUTATION_SKIP_RV) ||
                 mutated(b->config.mutations, MUTATION_NODE_BLIND);
    meta_patch_print(patch, blind ? 0 : f->version, &b->body);
    const struct api_request request = {
        .verb = API_PATCH,
        .path = buf_str(&b->path),
        .content_type = API_MERGE_PATCH,
        .accept = API_METADATA,
        .body = buf_str(&b->body),
    };
    f->link_call = link_send(f->cluster->link, &request, in_flight_on_workload_reply, f);
    b->stats.patches[WRITE_NODE]++;
}

void in_flight_patch_node(struct machine_state *ms, const struct rules_verdict *verdict)
{
    struct bridge *b = ms->bridge;
    struct str name = machine_object(ms)->node;
    const struct store_item *node = store_find(link_nodes(ms->cluster->link), name);
    if (!bridge_may_act(b) || node == NULL) {
        return;
    }
    struct in_flight *f = in_flight_new(b, IN_FLIGHT_NODE, ms, name);
    f->cluster = ms->cluster;
    f->version = node->version;
    in_flight_take_events(f, verdict, RULES_WITH_NODE);
    in_flight_send_workload(f, &verdict->node);
}

void in_flight_patch_orphan(struct cluster_state *cs, struct store_item *node,
                            const struct meta_patch *patch)
{
    struct bridge *b = cs->bridge;
    if (!bridge_may_act(b)) {
        return;
    }
    LIST_EACH (&b->in_flight_requests, link) {
        const struct in_flight *other = CONTAINER_OF(link, struct in_flight, link);
        if (other->cluster == cs && str_eq(other->name, node->name)) {
            store_await(node); /* what is on its way changes it */
            return;
        }
    }
    struct in_flight *f = in_flight_new(b, IN_FLIGHT_NODE, NULL, node->name);
    f->cluster = cs;
    f->version = node->version;
    in_flight_send_workload(f, patch);
}

/* ── looking ───────────────────────────────────────────────────────────────────────────────── */

/* Only a cluster that says so itself, twice, has no such Node. */
static void in_flight_on_absence_check(void *ctx, const struct api_reply *reply)
{
    struct in_flight *f = ctx;
    struct machine_state *ms = f->machine;
    struct bridge *b = f->bridge;
    usec_t now = loop_now(b->loop);
    f->link_call = NULL;
    if (ms != NULL && !str_eq(f->name, machine_object(ms)->node)) {
        in_flight_free(f); /* it was about another Node */
        machine_mark(ms);
        return;
    }
    if (ms != NULL && reply->status == 404) {
        if (mutated(b->config.mutations, MUTATION_MISSED_ONCE)) {
            ms->absent = true;
        } else if (ms->missed_at == 0) {
            ms->missed_at = now;
        } else if (now >= ms->missed_at + BRIDGE_ABSENT_AFTER) {
            ms->absent = true;
        }
    } else if (ms != NULL) {
        ms->missed_at = 0;
        ms->absent = false;
        machine_wake_at(
            ms, now + BRIDGE_FAILED_MAX); /* it is there: the watch says so, or a new look */
    }
    in_flight_free(f);
    if (ms != NULL && reply->status == 404) {
        machine_mark(ms);
    }
}

void in_flight_absence_check(struct machine_state *ms)
{
    struct bridge *b = ms->bridge;
    struct in_flight *f = in_flight_new(b, IN_FLIGHT_ABSENCE_CHECK, ms, machine_object(ms)->node);
    f->cluster = ms->cluster;
    in_flight_node_path(b, f->name);
    const struct api_request request = {
        .verb = API_GET,
        .path = buf_str(&b->path),
        .accept = API_METADATA,
    };
    f->link_call = link_send(ms->cluster->link, &request, in_flight_on_absence_check, f);
}
