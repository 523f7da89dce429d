/*
 * request_create: asking for a target and waiting, as `request` and `run` do it.
 */
#pragma once

#include "cmd/request_cli.h"

struct petition_flags {
    struct asker_flags asker; /* first */
    struct str reason;
    int32_t priority;
    struct str preparation;
    bool wait;
};

#define PETITION_OPTIONS                                                                           \
    ASKER_TARGET_OPTIONS(struct petition_flags),                                                   \
        { "reason", OPTION_TEXT,      OPTION(struct petition_flags, reason), "TEXT", "",           \
          NULL,     "why, for people" },                                                           \
        { "priority", OPTION_I32, OPTION(struct petition_flags, priority),       "N",              \
          "0",        NULL,       "-1000 to 1000; higher ones are granted first" },                \
        { "preparation", OPTION_CHOICE,  OPTION(struct petition_flags, preparation),     "HOW",    \
          "Default",     "Default|None", "None: whoever asks drains the node by himself" },        \
    {                                                                                              \
        "timeout", OPTION_DURATION, OPTION(struct petition_flags, asker.time_max), "DURATION",     \
            "0s", NULL, "how long to wait for the approval; 0s is for ever"                        \
    }

#define PETITION_PRIORITY_MAX 1000

/* Opens the cluster as the flags say; as asker_open. */
int petition_open(struct asker *a, const struct command_call *call);

/* Asks. What it waits for is told on stderr from then on. */
NODISCARD
int petition_ask(struct asker *a, struct str name, struct str reason, struct record *ret,
                 bool *ret_created, struct err *err);
