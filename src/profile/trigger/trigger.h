/*
 * trigger: what a transition, or the entry into a state, does to the node. One family a file.
 *
 * Triggers edit the node (node_edit.h); all edits of a decision become one patch. Only a drain
 * takes time: it is PENDING until the controller's drain is done. A trigger that runs again has the
 * same result.
 */
#pragma once

#include "profile/config.h"
#include "profile/node_edit.h"

enum trigger_result { TRIGGER_DONE, TRIGGER_PENDING };

struct trigger_input {
    const struct config_instance *instance;
    struct node_edit *edit;
    struct str profile; /* who owns what it does */
    bool drained;       /* the node's drain is at its end */
    bool any_owner;     /* tests only: a cordon is lifted whoever made it */
};

/* NULL when there is no such trigger; the triggers are those of plugin_table.h. */
typedef enum trigger_result (*trigger_fn)(const struct trigger_input *in);
trigger_fn trigger_find(const struct plugin *plugin);

enum trigger_result trigger_alter_annotation(const struct trigger_input *in);
enum trigger_result trigger_alter_finalizer(const struct trigger_input *in);
enum trigger_result trigger_alter_label(const struct trigger_input *in);
enum trigger_result trigger_eviction(const struct trigger_input *in);

/* True for an eviction whose action is drain. */
bool trigger_is_drain(const struct config_instance *instance);
