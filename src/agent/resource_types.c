/* resource: the table of all types, by name. */
#include "agent/resource.h"
#include "agent/type/type.h"

const struct resource_type *const resource_types[] = {
    &resource_type_assert,
    &resource_type_block,
    &resource_type_directory,
    &resource_type_exec,
    &resource_type_file,
    &resource_type_group,
    &resource_type_hostname,
    &resource_type_kernel_arg,
    &resource_type_kernel_module,
    &resource_type_line,
    &resource_type_mount,
    &resource_type_package,
    &resource_type_reboot,
    &resource_type_service,
    &resource_type_setting,
    &resource_type_ssh_key,
    &resource_type_swap,
    &resource_type_symlink,
    &resource_type_sysctl,
    &resource_type_timezone,
    &resource_type_unit,
    &resource_type_user,
    NULL,
};
