/*
 * The query of a kubernikusCount check: a session with OpenStack, then the cluster's pools from the
 * Kubernikus API. The answer's value is how many nodes all pools together are to have.
 */
#include "base/alloc.h"
#include "format/json.h"
#include "kinds/keys.h"
#include "openstack/openstack.h"
#include "profile/external_internal.h"

#define POOLS_REPLY_MAX ((size_t)4 * 1024 * 1024)
#define POOLS_MAX 100000.0 /* nodes of one pool; the API allows some hundred */

void pools_put_error(struct fact_query *q, const struct err *err)
{
    prometheus_put_error(q, err); /* the same form of answer */
}

static bool pools_is_transient(const struct err *err)
{
    return err->code == ERR_IO || err->code == ERR_TIMEOUT || err->code == ERR_BUSY;
}

static int pools_read(struct str body, double *ret, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root = NULL;
    struct err why = { 0 };
    double sum = 0;
    if (json_parse(body, JSON_GO, &tmp, &root, &why) < 0) {
        return err_set(err, ERR_PROTO, "the answer of Kubernikus is no JSON");
    }
    const struct jval *pools = jval_at(root, "spec.nodePools");
    if (jval_kind(pools) != JARR) {
        return err_set(err, ERR_PROTO, "the answer of Kubernikus has no list spec.nodePools");
    }
    JVAL_EACH (pools, pool) {
        int64_t size = 0;
        if (!jval_i64(jval_get(pool, STR("size")), &size) || size < 0 || (double)size > POOLS_MAX) {
            return err_set(err, ERR_PROTO, "the answer of Kubernikus has a pool without a size");
        }
        sum += (double)size;
    }
    *ret = sum;
    return 0;
}

static void pools_step(struct fact_query *q);

static void pools_on_reply(void *ctx, const struct outbound_reply *reply)
{
    struct fact_query *q = ctx;
    struct err err = { 0 };
    struct facts_prometheus answer = {
        .known = true,
        .asked = q->asked,
        .answered = loop_wall(q->e->loop),
    };
    q->outbound_call = NULL;
    if (reply->status == 401 && q->tries++ == 0) {
        openstack_refused(q->openstack, q->session); /* the token may have expired */
        pools_step(q);
        return;
    }
    int r = 0;
    if (reply->status == 0) {
        err = *reply->err;
        r = err_wrap(&err, "Kubernikus cannot be asked");
    } else if (reply->status / 100 != 2) {
        enum err_code code = reply->status >= 500 || reply->status == 429 ? ERR_IO : ERR_INVALID;
        r = err_set(&err, code, "Kubernikus answered %d", reply->status);
    } else {
        r = pools_read(reply->body, &answer.value, &err);
    }
    if (r < 0) {
        fact_query_fail(q, pools_is_transient(&err), reply->retry_after, &err);
        return;
    }
    (void)facts_put_prometheus(q->e->facts, q->index, &answer);
    q->changed = true; /* whoever waits for a newer answer wants to know, the same or another */
    fact_query_finish(q);
}

static void pools_send(struct fact_query *q, const struct openstack_session *session)
{
    const struct outbound_header headers[] = {
        { STR("X-Auth-Token"), session->token },
        { STR("Accept"), STR("application/json") },
    };
    CLEANUP(buf_done)
    struct buf url = { 0 };
    struct str base = q->url;
    while (str_cut_suffix(base, STR("/"), &base)) {
    }
    if (base.n > 0) {
        buf_add(&url, base);
    } else {
        buf_printf(&url, KUBERNIKUS_URL_BEFORE STR_FMT KUBERNIKUS_URL_BEHIND,
                   STR_ARG(session->region));
    }
    buf_add(&url, STR("/api/v1/clusters/"));
    client_add_segment(&url, q->query);
    q->session = session->generation;
    q->outbound_call = outbound_http(q->e->config.outbound,
                                     &(struct outbound_request){ .method = STR("GET"),
                                                                 .url = buf_str(&url),
                                                                 .headers = headers,
                                                                 .header_n = ARRAY_LEN(headers),
                                                                 .reply_max = POOLS_REPLY_MAX },
                                     pools_on_reply, q);
}

static void pools_step(struct fact_query *q)
{
    struct openstack_session session;
    struct err err = { 0 };
    int r = openstack_get(q->openstack, &session, &err);
    if (r == 0) {
        pools_send(q, &session);
    } else if (r != -ERR_BUSY) {
        fact_query_fail(q, pools_is_transient(&err), 0, &err);
    }
}

static void pools_on_session(void *ctx)
{
    struct fact_query *q = ctx;
    if (q->state == FACT_QUERY_IN_FLIGHT && q->outbound_call == NULL) {
        pools_step(q);
    }
}

void pools_init(struct fact_query *q, struct str secret_namespace, struct str secret_name)
{
    q->openstack = ALLOC_NEW(struct openstack);
    openstack_init(q->openstack, &(struct openstack_config){ .client = q->e->config.client,
                                                             .outbound = q->e->config.outbound,
                                                             .files = q->e->config.files,
                                                             .on_change = pools_on_session,
                                                             .ctx = q });
    openstack_set_secret(q->openstack, secret_namespace, secret_name);
}

void pools_done(struct fact_query *q)
{
    if (q->openstack != NULL) {
        openstack_done(q->openstack);
        alloc_free(STEAL(q->openstack));
    }
}

void pools_start(struct fact_query *q)
{
    q->tries = 0;
    pools_step(q);
}
