#include "bridge/capi_version.h"

#include "kinds/keys.h"

/* The best first. */
static const struct str capi_version_versions[] = { STR_INIT("v1beta2"), STR_INIT("v1beta1") };

struct str capi_version_choose(const struct jval *group)
{
    const struct jval *versions = jval_get(group, STR("versions"));
    for (size_t i = 0; i < ARRAY_LEN(capi_version_versions); i++) {
        JVAL_EACH (versions, v) {
            if (str_eq(jval_str(jval_get(v, STR("version"))), capi_version_versions[i])) {
                return capi_version_versions[i];
            }
        }
    }
    return STR_NONE;
}

static void capi_version_set(struct capi_version *e, struct str version)
{
    if (version.n == 0) {
        (void)err_set(&e->trouble, ERR_INVALID,
                      "the server has " CAPI_GROUP " in neither v1beta2 nor v1beta1");
        return; /* what was served until now goes on being asked for: it may be back */
    }
    e->trouble = (struct err){ 0 };
    if (!str_eq(version, e->version)) {
        e->version = version;
        e->on_change(e->ctx);
    }
}

static void capi_version_on_reply(void *ctx, const struct api_reply *reply)
{
    struct capi_version *e = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *group = NULL;
    e->call = NULL;
    enum retry_verdict verdict = client_note(e->client, API_GET, reply);
    if (verdict == RETRY_ABSENT) {
        (void)err_set(&e->trouble, ERR_NOTFOUND,
                      "Cluster API is not installed: the server has no "
                      "group " CAPI_GROUP);
    } else if (verdict != RETRY_DONE) {
        client_explain(reply->status, reply->body, reply->err, &e->trouble);
    } else if (json_parse(reply->body, 0, &tmp, &group, &e->trouble) == 0) {
        capi_version_set(e, capi_version_choose(group));
    }
    usec_t wait = e->trouble.code != 0 ? CAPI_VERSION_RETRY : CAPI_VERSION_EVERY;
    loop_timer_set(&e->timer, loop_now(e->client->loop) + wait);
}

static void capi_version_get(void *ctx)
{
    struct capi_version *e = ctx;
    const struct api_request request = { .verb = API_GET, .path = STR("/apis/" CAPI_GROUP) };
    if (!client_open(e->client)) {
        loop_timer_set(&e->timer, client_open_at(e->client));
    } else if (e->call == NULL) {
        e->call = api_send(e->client->api, &request, capi_version_on_reply, e);
    }
}

void capi_version_init(struct capi_version *e, struct client *client, void (*on_change)(void *ctx),
                       void *ctx)
{
    *e = (struct capi_version){ .client = client, .on_change = on_change, .ctx = ctx };
    (void)err_set(&e->trouble, ERR_BUSY, "the server has not been asked for " CAPI_GROUP " yet");
    loop_timer_init(&e->timer, client->loop, capi_version_get, e);
    loop_timer_set(&e->timer, loop_now(client->loop));
}

void capi_version_done(struct capi_version *e)
{
    if (e->client == NULL) {
        return;
    }
    if (e->call != NULL) {
        api_cancel(e->client->api, STEAL(e->call));
    }
    loop_timer_done(&e->timer);
    e->client = NULL;
}
