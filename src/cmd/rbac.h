/*
 * rbac: the rights that drydock needs, as roles, as data for the chart and as a page.
 */
#pragma once

#include "base/buf.h"
#include "kinds/rights.h"

struct rbac_choice {
    const struct str *roles; /* none: all */
    uint32_t role_n;
    const struct str *leave_out; /* uses */
    uint32_t leave_out_n;
    const struct str *lease_namespaces; /* where stagger and slackThread have their Leases */
    uint32_t lease_namespace_n;
    struct str namespace;      /* of controller and bridge */
    struct str jobs_namespace; /* of operations */
};

void rbac_print_yaml(const struct rbac_choice *choice, struct buf *out);
void rbac_print_json(const struct rbac_choice *choice, struct buf *out); /* one List */
void rbac_print_list(struct buf *out); /* every row, for deploy/helm/drydock/files/rights.json */
void rbac_print_page(struct buf *out); /* docs/rbac.md */
