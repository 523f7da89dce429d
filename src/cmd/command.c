#include "cmd/command.h"

#include <stdio.h>
#include <stdlib.h>

#include "cmd/completion.h"

#define HELP_MAX ((size_t)256 * 1024) /* help of all commands is a few pages */

struct str command_kubecontext(struct str flag)
{
    return flag.n > 0 ? flag : str_from(getenv("KUBECONTEXT"));
}

int command_fail(const struct command_call *call, const struct err *err)
{
    (void)fprintf(stderr, "%s %s: %s\n", call->program, call->command->name, err->msg);
    return COMMAND_FAILED;
}

static const struct command *command_find(const struct command_list *list, struct str name)
{
    for (const struct command *const *c = list->items; *c != NULL; c++) {
        if (str_eq(str_from((*c)->name), name)) {
            return *c;
        }
    }
    return NULL;
}

void command_list_help(const struct command_list *list, const char *program, struct buf *out)
{
    buf_printf(out, "usage: %s COMMAND [flags] [arguments]\n\n", program);
    options_wrap(STR("drydock takes Kubernetes nodes in and out of maintenance: it knows when a "
                     "node may be disturbed, asks for leave first and puts things back after."),
                 0, out);
    buf_add(out, STR("\ncommands:\n"));
    for (const struct command *const *c = list->items; *c != NULL; c++) {
        buf_printf(out, "  %-12s  %s\n", (*c)->name, (*c)->summary);
    }
    buf_printf(out, "  %-12s  %s\n", "completion", "print a script that completes commands");
    buf_printf(out, "  %-12s  %s\n", "version", "print the version");
    buf_printf(out, "  %-12s  %s\n", "help", "print this help, or a command's own");
    buf_printf(out, "\nRun '%s help COMMAND' for the flags of a command.\n", program);
}

void command_help(const struct command *command, const char *program, struct buf *out)
{
    buf_printf(out, "usage: %s %s%s%s%s\n\n", program, command->name,
               command->options.count > 0 ? " [flags]" : "", command->args != NULL ? " " : "",
               command->args != NULL ? command->args : "");
    options_wrap(str_from(command->text), 0, out);
    if (command->options.count > 0) {
        buf_add(out, STR("\nflags:\n"));
        options_help(&command->options, out);
    }
}

static void command_print(struct str text)
{
    (void)fwrite(text.p, 1, text.n, stdout); /* nobody is left to tell if stdout is gone */
}

static int command_run(const struct command *command, const char *program, char *const *argv)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct option_args args;
    void *config = arena_alloc(&memory, MAX(command->config_size, (size_t)1));
    int r = options_parse(&command->options, argv, &memory, config, &args, &err);
    if (r == 0 && !args.help && args.count < command->args_min) {
        r = err_set(&err, ERR_INVALID, "found %u arguments, want %s", args.count, command->args);
    } else if (r == 0 && !args.help && args.count > command->args_max) {
        r = err_set(&err, ERR_INVALID, "unexpected argument '" STR_FMT "'",
                    STR_ARG(args.items[command->args_max]));
    }
    if (r < 0) {
        (void)fprintf(stderr, "%s %s: %s\nRun '%s help %s' for usage.\n", program, command->name,
                      err.msg, program, command->name);
        return COMMAND_USAGE;
    }
    if (args.help) {
        CLEANUP(buf_done)
        struct buf out = { .max = HELP_MAX };
        command_help(command, program, &out);
        command_print(buf_str(&out));
        return COMMAND_OK;
    }
    struct command_call call = {
        .command = command,
        .program = program,
        .config = config,
        .args = args.items,
        .arg_count = args.count,
        .memory = &memory,
    };
    return command->run(&call);
}

/* The commands that the table itself answers; -1 when `name` is none of them. */
static int command_builtin(const struct command_list *list, const char *program, struct str name,
                           char *const *argv)
{
    CLEANUP(buf_done)
    struct buf out = { .max = HELP_MAX };
    bool dashed = str_cut_prefix(name, STR("-"), &name);
    dashed = str_cut_prefix(name, STR("-"), &name) || dashed;
    if (str_eq(name, STR("version"))) {
        buf_add(&out, STR("drydock " DRYDOCK_VERSION "\n"));
    } else if (str_eq(name, STR("help")) || (dashed && str_eq(name, STR("h")))) {
        const struct command *about = NULL;
        if (argv[0] != NULL) {
            about = command_find(list, str_from(argv[0]));
            if (about == NULL) {
                (void)fprintf(stderr, "%s: unknown command '%s'\n", program, argv[0]);
                return COMMAND_USAGE;
            }
            command_help(about, program, &out);
        } else {
            command_list_help(list, program, &out);
        }
    } else if (str_eq(name, STR("completion"))) {
        if (argv[0] == NULL || argv[1] != NULL ||
            !completion_print(list, str_from(argv[0]), &out)) {
            (void)fprintf(stderr, "%s completion: want one argument: " COMPLETION_SHELLS "\n",
                          program);
            return COMMAND_USAGE;
        }
    } else {
        return -1;
    }
    command_print(buf_str(&out));
    return COMMAND_OK;
}

int command_main(const struct command_list *list, char *const *argv)
{
    struct str path = str_from(argv[0]);
    size_t slash = str_rfind_char(path, '/');
    struct str name = slash == SIZE_MAX ? path : str_sub(path, slash + 1, path.n - slash - 1);
    const char *program = str_eq(name, STR("kubectl-drydock")) ? "kubectl drydock" : "drydock";
    if (argv[0] == NULL || argv[1] == NULL) {
        CLEANUP(buf_done)
        struct buf out = { .max = HELP_MAX };
        command_list_help(list, program, &out);
        (void)fwrite(out.p, 1, out.n, stderr);
        return COMMAND_USAGE;
    }
    struct str word = str_from(argv[1]);
    const struct command *command = command_find(list, word);
    if (command != NULL) {
        return command_run(command, program, argv + 2);
    }
    int code = command_builtin(list, program, word, argv + 2);
    if (code < 0) {
        (void)fprintf(stderr, "%s: unknown command '%s'\nRun '%s help' for the list.\n", program,
                      argv[1], program);
        return COMMAND_USAGE;
    }
    return code;
}
