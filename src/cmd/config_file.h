/*
 * config_file: the controller's configuration file: read at the start and again whenever it changes.
 */
#pragma once

#include "profile/controller.h"

#define SETTINGS_PATH STR("config/maintenance.yaml") /* where the original looks */

struct filewatch; /* host/filewatch.h */

struct settings {
    struct controller *controller; /* borrowed */
    struct log *log;               /* borrowed */
    struct str path;               /* borrowed */
    bool optional;                 /* nobody asked for it: without it there is the default */
    struct filewatch *watch;
};

/* Reads it and watches it. A file that is wrong is reported by the controller, which goes on with
 * the one before. */
NODISCARD
int settings_start(struct settings *s, struct loop *loop, struct err *err);
void settings_stop(struct settings *s);

/* Whether there is a file now: otherwise an optional one is done without. */
bool settings_exist(struct str path);
