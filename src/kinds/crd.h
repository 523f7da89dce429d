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
/* Of operations. */
extern const struct asset operation_crds[];
extern const size_t operation_crds_count;

/* The admission policy that says who may change requests, and its binding (src/kinds/policies/). */
extern const struct asset policies[];
extern const size_t policies_count;

/* All CRDs, one after the other. */
size_t crd_count(void);
const struct asset *crd_at(size_t index);

/* The object, in `out`. */
const struct jval *crd_object(const struct asset *crd, struct arena *out);
