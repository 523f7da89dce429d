/* How a NodeMaintenance spreads over machines, and what a visit does to a node. */
#include "kinds/node_maintenance_internal.h"

#define SPREAD_MAX 1000
#define MATCHERS_MAX 16u

/* Sizes count everybody so far, so a later one of the same unit is not smaller. */
static void wave_check(const struct spec_node *at, const struct maintenance_rollout *r,
                       const struct maintenance_wave *w)
{
    if (!spec_is_dns_label(w->name, OPERATION_NAME_MAX)) {
        spec_wrong(at, "Invalid", "a name of small letters, digits and dashes, at most %u",
                   OPERATION_NAME_MAX);
    }
    if (w->has_selector == w->size.given) {
        spec_wrong(at, "Invalid", "either size or selector");
    }
    for (uint32_t i = 0; i + 1 < r->wave_n; i++) {
        const struct maintenance_wave *before = &r->waves[i];
        if (str_eq(before->name, w->name)) {
            spec_wrong(at, "Invalid", "a name that no other wave has");
        }
        if (before->size.given && w->size.given && before->size.percent == w->size.percent &&
            before->size.n > w->size.n) {
            spec_wrong(at, "Invalid", "a size that is not smaller than that of a wave before");
        }
    }
}

/* Machines in no wave would never have their turn. */
static void waves_complete(const struct spec_node *list, struct maintenance_rollout *r)
{
    const struct maintenance_wave *last = r->wave_n > 0 ? &r->waves[r->wave_n - 1] : NULL;
    if (last != NULL && last->size.percent && last->size.n == 100) {
        return;
    }
    for (uint32_t i = 0; i < r->wave_n; i++) {
        if (str_eq(r->waves[i].name, STR(MAINTENANCE_REST))) {
            spec_wrong(list, "Invalid", "the wave 'rest' to be the last, with size 100%%");
        }
    }
    r->waves[r->wave_n++] = (struct maintenance_wave){
        .name = STR(MAINTENANCE_REST),
        .size = { .given = true, .percent = true, .n = 100 },
        .implied = true,
    };
}

static void waves_read(const struct spec_node *at, struct maintenance_rollout *r)
{
    static const char *const approvals[] = { "Auto", "Manual" };
    struct spec_node list = spec_member(at, "waves");
    r->waves = ARENA_ARRAY(at->reader->out, struct maintenance_wave, MAINTENANCE_WAVES_MAX + 1);
    SPEC_EACH(&list, MAINTENANCE_WAVES_MAX, item)
    {
        struct maintenance_wave *w = &r->waves[r->wave_n++];
        *w = (struct maintenance_wave){
            .name = spec_text(&item, "name"),
            .size = spec_share(&item, "size", 1),
            .soak = spec_duration(&item, "soak", 0),
            .manual = SPEC_ENUM(&item, "approval", approvals, 0) == 1,
            .gates = maintenance_gates_read(&item, "gates", /* of_wave= */ true),
        };
        w->has_selector = spec_selector(&item, "selector", &w->selector);
        wave_check(&item, r, w);
    }
    waves_complete(&list, r);
}

void maintenance_rollout_read(const struct spec_node *spec, struct maintenance_rollout *ret)
{
    static const char *const orders[] = { "Random", "Name", "Age", "Zone", "Label" };
    static const char *const planes[] = { "First", "Last", "Ignore" };
    static const char *const keys[] = {
        "maxConcurrent", "spread",        "order", "waves",
        "minReady",      "paceAfterNode", "gates", "exclusiveGroup"
    };
    struct spec_node m = spec_member(spec, "rollout");
    spec_only(&m, keys, ARRAY_LEN(keys));
    struct spec_node spread = spec_member(&m, "spread");
    struct spec_node order = spec_member(&m, "order");
    struct spec_node gates = spec_member(&m, "gates");
    *ret = (struct maintenance_rollout){
        .max_concurrent = spec_share(&m, "maxConcurrent", 1),
        .spread_key = spec_text(&spread, "key"),
        .spread_max = (uint32_t)spec_number(&spread, "max", 1, 1, SPREAD_MAX),
        .order_label = spec_text(&order, "labelKey"),
        .control_plane = (enum control_plane_order)SPEC_ENUM(&order, "controlPlane", planes,
                                                             CONTROL_PLANE_FIRST),
        .min_ready = spec_duration(&m, "minReady", SECONDS(60)),
        .pace = spec_duration(&m, "paceAfterNode", 0),
        .before = maintenance_gates_read(&gates, "beforeNode", /* of_wave= */ false),
        .after = maintenance_gates_read(&gates, "afterNode", /* of_wave= */ false),
        .exclusive_group = spec_text(&m, "exclusiveGroup"),
    };
    if (!ret->max_concurrent.given) {
        ret->max_concurrent = (struct spec_share){ .given = true, .n = 1 };
    }
    if (spec_has(&order, "by")) {
        ret->order = (enum maintenance_order)(SPEC_ENUM(&order, "by", orders, 0) + 1);
    }
    if ((ret->order == ORDER_LABEL) != (ret->order_label.n > 0)) {
        spec_wrong(&order, "Invalid", "labelKey with by Label, and only with it");
    }
    if (spread.value != NULL && ret->spread_key.n == 0) {
        spec_wrong(&spread, "Invalid", "the key of a label");
    }
    waves_read(&m, ret);
}

static void drain_read(const struct spec_node *at, struct maintenance_drain *d)
{
    static const char *const unmanaged[] = { "Fail", "Delete" };
    static const char *const timeouts[] = { "Fail", "Proceed", "Force" };
    static const char *const unsupported[] = {
        "policy",  "namespaces", "skipPods", "disableEviction", "skipWaitForDeleteTimeout",
        "escalate"
    };
    struct spec_node m = spec_member(at, "drain");
    struct selector pods = { 0 };
    *d = (struct maintenance_drain){
        .given = m.value != NULL,
        .enabled = spec_bool(&m, "enabled", true),
        .grace = spec_duration(&m, "gracePeriod", -1),
        .timeout = spec_duration(&m, "timeout", MAINTENANCE_DRAIN_TIMEOUT),
        .ignore_daemon_sets = spec_bool(&m, "ignoreDaemonSets", true),
        .delete_empty_dir = spec_bool(&m, "deleteEmptyDirData", true),
        .delete_unmanaged = SPEC_ENUM(&m, "unmanagedPods", unmanaged, 0) == 1,
        .wait_for_detach = spec_bool(&m, "waitForVolumeDetach", true),
        .on_timeout = (enum drain_on_timeout)SPEC_ENUM(&m, "onTimeout", timeouts, DRAIN_FAIL),
    };
    if (spec_selector(&m, "podSelector", &pods)) {
        CLEANUP(buf_done)
        struct buf text = { 0 };
        selector_print(&pods, &text);
        d->pod_selector = arena_str(at->reader->out, buf_str(&text));
    }
    for (size_t i = 0; i < ARRAY_LEN(unsupported); i++) {
        struct spec_node field = spec_member(&m, unsupported[i]);
        if (field.value != NULL) {
            spec_wrong(&field, "Unsupported", "a drain without this field");
        }
    }
}

const char *node_maintenance_taken_label(struct str key)
{
    static const char *const taken[] = { KEYS_OWN, "repairman.k8s.io/", "cloud.sap/",
                                         "node-role.kubernetes.io/",
                                         "node-restriction.kubernetes.io/" };
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        if (str_starts(key, str_from(taken[i]))) {
            return taken[i];
        }
    }
    return NULL;
}

static struct str labels_read(const struct spec_node *at, const char *key)
{
    struct spec_node m = spec_member(at, key);
    JVAL_EACH (jval_kind(m.value) == JOBJ ? m.value : NULL, label) {
        const char *taken = node_maintenance_taken_label(jval_key(label));
        if (taken != NULL) {
            spec_wrong(&m, "Invalid", "no key of %s", taken);
        }
    }
    struct str json = spec_json(at, key);
    return json.n > 0 ? json : STR("{}");
}

static void silences_read(const struct spec_node *at, struct maintenance_disruption *d)
{
    struct spec_node list = spec_member(at, "silences");
    struct maintenance_silence *items =
        ARENA_ARRAY(at->reader->out, struct maintenance_silence,
                    MIN(spec_count(&list), MAINTENANCE_SILENCES_MAX));
    d->silences = items;
    SPEC_EACH(&list, MAINTENANCE_SILENCES_MAX, item)
    {
        struct maintenance_silence *s = &items[d->silence_n++];
        struct spec_node secret = spec_member(&item, "secretRef");
        *s = (struct maintenance_silence){
            .url = spec_text(&item, "url"),
            .matchers = spec_texts(&item, "matchers", MATCHERS_MAX),
            .secret = spec_text(&secret, "name"),
            .secret_key = spec_text(&secret, "key"),
            .max_duration = spec_duration(&item, "maxDuration", HOURS(2)),
        };
        if (s->url.n == 0 || s->matchers.n == 0) {
            spec_wrong(&item, "Invalid", "url and matchers");
        }
    }
}

void maintenance_disruption_read(const struct spec_node *spec, struct maintenance_disruption *ret)
{
    static const char *const cordons[] = { "Auto", "Always", "Never" };
    static const char *const drainers[] = { "Auto", "Visit", "Limit", "None" };
    struct spec_node m = spec_member(spec, "disruption");
    struct spec_node balancers = spec_member(&m, "leaveLoadBalancers");
    struct spec_node labels = spec_member(&m, "nodeLabels");
    *ret = (struct maintenance_disruption){
        .cordon = (enum maintenance_cordon)SPEC_ENUM(&m, "cordon", cordons, CORDON_AUTO),
        .drain_by = (enum drain_by)SPEC_ENUM(&m, "drainBy", drainers, DRAIN_BY_AUTO),
        .prefer_no_schedule = spec_bool(&m, "preferNoSchedule", false),
        .leave_load_balancers = spec_bool(&balancers, "enabled", false),
        .load_balancer_wait = spec_duration(&balancers, "wait", SECONDS(30)),
        .labels_before = labels_read(&labels, "before"),
        .labels_after = labels_read(&labels, "after"),
    };
    drain_read(&m, &ret->drain);
    silences_read(&m, ret);
}
