/*
 * builtin_template: the NodeOperationTemplates that come with the program (src/kinds/templates/).
 *
 * Their label drydock.dev/builtin says so; the annotation drydock.dev/example has an operation that
 * uses the template.
 */
#pragma once

#include "base/asset.h"

extern const struct asset builtin_templates[];
extern const size_t builtin_templates_count;
