#include "cmd/ask.h"
#include "cmd/commands.h"
#include "profile/roster.h"

static int status_print(struct str json, enum report_form form, struct buf *out, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct roster roster;
    int r = roster_parse(json, &tmp, &roster, err);
    if (r < 0) {
        return r;
    }
    roster_print_text(&roster, form, out);
    return 0;
}

static int status_run(const struct command_call *call)
{
    return ask_run(call, STR("/api/v1/status"), status_print);
}

const struct command command_status = {
    .name = "status",
    .summary = "show the fleet by profile and state, and who waits for what",
    .text = "Counts nodes by profile and state and lists every profile of a node that is not at "
            "rest: what fails, what is in maintenance and what waits, each with its reason and "
            "since when.\n\n"
            "Exit code 0: it was shown. 1: the controller could not be asked. 2: the command line "
            "is wrong.",
    .options = { .options = ask_server_options, .count = ASK_OPTION_COUNT },
    .config_size = sizeof(struct ask_flags),
    .run = status_run,
};
