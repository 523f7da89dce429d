#include "bridge/workload_token.h"

#include "base/alloc.h"
#include "base/timestamp.h"
#include "format/json_tree.h"

#define MANAGER "?fieldManager=" WARRANT_NAME
#define RBAC "/apis/rbac.authorization.k8s.io/v1/"
#define ACCOUNTS "/api/v1/namespaces/" WARRANT_SPACE "/serviceaccounts"
#define METADATA                                                                                   \
    "\"metadata\":{\"name\":\"" WARRANT_NAME                                                       \
    "\",\"labels\":{\"app.kubernetes.io/managed-by\":\"drydock\"}}"

/* The role, with what else it may. */
#define ROLE(more)                                                                                 \
    "{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"ClusterRole\"," METADATA          \
    ",\"rules\":[{\"apiGroups\":[\"\"],\"resources\":[\"nodes\"],"                                 \
    "\"verbs\":[\"get\",\"list\",\"watch\",\"patch\"]}" more "]}"

#define ROLE_PODS                                                                                  \
    ",{\"apiGroups\":[\"\"],\"resources\":[\"pods\",\"namespaces\"],\"verbs\":[\"list\"]}"
#define ROLE_REQUESTS                                                                              \
    ",{\"apiGroups\":[\"repairman.k8s.io\"],\"resources\":[\"maintenancerequests\"],"              \
    "\"verbs\":[\"list\",\"watch\",\"create\",\"patch\"]}"

/* An object that has to be there. */
struct thing {
    const char *kind;
    const char *path;    /* of the collection */
    const char *body[4]; /* as it is created; a role by what else it may, see warrant_body */
    /* Members that are as in the body, or absent as there; other members are others' business. */
    const char *exact[2];
    const char *fixed; /* one that cannot be changed: the object is made anew */
};

static const struct thing things[] = {
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
                  "\"kind\":\"ClusterRole\",\"name\":\"" WARRANT_NAME
                  "\"},\"subjects\":[{\"kind\":\"ServiceAccount\",\"name\":\"" WARRANT_NAME
                  "\",\"namespace\":\"" WARRANT_SPACE "\"}]}" },
        .exact = { "subjects" },
        .fixed = "roleRef",
    },
};

enum { STEP_TOKEN = ARRAY_LEN(things), STEP_HELD };

struct warrant {
    struct warrant_config config;
    uint32_t step;      /* of `things`, STEP_TOKEN or STEP_HELD */
    bool written;       /* a role or a binding, since it was begun */
    enum api_verb verb; /* of the call in flight */
    struct api_call *call;
    struct loop_timer timer; /* begins the step, again */
    struct backoff backoff;
};

static void warrant_on_reply(void *ctx, const struct api_reply *reply);

static const struct thing *warrant_thing(const struct warrant *w)
{
    ASSERT(w->step < ARRAY_LEN(things));
    return &things[w->step];
}

static struct str warrant_body(const struct warrant *w)
{
    const struct thing *t = warrant_thing(w);
    size_t which = (w->config.pods ? 1u : 0u) + (w->config.requests ? 2u : 0u);
    return str_from(t->body[which] != NULL ? t->body[which] : t->body[0]);
}

/* ── going on ──────────────────────────────────────────────────────────────────────────────── */

static void warrant_enter(struct warrant *w, uint32_t step, usec_t wait)
{
    struct client *client = w->config.client;
    usec_t at = loop_now(client->loop) + wait;
    w->step = step;
    loop_timer_set(&w->timer, MAX(at, client_open_at(client)));
}

/* Tries the step again later. Calls out, so it is the last that anybody does. */
static void warrant_fail(struct warrant *w, const struct err *err, int status, bool refused)
{
    usec_t wait = backoff_next(&w->backoff, loop_random(w->config.client->loop));
    warrant_enter(w, w->step, refused ? MAX(wait, WARRANT_REFUSED_MIN) : wait);
    w->config.on_error(w->config.ctx, err, status);
}

static void warrant_next(struct warrant *w)
{
    uint32_t step = w->step + 1;
    backoff_reset(&w->backoff);
    warrant_enter(w, step, step == STEP_TOKEN && w->written ? WARRANT_SETTLE : 0);
}

/* The last that anybody does, too. */
static void warrant_send(struct warrant *w, enum api_verb verb, struct str path, struct str body)
{
    ASSERT(w->call == NULL);
    w->verb = verb;
    if (verb != API_GET && w->config.may_write != NULL && !w->config.may_write(w->config.ctx)) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_CANCELLED, "somebody else acts now");
        warrant_fail(w, &err, 0, /* refused= */ false);
        return;
    }
    w->call = api_send(w->config.client->api,
                       &(struct api_request){
                           .verb = verb,
                           .path = path,
                           .content_type = verb == API_PATCH ? API_MERGE_PATCH : API_JSON,
                           .body = body,
                           .timeout = WARRANT_TIMEOUT,
                       },
                       warrant_on_reply, w);
}

static void warrant_on_timer(void *ctx)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct warrant *w = ctx;
    struct client *client = w->config.client;
    if (!client_open(client)) { /* another's answer has closed it meanwhile */
        warrant_enter(w, w->step, 0);
        return;
    }
    if (w->step == STEP_TOKEN) {
        warrant_send(w, API_POST, STR(ACCOUNTS "/" WARRANT_NAME "/token" MANAGER),
                     arena_printf(&tmp,
                                  "{\"apiVersion\":\"authentication.k8s.io/v1\","
                                  "\"kind\":\"TokenRequest\","
                                  "\"spec\":{\"expirationSeconds\":%d}}",
                                  WARRANT_SECONDS));
        return;
    }
    warrant_send(w, API_GET, arena_printf(&tmp, "%s/" WARRANT_NAME, warrant_thing(w)->path),
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

static void warrant_create(struct warrant *w, struct arena *tmp)
{
    const struct thing *t = warrant_thing(w);
    warrant_send(w, API_POST, arena_printf(tmp, "%s" MANAGER, t->path), warrant_body(w));
}

/* One of another name or of another time is not deleted instead. */
static void warrant_remove(struct warrant *w, const struct tree *found, struct arena *tmp)
{
    struct tree *options = tree_obj(tmp);
    tree_set_at(tmp, options, "preconditions.uid",
                tree_str(tmp, tree_text_at(found, "metadata.uid")));
    tree_set_at(tmp, options, "preconditions.resourceVersion",
                tree_str(tmp, tree_text_at(found, "metadata.resourceVersion")));
    warrant_send(w, API_DELETE, arena_printf(tmp, "%s/" WARRANT_NAME, warrant_thing(w)->path),
                 tree_json(tmp, options));
}

/* What makes it as it is wanted; NULL when it is so already. */
static struct tree *thing_patch(const struct thing *t, const struct tree *found,
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
static void warrant_on_found(struct warrant *w, struct str body)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct thing *t = warrant_thing(w);
    struct err err = { 0 };
    struct tree *found = NULL;
    struct tree *wanted = NULL;
    int r = tree_parse(warrant_body(w), &tmp, &wanted, &err);
    ASSERT(r == 0);
    if (body.n > WARRANT_BYTES_MAX) {
        (void)err_set(&err, ERR_LIMIT, "%zu bytes, at most %zu are read", body.n,
                      WARRANT_BYTES_MAX);
    } else if (tree_parse(body, &tmp, &found, &err) == 0 &&
               (tree_kind(found) != JOBJ ||
                tree_text_at(found, "metadata.resourceVersion").n == 0)) {
        (void)err_set(&err, ERR_PROTO, "the answer is no such object");
    } else if (err.code == 0 && tree_text_at(found, "metadata.deletionTimestamp").n > 0) {
        (void)err_set(&err, ERR_BUSY, "it is being deleted");
    }
    struct tree *patch = err.code == 0 ? thing_patch(t, found, wanted, &tmp) : NULL;
    bool other =
        err.code == 0 && t->fixed != NULL &&
        !tree_eq(tree_get(found, str_from(t->fixed)), tree_get(wanted, str_from(t->fixed)));
    if (err.code == 0 && w->verb != API_GET && (patch != NULL || other)) {
        (void)err_set(&err, ERR_CONFLICT, "the cluster changes what is written to it");
    }
    if (err.code != 0) {
        (void)err_wrap(&err, "%s '" WARRANT_NAME "'", t->kind);
        warrant_fail(w, &err, 0, /* refused= */ false);
    } else if (other) {
        warrant_remove(w, found, &tmp);
    } else if (patch != NULL) {
        warrant_send(w, API_PATCH, arena_printf(&tmp, "%s/" WARRANT_NAME MANAGER, t->path),
                     tree_json(&tmp, patch));
    } else {
        warrant_next(w);
    }
}

static void warrant_on_written(struct warrant *w)
{
    const struct thing *t = warrant_thing(w);
    w->written = w->written || t->exact[0] != NULL;
    if (w->config.on_written != NULL) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        w->config.on_written(w->config.ctx, arena_printf(&tmp, "%s '" WARRANT_NAME "'", t->kind));
    }
}

static void warrant_on_object(struct warrant *w, const struct api_reply *reply,
                              enum retry_verdict verdict)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    bool gone = w->verb == API_DELETE && (verdict == RETRY_DONE || verdict == RETRY_ABSENT);
    bool overtaken = verdict == RETRY_OBSERVE && w->backoff.failures == 0;
    if (gone || overtaken) {
        /* Look again. It may still wait for somebody, so never without a pause. */
        warrant_enter(w, w->step, backoff_next(&w->backoff, loop_random(w->config.client->loop)));
    } else if (verdict == RETRY_DONE) {
        if (w->verb != API_GET) {
            warrant_on_written(w);
        }
        warrant_on_found(w, reply->body);
    } else if (verdict == RETRY_ABSENT && w->verb == API_GET) {
        warrant_create(w, &tmp);
    } else {
        struct err err = { 0 };
        client_explain(reply->status, reply->body, reply->err, &err);
        (void)err_wrap(&err, "%s '" WARRANT_NAME "' cannot be %s", warrant_thing(w)->kind,
                       verb_word(w->verb));
        bool refused = verdict == RETRY_REFUSED ||
                       (verdict == RETRY_ABSENT && w->verb == API_POST); /* no such kind */
        warrant_fail(w, &err, reply->status, refused);
    }
}

/* ── the token ─────────────────────────────────────────────────────────────────────────────── */

/* It goes into a header as it is: nothing but what RFC 6750 allows there. */
static bool token_is_sane(struct str token)
{
    for (size_t i = 0; i < token.n; i++) {
        char c = token.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '.' || c == '_' || c == '~' || c == '+' || c == '/' || c == '=')) {
            return false;
        }
    }
    return token.n > 0 && token.n <= WARRANT_TOKEN_MAX;
}

/* How long it lives from now on, by the server's clock; never more than was asked for. */
static usec_t token_life(const struct warrant *w, const struct jval *status)
{
    struct timestamp until;
    struct err ignored = { 0 };
    if (timestamp_parse(jval_str(jval_get(status, STR("expirationTimestamp"))), &until, &ignored) <
        0) {
        return 0;
    }
    usec_t life = timestamp_to_usec(until) - server_clock_wall(&w->config.client->clock);
    return MIN(life, SECONDS(WARRANT_SECONDS));
}

static int token_read(const struct warrant *w, struct str body, char text[WARRANT_TOKEN_MAX],
                      struct warrant_token *ret, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    if (body.n > WARRANT_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "an answer of %zu bytes, at most %zu are read", body.n,
                       WARRANT_BYTES_MAX);
    }
    int r = json_parse(body, 0, &tmp, &root, err);
    if (r < 0) {
        return r;
    }
    const struct jval *status = jval_get(root, STR("status"));
    struct str token = jval_str(jval_get(status, STR("token")));
    usec_t life = token_life(w, status);
    bool sane = token_is_sane(token);
    if (sane) {
        memcpy(text, token.p, token.n);
        *ret = (struct warrant_token){ .text = { .p = text, .n = token.n } };
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
    ret->renew_at = now + life / 100 * WARRANT_RENEW_PERCENT;
    return 0;
}

static void warrant_on_token(struct warrant *w, const struct api_reply *reply,
                             enum retry_verdict verdict)
{
    struct err err = { 0 };
    if (verdict != RETRY_DONE) {
        client_explain(reply->status, reply->body, reply->err, &err);
        (void)err_wrap(&err, "no token of ServiceAccount '" WARRANT_NAME "'");
        /* The account may be gone, with whatever else was made for it. */
        w->step = verdict == RETRY_ABSENT ? 0 : w->step;
        warrant_fail(w, &err, reply->status, verdict == RETRY_REFUSED);
        return;
    }
    char text[WARRANT_TOKEN_MAX];
    struct warrant_token token = { 0 };
    if (token_read(w, reply->body, text, &token, &err) < 0) {
        (void)err_wrap(&err, "no token of ServiceAccount '" WARRANT_NAME "'");
        warrant_fail(w, &err, 0, /* refused= */ false);
    } else {
        w->step = STEP_HELD;
        w->written = false;
        backoff_reset(&w->backoff);
        w->config.on_token(w->config.ctx, &token);
    }
    explicit_bzero(text, sizeof(text));
}

static void warrant_on_reply(void *ctx, const struct api_reply *reply)
{
    struct warrant *w = ctx;
    w->call = NULL;
    enum retry_verdict verdict = client_note(w->config.client, w->verb, reply);
    if (w->step == STEP_TOKEN) {
        warrant_on_token(w, reply, verdict);
    } else {
        warrant_on_object(w, reply, verdict);
    }
}

/* ── its life ──────────────────────────────────────────────────────────────────────────────── */

struct warrant *warrant_new(const struct warrant_config *config)
{
    struct warrant *w = ALLOC_NEW(struct warrant);
    w->config = *config;
    w->backoff = (struct backoff){ .base = WARRANT_BACKOFF_BASE, .max = WARRANT_BACKOFF_MAX };
    loop_timer_init(&w->timer, config->client->loop, warrant_on_timer, w);
    warrant_enter(w, 0, 0);
    return w;
}

void warrant_free(struct warrant *w)
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

void warrant_renew(struct warrant *w)
{
    if (w->step == STEP_HELD) {
        warrant_enter(w, 0, 0);
    }
}

bool warrant_held(const struct warrant *w)
{
    return w->step == STEP_HELD;
}

void warrant_check(const struct warrant *w)
{
    ASSERT(w->step <= STEP_HELD);
    bool held = w->step == STEP_HELD;
    ASSERT(held == (w->call == NULL && !w->timer.armed)); /* something always goes on */
    ASSERT(w->call == NULL || !w->timer.armed);
}
