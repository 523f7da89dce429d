/*
 * config_file: the controller's configuration file: read at the start and again whenever it
 * changes.
 */
#pragma once

#include "profile/controller.h"

#define CONFIG_FILE_PATH STR("config/maintenance.yaml") /* where the original looks */

struct filewatch; /* host/filewatch.h */

struct config_file {
    struct controller *controller; /* borrowed */
    struct log *log;               /* borrowed */
    struct str path;               /* borrowed */
    bool optional;                 /* nobody asked for it: without it there is the default */
    struct filewatch *watch;
};

/* Reads it and watches it. A file that is wrong is reported by the controller, which goes on with
 * the one before. */
NODISCARD
int config_file_start(struct config_file *s, struct loop *loop, struct err *err);
void config_file_stop(struct config_file *s);

/* Whether there is a file now: otherwise an optional one is done without. */
bool config_file_exists(struct str path);
