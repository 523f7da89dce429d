/*
 * link_token: gets a ServiceAccount token with the administrator's kubeconfig (workload_token.h),
 * and another one before it ends.
 */
#include "bridge/link_internal.h"

/* Links that started together do not renew their tokens together. */
#define LINK_RENEW_SPREAD SECONDS(1)
/* However short the life of a token is, by what its cluster says: renewals use the rate limit of
 * all links. After a token has ended, a 401 makes the link read the Secret again. */
#define LINK_RENEW_MIN MINUTES(1)

/* ── end ───────────────────────────────────────────────────────────────────────────────────── */

/* Closes the administrator's connection and wipes the kubeconfig. Also from inside its callbacks.
 */
static void link_token_end(struct link *l)
{
    struct link_token *e = &l->token;
    workload_token_free(STEAL(e->issuer));
    dialer_hang_up(l->config.dialer, STEAL(e->api));
    arena_wipe(&e->secret);
    e->text = STR_NONE;
}

void link_token_drop(struct link *l)
{
    link_token_end(l);
    dialer_hang_up(l->config.dialer, STEAL(l->token.next));
    buf_done(&l->token.overdue);
}

/* The present token works for some time yet, so the link goes on. When the token has ended, a 401
 * makes the link read the Secret again. */
static void link_token_postpone(struct link *l, enum link_break why, const struct err *err)
{
    struct link_token *e = &l->token;
    e->renew_backoff.base = LINK_BACKOFF_BASE;
    e->renew_backoff.max = LINK_BACKOFF_MAX;
    if (why == LINK_BREAK_FORBIDDEN) {
        e->renew_backoff.failures = MAX(e->renew_backoff.failures, LINK_DOUBLINGS_MAX);
    }
    usec_t at = loop_now(l->loop) + backoff_next(&e->renew_backoff, loop_random(l->loop));
    e->renew_at = e->api != NULL ? MAX(at, client_open_at(&e->client)) : at;
    link_token_end(l);
    if (e->overdue.n == 0) {
        log_warn(l->config.log, "token of workload cluster not renewed",
                 KV_STR("namespace", l->config.namespace), KV_STR("cluster", l->config.cluster),
                 KV_ERR(err));
    }
    buf_reset(&e->overdue);
    buf_add(&e->overdue, str_from(err->msg));
    l->renewals_failed++;
    link_wake(l);
}

static void link_token_fail(struct link *l, enum link_break why, const struct err *err)
{
    if (l->state == LINK_WATCHING) {
        link_token_postpone(l, why, err);
    } else {
        link_fail(l, why, err);
    }
}

/* ── callbacks of workload_token ───────────────────────────────────────────────────────────── */

/* The token is wiped when this returns, so the api with the token is made here; it sends nothing.
 */
static void link_token_on_token(void *ctx, const struct workload_token_value *token)
{
    struct link *l = ctx;
    struct link_token *e = &l->token;
    struct err err = { 0 };
    struct api *api = link_secret_dial(l, e->text, token->text, &err);
    if (api == NULL) {
        link_token_fail(l, LINK_BREAK_FAILED, &err);
        return;
    }
    link_token_end(l);
    e->next = api;
    e->renew_at = MAX(token->renew_at, loop_now(l->loop) + LINK_RENEW_MIN);
    buf_done(&e->overdue);
    backoff_reset(&e->renew_backoff);
    link_wake(l);
}

/* workload_token would go on by itself. It is ended instead: the next attempt reads the Secret
 * anew, and the administrator's credentials are not kept until then. */
static void link_token_on_error(void *ctx, const struct err *cause, int status)
{
    struct link *l = ctx;
    struct err err = *cause;
    enum link_break why = LINK_BREAK_FAILED;
    if (status == 401) {
        why = LINK_BREAK_DENIED;
    } else if (status == 403) {
        why = LINK_BREAK_FORBIDDEN;
        (void)err_wrap(&err, "the kubeconfig's user may not make an account for the bridge");
    }
    link_token_fail(l, why, &err);
}

static void link_token_on_written(void *ctx, struct str what)
{
    const struct link *l = ctx;
    log_info(l->config.log, "account in workload cluster written",
             KV_STR("namespace", l->config.namespace), KV_STR("cluster", l->config.cluster),
             KV_STR("object", what));
}

static bool link_token_may_write(void *ctx)
{
    const struct link *l = ctx;
    return l->config.may_write == NULL || l->config.may_write(l->config.ctx);
}

/* ── begin ─────────────────────────────────────────────────────────────────────────────────── */

bool link_token_start(struct link *l, struct err *err)
{
    struct link_token *e = &l->token;
    ASSERT(e->api == NULL && l->text.n > 0);
    e->secret = l->secret;
    e->text = l->text;
    l->secret = (struct arena){ 0 };
    l->text = STR_NONE;
    e->api = link_secret_dial(l, e->text, STR_NONE, err);
    if (e->api == NULL) {
        link_token_end(l);
        return false;
    }
    e->until = loop_now(l->loop) + LINK_GRANTING_MAX;
    client_init(&e->client, l->loop, e->api);
    mutations_copy(&e->client, l->config.management);
    e->issuer = workload_token_new(&(struct workload_token_config){
        .client = &e->client,
        .pods = l->config.pods,
        .requests = l->config.requests,
        .on_token = link_token_on_token,
        .on_error = link_token_on_error,
        .on_written = link_token_on_written,
        .may_write = link_token_may_write,
        .ctx = l,
    });
    return true;
}

/* ── renewal ───────────────────────────────────────────────────────────────────────────────── */

static void link_token_on_secret(void *ctx, const struct api_reply *reply)
{
    struct link *l = ctx;
    struct err err = { 0 };
    uint64_t version = l->version;
    int r = link_secret_take(l, reply, &err);
    if (l->version != version) {
        link_secret_wipe(l); /* it may be of another cluster: the link connects anew */
        l->secret_changed = true;
        link_wake(l);
    } else if (r < 0 || !link_token_start(l, &err)) {
        link_token_fail(l, LINK_BREAK_FAILED, &err);
    } else {
        link_wake(l);
    }
}

bool link_token_renew(struct link *l)
{
    struct link_token *e = &l->token;
    usec_t now = loop_now(l->loop);
    if (e->next != NULL) {
        return l->in_flight_n == 0;
    }
    if (e->api != NULL && now >= e->until) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_TIMEOUT, "no other token after %lld s",
                      (long long)(LINK_GRANTING_MAX / SECONDS(1)));
        link_token_postpone(l, LINK_BREAK_FAILED, &err);
    }
    if (e->api != NULL || l->call != NULL || e->renew_at == 0 || now < e->renew_at) {
        return false;
    }
    usec_t ready =
        MAX(client_open_at(l->config.management), ratelimit_ready_at(l->config.connects, now));
    if (ready > now) {
        e->renew_at = ready + (usec_t)(loop_random(l->loop) % (uint64_t)LINK_RENEW_SPREAD);
        return false;
    }
    ratelimit_take(l->config.connects, now);
    link_secret_send(l, STR_NONE, link_token_on_secret);
    return false;
}

usec_t link_token_due_at(const struct link *l)
{
    const struct link_token *e = &l->token;
    if (e->next != NULL || l->call != NULL) {
        return USEC_NEVER;
    }
    if (e->api != NULL) {
        return e->until;
    }
    return e->renew_at > 0 ? e->renew_at : USEC_NEVER;
}

void link_token_check(const struct link *l)
{
    const struct link_token *e = &l->token;
    bool under_way = e->api != NULL;
    ASSERT(!under_way || l->state == LINK_GRANTING || l->state == LINK_WATCHING);
    ASSERT(under_way == (e->issuer != NULL));
    ASSERT(under_way == (e->text.n > 0));
    ASSERT(under_way == (e->secret.blocks != NULL));
    ASSERT(!under_way || e->next == NULL);
    ASSERT(e->next == NULL || l->state == LINK_GRANTING || l->state == LINK_WATCHING);
    ASSERT(l->state != LINK_GRANTING || under_way || e->next != NULL);
    ASSERT(l->config.manage || (!under_way && e->next == NULL && e->renew_at == 0));
    if (under_way) {
        workload_token_check(e->issuer);
    }
}
