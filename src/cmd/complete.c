/* complete and withdraw: the two ways in which whoever asked ends a request. */
#include "cmd/request_cli.h"
#include "cmd/commands.h"

struct complete_flags {
    struct request_cli_flags cli; /* first */
};

static const struct option complete_options[] = {
    REQUEST_CLI_TARGET_OPTIONS(struct complete_flags),
    REQUEST_CLI_OUTPUT_OPTION(struct complete_flags),
    REQUEST_CLI_CLUSTER_OPTIONS(struct complete_flags),
};

static int complete_or_withdraw(const struct command_call *call, bool withdraw)
{
    const struct complete_flags *flags = call->config;
    struct err err = { 0 };
    struct maintenance_request request;
    struct request_cli a;
    int code = request_cli_open(&a, call, &flags->cli);
    if (code == COMMAND_OK) {
        int r = request_cli_resolve(&a, call->args[0], &request, &err);
        if (r == 0) {
            r = withdraw ? actor_withdraw(&a.actor, request.name, &err)
                         : actor_complete(&a.actor, request.name, STR_NONE, &err);
        }
        code = r < 0 ? request_cli_fail(&a, &err)
                     : request_cli_print(&a, request.name, withdraw ? "withdrawn" : "completed");
    }
    request_cli_close(&a);
    return code;
}

static int complete_run(const struct command_call *call)
{
    return complete_or_withdraw(call, /* withdraw= */ false);
}

static int withdraw_run(const struct command_call *call)
{
    return complete_or_withdraw(call, /* withdraw= */ true);
}

static unsigned complete_names(const struct command_call *call)
{
    return call->arg_count == 0 ? COMMAND_NAMES_REQUESTS : 0;
}

#define COMPLETE_EXITS                                                                             \
    "The argument is the request's own name, or its target's: then the request of --client "       \
    "counts, or the only one there is.\n\n"                                                        \
    "Exit code 0: it is done. 1: it could not be done. 2: the command line is wrong. 4: the "      \
    "request's state does not allow it."

const struct command command_complete = {
    .name = "complete",
    .args = "NODE|NAME",
    .summary = "end a request whose work is done",
    .text = "Ends a MaintenanceRequest that is Approved or InProgress: the node is given back and "
            "the next in the queue may go. " COMPLETE_EXITS,
    .options = { .options = complete_options, .count = ARRAY_LEN(complete_options) },
    .config_size = sizeof(struct complete_flags),
    .args_min = 1,
    .args_max = 1,
    .run = complete_run,
    .names = complete_names,
};

const struct command command_withdraw = {
    .name = "withdraw",
    .args = "NODE|NAME",
    .summary = "give up a request whose work has not begun",
    .text = "Ends a MaintenanceRequest that is Pending or Approved. " COMPLETE_EXITS,
    .options = { .options = complete_options, .count = ARRAY_LEN(complete_options) },
    .config_size = sizeof(struct complete_flags),
    .args_min = 1,
    .args_max = 1,
    .run = withdraw_run,
    .names = complete_names,
};
