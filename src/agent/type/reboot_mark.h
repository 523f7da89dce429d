/*
 * reboot_mark: /run/reboot-required, by which Debian's tools, the operations of drydock and others
 * know that a machine is to be rebooted. The agent never reboots a machine by itself: that takes a
 * visit, in which the node is out of service. It is gone after a reboot, as /run is.
 */
#pragma once

#include "agent/resource.h"

NODISCARD
int reboot_mark_look(struct resource_call *call, bool *ret, struct err *err);
NODISCARD
int reboot_mark_set(struct resource_call *call, struct err *err);
