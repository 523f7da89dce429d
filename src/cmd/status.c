#include "cmd/report_fetch.h"
#include "cmd/commands.h"
#include "profile/fleet_report.h"
#include "request/limits_report.h"

/* Where the CRDs are installed, limits follow. */
static int status_print_limits(struct str json, enum report_format form, struct buf *out,
                               struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root;
    struct limits_report limits_report;
    int r = json_parse(json, 0, &tmp, &root, err);
    const struct jval *limits = r < 0 ? NULL : jval_get(root, STR("board"));
    if (limits == NULL) {
        return r;
    }
    r = limits_report_read(limits, &tmp, &limits_report, err);
    if (r == 0 && (limits_report.limit_n > 0 || limits_report.claim_n > 0)) {
        buf_add(out, STR("\n"));
        limits_report_print_text(&limits_report, form == NODE_REPORT_WIDE, out);
    }
    return r;
}

static int status_print(struct str json, enum report_format form, struct buf *out, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct fleet_report roster;
    int r = fleet_report_parse(json, &tmp, &roster, err);
    if (r < 0) {
        return r;
    }
    fleet_report_print_text(&roster, form, out);
    return status_print_limits(json, form, out, err);
}

static int status_run(const struct command_call *call)
{
    return node_report_fetch_run(call, &(struct node_report_query){
                                           .path = STR("/api/v1/status"),
                                           .print = status_print,
                                       });
}

const struct command command_status = {
    .name = "status",
    .summary = "show the fleet by profile and state, and who waits for what",
    .text = "Counts nodes by profile and state and lists every profile of a node that is not at "
            "rest: what fails, what is in maintenance and what waits, each with its reason and "
            "since when. With MaintenanceLimits: each limit with its numbers, what is held under "
            "it, and the queue.\n\n"
            "Exit code 0: it was shown. 1: the controller could not be asked. 2: the command line "
            "is wrong.",
    .options = { .options = node_report_fetch_options, .count = NODE_REPORT_FETCH_OPTION_COUNT },
    .config_size = sizeof(struct node_report_fetch_flags),
    .run = status_run,
};
