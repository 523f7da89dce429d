/* pods_depend: units and packages that are not stopped or upgraded under the pods of a node. */
#pragma once

#include "base/str.h"

/* By the beginning of a unit's or a package's name: kubelet, container runtimes, k3s and RKE2. */
bool pods_depend_on(struct str name);
