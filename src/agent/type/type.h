/*
 * type: the types of resources, one file each. To add one: a file here, a line in this header and
 * one in resource_types.c; messages, the reference page and the check of unknown fields come with
 * its table.
 */
#pragma once

#include "agent/resource.h"

extern const struct resource_type resource_type_assert;
extern const struct resource_type resource_type_block;
extern const struct resource_type resource_type_directory;
extern const struct resource_type resource_type_exec;
extern const struct resource_type resource_type_file;
extern const struct resource_type resource_type_group;
extern const struct resource_type resource_type_hostname;
extern const struct resource_type resource_type_kernel_arg;
extern const struct resource_type resource_type_kernel_module;
extern const struct resource_type resource_type_line;
extern const struct resource_type resource_type_mount;
extern const struct resource_type resource_type_package;
extern const struct resource_type resource_type_reboot;
extern const struct resource_type resource_type_service;
extern const struct resource_type resource_type_setting;
extern const struct resource_type resource_type_ssh_key;
extern const struct resource_type resource_type_swap;
extern const struct resource_type resource_type_symlink;
extern const struct resource_type resource_type_sysctl;
extern const struct resource_type resource_type_timezone;
extern const struct resource_type resource_type_unit;
extern const struct resource_type resource_type_user;
