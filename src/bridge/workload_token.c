#include "bridge/workload_token.h"

#include "base/alloc.h"
#include "base/timestamp.h"
#include "format/json_tree.h"
#include "kinds/keys.h"

#define MANAGER "?fieldManager=" WORKLOAD_TOKEN_NAME
#define RBAC "/apis/rbac.authorization.k8s.io/v1/"
#define ACCOUNTS "/api/v1/namespaces/" WORKLOAD_TOKEN_NAMESPACE "/serviceaccounts"
#define METADATA                                                                                   \
    "\"metadata\":{\"name\":\"" WORKLOAD_TOKEN_NAME                                                \
    "\",\"labels\":{\"app.kubernetes.io/managed-by\":\"drydock\"}}"

/* The role, with what else it may. */
#define ROLE(more)                                                                                 \
    "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"ClusterRole\"," METADATA          \
    ",\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"nodes\"],"                                 \
    "\"verbs\":[\"get\",\"list\",\"watch\",\"patch\"]}" more "]}"

#define ROLE_PODS                                                                                  \
    ",{\"apiGroups\":[\"\"],\"resources\":[\"pods\",\"namespaces\"],\"verbs\":[\"list\"]}"
#define ROLE_REQUESTS                                                                              \
    ",{\"apiGroups\":[\"" MAINTENANCE_GROUP "\"],\"resources\":[\"maintenancerequests\"],"         \
    "\"verbs\":[\"list\",\"watch\",\"create\",\"patch\"]}"

/* An object that has to be there. */
struct rbac_object {
    const char *kind;
    const char *path;    /* of the collection */
    const char *body[4]; /* as it is created; a role by what else it may, see token_body */
    /* Members that are as in the body, or absent as there; other members are others' business. */
    const char *exact[2];
    const char *fixed; /* one that cannot be changed: the object is made anew */
};

static const struct rbac_object rbac_objects[] = {
    {
        .kind = "ServiceAccount",
        .path = ACCOUNTS,
        .body = { "{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\"," METADATA "}" },
    },
    {
        .kind = "ClusterRole",
        .path = RBAC "clusterroles",
        .body = { ROLE(""), ROLE(ROLE_PODS), ROLE(ROLE_REQUESTS), ROLE(ROLE_PODS ROLE_REQUESTS) },
        /* With an aggregationRule a controller would write the rules. */
        .exact = { "rules", "aggregationRule" },
    },
    {
        .kind = "ClusterRoleBinding",
        .path = RBAC "clusterrolebindings",
        .body = { "{\"apiVersion\":\"rbac.authorization.k8s.io/"
                  "v1\",\"kind\":\"ClusterRoleBinding\"," METADATA
                  ",\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\","
                  "\"kind\":\"ClusterRole\",\"name\":\"" WORKLOAD_TOKEN_NAME
                  "\"},\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":\"" WORKLOAD_TOKEN_NAME
                  "\",\"namespace\":\"" WORKLOAD_TOKEN_NAMESPACE "\"}]}" },
        .exact = { "subjects" },
        .fixed = "roleRef",
    },
};

enum { STEP_TOKEN = ARRAY_LEN(rbac_objects), STEP_DONE };

struct workload_token {
    struct workload_token_config config;
    uint32_t step;      /* of `things`, STEP_TOKEN or STEP_DONE */
    bool written;       /* a role or a binding, since it was begun */
    enum api_verb verb; /* of the call in flight */
    struct api_call *call;
    struct loop_timer timer; /* begins the step, again */
    struct backoff backoff;
};

static void token_on_reply(void *ctx, const struct api_reply *reply);

static const struct rbac_object *token_object(const struct workload_token *w)
{
    ASSERT(w->step < ARRAY_LEN(rbac_objects));
    return &rbac_objects[w->step];
}

static struct str token_body(const struct workload_token *w)
{
    const struct rbac_object *t = token_object(w);
    size_t which = (w->config.pods ? 1u : 0u) + (w->config.requests ? 2u : 0u);
    return str_from(t->body[which] != NULL ? t->body[which] : t->body[0]);
}

/* ── going on ──────────────────────────────────────────────────────────────────────────────── */

static void token_enter(struct workload_token *w, uint32_t step, usec_t wait)
{
    struct client *client = w->config.client;
    usec_t at = loop_now(client->loop) + wait;
    w->step = step;
    loop_timer_set(&w->timer, MAX(at, client_open_at(client)));
}

/* Tries the step again later. Calls out, so it is the last that anybody does. */
static void token_fail(struct workload_token *w, const struct err *err, int status, bool refused)
{
    usec_t wait = backoff_next(&w->backoff, loop_random(w->config.client->loop));
    token_enter(w, w->step, refused ? MAX(wait, WORKLOAD_TOKEN_REFUSED_MIN) : wait);
    w->config.on_error(w->config.ctx, err, status);
}

static void token_next(struct workload_token *w)
{
    uint32_t step = w->step + 1;
    backoff_reset(&w->backoff);
    token_enter(w, step, step == STEP_TOKEN && w->written ? WORKLOAD_TOKEN_SETTLE : 0);
}

/* The last that anybody does, too. */
static void token_send(struct workload_token *w, enum api_verb verb, struct str path,
                       struct str body)
{
    ASSERT(w->call == NULL);
    w->verb = verb;
    if (verb != API_GET && w->config.may_write != NULL && !w->config.may_write(w->config.ctx)) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_CANCELLED, "somebody else acts now");
        token_fail(w, &err, 0, /* refused= */ false);
        return;
    }
    w->call = api_send(w->config.client->api,
                       &(struct api_request){
                           .verb = verb,
                           .path = path,
                           .content_type = verb == API_PATCH ? API_MERGE_PATCH : API_JSON,
                           .body = body,
                           .timeout = WORKLOAD_TOKEN_TIMEOUT,
                       },
                       token_on_reply, w);
}

static void token_on_timer(void *ctx)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct workload_token *w = ctx;
    struct client *client = w->config.client;
    if (!client_open(client)) { /* another's answer has closed it meanwhile */
        token_enter(w, w->step, 0);
        return;
    }
    if (w->step == STEP_TOKEN) {
        token_send(w, API_POST, STR(ACCOUNTS "/" WORKLOAD_TOKEN_NAME "/token" MANAGER),
                   arena_printf(&tmp,
                                "{\"apiVersion\":\"authentication.k8s.io/v1\","
                                "\"kind\":\"TokenRequest\","
                                "\"spec\":{\"expirationSeconds\":%d}}",
                                WORKLOAD_TOKEN_SECONDS));
        return;
    }
    token_send(w, API_GET, arena_printf(&tmp, "%s/" WORKLOAD_TOKEN_NAME, token_object(w)->path),
               STR_NONE);
}

/* ── objects ───────────────────────────────────────────────────────────────────────────────── */

static const char *verb_word(enum api_verb verb)
{
    static const char *const words[] = {
        [API_GET] = "read",      [API_POST] = "created",   [API_PUT] = "replaced",
        [API_PATCH] = "changed", [API_DELETE] = "deleted",
    };
    return words[verb];
}

static void token_create(struct workload_token *w, struct arena *tmp)
{
    const struct rbac_object *t = token_object(w);
    token_send(w, API_POST, arena_printf(tmp, "%s" MANAGER, t->path), token_body(w));
}

/* One of another name or of another time is not deleted instead. */
static void token_remove(struct workload_token *w, const struct tree *found, struct arena *tmp)
{
    struct tree *options = tree_obj(tmp);
    tree_set_at(tmp, options, "preconditions.uid",
                tree_str(tmp, tree_text_at(found, "metadata.uid")));
    tree_set_at(tmp, options, "preconditions.resourceVersion",
                tree_str(tmp, tree_text_at(found, "metadata.resourceVersion")));
    token_send(w, API_DELETE, arena_printf(tmp, "%s/" WORKLOAD_TOKEN_NAME, token_object(w)->path),
               tree_json(tmp, options));
}

/* What makes it as it is wanted; NULL when it is so already. */
static struct tree *rbac_object_patch(const struct rbac_object *t, const struct tree *found,
                                      const struct tree *wanted, struct arena *tmp)
{
    struct tree *patch = NULL;
    for (size_t i = 0; i < ARRAY_LEN(t->exact) && t->exact[i] != NULL; i++) {
        struct str key = str_from(t->exact[i]);
        const struct tree *member = tree_get(wanted, key);
        if (tree_eq(tree_get(found, key), member)) {
            continue;
        }
        if (patch == NULL) {
            patch = tree_obj(tmp);
            tree_set_at(tmp, patch, "metadata.resourceVersion",
                        tree_str(tmp, tree_text_at(found, "metadata.resourceVersion")));
        }
        tree_set(tmp, patch, key, member != NULL ? tree_clone(tmp, member) : tree_null(tmp));
    }
    return patch;
}

/* The object as the server has it: read, or in answer to what was written. */
static void token_on_found(struct workload_token *w, struct str body)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct rbac_object *t = token_object(w);
    struct err err = { 0 };
    struct tree *found = NULL;
    struct tree *wanted = NULL;
    int r = tree_parse(token_body(w), &tmp, &wanted, &err);
    ASSERT(r == 0);
    if (body.n > WORKLOAD_TOKEN_BYTES_MAX) {
        (void)err_set(&err, ERR_LIMIT, "%zu bytes, at most %zu are read", body.n,
                      WORKLOAD_TOKEN_BYTES_MAX);
    } else if (tree_parse(body, &tmp, &found, &err) == 0 &&
               (tree_kind(found) != JOBJ ||
                tree_text_at(found, "metadata.resourceVersion").n == 0)) {
        (void)err_set(&err, ERR_PROTO, "the answer is no such object");
    } else if (err.code == 0 && tree_text_at(found, "metadata.deletionTimestamp").n > 0) {
        (void)err_set(&err, ERR_BUSY, "it is being deleted");
    }
    struct tree *patch = err.code == 0 ? rbac_object_patch(t, found, wanted, &tmp) : NULL;
    bool other =
        err.code == 0 && t->fixed != NULL &&
        !tree_eq(tree_get(found, str_from(t->fixed)), tree_get(wanted, str_from(t->fixed)));
    if (err.code == 0 && w->verb != API_GET && (patch != NULL || other)) {
        (void)err_set(&err, ERR_CONFLICT, "the cluster changes what is written to it");
    }
    if (err.code != 0) {
        (void)err_wrap(&err, "%s '" WORKLOAD_TOKEN_NAME "'", t->kind);
        token_fail(w, &err, 0, /* refused= */ false);
    } else if (other) {
        token_remove(w, found, &tmp);
    } else if (patch != NULL) {
        token_send(w, API_PATCH, arena_printf(&tmp, "%s/" WORKLOAD_TOKEN_NAME MANAGER, t->path),
                   tree_json(&tmp, patch));
    } else {
        token_next(w);
    }
}

static void token_on_written(struct workload_token *w)
{
    const struct rbac_object *t = token_object(w);
    w->written = w->written || t->exact[0] != NULL;
    if (w->config.on_written != NULL) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        w->config.on_written(w->config.ctx,
                             arena_printf(&tmp, "%s '" WORKLOAD_TOKEN_NAME "'", t->kind));
    }
}

static void token_on_object(struct workload_token *w, const struct api_reply *reply,
                            enum retry_verdict verdict)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    bool gone = w->verb == API_DELETE && (verdict == RETRY_DONE || verdict == RETRY_ABSENT);
    bool overtaken = verdict == RETRY_OBSERVE && w->backoff.failures == 0;
    if (gone || overtaken) {
        /* Look again. It may still wait for somebody, so never without a pause. */
        token_enter(w, w->step, backoff_next(&w->backoff, loop_random(w->config.client->loop)));
    } else if (verdict == RETRY_DONE) {
        if (w->verb != API_GET) {
            token_on_written(w);
        }
        token_on_found(w, reply->body);
    } else if (verdict == RETRY_ABSENT && w->verb == API_GET) {
        token_create(w, &tmp);
    } else {
        struct err err = { 0 };
        client_explain(reply->status, reply->body, reply->err, &err);
        (void)err_wrap(&err, "%s '" WORKLOAD_TOKEN_NAME "' cannot be %s", token_object(w)->kind,
                       verb_word(w->verb));
        bool refused = verdict == RETRY_REFUSED ||
                       (verdict == RETRY_ABSENT && w->verb == API_POST); /* no such kind */
        token_fail(w, &err, reply->status, refused);
    }
}

/* ── the token ─────────────────────────────────────────────────────────────────────────────── */

/* It goes into a header as it is: nothing but what RFC 6750 allows there. */
static bool token_is_valid(struct str token)
{
    for (size_t i = 0; i < token.n; i++) {
        char c = token.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '.' || c == '_' || c == '~' || c == '+' || c == '/' || c == '=')) {
            return false;
        }
    }
    return token.n > 0 && token.n <= WORKLOAD_TOKEN_MAX;
}

/* How long it lives from now on, by the server's clock; never more than was asked for. */
static usec_t token_lifetime(const struct workload_token *w, const struct jval *status)
{
    struct timestamp until;
    struct err ignored = { 0 };
    if (timestamp_parse(jval_str(jval_get(status, STR("expirationTimestamp"))), &until, &ignored) <
        0) {
        return 0;
    }
    usec_t life = timestamp_to_usec(until) - server_clock_wall(&w->config.client->clock);
    return MIN(life, SECONDS(WORKLOAD_TOKEN_SECONDS));
}

static int token_read(const struct workload_token *w, struct str body,
                      char text[WORKLOAD_TOKEN_MAX], struct workload_token_value *ret,
                      struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    if (body.n > WORKLOAD_TOKEN_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "an answer of %zu bytes, at most %zu are read", body.n,
                       WORKLOAD_TOKEN_BYTES_MAX);
    }
    int r = json_parse(body, 0, &tmp, &root, err);
    if (r < 0) {
        return r;
    }
    const struct jval *status = jval_get(root, STR("status"));
    struct str token = jval_str(jval_get(status, STR("token")));
    usec_t life = token_lifetime(w, status);
    bool sane = token_is_valid(token);
    if (sane) {
        memcpy(text, token.p, token.n);
        *ret = (struct workload_token_value){ .text = { .p = text, .n = token.n } };
    }
    if (token.n > 0 && (token.p < body.p || token.p >= body.p + body.n)) {
        explicit_bzero((void *)(uintptr_t)token.p, token.n); /* it was spelled with escapes */
    }
    if (!sane) {
        return err_set(err, ERR_PROTO, "the answer holds no token");
    }
    if (life <= 0) {
        return err_set(err, ERR_PROTO, "the token has ended before it came");
    }
    usec_t now = loop_now(w->config.client->loop);
    ret->expires_at = now + life;
    ret->renew_at = now + life / 100 * WORKLOAD_TOKEN_RENEW_PERCENT;
    return 0;
}

static void token_on_token(struct workload_token *w, const struct api_reply *reply,
                           enum retry_verdict verdict)
{
    struct err err = { 0 };
    if (verdict != RETRY_DONE) {
        client_explain(reply->status, reply->body, reply->err, &err);
        (void)err_wrap(&err, "no token of ServiceAccount '" WORKLOAD_TOKEN_NAME "'");
        /* The account may be gone, with whatever else was made for it. */
        w->step = verdict == RETRY_ABSENT ? 0 : w->step;
        token_fail(w, &err, reply->status, verdict == RETRY_REFUSED);
        return;
    }
    char text[WORKLOAD_TOKEN_MAX];
    struct workload_token_value token = { 0 };
    if (token_read(w, reply->body, text, &token, &err) < 0) {
        (void)err_wrap(&err, "no token of ServiceAccount '" WORKLOAD_TOKEN_NAME "'");
        token_fail(w, &err, 0, /* refused= */ false);
    } else {
        w->step = STEP_DONE;
        w->written = false;
        backoff_reset(&w->backoff);
        w->config.on_token(w->config.ctx, &token);
    }
    explicit_bzero(text, sizeof(text));
}

static void token_on_reply(void *ctx, const struct api_reply *reply)
{
    struct workload_token *w = ctx;
    w->call = NULL;
    enum retry_verdict verdict = client_note(w->config.client, w->verb, reply);
    if (w->step == STEP_TOKEN) {
        token_on_token(w, reply, verdict);
    } else {
        token_on_object(w, reply, verdict);
    }
}

/* ── its life ──────────────────────────────────────────────────────────────────────────────── */

struct workload_token *workload_token_new(const struct workload_token_config *config)
{
    struct workload_token *w = ALLOC_NEW(struct workload_token);
    w->config = *config;
    w->backoff =
        (struct backoff){ .base = WORKLOAD_TOKEN_BACKOFF_BASE, .max = WORKLOAD_TOKEN_BACKOFF_MAX };
    loop_timer_init(&w->timer, config->client->loop, token_on_timer, w);
    token_enter(w, 0, 0);
    return w;
}

void workload_token_free(struct workload_token *w)
{
    if (w == NULL) {
        return;
    }
    if (w->call != NULL) {
        api_cancel(w->config.client->api, w->call);
    }
    loop_timer_done(&w->timer);
    alloc_free(w);
}

void workload_token_check(const struct workload_token *w)
{
    ASSERT(w->step <= STEP_DONE);
    bool held = w->step == STEP_DONE;
    ASSERT(held == (w->call == NULL && !w->timer.armed)); /* something always goes on */
    ASSERT(w->call == NULL || !w->timer.armed);
}
