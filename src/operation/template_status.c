/* The status of a NodeOperationTemplate: its parameters, its payload's revision, and how many
 * NodeMaintenances use it. */
#include "base/hex.h"
#include "operation/reference_status.h"
#include "operation/revision.h"

static const struct node_operation_template *template_of(const void *object)
{
    return object;
}

static struct str template_status(const void *object)
{
    return template_of(object)->status;
}

static const struct spec_meta *template_meta(const void *object)
{
    return &template_of(object)->meta;
}

static uint64_t template_sources(const struct operations *o)
{
    return o->maintenances.store.revision;
}

static bool maintenance_uses(const struct node_maintenance *m, struct str template)
{
    for (uint32_t i = 0; i < m->operation_n; i++) {
        if (str_eq(m->operations[i].template_name, template)) {
            return true;
        }
    }
    return false;
}

static uint32_t template_used_by(const struct reference *r)
{
    uint32_t n = 0;
    MAP_EACH (&r->o->maintenances.store.items, entry) {
        const struct store_item *item = map_item_value(entry);
        n += maintenance_uses(item->object, r->item->name) ? 1 : 0;
    }
    return n;
}

/* "3, 1 required" */
static struct str template_parameters(const struct node_operation_template *t, struct arena *tmp)
{
    uint32_t required = 0;
    for (uint32_t i = 0; i < t->parameter_n; i++) {
        required += t->parameters[i].required ? 1 : 0;
    }
    return required == 0 ? arena_printf(tmp, "%u", t->parameter_n)
                         : arena_printf(tmp, "%u, %u required", t->parameter_n, required);
}

/* Of the payload in one form whatever its order; empty: it cannot be read. */
static struct str template_revision(const struct node_operation_template *t, struct arena *tmp)
{
    CLEANUP(buf_done)
    struct buf text = { 0 };
    CLEANUP(buf_done)
    struct buf hex = { 0 };
    struct err err = { 0 };
    const struct jval *payload = NULL;
    unsigned char hash[SHA256_BYTES];
    if (json_parse(t->payload_json, 0, tmp, &payload, &err) < 0 ||
        revision_canonical(payload, &text, &err) < 0) {
        return STR_NONE;
    }
    sha256(buf_str(&text), hash);
    hex_add(&hex, hash, sizeof(hash), /* upper= */ false);
    return arena_str(tmp, buf_str(&hex));
}

static bool template_compose(struct reference *r, struct tree *status, usec_t *until UNUSED,
                             struct arena *tmp)
{
    const struct node_operation_template *t = r->item->object;
    bool good = t->problem.reason.n == 0;
    const struct status_condition valid = { "Valid", good, good ? STR("Valid") : t->problem.reason,
                                            spec_problem_text(&t->problem, tmp) };
    tree_set(tmp, status, STR("parameters"), tree_str(tmp, template_parameters(t, tmp)));
    tree_set(tmp, status, STR("revision"), tree_str(tmp, template_revision(t, tmp)));
    tree_set(tmp, status, STR("usedBy"), tree_i64(tmp, template_used_by(r)));
    reference_set_condition(r, status, &valid, tmp);
    return true;
}

const struct reference_kind template_reference = {
    .path = NODE_OPERATION_TEMPLATES_PATH,
    .status = template_status,
    .meta = template_meta,
    .sources = template_sources,
    .compose = template_compose,
};
