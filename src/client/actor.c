/* The calls of an actor: live reads, one watch while it waits, and writes that bear being repeated.
 */
#include "client/actor.h"

#include "format/label_syntax.h"
#include "kube/client.h"
#include "kube/retry.h"

#define CONFLICT_RETRIES_MAX 8u /* races lost in a row: beyond that somebody fights us */
#define LIST_MAX 100000u        /* requests in one list; a cluster has some thousands */
#define WATCH_PAUSE_BASE MSECONDS(100)
#define WATCH_PAUSE_MAX SECONDS(5)
#define WAIT_RETRY_TIME MINUTES(15) /* a wait of days outlives the upgrade of a control plane */

int actor_init(struct actor *a, struct blocking_api *blocking_api, struct str client,
               struct err *err)
{
    CLEANUP(buf_done)
    struct buf why = { 0 };
    if (client.n == 0) {
        return err_set(err, ERR_INVALID, "client name required");
    }
    if (!label_value_check(client, &why)) {
        return err_set(err, ERR_INVALID, "client name '" STR_FMT "' cannot be a label: " STR_FMT,
                       STR_ARG(client), STR_ARG(buf_str(&why)));
    }
    *a = (struct actor){ .blocking_api = blocking_api, .client = client };
    return 0;
}

/* ── asking the server ─────────────────────────────────────────────────────────────────────── */

static int actor_get(struct actor *a, struct str path, struct arena *out,
                     struct blocking_api_reply *ret, struct err *err)
{
    return blocking_api_send(a->blocking_api,
                             &(struct api_request){ .verb = API_GET, .path = path }, out, ret, err);
}

static int actor_refused(const struct blocking_api_reply *answer, const char *what, struct err *err)
{
    client_explain(answer->status, answer->body, NULL, err);
    return err_wrap(err, "%s", what);
}

/* A 200 whose body is JSON; everything else is an error. */
static int actor_document(const struct blocking_api_reply *answer, const char *what,
                          struct arena *out, const struct jval **ret, struct err *err)
{
    if (answer->status != 200 && answer->status != 201) {
        return actor_refused(answer, what, err);
    }
    int r = json_parse(answer->body, JSON_GO, out, ret, err);
    return r < 0 ? err_wrap(err, "%s", what) : 0;
}

/* All that `query` selects, live: no resourceVersion is named, so no cache answers. */
static int actor_fetch(struct actor *a, struct str query, struct arena *out,
                       struct maintenance_request **ret, uint32_t *ret_n, struct err *err)
{
    struct blocking_api_reply answer;
    const struct jval *list;
    int r =
        actor_get(a, arena_concat(out, STR(MAINTENANCE_REQUESTS_PATH), query), out, &answer, err);
    if (r == 0 && answer.status == 404) {
        return err_set(
            err, ERR_NOTFOUND,
            "the cluster has no MaintenanceRequests: 'drydock crds' prints what is to be "
            "installed");
    }
    r = r < 0 ? r : actor_document(&answer, "list requests", out, &list, err);
    if (r < 0) {
        return r;
    }
    const struct jval *items = jval_get(list, STR("items"));
    uint32_t count = jval_kind(items) == JARR ? items->n : 0;
    if (count > LIST_MAX) {
        return err_set(err, ERR_LIMIT, "%u requests in one list, want at most %u", count, LIST_MAX);
    }
    struct maintenance_request *requests =
        ARENA_ARRAY(out, struct maintenance_request, MAX(count, 1u));
    uint32_t n = 0;
    if (count > 0) {
        JVAL_EACH (items, item) {
            r = mrequest_read_for_actor(item, out, &requests[n], err);
            if (r < 0) {
                return r;
            }
            n++;
        }
    }
    *ret = requests;
    *ret_n = n;
    return 0;
}

int actor_list(struct actor *a, struct arena *out, struct maintenance_request **ret,
               uint32_t *ret_n, struct err *err)
{
    return actor_fetch(a, STR_NONE, out, ret, ret_n, err);
}

static int actor_fetch_own(struct actor *a, struct arena *out, struct maintenance_request **ret,
                           uint32_t *ret_n, struct err *err)
{
    CLEANUP(buf_done)
    struct buf query = { 0 };
    buf_add(&query, STR("?labelSelector="));
    client_add_segment(&query, KEY_CLIENT);
    client_add_segment(&query, STR("="));
    client_add_segment(&query, a->client);
    return actor_fetch(a, buf_str(&query), out, ret, ret_n, err);
}

static const struct maintenance_request *actor_find_live(const struct maintenance_request *requests,
                                                         uint32_t n,
                                                         const struct request_target *target)
{
    for (uint32_t i = 0; i < n; i++) {
        if (requests[i].state != MR_STATE_COMPLETED && mrequest_is_for(&requests[i], target)) {
            return &requests[i];
        }
    }
    return NULL;
}

int actor_enabled(struct actor *a, struct str type, bool *ret, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct blocking_api_reply answer;
    enum target_type known;
    /* Unlike the controller, the client wants the type in lower case, as the original client does.
     */
    if (!target_type_find(type, &known) || !str_eq(type, target_type_name(known))) {
        *ret = false;
        return 0;
    }
    int r = actor_get(a, STR(MAINTENANCE_REQUESTS_PATH "?limit=1"), &tmp, &answer, err);
    if (r < 0) {
        return r;
    }
    if (answer.status != 200 && answer.status != 404) {
        return actor_refused(&answer, "list requests", err);
    }
    *ret = answer.status == 200;
    return 0;
}

int actor_find(struct actor *a, const struct request_target *target, struct arena *out,
               struct maintenance_request *ret, struct err *err)
{
    struct maintenance_request *requests;
    uint32_t n;
    int r = actor_fetch_own(a, out, &requests, &n, err);
    if (r < 0) {
        return r;
    }
    const struct maintenance_request *live = actor_find_live(requests, n, target);
    if (live == NULL) {
        return err_set(err, ERR_NOTFOUND,
                       "'" STR_FMT "' has no live request for " STR_FMT " " STR_FMT,
                       STR_ARG(a->client), STR_ARG(target->type), STR_ARG(target->name));
    }
    *ret = *live;
    return 0;
}

/* ── a new request ─────────────────────────────────────────────────────────────────────────── */

/* The original names how many nodes it looked through, so its message is kept whole. */
static int actor_no_such_node(struct actor *a, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct blocking_api_reply answer;
    const struct jval *list;
    int64_t remaining = 0;
    int r = actor_get(a, STR("/api/v1/nodes?limit=1"), &tmp, &answer, err);
    r = r < 0 ? r : actor_document(&answer, "list nodes", &tmp, &list, err);
    if (r < 0) {
        return r;
    }
    const struct jval *items = jval_get(list, STR("items"));
    (void)jval_i64(jval_at(list, "metadata.remainingItemCount"), &remaining); /* 0 when absent */
    int64_t count = remaining + (jval_kind(items) == JARR ? (int64_t)items->n : 0);
    return err_set(err, ERR_INVALID, "invalid node name in %lld node list", (long long)count);
}

/* A node's real name, which has no capital letters; other targets are the controller's to find. */
static int actor_check_target(struct actor *a, struct request_target *target, struct arena *out,
                              struct err *err)
{
    if (!str_eq(target->type, STR("node"))) {
        return 0;
    }
    if (target->name.n == 0) {
        return actor_no_such_node(a, err);
    }
    CLEANUP(buf_done)
    struct buf path = { 0 };
    CLEANUP(buf_done)
    struct buf lower = { 0 };
    for (size_t i = 0; i < target->name.n; i++) {
        char c = target->name.p[i];
        buf_add_char(&lower, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
    }
    struct blocking_api_reply answer;
    buf_add(&path, STR("/api/v1/nodes/"));
    client_add_segment(&path, buf_str(&lower));
    int r = actor_get(a, buf_str(&path), out, &answer, err);
    if (r < 0) {
        return r;
    }
    if (answer.status == 404) {
        return actor_no_such_node(a, err);
    }
    if (answer.status != 200) {
        return actor_refused(&answer, "read the node", err);
    }
    target->name = arena_str(out, buf_str(&lower));
    return 0;
}

/* Who the API server takes us for, which the policy for requests wants to read in a new one; empty
 * when it does not say: servers before Kubernetes 1.28 cannot. */
static struct str actor_user(struct actor *a, struct arena *out)
{
    struct err ignored = { 0 };
    struct blocking_api_reply answer;
    const struct jval *review;
    int r = blocking_api_send(a->blocking_api,
                              &(struct api_request){
                                  .verb = API_POST,
                                  .path = STR("/apis/authentication.k8s.io/v1/selfsubjectreviews"),
                                  .body = STR("{\"apiVersion\":\"authentication.k8s.io/v1\","
                                              "\"kind\":\"SelfSubjectReview\"}"),
                              },
                              out, &answer, &ignored);
    if (r < 0 || answer.status != 201 ||
        actor_document(&answer, "ask who this is", out, &review, &ignored) < 0) {
        return STR_NONE;
    }
    return arena_str(out, jval_str(jval_at(review, "status.userInfo.username")));
}

/* The first number behind all that are there: finished requests keep their names. */
static uint32_t actor_next_number(const struct maintenance_request *requests, uint32_t n,
                                  struct str stem)
{
    uint32_t highest = 0;
    for (uint32_t i = 0; i < n; i++) {
        highest = MAX(highest, request_name_number(requests[i].name, stem));
    }
    return highest + 1;
}

/* `*ret_made` is false, and the answer 0, when the name is taken. */
static int actor_create(struct actor *a, const struct mrequest_new *new, struct arena *out,
                        struct maintenance_request *ret, bool *ret_made, struct err *err)
{
    CLEANUP(buf_done)
    struct buf body = { 0 };
    struct blocking_api_reply answer;
    const struct jval *made;
    mrequest_print_new(new, &body);
    int r = blocking_api_send(a->blocking_api,
                              &(struct api_request){
                                  .verb = API_POST,
                                  .path = STR(MAINTENANCE_REQUESTS_PATH),
                                  .body = buf_str(&body),
                              },
                              out, &answer, err);
    if (r < 0) {
        return r;
    }
    *ret_made = answer.status != 409;
    if (!*ret_made) {
        return 0;
    }
    r = actor_document(&answer, "create the request", out, &made, err);
    return r < 0 ? r : mrequest_read_for_actor(made, out, ret, err);
}

int actor_request(struct actor *a, const struct mrequest_new *new, struct arena *out,
                  struct maintenance_request *ret, bool *ret_created, struct err *err)
{
    struct mrequest_new wanted = *new;
    struct str stem = request_name_stem(a->client, &new->target, out);
    wanted.client = a->client;
    uint32_t number = 0;
    for (uint32_t i = 0; i < CONFLICT_RETRIES_MAX; i++) {
        struct maintenance_request *requests;
        uint32_t n;
        bool made;
        int r = actor_fetch_own(a, out, &requests, &n, err);
        if (r < 0) {
            return r;
        }
        const struct maintenance_request *live = actor_find_live(requests, n, &new->target);
        if (live != NULL) {
            *ret = *live;
            *ret_created = false;
            return 0;
        }
        r = i == 0 ? actor_check_target(a, &wanted.target, out, err) : 0;
        if (r < 0) {
            return r;
        }
        wanted.created_by = i == 0 ? actor_user(a, out) : wanted.created_by;
        /* A name that is taken and that the list does not show has lost its label. */
        number = MAX(number + 1, actor_next_number(requests, n, stem));
        wanted.name = arena_printf(out, STR_FMT "%u", STR_ARG(stem), number);
        r = actor_create(a, &wanted, out, ret, &made, err);
        if (r < 0 || made) {
            *ret_created = r == 0 ? made : *ret_created;
            return r;
        }
    }
    return err_set(err, ERR_CONFLICT, "others take the names of this request");
}

/* ── one request by its name ───────────────────────────────────────────────────────────────── */

static struct str actor_path(struct str name, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR(MAINTENANCE_REQUESTS_PATH "/"));
    client_add_segment(&path, name);
    return arena_str(out, buf_str(&path));
}

/* `uid` empty = whoever has the name. */
static int actor_read(struct actor *a, struct str name, struct str uid, struct arena *out,
                      const struct jval **ret, struct err *err)
{
    struct blocking_api_reply answer;
    const struct jval *object;
    int r = actor_get(a, actor_path(name, out), out, &answer, err);
    if (r < 0) {
        return r;
    }
    if (answer.status == 404) {
        return err_set(err, ERR_NOTFOUND, "request '" STR_FMT "' does not exist", STR_ARG(name));
    }
    r = actor_document(&answer, "read the request", out, &object, err);
    if (r < 0) {
        return r;
    }
    if (uid.n > 0 && !str_eq(uid, jval_str(jval_at(object, "metadata.uid")))) {
        return err_set(err, ERR_NOTFOUND, "request '" STR_FMT "' was deleted and made anew",
                       STR_ARG(name));
    }
    *ret = object;
    return 0;
}

/* -ERR_CONFLICT: somebody else wrote meanwhile, or the answer to this very write was lost. */
static int actor_change(struct actor *a, const struct maintenance_request *r,
                        const struct mrequest_change *change, struct arena *out,
                        struct maintenance_request *ret, struct err *err)
{
    CLEANUP(buf_done)
    struct buf body = { 0 };
    struct blocking_api_reply answer;
    const struct jval *object;
    struct mrequest_change whole = *change;
    whole.version = r->version;
    whole.uid = r->uid;
    mrequest_print_change(&whole, &body);
    int k = blocking_api_send(a->blocking_api,
                              &(struct api_request){
                                  .verb = API_PATCH,
                                  .path = actor_path(r->name, out),
                                  .content_type = API_MERGE_PATCH,
                                  .body = buf_str(&body),
                              },
                              out, &answer, err);
    k = k < 0 ? k : actor_document(&answer, "write the request", out, &object, err);
    return k < 0 ? k : mrequest_read_for_actor(object, out, ret, err);
}

/* ── waiting ───────────────────────────────────────────────────────────────────────────────── */

struct actor_wait_state {
    struct actor *actor;
    struct str name; /* borrowed, as the uid: from whoever waits */
    struct str uid;
    const struct jval *object; /* as it was read last; lives until the next read */
    enum mrequest_phase phase; /* last reported */
    struct str reason;
    struct str message;
    struct arena reported; /* of these texts */
};

static void actor_report_progress(struct actor_wait_state *f, const struct maintenance_request *r)
{
    const struct mrequest_status *s = &r->status;
    bool same =
        f->phase == s->phase && str_eq(f->reason, s->reason) && str_eq(f->message, s->message);
    if (f->actor->on_progress == NULL || (same && f->reported.blocks != NULL)) {
        return;
    }
    arena_reset(&f->reported);
    f->phase = s->phase;
    f->reason = arena_str(&f->reported, s->reason);
    f->message = arena_str(&f->reported, s->message);
    f->actor->on_progress(f->actor->ctx, r);
}

/* A request that does not wait any more, and whatever else comes, ends the watch: a live read
 * follows. */
static bool actor_on_line(void *ctx, struct str line)
{
    struct actor_wait_state *f = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    const struct jval *event = NULL;
    struct maintenance_request r;
    if (json_parse(line, JSON_GO, &tmp, &event, &err) < 0) {
        return true;
    }
    struct str type = jval_str(jval_get(event, STR("type")));
    if (str_eq(type, STR("BOOKMARK"))) {
        return false;
    }
    if ((!str_eq(type, STR("ADDED")) && !str_eq(type, STR("MODIFIED"))) ||
        mrequest_read_for_actor(jval_get(event, STR("object")), &tmp, &r, &err) < 0 ||
        !str_eq(r.uid, f->uid) || r.state != MR_STATE_PENDING) {
        return true;
    }
    actor_report_progress(f, &r);
    return false;
}

static struct str actor_watch_path(const struct maintenance_request *r, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path,
            STR(MAINTENANCE_REQUESTS_PATH "?watch=1&allowWatchBookmarks=true&timeoutSeconds=290"
                                          "&fieldSelector=metadata.name%3D"));
    client_add_segment(&path, r->name);
    buf_add(&path, STR("&resourceVersion="));
    client_add_segment(&path, r->version);
    return arena_str(out, buf_str(&path));
}

static int actor_ended(const struct maintenance_request *r, struct err *err)
{
    struct str message = r->status.message;
    return err_set(err, ACTOR_REFUSED,
                   "request '" STR_FMT "' was closed before its approval%s" STR_FMT,
                   STR_ARG(r->name), message.n > 0 ? ": " : "", STR_ARG(message));
}

/* What a live read shows: 1 = go on waiting. */
static int actor_poll(struct actor_wait_state *f, struct maintenance_request *r, struct arena *out,
                      struct err *err)
{
    arena_reset(out);
    int k = actor_read(f->actor, f->name, f->uid, out, &f->object, err);
    k = k < 0 ? k : mrequest_read_for_actor(f->object, out, r, err);
    if (k == -ERR_NOTFOUND) {
        return err_set(err, ACTOR_REFUSED, "request '" STR_FMT "' was deleted", STR_ARG(f->name));
    }
    if (k < 0) {
        return k;
    }
    switch (r->state) {
    case MR_STATE_APPROVED:
        return 0;
    case MR_STATE_IN_PROGRESS:
        return err_set(err, ACTOR_REFUSED, "request '" STR_FMT "' is in progress already",
                       STR_ARG(r->name));
    case MR_STATE_COMPLETED:
        return actor_ended(r, err);
    default:
        break;
    }
    actor_report_progress(f, r);
    return 1;
}

/* While somebody waits, a server that does not answer is waited for, too. */
static int actor_poll_with_retries(struct actor_wait_state *f, usec_t until,
                                   struct maintenance_request *r, struct arena *out,
                                   struct err *err)
{
    struct blocking_api *blocking_api = f->actor->blocking_api;
    usec_t retry_time = blocking_api->retry_time;
    usec_t left = MAX(until - loop_now(blocking_api->loop), SECONDS(1));
    blocking_api->retry_time = MIN(WAIT_RETRY_TIME, left);
    int k = actor_poll(f, r, out, err);
    blocking_api->retry_time = retry_time;
    return k;
}

int actor_wait(struct actor *a, usec_t until, struct arena *out, struct maintenance_request *r,
               struct err *err)
{
    /* A wait may take weeks: what one read brings lives until the next one. */
    CLEANUP(arena_done)
    struct arena poll_memory = { 0 };
    struct actor_wait_state f = { .actor = a, .name = r->name, .uid = r->uid };
    struct backoff backoff = { .base = WATCH_PAUSE_BASE, .max = WATCH_PAUSE_MAX };
    struct maintenance_request now = *r;
    int k = actor_poll_with_retries(&f, until, &now, &poll_memory, err);
    while (k == 1) {
        usec_t began = loop_now(a->blocking_api->loop);
        k = blocking_api_watch(a->blocking_api, actor_watch_path(&now, &poll_memory), until,
                               actor_on_line, &f, err);
        if (k < 0) {
            break;
        }
        /* A server that ends every stream at once is not asked without a break. */
        if (loop_now(a->blocking_api->loop) - began >= WATCH_PAUSE_MAX) {
            backoff_reset(&backoff);
        }
        k = actor_poll_with_retries(&f, until, &now, &poll_memory, err);
        if (k == 1) {
            usec_t wait = backoff_next(&backoff, loop_random(a->blocking_api->loop));
            int paused = blocking_api_sleep(a->blocking_api, wait, until, err);
            k = paused < 0 ? paused : k;
        }
    }
    arena_done(&f.reported);
    if (k == -ERR_TIMEOUT) {
        return err_set(err, ERR_TIMEOUT, "request '" STR_FMT "' was not approved in time",
                       STR_ARG(f.name));
    }
    if (k == 0 || (k == -ACTOR_REFUSED && now.state == MR_STATE_IN_PROGRESS)) {
        struct err ignored = { 0 };
        int again = mrequest_read_for_actor(f.object, out, r, &ignored);
        ASSERT(again == 0); /* it was read before, into memory that goes now */
    }
    return k;
}

int actor_begin(struct actor *a, usec_t until, struct arena *out, struct maintenance_request *r,
                struct err *err)
{
    struct str run =
        arena_printf(out, "%016llx", (unsigned long long)loop_random(a->blocking_api->loop));
    const struct mrequest_change change = { .state = MR_STATE_IN_PROGRESS, .run = run };
    for (;;) {
        int k = actor_wait(a, until, out, r, err);
        if (k == -ACTOR_REFUSED && r->state == MR_STATE_IN_PROGRESS && str_eq(r->run, run)) {
            return 0; /* our own write, whose answer was lost */
        }
        k = k < 0 ? k : actor_change(a, r, &change, out, r, err);
        if (k != -ERR_CONFLICT) {
            return k;
        }
    }
}

/* ── writing states ────────────────────────────────────────────────────────────────────────── */

int actor_update(struct actor *a, const struct request_target *target, enum mrequest_state state,
                 struct err *err)
{
    if (state == MR_STATE_APPROVED) {
        return err_set(err, ERR_INVALID, "cannot set state as approved");
    }
    bool tried = false;
    for (uint32_t i = 0; i < CONFLICT_RETRIES_MAX; i++) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        struct maintenance_request r;
        int k = actor_find(a, target, &tmp, &r, err);
        if (k == -ERR_NOTFOUND && tried && state == MR_STATE_COMPLETED) {
            return 0; /* the write took effect, its answer was lost */
        }
        if (k == -ERR_NOTFOUND) {
            return err_set(err, ERR_NOTFOUND, "request must exist before state can be updated");
        }
        if (k < 0) {
            return k;
        }
        if (r.state == MR_STATE_PENDING && state == MR_STATE_PENDING) {
            return 0;
        }
        if (r.state == MR_STATE_PENDING) {
            return err_set(err, ACTOR_REFUSED, "request is not yet approved");
        }
        k = actor_change(a, &r, &(struct mrequest_change){ .state = state }, &tmp, &r, err);
        if (k != -ERR_CONFLICT) {
            return k;
        }
        tried = true;
    }
    return -(int)err->code;
}

/* Whether a request in that state may be ended that way; NULL: it may. */
typedef const char *(*actor_end_check)(enum mrequest_state state);

static const char *check_completion(enum mrequest_state state)
{
    return state == MR_STATE_PENDING     ? "request is not yet approved"
           : state == MR_STATE_COMPLETED ? "request is already completed"
                                         : NULL;
}

static const char *check_withdrawal(enum mrequest_state state)
{
    return state == MR_STATE_IN_PROGRESS ? "request is in progress: complete it instead"
           : state == MR_STATE_COMPLETED ? "request is already completed"
                                         : NULL;
}

static int actor_end(struct actor *a, struct str name, const struct mrequest_change *change,
                     actor_end_check check, struct err *err)
{
    CLEANUP(arena_done)
    struct arena keep = { 0 };
    struct str uid = STR_NONE;
    for (uint32_t i = 0; i < CONFLICT_RETRIES_MAX; i++) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        const struct jval *object;
        struct maintenance_request r;
        int k = actor_read(a, name, uid, &tmp, &object, err);
        k = k < 0 ? k : mrequest_read_for_actor(object, &tmp, &r, err);
        if (k < 0) {
            return k;
        }
        if (i > 0 && r.state == MR_STATE_COMPLETED) {
            return 0; /* the write took effect, its answer was lost */
        }
        uid = i == 0 ? arena_str(&keep, r.uid) : uid;
        const char *why = check(r.state);
        if (why != NULL) {
            return err_set(err, ACTOR_REFUSED, "%s", why);
        }
        k = actor_change(a, &r, change, &tmp, &r, err);
        if (k != -ERR_CONFLICT) {
            return k;
        }
    }
    return -(int)err->code;
}

int actor_complete(struct actor *a, struct str name, struct str exit_code, struct err *err)
{
    const struct mrequest_change change = { .state = MR_STATE_COMPLETED, .exit_code = exit_code };
    return actor_end(a, name, &change, check_completion, err);
}

int actor_withdraw(struct actor *a, struct str name, struct err *err)
{
    const struct mrequest_change change = { .state = MR_STATE_COMPLETED, .withdrawn = true };
    return actor_end(a, name, &change, check_withdrawal, err);
}
