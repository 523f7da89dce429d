/*
 * check_requests_internal: what the files of the judge of requests share: what they remember, and
 * how they read the server.
 */
#pragma once

#include "base/timestamp.h"
#include "tests/swarm/check_requests.h"

#define LIMITS_LISTED_MAX 8u

struct seen_request {
    struct str uid;
    struct str name;
    struct str target;
    usec_t reserved_at; /* since when it says that it is being prepared */
    bool granted;       /* approved by a controller, and not taken or given back since */
    bool ever_granted;  /* at any time by a controller that had reserved for it before */
    usec_t granted_at;
    usec_t started_at;
    usec_t finished_at; /* its phase says that it is over, or it is gone; USEC_NEVER: not yet */
};

/* A reason for a node to count as unavailable. */
struct seen_flag {
    bool is;
    usec_t since; /* without a break */
    usec_t last;  /* when it was so for the last time; 0: never */
};

struct seen_node {
    struct seen_flag not_ready;
    struct seen_flag cordoned;
    bool by_hand;            /* cordoned by hand */
    bool was_in_maintenance; /* a profile had it in maintenance since its lock was made */
    struct str marked_by;
    usec_t synced_at; /* when all watches know its labels */
};

struct seen_limit {
    uint32_t population_max; /* ever */
};

struct seen_read {
    usec_t at;
};

struct named_limit {
    struct str name;
    const struct jval *object;
};

/* Limits as they are on the server, by name. */
struct all_limits {
    struct named_limit items[LIMITS_LISTED_MAX];
    uint32_t n;
};
/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static inline void *find_or_add(struct check_requests *b, struct map *map, struct str key,
                                size_t size)
{
    void *value = map_find(map, key);
    if (value == NULL) {
        value = arena_alloc(&b->memory, size);
        (void)map_put(map, arena_str(&b->memory, key), value); /* it was not there */
    }
    return value;
}

static inline struct str string_at(const struct jval *object, const char *path)
{
    return jval_str(jval_at(object, path));
}

static inline bool string_is(const struct jval *object, const char *path, const char *text)
{
    return str_eq(string_at(object, path), str_from(text));
}

static inline bool is_controller(struct str agent)
{
    return str_starts(agent, STR("drydock-"));
}

static inline struct str cordon_mark(const struct jval *node)
{
    return jval_str(jval_get(jval_at(node, "metadata.annotations"), CHECK_CORDONED_BY_KEY));
}

static inline struct str node_class(const struct jval *node)
{
    return jval_str(jval_get(jval_at(node, "metadata.labels"), RANDOM_LIMITS_CLASS_LABEL));
}

static inline bool is_granted(const struct jval *request)
{
    return (string_is(request, "spec.state", "Approved") ||
            string_is(request, "spec.state", "InProgress")) &&
           !string_is(request, "status.phase", "Expired");
}

static inline bool is_finished(const struct jval *request)
{
    return string_is(request, "status.phase", "Completed") ||
           string_is(request, "status.phase", "Rejected") ||
           string_is(request, "status.phase", "Expired");
}

static inline void limits_visit(void *ctx, const struct jval *object)
{
    struct all_limits *all = ctx;
    ASSERT(all->n < LIMITS_LISTED_MAX);
    all->items[all->n++] = (struct named_limit){ string_at(object, "metadata.name"), object };
}

static inline struct all_limits limits_list(struct check_requests *b)
{
    struct all_limits all = { 0 };
    apiserver_each(b->server, CHECK_REPAIRMAN_GROUP, CHECK_LIMITS_PLURAL, STR(""), limits_visit,
                   &all);
    return all;
}

static inline const struct jval *node_find(struct check_requests *b, struct str name)
{
    return name.n == 0 ? NULL : apiserver_find(b->server, STR(""), STR("nodes"), STR(""), name);
}

static inline bool limit_selects_text(const struct jval *limit, const struct jval *node)
{
    const struct jval *selector = jval_at(limit, "spec.selector.matchLabels");
    const struct jval *class = jval_get(selector, RANDOM_LIMITS_CLASS_LABEL);
    return class == NULL || str_eq(jval_str(class), node_class(node));
}

static inline int64_t number_at(const struct jval *object, const char *path, int64_t fallback)
{
    int64_t value = fallback;
    return jval_i64(jval_at(object, path), &value) ? value : fallback;
}

static inline usec_t time_at(const struct jval *object, const char *path)
{
    struct timestamp stamp;
    struct err ignored = { 0 };
    struct str text = string_at(object, path);
    return text.n > 0 && timestamp_parse(text, &stamp, &ignored) == 0 ? timestamp_to_usec(stamp)
                                                                      : 0;
}

/* The one Exclusive limit that takes the node, or NULL. */
static inline const struct jval *exclusive_limit(const struct all_limits *all,
                                                 const struct jval *node)
{
    const struct jval *best = NULL;
    for (uint32_t i = 0; i < all->n; i++) {
        const struct jval *limit = all->items[i].object;
        if (string_is(limit, "spec.scope", "Exclusive") && limit_selects_text(limit, node) &&
            (best == NULL ||
             number_at(limit, "spec.priority", 0) > number_at(best, "spec.priority", 0))) {
            best = limit;
        }
    }
    return best;
}

static inline bool limit_applies(const struct all_limits *all, const struct jval *limit,
                                 const struct jval *node)
{
    const struct jval *exclusive = exclusive_limit(all, node);
    return exclusive != NULL ? exclusive == limit : limit_selects_text(limit, node);
}

/* NULL: it is not in it. */
static inline const struct jval *lease_grants_find(const struct jval *limit, struct str uid)
{
    JVAL_EACH (jval_at(limit, "status.reservations"), entry) {
        if (str_eq(jval_str(jval_get(entry, STR("requestUID"))), uid)) {
            return entry;
        }
    }
    return NULL;
}

static inline bool ledger_has(const struct jval *limit, struct str uid)
{
    return lease_grants_find(limit, uid) != NULL;
}

static inline const struct jval *request_find(struct check_requests *b,
                                              const struct seen_request *r)
{
    return apiserver_find(b->server, CHECK_REPAIRMAN_GROUP, CHECK_REQUESTS_PLURAL, STR(""),
                          r->name);
}

/* Which of its grants a request has. */
static inline int64_t request_grant(const struct jval *request)
{
    return number_at(request, "status.grant", 0);
}

/* Of which grant of its request a lock is. */
static inline int64_t lock_grant(const struct jval *lease)
{
    uint32_t grant = 0;
    struct str text =
        jval_str(jval_get(jval_at(lease, "metadata.annotations"), STR("repairman.k8s.io/grant")));
    return str_to_u32(text, &grant) ? grant : 0;
}

/* Targets in the ledger, each once. */
static inline uint32_t ledger_targets(const struct jval *limit)
{
    uint32_t n = 0;
    const struct jval *list = jval_at(limit, "status.reservations");
    JVAL_EACH (list, entry) {
        struct str target = jval_str(jval_get(entry, STR("target")));
        bool first = true;
        JVAL_EACH (list, other) {
            if (other == entry) {
                break;
            }
            first = first && !str_eq(jval_str(jval_get(other, STR("target"))), target);
        }
        n += first ? 1 : 0;
    }
    return n;
}

/* What is there when controllers begin is known to them. */
static inline usec_t watches_synced_at(const struct check_requests *b)
{
    return b->now > 0 ? b->now + CHECK_WATCH_LAG_MAX : 0;
}

/* Nobody's watch can have missed what people did to limits and to that node. */
static inline bool watches_synced(struct check_requests *b, struct str node)
{
    const struct seen_node *n = map_find(&b->nodes, node);
    return b->now >= b->synced_at && (n == NULL || b->now >= n->synced_at);
}

/* What a lock is for, "node//n1". */
static inline struct str lock_target(const struct jval *lease)
{
    return jval_str(
        jval_get(jval_at(lease, "metadata.annotations"), STR("repairman.k8s.io/target")));
}

struct lock_search {
    struct str target;
    struct str holder;
    int64_t grant;
    bool found;
};

static inline void lock_visit(void *ctx, const struct jval *lease)
{
    struct lock_search *search = ctx;
    struct str target = lock_target(lease);
    if (str_starts(string_at(lease, "metadata.name"), STR("target-")) &&
        str_ends(target, search->target)) {
        search->found = true;
        search->holder = string_at(lease, "spec.holderIdentity");
        search->grant = lock_grant(lease);
    }
}

/* Who has the lock of a node; empty: nobody. */
static inline struct lock_search lock_find(struct check_requests *b, struct str node)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct lock_search search = { .target = arena_concat(&tmp, STR("/"), node) };
    apiserver_each(b->server, STR("coordination.k8s.io"), STR("leases"), STR("default"), lock_visit,
                   &search);
    return search;
}

/* It may be from before the ledgers began (R17). */
static inline bool is_older_than_ledger(struct check_requests *b, const struct jval *request)
{
    struct all_limits all = limits_list(b);
    for (uint32_t i = 0; i < all.n; i++) {
        usec_t init = time_at(all.items[i].object, "status.ledgerInitTime");
        if (init == 0 || init > time_at(request, "metadata.creationTimestamp")) {
            return true;
        }
    }
    return false;
}

/* ── check_limits.c ────────────────────────────────────────────────────────────────────────── */

void check_requests_on_limit(struct check_requests *b, const struct apiserver_commit *commit);
/* Nodes have come, gone or changed their labels. */
void check_requests_count_nodes(struct check_requests *b);
/* Approved, and what is taken away is of that very grant. */
bool check_requests_grant_in_use(struct check_requests *b, const struct seen_request *r,
                                 int64_t grant);
