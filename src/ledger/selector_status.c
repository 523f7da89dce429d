/*
 * The watch of MaintenanceSelectors, and their status: how many objects they match, and some of
 * them. The status is written at most once a second. Limits that refer to a selector find it here.
 */
#include "base/alloc.h"
#include "format/json_writer.h"
#include "format/mergepatch.h"
#include "ledger/arbiter_internal.h"

#define SELECTOR_SAMPLE_MAX 20u
#define SELECTOR_WRITE_INTERVAL SECONDS(1)

/* After a conflict the watch brings the newer object. The status is for people, and can wait. */
static const struct writer_rules selector_state_rules = {
    .conflict = { SECONDS(1), MINUTES(1) },
    .absent = { SECONDS(1), MINUTES(1) },
    .refused = { SECONDS(1), MINUTES(1) },
    .failed = { SECONDS(1), MINUTES(1) },
};

/* Our side of a MaintenanceSelector. */
struct selector_state {
    struct arbiter *arbiter;
    struct store_item *item;
    struct list link; /* in arbiter->selector_states */
    bool dirty;
    usec_t updated_at; /* monotonic */
    struct writer writer;
};

const struct maintenance_selector *selectors_find(const struct arbiter *a, struct str selector_ref)
{
    const struct store_item *item = store_find(&a->selectors.store, selector_ref);
    return item != NULL ? item->object : NULL;
}

void selectors_mark(struct arbiter *a, enum target_type type)
{
    LIST_EACH (&a->selector_states, link) {
        struct selector_state *s = CONTAINER_OF(link, struct selector_state, link);
        const struct maintenance_selector *p = s->item->object;
        s->dirty = s->dirty || p->type == type;
    }
}

/* ── matching ──────────────────────────────────────────────────────────────────────────────── */

struct matched_objects {
    const struct arbiter *arbiter;
    const struct maintenance_selector *selector;
    uint32_t matched;
    struct str sample[SELECTOR_SAMPLE_MAX]; /* the smallest names, sorted */
    uint32_t sample_n;
};

static void matched_objects_add(struct matched_objects *l, struct str name)
{
    uint32_t i = l->sample_n;
    while (i > 0 && str_cmp(name, l->sample[i - 1]) < 0) {
        i--;
    }
    if (i >= SELECTOR_SAMPLE_MAX) {
        return;
    }
    uint32_t last = MIN(l->sample_n, SELECTOR_SAMPLE_MAX - 1);
    for (uint32_t k = last; k > i; k--) {
        l->sample[k] = l->sample[k - 1];
    }
    l->sample[i] = name;
    l->sample_n = MIN(l->sample_n + 1, SELECTOR_SAMPLE_MAX);
}

static void matched_objects_visit(void *ctx, const struct counted_object *m)
{
    struct matched_objects *l = ctx;
    if (population_selector_matches(l->arbiter, l->selector, m)) {
        l->matched++;
        matched_objects_add(l, m->name);
    }
}

static bool selector_state_in_use(const struct selector_state *s)
{
    LIST_EACH (&s->arbiter->limit_states, link) {
        const struct limit *l = limit_of(CONTAINER_OF(link, struct limit_state, link));
        if (l->has_selector_ref && str_eq(l->selector_ref, s->item->name)) {
            return true;
        }
    }
    return false;
}

/* ── status ────────────────────────────────────────────────────────────────────────────────── */

static void selector_state_compose(const struct selector_state *s, struct tree *status,
                                   struct arena *tmp)
{
    struct arbiter *a = s->arbiter;
    const struct maintenance_selector *p = s->item->object;
    struct matched_objects l = { .arbiter = a, .selector = p };
    bool good = p->reason.n == 0;
    bool used = selector_state_in_use(s);
    if (good) {
        population_each(a, p->type, matched_objects_visit, &l);
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
    status_condition_set(list,
                         &(struct status_condition){
                             "Accepted", good, good ? STR("Accepted") : p->reason, p->problem },
                         p->generation, a->wall, tmp);
    status_condition_set(
        list,
        &(struct status_condition){ "InUse", used, used ? STR("Referenced") : STR("NotReferenced"),
                                    STR("") },
        p->generation, a->wall, tmp);
}

static void selector_state_on_reply(void *ctx, const struct api_reply *reply)
{
    struct selector_state *s = ctx;
    struct arbiter *a = s->arbiter;
    CLEANUP(writer_reply_done)
    struct writer_reply r;
    if (writer_on_reply(&s->writer, reply, &a->selectors.store, s->item->name, &r) != RETRY_DONE) {
        s->dirty = true;
    }
    arbiter_run_soon(a);
}

static void selector_state_send(struct selector_state *s, const struct tree *patch)
{
    struct arbiter *a = s->arbiter;
    struct str namespace;
    struct str name;
    (void)str_cut(s->item->name, STR("/"), &namespace, &name); /* the store named it so */
    buf_reset(&a->path);
    buf_add(&a->path, STR(MAINTENANCE_PATH "/namespaces/"));
    client_add_segment(&a->path, namespace);
    buf_add(&a->path, STR("/maintenanceselectors/"));
    client_add_segment(&a->path, name);
    buf_add(&a->path, STR("/status"));
    buf_reset(&a->body);
    struct json_writer w = json_writer_on(&a->body);
    jw_obj(&w);
    writer_add_version(&w, s->item->version);
    jw_key(&w, STR("status"));
    tree_write(patch, &w);
    jw_obj_end(&w);
    writer_send(&s->writer,
                &(struct api_request){
                    .verb = API_PATCH,
                    .path = buf_str(&a->path),
                    .body = buf_str(&a->body),
                },
                s->item->version, selector_state_on_reply, s);
}

static void selector_state_step(struct selector_state *s)
{
    struct arbiter *a = s->arbiter;
    const struct maintenance_selector *p = s->item->object;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct err err = { 0 };
    struct tree *old = NULL;
    struct tree *patch = NULL;
    if (!s->dirty || s->writer.call != NULL ||
        (p->reason.n == 0 && !population_known(a, p->type))) {
        return;
    }
    usec_t at =
        MAX(writer_ready_at(&s->writer, s->item->version), s->updated_at + SELECTOR_WRITE_INTERVAL);
    if (at > a->now) {
        arbiter_run_at(a, at);
        return;
    }
    s->dirty = false;
    s->updated_at = a->now;
    if (tree_parse(p->status, &tmp, &old, &err) < 0) {
        return;
    }
    struct tree *status = tree_clone(&tmp, old);
    selector_state_compose(s, status, &tmp);
    if (mergepatch_create(old, status, &tmp, &patch, &err) == 0 && patch->n > 0) {
        selector_state_send(s, patch);
    }
}

void selectors_step(struct arbiter *a)
{
    if (!a->may_act) {
        return;
    }
    LIST_EACH (&a->selector_states, link) {
        selector_state_step(CONTAINER_OF(link, struct selector_state, link));
    }
}

/* ── watching ──────────────────────────────────────────────────────────────────────────────── */

static void selectors_on_change(void *ctx, struct store_item *item, const void *before)
{
    struct arbiter *a = ctx;
    const struct maintenance_selector *p = item->object;
    const struct maintenance_selector *old = before;
    struct selector_state *s = item->extra;
    if (s == NULL) {
        s = ALLOC_NEW(struct selector_state);
        s->arbiter = a;
        s->item = item;
        s->updated_at = -SELECTOR_WRITE_INTERVAL;
        writer_init(&s->writer, a->client, &selector_state_rules);
        item->extra = s;
        list_add(&a->selector_states, &s->link);
    }
    s->dirty = true;
    if (old == NULL || old->generation != p->generation || !str_eq(old->uid, p->uid)) {
        arbiter_limits_changed(a, p->type);
        if (old != NULL) {
            arbiter_limits_changed(a, old->type);
        }
    }
    arbiter_run_soon(a);
}

static void selectors_on_gone(void *ctx, struct store_item *item)
{
    struct arbiter *a = ctx;
    struct selector_state *s = item->extra;
    const struct maintenance_selector *p = item->object;
    writer_cancel(&s->writer);
    list_del(&s->link);
    alloc_free(s);
    item->extra = NULL;
    arbiter_limits_changed(a, p->type);
}

static void selectors_on_synced(void *ctx)
{
    arbiter_run_soon(ctx);
}

static void selectors_on_error(void *ctx, const struct err *err)
{
    const struct arbiter *a = ctx;
    if (a->config.log != NULL) {
        log_debug(a->config.log, "watch of selectors failed", KV_TEXT("error", err->msg));
    }
}

void selectors_start(struct arbiter *a)
{
    list_init(&a->selector_states);
    informer_init(&a->selectors, &(struct informer_config){
                                     .client = a->client,
                                     .kind = &maintenance_selector_kind,
                                     .optional = true,
                                     .on_change = selectors_on_change,
                                     .on_gone = selectors_on_gone,
                                     .on_synced = selectors_on_synced,
                                     .on_error = selectors_on_error,
                                     .ctx = a,
                                 });
    informer_start(&a->selectors, STR(MAINTENANCE_SELECTORS_PATH));
}

void selectors_stop(struct arbiter *a)
{
    informer_done(&a->selectors);
}
