/* checkHypervisor: fields of the status of the node's Hypervisor have the configured values. */
#include "kinds/keys.h"
#include "profile/check/check_plugin.h"

struct wanted {
    uint32_t field; /* of hypervisor_fields */
    struct str value;
};

struct check_fields {
    struct wanted *items;
    uint32_t n;
};

static const void *prepare(const struct check_prepare_input *input)
{
    struct check_fields *prepared = ARENA_NEW(input->out, struct check_fields);
    prepared->items = ARENA_ARRAY(input->out, struct wanted, input->plugin->key_n);
    for (uint32_t i = 0; i < input->plugin->key_n; i++) {
        const struct plugin_key *key = &input->plugin->keys[i];
        const struct plugin_value *value = &input->values[i];
        if (value->given) {
            prepared->items[prepared->n++] = (struct wanted){
                .field = hypervisor_find_field(/* spec= */ false, key->name),
                .value = key->type != PLUGIN_BOOL ? value->text
                         : value->truth           ? STR("true")
                                                  : STR("false"),
            };
        }
    }
    return prepared;
}

bool check_find_hypervisor(const struct check_input *in, struct check_verdict *ret,
                           const struct hypervisor **ret_found)
{
    struct facts_hypervisor fact = facts_hypervisor(in->facts, in->edit->name, in->out);
    if (fact.object == NULL && fact.error.n > 0) {
        ret->answer = CHECK_ERROR;
        ret->error = fact.error;
        return false;
    }
    if (fact.object == NULL) {
        ret->answer = CHECK_PENDING;
        ret->reason = in->explain ? STR("the hypervisors are not known yet") : STR_NONE;
        return false;
    }
    *ret_found = fact.object;
    return true;
}

static void run(const struct check_input *in, uint32_t index, struct check_verdict *ret)
{
    const struct check_fields *prepared = check_prepared(in, index);
    const struct hypervisor *h = NULL;
    if (!check_find_hypervisor(in, ret, &h)) {
        return;
    }
    ret->answer = CHECK_PASS;
    for (uint32_t i = 0; i < prepared->n; i++) {
        const struct wanted *w = &prepared->items[i];
        bool same = str_eq(h->fields[w->field], w->value);
        ret->answer = same ? ret->answer : CHECK_FAIL;
        if (in->explain) {
            struct str text = arena_printf(
                in->out, "%s%s is " STR_FMT "%s" STR_FMT, ret->reason.n > 0 ? ", " : "",
                hypervisor_fields[w->field].name,
                STR_ARG(check_quote_text(in->out, h->fields[w->field])), same ? "" : ", not ",
                STR_ARG(same ? STR("") : check_quote_text(in->out, w->value)));
            ret->reason = arena_concat(in->out, ret->reason, text);
        }
    }
    if (in->explain && prepared->n == 0) {
        ret->reason = STR("the node has a hypervisor");
    }
}

const struct check_plugin check_check_hypervisor = {
    .name = "checkHypervisor",
    .prepare = prepare,
    .run = run,
};
