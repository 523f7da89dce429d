#include "bridge/machine.h"

#include "kinds/keys.h"
#include "bridge/object_meta.h"
#include "format/label_pack.h"

#define HOLD_SECONDS_MAX (USEC_NEVER / SECONDS(1)) /* from there on it is for ever */

/* Who applies the labels of templates to Machines, over and over. */
static const struct str template_managers[] = {
    STR_INIT("capi-machineset"),
    STR_INIT("capi-kubeadmcontrolplane"),
};

static struct str machine_text(const struct jval *v)
{
    return meta_text(v, MACHINE_TEXT_MAX);
}

static enum machine_request machine_read_request(const struct jval *labels)
{
    if (meta_is(labels, KEY_MAINTENANCE, KEY_REQUESTED)) {
        return MACHINE_REQUEST_REQUESTED;
    }
    return meta_is(labels, KEY_MAINTENANCE, KEY_APPROVED) ? MACHINE_REQUEST_APPROVED
                                                          : MACHINE_REQUEST_NONE;
}

static bool machine_read_templated(const struct jval *managed_fields)
{
    if (jval_kind(managed_fields) != JARR) {
        return false;
    }
    JVAL_EACH (managed_fields, entry) {
        struct str manager = jval_str(jval_get(entry, STR("manager")));
        const struct jval *labels = jval_at(entry, "fieldsV1.f:metadata.f:labels");
        for (size_t i = 0; i < ARRAY_LEN(template_managers); i++) {
            if (str_eq(manager, template_managers[i]) &&
                jval_get(labels, STR("f:" KEYS_LEGACY "maintenance")) != NULL) {
                return true;
            }
        }
    }
    return false;
}

static bool machine_read_updating(const struct jval *annotations)
{
    struct str hooks = jval_str(jval_get(annotations, KEY_PENDING_HOOKS));
    struct str hook;
    while (hooks.n > 0 && str_split_next(&hooks, ',', &hook)) {
        if (str_eq(str_trim(hook), STR("UpdateMachine"))) {
            return true;
        }
    }
    return meta_has(annotations, KEY_UPDATE_IN_PROGRESS);
}

static usec_t machine_read_wait(const struct jval *conditions)
{
    if (jval_kind(conditions) != JARR) {
        return 0;
    }
    JVAL_EACH (conditions, c) {
        if (meta_is(c, STR("type"), STR("Deleting")) &&
            meta_is(c, STR("reason"), STR("WaitingForPreDrainHook"))) {
            return meta_time(jval_get(c, STR("lastTransitionTime")));
        }
    }
    return 0;
}

/* v1beta1 shows the conditions of v1beta2 in a place of their own. */
static usec_t machine_read_hooks_wait_since(const struct jval *status)
{
    usec_t since = meta_time(jval_at(status, "deletion.waitForPreDrainHookStartTime"));
    if (since == 0) {
        since = machine_read_wait(jval_get(status, STR("conditions")));
    }
    return since > 0 ? since : machine_read_wait(jval_at(status, "v1beta2.conditions"));
}

static bool machine_is_unhealthy(const struct jval *conditions)
{
    JVAL_EACH (jval_kind(conditions) == JARR ? conditions : NULL, c) {
        if (meta_is(c, STR("type"), STR("NodeHealthy"))) {
            return !meta_is(c, STR("status"), STR("True"));
        }
    }
    return false; /* nobody says so */
}

static usec_t machine_read_hold(const struct jval *annotations)
{
    uint64_t seconds;
    if (!str_to_u64(machine_text(jval_get(annotations, KEY_HOLD_SECONDS)), &seconds)) {
        return 0;
    }
    bool limited = seconds > 0 && seconds < (uint64_t)HOLD_SECONDS_MAX;
    return limited ? SECONDS(seconds) : USEC_NEVER;
}

static void machine_read_metadata(const struct jval *metadata, struct machine *m)
{
    const struct jval *labels = jval_get(metadata, STR("labels"));
    const struct jval *annotations = jval_get(metadata, STR("annotations"));
    m->namespace = machine_text(jval_get(metadata, STR("namespace")));
    m->name = machine_text(jval_get(metadata, STR("name")));
    m->uid = machine_text(jval_get(metadata, STR("uid")));
    m->enabled = meta_is(labels, KEY_ENABLED, KEYS_TRUE);
    m->deleting = jval_str(jval_get(metadata, STR("deletionTimestamp"))).n > 0;
    m->deleted_at = meta_time(jval_get(metadata, STR("deletionTimestamp")));
    m->paused = meta_has(annotations, KEY_PAUSED);
    m->control_plane = meta_has(labels, KEY_CONTROL_PLANE);
    m->updating = machine_read_updating(annotations);
    m->request = machine_read_request(labels);
    m->request_templated = machine_read_templated(jval_get(metadata, STR("managedFields")));
    m->hook = meta_has(annotations, KEY_HOOK);
    m->hook_value = machine_text(jval_get(annotations, KEY_HOOK));
    m->released = machine_text(jval_get(annotations, KEY_RELEASED));
    m->granted = machine_text(jval_get(annotations, KEY_GRANTED));
    m->status = machine_text(jval_get(annotations, KEY_STATUS));
    m->power = machine_text(jval_get(annotations, KEY_POWER));
    m->power_mode = machine_text(jval_get(annotations, KEY_POWER_MODE));
    m->approved_by_annotation = meta_is(annotations, KEY_APPROVED_ASIDE, KEYS_TRUE);
    m->skip = meta_has(annotations, KEY_SKIP_REMEDIATION);
    m->skip_empty = meta_is(annotations, KEY_SKIP_REMEDIATION, STR(""));
    m->skip_ours = meta_is(annotations, KEY_SKIP_OURS, KEYS_TRUE);
    m->hold_max = machine_read_hold(annotations);
}

bool machine_has_request(const struct machine *m)
{
    return m->enabled && (m->deleting || m->request != MACHINE_REQUEST_NONE);
}

static int machine_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                           void **ret, struct err *err UNUSED)
{
    const struct jval *spec = jval_get(object, STR("spec"));
    const struct jval *status = jval_get(object, STR("status"));
    struct machine found = {
        .cluster = machine_text(jval_get(spec, STR("clusterName"))),
        .node = machine_text(jval_at(status, "nodeRef.name")),
        .provider_id = machine_text(jval_get(spec, STR("providerID"))),
        .infra_kind = machine_text(jval_at(spec, "infrastructureRef.kind")),
        .infra_name = machine_text(jval_at(spec, "infrastructureRef.name")),
        .hooks_wait_since = machine_read_hooks_wait_since(status),
        .unhealthy = machine_is_unhealthy(jval_get(status, STR("conditions"))),
    };
    machine_read_metadata(jval_get(object, STR("metadata")), &found);
    CLEANUP(buf_done)
    struct buf labels = { 0 };
    if (machine_has_request(&found)) {
        label_pack(jval_at(object, "metadata.labels"), &labels);
        found.labels = buf_str(&labels);
    }
    struct str *const texts[] = {
        &found.namespace,  &found.name,        &found.uid,        &found.cluster,
        &found.node,       &found.provider_id, &found.infra_kind, &found.infra_name,
        &found.hook_value, &found.released,    &found.granted,    &found.status,
        &found.power,      &found.power_mode,  &found.labels,
    };
    *ret = meta_keep(out, &found, sizeof(found), texts, ARRAY_LEN(texts));
    return 0;
}

static bool machine_same_marks(const struct machine *a, const struct machine *b)
{
    return a->hook == b->hook && meta_same(a->hook_value, b->hook_value) &&
           meta_same(a->released, b->released) && meta_same(a->granted, b->granted) &&
           meta_same(a->status, b->status) && meta_same(a->power, b->power) &&
           meta_same(a->power_mode, b->power_mode) &&
           a->approved_by_annotation == b->approved_by_annotation && a->skip == b->skip &&
           a->skip_empty == b->skip_empty && a->skip_ours == b->skip_ours;
}

static bool machine_same(const void *left, const void *right)
{
    const struct machine *a = left;
    const struct machine *b = right;
    return str_eq(a->namespace, b->namespace) && str_eq(a->name, b->name) &&
           str_eq(a->uid, b->uid) && str_eq(a->cluster, b->cluster) && str_eq(a->node, b->node) &&
           str_eq(a->provider_id, b->provider_id) && str_eq(a->infra_kind, b->infra_kind) &&
           str_eq(a->infra_name, b->infra_name) && a->enabled == b->enabled &&
           a->deleting == b->deleting && a->paused == b->paused &&
           a->control_plane == b->control_plane && a->unhealthy == b->unhealthy &&
           a->updating == b->updating && a->request == b->request &&
           a->request_templated == b->request_templated && a->deleted_at == b->deleted_at &&
           a->hooks_wait_since == b->hooks_wait_since && a->hold_max == b->hold_max &&
           str_eq(a->labels, b->labels) && machine_same_marks(a, b);
}

const struct store_kind machine_kind = {
    .name = "machine",
    .namespaced = true,
    .project = machine_project,
    .same = machine_same,
};
