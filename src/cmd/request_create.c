#include "cmd/request_create.h"

#include <stdio.h>

static void request_create_on_progress(void *ctx, const struct maintenance_request *r)
{
    const struct request_cli *a = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    const struct mrequest_status *s = &r->status;
    const struct request_target target = { r->type_text, r->namespace, r->target };
    struct str phase =
        mrequest_phase_name(s->phase == MR_PHASE_ABSENT ? MR_PHASE_PENDING : s->phase);
    buf_printf(&text, STR_FMT ": " STR_FMT, STR_ARG(request_target_text(&target, &tmp)),
               STR_ARG(phase));
    if (s->position > 0) {
        buf_printf(&text, ", number %u in the queue", s->position);
    }
    if (s->reason.n > 0) {
        buf_printf(&text, ", " STR_FMT, STR_ARG(s->reason));
    }
    if (s->message.n > 0) {
        buf_printf(&text, ": " STR_FMT, STR_ARG(s->message));
    }
    request_cli_note(a, buf_str(&text));
}

int request_create_open(struct request_cli *a, const struct command_call *call)
{
    const struct request_create_flags *flags = call->config;
    *a = (struct request_cli){ .call = call, .flags = &flags->cli };
    if (flags->priority < -REQUEST_CREATE_PRIORITY_MAX ||
        flags->priority > REQUEST_CREATE_PRIORITY_MAX) {
        (void)fprintf(stderr, "%s %s: flag '--priority': found '%d', want -1000 to 1000\n",
                      call->program, call->command->name, flags->priority);
        return COMMAND_USAGE;
    }
    int code = request_cli_open(a, call, &flags->cli);
    a->actor.on_progress = request_create_on_progress;
    a->actor.ctx = a;
    return code;
}

int request_create_send(struct request_cli *a, struct str name, struct str reason,
                        struct maintenance_request *ret, bool *ret_created, struct err *err)
{
    const struct request_create_flags *flags = a->call->config;
    const struct mrequest_new new = {
        .target = request_cli_target(a, name),
        .reason = reason,
        .priority = flags->priority,
        .unprepared = str_eq(flags->preparation, STR("None")),
    };
    int r = actor_request(&a->actor, &new, &a->memory, ret, ret_created, err);
    /* What the library says of a wrong name, as the original did, does not have the name. */
    return r == -ERR_INVALID
               ? err_wrap(err, STR_FMT, STR_ARG(request_target_text(&new.target, &a->memory)))
               : r;
}

unsigned request_create_names(const struct command_call *call)
{
    const struct request_create_flags *flags = call->config;
    bool node = str_eq(flags->cli.type, STR("node"));
    return call->arg_count == 0 && node ? COMMAND_NAMES_NODES : 0;
}
