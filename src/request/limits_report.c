/* Collects the report, finds out who waits for whom, and narrows it to one request or limit. */
#include "request/limits_report.h"

#include "base/map.h"

#include <stdlib.h>

#define PROFILE_PREFIX STR("profile/")

/* ── adding ────────────────────────────────────────────────────────────────────────────────── */

void limits_report_add_limit(struct limits_report *b, const struct limits_report_limit *limit,
                             struct arena *out)
{
    if (b->limit_n == b->limit_cap) {
        ARENA_GROW(out, b->limits, b->limit_n, b->limit_cap);
    }
    b->limits[b->limit_n++] = *limit;
}

void limits_report_add_claim(struct limits_report *b, const struct limits_report_claim *claim,
                             struct arena *out)
{
    if (b->claim_n == b->claim_cap) {
        ARENA_GROW(out, b->claims, b->claim_n, b->claim_cap);
    }
    b->claims[b->claim_n++] = *claim;
}

struct limits_report_walk {
    struct limits_report *report;
    struct arena *out;
    bool ended;
};

static bool collect_limit(void *ctx, const struct arbiter_limit *l)
{
    const struct limits_report_walk *walk = ctx;
    struct limits_report_holder *holders =
        ARENA_ARRAY(walk->out, struct limits_report_holder, l->granted + 1);
    for (uint32_t i = 0; i < l->granted; i++) {
        const struct arbiter_holder *h = &l->holders[i];
        holders[i] = (struct limits_report_holder){ .target = h->target,
                                                    .uid = h->uid,
                                                    .name = h->name,
                                                    .phase = h->state,
                                                    .since = h->since == USEC_NEVER ? 0 : h->since,
                                                    .deadline = USEC_NEVER };
    }
    limits_report_add_limit(walk->report,
                            &(struct limits_report_limit){
                                .name = l->name,
                                .type = target_type_name(l->type),
                                .selects = l->selects,
                                .exclusive = l->exclusive,
                                .percent = l->percent,
                                .minimum = l->minimum,
                                .most = l->max_count,
                                .computed = l->problem.n == 0,
                                .population = l->population,
                                .allowed = l->nominal,
                                .held = l->granted,
                                .unavailable = l->unavailable,
                                .room = l->limit > l->granted ? l->limit - l->granted : 0,
                                .paused = l->paused,
                                .over = l->overcommitted,
                                .problem = l->problem,
                                .gap_end = l->gap_end,
                                .holders = holders,
                                .holder_n = l->granted,
                            },
                            walk->out);
    return true;
}

static struct str full_name(struct str namespace, struct str name, struct arena *out)
{
    return namespace.n == 0
               ? name
               : arena_printf(out, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name));
}

static bool collect_request(void *ctx, const struct requests_view *v)
{
    const struct limits_report_walk *walk = ctx;
    if (v->ended && !walk->ended) {
        return true;
    }
    limits_report_add_claim(walk->report,
                            &(struct limits_report_claim){
                                .uid = v->uid,
                                .name = v->name,
                                .client = v->client,
                                .type = target_type_name(v->type),
                                .target = full_name(v->namespace, v->target, walk->out),
                                .phase = v->phase,
                                .step = v->step,
                                .reason = v->reason,
                                .message = v->message,
                                .waits = v->waits,
                                .last = v->last,
                                .ended = v->ended,
                                .priority = v->priority,
                                .position = v->waits ? v->position : 0,
                                .since = v->since,
                                .deadline = v->deadline,
                                .at_deadline = v->at_deadline,
                                .next = v->next,
                                .limit = v->limit,
                                .limits = v->limits,
                                .limit_n = v->limit_n,
                                .blocker_uid = v->blocker,
                            },
                            walk->out);
    return true;
}

void limits_report_collect(struct limits_report *b, const struct arbiter *arbiter,
                           const struct requests *requests, bool ended, struct arena *out)
{
    struct limits_report_walk walk = { .report = b, .out = out, .ended = ended };
    if (arbiter != NULL) {
        arbiter_each_limit(arbiter, out, collect_limit, &walk);
    }
    if (requests != NULL) {
        requests_each(requests, out, collect_request, &walk);
    }
}

/* ── texts ─────────────────────────────────────────────────────────────────────────────────── */

struct str limits_report_limit_state(const struct limits_report_limit *l)
{
    if (l->paused) {
        return l->over ? STR("paused, over-committed") : STR("paused");
    }
    if (!l->computed) {
        return STR("not computed");
    }
    if (l->over) {
        return STR("over-committed");
    }
    if (l->population == 0 && l->held == 0) {
        return STR("selects nothing");
    }
    return l->room > 0 ? STR("open") : STR("full");
}

bool limits_report_is_profile(struct str name)
{
    return str_starts(name, PROFILE_PREFIX);
}

struct str limits_report_owner_text(struct str name, struct str client, struct arena *out)
{
    struct str profile;
    if (str_cut_prefix(name, PROFILE_PREFIX, &profile)) {
        return arena_printf(out, "profile " STR_FMT, STR_ARG(profile));
    }
    return client.n == 0
               ? name
               : arena_printf(out, STR_FMT " of " STR_FMT, STR_ARG(name), STR_ARG(client));
}

const struct limits_report_limit *limits_report_find_limit(const struct limits_report *b,
                                                           struct str name)
{
    for (uint32_t i = 0; i < b->limit_n; i++) {
        if (str_eq(b->limits[i].name, name)) {
            return &b->limits[i];
        }
    }
    return NULL;
}

/* "the one held", "all 3 held", "1 of the 3 held". */
static struct str count_text(uint32_t part, uint32_t all, const char *what, struct arena *out)
{
    if (all == 1) {
        return arena_printf(out, "the one %s", what);
    }
    return part >= all ? arena_printf(out, "all %u %s", all, what)
                       : arena_printf(out, "%u of the %u %s", part, all, what);
}

/* What has to happen before a full limit allows one more. */
static struct str until_capacity(const struct limits_report_limit *l, struct arena *out)
{
    if (l == NULL) {
        return STR("the limit allows more again");
    }
    if (l->allowed == 0) {
        return arena_printf(out, "limit " STR_FMT " allows more than none", STR_ARG(l->name));
    }
    struct str back = count_text(1, l->unavailable, "unavailable", out);
    if (l->held == 0) {
        return arena_printf(out, STR_FMT " under limit " STR_FMT " is back", STR_ARG(back),
                            STR_ARG(l->name));
    }
    /* Above the limit one that ends is not enough. */
    uint32_t used = l->held + l->unavailable;
    uint32_t ends = used >= l->allowed ? used - l->allowed + 1 : 1;
    struct str held = count_text(ends, l->held, "held", out);
    return arena_printf(
        out, STR_FMT " under limit " STR_FMT " end%s%s" STR_FMT "%s", STR_ARG(held),
        STR_ARG(l->name), ends == 1 || l->held == 1 ? "s" : "", l->unavailable > 0 ? ", or " : "",
        STR_ARG(l->unavailable > 0 ? back : STR_NONE), l->unavailable > 0 ? " is back" : "");
}

static struct str until_known(const struct limits_report_limit *l, struct arena *out)
{
    return l != NULL ? arena_printf(out, "limit " STR_FMT " can be evaluated", STR_ARG(l->name))
                     : STR("a controller leads and knows the cluster");
}

static struct str until_granted(const struct limits_report *b, const struct limits_report_claim *c,
                                struct arena *out)
{
    const struct limits_report_limit *l = limits_report_find_limit(b, c->limit);
    if (str_eq(c->reason, STR("LimitReached"))) {
        return until_capacity(l, out);
    }
    if (str_eq(c->reason, STR("TargetBusy"))) {
        return arena_printf(out, STR_FMT " " STR_FMT " is released", STR_ARG(c->type),
                            STR_ARG(c->target));
    }
    if (str_eq(c->reason, STR("Paused"))) {
        return arena_printf(out, "spec.paused of limit " STR_FMT " is false",
                            STR_ARG(c->limit.n > 0 ? c->limit : STR("it waits for")));
    }
    if (str_eq(c->reason, STR("AllPaused"))) {
        return STR("somebody runs 'drydock resume'");
    }
    if (str_eq(c->reason, STR("Gap"))) {
        return STR("the gap between two operations is over");
    }
    if (str_eq(c->reason, STR("NotComputed"))) {
        return until_known(l, out);
    }
    if (str_eq(c->reason, STR("TargetNotFound"))) {
        return arena_printf(out, "there is a " STR_FMT " " STR_FMT ", or it is withdrawn",
                            STR_ARG(c->type), STR_ARG(c->target));
    }
    if (str_eq(c->reason, STR("NoLimitConfigured"))) {
        return STR("a MaintenanceLimit selects it");
    }
    if (str_eq(c->reason, STR("InvalidSpec")) || str_eq(c->reason, STR("UnsupportedType"))) {
        return STR("it is withdrawn: like this it is never granted");
    }
    return STR("it is tried again, by itself");
}

static struct str until_text(const struct limits_report *b, const struct limits_report_claim *c,
                             struct arena *out)
{
    if (c->ended) {
        return STR_NONE;
    }
    if (c->waits) {
        return until_granted(b, c, out);
    }
    if (limits_report_is_profile(c->name)) {
        return STR("its profile leaves in-maintenance");
    }
    if (str_eq(c->phase, STR("Preparing"))) {
        return STR("the target is prepared");
    }
    if (str_eq(c->phase, STR("Approved"))) {
        return STR("its client says InProgress, then Completed");
    }
    return STR("its client says Completed");
}

/* What a step of the preparation does that has taken too long. */
static struct str at_step_timeout(enum on_timeout on_timeout)
{
    switch (on_timeout) {
    case ON_TIMEOUT_REJECT:
        return STR("it goes back to the queue");
    case ON_TIMEOUT_PROCEED:
        return STR("it goes on to the next step");
    case ON_TIMEOUT_FORCE:
        return STR("the pods that are left are deleted");
    }
    return STR_NONE;
}

static struct str at_progress_timeout(enum on_in_progress on_in_progress)
{
    switch (on_in_progress) {
    case ON_PROGRESS_RELEASE:
        return STR("it expires: its place is given to others, the cordon stays");
    case ON_PROGRESS_REQUEUE:
        return STR("it goes back to the queue");
    case ON_PROGRESS_CLOSE:
        return STR("it is closed");
    case ON_PROGRESS_HOLD:
        return STR("it is marked as late and keeps its place");
    }
    return STR_NONE;
}

struct str limits_report_at_deadline(enum mrequest_phase phase, enum mrequest_step step,
                                     const struct limit_options *options)
{
    if (phase == MR_PHASE_PREPARING && step == MR_STEP_DETACH) {
        return at_step_timeout(options->detach.on_timeout);
    }
    if (phase == MR_PHASE_PREPARING) {
        return at_step_timeout(options->drain.on_timeout);
    }
    if (phase == MR_PHASE_APPROVED) {
        return options->on_approved == ON_APPROVED_CLOSE ? STR("it is closed")
                                                         : STR("it goes back to the queue");
    }
    return phase == MR_PHASE_IN_PROGRESS ? at_progress_timeout(options->on_in_progress) : STR_NONE;
}

/* ── bringing together ─────────────────────────────────────────────────────────────────────── */

struct limits_report_index {
    struct limits_report *report;
    struct arena *out;
    struct map claims;  /* uid → struct limits_report_claim */
    struct map holders; /* uid → struct limits_report_holder */
};

static bool claim_has_limit(const struct limits_report_claim *c, struct str name)
{
    for (uint32_t i = 0; i < c->limit_n; i++) {
        if (str_eq(c->limits[i], name)) {
            return true;
        }
    }
    return false;
}

/* A holder that is not among the claims: a profile's node, or a request that is not known yet. */
static void index_add_unlisted(struct limits_report_index *index,
                               const struct limits_report_limit *l,
                               const struct limits_report_holder *h)
{
    struct limits_report *b = index->report;
    struct str *limits = ARENA_ARRAY(index->out, struct str, b->limit_n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->limit_n; i++) {
        for (uint32_t k = 0; k < b->limits[i].holder_n; k++) {
            if (str_eq(b->limits[i].holders[k].uid, h->uid)) {
                limits[n++] = b->limits[i].name;
                break;
            }
        }
    }
    limits_report_add_claim(b,
                            &(struct limits_report_claim){ .uid = h->uid,
                                                           .name = h->name,
                                                           .client = h->client,
                                                           .type = l->type,
                                                           .target = h->target,
                                                           .phase = h->phase,
                                                           .since = h->since,
                                                           .deadline = h->deadline,
                                                           .at_deadline = h->at_deadline,
                                                           .next = USEC_NEVER,
                                                           .limits = limits,
                                                           .limit_n = n },
                            index->out);
}

/* A waiting claim can be a holder: its reservation is being written or removed. */
static void index_holders(struct limits_report_index *index)
{
    struct limits_report *b = index->report;
    for (uint32_t i = 0; i < b->limit_n; i++) {
        for (uint32_t k = 0; k < b->limits[i].holder_n; k++) {
            struct limits_report_holder *h = &b->limits[i].holders[k];
            const struct limits_report_claim *c = map_find(&index->claims, h->uid);
            if (c != NULL) {
                h->client = c->client;
                h->phase = c->waits ? h->phase : c->phase;
                h->deadline = c->deadline;
                h->at_deadline = c->at_deadline;
            }
            if (map_put(&index->holders, h->uid, h) == NULL && c == NULL) {
                index_add_unlisted(index, &b->limits[i], h);
            }
        }
    }
}

static const struct limits_report_holder *
index_find_blocker(const struct limits_report_index *index, struct str uid)
{
    const struct limits_report_holder *h = uid.n > 0 ? map_find(&index->holders, uid) : NULL;
    const struct limits_report_claim *c = uid.n > 0 ? map_find(&index->claims, uid) : NULL;
    if (h != NULL || c == NULL) {
        return h;
    }
    /* It holds the target under no limit. */
    struct limits_report_holder *holder = ARENA_NEW(index->out, struct limits_report_holder);
    *holder = (struct limits_report_holder){ .target = c->target,
                                             .uid = c->uid,
                                             .name = c->name,
                                             .client = c->client,
                                             .phase = c->phase,
                                             .since = c->since,
                                             .deadline = c->deadline,
                                             .at_deadline = c->at_deadline };
    return holder;
}

/* For a claim without the name of the limit that refuses it: the limit its reason fits. */
static const struct limits_report_limit *index_find_limit(const struct limits_report_index *index,
                                                          const struct limits_report_claim *c)
{
    bool full = str_eq(c->reason, STR("LimitReached"));
    bool paused = str_eq(c->reason, STR("Paused"));
    for (uint32_t i = 0; i < c->limit_n; i++) {
        const struct limits_report_limit *l = limits_report_find_limit(index->report, c->limits[i]);
        if (l != NULL && ((full && l->room == 0) || (paused && l->paused))) {
            return l;
        }
    }
    return NULL;
}

static struct str oldest_holder(const struct limits_report_limit *l)
{
    const struct limits_report_holder *oldest = NULL;
    for (uint32_t i = 0; i < l->holder_n; i++) {
        if (oldest == NULL || l->holders[i].since < oldest->since) {
            oldest = &l->holders[i];
        }
    }
    return oldest != NULL ? oldest->uid : STR_NONE;
}

/* The objects alone do not say who waits for whom: it is guessed from the reason. */
static void index_guess_blocker(const struct limits_report_index *index,
                                struct limits_report_claim *c)
{
    const struct limits_report_limit *l = c->limit.n == 0 ? index_find_limit(index, c) : NULL;
    if (l != NULL) {
        c->limit = l->name;
        c->blocker_uid = str_eq(c->reason, STR("LimitReached")) ? oldest_holder(l) : STR_NONE;
    }
    /* A pause or a gap ends whoever holds what. */
    if (!str_eq(c->reason, STR("LimitReached")) && !str_eq(c->reason, STR("TargetBusy"))) {
        c->blocker_uid = STR_NONE;
    }
    const struct limits_report *b = index->report;
    for (uint32_t i = 0; str_eq(c->reason, STR("TargetBusy")) && i < b->claim_n; i++) {
        const struct limits_report_claim *other = &b->claims[i];
        if (c->blocker_uid.n == 0 && !other->waits && !other->ended &&
            str_eq(other->target, c->target) && str_eq(other->type, c->type)) {
            c->blocker_uid = other->uid;
        }
    }
}

/* A claim without a time is sorted last. */
static usec_t claim_since(const struct limits_report_claim *c)
{
    return c->since > 0 ? c->since : USEC_NEVER;
}

static int claim_order(const void *left, const void *right)
{
    const struct limits_report_claim *a = left;
    const struct limits_report_claim *b = right;
    if (a->waits != b->waits) {
        return a->waits ? -1 : 1;
    }
    if (a->waits && a->last != b->last) {
        return a->last ? 1 : -1;
    }
    if (a->waits && a->priority != b->priority) {
        return a->priority > b->priority ? -1 : 1;
    }
    if (a->waits && claim_since(a) != claim_since(b)) {
        return claim_since(a) < claim_since(b) ? -1 : 1;
    }
    int order = a->waits ? 0 : str_cmp(a->target, b->target);
    order = order != 0 ? order : str_cmp(a->uid, b->uid);
    return order != 0 ? order : str_cmp(a->name, b->name);
}

static int limit_order(const void *left, const void *right)
{
    const struct limits_report_limit *a = left;
    const struct limits_report_limit *b = right;
    return str_cmp(a->name, b->name);
}

void limits_report_finish(struct limits_report *b, struct arena *out)
{
    struct limits_report_index index = { .report = b, .out = out };
    map_init(&index.claims, 0, 0);
    map_init(&index.holders, 0, 0);
    if (b->limit_n > 0) {
        qsort(b->limits, b->limit_n, sizeof(b->limits[0]), limit_order);
    }
    for (uint32_t i = 0; i < b->claim_n; i++) {
        (void)map_put(&index.claims, b->claims[i].uid, &b->claims[i]); /* uids are unique */
    }
    uint32_t known = b->claim_n;
    uint32_t *waiting = ARENA_ARRAY(out, uint32_t, b->limit_n + 1);
    index_holders(&index); /* what moves then is a copy: the map's stay readable */
    for (uint32_t i = 0; i < b->claim_n; i++) {
        struct limits_report_claim *c = &b->claims[i];
        if (c->waits) {
            index_guess_blocker(&index, c);
        }
        c->blocker = i < known ? index_find_blocker(&index, c->blocker_uid) : NULL;
        c->until = until_text(b, c, out);
        for (uint32_t k = 0; c->waits && k < b->limit_n; k++) {
            waiting[k] += claim_has_limit(c, b->limits[k].name) ? 1 : 0;
        }
    }
    for (uint32_t i = 0; i < b->limit_n; i++) {
        /* Objects do not say which limits a waiting request waits for; the limits' status does. */
        b->limits[i].waiting = MAX(b->limits[i].waiting, waiting[i]);
    }
    if (b->claim_n > 0) {
        qsort(b->claims, b->claim_n, sizeof(b->claims[0]), claim_order);
    }
    map_done(&index.claims);
    map_done(&index.holders);
}

/* ── narrowing ─────────────────────────────────────────────────────────────────────────────── */

/* By its name; otherwise by its target: who holds that before who waits for it. */
static const struct limits_report_claim *find_request(const struct limits_report *b,
                                                      struct str name)
{
    const struct limits_report_claim *best = NULL;
    for (uint32_t i = 0; i < b->claim_n; i++) {
        const struct limits_report_claim *c = &b->claims[i];
        if (limits_report_is_profile(c->name)) {
            continue;
        }
        if (str_eq(c->name, name)) {
            return c;
        }
        if (str_eq(c->target, name) && !c->ended && (best == NULL || (best->waits && !c->waits))) {
            best = c;
        }
    }
    return best;
}

bool limits_report_only_request(struct limits_report *b, struct str name, struct arena *out)
{
    const struct limits_report_claim *found = find_request(b, name);
    if (found == NULL) {
        return false;
    }
    const struct limits_report_claim it = *found;
    struct limits_report_claim *claims = ARENA_ARRAY(out, struct limits_report_claim, b->claim_n);
    uint32_t n = 0;
    claims[n++] = it;
    for (uint32_t i = 0; it.waits && &b->claims[i] != found; i++) {
        const struct limits_report_claim *c = &b->claims[i];
        if (c->waits &&
            (str_eq(c->target, it.target) || (it.limit.n > 0 && claim_has_limit(c, it.limit)))) {
            claims[n++] = *c;
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->limit_n; i++) {
        if (claim_has_limit(&it, b->limits[i].name)) {
            b->limits[kept++] = b->limits[i];
        }
    }
    b->about = LIMITS_REPORT_REQUEST;
    b->limit_n = kept;
    b->claims = claims;
    b->claim_n = n;
    return true;
}

bool limits_report_only_limit(struct limits_report *b, struct str name)
{
    const struct limits_report_limit *found = limits_report_find_limit(b, name);
    if (found == NULL) {
        return false;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->claim_n; i++) {
        if (claim_has_limit(&b->claims[i], name)) {
            b->claims[kept++] = b->claims[i];
        }
    }
    b->limits[0] = *found;
    b->limit_n = 1;
    b->claim_n = kept;
    b->about = LIMITS_REPORT_LIMIT;
    return true;
}
