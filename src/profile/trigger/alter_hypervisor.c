/*
 * alterHypervisor: sets fields in the spec of the node's Hypervisor.
 *
 * The Hypervisor is an object of its own, so this takes a request of its own: the chain waits for
 * it. Once the server has taken the change, the trigger is done, whatever others make of the field
 * afterwards: an operator that clears `reboot` at once is not asked to reboot again.
 */
#include "profile/trigger/trigger.h"

struct str alter_hypervisor_value(const struct config_instance *instance, uint32_t i)
{
    const struct plugin_value *value = &instance->values[i];
    if (instance->plugin->keys[i].type != PLUGIN_BOOL) {
        return value->text;
    }
    return value->truth ? STR("true") : STR("false");
}

bool trigger_is_alter_hypervisor(const struct config_instance *instance)
{
    return str_eq(str_from(instance->plugin->name), STR("alterHypervisor"));
}

static bool is_so(const struct config_instance *instance, const struct hypervisor *h)
{
    for (uint32_t i = 0; i < instance->plugin->key_n; i++) {
        const char *name = instance->plugin->keys[i].name;
        if (instance->values[i].given &&
            !str_eq(h->fields[hypervisor_find_field(/* spec= */ true, name)],
                    alter_hypervisor_value(instance, i))) {
            return false;
        }
    }
    return true;
}

enum trigger_result trigger_alter_hypervisor(const struct trigger_input *in)
{
    struct facts_hypervisor fact = facts_hypervisor(in->facts, in->edit->name, in->out);
    if (in->altered) {
        return TRIGGER_DONE;
    }
    if (fact.error.n > 0) {
        *in->ret_why = fact.error;
        return TRIGGER_FAILED;
    }
    if (fact.object == NULL) {
        *in->ret_why = STR("the hypervisors are not known yet");
        return TRIGGER_PENDING;
    }
    if (is_so(in->instance, fact.object)) {
        return TRIGGER_DONE;
    }
    *in->ret_alter = true;
    *in->ret_why = in->alter_error.n > 0 ? in->alter_error : STR("the hypervisor is being changed");
    return in->alter_error.n > 0 ? TRIGGER_FAILED : TRIGGER_PENDING;
}
