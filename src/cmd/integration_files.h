/*
 * integration_files: the configuration files of integrations, read at the start and again whenever
 * they change; and the door by which integrations read credentials.
 */
#pragma once

#include "integration/integration.h"

struct filewatch; /* host/filewatch.h */

struct integration_file {
    struct integration *integration; /* borrowed; NULL: that provider does not run */
    struct log *log;                 /* borrowed */
    struct str path;                 /* borrowed */
    struct filewatch *watch;
};

struct integration_files {
    struct integration_file items[INTEGRATIONS_MAX];
};

/* Reads and watches the file of each provider that runs; `paths` has one for each of
 * integration_providers, empty = the provider's own. */
NODISCARD
int integration_files_start(struct integration_files *s, struct integrations *all,
                            const struct str *paths, struct loop *loop, struct err *err);
void integration_files_stop(struct integration_files *s); /* accepts a zeroed one */

/* Files of this machine. */
extern const struct files integration_files_host;
