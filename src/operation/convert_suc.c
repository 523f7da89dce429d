/* Plans of system-upgrade-controller. */
#include "operation/convert_internal.h"

#include "base/duration.h"
#include "kinds/node_maintenance.h"

#define SECRETS_FOLDER "/run/system-upgrade/secrets/"
#define LONGEST STR("24h") /* where the original has no limit */

struct plan {
    struct convert_reader r;
    const struct jval *object;
    const struct jval *spec;
    struct str name;
};

static const struct jval *field(const struct plan *p, const char *path)
{
    const struct jval *v = jval_at(p->spec, path);
    return jval_kind(v) == JNULL ? NULL : v;
}

/* Notes members of an object that a Plan does not have. */
static void only(const struct plan *p, const struct jval *object, const char *where,
                 const char *const *names, size_t n)
{
    JVAL_EACH (object, member) {
        bool known = false;
        for (size_t i = 0; i < n; i++) {
            known = known || str_eq(jval_key(member), str_from(names[i]));
        }
        if (!known) {
            convert_note(&p->r, CONVERT_LOST, member,
                         arena_printf(p->r.memory, "%s." STR_FMT, where, STR_ARG(jval_key(member))),
                         "a Plan has no such field");
        }
    }
}

static int want(const struct plan *p, const struct jval *v, enum jkind kind, const char *where)
{
    return v == NULL || jval_kind(v) == kind
               ? 0
               : convert_wrong(&p->r, v, "%s: found %s, want %s", where, jkind_name(jval_kind(v)),
                               jkind_name(kind));
}

static int fields_check(const struct plan *p)
{
    static const char *const names[] = {
        "concurrency",
        "jobActiveDeadlineSecs",
        "nodeSelector",
        "serviceAccountName",
        "channel",
        "version",
        "secrets",
        "tolerations",
        "exclusive",
        "window",
        "prepare",
        "upgrade",
        "cordon",
        "drain",
        "imagePullSecrets",
        "postCompleteDelay",
        "priorityClassName",
        "postCompleteLabels",
    };
    static const struct {
        const char *name;
        enum jkind kind;
    } kinds[] = {
        { "concurrency", JNUM },       { "jobActiveDeadlineSecs", JNUM },
        { "nodeSelector", JOBJ },      { "serviceAccountName", JSTR },
        { "channel", JSTR },           { "version", JSTR },
        { "secrets", JARR },           { "tolerations", JARR },
        { "exclusive", JBOOL },        { "window", JOBJ },
        { "prepare", JOBJ },           { "upgrade", JOBJ },
        { "cordon", JBOOL },           { "drain", JOBJ },
        { "imagePullSecrets", JARR },  { "postCompleteDelay", JSTR },
        { "priorityClassName", JSTR }, { "postCompleteLabels", JOBJ },
    };
    if (jval_kind(p->spec) != JOBJ) {
        return convert_wrong(&p->r, p->object, "Plan '" STR_FMT "': want a spec", STR_ARG(p->name));
    }
    only(p, p->spec, "spec", names, ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct str where = arena_printf(p->r.memory, "spec.%s", kinds[i].name);
        int result = want(p, field(p, kinds[i].name), kinds[i].kind, where.p);
        if (result < 0) {
            return result;
        }
    }
    return 0;
}

/* ── Where and how many ──────────────────────────────────────────────────────────────────────── */

static int series_set(struct plan *p)
{
    struct arena *m = p->r.memory;
    const struct jval *selector = field(p, "nodeSelector");
    struct tree *exclude = tree_arr(m);
    struct tree *term = tree_obj(m);
    struct tree *labels = tree_obj(m);
    if (selector == NULL) {
        convert_set(&p->r, "suspend", tree_bool(m, true));
        convert_note(&p->r, CONVERT_LOOK, p->spec, STR("spec.nodeSelector"),
                     "a Plan without it selects no node; a NodeMaintenance without nodeSeries "
                     "selects all, so it is suspended");
        return 0;
    }
    struct tree *own = convert_selector_object(&p->r, selector, STR("spec.nodeSelector"));
    if (own == NULL) {
        return -ERR_INVALID;
    }
    if (own->n > 0) {
        convert_set(&p->r, "nodeSeries.selector", own);
    }
    /* Nodes opt out by this label. */
    struct str key = arena_printf(m, "plan.upgrade.cattle.io/" STR_FMT, STR_ARG(p->name));
    tree_set(m, labels, key, tree_str(m, STR("disabled")));
    tree_set_at(m, term, "selector.matchLabels", labels);
    tree_add(exclude, term);
    convert_set(&p->r, "nodeSeries.exclude", exclude);
    convert_note(&p->r, CONVERT_LOOK, selector, STR("spec.nodeSelector"),
                 "nodes on which the Plan is done run it once more: their labels are not read");
    return 0;
}

static int rollout_set(struct plan *p)
{
    struct arena *m = p->r.memory;
    const struct jval *at = field(p, "concurrency");
    const struct jval *delay = field(p, "postCompleteDelay");
    int64_t n = 0;
    int64_t ns = 0;
    struct err why = { 0 };
    if (at != NULL && (!jval_i64(at, &n) || n < 0 || n > 100000)) {
        return convert_wrong(&p->r, at, "spec.concurrency: want a whole number from 0 to 100000");
    }
    if (n == 0) {
        convert_set(&p->r, "suspend", tree_bool(m, true));
        convert_note(&p->r, CONVERT_LOOK, at != NULL ? at : p->spec, STR("spec.concurrency"),
                     "a Plan with 0, or without it, starts nothing: it is suspended");
    }
    convert_set_at_once(&p->r, at, STR("spec.concurrency"), n);
    if (delay != NULL && (duration_parse(jval_str(delay), &ns, &why) < 0 || ns < 0)) {
        return convert_wrong(&p->r, delay,
                             "spec.postCompleteDelay '" STR_FMT "': want a duration such as 30s",
                             STR_ARG(jval_str(delay)));
    }
    if (ns > 0) {
        convert_set_text(&p->r, "rollout.paceAfterNode", convert_duration(ns, m));
    }
    if (jval_bool(field(p, "exclusive"), false)) {
        convert_note(&p->r, CONVERT_LOST, field(p, "exclusive"), STR("spec.exclusive"),
                     "payloads of one visit run one after the other in any case; for one node at "
                     "a time in the whole cluster write rollout.exclusiveGroup");
    }
    return 0;
}

static int window_set(struct plan *p)
{
    static const char *const names[] = { "days", "startTime", "endTime", "timeZone" };
    const struct jval *window = field(p, "window");
    if (window == NULL) {
        return 0;
    }
    only(p, window, "spec.window", names, ARRAY_LEN(names));
    struct convert_hours h = {
        .start = jval_str(jval_get(window, STR("startTime"))),
        .end = jval_str(jval_get(window, STR("endTime"))),
        .zone = jval_str(jval_get(window, STR("timeZone"))),
        .at = window,
        .about = STR("spec.window"),
    };
    JVAL_EACH (jval_get(window, STR("days")), day) {
        struct str text =
            jval_kind(day) == JNUM ? (struct str){ .p = day->p, .n = day->n } : jval_str(day);
        int result = convert_day(&p->r, day, STR("spec.window.days"), text, &h.days);
        if (result < 0) {
            return result;
        }
    }
    return convert_window(&p->r, &h);
}

/* ── Disruption ──────────────────────────────────────────────────────────────────────────────── */

/* A text for Go, or nanoseconds. */
static int drain_timeout_set(struct plan *p, const struct jval *timeout, struct tree *to)
{
    int64_t ns = 0;
    struct err why = { 0 };
    bool good = timeout == NULL || jval_kind(timeout) == JNULL || jval_i64(timeout, &ns) ||
                duration_parse(jval_str(timeout), &ns, &why) == 0;
    if (!good || ns < 0) {
        return convert_wrong(&p->r, timeout,
                             "spec.drain.timeout: want a duration such as 10m, or nanoseconds");
    }
    if (ns > 0) {
        tree_set(p->r.memory, to, STR("timeout"),
                 tree_str(p->r.memory, convert_duration(ns, p->r.memory)));
    } else {
        convert_note(&p->r, CONVERT_LOOK, timeout != NULL ? timeout : p->spec,
                     STR("spec.drain.timeout"),
                     "without it a Plan waits for ever; now the drain ends after 15m, and "
                     "disruption.drain.timeout gives it more");
    }
    return 0;
}

static int drain_fields_set(struct plan *p, const struct jval *drain, struct tree *to)
{
    struct arena *m = p->r.memory;
    const struct jval *grace = jval_get(drain, STR("gracePeriod"));
    const struct jval *pods = jval_get(drain, STR("podSelector"));
    int64_t seconds = -1;
    if (!jval_bool(jval_get(drain, STR("ignoreDaemonSets")), true)) {
        tree_set(m, to, STR("ignoreDaemonSets"), tree_bool(m, false));
    }
    if (!jval_bool(jval_get(drain, STR("deleteLocalData")), true) ||
        !jval_bool(jval_get(drain, STR("deleteEmptydirData")), true)) {
        tree_set(m, to, STR("deleteEmptyDirData"), tree_bool(m, false));
    }
    if (jval_bool(jval_get(drain, STR("force")), false)) {
        tree_set(m, to, STR("unmanagedPods"), tree_str(m, STR("Delete")));
    }
    if (jval_kind(grace) != JNULL &&
        (!jval_i64(grace, &seconds) || seconds < -1 || seconds > INT32_MAX)) {
        return convert_wrong(&p->r, grace, "spec.drain.gracePeriod: want seconds");
    }
    if (seconds >= 0) {
        tree_set(m, to, STR("gracePeriod"), tree_str(m, convert_duration(seconds * 1000000000, m)));
    }
    if (jval_kind(pods) != JNULL) {
        struct tree *selector = convert_selector_object(&p->r, pods, STR("spec.drain.podSelector"));
        if (selector == NULL) {
            return -ERR_INVALID;
        }
        if (selector->n > 0) {
            tree_set(m, to, STR("podSelector"), selector);
        }
    }
    return 0;
}

static int disruption_set(struct plan *p)
{
    static const char *const names[] = {
        "timeout",          "gracePeriod", "deleteLocalData", "deleteEmptydirData",
        "ignoreDaemonSets", "force",       "disableEviction", "skipWaitForDeleteTimeout",
        "podSelector",
    };
    struct arena *m = p->r.memory;
    const struct jval *drain = field(p, "drain");
    struct tree *to = tree_obj(m);
    int64_t skip = 0;
    if (drain == NULL) {
        bool cordon = jval_bool(field(p, "cordon"), false);
        convert_set_text(&p->r, "disruption.cordon", cordon ? STR("Always") : STR("Never"));
        convert_set(&p->r, "disruption.drain.enabled", tree_bool(m, false));
        return 0;
    }
    only(p, drain, "spec.drain", names, ARRAY_LEN(names));
    int result = drain_timeout_set(p, jval_get(drain, STR("timeout")), to);
    if (result == 0) {
        result = drain_fields_set(p, drain, to);
    }
    if (jval_bool(jval_get(drain, STR("disableEviction")), false)) {
        convert_note(&p->r, CONVERT_LOST, jval_get(drain, STR("disableEviction")),
                     STR("spec.drain.disableEviction"),
                     "pods are evicted, and a PodDisruptionBudget is waited for");
    }
    if (jval_i64(jval_get(drain, STR("skipWaitForDeleteTimeout")), &skip) && skip > 0) {
        convert_note(&p->r, CONVERT_LOST, jval_get(drain, STR("skipWaitForDeleteTimeout")),
                     STR("spec.drain.skipWaitForDeleteTimeout"),
                     "every pod is waited for, until the drain's timeout");
    }
    if (to->n == 0) {
        tree_set(m, to, STR("enabled"), tree_bool(m, true));
    }
    convert_set(&p->r, "disruption.drain", to);
    return result;
}

static void labels_set(struct plan *p)
{
    struct arena *m = p->r.memory;
    struct tree *labels = tree_obj(m);
    JVAL_EACH (field(p, "postCompleteLabels"), label) {
        struct str key = jval_key(label);
        bool foreign = node_maintenance_taken_label(key) != NULL;
        if (foreign || str_contains(jval_str(label), STR("$("))) {
            convert_note(&p->r, CONVERT_LOST, label,
                         arena_printf(m, "spec.postCompleteLabels." STR_FMT, STR_ARG(key)), "%s",
                         foreign
                             ? "this label may not be set this way"
                             : "values cannot hold the version or the hash; the object's status "
                               "has both");
        } else {
            tree_set(m, labels, key, tree_str(m, jval_str(label)));
        }
    }
    if (labels->n > 0) {
        convert_set(&p->r, "disruption.nodeLabels.after", labels);
    }
}

/* ── Payloads ────────────────────────────────────────────────────────────────────────────────── */

/* "rancher/k3s-upgrade" has the version for a tag. */
static struct str image_of(const struct plan *p, struct str image)
{
    size_t slash = str_rfind_char(image, '/');
    struct str last = slash == SIZE_MAX ? image : str_sub(image, slash, image.n - slash);
    bool tagged = str_find_char(last, ':') != SIZE_MAX || str_find_char(image, '@') != SIZE_MAX;
    struct str plain = convert_literal(image, p->r.memory);
    return tagged ? plain : arena_printf(p->r.memory, STR_FMT ":${versionTag}", STR_ARG(plain));
}

/* A copy in which no text is expanded. */
static struct tree *literal(struct arena *m, const struct jval *v)
{
    struct tree *result = NULL;
    switch (jval_kind(v)) {
    case JSTR:
        return tree_str(m, convert_literal(jval_str(v), m));
    case JARR:
        result = tree_arr(m);
        JVAL_EACH (v, item) {
            tree_add(result, literal(m, item));
        }
        return result;
    case JOBJ:
        result = tree_obj(m);
        JVAL_EACH (v, item) {
            tree_set(m, result, jval_key(item), literal(m, item));
        }
        return result;
    case JNULL:
    case JBOOL:
    case JNUM:
    default:
        return tree_from(m, v);
    }
}

static void env_set(struct plan *p, const struct jval *container, const char *where,
                    struct tree *job)
{
    struct arena *m = p->r.memory;
    struct tree *env = tree_arr(m);
    JVAL_EACH (jval_get(container, STR("envs")), entry) {
        struct str name = jval_str(jval_get(entry, STR("name")));
        if (str_starts(name, STR("DD_")) || str_starts(name, STR("SYSTEM_UPGRADE_"))) {
            convert_note(&p->r, CONVERT_LOST, entry,
                         arena_printf(m, "%s.envs." STR_FMT, where, STR_ARG(name)),
                         "names that begin with DD_ or SYSTEM_UPGRADE_ are set by drydock");
        } else {
            tree_add(env, literal(m, entry));
        }
    }
    if (env->n > 0) {
        tree_set(m, job, STR("env"), env);
    }
}

static int volumes_set(struct plan *p, const struct jval *container, const char *where,
                       struct tree *job)
{
    struct arena *m = p->r.memory;
    struct tree *volumes = tree_arr(m);
    JVAL_EACH (jval_get(container, STR("volumes")), v) {
        struct tree *volume = tree_obj(m);
        static const char *const pairs[][2] = { { "name", "name" },
                                                { "source", "hostPath" },
                                                { "destination", "mountPath" } };
        for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
            struct str text = jval_str(jval_get(v, str_from(pairs[i][0])));
            if (text.n == 0) {
                return convert_wrong(&p->r, v, "%s.volumes: want name, source and destination",
                                     where);
            }
            tree_set(m, volume, str_from(pairs[i][1]), tree_str(m, convert_literal(text, m)));
        }
        tree_add(volumes, volume);
    }
    if (volumes->n > 0) {
        tree_set(m, job, STR("volumes"), volumes);
    }
    return 0;
}

static int secrets_set(struct plan *p, struct tree *job)
{
    struct arena *m = p->r.memory;
    struct tree *secrets = tree_arr(m);
    JVAL_EACH (field(p, "secrets"), s) {
        struct str name = jval_str(jval_get(s, STR("name")));
        struct str path = jval_str(jval_get(s, STR("path")));
        bool ignore = jval_bool(jval_get(s, STR("ignoreUpdates")), false);
        struct tree *secret = tree_obj(m);
        bool twice = false;
        if (name.n == 0) {
            return convert_wrong(&p->r, s, "spec.secrets: want a name");
        }
        TREE_EACH (secrets, other) {
            twice = twice || str_eq(tree_text_at(other, "name"), name);
        }
        if (twice) {
            convert_note(&p->r, CONVERT_LOST, s, STR("spec.secrets"),
                         "the Secret '" STR_FMT "' is mounted once", STR_ARG(name));
            continue;
        }
        path = path.n == 0        ? arena_printf(m, SECRETS_FOLDER STR_FMT, STR_ARG(name))
               : path.p[0] != '/' ? arena_printf(m, SECRETS_FOLDER STR_FMT, STR_ARG(path))
                                  : path;
        tree_set(m, secret, STR("name"), tree_str(m, name));
        tree_set(m, secret, STR("mountPath"), tree_str(m, convert_literal(path, m)));
        if (jval_kind(jval_get(s, STR("defaultMode"))) == JNUM) {
            tree_set(m, secret, STR("defaultMode"), tree_from(m, jval_get(s, STR("defaultMode"))));
        }
        if (ignore) {
            tree_set(m, secret, STR("ignoreUpdates"), tree_bool(m, true));
            tree_set(m, secret, STR("optional"), tree_bool(m, true));
        }
        tree_add(secrets, secret);
        convert_note(&p->r, CONVERT_LOOK, s, STR("spec.secrets"),
                     "copy the Secret '" STR_FMT "' into drydock-jobs", STR_ARG(name));
    }
    if (secrets->n > 0) {
        tree_set(m, job, STR("secrets"), secrets);
    }
    return 0;
}

static void metadata_set(struct plan *p, struct tree *job)
{
    static const char *const pairs[][2] = { { "labels", "podLabels" },
                                            { "annotations", "podAnnotations" } };
    struct arena *m = p->r.memory;
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        struct tree *to = tree_obj(m);
        JVAL_EACH (jval_get(jval_get(p->object, STR("metadata")), str_from(pairs[i][0])), entry) {
            struct str key = jval_key(entry);
            if (!str_contains(key, STR("cattle.io/")) &&
                !str_contains(key, STR("kubectl.kubernetes.io/"))) {
                tree_set(m, to, key, tree_str(m, convert_literal(jval_str(entry), m)));
            } else if (str_contains(key, STR("cattle.io/digest"))) {
                convert_note(&p->r, CONVERT_LOST, entry, key,
                             "the whole payload is part of the revision: any change runs again");
            }
        }
        if (to->n > 0) {
            tree_set(m, job, str_from(pairs[i][1]), to);
        }
    }
}

/* What belongs to the pod, and so to both containers. */
static int pod_set(struct plan *p, struct tree *job)
{
    struct arena *m = p->r.memory;
    const struct jval *account = field(p, "serviceAccountName");
    const struct jval *tolerations = field(p, "tolerations");
    const struct jval *pulls = field(p, "imagePullSecrets");
    const struct jval *priority = field(p, "priorityClassName");
    if (jval_str(account).n > 0) {
        tree_set(m, job, STR("serviceAccountName"), tree_from(m, account));
        convert_note(&p->r, CONVERT_LOOK, account, STR("spec.serviceAccountName"),
                     "make the account '" STR_FMT "' in drydock-jobs, with the label " KEYS_OWN
                     "job-account=true; payloads that do not talk to the API server "
                     "need none",
                     STR_ARG(jval_str(account)));
    }
    if (tolerations != NULL && tolerations->n > 0) {
        struct tree *list = tree_arr(m);
        struct tree *cordoned = tree_obj(m);
        tree_set(m, cordoned, STR("key"), tree_str(m, STR("node.kubernetes.io/unschedulable")));
        tree_set(m, cordoned, STR("operator"), tree_str(m, STR("Exists")));
        tree_set(m, cordoned, STR("effect"), tree_str(m, STR("NoSchedule")));
        tree_add(list, cordoned);
        JVAL_EACH (tolerations, t) {
            tree_add(list, literal(m, t));
        }
        tree_set(m, job, STR("tolerations"), list);
    }
    if (pulls != NULL && pulls->n > 0) {
        tree_set(m, job, STR("imagePullSecrets"), literal(m, pulls));
        convert_note(&p->r, CONVERT_LOOK, pulls, STR("spec.imagePullSecrets"),
                     "copy these Secrets into drydock-jobs");
    }
    if (jval_str(priority).n > 0) {
        tree_set(m, job, STR("priorityClassName"), tree_from(m, priority));
    }
    metadata_set(p, job);
    return secrets_set(p, job);
}

static int job_of(struct plan *p, const struct jval *container, const char *where,
                  struct tree **ret)
{
    static const char *const names[] = { "image",   "command", "args",           "envs",
                                         "envFrom", "volumes", "securityContext" };
    static const char *const copied[] = { "command", "args", "envFrom", "securityContext" };
    struct arena *m = p->r.memory;
    struct tree *job = tree_obj(m);
    struct str image = jval_str(jval_get(container, STR("image")));
    if (image.n == 0) {
        return convert_wrong(&p->r, container, "%s.image: want the name of an image", where);
    }
    only(p, container, where, names, ARRAY_LEN(names));
    tree_set(m, job, STR("image"), tree_str(m, image_of(p, image)));
    for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
        const struct jval *v = jval_get(container, str_from(copied[i]));
        if (jval_kind(v) != JNULL && v->n > 0) {
            tree_set(m, job, str_from(copied[i]), literal(m, v));
        }
    }
    env_set(p, container, where, job);
    int result = volumes_set(p, container, where, job);
    if (result == 0) {
        result = pod_set(p, job);
    }
    *ret = job;
    return result;
}

/* The image of k3s and rke2 waits for the servers' Plan this way; a dependency does it here. */
static bool waits_for_plan(const struct jval *prepare, struct str *ret)
{
    const struct jval *args = jval_get(prepare, STR("args"));
    const struct jval *first = jval_first(args);
    if (jval_kind(args) != JARR || args->n != 2 || !str_eq(jval_str(first), STR("prepare"))) {
        return false;
    }
    *ret = jval_str(jval_next(args, first));
    return ret->n > 0 && ret->n <= 52;
}

static int version_set(struct plan *p, struct tree *operation)
{
    struct arena *m = p->r.memory;
    struct str version = jval_str(field(p, "version"));
    const struct jval *channel = field(p, "channel");
    struct str url = jval_str(channel);
    if (version.n == 0 && url.n == 0) {
        return convert_wrong(&p->r, p->spec,
                             "Plan '" STR_FMT "': want spec.version or spec.channel",
                             STR_ARG(p->name));
    }
    if (version.n > 0) {
        tree_set_at(m, operation, "version.value", tree_str(m, version));
        if (url.n > 0) {
            convert_note(&p->r, CONVERT_LOST, channel, STR("spec.channel"),
                         "the version is given, and wins, as before");
        }
        return 0;
    }
    if (!str_starts(url, STR("http://")) && !str_starts(url, STR("https://"))) {
        return convert_wrong(
            &p->r, channel,
            "spec.channel '" STR_FMT
            "': want a URL such as https://update.k3s.io/v1-release/channels/stable",
            STR_ARG(url));
    }
    tree_set_at(m, operation, "version.channel", tree_str(m, url));
    convert_note(&p->r, CONVERT_LOOK, channel, STR("spec.channel"),
                 "start the controller with --allow-url=" STR_FMT, STR_ARG(url));
    convert_not_yet(&p->r, channel, STR("spec.channel"), "version.channel");
    return 0;
}

static struct tree *operation_new(struct plan *p, const char *name)
{
    struct tree *o = tree_obj(p->r.memory);
    tree_set(p->r.memory, o, STR("name"), tree_str(p->r.memory, str_from(name)));
    tree_set(p->r.memory, o, STR("type"), tree_str(p->r.memory, STR("one-shot")));
    return o;
}

static int timeout_set(struct plan *p, struct tree *operation)
{
    const struct jval *deadline = field(p, "jobActiveDeadlineSecs");
    int64_t seconds = 0;
    if (deadline == NULL) {
        return 0;
    }
    if (!jval_i64(deadline, &seconds) || seconds < 0 || seconds > INT32_MAX) {
        return convert_wrong(&p->r, deadline,
                             "spec.jobActiveDeadlineSecs: want seconds, from 0 on");
    }
    tree_set(p->r.memory, operation, STR("timeout"),
             tree_str(p->r.memory,
                      seconds > 0 ? convert_duration(seconds * 1000000000, p->r.memory) : LONGEST));
    if (seconds == 0) {
        convert_note(&p->r, CONVERT_LOOK, deadline, STR("spec.jobActiveDeadlineSecs"),
                     "0 is no limit there; every run has one, now 24h");
    }
    return 0;
}

static int prepare_set(struct plan *p, struct tree *operations, struct tree *upgrade)
{
    struct arena *m = p->r.memory;
    const struct jval *prepare = field(p, "prepare");
    struct str other;
    struct tree *job = NULL;
    if (prepare == NULL) {
        return 0;
    }
    if (waits_for_plan(prepare, &other)) {
        struct tree *list = tree_arr(m);
        struct tree *one = tree_obj(m);
        tree_set(m, one, STR("name"), tree_str(m, other));
        tree_add(list, one);
        convert_set(&p->r, "dependsOn", list);
        convert_note(&p->r, CONVERT_LOOK, prepare, STR("spec.prepare"),
                     "it waits for the Plan '" STR_FMT "': dependsOn does that", STR_ARG(other));
        return 0;
    }
    int result = job_of(p, prepare, "spec.prepare", &job);
    if (result < 0) {
        return result;
    }
    struct tree *first = operation_new(p, "prepare");
    struct tree *after = tree_arr(m);
    tree_set(m, first, STR("version"), tree_clone(m, tree_get(upgrade, STR("version"))));
    result = timeout_set(p, first);
    tree_set(m, first, STR("job"), job);
    tree_add(operations, first);
    tree_add(after, tree_str(m, STR("prepare")));
    tree_set(m, upgrade, STR("after"), after);
    convert_note(&p->r, CONVERT_LOOK, prepare, STR("spec.prepare"),
                 "it is an operation of its own now and runs in the visit, after the drain; what "
                 "only looks whether there is work belongs into preflight");
    return result;
}

static int operations_set(struct plan *p)
{
    struct arena *m = p->r.memory;
    struct tree *operations = tree_arr(m);
    struct tree *upgrade = operation_new(p, "upgrade");
    struct tree *job = NULL;
    const struct jval *container = field(p, "upgrade");
    if (container == NULL) {
        return convert_wrong(&p->r, p->spec, "Plan '" STR_FMT "': want spec.upgrade",
                             STR_ARG(p->name));
    }
    int result = version_set(p, upgrade);
    if (result == 0) {
        result = timeout_set(p, upgrade);
    }
    if (result == 0) {
        result = prepare_set(p, operations, upgrade);
    }
    if (result == 0) {
        result = job_of(p, container, "spec.upgrade", &job);
    }
    if (result == 0) {
        tree_set(m, upgrade, STR("job"), job);
        tree_add(operations, upgrade);
        convert_set(&p->r, "operations", operations);
    }
    return result;
}

/* ── The Plan ────────────────────────────────────────────────────────────────────────────────── */

static int plan_read(const struct ydoc *doc, const struct jval *object, struct convert_list *list,
                     struct arena *memory, struct err *err)
{
    struct plan p = {
        .r = { .doc = doc, .list = list, .memory = memory, .err = err },
        .object = object,
        .spec = jval_get(object, STR("spec")),
        .name = jval_str(jval_at(object, "metadata.name")),
    };
    if (!str_eq(jval_str(jval_get(object, STR("kind"))), STR("Plan")) ||
        !str_starts(jval_str(jval_get(object, STR("apiVersion"))), STR("upgrade.cattle.io/"))) {
        return -ERR_NOTFOUND;
    }
    int result = convert_begin(list, memory, STR("Plan"), doc, object, &p.r.c, err);
    if (result < 0) {
        return result;
    }
    int (*const steps[])(struct plan *) = { window_set, series_set, rollout_set, disruption_set,
                                            operations_set };
    result = fields_check(&p);
    for (size_t i = 0; result == 0 && i < ARRAY_LEN(steps); i++) {
        result = steps[i](&p);
    }
    if (result == 0) {
        labels_set(&p);
        result = convert_finish(&p.r, object);
    }
    return result;
}

int convert_suc(struct str text, struct arena *memory, struct convert_list *list, struct err *err)
{
    return convert_each(text, plan_read,
                        "there is no Plan of upgrade.cattle.io: want the output of 'kubectl get "
                        "plans.upgrade.cattle.io -A -o yaml'",
                        memory, list, err);
}
