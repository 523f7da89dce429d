#include "cmd/request_create.h"

#include <stdio.h>

static void request_create_on_progress(void *ctx, const struct record *r)
{
    const struct request_cli *a = ctx;
    CLEANUP(arena_done)
    struct arena tmp = { 0 };
    CLEANUP(buf_done)
    struct buf text = { 0 };
    struct str phase = r->phase.n > 0 ? r->phase : STR("Pending");
    buf_printf(&text, STR_FMT ": " STR_FMT, STR_ARG(record_target_text(&r->target, &tmp)),
               STR_ARG(phase));
    if (r->position > 0) {
        buf_printf(&text, ", number %lld in the queue", (long long)r->position);
    }
    if (r->reason.n > 0) {
        buf_printf(&text, ", " STR_FMT, STR_ARG(r->reason));
    }
    if (r->message.n > 0) {
        buf_printf(&text, ": " STR_FMT, STR_ARG(r->message));
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
                        struct record *ret, bool *ret_created, struct err *err)
{
    const struct request_create_flags *flags = a->call->config;
    const struct record_ask ask = {
        .target = request_cli_target(a, name),
        .reason = reason,
        .priority = flags->priority,
        .unprepared = str_eq(flags->preparation, STR("None")),
    };
    int r = actor_request(&a->actor, &ask, &a->memory, ret, ret_created, err);
    /* What the library says of a wrong name, as the original did, does not have the name. */
    return r == -ERR_INVALID
               ? err_wrap(err, STR_FMT, STR_ARG(record_target_text(&ask.target, &a->memory)))
               : r;
}
