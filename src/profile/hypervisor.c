#include "profile/hypervisor.h"

const struct hypervisor_field hypervisor_fields[] = {
    { false, "evicted", true },
    { false, "hypervisorId", false },
    { false, "hypervisorVersion", false },
    { false, "internalIp", false },
    { false, "libVirtVersion", false },
    { false, "serviceId", false },
    { false, "specHash", false },
    { true, "createCertManagerCertificate", true },
    { true, "evacuateOnReboot", true },
    { true, "highAvailability", true },
    { true, "installCertificate", true },
    { true, "lifecycleEnabled", true },
    { true, "maintenance", false },
    { true, "maintenanceReason", false },
    { true, "reboot", true },
    { true, "skipTests", true },
    { true, "version", false },
};
const uint32_t hypervisor_field_n = ARRAY_LEN(hypervisor_fields);
_Static_assert(ARRAY_LEN(hypervisor_fields) <= HYPERVISOR_FIELDS_MAX, "they have their places");

uint32_t hypervisor_find_field(bool spec, const char *name)
{
    uint32_t i = 0;
    while (i < hypervisor_field_n &&
           (hypervisor_fields[i].spec != spec ||
            !str_eq(str_from(hypervisor_fields[i].name), str_from(name)))) {
        i++;
    }
    ASSERT(i < hypervisor_field_n);
    return i;
}

struct str hypervisor_condition(const struct hypervisor *h, struct str type)
{
    for (uint32_t i = 0; i < h->condition_n; i++) {
        if (str_eq(h->conditions[i].type, type)) {
            return h->conditions[i].status;
        }
    }
    return STR_NONE;
}

static struct str field_text(const struct jval *part, const struct hypervisor_field *field,
                             struct arena *out)
{
    const struct jval *v = jval_get(part, str_from(field->name));
    if (field->is_bool) {
        return jval_bool(v, false) ? STR("true") : STR("false");
    }
    return jval_kind(v) == JSTR ? arena_str(out, jval_str(v)) : STR("");
}

static int hypervisor_project(void *ctx, const struct jval *object, struct arena *out, void **ret,
                              struct err *err)
{
    (void)ctx; /* every field is kept */
    const struct jval *spec = jval_get(object, STR("spec"));
    const struct jval *status = jval_get(object, STR("status"));
    const struct jval *conditions = jval_get(status, STR("conditions"));
    struct hypervisor *h = ARENA_NEW(out, struct hypervisor);
    if (jval_kind(conditions) == JARR && conditions->n > HYPERVISOR_CONDITIONS_MAX) {
        return err_set(err, ERR_LIMIT, "a hypervisor with %u conditions, at most %u are read",
                       conditions->n, HYPERVISOR_CONDITIONS_MAX);
    }
    for (uint32_t i = 0; i < hypervisor_field_n; i++) {
        const struct hypervisor_field *field = &hypervisor_fields[i];
        h->fields[i] = field_text(field->spec ? spec : status, field, out);
    }
    if (jval_kind(conditions) == JARR) {
        h->conditions = ARENA_ARRAY(out, struct hypervisor_condition, conditions->n);
        JVAL_EACH (conditions, condition) {
            h->conditions[h->condition_n++] = (struct hypervisor_condition){
                .type = arena_str(out, jval_str(jval_get(condition, STR("type")))),
                .status = arena_str(out, jval_str(jval_get(condition, STR("status")))),
            };
        }
    }
    *ret = h;
    return 0;
}

static bool hypervisor_same(const void *left, const void *right)
{
    const struct hypervisor *a = left;
    const struct hypervisor *b = right;
    bool same = a->condition_n == b->condition_n;
    for (uint32_t i = 0; same && i < hypervisor_field_n; i++) {
        same = str_eq(a->fields[i], b->fields[i]);
    }
    for (uint32_t i = 0; same && i < a->condition_n; i++) {
        same = str_eq(a->conditions[i].type, b->conditions[i].type) &&
               str_eq(a->conditions[i].status, b->conditions[i].status);
    }
    return same;
}

const struct store_kind hypervisor_kind = {
    .name = "hypervisor",
    .project = hypervisor_project,
    .same = hypervisor_same,
};
