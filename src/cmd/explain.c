#include "cmd/ask.h"
#include "cmd/commands.h"
#include "kube/client.h"

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

static int explain_run(const struct command_call *call)
{
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/api/v1/explain?node="));
    client_add_segment(&path, call->args[0]);
    return ask_run(call, buf_str(&path), explain_print);
}

const struct command command_explain = {
    .name = "explain",
    .args = "NODE",
    .summary = "say what a node's profiles wait for, check by check",
    .text = "Shows for every profile of the node and every transition out of its state the "
            "expression, each check's answer with its reason, and when it could change. Checks "
            "that stand in the way are marked with '*'.\n\n"
            "Exit code 0: it was shown. 1: the controller could not be asked, or there is no such "
            "node. 2: the command line is wrong.",
    .options = { .options = ask_server_options, .count = ASK_OPTION_COUNT },
    .config_size = sizeof(struct ask_flags),
    .args_min = 1,
    .args_max = 1,
    .run = explain_run,
};
