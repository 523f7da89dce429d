#include "agent/type/tool.h"

#include "agent/type/path.h"

#define OUTPUT_BYTES 160u /* of what the program wrote, in a message */

void tool_add(struct tool *t, struct str word)
{
    ASSERT(t->n < TOOL_WORDS_MAX);
    t->words[t->n++] = word;
}

void tool_add_option(struct tool *t, struct str option, struct str value)
{
    tool_add(t, option);
    tool_add(t, value);
}

int tool_judge(const struct resource_call *call, struct err *err)
{
    const struct command_result *result = call->result;
    struct str program = call->command.argv[0];
    if (result->timed_out) {
        return err_set(err, ERR_TIMEOUT, "'" STR_FMT "' did not end in time", STR_ARG(program));
    }
    if (result->exit_code == 0) {
        return 0;
    }
    /* The end says most. */
    struct str out = call->resource->meta.sensitive ? STR("") : str_trim(result->out);
    size_t cut = out.n > OUTPUT_BYTES ? out.n - OUTPUT_BYTES : 0;
    return err_set(err, ERR_IO, "'" STR_FMT "' failed (exit code %d)%s" STR_FMT, STR_ARG(program),
                   result->exit_code, out.n > 0 ? ": " : "",
                   STR_ARG(str_sub(out, cut, out.n - cut)));
}

static bool is_same(const struct resource_call *call, const struct tool *t)
{
    bool same = call->step > 0 && call->command.argv_n == t->n;
    for (uint32_t i = 0; same && i < t->n; i++) {
        same = str_eq(call->command.argv[i], t->words[i]);
    }
    return same;
}

int tool_run_all(struct resource_call *call, tool_next_fn next, const void *ctx, struct err *err)
{
    struct tool tool = { 0 };
    int r = call->step > 0 ? tool_judge(call, err) : 0;
    r = r < 0 ? r : next(call, ctx, &tool, err);
    if (r < 0 || tool.n == 0 || is_same(call, &tool)) {
        return r;
    }
    struct str *argv = ARENA_ARRAY(call->tmp, struct str, tool.n);
    memcpy(argv, tool.words, tool.n * sizeof(tool.words[0]));
    call->command = (struct command_spec){ .argv = argv,
                                           .argv_n = tool.n,
                                           .env = tool.env,
                                           .env_n = tool.env_n,
                                           .input = tool.input,
                                           .uid = call->root->uid,
                                           .gid = call->root->gid,
                                           .time_max = tool.time_max };
    return RESOURCE_RUN;
}

int tool_find(struct resource_call *call, const char *const *paths, struct str *ret,
              struct err *err)
{
    for (const char *const *p = paths; *p != NULL; p++) {
        struct path_state state;
        int r = path_look(call, str_from(*p), ROOT_WALK_FOLLOW, &state, err);
        if (r < 0) {
            return r;
        }
        root_place_done(&state.place);
        if (state.exists) {
            *ret = str_from(*p);
            return 0;
        }
    }
    return err_set(err, ERR_NOTFOUND, "this machine has no program '%s'", paths[0]);
}
