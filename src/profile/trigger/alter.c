/* alterAnnotation, alterFinalizer, alterLabel: one key of the node is set or removed. */
#include "profile/node_data.h"
#include "kinds/keys.h"
#include "profile/trigger/trigger.h"

static struct str value_text(const struct trigger_input *in, const char *key)
{
    return plugin_get(in->instance->plugin, in->instance->values, key)->text;
}

static bool is_removal(const struct trigger_input *in)
{
    return plugin_get(in->instance->plugin, in->instance->values, "remove")->truth;
}

enum trigger_result trigger_alter_annotation(const struct trigger_input *in)
{
    struct str key = value_text(in, "key");
    if (str_eq(key, KEY_DATA)) {
        return TRIGGER_DONE; /* the controller writes this key itself, after the triggers */
    }
    if (is_removal(in)) {
        node_edit_remove_annotation(in->edit, key);
    } else {
        node_edit_set_annotation(in->edit, key, value_text(in, "value"));
    }
    return TRIGGER_DONE;
}

enum trigger_result trigger_alter_label(const struct trigger_input *in)
{
    struct str key = value_text(in, "key");
    if (is_removal(in)) {
        node_edit_remove_label(in->edit, key);
    } else {
        node_edit_set_label(in->edit, key, value_text(in, "value"));
    }
    return TRIGGER_DONE;
}

enum trigger_result trigger_alter_finalizer(const struct trigger_input *in)
{
    struct str key = value_text(in, "key");
    if (is_removal(in)) {
        node_edit_remove_finalizer(in->edit, key);
    } else {
        node_edit_add_finalizer(in->edit, key);
    }
    return TRIGGER_DONE;
}
