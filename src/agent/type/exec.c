/* exec: a program that is run when its guards say so. */
#include "agent/accounts.h"
#include "agent/type/path.h"
#include "agent/type/type.h"

#define MESSAGE_BYTES 160u /* of what the program wrote, in a message */

static const struct field fields[] = {
    { "command", FIELD_TEXTS, .help = "a program by its path, and its arguments" },
    { "script", FIELD_TEXT, .help = "or: what /bin/sh is to run" },
    { "cwd", FIELD_PATH, .help = "where it starts; nothing: /" },
    { "env", FIELD_TEXTS, .help = "variables, each NAME=value" },
    { "user", FIELD_SCALAR, .help = "as whom; nothing: root" },
    { "creates", FIELD_PATH, .help = "not to be run if this path is there" },
    { "onlyIf", FIELD_TEXT, .help = "a script: not to be run unless it exits with 0" },
    { "unless", FIELD_TEXT, .help = "a script: not to be run if it exits with 0" },
    { "refreshOnly", FIELD_BOOL, .initial = "false", .help = "run it only when it is notified" },
    { "timeout", FIELD_DURATION, .initial = "5m", .help = "how long it may take" },
};

static struct str text_of(const struct resource *r, const char *name)
{
    return resource_value(r, name)->text;
}

static int prepare(struct resource_prepare *p, struct err *err)
{
    const struct resource *r = p->resource;
    const struct field_value *command = resource_value(r, "command");
    const struct field_value *env = resource_value(r, "env");
    if (command->given == resource_value(r, "script")->given) {
        return err_set(err, ERR_INVALID, "fields 'command' and 'script': want one of them");
    }
    if (command->given && (command->item_n == 0 || !str_starts(command->items[0], STR("/")))) {
        return err_set(err, ERR_INVALID, "field 'command': want the path of a program first");
    }
    if (!resource_value(r, "creates")->given && !resource_value(r, "onlyIf")->given &&
        !resource_value(r, "unless")->given && !resource_value(r, "refreshOnly")->truth) {
        return err_set(err, ERR_INVALID,
                       "want one of 'creates', 'onlyIf', 'unless' and 'refreshOnly: true', or it "
                       "would run each time");
    }
    for (uint32_t i = 0; i < env->item_n; i++) {
        if (str_find_char(env->items[i], '=') == SIZE_MAX) {
            return err_set(err, ERR_INVALID, "field 'env': found '" STR_FMT "', want NAME=value",
                           STR_ARG(str_sub(env->items[i], 0, 64)));
        }
    }
    if (resource_value(r, "timeout")->number == 0) {
        return err_set(err, ERR_INVALID, "field 'timeout': want it above 0");
    }
    p->resource->id = arena_printf(p->out, "exec:" STR_FMT, STR_ARG(r->name));
    if (resource_value(r, "creates")->given) {
        resource_uses_parent(p, text_of(r, "creates"));
    }
    if (resource_value(r, "user")->given) {
        resource_uses(p, "user", text_of(r, "user"));
    }
    if (command->given) {
        resource_uses(p, "path", command->items[0]);
    }
    return 0;
}

static int find_user(struct resource_call *call, uint32_t *uid, uint32_t *gid, struct err *err)
{
    const struct field_value *user = resource_value(call->resource, "user");
    struct str text = STR_NONE;
    struct account account;
    bool exists;
    uint32_t number;
    *uid = call->root->uid;
    *gid = call->root->gid;
    if (!user->given) {
        return 0;
    }
    int r = root_slurp(call->root, STR("/etc/passwd"), 0, call->tmp, &text, &exists, err);
    if (r < 0) {
        return r;
    }
    if (!exists ||
        !(account_find(text, user->text, &account) ||
          (str_to_u32(user->text, &number) && account_find_uid(text, number, &account)))) {
        return err_set(err, ERR_NOTFOUND, "field 'user': there is no '" STR_FMT "' in /etc/passwd",
                       STR_ARG(str_sub(user->text, 0, 64)));
    }
    *uid = account.uid;
    *gid = account.gid;
    return 0;
}

/* `script` of no bytes: the command itself. */
static int ask(struct resource_call *call, struct str script, struct err *err)
{
    const struct resource *r = call->resource;
    const struct field_value *command = resource_value(r, "command");
    struct str *shell = ARENA_ARRAY(call->tmp, struct str, 2);
    struct command_spec *spec = &call->command;
    shell[0] = STR("/bin/sh");
    shell[1] = STR("-s");
    script = script.n > 0 ? script : text_of(r, "script");
    bool by_shell = script.n > 0;
    *spec = (struct command_spec){ .argv = by_shell ? shell : command->items,
                                   .argv_n = by_shell ? 2 : command->item_n,
                                   .env = resource_value(r, "env")->items,
                                   .env_n = resource_value(r, "env")->item_n,
                                   .cwd = text_of(r, "cwd"),
                                   .input = script,
                                   .time_max = resource_value(r, "timeout")->number };
    int result = find_user(call, &spec->uid, &spec->gid, err);
    return result < 0 ? result : RESOURCE_RUN;
}

static int fail_timeout(struct err *err)
{
    return err_set(err, ERR_TIMEOUT, "it did not end within its 'timeout'");
}

/* Guards one after the other: creates, onlyIf, unless. `memory` is not needed: the step says which
 * script has ended. */
static int check(struct resource_call *call, struct err *err)
{
    const struct resource *r = call->resource;
    bool only_if = resource_value(r, "onlyIf")->given;
    bool unless = resource_value(r, "unless")->given;
    call->disruption = DISRUPTION_WINDOW;
    if (resource_value(r, "refreshOnly")->truth) {
        return 0;
    }
    if (call->step > 0 && call->result->timed_out) {
        return fail_timeout(err);
    }
    if (call->step == 0 && resource_value(r, "creates")->given) {
        struct path_state state;
        int result = path_look(call, text_of(r, "creates"), 0, &state, err);
        if (result < 0) {
            return result;
        }
        root_place_done(&state.place);
        if (state.exists) {
            return 0;
        }
    }
    if (call->step == 0 && only_if) {
        return ask(call, text_of(r, "onlyIf"), err);
    }
    if (call->step == 1 && only_if && call->result->exit_code != 0) {
        return 0;
    }
    if (call->step == (only_if ? 1U : 0U) && unless) {
        return ask(call, text_of(r, "unless"), err);
    }
    if (unless && call->result->exit_code == 0) {
        return 0;
    }
    resource_differs(call, "run", STR("due"), STR("done"));
    return 0;
}

static int run(struct resource_call *call, struct err *err)
{
    if (call->step == 0) {
        return ask(call, STR(""), err);
    }
    if (call->result->timed_out) {
        return fail_timeout(err);
    }
    if (call->result->exit_code != 0) {
        struct str out = str_trim(call->result->out);
        size_t cut = out.n > MESSAGE_BYTES ? out.n - MESSAGE_BYTES : 0;
        return err_set(
            err, ERR_IO, "exit code %d%s" STR_FMT, call->result->exit_code,
            out.n > 0 && !call->resource->meta.sensitive ? ": " : "",
            STR_ARG(call->resource->meta.sensitive ? STR("") : str_sub(out, cut, out.n - cut)));
    }
    call->refreshed = true;
    return 0;
}

const struct resource_type resource_type_exec = {
    .name = "exec",
    .fields = FIELD_TABLE(fields),
    .help = "a program that is run when its guards say that it is due, or when it is notified",
    .example = "script: update-grub, refreshOnly: true",
    .prepare = prepare,
    .check = check,
    .apply = run,
    .save = resource_save_nothing, /* what a program does cannot be known */
    .restore = resource_restore_nothing,
    .refresh = run,
    .watch = { { WATCH_PATH, .field = "creates" } },
};
