/*
 * trigger: what a transition, or the entry into a state, does to the node. One family a file.
 *
 * Triggers edit the node (node_edit.h); all edits of a decision become one patch. A drain takes
 * time, and so does the change of another object: they are PENDING until the controller has done
 * it. A trigger that runs again has the same result.
 */
#pragma once

#include "profile/config.h"
#include "profile/facts.h"
#include "profile/node_edit.h"

enum trigger_result { TRIGGER_DONE, TRIGGER_PENDING, TRIGGER_FAILED };

struct trigger_input {
    const struct config_instance *instance;
    struct node_edit *edit;
    struct str profile; /* who owns what it does */
    bool drained;       /* the node's drain is at its end */
    bool any_owner;     /* tests only: a cordon is lifted whoever made it */
    const struct facts *facts;
    bool altered;           /* the change of the other object has been made */
    struct str alter_error; /* why it could not be made; empty = nothing is known to be wrong */
    struct arena *out;
    struct str *ret_why; /* TRIGGER_FAILED, and TRIGGER_PENDING but for drains: a sentence */
    bool *ret_alter;     /* the change of the other object is to be made */
};

/* NULL when there is no such trigger; the triggers are those of plugin_table.h. */
typedef enum trigger_result (*trigger_fn)(const struct trigger_input *in);
trigger_fn trigger_find(const struct plugin *plugin);

enum trigger_result trigger_alter_annotation(const struct trigger_input *in);
enum trigger_result trigger_alter_finalizer(const struct trigger_input *in);
enum trigger_result trigger_alter_hypervisor(const struct trigger_input *in);
enum trigger_result trigger_alter_label(const struct trigger_input *in);
enum trigger_result trigger_eviction(const struct trigger_input *in);

bool trigger_is_alter_hypervisor(const struct config_instance *instance);
/* What the key at that place of the plugin's table is to be, a truth as text. */
struct str alter_hypervisor_value(const struct config_instance *instance, uint32_t i);
/* True for an eviction whose action is drain. */
bool trigger_is_drain(const struct config_instance *instance);
