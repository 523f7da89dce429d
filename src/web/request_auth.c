#include "web/request_auth.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/ratelimit.h"
#include "format/digest.h"
#include "format/json.h"
#include "format/json_writer.h"
#include "kube/client.h"
#include "web/http_reply.h"

#define TOKEN_REVIEWS STR("/apis/authentication.k8s.io/v1/tokenreviews")
#define ACCESS_REVIEWS STR("/apis/authorization.k8s.io/v1/subjectaccessreviews")
#define PATH_BYTES_MAX 1024u               /* ours are short; node names in queries do not count */
#define USER_BYTES_MAX ((size_t)32 * 1024) /* a name with its groups: hundreds of them */
#define TELL_EVERY MINUTES(1)              /* an API server that is away is one line a minute */

/* What the cluster says about one verb and path of a sender. */
struct auth_answer {
    struct list link; /* of the sender; the one used last is at the end */
    struct arena memory;
    struct str verb;
    struct str path;
    bool allowed;
    bool asked;   /* a review is in flight */
    usec_t until; /* good until then; 0 = nothing is known yet */
};

struct auth_sender {
    struct list link; /* of those accepted or of the others; the one used last is at the end */
    struct request_auth *auth;
    char key[SHA256_BYTES + 1]; /* its first byte tells tokens from certificates */
    bool token;                 /* otherwise a certificate */
    bool accepted;              /* the cluster knew it when it was asked last */
    bool asked;                 /* a TokenReview is in flight */
    usec_t until;               /* `accepted` is good until then; 0 = nothing is known yet */
    struct arena memory;
    struct str name;
    struct str members; /* of a review's spec: "user", "groups" and so on, as JSON */
    struct list answers;
    uint32_t answer_n;
    uint32_t reviews; /* in flight */
    uint32_t waiting; /* requests */
};

/* A question in flight. */
struct auth_review {
    struct list link;
    struct auth_sender *sender;
    struct auth_answer *answer; /* NULL = a TokenReview */
    struct api_call *call;
    bool ahead; /* counts among those of accepted senders */
};

/* A request that waits. */
struct auth_wait {
    struct list link;
    struct auth_sender *sender;
    struct inbound_exchange *x; /* borrowed: until it is passed on, answered or closed */
    struct inbound_request req; /* its texts live in `memory` */
    struct arena memory;        /* holds the token: wiped */
    struct str path;            /* as RBAC has it */
    struct str token;
    struct loop_timer timer;
};

struct request_auth {
    struct request_auth_config config;
    struct map senders;
    struct list accepted;
    struct list others;
    uint32_t accepted_n;
    uint32_t others_n;
    struct list waiting; /* in order of arrival */
    uint32_t waiting_n;
    struct list reviews;
    uint32_t ahead_n; /* in flight for accepted senders, and for the others */
    uint32_t stranger_n;
    struct ratelimit strangers;
    struct loop_timer again; /* strangers may ask again */
    usec_t told_at;
    struct metric *results;
    struct metric *asked;
};

static void auth_step(void *ctx);

static void auth_count(struct metric *metric, struct str label)
{
    if (metric != NULL) {
        metric_add(metric_series(metric, &label), 1);
    }
}

/* ── senders ───────────────────────────────────────────────────────────────────────────────── */

static struct str sender_key(const struct auth_sender *s)
{
    return (struct str){ .p = s->key, .n = sizeof(s->key) };
}

static void answer_free(struct auth_answer *answer)
{
    list_del(&answer->link);
    arena_done(&answer->memory);
    alloc_free(answer);
}

static void sender_unlist(struct auth_sender *s)
{
    list_del(&s->link);
    *(s->accepted ? &s->auth->accepted_n : &s->auth->others_n) -= 1;
}

static void sender_free(struct auth_sender *s)
{
    sender_unlist(s);
    (void)map_del(&s->auth->senders, sender_key(s));
    LIST_EACH (&s->answers, item) {
        answer_free(CONTAINER_OF(item, struct auth_answer, link));
    }
    arena_done(&s->memory);
    alloc_free(s);
}

/* Those unused for longest make room, except who waits: they are few. */
static void senders_trim(struct list *list, const uint32_t *n, uint32_t max)
{
    LIST_EACH (list, item) {
        struct auth_sender *s = CONTAINER_OF(item, struct auth_sender, link);
        if (*n <= max) {
            return;
        }
        if (s->waiting == 0 && s->reviews == 0) {
            sender_free(s);
        }
    }
}

static void sender_list(struct auth_sender *s, bool accepted)
{
    struct request_auth *auth = s->auth;
    s->accepted = accepted;
    list_add(accepted ? &auth->accepted : &auth->others, &s->link);
    *(accepted ? &auth->accepted_n : &auth->others_n) += 1;
}

/* To the end of its list, and of the other one if the cluster thinks otherwise by now. */
static void sender_touch(struct auth_sender *s, bool accepted)
{
    sender_unlist(s);
    sender_list(s, accepted);
}

static struct auth_sender *sender_find(struct request_auth *auth, char kind, struct str secret,
                                       bool *ret_new)
{
    char key[SHA256_BYTES + 1] = { kind };
    unsigned char hash[SHA256_BYTES];
    sha256(secret, hash);
    memcpy(key + 1, hash, sizeof(hash));
    struct auth_sender *s = map_find(&auth->senders, (struct str){ .p = key, .n = sizeof(key) });
    *ret_new = s == NULL;
    if (s != NULL) {
        sender_touch(s, s->accepted);
        return s;
    }
    s = ALLOC_NEW(struct auth_sender);
    s->auth = auth;
    memcpy(s->key, key, sizeof(key));
    list_init(&s->answers);
    sender_list(s, /* accepted= */ false);
    (void)map_put(&auth->senders, sender_key(s), s); /* it was not there */
    return s;
}

static struct auth_answer *answer_find(struct auth_sender *s, struct str verb, struct str path)
{
    LIST_EACH (&s->answers, item) {
        struct auth_answer *answer = CONTAINER_OF(item, struct auth_answer, link);
        if (str_eq(answer->path, path) && str_eq(answer->verb, verb)) {
            list_del(&answer->link);
            list_add(&s->answers, &answer->link);
            return answer;
        }
    }
    return NULL;
}

static struct auth_answer *answer_add(struct auth_sender *s, struct str verb, struct str path)
{
    struct auth_answer *answer = ALLOC_NEW(struct auth_answer);
    answer->memory.first = 256;
    answer->verb = arena_str(&answer->memory, verb);
    answer->path = arena_str(&answer->memory, path);
    list_add(&s->answers, &answer->link);
    s->answer_n++;
    LIST_EACH (&s->answers, item) {
        struct auth_answer *oldest = CONTAINER_OF(item, struct auth_answer, link);
        if (s->answer_n <= REQUEST_AUTH_PATHS_MAX) {
            break;
        }
        if (!oldest->asked && oldest != answer) {
            answer_free(oldest);
            s->answer_n--;
        }
    }
    return answer;
}

/* ── requests that wait ────────────────────────────────────────────────────────────────────── */

static void wait_free(struct auth_wait *wait)
{
    wait->sender->waiting--;
    wait->sender->auth->waiting_n--;
    list_del(&wait->link);
    loop_timer_done(&wait->timer);
    arena_wipe(&wait->memory);
    alloc_free(wait);
}

static void wait_closed(void *ctx)
{
    wait_free(ctx);
}

/* The exchange, which nobody waits for any more. */
static struct inbound_exchange *wait_take(struct auth_wait *wait)
{
    struct inbound_exchange *x = wait->x;
    x->on_close = NULL;
    x->on_close_ctx = NULL;
    return x;
}

static void auth_refuse(struct request_auth *auth, struct inbound_exchange *x, int status,
                        struct str text)
{
    const char *result = status == 401 ? "unauthenticated" : status == 403 ? "forbidden" : "failed";
    auth_count(auth->results, str_from(result));
    if (status == 401) {
        inbound_set_header(x, "WWW-Authenticate", STR("Bearer realm=\"drydock\""));
    } else if (status == 503) {
        inbound_set_header(x, "Retry-After", STR("1"));
    }
    http_reply_error(x, status, text);
}

static void wait_refuse(struct auth_wait *wait, int status, struct str text)
{
    struct request_auth *auth = wait->sender->auth;
    struct inbound_exchange *x = wait_take(wait);
    wait_free(wait);
    auth_refuse(auth, x, status, text);
}

static void wait_forbid(struct auth_wait *wait, const struct auth_answer *answer)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    buf_printf(&text,
               "'" STR_FMT "' may not " STR_FMT " '" STR_FMT
               "': no ClusterRole of theirs has this verb and nonResourceURL",
               STR_ARG(wait->sender->name), STR_ARG(answer->verb), STR_ARG(answer->path));
    wait_refuse(wait, 403, buf_str(&text));
}

static void wait_pass(struct auth_wait *wait)
{
    struct request_auth *auth = wait->sender->auth;
    struct inbound_exchange *x = wait_take(wait);
    struct arena memory = wait->memory; /* the handler reads the request's texts */
    struct inbound_request req = wait->req;
    wait->memory = (struct arena){ 0 };
    wait_free(wait);
    auth_count(auth->results, STR("allowed"));
    auth->config.handler(auth->config.ctx, x, &req);
    arena_wipe(&memory);
}

static void wait_on_timer(void *ctx)
{
    wait_refuse(ctx, 503, STR("the cluster was not asked in time who this is; try again"));
}

/* ── reviews ───────────────────────────────────────────────────────────────────────────────── */

static void review_free(struct auth_review *review)
{
    struct request_auth *auth = review->sender->auth;
    list_del(&review->link);
    *(review->ahead ? &auth->ahead_n : &auth->stranger_n) -= 1;
    review->sender->reviews--;
    if (review->answer != NULL) {
        review->answer->asked = false;
    } else {
        review->sender->asked = false;
    }
    alloc_free(review);
}

/* Whether one more review of this sender may be sent now; if only the rate forbids it, the timer is
 * set. */
static bool review_may_start(struct auth_sender *s)
{
    struct request_auth *auth = s->auth;
    usec_t now = loop_now(auth->config.loop);
    bool place = s->accepted ? auth->ahead_n < REQUEST_AUTH_KNOWN_MAX
                             : auth->stranger_n < REQUEST_AUTH_REVIEWS_MAX;
    if (!place || s->reviews >= REQUEST_AUTH_SENDER_REVIEWS_MAX) {
        return false; /* the next reply steps again */
    }
    if (s->accepted) {
        return true;
    }
    usec_t at = ratelimit_ready_at(&auth->strangers, now);
    if (at > now) {
        loop_timer_pull(&auth->again, at);
        return false;
    }
    ratelimit_take(&auth->strangers, now);
    return true;
}

static void review_send(struct auth_sender *s, struct auth_answer *answer, struct str body,
                        api_on_reply on_reply)
{
    struct request_auth *auth = s->auth;
    struct auth_review *review = ALLOC_NEW(struct auth_review);
    review->sender = s;
    review->answer = answer;
    review->ahead = s->accepted;
    list_add(&auth->reviews, &review->link);
    *(review->ahead ? &auth->ahead_n : &auth->stranger_n) += 1;
    s->reviews++;
    auth_count(auth->asked, answer != NULL ? STR("access") : STR("token"));
    review->call =
        api_send(auth->config.api,
                 &(struct api_request){ .verb = API_POST,
                                        .path = answer != NULL ? ACCESS_REVIEWS : TOKEN_REVIEWS,
                                        .body = body,
                                        .timeout = REQUEST_AUTH_TIMEOUT },
                 on_reply, review);
}

/* The status of the review in a reply; NULL with `err` when it has none. */
static const struct jval *review_read(const struct api_reply *reply, struct arena *tmp,
                                      struct err *err)
{
    const struct jval *root = NULL;
    if (reply->status != 200 && reply->status != 201) {
        client_explain(reply->status, reply->body, reply->err, err);
        return NULL;
    }
    if (json_parse(reply->body, 0, tmp, &root, err) < 0) {
        return NULL;
    }
    const struct jval *status = jval_get(root, STR("status"));
    if (jval_kind(status) != JOBJ) {
        (void)err_set(err, ERR_PROTO, "the review has no status");
        return NULL;
    }
    return status;
}

/* Whoever waits for the answer that did not come is refused; what was known before stays good for
 * its time. */
static void review_fail(struct auth_sender *s, const struct auth_answer *answer,
                        const struct err *err)
{
    struct request_auth *auth = s->auth;
    usec_t now = loop_now(auth->config.loop);
    if (auth->told_at == 0 || now - auth->told_at >= TELL_EVERY) {
        auth->told_at = now;
        log_warn(auth->config.log,
                 answer == NULL ? "requests are refused: the cluster does not say whose a token is"
                                : "requests are refused: the cluster does not say who may read",
                 KV_ERR(err));
    }
    LIST_EACH (&auth->waiting, item) {
        struct auth_wait *wait = CONTAINER_OF(item, struct auth_wait, link);
        bool concerned =
            wait->sender == s &&
            (answer == NULL ? now >= s->until
                            : now >= answer->until && str_eq(wait->path, answer->path));
        if (concerned) {
            wait_refuse(wait, 503, STR("the cluster cannot be asked who may read this; try again"));
        }
    }
}

static bool audiences_meet(const struct request_auth *auth, const struct jval *audiences)
{
    for (uint32_t i = 0; i < auth->config.audience_n; i++) {
        JVAL_EACH (audiences, audience) {
            if (str_eq(jval_str(audience), auth->config.audiences[i])) {
                return true;
            }
        }
    }
    return auth->config.audience_n == 0;
}

static void write_members(struct buf *out, struct str name, const struct jval *user)
{
    struct json_writer w = json_writer_on(out);
    const struct jval *groups = jval_get(user, STR("groups"));
    const struct jval *extra = jval_get(user, STR("extra"));
    jw_obj(&w);
    jw_pair(&w, "user", name);
    jw_pair_some(&w, "uid", jval_str(jval_get(user, STR("uid"))));
    if (jval_kind(groups) == JARR) {
        jw_key(&w, STR("groups"));
        jw_val(&w, groups);
    }
    if (jval_kind(extra) == JOBJ) {
        jw_key(&w, STR("extra"));
        jw_val(&w, extra);
    }
    jw_obj_end(&w);
}

/* Notes who the sender is. What was known about another user's rights is forgotten. */
static void sender_set_user(struct auth_sender *s, struct str name, const struct buf *members)
{
    struct str inner = str_sub(buf_str(members), 1, members->n - 2); /* without its braces */
    if (str_eq(inner, s->members)) {
        return;
    }
    LIST_EACH (&s->answers, item) {
        CONTAINER_OF(item, struct auth_answer, link)->until = 0;
    }
    arena_reset(&s->memory);
    s->name = arena_str(&s->memory, name);
    s->members = arena_str(&s->memory, inner);
}

static void on_token_review(void *ctx, const struct api_reply *reply)
{
    struct auth_review *review = ctx;
    struct auth_sender *s = review->sender;
    struct request_auth *auth = s->auth;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf members = { .max = USER_BYTES_MAX };
    struct err err = { 0 };
    const struct jval *status = review_read(reply, &tmp, &err);
    review_free(review);
    if (status == NULL) {
        review_fail(s, NULL, &err);
        auth_step(auth);
        return;
    }
    const struct jval *user = jval_get(status, STR("user"));
    struct str name = jval_str(jval_get(user, STR("username")));
    bool good = jval_bool(jval_get(status, STR("authenticated")), false) && name.n > 0 &&
                audiences_meet(auth, jval_get(status, STR("audiences")));
    if (good) {
        write_members(&members, name, user);
        good = !members.full;
    }
    if (good) {
        sender_set_user(s, name, &members);
    }
    sender_touch(s, good);
    s->until =
        loop_now(auth->config.loop) + (good ? REQUEST_AUTH_GOOD_TIME : REQUEST_AUTH_BAD_TIME);
    senders_trim(&auth->accepted, &auth->accepted_n, REQUEST_AUTH_ACCEPTED_MAX);
    auth_step(auth);
}

static void on_access_review(void *ctx, const struct api_reply *reply)
{
    struct auth_review *review = ctx;
    struct auth_sender *s = review->sender;
    struct auth_answer *answer = review->answer;
    struct request_auth *auth = s->auth;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *status = review_read(reply, &tmp, &err);
    review_free(review);
    if (status == NULL) {
        review_fail(s, answer, &err);
    } else {
        answer->allowed = jval_bool(jval_get(status, STR("allowed")), false) &&
                          !jval_bool(jval_get(status, STR("denied")), false);
        answer->until = loop_now(auth->config.loop) +
                        (answer->allowed ? REQUEST_AUTH_GOOD_TIME : REQUEST_AUTH_BAD_TIME);
    }
    auth_step(auth);
}

static void ask_token(struct auth_sender *s, struct str token)
{
    if (s->asked || !review_may_start(s)) {
        return;
    }
    CLEANUP(buf_done)
    struct buf body = { 0 };
    struct json_writer w = json_writer_on(&body);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("authentication.k8s.io/v1"));
    jw_pair(&w, "kind", STR("TokenReview"));
    jw_key(&w, STR("spec"));
    jw_obj(&w);
    jw_pair(&w, "token", token);
    if (s->auth->config.audience_n > 0) {
        jw_key(&w, STR("audiences"));
        jw_strs(&w, s->auth->config.audiences, s->auth->config.audience_n);
    }
    jw_obj_end(&w);
    jw_obj_end(&w);
    s->asked = true;
    review_send(s, NULL, buf_str(&body), on_token_review);
    explicit_bzero(body.p, body.n);
}

static void ask_access(struct auth_sender *s, struct auth_answer *answer)
{
    if (answer->asked || !review_may_start(s)) {
        return;
    }
    CLEANUP(buf_done)
    struct buf body = { 0 };
    buf_add(&body, STR("{\"apiVersion\":\"authorization.k8s.io/v1\","
                       "\"kind\":\"SubjectAccessReview\",\"spec\":{"));
    buf_add(&body, s->members);
    buf_add(&body, STR(",\"nonResourceAttributes\":"));
    struct json_writer w = json_writer_on(&body);
    jw_obj(&w);
    jw_pair(&w, "path", answer->path);
    jw_pair(&w, "verb", answer->verb);
    jw_obj_end(&w);
    buf_add(&body, STR("}}"));
    answer->asked = true;
    review_send(s, answer, buf_str(&body), on_access_review);
}

/* ── deciding ──────────────────────────────────────────────────────────────────────────────── */

/* RBAC has the methods in small letters; who may get may ask for the head alone. */
static struct str auth_verb(struct str method)
{
    static const struct {
        struct str method;
        struct str verb;
    } verbs[] = {
        { STR_INIT("GET"), STR_INIT("get") },         { STR_INIT("HEAD"), STR_INIT("get") },
        { STR_INIT("POST"), STR_INIT("post") },       { STR_INIT("PUT"), STR_INIT("put") },
        { STR_INIT("PATCH"), STR_INIT("patch") },     { STR_INIT("DELETE"), STR_INIT("delete") },
        { STR_INIT("OPTIONS"), STR_INIT("options") },
    };
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        if (str_eq(verbs[i].method, method)) {
            return verbs[i].verb;
        }
    }
    return STR("unknown"); /* no role has it */
}

/* What RBAC calls the path: every cluster lets everybody get /api/… for discovery, and that must
 * not open ours. Scrapers have a role with /metrics already. */
static struct str auth_path(const struct inbound_request *req, struct arena *out)
{
    return str_eq(req->path, STR("/metrics")) ? req->path
                                              : arena_concat(out, STR("/drydock"), req->path);
}

/* Decides from what is known, and asks for what is not. */
static void wait_step(struct auth_wait *wait)
{
    struct auth_sender *s = wait->sender;
    usec_t now = loop_now(s->auth->config.loop);
    if (now >= s->until) {
        ask_token(s, wait->token);
        return;
    }
    if (!s->accepted) {
        wait_refuse(wait, 401, STR("the cluster does not know this token"));
        return;
    }
    if (s->token && s->until - now < REQUEST_AUTH_GOOD_TIME / 2) {
        ask_token(s, wait->token); /* so that nobody waits when its time is over */
    }
    struct str verb = auth_verb(wait->req.method);
    struct auth_answer *answer = answer_find(s, verb, wait->path);
    if (answer == NULL) {
        answer = answer_add(s, verb, wait->path);
    }
    if (now >= answer->until) {
        ask_access(s, answer);
    } else if (!answer->allowed) {
        wait_forbid(wait, answer);
    } else {
        if (answer->until - now < REQUEST_AUTH_GOOD_TIME / 2) {
            ask_access(s, answer);
        }
        wait_pass(wait);
    }
}

/* Those who were accepted before come first. */
static void auth_step(void *ctx)
{
    struct request_auth *auth = ctx;
    for (int strangers = 0; strangers < 2; strangers++) {
        LIST_EACH (&auth->waiting, item) {
            struct auth_wait *wait = CONTAINER_OF(item, struct auth_wait, link);
            if (wait->sender->accepted == (strangers == 0)) {
                wait_step(wait);
            }
        }
    }
}

/* ── the request ───────────────────────────────────────────────────────────────────────────── */

/* RFC 6750 §2.1: letters, digits and "-._~+/=". Anything else is no token, and nobody is asked. */
static bool token_is_valid(struct str token)
{
    static const char *const more = "-._~+/=";
    for (size_t i = 0; i < token.n; i++) {
        char c = token.p[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    (c != '\0' && strchr(more, c) != NULL);
        if (!good) {
            return false;
        }
    }
    return token.n > 0 && token.n <= REQUEST_AUTH_TOKEN_BYTES_MAX;
}

/* The token of a request; false: it has none that could be one. */
static bool request_token(const struct inbound_exchange *x, const struct inbound_request *req,
                          struct str *ret)
{
    struct str header = req->header(x, "Authorization");
    struct str scheme;
    struct str token;
    if (header.n == 0) {
        token = req->header(x, REQUEST_AUTH_TOKEN_HEADER);
    } else if (!str_cut(header, STR(" "), &scheme, &token) || !str_eq_fold(scheme, STR("Bearer"))) {
        return false;
    }
    *ret = str_trim(token);
    return token_is_valid(*ret);
}

static struct auth_sender *sender_of_certificate(struct request_auth *auth,
                                                 const struct inbound_request *req)
{
    CLEANUP(buf_done)
    struct buf members = { .max = USER_BYTES_MAX };
    bool fresh = false;
    struct json_writer w = json_writer_on(&members);
    jw_obj(&w);
    jw_pair(&w, "user", req->peer);
    jw_key(&w, STR("groups"));
    jw_arr(&w);
    for (uint32_t i = 0; i < req->peer_group_n; i++) {
        jw_str(&w, req->peer_groups[i]);
    }
    jw_str(&w, STR("system:authenticated"));
    jw_arr_end(&w);
    jw_obj_end(&w);
    struct auth_sender *s = sender_find(auth, 'c', buf_str(&members), &fresh);
    if (fresh) {
        sender_set_user(s, req->peer, &members);
        s->until = INT64_MAX; /* each connection proves it anew */
        sender_touch(s, /* accepted= */ true);
    }
    return s;
}

static struct auth_wait *wait_new(struct auth_sender *s, struct inbound_exchange *x,
                                  const struct inbound_request *req, struct str token)
{
    struct request_auth *auth = s->auth;
    struct auth_wait *wait = ALLOC_NEW(struct auth_wait);
    wait->memory.first = 1024;
    wait->sender = s;
    wait->x = x;
    wait->req = *req;
    wait->req.method = arena_str(&wait->memory, req->method);
    wait->req.path = arena_str(&wait->memory, req->path);
    wait->req.query = arena_str(&wait->memory, req->query);
    wait->req.body = arena_str(&wait->memory, req->body);
    wait->token = arena_str(&wait->memory, token);
    wait->path = auth_path(req, &wait->memory);
    s->waiting++;
    list_add(&auth->waiting, &wait->link);
    auth->waiting_n++;
    x->on_close = wait_closed;
    x->on_close_ctx = wait;
    loop_timer_init(&wait->timer, auth->config.loop, wait_on_timer, wait);
    loop_timer_set(&wait->timer, loop_now(auth->config.loop) + REQUEST_AUTH_TIMEOUT);
    return wait;
}

void request_auth_handle(void *ctx, struct inbound_exchange *x, const struct inbound_request *req)
{
    struct request_auth *auth = ctx;
    struct auth_sender *s;
    struct str token = STR_NONE;
    bool by_token = request_token(x, req, &token);
    if (req->path.n > PATH_BYTES_MAX) {
        auth_refuse(auth, x, 414, STR("the path is too long"));
        return;
    }
    if (!by_token && (req->peer.n == 0 || req->header(x, "Authorization").n > 0)) {
        auth_refuse(auth, x, 401,
                    STR("this needs a bearer token, or a client certificate, that the cluster "
                        "knows"));
        return;
    }
    if (by_token) {
        bool fresh = false;
        s = sender_find(auth, 't', token, &fresh);
        s->token = true;
    } else {
        s = sender_of_certificate(auth, req);
    }
    /* Strangers who wait take no place from those who were accepted. */
    uint32_t max = s->accepted ? 2 * REQUEST_AUTH_WAITING_MAX : REQUEST_AUTH_WAITING_MAX;
    struct auth_wait *wait = auth->waiting_n < max ? wait_new(s, x, req, token) : NULL;
    senders_trim(&auth->others, &auth->others_n, REQUEST_AUTH_OTHERS_MAX);
    senders_trim(&auth->accepted, &auth->accepted_n, REQUEST_AUTH_ACCEPTED_MAX);
    if (wait == NULL) {
        auth_refuse(auth, x, 503, STR("too many requests wait for the cluster; try again"));
    } else {
        wait_step(wait);
    }
}

/* ── its life ──────────────────────────────────────────────────────────────────────────────── */

struct request_auth *request_auth_new(const struct request_auth_config *config)
{
    static const struct metric_spec results = {
        .name = "drydock_http_auth_total",
        .help = "Requests by what became of them at the check of who may read.",
        .kind = METRIC_COUNTER,
        .labels = { "result" },
    };
    static const struct metric_spec asked = {
        .name = "drydock_http_auth_reviews_total",
        .help = "Questions to the cluster about who may read.",
        .kind = METRIC_COUNTER,
        .labels = { "review" },
    };
    struct request_auth *auth = ALLOC_NEW(struct request_auth);
    auth->config = *config;
    map_init(&auth->senders, loop_random(config->loop), loop_random(config->loop));
    list_init(&auth->accepted);
    list_init(&auth->others);
    list_init(&auth->waiting);
    list_init(&auth->reviews);
    auth->strangers = (struct ratelimit){ .rate = REQUEST_AUTH_STRANGER_RATE,
                                          .burst = REQUEST_AUTH_STRANGER_BURST };
    loop_timer_init(&auth->again, config->loop, auth_step, auth);
    auth->results = metrics_family(config->metrics, &results);
    auth->asked = metrics_family(config->metrics, &asked);
    return auth;
}

void request_auth_free(struct request_auth *auth)
{
    if (auth == NULL) {
        return;
    }
    LIST_EACH (&auth->waiting, item) {
        struct auth_wait *wait = CONTAINER_OF(item, struct auth_wait, link);
        (void)wait_take(wait);
        wait_free(wait);
    }
    LIST_EACH (&auth->reviews, item) {
        struct auth_review *review = CONTAINER_OF(item, struct auth_review, link);
        api_cancel(auth->config.api, review->call);
        review_free(review);
    }
    senders_trim(&auth->accepted, &auth->accepted_n, 0);
    senders_trim(&auth->others, &auth->others_n, 0);
    ASSERT(map_count(&auth->senders) == 0);
    map_done(&auth->senders);
    loop_timer_done(&auth->again);
    alloc_free(auth);
}

struct request_auth_stats request_auth_stats(const struct request_auth *auth)
{
    return (struct request_auth_stats){
        .waiting = auth->waiting_n,
        .in_flight = auth->ahead_n + auth->stranger_n,
        .accepted = auth->accepted_n,
        .others = auth->others_n,
    };
}
