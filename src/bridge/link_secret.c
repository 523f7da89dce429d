/*
 * link_secret: reads the kubeconfig Secret of a workload cluster, and looks whether the Secret has
 * changed. All links share one rate limit for that.
 */
#include "base/base64.h"
#include "bridge/link_internal.h"
#include "format/json.h"

/* Urgent links may use the rate limit so much in advance: they connect before all that wait, and
 * the rate holds all the same. */
#define LINK_URGENT SECONDS(1)

/* "Secret 'namespace/cluster-kubeconfig': " before what is wrong. */
static int link_secret_explain(const struct link *l, struct err *err)
{
    return err_wrap(err, "Secret '" STR_FMT "/" STR_FMT "-kubeconfig'",
                    STR_ARG(l->config.namespace), STR_ARG(l->config.cluster));
}

void link_secret_send(struct link *l, struct str accept, api_on_reply on_reply)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/api/v1/namespaces/"));
    client_add_segment(&path, l->config.namespace);
    buf_add(&path, STR("/secrets/"));
    client_add_segment(&path, l->config.cluster);
    buf_add(&path, STR("-kubeconfig"));
    const struct api_request request = {
        .verb = API_GET,
        .path = buf_str(&path),
        .accept = accept,
    };
    l->call = api_send(l->config.management->api, &request, on_reply, l);
}

/* The kubeconfig that the Secret holds, in `l->secret`. */
static int link_secret_read(struct link *l, struct str body, struct str *ret, struct err *err)
{
    const struct jval *secret = NULL;
    if (json_parse(body, JSON_GO, &l->secret, &secret, err) < 0) {
        return err_wrap(err, "it cannot be read");
    }
    l->version = store_version(secret);
    const struct jval *value = jval_at(secret, "data.value");
    if (jval_kind(value) != JSTR) {
        return err_set(err, ERR_INVALID, "it has no key 'value', want a kubeconfig there");
    }
    struct str text = jval_str(value);
    if (text.n / 4 * 3 > LINK_SECRET_BYTES_MAX) {
        return err_set(err, ERR_LIMIT, "a kubeconfig of more than %zu bytes",
                       LINK_SECRET_BYTES_MAX);
    }
    struct str kubeconfig = STR_NONE;
    if (!base64_decode(text, &l->secret, &kubeconfig)) {
        return err_set(err, ERR_INVALID, "its key 'value' is not in base64");
    }
    if (str_trim(kubeconfig).n == 0) {
        return err_set(err, ERR_INVALID, "its key 'value' is empty, want a kubeconfig there");
    }
    *ret = kubeconfig;
    return 0;
}

void link_secret_wipe(struct link *l)
{
    arena_wipe(&l->secret);
    l->text = STR_NONE;
}

int link_secret_take(struct link *l, const struct api_reply *reply, struct err *err)
{
    l->call = NULL;
    enum retry_verdict verdict = client_note(l->config.management, API_GET, reply);
    int r = -1;
    if (verdict == RETRY_DONE) {
        r = link_secret_read(l, reply->body, &l->text, err);
    } else if (verdict == RETRY_ABSENT) {
        l->version = 0;
        (void)err_set(err, ERR_NOTFOUND,
                      "there is none, want one with a kubeconfig in its key 'value'");
    } else {
        client_explain(reply->status, reply->body, reply->err, err);
    }
    if (r < 0) {
        link_secret_wipe(l);
        r = link_secret_explain(l, err);
    }
    return r;
}

static void link_secret_on_read(void *ctx, const struct api_reply *reply)
{
    struct link *l = ctx;
    struct err err = { 0 };
    l->answered = true;
    if (link_secret_take(l, reply, &err) < 0) {
        l->trouble = err;
    }
    if (l->secret_seen == l->version) {
        l->secret_changed = false; /* the watch has shown the version that was read */
    }
    link_wake(l);
}

/* A link that the rate limit does not allow tries again after a random back-off, so thousands of
 * links that wait cost little, and connect in random order. */
static bool link_secret_may_read(struct link *l, usec_t now)
{
    usec_t at = MAX(l->connect_at, client_open_at(l->config.management));
    if (now < at) {
        l->connect_at = at;
        return false;
    }
    usec_t ready = ratelimit_ready_at(l->config.connects, now);
    if (l->urgent && ready > now + LINK_URGENT) {
        l->connect_at = ready - LINK_URGENT;
        return false;
    }
    if (!l->urgent && ready > now) {
        l->connect_at = ready + backoff_next(&l->connect_backoff, loop_random(l->loop));
        return false;
    }
    return true;
}

void link_secret_request(struct link *l)
{
    usec_t now = loop_now(l->loop);
    if (l->call != NULL || !link_secret_may_read(l, now)) {
        return;
    }
    ratelimit_take(l->config.connects, now);
    backoff_reset(&l->connect_backoff);
    l->tried_at = MAX(now, (usec_t)1);
    l->connects++;
    l->secret_changed = false;
    link_secret_send(l, STR_NONE, link_secret_on_read);
}

struct api *link_secret_dial(struct link *l, struct str text, struct str token, struct err *err)
{
    CLEANUP(buf_done)
    struct buf name = { 0 };
    buf_printf(&name, STR_FMT "/" STR_FMT, STR_ARG(l->config.namespace),
               STR_ARG(l->config.cluster));
    const struct dialer_spec spec = { .name = buf_str(&name), .kubeconfig = text, .token = token };
    struct api *api = dialer_open(l->config.dialer, &spec, err);
    if (api == NULL) {
        (void)link_secret_explain(l, err);
    }
    return api;
}

/* A Secret that cannot be read now is no reason to leave a connection that works. */
static void link_secret_on_recheck(void *ctx, const struct api_reply *reply)
{
    struct link *l = ctx;
    l->call = NULL;
    enum retry_verdict verdict = client_note(l->config.management, API_GET, reply);
    if (verdict == RETRY_DONE) {
        CLEANUP(arena_done)
        struct arena tmp = { 0 };
        struct err ignored = { 0 };
        const struct jval *secret = NULL;
        if (json_parse(reply->body, JSON_GO, &tmp, &secret, &ignored) == 0) {
            uint64_t version = store_version(secret);
            l->secret_changed = version != 0 && version != l->version;
        }
    } else if (verdict == RETRY_ABSENT) {
        l->secret_changed = true;
    }
    link_wake(l);
}

void link_secret_recheck(struct link *l)
{
    usec_t now = loop_now(l->loop);
    if (l->secret_watched || l->call != NULL || now < l->reread_at) {
        return;
    }
    l->reread_at = client_open_at(l->config.management);
    if (now < l->reread_at) {
        return;
    }
    l->reread_at = now + LINK_REREAD;
    link_secret_send(l, API_METADATA, link_secret_on_recheck); /* nothing secret comes this way */
}

void link_secret_drop(struct link *l)
{
    if (l->call != NULL) {
        api_cancel(l->config.management->api, STEAL(l->call));
    }
    link_secret_wipe(l);
    l->answered = false;
}
