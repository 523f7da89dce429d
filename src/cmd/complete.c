/* complete and withdraw: the two ways in which whoever asked ends a request. */
#include "cmd/request_cli.h"
#include "cmd/commands.h"

struct finish_flags {
    struct asker_flags asker; /* first */
};

static const struct option finish_options[] = {
    ASKER_TARGET_OPTIONS(struct finish_flags),
    { "o", OPTION_CHOICE, OPTION(struct finish_flags, asker.output), "FORM", "text", "text|json",
      "a line, or the request itself" },
    ASKER_CLUSTER_OPTIONS(struct finish_flags),
};

static int finish_one(const struct command_call *call, bool withdraw)
{
    const struct finish_flags *flags = call->config;
    struct err err = { 0 };
    struct record record;
    struct asker a;
    int code = asker_open(&a, call, &flags->asker);
    if (code == COMMAND_OK) {
        int r = asker_resolve(&a, call->args[0], &record, &err);
        if (r == 0) {
            r = withdraw ? actor_withdraw(&a.actor, record.name, &err)
                         : actor_complete(&a.actor, record.name, STR_NONE, &err);
        }
        code = r < 0 ? asker_fail(&a, &err)
                     : asker_show(&a, record.name, withdraw ? "withdrawn" : "completed");
    }
    asker_close(&a);
    return code;
}

static int complete_run(const struct command_call *call)
{
    return finish_one(call, /* withdraw= */ false);
}

static int withdraw_run(const struct command_call *call)
{
    return finish_one(call, /* withdraw= */ true);
}

#define FINISH_EXITS                                                                               \
    "The argument is the request's own name, or its target's: then the request of --client "       \
    "counts, or the only one there is.\n\n"                                                        \
    "Exit code 0: it is done. 1: it could not be done. 2: the command line is wrong. 4: the "      \
    "request's state does not allow it."

const struct command command_complete = {
    .name = "complete",
    .args = "NODE|NAME",
    .summary = "end a request whose work is done",
    .text = "Ends a MaintenanceRequest that is Approved or InProgress: the node is given back and "
            "the next in the queue may go. " FINISH_EXITS,
    .options = { .options = finish_options, .count = ARRAY_LEN(finish_options) },
    .config_size = sizeof(struct finish_flags),
    .args_min = 1,
    .args_max = 1,
    .run = complete_run,
};

const struct command command_withdraw = {
    .name = "withdraw",
    .args = "NODE|NAME",
    .summary = "give up a request whose work has not begun",
    .text = "Ends a MaintenanceRequest that is Pending or Approved. " FINISH_EXITS,
    .options = { .options = finish_options, .count = ARRAY_LEN(finish_options) },
    .config_size = sizeof(struct finish_flags),
    .args_min = 1,
    .args_max = 1,
    .run = withdraw_run,
};
