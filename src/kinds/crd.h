/*
 * crd: the CustomResourceDefinitions of repairman.k8s.io/v1, which are part of the program.
 *
 * They are src/kinds/crds/, the one place where schemas, rules and columns are written down.
 */
#pragma once

#include "base/asset.h"
#include "format/json.h"

extern const struct asset crds[];
extern const size_t crds_count;

/* The object, in `out`. */
const struct jval *crd_object(const struct asset *crd, struct arena *out);
