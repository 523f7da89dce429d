/* The main function of drydock: the table of its commands. */
#include "cmd/commands.h"
#include "cmd/version.h"

#include <signal.h>

/* In the order in which help lists them, a line each. */
/* clang-format off */
static const struct command *const commands[] = {
    &command_controller,
    &command_bridge,
    &command_status,
    &command_explain,
    &command_history,
    &command_limits,
    &command_request,
    &command_run,
    &command_run_on_host,
    &command_complete,
    &command_withdraw,
    &command_abort,
    &command_approve,
    &command_rerun,
    &command_hold,
    &command_pause,
    &command_resume,
    &command_check,
    &command_crds,
    &command_rbac,
    &command_uninstall,
    &command_templates,
    &command_convert,
    &command_reference,
    &command_sandbox,
    &command_demo,
    NULL,
};
/* clang-format on */

int main(int argc, char **argv)
{
    (void)argc;
    /* A peer that closes its end is an error of one exchange, not the end of the process. */
    (void)signal(SIGPIPE, SIG_IGN);
    const struct command_list list = { .items = commands, .commit = version_commit };
    return command_main(&list, argv);
}
