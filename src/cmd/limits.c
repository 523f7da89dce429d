/* drydock limits: prints MaintenanceLimits and requests as the API server has them, without asking
 * a controller. */
#include "cmd/request_cli.h"
#include "cmd/commands.h"
#include "cmd/limits_table.h"
#include "cmd/report_output.h"
#include "cmd/terminal.h"
#include "kinds/keys.h"
#include "kube/client.h"

#include <stdio.h>
#include <unistd.h>

#define LIMITS_OUTPUT_MAX ((size_t)64 * 1024 * 1024) /* as the largest document */

struct limits_flags {
    struct request_cli_flags cli; /* first */
};

static const struct option limits_options[] = {
    { "o", OPTION_CHOICE, OPTION(struct limits_flags, cli.output), "FORM", "text",
      "text|wide|json|yaml|name",
      "text as wide as the terminal, lines with everything, the objects as one List, or their "
      "names",
      .also = "output" },
    REQUEST_CLI_CLUSTER_OPTIONS(struct limits_flags),
};

static int limits_get(struct request_cli *a, struct str path, const struct jval **ret,
                      struct err *err)
{
    struct blocking_api_reply answer;
    int r = blocking_api_send(&a->session.blocking_api,
                              &(struct api_request){ .verb = API_GET, .path = path }, &a->memory,
                              &answer, err);
    if (r < 0) {
        return r;
    }
    if (answer.status == 404) {
        return err_set(err, ERR_NOTFOUND,
                       "this cluster knows no limits: 'drydock crds | kubectl apply -f -'");
    }
    if (answer.status != 200) {
        client_explain(answer.status, answer.body, NULL, err);
        return -(int)err->code;
    }
    return json_parse(answer.body, JSON_GO, &a->memory, ret, err);
}

static int limits_show(struct request_cli *a)
{
    struct err err = { 0 };
    const struct jval *limits = NULL;
    const struct jval *requests = NULL;
    CLEANUP(buf_done)
    struct buf out = { .max = LIMITS_OUTPUT_MAX };
    if (limits_get(a, STR(MAINTENANCE_LIMITS_PATH), &limits, &err) < 0 ||
        limits_get(a, STR(MAINTENANCE_REQUESTS_PATH), &requests, &err) < 0) {
        return request_cli_fail(a, &err);
    }
    const struct limits_table quota = {
        .limits = jval_get(limits, STR("items")),
        .requests = jval_get(requests, STR("items")),
        .now = loop_wall(a->session.loop),
        .wide = str_eq(a->flags->output, STR("wide")),
        .columns = terminal_columns(STDOUT_FILENO),
    };
    if (str_eq(a->flags->output, STR("name"))) {
        limits_table_print_names(&quota, &out);
    } else {
        CLEANUP(buf_done)
        struct buf body = { .max = LIMITS_OUTPUT_MAX };
        if (report_output_is_json(a->flags->output)) {
            limits_table_print_json(&quota, &body);
        } else {
            limits_table_print_text(&quota, &body);
        }
        if (report_output_add(a->flags->output, REPORT_ABOUT_FLEET, terminal_colour(STDOUT_FILENO),
                              buf_str(&body), &out, &err) < 0) {
            return request_cli_fail(a, &err);
        }
    }
    (void)fwrite(out.p, 1, out.n, stdout); /* a closed pipe is the reader's business */
    return COMMAND_OK;
}

static int limits_run(const struct command_call *call)
{
    const struct limits_flags *flags = call->config;
    struct request_cli a;
    int code = request_cli_open(&a, call, &flags->cli);
    if (code == COMMAND_OK) {
        code = limits_show(&a);
    }
    request_cli_close(&a);
    return code;
}

const struct command command_limits = {
    .name = "limits",
    .summary = "show limits, who holds them and who waits",
    .text =
        "Shows every MaintenanceLimit with its numbers, everything that is held under it, and "
        "the requests that wait, each with its reason and what would help. 'drydock status' has "
        "the same words and asks the controller, which knows of waiting profiles as well.\n\n"
        "Exit code 0: it was shown. 1: it could not be read. 2: the command line is wrong.",
    .options = { .options = limits_options, .count = ARRAY_LEN(limits_options) },
    .config_size = sizeof(struct limits_flags),
    .run = limits_run,
};
