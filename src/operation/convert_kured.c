/* The DaemonSet of kured: its flags, and on which nodes it runs. */
#include "operation/convert_internal.h"

#include "base/duration.h"
#include "format/regex.h"
#include "kinds/node_maintenance.h"

#define EVERY_MIN_NS (INT64_C(60) * 1000000000)
#define EVERY_MAX_NS (INT64_C(168) * 3600 * 1000000000)
#define GATE_PATIENCE STR("24h") /* the original looks again at each period, and never gives up */
#define NOTIFY_SECRET STR("kured-notify")
#define SELECTORS_MAX 14u /* gates have 16 places */

enum flag_type { FLAG_TEXT, FLAG_BOOL, FLAG_INT, FLAG_DURATION };

enum flag_id {
    FLAG_NODE_ID,
    FLAG_FORCE_REBOOT,
    FLAG_METRICS_HOST,
    FLAG_METRICS_PORT,
    FLAG_DRAIN_GRACE_PERIOD,
    FLAG_DRAIN_POD_SELECTOR,
    FLAG_SKIP_WAIT,
    FLAG_DRAIN_DELAY,
    FLAG_DRAIN_TIMEOUT,
    FLAG_REBOOT_DELAY,
    FLAG_REBOOT_METHOD,
    FLAG_PERIOD,
    FLAG_DS_NAMESPACE,
    FLAG_DS_NAME,
    FLAG_LOCK_ANNOTATION,
    FLAG_LOCK_TTL,
    FLAG_LOCK_RELEASE_DELAY,
    FLAG_PROMETHEUS_URL,
    FLAG_ALERT_FILTER,
    FLAG_ALERT_MATCH_ONLY,
    FLAG_ALERT_FIRING_ONLY,
    FLAG_SENTINEL,
    FLAG_TAINT,
    FLAG_SENTINEL_COMMAND,
    FLAG_REBOOT_COMMAND,
    FLAG_CONCURRENCY,
    FLAG_REBOOT_SIGNAL,
    FLAG_SLACK_HOOK_URL,
    FLAG_SLACK_USERNAME,
    FLAG_SLACK_CHANNEL,
    FLAG_NOTIFY_URL,
    FLAG_MESSAGE_UNCORDON,
    FLAG_MESSAGE_DRAIN,
    FLAG_MESSAGE_REBOOT,
    FLAG_BLOCKING_POD_SELECTOR,
    FLAG_REBOOT_DAYS,
    FLAG_START_TIME,
    FLAG_END_TIME,
    FLAG_TIME_ZONE,
    FLAG_ANNOTATE_NODES,
    FLAG_LOG_FORMAT,
    FLAG_PRE_LABELS,
    FLAG_POST_LABELS,
    FLAG_COUNT,
};

#define NO_LOCK                                                                                    \
    "there is no lock on a DaemonSet: MaintenanceRequests and MaintenanceLimits take its place"
#define NO_TEXTS "messages have a form of their own"

/* `lost` says why a flag that was given has no counterpart; NULL: it has one. */
static const struct flag {
    const char *name;
    enum flag_type type;
    bool many; /* values of several flags count together */
    const char *lost;
} flags[FLAG_COUNT] = {
    [FLAG_NODE_ID] = { .name = "node-id",
                       .type = FLAG_TEXT,
                       .lost = "the controller knows its nodes" },
    [FLAG_FORCE_REBOOT] = { .name = "force-reboot", .type = FLAG_BOOL },
    [FLAG_METRICS_HOST] = { .name = "metrics-host",
                            .type = FLAG_TEXT,
                            .lost = "the controller has metrics of its own (--metrics-addr)" },
    [FLAG_METRICS_PORT] = { .name = "metrics-port",
                            .type = FLAG_INT,
                            .lost = "the controller has metrics of its own (--metrics-addr)" },
    [FLAG_DRAIN_GRACE_PERIOD] = { .name = "drain-grace-period", .type = FLAG_INT },
    [FLAG_DRAIN_POD_SELECTOR] = { .name = "drain-pod-selector", .type = FLAG_TEXT },
    [FLAG_SKIP_WAIT] = { .name = "skip-wait-for-delete-timeout",
                         .type = FLAG_INT,
                         .lost = "every pod is waited for, until the drain's timeout" },
    [FLAG_DRAIN_DELAY] = { .name = "drain-delay",
                           .type = FLAG_DURATION,
                           .lost = "nothing waits between cordon and drain; for load balancers "
                                   "there is disruption.leaveLoadBalancers.wait" },
    [FLAG_DRAIN_TIMEOUT] = { .name = "drain-timeout", .type = FLAG_DURATION },
    [FLAG_REBOOT_DELAY] = { .name = "reboot-delay",
                            .type = FLAG_DURATION,
                            .lost = "the reboot follows the drain at once" },
    [FLAG_REBOOT_METHOD] = { .name = "reboot-method", .type = FLAG_TEXT },
    [FLAG_PERIOD] = { .name = "period", .type = FLAG_DURATION },
    [FLAG_DS_NAMESPACE] = { .name = "ds-namespace", .type = FLAG_TEXT, .lost = NO_LOCK },
    [FLAG_DS_NAME] = { .name = "ds-name", .type = FLAG_TEXT, .lost = NO_LOCK },
    [FLAG_LOCK_ANNOTATION] = { .name = "lock-annotation", .type = FLAG_TEXT, .lost = NO_LOCK },
    [FLAG_LOCK_TTL] = { .name = "lock-ttl",
                        .type = FLAG_DURATION,
                        .lost = "a node that does not come back is told after reboot.timeout and "
                                "stays cordoned" },
    [FLAG_LOCK_RELEASE_DELAY] = { .name = "lock-release-delay", .type = FLAG_DURATION },
    [FLAG_PROMETHEUS_URL] = { .name = "prometheus-url", .type = FLAG_TEXT },
    [FLAG_ALERT_FILTER] = { .name = "alert-filter-regexp", .type = FLAG_TEXT },
    [FLAG_ALERT_MATCH_ONLY] = { .name = "alert-filter-match-only", .type = FLAG_BOOL },
    [FLAG_ALERT_FIRING_ONLY] = { .name = "alert-firing-only", .type = FLAG_BOOL },
    [FLAG_SENTINEL] = { .name = "reboot-sentinel", .type = FLAG_TEXT },
    [FLAG_TAINT] = { .name = "prefer-no-schedule-taint", .type = FLAG_TEXT },
    [FLAG_SENTINEL_COMMAND] = { .name = "reboot-sentinel-command", .type = FLAG_TEXT },
    [FLAG_REBOOT_COMMAND] = { .name = "reboot-command", .type = FLAG_TEXT },
    [FLAG_CONCURRENCY] = { .name = "concurrency", .type = FLAG_INT },
    [FLAG_REBOOT_SIGNAL] = { .name = "reboot-signal", .type = FLAG_INT },
    [FLAG_SLACK_HOOK_URL] = { .name = "slack-hook-url", .type = FLAG_TEXT },
    [FLAG_SLACK_USERNAME] = { .name = "slack-username",
                              .type = FLAG_TEXT,
                              .lost = "the webhook chooses it" },
    [FLAG_SLACK_CHANNEL] = { .name = "slack-channel",
                             .type = FLAG_TEXT,
                             .lost = "the webhook chooses it" },
    [FLAG_NOTIFY_URL] = { .name = "notify-url", .type = FLAG_TEXT },
    [FLAG_MESSAGE_UNCORDON] = { .name = "message-template-uncordon",
                                .type = FLAG_TEXT,
                                .lost = NO_TEXTS },
    [FLAG_MESSAGE_DRAIN] = { .name = "message-template-drain",
                             .type = FLAG_TEXT,
                             .lost = NO_TEXTS },
    [FLAG_MESSAGE_REBOOT] = { .name = "message-template-reboot",
                              .type = FLAG_TEXT,
                              .lost = NO_TEXTS },
    [FLAG_BLOCKING_POD_SELECTOR] = { .name = "blocking-pod-selector",
                                     .type = FLAG_TEXT,
                                     .many = true },
    [FLAG_REBOOT_DAYS] = { .name = "reboot-days", .type = FLAG_TEXT, .many = true },
    [FLAG_START_TIME] = { .name = "start-time", .type = FLAG_TEXT },
    [FLAG_END_TIME] = { .name = "end-time", .type = FLAG_TEXT },
    [FLAG_TIME_ZONE] = { .name = "time-zone", .type = FLAG_TEXT },
    [FLAG_ANNOTATE_NODES] = { .name = "annotate-nodes",
                              .type = FLAG_BOOL,
                              .lost = "Events of the node and the object's status tell" },
    [FLAG_LOG_FORMAT] = { .name = "log-format",
                          .type = FLAG_TEXT,
                          .lost = "it is the controller's --log-format" },
    [FLAG_PRE_LABELS] = { .name = "pre-reboot-node-labels", .type = FLAG_TEXT, .many = true },
    [FLAG_POST_LABELS] = { .name = "post-reboot-node-labels", .type = FLAG_TEXT, .many = true },
};

struct flag_value {
    struct str text;
    const struct jval *at;
};

struct flag_values {
    struct flag_value *items; /* of flags that count once: the last */
    uint32_t n;
    uint32_t cap;
    bool truth;
    int64_t number; /* of a duration: nanoseconds */
};

struct kured {
    struct convert_reader r;
    const struct jval *pod; /* its spec */
    const struct jval *container;
    struct flag_values values[FLAG_COUNT];
};

static struct str about(const struct kured *k, enum flag_id id)
{
    return arena_printf(k->r.memory, "--%s", flags[id].name);
}

static bool given(const struct kured *k, enum flag_id id)
{
    return k->values[id].n > 0;
}

static struct str value_of(const struct kured *k, enum flag_id id)
{
    return given(k, id) ? k->values[id].items[k->values[id].n - 1].text : STR_NONE;
}

static const struct jval *place_of(const struct kured *k, enum flag_id id)
{
    return given(k, id) ? k->values[id].items[k->values[id].n - 1].at : k->container;
}

/* ── Reading flags ───────────────────────────────────────────────────────────────────────────── */

/* Quotes that YAML has not taken away are nobody's intention. */
static struct str unquoted(struct str text)
{
    bool quoted =
        text.n >= 2 && (text.p[0] == '"' || text.p[0] == '\'') && text.p[text.n - 1] == text.p[0];
    return quoted ? str_sub(text, 1, text.n - 2) : text;
}

static bool read_bool(struct str text, bool *ret)
{
    static const char *const words[] = { "1", "t", "true", "0", "f", "false" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eq_fold(text, str_from(words[i]))) {
            *ret = i < 3;
            return true;
        }
    }
    return false;
}

static int flag_set(struct kured *k, enum flag_id id, struct str text, const struct jval *at)
{
    static const char *const wanted[] = {
        [FLAG_BOOL] = "true or false",
        [FLAG_INT] = "a whole number",
        [FLAG_DURATION] = "a duration such as 30m or 1h30m",
    };
    struct flag_values *v = &k->values[id];
    struct err why = { 0 };
    struct str plain = unquoted(text);
    bool good = true;
    switch (flags[id].type) {
    case FLAG_BOOL:
        good = read_bool(plain, &v->truth);
        break;
    case FLAG_INT:
        good = str_to_i64(plain, &v->number);
        break;
    case FLAG_DURATION:
        good = duration_parse(plain, &v->number, &why) == 0 && v->number >= 0;
        break;
    case FLAG_TEXT:
    default:
        break;
    }
    if (!good) {
        return convert_wrong(&k->r, at, "--%s '" STR_FMT "': want %s", flags[id].name,
                             STR_ARG(text), wanted[flags[id].type]);
    }
    if (!flags[id].many) {
        v->n = 0;
    }
    ARENA_GROW(k->r.memory, v->items, v->n, v->cap);
    v->items[v->n++] = (struct flag_value){ .text = plain, .at = at };
    return 0;
}

static bool flag_find(struct str name, enum flag_id *ret)
{
    for (uint32_t i = 0; i < FLAG_COUNT; i++) {
        if (str_eq(name, str_from(flags[i].name))) {
            *ret = (enum flag_id)i;
            return true;
        }
    }
    return false;
}

/* `--name=value`, `--name value`, `--name` for booleans. `*next` is the argument that follows. */
static int argument_read(struct kured *k, const struct jval *list, const struct jval **next)
{
    const struct jval *at = *next;
    struct str text = jval_str(at);
    struct str name;
    struct str value;
    enum flag_id id;
    *next = jval_next(list, at);
    if (!str_cut_prefix(text, STR("--"), &text) || text.n == 0) {
        return convert_wrong(&k->r, at, "'" STR_FMT "': want a flag such as --period=1h",
                             STR_ARG(jval_str(at)));
    }
    bool together = str_cut(text, STR("="), &name, &value);
    name = together ? name : text;
    if (!flag_find(name, &id)) {
        convert_note(&k->r, CONVERT_LOST, at,
                     arena_printf(k->r.memory, "--" STR_FMT, STR_ARG(name)),
                     "kured has no such flag");
        return 0;
    }
    if (!together && flags[id].type == FLAG_BOOL) {
        return flag_set(k, id, STR("true"), at);
    }
    if (!together && *next == NULL) {
        return convert_wrong(&k->r, at, "--%s: want a value behind it", flags[id].name);
    }
    if (!together) {
        value = jval_str(*next);
        *next = jval_next(list, *next);
    }
    return flag_set(k, id, value, at);
}

/* KURED_START_TIME counts for --start-time, and wins over it. */
static int variable_read(struct kured *k, const struct jval *entry)
{
    struct str name = jval_str(jval_get(entry, STR("name")));
    const struct jval *value = jval_get(entry, STR("value"));
    if (!str_cut_prefix(name, STR("KURED_"), &name)) {
        return 0;
    }
    char *text = ARENA_ARRAY(k->r.memory, char, name.n + 1);
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        text[i] = (char)(c == '_' ? '-' : c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    enum flag_id id;
    if (!flag_find((struct str){ .p = text, .n = name.n }, &id) || id == FLAG_NODE_ID) {
        return 0;
    }
    if (jval_kind(value) != JSTR) {
        convert_note(&k->r, CONVERT_LOST, entry, jval_str(jval_get(entry, STR("name"))),
                     "its value stands in another object: look there, and give --%s",
                     flags[id].name);
        return 0;
    }
    k->values[id].n = 0;
    return flag_set(k, id, jval_str(value), value);
}

static int flags_read(struct kured *k)
{
    const struct jval *command = jval_get(k->container, STR("command"));
    const struct jval *args = jval_get(k->container, STR("args"));
    const struct jval *first = jval_first(command);
    int result = 0;
    if (first != NULL && !str_ends(jval_str(first), STR("kured"))) {
        return convert_wrong(&k->r, first,
                             "command '" STR_FMT "': want /usr/bin/kured with its flags",
                             STR_ARG(jval_str(first)));
    }
    const struct jval *next = first != NULL ? jval_next(command, first) : NULL;
    while (result == 0 && next != NULL) {
        result = argument_read(k, command, &next);
    }
    next = jval_first(args);
    while (result == 0 && next != NULL) {
        result = argument_read(k, args, &next);
    }
    const struct jval *env = jval_get(k->container, STR("env"));
    for (next = jval_first(env); result == 0 && next != NULL; next = jval_next(env, next)) {
        result = variable_read(k, next);
    }
    for (uint32_t i = 0; result == 0 && i < FLAG_COUNT; i++) {
        bool off =
            (flags[i].type == FLAG_BOOL && !k->values[i].truth) ||
            (flags[i].type != FLAG_TEXT && flags[i].type != FLAG_BOOL && k->values[i].number == 0);
        if (flags[i].lost != NULL && given(k, (enum flag_id)i) && !off) {
            convert_note(&k->r, CONVERT_LOST, place_of(k, (enum flag_id)i),
                         about(k, (enum flag_id)i), "%s", flags[i].lost);
        }
    }
    return result;
}

/* ── When ────────────────────────────────────────────────────────────────────────────────────── */

static int window_set(struct kured *k)
{
    const struct flag_values *list = &k->values[FLAG_REBOOT_DAYS];
    enum flag_id named = given(k, FLAG_START_TIME)  ? FLAG_START_TIME
                         : given(k, FLAG_END_TIME)  ? FLAG_END_TIME
                         : given(k, FLAG_TIME_ZONE) ? FLAG_TIME_ZONE
                                                    : FLAG_REBOOT_DAYS;
    struct convert_hours h = {
        .days = list->n == 0 ? 0x7fu : 0,
        .start = given(k, FLAG_START_TIME) ? value_of(k, FLAG_START_TIME) : STR("0:00"),
        .end = given(k, FLAG_END_TIME) ? value_of(k, FLAG_END_TIME) : STR("23:59:59"),
        .zone = value_of(k, FLAG_TIME_ZONE),
        .at = place_of(k, named),
        .about = about(k, named),
    };
    for (uint32_t i = 0; i < list->n; i++) {
        struct str rest = list->items[i].text;
        struct str day;
        while (rest.n > 0 && str_split_next(&rest, ',', &day)) {
            int result = day.n == 0 ? 0
                                    : convert_day(&k->r, list->items[i].at, STR("--reboot-days"),
                                                  day, &h.days);
            if (result < 0) {
                return result;
            }
        }
    }
    return convert_window(&k->r, &h);
}

/* ── Where ───────────────────────────────────────────────────────────────────────────────────── */

/* A term of the DaemonSet's node affinity, as one of a series; NULL: there is nothing in it. */
static struct tree *affinity_term(struct kured *k, const struct jval *term)
{
    struct arena *m = k->r.memory;
    struct tree *expressions = tree_arr(m);
    struct tree *result = tree_obj(m);
    JVAL_EACH (jval_get(term, STR("matchExpressions")), e) {
        struct str op = jval_str(jval_get(e, STR("operator")));
        if (str_eq(op, STR("Gt")) || str_eq(op, STR("Lt"))) {
            convert_note(&k->r, CONVERT_LOST, e, STR("nodeAffinity"),
                         "the operator " STR_FMT " has no counterpart: more nodes are selected now",
                         STR_ARG(op));
            continue;
        }
        tree_add(expressions, tree_from(m, e));
    }
    JVAL_EACH (jval_get(term, STR("matchFields")), e) {
        if (str_eq(jval_str(jval_get(e, STR("operator"))), STR("In"))) {
            tree_set(m, result, STR("names"), tree_from(m, jval_get(e, STR("values"))));
        } else {
            convert_note(&k->r, CONVERT_LOST, e, STR("nodeAffinity"),
                         "matchFields without In has no counterpart: more nodes are selected now");
        }
    }
    if (expressions->n > 0) {
        tree_set_at(m, result, "selector.matchExpressions", expressions);
    }
    return result->n > 0 ? result : NULL;
}

static int series_set(struct kured *k)
{
    struct arena *m = k->r.memory;
    const struct jval *labels = jval_get(k->pod, STR("nodeSelector"));
    const struct jval *terms =
        jval_at(k->pod, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
                        "nodeSelectorTerms");
    struct tree *include = tree_arr(m);
    bool all_taints = false;
    JVAL_EACH (terms, term) {
        struct tree *t = affinity_term(k, term);
        if (t != NULL) {
            tree_add(include, t);
        }
    }
    if (labels != NULL && labels->n > 0) {
        if (include->n == 0) {
            tree_add(include, tree_obj(m));
        }
        TREE_EACH (include, t) {
            tree_set_at(m, t, "selector.matchLabels", tree_from(m, labels));
        }
    }
    if (include->n == 1) {
        convert_set(&k->r, "nodeSeries", tree_clone(m, tree_first(include)));
    } else if (include->n > 1) {
        convert_set(&k->r, "nodeSeries.include", include);
    }
    JVAL_EACH (jval_get(k->pod, STR("tolerations")), t) {
        all_taints = all_taints || (jval_str(jval_get(t, STR("key"))).n == 0 &&
                                    str_eq(jval_str(jval_get(t, STR("operator"))), STR("Exists")));
    }
    if (!all_taints) {
        convert_note(&k->r, CONVERT_LOOK, k->pod, STR("tolerations"),
                     "kured reboots only nodes whose taints its DaemonSet tolerates; now all nodes "
                     "that nodeSeries selects are rebooted");
    }
    return 0;
}

/* ── How ─────────────────────────────────────────────────────────────────────────────────────── */

static struct tree *gate_add(struct tree *gates, const char *kind, struct arena *m)
{
    struct tree *gate = tree_obj(m);
    struct tree *body = tree_obj(m);
    tree_set(m, gate, STR("timeout"), tree_str(m, GATE_PATIENCE));
    tree_set(m, gate, str_from(kind), body);
    tree_add(gates, gate);
    return body;
}

static int alerts_set(struct kured *k, struct tree *gates)
{
    struct arena *m = k->r.memory;
    struct str url = value_of(k, FLAG_PROMETHEUS_URL);
    struct str filter = value_of(k, FLAG_ALERT_FILTER);
    struct regex *pattern = NULL;
    struct err why = { 0 };
    if (url.n == 0) {
        return 0;
    }
    if (!str_starts(url, STR("http://")) && !str_starts(url, STR("https://"))) {
        return convert_wrong(&k->r, place_of(k, FLAG_PROMETHEUS_URL),
                             "--prometheus-url '" STR_FMT
                             "': want a URL such as http://prometheus.monitoring:9090",
                             STR_ARG(url));
    }
    if (filter.n > 0 && regex_compile(filter, m, &pattern, &why) < 0) {
        return convert_wrong(&k->r, place_of(k, FLAG_ALERT_FILTER),
                             "--alert-filter-regexp '" STR_FMT
                             "': want a regular expression in RE2 syntax (%s)",
                             STR_ARG(filter), why.msg);
    }
    struct tree *alerts = gate_add(gates, "alerts", m);
    tree_set(m, alerts, STR("url"), tree_str(m, url));
    if (filter.n > 0) {
        tree_set(m, alerts, k->values[FLAG_ALERT_MATCH_ONLY].truth ? STR("only") : STR("ignore"),
                 tree_str(m, filter));
    }
    tree_set(m, alerts, STR("firingOnly"), tree_bool(m, k->values[FLAG_ALERT_FIRING_ONLY].truth));
    convert_note(&k->r, CONVERT_LOOK, place_of(k, FLAG_PROMETHEUS_URL),
                 about(k, FLAG_PROMETHEUS_URL), "start the controller with --allow-url=" STR_FMT,
                 STR_ARG(url));
    return 0;
}

static int gates_set(struct kured *k)
{
    struct arena *m = k->r.memory;
    struct tree *gates = tree_arr(m);
    const struct flag_values *pods = &k->values[FLAG_BLOCKING_POD_SELECTOR];
    int result = alerts_set(k, gates);
    for (uint32_t i = 0; result == 0 && i < pods->n; i++) {
        if (pods->items[i].text.n == 0 || i >= SELECTORS_MAX) {
            return convert_wrong(&k->r, pods->items[i].at,
                                 "--blocking-pod-selector: want 1 to %u label selectors that are "
                                 "not empty",
                                 SELECTORS_MAX);
        }
        struct tree *selector = convert_selector(
            &k->r, pods->items[i].at, STR("--blocking-pod-selector"), pods->items[i].text);
        if (selector == NULL) {
            return -ERR_INVALID;
        }
        tree_set(m, gate_add(gates, "blockingPods", m), STR("selector"), selector);
    }
    if (result == 0 && gates->n > 0) {
        convert_set(&k->r, "rollout.gates.beforeNode", gates);
    }
    return result;
}

static int drain_set(struct kured *k)
{
    struct arena *m = k->r.memory;
    int64_t grace =
        given(k, FLAG_DRAIN_GRACE_PERIOD) ? k->values[FLAG_DRAIN_GRACE_PERIOD].number : -1;
    int64_t timeout = k->values[FLAG_DRAIN_TIMEOUT].number;
    struct str pods = value_of(k, FLAG_DRAIN_POD_SELECTOR);
    /* kured drains with --force: pods that nobody makes again go, too. */
    convert_set_text(&k->r, "disruption.drain.unmanagedPods", STR("Delete"));
    if (grace >= 0 && grace <= INT64_MAX / 1000000000) {
        convert_set_text(&k->r, "disruption.drain.gracePeriod",
                         convert_duration(grace * 1000000000, m));
    }
    if (timeout > 0) {
        convert_set_text(&k->r, "disruption.drain.timeout", convert_duration(timeout, m));
    } else {
        convert_note(&k->r, CONVERT_LOOK, place_of(k, FLAG_DRAIN_TIMEOUT),
                     about(k, FLAG_DRAIN_TIMEOUT),
                     "kured waits for a drain for ever; now it ends after 15m, and "
                     "disruption.drain.timeout gives it more");
    }
    if (pods.n > 0) {
        struct tree *selector = convert_selector(&k->r, place_of(k, FLAG_DRAIN_POD_SELECTOR),
                                                 about(k, FLAG_DRAIN_POD_SELECTOR), pods);
        if (selector == NULL) {
            return -ERR_INVALID;
        }
        convert_set(&k->r, "disruption.drain.podSelector", selector);
    }
    if (k->values[FLAG_FORCE_REBOOT].truth) {
        convert_set_text(&k->r, "disruption.drain.onTimeout", STR("Proceed"));
        convert_note(&k->r, CONVERT_LOOK, place_of(k, FLAG_FORCE_REBOOT),
                     about(k, FLAG_FORCE_REBOOT),
                     "start the controller with --allow-forced-drains");
    }
    if (value_of(k, FLAG_TAINT).n > 0) {
        convert_set(&k->r, "disruption.preferNoSchedule", tree_bool(m, true));
        convert_note(&k->r, CONVERT_LOOK, place_of(k, FLAG_TAINT), about(k, FLAG_TAINT),
                     "the taint's key is " KEYS_OWN "pending");
        convert_not_yet(&k->r, place_of(k, FLAG_TAINT), about(k, FLAG_TAINT),
                        "disruption.preferNoSchedule");
    }
    return 0;
}

static int labels_set(struct kured *k, enum flag_id id, const char *path)
{
    struct tree *labels = tree_obj(k->r.memory);
    for (uint32_t i = 0; i < k->values[id].n; i++) {
        struct str rest = k->values[id].items[i].text;
        struct str entry;
        while (rest.n > 0 && str_split_next(&rest, ',', &entry)) {
            struct str key;
            struct str value;
            if (!str_cut(entry, STR("="), &key, &value) || key.n == 0) {
                return convert_wrong(&k->r, k->values[id].items[i].at,
                                     "--%s '" STR_FMT "': want key=value", flags[id].name,
                                     STR_ARG(entry));
            }
            if (node_maintenance_taken_label(key) != NULL) {
                convert_note(&k->r, CONVERT_LOST, k->values[id].items[i].at, about(k, id),
                             "the label '" STR_FMT "' may not be set this way", STR_ARG(key));
            } else {
                tree_set(k->r.memory, labels, key, tree_str(k->r.memory, value));
            }
        }
    }
    if (labels->n > 0) {
        convert_set(&k->r, path, labels);
    }
    return 0;
}

/* The address is a secret: it is not printed. */
static void notify_set(struct kured *k)
{
    struct arena *m = k->r.memory;
    static const char *const events[] = { "VisitStarted", "VisitSucceeded", "VisitFailed",
                                          "Paused" };
    enum flag_id id = value_of(k, FLAG_NOTIFY_URL).n > 0 ? FLAG_NOTIFY_URL : FLAG_SLACK_HOOK_URL;
    struct str url = value_of(k, id);
    bool slack = id == FLAG_SLACK_HOOK_URL || str_starts(url, STR("slack://"));
    bool plain = str_starts(url, STR("generic+http")) || str_starts(url, STR("generic://"));
    struct tree *list = tree_arr(m);
    struct tree *one = tree_obj(m);
    struct tree *on = tree_arr(m);
    if (url.n == 0) {
        return;
    }
    if (!slack && !plain) {
        convert_note(&k->r, CONVERT_LOST, place_of(k, id), about(k, id),
                     "only slack:// and generic:// have a counterpart (notify, format Slack or "
                     "JSON)");
        return;
    }
    tree_set_at(m, one, "urlFrom.secret", tree_str(m, NOTIFY_SECRET));
    tree_set_at(m, one, "urlFrom.key", tree_str(m, STR("url")));
    tree_set(m, one, STR("format"), tree_str(m, slack ? STR("Slack") : STR("JSON")));
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        tree_add(on, tree_str(m, str_from(events[i])));
    }
    tree_set(m, one, STR("events"), on);
    tree_add(list, one);
    convert_set(&k->r, "notify", list);
    convert_not_yet(&k->r, place_of(k, id), about(k, id), "notify");
    convert_note(&k->r, CONVERT_LOOK, place_of(k, id), about(k, id),
                 "put the address of the webhook, as https://..., below 'url' of a Secret "
                 "'kured-notify' in drydock-jobs with the label " KEYS_OWN "use=outbound, and "
                 "start the controller with --allow-url for it");
}

/* ── What ────────────────────────────────────────────────────────────────────────────────────── */

/* The path on the machine of one in the container. */
static struct str path_on_host(const struct kured *k, struct str path)
{
    JVAL_EACH (jval_get(k->container, STR("volumeMounts")), mount) {
        struct str at = jval_str(jval_get(mount, STR("mountPath")));
        struct str rest;
        if (at.n == 0 || !str_cut_prefix(path, at, &rest) ||
            (rest.n > 0 && rest.p[0] != '/' && !str_ends(at, STR("/")))) {
            continue;
        }
        JVAL_EACH (jval_get(k->pod, STR("volumes")), volume) {
            struct str host = jval_str(jval_at(volume, "hostPath.path"));
            if (host.n > 0 && str_eq(jval_str(jval_get(volume, STR("name"))),
                                     jval_str(jval_get(mount, STR("name"))))) {
                (void)str_cut_suffix(host, STR("/"), &host); /* one slash is enough */
                (void)str_cut_prefix(rest, STR("/"), &rest);
                return arena_printf(k->r.memory, STR_FMT "/" STR_FMT, STR_ARG(host), STR_ARG(rest));
            }
        }
    }
    return path;
}

static int sentinel_set(struct kured *k, struct tree *parameters)
{
    struct arena *m = k->r.memory;
    struct str command = value_of(k, FLAG_SENTINEL_COMMAND);
    struct str file = path_on_host(k, value_of(k, FLAG_SENTINEL));
    if (command.n > 0) {
        tree_set(m, parameters, STR("command"), tree_str(m, command));
        convert_note(&k->r, CONVERT_LOOK, place_of(k, FLAG_SENTINEL_COMMAND),
                     about(k, FLAG_SENTINEL_COMMAND),
                     "exit code 0 asks for a reboot and 1 does not; any other is a failure now, "
                     "and the file /run/reboot-required counts, too");
        return 0;
    }
    if (file.n > 0 && file.p[0] != '/') {
        return convert_wrong(&k->r, place_of(k, FLAG_SENTINEL),
                             "--reboot-sentinel '" STR_FMT "': want an absolute path",
                             STR_ARG(file));
    }
    if (file.n > 0 && !str_eq(file, STR("/var/run/reboot-required")) &&
        !str_eq(file, STR("/run/reboot-required"))) {
        tree_set(m, parameters, STR("sentinel"), tree_str(m, file));
        convert_note(&k->r, CONVERT_LOOK, place_of(k, FLAG_SENTINEL), about(k, FLAG_SENTINEL),
                     "the file /run/reboot-required counts, too");
    }
    return 0;
}

static int method_set(struct kured *k, struct tree *parameters)
{
    struct str method = value_of(k, FLAG_REBOOT_METHOD);
    struct str command = value_of(k, FLAG_REBOOT_COMMAND);
    bool signal = str_eq(method, STR("signal"));
    if (method.n > 0 && !signal && !str_eq(method, STR("command"))) {
        return convert_wrong(&k->r, place_of(k, FLAG_REBOOT_METHOD),
                             "--reboot-method '" STR_FMT "': want command or signal",
                             STR_ARG(method));
    }
    if (signal) {
        tree_set(k->r.memory, parameters, STR("method"), tree_str(k->r.memory, STR("Signal")));
        if (given(k, FLAG_REBOOT_SIGNAL) && k->values[FLAG_REBOOT_SIGNAL].number != 39) {
            convert_note(&k->r, CONVERT_LOST, place_of(k, FLAG_REBOOT_SIGNAL),
                         about(k, FLAG_REBOOT_SIGNAL), "the signal is SIGRTMIN+5 (39)");
        }
    } else if (command.n > 0 && !str_ends(command, STR("systemctl reboot"))) {
        convert_note(&k->r, CONVERT_LOST, place_of(k, FLAG_REBOOT_COMMAND),
                     about(k, FLAG_REBOOT_COMMAND),
                     "systemd is asked to reboot; a command of one's own has no counterpart");
    }
    return 0;
}

static int operation_set(struct kured *k)
{
    struct arena *m = k->r.memory;
    struct tree *operations = tree_arr(m);
    struct tree *operation = tree_obj(m);
    struct tree *parameters = tree_obj(m);
    int64_t period =
        given(k, FLAG_PERIOD) ? k->values[FLAG_PERIOD].number : INT64_C(3600) * 1000000000;
    if (period < EVERY_MIN_NS || period > EVERY_MAX_NS) {
        period = period < EVERY_MIN_NS ? EVERY_MIN_NS : EVERY_MAX_NS;
        convert_note(&k->r, CONVERT_LOOK, place_of(k, FLAG_PERIOD), about(k, FLAG_PERIOD),
                     "it is at least 1m and at most 168h");
    }
    tree_set(m, operation, STR("name"), tree_str(m, STR("reboot")));
    tree_set(m, operation, STR("type"), tree_str(m, STR("cron")));
    tree_set_at(m, operation, "cron.every", tree_str(m, convert_duration(period, m)));
    tree_set_at(m, operation, "template.name", tree_str(m, STR("drydock-reboot-if-required")));
    tree_set(m, parameters, STR("kernel"), tree_bool(m, false));
    int result = sentinel_set(k, parameters);
    if (result == 0) {
        result = method_set(k, parameters);
    }
    tree_set_at(m, operation, "template.parameters", parameters);
    tree_add(operations, operation);
    convert_set(&k->r, "operations", operations);
    return result;
}

static int rollout_set(struct kured *k)
{
    int64_t at_once = given(k, FLAG_CONCURRENCY) ? k->values[FLAG_CONCURRENCY].number : 1;
    int64_t pace = k->values[FLAG_LOCK_RELEASE_DELAY].number;
    if (at_once < 1 || at_once > 100000) {
        return convert_wrong(&k->r, place_of(k, FLAG_CONCURRENCY),
                             "--concurrency '" STR_FMT "': want a number from 1 on",
                             STR_ARG(value_of(k, FLAG_CONCURRENCY)));
    }
    convert_set_at_once(&k->r, place_of(k, FLAG_CONCURRENCY), about(k, FLAG_CONCURRENCY), at_once);
    if (pace > 0) {
        convert_set_text(&k->r, "rollout.paceAfterNode", convert_duration(pace, k->r.memory));
    }
    return 0;
}

/* ── The DaemonSet ───────────────────────────────────────────────────────────────────────────── */

static bool runs_kured(const struct jval *container)
{
    struct str image = jval_str(jval_get(container, STR("image")));
    struct str first = jval_str(jval_first(jval_get(container, STR("command"))));
    return str_eq(jval_str(jval_get(container, STR("name"))), STR("kured")) ||
           str_contains(image, STR("/kured:")) || str_contains(image, STR("/kured@")) ||
           str_ends(image, STR("/kured")) || str_ends(first, STR("/kured"));
}

static int kured_read(const struct ydoc *doc, const struct jval *object, struct convert_list *list,
                      struct arena *memory, struct err *err)
{
    struct kured k = { .r = { .doc = doc, .list = list, .memory = memory, .err = err } };
    if (!str_eq(jval_str(jval_get(object, STR("kind"))), STR("DaemonSet"))) {
        return -ERR_NOTFOUND;
    }
    k.pod = jval_at(object, "spec.template.spec");
    JVAL_EACH (jval_get(k.pod, STR("containers")), container) {
        k.container = runs_kured(container) ? container : k.container;
    }
    if (k.container == NULL) {
        return -ERR_NOTFOUND;
    }
    int result = convert_begin(list, memory, STR("DaemonSet"), doc, object, &k.r.c, err);
    if (result < 0) {
        return result;
    }
    int (*const steps[])(struct kured *) = { flags_read, window_set, series_set,   rollout_set,
                                             gates_set,  drain_set,  operation_set };
    for (size_t i = 0; result == 0 && i < ARRAY_LEN(steps); i++) {
        result = steps[i](&k);
    }
    if (result == 0) {
        result = labels_set(&k, FLAG_PRE_LABELS, "disruption.nodeLabels.before");
    }
    if (result == 0) {
        result = labels_set(&k, FLAG_POST_LABELS, "disruption.nodeLabels.after");
    }
    if (result == 0) {
        notify_set(&k);
        convert_note(&k.r, CONVERT_LOOK, object, STR("template"),
                     "install it: drydock templates reboot-if-required | kubectl apply -f -");
        result = convert_finish(&k.r, object);
    }
    return result;
}

int convert_kured(struct str text, struct arena *memory, struct convert_list *list, struct err *err)
{
    return convert_each(text, kured_read,
                        "there is no DaemonSet that runs kured: want the output of 'kubectl get "
                        "daemonset -n kube-system kured -o yaml'",
                        memory, list, err);
}
