/*
 * target_type: the kinds of objects that a MaintenanceRequest may be about and a MaintenanceLimit
 * may count.
 */
#pragma once

#include "base/str.h"

enum target_type { TARGET_NODE, TARGET_DEPLOYMENT, TARGET_DAEMONSET, TARGET_STATEFULSET };
#define TARGET_TYPES 4

/* Reads "node", "deployment", … in any case, as the original does; false for other words. */
bool target_type_find(struct str text, enum target_type *ret);
struct str target_type_name(enum target_type type);
