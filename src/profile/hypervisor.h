/*
 * hypervisor: what checks and triggers use of a Hypervisor (kvm.cloud.sap/v1), the object of an
 * OpenStack compute host that has the name of its Node.
 *
 * Of its fields those are kept that a configuration can name: texts and truths. One that is not
 * there is what Go makes of it, an empty text or false.
 */
#pragma once

#include "kinds/store_kind.h"
#include "kube/informer.h"

#define HYPERVISOR_FIELDS_MAX 20u
#define HYPERVISOR_CONDITIONS_MAX 256u /* it has five */

struct hypervisor_field {
    bool spec; /* of spec; otherwise of status */
    const char *name;
    bool is_bool;
};

struct hypervisor_condition {
    struct str type;
    struct str status;
};

struct hypervisor {
    struct str fields[HYPERVISOR_FIELDS_MAX]; /* as hypervisor_fields; a truth is true or false */
    struct hypervisor_condition *conditions;
    uint32_t condition_n;
};

extern const struct hypervisor_field hypervisor_fields[];
extern const uint32_t hypervisor_field_n;
extern const struct store_kind hypervisor_kind;

/* Its place in hypervisor_fields, which must have it. */
uint32_t hypervisor_find_field(bool spec, const char *name);
/* The status of the first condition of that type, or STR_NONE. */
struct str hypervisor_condition(const struct hypervisor *h, struct str type);
