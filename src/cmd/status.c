/* drydock status: prints the fleet, limits, queue and operations as the leading controller says. */
#include "cmd/commands.h"
#include "cmd/report_fetch.h"

static int status_run(const struct command_call *call)
{
    return report_fetch_run(
        call, &(struct report_query){ .about = REPORT_ABOUT_FLEET, .path = STR("/api/v1/status") });
}

const struct command command_status = {
    .name = "status",
    .summary = "show the fleet by profile and state, and who waits for what",
    .text = "Counts nodes by profile and state and lists every profile of a node that is not at "
            "rest: what fails, what is in maintenance and what waits, each with its reason and "
            "since when. With MaintenanceLimits: each limit with its numbers, what is held under "
            "it, and the queue. With NodeMaintenances: each with its phase, how many machines have "
            "done it and what it waits for, the visits under way, and what failed.\n\n"
            "Exit code 0: it was shown. 1: the controller could not be asked. 2: the command line "
            "is wrong.",
    .options = { .options = report_fetch_options, .count = REPORT_FETCH_OPTION_COUNT },
    .config_size = sizeof(struct report_fetch_flags),
    .run = status_run,
};
