/*
 * request_create: creates a MaintenanceRequest, for `drydock request` and `drydock run`.
 */
#pragma once

#include "cmd/request_cli.h"

struct request_create_flags {
    struct request_cli_flags cli; /* first */
    struct str reason;
    int32_t priority;
    struct str preparation;
    bool wait;
};

#define REQUEST_CREATE_OPTIONS                                                                     \
    REQUEST_CLI_TARGET_OPTIONS(struct request_create_flags),                                       \
        { "reason", OPTION_TEXT,      OPTION(struct request_create_flags, reason), "TEXT", "",     \
          NULL,     "why, for people" },                                                           \
        { "priority", OPTION_I32, OPTION(struct request_create_flags, priority), "N",              \
          "0",        NULL,       "-1000 to 1000; higher ones are granted first" },                \
        { "preparation", OPTION_CHOICE,  OPTION(struct request_create_flags, preparation), "HOW",  \
          "Default",     "Default|None", "None: whoever asks drains the node by himself" },        \
    {                                                                                              \
        "timeout", OPTION_DURATION, OPTION(struct request_create_flags, cli.time_max), "DURATION", \
            "0s", NULL, "how long to wait for the approval; 0s is for ever"                        \
    }

#define REQUEST_CREATE_PRIORITY_MAX 1000

/* Opens the cluster as the flags say; as request_cli_open. */
int request_create_open(struct request_cli *a, const struct command_call *call);

/* Nodes, at the place of the first argument. */
unsigned request_create_names(const struct command_call *call);

/* Creates the request. From then on stderr tells what the request waits for. */
NODISCARD
int request_create_send(struct request_cli *a, struct str name, struct str reason,
                        struct maintenance_request *ret, bool *ret_created, struct err *err);
