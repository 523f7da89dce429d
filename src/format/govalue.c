#include "format/govalue.h"

const struct gotype gotype_uint8 = { .name = "uint8", .kind = GO_INT };
const struct gotype gotype_duration = { .name = "time.Duration", .kind = GO_INT };
const struct gotype gotype_month = { .name = "time.Month", .kind = GO_INT };
const struct gotype gotype_weekday = { .name = "time.Weekday", .kind = GO_INT };

static const struct gotype type_string = { .name = "string", .kind = GO_STRING };
static const struct gotype type_bool = { .name = "bool", .kind = GO_BOOL };
static const struct gotype type_i32 = { .name = "int32", .kind = GO_INT };
static const struct gotype type_i64 = { .name = "int64", .kind = GO_INT };
static const struct gotype type_i64_pointer = { .name = "*int64", .kind = GO_INT, .pointer = true };
static const struct gotype type_bool_pointer = { .name = "*bool",
                                                 .kind = GO_BOOL,
                                                 .pointer = true };
static const struct gotype type_time = { .name = "v1.Time", .kind = GO_TIME };
static const struct gotype type_time_pointer = { .name = "*v1.Time",
                                                 .kind = GO_TIME,
                                                 .pointer = true };
static const struct gotype type_quantity = { .name = "resource.Quantity", .kind = GO_QUANTITY };
static const struct gotype type_uid = { .name = "types.UID", .kind = GO_STRING };
static const struct gotype type_phase = { .name = "v1.NodePhase", .kind = GO_STRING };
static const struct gotype type_effect = { .name = "v1.TaintEffect", .kind = GO_STRING };
static const struct gotype type_condition_type = { .name = "v1.NodeConditionType",
                                                   .kind = GO_STRING };
static const struct gotype type_status = { .name = "v1.ConditionStatus", .kind = GO_STRING };
static const struct gotype type_address_type = { .name = "v1.NodeAddressType", .kind = GO_STRING };
static const struct gotype type_volume = { .name = "v1.UniqueVolumeName", .kind = GO_STRING };
static const struct gotype type_strings = { .name = "[]string",
                                            .kind = GO_SLICE,
                                            .item = &type_string };
static const struct gotype type_volumes = { .name = "[]v1.UniqueVolumeName",
                                            .kind = GO_SLICE,
                                            .item = &type_volume };
static const struct gotype type_string_map = { .name = "map[string]string",
                                               .kind = GO_MAP,
                                               .item = &type_string };
const struct gotype gotype_resources = { .name = "v1.ResourceList",
                                         .kind = GO_MAP,
                                         .item = &type_quantity };

/* A struct type and the slice of it. */
#define STRUCT_TYPE(id, go, ...)                                                                   \
    static const struct gofield id##_fields[] = { __VA_ARGS__, { 0 } };                            \
    static const struct gotype id = { .name = go, .kind = GO_STRUCT, .fields = id##_fields }
#define SLICE_TYPE(id, go, of)                                                                     \
    static const struct gotype id = { .name = "[]" go, .kind = GO_SLICE, .item = &(of) }

STRUCT_TYPE(type_kind, "schema.GroupVersionKind", { "Version", "apiVersion", &type_string, 0 },
            { "Kind", "kind", &type_string, 0 });
STRUCT_TYPE(type_object_kind, "*v1.TypeMeta",
            { "GroupVersionKind", "", &type_kind, GOFIELD_METHOD });
STRUCT_TYPE(type_meta, "v1.TypeMeta", { "Kind", "kind", &type_string, 0 },
            { "APIVersion", "apiVersion", &type_string, 0 },
            { "GetObjectKind", "", &type_object_kind, GOFIELD_METHOD });
STRUCT_TYPE(type_owner, "v1.OwnerReference", { "APIVersion", "apiVersion", &type_string, 0 },
            { "Kind", "kind", &type_string, 0 }, { "Name", "name", &type_string, 0 },
            { "UID", "uid", &type_uid, 0 }, { "Controller", "controller", &type_bool_pointer, 0 },
            { "BlockOwnerDeletion", "blockOwnerDeletion", &type_bool_pointer, 0 });
SLICE_TYPE(type_owners, "v1.OwnerReference", type_owner);

STRUCT_TYPE(type_object_meta, "v1.ObjectMeta", { "Name", "name", &type_string, 0 },
            { "GenerateName", "generateName", &type_string, 0 },
            { "Namespace", "namespace", &type_string, 0 },
            { "SelfLink", "selfLink", &type_string, 0 }, { "UID", "uid", &type_uid, 0 },
            { "ResourceVersion", "resourceVersion", &type_string, 0 },
            { "Generation", "generation", &type_i64, 0 },
            { "CreationTimestamp", "creationTimestamp", &type_time, 0 },
            { "DeletionTimestamp", "deletionTimestamp", &type_time_pointer, 0 },
            { "DeletionGracePeriodSeconds", "deletionGracePeriodSeconds", &type_i64_pointer, 0 },
            { "Labels", "labels", &type_string_map, 0 },
            { "Annotations", "annotations", &type_string_map, 0 },
            { "OwnerReferences", "ownerReferences", &type_owners, 0 },
            { "Finalizers", "finalizers", &type_strings, 0 },
            { "GetName", "name", &type_string, GOFIELD_METHOD },
            { "GetNamespace", "namespace", &type_string, GOFIELD_METHOD },
            { "GetUID", "uid", &type_uid, GOFIELD_METHOD },
            { "GetResourceVersion", "resourceVersion", &type_string, GOFIELD_METHOD },
            { "GetGeneration", "generation", &type_i64, GOFIELD_METHOD },
            { "GetCreationTimestamp", "creationTimestamp", &type_time, GOFIELD_METHOD },
            { "GetDeletionTimestamp", "deletionTimestamp", &type_time_pointer, GOFIELD_METHOD },
            { "GetLabels", "labels", &type_string_map, GOFIELD_METHOD },
            { "GetAnnotations", "annotations", &type_string_map, GOFIELD_METHOD },
            { "GetFinalizers", "finalizers", &type_strings, GOFIELD_METHOD });

STRUCT_TYPE(type_taint, "v1.Taint", { "Key", "key", &type_string, 0 },
            { "Value", "value", &type_string, 0 }, { "Effect", "effect", &type_effect, 0 },
            { "TimeAdded", "timeAdded", &type_time_pointer, 0 });
SLICE_TYPE(type_taints, "v1.Taint", type_taint);
STRUCT_TYPE(type_spec, "v1.NodeSpec", { "PodCIDR", "podCIDR", &type_string, 0 },
            { "PodCIDRs", "podCIDRs", &type_strings, 0 },
            { "ProviderID", "providerID", &type_string, 0 },
            { "Unschedulable", "unschedulable", &type_bool, 0 },
            { "Taints", "taints", &type_taints, 0 },
            { "DoNotUseExternalID", "externalID", &type_string, 0 });

STRUCT_TYPE(type_condition, "v1.NodeCondition", { "Type", "type", &type_condition_type, 0 },
            { "Status", "status", &type_status, 0 },
            { "LastHeartbeatTime", "lastHeartbeatTime", &type_time, 0 },
            { "LastTransitionTime", "lastTransitionTime", &type_time, 0 },
            { "Reason", "reason", &type_string, 0 }, { "Message", "message", &type_string, 0 });
SLICE_TYPE(type_conditions, "v1.NodeCondition", type_condition);
STRUCT_TYPE(type_address, "v1.NodeAddress", { "Type", "type", &type_address_type, 0 },
            { "Address", "address", &type_string, 0 });
SLICE_TYPE(type_addresses, "v1.NodeAddress", type_address);
STRUCT_TYPE(type_endpoint, "v1.DaemonEndpoint", { "Port", "Port", &type_i32, 0 });
STRUCT_TYPE(type_endpoints, "v1.NodeDaemonEndpoints",
            { "KubeletEndpoint", "kubeletEndpoint", &type_endpoint, 0 });
STRUCT_TYPE(type_info, "v1.NodeSystemInfo", { "MachineID", "machineID", &type_string, 0 },
            { "SystemUUID", "systemUUID", &type_string, 0 },
            { "BootID", "bootID", &type_string, 0 },
            { "KernelVersion", "kernelVersion", &type_string, 0 },
            { "OSImage", "osImage", &type_string, 0 },
            { "ContainerRuntimeVersion", "containerRuntimeVersion", &type_string, 0 },
            { "KubeletVersion", "kubeletVersion", &type_string, 0 },
            { "KubeProxyVersion", "kubeProxyVersion", &type_string, 0 },
            { "OperatingSystem", "operatingSystem", &type_string, 0 },
            { "Architecture", "architecture", &type_string, 0 });
STRUCT_TYPE(type_image, "v1.ContainerImage", { "Names", "names", &type_strings, 0 },
            { "SizeBytes", "sizeBytes", &type_i64, 0 });
SLICE_TYPE(type_images, "v1.ContainerImage", type_image);
STRUCT_TYPE(type_attached, "v1.AttachedVolume", { "Name", "name", &type_volume, 0 },
            { "DevicePath", "devicePath", &type_string, 0 });
SLICE_TYPE(type_attached_list, "v1.AttachedVolume", type_attached);
STRUCT_TYPE(type_node_status, "v1.NodeStatus", { "Capacity", "capacity", &gotype_resources, 0 },
            { "Allocatable", "allocatable", &gotype_resources, 0 },
            { "Phase", "phase", &type_phase, 0 },
            { "Conditions", "conditions", &type_conditions, 0 },
            { "Addresses", "addresses", &type_addresses, 0 },
            { "DaemonEndpoints", "daemonEndpoints", &type_endpoints, 0 },
            { "NodeInfo", "nodeInfo", &type_info, 0 }, { "Images", "images", &type_images, 0 },
            { "VolumesInUse", "volumesInUse", &type_volumes, 0 },
            { "VolumesAttached", "volumesAttached", &type_attached_list, 0 });

static const struct gofield node_fields[] = {
    { "TypeMeta", "", &type_meta, GOFIELD_EMBEDDED },
    { "ObjectMeta", "metadata", &type_object_meta, GOFIELD_EMBEDDED },
    { "Spec", "spec", &type_spec, 0 },
    { "Status", "status", &type_node_status, 0 },
    { 0 },
};
const struct gotype gotype_node = { .name = "*v1.Node", .kind = GO_STRUCT, .fields = node_fields };

struct govalue govalue_str(struct str text)
{
    return (struct govalue){ .kind = GO_STRING, .text = text };
}

struct govalue govalue_bool(bool truth)
{
    return (struct govalue){ .kind = GO_BOOL, .truth = truth };
}

struct govalue govalue_i64(int64_t number)
{
    return (struct govalue){ .kind = GO_INT, .number = number };
}

struct govalue govalue_time(struct timestamp time)
{
    return (struct govalue){ .kind = GO_TIME, .time = time };
}

struct govalue govalue_struct(const struct gomember *members, uint32_t n)
{
    return (struct govalue){ .kind = GO_STRUCT, .members = members, .n = n };
}

struct govalue govalue_str_with(struct str text, const struct gomember *members, uint32_t n)
{
    return (struct govalue){ .kind = GO_STRING, .text = text, .members = members, .n = n };
}

struct entry {
    const struct jval *json;
};

/* By name, and of equal names in the order of the text: all cells are of one tape. */
static int entry_cmp(const void *left, const void *right)
{
    const struct jval *l = ((const struct entry *)left)->json;
    const struct jval *r = ((const struct entry *)right)->json;
    int order = str_cmp(jval_key(l), jval_key(r));
    return order != 0 ? order : (l > r) - (l < r);
}

/* Of a name that stands twice the last one counts. */
static void map_open(struct govalue *v, const struct jval *json, struct arena *a)
{
    if (jval_kind(json) != JOBJ) {
        return;
    }
    struct entry *sorted = ARENA_ARRAY(a, struct entry, json->n + 1);
    uint32_t n = 0;
    JVAL_EACH (json, one) {
        sorted[n++].json = one;
    }
    qsort(sorted, n, sizeof(*sorted), entry_cmp);
    struct gomember *members = ARENA_ARRAY(a, struct gomember, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        struct str name = jval_key(sorted[i].json);
        if (i + 1 == n || !str_eq(name, jval_key(sorted[i + 1].json))) {
            members[v->n++] =
                (struct gomember){ name, govalue_from(v->type->item, sorted[i].json, a) };
        }
    }
    v->members = members;
}

static void slice_open(struct govalue *v, const struct jval *json, struct arena *a)
{
    if (jval_kind(json) != JARR) {
        return;
    }
    struct govalue *items = ARENA_ARRAY(a, struct govalue, json->n + 1);
    JVAL_EACH (json, one) {
        items[v->n++] = govalue_from(v->type->item, one, a);
    }
    v->items = items;
}

static struct timestamp time_from(const struct jval *json)
{
    struct err unread = { 0 };
    struct timestamp time;
    if (timestamp_parse(jval_str(json), &time, &unread) < 0) {
        return timestamp_zero; /* the server wrote it: null or nothing, never a wrong time */
    }
    return time;
}

struct govalue govalue_from(const struct gotype *type, const struct jval *json, struct arena *a)
{
    struct govalue v = { .kind = type->kind, .type = type };
    if (type->pointer && jval_kind(json) == JNULL) {
        v.kind = GO_NIL;
        return v;
    }
    switch (type->kind) {
    case GO_BOOL:
        v.truth = jval_bool(json, false);
        break;
    case GO_INT:
        (void)jval_i64(json, &v.number); /* otherwise the zero that stands there */
        break;
    case GO_STRING:
        v.text = jval_str(json);
        break;
    case GO_SLICE:
        slice_open(&v, json, a);
        break;
    case GO_MAP:
        map_open(&v, json, a);
        break;
    case GO_STRUCT:
        v.json = json;
        break;
    case GO_TIME:
        v.time = time_from(json);
        break;
    default:
        ASSERT(type->kind == GO_QUANTITY);
        v.text = jval_kind(json) == JNUM ? (struct str){ json->p, json->n } : jval_str(json);
        if (v.text.n == 0) {
            v.text = STR("0");
        }
    }
    return v;
}

const char *govalue_type_name(const struct govalue *v)
{
    static const char *const names[] = {
        [GO_NONE] = "nil",      [GO_NIL] = "nil",        [GO_BOOL] = "bool",
        [GO_INT] = "int",       [GO_FLOAT] = "float64",  [GO_COMPLEX] = "complex128",
        [GO_STRING] = "string", [GO_SLICE] = "slice",    [GO_MAP] = "map",
        [GO_STRUCT] = "struct", [GO_TIME] = "time.Time", [GO_QUANTITY] = "resource.Quantity",
    };
    return v->type != NULL ? v->type->name : names[v->kind];
}

bool govalue_truth(const struct govalue *v)
{
    switch (v->kind) {
    case GO_NONE:
    case GO_NIL:
        return false;
    case GO_BOOL:
        return v->truth;
    case GO_INT:
        return v->number != 0;
    case GO_FLOAT:
        return v->parts[0] != 0;
    case GO_COMPLEX:
        return v->parts[0] != 0 || v->parts[1] != 0;
    case GO_STRING:
        return v->text.n > 0;
    case GO_SLICE:
    case GO_MAP:
        return v->n > 0;
    default:
        return true; /* Go calls every struct true */
    }
}

bool govalue_is_nil(const struct govalue *v)
{
    return v->kind == GO_NONE || v->kind == GO_NIL || (v->kind == GO_SLICE && v->items == NULL) ||
           (v->kind == GO_MAP && v->members == NULL);
}

static const struct jval *field_json(const struct gofield *f, const struct jval *json)
{
    return f->path[0] == '\0' ? json : jval_get(json, str_from(f->path));
}

static bool type_field(const struct gotype *type, const struct jval *json, struct str name,
                       struct arena *a, struct govalue *ret)
{
    for (const struct gofield *f = type->fields; f->name != NULL; f++) {
        const struct jval *inner = field_json(f, json);
        if (str_eq(str_from(f->name), name)) {
            *ret = govalue_from(f->type, inner, a);
            return true;
        }
        if (f->role == GOFIELD_EMBEDDED && type_field(f->type, inner, name, a, ret)) {
            return true;
        }
    }
    return false;
}

bool govalue_member(const struct govalue *v, struct str name, struct arena *a, struct govalue *ret)
{
    for (uint32_t i = 0; v->members != NULL && i < v->n; i++) {
        if (str_eq(v->members[i].name, name)) {
            *ret = v->members[i].value;
            return true;
        }
    }
    if (v->kind == GO_TIME && v->type != NULL && str_eq(name, STR("Time"))) {
        *ret = govalue_time(v->time); /* v1.Time is a struct around it */
        return true;
    }
    return v->kind == GO_STRUCT && v->type != NULL && type_field(v->type, v->json, name, a, ret);
}

bool govalue_field_at(const struct govalue *v, uint32_t i, struct arena *a, struct gomember *ret)
{
    ASSERT(v->kind == GO_STRUCT);
    if (v->type == NULL) {
        if (i < v->n) {
            *ret = v->members[i];
        }
        return i < v->n;
    }
    for (const struct gofield *f = v->type->fields; f->name != NULL; f++) {
        if (f->role != GOFIELD_METHOD && i-- == 0) {
            *ret = (struct gomember){ str_from(f->name),
                                      govalue_from(f->type, field_json(f, v->json), a) };
            return true;
        }
    }
    return false;
}
