/* resource: the table of all types, by name. */
#include "agent/resource.h"
#include "agent/type/type.h"

const struct resource_type *const resource_types[] = {
    &resource_type_directory,
    &resource_type_file,
    &resource_type_symlink,
    NULL,
};
