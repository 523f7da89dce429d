/* The table of triggers. */
#include "profile/trigger/trigger.h"

static const struct {
    const char *name;
    trigger_fn run;
} triggers[] = {
    { "alterAnnotation", trigger_alter_annotation },
    { "alterFinalizer", trigger_alter_finalizer },
    { "alterHypervisor", trigger_alter_hypervisor },
    { "alterLabel", trigger_alter_label },
    { "eviction", trigger_eviction },
};

trigger_fn trigger_find(const struct plugin *plugin)
{
    for (size_t i = 0; i < ARRAY_LEN(triggers); i++) {
        if (str_eq(str_from(triggers[i].name), str_from(plugin->name))) {
            return triggers[i].run;
        }
    }
    return NULL;
}
