/*
 * MaintenanceSelectors: which objects they mean, told in their status at most once a second. The
 * limits that refer to one read it here.
 */
#include "base/alloc.h"
#include "format/json_writer.h"
#include "format/mergepatch.h"
#include "ledger/arbiter_internal.h"

#define SIGHT_SAMPLE 20u
#define SIGHT_PAUSE SECONDS(1)
#define SIGHT_BACKOFF_BASE SECONDS(1)
#define SIGHT_BACKOFF_MAX MINUTES(1)

/* Our side of one. */
struct sight {
    struct arbiter *arbiter;
    struct store_item *item;
    struct list link; /* in arbiter->sights */
    bool dirty;
    usec_t looked_at; /* monotonic */
    struct api_call *call;
    struct backoff backoff;
    usec_t retry_at;
};

const struct picker *sights_find(const struct arbiter *a, struct str reference)
{
    const struct store_item *item = store_find(&a->pickers, reference);
    return item != NULL ? item->object : NULL;
}

void sights_mark(struct arbiter *a, enum target_type type)
{
    LIST_EACH (&a->sights, link) {
        struct sight *s = CONTAINER_OF(link, struct sight, link);
        const struct picker *p = s->item->object;
        s->dirty = s->dirty || p->type == type;
    }
}

/* ── looking ───────────────────────────────────────────────────────────────────────────────── */

struct look {
    const struct arbiter *arbiter;
    const struct picker *picker;
    uint32_t matched;
    struct str sample[SIGHT_SAMPLE]; /* the smallest names, sorted */
    uint32_t sample_n;
};

static void look_keep(struct look *l, struct str name)
{
    uint32_t i = l->sample_n;
    while (i > 0 && str_cmp(name, l->sample[i - 1]) < 0) {
        i--;
    }
    if (i >= SIGHT_SAMPLE) {
        return;
    }
    uint32_t last = MIN(l->sample_n, SIGHT_SAMPLE - 1);
    for (uint32_t k = last; k > i; k--) {
        l->sample[k] = l->sample[k - 1];
    }
    l->sample[i] = name;
    l->sample_n = MIN(l->sample_n + 1, SIGHT_SAMPLE);
}

static void look_at(void *ctx, const struct member *m)
{
    struct look *l = ctx;
    const struct picker *p = l->picker;
    if (p->spaced && !population_space_matches(l->arbiter, m->space, &p->spaces)) {
        return;
    }
    if ((p->selects && selector_match(&p->selector, m->lookup, m->ctx)) ||
        picker_names(p, m->name, m->plain)) {
        l->matched++;
        look_keep(l, m->name);
    }
}

static bool sight_in_use(const struct sight *s)
{
    LIST_EACH (&s->arbiter->books, link) {
        const struct limit *l = book_limit(CONTAINER_OF(link, struct book, link));
        if (l->refers && str_eq(l->reference, s->item->name)) {
            return true;
        }
    }
    return false;
}

/* ── telling ───────────────────────────────────────────────────────────────────────────────── */

static void sight_compose(const struct sight *s, struct tree *status, struct arena *tmp)
{
    struct arbiter *a = s->arbiter;
    const struct picker *p = s->item->object;
    struct look l = { .arbiter = a, .picker = p };
    bool good = p->reason.n == 0;
    bool used = sight_in_use(s);
    if (good) {
        population_each(a, p->type, look_at, &l);
    }
    tree_set(tmp, status, STR("matched"), tree_i64(tmp, l.matched));
    tree_set(tmp, status, STR("observedGeneration"), tree_i64(tmp, p->generation));
    struct tree *sample = tree_arr(tmp);
    for (uint32_t i = 0; i < l.sample_n; i++) {
        tree_add(sample, tree_str(tmp, l.sample[i]));
    }
    if (l.sample_n > 0) {
        tree_set(tmp, status, STR("sample"), sample);
    } else {
        (void)tree_del(status, STR("sample")); /* may not be there */
    }
    struct tree *list = tree_get(status, STR("conditions"));
    if (tree_kind(list) != JARR) {
        list = tree_arr(tmp);
        tree_set(tmp, status, STR("conditions"), list);
    }
    statement_set_condition(list,
                            &(struct statement_condition){
                                "Accepted", good, good ? STR("Accepted") : p->reason, p->problem },
                            p->generation, a->wall, tmp);
    statement_set_condition(
        list,
        &(struct statement_condition){ "InUse", used,
                                       used ? STR("Referenced") : STR("NotReferenced"), STR("") },
        p->generation, a->wall, tmp);
}

static void sight_on_reply(void *ctx, const struct api_reply *reply)
{
    struct sight *s = ctx;
    struct arbiter *a = s->arbiter;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err ignored = { 0 };
    const struct jval *object = NULL;
    enum retry_verdict verdict = client_note(a->client, API_PATCH, reply);
    s->call = NULL;
    if (verdict == RETRY_DONE && json_parse(reply->body, JSON_GO, &tmp, &object, &ignored) == 0 &&
        store_learn(&a->pickers, object, &ignored) >= 0) {
        backoff_reset(&s->backoff);
    } else {
        /* The watch brings what made it fail; what it says is for people, and can wait. */
        s->dirty = true;
        s->retry_at = loop_now(a->loop) + backoff_next(&s->backoff, loop_random(a->loop));
    }
    arbiter_soon(a);
}

static void sight_send(struct sight *s, const struct tree *patch)
{
    struct arbiter *a = s->arbiter;
    char version[24];
    int n = snprintf(version, sizeof(version), "%llu", (unsigned long long)s->item->version);
    struct str space;
    struct str name;
    (void)str_cut(s->item->name, STR("/"), &space, &name); /* the store named it so */
    buf_reset(&a->path);
    buf_add(&a->path, STR("/apis/repairman.k8s.io/v1/namespaces/"));
    client_add_segment(&a->path, space);
    buf_add(&a->path, STR("/maintenanceselectors/"));
    client_add_segment(&a->path, name);
    buf_add(&a->path, STR("/status"));
    buf_reset(&a->body);
    struct json_writer w = json_writer_on(&a->body);
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "resourceVersion", (struct str){ version, (size_t)n });
    jw_obj_end(&w);
    jw_key(&w, STR("status"));
    tree_write(patch, &w);
    jw_obj_end(&w);
    s->call = api_send(a->client->api,
                       &(struct api_request){
                           .verb = API_PATCH,
                           .path = buf_str(&a->path),
                           .content_type = API_MERGE_PATCH,
                           .body = buf_str(&a->body),
                       },
                       sight_on_reply, s);
}

static void sight_step(struct sight *s)
{
    struct arbiter *a = s->arbiter;
    const struct picker *p = s->item->object;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    struct tree *old = NULL;
    struct tree *patch = NULL;
    if (!s->dirty || s->call != NULL || (p->reason.n == 0 && !population_known(a, p->type))) {
        return;
    }
    usec_t at = MAX(s->retry_at, s->looked_at + SIGHT_PAUSE);
    at = MAX(at, client_open_at(a->client));
    if (at > a->now) {
        arbiter_at(a, at);
        return;
    }
    s->dirty = false;
    s->looked_at = a->now;
    if (tree_parse(p->status, &tmp, &old, &err) < 0) {
        return;
    }
    struct tree *status = tree_clone(&tmp, old);
    sight_compose(s, status, &tmp);
    if (mergepatch_create(old, status, &tmp, &patch, &err) == 0 && patch->n > 0) {
        sight_send(s, patch);
    }
}

void sights_step(struct arbiter *a)
{
    if (!a->may) {
        return;
    }
    LIST_EACH (&a->sights, link) {
        sight_step(CONTAINER_OF(link, struct sight, link));
    }
}

/* ── watching ──────────────────────────────────────────────────────────────────────────────── */

static void sights_on_change(void *ctx, struct store_item *item, const void *before)
{
    struct arbiter *a = ctx;
    const struct picker *p = item->object;
    const struct picker *old = before;
    struct sight *s = item->extra;
    if (s == NULL) {
        s = ALLOC_NEW(struct sight);
        s->arbiter = a;
        s->item = item;
        s->looked_at = -SIGHT_PAUSE;
        s->backoff = (struct backoff){ .base = SIGHT_BACKOFF_BASE, .max = SIGHT_BACKOFF_MAX };
        item->extra = s;
        list_add(&a->sights, &s->link);
    }
    s->dirty = true;
    if (old == NULL || old->generation != p->generation || !str_eq(old->uid, p->uid)) {
        arbiter_reshape(a, p->type);
        if (old != NULL) {
            arbiter_reshape(a, old->type);
        }
    }
    arbiter_soon(a);
}

static void sights_on_gone(void *ctx, struct store_item *item)
{
    struct arbiter *a = ctx;
    struct sight *s = item->extra;
    const struct picker *p = item->object;
    if (s->call != NULL) {
        api_cancel(a->client->api, STEAL(s->call));
    }
    list_del(&s->link);
    alloc_free(s);
    item->extra = NULL;
    arbiter_reshape(a, p->type);
}

static void sights_on_list(void *ctx)
{
    struct arbiter *a = ctx;
    store_list_begin(&a->pickers);
}

static int sights_on_object(void *ctx, const struct jval *object, bool deleted, struct err *err)
{
    struct arbiter *a = ctx;
    int r = store_observe(&a->pickers, object, deleted, err);
    while (store_take(&a->pickers) != NULL) {
        /* on_change has seen it */
    }
    return r;
}

static bool sights_on_synced(void *ctx, uint64_t version)
{
    struct arbiter *a = ctx;
    a->pickers_synced = store_list_end(&a->pickers, version);
    arbiter_soon(a);
    return a->pickers_synced;
}

static void sights_on_error(void *ctx, const struct err *err, bool bad)
{
    struct arbiter *a = ctx;
    if (err->code == ERR_NOTFOUND && !bad) {
        a->pickers_synced = true; /* not installed: there are none */
        arbiter_soon(a);
    } else if (a->config.log != NULL) {
        log_debug(a->config.log, "watch of selectors failed", KV_TEXT("error", err->msg));
    }
}

void sights_start(struct arbiter *a)
{
    list_init(&a->sights);
    store_init(&a->pickers, &picker_kind, a, loop_random(a->loop));
    a->pickers.on_change = sights_on_change;
    a->pickers.on_gone = sights_on_gone;
    reflector_init(&a->pickers_reflector, a->client,
                   &(struct reflector_config){
                       .path = STR("/apis/repairman.k8s.io/v1/maintenanceselectors"),
                       .on_list = sights_on_list,
                       .on_object = sights_on_object,
                       .on_synced = sights_on_synced,
                       .on_error = sights_on_error,
                       .ctx = a,
                   });
    reflector_start(&a->pickers_reflector);
}

void sights_stop(struct arbiter *a)
{
    reflector_done(&a->pickers_reflector);
    store_done(&a->pickers);
}
