/* drydock check: reads configuration files without a cluster and prints what is wrong with them. */
#include "cmd/commands.h"
#include "cmd/check_output.h"
#include "cmd/config_env.h"
#include "host/file.h"
#include "integration/integration.h"
#include "profile/config.h"

#include <stdio.h>

#define CHECK_OUTPUT_MAX ((size_t)1024 * 1024) /* a hundred problems a file have some KiB */
#define CHECK_FILES_MAX 1000u                  /* what a shell's pattern gives */

struct check_flags {
    bool strict;
    struct str kind;
};

static const struct option check_options[] = {
    { "strict", OPTION_BOOL, OPTION(struct check_flags, strict), NULL, "false", NULL,
      "a warning is a problem, too" },
    { "kind", OPTION_TEXT, OPTION(struct check_flags, kind), "NAME", "", NULL,
      "what the files are: maintenance, or an integration; otherwise their names tell" },
};

/* The integration whose file it is; NULL: it has profiles. */
static const struct integration_provider *check_provider(struct str path, struct str kind)
{
    return kind.n > 0 ? integration_find_provider(kind) : integration_provider_of_file(path);
}

static int check_load(struct str path, struct str text, const struct check_flags *flags,
                      struct arena *memory, struct buf *out)
{
    const struct integration_provider *provider = check_provider(path, flags->kind);
    struct problems problems = { .out = memory };
    struct ucfg_env env = config_env_of(&config_env_host);
    struct config config;
    void *ignored = NULL;
    int result = provider != NULL
                     ? integration_load(provider, text, env, memory, &ignored, &problems)
                     : config_load(text, env, memory, &config, &problems);
    /* Lines with passwords are not shown; a log keeps what a build prints. */
    check_output_problems(path, provider != NULL ? STR_NONE : text, &problems, out);
    if (result < 0 || (flags->strict && problems.n > 0)) {
        return -ERR_INVALID;
    }
    if (provider != NULL) {
        buf_printf(out, STR_FMT ": fine, a file of %s\n", STR_ARG(path), provider->title);
    } else {
        check_output_valid(path, &config, out);
    }
    return 0;
}

/* Answers whether the file is fine. */
static bool check_file(struct str path, const struct check_flags *flags, struct buf *out)
{
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct str text;
    bool fine = false;
    if (file_read(path, UCFG_BYTES_MAX, &memory, &text, &err) < 0) {
        buf_printf(out, "%s\n", err.msg); /* it names the file */
    } else {
        fine = check_load(path, text, flags, &memory, out) == 0;
    }
    arena_wipe(&memory); /* passwords may be in it */
    return fine;
}

static int check_run(const struct command_call *call)
{
    const struct check_flags *flags = call->config;
    bool fine = true;
    if (flags->kind.n > 0 && !str_eq(flags->kind, STR("maintenance")) &&
        integration_find_provider(flags->kind) == NULL) {
        struct err err = { 0 };
        (void)err_set(&err, ERR_INVALID,
                      "--kind '" STR_FMT "': want maintenance, or an integration such as %s",
                      STR_ARG(flags->kind), integration_providers[0]->name);
        (void)command_fail(call, &err); /* the exit code is that of a wrong command line */
        return COMMAND_USAGE;
    }
    for (uint32_t i = 0; i < call->arg_count; i++) {
        CLEANUP(buf_done)
        struct buf out = { .max = CHECK_OUTPUT_MAX };
        fine = check_file(call->args[i], flags, &out) && fine;
        (void)fwrite(out.p, 1, out.n, stdout); /* a closed pipe is the reader's business */
    }
    return fine ? COMMAND_OK : COMMAND_FAILED;
}

const struct command command_check = {
    .name = "check",
    .args = "FILE…",
    .summary = "validate configuration files and list every problem",
    .text = "Reads each file as the controller would, without a cluster, and lists all that is "
            "wrong with it: the file, line and column, what was found and what is wanted, with a "
            "mark under the place. Variables are taken from the environment. A file "
            "called esx.yaml or kubernikus.yaml is read as that integration's. A warning tells of "
            "a key that nothing reads, or of a message that will fail when it is due; the file "
            "can be used as it is.\n\n"
            "Exit code 0: all files can be used. 1: there are problems, or with --strict "
            "warnings. 2: the command line is wrong.",
    .options = { .options = check_options, .count = ARRAY_LEN(check_options) },
    .config_size = sizeof(struct check_flags),
    .args_min = 1,
    .args_max = CHECK_FILES_MAX,
    .run = check_run,
};
