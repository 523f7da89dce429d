#include "cmd/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/closest.h"
#include "base/textwrap.h"
#include "cmd/completion.h"
#include "cmd/man_page.h"
#include "cmd/terminal.h"

#define HELP_MAX ((size_t)256 * 1024) /* help of all commands is a few pages */

struct str command_kubecontext(struct str flag)
{
    return flag.n > 0 ? flag : str_from(getenv("KUBECONTEXT"));
}

int command_fail(const struct command_call *call, const struct err *err)
{
    CLEANUP(buf_done)
    struct buf out = { .max = HELP_MAX };
    /* Lines of a pipe or a log stay whole. */
    struct textwrap line = { .out = &out, .columns = terminal_columns(STDERR_FILENO), .hang = 2 };
    textwrap_printf(&line, "%s %s: %s", call->program, call->command->name, err->msg);
    textwrap_end(&line);
    (void)fwrite(out.p, 1, out.n, stderr); /* nobody is left to tell if stderr is gone */
    return COMMAND_FAILED;
}

const struct command *command_find(const struct command_list *list, struct str name)
{
    for (const struct command *const *c = list->items; *c != NULL; c++) {
        if (str_eq(str_from((*c)->name), name)) {
            return *c;
        }
    }
    return NULL;
}

const struct command_builtin command_builtins[COMMAND_BUILTIN_COUNT] = {
    { "completion", "print a script that completes commands" },
    { "version", "print the version" },
    { "help", "print this help, or a command's own" },
};

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
    for (size_t i = 0; i < ARRAY_LEN(command_builtins); i++) {
        buf_printf(out, "  %-12s  %s\n", command_builtins[i].name, command_builtins[i].summary);
    }
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

void command_version(const struct command_list *list, struct buf *out)
{
    bool known = list->commit != NULL && list->commit[0] != '\0';
    buf_printf(out, "drydock " DRYDOCK_VERSION "%s%s%s\n", known ? " (" : "",
               known ? list->commit : "", known ? ")" : "");
}

static void command_print(struct str text)
{
    (void)fwrite(text.p, 1, text.n, stdout); /* nobody is left to tell if stdout is gone */
}

/* ── a command line that is wrong ──────────────────────────────────────────────────────────── */

static int command_check_args(const struct command_call *call, struct err *err)
{
    const struct command *c = call->command;
    int r = c->check != NULL ? c->check(call, err) : 0;
    if (r == 0 && call->arg_count < c->args_min) {
        r = err_set(err, ERR_INVALID, "found %u argument%s, want %s", call->arg_count,
                    call->arg_count == 1 ? "" : "s", c->args);
    } else if (r == 0 && call->arg_count > c->args_max) {
        r = err_set(err, ERR_INVALID, "unexpected argument '" STR_FMT "'",
                    STR_ARG(call->args[c->args_max]));
    }
    return r;
}

static int command_unknown(const struct command_list *list, const char *program, const char *word)
{
    struct str names[64];
    size_t n = 0;
    for (const struct command *const *c = list->items; *c != NULL; c++) {
        ASSERT(n + ARRAY_LEN(command_builtins) < ARRAY_LEN(names));
        names[n++] = str_from((*c)->name);
    }
    for (size_t i = 0; i < ARRAY_LEN(command_builtins); i++) {
        names[n++] = str_from(command_builtins[i].name);
    }
    struct str near = closest_find(str_from(word), names, n);
    if (word[0] == '-') {
        (void)fprintf(stderr, "%s: flags stand behind the command, found '%s'\n", program, word);
    } else if (near.n > 0) {
        (void)fprintf(stderr, "%s: unknown command '%s', did you mean '" STR_FMT "'?\n", program,
                      word, STR_ARG(near));
    } else {
        (void)fprintf(stderr, "%s: unknown command '%s'\n", program, word);
    }
    (void)fprintf(stderr, "Run '%s help' for the list.\n", program);
    return COMMAND_USAGE;
}

/* ── running one ───────────────────────────────────────────────────────────────────────────── */

static int command_run(const struct command_list *list, const struct command *command,
                       const char *program, char *const *argv)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct option_args args = { 0 };
    void *config = arena_alloc(&memory, MAX(command->config_size, (size_t)1));
    int r = options_parse(&command->options, argv, &memory, config, &args, &err);
    struct command_call call = {
        .command = command,
        .program = program,
        .list = list,
        .config = config,
        .args = args.items,
        .arg_count = args.count,
        .before_dashes = args.before_dashes,
        .memory = &memory,
    };
    if (r == 0 && !args.help) {
        r = command_check_args(&call, &err);
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
    return command->run(&call);
}

static int command_completion_check(const struct command_call *call, struct err *err)
{
    return call->arg_count == 1 && completion_knows(call->args[0])
               ? 0
               : err_set(err, ERR_INVALID, "want one argument: " COMPLETION_SHELLS);
}

static int command_completion_run(const struct command_call *call)
{
    CLEANUP(buf_done)
    struct buf out = { .max = HELP_MAX };
    completion_print(call->list, call->args[0], &out);
    command_print(buf_str(&out));
    return COMMAND_OK;
}

static const struct command command_completion = {
    .name = "completion",
    .args = COMPLETION_SHELLS,
    .summary = "print a script that completes commands",
    .text = "Prints a script that teaches a shell the commands, their flags and the names of "
            "nodes, requests, limits and machines, which it asks the cluster for:\n\n"
            "  source <(drydock completion bash)\n"
            "  drydock completion zsh > \"${fpath[1]}/_drydock\"\n"
            "  drydock completion fish | source\n\n"
            "For 'kubectl drydock' kubectl's own completion runs kubectl_complete-drydock, a link "
            "to drydock that must be in PATH; 'make install' makes it.",
    .args_max = UINT32_MAX, /* `check` counts them */
    .check = command_completion_check,
    .run = command_completion_run,
};

/* The commands that the table itself answers; -1 when `name` is none of them. */
static int command_builtin(const struct command_list *list, const char *program, struct str name,
                           char *const *argv)
{
    CLEANUP(buf_done)
    struct buf out = { .max = HELP_MAX };
    bool dashed = str_cut_prefix(name, STR("-"), &name);
    dashed = str_cut_prefix(name, STR("-"), &name) || dashed;
    if (str_eq(name, STR("completion")) && !dashed) {
        return command_run(list, &command_completion, program, argv);
    }
    if (str_eq(name, STR(COMPLETION_COMMAND))) {
        return completion_answer(list, argv);
    }
    if (str_eq(name, STR(MAN_PAGE_COMMAND))) {
        return man_page_answer(list, argv);
    }
    if (str_eq(name, STR("version"))) {
        command_version(list, &out);
    } else if (str_eq(name, STR("help")) || (dashed && str_eq(name, STR("h")))) {
        struct str word = str_from(argv[0]);
        const struct command *about = str_eq(word, str_from(command_completion.name))
                                          ? &command_completion
                                          : command_find(list, word);
        if (about != NULL) {
            command_help(about, program, &out);
        } else if (argv[0] != NULL) {
            return command_unknown(list, program, argv[0]);
        } else {
            command_list_help(list, program, &out);
        }
    } else {
        return -1;
    }
    command_print(buf_str(&out));
    return COMMAND_OK;
}

/* Names of the file that have a meaning of their own; by any other name it is drydock. */
static const struct command_alias {
    const char *file;
    const char *program; /* as messages call it */
    const char *command; /* runs without being named; NULL = the first argument names it */
} command_aliases[] = {
    { "kubectl-drydock", "kubectl drydock", NULL },
    { "kubectl_complete-drydock", "kubectl drydock", COMPLETION_COMMAND },
    /* The programs of the original images: their charts and manifests go on working. */
    { "manager", "drydock", "controller" },
    { "runtime-extension-maintenance-controller", "drydock", "bridge" },
};

static const struct command_alias *command_alias_find(struct str path)
{
    static const struct command_alias plain = { "drydock", "drydock", NULL };
    size_t slash = str_rfind_char(path, '/');
    struct str file = slash == SIZE_MAX ? path : str_sub(path, slash + 1, path.n - slash - 1);
    for (size_t i = 0; i < ARRAY_LEN(command_aliases); i++) {
        if (str_eq(file, str_from(command_aliases[i].file))) {
            return &command_aliases[i];
        }
    }
    return &plain;
}

int command_main(const struct command_list *list, char *const *argv)
{
    const struct command_alias *alias = command_alias_find(str_from(argv[0]));
    const char *program = alias->program;
    const char *word = alias->command;
    char *const *rest = argv[0] == NULL ? argv : argv + 1;
    if (word == NULL && rest[0] != NULL) {
        word = *rest++;
    }
    if (word == NULL) {
        CLEANUP(buf_done)
        struct buf out = { .max = HELP_MAX };
        command_list_help(list, program, &out);
        (void)fwrite(out.p, 1, out.n, stderr);
        return COMMAND_USAGE;
    }
    const struct command *command = command_find(list, str_from(word));
    if (command != NULL) {
        return command_run(list, command, program, rest);
    }
    int code = command_builtin(list, program, str_from(word), rest);
    return code < 0 ? command_unknown(list, program, word) : code;
}
