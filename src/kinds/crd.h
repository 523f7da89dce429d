/*
 * crd: the CustomResourceDefinitions of our kinds, which are part of the program.
 *
 * They are src/kinds/crds/. Those of drydock.dev are written by tools/operation-crds, for they
 * share windows, series, jobs and gates.
 */
#pragma once

#include "base/asset.h"
#include "format/json.h"

extern const struct asset crds[]; /* of requests and limits */
extern const size_t crds_count;
/* Of operations. Apart, and not installed by the controller, as long as it does not act on them. */
extern const struct asset operation_crds[];
extern const size_t operation_crds_count;

/* The admission policy that says who may change requests, and its binding (src/kinds/policies/). */
extern const struct asset policies[];
extern const size_t policies_count;

/* The object, in `out`. */
const struct jval *crd_object(const struct asset *crd, struct arena *out);
