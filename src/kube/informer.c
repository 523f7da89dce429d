#include "kube/informer.h"

/* The hook, or on_update where that is wanted instead. */
static void informer_call(const struct informer *s, void (*hook)(void *ctx))
{
    hook = hook != NULL ? hook : s->config.on_update;
    if (hook != NULL) {
        hook(s->config.ctx);
    }
}

static void informer_on_list(void *ctx)
{
    struct informer *s = ctx;
    store_list_begin(&s->store);
    if (s->config.on_list != NULL) {
        s->config.on_list(s->config.ctx);
    }
}

static int informer_on_object(void *ctx, const struct jval *object, bool deleted, struct err *err)
{
    struct informer *s = ctx;
    if (s->config.wants != NULL && !s->config.wants(s->config.ctx, object)) {
        return 0;
    }
    int r = store_observe(&s->store, object, deleted, err);
    informer_call(s, NULL);
    return r;
}

static bool informer_on_synced(void *ctx, uint64_t version)
{
    struct informer *s = ctx;
    if (!store_list_end(&s->store, version)) {
        /* Everything was forgotten. Not to know anything is not to know that all is gone. */
        s->synced = false;
        if (s->config.on_reset != NULL) {
            s->config.on_reset(s->config.ctx, version);
        }
        informer_call(s, NULL);
        return false;
    }
    s->synced = true;
    s->absent = false;
    s->failing = false;
    informer_call(s, s->config.on_synced);
    return true;
}

/* The CRD is not there, or not any more: there are no objects. The reflector looks again by itself,
 * and nobody needs to hear of it each time. */
static void informer_note_absent(struct informer *s)
{
    if (store_count(&s->store) > 0) {
        store_list_begin(&s->store);
        bool emptied = store_list_end(&s->store, s->store.version_max);
        ASSERT(emptied && store_count(&s->store) == 0);
    }
    s->absent = true;
    s->synced = true;
    informer_call(s, s->config.on_synced);
}

static void informer_on_error(void *ctx, const struct err *err, bool bad)
{
    struct informer *s = ctx;
    if (s->config.optional && err->code == ERR_NOTFOUND && !bad) {
        informer_note_absent(s);
        return;
    }
    s->failing = true;
    s->unreadable = bad;
    s->trouble = *err;
    if (s->config.on_error != NULL) {
        s->config.on_error(s->config.ctx, err);
    }
}

static void informer_on_well(void *ctx)
{
    struct informer *s = ctx;
    s->failing = false;
    informer_call(s, s->config.on_recovered);
}

void informer_init(struct informer *s, const struct informer_config *config)
{
    struct loop *loop = config->client->loop;
    *s = (struct informer){ .config = *config };
    store_init(&s->store, config->kind, config->ctx, loop_random(loop));
    mutations_copy(&s->store, config->client);
    s->store.bytes_max = config->bytes_max;
    s->store.on_change = config->on_change;
    s->store.on_gone = config->on_gone;
}

void informer_done(struct informer *s)
{
    if (s->config.client == NULL) {
        return;
    }
    if (s->started) {
        reflector_done(&s->reflector);
    }
    store_done(&s->store);
    buf_done(&s->path);
    s->config.client = NULL;
}

void informer_start(struct informer *s, struct str path)
{
    buf_reset(&s->path);
    buf_add(&s->path, path);
    informer_relist(s);
}

void informer_relist(struct informer *s)
{
    uint64_t lists = s->reflector.lists;
    if (s->started) {
        reflector_done(&s->reflector);
    }
    reflector_init(&s->reflector, s->config.client,
                   &(struct reflector_config){
                       .path = buf_str(&s->path),
                       .query = s->config.query,
                       .metadata_only = s->config.metadata_only,
                       .on_list = informer_on_list,
                       .on_object = informer_on_object,
                       .on_synced = informer_on_synced,
                       .on_error = informer_on_error,
                       .on_well = informer_on_well,
                       .ctx = s,
                   });
    s->reflector.lists = lists;
    s->started = true;
    s->synced = false;
    s->failing = false;
    reflector_start(&s->reflector);
}

bool informer_healthy(const struct informer *s)
{
    return s->synced && !s->failing;
}
