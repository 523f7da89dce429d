#include "kinds/maintenance_limit.h"

#include "kinds/spec_read.h"

#define POLICY_BYTES_MAX 256u /* 63 characters of four bytes */
#define DRAIN_TIMEOUT_S 3600u
#define DETACH_TIMEOUT_S 1800u
#define DRAIN_RETRY_S 5u

static const struct limit_policy policy_table[] = {
    { STR_INIT("None"), 0, true },
    { STR_INIT("None"), 0, false },
    { STR_INIT("NotReady"), TRAIT_NOT_READY | TRAIT_UNKNOWN, true },
    { STR_INIT("Unschedulable"), TRAIT_UNSCHEDULABLE, true },
    /* Names of an earlier revision of the same API version; objects with them are in the field. */
    { STR_INIT("RespectNotReadyNodes"), TRAIT_NOT_READY | TRAIT_UNKNOWN, true },
    { STR_INIT("RespectUnschedulableNodes"), TRAIT_UNSCHEDULABLE, true },
    { STR_INIT("Deleting"), TRAIT_DELETING, true },
    { STR_INIT("MaintenanceRunning"), TRAIT_IN_MAINTENANCE, true },
    { STR_INIT("Unavailable"), TRAIT_UNAVAILABLE, false },
    { STR_INIT("Progressing"), TRAIT_PROGRESSING, false },
};

static const struct limit_policy *policy_find(struct str name, bool nodes)
{
    for (size_t i = 0; i < ARRAY_LEN(policy_table); i++) {
        if (policy_table[i].nodes == nodes && str_eq(policy_table[i].name, name)) {
            return &policy_table[i];
        }
    }
    return NULL;
}

static void limit_reject(struct limit *l, const char *reason, struct str problem)
{
    if (l->reason.n == 0) {
        l->reason = str_from(reason);
        l->problem = problem;
    }
}

/* A number between bounds; what is none, or outside, makes the limit unusable. */
struct limit_field {
    const char *key;
    uint32_t max;
    uint32_t otherwise;
};

static uint32_t limit_number(struct limit *l, const struct jval *parent, struct limit_field field,
                             struct arena *out)
{
    const struct jval *v = jval_get(parent, str_from(field.key));
    int64_t n = 0;
    if (v == NULL || jval_kind(v) == JNULL) {
        return field.otherwise;
    }
    if (!jval_i64(v, &n) || n < 0 || n > field.max) {
        limit_reject(l, "InvalidSpec",
                     arena_printf(out, "%s: want a whole number up to %u", field.key, field.max));
        return field.otherwise;
    }
    return (uint32_t)n;
}

static void limit_read_policies(struct limit *l, const struct jval *list, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf unknown = { 0 };
    uint32_t strangers = 0;
    JVAL_EACH (list, item) {
        struct str name = jval_str(item);
        const struct limit_policy *policy = policy_find(name, l->type == TARGET_NODE);
        if (policy == NULL && ++strangers <= LIMIT_POLICIES_MAX) {
            buf_add(&unknown, unknown.n == 0 ? STR("") : STR(", "));
            /* Whole or not at all: half a character would be written as another one, again and
             * again. */
            buf_add(&unknown, name.n <= POLICY_BYTES_MAX ? name : STR("(a long one)"));
        } else if (policy != NULL && l->policy_n < LIMIT_POLICIES_MAX) {
            l->policies[l->policy_n++] = policy;
        }
    }
    l->unknown = arena_str(out, buf_str(&unknown));
}

static bool limit_read_selector(struct limit *l, const struct jval *object, struct arena *out,
                                struct selector *ret)
{
    struct str problem = STR_NONE;
    bool found = spec_read_selector(object, out, ret, &problem);
    if (problem.n > 0) {
        limit_reject(l, "InvalidSelector", problem);
    }
    return found;
}

static void limit_read_population(struct limit *l, const struct jval *spec, struct arena *out)
{
    const struct jval *selector_ref = jval_get(spec, STR("selectorRef"));
    l->has_selector = limit_read_selector(l, jval_get(spec, STR("selector")), out, &l->selector);
    l->namespaced =
        limit_read_selector(l, jval_get(spec, STR("namespaceSelector")), out, &l->namespaces);
    if (jval_kind(selector_ref) == JOBJ) {
        struct str namespace = jval_str(jval_get(selector_ref, STR("namespace")));
        struct str name = jval_str(jval_get(selector_ref, STR("name")));
        l->has_selector_ref = true;
        l->selector_ref = arena_printf(out, STR_FMT "/" STR_FMT, STR_ARG(namespace), STR_ARG(name));
    }
    struct str scope = jval_str(jval_get(spec, STR("scope")));
    l->exclusive = str_eq(scope, STR("Exclusive"));
    if (l->exclusive && !l->has_selector && !l->has_selector_ref) {
        limit_reject(l, "InvalidSpec", STR("an Exclusive limit needs a selector"));
    }
    int64_t priority = 0;
    (void)jval_i64(jval_get(spec, STR("priority")), &priority); /* absent: 0 */
    l->priority = (int32_t)MIN(MAX(priority, (int64_t)-1000), (int64_t)1000);
}

static void limit_read_timeouts(struct limit *l, const struct jval *t, struct arena *out)
{
    struct limit_options *o = &l->options;
    struct str approved = jval_str(jval_get(t, STR("onApprovedTimeout")));
    struct str running = jval_str(jval_get(t, STR("onInProgressTimeout")));
    o->approved_s = limit_number(l, t, (struct limit_field){ "approvedSeconds", 2592000, 0 }, out);
    o->on_approved = str_eq(approved, STR("Close")) ? ON_APPROVED_CLOSE : ON_APPROVED_REQUEUE;
    o->in_progress_s =
        limit_number(l, t, (struct limit_field){ "inProgressSeconds", 2592000, 0 }, out);
    o->on_in_progress = str_eq(running, STR("Requeue")) ? ON_PROGRESS_REQUEUE
                        : str_eq(running, STR("Close")) ? ON_PROGRESS_CLOSE
                        : str_eq(running, STR("Hold"))  ? ON_PROGRESS_HOLD
                                                        : ON_PROGRESS_RELEASE;
    o->rejection_backoff_s = limit_number(
        l, t, (struct limit_field){ "rejectionBackoffSeconds", 86400, LIMIT_REJECTION_BACKOFF_S },
        out);
    o->max_rejections = limit_number(l, t, (struct limit_field){ "maxRejections", 1000, 0 }, out);
    l->gap = SECONDS(
        limit_number(l, t, (struct limit_field){ "betweenOperationsSeconds", 604800, 0 }, out));
}

static enum on_timeout limit_on_timeout(const struct jval *v, bool force)
{
    struct str text = jval_str(jval_get(v, STR("onTimeout")));
    if (str_eq(text, STR("Proceed"))) {
        return ON_TIMEOUT_PROCEED;
    }
    return force && str_eq(text, STR("Force")) ? ON_TIMEOUT_FORCE : ON_TIMEOUT_REJECT;
}

static void limit_read_drain(struct limit *l, const struct jval *v, struct arena *out)
{
    struct limit_drain *d = &l->options.drain;
    const struct jval *grace = jval_get(v, STR("podGracePeriodSeconds"));
    struct selector pods = { 0 };
    l->has_drain = true;
    *d = (struct limit_drain){
        .enabled = jval_bool(jval_get(v, STR("enabled")), true),
        .cordon = jval_bool(jval_get(v, STR("cordon")), true),
        .uncordon_after = jval_bool(jval_get(v, STR("uncordonAfter")), true),
        .ignore_daemon_sets = jval_bool(jval_get(v, STR("ignoreDaemonSets")), true),
        .delete_empty_dir = jval_bool(jval_get(v, STR("deleteEmptyDirData")), true),
        .evict_unmanaged = jval_bool(jval_get(v, STR("evictUnmanaged")), false),
        .grace_s = -1,
        .timeout_s = limit_number(
            l, v, (struct limit_field){ "timeoutSeconds", 2592000, DRAIN_TIMEOUT_S }, out),
        .on_timeout = limit_on_timeout(v, /* force= */ true),
        .post_grace_s =
            limit_number(l, v, (struct limit_field){ "postGraceSeconds", 86400, 0 }, out),
        .retry_s =
            limit_number(l, v, (struct limit_field){ "retrySeconds", 3600, DRAIN_RETRY_S }, out),
    };
    if (grace != NULL) {
        d->grace_s =
            limit_number(l, v, (struct limit_field){ "podGracePeriodSeconds", 86400, 0 }, out);
    }
    if (limit_read_selector(l, jval_get(v, STR("podSelector")), out, &pods)) {
        CLEANUP(buf_done)
        struct buf text = { 0 };
        selector_print(&pods, &text);
        d->pod_selector = arena_str(out, buf_str(&text));
    }
}

static void limit_read_detach(struct limit *l, const struct jval *v, struct arena *out)
{
    struct limit_detach *d = &l->options.detach;
    const struct jval *drivers = jval_get(v, STR("ignoreDrivers"));
    l->has_detach = true;
    *d = (struct limit_detach){
        .enabled = jval_bool(jval_get(v, STR("enabled")), true),
        .timeout_s = limit_number(
            l, v, (struct limit_field){ "timeoutSeconds", 2592000, DETACH_TIMEOUT_S }, out),
        .on_timeout = limit_on_timeout(v, /* force= */ false),
        .post_grace_s =
            limit_number(l, v, (struct limit_field){ "postGraceSeconds", 86400, 0 }, out),
    };
    if (jval_kind(drivers) == JARR && drivers->n > 0) {
        struct str *names = ARENA_ARRAY(out, struct str, drivers->n);
        JVAL_EACH (drivers, name) {
            names[d->ignore_n++] = arena_str(out, jval_str(name));
        }
        d->ignore_drivers = names;
    }
}

static void limit_read_safety(struct limit *l, const struct jval *list)
{
    static const struct {
        struct str name;
        uint32_t bit;
    } checks[] = {
        { STR_INIT("PodDisruptionBudgets"), SAFETY_BUDGETS },
        { STR_INIT("ControlPlaneQuorum"), SAFETY_QUORUM },
        { STR_INIT("WorkloadLimits"), SAFETY_WORKLOADS },
    };
    JVAL_EACH (list, item) {
        for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
            if (str_eq(jval_str(item), checks[i].name)) {
                l->options.safety |= checks[i].bit;
            }
        }
    }
}

static void limit_read_spec(struct limit *l, const struct jval *spec, struct arena *out)
{
    struct str type = jval_str(jval_get(spec, STR("type")));
    l->type_known = target_type_find(type.n > 0 ? type : l->name, &l->type);
    if (!l->type_known) {
        limit_reject(l, "UnsupportedType", STR("unsupported maintenance type"));
        return;
    }
    l->percent = limit_number(l, spec, (struct limit_field){ "limit", 100, 0 }, out);
    l->minimum = limit_number(l, spec, (struct limit_field){ "minimum", 100000, 1 }, out);
    l->max_count =
        limit_number(l, spec, (struct limit_field){ "maxCount", 100000, UINT32_MAX }, out);
    l->paused = jval_bool(jval_get(spec, STR("paused")), false);
    l->repair_unavailable = jval_bool(jval_get(spec, STR("repairUnavailable")), true);
    limit_read_policies(l, jval_get(spec, STR("policies")), out);
    limit_read_population(l, spec, out);
    limit_read_timeouts(l, jval_get(spec, STR("timeouts")), out);
    const struct jval *drain = jval_get(spec, STR("drain"));
    const struct jval *detach = jval_get(spec, STR("infraDrain"));
    if (jval_kind(drain) == JOBJ) {
        limit_read_drain(l, drain, out);
    }
    if (jval_kind(detach) == JOBJ) {
        limit_read_detach(l, detach, out);
    }
    limit_read_safety(l, jval_get(spec, STR("safetyChecks")));
}

void limit_parse(const struct jval *object, struct arena *out, struct limit *ret)
{
    const struct jval *status = jval_get(object, STR("status"));
    *ret = (struct limit){
        .name = arena_str(out, jval_str(jval_at(object, "metadata.name"))),
        .uid = arena_str(out, jval_str(jval_at(object, "metadata.uid"))),
        .max_count = UINT32_MAX,
        .minimum = 1,
        .repair_unavailable = true,
        .ledger_init_time = jval_time(jval_get(status, STR("ledgerInitTime")), USEC_NEVER),
        .last_grant = jval_time(jval_get(status, STR("lastGrantTime")), USEC_NEVER),
        .last_release = jval_time(jval_get(status, STR("lastReleaseTime")), USEC_NEVER),
        .status = spec_read_status(object, out),
    };
    (void)jval_i64(jval_at(object, "metadata.generation"), &ret->generation); /* absent: 0 */
    limit_read_spec(ret, jval_get(object, STR("spec")), out);
    ret->options.ledger_init_time = ret->ledger_init_time;
    reservations_parse(jval_get(status, STR("reservations")), out, &ret->reservations);
}

static int limit_project(void *ctx UNUSED, const struct jval *object, struct arena *out, void **ret,
                         struct err *err UNUSED)
{
    struct limit *l = ARENA_NEW(out, struct limit);
    limit_parse(object, out, l);
    *ret = l;
    return 0;
}

/* Every version counts: the next write is based on it, and the ledger is in it. */
static bool limit_same(const void *a UNUSED, const void *b UNUSED)
{
    return false;
}

const struct store_kind limit_kind = {
    .name = "limit",
    .project = limit_project,
    .same = limit_same,
};

struct str limit_selects_text(const struct limit *l, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    if (l->has_selector_ref) {
        buf_printf(&text, "as MaintenanceSelector " STR_FMT " says", STR_ARG(l->selector_ref));
    } else if (l->has_selector) {
        selector_print(&l->selector, &text);
    }
    if (l->namespaced) {
        buf_printf(&text, "%sin namespaces with ", text.n > 0 ? ", " : "");
        selector_print(&l->namespaces, &text);
    }
    return arena_str(out, buf_str(&text));
}
