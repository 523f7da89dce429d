#include "base/alloc.h"
#include "bridge/bridge_internal.h"
#include "kinds/keys.h"

#define PATCH_QUERY STR("?fieldManager=" BRIDGE_MANAGER)

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

/* Where the berth keeps one of that kind; NULL = it does not. */
static struct crossing **crossing_place(const struct crossing *x)
{
    struct berth *at = x->berth;
    if (at == NULL) {
        return NULL;
    }
    switch (x->kind) {
    case CROSSING_MACHINE:
        return &at->to_machine;
    case CROSSING_NODE:
        return &at->to_node;
    case CROSSING_HOST:
        return &at->to_host;
    case CROSSING_PROBE:
        return &at->probe;
    case CROSSING_SURVEY:
        return &at->survey;
    case CROSSING_PLEA:
        return &at->to_plea;
    case CROSSING_STRAY:
        break;
    }
    return NULL;
}

static bool crossing_fills_window(const struct crossing *x)
{
    return x->kind == CROSSING_MACHINE || x->kind == CROSSING_HOST;
}

struct crossing *crossing_new(struct bridge *b, enum crossing_kind kind, struct berth *at,
                              struct str name)
{
    struct crossing *x = ALLOC_NEW(struct crossing);
    x->bridge = b;
    x->kind = kind;
    x->berth = at;
    x->memory.first = 256;
    x->name = arena_str(&x->memory, name);
    list_add(&b->crossings, &x->link);
    struct crossing **place = crossing_place(x);
    if (place != NULL) {
        ASSERT(*place == NULL);
        *place = x;
    }
    b->window += crossing_fills_window(x) ? 1 : 0;
    b->stats.in_flight++;
    return x;
}

void crossing_free(struct crossing *x)
{
    struct bridge *b = x->bridge;
    struct crossing **place = crossing_place(x);
    if (place != NULL) {
        *place = NULL;
    }
    if (x->call != NULL) {
        api_cancel(b->client.api, STEAL(x->call));
    }
    link_cancel(STEAL(x->link_call));
    list_del(&x->link);
    b->window -= crossing_fills_window(x) ? 1 : 0;
    b->stats.in_flight--;
    map_done(&x->spaces);
    arena_done(&x->memory);
    alloc_free(x);
}

void crossing_drop_yard(struct yard *y)
{
    LIST_EACH (&y->bridge->crossings, link) {
        struct crossing *x = CONTAINER_OF(link, struct crossing, link);
        if (x->yard == y) {
            crossing_free(x);
        }
    }
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

void crossing_retry_after(struct bridge_retry *retry, struct loop *loop, enum retry_verdict verdict)
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

bool crossing_waits(const struct bridge_retry *retry, struct loop *loop, uint64_t version)
{
    return loop_now(loop) < retry->at && (retry->version == 0 || retry->version == version);
}

const struct jval *crossing_read(const struct api_reply *reply, struct arena *tmp)
{
    const struct jval *object = NULL;
    struct err ignored = { 0 };
    /* What cannot be read here comes again by the watch, which tells what is wrong with it. */
    return json_parse(reply->body, 0, tmp, &object, &ignored) < 0 ? NULL : object;
}

void crossing_learn(struct store *store, const struct api_reply *reply)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *object = crossing_read(reply, &tmp);
    if (object == NULL || store_learn(store, object, &ignored) < 0) {
        return; /* the watch brings it, too */
    }
}

/* Somebody else was faster. What they wrote may have come already. */
void crossing_conflict(const struct crossing *x, struct store *store)
{
    struct store_item *item = store == NULL ? NULL : store_find(store, x->name);
    if (item == NULL) {
        return;
    }
    if (item->version > x->version) {
        store_mark(store, item);
    } else {
        store_await(item);
    }
}

static enum tally_result crossing_result(enum retry_verdict verdict)
{
    return verdict == RETRY_DONE      ? TALLY_DONE
           : verdict == RETRY_OBSERVE ? TALLY_CONFLICT
                                      : TALLY_FAILED;
}

static enum tally_object crossing_object(const struct crossing *x)
{
    return x->kind == CROSSING_MACHINE ? TALLY_MACHINE
           : x->kind == CROSSING_HOST  ? TALLY_HOST
           : x->kind == CROSSING_PLEA  ? TALLY_REQUEST
                                       : TALLY_NODE;
}

void crossing_count(const struct crossing *x, enum retry_verdict verdict)
{
    struct bridge *b = x->bridge;
    b->stats.conflicts += verdict == RETRY_OBSERVE ? 1 : 0;
    b->stats.errors += verdict != RETRY_DONE && verdict != RETRY_OBSERVE ? 1 : 0;
    tally_patch(&b->tally, crossing_object(x), crossing_result(verdict));
}

static void crossing_arrived(struct crossing *x)
{
    struct bridge *b = x->bridge;
    for (uint32_t i = 0; x->berth != NULL && i < x->news_n; i++) {
        bridge_tell(x->berth, x->news[i].event, x->news[i].note);
    }
    if (x->releases) {
        b->stats.released++;
        tally_hold(&b->tally, server_clock_wall(&b->client.clock) - x->held_from);
    }
}

static void crossing_failed(struct crossing *x, const struct api_reply *reply,
                            enum retry_verdict verdict, struct bridge_retry *retry)
{
    struct berth *at = x->berth;
    struct bridge *b = x->bridge;
    client_explain(reply->status, reply->body, reply->err, &at->trouble);
    crossing_retry_after(retry, b->loop, verdict);
    berth_later(at, retry->at);
    if (bridge_logs(b) && reply->status != 0) {
        log_warn(b->log, "patch failed", KV_STR("object", x->name), KV_ERR(&at->trouble));
    }
}

/* The object has changed, or is gone, and nobody has told yet: the watch does, and to ask again and
 * again until then would teach nothing. */
static void crossing_behind(struct crossing *x, struct bridge_retry *retry)
{
    crossing_retry_after(retry, x->bridge->loop, RETRY_LATER);
    retry->version = x->version;
    berth_later(x->berth, retry->at);
}

/* Another member of the control plane must not be approved beside one that may be, and is looked
 * at when this one is not. */
static void crossing_unapproved(struct crossing *x, enum retry_verdict verdict)
{
    struct berth *at = x->berth;
    if (verdict == RETRY_LATER || verdict == RETRY_QUIET) {
        at->approved_on = x->version;
        at->approved_till = loop_now(x->bridge->loop) + BRIDGE_UNSURE;
    }
    berth_stir_members(at);
}

/* Who it was for decides again. A Node without a Machine is looked at here: what was found out
 * about it while the patch was on its way had to wait. */
static void crossing_ended(struct crossing *x, enum retry_verdict verdict, struct store *store)
{
    struct bridge *b = x->bridge;
    if (x->kind == CROSSING_HOST && verdict == RETRY_DONE) {
        backoff_reset(&b->host_backoff);
    } else if (x->kind == CROSSING_HOST && verdict != RETRY_OBSERVE && verdict != RETRY_ABSENT) {
        hosts_review_later(b); /* it may have no Machine that would */
    }
    if (x->berth != NULL) {
        berth_mark(x->berth);
    } else if (x->yard != NULL && verdict == RETRY_DONE) {
        struct store_item *node = store == NULL ? NULL : store_find(store, x->name);
        backoff_reset(&x->yard->backoff);
        if (node != NULL) {
            store_mark(store, node);
        }
    } else if (x->yard != NULL && verdict != RETRY_ABSENT) {
        yard_review_later(x->yard);
    }
    if (x->yard != NULL) {
        yard_stir(x->yard);
    }
}

/* The end of a patch, whatever it was for: what it says is learned, what failed is tried again. */
static void crossing_end(struct crossing *x, const struct api_reply *reply,
                         enum retry_verdict verdict, struct store *store,
                         struct bridge_retry *retry)
{
    struct bridge *b = x->bridge;
    crossing_count(x, verdict);
    if (verdict == RETRY_DONE) {
        crossing_arrived(x);
        if (retry != NULL) {
            backoff_reset(&retry->backoff);
            retry->at = 0;
            retry->version = 0;
            x->berth->trouble = (struct err){ 0 };
        }
        if (store != NULL) {
            crossing_learn(store, reply);
        }
    } else if (retry != NULL && verdict != RETRY_OBSERVE && verdict != RETRY_ABSENT) {
        crossing_failed(x, reply, verdict, retry);
    } else if (retry != NULL) {
        crossing_behind(x, retry);
    }
    if (verdict == RETRY_OBSERVE) {
        crossing_conflict(x, store);
    }
    if (x->berth != NULL && x->approves && verdict != RETRY_DONE) {
        crossing_unapproved(x, verdict);
    }
    crossing_ended(x, verdict, store);
    bridge_wake(b);
    crossing_free(x);
}

static void crossing_on_home(void *ctx, const struct api_reply *reply)
{
    struct crossing *x = ctx;
    struct bridge *b = x->bridge;
    x->call = NULL;
    enum retry_verdict verdict = client_note(&b->client, API_PATCH, reply);
    bool machine = x->kind == CROSSING_MACHINE;
    struct bridge_retry *retry = x->berth == NULL ? NULL
                                 : machine        ? &x->berth->machine_retry
                                                  : &x->berth->host_retry;
    crossing_end(x, reply, verdict, machine ? &b->machines.store : &b->hosts.store, retry);
}

static void crossing_on_away(void *ctx, const struct api_reply *reply)
{
    struct crossing *x = ctx;
    x->link_call = NULL;
    /* A reply that comes when the link has broken is of a Node that nobody knows any more. */
    struct link *link = x->yard->link;
    struct store *store = link != NULL && link_fresh(link) ? link_nodes(link) : NULL;
    crossing_end(x, reply, retry_judge(reply), store,
                 x->berth == NULL ? NULL : &x->berth->node_retry);
}

/* ── patches ───────────────────────────────────────────────────────────────────────────────── */

static void crossing_take_news(struct crossing *x, const struct rules_verdict *verdict,
                               unsigned when)
{
    for (uint32_t i = 0; i < verdict->news_n; i++) {
        if ((unsigned)verdict->news[i].when == when) {
            x->news[x->news_n] = verdict->news[i];
            x->news[x->news_n].note = arena_str(&x->memory, verdict->news[i].note);
            x->news_n++;
        }
    }
}

/* "namespace/name" below a collection of namespaced objects. */
static void crossing_path_home(struct bridge *b, struct str group, struct str plural,
                               struct str name)
{
    struct str space;
    struct str rest;
    (void)str_cut(name, STR("/"), &space, &rest); /* stores name their items so */
    buf_reset(&b->path);
    buf_printf(&b->path, "/apis/" STR_FMT "/namespaces/", STR_ARG(group));
    client_add_segment(&b->path, space);
    buf_printf(&b->path, "/" STR_FMT "/", STR_ARG(plural));
    client_add_segment(&b->path, rest);
}

static void crossing_send_home(struct crossing *x, const struct edit *edit)
{
    struct bridge *b = x->bridge;
    buf_add(&b->path, PATCH_QUERY);
    buf_reset(&b->body);
    bool blind = mutated(b->config.mutations, MUTATION_SKIP_RV) ||
                 (x->kind == CROSSING_HOST && mutated(b->config.mutations, MUTATION_HOST_BLIND));
    edit_print(edit, blind ? 0 : x->version, &b->body);
    const struct api_request request = {
        .verb = API_PATCH,
        .path = buf_str(&b->path),
        .content_type = API_MERGE_PATCH,
        .body = buf_str(&b->body),
    };
    x->call = api_send(b->client.api, &request, crossing_on_home, x);
}

void crossing_to_machine(struct berth *at, const struct rules_verdict *verdict,
                         const struct edit *edit)
{
    struct bridge *b = at->bridge;
    const struct machine *m = berth_machine(at);
    if (!bridge_acts(b)) {
        return; /* frozen past the end of the Lease: the next turn finds out */
    }
    struct crossing *x = crossing_new(b, CROSSING_MACHINE, at, at->item->name);
    const struct edit_key *hook = edit_find(edit, /* label= */ false, KEY_HOOK);
    x->version = at->item->version;
    x->approves = verdict->approves;
    x->releases = m->deleting && hook != NULL && hook->remove;
    x->held_from = m->waits_since != 0 ? m->waits_since : m->deleted_at;
    crossing_take_news(x, verdict, RULES_WITH_MACHINE);
    CLEANUP(buf_done)
    struct buf group = { 0 };
    buf_printf(&group, EDITION_GROUP "/" STR_FMT, STR_ARG(b->edition.version));
    crossing_path_home(b, buf_str(&group), STR("machines"), x->name);
    crossing_send_home(x, edit);
    b->stats.patches[TALLY_MACHINE]++;
}

void crossing_to_host(struct bridge *b, struct berth *at, struct store_item *host,
                      const struct edit *edit)
{
    if (!bridge_acts(b)) {
        return;
    }
    struct crossing *x = crossing_new(b, CROSSING_HOST, at, host->name);
    x->version = host->version;
    crossing_path_home(b, STR("metal3.io/v1alpha1"), STR("baremetalhosts"), x->name);
    crossing_send_home(x, edit);
    b->stats.patches[TALLY_HOST]++;
}

void crossing_path_node(struct bridge *b, struct str node)
{
    buf_reset(&b->path);
    buf_add(&b->path, STR("/api/v1/nodes/"));
    client_add_segment(&b->path, node);
}

static void crossing_send_away(struct crossing *x, const struct edit *edit)
{
    struct bridge *b = x->bridge;
    crossing_path_node(b, x->name);
    buf_add(&b->path, PATCH_QUERY);
    buf_reset(&b->body);
    bool blind = mutated(b->config.mutations, MUTATION_SKIP_RV) ||
                 mutated(b->config.mutations, MUTATION_NODE_BLIND);
    edit_print(edit, blind ? 0 : x->version, &b->body);
    const struct api_request request = {
        .verb = API_PATCH,
        .path = buf_str(&b->path),
        .content_type = API_MERGE_PATCH,
        .accept = API_METADATA,
        .body = buf_str(&b->body),
    };
    x->link_call = link_send(x->yard->link, &request, crossing_on_away, x);
    b->stats.patches[TALLY_NODE]++;
}

void crossing_to_node(struct berth *at, const struct rules_verdict *verdict)
{
    struct bridge *b = at->bridge;
    struct str name = berth_machine(at)->node;
    const struct store_item *node = store_find(link_nodes(at->yard->link), name);
    if (!bridge_acts(b) || node == NULL) {
        return;
    }
    struct crossing *x = crossing_new(b, CROSSING_NODE, at, name);
    x->yard = at->yard;
    x->version = node->version;
    crossing_take_news(x, verdict, RULES_WITH_NODE);
    crossing_send_away(x, &verdict->node);
}

void crossing_to_stray(struct yard *y, struct store_item *node, const struct edit *edit)
{
    struct bridge *b = y->bridge;
    if (!bridge_acts(b)) {
        return;
    }
    LIST_EACH (&b->crossings, link) {
        const struct crossing *other = CONTAINER_OF(link, struct crossing, link);
        if (other->yard == y && str_eq(other->name, node->name)) {
            store_await(node); /* what is on its way changes it */
            return;
        }
    }
    struct crossing *x = crossing_new(b, CROSSING_STRAY, NULL, node->name);
    x->yard = y;
    x->version = node->version;
    crossing_send_away(x, edit);
}

/* ── looking ───────────────────────────────────────────────────────────────────────────────── */

/* Only a cluster that says so itself, twice, has no such Node. */
static void crossing_on_probed(void *ctx, const struct api_reply *reply)
{
    struct crossing *x = ctx;
    struct berth *at = x->berth;
    struct bridge *b = x->bridge;
    usec_t now = loop_now(b->loop);
    x->link_call = NULL;
    if (at != NULL && !str_eq(x->name, berth_machine(at)->node)) {
        crossing_free(x); /* it was about another Node */
        berth_mark(at);
        return;
    }
    if (at != NULL && reply->status == 404) {
        if (mutated(b->config.mutations, MUTATION_MISSED_ONCE)) {
            at->absent = true;
        } else if (at->missed_at == 0) {
            at->missed_at = now;
        } else if (now >= at->missed_at + BRIDGE_ABSENT_AFTER) {
            at->absent = true;
        }
    } else if (at != NULL) {
        at->missed_at = 0;
        at->absent = false;
        berth_later(at,
                    now + BRIDGE_FAILED_MAX); /* it is there: the watch says so, or a new look */
    }
    crossing_free(x);
    if (at != NULL && reply->status == 404) {
        berth_mark(at);
    }
}

void crossing_probe(struct berth *at)
{
    struct bridge *b = at->bridge;
    struct crossing *x = crossing_new(b, CROSSING_PROBE, at, berth_machine(at)->node);
    x->yard = at->yard;
    crossing_path_node(b, x->name);
    const struct api_request request = {
        .verb = API_GET,
        .path = buf_str(&b->path),
        .accept = API_METADATA,
    };
    x->link_call = link_send(at->yard->link, &request, crossing_on_probed, x);
}
