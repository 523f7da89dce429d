#include "kinds/node_maintenance.h"

#include "kinds/node_maintenance_internal.h"

static void window_read(const struct spec_node *spec, const struct window_sources *sources,
                        struct maintenance_when *w)
{
    struct spec_node m = spec_member(spec, "window");
    struct spec_node override = spec_member(&m, "override");
    struct spec_node refs = spec_member(&m, "refs");
    static const char *const keys[] = {
        "refs", "override",    "timeZone", "days",         "from",
        "to",   "recurrences", "exclude",  "minRemaining", "atClose"
    };
    spec_only(&m, keys, ARRAY_LEN(keys));
    *w = (struct maintenance_when){
        .given = m.value != NULL,
        .refs = spec_texts(&m, "refs", WINDOW_REFS_MAX),
        .has_override = override.value != NULL,
        .override_until = spec_time(&override, "until"),
        .override_reason = spec_text(&override, "reason"),
    };
    window_hours_read(&m, sources, &w->own);
    if (refs.value != NULL && w->refs.n == 0) {
        spec_wrong(&refs, "Invalid", "at least one name");
    }
    if (w->has_override && (w->override_until == 0 || w->override_reason.n == 0)) {
        spec_wrong(&override, "Invalid", "until and reason");
    }
    /* What was emptied on the way must not mean "always". */
    if (w->given && w->refs.n == 0 && !w->own.given && !w->has_override) {
        spec_wrong(&m, "Invalid", "refs, days with from and to, recurrences, or override");
    }
    if (!w->own.given && (spec_has(&m, "exclude") || spec_has(&m, "timeZone") ||
                          spec_has(&m, "minRemaining") || spec_has(&m, "atClose"))) {
        spec_wrong(&m, "Invalid",
                   "days with from and to, or recurrences, beside timeZone, exclude, minRemaining "
                   "and atClose");
    }
}

static void series_read(const struct spec_node *spec, struct str name, struct maintenance_where *w)
{
    struct spec_node m = spec_member(spec, "nodeSeries");
    w->ref = spec_text(&m, "ref");
    series_spec_read(&m, name, &w->own);
    if (m.value == NULL) {
        return;
    }
    if (jval_kind(m.value) != JOBJ || m.value->n == 0) {
        spec_wrong(&m, "Invalid", "ref, or a description of the machines");
    } else if (w->ref.n > 0 && m.value->n > 1) {
        spec_wrong(&m, "Invalid", "ref, or a description of the machines, not both");
    }
}

static void depends_read(const struct spec_node *spec, struct node_maintenance *ret)
{
    static const char *const scopes[] = { "Series", "Node" };
    struct spec_node list = spec_member(spec, "dependsOn");
    struct maintenance_dependency *items =
        ARENA_ARRAY(spec->reader->out, struct maintenance_dependency,
                    MIN(spec_count(&list), MAINTENANCE_DEPENDS_MAX));
    ret->depends = items;
    SPEC_EACH(&list, MAINTENANCE_DEPENDS_MAX, item)
    {
        struct maintenance_dependency *d = &items[ret->depend_n++];
        d->name = spec_text(&item, "name");
        d->operation = spec_text(&item, "operation");
        d->same_node = SPEC_ENUM(&item, "scope", scopes, 0) == 1;
        if (d->name.n == 0) {
            spec_wrong(&item, "Invalid", "the name of a NodeMaintenance");
        } else if (str_eq(d->name, ret->meta.name)) {
            spec_wrong(&item, "Cycle", "another NodeMaintenance than itself");
        }
    }
}

static void failure_read(const struct spec_node *spec, struct maintenance_failure *f)
{
    static const char *const limits[] = { "Pause", "Continue" };
    static const char *const nodes[] = { "Auto", "KeepCordoned", "Uncordon" };
    struct spec_node m = spec_member(spec, "failurePolicy");
    struct spec_node backoff = spec_member(&m, "backoff");
    *f = (struct maintenance_failure){
        .retries = (uint32_t)spec_number(&m, "retries", 2, 0, 100),
        .backoff_initial = spec_duration(&backoff, "initial", SECONDS(30)),
        .backoff_factor = (uint32_t)spec_number(&backoff, "factor", 2, 1, 10),
        .backoff_max = spec_duration(&backoff, "max", MINUTES(15)),
        .pause_after = spec_share(&m, "pauseAfter", 1),
        .go_on = SPEC_ENUM(&m, "onLimit", limits, 0) == 1,
        .on_node = (enum on_node_failure)SPEC_ENUM(&m, "onNodeFailure", nodes, NODE_FAILURE_AUTO),
        .failed_ttl = spec_duration(&m, "failedNodeTTL", 0),
    };
    if (!f->pause_after.given) {
        f->pause_after = (struct spec_share){ .given = true, .n = 1 };
    }
}

static void notify_read(const struct spec_node *spec, struct node_maintenance *ret)
{
    static const char *const formats[] = { "JSON", "Slack" };
    static const char *const events[] = { "VisitStarted", "VisitSucceeded", "VisitFailed", "Paused",
                                          "Complete" };
    struct spec_node list = spec_member(spec, "notify");
    struct maintenance_notify *items = ARENA_ARRAY(spec->reader->out, struct maintenance_notify,
                                                   MIN(spec_count(&list), MAINTENANCE_NOTIFY_MAX));
    ret->notify = items;
    SPEC_EACH(&list, MAINTENANCE_NOTIFY_MAX, item)
    {
        struct maintenance_notify *n = &items[ret->notify_n++];
        struct spec_node url = spec_member(&item, "urlFrom");
        struct spec_node named = spec_member(&item, "events");
        n->secret = spec_text(&url, "secret");
        n->key = spec_text(&url, "key");
        n->slack = SPEC_ENUM(&item, "format", formats, 0) == 1;
        n->events =
            named.value == NULL ? NOTIFY_VISIT_FAILED | NOTIFY_PAUSED | NOTIFY_COMPLETE : 0u;
        SPEC_EACH(&named, ARRAY_LEN(events), event)
        {
            uint32_t k = 0;
            while (k < ARRAY_LEN(events) && !str_eq(jval_str(event.value), str_from(events[k]))) {
                k++;
            }
            if (k == ARRAY_LEN(events)) {
                spec_wrong(&event, "Invalid",
                           "one of VisitStarted, VisitSucceeded, VisitFailed, Paused, Complete");
            } else {
                n->events |= 1u << k;
            }
        }
        if (n->secret.n == 0 || n->key.n == 0) {
            spec_wrong(&item, "Invalid", "urlFrom with secret and key");
        }
    }
}

/* Operations that stand in one another's `after`, or name none: bit i of reach[k] says that k comes
 * after i. */
static void after_check(const struct spec_node *list, const struct node_maintenance *m)
{
    uint32_t reach[OPERATIONS_MAX] = { 0 };
    for (uint32_t k = 0; k < m->operation_n; k++) {
        const struct spec_texts *after = &m->operations[k].after;
        for (uint32_t a = 0; a < after->n; a++) {
            uint32_t i = 0;
            while (i < m->operation_n && !str_eq(m->operations[i].name, after->items[a])) {
                i++;
            }
            if (i == m->operation_n) {
                spec_wrong(list, "Invalid",
                           "after to name an operation of this object, not '" STR_FMT "'",
                           STR_ARG(after->items[a]));
                return;
            }
            reach[k] |= 1u << i;
        }
    }
    for (uint32_t via = 0; via < m->operation_n; via++) {
        for (uint32_t k = 0; k < m->operation_n; k++) {
            reach[k] |= (reach[k] >> via & 1u) != 0 ? reach[via] : 0;
        }
    }
    for (uint32_t k = 0; k < m->operation_n; k++) {
        if ((reach[k] >> k & 1u) != 0) {
            spec_wrong(list, "Cycle", "no operation after itself, as '" STR_FMT "' is",
                       STR_ARG(m->operations[k].name));
            return;
        }
    }
}

static void operations_read(const struct spec_node *spec, const struct window_sources *sources,
                            struct node_maintenance *ret)
{
    struct spec_node list = spec_member(spec, "operations");
    struct node_operation *items = ARENA_ARRAY(spec->reader->out, struct node_operation,
                                               MIN(spec_count(&list), OPERATIONS_MAX));
    ret->operations = items;
    if (spec_count(&list) == 0) {
        spec_wrong(&list, "Invalid", "at least one operation");
    }
    SPEC_EACH(&list, OPERATIONS_MAX, item)
    {
        struct node_operation *o = &items[ret->operation_n++];
        node_operation_read(&item, sources, o);
        for (uint32_t i = 0; i + 1 < ret->operation_n; i++) {
            if (str_eq(items[i].name, o->name)) {
                spec_wrong(&item, "Invalid", "a name that no other operation has");
            }
        }
    }
    after_check(&list, ret);
}

static void coordination_read(const struct spec_node *spec, struct node_maintenance *ret)
{
    static const char *const budgets[] = { "Required", "None" };
    struct spec_node m = spec_member(spec, "coordination");
    struct spec_node disruption = spec_member(spec, "disruption");
    ret->unbudgeted = SPEC_ENUM(&m, "budget", budgets, 0) == 1;
    ret->profile = spec_text(&m, "profile");
    if (ret->disruption.drain_by == (ret->profile.n > 0 ? DRAIN_BY_LIMIT : DRAIN_BY_NOBODY)) {
        spec_wrong(&disruption, "Invalid",
                   ret->profile.n > 0 ? "drainBy Auto, Visit or None with coordination.profile"
                                      : "drainBy None only with coordination.profile");
    }
}

static void metadata_read(const struct jval *object, struct spec_reader *reader,
                          struct node_maintenance *ret)
{
    struct spec_node meta = spec_root(reader, object, "metadata");
    struct spec_node name = spec_member(&meta, "name");
    const struct jval *notes = jval_get(meta.value, STR("annotations"));
    const struct jval *labels = jval_get(meta.value, STR("labels"));
    struct arena *out = reader->out;
    ret->meta = spec_read_meta(object, out);
    ret->held = str_eq(jval_str(jval_get(labels, KEY_HOLD)), KEYS_TRUE);
    ret->asks = (struct maintenance_asks){
        .approve = arena_str(out, jval_str(jval_get(notes, KEY_OPERATION_APPROVE))),
        .resume = arena_str(out, jval_str(jval_get(notes, KEY_OPERATION_RESUME))),
        .rerun = arena_str(out, jval_str(jval_get(notes, KEY_OPERATION_RERUN))),
        .run = arena_str(out, jval_str(jval_get(notes, KEY_OPERATION_RUN))),
        .abandon = str_eq(jval_str(jval_get(notes, KEY_OPERATION_ABANDON)), KEYS_TRUE),
    };
    JVAL_EACH (jval_get(meta.value, STR("finalizers")), item) {
        if (str_eq(jval_str(item), NODE_MAINTENANCE_FINALIZER)) {
            ret->finalizer = true;
            ret->finalizer_index = ret->finalizer_n;
        }
        ret->finalizer_n++;
    }
    if (!spec_is_dns_label(ret->meta.name, MAINTENANCE_NAME_MAX)) {
        spec_wrong(&name, "Invalid", "small letters, digits and dashes, at most %u",
                   MAINTENANCE_NAME_MAX);
    }
}

void node_maintenance_read(const struct jval *object, const struct window_sources *sources,
                           struct arena *out, struct node_maintenance *ret)
{
    static const char *const modes[] = { "Enforce", "DryRun" };
    static const char *const deletions[] = { "Finish", "Abort" };
    static const char *const keys[] = { "description",  "suspend",        "mode",
                                        "priority",     "deletionPolicy", "window",
                                        "nodeSeries",   "dependsOn",      "rollout",
                                        "coordination", "disruption",     "failurePolicy",
                                        "notify",       "history",        "operations" };
    struct spec_reader reader = { .out = out };
    struct spec_node spec = spec_root(&reader, object, "spec");
    struct spec_node history = spec_member(&spec, "history");
    *ret = (struct node_maintenance){
        .suspend = spec_bool(&spec, "suspend", false),
        .dry_run = SPEC_ENUM(&spec, "mode", modes, 0) == 1,
        .abort_on_delete = SPEC_ENUM(&spec, "deletionPolicy", deletions, 0) == 1,
        .priority = (int32_t)spec_number(&spec, "priority", 0, -1000, 1000),
        .keep_succeeded = (uint32_t)spec_number(&history, "succeeded", 3, 0, 100),
        .keep_failed = (uint32_t)spec_number(&history, "failed", 10, 0, 100),
    };
    spec_only(&spec, keys, ARRAY_LEN(keys));
    metadata_read(object, &reader, ret);
    window_read(&spec, sources, &ret->window);
    series_read(&spec, ret->meta.name, &ret->series);
    depends_read(&spec, ret);
    maintenance_rollout_read(&spec, &ret->rollout);
    maintenance_disruption_read(&spec, &ret->disruption);
    coordination_read(&spec, ret);
    failure_read(&spec, &ret->failure);
    notify_read(&spec, ret);
    operations_read(&spec, sources, ret);
    ret->problem = reader.problem;
    maintenance_record_read(object, out, &ret->record);
}

bool node_maintenance_drains(const struct node_maintenance *m)
{
    const struct maintenance_drain *d = &m->disruption.drain;
    bool may_reboot = false;
    for (uint32_t i = 0; i < m->operation_n; i++) {
        may_reboot = may_reboot || m->operations[i].reboot.policy != REBOOT_NEVER;
    }
    return d->enabled && (d->given || may_reboot);
}

static int node_maintenance_project(void *ctx, const struct jval *object, struct arena *out,
                                    void **ret, struct err *err UNUSED)
{
    struct node_maintenance *m = ARENA_NEW(out, struct node_maintenance);
    node_maintenance_read(object, ctx, out, m);
    *ret = m;
    return 0;
}

/* Every version counts: the next write is based on it, and the ledger is in it. */
static bool node_maintenance_same(const void *a UNUSED, const void *b UNUSED)
{
    return false;
}

const struct store_kind node_maintenance_kind = {
    .name = "node maintenance",
    .project = node_maintenance_project,
    .same = node_maintenance_same,
};
