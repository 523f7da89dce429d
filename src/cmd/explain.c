#include "cmd/ask.h"
#include "cmd/commands.h"
#include "kube/client.h"
#include "request/board.h"

static int explain_print(struct str json, enum report_form form, struct buf *out, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    struct report report;
    int r = report_parse(json, &tmp, &report, err);
    if (r < 0) {
        return r;
    }
    report_print_text(&report, form, out);
    return 0;
}

static int explain_print_board(struct str json, enum report_form form, struct buf *out,
                               struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    const struct jval *root;
    struct board board;
    int r = json_parse(json, 0, &tmp, &root, err);
    r = r < 0 ? r : board_read(root, &tmp, &board, err);
    if (r < 0) {
        return r;
    }
    board_print_text(&board, form == REPORT_WIDE, out);
    return 0;
}

/* One argument is a node's name, whatever it is; before a second one stands what that is. */
static int explain_run(const struct command_call *call)
{
    bool node = call->arg_count == 1 || str_eq(call->args[0], STR("node"));
    bool known =
        node || str_eq(call->args[0], STR("request")) || str_eq(call->args[0], STR("limit"));
    if (!known) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_INVALID, "'" STR_FMT "': want node, request or limit",
                      STR_ARG(call->args[0]));
        (void)command_fail(call, &err); /* the exit code is that of a wrong command line */
        return COMMAND_USAGE;
    }
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_printf(&path, "/api/v1/explain?" STR_FMT "=",
               STR_ARG(call->arg_count == 1 ? STR("node") : call->args[0]));
    client_add_segment(&path, call->args[call->arg_count - 1]);
    return ask_run(call, buf_str(&path), node ? explain_print : explain_print_board);
}

const struct command command_explain = {
    .name = "explain",
    .args = "[node|request|limit] NAME",
    .summary = "say what a node, a request or a limit waits for",
    .text = "Shows for every profile of the node and every transition out of its state the "
            "expression, each check's answer with its reason, and when it could change. Checks "
            "that stand in the way are marked with '*'. Requests and reservations that concern the "
            "node are named with what they wait for.\n\n"
            "'request NAME' shows what a MaintenanceRequest waits for, who stands in its way, and "
            "what would help; NAME may be its target's. 'limit NAME' shows a MaintenanceLimit with "
            "its numbers, what is held under it, and its queue.\n\n"
            "Exit code 0: it was shown. 1: the controller could not be asked, or there is no such "
            "thing. 2: the command line is wrong.",
    .options = { .options = ask_server_options, .count = ASK_OPTION_COUNT },
    .config_size = sizeof(struct ask_flags),
    .args_min = 1,
    .args_max = 2,
    .run = explain_run,
};
