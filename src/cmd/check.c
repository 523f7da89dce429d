/* drydock check: reads configuration files without a cluster and prints what is wrong with them. */
#include "cmd/commands.h"
#include "cmd/check_output.h"
#include "cmd/config_env.h"
#include "host/file.h"
#include "profile/config.h"

#include <stdio.h>

#define CHECK_OUTPUT_MAX ((size_t)1024 * 1024) /* a hundred problems a file have some KiB */
#define CHECK_FILES_MAX 1000u                  /* what a shell's pattern gives */

struct check_flags {
    bool strict;
};

static const struct option check_options[] = {
    { "strict", OPTION_BOOL, OPTION(struct check_flags, strict), NULL, "false", NULL,
      "a warning is a problem, too" },
};

/* Answers whether the file is fine. */
static bool check_file(struct str path, bool strict, struct buf *out)
{
    CLEANUP(arena_done)
    struct arena memory = { 0 };
    struct err err = { 0 };
    struct str text;
    if (file_read(path, UCFG_BYTES_MAX, &memory, &text, &err) < 0) {
        buf_printf(out, "%s\n", err.msg); /* it names the file */
        return false;
    }
    struct problems problems = { .out = &memory };
    struct config config;
    int result = config_load(text, config_env_of(&config_env_host), &memory, &config, &problems);
    check_output_problems(path, text, &problems, out);
    if (result < 0 || (strict && problems.n > 0)) {
        return false;
    }
    check_output_valid(path, &config, out);
    return true;
}

static int check_run(const struct command_call *call)
{
    const struct check_flags *flags = call->config;
    bool fine = true;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        CLEANUP(buf_done)
        struct buf out = { .max = CHECK_OUTPUT_MAX };
        fine = check_file(call->args[i], flags->strict, &out) && fine;
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
            "mark under the place. Variables are taken from the environment. A warning tells of "
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
