/*
 * Finds out whether the CRDs of requests and limits are installed and may be read, and starts the
 * arbiter when they are. The API group is asked for once; where it is absent, the one CRD is
 * watched, so that installing it is enough and an idle controller polls nothing. Where a right is
 * missing there is no arbiter: profiles do not wait for kinds that cannot be read, and the log,
 * /readyz and the status name the right.
 */
#include "core/core_internal.h"

#include "kinds/keys.h"

#define ACCESS_REVIEWS_PATH STR("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
#define CRDS_PATH STR("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
#define CRD_QUERY STR("&fieldSelector=metadata.name%3Dmaintenancerequests." MAINTENANCE_GROUP)
#define DISCOVERY_RETRY SECONDS(5)
#define DENIED_RETRY MINUTES(5) /* where CRDs may not be watched, they are asked for */

enum { KIND_LIMITS, KIND_REQUESTS, KIND_SELECTORS };
static const char *const kind_plurals[] = {
    [KIND_LIMITS] = "maintenancelimits",
    [KIND_REQUESTS] = "maintenancerequests",
    [KIND_SELECTORS] = "maintenanceselectors",
};

/* ── the arbiter ───────────────────────────────────────────────────────────────────────────── */

static bool arbiter_may_act(void *ctx)
{
    return core_may_act(ctx);
}

static struct str arbiter_is_paused(void *ctx)
{
    return core_grants_stopped(ctx);
}

static usec_t arbiter_wall(void *ctx)
{
    const struct core *c = ctx;
    return server_clock_wall(&c->client.clock);
}

static bool arbiter_has_mark(void *ctx, struct str uid)
{
    struct core *c = ctx;
    const struct store_item *node = map_find(&c->nodes.store.by_uid, uid);
    if (node != NULL && core_is_disturbed(c, NULL, node)) {
        return true;
    }
    LIST_EACH (&c->parts, link) {
        struct core_part *p = CONTAINER_OF(link, struct core_part, link);
        if (p->ops->has_mark != NULL && p->ops->has_mark(p, uid)) {
            return true;
        }
    }
    return false;
}

static void arbiter_on_capacity(void *ctx)
{
    struct core *c = ctx;
    CORE_EACH_PART(c, p, on_capacity);
}

static void arbiter_on_turn(void *ctx)
{
    struct core *c = ctx;
    CORE_EACH_PART(c, p, on_arbiter_turn);
}

static void core_tell_arbiter(struct core *c)
{
    c->limits_known = true;
    CORE_EACH_PART(c, p, on_arbiter);
}

static void core_arbiter_start(struct core *c)
{
    struct arbiter_config limits = c->config.limits;
    ASSERT(c->arbiter == NULL);
    limits.client = &c->client;
    limits.recorder = &c->recorder;
    limits.log = c->log;
    limits.metrics = c->config.metrics;
    limits.nodes = &c->nodes.store;
    limits.may_act = arbiter_may_act;
    limits.paused = arbiter_is_paused;
    limits.wall = arbiter_wall;
    limits.has_mark = arbiter_has_mark;
    limits.on_capacity = arbiter_on_capacity;
    limits.on_turn = arbiter_on_turn;
    limits.ctx = c;
    c->arbiter = arbiter_new(&limits);
    core_tell_arbiter(c);
    const bool *installed = c->kind_installed;
    log_info(c->log, installed[KIND_LIMITS] && installed[KIND_REQUESTS]
                         ? "MaintenanceRequests and MaintenanceLimits are served"
                     : installed[KIND_REQUESTS]
                         ? "MaintenanceRequests are served; MaintenanceLimits are not installed"
                     : installed[KIND_LIMITS]
                         ? "MaintenanceLimits are served; MaintenanceRequests are not installed"
                         : "MaintenanceRequests and MaintenanceLimits are not installed");
    core_tell_may_act(c);
}

/* ── rights ────────────────────────────────────────────────────────────────────────────────── */

static const char *const right_verbs[] = { "list", "watch" };
#define RIGHTS (ARRAY_LEN(kind_plurals) * ARRAY_LEN(right_verbs))

static void rights_ask(struct core *c);

/* `what` and the right that is asked about: why requests and limits are not served. */
static void rights_tell(struct core *c, const char *news, const char *what)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str text = arena_printf(&tmp,
                                   "MaintenanceRequests and MaintenanceLimits are not served: %s "
                                   "%s %s of " MAINTENANCE_GROUP,
                                   what, right_verbs[c->right % ARRAY_LEN(right_verbs)],
                                   kind_plurals[c->right / ARRAY_LEN(right_verbs)]);
    if (!str_eq(text, c->denied)) {
        log_warn(c->log, news, KV_STR("why", text));
    }
    buf_reset(&c->denied_text);
    buf_add(&c->denied_text, text);
    c->denied = buf_str(&c->denied_text);
}

static void rights_deny(struct core *c)
{
    rights_tell(c, "A right is missing", "this controller may not");
    core_tell_arbiter(c);
    loop_timer_set(&c->crd_retry, loop_now(c->loop) + DENIED_RETRY);
}

/* No answer, or one that does not say: limits may be in force that cannot be seen yet, so nothing
 * is decided without them, and everything is asked again soon. */
static void rights_doubt(struct core *c)
{
    rights_tell(c, "The API server's answer about a right cannot be read",
                "it is not known yet whether this controller may");
    loop_timer_set(&c->crd_retry, loop_now(c->loop) + DISCOVERY_RETRY);
}

static void rights_on_reply(void *ctx, const struct api_reply *reply)
{
    struct core *c = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *review = NULL;
    c->crd_call = NULL;
    enum retry_verdict verdict = client_note(&c->client, API_POST, reply);
    /* A server that does not take the question is asked by the watches themselves. */
    bool answers = verdict != RETRY_ABSENT && verdict != RETRY_REFUSED;
    const struct jval *allowed = NULL;
    if (verdict == RETRY_DONE && json_parse(reply->body, JSON_GO, &tmp, &review, &ignored) == 0) {
        allowed = jval_at(review, "status.allowed");
    }
    if (answers && jval_kind(allowed) != JBOOL) {
        rights_doubt(c);
    } else if (answers && !jval_bool(allowed, false)) {
        rights_deny(c);
    } else {
        c->right++;
        rights_ask(c);
    }
}

/* One after the other, of the kinds that are there; after the last one the arbiter starts. */
static void rights_ask(struct core *c)
{
    while (c->right < RIGHTS && !c->kind_installed[c->right / ARRAY_LEN(right_verbs)]) {
        c->right++;
    }
    if (c->right >= RIGHTS) {
        c->denied = STR_NONE;
        core_arbiter_start(c);
        return;
    }
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str body = arena_printf(
        &tmp,
        "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\","
        "\"spec\":{\"resourceAttributes\":{\"group\":\"" MAINTENANCE_GROUP
        "\",\"resource\":\"%s\",\"verb\":\"%s\"}}}",
        kind_plurals[c->right / ARRAY_LEN(right_verbs)],
        right_verbs[c->right % ARRAY_LEN(right_verbs)]);
    c->crd_call = api_send(
        c->client.api,
        &(struct api_request){ .verb = API_POST, .path = ACCESS_REVIEWS_PATH, .body = body },
        rights_on_reply, c);
}

/* What the group serves; where its document does not say, all of it. False: that is no such
 * document, but for instance the page of a proxy. */
static bool kinds_read(struct core *c, struct str body)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *group = NULL;
    if (json_parse(body, JSON_GO, &tmp, &group, &ignored) < 0 || jval_kind(group) != JOBJ) {
        return false;
    }
    const struct jval *kind = jval_get(group, STR("kind"));
    const struct jval *resources = jval_get(group, STR("resources"));
    if (kind != NULL && !str_eq(jval_str(kind), STR("APIResourceList"))) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(kind_plurals); i++) {
        c->kind_installed[i] = jval_kind(resources) != JARR;
    }
    JVAL_EACH (resources, resource) {
        for (size_t i = 0; i < ARRAY_LEN(kind_plurals); i++) {
            c->kind_installed[i] =
                c->kind_installed[i] ||
                str_eq(jval_str(jval_get(resource, STR("name"))), str_from(kind_plurals[i]));
        }
    }
    return true;
}

/* ── waiting for the CRDs ──────────────────────────────────────────────────────────────────── */

static void crd_unwatch(struct core *c)
{
    if (c->crd_watched) {
        c->crd_watched = false;
        reflector_done(&c->crd);
    }
}

static void crd_on_list(void *ctx UNUSED)
{
}

static int crd_on_object(void *ctx, const struct jval *object, bool deleted, struct err *err UNUSED)
{
    struct core *c = ctx;
    const struct jval *conditions = jval_at(object, "status.conditions");
    JVAL_EACH (conditions, condition) {
        if (!deleted && str_eq(jval_str(jval_get(condition, STR("type"))), STR("Established")) &&
            str_eq(jval_str(jval_get(condition, STR("status"))), STR("True"))) {
            /* Not from inside the watch's own callback. */
            loop_timer_set(&c->crd_retry, loop_now(c->loop));
        }
    }
    return 0;
}

static bool crd_on_synced(void *ctx UNUSED, uint64_t version UNUSED)
{
    return true;
}

static void crd_on_error(void *ctx, const struct err *err, bool bad UNUSED)
{
    struct core *c = ctx;
    if (err->code == ERR_DENIED) {
        loop_timer_set(&c->crd_retry, loop_now(c->loop) + DENIED_RETRY);
    }
}

static void crd_watch(struct core *c)
{
    c->crd_watched = true;
    reflector_init(&c->crd, &c->client,
                   &(struct reflector_config){
                       .path = CRDS_PATH,
                       .query = CRD_QUERY,
                       .on_list = crd_on_list,
                       .on_object = crd_on_object,
                       .on_synced = crd_on_synced,
                       .on_error = crd_on_error,
                       .ctx = c,
                   });
    reflector_start(&c->crd);
}

static void group_on_reply(void *ctx, const struct api_reply *reply)
{
    struct core *c = ctx;
    c->crd_call = NULL;
    switch (client_note(&c->client, API_GET, reply)) {
    case RETRY_DONE:
        if (!kinds_read(c, reply->body)) {
            loop_timer_set(&c->crd_retry, loop_now(c->loop) + DISCOVERY_RETRY);
            return;
        }
        c->right = 0;
        rights_ask(c);
        return;
    case RETRY_ABSENT:
        core_tell_arbiter(c);
        crd_watch(c);
        return;
    case RETRY_REFUSED:
        core_tell_arbiter(c);
        loop_timer_set(&c->crd_retry, loop_now(c->loop) + DENIED_RETRY);
        return;
    default:
        loop_timer_set(&c->crd_retry, loop_now(c->loop) + DISCOVERY_RETRY);
    }
}

static void group_ask(void *ctx)
{
    struct core *c = ctx;
    const struct api_request request = { .verb = API_GET, .path = STR(MAINTENANCE_PATH) };
    crd_unwatch(c);
    if (c->arbiter == NULL && c->crd_call == NULL) {
        c->crd_call = api_send(c->client.api, &request, group_on_reply, c);
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

void core_arbiter_init(struct core *c)
{
    loop_timer_init(&c->crd_retry, c->loop, group_ask, c);
}

void core_arbiter_look(struct core *c)
{
    if (c->config.use_limits) {
        loop_timer_set(&c->crd_retry, loop_now(c->loop));
    }
}

void core_arbiter_done(struct core *c)
{
    crd_unwatch(c);
    if (c->crd_call != NULL) {
        api_cancel(c->client.api, STEAL(c->crd_call));
    }
    loop_timer_done(&c->crd_retry);
    buf_done(&c->denied_text);
    arbiter_free(STEAL(c->arbiter));
}
