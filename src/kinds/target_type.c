#include "kinds/target_type.h"

static const struct str type_names[TARGET_TYPES] = {
    [TARGET_NODE] = STR_INIT("node"),
    [TARGET_DEPLOYMENT] = STR_INIT("deployment"),
    [TARGET_DAEMONSET] = STR_INIT("daemonset"),
    [TARGET_STATEFULSET] = STR_INIT("statefulset"),
};

bool target_type_find(struct str text, enum target_type *ret)
{
    for (uint32_t i = 0; i < TARGET_TYPES; i++) {
        if (str_eq_fold(text, type_names[i])) {
            *ret = (enum target_type)i;
            return true;
        }
    }
    return false;
}

struct str target_type_name(enum target_type type)
{
    ASSERT((uint32_t)type < TARGET_TYPES);
    return type_names[type];
}
