/*
 * eviction: cordons, drains or uncordons the node.
 *
 * A cordon leaves a mark with the profile's name, and only a cordon with one's own mark is lifted:
 * somebody who cordoned a node by hand finds it as it was left. `anyOwner` lifts any, as the
 * original does.
 */
#include "profile/trigger/trigger.h"

#include "drain/cordon.h"
#include "kinds/keys.h"

static struct str eviction_action(const struct config_instance *instance)
{
    return plugin_get(instance->plugin, instance->values, "action")->text;
}

bool trigger_is_drain(const struct config_instance *instance)
{
    return str_eq(str_from(instance->plugin->name), STR("eviction")) &&
           str_eq(eviction_action(instance), STR("drain"));
}

static void cordon(const struct trigger_input *in)
{
    if (!node_edit_unschedulable(in->edit)) {
        node_edit_set_unschedulable(in->edit, true);
        node_edit_set_annotation(in->edit, KEY_PROFILE_CORDON, in->profile);
    }
}

static void uncordon(const struct trigger_input *in)
{
    struct str mark = node_edit_annotation(in->edit, KEY_PROFILE_CORDON);
    bool any =
        in->any_owner || plugin_get(in->instance->plugin, in->instance->values, "anyOwner")->truth;
    if (cordon_is_ours(mark, in->profile) || any) {
        node_edit_set_unschedulable(in->edit, false);
        node_edit_remove_annotation(in->edit, KEY_PROFILE_CORDON);
    }
}

enum trigger_result trigger_eviction(const struct trigger_input *in)
{
    struct str action = eviction_action(in->instance);
    if (str_eq(action, STR("uncordon"))) {
        uncordon(in);
        return TRIGGER_DONE;
    }
    cordon(in);
    return str_eq(action, STR("drain")) && !in->drained ? TRIGGER_PENDING : TRIGGER_DONE;
}
