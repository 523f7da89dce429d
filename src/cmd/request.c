/* drydock request: creates a MaintenanceRequest and waits for its approval. */
#include "cmd/commands.h"
#include "cmd/request_create.h"

static const struct option request_options[] = {
    REQUEST_CREATE_OPTIONS,
    { "wait", OPTION_BOOL, OPTION(struct request_create_flags, wait), NULL, "false", NULL,
      "return when it is approved" },
    REQUEST_CLI_OUTPUT_OPTION(struct request_create_flags),
    REQUEST_CLI_CLUSTER_OPTIONS(struct request_create_flags),
};

static int request_make(struct request_cli *a)
{
    const struct request_create_flags *flags = a->call->config;
    bool text = str_eq(flags->cli.output, STR("text"));
    usec_t until = request_cli_deadline(a);
    struct err err = { 0 };
    struct maintenance_request request;
    bool created;
    if (request_create_send(a, a->call->args[0], flags->reason, &request, &created, &err) < 0) {
        return request_cli_fail(a, &err);
    }
    if (!flags->wait || text) {
        int code = request_cli_print(a, request.name, created ? "created" : "unchanged");
        if (!flags->wait || code != COMMAND_OK) {
            return code;
        }
    }
    if (actor_wait(&a->actor, until, &a->memory, &request, &err) < 0) {
        return request_cli_fail(a, &err);
    }
    return request_cli_print(a, request.name, "approved");
}

static int request_run(const struct command_call *call)
{
    struct request_cli a;
    int code = request_create_open(&a, call);
    if (code == COMMAND_OK) {
        code = request_make(&a);
    }
    request_cli_close(&a);
    return code;
}

const struct command command_request = {
    .name = "request",
    .args = "NODE",
    .summary = "ask to disturb a node, and perhaps wait for the approval",
    .text = "Makes a MaintenanceRequest for a node, or for a workload with --type and --namespace. "
            "A client has one request a target: asking again finds the one that is there.\n\n"
            "Once it is approved, say that you begin before you touch the node, and complete it "
            "afterwards; 'drydock run' does all of it around a command. kubectl waits too:\n\n"
            "  kubectl wait mreq/NAME --for=jsonpath='{.spec.state}'=Approved\n\n"
            "Exit code 0: it is there, with --wait: it is approved. 1: it could not be asked for. "
            "2: the command line is wrong. 3: --timeout has passed; the request stays. 4: it was "
            "closed, or is in progress already.",
    .options = { .options = request_options, .count = ARRAY_LEN(request_options) },
    .config_size = sizeof(struct request_create_flags),
    .args_min = 1,
    .args_max = 1,
    .run = request_run,
    .names = request_create_names,
};
