#include "operation/run_job.h"

#include "base/hex.h"
#include "format/digest.h"
#include "format/json_writer.h"
#include "kinds/keys.h"

#define NAME_HASH_BYTES 6u /* 12 digits */
#define LABEL_HASH_BYTES 16u
#define SPEC_HASH_BYTES 8u
#define REVISION_DIGITS 16u
#define HOST_MOUNT STR("/host")
#define SCRIPT_VARIABLE "DD_SCRIPT"
#define MESSAGE_OUTPUT_MAX 256u
/* drydock run-on-host ends its script itself: after 30 s, or when a package manager is done. */
#define SCRIPT_GRACE_S 660

static struct str hash_text(struct str bytes, size_t n, struct arena *out)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    unsigned char hash[SHA256_BYTES];
    sha256(bytes, hash);
    hex_add(&text, hash, n, /* upper= */ false);
    return arena_str(out, buf_str(&text));
}

struct str run_job_name(const struct run_job_spec *spec, struct arena *out)
{
    struct str id = arena_printf(out, STR_FMT "\n" STR_FMT "\n" STR_FMT "\n" STR_FMT "\n%u",
                                 STR_ARG(spec->machine_uid), STR_ARG(spec->maintenance_uid),
                                 STR_ARG(spec->operation), STR_ARG(spec->revision), spec->attempt);
    if (spec->visit.n > 0 || spec->preflight) {
        id = arena_printf(out, STR_FMT "\n" STR_FMT "\n%d", STR_ARG(id), STR_ARG(spec->visit),
                          spec->probe       ? 2
                          : spec->preflight ? 1
                                            : 0);
    }
    struct str hash = hash_text(id, NAME_HASH_BYTES, out);
    return arena_printf(out, "dd-" STR_FMT "-" STR_FMT, STR_ARG(spec->operation), STR_ARG(hash));
}

struct str run_job_reboot_name(const struct run_job_reboot *reboot, struct arena *out)
{
    struct str hash = hash_text(reboot->visit, NAME_HASH_BYTES, out);
    return arena_printf(out, "dd-reboot-" STR_FMT, STR_ARG(hash));
}

/* ── environment ───────────────────────────────────────────────────────────────────────────── */

static void env_add(struct json_writer *w, struct str name, struct str value)
{
    jw_obj(w);
    jw_pair(w, "name", name);
    jw_pair(w, "value", value);
    jw_obj_end(w);
}

static void env_add_from(struct json_writer *w, struct str name, const char *source,
                         struct str object, struct str key)
{
    jw_obj(w);
    jw_pair(w, "name", name);
    jw_key(w, STR("valueFrom"));
    jw_obj(w);
    jw_key(w, str_from(source));
    jw_obj(w);
    jw_pair(w, "name", object);
    jw_pair(w, "key", key);
    jw_obj_end(w);
    jw_obj_end(w);
    jw_obj_end(w);
}

/* The names that images made for system-upgrade-controller read stand beside our own. */
static void env_add_own(const struct run_job_spec *spec, struct json_writer *w)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    env_add(w, STR("DD_MAINTENANCE"), spec->maintenance);
    env_add(w, STR("DD_OPERATION"), spec->operation);
    env_add(w, STR("DD_REVISION"), spec->revision);
    env_add(w, STR("DD_VERSION"), spec->version);
    env_add(w, STR("DD_MACHINE"), spec->machine);
    env_add(w, STR("DD_ATTEMPT"), arena_printf(&tmp, "%u", spec->attempt));
    env_add(w, STR("SYSTEM_UPGRADE_NODE_NAME"), spec->machine);
    env_add(w, STR("SYSTEM_UPGRADE_PLAN_NAME"), spec->maintenance);
    env_add(w, STR("SYSTEM_UPGRADE_PLAN_LATEST_HASH"), spec->revision);
    env_add(w, STR("SYSTEM_UPGRADE_PLAN_LATEST_VERSION"), spec->version);
    for (uint32_t i = 0; i < spec->parameter_n; i++) {
        const struct run_job_parameter *p = &spec->parameters[i];
        if (p->secret.n > 0) {
            env_add_from(w, p->name, "secretKeyRef", p->secret, p->secret_key);
        } else {
            env_add(w, p->name, p->value);
        }
    }
}

static int env_check(const struct jval *env, struct err *err)
{
    uint32_t i = 0;
    JVAL_EACH (env, entry) {
        struct str name = jval_str(jval_get(entry, STR("name")));
        if (str_starts(name, STR("DD_")) || str_starts(name, STR("SYSTEM_UPGRADE_"))) {
            return err_set(err, ERR_INVALID,
                           "job.env[%u].name '" STR_FMT "': names that begin with DD_ or "
                           "SYSTEM_UPGRADE_ are set by drydock; choose another one",
                           i, STR_ARG(name));
        }
        i++;
    }
    return 0;
}

/* "#!/bin/bash" before a script that names no interpreter, where the payload does. */
static struct str script_text(const struct jval *payload, struct arena *out)
{
    struct str script = jval_str(jval_get(payload, STR("script")));
    struct str shell = jval_str(jval_get(payload, STR("shell")));
    if (shell.n == 0 || str_starts(script, STR("#!"))) {
        return script;
    }
    return arena_printf(out, "#!" STR_FMT "\n" STR_FMT, STR_ARG(shell), STR_ARG(script));
}

static void container_add_env(const struct run_job_spec *spec, struct json_writer *w)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    jw_key(w, STR("env"));
    jw_arr(w);
    env_add_own(spec, w);
    JVAL_EACH (jval_get(spec->payload, STR("env")), entry) {
        jw_val(w, entry);
    }
    if (jval_get(spec->payload, STR("script")) != NULL) {
        env_add(w, STR(SCRIPT_VARIABLE), script_text(spec->payload, &tmp));
    } else if (jval_get(spec->payload, STR("scriptFrom")) != NULL) {
        env_add_from(w, STR(SCRIPT_VARIABLE), "configMapKeyRef",
                     jval_str(jval_at(spec->payload, "scriptFrom.configMap")),
                     jval_str(jval_at(spec->payload, "scriptFrom.key")));
    }
    jw_arr_end(w);
}

/* ── volumes ───────────────────────────────────────────────────────────────────────────────── */

/* Each of these lists of the payload becomes volumes and mounts of the same names. */
static const struct volume_list {
    const char *list;
    const char *prefix; /* of the volumes' names */
    const char *source; /* the volume's field; NULL: a path of the machine */
    const char *name;   /* of the source's field that has the object's name */
} volume_lists[] = {
    { "volumes", "volume", NULL, NULL },
    { "secrets", "secret", "secret", "secretName" },
    { "configMaps", "config-map", "configMap", "name" },
};

static bool spec_mounts_host(const struct run_job_spec *spec)
{
    return jval_get(spec->payload, STR("image")) != NULL && !spec->no_host;
}

static struct str payload_host_mount(const struct jval *payload)
{
    struct str path = jval_str(jval_at(payload, "host.rootMount"));
    return path.n > 0 ? path : HOST_MOUNT;
}

static void volume_add_source(const struct volume_list *list, const struct jval *entry,
                              struct json_writer *w)
{
    int64_t mode = 256; /* 0400 */
    if (list->source == NULL) {
        jw_key(w, STR("hostPath"));
        jw_obj(w);
        jw_pair(w, "path", jval_str(jval_get(entry, STR("hostPath"))));
        jw_obj_end(w);
        return;
    }
    (void)jval_i64(jval_get(entry, STR("defaultMode")), &mode); /* otherwise as above */
    jw_key(w, str_from(list->source));
    jw_obj(w);
    jw_pair(w, list->name, jval_str(jval_get(entry, STR("name"))));
    jw_pair_i64(w, "defaultMode", mode);
    jw_pair_bool(w, "optional", jval_bool(jval_get(entry, STR("optional")), false));
    jw_obj_end(w);
}

/* The volumes of the pod, or their mounts in the container. */
static void volumes_add(const struct run_job_spec *spec, bool mounts, struct json_writer *w)
{
    const struct jval *payload = spec->payload;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    jw_key(w, mounts ? STR("volumeMounts") : STR("volumes"));
    jw_arr(w);
    if (spec_mounts_host(spec)) {
        jw_obj(w);
        jw_pair(w, "name", STR("host"));
        if (mounts) {
            jw_pair(w, "mountPath", payload_host_mount(payload));
            jw_pair(w, "mountPropagation", STR("HostToContainer"));
        } else {
            jw_key(w, STR("hostPath"));
            jw_obj(w);
            jw_pair(w, "path", STR("/"));
            jw_obj_end(w);
        }
        jw_obj_end(w);
    }
    for (size_t i = 0; i < ARRAY_LEN(volume_lists); i++) {
        const struct volume_list *list = &volume_lists[i];
        uint32_t n = 0;
        JVAL_EACH (jval_get(payload, str_from(list->list)), entry) {
            jw_obj(w);
            jw_pair(w, "name", arena_printf(&tmp, "%s-%u", list->prefix, n++));
            if (mounts) {
                jw_pair(w, "mountPath", jval_str(jval_get(entry, STR("mountPath"))));
                jw_pair_bool(w, "readOnly",
                             list->source != NULL ||
                                 jval_bool(jval_get(entry, STR("readOnly")), false));
            } else {
                volume_add_source(list, entry, w);
            }
            jw_obj_end(w);
        }
    }
    jw_arr_end(w);
}

/* ── the pod ───────────────────────────────────────────────────────────────────────────────── */

static void add_field(const struct jval *payload, const char *key, struct json_writer *w)
{
    const struct jval *value = jval_get(payload, str_from(key));
    if (value != NULL && jval_kind(value) != JNULL) {
        jw_key(w, str_from(key));
        jw_val(w, value);
    }
}

static void add_words(struct json_writer *w, const char *key, const struct str *words, uint32_t n)
{
    jw_key(w, str_from(key));
    jw_strs(w, words, n);
}

/* Our own image has a user without rights, who could not join the machine's namespaces, privileged
 * or not. What an image of somebody else runs as is its own business. */
static void add_security(const struct run_job_spec *spec, bool runner, struct json_writer *w)
{
    const struct jval *given = jval_get(spec->payload, STR("securityContext"));
    if (spec->no_host) {
        jw_key(w, STR("securityContext"));
        jw_raw(w, STR("{\"allowPrivilegeEscalation\":false}"));
        return;
    }
    given = jval_kind(given) == JOBJ ? given : NULL;
    jw_key(w, STR("securityContext"));
    jw_obj(w);
    JVAL_EACH (given, field) {
        jw_key(w, jval_key(field));
        jw_val(w, field);
    }
    if (given == NULL) {
        jw_pair_bool(w, "privileged", true);
    }
    if (runner && jval_get(given, STR("runAsUser")) == NULL) {
        jw_pair_i64(w, "runAsUser", 0);
    }
    if (runner && jval_get(given, STR("runAsGroup")) == NULL) {
        jw_pair_i64(w, "runAsGroup", 0);
    }
    jw_obj_end(w);
}

static void add_container(const struct run_job_spec *spec, const struct run_job_reboot *reboot,
                          struct json_writer *w)
{
    const struct jval *payload = spec->payload;
    struct str image = jval_str(jval_get(payload, STR("image")));
    jw_obj(w);
    jw_pair(w, "name", STR("run"));
    jw_pair(w, "image", image.n > 0 ? image : spec->runner_image);
    if (image.n > 0) {
        add_field(payload, "command", w);
        add_field(payload, "args", w);
        add_field(payload, "imagePullPolicy", w);
    } else if (reboot != NULL) {
        const struct str words[] = { STR("drydock"), STR("run-on-host"), STR("--reboot"),
                                     STR("--expect-boot-id"), reboot->boot_id };
        add_words(w, "command", words, ARRAY_LEN(words));
    } else {
        const struct str words[] = { STR("drydock"), STR("run-on-host") };
        add_words(w, "command", words, ARRAY_LEN(words));
    }
    container_add_env(spec, w);
    add_field(payload, "envFrom", w);
    add_field(payload, "resources", w);
    add_security(spec, image.n == 0, w);
    volumes_add(spec, /* mounts= */ true, w);
    jw_pair(w, "terminationMessagePolicy", STR("FallbackToLogsOnError"));
    jw_obj_end(w);
}

/* By field, not by the label of the host's name, which may differ. */
static void add_affinity(struct str machine, struct json_writer *w)
{
    CLEANUP(buf_done)
    struct buf term = { 0 };
    buf_add(&term, STR("{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
                       "\"nodeSelectorTerms\":[{\"matchFields\":[{\"key\":\"metadata.name\","
                       "\"operator\":\"In\",\"values\":["));
    json_quote(&term, machine);
    buf_add(&term, STR("]}]}]}}}"));
    jw_key(w, STR("affinity"));
    jw_raw(w, buf_str(&term));
}

static bool payload_joins(const struct jval *payload, struct str namespace, bool otherwise)
{
    const struct jval *names = jval_at(payload, "host.namespaces");
    if (jval_kind(names) != JARR) {
        return otherwise;
    }
    JVAL_EACH (names, name) {
        if (str_eq(jval_str(name), namespace)) {
            return true;
        }
    }
    return false;
}

static void add_pod(const struct run_job_spec *spec, const struct run_job_reboot *reboot,
                    struct json_writer *w)
{
    const struct jval *payload = spec->payload;
    struct str account = jval_str(jval_get(payload, STR("serviceAccountName")));
    jw_obj(w);
    jw_pair(w, "restartPolicy", STR("Never"));
    if (jval_get(payload, STR("script")) != NULL) {
        jw_pair_i64(w, "terminationGracePeriodSeconds", SCRIPT_GRACE_S);
    }
    if (!spec->no_host) {
        add_affinity(spec->machine, w);
    }
    jw_key(w, STR("tolerations"));
    if (jval_get(payload, STR("tolerations")) != NULL) {
        jw_val(w, jval_get(payload, STR("tolerations")));
    } else {
        jw_raw(w, spec->no_host ? STR("[]") : STR("[{\"operator\":\"Exists\"}]"));
    }
    jw_pair_bool(w, "hostPID", !spec->no_host && payload_joins(payload, STR("pid"), true));
    jw_pair_bool(w, "hostNetwork", !spec->no_host && payload_joins(payload, STR("net"), true));
    jw_pair_bool(w, "automountServiceAccountToken", account.n > 0);
    jw_pair_some(w, "serviceAccountName", account);
    jw_pair_some(w, "priorityClassName", spec->priority_class);
    add_field(payload, "imagePullSecrets", w);
    jw_key(w, STR("containers"));
    jw_arr(w);
    add_container(spec, reboot, w);
    jw_arr_end(w);
    volumes_add(spec, /* mounts= */ false, w);
    jw_obj_end(w);
}

/* ── the Job ───────────────────────────────────────────────────────────────────────────────── */

static void add_key(struct json_writer *w, struct str key, struct str value)
{
    jw_key(w, key);
    jw_str(w, value);
}

static void add_labels(const struct run_job_spec *spec, bool pod, struct json_writer *w)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    jw_key(w, STR("labels"));
    jw_obj(w);
    if (pod) {
        JVAL_EACH (jval_get(spec->payload, STR("podLabels")), label) {
            add_key(w, jval_key(label), jval_str(label));
        }
        add_key(w, KEY_POD_DRAIN, STR("skip")); /* the visit's own drain leaves it alone */
    }
    add_key(w, KEY_JOB_MANAGED, KEYS_TRUE);
    add_key(w, KEY_JOB_MAINTENANCE, spec->maintenance);
    add_key(w, KEY_JOB_OPERATION, spec->operation);
    add_key(w, KEY_JOB_REVISION, str_sub(spec->revision, 0, REVISION_DIGITS));
    add_key(w, KEY_JOB_MACHINE_HASH, hash_text(spec->machine, LABEL_HASH_BYTES, &tmp));
    jw_obj_end(w);
}

static void spec_print(const struct run_job_spec *spec, const struct run_job_reboot *reboot,
                       struct buf *out)
{
    struct json_writer w = json_writer_on(out);
    jw_obj(&w);
    jw_pair_i64(&w, "backoffLimit", 0);
    jw_pair_i64(&w, "completions", 1);
    jw_pair_i64(&w, "parallelism", 1);
    jw_pair(&w, "podReplacementPolicy", STR("Failed"));
    jw_pair_i64(&w, "activeDeadlineSeconds", MAX(spec->timeout / SECONDS(1), (usec_t)1));
    jw_key(&w, STR("template"));
    jw_obj(&w);
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    add_labels(spec, /* pod= */ true, &w);
    if (jval_get(spec->payload, STR("podAnnotations")) != NULL) {
        jw_key(&w, STR("annotations"));
        jw_val(&w, jval_get(spec->payload, STR("podAnnotations")));
    }
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    add_pod(spec, reboot, &w);
    jw_obj_end(&w);
    jw_obj_end(&w);
}

static void job_print(const struct run_job_spec *spec, const struct run_job_reboot *reboot,
                      struct str name, struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf body = { 0 };
    struct json_writer w = json_writer_on(out);
    spec_print(spec, reboot, &body);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR("batch/v1"));
    jw_pair(&w, "kind", STR("Job"));
    jw_key(&w, STR("metadata"));
    jw_obj(&w);
    jw_pair(&w, "name", name);
    jw_pair(&w, "namespace", spec->namespace);
    add_labels(spec, /* pod= */ false, &w);
    jw_key(&w, STR("annotations"));
    jw_obj(&w);
    add_key(&w, KEY_JOB_MACHINE, spec->machine);
    add_key(&w, KEY_JOB_HASH, hash_text(buf_str(&body), SPEC_HASH_BYTES, &tmp));
    jw_obj_end(&w);
    jw_key(&w, STR("ownerReferences"));
    jw_arr(&w);
    jw_obj(&w);
    jw_pair(&w, "apiVersion", STR(OPERATION_API_VERSION));
    jw_pair(&w, "kind", STR("NodeMaintenance"));
    jw_pair(&w, "name", spec->maintenance);
    jw_pair(&w, "uid", spec->maintenance_uid);
    jw_pair_bool(&w, "controller", true);
    jw_pair_bool(&w, "blockOwnerDeletion", false);
    jw_obj_end(&w);
    jw_arr_end(&w);
    jw_obj_end(&w);
    jw_key(&w, STR("spec"));
    jw_raw(&w, buf_str(&body));
    jw_obj_end(&w);
}

int run_job_print(const struct run_job_spec *spec, struct buf *out, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    int r = env_check(jval_get(spec->payload, STR("env")), err);
    if (r == 0) {
        job_print(spec, NULL, run_job_name(spec, &tmp), out);
    }
    return r;
}

void run_job_print_reboot(const struct run_job_spec *spec, const struct run_job_reboot *reboot,
                          struct buf *out)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct run_job_spec plain = *spec;
    plain.payload = NULL;
    plain.parameter_n = 0;
    job_print(&plain, reboot, run_job_reboot_name(reboot, &tmp), out);
}

/* ── what became of it ─────────────────────────────────────────────────────────────────────── */

static bool job_is_ours(const struct jval *job, const struct run_job_spec *spec)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf body = { 0 };
    bool owned = false;
    JVAL_EACH (jval_at(job, "metadata.ownerReferences"), owner) {
        owned = owned || str_eq(jval_str(jval_get(owner, STR("uid"))), spec->maintenance_uid);
    }
    spec_print(spec, NULL, &body);
    struct str hash = jval_str(jval_get(jval_at(job, "metadata.annotations"), KEY_JOB_HASH));
    return owned && str_eq(hash, hash_text(buf_str(&body), SPEC_HASH_BYTES, &tmp));
}

void run_job_read(const struct jval *job, const struct run_job_spec *spec, struct arena *out,
                  struct run_job_end *ret)
{
    run_job_read_end(job, out, ret);
    ret->ours = job_is_ours(job, spec);
}

void run_job_read_end(const struct jval *job, struct arena *out, struct run_job_end *ret)
{
    *ret = (struct run_job_end){ .state = RUN_JOB_ACTIVE };
    JVAL_EACH (jval_at(job, "status.conditions"), condition) {
        struct str type = jval_str(jval_get(condition, STR("type")));
        if (!str_eq(jval_str(jval_get(condition, STR("status"))), STR("True"))) {
            continue;
        }
        if (str_eq(type, STR("Complete"))) {
            ret->state = RUN_JOB_SUCCEEDED;
        } else if (str_eq(type, STR("Failed"))) {
            struct str reason = jval_str(jval_get(condition, STR("reason")));
            ret->state = RUN_JOB_FAILED;
            ret->reason = str_eq(reason, STR("DeadlineExceeded"))       ? STR("Timeout")
                          : str_eq(reason, STR("BackoffLimitExceeded")) ? STR("ExitCode")
                                                                        : arena_str(out, reason);
        }
    }
}

void run_job_read_message(struct str text, struct arena *out, struct run_job_message *ret)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *message;
    struct err err = { 0 };
    *ret = (struct run_job_message){ 0 };
    if (json_parse(text, JSON_GO, &tmp, &message, &err) < 0 ||
        !jval_i64(jval_get(message, STR("exitCode")), &ret->exit_code)) {
        return;
    }
    ret->said = true;
    ret->nothing_to_do = ret->exit_code == RUN_JOB_NOTHING_TO_DO;
    ret->reboot_required = jval_bool(jval_get(message, STR("rebootRequired")), false);
    ret->output = run_job_clean_output(jval_str(jval_get(message, STR("output"))), out);
}

struct str run_job_clean_output(struct str output, struct arena *out)
{
    struct str kept =
        str_sub(output, output.n > MESSAGE_OUTPUT_MAX ? output.n - MESSAGE_OUTPUT_MAX : 0,
                MESSAGE_OUTPUT_MAX);
    char *clean = ARENA_ARRAY(out, char, kept.n + 1);
    for (size_t i = 0; i < kept.n; i++) {
        clean[i] = (unsigned char)kept.p[i] < ' ' || kept.p[i] == 0x7f ? ' ' : kept.p[i];
    }
    return (struct str){ clean, kept.n };
}
