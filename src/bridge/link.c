#include "base/alloc.h"
#include "bridge/link_internal.h"

#define LINK_STABLE SECONDS(15) /* after so long a break does not add to the back-off before */
#define LINK_CONNECT_BASE MSECONDS(20)
#define LINK_CONNECT_MAX SECONDS(1)

_Static_assert(((uint64_t)LINK_BACKOFF_BASE << LINK_DOUBLINGS_MAX) >= (uint64_t)LINK_BACKOFF_MAX,
               "a long wait is as long as they get");

#define TO(state) (1u << (state))

/* The table of link.h; what is not here does not happen. */
static const unsigned link_transitions[] = {
    [LINK_IDLE] = TO(LINK_RESOLVING),
    [LINK_RESOLVING] = TO(LINK_GRANTING) | TO(LINK_LISTING) | TO(LINK_BACKOFF) | TO(LINK_CLOSING),
    [LINK_GRANTING] = TO(LINK_LISTING) | TO(LINK_RESOLVING) | TO(LINK_BACKOFF) | TO(LINK_CLOSING),
    [LINK_LISTING] = TO(LINK_WATCHING) | TO(LINK_RESOLVING) | TO(LINK_BACKOFF) | TO(LINK_CLOSING),
    [LINK_WATCHING] = TO(LINK_RESOLVING) | TO(LINK_BACKOFF) | TO(LINK_CLOSING),
    [LINK_BACKOFF] = TO(LINK_RESOLVING) | TO(LINK_CLOSING),
    [LINK_CLOSING] = TO(LINK_IDLE),
};

static void link_on_timer(void *ctx);

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void link_store_on_gone(void *ctx, struct store_item *item);

static void link_store_begin(struct link *l)
{
    store_init(&l->store, &workload_node_kind, l, loop_random(l->loop));
    mutations_copy(&l->store, l->config.management);
    l->store.bytes_max = LINK_BYTES_MAX;
    l->store.on_gone = link_store_on_gone;
}

static void link_gone_drop(struct link *l)
{
    arena_done(&l->gone_memory);
    l->gone = NULL;
    l->gone_n = 0;
    l->gone_cap = 0;
}

/* Nothing is known any more; what another server says must not be compared with it. */
static void link_store_drop(struct link *l)
{
    l->store.on_gone = NULL;
    store_done(&l->store);
    link_gone_drop(l);
    l->nodes_dirty = false;
}

struct link *link_new(const struct link_config *config)
{
    struct link *l = ALLOC_NEW(struct link);
    l->config = *config;
    l->memory.first = 256;
    l->config.namespace = arena_str(&l->memory, config->namespace);
    l->config.cluster = arena_str(&l->memory, config->cluster);
    l->config.uid = arena_str(&l->memory, config->uid);
    l->loop = config->management->loop;
    l->since = loop_now(l->loop);
    l->backoff = (struct backoff){ .base = LINK_BACKOFF_BASE, .max = LINK_BACKOFF_MAX };
    l->connect_backoff = (struct backoff){ .base = LINK_CONNECT_BASE, .max = LINK_CONNECT_MAX };
    l->traffic = (struct ratelimit){ .rate = LINK_TRAFFIC_RATE, .burst = LINK_TRAFFIC_BURST };
    l->notified_idle = true;
    list_init(&l->queued);
    list_init(&l->in_flight);
    list_init(&l->ended);
    loop_timer_init(&l->timer, l->loop, link_on_timer, l);
    link_store_begin(l);
    return l;
}

void link_free(struct link *l)
{
    if (l == NULL) {
        return;
    }
    if (l->freed != NULL) {
        *l->freed = true;
    }
    link_secret_drop(l);
    link_token_drop(l);
    link_calls_done(l);
    reflector_done(&l->reflector);
    dialer_hang_up(l->config.dialer, STEAL(l->api));
    link_store_drop(l);
    loop_timer_done(&l->timer);
    arena_done(&l->memory);
    alloc_free(l);
}

void link_wake(struct link *l)
{
    loop_timer_pull(&l->timer, loop_now(l->loop));
}

/* Never 0, which means no time. */
static usec_t link_now(const struct link *l)
{
    return MAX(loop_now(l->loop), (usec_t)1);
}

void link_open(struct link *l, bool urgent)
{
    if (!l->wanted) {
        l->wanted = true;
        l->unreachable_since = l->state == LINK_WATCHING ? 0 : link_now(l);
    }
    if (urgent && !l->urgent && !link_fresh(l)) {
        l->urgent = true;
        backoff_reset(&l->connect_backoff);
        l->connect_at = l->tried_at > 0 ? l->tried_at + LINK_BACKOFF_BASE : 0;
    }
    link_wake(l);
}

void link_close(struct link *l)
{
    l->wanted = false;
    l->urgent = false;
    l->unreachable_since = 0;
    link_wake(l);
}

void link_on_secret(struct link *l, uint64_t version)
{
    bool changed = version != l->secret_seen;
    l->secret_watched =
        version != 0; /* what comes in its place may be of a type that is not watched */
    l->secret_seen = version;
    /* The version that was shown before, although a newer one was read since: the watch of the
     * Secrets is late, and reading again would bring nothing new. */
    if (changed && version != l->version) {
        l->secret_changed = true;
        link_wake(l);
    }
}

/* ── callbacks of the reflector ────────────────────────────────────────────────────────────── */

/* There is a connection that can break. */
static bool link_connected(const struct link *l)
{
    return l->state == LINK_GRANTING || l->state == LINK_LISTING || l->state == LINK_WATCHING;
}

void link_fail(struct link *l, enum link_break why, const struct err *err)
{
    if (l->broken == LINK_BREAK_NONE && link_connected(l)) {
        l->broken = why;
        l->trouble = *err;
    }
    link_wake(l);
}

static void link_on_list(void *ctx)
{
    struct link *l = ctx;
    store_list_begin(&l->store);
    l->listing = true;
}

static int link_too_many(struct link *l, const char *what, struct err *err)
{
    (void)err_set(err, ERR_LIMIT, "the cluster has more than %u %s", LINK_NODES_MAX, what);
    link_fail(l, LINK_BREAK_LIMIT, err);
    return -ERR_LIMIT;
}

void link_exceed(struct link *l, const struct err *err)
{
    link_fail(l, LINK_BREAK_LIMIT, err);
}

static void link_store_on_gone(void *ctx, struct store_item *item)
{
    struct link *l = ctx;
    if (l->config.on_gone != NULL && l->gone_n <= LINK_NODES_MAX) {
        ARENA_GROW(&l->gone_memory, l->gone, l->gone_n, l->gone_cap);
        l->gone[l->gone_n++] = arena_str(&l->gone_memory, item->name);
    }
    l->nodes_dirty = true;
    link_wake(l);
}

static int link_on_object(void *ctx, const struct jval *object, bool deleted, struct err *err)
{
    struct link *l = ctx;
    int r = store_observe(&l->store, object, deleted, err);
    if (r < 0) {
        return r;
    }
    if (store_count(&l->store) > LINK_NODES_MAX) {
        return link_too_many(l, "Nodes", err);
    }
    if (l->gone_n > LINK_NODES_MAX) {
        return link_too_many(l, "Nodes that come and go at once", err);
    }
    if (l->store.dirty_count > 0 && !l->nodes_dirty) {
        l->nodes_dirty = true;
        link_wake(l);
    }
    return 0;
}

static void link_recovered(struct link *l)
{
    l->trouble_since = 0;
    l->trouble.code = 0;
    link_wake(l);
}

static bool link_on_synced(void *ctx, uint64_t version)
{
    struct link *l = ctx;
    bool taken = store_list_end(&l->store, version);
    if (taken) {
        l->listing = false;
        l->synced = true;
        link_recovered(l);
    } else {
        /* The store is empty now. A fresh link would say that all Nodes are gone, so the link is
         * not fresh from now on. */
        struct err err = { 0 };
        (void)err_set(&err, ERR_GONE, "the cluster's versions have gone backwards");
        link_fail(l, LINK_BREAK_FAILED, &err);
    }
    return taken;
}

/* True: a streamed list failed, and the reflector asks for pages instead. LINK_LISTING_MAX counts
 * for both together. */
static bool link_falls_back_to_pages(struct link *l)
{
    bool learns = l->reflector.short_ends > l->short_ends && l->reflector.opened;
    l->short_ends = l->reflector.short_ends;
    return learns;
}

/* While the link watches, the reflector goes on by itself after an error, and the link stays fresh
 * for LINK_TROUBLE_MAX at most. The same counts for a new list after a 410: the store keeps the
 * Nodes until that list is complete, and decisions on them are sent with their versions. */
static void link_on_error(void *ctx, const struct err *err, bool bad UNUSED)
{
    struct link *l = ctx;
    int status = l->reflector.status;
    bool learns = link_falls_back_to_pages(l);
    if (status == 401) {
        link_fail(l, LINK_BREAK_DENIED, err);
    } else if (err->code == ERR_LIMIT) {
        link_exceed(l, err);
    } else if (l->state == LINK_LISTING && !l->synced && !learns) {
        /* A right that was given a moment ago may not have reached the whole server yet. */
        bool forbidden = status == 403 && !l->config.manage;
        link_fail(l, forbidden ? LINK_BREAK_FORBIDDEN : LINK_BREAK_FAILED, err);
    } else if (l->broken == LINK_BREAK_NONE) {
        l->trouble = *err;
        if (l->trouble_since == 0) {
            l->trouble_since = link_now(l);
        }
    }
    link_wake(l);
}

static void link_on_well(void *ctx)
{
    struct link *l = ctx;
    if (!l->listing && l->broken == LINK_BREAK_NONE) { /* the list has to be complete first */
        link_recovered(l);
    }
}

/* ── states ────────────────────────────────────────────────────────────────────────────────── */

/* The user of the link may watch another kind with its client. */
static void link_notify_hang_up(struct link *l)
{
    if (l->api != NULL && l->config.on_hang_up != NULL) {
        l->config.on_hang_up(l->config.ctx, l);
    }
}

/* Ends the watch and empties the store. Only from the timer, where no callback of the reflector is
 * on the stack. */
static void link_unwatch(struct link *l)
{
    link_notify_hang_up(l);
    reflector_done(&l->reflector);
    if (!mutated(l->config.management->mutations, MUTATION_LINK_STALE)) {
        link_store_drop(l);
        link_store_begin(l);
    }
    l->broken = LINK_BREAK_NONE;
    l->synced = false;
    l->listing = false;
    l->short_ends = 0;
    l->trouble_since = 0;
}

static void link_hang_up(struct link *l)
{
    link_calls_end(l);
    link_unwatch(l);
    dialer_hang_up(l->config.dialer, STEAL(l->api));
    l->token.renew_at = 0;
}

/* Logs once until the link is fresh again, however often it tries. */
static void link_warn(struct link *l)
{
    if (!l->warned) {
        log_warn(l->config.log, "workload cluster out of reach",
                 KV_STR("namespace", l->config.namespace), KV_STR("cluster", l->config.cluster),
                 KV_ERR(&l->trouble));
    }
    l->warned = true;
}

static void link_connect(struct link *l, struct api *api)
{
    l->api = api;
    client_init(&l->client, l->loop, api);
    mutations_copy(&l->client, l->config.management);
    l->client.traffic = &l->traffic;
    l->bucket = (struct ratelimit){ .rate = LINK_RATE, .burst = LINK_BURST };
    reflector_init(&l->reflector, &l->client,
                   &(struct reflector_config){
                       .path = STR("/api/v1/nodes"),
                       .metadata_only = true,
                       .page = LINK_PAGE,
                       .silence_max = LINK_SILENCE_MAX,
                       .on_list = link_on_list,
                       .on_object = link_on_object,
                       .on_synced = link_on_synced,
                       .on_error = link_on_error,
                       .on_well = link_on_well,
                       .ctx = l,
                   });
}

/* Moves to the connection with the new token, of the same cluster. The store stays while the Nodes
 * are listed again, and that list has to be complete as soon as one after a 410. Only from the
 * timer, as above. */
static void link_switch_api(struct link *l)
{
    link_notify_hang_up(l);
    reflector_done(&l->reflector);
    dialer_hang_up(l->config.dialer, STEAL(l->api));
    link_connect(l, STEAL(l->token.next));
    l->short_ends = 0;
    l->trouble_since = l->trouble_since > 0 ? l->trouble_since : link_now(l);
    reflector_start(&l->reflector);
}

static void link_enter_watching(struct link *l)
{
    l->urgent = false;
    l->unreachable_since = 0;
    l->reread_at = l->since + LINK_REREAD;
    l->warned = false;
    log_info(l->config.log, "workload cluster reached", KV_STR("namespace", l->config.namespace),
             KV_STR("cluster", l->config.cluster), KV_I64("nodes", store_count(&l->store)));
}

/* Not before the time at which the cluster wants to be asked again (429). */
static usec_t link_open_at(const struct link *l)
{
    usec_t at = l->api != NULL ? client_open_at(&l->client) : 0;
    return l->token.api != NULL ? MAX(at, client_open_at(&l->token.client)) : at;
}

static void link_enter(struct link *l, enum link_state state)
{
    ASSERT((link_transitions[l->state] & TO(state)) != 0);
    usec_t now = loop_now(l->loop);
    usec_t open_at = link_open_at(l);
    if (l->state == LINK_LISTING) {
        l->listed = now - l->since;
    }
    if (l->state == LINK_WATCHING) {
        if (now - l->since >= LINK_STABLE) {
            backoff_reset(&l->backoff);
            l->denied_before = false;
        }
        l->unreachable_since = l->wanted ? link_now(l) : 0;
        l->urgent = l->wanted; /* a link that was fresh connects before those that never were */
    }
    l->state = state;
    l->since = now;
    link_secret_drop(l);
    if (state != LINK_GRANTING) {
        link_token_drop(l);
    }
    switch (state) {
    case LINK_IDLE:
        link_hang_up(l);
        backoff_reset(&l->backoff);
        l->denied_before = false;
        l->warned = false;
        l->trouble.code = 0;
        break;
    case LINK_RESOLVING:
        link_hang_up(l);
        backoff_reset(&l->connect_backoff);
        /* For every reason: a Secret may change all the time. */
        l->connect_at = l->tried_at > 0 ? l->tried_at + LINK_BACKOFF_BASE : 0;
        break;
    case LINK_GRANTING:
        break;
    case LINK_LISTING:
        reflector_start(&l->reflector);
        break;
    case LINK_WATCHING:
        link_enter_watching(l);
        break;
    case LINK_BACKOFF: {
        l->retry_at = MAX(now + backoff_next(&l->backoff, loop_random(l->loop)), open_at);
        link_warn(l);
        link_hang_up(l);
        break;
    }
    case LINK_CLOSING:
        link_unwatch(l);
        break;
    }
}

/* The connection failed, or never came to be. */
static void link_give_up(struct link *l, enum link_break why)
{
    l->failures++;
    l->over_limit += why == LINK_BREAK_LIMIT ? 1 : 0;
    if (why == LINK_BREAK_FORBIDDEN || why == LINK_BREAK_LIMIT) {
        l->backoff.failures = MAX(l->backoff.failures, LINK_DOUBLINGS_MAX);
    }
    link_enter(l, LINK_BACKOFF);
}

/* A 401 may mean that the Secret has newer credentials: it is read again at once, but after a
 * second 401 in a row with a back-off. */
static void link_handle_break(struct link *l)
{
    enum link_break why = l->broken;
    bool settled = l->state == LINK_WATCHING && loop_now(l->loop) - l->since >= LINK_STABLE;
    if (why == LINK_BREAK_DENIED && (settled || !l->denied_before)) {
        l->failures++;
        link_enter(l, LINK_RESOLVING);
        l->denied_before = true;
    } else {
        link_give_up(l, why);
    }
}

static void link_resolve(struct link *l)
{
    if (!l->answered) {
        link_secret_request(l);
        return;
    }
    bool found = l->text.n > 0; /* otherwise `trouble` says why not */
    l->answered = false;
    if (found && l->config.manage && link_token_start(l, &l->trouble)) {
        link_enter(l, LINK_GRANTING);
        return;
    }
    struct api *api =
        found && !l->config.manage ? link_secret_dial(l, l->text, STR_NONE, &l->trouble) : NULL;
    link_secret_wipe(l);
    if (api == NULL) {
        link_give_up(l, LINK_BREAK_FAILED);
        return;
    }
    link_connect(l, api);
    link_enter(l, LINK_LISTING);
}

static void link_grant(struct link *l, usec_t now)
{
    if (l->token.next != NULL) {
        link_connect(l, STEAL(l->token.next));
        link_enter(l, LINK_LISTING);
    } else if (now >= l->token.until) {
        (void)err_set(&l->trouble, ERR_TIMEOUT, "no token of our own after %lld s",
                      (long long)(LINK_GRANTING_MAX / SECONDS(1)));
        link_give_up(l, LINK_BREAK_FAILED);
    }
}

static void link_list(struct link *l, usec_t now)
{
    if (l->synced) {
        link_enter(l, LINK_WATCHING);
    } else if (now >= l->since + LINK_LISTING_MAX) {
        (void)err_set(&l->trouble, ERR_TIMEOUT, "the list of Nodes is not complete after %lld s",
                      (long long)(LINK_LISTING_MAX / SECONDS(1)));
        link_give_up(l, LINK_BREAK_FAILED);
    }
}

static void link_watch(struct link *l, usec_t now)
{
    if (l->trouble_since > 0 && now >= l->trouble_since + LINK_TROUBLE_MAX) {
        if (l->trouble.code == 0) {
            (void)err_set(&l->trouble, ERR_TIMEOUT, "the new list of Nodes is not complete");
        }
        link_give_up(l, LINK_BREAK_FAILED);
        return;
    }
    link_secret_recheck(l);
    if (link_token_renew(l)) {
        link_switch_api(l);
    }
}

static void link_step(struct link *l)
{
    usec_t now = loop_now(l->loop);
    bool connected = link_connected(l);
    if (!l->wanted && l->state != LINK_IDLE && l->state != LINK_CLOSING) {
        link_enter(l, LINK_CLOSING);
    } else if (connected && l->broken != LINK_BREAK_NONE) {
        link_handle_break(l);
    } else if (l->secret_changed && (connected || l->state == LINK_BACKOFF)) {
        backoff_reset(&l->backoff); /* another Secret is another beginning */
        l->denied_before = false;
        link_enter(l, LINK_RESOLVING);
    } else {
        switch (l->state) {
        case LINK_IDLE:
            if (l->wanted) {
                link_enter(l, LINK_RESOLVING);
            }
            break;
        case LINK_RESOLVING:
            link_resolve(l);
            break;
        case LINK_GRANTING:
            link_grant(l, now);
            break;
        case LINK_LISTING:
            link_list(l, now);
            break;
        case LINK_WATCHING:
            link_watch(l, now);
            break;
        case LINK_BACKOFF:
            if (now >= l->retry_at) {
                link_enter(l, LINK_RESOLVING);
            }
            break;
        case LINK_CLOSING:
            if (l->queued_n + l->in_flight_n == 0 || now >= l->since + LINK_CLOSING_MAX) {
                link_enter(l, LINK_IDLE);
            }
            break;
        }
    }
}

/* When the state has something to do by itself. Callbacks pull the timer. */
static usec_t link_due(const struct link *l)
{
    switch (l->state) {
    case LINK_IDLE:
        break;
    case LINK_RESOLVING:
        return l->call == NULL ? MAX(l->connect_at, client_open_at(l->config.management))
                               : USEC_NEVER;
    case LINK_GRANTING:
        return l->token.until;
    case LINK_LISTING:
        return l->since + LINK_LISTING_MAX;
    case LINK_WATCHING: {
        usec_t lost = l->trouble_since > 0 ? l->trouble_since + LINK_TROUBLE_MAX : USEC_NEVER;
        usec_t look = l->secret_watched || l->call != NULL ? USEC_NEVER : l->reread_at;
        usec_t token = link_token_due_at(l);
        usec_t due = MIN(lost, look);
        return MIN(due, token);
    }
    case LINK_BACKOFF:
        return l->retry_at;
    case LINK_CLOSING:
        return l->since + LINK_CLOSING_MAX;
    }
    return USEC_NEVER;
}

/* ── callbacks to the user of the link ─────────────────────────────────────────────────────── */

static bool link_notify_state(struct link *l, const bool *freed)
{
    bool fresh = link_fresh(l);
    bool idle = l->state == LINK_IDLE;
    bool changed = fresh != l->notified_fresh || (idle && !l->notified_idle);
    l->notified_fresh = fresh;
    l->notified_idle = idle;
    if (changed) {
        l->config.on_state(l->config.ctx, l);
    }
    return !*freed;
}

static bool link_notify_gone(struct link *l, const bool *freed)
{
    struct arena memory = l->gone_memory;
    const struct str *gone = l->gone;
    uint32_t n = l->gone_n;
    l->gone_memory = (struct arena){ 0 };
    link_gone_drop(l);
    for (uint32_t i = 0; i < n && !*freed; i++) {
        l->config.on_gone(l->config.ctx, l, gone[i]);
    }
    arena_done(&memory);
    return !*freed;
}

static void link_notify(struct link *l)
{
    bool freed = false;
    /* A callback may free the link; `freed` is checked before the link is used again. */
    l->freed = &freed; /* cppcheck-suppress autoVariables */
    if (!link_notify_state(l, &freed) || !link_calls_notify(l, &freed)) {
        return;
    }
    if (link_fresh(l) && l->nodes_dirty) {
        l->nodes_dirty = false;
        if (!link_notify_gone(l, &freed)) {
            return;
        }
        l->config.on_nodes(l->config.ctx, l);
    }
    if (!freed) {
        l->freed = NULL;
    }
}

static void link_on_timer(void *ctx)
{
    struct link *l = ctx;
    enum link_state before;
    do {
        before = l->state;
        link_step(l);
    } while (l->state != before);
    link_calls_send(l);
    usec_t at = MIN(link_due(l), link_calls_at(l));
    if (at != USEC_NEVER) {
        loop_timer_pull(&l->timer, at);
    }
    link_notify(l);
}

/* ── what others may see ───────────────────────────────────────────────────────────────────── */

struct str link_uid(const struct link *l)
{
    return l->config.uid;
}

enum link_state link_state(const struct link *l)
{
    return l->state;
}

bool link_fresh(const struct link *l)
{
    return l->state == LINK_WATCHING && l->broken == LINK_BREAK_NONE;
}

usec_t link_unreachable_since(const struct link *l)
{
    return l->unreachable_since;
}

struct store *link_nodes(struct link *l)
{
    return &l->store;
}

struct client *link_client(struct link *l)
{
    return link_fresh(l) ? &l->client : NULL;
}

/* Of the connection in use; NULL when there is none. A link that gets its first token has only the
 * administrator's. */
static const struct client *link_client_in_use(const struct link *l)
{
    if (l->api != NULL) {
        return &l->client;
    }
    return l->token.api != NULL ? &l->token.client : NULL;
}

void link_view(const struct link *l, struct link_view *ret)
{
    struct client_pause pause = { 0 };
    const struct client *client = link_client_in_use(l);
    bool paused = link_connected(l) && client != NULL && client_pause(client, &pause);
    *ret = (struct link_view){
        .namespace = l->config.namespace,
        .cluster = l->config.cluster,
        .uid = l->config.uid,
        .state = l->state,
        .trouble = l->trouble.code != 0 ? str_from(l->trouble.msg) : STR_NONE,
        .since = l->since,
        .retry_at = l->state == LINK_BACKOFF ? l->retry_at : 0,
        .pause_end = paused ? client_open_at(client) : 0,
        .pause_status = pause.status,
        .listed = l->listed,
        .nodes = store_count(&l->store),
        .connects = l->connects,
        .failures = l->failures,
        .over_limit = l->over_limit,
        .overdue = buf_str(&l->token.overdue),
        .renewals_failed = l->renewals_failed,
    };
}

const char *link_state_name(enum link_state state)
{
    static const char *const names[] = {
        [LINK_IDLE] = "idle",       [LINK_RESOLVING] = "resolving", [LINK_GRANTING] = "granting",
        [LINK_LISTING] = "listing", [LINK_WATCHING] = "watching",   [LINK_BACKOFF] = "backoff",
        [LINK_CLOSING] = "closing",
    };
    return names[state];
}

static uint32_t link_length(const struct list *head)
{
    uint32_t n = 0;
    LIST_EACH (head, item) {
        n++;
    }
    return n;
}

void link_check(const struct link *l)
{
    bool connected = l->state == LINK_LISTING || l->state == LINK_WATCHING;
    ASSERT(connected ? l->api != NULL : l->state == LINK_CLOSING || l->api == NULL);
    ASSERT(l->call == NULL || l->state == LINK_RESOLVING || l->state == LINK_WATCHING);
    ASSERT(l->text.n == 0 || (l->state == LINK_RESOLVING && l->answered));
    ASSERT(l->secret.blocks == NULL || l->text.n > 0);
    /* Not inside ASSERT, which writes its condition into the program. */
    bool keeps_store = mutated(l->config.management->mutations, MUTATION_LINK_STALE);
    ASSERT(connected || keeps_store || store_count(&l->store) == 0);
    ASSERT(link_connected(l) || l->broken == LINK_BREAK_NONE);
    ASSERT(store_count(&l->store) <= LINK_NODES_MAX + 1);
    ASSERT(l->state == LINK_IDLE || l->timer.armed || l->call != NULL || l->state == LINK_WATCHING);
    ASSERT(l->in_flight_n <= LINK_CALLS_MAX && l->queued_n <= LINK_QUEUE_MAX);
    ASSERT(l->in_flight_n == 0 || l->api != NULL);
    ASSERT(l->queued_n == 0 || l->api != NULL);
    ASSERT(link_length(&l->in_flight) == l->in_flight_n);
    ASSERT(link_length(&l->queued) == l->queued_n);
    ASSERT(link_length(&l->ended) == l->ended_n);
    ASSERT(l->ended_n == 0 || l->timer.armed);
    ASSERT(l->wanted || l->unreachable_since == 0);
    ASSERT(l->state != LINK_WATCHING || l->unreachable_since == 0);
    struct link_view view;
    link_view(l, &view); /* pages ask for it at any moment */
    ASSERT(view.pause_end == 0 || link_connected(l));
    link_token_check(l);
    store_check(&l->store);
}
