/* abort: gives up what the profiles of a node have under way, by an annotation that the controller
 * consumes. */
#include "client/client_session.h"
#include "cmd/commands.h"
#include "kinds/keys.h"
#include "kube/client.h"

#include <stdio.h>

struct abort_flags {
    struct str kubeconfig;
    struct str kubecontext;
};

static const struct option abort_options[] = {
    { "kubeconfig", OPTION_FILE, OPTION(struct abort_flags, kubeconfig), "FILE", "", NULL,
      "how to reach the cluster; otherwise KUBECONFIG, the service account, ~/.kube/config" },
    { "context", OPTION_TEXT, OPTION(struct abort_flags, kubecontext), "NAME", "", NULL,
      "context of the kubeconfig; otherwise KUBECONTEXT, then the file's own choice",
      .also = "kubecontext" },
};

static int abort_annotate(struct client_session *session, struct str node, struct err *err)
{
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf path = { 0 };
    buf_add(&path, STR("/api/v1/nodes/"));
    client_add_segment(&path, node);
    struct str key = KEY_ABORT;
    const struct api_request request = {
        .verb = API_PATCH,
        .path = buf_str(&path),
        .content_type = API_MERGE_PATCH,
        .body = arena_printf(&tmp, "{\"metadata\":{\"annotations\":{\"" STR_FMT "\":\"true\"}}}",
                             STR_ARG(key)),
    };
    struct blocking_api_reply reply;
    int r = blocking_api_send(&session->blocking_api, &request, &tmp, &reply, err);
    if (r < 0 || reply.status == 200) {
        return r;
    }
    client_explain(reply.status, reply.body, NULL, err);
    return err_wrap(err, "node '" STR_FMT "'", STR_ARG(node));
}

static int abort_run(const struct command_call *call)
{
    const struct abort_flags *flags = call->config;
    struct err err = { 0 };
    struct client_session session = { 0 };
    int r = client_session_init(&session, flags->kubeconfig,
                                command_kubecontext(flags->kubecontext), &err);
    if (r == 0) {
        session.blocking_api.fail_fast = true;
        r = abort_annotate(&session, call->args[0], &err);
    }
    client_session_done(&session);
    if (r < 0) {
        return command_fail(call, &err);
    }
    struct str node = call->args[0];
    printf("node/" STR_FMT " is to be given up\n", STR_ARG(node));
    return COMMAND_OK;
}

static unsigned abort_names(const struct command_call *call)
{
    return call->arg_count == 0 ? COMMAND_NAMES_NODES : 0;
}

const struct command command_abort = {
    .name = "abort",
    .args = "NODE",
    .summary = "give up what profiles have under way on a node",
    .text =
        "Ends the drain that profiles run on the node, lifts the cordon if it is a profile's, and "
        "makes every profile of the node operational, without running a trigger. The controller "
        "does it when it sees the annotation that this command sets, and removes the annotation. "
        "A node that still asks for its maintenance, and may have it, goes again: take back its "
        "approval, or what it needs, first.\n\n"
        "Exit code 0: it is asked for. 1: it could not be. 2: the command line is wrong.",
    .options = { .options = abort_options, .count = ARRAY_LEN(abort_options) },
    .config_size = sizeof(struct abort_flags),
    .args_min = 1,
    .args_max = 1,
    .run = abort_run,
    .names = abort_names,
};
