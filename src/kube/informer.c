#include "kube/informer.h"

static void supply_on_list(void *ctx)
{
    struct supply *s = ctx;
    store_list_begin(&s->store);
}

static int supply_on_object(void *ctx, const struct jval *object, bool deleted, struct err *err)
{
    struct supply *s = ctx;
    if (s->config.wants != NULL && !s->config.wants(object)) {
        return 0;
    }
    int r = store_observe(&s->store, object, deleted, err);
    s->config.on_news(s->config.ctx);
    return r;
}

static bool supply_on_synced(void *ctx, uint64_t version)
{
    struct supply *s = ctx;
    if (!store_list_end(&s->store, version)) {
        /* Everything was forgotten. Not to know anything is not to know that all is gone. */
        s->synced = false;
        s->config.on_news(s->config.ctx);
        return false;
    }
    s->synced = true;
    s->failing = false;
    s->config.on_news(s->config.ctx);
    return true;
}

static void supply_on_error(void *ctx, const struct err *err, bool bad UNUSED)
{
    struct supply *s = ctx;
    s->failing = true;
    s->trouble = *err;
    s->config.on_trouble(s->config.ctx, err);
}

static void supply_on_well(void *ctx)
{
    struct supply *s = ctx;
    s->failing = false;
    s->config.on_news(s->config.ctx);
}

void supply_init(struct supply *s, const struct supply_config *config)
{
    struct loop *loop = config->client->loop;
    *s = (struct supply){ .config = *config };
    store_init(&s->store, config->kind, config->ctx, loop_random(loop));
    s->store.mutations = config->client->mutations;
    s->store.on_change = config->on_change;
    s->store.on_gone = config->on_gone;
}

void supply_done(struct supply *s)
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

void supply_start(struct supply *s, struct str path)
{
    if (s->started) {
        reflector_done(&s->reflector);
    }
    buf_reset(&s->path);
    buf_add(&s->path, path);
    reflector_init(&s->reflector, s->config.client,
                   &(struct reflector_config){
                       .path = buf_str(&s->path),
                       .query = s->config.query,
                       .metadata_only = s->config.metadata_only,
                       .on_list = supply_on_list,
                       .on_object = supply_on_object,
                       .on_synced = supply_on_synced,
                       .on_error = supply_on_error,
                       .on_well = supply_on_well,
                       .ctx = s,
                   });
    s->started = true;
    s->synced = false;
    reflector_start(&s->reflector);
}

bool supply_well(const struct supply *s)
{
    return s->synced && !s->failing;
}
