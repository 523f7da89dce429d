/* NodeMaintenances as a part: the watches, the turn, and the life of the part. */
#include "base/alloc.h"
#include "operation/payload_source.h"
#include "operation/reference_status.h"

#include <stdlib.h>

#define JOBS_QUERY "&labelSelector=" KEY_JOB_MANAGED_QUERY "%3Dtrue"
#define REQUESTS_QUERY "&labelSelector=" KEY_CLIENT_QUERY "%3D" VISIT_CLIENT

static const struct str annotations[] = {
    KEY_VISIT_CORDON, KEY_REQUEST_CORDON, KEY_KEPT_CORDON, KEY_VISIT_LABELS, KEY_DRAIN_RULES,
};

static void operations_on_synced(void *ctx);

void operations_schedule(struct operations *o)
{
    usec_t now = loop_now(o->loop);
    usec_t gap = TURN_GAP + (usec_t)store_count(&o->core->nodes.store) * TURN_GAP_MACHINE;
    loop_timer_pull(&o->turn, MAX(now, o->turned + gap));
}

void operations_wake_at(struct operations *o, usec_t wall)
{
    o->next = MIN(o->next, wall);
}

bool operations_may_send(const struct operations *o)
{
    return o->in_flight < OPERATIONS_WRITES_MAX && core_may_act(o->core);
}

struct turn_machine *operations_machine(const struct operations *o, struct str name)
{
    return map_find(&o->machine_by_name, name);
}

struct campaign *operations_campaign(const struct operations *o, struct str uid)
{
    LIST_EACH (&o->campaigns, link) {
        struct campaign *c = CONTAINER_OF(link, struct campaign, link);
        if (c->m != NULL && str_eq(c->m->meta.uid, uid)) {
            return c;
        }
    }
    return NULL;
}

struct campaign *operations_campaign_named(const struct operations *o, struct str name)
{
    const struct store_item *item = store_find(&o->maintenances.store, name);
    return item != NULL ? item->extra : NULL;
}

/* ── the turn ──────────────────────────────────────────────────────────────────────────────── */

static int machine_cmp(const void *a, const void *b)
{
    const struct turn_machine *x = a;
    const struct turn_machine *y = b;
    return str_cmp(x->name, y->name);
}

static bool machine_label(void *ctx, struct str key, struct str *ret)
{
    const struct node *node = ctx;
    *ret = node_label(node, key);
    return ret->p != NULL;
}

static void machine_add_state(const struct operations *o, struct turn_machine *t)
{
    CLEANUP(buf_done)
    struct buf key = { 0 };
    buf_printf(&key, STR_FMT "/" STR_FMT, STR_ARG(o->config.namespace), STR_ARG(t->name));
    t->state_item = store_find(&o->states.store, buf_str(&key));
    const struct node_state *s = t->state_item != NULL ? t->state_item->object : NULL;
    t->state = s != NULL && str_eq(s->machine_uid, t->node->uid) ? s : NULL;
}

static void turn_collect_machines(struct operations *o)
{
    const struct store *nodes = &o->core->nodes.store;
    o->machines = ARENA_ARRAY(&o->tmp, struct turn_machine, store_count(nodes));
    o->machine_n = 0;
    map_done(&o->machine_by_name);
    map_init(&o->machine_by_name, 0, 0);
    MAP_EACH (&nodes->items, entry) {
        const struct store_item *item = map_item_value(entry);
        const struct node *node = item->object;
        o->machines[o->machine_n++] = (struct turn_machine){
            .name = item->name,
            .node = node,
            .work = map_find(&o->work_by_name, item->name),
            .reachable = node->ready && !node->deleting,
        };
    }
    if (o->machine_n > 0) {
        qsort(o->machines, o->machine_n, sizeof(o->machines[0]), machine_cmp);
    }
    for (uint32_t i = 0; i < o->machine_n; i++) {
        struct turn_machine *t = &o->machines[i];
        machine_add_state(o, t);
        machine_facts_read(t->node, t->state, &t->facts);
        t->machine = (struct machine){
            .name = t->name,
            .uid = t->node->uid,
            .created = t->node->created,
            .label = machine_label,
            .label_ctx = (void *)(uintptr_t)t->node,
            .facts = &t->facts,
        };
        (void)map_put(&o->machine_by_name, t->name, t); /* names are unique */
    }
}

/* Visits of machines whose Node is gone, or is another one now: they end, too. */
static void turn_collect_orphans(struct operations *o)
{
    o->orphans = ARENA_ARRAY(&o->tmp, struct turn_machine, store_count(&o->states.store));
    o->orphan_n = 0;
    MAP_EACH (&o->states.store.items, entry) {
        struct store_item *item = map_item_value(entry);
        const struct node_state *s = item->object;
        const struct turn_machine *t = operations_machine(o, s->machine);
        if (s->visit.phase != VISIT_NONE && (t == NULL || t->state != s)) {
            o->orphans[o->orphan_n++] = (struct turn_machine){
                .name = s->meta.name,
                .state = s,
                .state_item = item,
                .work = map_find(&o->work_by_name, s->meta.name),
            };
        }
    }
}

static int campaign_cmp(const void *a, const void *b)
{
    const struct campaign *x = *(const struct campaign *const *)a;
    const struct campaign *y = *(const struct campaign *const *)b;
    if (x->m->priority != y->m->priority) {
        return x->m->priority > y->m->priority ? -1 : 1;
    }
    return str_cmp(x->item->name, y->item->name);
}

/* By priority, then name: so they are asked, and so their runs stand in a visit. */
static void turn_sort_campaigns(struct operations *o)
{
    uint32_t n = 0;
    struct campaign **sorted =
        ARENA_ARRAY(&o->tmp, struct campaign *, store_count(&o->maintenances.store) + 1);
    LIST_EACH (&o->campaigns, link) {
        sorted[n++] = CONTAINER_OF(link, struct campaign, link);
    }
    if (n > 0) {
        qsort(sorted, n, sizeof(sorted[0]), campaign_cmp);
    }
    list_init(&o->campaigns);
    for (uint32_t i = 0; i < n; i++) {
        list_add(&o->campaigns, &sorted[i]->link);
    }
}

static void turn_look_at_campaigns(struct operations *o)
{
    LIST_EACH (&o->campaigns, link) {
        campaign_compile(CONTAINER_OF(link, struct campaign, link));
    }
    turn_sort_campaigns(o);
    campaigns_find_cycles(o);
    LIST_EACH (&o->campaigns, link) {
        struct campaign *c = CONTAINER_OF(link, struct campaign, link);
        campaign_look_at_asks(c);
        campaign_look_at_window(c);
        campaign_look_at_ticks(c);
        campaign_look_at_machines(c);
    }
    LIST_EACH (&o->campaigns, link) {
        campaign_decide(CONTAINER_OF(link, struct campaign, link));
    }
}

static bool machine_has_place(const struct operations *o, const struct turn_machine *t)
{
    LIST_EACH (&o->campaigns, link) {
        const struct campaign *c = CONTAINER_OF(link, struct campaign, link);
        const struct campaign_member *m = campaign_member(c, t);
        if (m != NULL && m->place) {
            return true;
        }
    }
    return false;
}

static void turn_work_on(struct operations *o, struct turn_machine *t)
{
    if (t->work == NULL) {
        t->work = work_new(o, t->name);
    }
    t->work->wanted = true;
    work_step(t->work, t);
}

static bool machine_is_orphan(const struct operations *o, struct str name)
{
    for (uint32_t i = 0; i < o->orphan_n; i++) {
        if (str_eq(o->orphans[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* Cordons that a failure left: they go when the failure counts no more. */
static void turn_look_at_kept_cordons(struct operations *o)
{
    for (uint32_t i = 0; i < o->machine_n; i++) {
        struct turn_machine *t = &o->machines[i];
        struct str mark = node_annotation(t->node, KEY_KEPT_CORDON);
        bool visited = t->state != NULL && t->state->visit.phase != VISIT_NONE;
        if (mark.n == 0 || visited) {
            continue;
        }
        struct campaign *c = operations_campaign(o, mark);
        /* Somebody has lifted it: a mark that stayed would take the next cordon for ours. */
        if (t->node->unschedulable && campaign_keeps_cordon(c, t)) {
            continue;
        }
        if (t->work == NULL) {
            t->work = work_new(o, t->name);
        }
        t->work->wanted = true;
        work_lift_kept(t->work, mark);
    }
}

static void turn_work(struct operations *o)
{
    LIST_EACH (&o->works, link) {
        CONTAINER_OF(link, struct work, link)->wanted = false;
    }
    for (uint32_t i = 0; i < o->orphan_n; i++) {
        turn_work_on(o, &o->orphans[i]);
    }
    for (uint32_t i = 0; i < o->machine_n; i++) {
        struct turn_machine *t = &o->machines[i];
        bool visited = t->state != NULL && t->state->visit.phase != VISIT_NONE;
        bool replaced = t->state_item != NULL && t->state == NULL;
        if ((visited || replaced || machine_has_place(o, t)) && !machine_is_orphan(o, t->name)) {
            turn_work_on(o, t);
        }
    }
    turn_look_at_kept_cordons(o);
    LIST_EACH (&o->works, link) {
        struct work *w = CONTAINER_OF(link, struct work, link);
        if (!w->wanted && w->state.call == NULL && w->request.call == NULL && w->job.call == NULL &&
            !node_write_is_busy(&w->labels)) {
            work_free(w);
        }
    }
}

static bool operations_know_all(const struct operations *o)
{
    const struct informer *const all[] = { &o->maintenances, &o->windows, &o->series,
                                           &o->templates,    &o->states,  &o->jobs,
                                           &o->requests };
    for (uint32_t i = 0; i < ARRAY_LEN(all); i++) {
        if (!informer_healthy(all[i])) {
            return false;
        }
    }
    return o->watching && !o->maintenances.absent && core_may_act(o->core);
}

static void turn_campaigns(struct operations *o)
{
    o->turns++;
    gate_questions_mark(o);
    turn_collect_orphans(o);
    turn_look_at_campaigns(o);
    turn_work(o);
    LIST_EACH (&o->campaigns, link) {
        struct campaign *c = CONTAINER_OF(link, struct campaign, link);
        campaign_count_missed(c);
        campaign_tell_gathered(c);
        campaign_write(c);
    }
    gate_questions_sweep(o);
    job_history_trim(o);
}

static void operations_turn(struct operations *o)
{
    arena_reset(&o->tmp);
    o->knows = false;
    o->turned = loop_now(o->loop);
    o->now = server_clock_wall(&o->core->client.clock);
    o->now -= o->now % SECONDS(1); /* what is written has whole seconds */
    o->sources.now = o->now;
    o->next = USEC_NEVER;
    if (!operations_know_all(o)) {
        operations_tell_lack(o);
        return;
    }
    LIST_EACH (&o->campaigns, link) {
        campaign_compile(CONTAINER_OF(link, struct campaign, link)); /* tells what it refers to */
    }
    if (!payload_references_known(o)) {
        return; /* the answer asks for a turn */
    }
    o->knows = true;
    bool used = !list_empty(&o->campaigns) || store_count(&o->states.store) > 0;
    if (used || store_count(&o->series.store) > 0) { /* otherwise nobody asks for the nodes */
        turn_collect_machines(o);
    }
    if (used) {
        turn_campaigns(o);
    }
    references_write(o);
    histories_write(o);
    lost_request_look(o);
    if (o->next != USEC_NEVER) {
        usec_t wait = MAX(o->next - o->now, MSECONDS(100));
        loop_timer_pull(&o->turn, loop_now(o->loop) + wait);
    }
}

static void operations_on_timer(void *ctx)
{
    struct operations *o = ctx;
    o->changes++;
    operations_turn(o);
}

bool operations_look(struct operations *o)
{
    operations_turn(o);
    return o->knows;
}

/* ── watches ───────────────────────────────────────────────────────────────────────────────── */

static void operations_on_maintenance(void *ctx, struct store_item *item, const void *before UNUSED)
{
    struct operations *o = ctx;
    if (item->extra == NULL) {
        item->extra = campaign_new(o, item);
    }
    campaign_compile(item->extra);
    operations_schedule(o);
}

static void operations_on_maintenance_gone(void *ctx, struct store_item *item)
{
    struct operations *o = ctx;
    if (item->extra != NULL) {
        campaign_free(STEAL(item->extra));
    }
    operations_schedule(o);
}

static void operations_on_update(void *ctx)
{
    operations_schedule(ctx);
}

static void operations_on_error(void *ctx, const struct err *err)
{
    struct operations *o = ctx;
    if (err->code != ERR_DENIED) {
        log_warn(o->log, "watch of a kind of operations failed; trying again", KV_ERR(err));
    } else if (!o->told_denied) {
        o->told_denied = true; /* somebody has to give the right; nothing else depends on it */
        log_info(o->log, "NodeMaintenances are not served", KV_ERR(err));
    }
    o->reference_epoch++;
    operations_schedule(o); /* what is missing is told in their status, too */
}

static void operations_on_source(void *ctx)
{
    struct operations *o = ctx;
    o->reference_epoch++;
    operations_schedule(o);
}

/* What payloads and windows refer to. */
static void operations_init_source(struct operations *o, struct informer *i,
                                   const struct store_kind *kind)
{
    bool config_maps = i == &o->config_maps;
    informer_init(i, &(struct informer_config){
                         .client = &o->core->client,
                         .kind = kind,
                         .on_change = config_maps ? payload_references_on_config_map : NULL,
                         .on_gone = config_maps ? payload_references_on_config_map_gone : NULL,
                         .on_update = operations_on_update,
                         .on_synced = operations_on_source,
                         .on_recovered = operations_on_source,
                         .on_error = operations_on_error,
                         .ctx = o,
                     });
}

static void operations_init_informer(struct operations *o, struct informer *i,
                                     const struct store_kind *kind, const char *query)
{
    bool maintenances = i == &o->maintenances;
    bool reference = i == &o->windows || i == &o->series || i == &o->templates;
    informer_init(i, &(struct informer_config){
                         .client = &o->core->client,
                         .kind = kind,
                         .query = str_from(query),
                         .optional = true,
                         .on_change = maintenances ? operations_on_maintenance : NULL,
                         .on_gone = maintenances ? operations_on_maintenance_gone
                                    : reference  ? reference_on_gone
                                                 : NULL,
                         .on_update = operations_on_update,
                         .on_synced = maintenances ? operations_on_synced : NULL,
                         .on_error = operations_on_error,
                         .ctx = o,
                     });
}

static void operations_watch(struct operations *o)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    o->watching = true;
    informer_start(&o->windows, STR(MAINTENANCE_WINDOWS_PATH));
    informer_start(&o->series, STR(NODE_SERIES_PATH));
    informer_start(&o->templates, STR(NODE_OPERATION_TEMPLATES_PATH));
    informer_start(&o->requests, STR(MAINTENANCE_REQUESTS_PATH));
    buf_add(&path, STR(OPERATION_PATH "/namespaces/"));
    client_add_segment(&path, o->config.namespace);
    buf_add(&path, STR("/nodestates"));
    informer_start(&o->states, buf_str(&path));
    buf_reset(&path);
    buf_add(&path, STR("/apis/batch/v1/namespaces/"));
    client_add_segment(&path, o->config.jobs_namespace);
    buf_add(&path, STR("/jobs"));
    informer_start(&o->jobs, buf_str(&path));
}

static void operations_on_synced(void *ctx)
{
    struct operations *o = ctx;
    if (!o->maintenances.absent && !o->watching) {
        log_info(o->log, "NodeMaintenances are served");
        operations_watch(o);
    }
    operations_schedule(o);
}

/* ── the part ──────────────────────────────────────────────────────────────────────────────── */

static struct operations *operations_of(struct core_part *p)
{
    return CONTAINER_OF(p, struct operations, part);
}

static void operations_on_node(struct core_part *p, struct store_item *item UNUSED,
                               const void *before UNUSED, bool gone UNUSED)
{
    if (operations_of(p)->watching) {
        operations_schedule(operations_of(p));
    }
}

static void operations_on_arbiter(struct core_part *p)
{
    struct operations *o = operations_of(p);
    if (o->core->arbiter != NULL && !o->maintenances.started) {
        informer_start(&o->maintenances, STR(NODE_MAINTENANCES_PATH));
    }
}

static void operations_on_may_act(struct core_part *p)
{
    operations_schedule(operations_of(p));
}

static void operations_on_arbiter_turn(struct core_part *p)
{
    if (operations_of(p)->watching) {
        operations_schedule(operations_of(p));
    }
}

static void operations_on_leading(struct core_part *p, bool leading)
{
    struct operations *o = operations_of(p);
    LIST_EACH (&o->campaigns, link) {
        CONTAINER_OF(link, struct campaign, link)->durations_known = false; /* others may add */
    }
    if (!leading) {
        LIST_EACH (&o->works, link) {
            work_reset(CONTAINER_OF(link, struct work, link));
        }
        gate_questions_drop(o);
        lost_request_done(o);
        lost_request_init(o);
    }
    operations_schedule(o);
}

static bool operations_is_busy(const struct core_part *p)
{
    const struct operations *o =
        CONTAINER_OF((struct core_part *)(uintptr_t)p, struct operations, part);
    return o->in_flight > 0;
}

static const struct core_part_ops operations_ops = {
    .on_node = operations_on_node,
    .on_arbiter = operations_on_arbiter,
    .on_may_act = operations_on_may_act,
    .on_arbiter_turn = operations_on_arbiter_turn,
    .on_capacity = operations_on_arbiter_turn,
    .on_leading = operations_on_leading,
    .is_busy = operations_is_busy,
};

static int operations_find_zone(void *ctx, struct str name, const struct zone **ret,
                                struct err *err)
{
    struct operations *o = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct str bytes;
    const struct zone *zone = map_find(&o->zones, name);
    if (zone == NULL) {
        if (o->config.read_zone == NULL) {
            return err_set(err, ERR_NOTFOUND, "no time zones are known");
        }
        int r = o->config.read_zone(o->config.zone_ctx, name, &tmp, &bytes, err);
        r = r < 0 ? r : zone_parse(bytes, &o->memory, &zone, err);
        if (r < 0) {
            return r;
        }
        (void)map_put(&o->zones, name, (void *)(uintptr_t)zone); /* it was not there */
    }
    *ret = zone;
    return 0;
}

static bool operations_may_cordon(void *ctx)
{
    const struct operations *o = ctx;
    return core_may_act(o->core);
}

static void operations_copy_config(struct operations *o, const struct operations_config *config)
{
    struct arena *m = &o->memory;
    o->config = *config;
    o->config.namespace =
        arena_str(m, config->namespace.n > 0 ? config->namespace : OPERATIONS_NAMESPACE);
    o->config.jobs_namespace = arena_str(
        m, config->jobs_namespace.n > 0 ? config->jobs_namespace : OPERATIONS_JOBS_NAMESPACE);
    o->config.runner_image = arena_str(m, config->runner_image);
    o->config.priority_class = arena_str(m, config->priority_class);
    o->config.allow_urls = arena_str(m, config->allow_urls);
    o->config.jobs_max = config->jobs_max > 0 ? config->jobs_max : OPERATIONS_JOBS_MAX;
}

struct operations *operations_new(struct core *core, const struct operations_config *config)
{
    struct operations *o = ALLOC_NEW(struct operations);
    o->core = core;
    o->loop = core->loop;
    o->log = core->log;
    operations_copy_config(o, config);
    o->sources = (struct window_sources){ .find_zone = operations_find_zone,
                                          .find_calendar = payload_references_calendar,
                                          .ctx = o };
    list_init(&o->campaigns);
    list_init(&o->works);
    list_init(&o->histories);
    list_init(&o->questions);
    loop_timer_init(&o->turn, o->loop, operations_on_timer, o);
    o->cordons = cordons_new(&(struct cordons_config){
        .client = &core->client,
        .recorder = &core->recorder,
        .log = core->log,
        .may_act = operations_may_cordon,
        .ctx = o,
    });
    operations_init_informer(o, &o->maintenances, &node_maintenance_kind, "");
    operations_init_informer(o, &o->windows, &maintenance_window_kind, "");
    operations_init_informer(o, &o->series, &node_series_kind, "");
    operations_init_informer(o, &o->templates, &node_operation_template_kind, "");
    operations_init_informer(o, &o->states, &node_state_kind, "");
    operations_init_informer(o, &o->jobs, &job_state_kind, JOBS_QUERY);
    operations_init_source(o, &o->config_maps, &payload_config_map_kind);
    operations_init_source(o, &o->secrets, &payload_secret_kind);
    operations_init_informer(o, &o->requests, &mrequest_kind, REQUESTS_QUERY);
    o->part.annotations = annotations;
    o->part.annotation_n = ARRAY_LEN(annotations);
    operations_events_init(o);
    operations_metrics_init(o);
    lost_request_init(o);
    core_join(core, &o->part, &operations_ops);
    return o;
}

void operations_free(struct operations *o)
{
    if (o == NULL) {
        return;
    }
    core_leave(&o->part);
    operations_metrics_done(o);
    if (o->trim_call != NULL) {
        api_cancel(o->core->client.api, STEAL(o->trim_call));
    }
    gate_questions_drop(o);
    lost_request_done(o);
    LIST_EACH (&o->works, link) {
        work_free(CONTAINER_OF(link, struct work, link));
    }
    struct informer *const all[] = { &o->maintenances, &o->windows, &o->series,
                                     &o->templates,    &o->states,  &o->jobs,
                                     &o->requests,     &o->secrets, &o->config_maps };
    LIST_EACH (&o->campaigns, link) {
        campaign_free(CONTAINER_OF(link, struct campaign, link));
    }
    references_free(o);
    histories_free(o);
    for (uint32_t i = 0; i < ARRAY_LEN(all); i++) {
        all[i]->store.on_gone = NULL;
        informer_done(all[i]);
    }
    cordons_free(o->cordons);
    loop_timer_done(&o->turn);
    map_done(&o->work_by_name);
    map_done(&o->machine_by_name);
    map_done(&o->zones);
    map_done(&o->calendars);
    buf_done(&o->path);
    buf_done(&o->body);
    operations_free_refusals(o);
    arena_done(&o->tmp);
    arena_done(&o->memory);
    alloc_free(o);
}

void operations_check(const struct operations *o)
{
    ASSERT(o->in_flight <= OPERATIONS_WRITES_MAX + 1);
    ASSERT(o->gate_calls <= GATE_CALLS_MAX);
    LIST_EACH (&o->campaigns, link) {
        const struct campaign *c = CONTAINER_OF(link, struct campaign, link);
        ASSERT(c->item->extra == c);
    }
}
