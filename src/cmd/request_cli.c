#include "cmd/request_cli.h"

#include "base/textwrap.h"
#include "cmd/report_output.h"
#include "cmd/terminal.h"
#include "kinds/keys.h"
#include "kube/client.h"

#include <stdio.h>
#include <unistd.h>

#define REQUEST_CLI_MESSAGE_MAX                                                                    \
    ((size_t)16 * 1024) /* a sentence with a message of the server's in it */

int request_cli_open(struct request_cli *a, const struct command_call *call,
                     const struct request_cli_flags *flags)
{
    struct err err = { 0 };
    *a = (struct request_cli){ .call = call, .flags = flags };
    bool node = flags->type.n == 0 || str_eq(flags->type, STR("node"));
    if (node ? flags->ns.n > 0 : flags->ns.n == 0) {
        (void)fprintf(stderr, "%s %s: --type " STR_FMT " %s --namespace\n", call->program,
                      call->command->name, STR_ARG(flags->type), node ? "takes no" : "needs");
        return COMMAND_USAGE;
    }
    struct str client = flags->client.n > 0 ? flags->client : STR("drydock");
    if (actor_init(&a->actor, &a->session.blocking_api, client, &err) < 0) {
        (void)command_fail(call, &err); /* answers COMMAND_FAILED; this is the flag's fault */
        return COMMAND_USAGE;
    }
    struct str context = command_kubecontext(flags->kubecontext);
    if (client_session_init(&a->session, flags->kubeconfig, context, &err) < 0) {
        return request_cli_fail(a, &err);
    }
    a->session.blocking_api.fail_fast = true;
    a->session.blocking_api.api =
        api_trace_on(&a->trace, a->session.api, a->session.loop, flags->verbosity);
    return COMMAND_OK;
}

void request_cli_close(struct request_cli *a)
{
    client_session_done(&a->session);
    arena_done(&a->memory);
}

int request_cli_fail(const struct request_cli *a, const struct err *err)
{
    request_cli_note(a, str_from(err->msg));
    return err->code == ERR_TIMEOUT     ? REQUEST_CLI_TIMED_OUT
           : err->code == ACTOR_REFUSED ? REQUEST_CLI_REFUSED
                                        : COMMAND_FAILED;
}

void request_cli_note(const struct request_cli *a, struct str text)
{
    CLEANUP(buf_done)
    struct buf out = { .max = REQUEST_CLI_MESSAGE_MAX };
    uint32_t columns = terminal_columns(STDERR_FILENO);
    struct textwrap line = { .out = &out,
                             .columns = columns > 0 ? columns : OPTIONS_COLUMNS,
                             .hang = 2 };
    textwrap_printf(&line, "%s %s: ", a->call->program, a->call->command->name);
    textwrap_add(&line, text);
    textwrap_end(&line);
    (void)fwrite(out.p, 1, out.n, stderr); /* nobody is left to tell if stderr is gone */
}

struct request_target request_cli_target(const struct request_cli *a, struct str name)
{
    return (
        struct request_target){ .type = a->flags->type, .namespace = a->flags->ns, .name = name };
}

usec_t request_cli_deadline(const struct request_cli *a)
{
    usec_t now = loop_now(a->session.loop);
    usec_t most = a->flags->time_max;
    return most <= 0 || most > USEC_NEVER - now ? USEC_NEVER : now + most;
}

int request_cli_resolve(struct request_cli *a, struct str argument, struct maintenance_request *ret,
                        struct err *err)
{
    const struct request_target target = request_cli_target(a, argument);
    const struct maintenance_request *best = NULL;
    struct maintenance_request *requests;
    uint32_t n;
    uint32_t matches = 0;
    int r = actor_list(&a->actor, &a->memory, &requests, &n, err);
    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(requests[i].name, argument)) {
            *ret = requests[i];
            return 0;
        }
        if (requests[i].state == MR_STATE_COMPLETED || !mrequest_is_for(&requests[i], &target)) {
            continue;
        }
        if (str_eq(requests[i].client, a->actor.client)) {
            *ret = requests[i];
            best = &requests[i];
            matches = 1;
            break;
        }
        best = &requests[i];
        matches++;
    }
    if (matches == 0) {
        return err_set(err, ERR_NOTFOUND,
                       "there is no live request for " STR_FMT " '" STR_FMT
                       "', and none of that name",
                       STR_ARG(target.type), STR_ARG(argument));
    }
    if (matches > 1) {
        return err_set(err, ERR_INVALID,
                       "%u clients ask for '" STR_FMT "', '" STR_FMT
                       "' among them: say which with --client, or name the request",
                       matches, STR_ARG(argument), STR_ARG(best->client));
    }
    *ret = *best;
    return 0;
}

int request_cli_print(struct request_cli *a, struct str name, const char *verb)
{
    bool bare = str_eq(a->flags->output, STR("name"));
    if (bare || str_eq(a->flags->output, STR("text"))) {
        (void)printf("maintenancerequest." MAINTENANCE_GROUP "/" STR_FMT "%s%s\n", STR_ARG(name),
                     bare ? "" : " ", bare ? "" : verb);
        (void)fflush(stdout); /* a closed pipe is the reader's business, here and below */
        return COMMAND_OK;
    }
    CLEANUP(buf_done)
    struct buf path = { 0 };
    struct err err = { 0 };
    struct blocking_api_reply answer;
    buf_add(&path, STR(MAINTENANCE_REQUESTS_PATH "/"));
    client_add_segment(&path, name);
    int r = blocking_api_send(&a->session.blocking_api,
                              &(struct api_request){ .verb = API_GET, .path = buf_str(&path) },
                              &a->memory, &answer, &err);
    if (r == 0 && answer.status != 200) {
        client_explain(answer.status, answer.body, NULL, &err);
        r = -(int)err.code;
    }
    CLEANUP(buf_done)
    struct buf out = { 0 };
    r = r < 0 ? r
              : report_output_add(a->flags->output, REPORT_ABOUT_REQUEST, /* colour= */ false,
                                  str_trim(answer.body), &out, &err);
    if (r < 0) {
        return request_cli_fail(a, &err);
    }
    (void)fwrite(out.p, 1, out.n, stdout);
    (void)fflush(stdout);
    return COMMAND_OK;
}
