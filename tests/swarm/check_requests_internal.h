/*
 * check_requests_internal: what the files of the judge of requests share: what they remember, and
 * how they read the server.
 */
#pragma once

#include "base/timestamp.h"
#include "tests/swarm/check_requests.h"

#define LIMITS_MAX 8u

struct budget_request {
    struct str uid;
    struct str name;
    struct str target;
    usec_t reserved_at; /* since when it says that it is being prepared */
    bool granted;       /* approved by a controller, and not taken or given back since */
    usec_t granted_at;
    usec_t begun_at;
    usec_t over_at; /* its phase says that it is over, or it is gone; USEC_NEVER: not yet */
};

/* A reason for a node to count as unavailable. */
struct budget_trait {
    bool is;
    usec_t since; /* without a break */
    usec_t last;  /* when it was so for the last time; 0: never */
};

struct budget_node {
    struct budget_trait not_ready;
    struct budget_trait cordoned;
    bool foreign; /* cordoned by hand */
    bool served;  /* a profile had it in maintenance since its lock was made */
    struct str marked_by;
    usec_t settles_at; /* when all watches know its labels */
};

struct budget_limit {
    uint32_t population_most; /* ever */
};

struct budget_read {
    usec_t at;
};

struct one_limit {
    struct str name;
    const struct jval *object;
};

/* Limits as they are on the server, by name. */
struct all_limits {
    struct one_limit items[LIMITS_MAX];
    uint32_t n;
};
/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static inline void *find_or_make(struct budget *b, struct map *map, struct str key, size_t size)
{
    void *value = map_find(map, key);
    if (value == NULL) {
        value = arena_alloc(&b->memory, size);
        (void)map_put(map, arena_str(&b->memory, key), value); /* it was not there */
    }
    return value;
}

static inline struct str text_at(const struct jval *object, const char *path)
{
    return jval_str(jval_at(object, path));
}

static inline bool is_text(const struct jval *object, const char *path, const char *text)
{
    return str_eq(text_at(object, path), str_from(text));
}

static inline bool is_controller(struct str agent)
{
    return str_starts(agent, STR("drydock-"));
}

static inline struct str mark_of(const struct jval *node)
{
    return jval_str(jval_get(jval_at(node, "metadata.annotations"), BUDGET_MARK));
}

static inline struct str class_of(const struct jval *node)
{
    return jval_str(jval_get(jval_at(node, "metadata.labels"), TERMS_CLASS));
}

static inline bool is_given(const struct jval *request)
{
    return (is_text(request, "spec.state", "Approved") ||
            is_text(request, "spec.state", "InProgress")) &&
           !is_text(request, "status.phase", "Expired");
}

static inline bool is_over(const struct jval *request)
{
    return is_text(request, "status.phase", "Completed") ||
           is_text(request, "status.phase", "Rejected") ||
           is_text(request, "status.phase", "Expired");
}

static inline void limits_visit(void *ctx, const struct jval *object)
{
    struct all_limits *all = ctx;
    ASSERT(all->n < LIMITS_MAX);
    all->items[all->n++] = (struct one_limit){ text_at(object, "metadata.name"), object };
}

static inline struct all_limits limits_of(struct budget *b)
{
    struct all_limits all = { 0 };
    apiserver_each(b->server, BUDGET_GROUP, BUDGET_LIMITS, STR(""), limits_visit, &all);
    return all;
}

static inline const struct jval *node_of(struct budget *b, struct str name)
{
    return name.n == 0 ? NULL : apiserver_find(b->server, STR(""), STR("nodes"), STR(""), name);
}

static inline bool limit_selects_text(const struct jval *limit, const struct jval *node)
{
    const struct jval *selector = jval_at(limit, "spec.selector.matchLabels");
    const struct jval *class = jval_get(selector, TERMS_CLASS);
    return class == NULL || str_eq(jval_str(class), class_of(node));
}

static inline int64_t number_at(const struct jval *object, const char *path, int64_t otherwise)
{
    int64_t value = otherwise;
    return jval_i64(jval_at(object, path), &value) ? value : otherwise;
}

static inline usec_t time_at(const struct jval *object, const char *path)
{
    struct timestamp stamp;
    struct err ignored = { 0 };
    struct str text = text_at(object, path);
    return text.n > 0 && timestamp_parse(text, &stamp, &ignored) == 0 ? timestamp_to_usec(stamp)
                                                                      : 0;
}

/* The one Exclusive limit that takes the node, or NULL. */
static inline const struct jval *exclusive_of(const struct all_limits *all, const struct jval *node)
{
    const struct jval *best = NULL;
    for (uint32_t i = 0; i < all->n; i++) {
        const struct jval *limit = all->items[i].object;
        if (is_text(limit, "spec.scope", "Exclusive") && limit_selects_text(limit, node) &&
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
    const struct jval *exclusive = exclusive_of(all, node);
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

static inline const struct jval *request_of(struct budget *b, const struct budget_request *r)
{
    return apiserver_find(b->server, BUDGET_GROUP, BUDGET_REQUESTS, STR(""), r->name);
}

/* Which of its grants a request has. */
static inline int64_t grant_of(const struct jval *request)
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
static inline usec_t settled_after(const struct budget *b)
{
    return b->now > 0 ? b->now + BUDGET_SETTLED : 0;
}

/* Nobody's watch can have missed what people did to limits and to that node. */
static inline bool is_settled(struct budget *b, struct str node)
{
    const struct budget_node *n = map_find(&b->nodes, node);
    return b->now >= b->settles_at && (n == NULL || b->now >= n->settles_at);
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
    if (str_starts(text_at(lease, "metadata.name"), STR("target-")) &&
        str_ends(target, search->target)) {
        search->found = true;
        search->holder = text_at(lease, "spec.holderIdentity");
        search->grant = lock_grant(lease);
    }
}

/* Who has the lock of a node; empty: nobody. */
static inline struct lock_search lock_holder(struct budget *b, struct str node)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct lock_search search = { .target = arena_concat(&tmp, STR("/"), node) };
    apiserver_each(b->server, STR("coordination.k8s.io"), STR("leases"), STR("default"), lock_visit,
                   &search);
    return search;
}

/* ── budget_limit.c ────────────────────────────────────────────────────────────────────────── */

void budget_on_limit(struct budget *b, const struct apiserver_commit *commit);
/* Nodes have come, gone or changed their labels. */
void budget_count_nodes(struct budget *b);
/* Approved, and what is taken away is of that very grant. */
bool budget_is_held(struct budget *b, const struct budget_request *r, int64_t grant);
