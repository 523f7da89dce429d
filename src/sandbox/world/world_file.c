/*
 * world_file: reads the YAML file that describes a world. Everything is optional:
 *
 *   nodes: 6                  # how many machines are there from the start
 *   zones: 3                  # over how many zones they spread
 *   heartbeats: none          # none, status, lease, both
 *   seed: 1                   # of uids, names and chance
 *   delays:                   # Go durations
 *     react: 20ms
 *     startMin: 1s
 *     startMax: 3s
 *     stop: 2s
 *     run: 20s
 *     boot: 30s
 *     reboot: 1m
 *     unknown: 40s
 *   namespaces: [shop]
 *   workloads:                # Deployments unless they say otherwise
 *     - name: web
 *       namespace: shop       # default: default
 *       kind: Deployment      # or StatefulSet, DaemonSet, Job
 *       replicas: 3           # a Job's completions; a DaemonSet has none
 *   budgets:                  # over the workload of that name
 *     - name: web
 *       namespace: shop
 *       minAvailable: 2       # or maxUnavailable; numbers or "50%"
 *   objects:                  # anything else, as the API takes it
 *     - apiVersion: v1
 *       kind: ConfigMap
 *       metadata: {name: settings, namespace: shop}
 */
#include "base/duration.h"
#include "format/yaml.h"
#include "sandbox/world/world_internal.h"

#define WORLD_FILE_OBJECTS_MAX 10000u /* a world, not a data center */

struct world_file {
    struct ydoc doc;
    struct arena *out;
    struct str *objects;
    uint32_t n;
    uint32_t cap;
    struct err *err;
};

static int world_file_error(struct world_file *f, const struct jval *v, const char *what)
{
    struct pos pos = ydoc_pos(&f->doc, v);
    int r = err_set(f->err, ERR_INVALID, "line %u, column %u: %s", pos.line, pos.column, what);
    f->err->pos = pos;
    return r;
}

static int world_file_check_members(struct world_file *f, const struct jval *object,
                                    const char *const *names, size_t n, const char *where)
{
    if (jval_kind(object) != JOBJ) {
        return world_file_error(f, object, "found no mapping where one is wanted");
    }
    JVAL_EACH (object, member) {
        size_t i = 0;
        while (i < n && !str_eq(jval_key(member), str_from(names[i]))) {
            i++;
        }
        if (i == n) {
            struct pos pos = ydoc_key_pos(&f->doc, member);
            f->err->pos = pos;
            return err_set(f->err, ERR_INVALID,
                           "line %u, column %u: '" STR_FMT "' is nothing that %s has", pos.line,
                           pos.column, STR_ARG(jval_key(member)), where);
        }
    }
    return 0;
}

static int world_file_read_number(struct world_file *f, const struct jval *object, const char *name,
                                  int64_t max, int64_t *ret)
{
    const struct jval *v = jval_get(object, str_from(name));
    int64_t n;
    if (v == NULL) {
        return 0;
    }
    if (!jval_i64(v, &n) || n < 0 || n > max) {
        char what[128];
        (void)snprintf(what, sizeof(what), "%s: want a number from 0 to %lld", name,
                       (long long)max); /* it fits */
        return world_file_error(f, v, what);
    }
    *ret = n;
    return 0;
}

static int world_file_read_delays(struct world_file *f, const struct jval *delays,
                                  struct world_config *c)
{
    static const char *const names[] = { "react", "startMin", "startMax", "stop",
                                         "run",   "boot",     "reboot",   "unknown" };
    usec_t *const fields[] = { &c->react, &c->start_min, &c->start_max, &c->stop,
                               &c->run,   &c->boot,      &c->reboot,    &c->unknown };
    if (delays == NULL) {
        return 0;
    }
    int r = world_file_check_members(f, delays, names, ARRAY_LEN(names), "delays");
    if (r != 0) {
        return r;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct jval *v = jval_get(delays, str_from(names[i]));
        int64_t ns;
        struct err err = { 0 };
        if (v != NULL && (duration_parse(jval_str(v), &ns, &err) != 0 || ns < 0)) {
            return world_file_error(f, v, "want a duration such as 30s");
        }
        if (v != NULL) {
            *fields[i] = ns / 1000;
        }
    }
    return 0;
}

static int world_file_add(struct world_file *f, const struct jval *at, struct str json)
{
    if (f->n >= WORLD_FILE_OBJECTS_MAX) {
        return world_file_error(f, at, "more objects than a world takes");
    }
    ARENA_GROW(f->out, f->objects, f->n, f->cap);
    f->objects[f->n++] = json;
    return 0;
}

/* Name and namespace go into JSON as they are, so they are held against the API's rules here. */
static bool world_file_name_valid(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && i > 0))) {
            return false;
        }
    }
    return name.n > 0 && name.n <= 63;
}

static int world_file_read_names(struct world_file *f, const struct jval *v, struct str *ret_name,
                                 struct str *ret_namespace)
{
    *ret_name = jval_str(jval_get(v, STR("name")));
    const struct jval *namespace = jval_get(v, STR("namespace"));
    *ret_namespace = namespace != NULL ? jval_str(namespace) : STR("default");
    if (!world_file_name_valid(*ret_name)) {
        return world_file_error(f, v, "want a name of small letters, digits and '-'");
    }
    if (!world_file_name_valid(*ret_namespace)) {
        return world_file_error(f, namespace, "want a namespace of small letters, digits and '-'");
    }
    return 0;
}

static int world_file_add_workload(struct world_file *f, const struct jval *v)
{
    static const char *const names[] = { "name", "namespace", "kind", "replicas" };
    struct str name;
    struct str namespace;
    int64_t replicas = 1;
    int r = world_file_check_members(f, v, names, ARRAY_LEN(names), "a workload");
    if (r == 0) {
        r = world_file_read_names(f, v, &name, &namespace);
    }
    if (r == 0) {
        r = world_file_read_number(f, v, "replicas", 5000, &replicas);
    }
    if (r != 0) {
        return r;
    }
    const struct jval *kind_value = jval_get(v, STR("kind"));
    struct str kind = kind_value != NULL ? jval_str(kind_value) : STR("Deployment");
    bool job = str_eq(kind, STR("Job"));
    bool daemons = str_eq(kind, STR("DaemonSet"));
    bool stateful = str_eq(kind, STR("StatefulSet"));
    if (!job && !daemons && !stateful && !str_eq(kind, STR("Deployment"))) {
        return world_file_error(f, kind_value, "want Deployment, StatefulSet, DaemonSet or Job");
    }
    CLEANUP(buf_done)
    struct buf b = { 0 };
    buf_printf(
        &b,
        "{\"apiVersion\":\"%s/v1\",\"kind\":\"" STR_FMT "\",\"metadata\":{\"name\":\"" STR_FMT
        "\",\"namespace\":\"" STR_FMT "\",\"labels\":{\"app\":\"" STR_FMT "\"}},\"spec\":{",
        job ? "batch" : "apps", STR_ARG(kind), STR_ARG(name), STR_ARG(namespace), STR_ARG(name));
    if (!daemons) {
        buf_printf(&b, "\"%s\":%lld,", job ? "completions" : "replicas", (long long)replicas);
    }
    if (!job) {
        buf_printf(&b, "\"selector\":{\"matchLabels\":{\"app\":\"" STR_FMT "\"}},", STR_ARG(name));
    }
    if (stateful) {
        buf_printf(&b, "\"serviceName\":\"" STR_FMT "\",", STR_ARG(name));
    }
    buf_printf(&b,
               "\"template\":{\"metadata\":{\"labels\":{\"app\":\"" STR_FMT "\"}},\"spec\":{%s"
               "\"containers\":[{\"name\":\"main\",\"image\":\"sandbox/pause\"}]}}}}",
               STR_ARG(name), job ? "\"restartPolicy\":\"Never\"," : "");
    return world_file_add(f, v, arena_str(f->out, buf_str(&b)));
}

static int world_file_add_pdb(struct world_file *f, const struct jval *v)
{
    static const char *const names[] = { "name", "namespace", "minAvailable", "maxUnavailable" };
    struct str name;
    struct str namespace;
    int r = world_file_check_members(f, v, names, ARRAY_LEN(names), "a budget");
    if (r == 0) {
        r = world_file_read_names(f, v, &name, &namespace);
    }
    if (r != 0) {
        return r;
    }
    const struct jval *least = jval_get(v, STR("minAvailable"));
    const struct jval *most = jval_get(v, STR("maxUnavailable"));
    if ((least == NULL) == (most == NULL)) {
        return world_file_error(f, v, "want one of minAvailable and maxUnavailable");
    }
    CLEANUP(buf_done)
    struct buf b = { 0 };
    buf_printf(&b,
               "{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{"
               "\"name\":\"" STR_FMT "\",\"namespace\":\"" STR_FMT "\"},\"spec\":{\"selector\":{"
               "\"matchLabels\":{\"app\":\"" STR_FMT "\"}},\"%s\":",
               STR_ARG(name), STR_ARG(namespace), STR_ARG(name),
               least != NULL ? "minAvailable" : "maxUnavailable");
    struct json_writer writer = json_writer_on(&b);
    jw_val(&writer, least != NULL ? least : most);
    buf_add(&b, STR("}}"));
    return world_file_add(f, v, arena_str(f->out, buf_str(&b)));
}

static int world_file_read_lists(struct world_file *f, const struct jval *root)
{
    int r = 0;
    JVAL_EACH (jval_get(root, STR("namespaces")), v) {
        if (!world_file_name_valid(jval_str(v))) {
            return world_file_error(f, v, "want a namespace of small letters, digits and '-'");
        }
        r = world_file_add(
            f, v,
            arena_printf(f->out,
                         "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{"
                         "\"name\":\"" STR_FMT "\"}}",
                         STR_ARG(jval_str(v))));
        if (r != 0) {
            return r;
        }
    }
    JVAL_EACH (jval_get(root, STR("workloads")), v) {
        r = world_file_add_workload(f, v);
        if (r != 0) {
            return r;
        }
    }
    JVAL_EACH (jval_get(root, STR("budgets")), v) {
        r = world_file_add_pdb(f, v);
        if (r != 0) {
            return r;
        }
    }
    JVAL_EACH (jval_get(root, STR("objects")), v) {
        CLEANUP(buf_done)
        struct buf b = { 0 };
        struct json_writer writer = json_writer_on(&b);
        jw_val(&writer, v);
        r = world_file_add(f, v, arena_str(f->out, buf_str(&b)));
        if (r != 0) {
            return r;
        }
    }
    return 0;
}

static int world_file_read_heartbeats(struct world_file *f, const struct jval *v,
                                      struct world_config *c)
{
    static const char *const names[] = { "none", "status", "lease", "both" };
    for (size_t i = 0; v != NULL && i < ARRAY_LEN(names); i++) {
        if (str_eq(jval_str(v), str_from(names[i]))) {
            c->heartbeats = (enum world_heartbeats)i;
            return 0;
        }
    }
    return v == NULL ? 0 : world_file_error(f, v, "heartbeats: want none, status, lease or both");
}

int world_file_read(struct str yaml, struct arena *out, struct world_config *ret,
                    struct str **ret_objects, uint32_t *ret_objects_n, struct err *err)
{
    static const char *const names[] = { "nodes",     "zones",   "heartbeats",
                                         "seed",      "delays",  "namespaces",
                                         "workloads", "budgets", "objects" };
    struct world_file f = { .out = out, .err = err };
    int r = ydoc_parse(yaml, out, &f.doc, err);
    if (r != 0) {
        return r;
    }
    const struct jval *root = f.doc.root;
    struct world_config c = *ret;
    int64_t nodes = c.nodes;
    int64_t zones = c.zones;
    int64_t seed = (int64_t)c.seed;
    if (jval_kind(root) != JNULL) {
        r = world_file_check_members(&f, root, names, ARRAY_LEN(names), "a world");
        r = r != 0 ? r : world_file_read_number(&f, root, "nodes", WORLD_NODES_MAX, &nodes);
        r = r != 0 ? r : world_file_read_number(&f, root, "zones", WORLD_ZONES_MAX, &zones);
        r = r != 0 ? r : world_file_read_number(&f, root, "seed", INT64_MAX, &seed);
        r = r != 0 ? r : world_file_read_heartbeats(&f, jval_get(root, STR("heartbeats")), &c);
        r = r != 0 ? r : world_file_read_delays(&f, jval_get(root, STR("delays")), &c);
        r = r != 0 ? r : world_file_read_lists(&f, root);
    }
    if (r != 0) {
        return r;
    }
    c.nodes = (uint32_t)nodes;
    c.zones = (uint32_t)zones;
    c.seed = (uint64_t)seed;
    *ret = c;
    *ret_objects = f.objects;
    *ret_objects_n = f.n;
    return 0;
}

/* The path to POST an object to, from its kind; false: the world does not know the kind's plural,
 * or it has no kind. */
static bool world_file_object_path(struct world *w, const struct jval *object, struct str *ret)
{
    static const struct {
        const char *kind, *plural;
    } others[] = {
        { "ConfigMap", "configmaps" },
        { "Secret", "secrets" },
        { "ServiceAccount", "serviceaccounts" },
        { "Lease", "leases" },
        { "VolumeAttachment", "volumeattachments" },
        { "CustomResourceDefinition", "customresourcedefinitions" },
    };
    struct str kind = jval_str(jval_at(object, "kind"));
    struct str version = jval_str(jval_at(object, "apiVersion"));
    struct str namespace = jval_str(jval_at(object, "metadata.namespace"));
    struct str plural = STR("");
    for (int i = 0; i < WORLD_KINDS; i++) {
        plural = str_eq(world_kinds[i].kind, kind) ? world_kinds[i].plural : plural;
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        plural = str_eq(str_from(others[i].kind), kind) ? str_from(others[i].plural) : plural;
    }
    if (plural.n == 0) {
        /* The plural of other kinds is taken to be the lower-case kind and an "s". */
        char lower[80];
        if (kind.n == 0 || kind.n >= sizeof(lower) - 1) {
            return false;
        }
        for (size_t i = 0; i < kind.n; i++) {
            char c = kind.p[i];
            lower[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        }
        lower[kind.n] = 's';
        plural = arena_str(&w->tmp, (struct str){ lower, kind.n + 1 });
    }
    *ret = arena_printf(&w->tmp, "/%s/" STR_FMT "%s" STR_FMT "/" STR_FMT,
                        str_find_char(version, '/') == SIZE_MAX ? "api" : "apis", STR_ARG(version),
                        namespace.n > 0 ? "/namespaces/" : "", STR_ARG(namespace), STR_ARG(plural));
    return true;
}

int world_create_objects(struct world *w, const struct str *objects, uint32_t n, struct err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct jval *object;
        struct str path;
        struct str answer;
        int r = json_parse(objects[i], 0, &w->tmp, &object, err);
        if (r != 0) {
            return r;
        }
        if (!world_file_object_path(w, object, &path)) {
            return err_set(err, ERR_INVALID, "object %u: want apiVersion and kind", i + 1);
        }
        int status = world_send(w, "drydock", "POST", path, objects[i], &answer);
        if (status != 201) {
            const struct jval *why;
            struct err ignored = { 0 };
            bool read = json_parse(answer, 0, &w->tmp, &why, &ignored) == 0;
            struct str message = read ? jval_str(jval_at(why, "message")) : answer;
            return err_set(err, status == 409 ? ERR_CONFLICT : ERR_INVALID, "object %u: " STR_FMT,
                           i + 1, STR_ARG(message));
        }
        arena_reset(&w->tmp);
    }
    return 0;
}
