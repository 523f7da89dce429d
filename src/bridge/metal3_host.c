#include "bridge/metal3_host.h"

#include "kinds/keys.h"
#include "bridge/object_meta.h"

/* `.p` is NULL where there is none: an empty value is one. */
static struct str read_text(const struct jval *v)
{
    return str_sub(jval_str(v), 0, METAL3_HOST_TEXT_MAX);
}

static int metal3_host_project(void *ctx UNUSED, const struct jval *object, struct arena *out,
                               void **ret, struct err *err UNUSED)
{
    const struct jval *metadata = jval_get(object, STR("metadata"));
    const struct jval *annotations = jval_get(metadata, STR("annotations"));
    const struct jval *consumer = jval_at(object, "spec.consumerRef");
    struct metal3_host h = {
        .uid = read_text(jval_get(metadata, STR("uid"))),
        .namespace = read_text(jval_get(metadata, STR("namespace"))),
        .name = read_text(jval_get(metadata, STR("name"))),
        .provisioned =
            str_eq(jval_str(jval_at(object, "status.provisioning.state")), STR("provisioned")),
        .powered_on = jval_bool(jval_at(object, "status.poweredOn"), false),
        .consumer_kind = read_text(jval_get(consumer, STR("kind"))),
        .consumer_namespace = read_text(jval_get(consumer, STR("namespace"))),
        .consumer_name = read_text(jval_get(consumer, STR("name"))),
        .paused = meta_has(annotations, KEY_HOST_PAUSED) || meta_has(annotations, KEY_PAUSED),
        .reboot_value = read_text(jval_get(annotations, KEY_REBOOT)),
        .owner = read_text(jval_get(annotations, KEY_REBOOT_OWNER)),
    };
    h.reboot = h.reboot_value.p != NULL;
    struct str *const texts[] = {
        &h.uid,           &h.namespace,    &h.name,  &h.consumer_kind, &h.consumer_namespace,
        &h.consumer_name, &h.reboot_value, &h.owner,
    };
    *ret = meta_keep(out, &h, sizeof(h), texts, ARRAY_LEN(texts));
    return 0;
}

static bool metal3_host_same(const void *left, const void *right)
{
    const struct metal3_host *a = left;
    const struct metal3_host *b = right;
    return str_eq(a->uid, b->uid) && str_eq(a->namespace, b->namespace) &&
           str_eq(a->name, b->name) && a->provisioned == b->provisioned &&
           a->powered_on == b->powered_on && str_eq(a->consumer_kind, b->consumer_kind) &&
           str_eq(a->consumer_namespace, b->consumer_namespace) &&
           str_eq(a->consumer_name, b->consumer_name) && a->paused == b->paused &&
           a->reboot == b->reboot && meta_same(a->reboot_value, b->reboot_value) &&
           meta_same(a->owner, b->owner);
}

const struct store_kind metal3_host_kind = {
    .name = "bmhost",
    .namespaced = true,
    .project = metal3_host_project,
    .same = metal3_host_same,
};
