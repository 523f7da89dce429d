/* node_maintenance_internal: the parts of a NodeMaintenance that have files of their own. */
#pragma once

#include "kinds/node_maintenance.h"

void maintenance_rollout_read(const struct spec_node *spec, struct maintenance_rollout *ret);
void maintenance_disruption_read(const struct spec_node *spec, struct maintenance_disruption *ret);
/* What is wrong in the status is passed over: nobody but the controller writes it. */
void maintenance_record_read(const struct jval *object, struct arena *out,
                             struct maintenance_record *ret);
