#include "kinds/maintenance_gate.h"

#include "format/jsonpath.h"
#include "format/regex.h"
#include "kinds/node_operation.h"

static const char *const gate_keys[GATE_KINDS] = {
    [GATE_NODES] = "nodes",   [GATE_PODS] = "pods",   [GATE_BLOCKING_PODS] = "blockingPods",
    [GATE_ALERTS] = "alerts", [GATE_QUERY] = "query", [GATE_RESOURCE] = "resource",
    [GATE_JOB] = "job",
};

const char *gate_kind_name(enum gate_kind kind)
{
    return gate_keys[kind];
}

static void gate_read_nodes(const struct spec_node *at, struct maintenance_gate *g)
{
    g->max_not_ready = spec_share(at, "maxNotReady", 0);
    g->max_cordoned = spec_share(at, "maxCordoned", 0);
    g->has_selector = spec_selector(at, "selector", &g->selector);
    if (!g->max_not_ready.given && !g->max_cordoned.given) {
        spec_wrong(at, "Invalid", "maxNotReady or maxCordoned");
    }
    if (g->on_timeout == GATE_SKIP) {
        spec_wrong(at, "Invalid", "onTimeout Fail or Pause: nodes are never skipped");
    }
}

static void gate_read_pods(const struct spec_node *at, struct maintenance_gate *g)
{
    g->has_selector = spec_selector(at, "selector", &g->selector);
    g->namespaces = spec_texts(at, "namespaces", GATE_NAMESPACES_MAX);
    if (!g->has_selector) {
        spec_wrong(at, "Invalid", "a selector of pods");
    }
    if (g->kind == GATE_PODS) {
        g->min_ready_percent = (uint32_t)spec_number(at, "minReadyPercent", 100, 0, 100);
    }
}

static void gate_check_regex(const struct spec_node *at, const char *key)
{
    struct spec_node m = spec_member(at, key);
    struct str pattern = spec_text(at, key);
    struct regex *regex = NULL;
    struct err err = { 0 };
    if (pattern.n > 0 && regex_compile(pattern, at->reader->out, &regex, &err) < 0) {
        spec_wrong(&m, "Invalid", "a regular expression; this is none: %s", err.msg);
    }
}

static void gate_read_remote(const struct spec_node *at, struct maintenance_gate *g)
{
    g->url = spec_text(at, "url");
    if (!str_starts(g->url, STR("http://")) && !str_starts(g->url, STR("https://"))) {
        spec_wrong(at, "Invalid", "a url such as http://prometheus.monitoring:9090");
    }
    if (g->kind == GATE_ALERTS) {
        gate_check_regex(at, "ignore");
        gate_check_regex(at, "only");
    } else if (spec_text(at, "query").n == 0 ||
               (spec_has(at, "expect") && spec_has(at, "compare"))) {
        spec_wrong(at, "Invalid", "query, and either expect or compare");
    }
}

/* Secrets are for nobody who may only write a NodeMaintenance: a gate would tell what is in them.
 */
static void gate_read_resource(const struct spec_node *at, struct maintenance_gate *g)
{
    static const char *const ops[] = {
        "Equals", "NotEquals", "In", "Gt", "Ge", "Lt", "Le", "Exists"
    };
    struct str kind = spec_text(at, "kind");
    struct str path = jsonpath_inner(spec_text(at, "path"));
    struct spec_node path_at = spec_member(at, "path");
    struct spec_node values_at = spec_member(at, "values");
    uint32_t values = spec_texts(at, "values", GATE_VALUES_MAX).n;
    bool exists = SPEC_ENUM(at, "op", ops, 0) == ARRAY_LEN(ops) - 1;
    g->has_selector = spec_selector(at, "selector", &g->selector);
    if (kind.n == 0 || spec_text(at, "apiVersion").n == 0 || !spec_has(at, "op") ||
        spec_has(at, "name") == spec_has(at, "selector")) {
        spec_wrong(at, "Invalid", "apiVersion, kind, path, op, and either name or selector");
    } else if (str_eq(kind, STR("Secret")) && str_eq(spec_text(at, "apiVersion"), STR("v1"))) {
        spec_wrong(at, "Invalid", "another kind: Secrets are not read");
    } else if (!jsonpath_valid(path) || str_contains(path, STR("[*]"))) {
        spec_wrong(&path_at, "Invalid",
                   "the path of one value, such as {.status.readyReplicas} or "
                   "{.status.conditions[?(@.type==\"Ready\")].status}");
    } else if (exists != (values == 0)) {
        spec_wrong(&values_at, "Invalid", "values with every op but Exists");
    }
}

static void gate_read_kind(const struct spec_node *at, struct maintenance_gate *g, bool of_wave)
{
    switch (g->kind) {
    case GATE_NODES:
        gate_read_nodes(at, g);
        break;
    case GATE_PODS:
    case GATE_BLOCKING_PODS:
        gate_read_pods(at, g);
        if (of_wave && g->kind == GATE_BLOCKING_PODS) {
            spec_wrong(at, "Invalid", "another gate: a wave has no machine on which pods run");
        }
        break;
    case GATE_ALERTS:
    case GATE_QUERY:
        gate_read_remote(at, g);
        break;
    case GATE_RESOURCE:
        gate_read_resource(at, g);
        break;
    case GATE_JOB:
    default:
        node_operation_check_job(at);
        if (of_wave && (!spec_has(at, "image") || spec_has(at, "host") || spec_has(at, "volumes") ||
                        spec_has(at, "securityContext"))) {
            spec_wrong(at, "Invalid", "an image without access to a host");
        }
        break;
    }
}

static void gate_read(const struct spec_node *at, bool of_wave, struct maintenance_gate *g)
{
    static const char *const timeouts[] = { "Fail", "Pause", "Skip" };
    uint32_t found = 0;
    for (uint32_t k = 0; k < GATE_KINDS; k++) {
        if (spec_has(at, gate_keys[k])) {
            g->kind = (enum gate_kind)k;
            found++;
        }
    }
    if (found != 1) {
        spec_wrong(at, "Invalid",
                   "exactly one of nodes, pods, blockingPods, alerts, query, resource, job");
        return;
    }
    usec_t least = g->kind == GATE_JOB ? GATE_JOB_INTERVAL : GATE_INTERVAL_MIN;
    g->timeout = spec_duration(at, "timeout", GATE_TIMEOUT);
    g->interval = spec_duration(at, "interval", MAX(least, (usec_t)GATE_INTERVAL));
    g->on_timeout = (enum gate_on_timeout)SPEC_ENUM(at, "onTimeout", timeouts, GATE_PAUSE);
    g->fields = spec_json(at, gate_keys[g->kind]);
    if (g->interval < least) {
        struct spec_node m = spec_member(at, "interval");
        spec_wrong(&m, "Invalid", "at least %ds", (int)(least / SECONDS(1)));
    }
    struct spec_node fields = spec_member(at, gate_keys[g->kind]);
    gate_read_kind(&fields, g, of_wave);
}

struct maintenance_gates maintenance_gates_read(const struct spec_node *at, const char *key,
                                                bool of_wave)
{
    struct spec_node list = spec_member(at, key);
    struct maintenance_gate *gates =
        ARENA_ARRAY(at->reader->out, struct maintenance_gate, MIN(spec_count(&list), GATES_MAX));
    uint32_t n = 0;
    SPEC_EACH(&list, GATES_MAX, item)
    {
        gate_read(&item, of_wave, &gates[n++]);
    }
    return (struct maintenance_gates){ .items = gates, .n = n };
}
