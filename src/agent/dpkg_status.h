/*
 * dpkg_status: which packages a Debian machine has, as dpkg writes it down. Pure.
 *
 * A name may come several times, for several architectures; "name:arch" means one of them, and the
 * name alone the one that is installed.
 */
#pragma once

#include "base/str.h"

struct dpkg_package {
    struct str name;
    struct str arch;
    struct str version;
    struct str want;  /* install, hold, deinstall, purge */
    struct str state; /* installed, config-files, half-configured, … */
};

/* Walks over the entries of `*rest`. */
bool dpkg_next(struct str *rest, struct dpkg_package *ret);
/* False when dpkg has never heard of it. */
bool dpkg_find(struct str status, struct str name, struct dpkg_package *ret);
bool dpkg_is_installed(const struct dpkg_package *p);
/* Whether dpkg was interrupted in the middle of some package: it must go on before anything else.
 */
bool dpkg_is_interrupted(struct str status);

/* A name as Debian's policy has it, perhaps with an architecture. */
bool dpkg_name_is_good(struct str name);
bool dpkg_version_is_good(struct str version);

/* Whether a run that only tells would install or upgrade it: "Inst NAME [1.0] (2.0 …)". */
bool apt_would_install(struct str output, struct str name);
